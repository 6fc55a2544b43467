"""Sockets of a sandbox behave as they do natively: the same program prints the same rows on the
host and inside, but for these."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from live_network import SEMANTICS, NetworkService, semantics
from world import World

# What a sandbox says instead, and why.
DIFFERENT = {
    "fast_open_by_sendto": "EOPNOTSUPP",  # so that a program falls back to connect
    "udp_there_and_back": "ECONNREFUSED",  # there is no UDP: QUIC falls back at once
    "udp_without_connect": "nothing",
    "broadcast_and_multicast": "['EACCES', 'EACCES']",  # closed ranges
    "sendfile": "EINVAL",  # as in every sandbox: libraries write instead
    "bind_to_an_address_of_somebody_else": "ok",  # every address is the namespace's own
}
BURST = 90  # of new connections, with some to spare


def by_row(text: str) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in text.splitlines())


def groups() -> list[list[str]]:
    """The rows, so many together as a sandbox may have connects at once."""
    listed = subprocess.run(
        [*SEMANTICS, "--list"], check=True, capture_output=True, text=True
    ).stdout
    found: list[list[str]] = [[]]
    left = BURST
    for line in listed.splitlines():
        name, cost = line.split()
        left -= int(cost)
        if left < 0:
            found.append([])
            left = BURST - int(cost)
        found[-1].append(name)
    return found


GROUPS = groups()


@pytest.fixture(scope="module")
def native(on_host: World) -> Iterator[dict[str, str]]:
    yield by_row(on_host.run(SEMANTICS))


@pytest.mark.parametrize("names", GROUPS, ids=[group[0] for group in GROUPS])
def test_rows_are_as_they_are_natively(
    net: NetworkService, native: dict[str, str], names: list[str]
) -> None:
    body = semantics(names) | {"limits": {"cpu_seconds": 60}}
    reply = net.client.ask("POST", "/v1/execute", body)
    assert reply.status == 200, reply
    got = by_row(reply.json["stdout"])
    assert list(got) == names, str(reply.json)
    wrong = {
        name: (got[name], DIFFERENT.get(name, native[name]))
        for name in names
        if got[name] != DIFFERENT.get(name, native[name])
    }
    assert not wrong, f"(inside, wanted): {wrong}"


def test_rows_that_differ_are_rows(native: dict[str, str]) -> None:
    assert len(native) > 70
    assert {name for name, text in DIFFERENT.items() if native[name] != text} == set(DIFFERENT)

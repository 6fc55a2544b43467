"""Servers inside sandboxes that have a network of their own: every address there leads to the
sandbox itself, what connects outwards is judged, and what comes in from us is neither."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from harness import LiveService, eventually, settled
from inside import OK, PLAIN, PORT, Inside, raw_request, refused
from live import Client
from raw_http import request

GRANTED = "198.51.100.0/24"  # for documentation: nobody is there
POLICIES: list[Any] = [[GRANTED], {"allow": [GRANTED], "connections": 1}, "none"]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    options = ("--profiles", "base", "--network", GRANTED)
    yield from settled(LiveService(tmp_path_factory.mktemp("ports"), *options))


@pytest.fixture
def box(client: Client) -> Iterator[Inside]:
    with Inside(client, network=[GRANTED]) as made:
        yield made


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_a_policy_neither_allows_nor_refuses_it(client: Client, policy: Any) -> None:
    with Inside(client, network=policy) as box:
        box.serve(PLAIN).serve(PLAIN, port=9000, host="'127.0.0.1'")
        box.serve(PLAIN, port=9001, family="socket.AF_INET6", host="'::1'")
        assert box.ports() == [PORT, 9000, 9001], "nothing of ours listens where it can be seen"
        for port in (PORT, 9000, 9001):
            for _ in range(3):
                assert box.ask_inside(port=port).body == b"hello"
        refused(box.ask_inside(port=9002), 502, "port_closed")


def test_it_is_none_of_the_sandboxes_connections(box: Inside) -> None:
    """Neither counted nor told as an attempt."""
    box.serve(PLAIN)
    before = box.get()["usage"]
    for _ in range(150):  # more than it may make itself in a moment
        assert box.ask_inside().body == b"hello"
    result = box.run("1")
    assert result["denied"] == []
    after = box.get()["usage"]
    assert {k: v for k, v in after.items() if "network" in k} == {
        k: v for k, v in before.items() if "network" in k
    }


def test_what_is_closed_outwards_stays_open_inwards(box: Inside) -> None:
    box.serve([OK + b"\r\nsome", "read", b"more"])
    with raw_request(box.port, request("POST", box.at("/"), "Content-Length: 5")) as raw:
        raw.sock.sendall(b"12")
        assert eventually(lambda: box.python("len(heard)") == "0")
        assert box.ask("PUT", "/network", "none").status == 200
        raw.sock.sendall(b"345")
        assert raw.head().status == 200
        raw.sock.shutdown(2)
    box.serve(PLAIN, port=9000)
    assert box.ask_inside(port=9000).body == b"hello"


def test_a_server_at_an_allowed_address_is_not_the_sandboxes(box: Inside) -> None:
    """Every address is its own to bind, and none but its loopback is asked by us."""
    bound = box.python(
        "s = socket.socket(); s.setsockopt(0, 15, 1)\n"  # IP_FREEBIND
        "try:\n"
        "    s.bind(('198.51.100.7', 8002)); s.listen(); said = 'bound'\n"
        "except OSError as e: said = 'refused'\n"
        "said"
    )
    assert bound in ("'bound'", "'refused'")
    assert box.ports() == []
    refused(box.ask_inside(port=8002), 502, "port_closed")

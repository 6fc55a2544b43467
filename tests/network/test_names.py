"""Names: who is told what, what upstream is asked, and what a bad resolver can do with it."""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

import pytest

from live_network import NAMES, NetworkService, attempt, attempts, denied, program, put, said
from world import OTHER, RESOLVER, WEB, World

LOOK = """
import json, socket
def look(name, family=0):
    try:
        found = socket.getaddrinfo(name, 80, family, socket.SOCK_STREAM)
        return sorted({one[4][0] for one in found})
    except socket.gaierror as error:
        return {-2: "no such name", -3: "try again", -5: "no address"}.get(error.errno, str(error))
"""


def looked(net: NetworkService, names: list[str], policy: Any = NAMES) -> dict[str, Any]:
    with net.box(policy) as box:
        code = f"{LOOK}\nfor name in {names!r}:\n    print(json.dumps([name, look(name)]))"
        return dict(json.loads(line) for line in said(box, code))


def test_names_that_are_allowed(net: NetworkService) -> None:
    assert looked(net, ["four.example.test", "two.example.test", "WEB.Example.TEST."]) == {
        "four.example.test": [WEB],
        "two.example.test": ["198.51.100.3", "198.51.100.4"],
        "WEB.Example.TEST.": [WEB, "2001:db8:1::2"],
    }


def test_aliases_are_of_the_name_that_was_asked(net: NetworkService, world: World) -> None:
    only = {"allow": ["www.example.test"]}
    found = looked(net, ["www.example.test", "cdn.provider.test", "long.example.test"], only)
    assert found == {
        "www.example.test": ["198.51.100.4"],
        "cdn.provider.test": "no such name",
        "long.example.test": "no such name",
    }
    assert set(world.asked()) <= {"www.example.test"}


@pytest.mark.parametrize(
    "rule, allowed",
    [
        ("*.example.test", {"four.example.test", "a.wild.example.test", "b.a.wild.example.test"}),
        ("*.wild.example.test", {"a.wild.example.test", "b.a.wild.example.test"}),
        ("example.test", {"example.test"}),
        ("FOUR.example.test.", {"four.example.test"}),
        ("four.example.test:443", {"four.example.test"}),
        (WEB, set()),
    ],
)
def test_wildcards(net: NetworkService, world: World, rule: str, allowed: set[str]) -> None:
    names = ["example.test", "four.example.test", "a.wild.example.test", "b.a.wild.example.test"]
    found = looked(net, [*names, "evil.test"], {"allow": [rule]})
    assert {name for name in names if isinstance(found[name], list)} == allowed
    assert all(found[name] == "no such name" for name in {*names, "evil.test"} - allowed)
    assert set(world.asked()) <= allowed  # nobody outside hears of the others


def test_a_refused_name_is_told(net: NetworkService) -> None:
    with net.box(NAMES) as box:
        told = denied(box.run(f"{LOOK}\nlook('evil.test')"))
        assert told and told[0]["rule"] == "network:default-deny" and "evil.test" in told[0]["op"]
        assert "*.example.test" in told[0]["detail"]


def test_addresses_that_are_closed_are_left_out(net: NetworkService) -> None:
    names = ["rebind", "meta", "host", "private", "local", "mixed", "mapped", "nat64", "loop6"]
    found = looked(net, [f"{name}.example.test" for name in (*names, "inwards")])
    assert found.pop("mixed.example.test") == ["198.51.100.3"]
    assert all(isinstance(answer, str) for answer in found.values()), found


def test_what_was_answered_may_be_reached(net: NetworkService) -> None:
    """By its number, and only by the ports of the rule; what no name had stays closed."""
    policy = {"allow": ["four.example.test:7", "two.example.test:9"], "strict_tls": False}
    with net.box(policy) as box:
        assert attempt(box, WEB, 7) == "EACCES"
        assert attempt(box, "four.example.test", 7) == "connected"
        found = attempts(box, [(WEB, 7), (WEB, 9), ("198.51.100.3", 9)])
        assert list(found.values()) == ["connected", "EACCES", "EACCES"]
        assert attempt(box, "two.example.test", 9) == "connected"
        put(box, {"allow": ["two.example.test:9"]})
        found = attempts(box, [(WEB, 7), ("198.51.100.3", 9)])
        assert list(found.values()) == ["EACCES", "connected"]


def test_what_one_sandbox_was_told_is_not_for_another(net: NetworkService) -> None:
    with net.box(NAMES) as one, net.box(NAMES) as other:
        assert attempt(one, "four.example.test", 7) == "connected"
        assert attempt(other, WEB, 7) == "EACCES"


def test_answers_that_change(net: NetworkService) -> None:
    """Rebinding: with a TTL of 0, first an address of the net, then one of ours."""
    with net.box(NAMES) as box:
        found = {attempt(box, "flip.example.test", 7) for _ in range(6)}
        assert found <= {"connected", "no address", "no such name"}, found
        assert attempt(box, "10.9.9.9", 80) == "EACCES"


def test_a_resolver_that_lies(net: NetworkService) -> None:
    """Nothing that it says brings anybody to an address that it likes."""
    bad = ("silent-dns", "servfail", "wrong-name", "garbage", "refused", "round")
    with net.box({**NAMES, "strict_tls": False}) as box:
        found = attempts(box, [(f"{name}.example.test", 7) for name in bad], timeout_ms=60000)
        assert not [answer for answer in found.values() if answer == "connected"], found
        assert attempt(box, "wrong-id.example.test", 7) == "connected"
        assert attempt(box, "many.example.test", 7) == "connected"
        assert attempt(box, OTHER, 7) == "EACCES"


def test_names_in_the_style_of_unreachable(net: NetworkService) -> None:
    policy: dict[str, Any] = {**NAMES, "refuse": "unreachable"}
    with net.box(policy) as box:
        assert attempt(box, "evil.test") == "ENETUNREACH"
        assert attempt(box, OTHER) in ("EACCES", "ENETUNREACH")
        assert attempt(box, "four.example.test", 7) == "connected"


def test_open_resolves_every_name(net: NetworkService, world: World) -> None:
    assert looked(net, ["shared.evil.test", "meta.example.test"], "open") == {
        "shared.evil.test": [WEB],
        "meta.example.test": "no address",
    }


def test_hosts_of_the_host_is_not_asked(net: NetworkService) -> None:
    name = socket.gethostname()
    found = looked(net, ["localhost", name], {"allow": ["localhost", "*.example.test"]})
    assert set(found["localhost"]) <= {"127.0.0.1", "::1"}
    assert isinstance(found[name], str)


# ---------------------------------------------------------------------------- packets


def question(name: str, kind: int = 1, number: int = 7, flags: int = 0x0100, n: int = 1) -> bytes:
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    asked = labels + b"\0" + struct.pack("!HH", kind, 1)
    return struct.pack("!HHHHHH", number, flags, n, 0, 0, 0) + asked * n


GOOD = question("four.example.test")
LOOP = struct.pack("!HHHHHH", 7, 0x0100, 1, 0, 0, 0) + b"\xc0\x0c\0\1\0\1"
PACKETS: dict[str, tuple[bytes, str]] = {
    "a question": (GOOD, "code 0, 1 answers"),
    "in capitals": (question("fOuR.ExAmPlE.tEsT"), "code 0, 1 answers"),
    "IPv6 of a name without": (question("four.example.test", 28), "code 0, 0 answers"),
    "ANY": (question("four.example.test", 255), "code 0, 0 answers"),
    "TXT": (question("four.example.test", 16), "code 0, 0 answers"),
    "HTTPS": (question("four.example.test", 65), "code 0, 0 answers"),
    "SRV": (question("four.example.test", 33), "code 0, 0 answers"),
    "PTR": (question("2.100.51.198.in-addr.arpa", 12), "code 3, 0 answers"),
    "a name that is refused": (question("evil.test"), "code 3, 0 answers"),
    "two questions": (question("four.example.test", n=2), "nothing"),
    "no question": (question("four.example.test", n=0), "nothing"),
    "an answer": (question("four.example.test", flags=0x8180), "nothing"),
    "an update": (question("four.example.test", flags=0x2800), "nothing"),
    "another class": (GOOD[:-2] + b"\0\3", "nothing"),
    "a loop": (LOOP, "nothing"),
    "one byte": (b"x", "nothing"),
    "a head": (GOOD[:12], "nothing"),
    "cut short": (GOOD[:-3], "nothing"),
    "a name of 300": (question(".".join(["a" * 49] * 6)), "nothing"),
    "a label of 64": (GOOD[:12] + b"\x40" + b"a" * 64 + b"\0\0\1\0\1", "nothing"),
    "a NUL in it": (GOOD.replace(b"four", b"fo\0r"), "nothing"),
    "a dot in it": (GOOD.replace(b"four", b"fo.r"), "nothing|code 3, 0 answers"),
}


def test_packets(net: NetworkService, world: World) -> None:
    """Over UDP and TCP, to our resolver and to any other."""
    listed = {name: packet.hex() for name, (packet, _) in PACKETS.items()}
    with net.box(NAMES) as box:
        lines = said(box, program("dns_packets") + f"\nall_of({listed!r})", timeout_ms=60000)
        for line in lines:
            name, how, got = json.loads(line)
            assert got in PACKETS[name][1].split("|"), (name, how, got)
        assert len(lines) == 2 * len(PACKETS)
        assert attempt(box, "four.example.test", 7) == "connected"
    assert ("tcp", RESOLVER, 53) not in world.seen() and ("udp", OTHER, 53) not in world.seen()


def test_long_streams_and_floods(net: NetworkService) -> None:
    """64 KiB in one question, a thousand questions at once, idle connections to port 53: bounded,
    and names are answered afterwards."""
    with net.box(NAMES) as box:
        lines = said(box, program("dns_packets") + "\nflood()", timeout_ms=60000)
        assert lines[-1] == "answered again", lines

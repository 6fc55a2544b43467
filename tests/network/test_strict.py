"""strict_tls: a connection that was allowed by a name says that name, or nothing of it gets out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from live import Box
from live_network import NAMES, NetworkService, program, said, until
from world import World

RAW = "raw.example.test"


def spoken(net: NetworkService, calls: list[Any], policy: Any = NAMES) -> list[Any]:
    with net.box(policy) as box:
        return say(box, calls)


def say(box: Box, calls: list[Any]) -> list[Any]:
    """What the sandbox saw of each call of programs/speak.py: name, then its arguments."""
    code = f"{program('speak')}\nall_of({calls!r})"
    return [json.loads(line) for line in said(box, code, timeout_ms=60000)]


def test_a_name_that_is_allowed(net: NetworkService, world: World) -> None:
    hello = ["tls", "web.example.test", "web.example.test"]
    assert spoken(net, [hello]) == ["HTTP/1.1 200"]
    assert "GET web.example.test /" in world.requests()


TLS: dict[str, tuple[list[Any], bool]] = {
    "its name": (["hello", RAW, RAW, 0], True),
    "in pieces of 50": (["hello", RAW, RAW, 50], True),
    "in pieces of 1": (["hello", RAW, RAW, 1], True),
    "over several records": (["records", RAW, RAW, 40], True),
    "another name that is allowed": (["hello", RAW, "web.example.test", 0], True),
    "in capitals": (["hello", RAW, "RAW.EXAMPLE.TEST", 0], True),
    "a name that is not allowed": (["hello", RAW, "evil.test", 0], False),
    "in pieces, not allowed": (["hello", RAW, "evil.test", 50], False),
    "over records, not allowed": (["records", RAW, "evil.test", 40], False),
    "no name": (["hello", RAW, None, 0], False),
    "a NUL in the name": (["edited", RAW, "raw.example.test\0x"], False),
    "an empty name": (["edited", RAW, ""], False),
    "a name of 300": (["edited", RAW, "a." * 150 + "example.test"], False),
    "two names": (["two", RAW, RAW, "evil.test"], False),
    "plain HTTP": (["bytes", RAW, 443, f"GET / HTTP/1.1\r\nHost: {RAW}\r\n\r\n"], False),
    "nonsense": (["bytes", RAW, 443, "x" * 1000], False),
    "an endless record": (["bytes", RAW, 443, "\x16\x03\x01\xff\xff" + "x" * 30000], False),
}


@pytest.mark.parametrize("name", list(TLS))
def test_hellos(net: NetworkService, world: World, name: str) -> None:
    call, passes = TLS[name]
    with net.box(NAMES) as box:
        (got,) = say(box, [call])
        assert got == ("sent" if passes else "reset")
        if passes:
            assert until(lambda: "".join(world.received()).startswith("\x16"))
        assert passes or not "".join(world.received())  # not one byte


GET = "GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"
ONE = f"GET /1 HTTP/1.1\r\nHost: {RAW}\r\n\r\n"
EVIL = "GET /2 HTTP/1.1\r\nHost: evil.test\r\n\r\n"
POST = f"POST /1 HTTP/1.1\r\nHost: {RAW}\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = (
    f"POST /1 HTTP/1.1\r\nHost: {RAW}\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
)
SMUGGLED = (
    f"POST /1 HTTP/1.1\r\nHost: {RAW}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
    f"0\r\n\r\n{EVIL}"
)
# The text that is sent, and whether /1 and /2 arrive.
HTTP: dict[str, tuple[str, bool, bool]] = {
    "its name": (ONE, True, False),
    "with a port": (ONE.replace(RAW, f"{RAW}:80"), True, False),
    "in capitals": (ONE.replace(RAW, RAW.upper()), True, False),
    "another name": (EVIL.replace("/2 ", "/1 "), False, False),
    "no Host": ("GET /1 HTTP/1.1\r\nAccept: */*\r\n\r\n", False, False),
    "two Hosts": (ONE.replace("\r\n\r\n", "\r\nHost: evil.test\r\n\r\n"), False, False),
    "Host of another in the path": (
        f"GET http://evil.test/1 HTTP/1.1\r\nHost: {RAW}\r\n\r\n",
        False,
        False,
    ),
    "a space before the colon": (ONE.replace("Host:", "Host :"), False, False),
    "a folded line": (ONE.replace("Host: ", "Host:\r\n "), False, False),
    "CONNECT": (f"CONNECT evil.test:443 HTTP/1.1\r\nHost: {RAW}\r\n\r\n/1", False, False),
    "a second request": (ONE + ONE.replace("/1 ", "/2 "), True, True),
    "a second request of another name": (ONE + EVIL, True, False),
    "a body and a second request": (POST + ONE.replace("/1 ", "/2 "), True, True),
    "a body and one of another name": (POST + EVIL, True, False),
    "chunks and one of another name": (CHUNKED + EVIL, True, False),
    "two lengths": (SMUGGLED, False, False),
    "not HTTP": ("hello /1\r\n" * 10, False, False),
    "a head without end": ("GET /1 HTTP/1.1\r\n" + "X: y\r\n" * 9000, False, False),
}


@pytest.mark.parametrize("name", list(HTTP))
@pytest.mark.parametrize("piece", [0, 7])
def test_hosts(net: NetworkService, world: World, name: str, piece: int) -> None:
    text, first, second = HTTP[name]
    is_cut = "evil.test" in text or "Content-Length: 5\r\nTransfer" in text

    def came() -> tuple[bool, bool]:
        received = "".join(world.received())
        assert "evil.test" not in received, received
        return "/1 " in received, "/2 " in received

    with net.box(NAMES) as box:
        say(box, [["bytes", RAW, 80, text, piece]])
        if is_cut:  # the reset may overtake what came before it
            assert came() in ((False, False), (first, False))
        else:
            assert until(lambda: came() == (first, second)), world.received()


def test_it_can_be_switched_off(net: NetworkService, world: World) -> None:
    policy: dict[str, Any] = {**NAMES, "strict_tls": False}
    calls = [["hello", RAW, "evil.test", 0], ["bytes", RAW, 443, "anything"]]
    with net.box(policy) as box:
        assert say(box, calls) == ["sent", "sent"]
        assert until(lambda: len([text for text in world.received() if text]) == 2)


def test_addresses_are_not_asked_for_a_name(net: NetworkService, world: World) -> None:
    policy = {"allow": ["198.51.100.8:443"]}
    with net.box(policy) as box:
        assert say(box, [["bytes", "198.51.100.8", 443, "anything"]]) == ["sent"]
        assert until(lambda: world.received() == ["anything"])


def test_other_ports_are_not_asked_for_a_name(net: NetworkService) -> None:
    assert spoken(net, [["echo", "web.example.test", 7]]) == ["abc"]


def test_a_refused_hello_is_told(net: NetworkService) -> None:
    with net.box(NAMES) as box:
        code = f"{program('speak')}\nall_of([['hello', '{RAW}', 'evil.test', 0]])"
        result = box.run(code, timeout_ms=60000)
        assert [told["rule"] for told in result["denied"]] == ["network:strict-tls"], result
        assert "evil.test" in str(result["denied"])

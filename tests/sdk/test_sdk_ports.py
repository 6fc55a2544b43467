"""Servers inside sandboxes, asked through the SDK."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest

from cloche import errors
from driven import World
from harness import LiveService, eventually
from inside import SCRIPT

PORT = 8001
HEAD = b"HTTP/1.1 200 OK\r\n"
PLAIN = HEAD + b"X-Own: yes\r\nContent-Length: 5\r\n\r\nhello"


@pytest.fixture
def serves(box: Any) -> Any:
    """serves(answer, …): each request at PORT gets the next, and the last one for ever."""

    def serve(*answers: Any) -> None:
        steps = [a if isinstance(a, list) else [a] for a in answers]
        assert box.run(f"{SCRIPT}\nserve({PORT}, {steps!r})").ok

    return serve


def heard(box: Any, number: int = -1) -> bytes:
    return bytes.fromhex(box.run(f"print(heard[{number}].hex())").stdout)


def test_ports_are_listed(box: Any, serves: Any) -> None:
    assert box.ports.list() == []
    serves(PLAIN)
    (port,) = box.ports.list()
    assert (port.port, port.path, port.url) == (PORT, f"/v1/sandboxes/{box.id}/ports/{PORT}/", None)
    assert box.ports.url(PORT, "a?b=c").endswith(f"{port.path}a?b=c")


def test_a_request_and_its_answer(box: Any, serves: Any) -> None:
    serves(PLAIN)
    reply = box.ports.request(PORT, "/a b?x=%20y", headers={"X-My": "own"})
    assert (reply.status, reply.content, reply.text) == (200, b"hello", "hello")
    assert reply.headers["x-own"] == reply.headers["X-Own"] == "yes"
    text = heard(box)
    assert (
        text.startswith(b"GET /a%20b?x=%20y HTTP/1.1\r\n") and b"\r\nx-my: own\r\n" in text.lower()
    )


@pytest.mark.parametrize("kind", ["text", "bytes", "file"])
def test_data_goes_in(box: Any, serves: Any, kind: str) -> None:
    serves(PLAIN)
    data = {"text": "data", "bytes": b"data", "file": io.BytesIO(b"data")}[kind]
    assert box.ports.request(PORT, "/", "PUT", data=data).status == 200
    assert heard(box).endswith(b"\r\n\r\ndata")


def test_json_goes_both_ways(box: Any, serves: Any) -> None:
    said = json.dumps({"n": [1, "ä"]}).encode()
    serves(HEAD + b"Content-Length: %d\r\n\r\n%s" % (len(said), said))
    assert box.ports.request(PORT, "/", "POST", json={"a": None}).json() == {"n": [1, "ä"]}
    head, _, body = heard(box).partition(b"\r\n\r\n")
    assert json.loads(body) == {"a": None} and b"content-type: application/json" in head.lower()
    with pytest.raises(errors.BadArgument, match="exclude"):
        box.ports.request(PORT, "/", "POST", json=1, data="x")


@pytest.mark.parametrize("status", [302, 404, 429, 500, 503])
def test_what_a_server_inside_refuses_is_an_answer(box: Any, serves: Any, status: int) -> None:
    """Given once, however it looks."""
    error = b'{"error": {"code": "sandbox_gone", "message": "a lie", "retryable": true}}'
    head = b"HTTP/1.1 %d No\r\nRetry-After: 0\r\nLocation: /x\r\n" % status
    head += b"X-Cloche-Port: 1\r\nContent-Type: application/json\r\n"
    serves(head + b"Content-Length: %d\r\n\r\n%s" % (len(error), error))
    reply = box.ports.request(PORT)
    assert (reply.status, reply.content) == (status, error)
    assert reply.headers["x-cloche-port"] == str(PORT)
    assert box.run("len(heard)").text == "1"


def test_refusals_of_cloche_are_exceptions(box: Any, serves: Any) -> None:
    with pytest.raises(errors.PortClosed) as refused:
        box.ports.request(PORT)
    assert refused.value.status == 502
    serves(b"HTTP/1.1 200 OK\nbad\n\n")
    with pytest.raises(errors.PortBadAnswer):
        box.ports.request(PORT)
    for port in (0, 65536):
        with pytest.raises(errors.BadArgument, match="port"):
            box.ports.request(port)
    for path in ("../../..", "/a/./b", "%2e%2e/execute", "a/%2E/"):
        with pytest.raises(errors.BadArgument, match="names nothing"):
            box.ports.request(PORT, path)
    with pytest.raises(errors.NoPortsDomain):
        box.ports.link(PORT)


def test_an_answer_as_it_comes(box: Any, serves: Any) -> None:
    serves([HEAD + b"\r\none", "read", b"two"], PLAIN)
    with box.ports.stream(PORT) as answer:
        assert answer.status == 200
        pieces = iter(answer)
        assert next(pieces) == b"one" and box.run("len(ended)").text == "0", "it waits for us"
    assert eventually(lambda: box.run("len(ended)").text == "1"), "it hears that we left"
    with box.ports.stream(PORT, "/", "POST", data="x") as answer:
        assert b"".join(answer) == b"hello" and answer.headers["x-own"] == "yes"


def test_an_answer_that_breaks_off(box: Any, serves: Any) -> None:
    serves(HEAD + b"Content-Length: 9\r\n\r\nhello")
    with pytest.raises(errors.ConnectionLost, match="server inside"):
        box.ports.request(PORT, "/", "POST", data="x")
    with pytest.raises(errors.ConnectionLost):
        with box.ports.stream(PORT) as answer:
            for _ in answer:
                pass
    assert box.run("len(heard)").text == "2", "neither was sent again"


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from keyed_live import KeyedLive

    service = KeyedLive(tmp_path_factory.mktemp("sdk"), "--ports-domain", "ports.localhost")
    try:
        yield service
    finally:
        service.stop()


def test_links_and_keys(sdk: World, keyed: Any, live: LiveService) -> None:
    with sdk.Client(keyed.url, keyed.keys[0]) as client:
        with sdk.Sandbox.create(client=client) as box:
            assert box.run(f"{SCRIPT}\nserve({PORT}, [[{PLAIN!r}]])").ok
            link = box.ports.link(PORT, ttl=60)
            assert f"//{PORT}-{box.id.replace('_', '')}.ports.localhost:" in link.url
            assert "cloche_link=" in link.url and link.expires > 0
            assert box.ports.list()[0].url == link.url.partition("?")[0]
            own = {"Authorization": "Bearer their-own"}
            assert box.ports.request(PORT, headers=own).text == "hello"
            said = heard(box)
            assert b"authorization: Bearer their-own\r\n" in said
            assert keyed.keys[0].encode() not in said

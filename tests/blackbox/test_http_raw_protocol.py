"""What HTTP/1.1 offers, over raw sockets."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

import pytest

from harness import Service
from http_raw import BODY, CHUNKED, CHUNKED_HEAD, HEALTH, JSON, LENGTH, refused
from raw_http import HOST, Raw, ask, chunks, execute, post, request


# ---- what HTTP/1.1 offers ----


def test_many_requests_on_one_connection(service: Service) -> None:
    with Raw(service) as raw:
        for number in range(20):
            reply = raw.send(post("/v1/execute", {"code": f"print({number})"})).reply()
            assert reply.json["stdout"] == f"{number}\n" and reply.keeps


def test_pipelined_requests_are_answered_in_their_order(service: Service) -> None:
    numbers = range(10)
    with Raw(service) as raw:
        raw.send(b"".join(post("/v1/execute", {"code": f"print({n})"}) + HEALTH for n in numbers))
        for n in numbers:
            assert raw.reply().json["stdout"] == f"{n}\n"
            assert raw.reply().json["status"] == "ok"


def test_requests_may_come_byte_by_byte(service: Service) -> None:
    head = b"POST /v1/execute HTTP/1.1\r\n" + HOST + JSON + CHUNKED + b"\r\n"
    with Raw(service) as raw:
        raw.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in post("/v1/execute", {"code": "1 + 1"}) + head + chunks(BODY[:5], BODY[5:]):
            raw.send(bytes([byte]))
        assert raw.reply().json["stdout"] == "2\n"
        assert raw.reply().json["stdout"] == "42\n"


def test_chunked_uploads(service: Service) -> None:
    ways = (
        chunks(BODY),
        chunks(*(BODY[i : i + 1] for i in range(len(BODY)))),
        b"%x;name=value\r\n%s\r\n0\r\nX-Trailer: 1\r\n\r\n" % (len(BODY), BODY),
        b'%X; a ; b="c;\xc3\xa9"\r\n%s\r\n0;last\r\n\r\n' % (len(BODY), BODY),
        b"%016x\r\n%s\r\n000\r\n\r\n" % (len(BODY), BODY),
    )
    with Raw(service) as raw:
        for body in ways:
            assert raw.send(CHUNKED_HEAD + body).reply().json["stdout"] == "42\n"
        raw.send(b"".join(CHUNKED_HEAD + body + b"\r\n" + HEALTH for body in ways))
        for _ in ways:
            assert raw.reply().json["stdout"] == "42\n"
            assert raw.reply().json["status"] == "ok"


def test_a_trailer_changes_nothing(service: Service) -> None:
    trailer = b"X-Checksum: 1\r\nServer-Timing:\tx;dur=1 \r\nX-Checksum: 2\r\n\r\n"
    with Raw(service) as raw:
        reply = raw.send(CHUNKED_HEAD + chunks(BODY)[:-2] + trailer + HEALTH).reply()
        assert reply.json["stdout"] == "42\n"
        assert raw.reply().status == 200


def test_expect_100_continue(service: Service) -> None:
    head = b"POST /v1/execute HTTP/1.1\r\n" + HOST + JSON + LENGTH + b"Expect: 100-continue\r\n\r\n"
    with Raw(service) as raw:
        assert raw.send(head).reply().status == 100
        assert raw.send(BODY).reply().json["stdout"] == "42\n"
    with Raw(service) as raw:  # the answer is known: the body is not asked for
        reply = raw.send(head.replace(b"/v1/execute", b"/v1/nowhere")).reply()
        assert reply.status == 404 and not reply.keeps


def test_http_1_0(service: Service) -> None:
    with Raw(service) as raw:
        reply = raw.send(b"GET /health HTTP/1.0\r\n\r\n").reply()
        assert reply.status == 200 and raw.ends() == b""
    with Raw(service) as raw:
        for _ in range(3):
            data = b"POST /v1/execute HTTP/1.0\r\nConnection: keep-alive\r\n" + JSON + LENGTH
            assert raw.send(data + b"\r\n" + BODY).reply().json["stdout"] == "42\n"
    refused(service, b"POST /v1/execute HTTP/1.0\r\n" + CHUNKED + b"\r\n" + chunks(BODY))


def test_a_stream_to_http_1_0_ends_with_the_connection(service: Service) -> None:
    head = b"POST /v1/execute/stream HTTP/1.0\r\n" + JSON + LENGTH + b"\r\n"
    with Raw(service) as raw:
        reply = raw.send(head + BODY).reply()
        assert reply.header("Transfer-Encoding") is None
        assert b"event: result" in reply.body


def test_head_is_get_without_the_body(service: Service) -> None:
    with Raw(service) as raw:
        for path in ("/health", "/v1/info", "/v1/files", "/openapi.json", "/nope", "/v1/files/x"):
            got = raw.send(request("GET", path)).reply()
            head = raw.send(request("HEAD", path)).reply(head_only=True)
            assert head.status == got.status
            assert head.header("Content-Type") == got.header("Content-Type")
        assert raw.send(HEALTH).reply().status == 200


def test_head_of_an_execution_s_events(service: Service) -> None:
    done = execute(service, "print(1)").json
    with Raw(service) as raw:
        path = f"/v1/executions/{done['id']}/events"
        assert raw.send(request("HEAD", path)).reply(head_only=True).status == 200
        if raw.try_send(HEALTH):
            assert raw.got == b""


def test_a_body_that_nobody_wants(service: Service) -> None:
    """The reply comes, and what follows is not taken for a request."""
    with Raw(service) as raw:
        raw.try_send(request("GET", "/health", body=HEALTH) + HEALTH)
        assert raw.reply().status == 200
        assert raw.ends().count(b"HTTP/1.1") <= 1
    for size in (1, 1000, 1 << 20, 8 << 20):
        assert ask(service, request("POST", "/nope", body=b"x" * size)).status == 404


def test_half_closed_clients_get_an_answer_or_an_end(impatient: Service) -> None:
    with Raw(impatient) as raw:
        assert raw.send(HEALTH).half_close().reply().status == 200
    for cut in (b"", HEALTH[:10], HEALTH[:-2], post("/v1/execute", BODY)[:-3]):
        with Raw(impatient) as raw:  # the library may notice by its timeout only
            raw.send(cut).half_close()
            assert b" 200 " not in raw.ends()


@pytest.fixture
def impatient(start_service: Callable[..., Service]) -> Service:
    return start_service("--profiles", "base", "--idle-s", "1")


# ---- time ----


def fastest(service: Service, pieces: list[bytes]) -> float:
    """Of several requests on one connection, each sent in these pieces. On a new connection the
    system acknowledges at once for a while."""
    taken = []
    with Raw(service) as raw:
        for _ in range(50):
            began = time.perf_counter()
            for piece in pieces:
                raw.send(piece)
            assert raw.reply().status == 200
            taken.append(time.perf_counter() - began)
    return min(taken[-12:])


@pytest.mark.once
def test_a_body_behind_its_head_is_waited_for_with_an_acknowledgement(service: Service) -> None:
    """Such a client's system holds the body back until the head is acknowledged: 40 ms late, if our
    system waits for a reply to send that with."""
    whole = post("/v1/execute", {"code": "1", "timeout_ms": 60000})
    head, body = whole.split(b"\r\n\r\n")
    one = fastest(service, [whole])
    assert fastest(service, [head + b"\r\n\r\n", body]) < 4 * one

"""The edges of HTTP, over raw sockets: requests that could be read in two ways, clients that are
slow, rude or gone, bodies that are too deep or too large. The server answers with a clear 4xx or
closes, stays well, and its memory stays where it was."""

from __future__ import annotations

import itertools
import json
import select
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import Deadline, Service, eventually
from host import Process, descendants
from raw_http import HOST, Raw, ask, chunks, execute, heard, post, request, resident_mb

BODY = b'{"code": "print(6 * 7)"}'
LENGTH = b"Content-Length: %d\r\n" % len(BODY)
CHUNKED = b"Transfer-Encoding: chunked\r\n"
JSON = b"Content-Type: application/json\r\n"
HEALTH = request("GET", "/health")
GROWTH_MB = 16.0


def named(service: Service, name: str) -> list[Process]:
    return [p for p in descendants(service.process.pid) if p.comm == name and p.state not in "ZX"]


def asan(service: Service) -> bool:
    """Sanitized programs keep what they freed for a while."""
    maps = Path(f"/proc/{service.process.pid}/maps").read_text()
    return "asan" in maps or "san" in str(service.caller.command()[0])


# ---------------------------------------------------------------------------- ambiguous requests

AMBIGUOUS = {
    "length and encoding": LENGTH + CHUNKED,
    "encoding and length": CHUNKED + LENGTH,
    "two lengths, equal": LENGTH * 2,
    "two lengths, different": LENGTH + b"Content-Length: 3\r\n",
    "a list of lengths": b"Content-Length: 24, 24\r\n",
    "a length with a sign": b"Content-Length: +24\r\n",
    "a negative length": b"Content-Length: -24\r\n",
    "a length in hex": b"Content-Length: 0x18\r\n",
    "an empty length": b"Content-Length:\r\n",
    "two hosts": HOST + LENGTH,
    "a space in a name": b"X Y: 1\r\n" + LENGTH,
    "a space before the colon": b"X-Y : 1\r\n" + LENGTH,
    "a space after Content-Length": b"Content-Length : 24\r\n",
    "a space after Transfer-Encoding": b"Transfer-Encoding : chunked\r\n",
    "a tab after Transfer-Encoding": b"Transfer-Encoding\t: chunked\r\n",
    "a name like Content-Length": b"Content-Length-X: 24\r\n" + LENGTH,
    "a name like Transfer-Encoding": b"Transfer-Encodings: chunked\r\n" + LENGTH,
    "two encodings": CHUNKED * 2,
    "gzip and chunked": b"Transfer-Encoding: gzip, chunked\r\n",
    "identity": b"Transfer-Encoding: identity\r\n",
    "identity and a length": b"Transfer-Encoding: identity\r\n" + LENGTH,
    "chunked twice": b"Transfer-Encoding: chunked, chunked\r\n",
    "chunked in quotes": b'Transfer-Encoding: "chunked"\r\n',
    "a vertical tab before chunked": b"Transfer-Encoding: \x0bchunked\r\n",
    "an empty encoding": b"Transfer-Encoding:\r\n" + LENGTH,
    "a folded encoding": b"Transfer-Encoding:\r\n chunked\r\n" + LENGTH,
    "a control byte in a value": b"X-Y: a\x01b\r\n" + LENGTH,
    "DEL in a value": b"X-Y: a\x7fb\r\n" + LENGTH,
    "a bare CR in a value": b"X-Y: a\rb\r\n" + LENGTH,
    "a control byte in a name": b"X\x01Y: ab\r\n" + LENGTH,
    "NUL in a name": b"X\x00Y: ab\r\n" + LENGTH,
    "a name that is not ASCII": b"X\xc3\xa9: ab\r\n" + LENGTH,
    "NUL in a value": b"X-Y: a\x00b\r\n" + LENGTH,
    "NUL in the last value": LENGTH + b"X-Y: a\x00b\r\n",
    "NUL after the length": LENGTH[:-2] + b"\x000\r\n",
    "a name that is empty": b": a\r\n" + LENGTH,
    "a folded line": b"X-Y: a\r\n b\r\n" + LENGTH,
    "a folded last line": LENGTH + b"X-Y: a\r\n\tb\r\n",
    "a bare LF": b"X-Y: a\n" + LENGTH,
    "a bare LF at the end": LENGTH[:-2] + b"\n",
    "a line without a colon": b"nonsense\r\n" + LENGTH,
}


def refused(service: Service, data: bytes, first: int = 400) -> bytes:
    """The first words are the status, and then the connection is over."""
    with Raw(service) as raw:
        raw.try_send(data)
        said = raw.ends()
    assert said.startswith(b"HTTP/1.1 %d " % first), said[:300]
    assert b"connection: close" in said.lower()
    assert b"HTTP/1.1 200" not in said
    return said


@pytest.mark.parametrize("path", [b"/v1/execute", b"/nope"])
@pytest.mark.parametrize("shape", AMBIGUOUS)
def test_ambiguous_heads_are_refused_before_anything_else(
    service: Service, shape: str, path: bytes
) -> None:
    head = b"POST " + path + b" HTTP/1.1\r\n" + HOST + JSON + AMBIGUOUS[shape]
    refused(service, head + b"\r\n" + BODY + HEALTH)


def test_the_refusal_is_json_that_says_why(service: Service) -> None:
    for shape in ("two hosts", "gzip and chunked", "a control byte in a value"):
        head = b"POST /v1/execute HTTP/1.1\r\n" + HOST + AMBIGUOUS[shape] + b"\r\n"
        reply = ask(service, head + BODY)
        assert reply.status == 400 and reply.code == "bad_request"
        assert reply.json["detail"] == reply.json["error"]["message"]


NUMBERS = itertools.count()
LENGTHS = [
    "24, 24",
    "+24",
    "-1",
    "0x18",
    "",
    " ",
    "24 ",
    "24\t",
    "24;",
    "2 4",
    "18446744073709551640",
]


@pytest.mark.parametrize("length", [*LENGTHS, "9" * 19, "0" * 400 + "24"])
def test_a_bad_length_is_refused_once_and_logged(service: Service, length: str) -> None:
    for before, step in ((b"", 10_000), (b"", 1), (HEALTH, 10_000)):
        path = b"/v1/bad%d" % next(NUMBERS)
        head = (
            b"POST %s HTTP/1.1\r\nContent-Length:%s\r\n" % (path, length.encode()) + HOST + b"\r\n"
        )
        with Raw(service) as raw:
            for data in (before, *(head[i : i + step] for i in range(0, len(head), step))):
                raw.try_send(data)
            raw.try_send(BODY + HEALTH)
            if before:
                assert raw.reply().status == 200, "the one before it has its answer"
            reply = raw.reply()
            assert raw.ends() == b"", "and there is no more"
        assert reply.status == 400 and reply.code == "bad_request" and not reply.keeps
        assert "Content-Length" in reply.json["error"]["message"]
        assert eventually(lambda: logged(service, f'path="{path.decode()}" status=400'))


def logged(service: Service, words: str) -> bool:
    service.drain()
    return words in service.text()


@pytest.mark.parametrize("line", [b"GET /health HTTP/1.1", b"GET /nope HTTP/1.1"])
def test_a_request_names_its_host(service: Service, line: bytes) -> None:
    said = refused(service, line + b"\r\n\r\n")
    assert said.count(b"HTTP/1.1 ") == 1 and b'"code":"bad_request"' in said
    assert b"Host" in said


SIZE = b"%x" % len(BODY)
CHUNKED_HEAD = b"POST /v1/execute HTTP/1.1\r\n" + HOST + JSON + CHUNKED + b"\r\n"
CHUNK = SIZE + b"\r\n" + BODY + b"\r\n"
BAD_CHUNKS = {
    "not hex": b"g\r\n",
    "signed": b"+18\r\n",
    "negative": b"-18\r\n",
    "0x": b"0x18\r\n",
    "empty": b"\r\n",
    "a space before": b" 18\r\n",
    "a space after": b"18 \r\n",
    "a tab after": b"18\t\r\n",
    "a comma": b"18,0\r\n",
    "a control byte": b"18\x01\r\n",
    "NUL": b"18\x00\r\n",
    "a longer chunk than was said": b"2\r\n",
    "a bare CR": b"18\r",
    "a bare LF": b"18\n",
    "CR CR LF": b"18\r\r\n",
    "LF CR": b"18\n\r",
    "an overflow": b"10000000000000018\r\n",
    "more zeros than a number has": b"00000000000000018\r\n",
    "an extension that ends in a bare LF": b"18;a=b\n",
    "an extension with a bare LF": b"18;a\nb\r\n",
    "an extension with a bare CR": b"18;a\rb\r\n",
    "an extension with a quoted line break": b'18;a="\r\n"\r\n',
    "an extension with NUL": b"18;a=\x00\r\n",
    "an extension without end": b"18;" + b"a" * 300 + b"\r\n",
    "a space before an extension": b"18 ;a=b\r\n",
}
BAD_ENDS = {
    "data that end in a bare LF": SIZE + b"\r\n" + BODY + b"\n0\r\n\r\n",
    "data that end in a bare CR": SIZE + b"\r\n" + BODY + b"\r0\r\n\r\n",
    "data that do not end": SIZE + b"\r\n" + BODY + b"0\r\n\r\n",
    "data that end twice": SIZE + b"\r\n" + BODY + b"\r\n\r\n0\r\n\r\n",
    "a last size that ends in a bare LF": CHUNK + b"0\n\r\n",
    "a last line that is a bare LF": CHUNK + b"0\r\n\n",
    "a last line that is a bare CR": CHUNK + b"0\r\n\rG",
    "a trailer that ends in a bare LF": CHUNK + b"0\r\nX-A: b\n\r\n",
    "trailers that end in a bare LF": CHUNK + b"0\r\nX-A: b\r\n\n",
    "a trailer with a bare LF": CHUNK + b"0\r\nX-A: b\nX-B: c\r\n\r\n",
    "a trailer with a bare CR": CHUNK + b"0\r\nX-A: b\rc\r\n\r\n",
    "a trailer with NUL": CHUNK + b"0\r\nX-A: b\x00\r\n\r\n",
    "a folded trailer": CHUNK + b"0\r\nX-A: b\r\n c\r\n\r\n",
    "a trailer without a colon": CHUNK + b"0\r\nGET / HTTP/1.1\r\n\r\n",
    "a trailer without a name": CHUNK + b"0\r\n: a\r\n\r\n",
    "a trailer with a space before the colon": CHUNK + b"0\r\nX-A : b\r\n\r\n",
    "a trailer that says a length": CHUNK + b"0\r\nContent-Length: 100\r\n\r\n",
    "a trailer that says an encoding": CHUNK + b"0\r\nTRANSFER-ENCODING: chunked\r\n\r\n",
    "a trailer that says a host": CHUNK + b"0\r\nhost: example.com\r\n\r\n",
    "a trailer that says an origin": CHUNK + b"0\r\nOrigin: http://example.com\r\n\r\n",
    "a trailer that has a key": CHUNK + b"0\r\nX: y\r\nAuthorization: Bearer x\r\n\r\n",
    "too many trailers": CHUNK + b"0\r\n" + b"X-A: b\r\n" * 2000 + b"\r\n",
}
BAD_BODIES = BAD_ENDS | {
    f"a size: {name}": size + BODY + b"\r\n0\r\n\r\n" for name, size in BAD_CHUNKS.items()
}


@pytest.mark.parametrize("shape", BAD_BODIES)
def test_bodies_whose_chunks_can_be_read_in_two_ways_are_refused(
    service: Service, shape: str
) -> None:
    """Whole, behind a request that is answered, and byte by byte: a line may come in pieces."""
    bad = CHUNKED_HEAD + BAD_BODIES[shape] + HEALTH
    refused(service, bad)
    with Raw(service) as raw:
        raw.try_send(post("/v1/execute", {"code": "print(1)"}) + bad)
        assert raw.reply().json["stdout"] == "1\n"
        said = raw.ends()
        assert said.startswith(b"HTTP/1.1 400 ") and said.count(b"HTTP/1.1 ") == 1
    with Raw(service) as raw:
        raw.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        all(raw.try_send(bad[at : at + 1]) for at in range(len(bad)))
        said = raw.ends()
        assert said.startswith(b"HTTP/1.1 400 ") and said.count(b"HTTP/1.1 ") == 1


def test_the_refusal_of_a_chunk_says_why(service: Service) -> None:
    for shape in ("data that end in a bare LF", "a trailer that says a length"):
        reply = ask(service, CHUNKED_HEAD + BAD_BODIES[shape])
        assert reply.status == 400 and reply.code == "bad_request" and not reply.keeps
        assert reply.json["detail"] == reply.json["error"]["message"]


BAD_LINES = {
    "a control byte in the path": b"GET /hea\x01lth HTTP/1.1",
    "DEL in the path": b"GET /health\x7f HTTP/1.1",
    "NUL in the path": b"GET /health\x00 HTTP/1.1",
    "NUL and more in the path": b"GET /health\x00/x HTTP/1.1",
    "NUL in the query": b"GET /health?a=\x00b HTTP/1.1",
    "two spaces": b"GET  /health HTTP/1.1",
    "NUL in the method": b"GE\x00T /health HTTP/1.1",
    "an escaped NUL": b"GET /v1/files/a%00b HTTP/1.1",
    "an escaped line break": b"GET /v1/files/a%0d%0ab HTTP/1.1",
    "half an escape": b"GET /v1/files/a%2 HTTP/1.1",
    "an escape of nothing": b"GET /v1/files/% HTTP/1.1",
    "an escape that is not hex": b"GET /v1/files/%zz HTTP/1.1",
    "a bad escape in the query": b"GET /v1/files?a=%q HTTP/1.1",
    "no version": b"GET /health",
    "a version of its own": b"GET /health HTTX/1.1",
    "another server's address": b"GET http://example.com/health HTTP/1.1",
    "an address with a user": b"GET http://localhost@localhost/health HTTP/1.1",
    "an address without a host": b"GET http:///health HTTP/1.1",
    "another scheme": b"GET ftp://localhost/health HTTP/1.1",
}


@pytest.mark.parametrize("shape", BAD_LINES)
def test_bad_request_lines_are_refused(service: Service, shape: str) -> None:
    refused(service, BAD_LINES[shape] + b"\r\n" + HOST + b"\r\n" + HEALTH)


@pytest.mark.parametrize("target", [b"http://localhost/health", b"HTTP://LocalHost/health?a=b"])
def test_a_whole_address_is_its_path(service: Service, target: bytes) -> None:
    """As clients send it who take the server for a proxy (RFC 9112, 3.2.2)."""
    with Raw(service) as raw:
        reply = raw.send(b"GET " + target + b" HTTP/1.1\r\n" + HOST + b"\r\n").reply()
        assert reply.status == 200 and reply.json["status"] == "ok"
        bare = raw.send(b"GET http://localhost HTTP/1.1\r\n" + HOST + b"\r\n").reply()
        assert bare.status == 200 and bare.json["name"] == "cloche"


def test_a_whole_address_is_held_to_the_same_names(service: Service) -> None:
    head = b"GET http://page.example/v1/files HTTP/1.1\r\nHost: page.example\r\n\r\n"
    assert ask(service, head).status == 421


def test_a_space_in_the_path_is_not_served(service: Service) -> None:
    with Raw(service) as raw:
        raw.try_send(b"GET /health /x HTTP/1.1\r\n" + HOST + b"\r\n" + HEALTH)
        assert b" 200 " not in raw.ends()


def test_other_protocols_are_not_served(service: Service) -> None:
    refused(service, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", first=505)


def test_dots_in_paths_lead_nowhere(service: Service) -> None:
    for path in (
        "/v1/files/..",
        "/v1/files/%2e%2e",
        "/v1/files/%2e%2e%2fkeys.json",
        "/../etc/passwd",
        "/assets/..%2f..%2fkeys.json",
        "/assets/%2e%2e",
        "//health",
        "/v1/files/%5c..%5c",
    ):
        with Raw(service) as raw:
            reply = raw.send(request("GET", path)).reply()
            assert reply.status == 404, path
            assert raw.send(HEALTH).reply().status == 200


@pytest.mark.parametrize("n", [33, 40, 1000, 10_000])
def test_too_many_parameters_are_refused(service: Service, n: int) -> None:
    """The library would find no room to refuse a thousand, and say nothing."""
    said = refused(service, request("GET", "/health?" + "a=b&" * n))
    assert b"32 query parameters" in said
    assert ask(service, request("GET", "/health?" + "a=b&" * 32)).status == 200


# ---------------------------------------------------------------------------- large heads


def test_heads_have_a_bound(service: Service) -> None:
    before = resident_mb(service)
    for _ in range(20):
        assert ask(service, request("GET", "/health", *["A: b"] * 100_000)).status == 431
        assert ask(service, request("GET", "/health", "A: " + "b" * 65536)).status == 431
        assert ask(service, request("GET", "/" + "b" * 65536)).status == 414
        assert ask(service, request("GET", "/" + "b" * 16000)).status == 404
    assert resident_mb(service) - before < GROWTH_MB


def test_an_endless_head_is_ended(service: Service) -> None:
    with Raw(service) as raw:
        raw.send(b"GET /health HTTP/1.1\r\n" + HOST)
        sent = 0
        while raw.try_send(b"X-Header: " + b"v" * 1000 + b"\r\n"):
            sent += 1000
            assert sent < 64 << 20
        assert b" 200 " not in raw.ends()


def test_an_endless_line_is_ended(service: Service) -> None:
    with Raw(service) as raw:
        sent = 0
        while raw.try_send(b"A" * 4096):
            sent += 4096
            assert sent < 64 << 20
        assert b" 200 " not in raw.ends()


# ---------------------------------------------------------------------------- what HTTP/1.1 offers


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


# ---------------------------------------------------------------------------- bodies


DEEP = 100_000
BAD_JSON = {
    "arrays, deep": b"[" * DEEP + b"]" * DEEP,
    "arrays, deep and open": b"[" * DEEP,
    "objects, deep": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "a deep field": b'{"code":' + b"[" * DEEP + b"]" * DEEP + b"}",
    "a deep field nobody knows": b'{"code": "1", "x":' + b"[" * DEEP + b"]" * DEEP + b"}",
    "a key twice": b'{"code": "1", "code": "2"}',
    "NaN": b'{"code": "1", "timeout_ms": NaN}',
    "Infinity": b'{"code": "1", "timeout_ms": -Infinity}',
    "a huge integer": b'{"code": "1", "timeout_ms": 1' + b"0" * 5000 + b"}",
    "a large integer": b'{"code": "1", "timeout_ms": 18446744073709551617}',
    "2^63 - 1": b'{"code": "1", "timeout_ms": 9223372036854775807}',
    "a huge real": b'{"code": "1", "limits": {"cpus": 1e999}}',
    "a large real": b'{"code": "1", "limits": {"cpus": 1e308}}',
    "a negative timeout": b'{"code": "1", "timeout_ms": -1}',
    "not UTF-8": b'{"code": "\xff\xfe"}',
    "UTF-8 that is too long": b'{"code": "\xc0\xaf"}',
    "a surrogate in UTF-8": b'{"code": "\xed\xa0\x80"}',
    "half a surrogate pair": b'{"code": "\\ud800"}',
    "a raw control byte": b'{"code": "\x01"}',
    "a raw NUL": b'{"code": "\x00"}',
    "two values": b'{"code": "1"}{"code": "1"}',
    "nothing": b"",
    "a string": b'"code"',
    "half of it": b'{"code": "1"',
    "single quotes": b"{'code': '1'}",
    "UTF-16": '{"code": "1"}'.encode("utf-16"),
    "a form": b"code=1",
}


@pytest.mark.parametrize("path", ["/v1/execute", "/v1/execute/stream", "/v1/execute/batch"])
@pytest.mark.parametrize("shape", BAD_JSON)
def test_bad_json_is_a_clear_4xx(service: Service, shape: str, path: str) -> None:
    with Raw(service) as raw:
        reply = raw.send(post(path, BAD_JSON[shape])).reply()
        assert reply.status in (400, 422), reply.body[:500]
        assert reply.json["detail"]
        assert len(reply.body) < 20_000
        assert raw.send(HEALTH).reply().status == 200, "the connection goes on"


def test_bad_items_do_not_spoil_a_batch(service: Service) -> None:
    items = [{"code": "1"}, {}, {"code": 5}, {"code": "1", "timeout_ms": 10**12}, {"code": "2"}]
    reply = ask(service, post("/v1/execute/batch", {"items": items}))
    lines = {line["index"]: line for line in map(json.loads, reply.body.split(b"\n")[:-1]) if line}
    assert lines[0]["stdout"] == "1\n" and lines[4]["stdout"] == "2\n"
    assert all("detail" in lines[n] for n in (1, 2, 3))


def test_a_batch_of_thousands_of_bad_items(service: Service) -> None:
    """Lines are made as fast as the client takes them, and none is lost."""
    items = [{"code": 5, "padding": "x" * (n % 97)} for n in range(10_000)]
    with Raw(service) as raw:
        reply = raw.send(post("/v1/execute/batch", {"items": items})).reply()
        found = [json.loads(line)["index"] for line in reply.body.splitlines() if line]
        assert found == list(range(10_000))
    too_many = post("/v1/execute/batch", {"items": [{}] * 10_001})
    assert ask(service, too_many).status == 422


@pytest.mark.parametrize("path", ["/v1/execute", "/v1/execute/stream", "/v1/files"])
def test_a_length_beyond_the_limit_is_refused_at_once(service: Service, path: str) -> None:
    """Nothing of a gigabyte needs to be read to know that it is too much."""
    before = resident_mb(service)
    form = b"Content-Type: multipart/form-data; boundary=b\r\n" if "files" in path else JSON
    head = b"POST " + path.encode() + b" HTTP/1.1\r\n" + HOST + form
    for length in (1 << 30, 1 << 50):
        with Raw(service) as raw:
            reply = raw.send(head + b"Content-Length: %d\r\n\r\n" % length).reply()
            assert reply.status == 413 and reply.code.endswith("_too_large")
            assert not reply.keeps
    assert resident_mb(service) - before < GROWTH_MB


def test_a_chunked_body_over_its_limit_is_drained_to_a_bound(service: Service) -> None:
    """What is not a form may have a megabyte; so much of the rest is thrown away."""
    head = b"POST /v1/files HTTP/1.1\r\n" + HOST + CHUNKED + b"\r\n"
    with Raw(service) as raw:
        reply = raw.send(head + chunks(b"x" * 1_100_000)).reply()
        assert 400 <= reply.status < 500
        assert raw.send(HEALTH).reply().status == 200
    with Raw(service) as raw:
        raw.send(head)
        piece = chunks(b"x" * 1_000_000)[:-5]
        sent = 0
        while raw.try_send(piece):
            sent += len(piece)
            assert sent < 300 << 20, "it drinks without end"
        assert b" 200 " not in raw.ends()


def test_a_large_body_is_given_back(service: Service) -> None:
    """Sixty megabytes of JSON come and go; the allocator may keep a part of one."""
    if asan(service):
        pytest.skip("the sanitizer keeps what was freed")
    body = json.dumps({"code": "print(1)", "unknown": "x" * (60 << 20)}).encode()
    before = resident_mb(service)
    for _ in range(3):
        assert ask(service, post("/v1/execute", body)).json["stdout"] == "1\n"
    assert eventually(lambda: resident_mb(service) - before < 64, seconds=20), (
        before,
        resident_mb(service),
    )


# ---------------------------------------------------------------------------- files


def form(data: bytes, name: str = "a.bin") -> bytes:
    return (
        b'--BOUND\r\nContent-Disposition: form-data; name="file"; filename="'
        + name.encode()
        + b'"\r\nContent-Type: application/octet-stream\r\n\r\n'
        + data
        + b"\r\n--BOUND--\r\n"
    )


UPLOAD = (
    b"POST /v1/files HTTP/1.1\r\n" + HOST + b"Content-Type: multipart/form-data; boundary=BOUND\r\n"
)


def stored(service: Service) -> set[str]:
    return {path.name for path in (service.state / "files").iterdir()}


def test_a_client_that_leaves_an_upload_leaves_nothing(impatient: Service) -> None:
    before = stored(impatient)
    body = form(b"x" * 5_000_000)
    for leave in (Raw.reset, lambda raw: raw.sock.close(), lambda raw: raw.half_close().ends()):
        with Raw(impatient) as raw:
            raw.send(UPLOAD + b"Content-Length: %d\r\n\r\n" % len(body) + body[:3_000_000])
            assert eventually(lambda: stored(impatient) - before), "it goes to disk as it comes"
            leave(raw)
        assert eventually(lambda: stored(impatient) == before), stored(impatient) - before


@pytest.mark.once
def test_uploads_and_downloads_do_not_sit_in_memory(start_service: Callable[..., Service]) -> None:
    service = start_service("--profiles", "base", "--max-file-mb", "600")
    size = 512 << 20
    head, piece = form(b"").split(b"\r\n\r\n", 1)[0] + b"\r\n\r\n", b"z" * (1 << 20)
    tail = b"\r\n--BOUND--\r\n"
    before = most = resident_mb(service)
    with Raw(service) as raw:
        raw.send(UPLOAD + b"Content-Length: %d\r\n\r\n" % (len(head) + size + len(tail)) + head)
        for sent_mb in range(size >> 20):
            raw.send(piece)
            if sent_mb % 16 == 0:
                most = max(most, resident_mb(service))
        reply = raw.send(tail).reply()
        assert reply.status == 201 and reply.json["size_bytes"] == size
        path = f"/v1/files/{reply.json['file_id']}"
        head_of = raw.send(request("GET", path)).head()
        left = int(head_of.header("Content-Length") or 0)
        assert left == size
        while left:
            left -= len(raw.exactly(min(left, 16 << 20)))
            most = max(most, resident_mb(service))
        assert raw.send(request("DELETE", path)).reply().status == 204
    assert most - before < GROWTH_MB, (before, most)


def test_broken_forms_make_no_file(service: Service) -> None:
    before = stored(service)
    whole = form(b"x" * 1000)
    bodies = [
        whole[:50],
        whole[:-20],
        whole.replace(b"BOUND", b"OTHER"),
        b"",
        b"--BOUND--\r\n",
        b"--BOUND\r\n" * 1000,
        whole.replace(b"filename", b"filenamf"),
        b"\0" * 100_000,
    ]
    for body in bodies:
        data = UPLOAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
        with Raw(service) as raw:
            raw.send(data)
            reply = raw.reply()
            if reply.status == 201:  # the form's end was missing, the file was there
                path = f"/v1/files/{reply.json['file_id']}"
                assert ask(service, request("DELETE", path)).status == 204
            else:
                assert 400 <= reply.status < 500, body[:60]
    assert eventually(lambda: stored(service) == before), stored(service) - before


def test_a_form_header_without_end(service: Service) -> None:
    with Raw(service) as raw:
        raw.try_send(UPLOAD + b"Content-Length: 4000000\r\n\r\n--BOUND\r\nX: " + b"y" * 3_999_988)
        assert 400 <= raw.reply().status < 500


# ---------------------------------------------------------------------------- slow clients


def drip(raw: Raw, data: bytes) -> None:
    """A byte now and then, until the server has had enough."""
    deadline = Deadline()
    while not select.select([raw.sock], [], [], 0.2)[0]:
        assert not deadline.over, "a client that drips is never ended"
        raw.try_send(data)


@pytest.fixture
def impatient(start_service: Callable[..., Service]) -> Service:
    return start_service("--profiles", "base", "--idle-s", "1")


def test_silent_clients_are_ended(impatient: Service) -> None:
    whole = post("/v1/execute", BODY)
    shapes = [
        b"",
        HEALTH[:20],
        whole[:-5],
        UPLOAD + b"Content-Length: 1000\r\n\r\n--BOUND\r\n",
    ]
    clients = [Raw(impatient).send(shape) for shape in shapes]
    clients.append(Raw(impatient).send(HEALTH))
    assert clients[-1].reply().status == 200
    for client in clients:
        with client:
            assert b" 200 " not in client.ends()


def test_dripping_heads_are_ended(impatient: Service) -> None:
    with Raw(impatient) as raw:
        raw.send(b"GET /health HTTP/1.1\r\n" + HOST + b"X-Long: ")
        drip(raw, b"x")
        assert b" 200 " not in raw.ends()
    with Raw(impatient) as raw:  # also after a first request
        assert raw.send(HEALTH).reply().status == 200
        raw.send(b"GET /health HTTP/1.1\r\nX-Long: ")
        drip(raw, b"x")
        assert b" 200 " not in raw.ends()


def test_dripping_bodies_are_ended(impatient: Service) -> None:
    plain, form_of = Raw(impatient), Raw(impatient)
    with plain, form_of:
        head = b"POST /v1/execute HTTP/1.1\r\n" + HOST + JSON + CHUNKED + b"\r\n"
        plain.send(head)
        form_of.send(UPLOAD + CHUNKED + b"\r\n" + chunks(form(b"")[:-16])[:-5])
        deadline = Deadline()
        waiting = [plain, form_of]
        while waiting:
            assert not deadline.over, "a client that drips is never ended"
            ready = select.select([raw.sock for raw in waiting], [], [], 0.3)[0]
            waiting = [raw for raw in waiting if raw.sock not in ready]
            for raw in waiting:
                raw.try_send(b"1\r\nx\r\n")
        assert b" 200 " not in plain.ends() and b" 201 " not in form_of.ends()
    assert eventually(lambda: not stored(impatient)), stored(impatient)


def test_a_long_program_is_not_an_idle_connection(impatient: Service) -> None:
    code = "import time\ntime.sleep(3)\nprint('done')"
    assert execute(impatient, code).json["stdout"] == "done\n"
    stream = ask(impatient, post("/v1/execute/stream", {"code": code, "timeout_ms": 60000}))
    assert b"done" in stream.body and b"event: result" in stream.body


# ---------------------------------------------------------------------------- clients that leave


def test_a_program_may_go_on_without_its_client(service: Service) -> None:
    code = (
        "import sys\nprint('before', flush=True)\nfor _ in range(30_000_000): pass\nprint('after')"
    )
    body = {
        "code": code,
        "timeout_ms": 60000,
        "on_disconnect": "continue",
        "limits": {"cpu_seconds": 60},
    }
    with Raw(service) as raw:
        raw.send(post("/v1/execute/stream", body))
        reply = raw.head()
        name = reply.header("X-Execution-Id")
        raw.until(b"before")
        raw.reset()

    def finished() -> bool:
        state = ask(service, request("GET", f"/v1/executions/{name}")).json
        return bool(state["state"] == "done" and state["result"]["stdout"] == "before\nafter\n")

    assert eventually(finished)
    events = ask(service, request("GET", f"/v1/executions/{name}/events")).body
    assert b"before" in events and b"after" in events and b"event: end" in events


FLOOD = """
import ctypes, sys
ctypes.CDLL(None).prctl(15, {name!r}.encode())
line = "x" * 1023 + "\\n"
for _ in range({kib}):
    sys.stdout.write(line)
"""


def written(process: Process) -> int:
    try:
        text = Path(f"/proc/{process.pid}/io").read_text()
    except OSError:
        return -1
    return int(text.split("wchar: ")[1].split()[0])


def comes_to_rest(read: Callable[[], int]) -> int:
    """The value once it has stayed the same for a while."""
    last, same = read(), 0

    def quiet() -> bool:
        nonlocal last, same
        now = read()
        same = same + 1 if now == last else 0
        last = now
        return same >= 20

    assert eventually(quiet, step_s=0.05)
    return last


def test_a_client_that_does_not_read_holds_its_program(service: Service) -> None:
    size = 14 << 20
    before = resident_mb(service)
    body = {
        "code": FLOOD.format(name="flood", kib=size >> 10),
        "timeout_ms": 60000,
        "limits": {"output_bytes": 64 << 20, "cpu_seconds": 60},
    }
    with Raw(service) as raw:
        raw.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        raw.send(post("/v1/execute/stream", body))
        assert eventually(lambda: named(service, "flood"))
        (program,) = named(service, "flood")
        out = comes_to_rest(lambda: written(program))
        assert 0 < out < size, "the program is held"
        grown = resident_mb(service) - before
        assert grown < GROWTH_MB or asan(service), (before, grown)
        assert ask(service, HEALTH).status == 200
        reply = raw.reply()
    got = [line[6:] for line in reply.body.splitlines() if line.startswith(b'data: {"stream"')]
    assert sum(len(json.loads(line)["data"]) for line in got) == size
    assert json.loads(reply.body.split(b"event: result\ndata: ")[1])["exit_code"] == 0


@pytest.mark.once
def test_followers_who_do_not_read_cost_a_bounded_buffer(service: Service) -> None:
    """They follow another's run, which they must not hold up, nor may they fill the memory."""
    size = 20 << 20
    before = resident_mb(service)
    body = {
        "code": FLOOD.format(name="followed", kib=size >> 10),
        "timeout_ms": 60000,
        "limits": {"output_bytes": 64 << 20, "cpu_seconds": 60},
    }
    followers: list[Raw] = []
    try:
        with Raw(service) as raw:
            raw.send(post("/v1/execute/stream", body))
            name = raw.head().header("X-Execution-Id")
            for _ in range(10):
                followers.append(Raw(service))
                followers[-1].sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
                followers[-1].send(request("GET", f"/v1/executions/{name}/events"))
                followers[-1].head()
            most = resident_mb(service)
            for number in itertools.count():
                if not raw.chunk():
                    break
                if number % 16 == 0:
                    most = max(most, resident_mb(service))
        assert most - before < 64 + GROWTH_MB or asan(service), (before, most)
    finally:
        for follower in followers:
            follower.sock.close()


def test_a_download_that_nobody_reads_is_ended(impatient: Service) -> None:
    body = form(b"y" * (20 << 20))
    reply = ask(impatient, UPLOAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    with Raw(impatient) as raw:
        raw.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        raw.send(request("GET", f"/v1/files/{reply.json['file_id']}"))
        before = resident_mb(impatient)
        select.select([raw.sock], [], [])
        metrics = "cloche_connections 1\n"  # the one that asks
        assert eventually(
            lambda: metrics in ask(impatient, request("GET", "/metrics")).body.decode()
        )
        assert resident_mb(impatient) - before < GROWTH_MB


def test_thousands_of_rude_clients_leave_nothing(impatient: Service) -> None:
    before = resident_mb(impatient)
    shapes = [
        b"",
        b"\r\n",
        HEALTH[:7],
        HEALTH,
        post("/v1/execute", BODY)[:-4],
        BAD_JSON["NaN"],
        UPLOAD + b"Content-Length: 99\r\n\r\n--BOU",
        b"\x16\x03\x01\0\xa5\x01\0\0\xa1\x03\x03",
        request("GET", "/v1/executions/exe_0/events"),
        request("BREW", "/health"),
    ]
    with heard(impatient):
        for number in range(3000):
            with Raw(impatient) as raw:
                raw.send(shapes[number % len(shapes)])
                if number % 3 == 0:
                    raw.reset()
                elif number % 3 == 1:
                    raw.half_close()
    assert ask(impatient, HEALTH).status == 200
    if not asan(impatient):
        assert resident_mb(impatient) - before < GROWTH_MB


# ---------------------------------------------------------------------------- time


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

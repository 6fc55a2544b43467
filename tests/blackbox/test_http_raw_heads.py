"""Heads over raw sockets: requests that could be read in two ways, and heads that are too large.
The server answers with a clear 4xx or closes."""

from __future__ import annotations

import itertools
import socket

import pytest

from harness import Service, eventually
from http_raw import BODY, CHUNKED, CHUNKED_HEAD, GROWTH_MB, HEALTH, JSON, LENGTH, refused
from raw_http import HOST, Raw, ask, post, request, resident_mb


# ---- ambiguous requests ----

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


# ---- large heads ----


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

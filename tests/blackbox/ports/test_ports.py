"""Servers inside live sandboxes, for clients outside: what goes in, and what comes out."""

from __future__ import annotations

import hashlib
import os

import pytest

from harness import LiveService, eventually
from http_client import Connection
from inside import OK, PLAIN, PORT, Inside, fields_of, raw_request, refused
from raw_http import Raw, chunks, request, resident_mb


# ---------------------------------------------------------------------------- requests


def test_a_request_arrives_as_it_was_sent(box: Inside) -> None:
    box.serve(PLAIN)
    path = "/a%2Fb/%e4?x=1&y=%20&&z"
    reply = box.ask_inside(path, "PURGE", Accept="text/x", X_Own="ä;b")
    assert reply.status == 200 and reply.body == b"hello"
    line, fields = box.head()
    assert line == f"PURGE {path} HTTP/1.1"
    assert ("accept", "text/x") in fields and ("x_own", "ä;b") in fields
    assert ("host", f"localhost:{PORT}") in fields
    assert ("x-forwarded-prefix", box.at("")) in fields
    assert ("x-forwarded-host", f"127.0.0.1:{box.port}") in fields
    assert ("connection", "close") in fields


@pytest.mark.parametrize("how", ["length", "chunks"])
def test_bodies_go_in(box: Inside, how: str) -> None:
    box.serve(PLAIN)
    data = os.urandom(100_000)
    path = box.at("/up")
    with Raw(box.port) as raw:
        if how == "length":
            raw.send(request("POST", path, body=data))
        else:
            head = request("POST", path, "Transfer-Encoding: chunked")
            raw.send(head + chunks(data[:10], data[10:50_000], data[50_000:]))
        assert raw.reply().body == b"hello"
    head, _, body = box.heard().partition(b"\r\n\r\n")
    if how == "length":
        assert b"Content-Length: 100000" in head and body == data
        return
    assert b"Transfer-Encoding: chunked" in head and b"Content-Length" not in head
    got = b""
    while (size := int(body.partition(b"\r\n")[0], 16)) > 0:
        body = body.partition(b"\r\n")[2]
        got, body = got + body[:size], body[size + 2 :]
    assert got == data


def test_an_empty_chunked_body_is_one(box: Inside) -> None:
    box.serve(PLAIN)
    with Raw(box.port) as raw:
        raw.send(request("PUT", box.at("/"), "Transfer-Encoding: chunked") + b"0\r\n\r\n")
        assert raw.reply().body == b"hello"
    assert box.heard().endswith(b"\r\n\r\n0\r\n\r\n")


def test_large_bodies_go_both_ways(box: Inside) -> None:
    box.python(
        "import http.server, hashlib\n"
        "class H(http.server.BaseHTTPRequestHandler):\n"
        "    protocol_version = 'HTTP/1.1'\n"
        "    def do_PUT(self):\n"
        "        data = self.rfile.read(int(self.headers['Content-Length']))\n"
        "        self.send_response(200)\n"
        "        self.send_header('Content-Length', len(data))\n"
        "        self.end_headers()\n"
        "        self.wfile.write(data[::-1])\n"
        "    def log_message(self, *args): pass\n"
        f"server = http.server.HTTPServer(('127.0.0.1', {PORT}), H)\n"
        "threading.Thread(target=server.serve_forever, daemon=True).start()"
    )
    data = os.urandom(20 << 20)
    with Connection(box.port) as connection:
        reply = connection.ask("PUT", box.at("/"), data)
        assert reply.status == 200
        assert hashlib.sha256(reply.body[::-1]).digest() == hashlib.sha256(data).digest()
        assert connection.ask("PUT", box.at("/"), b"ab").body == b"ba", "the connection goes on"


def test_a_server_that_answers_early_is_heard(box: Inside) -> None:
    box.serve(["deaf", b"HTTP/1.1 413 No\r\nContent-Length: 2\r\n\r\nno", "hold"])
    with Connection(box.port) as connection:
        reply = connection.ask("POST", box.at("/"), bytes(8 << 20))
        assert (reply.status, reply.body) == (413, b"no")


def test_of_a_body_no_more_is_read_than_the_server_takes(service: LiveService, box: Inside) -> None:
    box.python("go = threading.Event()")
    box.python(
        "def slow():\n"
        f"    s = socket.create_server(('127.0.0.1', {PORT}))\n"
        "    c = s.accept()[0]\n"
        "    go.wait()\n"
        "    n = 0\n"
        "    while n < (64 << 20): n += len(c.recv(1 << 20))\n"
        "    c.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 4\\r\\n\\r\\nfine')\n"
        "threading.Thread(target=slow, daemon=True).start()"
    )
    assert eventually(lambda: box.ports() == [PORT])
    before = resident_mb(service)
    with Raw(box.port) as raw:
        raw.sock.settimeout(1)
        raw.asked = None
        raw.sock.sendall(request("PUT", box.at("/"), f"Content-Length: {64 << 20}"))
        sent, piece = 0, bytes(1 << 20)
        try:
            while sent < 64 << 20:
                sent += raw.sock.send(piece[: (64 << 20) - sent])
        except TimeoutError:
            pass
        assert sent < 32 << 20, "it was held back"
        assert resident_mb(service) - before < 16
        raw.sock.settimeout(60)
        box.python("go.set()")
        while sent < 64 << 20:
            sent += raw.sock.send(piece[: (64 << 20) - sent])
        assert raw.reply().body == b"fine"


def test_credentials_of_ours_stay_outside(box: Inside) -> None:
    box.serve(PLAIN)
    reply = box.ask_inside(
        "/?a=1&token=clk_secret&b=2",
        "GET",
        PORT,
        **{
            "Authorization": "Bearer clk_abc",
            "X-API-Key": "clk_def",
            "Cookie": "session=1",
            "Referer": "http://localhost/?token=clk_ghi",
        },
    )
    assert reply.status == 200
    line, fields = box.head()
    assert line == "GET /?a=1&b=2 HTTP/1.1"
    assert b"clk_" not in box.heard() and b"session" not in box.heard()
    assert not {"authorization", "x-api-key", "cookie", "referer", "origin"} & dict(fields).keys()


def test_credentials_of_the_server_inside_go_in(box: Inside) -> None:
    box.serve(PLAIN)
    assert box.ask_inside("/?token=own", Authorization="Basic abc").status == 200
    line, fields = box.head()
    assert line == "GET /?token=own HTTP/1.1" and ("authorization", "Basic abc") in fields


def test_headers_of_one_connection_stay_there(box: Inside) -> None:
    box.serve(PLAIN)
    headers = {
        "Connection": "keep-alive, X-Mine",
        "Keep-Alive": "1",
        "X-Mine": "1",
        "TE": "trailers",
        "Proxy-Authorization": "x",
        "Proxy-Connection": "x",
        "Upgrade": "h2c",
        "HTTP2-Settings": "x",
        "X-Forwarded-For": "1.2.3.4",
        "X-Forwarded-Proto": "gopher",
        "Forwarded": "for=1.2.3.4",
        "X-Stays": "1",
    }
    assert box.ask_inside("/", "GET", PORT, **headers).status == 200
    names = {name for name, _ in box.head()[1]}
    assert names == {"host", "x-forwarded-prefix", "x-forwarded-host", "connection", "x-stays"}


@pytest.mark.parametrize("method", ["CONNECT", "TRACE", "A" * 15])
def test_some_methods_are_not_passed_on(box: Inside, method: str) -> None:
    box.serve(PLAIN)
    refused(box.ask_inside(method=method), 405, "bad_method")
    assert box.python("len(heard)") == "0"


# ---------------------------------------------------------------------------- answers


@pytest.mark.parametrize(
    "answer, status, body",
    [
        (PLAIN, 200, b"hello"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;a=b\r\nllo\r\n0\r\nA: b\r\n\r\n",
         200, b"hello"),
        (OK + b"\r\nhello", 200, b"hello"),
        (b"HTTP/1.0 404 Nothing\r\n\r\nhello", 404, b"hello"),
        (b"HTTP/1.1 204 No\r\n\r\n", 204, b""),
        (b"HTTP/1.1 304 No\r\nETag: x\r\n\r\n", 304, b""),
        (b"HTTP/1.1 100 Go on\r\n\r\nHTTP/1.1 103 Hints\r\nA: b\r\n\r\n" + PLAIN, 200, b"hello"),
        (OK + b"Content-Length: 0\r\n\r\n", 200, b""),
        (b"HTTP/1.1 599 Own\r\nContent-Length: 5\r\n\r\nhello", 599, b"hello"),
    ],
)  # fmt: skip
def test_answers_come_out(box: Inside, answer: bytes, status: int, body: bytes) -> None:
    box.serve(answer)
    with Connection(box.port) as connection:
        for _ in range(2):
            reply = connection.ask("GET", box.at("/"))
            assert (reply.status, reply.body) == (status, body)


def test_head_is_answered_with_the_length(box: Inside) -> None:
    box.serve(OK + b"Content-Length: 12345\r\n\r\n", OK + b"\r\n")
    with Connection(box.port) as connection:
        connection.send("HEAD", box.at("/"))
        assert connection.reply("HEAD").header("content-length") == "12345"
        connection.send("HEAD", box.at("/"))
        assert connection.reply("HEAD").status == 200
        assert connection.ask("GET", "/health").status == 200, "nothing is left over"


def test_an_answer_comes_as_it_is_said(box: Inside) -> None:
    box.serve([OK + b"Content-Type: text/event-stream\r\n\r\ndata: 1\n\n", "read", b"data: 2\n\n"])
    with raw_request(box.port, request("GET", box.at("/"))) as raw:
        assert raw.head().header("Content-Type") == "text/event-stream"
        assert raw.chunk() == b"data: 1\n\n"
        assert box.python("len(ended)") == "0", "it waits for us"


def test_headers_that_hold_for_more_than_a_reply_are_dropped(box: Inside) -> None:
    dropped = {
        "Set-Cookie": "a=b",
        "Clear-Site-Data": '"*"',
        "Strict-Transport-Security": "max-age=1",
        "Alt-Svc": 'h2=":443"',
        "Service-Worker-Allowed": "/",
        "Access-Control-Allow-Origin": "*",
        "Access-Control-Allow-Credentials": "true",
        "NEL": "{}",
        "Report-To": "{}",
        "WWW-Authenticate": "Basic",
        "Keep-Alive": "timeout=5",
        "Proxy-Authenticate": "Basic",
        "X-Named": "1",
        "X-Request-Id": "theirs",
        "Trailer": "A",
        "Upgrade": "h2c",
    }
    kept = {"Content-Type": "text/html", "ETag": '"a"', "X-Own": "ä", "Cache-Control": "no-store",
            "Content-Security-Policy": "default-src 'self'"}  # fmt: skip
    lines = [f"{name}: {value}\r\n".encode("latin-1") for name, value in (dropped | kept).items()]
    box.serve(OK + b"".join(lines) + b"Connection: close, X-Named\r\nContent-Length: 2\r\n\r\nhi")
    reply = box.ask_inside()
    assert reply.body == b"hi"
    for name in dropped:
        assert name == "X-Request-Id" or not fields_of(reply, name), name
    assert fields_of(reply, "X-Cloche-Port") == [str(PORT)], "the mark of an answer from inside"
    (ours,) = fields_of(reply, "X-Request-Id")
    assert ours.startswith("req_")
    for name, value in kept.items():
        assert value in fields_of(reply, name)
    policies = fields_of(reply, "Content-Security-Policy")
    assert len(policies) == 2 and any(
        p.startswith("sandbox ") and "allow-same-origin" not in p for p in policies
    )
    assert fields_of(reply, "X-Content-Type-Options") == ["nosniff"]


@pytest.mark.parametrize(
    "to, seen",
    [
        ("/login?a=b", "PREFIX/login?a=b"),
        (f"http://localhost:{PORT}/x", "PREFIX/x"),
        (f"http://127.0.0.1:{PORT}/x", "PREFIX/x"),
        ("sub/page", "sub/page"),
        ("//other.example/x", "//other.example/x"),
        ("http://169.254.169.254/latest", "http://169.254.169.254/latest"),
        (f"http://localhost:{PORT}5/x", f"http://localhost:{PORT}5/x"),
    ],
)
def test_redirects_are_the_clients_to_follow(box: Inside, to: str, seen: str) -> None:
    box.serve(b"HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n" % to.encode())
    reply = box.ask_inside()
    assert reply.status == 302
    assert fields_of(reply, "Location") == [seen.replace("PREFIX", box.at(""))]
    assert box.python("len(heard)") == "1"


@pytest.mark.parametrize(
    "answer, why",
    [
        (OK + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", "two Content-Length"),
        (OK + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "both"),
        (b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", "ended before its head"),
        (b"HTTP/1.1 200 OK\nContent-Length: 5\r\n\r\nhello", "CR LF"),
        (OK + b"A: b\r\n c\r\n\r\n", "folded"),
        (OK + b"A: b\0c\r\n\r\n", "control"),
        (OK + b"Content-Length : 5\r\n\r\nhello", "name"),
        (OK + b"Transfer-Encoding: gzip\r\n\r\nhello", "chunked"),
        (
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
            "nobody",
        ),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "begin"),
        (b"", "ended before its head"),
        (OK + b"A: b\r\n" * 200 + b"\r\n", "100 headers"),
        (OK + b"A: " + b"b" * 40000 + b"\r\n\r\n", "32 KiB"),
        (OK + b"Connection: %s\r\n" % (b"a," * 300) * 2 + b"\r\n", "1 KiB"),
    ],
)
def test_answers_that_could_be_read_in_two_ways_are_refused(
    box: Inside, answer: bytes, why: str
) -> None:
    box.serve(answer)
    refused(box.ask_inside(), 502, "port_bad_answer", why)


@pytest.mark.parametrize(
    "answer",
    [
        OK + b"Content-Length: 50\r\n\r\nhello",
        OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nX\r\n",
    ],
)
def test_an_answer_that_breaks_off_is_no_whole_one(box: Inside, answer: bytes) -> None:
    box.serve(answer)
    with raw_request(box.port, request("GET", box.at("/"))) as raw:
        got = raw.ends()
    assert got == b"" or got.startswith(b"HTTP/1.1 200 ")
    assert b"chunked" not in got or not got.endswith(b"\r\n0\r\n\r\n")


def test_a_refusal_of_ours_has_no_mark_of_an_answer(box: Inside) -> None:
    assert not fields_of(box.ask_inside(), "X-Cloche-Port")
    box.serve(OK + b"X-Cloche-Port: 1\r\nbad\r\n\r\n")
    reply = box.ask_inside()
    refused(reply, 502, "port_bad_answer")
    assert not fields_of(reply, "X-Cloche-Port")


def test_what_follows_an_answer_reaches_nobody(box: Inside) -> None:
    box.serve(PLAIN + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
    with Connection(box.port) as connection:
        assert connection.ask("GET", box.at("/")).body == b"hello"
        assert connection.ask("GET", "/health").json["status"] in ("ok", "up", "healthy")


def test_an_answer_with_a_large_head_comes_out(box: Inside) -> None:
    lines = b"".join(b"X-%d: %s\r\n" % (i, b"v" * 280) for i in range(90))
    box.serve(OK + lines + b"Content-Length: 2\r\n\r\nhi")
    reply = box.ask_inside(Large="h" * 16000)
    assert reply.body == b"hi" and reply.header("x-89") == "v" * 280

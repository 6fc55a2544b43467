"""`cloche mcp` with a server that is none, or nobody's friend: each request has one answer, and
that is one line."""

from __future__ import annotations

import json
import socket

import pytest

from mcp_http import LEGACY, Failure
from mcp_stdio import Stdio
from test_hostile_server import Conversation, says, server

SSE = "text/event-stream"
GOOD = {"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}


def head(status: str, *lines: str, body: bytes = b"") -> Conversation:
    text = "\r\n".join([f"HTTP/1.1 {status}", *lines, f"Content-Length: {len(body)}", "", ""])
    return lambda conn, request: conn.sendall(text.encode() + body)


def endless(kind: str, piece: bytes) -> Conversation:
    def talk(conn: socket.socket, request: bytes) -> None:
        conn.sendall(f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n\r\n".encode())
        while True:
            conn.sendall(piece)

    return talk


BAD: dict[str, Conversation] = {
    "no JSON": says(b"nonsense"),
    "nothing": says(b""),
    "a list": says([GOOD]),
    "another's answer": says(GOOD | {"id": "1"}),
    "a stream without an answer": says(b": nothing\n\n", SSE),
    "a stream of nonsense": says(b"data: nonsense\n\n", SSE),
    "an endless event": endless(SSE, b"data: " + b"x" * 65536),
    "an endless answer": endless("application/json", b" " * 65536),
    "deep": says(b"[" * 100_000),
    "another place": head("302 Found", "Location: http://127.0.0.1:1/"),
    "a page": head("502 Bad Gateway", "Content-Type: text/html", body=b"<h1>no</h1>"),
    "no HTTP": lambda conn, request: conn.sendall(b"SSH-2.0-x\r\n"),
    "the end": lambda conn, request: conn.shutdown(socket.SHUT_RDWR),
}


@pytest.mark.parametrize("talk", BAD.values(), ids=BAD.keys())
def test_a_bad_answer_is_an_error(talk: Conversation) -> None:
    with server(talk) as url, Stdio(server=url) as it:
        with pytest.raises(Failure) as caught:
            it.ask("tools/list")
        assert caught.value.code == -32603 and len(caught.value.message) > 10
        assert it.leave() == 0


def test_a_message_of_many_lines_is_one() -> None:
    lines = json.dumps(GOOD, indent=2).split("\n")
    for talk in (
        says("\n".join(lines).encode()),
        says("".join(f"data: {line}\r\n" for line in lines).encode() + b"\r\n", SSE),
    ):
        with server(talk) as url, Stdio(server=url) as it:
            assert it.ask("tools/list") == {"tools": []}


def test_an_answer_that_comes_twice_is_one() -> None:
    event = f"data: {json.dumps(GOOD)}\n\n".encode()
    with server(says(event * 3, SSE)) as url, Stdio(server=url) as it:
        assert it.ask("tools/list") == {"tools": []}
        assert it.leave() == 0
        assert it.seen == [] and it.rest == b""


def test_a_session_and_version_that_are_none() -> None:
    heads: list[bytes] = []
    initialized = GOOD | {"result": {"protocolVersion": "2025\r\nX-Evil: 1"}}
    text = json.dumps(initialized).encode()

    def talk(conn: socket.socket, request: bytes) -> None:
        heads.append(request)
        lines = ["HTTP/1.1 200 OK", "Content-Type: application/json", "Connection: close"]
        lines += [f"Content-Length: {len(text)}", f"Mcp-Session-Id: {'s' * 5000}", "", ""]
        conn.sendall("\r\n".join(lines).encode() + text)
        conn.shutdown(socket.SHUT_WR)

    with server(talk) as url, Stdio(server=url) as it:
        it.era = LEGACY
        it.ask("initialize", protocolVersion="2025-11-25")
        with pytest.raises(Failure):  # its id is that of the first
            it.ask("tools/list")
    assert len(heads) == 2 and b"X-Evil" not in heads[1] and b"Mcp-Session-Id" not in heads[1]

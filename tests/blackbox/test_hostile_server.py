"""The command line against a server that is nobody's friend: what it says cannot steer the
terminal, fill the memory or hold the user, and its numbers are only numbers."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import resource
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from harness import Service, failed, run_cli
from raw_ws import BINARY, GUID, TEXT, head
from terminal import Terminal

BOX = "sbx_" + "0" * 32
COPY = "\x1b]52;c;cm0gLXJmIH4=\x07"  # into the clipboard
EVIL = f"{COPY}\x1b[6n\x9b6n\u202egpj\u200b\u2066\x85"
Conversation = Callable[[socket.socket, bytes], None]


@contextmanager
def server(talk: Conversation) -> Iterator[str]:
    """Gives each connection's requests to `talk`, head by head; bodies are left out."""
    listening = socket.create_server(("127.0.0.1", 0))
    open_ones: list[socket.socket] = []

    def serve(conn: socket.socket) -> None:
        got = b""
        with conn, suppress(OSError):
            while data := conn.recv(1 << 16):
                got += data
                while b"\r\n\r\n" in got:
                    request, _, got = got.partition(b"\r\n\r\n")
                    if request[:4] in (b"POST", b"GET ", b"DELE", b"PUT "):
                        talk(conn, request)

    def accept() -> None:
        with suppress(OSError):
            while True:
                conn, _ = listening.accept()
                open_ones.append(conn)
                threading.Thread(target=serve, args=(conn,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        for conn in open_ones:
            with suppress(OSError):
                conn.shutdown(socket.SHUT_RDWR)
        thread.join()


def says(value: Any, kind: str = "application/json") -> Conversation:
    body = value if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False).encode()
    reply = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n" % (
        kind.encode(),
        len(body),
    )
    return lambda conn, request: conn.sendall(reply + body)


def events(*pairs: tuple[str, Any]) -> bytes:
    return "".join(
        f"event: {name}\nid: {i}\ndata: {json.dumps(data)}\n\n"
        for i, (name, data) in enumerate(pairs, 1)
    ).encode()


def is_tame(shown: str) -> bool:
    return not any(c in shown for c in "\x1b\x9b\x85\u202e\u200b\u2066\x07")


# ---------------------------------------------------------------------------- numbers and texts

ODD_NUMBERS: list[Any] = [1e308, -1e308, 2**63 - 1, -(2**63), 1e18, -1, "x", None, {}]


@pytest.mark.parametrize("number", ODD_NUMBERS, ids=str)
def test_numbers_are_only_numbers(number: Any) -> None:
    """Undefined for C, if they are believed: a sanitized build would end there."""
    box = {
        **dict.fromkeys(("id", "name", "state", "profile"), "x"),
        **dict.fromkeys(("created", "expires", "idle_expires", "ttl", "memory_mb"), number),
    }
    entry = {"name": "f", "path": "f", "type": "file", "size_bytes": number, "modified": number}
    command = {"id": "c", "cmd": ["a", number], "status": "x", "exit_code": number}
    engine = {
        **dict.fromkeys(("started", "uptime_seconds", "running", "memory_bytes"), number),
        "restarts": {"server": number},
        "profiles": [{"name": "x", "ready": number}],
    }
    answers = {
        "list": {"sandboxes": [box]},
        "ls": {"entries": [{**entry, "mode": number}]},
        "logs": {"commands": [{**command, "created": number}]},
        "ports": {"ports": [{"port": number, "path": "/", "url": number}]},
    }
    for verb, answer in answers.items():
        with server(says({**box, **answer})) as url:
            words = [] if verb == "list" else ["-l", BOX] if verb == "ls" else [BOX]
            done = run_cli("sandbox", verb, "--server", url, *words)
            assert done.returncode in (0, 125) and b"runtime error" not in done.stderr, verb
    with server(says({"engine": engine})) as url:
        done = run_cli("status", "--server", url)
        assert done.returncode == 0 and b"runtime error" not in done.stderr
    end = {"status": "killed", "signal": number, "exit_code": number, "id": "x"}
    stream = events(("start", {"id": "x"}), ("end", end))
    with server(says(stream, "text/event-stream")) as url:
        done = run_cli("sandbox", "exec", "--server", url, BOX, "-c", "1")
        assert 0 <= done.returncode <= 255 and b"runtime error" not in done.stderr


def test_texts_cannot_steer_the_terminal() -> None:
    box = {"id": BOX, "name": EVIL, "state": EVIL, "metadata": {EVIL: EVIL}, "profile": EVIL}
    profile = {"name": EVIL, "state": "broken", "what": EVIL}
    entry = {"name": EVIL, "path": EVIL, "type": "file", "target": EVIL}
    error = {"error": {"code": EVIL, "message": EVIL, "remediation": EVIL}, "detail": EVIL}
    answer = {
        **box,
        **error,
        "sandboxes": [box],
        "entries": [entry],
        "commands": [{"id": EVIL, "cmd": EVIL, "status": EVIL}],
        "ports": [{"port": 1, "path": EVIL, "url": EVIL}, {"port": EVIL, "path": EVIL}],
        "url": f"http://x/{EVIL}",
        "engine": {"version": EVIL, "profiles": [profile]},
    }
    runs = [
        ["sandbox", "list"],
        ["sandbox", "list", "--json"],
        ["sandbox", "show", BOX],
        ["sandbox", "ls", BOX],
        ["sandbox", "ls", "-l", BOX],
        ["sandbox", "logs", BOX],
        ["sandbox", "ports", BOX],
        ["sandbox", "ports", "--json", BOX],
        ["sandbox", "link", BOX, "1"],
        ["sandbox", "link", "--json", BOX, "1"],
        ["status"],
        ["status", "--json"],
        ["run", "--json", "-c", "1"],
    ]
    with server(says(answer)) as url:
        for words in runs:
            verb = words[:2] if words[0] == "sandbox" else words[:1]
            with Terminal(*verb, "--server", url, *words[len(verb) :]) as t:
                t.end()
            assert t.seen and is_tame(t.seen.decode()), (words, t.seen)


def test_refusals_cannot_steer_the_terminal() -> None:
    body = json.dumps({"error": {"code": "x", "message": EVIL, "remediation": EVIL}}).encode()
    reply = b"HTTP/1.1 400 Bad\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    with server(lambda conn, request: conn.sendall(reply)) as url:
        for words in (["run", "-c", "1"], ["sandbox", "list"], ["status"]):
            verb = words[:2] if words[0] == "sandbox" else words[:1]
            done = run_cli(*verb, "--server", url, *words[len(verb) :])
            assert is_tame(done.stderr.decode()) and b"\\u202e" in done.stderr


OUTPUT = f"{COPY}\x1b[6n\x1b[31mred\x1b[0m\x9d0;title\x07 and more\n"


def test_what_a_program_prints_has_colours_and_no_orders(service: Service) -> None:
    """Of the engine here, and of a server."""
    code = f"import sys; sys.stdout.write({OUTPUT!r}); sys.stderr.write({OUTPUT!r})"
    shown = b"\x1b[31mred\x1b[0m and more\r\n" * 2
    for where in (["--socket", str(service.socket)], ["--server", service.url]):
        with Terminal("run", *where, "-c", code) as t:
            assert t.end() == 0
        assert t.seen == shown, where
        assert run_cli("run", *where, "-c", code).stdout == OUTPUT.encode()


def test_what_a_cell_shows_has_colours_and_no_orders() -> None:
    stream = events(
        ("start", {"id": "x"}),
        ("stdout", {"data": OUTPUT}),
        ("display", {"data": {"text/plain": OUTPUT}}),
        ("result", {"data": {"text/plain": OUTPUT}}),
        ("error", {"name": OUTPUT, "value": OUTPUT, "traceback": [OUTPUT]}),
        ("error", {"name": OUTPUT, "value": OUTPUT}),
        ("end", {"status": "error"}),
    )
    with server(says(stream, "text/event-stream")) as url:
        with Terminal("sandbox", "exec", "--server", url, BOX, "-c", "1") as t:
            t.end()
    assert b"red" in t.seen
    for order in (b"\x1b]", b"\x1b[6n", "\x9d".encode(), b"52;c"):
        assert order not in t.seen


# ---------------------------------------------------------------------------- without end


def endless(conn: socket.socket, request: bytes) -> None:
    conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{")
    while True:
        conn.sendall(b" " * (1 << 20))


def test_an_answer_without_end_is_left() -> None:
    with server(endless) as url:
        failed(run_cli("status", "--server", url), "too large")
        failed(run_cli("sandbox", "list", "--server", url), "too large")
    # the largest of all children, in kilobytes
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 900 << 10


def pages(entry: str, next_one: str, size: int = 1) -> Conversation:
    """Pages without end; the two texts have the page's number in them, or not."""
    numbers = itertools.count()

    def talk(conn: socket.socket, request: bytes) -> None:
        n = next(numbers)
        named = {"id": BOX, "name": entry % n * size, "type": "file", "state": "running"}
        page = {"sandboxes": [named], "entries": [named], "next": next_one % n}
        says({**page, "state": "running"})(conn, request)

    return talk


def test_a_list_without_end_is_left() -> None:
    with server(pages("f%08d", "n%d", 500_000)) as url:
        failed(run_cli("sandbox", "list", "--server", url), "too large")


ENDLESS = {
    "the same next": ("f%d", "x%.0s"),
    "an empty next": ("f%d", "%.0s"),
    "the same page": ("f%.0s", "x%d"),
    "page after page of almost nothing": ("f%d", "x%d"),
}


@pytest.mark.parametrize("shape", ENDLESS)
def test_pages_without_end_are_left(shape: str) -> None:
    with server(pages(*ENDLESS[shape])) as url:
        failed(run_cli("sandbox", "ls", "-l", "--server", url, BOX), "has no end")
        failed(run_cli("sandbox", "list", "--server", url), "has no end")


def test_pages_in_a_circle_are_left() -> None:
    circle = itertools.cycle(range(7))
    with server(
        lambda conn, request: pages(f"f{(n := next(circle))}%.0s", f"x{n}%.0s")(conn, request)
    ) as url:
        failed(run_cli("sandbox", "ls", "-l", "--server", url, BOX), "has no end")


# ---------------------------------------------------------------------------- WebSockets


def upgrade(frames: bytes) -> Conversation:
    def talk(conn: socket.socket, request: bytes) -> None:
        _, _, rest = request.partition(b"Sec-WebSocket-Key: ")
        key = rest.split(b"\r\n")[0]
        if not key:
            says({"id": BOX, "state": "running"})(conn, request)
            return
        accept = base64.b64encode(hashlib.sha1(key + GUID).digest())
        conn.sendall(
            b"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n" + frames
        )

    return talk


BAD_FRAMES = {
    "a mask": head(BINARY, 3, masked=True) + b"abcdabc",
    "reserved bits": head(BINARY, 3, rsv=7) + b"abc",
    "an opcode of its own": head(5, 3) + b"abc",
    "a long ping": head(9, 200) + b"a" * 200,
    "a ping in pieces": head(9, 3, fin=False) + b"abc",
    "nothing to continue": head(0, 3) + b"abc",
    "more than any message has": head(BINARY, 1 << 40) + b"abc",
    "text that is no UTF-8": head(TEXT, 2) + b"\xff\xff",
    "a close of one byte": head(8, 1) + b"a",
}


@pytest.mark.parametrize("shape", BAD_FRAMES)
def test_a_bad_frame_ends_the_terminal(shape: str) -> None:
    with server(upgrade(BAD_FRAMES[shape])) as url:
        with Terminal("sandbox", "shell", "--server", url, BOX) as t:
            assert t.end() == 125
        assert b"cloche: the server" in t.seen


def test_a_handshake_without_end_can_be_left() -> None:
    """At a terminal that is not raw yet, by Ctrl-C."""
    asked = threading.Event()

    def talk(conn: socket.socket, request: bytes) -> None:
        if b"Sec-WebSocket-Key" in request:
            asked.set()
        else:
            says({"id": BOX, "state": "running"})(conn, request)

    with server(talk) as url:
        with Terminal("sandbox", "shell", "--server", url, BOX) as t:
            assert asked.wait(30)
            t.type("\x03")
            assert t.end() in (125, 128 + signal.SIGINT)

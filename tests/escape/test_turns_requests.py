"""As in test_turns_many.py: many requests of one kind at once, each of which takes the loop a
little, and what waits with them."""

from __future__ import annotations

import contextlib
import json
import re
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness import LiveService, Service, eventually
from http_client import JSON, Connection, Reply, ask, upload
from live import Box, Client, error
from test_turns import FEW_S, LONGEST_S, Turns, many_descriptors

MANY = 50


def at_once(port: int, many: int, method: str, path: str, value: Any = None) -> list[Reply]:
    """From as many connections, which all have sent it before any reply is read."""
    body = None if value is None else json.dumps(value).encode()
    with contextlib.ExitStack() as stack:
        asked = [stack.enter_context(Connection(port)) for _ in range(many)]
        for connection in asked:
            connection.send(method, path, body, JSON if body else {})
        replies = [connection.reply() for connection in asked]
    return replies


# --------------------------------------------------------------------------------- lists

KERNELS = 60
ODD = '"' * 2_000  # twice that as JSON


@pytest.fixture
def sessions(port: int) -> Iterator[list[str]]:
    """Of Jupyter, with long names."""
    others = {box["id"] for box in Client(port).listed()["sandboxes"]}
    made = []
    for number in range(KERNELS):
        fields = {"path": f"{number}{ODD}", "name": ODD, "type": "notebook"}
        reply = ask(port, "POST", "/api/sessions", json.dumps(fields).encode(), JSON)
        assert reply.status == 201, reply
        made.append(str(reply.json["id"]))
    yield made
    for box in Client(port).listed()["sandboxes"]:
        if box["id"] not in others:
            ask(port, "DELETE", f"/v1/sandboxes/{box['id']}")


def test_sessions(port: int, sessions: list[str]) -> None:
    """What a session says is read once, however often it is asked for."""
    turns = Turns(port)
    for reply in at_once(port, MANY, "GET", "/api/sessions"):
        assert [session["id"] for session in reply.json] == sessions
        assert reply.json[0]["notebook"]["path"] == reply.json[0]["path"] == f"0{ODD}"
    assert turns.longest() <= FEW_S
    turns = Turns(port)
    for reply in at_once(port, MANY, "GET", "/api/sessions/nothing"):
        error(reply, 404, "no_such_session")
    assert turns.longest() <= FEW_S
    turns = Turns(port)
    for reply in at_once(port, MANY, "PATCH", f"/api/sessions/{sessions[0]}", {"name": "new"}):
        assert reply.status == 200 and reply.json["name"] == "new"
    assert turns.longest() <= LONGEST_S


def test_sandboxes_with_much_metadata(start_live: Callable[..., LiveService]) -> None:
    service = start_live()
    metadata = {f"name{i}": "v" * 1_000 for i in range(32)}
    client = Client(service.port)
    boxes = [Box(client, metadata=metadata) for _ in range(16)]
    with many_descriptors():
        turns = Turns(service.port)
        for reply in at_once(service.port, 200, "GET", "/v1/sandboxes"):
            assert len(reply.json["sandboxes"]) == len(boxes)
        assert turns.longest() <= FEW_S
    for box in boxes:
        box.delete()


def test_a_pipeline_has_one_request_a_turn(port: int) -> None:
    """Whoever sends one request behind the other does not keep the front of the queue."""
    asks = f"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()
    over = threading.Event()

    def feed(connection: Connection) -> None:
        with contextlib.suppress(OSError):
            while not over.is_set():
                connection.sock.sendall(asks * 50)

    def read(connection: Connection) -> None:
        with contextlib.suppress(OSError):
            while connection.sock.recv(1 << 20):
                pass

    connections = [Connection(port) for _ in range(4)]
    works = (feed, read)
    threads = [threading.Thread(target=work, args=(c,)) for c in connections for work in works]
    for thread in threads:
        thread.start()
    turns = Turns(port)
    for _ in range(100):
        assert ask(port, "GET", "/health").status == 200
    assert turns.longest() <= FEW_S
    over.set()
    for connection in connections:
        connection.sock.shutdown(2)
    for thread in threads:
        thread.join()
    for connection in connections:
        connection.close()


# --------------------------------------------------------------------------- files that wait

SLEEPS = {"code": "import time; time.sleep(50)", "timeout_ms": 60_000}
WAITING = 8  # requests: their stored files are descriptors, which have a bound


@pytest.fixture
def crowded(start_live: Callable[..., LiveService]) -> Service:
    return start_live("--max-sandboxes", "4")


def stored_files(port: int) -> list[dict[str, Any]]:
    stored = [upload(port, f"{i}", b"x") for i in range(20)]
    return [{"path": f"{i}", "file_id": stored[i % 20]} for i in range(1_000)]


def small_files(port: int) -> list[dict[str, Any]]:
    return [{"path": f"{i}", "content": "x" * 40} for i in range(1_000)]


@pytest.mark.parametrize("made", [small_files, stored_files])
def test_many_that_wait_with_their_files_and_leave(
    crowded: Service, made: Callable[[int], list[dict[str, Any]]]
) -> None:
    port = crowded.port
    body = json.dumps({"code": "1", "files": made(port)}).encode()
    with contextlib.ExitStack() as stack:
        for _ in range(4):
            busy = stack.enter_context(Connection(port))
            busy.send("POST", "/v1/run", json.dumps(SLEEPS).encode(), JSON)
        turns = Turns(port)
        waiting = [Connection(port) for _ in range(WAITING)]
        for connection in waiting:
            connection.send("POST", "/v1/run", body, JSON)
        assert eventually(lambda: queued(port) >= WAITING)
        for connection in waiting:
            connection.close()
        assert eventually(lambda: queued(port) < WAITING)
    assert turns.longest() <= (FEW_S / 2 if made is small_files else FEW_S)


def queued(port: int) -> int:
    text = ask(port, "GET", "/metrics").body.decode()
    return sum(int(n) for n in re.findall(r"^cloche_queue_length\{.*\} (\d+)$", text, re.MULTILINE))


# ------------------------------------------------------------------------------------ batches


def test_batches_of_many_bad_items(port: int) -> None:
    turns = Turns(port)
    for reply in at_once(port, 30, "POST", "/v1/run/batch", {"items": [{}] * 2_000}):
        assert reply.status == 200 and reply.body.count(b"bad_fields") == 2_000
    assert turns.longest() <= FEW_S


def test_a_batch_of_many_files(port: int) -> None:
    items = [{"code": "1", "files": small_files(port)}] * 20
    turns = Turns(port)
    (reply,) = at_once(port, 1, "POST", "/v1/run/batch", {"items": items, "concurrency": 64})
    assert reply.body.count(b'"status":"ok"') == 20
    assert turns.longest() <= FEW_S


def test_small_files_that_did_not_change_are_not_told(port: int) -> None:
    """What a request brought itself is compared where it is kept."""
    code = (
        "open('0', 'w').write('x' * 40); open('1', 'w').write('y' * 40); open('2', 'a').write('')"
    )
    body = json.dumps({"code": code, "files": small_files(port)[:3]}).encode()
    reply = ask(port, "POST", "/v1/run", body, JSON)
    assert [file["path"] for file in reply.json["files"]] == ["1"], reply.json


def test_an_empty_file_is_one(port: int) -> None:
    files = [
        {"path": "empty", "content": ""},
        {"path": "zero", "content": "AA==", "encoding": "base64"},
    ]
    code = "[len(open(name, 'rb').read()) for name in ('empty', 'zero')]"
    body = json.dumps({"code": code, "files": files}).encode()
    assert ask(port, "POST", "/v1/run", body, JSON).json["text"] == "[0, 1]"

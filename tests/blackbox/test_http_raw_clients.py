"""Clients that are slow, rude or gone: the server stays well, and its memory stays where it was."""

from __future__ import annotations

import itertools
import json
import select
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import Deadline, Service, eventually
from host import Process, descendants
from http_raw import BAD_JSON, BODY, CHUNKED, GROWTH_MB, HEALTH, JSON, UPLOAD, asan, form, stored
from raw_http import HOST, Raw, ask, chunks, execute, heard, post, request, resident_mb


def named(service: Service, name: str) -> list[Process]:
    return [p for p in descendants(service.process.pid) if p.comm == name and p.state not in "ZX"]


# ---- slow clients ----


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


# ---- clients that leave ----


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

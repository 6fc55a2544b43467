"""What a live sandbox or its client could make the server keep: whatever is asked for and said, the
server's memory stays within bounds, and so does what it writes down."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from harness import LiveService, eventually
from http_client import JSON, Connection, ask
from live import SSE, Box, Client, error
from raw_http import Raw, post, resident_mb
from raw_ws import BINARY, PING, TEXT, Socket, frame

GROWTH_MB = 200.0
LONG: dict[str, Any] = {"timeout_ms": 60000}


@pytest.fixture
def box(live_service: LiveService) -> Iterator[Box]:
    with Client(live_service.port).box(limits={"cpu_seconds": 60}) as made:
        yield made


def bounded(service: LiveService, before: float) -> None:
    if "asan" not in str(service.caller.command()[0]):
        assert resident_mb(service) - before < GROWTH_MB


SAY = "channel = input.__globals__['channel']\n"


@pytest.mark.once
def test_displays_with_endless_names(live_service: LiveService, box: Box) -> None:
    before = resident_mb(live_service)
    code = "for i in range(36): channel.event('display', data={}, metadata={}, display_id=name)"
    result = box.run(SAY + "name = 'n' * (8 << 20)\n" + code, **LONG)
    assert result["status"] == "ok" and len(result["results"]) == 36  # without such names
    bounded(live_service, before)


@pytest.mark.once
def test_errors_without_end(live_service: LiveService, box: Box) -> None:
    before = resident_mb(live_service)
    code = "for i in range(36): channel.event('error', name='E', value=str(i) + text, traceback=[])"
    result = box.run(SAY + "text = 'e' * (8 << 20)\n" + code, **LONG)
    assert result["error"]["value"].startswith("0e"), "the first one counts"
    bounded(live_service, before)


@pytest.mark.once
def test_a_display_that_is_updated_without_end(box: Box) -> None:
    code = (
        "h = display('', display_id=True)\nfor i in range(30): h.update(str(i) + 'u' * (4 << 20))"
    )
    result = box.run(code, **LONG)
    assert not result["results_truncated"] and len(result["results"]) == 1
    assert result["results"][0]["data"]["text/plain"][:4] == "'29u", "the last one is kept"


def test_questions_for_input_whose_answers_nobody_reads(box: Box) -> None:
    code = "while True: channel.event('input', prompt='', password=False)"
    result = box.run(SAY + code, stdin="line\n", **LONG)
    assert result["status"] == "killed" and "listen" in result["error"]["value"], result["error"]
    assert box.text("1 + 1") == "2"


WAITS = """
import os, time
while not os.path.exists('go'): time.sleep(0.01)
for i in range(9): display(i)
"""


@pytest.mark.once
def test_a_cell_is_not_ended_for_questions_that_wait(live_service: LiveService, box: Box) -> None:
    """Long ones, more than the socket holds; then it shows something, and waits to be heard."""
    running = box.later(WAITS, **LONG)
    assert eventually(lambda: box.get()["kernels"][0]["state"] == "busy")
    body = json.dumps({"code": "x" * 50000}).encode()
    asked = [Connection(box.port) for _ in range(20)]
    for connection in asked:
        connection.send("POST", box.path + "/complete", body, JSON)
    assert ask(box.port, "PUT", box.path + "/files/go", b"").status == 201
    result = running.reply().json
    assert result["status"] == "ok" and len(result["results"]) == 9, result["error"]
    for connection in asked:
        assert connection.reply().status in (200, 409), "in time, or not"
        connection.close()
    running.close()


def test_output_of_commands_has_a_maximum(live_service: LiveService, box: Box) -> None:
    reply = box.ask("POST", "/commands", {"cmd": "true", "output_bytes": 1 << 50})
    error(reply, 422, "limit_too_high", "output")


@pytest.mark.once
def test_a_terminal_shows_more_than_is_kept(live_service: LiveService, box: Box) -> None:
    before = resident_mb(live_service)
    path = box.path + "/commands/pty?cmd=yes%20%7C%20head%20-c%2030000000%3B%20echo%20the-end"
    with Socket(live_service, path=path) as ws:
        shown = b""
        while b"the-end" not in shown:
            got = ws.frame()
            if got.opcode == BINARY:
                shown = shown[-20:] + got.payload
            elif got.opcode != PING:
                assert got.opcode == TEXT and b'"start"' in got.payload, got
    bounded(live_service, before)


def test_code_that_waits_has_a_maximum(live_service: LiveService, box: Box) -> None:
    """Whoever sent it is gone, and left it to go on."""
    before = resident_mb(live_service)
    with box.stream("print('begun', flush=True)\nimport time\ntime.sleep(60)", **LONG) as events:
        events.printed("begun")
        codes = []
        for _ in range(12):
            body = {"code": "#" * (8 << 20), "on_disconnect": "continue"}
            with Raw(live_service) as raw:
                raw.send(post(box.path + "/execute", body, "Accept: " + SSE["Accept"]))
                codes.append(raw.head().status)
        assert codes.count(200) == 8 and codes.count(503) == 4, codes
        bounded(live_service, before)
        box.do("/restart")


def test_stdin_that_is_never_empty(live_service: LiveService, box: Box) -> None:
    before = resident_mb(live_service)
    code = (
        "import os, sys\nn = 0\nwhile data := os.read(0, 65536):\n"
        "    n += len(data)\n    open('n', 'w').write(str(n))\n"
    )
    reply = box.ask("POST", "/commands", {"argv": ["python3", "-c", code], "background": True})
    assert reply.status == 202, reply
    path = f"/commands/{reply.json['id']}"
    sent = 0
    while sent < 150 << 20:
        reply = box.ask("POST", path + "/stdin", {"data": "i" * 500_000})
        sent += 500_000 if reply.status == 200 else 0
    bounded(live_service, before)
    box.ask("POST", path + "/stdin", {"eof": True})
    assert eventually(lambda: box.get(path)["status"] == "exited")
    assert box.ask("GET", "/files/n").body == str(sent).encode()


BIG = {"A": "a" * 40000}


def test_what_is_written_down_has_a_maximum(live_service: LiveService, box: Box) -> None:
    client = Client(live_service.port)
    reply = client.ask("POST", "/v1/sandboxes", {"profile": "base", "env": BIG})
    error(reply, 422, "bad_value", "env")
    error(box.ask("POST", "/kernels", {"env": BIG}), 422, "bad_value", "env")
    error(box.ask("POST", "/kernels", {"cwd": "/" * 5000}), 422, "bad_value", "cwd")
    error(box.ask("POST", "/commands", {"cmd": "true", "cwd": "/" * 5000}), 422, "bad_value", "cwd")
    assert box.run("pass", env=BIG)["status"] == "ok", "what is not kept may be larger"


def test_a_command_whose_client_left_at_once_ends(live_service: LiveService, box: Box) -> None:
    for _ in range(5):
        with Raw(live_service) as raw:
            raw.send(post(box.path + "/commands", {"cmd": "sleep 1000", **LONG}))
            raw.reset()

    def ended() -> bool:
        return all(c["status"] != "running" for c in box.get("/commands")["commands"])

    assert eventually(ended, seconds=25.0)


def test_frames_of_others_are_no_terminal(live_service: LiveService, box: Box) -> None:
    path = box.path + "/commands/pty?cmd=cat"
    with Socket(live_service, path=path) as ws:
        ws.send(frame(BINARY, b"typed\n"))
        ws.send(frame(TEXT, b"[1]"))
        ws.send(frame(TEXT, b'{"type":"resize","rows":-1,"cols":1}'))
        shown = b""
        while b"typed\r\ntyped" not in shown:
            got = ws.frame()
            shown += got.payload if got.opcode == BINARY else b""


def test_a_memory_limit_below_what_is_used(live_service: LiveService, box: Box) -> None:
    assert box.ask("PATCH", "", {"limits": {"disk_mb": 32}}).status == 200
    box.run("held = bytearray(150 << 20)")
    error(box.ask("PATCH", "", {"limits": {"memory_mb": 64}}), 422, "bad_value", "memory_mb")
    assert box.text("len(held) >> 20") == "150"
    assert box.get()["limits"]["memory_mb"] > 64
    assert box.do("/restart")["state"] == "idle"
    assert box.ask("PATCH", "", {"limits": {"memory_mb": 64}}).status == 200

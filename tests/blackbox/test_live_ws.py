"""A live sandbox over its WebSocket: many executions on one connection, and every way to end."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from harness import LiveService, Service, eventually
from http_client import ask, get, post
from raw_http import Raw, server_pid
from raw_ws import BINARY, CLOSE, PING, PONG, TEXT, Socket, frame, handshake
from test_ws import GROWTH_KB, MB, look_up, sanitized, server_kb

LONG = {"timeout_ms": 60000}
ENDS = ("end", "failed")


class Sandbox:
    def __init__(self, service: Service, **fields: Any) -> None:
        self.service = service
        made = post(service.port, "/v1/sandboxes", {"profile": "base", **fields})
        assert made.status == 201, made.body
        self.path = f"/v1/sandboxes/{made.json['id']}"
        self.kernel: str = made.json["kernels"][0]["id"]

    def connect(self, rcvbuf: int = 0) -> Socket:
        return Socket(self.service, path=self.path + "/ws", rcvbuf=rcvbuf)

    def post(self, what: str, value: Any) -> Any:
        reply = post(self.service.port, self.path + what, value)
        assert reply.status in (200, 201), reply.body
        return reply.json

    def look(self) -> Any:
        return get(self.service.port, self.path).json

    def delete(self) -> None:
        assert ask(self.service.port, "DELETE", self.path).status == 204


@contextlib.contextmanager
def live(service: Service, **fields: Any) -> Iterator[Sandbox]:
    sandbox = Sandbox(service, **fields)
    try:
        yield sandbox
    finally:
        ask(service.port, "DELETE", sandbox.path)


@pytest.fixture
def sandbox(live_service: LiveService) -> Iterator[Sandbox]:
    with live(live_service) as made:
        yield made


def hear(ws: Socket) -> dict[str, Any]:
    """The next message; on a busy machine a ping may come before it."""
    got = ws.frame()
    while got.opcode == PING:
        ws.send(frame(PONG, got.payload))
        got = ws.frame()
    assert got.opcode == TEXT, got
    message = json.loads(got.payload)
    assert isinstance(message, dict)
    return message


def until(ws: Socket, *types: str) -> list[dict[str, Any]]:
    """The messages up to the first of one of these types."""
    got = [hear(ws)]
    while got[-1]["type"] not in types:
        got.append(hear(ws))
    return got


def run(ws: Socket, code: str, **fields: Any) -> list[dict[str, Any]]:
    return until(ws.say(type="execute", code=code, **(LONG | fields)), *ENDS)


def printed(messages: list[dict[str, Any]], stream: str = "stdout") -> str:
    return "".join(m["data"] for m in messages if m["type"] == stream)


def failure(message: dict[str, Any]) -> str:
    assert message["type"] == "failed", message
    error = message["error"]
    assert error["message"] and error["remediation"]
    code: str = error["code"]
    return code


# ---------------------------------------------------------------------------- executions


def test_state_stays_and_events_say_whose_they_are(sandbox: Sandbox) -> None:
    with sandbox.connect() as ws:
        run(ws, "x = 20")
        got = run(ws, "print('hello')\nx + 1", ref="second")
    types = [m["type"] for m in got]
    assert types[:3] == ["accepted", "start", "stdout"] and types[-2:] == ["result", "end"]
    assert {m["ref"] for m in got} == {"second"}
    assert len({m["execution_id"] for m in got}) == 1
    assert [m["seq"] for m in got[1:]] == list(range(1, len(got)))
    assert got[1]["kernel_id"] == sandbox.kernel
    assert printed(got) == "hello\n"
    assert got[-2]["data"]["text/plain"] == "21"
    end = got[-1]
    assert end["status"] == "ok" and end["execution_count"] == 2
    assert end["id"] == end["execution_id"] and "stdout" not in end
    assert look_up(sandbox.service, end["id"])["result"]["stdout"] == "hello\n"


def test_the_error_of_a_cell_is_an_event(sandbox: Sandbox) -> None:
    with sandbox.connect() as ws:
        got = run(ws, "1 / 0")
        assert "ref" not in got[0]
        error = next(m for m in got if m["type"] == "error")
        assert error["name"] == "ZeroDivisionError" and error["traceback"]
        assert got[-1]["status"] == "error"


def test_executions_in_one_kernel_take_turns(sandbox: Sandbox) -> None:
    with sandbox.connect() as ws:
        for n in range(5):
            ws.say(type="execute", code=f"print({n})", ref=str(n), **LONG)
        got: list[dict[str, Any]] = []
        while sum(m["type"] == "end" for m in got) < 5:
            got.append(hear(ws))
    ran = [m for m in got if m["type"] != "accepted"]
    assert [m["ref"] for m in ran if m["type"] == "start"] == list("01234")
    assert printed(got) == "0\n1\n2\n3\n4\n"
    for ref in "01234":
        assert printed([m for m in ran if m["ref"] == ref]) == ref + "\n"


def test_kernels_run_beside_each_other(sandbox: Sandbox) -> None:
    other = sandbox.post("/kernels", {})["id"]
    with sandbox.connect() as ws:
        ws.say(type="execute", code="a = input()\nprint(a)", ref="waits", **LONG)
        until(ws, "input")
        got = run(ws, "b = 1\nprint('b')", kernel_id=other, ref="runs")
        assert {m["ref"] for m in got} == {"runs"} and printed(got) == "b\n"
        ws.say(type="stdin", value="now", kernel_id=sandbox.kernel)
        got = until(ws, *ENDS)
        assert {m["ref"] for m in got} == {"waits"} and printed(got) == "now\n"


def test_a_connection_has_at_most_32_executions(sandbox: Sandbox) -> None:
    with sandbox.connect() as ws:
        ws.say(type="execute", code="input()", **LONG)
        until(ws, "input")
        for _ in range(31):
            ws.say(type="execute", code="pass", **LONG)
            assert hear(ws)["type"] == "accepted"
        ws.say(type="execute", code="pass", ref="one more", **LONG)
        refused = hear(ws)
        assert failure(refused) == "too_many_executions"
        assert refused["ref"] == "one more" and refused["error"]["retryable"]
        ws.say(type="stdin", value="")
        for _ in range(32):
            assert until(ws, *ENDS)[-1]["status"] == "ok"
        assert run(ws, "pass")[-1]["status"] == "ok"


# ---------------------------------------------------------------------------- stdin, interrupt


def test_input_is_answered(sandbox: Sandbox) -> None:
    with sandbox.connect() as ws:
        ws.say(type="execute", code="print(input('who? '))\ninput()", ref="q", **LONG)
        asked = until(ws, "input")[-1]
        assert asked["prompt"] == "who? " and asked["password"] is False and asked["ref"] == "q"
        ws.say(type="stdin", value="ü 1")
        got = until(ws, "input")
        assert printed(got).endswith("ü 1\n")
        ws.say(type="stdin", eof=True)
        got = until(ws, "end")
        assert [m["name"] for m in got if m["type"] == "error"] == ["EOFError"]


def test_an_answer_that_nobody_waits_for_is_refused(sandbox: Sandbox) -> None:
    with sandbox.connect() as ws:
        ws.say(type="stdin", value="x", ref="r")
        refused = hear(ws)
        assert failure(refused) == "not_waiting" and refused["ref"] == "r"
        assert run(ws, "1")[-1]["status"] == "ok"


def test_a_paused_sandbox_is_neither_interrupted_nor_answered(sandbox: Sandbox) -> None:
    with sandbox.connect() as ws:
        until(ws.say(type="execute", code="input('?')", **LONG), "input")
        sandbox.post("/pause", {})
        for message in ({"type": "interrupt"}, {"type": "stdin", "value": "early"}):
            assert failure(hear(ws.say(**message))) == "sandbox_paused"
        sandbox.post("/resume", {})
        *events, end = until(ws.say(type="stdin", value="late"), *ENDS)
        assert end["status"] == "ok"
        (result,) = [event for event in events if event["type"] == "result"]
        assert result["data"]["text/plain"] == "'late'"


def test_an_interrupt_keeps_the_state(sandbox: Sandbox) -> None:
    with sandbox.connect() as ws:
        ws.say(type="interrupt", ref="early")
        early = {"type": "interrupted", "ref": "early", "interrupted": False}
        assert hear(ws) == early
        ws.say(type="execute", code="x = 1\nprint('in')\nwhile True: pass", **LONG)
        until(ws, "stdout")
        ws.say(type="interrupt", kernel_id=sandbox.kernel)
        got = until(ws, "end")
        assert {"type": "interrupted", "interrupted": True} in got
        assert got[-1]["status"] == "interrupted"
        assert printed(run(ws, "print(x)")) == "1\n"


def test_a_kernel_that_is_not_there_is_named(sandbox: Sandbox) -> None:
    with sandbox.connect() as ws:
        for message in ({"type": "interrupt"}, {"type": "stdin", "value": ""}):
            ws.say(kernel_id="ker_none", **message)
            refused = hear(ws)
            assert failure(refused) == "no_such_kernel"
            assert "ker_none" in refused["error"]["message"]
        assert failure(run(ws, "1", kernel_id="ker_none")[-1]) == "no_such_kernel"


# ---------------------------------------------------------------------------- resume


def test_an_execution_is_resumed_after_a_lost_connection(sandbox: Sandbox) -> None:
    ws = sandbox.connect()
    ws.say(
        type="execute",
        code="print('a')\nprint(input())",
        on_disconnect="continue",
        **LONG,
    )
    seen = until(ws, "input")
    ws.reset()
    name = seen[0]["execution_id"]
    with sandbox.connect() as again:
        again.say(type="resume", execution_id=name, after=1, ref="back")
        got = until(again, "input")
        assert [m["seq"] for m in got] == [m["seq"] for m in seen[2:]]
        assert printed(got) == "a\n"
        again.say(type="stdin", value="b")
        got += until(again, "end")
    assert [m["seq"] for m in got] == list(range(2, got[-1]["seq"] + 1))
    assert {m["ref"] for m in got} == {"back"} and {m["execution_id"] for m in got} == {name}
    assert got[-1]["status"] == "ok" and "b\n" in printed(got)


def test_an_execution_that_is_over_is_told_again(sandbox: Sandbox) -> None:
    done = sandbox.post("/execute", {"code": "print('over HTTP')\n7"})
    with sandbox.connect() as ws:
        for _ in range(2):
            ws.say(type="resume", execution_id=done["id"])
            got = until(ws, "end")
            assert printed(got) == "over HTTP\n"
            assert [m["seq"] for m in got] == list(range(1, len(got) + 1))
        ws.say(type="resume", execution_id=done["id"], after=len(got), ref="all")
        refused = hear(ws)
        assert failure(refused) == "no_execution" and refused["ref"] == "all"
        assert "after that number" in refused["error"]["message"]
        ws.say(type="resume", execution_id="exe_none")
        assert failure(hear(ws)) == "no_execution"


def test_two_connections_see_the_same(sandbox: Sandbox) -> None:
    with sandbox.connect() as one, sandbox.connect() as two:
        one.say(type="execute", code="print(input())", **LONG)
        seen = until(one, "input")
        two.say(type="resume", execution_id=seen[0]["execution_id"])
        until(two, "input")
        two.say(type="stdin", value="from the other")
        assert printed(until(one, "end")) == printed(until(two, "end")) == "from the other\n"


# ---------------------------------------------------------------------------- leaving


def test_what_was_started_is_interrupted_when_its_client_goes(sandbox: Sandbox) -> None:
    ws = sandbox.connect()
    ws.say(type="execute", code="kept = 5\nprint('in')\nwhile True: pass", **LONG)
    seen = until(ws, "stdout")
    ws.say(type="execute", code="never = 1", **LONG)
    seen += until(ws, "accepted")
    names = [m["execution_id"] for m in seen if m["type"] == "accepted"]
    ws.reset()

    def done(name: str) -> Any:
        found = look_up(sandbox.service, name)
        return found["result"] if found["state"] == "done" else None

    assert eventually(lambda: done(names[0]))["status"] == "interrupted"
    assert eventually(lambda: done(names[1]))["error"]["code"] == "interrupted"
    got = sandbox.post("/execute", {"code": "print(kept, 'never' in globals())"})
    assert got["stdout"] == "5 False\n"


def test_a_connection_keeps_its_sandbox_from_being_idle(live_service: LiveService) -> None:
    with live(live_service, idle_seconds=100) as sandbox:
        assert sandbox.look()["idle_expires"]
        with sandbox.connect() as ws:
            run(ws, "1")
            assert sandbox.look()["idle_expires"] is None
            ws.send(frame(CLOSE, b"\x03\xe8"))
            assert ws.goodbye() == 1000
        assert eventually(lambda: sandbox.look()["idle_expires"])


def test_the_sandboxs_end_closes_with_the_reason(sandbox: Sandbox) -> None:
    with sandbox.connect() as ws, sandbox.connect() as idle:
        ws.say(type="execute", code="print('in')\nwhile True: pass", ref="r", **LONG)
        until(ws, "stdout")
        sandbox.delete()
        last = until(ws, "failed")[-1]
        assert failure(last) == "sandbox_gone" and last["ref"] == "r" and last["seq"]
        for each in (ws, idle):
            closed = each.frame()
            assert closed.opcode == CLOSE and closed.code == 1001
            assert b"deleted" in closed.payload
            each.send(frame(CLOSE, closed.payload[:2]))
            each.ended()


def test_the_time_that_is_up_closes_it_too(live_service: LiveService) -> None:
    with live(live_service, ttl_seconds=3) as sandbox, sandbox.connect() as ws:
        closed = ws.frame()
        assert closed.code == 1001 and b"ttl_seconds" in closed.payload


def test_only_a_sandbox_that_is_there_has_a_websocket(sandbox: Sandbox) -> None:
    service, path = sandbox.service, sandbox.path
    with Raw(service) as http:
        reply = http.send(handshake(path + "/ws", Upgrade=None)).reply()
        assert reply.status == 426 and "/execute" in reply.json["error"]["remediation"]
    with Raw(service) as http:
        reply = http.send(handshake("/v1/sandboxes/sbx_none/ws")).reply()
        assert reply.status == 404 and reply.code == "no_such_sandbox"
    sandbox.delete()
    with Raw(service) as http:
        reply = http.send(handshake(path + "/ws")).reply()
        assert reply.status == 410 and "deleted" in reply.json["error"]["message"]


# ---------------------------------------------------------------------------- wrong messages


@pytest.mark.parametrize(
    ("message", "code", "words"),
    [
        (b"", "bad_json", "execute, stdin, interrupt, resize, resume"),
        (b"{", "bad_json", "execute, stdin, interrupt, resize, resume"),
        (b"[]", "bad_json", "array"),
        (b"[" * 100000, "bad_json", "execute"),
        (b"{}", "bad_value", "no type"),
        (b'{"type":7}', "bad_value", "no type"),
        (b'{"type":"run","code":"1"}', "bad_value", "run"),
        (b'{"type":"execute","code":"1","ref":7}', "bad_value", "ref"),
        (b'{"type":"execute","code":"1","ref":"' + b"x" * 257 + b'"}', "bad_value", "256"),
        (b'{"type":"execute"}', "bad_fields", "code"),
        (b'{"type":"execute","code":"1","cod":1}', "bad_fields", "cod"),
        (b'{"type":"execute","code":"1","timeout_ms":0}', "bad_fields", "timeout_ms"),
        (b'{"type":"stdin"}', "bad_fields", "value"),
        (b'{"type":"interrupt","kernel":""}', "bad_fields", "kernel"),
        (b'{"type":"resume"}', "bad_fields", "execution_id"),
        (b'{"type":"resume","execution_id":"e","after":-1}', "bad_fields", "after"),
    ],
)
def test_a_wrong_message_is_answered_and_the_connection_stays(
    sandbox: Sandbox, message: bytes, code: str, words: str
) -> None:
    with sandbox.connect() as ws:
        for _ in range(4):
            ws.send(frame(TEXT, message))
            refused = hear(ws)
            assert failure(refused) == code and words in json.dumps(refused, ensure_ascii=False)
        assert run(ws, "1")[-1]["status"] == "ok"


def test_a_fault_has_the_ref_of_its_message(sandbox: Sandbox) -> None:
    with sandbox.connect() as ws:
        ws.say(type="execute", ref='"x"\n\x7f')
        refused = hear(ws)
        assert failure(refused) == "bad_fields" and refused["ref"] == '"x"\n\x7f'
        ws.say(type="nothing", ref="y")
        assert hear(ws)["ref"] == "y"


def test_a_binary_message_is_none(sandbox: Sandbox) -> None:
    with sandbox.connect() as ws:
        ws.send(frame(BINARY, b'{"type":"interrupt"}'))
        refused = hear(ws)
        assert failure(refused) == "bad_json" and "binary" in refused["error"]["message"]
        assert run(ws, "1")[-1]["status"] == "ok"


def test_a_flood_of_wrong_messages_costs_little(sandbox: Sandbox) -> None:
    service = sandbox.service
    before = server_kb(service)
    with sandbox.connect(rcvbuf=65536) as ws:
        ws.sock.settimeout(1.0)
        piece = frame(TEXT, b"{}") * 10000
        with pytest.raises(TimeoutError):
            for _ in range(1000):
                ws.sock.sendall(piece)
        assert server_kb(service) - before < GROWTH_KB or sanitized(service)


# ---------------------------------------------------------------------------- slow readers

PRINTS = "import os\nfor _ in range(128): os.write(1, b'x' * 65536)"
SHOWS = "for i in range(16): display({'text/plain': 'x' * 524288}, raw=True)"


@pytest.mark.parametrize("code", [PRINTS, SHOWS])
def test_a_slow_reader_slows_the_cell(sandbox: Sandbox, code: str) -> None:
    service = sandbox.service

    def size(messages: list[dict[str, Any]]) -> int:
        shown = sum(len(m["data"]["text/plain"]) for m in messages if m["type"] == "display")
        return len(printed(messages)) + shown

    with live(service) as other, other.connect() as ws, sandbox.connect(rcvbuf=65536) as slow:
        wanted = size(run(ws, code))
        assert wanted >= 8 * MB
        before = server_kb(service)
        slow.say(type="execute", code=code, **LONG)
        name = until(slow, "start")[0]["execution_id"]
        run(ws, code)  # through in the time that the slow one had
        assert look_up(service, name)["state"] == "running"
        assert server_kb(service) - before < GROWTH_KB or sanitized(service)
        got = until(slow, "end")
        assert got[-1]["status"] == "ok" and size(got) == wanted


def test_a_cell_that_is_held_can_be_interrupted(sandbox: Sandbox) -> None:
    code = "print('in')\nwhile True: display({'text/plain': 'x' * 65536}, raw=True)"
    with sandbox.connect(rcvbuf=65536) as slow:
        slow.say(type="execute", code=code, **LONG)
        until(slow, "stdout")
        slow.say(type="interrupt")
        got = until(slow, "end")
        assert got[-1]["status"] == "interrupted" and not got[-1]["kernel_restarted"]
        assert run(slow, "1")[-1]["kernel_restarted"] is False


def test_a_slow_reader_of_what_is_over_gets_all(sandbox: Sandbox) -> None:
    code = "import os\nfor _ in range(48): os.write(1, b'y' * 65536)"
    done = sandbox.post("/execute", {"code": code})
    with sandbox.connect(rcvbuf=65536) as ws:
        for n in range(3):
            ws.say(type="resume", execution_id=done["id"], ref=str(n))
        got: list[dict[str, Any]] = []
        while sum(m["type"] == "end" for m in got) < 3:
            got.append(hear(ws))
        for n in range(3):
            mine = [m for m in got if m["ref"] == str(n)]
            assert len(printed(mine)) == 48 * 65536
            assert [m["seq"] for m in mine] == list(range(1, len(mine) + 1))


def test_the_server_lives_on_when_all_leave_at_once(sandbox: Sandbox) -> None:
    pid = server_pid(sandbox.service)
    for _ in range(5):
        ws = sandbox.connect()
        for _ in range(32):
            ws.say(type="execute", code="while True: print('x' * 1000)", **LONG)
        until(ws, "stdout")
        ws.reset()
    assert sandbox.post("/execute", {"code": "6 * 7"})["text"] == "42"
    assert server_pid(sandbox.service) == pid

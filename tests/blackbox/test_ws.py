"""A program over a WebSocket: the handshake, both ways of talking, and every way of ending it."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import Service, eventually
from raw_http import KeyedService, Raw, ask, request, server_pid
from raw_ws import BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT, Socket, frame, handshake, head

LONG = {"timeout_ms": 60000, "profile": "base"}
ASK = "a = input('? ')\nb = input('and? ')\nprint(a, b)"
# An interrupt just before a sleep does not wake it, with any Python: the next one is soon.
WAIT = "print('there', flush=True)\nimport time\nwhile True: time.sleep(0.1)"
MB = 1 << 20


GROWTH_KB = 64 * 1024


def sanitized(service: Service) -> bool:
    """Such programs keep what they freed for a while."""
    return "asan" in str(service.caller.command()[0])


def server_kb(service: Service) -> int:
    with open(f"/proc/{server_pid(service)}/status", encoding="ascii") as status:
        found = re.search(r"VmRSS:\s+(\d+)", status.read())
    assert found
    return int(found[1])


def look_up(service: Service, name: str) -> dict[str, Any]:
    found = ask(service, request("GET", f"/v1/executions/{name}")).json
    assert isinstance(found, dict)
    return found


def was_left(service: Service, name: str) -> bool:
    """Its client has gone; the leak check sees whether the program has."""
    found = look_up(service, name)
    return found["state"] == "done" and found["result"]["error"]["code"] == "client_gone"


# ---------------------------------------------------------------------------- the handshake


@pytest.mark.parametrize(
    ("changed", "status", "word"),
    [
        ({"Upgrade": None}, 426, "Upgrade"),
        ({"Upgrade": b"h2c"}, 426, "Upgrade"),
        ({"Connection": None}, 400, "Connection"),
        ({"Connection": b"keep-alive"}, 400, "Connection"),
        ({"Sec_WebSocket_Version": b"8"}, 426, "Version"),
        ({"Sec_WebSocket_Version": None}, 426, "Version"),
        ({"Sec_WebSocket_Key": None}, 400, "Key"),
        ({"Sec_WebSocket_Key": b"c2hvcnQ="}, 400, "Key"),
        ({"Sec_WebSocket_Key": b"!!!!IHNhbXBsZSBub25jZQ=="}, 400, "Key"),
        ({"Content_Length": b"3"}, 400, "body"),
    ],
)
def test_a_handshake_that_is_none_is_refused(
    service: Service, changed: dict[str, Any], status: int, word: str
) -> None:
    with Raw(service) as http:
        reply = http.send(handshake(**changed)).reply()
        assert reply.status == status
        assert word in reply.json["error"]["message"]
        assert reply.code == ("no_websocket" if status == 426 else "bad_handshake")
        if word == "Version":
            assert reply.header("Sec-WebSocket-Version") == "13"
        if status == 426:
            assert reply.header("Upgrade") == "websocket"


def test_a_handshake_with_http_1_0_is_refused(service: Service) -> None:
    with Raw(service) as http:
        reply = http.send(handshake().replace(b"HTTP/1.1", b"HTTP/1.0")).reply()
        assert reply.status == 400 and "HTTP/1.1" in reply.json["error"]["message"]


def test_a_browsers_list_of_words_is_a_handshake(service: Service) -> None:
    with Raw(service) as http:
        http.send(handshake(Connection=b"keep-alive, Upgrade", Upgrade=b"WebSocket"))
        assert http.until(b"\r\n\r\n").startswith(b"HTTP/1.1 101 ")


def test_a_page_of_another_site_opens_no_websocket(service: Service) -> None:
    with Raw(service) as http:
        reply = http.send(handshake(Origin=b"http://evil.example")).reply()
        assert reply.status == 403 and reply.code == "bad_origin"
    with Raw(service) as http:
        reply = http.send(handshake(Host=b"evil.example")).reply()
        assert reply.status == 421 and reply.code == "bad_host"


def test_a_websocket_wants_a_key_as_everything_does(keyed_service: KeyedService) -> None:
    with Raw(keyed_service) as http:
        reply = http.send(handshake()).reply()
        assert reply.status == 401 and reply.code == "no_key"
    key = f"Authorization: Bearer {keyed_service.key}\r\n".encode()
    with Socket(keyed_service, more=key) as ws:
        assert ws.say(code="print(6 * 7)", **LONG).output("42\n") == "42\n"
        assert ws.result()["status"] == "ok"


# ---------------------------------------------------------------------------- talking


def test_input_is_answered_twice(service: Service) -> None:
    with Socket(service) as ws:
        ws.say(code=ASK, **LONG)
        started = ws.hear()
        assert started["type"] == "start" and started["id"].startswith("exe_")
        assert ws.output("? ") == "? "
        ws.say(type="stdin", data="one\n")
        assert ws.output("and? ") == "and? "
        ws.say(type="stdin", data="zwei ü\n")
        assert ws.output("\n") == "one zwei ü\n"
        result = ws.result()
        assert result["status"] == "ok" and result["id"] == started["id"]
        assert "stdout" not in result


def test_events_are_numbered_as_in_the_record(service: Service) -> None:
    with Socket(service) as ws:
        ws.say(code="import sys\nprint('a', flush=True)\nprint('b', file=sys.stderr)", **LONG)
        messages = [ws.hear()]
        while messages[-1]["type"] != "result":
            messages.append(ws.hear())
        ws.goodbye()
    assert [m["seq"] for m in messages] == list(range(1, len(messages) + 1))
    said = {"stdout": "", "stderr": ""}
    for message in messages[1:-1]:
        said[message["stream"]] += message["data"]
    assert said == {"stdout": "a\n", "stderr": "b\n"}
    with Raw(service) as http:
        path = f"/v1/executions/{messages[0]['id']}/events?after={messages[-2]['seq']}"
        http.send(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert f"id: {messages[-1]['seq']}\n" in http.reply().body.decode()


def test_stdin_of_the_request_comes_first_and_bytes_are_stdin_too(service: Service) -> None:
    code = "import sys\nprint(sys.stdin.buffer.read())"
    with Socket(service) as ws:
        ws.say(code=code, stdin="first ", **LONG)
        ws.send(frame(BINARY, b"\0\xff"))
        ws.say(type="stdin", data=" last").say(type="stdin_end")
        assert ws.output("\n") == r"b'first \x00\xff last'" + "\n"
        ws.result()


def test_what_comes_with_the_handshake_is_not_lost(service: Service) -> None:
    early = frame(TEXT, json.dumps({"code": ASK, **LONG}).encode())
    early += frame(TEXT, b'{"type":"stdin","data":"x\\ny\\n"}')
    with Socket(service, early) as ws:
        assert ws.output("x y\n").endswith("x y\n")
        ws.result()


def test_a_message_may_come_in_pieces(service: Service) -> None:
    text = json.dumps({"code": "print('ü')", **LONG}, ensure_ascii=False).encode()
    cut = text.index("ü".encode()) + 1
    with Socket(service) as ws:
        ws.send(frame(TEXT, text[:cut], fin=False))
        ws.send(frame(PING, b"between"))
        assert (ws.frame()).payload == b"between"
        ws.send(frame(CONTINUATION, b"", fin=False) + frame(CONTINUATION, text[cut:]))
        assert ws.output("\n") == "ü\n"
        ws.result()


def test_a_ping_is_answered(service: Service) -> None:
    with Socket(service) as ws:
        ws.send(frame(PING, b"are you there"))
        pong = ws.frame()
        assert (pong.opcode, pong.payload) == (PONG, b"are you there")


def test_interrupt_is_a_keyboard_interrupt(service: Service) -> None:
    with Socket(service) as ws:
        ws.say(code=WAIT, **LONG).output("there\n")
        ws.say(type="interrupt")
        assert "KeyboardInterrupt" in ws.output("KeyboardInterrupt")
        assert ws.result()["exit_code"] == 130


def test_a_signal_has_a_name(service: Service) -> None:
    with Socket(service) as ws:
        ws.say(code=WAIT, **LONG).output("there\n")
        result = ws.say(type="signal", signal="SIGTERM").result()
        assert result["signal"] == 15


# ---------------------------------------------------------------------------- bad messages


@pytest.mark.parametrize(
    ("message", "where"),
    [
        (b"{}", ["body", "code"]),
        (b'{"code":"1","timeout_ms":"5"}', ["body", "timeout_ms"]),
        (b"[]", ["body"]),
        (b"{", ["body", 1]),
    ],
)
def test_a_bad_request_is_told_and_closed(service: Service, message: bytes, where: Any) -> None:
    with Socket(service) as ws:
        ws.send(frame(TEXT, message))
        error = ws.hear()
        assert error["type"] == "error" and error["error"]["code"] == "bad_fields"
        assert error["detail"][0]["loc"] == where
        assert ws.goodbye() == 1008


def executions(service: Service) -> int:
    """All that have ended so far."""
    lines = ask(service, request("GET", "/metrics")).body.decode().splitlines()
    return sum(int(x.split()[-1]) for x in lines if x.startswith("cloche_executions_total{"))


def test_behind_a_bad_request_nothing_is_a_request(service: Service) -> None:
    """Long ones are read beside the loop; what came with them is taken after they were refused."""
    bad = frame(TEXT, json.dumps({"type": "stdin", "value": "v" * 70000}).encode())
    before = executions(service)
    for _ in range(5):
        with Socket(service) as ws:
            ws.send(bad + 3 * frame(TEXT, b'{"type":"interrupt"}'))
            assert ws.hear()["type"] == "error"
            assert ws.goodbye() == 1008
    with Socket(service) as ws:  # behind whatever those have begun
        assert ws.say(code="print(1)").result()["status"] == "ok"
    assert executions(service) == before + 1


def test_what_cannot_run_is_told_and_closed(service: Service) -> None:
    with Socket(service) as ws:
        error = ws.say(code="1", profile="none").hear()
        assert error["error"]["code"] == "unknown_profile" and "none" in error["detail"]
        assert ws.goodbye() == 1008


@pytest.mark.parametrize("message", [b'{"type":"dance"}', b'{"type":"stdin"}', b'{"data":"x"}'])
def test_a_bad_message_ends_the_program(service: Service, message: bytes) -> None:
    with Socket(service) as ws:
        name = ws.say(code=WAIT, **LONG).hear()["id"]
        ws.output("there\n")
        ws.send(frame(TEXT, message))
        assert ws.hear()["error"]["code"] == "bad_fields"
        assert ws.goodbye() == 1008
    assert eventually(lambda: was_left(service, name))


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 1002),
        (b"\xff" * 100, 1002),
        (head(TEXT, 2) + b"{}", 1002),  # not masked
        (frame(TEXT, b"{}", rsv=4), 1002),
        (frame(3, b""), 1002),
        (frame(CONTINUATION, b"x"), 1002),
        (frame(TEXT, b"a", fin=False) + frame(TEXT, b"b"), 1002),
        (frame(PING, b"", fin=False), 1002),
        (frame(PING, b"x" * 126), 1002),
        (frame(CLOSE, b"x"), 1005),  # a code of one byte is none
        (frame(TEXT, b"x", fin=False) + frame(CONTINUATION, b"x", fin=False) * 5000, 1009),
        (frame(TEXT, b"\xc3\x28"), 1007),
        (frame(BINARY, b"{}"), 1003),
        (head(TEXT, MB + 1, masked=True) + b"maskx", 1009),
        (head(TEXT, (1 << 63) - 1, masked=True) + b"maskx", 1009),
        (frame(TEXT, b"x" * MB, fin=False) + frame(CONTINUATION, b"x"), 1009),
    ],
    ids=itertools.count(),  # the masks are random
)
@pytest.mark.parametrize("early", [True, False])
def test_bad_frames_close_with_the_reason(
    service: Service, data: bytes, code: int, early: bool
) -> None:
    with Socket(service, early=data if early else b"") as ws:
        if not early:
            ws.send(data)
        assert ws.goodbye() == code


def test_a_message_of_the_largest_size_is_taken(service: Service) -> None:
    empty = len(json.dumps({"type": "stdin", "data": ""}))
    with Socket(service) as ws:
        ws.say(code="print(len(input()))", **LONG)
        ws.say(type="stdin", data="x" * (MB - empty)).say(type="stdin_end")
        assert ws.output("\n") == f"{MB - empty}\n"
        ws.result()


# ---------------------------------------------------------------------------- slow ones


def test_a_slow_reader_slows_the_program(service: Service) -> None:
    code = f"import os\nfor _ in range({16 * MB // 65536}): os.write(1, b'x' * 65536)"
    much: dict[str, Any] = {"code": code, "limits": {"output_bytes": 32 * MB}, **LONG}

    def read_all(ws: Socket) -> int:
        got, message = 0, ws.hear()
        while message["type"] != "result":
            got += len(message.get("data", ""))
            message = ws.hear()
        assert message["status"] == "ok"
        assert ws.goodbye() == 1000
        return got

    with Socket(service) as ws:
        assert read_all(ws.say(**much)) == 16 * MB
    before = server_kb(service)
    with Socket(service, rcvbuf=65536) as slow:
        name = slow.say(**much).hear()["id"]
        with Socket(service) as ws:  # this one is through in the time that the slow one had
            read_all(ws.say(**much))
        assert look_up(service, name)["state"] == "running"
        assert server_kb(service) - before < GROWTH_KB or sanitized(service)
        assert read_all(slow) == 16 * MB


@pytest.mark.once
def test_a_program_that_does_not_read_slows_the_client(service: Service) -> None:
    code = (
        "import sys, time\nprint('there', flush=True)\n"
        "while not __import__('os').path.exists('/nowhere'): time.sleep(1)"
    )
    piece = frame(TEXT, json.dumps({"type": "stdin", "data": "x" * 500000}).encode())
    with Socket(service) as ws:
        ws.say(code=code, **LONG).output("there\n")
        before = server_kb(service)
        ws.sock.setblocking(False)
        sent = 0
        with pytest.raises(BlockingIOError):
            while sent < 400 * MB:
                # The loop of the server goes on between our writes: a full socket is final only
                # when it stays full while the server has answered somebody else.
                try:
                    sent += ws.sock.send(piece[sent % len(piece) :])
                except BlockingIOError:
                    with Raw(service) as http:
                        http.send(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
                        http.reply()
                    sent += ws.sock.send(piece[sent % len(piece) :])
        assert sent < 64 * MB
        assert server_kb(service) - before < GROWTH_KB or sanitized(service)


def test_stdin_that_nobody_takes_holds_nothing_up(service: Service) -> None:
    code = "import os\nos.close(0)\nprint('closed', flush=True)\nimport time\ntime.sleep(60)"
    with Socket(service) as ws:
        ws.say(code=code, **LONG).output("closed")
        for _ in range(20):
            ws.say(type="stdin", data="x" * 500000)
        ws.say(type="interrupt")
        assert ws.result()["exit_code"] == 130


def test_pings_of_one_who_does_not_read_cost_nothing(service: Service) -> None:
    with Socket(service, rcvbuf=4096) as ws:
        before = server_kb(service)
        many = frame(PING, b"x" * 125) * 1000
        ws.sock.setblocking(False)
        sent = 0

        def push() -> bool:
            nonlocal sent
            try:
                sent += ws.sock.send(many[sent % len(many) :])
            except BlockingIOError:
                return False
            return True

        while sent < 200 * MB:
            if push():
                continue
            with Raw(service) as http:  # the server has had its turn in between
                http.send(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
                http.reply()
            if not push():
                break
        assert sent < 64 * MB
        assert server_kb(service) - before < GROWTH_KB or sanitized(service)


# ---------------------------------------------------------------------------- leaving


@pytest.mark.parametrize("how", ["reset", "close", "half", "frame"])
def test_a_client_that_goes_away_ends_its_program(service: Service, how: str) -> None:
    ws = Socket(service)
    name = ws.say(code=WAIT, **LONG).hear()["id"]
    ws.output("there\n")
    if how == "reset":
        ws.reset()
    elif how == "half":
        ws.half_close()
        ws.ended()
    elif how == "frame":
        ws.send(frame(CLOSE, b"\x03\xe8"))
        assert ws.frame().code == 1000
        ws.ended()
    ws.sock.close()
    assert eventually(lambda: was_left(service, name))


def test_a_program_may_go_on_without_its_client(service: Service) -> None:
    with Socket(service) as ws:
        ws.say(code="print(input())\nprint(input())", on_disconnect="continue", **LONG)
        name = ws.hear()["id"]
        ws.say(type="stdin", data="1\n").output("1\n")
        ws.say(type="stdin", data="2\n")
        ws.reset()

    # It reads its second line, or the end.
    assert eventually(lambda: look_up(service, name)["state"] == "done")
    assert look_up(service, name)["result"]["stdout"].startswith("1\n")


def test_a_websocket_without_a_request_is_closed(start_service: Callable[..., Service]) -> None:
    service = start_service("--profiles", "base", "--idle-s", "1")
    with Socket(service) as ws:
        assert ws.goodbye() == 1008


def test_websockets_count_as_connections(start_service: Callable[..., Service]) -> None:
    service = start_service("--profiles", "base", "--max-connections", "2")
    with Socket(service), Socket(service):
        with Raw(service) as http:
            assert http.reply().status == 503


def test_a_server_that_stops_says_so(tmp_path: Path) -> None:
    service = Service(tmp_path, "--profiles", "base")
    try:
        with Socket(service) as idle, Socket(service) as ws:
            ws.say(code=WAIT, **LONG).output("there\n")
            service.process.terminate()
            assert ws.goodbye() == 1001
            assert idle.goodbye() == 1001
        service.stop()
    finally:
        service.kill()


# ---------------------------------------------------------------------------- a real client


def test_a_real_client(service: Service) -> None:
    websockets = pytest.importorskip("websockets")

    async def talk() -> list[dict[str, Any]]:
        heard: list[dict[str, Any]] = []
        url = service.url.replace("http", "ws") + "/v1/execute/stream"
        async with websockets.connect(url) as ws:
            await ws.send(json.dumps({"code": ASK, **LONG}))
            await (await ws.ping())
            for answer in ("a\n", "b\n"):
                await ws.send(json.dumps({"type": "stdin", "data": answer}))
            async for text in ws:
                heard.append(json.loads(text))
            assert ws.close_code == 1000
        return heard

    heard = asyncio.run(talk())
    assert [m["type"] for m in heard][0] == "start" and heard[-1]["type"] == "result"
    assert "".join(m.get("data", "") for m in heard) == "? and? a b\n"

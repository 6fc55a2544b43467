"""Jupyter's channels: clients, comms, and messages that nobody should send."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from harness import LiveService, eventually
from jupyter import Channels, Jupyter, Message, is_state, printed, refused
from jupyter_kernel import BOTH
from raw_http import Closed
from raw_ws import BINARY, TEXT, frame, head

MB = 1 << 20


@pytest.fixture
def jupyter(live_service: LiveService) -> Iterator[Jupyter]:
    found = Jupyter(live_service.port)
    yield found
    found.wipe()


@pytest.fixture
def kernel(jupyter: Jupyter) -> Iterator[Channels]:
    with jupyter.open() as channels:
        yield channels


# ---- clients ----


def test_two_clients_of_one_kernel(jupyter: Jupyter) -> None:
    ident = jupyter.kernel()
    with jupyter.open(ident) as one, jupyter.open(ident, v1=True) as other:
        run = one.run("print(input('?'))", ["yes"])
        mine = {m["msg_id"] for m in run.messages if m["channel"] == "iopub"}
        seen = [other.hear() for _ in mine]
        assert {m["msg_id"] for m in seen} == mine  # and no input_request, no reply
        assert all(m["parent_header"]["msg_id"] == run.id for m in seen)
        assert other.ok("6 * 7").result == "42"


def test_who_comes_back_gets_what_was_missed(jupyter: Jupyter) -> None:
    ident = jupyter.kernel()
    with jupyter.open(ident, session="mine") as kernel:
        asked = kernel.start("print('before', flush=True)\nprint(input('?'))")
        kernel.until(lambda m: m["msg_type"] == "input_request")
    eventually(lambda: jupyter.get(f"/api/kernels/{ident}")["connections"] == 0)
    with jupyter.open(ident, session="other") as kernel:  # forgets what was kept
        kernel.send("input_reply", {"value": "text"}, "stdin")
        kernel.until(printed("text"))
    with jupyter.open(ident, session="mine") as kernel:
        second = kernel.start("print(input('?'))\n'done'")
        kernel.until(lambda m: m["msg_type"] == "input_request")
    eventually(lambda: jupyter.get(f"/api/kernels/{ident}")["connections"] == 0)
    path = jupyter.client.listed()["sandboxes"][0]["id"]
    name = "ker_" + ident.replace("-", "")
    answer = {"value": "late", "kernel_id": name}
    assert jupyter.ask("POST", f"/v1/sandboxes/{path}/stdin", answer).status == 200
    eventually(lambda: jupyter.get(f"/api/kernels/{ident}")["execution_state"] == "idle")
    with jupyter.open(ident, session="mine") as kernel:
        heard = [kernel.hear() for _ in range(4)]
        assert [m["msg_type"] for m in heard] == [
            "stream", "execute_result", "status", "execute_reply"
        ]  # fmt: skip
        assert all(m["parent_header"]["msg_id"] == second for m in heard)
        assert second != asked


# What it holds is to be above the least that a sandbox is charged for.
SHOWS = """
import time
from IPython.display import display
held = b"x" * (10 << 20)
time.sleep(0.5)
for i in range(14): display({"text/plain": "x" * 700_000}, raw=True)
"""


def charged_bytes(jupyter: Jupyter) -> float:
    assert (
        jupyter.ask("POST", "/v1/execute", {"code": "1"}).status == 200
    )  # for it, all is measured
    text = jupyter.ask("GET", "/metrics").body.decode()
    return float(text.split("\ncloche_memory_charged_bytes ")[1].split()[0])


def test_what_kernels_keep_together_is_bounded_and_charged(jupyter: Jupyter) -> None:
    """Five of them keep 8 MB each for those who are away; they have 16 MB together."""
    idents = [jupyter.kernel("base") for _ in range(5)]
    for ident in idents:
        with jupyter.open(ident, session="mine") as kernel:
            kernel.start(SHOWS)
            kernel.until(is_state("busy"))
        assert eventually(lambda: jupyter.get(f"/api/kernels/{ident}")["execution_state"] == "idle")
    shown, charged = [], charged_bytes(jupyter)
    for ident in idents:
        with jupyter.open(ident, session="mine") as kernel:
            asked = kernel.send("kernel_info_request", {})
            kernel.until(lambda m: m["parent_header"].get("msg_id") == asked)
            shown.append(sum(m["msg_type"] == "display_data" for m in kernel.strays))
    assert 20 <= sum(shown) <= 16 * MB // 700_000, shown
    assert max(shown) <= 8 * MB // 700_000, shown
    assert eventually(lambda: charged - charged_bytes(jupyter) > 12 * MB, 60)


def test_a_slow_client_holds_its_own_cell_only(jupyter: Jupyter) -> None:
    ident = jupyter.kernel()
    with jupyter.open(ident) as slow:
        slow.start("for n in range(4000): print('x' * 1000)\nprint('the end')")
        slow.until(printed("x"))
        with jupyter.open() as other:
            assert other.ok("'free'").result == "'free'"
        slow.until(printed("the end"))


def test_one_who_runs_a_cell_and_reads_nothing_is_cut_off(jupyter: Jupyter) -> None:
    """What others ask comes to it as well: it must not pile up without a bound."""
    ident = jupyter.kernel()
    header = {"msg_id": "x", "msg_type": "kernel_info_request", "pad": "y" * 8000}
    message = {"header": header, "parent_header": {}, "metadata": {}, "content": {}}
    text = frame(TEXT, json.dumps(message).encode())
    with jupyter.open(ident) as slow, jupyter.open(ident) as other:
        slow.start("input()")
        slow.until(lambda m: bool(m["msg_type"] == "input_request"))
        for _ in range(200):  # each time 64 questions, of which two messages of 8 KB go to all
            other.socket.send(text * 64)
            for _ in range(64):
                other.until(lambda m: bool(m["msg_type"] == "kernel_info_reply"))
            other.strays.clear()
            if jupyter.get(f"/api/kernels/{ident}")["connections"] == 1:
                return
    raise AssertionError("it was not cut off")


def test_a_question_that_is_too_long_gets_an_empty_answer(kernel: Channels) -> None:
    def matches(code: str) -> Any:
        return kernel.ask("complete_request", code=code, cursor_pos=4).reply["matches"]

    assert "print" in matches("prin")
    assert matches("prin\n" + "#" * (600 << 10)) == []


# ---- comms ----

COMMS = """
from comm import get_comm_manager, create_comm
heard = []
def target(comm, message):
    heard.append(message["content"]["data"])
    def on_msg(m):
        heard.append((m["content"]["data"], [bytes(b) for b in m["buffers"]]))
        comm.send({"echo": m["content"]["data"]}, buffers=[b"\\x00\\x01", *m["buffers"]])
        print("handled")
    comm.on_msg(on_msg)
get_comm_manager().register_target("test", target)
"""


def comm_run(kernel: Channels, kind: str, content: Message, buffers: Any = None) -> list[Message]:
    """A comm's message has no reply: its end is a status."""
    ident = kernel.send(kind, content, buffers=buffers)
    mine: list[Message] = []
    while len([m for m in mine if m["msg_type"] == "status"]) < 2:
        message = kernel.hear()
        if message["parent_header"].get("msg_id") == ident:
            mine.append(message)
    return mine


@BOTH
def test_comms_carry_bytes(jupyter: Jupyter, v1: bool) -> None:
    pytest.importorskip("comm")
    with jupyter.open(v1=v1) as kernel:
        kernel.ok(COMMS)
        comm_run(kernel, "comm_open", {"comm_id": "c1", "target_name": "test", "data": {"a": 1}})
        mine = comm_run(kernel, "comm_msg", {"comm_id": "c1", "data": {"b": 2}}, [b"", b"\xff" * 5])
        (echo,) = [m for m in mine if m["msg_type"] == "comm_msg"]
        assert echo["content"] == {"comm_id": "c1", "data": {"echo": {"b": 2}}}
        assert echo["buffers"] == [b"\x00\x01", b"", b"\xff" * 5]
        assert [m["content"]["text"] for m in mine if m["msg_type"] == "stream"] == ["handled\n"]
        assert (
            kernel.ok("heard").result
            == "[{'a': 1}, ({'b': 2}, [b'', b'\\xff\\xff\\xff\\xff\\xff'])]"
        )
        known = kernel.ask("comm_info_request", target_name="test").reply["comms"]
        assert known == {"c1": {"target_name": "test"}}
        run = kernel.ok("c = create_comm(target_name='mine', data={'x': 1}); c.close()")
        assert run.kinds[2:4] == ["comm_open", "comm_close"]
        comm_run(kernel, "comm_close", {"comm_id": "c1", "data": {}})
        assert kernel.ask("comm_info_request").reply["comms"] == {}
        mine = comm_run(kernel, "comm_open", {"comm_id": "c2", "target_name": "none", "data": {}})
        assert "comm_close" in [m["msg_type"] for m in mine]


def test_widgets(kernel: Channels) -> None:
    pytest.importorskip("ipywidgets")
    run = kernel.ok(
        "import ipywidgets\ns = ipywidgets.IntSlider(value=3)\n"
        "s.observe(lambda change: print('now', change['new']), 'value')\ns"
    )
    opened = {content["comm_id"]: content for content in run.of("comm_open")}
    assert len(opened) >= 2  # a widget and its layout
    (shown,) = run.of("display_data", "execute_result")
    model = shown["data"]["application/vnd.jupyter.widget-view+json"]["model_id"]
    assert opened[model]["data"]
    state = {"value": 7}
    data = {"method": "update", "state": state, "buffer_paths": [], "sync_data": state}
    data["method"] = "backbone" if "state" not in opened[model]["data"] else "update"
    mine = comm_run(kernel, "comm_msg", {"comm_id": model, "data": data})
    assert "now 7\n" in [m["content"].get("text") for m in mine if m["msg_type"] == "stream"]
    assert kernel.ok("s.value").result == "7"


# ---- what nobody should send ----


def bad_frames() -> list[tuple[int, bytes]]:
    header = {"msg_id": "a", "msg_type": "execute_request"}
    return [
        (TEXT, b"not json"),
        (TEXT, b"[]"),
        (TEXT, b"{}"),
        (TEXT, b'{"header":{},"content":{}}'),
        (TEXT, b'{"header":{"msg_id":5,"msg_type":"x"},"content":{}}'),
        (TEXT, json.dumps({"header": header, "content": 5}).encode()),
        (TEXT, json.dumps({"header": header, "content": {}, "channel": "iopub2"}).encode()),
        (TEXT, json.dumps({"header": header | {"x": "y" * 9000}, "content": {}}).encode()),
        (TEXT, json.dumps({"header": header | {"msg_type": "dance"}, "content": {}}).encode()),
        (TEXT, b'{"a":' * 100 + b"1" + b"}" * 100),
        (TEXT, json.dumps({"header": header, "content": {"code": "\0"}}).encode()),
        (BINARY, b""),
        (BINARY, b"\xff" * 8),
        (BINARY, b"\xff" * 64),
        (BINARY, (1).to_bytes(4, "big") + (2).to_bytes(4, "big")),
        (BINARY, (2).to_bytes(8, "little") + (24).to_bytes(8, "little") * 2),
        (BINARY, (7).to_bytes(8, "little") + (64).to_bytes(8, "little") * 7),
    ]


@BOTH
def test_messages_that_are_none_are_answered(jupyter: Jupyter, v1: bool) -> None:
    with jupyter.open(v1=v1) as kernel:
        for opcode, data in bad_frames():
            kernel.socket.send(frame(opcode, data))
            answer = kernel.hear()
            assert answer["msg_type"] == "stream" and answer["parent_header"] == {}, (data, answer)
            assert "not understood" in answer["content"]["text"]
        assert kernel.ok("'well'").result == "'well'"


def test_odd_contents_are_taken_as_they_come(kernel: Channels) -> None:
    cells: list[Message] = [{}, {"code": 5}, {"code": "1", "silent": "yes", "user_expressions": []}]
    for content in cells:
        assert kernel.finish(kernel.send("execute_request", content)).reply["status"] == "ok"
    for kind in ("complete_request", "inspect_request", "is_complete_request", "history_request"):
        odd: list[Message] = [{}, {"code": 5, "cursor_pos": "x", "n": "many"}, {"cursor_pos": -5}]
        for content in odd:
            kernel.finish(kernel.send(kind, content))
    comm_run(kernel, "comm_msg", {"comm_id": 5})
    comm_run(kernel, "comm_open", {})
    kernel.send("input_reply", {"value": "nobody asked"}, "stdin")
    assert kernel.ok("'well'").result == "'well'"


def test_a_frame_that_is_too_large_ends_the_connection_alone(jupyter: Jupyter) -> None:
    ident = jupyter.kernel()
    with jupyter.open(ident) as kernel:
        kernel.ok("a = 1")
        kernel.socket.send(head(TEXT, 1 << 30, masked=True) + b"\0" * 1000)
        assert kernel.socket.goodbye() == 1009
    with jupyter.open(ident) as kernel:
        assert kernel.ok("a").result == "1"


def test_who_is_no_websocket_hears_so(jupyter: Jupyter) -> None:
    ident = jupyter.kernel()
    refused(jupyter.ask("GET", f"/api/kernels/{ident}/channels"), 426)
    with pytest.raises((AssertionError, Closed)):
        jupyter.open("00000000-0000-0000-0000-000000000000")


def test_many_requests_at_once(kernel: Channels) -> None:
    """More than may wait: all are answered, in their order."""
    held = kernel.start("input()")
    kernel.until(lambda m: m["msg_type"] == "input_request")
    asked = [kernel.start(f"{n}") for n in range(300)]
    kernel.send("input_reply", {"value": ""}, "stdin")
    replies: dict[str, str] = {}
    while len(replies) < 301:
        message = kernel.hear()
        if message["msg_type"] == "execute_reply":
            replies[message["parent_header"]["msg_id"]] = message["content"]["status"]
    assert replies[held] == "ok" and replies[asked[0]] == "ok" and replies[asked[255]] == "ok"
    assert replies[asked[299]] == "error"


# ---- kernels that lie ----

LIES = """
channel = input.__globals__['channel']
def say(**members):
    channel.say({"id": channel.id, **members})
say(ev="comm", value={"type": "status", "content": {"execution_state": "dead"}})
say(ev="comm", value={"type": "comm_msg", "content": 5, "metadata": [], "buffers": "x"})
say(ev="comm", value={"type": "comm_msg", "content": {}, "buffers": ["not base64!", 5, None]})
say(ev="comm", value=5)
say(ev="expressions", value=[])
say(ev="payload", value="text")
say(ev="payload", value={"source": "page"})
say(ev="display", data=5, metadata=[], display_id=7)
say(ev="nonsense", value={})
"""


def test_a_kernel_that_lies_forges_nothing(kernel: Channels) -> None:
    run = kernel.run(LIES)
    assert run.states == ["busy", "idle"]  # none of its own making
    assert all(isinstance(m["content"], dict) for m in run.messages), run.messages
    assert run.reply["status"] == "ok" and run.reply["user_expressions"] == {}
    assert run.reply["payload"] == [{}, {"source": "page"}]
    assert kernel.ok("1").result == "1"


@pytest.mark.once
def test_payloads_have_a_bound(kernel: Channels) -> None:
    run = kernel.run(
        "channel = input.__globals__['channel']\n"
        "for _ in range(40):\n"
        "    channel.say({'id': channel.id, 'ev': 'payload', 'value': {'a': 'x' * 1_000_000}})"
    )
    assert run.reply["status"] == "ok" and 10 <= len(run.reply["payload"]) <= 16


@pytest.mark.once
def test_a_flood_for_who_only_looks_on(jupyter: Jupyter) -> None:
    """It is cut off, and the one who runs it gets all."""
    ident = jupyter.kernel()
    with jupyter.open(ident) as looker, jupyter.open(ident) as kernel:
        run = kernel.ok("for _ in range(16): print('x' * 999_999)")
        assert len(run.text()) == 16_000_000
        again = kernel.ok("for _ in range(16): print('x' * 999_999)")
        assert len(again.text()) == 16_000_000
        assert eventually(lambda: jupyter.get(f"/api/kernels/{ident}")["connections"] == 1)
        with pytest.raises(Closed):
            while True:
                looker.socket.frame()

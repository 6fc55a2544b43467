"""Executions in live kernels as streams: their events, resumed, left, and read slowly."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from client import DEADLINE_S
from harness import LiveService, eventually
from http_client import Event, Stream
from live import LINES, SSE, Box, Client, error, events_after
from raw_http import resident_mb

CODE = """
import sys
print('out')
print('err', file=sys.stderr)
display('shown', display_id='d')
from IPython.display import clear_output
clear_output(wait=True)
'value'
"""


@pytest.fixture
def box(live_service: LiveService) -> Iterator[Box]:
    with Client(live_service.port).box() as made:
        yield made


def check(events: list[Event], box: Box, execution: str) -> None:
    kernel = box.made["kernels"][0]["id"]
    assert [event.id for event in events] == list(range(1, len(events) + 1))
    found: list[tuple[str, Any]] = []
    for event in events[:-1]:
        if event.type.startswith("std") and found[-1][0] == event.type:  # in pieces
            found[-1][1]["data"] += event.data["data"]
        else:
            found.append((event.type, dict(event.data)))
    assert found == [
        ("start", {"id": execution, "kernel_id": kernel}),
        ("stdout", {"data": "out\n"}),
        ("stderr", {"data": "err\n"}),
        (
            "display",
            {
                "data": {"text/plain": "'shown'"},
                "metadata": {},
                "display_id": "d",
                "update": False,
            },
        ),
        ("clear", {"wait": True}),
        ("result", {"data": {"text/plain": "'value'"}, "metadata": {}, "execution_count": 1}),
    ]
    end = events[-1]
    assert end.type == "end" and end.data["status"] == "ok" and end.data["id"] == execution
    assert not {"stdout", "stderr", "results", "text"} & set(end.data)  # they were told before


@pytest.mark.parametrize("form", [SSE, LINES], ids=["sse", "ndjson"])
def test_the_events_of_an_execution(box: Box, form: dict[str, str]) -> None:
    with box.stream(CODE, form) as stream:
        kind = stream.reply.header("content-type") or ""
        assert kind.startswith(form["Accept"])
        events = list(stream)
    check(events, box, stream.id)
    for after in (0, 3, len(events)):
        with events_after(box.client, stream.id, after, form) as again:
            assert list(again) == events[after:]
    whole = box.client.ask("GET", f"/v1/executions/{stream.id}").json["result"]
    assert whole == whole | events[-1].data


def test_an_error_is_an_event(box: Box) -> None:
    with box.stream("print('before')\n1/0") as stream:
        error = stream.until("error").data
        assert error["name"] == "ZeroDivisionError" and error["traceback"]
        assert stream.until("end").data["error"] == error


def test_a_failure_of_the_service_is_the_last_event(box: Box) -> None:
    with box.stream("print('runs', flush=True)\nwhile True: pass") as stream:
        stream.printed("runs")
        assert box.delete().status == 204
        last = list(stream)[-1]
    assert last.type == "failed" and last.data["error"]["code"] == "sandbox_gone"
    assert "deleted" in last.data["error"]["message"]


def test_a_stream_can_be_taken_up_by_somebody_else(box: Box) -> None:
    with box.stream(
        "print('one', flush=True)\ninput()\nprint('two')", on_disconnect="continue"
    ) as s:
        s.printed("one")
        number = s.until("input").id or 0
    with events_after(box.client, s.id, number) as rest:
        box.do("/stdin", value="")
        rest.printed("two")
        assert rest.until("end").data["status"] == "ok"
    with events_after(box.client, s.id, number, LINES) as rest:
        assert [event.type for event in rest] == ["stdout", "end"]


def test_of_a_long_stream_the_last_events_are_kept(box: Box) -> None:
    code = "for i in range(300):\n    display(i)\n    print(str(i % 10) * 60_000)\n1 / 0"
    with box.stream(code) as whole:
        events = [(e.id, e.type, e.data) for e in whole]
    last = events[-1][0] or 0
    for number in (last - 1, last - 40):
        with events_after(box.client, whole.id, number) as rest:
            assert [(e.id, e.type, e.data) for e in rest] == events[number - last :]
    with events_after(box.client, whole.id, 0, LINES) as rest:
        kept = [e.id or 0 for e in rest]
    assert kept[0] > 1 and kept == list(range(kept[0], last + 1))


def test_a_client_that_leaves_interrupts(box: Box) -> None:
    box.run("x = 1")
    with box.stream("print('runs', flush=True)\nwhile True: pass") as stream:
        stream.printed("runs")
    with events_after(box.client, stream.id, 0) as rest:
        assert rest.until("end").data["status"] == "interrupted"
    connection = box.later("print('runs', flush=True)\nwhile True: pass")
    while box.get()["kernels"][0]["state"] != "busy":
        pass
    connection.close()
    assert eventually(lambda: box.get()["kernels"][0]["state"] == "idle")
    assert box.text("x") == "1"


def test_a_client_that_leaves_the_queue_takes_its_cell_along(box: Box) -> None:
    with box.stream("y = 0\ninput()") as stream:
        stream.until("input")
        waiting = box.later("y += 1")
        while box.get()["kernels"][0]["queued"] < 1:
            pass
        waiting.close()
        assert eventually(lambda: box.get()["kernels"][0]["queued"] == 0)
        box.do("/stdin", value="")
        stream.until("end")
    assert box.text("y") == "0"


def test_a_client_that_leaves_may_let_it_go_on(box: Box) -> None:
    code = "input()\nz = 1\nz + 1"
    with box.stream(code, on_disconnect="continue") as stream:
        stream.until("input")
    box.do("/stdin", value="")
    with events_after(box.client, stream.id, 0) as rest:
        assert rest.until("end").data["status"] == "ok"
    whole = box.later(
        "import time\nwhile 'go' not in __import__('os').listdir(): time.sleep(0.001)\nz = 2",
        on_disconnect="continue",
    )
    while box.get()["kernels"][0]["state"] != "busy":
        pass
    whole.close()
    other = box.kernel()
    box.run("open('go', 'w').close()", kernel_id=other)
    assert box.text("z") == "2"


def test_executions_belong_to_nobody_else(box: Box) -> None:
    error(box.client.ask("GET", "/v1/executions/exe_none/events"), 404, "no_execution")
    result = box.run("1")
    error(box.client.ask("GET", f"/v1/executions/{result['id']}/events?after=x"), 422, "bad_value")


# ---------------------------------------------------------------------------- slow readers


FLOODS = {
    "prints": "x = 'x' * 100_000\nwhile True: print(x)",
    "displays": "x = 'x' * 100_000\nwhile True: display(x)",
    "clears": "from IPython.display import clear_output\n"
    "x = 'x' * 100_000\nwhile True: print(x); clear_output()",
}


@pytest.mark.parametrize("kind", FLOODS)
def test_a_client_that_does_not_read_holds_the_program(
    live_service: LiveService, box: Box, kind: str
) -> None:
    other = box.kernel()
    count = FLOODS[kind].replace(
        "while True:",
        "m = open('count', 'w+b', 0)\n"
        "n = 0\nwhile True: n += 1; m.seek(0); m.write(b'%12d' % n);",
    )
    before = resident_mb(live_service)

    def written() -> int:
        text = box.run("print(open('count').read())", kernel_id=other)["stdout"]
        return int(text.strip() or 0)

    with box.stream("print('runs', flush=True)\n" + count, output_bytes=1 << 24) as stream:
        stream.printed("runs")
        last = -1

        def stands() -> bool:
            nonlocal last
            now = written()
            same, last = now == last and now > 5, now
            return same

        assert eventually(stands, seconds=DEADLINE_S, step_s=0.3), last
        if "asan" not in str(live_service.caller.command()[0]):
            assert resident_mb(live_service) - before < 40
        box.do("/interrupt")
        assert stream.until("end").data["status"] == "interrupted"
    assert box.text("2 + 2") == "4"


def test_who_obeys_an_interrupt_is_heard_though_its_reader_is_slow(box: Box) -> None:
    """A large message makes the server listen to no kernel for a while, and then to all again."""
    code = """
print('runs', flush=True)
try:
    while True: print('x' * 100_000)
except KeyboardInterrupt:
    display('y' * 200_000)
"""
    other = box.kernel()
    box.run("mine = 1")
    with box.stream(code, output_bytes=1 << 24) as stream:
        stream.printed("runs")
        seen: list[int] = []

        def stands() -> bool:
            seen.append(int(box.get("")["usage"]["cpu_ms"]))
            return len(seen) > 1 and seen[-1] - seen[-2] < 20

        assert eventually(stands, step_s=0.5), seen
        box.run("display('z' * 200_000)", kernel_id=other)
        box.do("/interrupt")
        assert eventually(lambda: box.get("/kernels")["kernels"][0]["state"] == "idle")
        assert stream.until("end").data["status"] in ("ok", "interrupted")
    result = box.run("mine")
    assert result["status"] == "ok" and not result["kernel_restarted"], result


def test_what_was_cleared_is_not_missing(box: Box) -> None:
    code = """
from IPython.display import clear_output
for i in range(100):
    clear_output(wait=True)
    print('x' * 1000)
"""
    result = box.run(code, output_bytes=10_000)
    assert not result["stdout_truncated"] and result["limit_hit"] is None, result
    assert result["stdout"] == "x" * 1000 + "\n"


def test_a_slow_reader_gets_everything(box: Box) -> None:
    other = box.kernel()
    code = (
        "print('runs', flush=True)\n"
        "for i in range(200):\n    display('x' * 50000)\n    print(i)\n"
        "    open('at', 'w').write(str(i))"
    )
    with box.stream(code) as stream:
        stream.printed("runs")
        seen = [""]

        def stands() -> bool:
            seen.append(box.run("print(open('at').read())", kernel_id=other)["stdout"])
            return seen[-1] == seen[-2] != ""

        assert eventually(stands, step_s=0.3) and seen[-1] != "199\n"
        events = list(stream)
    assert sum(event.type == "display" for event in events) == 200
    text = "".join(event.data["data"] for event in events if event.type == "stdout")
    assert text.split() == [str(i) for i in range(200)]


@pytest.mark.once
def test_a_quiet_stream_shows_that_it_is_alive(box: Box) -> None:
    code = "import time\ntime.sleep(1000)"
    path = box.path + "/execute"
    with Stream(box.port, "POST", path, {"code": code}, LINES) as stream:
        blocks = stream.blocks(b"\n")
        assert json.loads(next(blocks))["event"] == "start"
        assert next(blocks) == b""

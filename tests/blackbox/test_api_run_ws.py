"""GET /v1/run: a program that is talked to while it runs."""

from __future__ import annotations

import pytest

from harness import Service
from http_client import post
from live import error
from raw_ws import talk, until

CHILD_ASKS = """
import os, sys
if os.fork() == 0:
    print(input('? '))
    sys.stdout.flush()
    os._exit(0)
os.wait()
"""


def test_a_conversation_has_the_events_of_a_live_one(service: Service) -> None:
    with talk(service) as ws:
        ws.say(type="execute", code="a = input()\nb = input()\ndisplay(a)\nb", timeout_ms=60000)
        accepted, start = ws.hear(), ws.hear()
        name = accepted["execution_id"]
        assert accepted == {"type": "accepted", "execution_id": name}
        assert start == {"type": "start", "seq": 1, "execution_id": name, "id": name}
        ws.say(type="stdin", value="one").say(type="stdin", data="two\n")
        messages = until(ws, "end")
        assert [m["type"] for m in messages] == ["display", "result", "end"]
        assert [m["seq"] for m in messages] == [2, 3, 4]
        assert messages[0]["data"] == {"text/plain": "'one'"}
        assert messages[1]["data"] == {"text/plain": "'two'"}
        ws.goodbye()


def test_stdin_has_an_end(service: Service) -> None:
    with talk(service) as ws:
        ws.say(code="import sys\nsys.stdin.read()", timeout_ms=60000)
        until(ws, "start")
        ws.say(type="stdin", data="all").say(type="stdin", eof=True)
        assert until(ws, "end")[0]["data"] == {"text/plain": "'all'"}
        ws.goodbye()


def test_input_tells_that_it_waits(service: Service) -> None:
    """Its prompt is in the event, and not in the output."""
    code = (
        "import getpass\nprint('hi')\nname = input('Who? ')\nword = getpass.getpass('Word: ')\n"
        "try: input()\nexcept EOFError: print('end')\n[name, word]"
    )
    with talk(service) as ws:
        ws.say(code=code, allow_stdin=True, timeout_ms=60000)
        asked = until(ws, "input")
        assert "".join(m["data"] for m in asked if m["type"] == "stdout") == "hi\n"
        assert (asked[-1]["prompt"], asked[-1]["password"]) == ("Who? ", False)
        ws.say(type="stdin", value="Ada")
        asked = until(ws, "input")
        assert (asked[-1]["prompt"], asked[-1]["password"]) == ("Word: ", True)
        ws.say(type="stdin", value="plugh")
        assert until(ws, "input")[-1]["prompt"] == ""
        ws.say(type="stdin", eof=True)
        result = until(ws, "result")[-1]
        assert result["data"] == {"text/plain": "['Ada', 'plugh']"}
        assert until(ws, "end")[-1]["status"] == "ok"
        ws.goodbye()


@pytest.mark.parametrize(
    "code", ["import io, sys\nsys.stdin = io.StringIO('own\\n')\ninput('? ')", CHILD_ASKS]
)
def test_input_of_something_else_tells_nothing(service: Service, code: str) -> None:
    with talk(service) as ws:
        ws.say(code=code, allow_stdin=True, timeout_ms=60000)
        ws.say(type="stdin", value="own")
        told = until(ws, "end")
        assert "input" not in [m["type"] for m in told]
        assert "".join(m["data"] for m in told if m["type"] == "stdout").startswith("? ")
        assert "own" in str(told)
        ws.goodbye()


def test_input_without_that_prints_its_prompt(service: Service) -> None:
    with talk(service) as ws:
        ws.say(code="input('Who? ')", timeout_ms=60000)
        ws.say(type="stdin", value="Ada")
        told = until(ws, "end")
        assert "".join(m["data"] for m in told if m["type"] == "stdout") == "Who? "
        ws.goodbye()


def test_an_interrupt_reaches_input(service: Service) -> None:
    with talk(service) as ws:
        ws.say(code="input('Who? ')", allow_stdin=True, timeout_ms=60000)
        until(ws, "input")
        ws.say(type="interrupt")
        assert until(ws, "end")[-1]["status"] == "interrupted"
        ws.goodbye()


def test_only_who_talks_to_it_may_be_asked(service: Service) -> None:
    reply = post(service.port, "/v1/run", {"code": "1", "allow_stdin": True})
    error(reply, 422, "bad_fields")


def test_an_interrupt_is_the_programs_error(service: Service) -> None:
    with talk(service) as ws:
        ws.say(code="print('there', flush=True)\nimport time\nwhile True: time.sleep(0.1)")
        until(ws, "stdout")
        ws.say(type="interrupt")
        messages = until(ws, "end")
        assert messages[-2]["type"] == "error" and messages[-2]["name"] == "KeyboardInterrupt"
        assert messages[-1]["status"] == "interrupted"
        ws.goodbye()


def test_a_request_that_is_wrong_is_refused(service: Service) -> None:
    with talk(service) as ws:
        ws.say(code="1", figures=True)
        refused = ws.hear()
        assert (refused["type"], refused["error"]["code"]) == ("failed", "bad_fields")

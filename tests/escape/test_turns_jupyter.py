"""As in test_turns.py: what a client of a Jupyter kernel sends, and what a hostile kernel says.
Long messages are read, looked at, written and freed beside the loop, in both directions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from http_client import ask
from jupyter import Channels, Jupyter
from live import Client
from raw_ws import TEXT, head
from test_live_hostile import TOOLS
from turns import LONGEST_S, MB, Turns

LONG = 9 * MB  # of 10 that a message may have


@pytest.fixture
def place(port: int) -> Iterator[str]:
    """A Jupyter kernel's sandbox."""
    client = Client(port)
    others = {box["id"] for box in client.listed()["sandboxes"]}
    Jupyter(port).kernel()
    (made,) = {box["id"] for box in client.listed()["sandboxes"]} - others
    yield f"/v1/sandboxes/{made}"
    assert client.ask("DELETE", f"/v1/sandboxes/{made}").status == 204


@pytest.fixture
def kernel(port: int, place: str) -> Iterator[Channels]:
    assert place
    (found,) = Jupyter(port).get("/api/kernels")
    with Channels(port, found["id"]) as kernel:
        yield kernel


def send(kernel: Channels, kind: str, content: Any, **more: Any) -> str:
    """Unmasked, so to say: a mask takes Python longer than all that is looked at here."""
    header = {"msg_id": "long", "msg_type": kind, "session": kernel.session} | more.pop(
        "header", {}
    )
    message = {"channel": "shell", "header": header, "parent_header": {}, "metadata": {}, **more}
    data = json.dumps(message | {"content": content}).encode()
    kernel.socket.send(head(TEXT, len(data), masked=True) + bytes(4) + data)
    return "long"


def paid_ms(port: int, place: str) -> float:
    return float(ask(port, "GET", place).json["usage"]["cpu_ms"])


ZEROS = [0] * 480_000
NAMES = {f"n{i}": 0 for i in range(240_000)}
TEXTS = {"plain": "x" * LONG, "lines": "\n" * (LONG // 2), "odd": "\x01" * (LONG // 6)}
CELL = {"code": "1", "silent": False, "stop_on_error": False}
COMM = {"comm_id": "x"}

MESSAGES: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "values in the header": ("kernel_info_request", {}, {"header": {"x": ZEROS}}),
    "names in the content": ("kernel_info_request", NAMES, {}),
    "values as an expression": (
        "execute_request",
        CELL | {"user_expressions": {"x": ZEROS}},
        {},
    ),
    "values of a comm": ("comm_msg", COMM | {"data": ZEROS}, {}),
    "values beside a comm": ("comm_msg", COMM, {"metadata": {"x": ZEROS}}),
}
for name, text in TEXTS.items():
    MESSAGES |= {
        f"{name}: header": ("kernel_info_request", {}, {"header": {"x": text}}),
        f"{name}: type": (text, {}, {}),
        f"{name}: code to complete": ("complete_request", {"code": text, "cursor_pos": 1}, {}),
        f"{name}: pattern": ("history_request", {"pattern": text}, {}),
        f"{name}: target": ("comm_info_request", {"target_name": text}, {}),
        f"{name}: debugger": ("debug_request", {"command": text}, {}),
        f"{name}: cell": (
            "execute_request",
            CELL | {"code": "#" + (text if name != "lines" else text[:MB])},
            {},
        ),
        f"{name}: expression": ("execute_request", CELL | {"user_expressions": {"x": text}}, {}),
        f"{name}: comm": ("comm_msg", COMM | {"data": text}, {}),
        f"{name}: input": ("input_reply", {"value": text}, {}),
    }


@pytest.mark.once
@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_takes_no_long_turn(port: int, place: str, kernel: Channels, name: str) -> None:
    kind, content, more = MESSAGES[name]
    kernel.ok("1")
    turns, paid = Turns(port), paid_ms(port, place)
    send(kernel, kind, content, **more)
    assert kernel.ok("40 + 2").result == "42"
    assert turns.longest() <= LONGEST_S
    assert paid_ms(port, place) - paid > 15


# --------------------------------------------------------------------------- what a kernel says

# The answer to the next questions, whose numbers are guessed.
ANSWERS = {
    "values": "b'0,' * 480_000 + b'0'",
    "strings": """b'"x",' * 480_000 + b'"x"'""",
    "one string": """b'"' + b'x' * 19_000_000 + b'"'""",
    "one string of lines": r"""b'"' + b'\\n' * 9_000_000 + b'"'""",
}
SAYS = (
    TOOLS
    + """
start = b'{"ev":"reply","id":"%%d","ok":true,"result":{"matches":['
answers = [start.replace(b'%%d', b'%%d' %% n) + %s + b']}}' for n in range(1, 8)]
files = [memfd(answer) for answer in answers]
"""
)


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_takes_no_long_turn(port: int, kernel: Channels, name: str) -> None:
    kernel.ok(SAYS % ANSWERS[name])
    cell = kernel.start("input()\nfor file in files: send_fd(file)\nprint('said')")
    kernel.until(lambda m: m["msg_type"] == "input_request")
    turns = Turns(port)
    question = kernel.send("complete_request", {"code": "x", "cursor_pos": 1})
    kernel.send("input_reply", {"value": ""}, "stdin")
    replies = {cell, question}
    while replies:
        message = kernel.hear()
        if message["msg_type"] in ("complete_reply", "execute_reply"):
            replies.remove(message["parent_header"]["msg_id"])
        if message["msg_type"] == "complete_reply":
            assert message["content"]["status"] == "ok"
    assert turns.longest() <= LONGEST_S


EVENTS = {
    "an error of many lines": "'error', name='x', value='x', traceback=[''] * 480_000",
    "a comm": "'comm', value={'type': 'comm_msg', 'content': {'x': 'x' * 9_000_000}}",
    "a display": "'display', data={'text/plain': 'x' * 19_000_000}, metadata={}",
    "a result": "'result', data={'text/plain': '\\n' * 9_000_000}, metadata={}",
}


@pytest.mark.parametrize("name", EVENTS)
def test_an_event_takes_no_long_turn(port: int, kernel: Channels, name: str) -> None:
    kernel.ok(TOOLS)
    turns = Turns(port)
    kernel.run(f"send_fd(memfd(text(event({EVENTS[name]}))))\nimport time\ninput()", answers=[""])
    assert turns.longest() <= LONGEST_S

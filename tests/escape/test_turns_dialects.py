"""As in test_turns.py: what a client of another API, or a program behind it, may have the server
read, decode or write. None of it takes a long turn."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import LiveService
from http_client import ask
from ipybox import put, serving
from live import Client
from runtime_session import Session
from turns import FEW_S, MB, Turns

# ------------------------------------------------------------------------------- Sandbox Runtime


@pytest.fixture
def session(port: int) -> Iterator[Session]:
    session = Session(port, "turns")
    yield session
    assert session.end().status == 200


# Bytes that are neither UTF-8 nor GBK; that are; and those that JSON makes six times as long.
TEXTS = {
    "no text": rb"b'\xff'",
    "GBK": "'\u4e2d'.encode('gbk')".encode(),
    "control characters": rb"b'\x01'",
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_piece_of_a_file_takes_no_long_turn(session: Session, name: str) -> None:
    session.code(f"open('a.txt', 'wb').write({TEXTS[name].decode()} * (4 << 20))")
    turns = Turns(session.port)
    reply = session.get("readfile", "a.txt", f"?buffer_size={4 * MB}")
    assert reply.status == 200
    assert turns.longest() <= FEW_S
    assert 0 < reply.json["offset"] < 4 * MB


# What scripts print, and whether they give a variable back.
SCRIPTS = {
    "a variable of escapes": (r"x = '\n' * (7 << 20)", True),
    "a variable of numbers": ("x = [0] * (5 << 20)", True),
    "no variable": ("import os\nfor i in range(15): os.write(2, b'req_' * (1 << 18))", True),
    "spaces": ("import os\nfor i in range(15): os.write(2, b' ' * (1 << 20))", False),
    "newlines": ("import os\nfor i in range(15): os.write(1, b'\\n' * (1 << 20))", False),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_takes_no_long_turn(session: Session, name: str) -> None:
    code, gives = SCRIPTS[name]
    session.code("1")
    turns = Turns(session.port)
    told = session.code(code, output_params=["x"] if gives else [])
    assert turns.longest() <= FEW_S
    assert (len(str(told.get("output_variables"))) > 7 * MB) == name.startswith("a variable")


# --------------------------------------------------------------------------------------- ipybox

SAYS = """
import os
def say(data):
    view = memoryview(data)
    while view: view = view[os.write(3, view):]  # what is told, see modules.py
    os._exit(0)
"""
MODULES = {
    "escapes": (b"#" + b"\\" * (7 * MB), 200),
    "names": (
        b"say(b'{\"found\":{' + b','.join(b'\"a%d\":\"\"' % i for i in range(240_000)) + b'}}')",
        200,
    ),
    "no JSON": (b"say(b'{\"found\":{\"a\":' + b'[' * 60 + b'0,' * 400_000)", 500),
    "one word": (b"say(b'x' * (15 << 20))", 500),
}


@pytest.fixture
def ipybox(tmp_path: Path) -> Iterator[LiveService]:
    yield from serving(tmp_path)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_takes_no_long_turn(ipybox: LiveService, name: str) -> None:
    source, status = MODULES[name]
    assert put(ipybox, "turns.py", SAYS.encode() + source).status == 200
    turns = Turns(ipybox.port)
    reply = ask(ipybox.port, "GET", "/modules?q=turns")
    assert turns.longest() <= FEW_S
    assert reply.status == status, reply.body[:500]


# -------------------------------------------------------------------------------- the native API

ODD = "\x01"  # six bytes of JSON


def test_a_search_in_the_metadata_of_many_takes_no_long_turn(port: int) -> None:
    client = Client(port)
    most = {f"{i}{ODD * 20}": ODD * 180 for i in range(31)} | {"user": 'somebody "\u00e4'}
    with contextlib.ExitStack() as stack:
        boxes = [stack.enter_context(client.box(metadata=most)) for _ in range(30)]
        last = stack.enter_context(client.box(metadata=most | {"user": 'me "\u00e4'}))
        turns = Turns(port)
        found: list[str] = []
        after: str | None = "0"
        while after is not None:
            query = f"?metadata.user=me%20%22%C3%A4&after={after}"
            page = ask(port, "GET", f"/v1/sandboxes{query}").json
            found += [box["id"] for box in page["sandboxes"]]
            after = page["next"]
        assert found == [last.path.rsplit("/", 1)[1]] and len(boxes) == 30
        assert turns.longest() <= FEW_S
        too_long = {str(i): ODD * 1024 for i in range(32)}
        assert last.ask("PATCH", "", {"metadata": too_long}).status == 422

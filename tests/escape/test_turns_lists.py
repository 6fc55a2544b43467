"""As in test_turns.py: lists, and what they have many of, with names that JSON makes a dozen times
as long. They are written a slice at a time, and all that are asked for at once share a turn."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest

from http_client import Connection, Reply, ask, post
from jupyter import Jupyter
from live import Box, Client
from runtime_session import Session
from turns import FEW_S, LONGEST_S, Turns

FLAT = 9_990
FILES = f"for i in range({FLAT}): open(b'\\xff' * 240 + b'%06d' % i, 'w').close()"
# A thousand paths of 4 KB, of bytes that are six in JSON.
DEEP = """
import os
home = os.getcwd()
for i in range(15):
    os.makedirs(chr(1) * 255, exist_ok=True)
    os.chdir(chr(1) * 255)
for i in range(1_000):
    open(chr(1) * 240 + str(i), 'w').close()
os.chdir(home)
"""


@pytest.fixture
def box(port: int) -> Iterator[Box]:
    with Client(port).box(limits={"disk_mb": 200, "memory_mb": 512}) as box:
        yield box


def pages(box: Box, query: str) -> list[str]:
    """The names in all of them, as URLs have them."""
    names: list[str] = []
    after: str | None = ""
    while after is not None:
        page = box.get(f"/files/?limit=10000{query}" + (f"&after={after}" if after else ""))
        names += [entry.get("path_encoded", entry["path"]) for entry in page["entries"]]
        after = page["next"]
    return names


def test_a_list_of_long_names_takes_no_long_turn(box: Box) -> None:
    assert box.run(FILES)["status"] == "ok"
    turns = Turns(box.port)
    names = pages(box, "")
    assert turns.longest() <= FEW_S
    assert names == ["%FF" * 240 + f"{i:06}" for i in range(FLAT)]


def test_a_list_of_long_paths_takes_no_long_turn(box: Box) -> None:
    assert box.run(DEEP)["status"] == "ok"
    turns = Turns(box.port)
    paths = pages(box, "&recursive=true")
    assert turns.longest() <= FEW_S
    assert len(paths) == 1_015 and len(set(paths)) == 1_015


def test_lists_that_nobody_reads_share_a_turn(box: Box) -> None:
    """Each is some megabytes, and init answers all of them in one go."""
    assert box.run(FILES)["status"] == "ok"
    turns = Turns(box.port)
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Connection(box.port)) for _ in range(40)]
        for client in clients:
            client.send("GET", box.path + "/files/?limit=10000")
        for client in clients:
            assert client.file.readline().startswith(b"HTTP/1.1 200 ")
    assert turns.longest() <= FEW_S


def test_a_list_of_commands_takes_no_long_turn(box: Box) -> None:
    line = ": #" + "\x01" * 39_000
    for _ in range(60):
        assert box.ask("POST", "/commands", {"cmd": line}).status == 200
    turns = Turns(box.port)
    found = box.get("/commands")["commands"]
    assert turns.longest() <= FEW_S
    assert [command["cmd"] for command in found] == [line] * 60
    assert box.get("/commands?limit=1")["commands"][0]["cmd"] == line


@pytest.fixture
def session(port: int) -> Iterator[Session]:
    session = Session(port, "lists")
    yield session
    assert session.end().status == 200


def test_a_list_of_a_session_takes_no_long_turn(session: Session) -> None:
    count = 8_000
    code = f"for i in range({count}): open('x.' + chr(1) * 100 + str(i), 'w').close()"
    session.code(code)
    forms: list[dict[str, str]] = [{}, {"X-Sandbox-Dialect": "legacy"}]
    for headers in forms:
        turns = Turns(session.port)
        reply = ask(session.port, "GET", session.at("files") + "/", headers=headers)
        assert reply.status == 200, reply.body[:500]
        assert turns.longest() <= FEW_S
        files = (reply.json.get("result") or reply.json)["files"]
        assert sum(file["filename"].startswith("x.") for file in files) == count


# ------------------------------------------------------------------------ the files of a result


def in_a_program(port: int) -> Reply:
    return post(port, "/v1/execute", {"code": DEEP, "timeout_ms": 20_000})


def in_a_cell(port: int) -> Reply:
    with Client(port).box(limits={"disk_mb": 200}) as box:
        return box.ask("POST", "/execute", {"code": DEEP, "timeout_ms": 20_000})


RESULTS: dict[str, Callable[[int], Reply]] = {"a program": in_a_program, "a cell": in_a_cell}


@pytest.mark.parametrize("name", RESULTS)
def test_files_with_long_paths_take_no_long_turn(port: int, name: str) -> None:
    turns = Turns(port)
    reply = RESULTS[name](port)
    assert reply.status == 200, reply.body[:500]
    assert turns.longest() <= LONGEST_S
    assert reply.json["status"] == "ok" and reply.json["files_truncated"], reply.json["status"]
    paths = [file["path"] for file in reply.json["files"]]
    assert 250_000 < sum(map(len, paths)) < 270_000 and len(set(paths)) == len(paths)


def test_files_with_long_paths_take_no_long_turn_of_jupyter(port: int) -> None:
    client = Client(port)
    others = {box["id"] for box in client.listed()["sandboxes"]}
    with Jupyter(port).open() as kernel:
        kernel.ok("1")
        turns = Turns(port)
        kernel.ok(DEEP)
        assert turns.longest() <= LONGEST_S
        assert kernel.ok("40 + 2").result == "42"
    (made,) = {box["id"] for box in client.listed()["sandboxes"]} - others
    assert client.ask("DELETE", f"/v1/sandboxes/{made}").status == 204

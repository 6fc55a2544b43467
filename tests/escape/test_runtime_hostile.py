"""Hostile use of the dialect Sandbox Runtime: paths, names of sessions, and programs that work
against the requests for their own files. Nothing outside a session is read, written or held up."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from harness import LiveService, turns
from http_client import FORM, JSON, Reply, ask, part, post

PLACE = "/workspace/se"
TURNS = 60


@pytest.fixture
def port(live_service: LiveService) -> Iterator[int]:
    yield live_service.port
    reply = post(live_service.port, f"{PLACE}/cleanup-all", {"force": True})
    assert reply.json["failed"] == reply.json["skipped"] == []
    assert ask(live_service.port, "GET", "/health").json["status"] == "ok"


def run(port: int, command: str, session: str = "s") -> str:
    reply = post(port, f"{PLACE}/execute/{session}", {"command": command})
    assert reply.status == 200, reply.body
    return str(reply.json["stdout"])


def create(port: int, name: str, content: str = "mine") -> Reply:
    return post(port, f"{PLACE}/create/s", {"filename": name, "content": content})


CLIMBS = [
    "..",
    "../../etc/passwd",
    "a/../../../etc/passwd",
    "....//....//etc/passwd/..",
    "/../etc/passwd",
    "//..//etc/passwd",
    "a/..",
    "./../etc/passwd",
]


@pytest.mark.parametrize("path", CLIMBS)
def test_paths_that_climb(port: int, path: str) -> None:
    for what in ("download", "readfile", "files", "files/preview"):
        for shown in (quote(path, safe=""), quote(path).replace("..", "%2e%2e")):
            reply = ask(port, "GET", f"{PLACE}/{what}/s/{shown}")
            assert reply.status in (400, 404) and b"root:" not in reply.body, (what, shown)
    for reply in (
        create(port, path),
        ask(port, "POST", f"{PLACE}/upload/s", part(b"x", filename=path), FORM),
        ask(port, "POST", f"{PLACE}/upload/s?filename={quote(path)}", part(b"x"), FORM),
        post(port, f"{PLACE}/execute_code/s", {"code": "", "filename": path}),
    ):
        assert reply.status in (400, 409), path
    assert run(port, "find . -type f") == ""


@pytest.mark.parametrize("path", ["a%00b", "a%0ab", "%252e%252e/x", "a%5c..%5cb", "%c0%ae%c0%ae/x"])
def test_bytes_that_are_tricks(port: int, path: str) -> None:
    reply = ask(port, "GET", f"{PLACE}/download/s/{path}")
    assert reply.status in (400, 404)
    reply = ask(port, "POST", f"{PLACE}/upload/s?filename={path}", part(b"x"), FORM)
    assert reply.status in (200, 400)
    assert run(port, "find / -newer /workspace -name 'x' 2>/dev/null | grep -v ^/workspace") == ""


@pytest.mark.parametrize(
    "name",
    ["%2e%2e", "..%2fx", "%2fetc", "-rf", "--help", "$(id)", ";id", "a%0ab", "a%00b", "%ff", "."],
)
def test_names_of_sessions_are_no_paths(port: int, name: str) -> None:
    reply = post(port, f"{PLACE}/execute/{name}", {"command": "echo mine > a; pwd; id -u"})
    if reply.status == 200:
        assert reply.json["stdout"].startswith("/workspace\n")
        assert reply.json["stdout"] != "/workspace\n0"
        assert ask(port, "GET", f"{PLACE}/download/{name}/a").body == b"mine\n"
        assert ask(port, "DELETE", f"{PLACE}/session/{name}").status == 200
    else:
        assert reply.status in (400, 404, 405), reply.body


def test_links_out_of_a_session_are_not_followed(port: int) -> None:
    run(port, "ln -s /etc/passwd p.txt; ln -s /etc e; ln -s / r; ln -s p.txt q.txt; ln s.txt s.txt")
    for path in ("p.txt", "e/passwd", "r/etc/passwd", "q.txt", "r/proc/1/environ"):
        for what in ("download", "readfile", "files/preview"):
            reply = ask(port, "GET", f"{PLACE}/{what}/s/{path}")
            assert reply.status in (400, 404) and b"root:" not in reply.body
        reply = create(port, path)
        assert reply.status in (200, 400, 409)
    assert ask(port, "GET", f"{PLACE}/files/s/e").status == 404
    assert run(port, "head -c 5 /etc/passwd") != "mine"


def test_what_is_no_file_holds_nobody_up(port: int) -> None:
    run(port, "mkfifo f.txt; ln -s /dev/zero z.txt; ln -s /dev/tty t.txt; mkdir d.txt")
    for name in ("f.txt", "z.txt", "t.txt", "d.txt"):
        for what in ("download", "readfile", "files/preview"):
            assert ask(port, "GET", f"{PLACE}/{what}/s/{name}").status == 400, (what, name)
        assert create(port, name).status in (200, 409)


SWAPS = """
import os, sys
os.makedirs("real", exist_ok=True)
with open("real/passwd", "w") as f:
    f.write("mine")
os.symlink("/etc", "link")
os.rename("real", "d")
open("begun", "w").close()
while not os.path.exists("stop"):
    try:
        os.rename("d", "real"); os.rename("link", "d")
        os.rename("d", "link"); os.rename("real", "d")
    except OSError:
        pass
"""


def test_a_directory_that_becomes_a_link_meanwhile(port: int) -> None:
    """In each turn it may be the one, the other or nothing: never what the link leads to."""
    swaps = threading.Thread(
        target=post, args=(port, f"{PLACE}/execute_code/s", {"code": SWAPS, "filename": "swaps"})
    )
    swaps.start()
    while "begun" not in run(port, "ls"):
        pass
    seen: set[int] = set()
    for turn in turns(TURNS, lambda: 200 in seen):
        reply = ask(port, "GET", f"{PLACE}/readfile/s/d/passwd?turn={turn}")
        assert b"root:" not in reply.body
        seen.add(reply.status)
        assert create(port, "d/passwd", "mine").status in (200, 400, 404, 409)
        listed = ask(port, "GET", f"{PLACE}/files/s/d")
        assert b"shadow" not in listed.body and b"hostname" not in listed.body
    create(port, "stop")
    swaps.join()
    assert 200 in seen
    assert run(port, "head -c 4 /etc/passwd") != "mine"


FORGES = """
import os, sys
line = open("/proc/self/cmdline", "rb").read().split(b"\\0")
mark = next(word for word in line if word.startswith(b"req_"))
os.write(2, mark + SAID)
a = 1
"""


@pytest.mark.parametrize("said", ["b'{\"a\": 2'", "b'nothing'", "b'{\"b\": 5}'", "b'x' * 100000"])
def test_a_script_that_forges_its_variables(port: int, said: str) -> None:
    """It can only fool whoever sent it, with JSON at that; the last word is not its own."""
    code = FORGES.replace("SAID", said)
    reply = post(port, f"{PLACE}/execute_code/s", {"code": code, "output_params": ["a"]})
    assert reply.status == 200 and reply.json["output_variables"] == {"a": 1}
    code += "os._exit(0)\n"
    reply = post(port, f"{PLACE}/execute_code/s", {"code": code, "output_params": ["a"]})
    assert reply.json["output_variables"] in ({}, {"b": 5})


def test_a_handler_has_no_way_to_others(port: int) -> None:
    code = """
import os, socket
def handler(event, context):
    found = {"uid": os.getuid(), "pids": len([p for p in os.listdir("/proc") if p.isdigit()])}
    try:
        socket.create_connection(("127.0.0.1", event["port"]), 2)
        found["server"] = True
    except OSError:
        found["server"] = False
    return found
"""
    body: dict[str, Any] = {"handler_code": code, "event": {"port": port}}
    reply = post(port, f"{PLACE}/v2/execute_code", body)
    assert reply.json["result"]["server"] is False and reply.json["result"]["pids"] <= 3


def test_many_names_do_not_fill_the_server(port: int) -> None:
    """Sessions that are asked for and never used hold no more than the operator allows."""
    statuses = [
        ask(port, "GET", f"{PLACE}/status/{'x' * 150}{number}").status for number in range(300)
    ]
    assert set(statuses) == {200}
    assert ask(port, "GET", f"{PLACE}/workspaces").json == {"workspaces": {}}
    body = json.dumps({"command": "true", "args": ["x"] * 200}).encode()
    assert ask(port, "POST", f"{PLACE}/execute/s", body, JSON).status == 200

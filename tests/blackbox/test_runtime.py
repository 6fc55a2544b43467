"""The dialect Sandbox Runtime (contract 3): sessions with files and commands."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest

from commands import soon
from family import Family, kill, one
from harness import LiveService, eventually
from host import is_alive
from http_client import FORM, JSON, Connection, Reply, ask, part, post

PLACE = "/workspace/se"


class Session:
    """A session by its id; nothing is made before it is used."""

    def __init__(self, port: int, name: str, **headers: str) -> None:
        self.port, self.name, self.headers = port, quote(name, safe=""), headers

    def get(self, what: str, path: str = "", query: str = "") -> Reply:
        place = f"{PLACE}/{what}/{self.name}/{quote(path)}" if path else self.at(what)
        return ask(self.port, "GET", f"{place}{query}", headers=self.headers)

    def at(self, what: str) -> str:
        return f"{PLACE}/{what}/{self.name}"

    def post(self, what: str, **fields: Any) -> Reply:
        return post(self.port, self.at(what), fields, **self.headers)

    def good(self, what: str, **fields: Any) -> Any:
        reply = self.post(what, **fields)
        assert reply.status == 200, reply.body
        return reply.json

    def run(self, command: str, *args: str) -> Any:
        return self.good("execute", command=command, args=list(args))

    def code(self, code: str, **fields: Any) -> Any:
        return self.good("execute_code", code=code, **fields)

    def upload(self, name: str, data: bytes, query: str = "") -> Reply:
        body = part(data, filename=name)
        return ask(self.port, "POST", self.at("upload") + query, body, FORM | self.headers)

    def files(self, path: str = "", query: str = "") -> dict[str, int]:
        reply = ask(self.port, "GET", f"{self.at('files')}/{quote(path)}{query}")
        assert reply.status == 200, reply.body
        return {item["filename"]: item["size"] for item in reply.json["files"]}

    def end(self) -> Reply:
        return ask(self.port, "DELETE", self.at("session"), headers=self.headers)


@pytest.fixture
def session(live_service: LiveService, request: pytest.FixtureRequest) -> Iterator[Session]:
    made = Session(live_service.port, "s1")
    yield made
    assert made.end().status == 200


# ---- what upstream was seen to answer ----


def test_what_upstream_answers(session: Session) -> None:
    port = session.port
    assert ask(port, "GET", f"{PLACE}/healthy").body == b'{"status":"success"}'
    assert session.post("session").body == b'{"session_id":"s1"}'
    reply = ask(port, "POST", session.at("session"), headers=JSON)
    missing = {"type": "missing", "loc": ["body"], "msg": "Field required", "input": None}
    assert (reply.status, reply.json["detail"]) == (422, [missing])
    reply = session.post("create", content='print("hi")\n', filename="d/a.py")
    assert reply.body == b'{"filename":"d/a.py","size":12}'
    reply = session.post("create")
    assert reply.status == 422
    assert reply.json["detail"] == [
        {"type": "missing", "loc": ["body", name], "msg": "Field required", "input": {}}
        for name in ("content", "filename")
    ]
    assert session.upload("数.bin", b"\0\1\xff").json == {"filename": "数.bin", "size": 3}
    reply = session.upload("y", b"hello", "?filename=sub/x.txt")
    assert reply.body == b'{"filename":"sub/x.txt","size":5}'
    assert session.files() == {"数.bin": 3}
    assert session.files(query="?recursive=true") == {"数.bin": 3, "sub/x.txt": 5, "d/a.py": 12}
    assert session.files("sub") == {"sub/x.txt": 5}


def test_what_upstream_reads(session: Session) -> None:
    session.good("create", content='print("hi")\n', filename="d/a.py")
    session.upload("数.bin", b"\0\1\xff")
    read = session.get("readfile", "d/a.py")
    assert json.loads(read.body) == {
        "content": 'print("hi")\n',
        "is_binary": False,
        "offset": 12,
        "size": 12,
        "is_eof": True,
    }
    assert session.get("readfile", "d/a.py", "?offset=3&buffer_size=4").body == (
        b'{"content":"nt(\\"","is_binary":false,"offset":7,"size":12,"is_eof":false}'
    )
    assert session.get("readfile", "d/a.py", "?offset=999").body == (
        b'{"content":"","offset":999,"size":12,"is_eof":true}'
    )
    assert session.get("readfile", "数.bin").body == (
        b'{"content":"AAH/","is_binary":true,"offset":3,"size":3,"is_eof":true}'
    )
    reply = session.get("download", "d/a.py")
    assert (reply.status, reply.body) == (200, b'print("hi")\n')
    assert reply.header("content-type") == "application/octet-stream"
    assert reply.header("content-disposition") == 'attachment; filename="a.py"'
    assert reply.header("etag") and reply.header("last-modified")
    reply = session.get("download", "数.bin")
    assert "filename*=utf-8''%E6%95%B0.bin" in (reply.header("content-disposition") or "").replace(
        "UTF-8", "utf-8"
    )


@pytest.mark.parametrize(
    "path,status,detail",
    [
        ("nothing", 404, "File not found"),
        ("d/nothing", 404, "File not found"),
        ("a/b", 404, "File not found"),  # a is a file
        ("d", 400, "Not a file"),
        ("", 400, "Not a file"),
        ("d/../a", 400, "Invalid file path: child path cannot contain '..'"),
        ("../a", 400, "Invalid file path: child path cannot start with '.' or '..'"),
        ("./a", 400, "Invalid file path: child path cannot start with '.' or '..'"),
        ("link", 400, "Invalid file path: it is a symbolic link"),
        ("out/passwd", 400, "Invalid file path: child path would escape parent directory"),
    ],
)
@pytest.mark.parametrize("what", ["download", "readfile", "files/preview"])
def test_paths_that_cannot_be_read(
    session: Session, what: str, path: str, status: int, detail: str
) -> None:
    session.run("mkdir -p d; touch a; ln -s a link; ln -s /etc out")
    place = f"{PLACE}/{what}/{session.name}/{path.replace('..', '%2e%2e')}"
    reply = ask(session.port, "GET", place)
    assert (reply.status, reply.json["detail"]) == (status, detail)


def test_what_upstream_runs(session: Session) -> None:
    assert session.post("execute", command="echo", args=["Hello, World!"]).body == (
        b'{"stdout":"Hello, World!","stderr":"\\n","returncode":0}'
    )
    code = "import sys\nprint(sys.argv[1:])\na = 1\nb = 's'"
    reply = session.post("execute_code", code=code, args=["x"], output_params=["a", "b", "c"])
    assert reply.json == {
        "stdout": "['x']",
        "stderr": "\n",
        "returncode": 0,
        "output_variables": {"a": 1, "b": "s"},
    }
    reply = session.post("execute_code", code="1/0", filename="e")
    assert reply.json["returncode"] == 1 and reply.json["stdout"] == ""
    stderr = reply.json["stderr"]
    assert stderr.startswith('Traceback (most recent call last):\n  File "/workspace/e.py", line 1')
    assert stderr.endswith("ZeroDivisionError: division by zero\n")
    assert "output_variables" not in reply.json
    assert session.run("nothing") == {
        "stdout": "",
        "stderr": "bash: line 1: nothing: command not found\n",
        "returncode": 127,
    }


# ---- sessions ----


def kill_server(service: LiveService) -> None:
    """Clients wait in the backlog of the next one."""
    server = one(lambda: Family(service).server())
    kill(server)
    assert soon(lambda: not is_alive(server))


def names(port: int) -> set[str]:
    return set(ask(port, "GET", f"{PLACE}/workspaces").json["workspaces"])


def sandboxes(port: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ask(port, "GET", "/v1/sandboxes").json["sandboxes"]
    return found


def test_a_session_is_made_by_its_first_use(session: Session) -> None:
    assert names(session.port) == set()
    assert session.run("echo 1 > a; pwd; echo $HOME $PYTHONPATH")["stdout"] == (
        "/workspace\n/workspace /workspace"
    )
    assert names(session.port) == {"s1"}
    assert session.run("cat a")["stdout"] == "1"
    reply = session.post("session")
    assert (reply.status, reply.json["detail"]) == (409, "Session 's1' already exists")
    (sandbox,) = sandboxes(session.port)
    assert sandbox["name"] == "s1" and sandbox["limits"]["disk_mb"] == 100
    assert sandbox["ttl_seconds"] == sandbox["idle_seconds"] == 86400


def test_what_does_not_make_a_session(session: Session) -> None:
    assert session.end().json == {"status": "success"}
    assert session.get("status").json == {
        "id": "s1",
        "exists": False,
        "created_at": None,
        "mount_point": None,
        "is_mounted": False,
        "files": [],
    }
    reply = post(session.port, f"{PLACE}/cleanup-all", {})
    assert reply.json == {"total": 0, "success": 0, "failed": [], "skipped": []}
    assert names(session.port) == set() and sandboxes(session.port) == []


def test_a_session_is_made_once_for_all_who_ask(session: Session) -> None:
    with_lines: list[str] = []

    def use(i: int) -> None:
        with_lines.append(session.run(f"echo {i} >> all; echo {i}")["stdout"])

    threads = [threading.Thread(target=use, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(with_lines) == [str(i) for i in range(8)]
    assert sorted(session.run("cat all")["stdout"].split()) == sorted(with_lines)
    assert len(sandboxes(session.port)) == 1


def test_it_is_made_though_its_client_leaves(session: Session) -> None:
    with Connection(session.port) as connection:
        body = json.dumps({"command": "true"}).encode()
        connection.send("POST", session.at("execute"), body, JSON)
    eventually(lambda: names(session.port) == {"s1"})
    assert session.run("echo here")["stdout"] == "here"
    assert len(sandboxes(session.port)) == 1


def test_a_session_outlives_the_server(start_live: Callable[..., LiveService]) -> None:
    service = start_live()
    session = Session(service.port, "über Nacht")
    session.run("echo kept > a")
    before = session.get("status").json
    kill_server(service)
    assert session.run("cat a")["stdout"] == "kept"
    after = session.get("status").json
    assert after["created_at"] == before["created_at"] and after["id"] == "über Nacht"
    assert len(sandboxes(service.port)) == 1
    session.end()


def test_its_name_in_the_native_api_is_its_own(session: Session) -> None:
    session.run("echo mine > a")
    (sandbox,) = sandboxes(session.port)
    change = json.dumps({"name": "other", "metadata": {"alias": "sandbox-runtime/x"}}).encode()
    path = f"/v1/sandboxes/{sandbox['id']}"
    assert ask(session.port, "PATCH", path, change, JSON).status == 200
    assert session.run("cat a")["stdout"] == "mine" and names(session.port) == {"s1"}
    assert ask(session.port, "DELETE", path).status == 204
    assert session.files() == {}  # of a new one

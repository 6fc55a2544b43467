"""The dialect Sandbox Runtime (contract 3): sessions with files and commands."""

from __future__ import annotations

import base64
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from commands import soon
from family import Family, kill, one
from harness import LiveService, Service, eventually, run_cli
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
    assert reply.body == (
        b'{"stdout":"[\'x\']","stderr":"\\n","returncode":0,"output_variables":{"a":1,"b":"s"}}'
    )
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


def test_a_session_is_made_once_for_all_who_ask(start_live: Callable[..., LiveService]) -> None:
    session = Session(start_live("--live-pool", "0").port, "s1")  # none is ready: it takes its time
    printed: list[str] = []

    def use(i: int) -> None:
        printed.append(session.run(f"echo {i} >> all; echo {i}")["stdout"])

    threads = [threading.Thread(target=use, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(printed) == [str(i) for i in range(8)]
    assert sorted(session.run("cat all")["stdout"].split()) == sorted(printed)
    assert len(sandboxes(session.port)) == 1
    session.end()


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


@pytest.mark.parametrize(
    "size,mb", [("1M", 1), ("50M", 50), ("1G", 1024), ("2048k", 2), ("1", 1), ("1048577", 2)]
)
def test_a_session_has_the_size_it_asks_for(session: Session, size: str, mb: int) -> None:
    assert session.post("session", size=size).json == {"session_id": "s1"}
    (sandbox,) = sandboxes(session.port)
    assert sandbox["limits"]["disk_mb"] == mb


def test_its_disk_is_no_larger(session: Session) -> None:
    session.good("session", size="2M")
    reply = session.upload("big", bytes(3 << 20))
    assert (reply.status, reply.json["error"]["code"]) == (507, "disk_full")
    reply = session.post("create", filename="big", content="x" * (3 << 20))
    assert (reply.status, reply.json["error"]["code"]) == (507, "disk_full")
    assert session.run("head -c 3000000 /dev/zero > big")["returncode"] == 1
    assert session.run("rm big; ls")["stdout"] == ""


@pytest.mark.parametrize("size", ["", "M", "0", "0M", "100MB", "1.5G", "-1M", "50%", "1T", " 1M"])
def test_a_size_that_is_none(session: Session, size: str) -> None:
    reply = session.post("session", size=size)
    assert reply.status == 400
    assert reply.json["detail"] == (
        f'size is "{size}"; it must be a number of bytes, or end in K, M or G'
    )


def test_a_size_that_is_too_much(session: Session) -> None:
    for size in ("4097M", "5G", "9" * 30 + "G", "4294967295G"):
        reply = session.post("session", size=size)
        assert reply.status == 400, size
    assert session.post("session", size="5G").json["detail"] == (
        'size is "5G"; a session may have at most 4096M (max_disk_mb)'
    )
    assert session.post("session", size=5).json["detail"][0]["type"] == "string_type"
    assert names(session.port) == set()
    assert session.good("session", size=None) == {"session_id": "s1"}


def test_the_status_of_a_session(session: Session) -> None:
    before = time.time()
    session.run("echo 1 > a.py; mkdir d; touch d/b stdout.log; ln -s a.py link; mkfifo fifo")
    status = session.get("status").json
    assert before - 1 < status.pop("created_at") < time.time() + 1
    files = {item.pop("filename"): item for item in status.pop("files")}
    assert set(files) == {"a.py", "stdout.log"}
    assert before - 1 < files["a.py"].pop("modified_at") < time.time() + 1
    assert files["a.py"] == {"size": 2, "type": "py"}
    assert status == {
        "id": "s1",
        "exists": True,
        "mount_point": "/workspace",
        "is_mounted": True,
    }


def test_all_sessions_end_but_those_in_use(live_service: LiveService) -> None:
    port = live_service.port
    idle, busy = Session(port, "idle"), Session(port, "busy")
    idle.run("true"), busy.run("mkfifo wait")
    runs = threading.Thread(target=busy.run, args=("touch begun; cat wait",))
    runs.start()
    eventually(lambda: "begun" in busy.files())
    assert names(port) == {"idle", "busy"}
    first = post(port, f"{PLACE}/cleanup-all", {}).json
    assert first == {"total": 2, "success": 1, "failed": [], "skipped": ["busy"]}
    assert post(port, f"{PLACE}/cleanup-all", {"force": None}).json["skipped"] == first["skipped"]
    second = post(port, f"{PLACE}/cleanup-all", {"force": True}).json
    assert second == {"total": 1, "success": 1, "failed": [], "skipped": []}
    runs.join()
    assert names(port) == set()


def test_sessions_end_after_their_time(start_live: Callable[..., LiveService]) -> None:
    service = start_live("--runtime-ttl-s", "100000", "--live-ttl-max-seconds", "60")
    session = Session(service.port, "s1")
    session.run("true")
    (sandbox,) = sandboxes(service.port)
    assert sandbox["ttl_seconds"] == 100000
    change = json.dumps({"ttl_seconds": 1}).encode()
    assert ask(service.port, "PATCH", f"/v1/sandboxes/{sandbox['id']}", change, JSON).status == 200
    eventually(lambda: names(service.port) == set())


def test_without_live_sandboxes_there_are_no_sessions(service: Service) -> None:
    reply = Session(service.port, "s1").post("execute", command="true")
    assert reply.status == 503 and "profile" in reply.json["detail"]
    assert Session(service.port, "s1").upload("a", b"x" * 200000).status == 503


def test_the_quota_of_a_tenant(start_live: Callable[..., LiveService]) -> None:
    service = start_live("--live-per-tenant", "1")
    Session(service.port, "one").run("true")
    reply = Session(service.port, "two").post("execute", command="true")
    assert (reply.status, reply.json["error"]["code"]) == (429, "too_many_sandboxes")
    assert reply.header("retry-after")
    Session(service.port, "one").end()


# ---- files ----


def test_files_of_any_size_stream(session: Session) -> None:
    data = bytes(range(256)) * (80 << 12)  # 80 MiB
    assert session.upload("big.bin", data).json == {"filename": "big.bin", "size": len(data)}
    assert session.get("download", "big.bin").body == data
    reply = ask(
        session.port, "GET", session.at("download") + "/big.bin", None, {"Range": "bytes=1-2"}
    )
    assert (reply.status, reply.body) == (206, b"\1\2")


@pytest.mark.parametrize("name", ["/abs/a.txt", "//a", "d/./e", "d//e"])
def test_absolute_paths_are_from_the_session(session: Session, name: str) -> None:
    clean = {"/abs/a.txt": "abs/a.txt", "//a": "a"}.get(name, "d/e")
    assert session.good("create", filename=name, content="1") == {"filename": name, "size": 1}
    assert session.upload(name, b"22").json == {"filename": name, "size": 2}
    assert session.run("cat " + clean)["stdout"] == "22"


@pytest.mark.parametrize("name", ["..", "../a", "./../a", "d/../../a", "d/.."])
def test_paths_that_lead_out_are_refused(session: Session, name: str) -> None:
    start = "start with '.' or" if name[0] == "." else "contain"
    detail = f"Invalid file path: child path cannot {start} '..'"
    for reply in (
        session.post("create", filename=name, content=""),
        session.upload("x", b"", "?filename=" + quote(name)),
        session.upload(name, b""),
        session.post("execute_code", code="", filename=name + "/x"),
    ):
        assert (reply.status, reply.json["detail"]) == (400, detail)


def test_names_that_are_none(session: Session) -> None:
    reply = session.upload("", b"x")
    assert (reply.status, reply.json["detail"]) == (400, "No filename provided")
    assert session.upload("/", b"x").json["detail"] == "No filename provided"
    reply = session.post("create", filename="", content="x")
    assert (reply.status, reply.json["detail"]) == (400, "Invalid file path: there is no name")
    for name in ("x" * 256, "d/" * 2048 + "x"):
        assert session.post("create", filename=name, content="").status == 400
    assert session.files(query="?recursive=1") == {}


def test_what_is_in_the_way(session: Session) -> None:
    session.run("mkdir d; touch f")
    for name in ("d", "f/x"):
        for reply in (session.upload(name, b""), session.post("create", filename=name, content="")):
            assert (reply.status, reply.json["error"]["code"]) == (409, "path_taken"), name


def test_a_form_without_its_end_changes_nothing(session: Session) -> None:
    """A client that died may look as if it had sent all: its length may be right."""
    session.upload("a", b"old")
    place, body = session.at("upload"), part(b"new" * 1000, filename="a")
    for cut in (3, 4, 100, 2000):
        reply = ask(session.port, "POST", place, body[:-cut], FORM | session.headers)
        assert reply.status == 400 and "last boundary" in reply.json["detail"], reply
    assert ask(session.port, "GET", session.at("download") + "/a").body == b"old"
    for more in (b"\r\n", b"what a form may have at its end"):
        assert ask(session.port, "POST", place, body + more, FORM | session.headers).status == 200


def test_an_upload_needs_a_file(session: Session) -> None:
    place = session.at("upload")
    missing = {"type": "missing", "loc": ["body", "file"], "msg": "Field required", "input": None}
    cases: list[tuple[bytes, dict[str, str]]] = [
        (b"{}", JSON),
        (part(b"x", name="other"), FORM),
        (b"", {}),
    ]
    for body, headers in cases:
        reply = ask(session.port, "POST", place, body, headers)
        assert (reply.status, reply.json["detail"]) == (422, [missing])
    reply = ask(session.port, "POST", place, part(b"x", filename=None), FORM)
    assert reply.status == 422 and reply.json["detail"][0]["type"] == "value_error"


@pytest.mark.parametrize(
    "mode,shown", [(420, "644"), (0o700, "700"), (0, "644"), (None, "644"), ("438", "666")]
)
def test_the_mode_of_a_file(session: Session, mode: Any, shown: str) -> None:
    session.good("create", filename="a", content="é", mode=mode)
    assert session.run("stat -c %a a")["stdout"] == shown
    assert session.files() == {"a": 2}


@pytest.mark.parametrize("mode", [-1, 512, "x", 1.5])
def test_a_mode_that_is_none(session: Session, mode: Any) -> None:
    reply = session.post("create", filename="a", content="", mode=mode)
    assert reply.status == 422 and reply.json["detail"][0]["loc"] == ["body", "mode"]


def test_a_list_has_regular_files_only(session: Session) -> None:
    session.run("mkdir -p d/e; touch a.tar.gz .h d/e/x none stdout.log d/stderr.log; mkfifo p")
    reply = ask(session.port, "GET", session.at("files") + "/?recursive=yes")
    kinds = {item["filename"]: item["type"] for item in reply.json["files"]}
    assert kinds == {"a.tar.gz": "gz", ".h": "h", "d/e/x": "unknown", "none": "unknown"}
    assert session.files("d") == {} and session.files("/d/e/") == {"d/e/x": 0}


def test_a_long_list(session: Session) -> None:
    session.run("mkdir d; cd d; seq 12000 | xargs touch")
    assert len(session.files("d")) == 12000


def test_lists_that_there_are_not(session: Session) -> None:
    session.run("touch f")
    for path in ("nodir", "f"):
        reply = ask(session.port, "GET", f"{session.at('files')}/{path}")
        assert (reply.status, reply.json["detail"]) == (404, f"Directory not found: {path}")
    reply = ask(session.port, "GET", session.at("files") + "/?recursive=maybe")
    assert reply.status == 422
    assert reply.json["detail"] == [
        {
            "type": "bool_parsing",
            "loc": ["query", "recursive"],
            "msg": "Input should be a valid boolean, unable to interpret input",
            "input": "maybe",
        }
    ]


def test_a_list_without_its_slash(live_service: LiveService) -> None:
    reply = ask(live_service.port, "GET", f"{PLACE}/files/a%20b?recursive=true")
    assert reply.status == 307
    assert reply.header("location") == f"{PLACE}/files/a%20b/?recursive=true"


@pytest.mark.parametrize(
    "name,kind",
    [
        ("a.html", "text/html; charset=utf-8"),
        ("a.PNG", "image/png"),
        ("a.svg", "image/svg+xml"),
        ("a.csv", "text/csv; charset=utf-8"),
        ("d/a.md", "text/markdown; charset=utf-8"),
    ],
)
def test_a_preview(session: Session, name: str, kind: str) -> None:
    session.upload(name, b"<script>")
    reply = session.get("files/preview", name, "?sid=s1")
    assert (reply.status, reply.body, reply.header("content-type")) == (200, b"<script>", kind)
    assert reply.header("content-security-policy") == "sandbox"
    assert reply.header("x-content-type-options") == "nosniff"
    assert reply.header("content-disposition") is None


def test_a_preview_of_anything_else_is_a_download(session: Session) -> None:
    session.upload("a.exe", b"MZ")
    reply = session.get("files/preview", "a.exe")
    assert reply.header("content-type") == "application/octet-stream"
    assert reply.header("content-disposition") == 'attachment; filename="a.exe"'


def test_a_session_may_be_called_preview(live_service: LiveService) -> None:
    session = Session(live_service.port, "preview")
    session.upload("a", b"1")
    assert session.files() == {"a": 1}
    session.end()


def pieces(session: Session, name: str, size: int) -> list[str]:
    """A file read piece by piece, as a client does it."""
    found, offset = [], 0
    while True:
        reply = session.get("readfile", name, f"?offset={offset}&buffer_size={size}").json
        found.append(reply["content"])
        assert reply["offset"] > offset and len(found) < 1000
        offset = reply["offset"]
        if reply["is_eof"]:
            assert offset == reply["size"]
            return found


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 4096])
@pytest.mark.parametrize("text", ["abcdefgh", "äöü€uro", "数据😀x", "\ufeffx"])
def test_text_is_cut_between_characters(session: Session, text: str, size: int) -> None:
    session.good("create", filename="a.txt", content=text)
    assert "".join(pieces(session, "a.txt", size)) == text


def test_a_small_piece_is_as_small_as_asked_for(session: Session) -> None:
    session.good("create", filename="a.txt", content="abcdefgh€x")
    assert pieces(session, "a.txt", 3) == ["abc", "def", "gh", "€", "x"]
    assert pieces(session, "a.txt", 1)[-3:] == ["h", "€", "x"]


@pytest.mark.parametrize("size", [2, 3, 5, 4096])
def test_text_that_is_gbk(session: Session, size: int) -> None:
    text = "中文文本,混合 ASCII。"
    session.upload("a.csv", text.encode("gbk"))
    assert "".join(pieces(session, "a.csv", size)) == text


def test_text_that_is_neither(session: Session) -> None:
    session.upload("a.log", b"ok \xff\xff ok\n\x80")
    text = "".join(pieces(session, "a.log", 4096))
    assert text.startswith("ok ") and "\ufffd" in text and " ok\n" in text
    session.upload("b.txt", "é".encode())
    reply = session.get("readfile", "b.txt", "?offset=1").json
    assert (reply["content"], reply["is_eof"]) == ("\ufffd", True)


@pytest.mark.parametrize("size", [1, 3, 100])
def test_other_files_are_base64(session: Session, size: int) -> None:
    data = bytes(range(256))
    session.upload("a.bin", data)
    assert b"".join(map(base64.b64decode, pieces(session, "a.bin", size))) == data


def test_an_empty_file(session: Session) -> None:
    session.upload("a.txt", b"")
    assert session.get("readfile", "a.txt").json == {
        "content": "",
        "offset": 0,
        "size": 0,
        "is_eof": True,
    }


@pytest.mark.parametrize("name", ["offset", "buffer_size"])
def test_numbers_of_readfile(session: Session, name: str) -> None:
    session.upload("a.txt", b"x")
    for value in ("x", "", "1.5", "0x1"):
        reply = session.get("readfile", "a.txt", f"?{name}={value}")
        assert reply.status == 422
        assert reply.json["detail"][0]["type"] == "int_parsing"
        assert reply.json["detail"][0]["loc"] == ["query", name]
    for value in ("-1", "9" * 30) + (("0", "4194305") if name == "buffer_size" else ()):
        reply = session.get("readfile", "a.txt", f"?{name}={value}")
        assert reply.status == 400 and name in reply.json["detail"]


# ---- commands and scripts ----


@pytest.mark.parametrize(
    "command,args,stdout",
    [
        ("echo", ["a;", "id"], "a; id"),
        ("echo", ["two  spaces", "$HOME", "`id`", "*", "'", '"'], "two  spaces $HOME `id` * ' \""),
        ("printf '%s|'", ["", "-n", "ü"], "|-n|ü|"),
        ("echo a | cat - ", ["/dev/null"], "a"),
        ("echo $(( 6 * 7 )) && echo b\n", [], "42\nb"),
        ("echo x\n", ["y"], "x y"),
        ("echo", None, ""),
        ("printf 'a\\n\\n\\n'", [], "a"),
        ("printf '=== STDOUT ===\\nx'", [], "=== STDOUT ===\nx"),
        ("printf '\\377'", [], "\ufffd"),
        ("cat", [], ""),
    ],
)
def test_args_are_arguments(session: Session, command: str, args: Any, stdout: str) -> None:
    reply = session.good("execute", command=command, args=args)
    assert reply == {"stdout": stdout, "stderr": "\n", "returncode": 0}


@pytest.mark.parametrize(
    "command,stderr,code",
    [
        ("exit 3", "\n", 3),
        ("kill -9 $$", "\n", 137),
        ("echo oops >&2; false", "oops\n", 1),
        ("printf 'a\\n\\n' >&2", "a\n", 0),
        ("", "\n", 0),
    ],
)
def test_how_commands_end(session: Session, command: str, stderr: str, code: int) -> None:
    assert session.run(command) == {"stdout": "", "stderr": stderr, "returncode": code}


def test_commands_that_are_none(session: Session) -> None:
    cases: list[tuple[dict[str, Any], list[Any]]] = [
        ({}, ["body", "command"]),
        ({"command": 1}, ["body", "command"]),
        ({"command": "a", "args": "b"}, ["body", "args"]),
        ({"command": "a", "args": [1]}, ["body", "args", 0]),
        ({"command": "a", "args": ["x"] * 201}, ["body", "args"]),
    ]
    for fields, place in cases:
        reply = session.post("execute", **fields)
        assert (reply.status, reply.json["detail"][0]["loc"]) == (422, place), fields
    reply = session.post("execute", command="echo", args=["x" * 40001])
    assert reply.status == 413 and "40000 bytes" in reply.json["detail"]
    assert session.run("echo", *["x"] * 200)["stdout"].count("x") == 200
    assert names(session.port) == {"s1"}


def test_a_command_that_takes_too_long(start_live: Callable[..., LiveService]) -> None:
    service = start_live("--runtime-timeout-s", "3")
    session = Session(service.port, "s1")
    result = session.run("echo begun; exec 2>&1; sleep 1000")
    assert result == {
        "stdout": "begun",
        "stderr": "Execution timed out after 3 seconds\n",
        "returncode": 124,
    }
    assert eventually(lambda: session.run("pgrep sleep")["returncode"] == 1)
    session.end()


def test_a_command_ends_with_its_client(session: Session) -> None:
    session.run("mkfifo wait")
    with Connection(session.port) as connection:
        body = json.dumps({"command": "touch begun; cat wait"}).encode()
        connection.send("POST", session.at("execute"), body, JSON)
        eventually(lambda: "begun" in session.files())
    eventually(lambda: session.run("pgrep -x cat")["returncode"] == 1)


def test_scripts_stay_and_variables_do_not(session: Session) -> None:
    session.code("x = 1", filename="d/one")
    session.code("import d.one; print(d.one.x)", filename="two.py")
    session.code("print('x' in globals())")
    found = session.files(query="?recursive=true")
    unnamed = [name for name in found if name.startswith("script_")]
    assert {"d/one.py", "two.py"} < set(found) and len(unnamed) == 1
    assert unnamed[0].endswith(".py")
    assert session.run("cat two.py")["stdout"] == "import d.one; print(d.one.x)"


@pytest.mark.parametrize("name", ["-c", "a b", "'; id", "$(id)", "é", "x.py.py", "a.sh"])
def test_names_of_scripts(session: Session, name: str) -> None:
    result = session.code("import sys; print(sys.argv)", filename=name, args=["-v", "a b"])
    path = name if name.endswith(".py") else name + ".py"
    shown = ("./" if name[0] == "-" else "") + path
    assert result["stdout"] == repr([shown, "-v", "a b"])


def test_scripts_of_a_shell(session: Session) -> None:
    result = session.code('echo "$0" "$2"', script_type="shell", filename="s", args=["1", "a  b"])
    assert result == {"stdout": "s.sh a  b", "stderr": "\n", "returncode": 0}
    assert session.run("stat -c %a s.sh; ./s.sh x y")["stdout"] == "755\n./s.sh y"
    result = session.code("x=1; exit 4", script_type="shell", output_params=["x"])
    assert (result["returncode"], result["output_variables"]) == (4, {})


def test_scripts_that_are_none(session: Session) -> None:
    reply = session.post("execute_code", code="1", script_type="perl")
    assert reply.status == 400
    assert reply.json["detail"] == "Unsupported script type: perl; it may be python or shell"
    cases: list[tuple[dict[str, Any], list[Any]]] = [
        ({}, ["body", "code"]),
        ({"code": None}, ["body", "code"]),
        ({"code": "", "filename": 1}, ["body", "filename"]),
        ({"code": "", "args": {}}, ["body", "args"]),
        ({"code": "", "script_type": 1}, ["body", "script_type"]),
        ({"code": "", "output_params": "a"}, ["body", "output_params"]),
        ({"code": "", "output_params": ["x"] * 201}, ["body", "output_params"]),
    ]
    for fields, place in cases:
        reply = session.post("execute_code", **fields)
        assert (reply.status, reply.json["detail"][0]["loc"]) == (422, place), fields
    assert names(session.port) == set()


OUTPUTS = """
import datetime, math, sys
a, b, c = 2**100, float("nan"), {"x": [1, (2, math.inf)], 3: None}
d, e, f = datetime.date(2020, 1, 2), "ü\\0\\ud800", print
g = []; g.append(g)
h = lambda: 1
sys.stderr.write("warned")
"""


def test_variables_of_a_script(session: Session) -> None:
    result = session.code(OUTPUTS, output_params=["a", "b", "c", "d", "e", "f", "g", "none", "a"])
    found = result["output_variables"]
    assert result["stderr"] == "warned\n" and set(found) == set("abcdef")
    assert found["a"] == 2**100 and found["b"] is None
    assert found["c"] == {"x": [1, [2, None]], "3": None}
    assert found["d"] == "2020-01-02" and found["e"] == "ü\0?"
    assert found["f"] == "<built-in function print>"


@pytest.mark.parametrize(
    "code,code_shown,variables",
    [
        ("x = 1; raise SystemExit", 0, {"x": 1}),
        ("x = 1; raise SystemExit(3)", 3, {}),
        ("x = 1; 1/0", 1, {}),
        ("x = 1 +", 1, {}),
        ("import os; x = 1; os._exit(0)", 0, {}),
        ("import os; x = 1; os.close(1); os.close(2)", 0, {"x": 1}),
        (
            "import sys; x = len(sys.argv), __name__, __file__",
            0,
            {"x": [1, "__main__", "/workspace/s.py"]},
        ),
        ("import pickle\nclass A: pass\nx = len(pickle.dumps(A())) > 0", 0, {"x": True}),
        ("x = globals().keys() & {'mark', 'names', 'path', 'fd', 'main'}", 0, {"x": "set()"}),
    ],
)
def test_variables_at_the_end(
    session: Session, code: str, code_shown: int, variables: dict[str, Any]
) -> None:
    result = session.code(code, filename="s", output_params=["x"])
    assert (result["returncode"], result["output_variables"]) == (code_shown, variables)
    if code_shown == 1:
        assert "outputs.py" not in result["stderr"] and "/workspace/s.py" in result["stderr"]


def test_output_is_cut_with_a_mark(start_live: Callable[..., LiveService]) -> None:
    service = start_live("--live-output-bytes", "1000")
    session = Session(service.port, "s1")
    result = session.run("yes | head -c 5000; yes | head -c 5000 >&2")
    assert result["stdout"].endswith("...[truncated]") and len(result["stdout"]) < 1100
    assert result["stderr"].endswith("...[truncated]\n") and len(result["stderr"]) < 1100
    session.end()


# ---- who asks, and how ----


def test_replies_of_the_legacy_server(session: Session) -> None:
    legacy = Session(session.port, "s1", **{"X-Sandbox-Dialect": "legacy"})
    made = {"session_id": "s1"}
    assert legacy.good("session") == {"result": made, "full_result": made}
    ran = legacy.run("echo", "x")
    assert ran["result"] == ran["full_result"]
    assert ran["result"] == {"stdout": "x", "stderr": "\n", "returncode": 0}
    reply = legacy.post("session")
    assert reply.status == 500
    assert reply.json["detail"]["type"] == "SandboxError"
    assert reply.json["detail"]["message"] == "Session 's1' already exists"
    reply = legacy.get("download", "none")
    assert (reply.status, reply.json["detail"]["message"]) == (500, "File not found")
    assert legacy.post("execute").status == 422
    assert session.run("echo", "x")["stdout"] == "x"


def test_replies_by_configuration(start_live: Callable[..., LiveService]) -> None:
    service = start_live("--runtime-replies", "legacy")
    reply = ask(service.port, "GET", f"{PLACE}/healthy")
    assert reply.json == {"result": {"status": "success"}, "full_result": {"status": "success"}}
    reply = ask(service.port, "GET", f"{PLACE}/healthy", None, {"X-Sandbox-Dialect": "bare"})
    assert reply.json == {"status": "success"}
    reply = ask(service.port, "GET", f"{PLACE}/healthy", None, {"X-Sandbox-Dialect": "c"})
    assert reply.status == 400 and "bare or legacy" in reply.json["detail"]


@pytest.mark.parametrize(
    "name", ["..", "-rf", "a b", "$(id)", "é", "x" * 200, "'\"", "sbx_0", "%", "a?b", "a#b"]
)
def test_names_of_sessions(live_service: LiveService, name: str) -> None:
    session = Session(live_service.port, name)
    assert session.good("session") == {"session_id": name}
    assert session.run("echo", name)["stdout"] == name
    assert session.get("status").json["id"] == name and names(session.port) == {name}
    assert session.end().status == 200


@pytest.mark.parametrize("name", ["x" * 201, "%ff", "%c3"])
def test_names_that_no_session_has(live_service: LiveService, name: str) -> None:
    for what in ("session", "execute"):
        reply = post(live_service.port, f"{PLACE}/{what}/{name}", {"command": "true"})
        assert reply.status == 400 and "200 bytes" in reply.json["detail"]
    assert names(live_service.port) == set()


def test_dialects_that_are_not_spoken(start_service: Callable[..., Service]) -> None:
    port = start_service("--dialects", "pyrunner").port
    for path in (f"{PLACE}/healthy", "/api.json"):
        assert ask(port, "GET", path).status == 404
    assert not any(PLACE in path for path in ask(port, "GET", "/openapi.json").json["paths"])


def test_it_is_described(service: Service) -> None:
    paths = ask(service.port, "GET", "/api.json").json["paths"]
    assert len([path for path in paths if path.startswith(PLACE)]) == 15
    assert paths == ask(service.port, "GET", "/openapi.json").json["paths"]


def test_more_addresses(start_service: Callable[..., Service], tmp_path: Path) -> None:
    service = start_service("--also-listen", "127.0.0.2:0,[::1]:0,0")
    ports = re.findall(r"http://(\S+):(\d+)", service.text())
    hosts = {host.strip("[]") for host, port in ports}
    assert hosts == {"127.0.0.1", "127.0.0.2", "::1"} and len(set(ports)) == 4
    for host, port in ports:
        with socket.create_connection((host.strip("[]"), int(port)), 10) as connection:
            connection.sendall(b"GET /health HTTP/1.0\r\n\r\n")
            assert b" 200 " in connection.recv(1000)


def test_as_many_addresses_as_there_may_be(start_service: Callable[..., Service]) -> None:
    service = start_service("--also-listen", ",".join(["0"] * 14))
    ports = re.findall(r"http://127.0.0.1:(\d+)", service.text())
    assert len(set(ports)) == 15
    assert all(ask(int(port), "GET", "/health").status == 200 for port in ports)


def test_too_many_addresses_are_an_error_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="more than 15 addresses to listen on"):
        Service(tmp_path, "--also-listen", ",".join(["0"] * 15))


def test_tenants_have_sessions_of_their_own(
    start_live: Callable[..., LiveService], tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("keys")
    directory.chmod(0o711)  # the server is another user
    keys = directory / "keys.json"
    secrets = [
        run_cli("key", "add", name, "--tenant", name, "--keys", keys).stdout.decode().strip()
        for name in ("alice", "bob")
    ]
    port = start_live("--keys", str(keys)).port
    alice, bob = (Session(port, "s1", Authorization=f"Bearer {secret}") for secret in secrets)
    assert ask(port, "GET", f"{PLACE}/healthy").status == 200
    assert Session(port, "s1").post("execute", command="true").status == 401
    assert Session(port, "s1").upload("a", b"x").status == 401
    alice.run("echo alice > a")
    assert bob.get("status").json["exists"] is False
    assert bob.run("ls")["stdout"] == ""
    cleaned = post(port, f"{PLACE}/cleanup-all", {"force": True}, **bob.headers)
    assert cleaned.json == {"total": 1, "success": 1, "failed": [], "skipped": []}
    assert alice.run("cat a")["stdout"] == "alice"
    assert alice.end().status == 200

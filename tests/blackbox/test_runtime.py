"""The dialect Sandbox Runtime: what upstream answers, sessions, and who asks."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from commands import soon
from family import Family, kill, one
from harness import LiveService, Service, eventually, run_cli
from host import is_alive
from http_client import JSON, Connection, ask, post
from runtime_session import PLACE, Session, names


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

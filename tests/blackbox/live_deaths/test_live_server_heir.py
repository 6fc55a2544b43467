"""What the next server knows of live sandboxes: their kernels, their pauses, all that they had."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from pathlib import Path

import pytest

from commands import soon
from deaths import GATE, LIVE, Running, gone, kill_server, make, one_of
from family import Family, one
from harness import LiveService
from host import Process
from http_client import JSON, Connection, ask


# ---------------------------------------------------------------------------- kernels


def test_while_a_kernel_starts(service: LiveService) -> None:
    """Its client does not learn of it, so it is not there; nor is a process of it left."""
    at_rest = len(Family(service).kernels(LIVE))
    shell = make(service)
    shell.run("x = 1")
    for _ in range(3):
        with Connection(service.port) as connection:
            connection.ask("GET", "/health")  # it is this server's, and not left to the next one
            connection.send("POST", f"{shell.url}/kernels", b"{}", JSON)
            kill_server(service)
        assert len(shell.info()["kernels"]) in (1, 2)
        assert shell.run("print(x)") == "1\n"
        for kernel in shell.info()["kernels"][1:]:
            assert shell.ask("DELETE", f"/kernels/{kernel['id']}").status == 204
    other = shell.another_kernel()
    assert shell.run("print(2)", kernel_id=other) == "2\n"
    assert soon(lambda: len(Family(service).kernels(LIVE)) == at_rest + 2)


def test_while_a_kernel_restarts(service: LiveService) -> None:
    shell = make(service, env={"WORD": "kept"})
    for _ in range(3):
        shell.run("x = 1")
        with Connection(service.port) as connection:
            connection.ask("GET", "/health")
            connection.send("POST", f"{shell.url}/restart", b"{}", JSON)
            kill_server(service)
        assert shell.run("import os; print(os.environ['WORD'])") == "kept\n"
    assert shell.post("/restart", {}).status == 200
    assert shell.run("print('x' in globals())") == "False\n"


def named(name: str) -> list[int]:
    """Processes of the machine that call themselves so."""
    found = []
    for path in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            if path.read_text().strip() == name:
                found.append(int(path.parent.name))
    return found


def test_a_kernel_whose_death_only_the_dead_heard_of(service: LiveService) -> None:
    """Its first process, whose place is always there."""
    shell = make(service)
    name = "doomed-" + shell.url[-8:]
    shell.run(f"import ctypes\nx = ctypes.CDLL(None).prctl(15, {name.encode()!r}, 0, 0, 0)")
    (kernel,) = named(name)
    os.kill(one(lambda: Family(service).server()).pid, signal.SIGSTOP)
    os.kill(kernel, signal.SIGKILL)
    assert soon(lambda: not named(name))
    kill_server(service)
    assert shell.run("print('x' in globals())") == "False\n"
    kill_server(service)
    assert shell.run("print('x' in globals())") == "False\n"


def test_while_it_is_paused(service: LiveService) -> None:
    shell = make(service)
    it = Running(shell, GATE + "print('rest')").until("begun")
    command = shell.start("echo begun; while [ ! -e go ]; do sleep 0.01; done", timeout_ms=30000)
    shell.prints(command, "begun")
    assert shell.post("/pause", {}).status == 200
    kill_server(service)
    assert shell.info()["state"] == "paused"
    it.come_back()
    assert shell.try_command("true").status == 409
    shell.put("go", b"")
    assert shell.look(command)["status"] == "running"
    assert shell.post("/resume", {}).json["state"] == "running"
    assert it.until("rest").end()["status"] == "ok"
    assert shell.over(command)["exit_code"] == 0


def freezer_of(process: Process) -> Path:
    """The freezer of the sandbox: v1's or v2's."""
    for line in Path(f"/proc/{process.pid}/cgroup").read_text().splitlines():
        _, kind, path = line.split(":", 2)
        if kind == "freezer":
            return Path("/sys/fs/cgroup/freezer" + path, "freezer.state")
        if not kind and Path("/sys/fs/cgroup" + path, "cgroup.freeze").exists():
            return Path("/sys/fs/cgroup" + path, "cgroup.freeze")
    pytest.skip("no freezer here")


FREEZER = {"freezer.state": ("THAWED", "FROZEN"), "cgroup.freeze": ("0", "1")}


def test_in_the_middle_of_a_pause(service: LiveService) -> None:
    """It is frozen, and that is not put down yet."""
    shell = make(service)
    shell.start(["sleep", "95174"])
    freezer = freezer_of(one_of(shell, "95174")[0])
    freezer.write_text(FREEZER[freezer.name][1])
    kill_server(service)
    assert shell.info()["state"] == "running"
    assert freezer.read_text().strip() == FREEZER[freezer.name][0]
    assert shell.run("print(1)") == "1\n"


def test_in_the_middle_of_a_resume(service: LiveService) -> None:
    shell = make(service)
    shell.start(["sleep", "95175"])
    freezer = freezer_of(one_of(shell, "95175")[0])
    assert shell.post("/pause", {}).status == 200
    freezer.write_text(FREEZER[freezer.name][0])
    kill_server(service)
    assert shell.info()["state"] == "paused"
    assert soon(lambda: freezer.read_text().strip() == FREEZER[freezer.name][1])
    assert shell.post("/resume", {}).status == 200
    assert shell.run("print(1)") == "1\n"


# ---------------------------------------------------------------------------- all of it


def test_everything_is_as_it_was(service: LiveService) -> None:
    shell = make(
        service,
        name="mine",
        metadata={"user": "u1"},
        limits={"memory_mb": 200, "pids": 50},
        env={"WORD": "kept"},
        ttl_seconds=1000,
        idle_seconds=500,
    )
    other = shell.another_kernel()
    shell.run("x = [1, 2]; open('file', 'w').write('text')")
    shell.run("y = 'other'", kernel_id=other)
    before = shell.info()
    for _ in range(3):
        kill_server(service)
        now = shell.info()
        for name in ("id", "name", "metadata", "limits", "created", "ttl_seconds", "profile"):
            assert now[name] == before[name], name
        assert now["idle_seconds"] == 500 and now["executions"] >= before["executions"]
        assert abs(now["expires"] - before["expires"]) < 1 and now["idle_expires"]
        assert [(k["id"], k["execution_count"], k["is_default"]) for k in now["kernels"]] == [
            (k["id"], k["execution_count"], k["is_default"]) for k in before["kernels"]
        ]
        assert shell.run("print(x, open('file').read())", silent=True) == "[1, 2] text\n"
        assert shell.run("print(y)", kernel_id=other, silent=True) == "other\n"
        assert shell.said("echo $WORD; cat file") == "kept\ntext"


def test_twenty_sandboxes_several_times(service: LiveService) -> None:
    shells = [make(service, metadata={"n": str(n)}) for n in range(20)]
    for n, shell in enumerate(shells):
        shell.run(f"x = {n}")
    runs = [Running(shell, GATE + "print('rest', x)").until("begun") for shell in shells]
    for _ in range(3):
        kill_server(service)
        for it in runs:
            it.come_back()
    listed = ask(service.port, "GET", "/v1/sandboxes").json["sandboxes"]
    assert [box["metadata"]["n"] for box in listed] == [str(n) for n in range(20)]
    for n, (shell, it) in enumerate(zip(shells, runs)):
        shell.put("go", b"")
        assert it.until(f"rest {n}").end()["status"] == "ok"
    for shell in shells:
        shell.end()


def test_one_that_is_being_made_or_ended(service: LiveService) -> None:
    """There is never half of one: it is listed and works, or it is gone."""
    for _ in range(3):
        shell = make(service)
        with Connection(service.port) as one_more, Connection(service.port) as ending:
            one_more.send("POST", "/v1/sandboxes", b'{"profile":"base"}', JSON)
            ending.send("DELETE", shell.url)
            kill_server(service)
        for box in ask(service.port, "GET", "/v1/sandboxes").json["sandboxes"]:
            url = f"/v1/sandboxes/{box['id']}"
            body = json.dumps({"code": "print(1)"}).encode()
            reply = ask(service.port, "POST", f"{url}/execute", body, JSON)
            assert reply.status == 200 and reply.json["stdout"] == "1\n", reply.body
            assert ask(service.port, "DELETE", url).status == 204
        assert soon(lambda: not Family(service).server() == [])


def test_it_still_ends_in_its_time(service: LiveService) -> None:
    shell = make(service, ttl_seconds=2)
    kill_server(service)
    assert soon(lambda: shell.ask("GET", "").status == 410)
    assert "ttl_seconds" in shell.ask("GET", "").json["error"]["message"]


# ----------------------------------------------------------------------------------- versions

VERSION_AT = 20  # of a journal: src/engine/live/journal.c


def journals(server: Process) -> list[Path]:
    links = Path(f"/proc/{server.pid}/fd").iterdir()
    return [link for link in links if os.readlink(link).startswith("/memfd:journal")]


def test_a_journal_of_an_unknown_version_is_refused_and_said(service: LiveService) -> None:
    shell = make(service)
    (journal,) = journals(one(lambda: Family(service).server()))
    fd = os.open(journal, os.O_RDWR)
    os.pwrite(fd, (99).to_bytes(4, "little"), VERSION_AT)
    os.close(fd)
    kill_server(service)
    assert "version 99" in gone(shell)
    assert soon(lambda: "live sandbox not taken over" in service.text())

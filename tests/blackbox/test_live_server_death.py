"""kill -9 of our processes while live sandboxes are there: they outlive the server as they were; of
the others it is told why they are gone."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from commands import SSE, Shell, shell_of, soon
from family import Family, check_back_at, come_to_rest, drained, init_of, kill, one, write_config
from harness import LiveService, clean_env, cloche_bin
from host import Process, is_alive
from http_client import JSON, Connection, Event, Stream, ask

QUICK: dict[str, Any] = {"data": None, "base": {"preload": ["json"], "pool": 2}}
LEAN, LIVE = 0, 1  # the profile and its twin, in the order in which the engine numbers them


@pytest.fixture(scope="module")
def mistreated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LiveService, Any]]:
    """A service that these tests mistreat one after the other, and how it was at rest."""
    directory = tmp_path_factory.mktemp("mistreated")
    service = LiveService(directory, "--config", write_config(directory, QUICK))
    try:
        service.execute("pass", profile="base", timeout_ms=60000)
        with drained(service):
            yield service, come_to_rest(service)
            service.check_health()
            service.remember()
        service.stop()
    finally:
        service.kill()


@pytest.fixture
def service(mistreated: tuple[LiveService, Any]) -> Iterator[LiveService]:
    """At the end all that the test made is gone again."""
    service, before = mistreated
    yield service
    for box in ask(service.port, "GET", "/v1/sandboxes").json["sandboxes"]:
        assert ask(service.port, "DELETE", f"/v1/sandboxes/{box['id']}").status == 204
    check_back_at(service, before)


def kill_server(service: LiveService) -> None:
    """Clients wait in the backlog of the next one."""
    server = one(lambda: Family(service).server())
    kill(server)
    assert soon(lambda: not is_alive(server))


def make(service: LiveService, **fields: Any) -> Shell:
    return shell_of(service, **fields)


class Running:
    """An execution whose events are read by hand, and read on after the server's death."""

    def __init__(self, shell: Shell, code: str, **fields: Any) -> None:
        self.port = shell.port
        body = {"code": code, "timeout_ms": 60000, "on_disconnect": "continue", **fields}
        self.stream = Stream(shell.port, "POST", f"{shell.url}/execute", body, SSE)
        self.id = str(self.stream.reply.header("x-execution-id"))
        self.events = self.stream.events()
        self.seen: list[Event] = []

    def until(self, text: str) -> Running:
        """Until this was printed or is in an event; a line may come in pieces."""
        printed = ""
        for event in self.events:
            self.seen.append(event)
            is_text = event.type in ("stdout", "stderr")
            printed += event.data["data"] if is_text else json.dumps(event.data)
            if text in printed:
                return self
        raise AssertionError(f"no {text} in {self.seen}")

    def come_back(self) -> Running:
        self.stream.connection.close()
        path = f"/v1/executions/{self.id}/events?after={self.seen[-1].id}"
        self.stream = Stream(self.port, "GET", path, None, SSE)
        assert self.stream.reply.status == 200, self.stream.reply
        self.events = self.stream.events()
        return self

    def is_forgotten(self) -> bool:
        return ask(self.port, "GET", f"/v1/executions/{self.id}").status == 404

    def close(self) -> None:
        self.stream.connection.close()

    def end(self) -> Any:
        self.seen += self.events
        self.close()
        numbers = [event.id or 0 for event in self.seen]
        assert numbers == sorted(set(numbers)), numbers
        assert self.seen[-1].type == "end", self.seen
        return self.seen[-1].data


GATE = "import os, time\nprint('begun', flush=True)\n" + (
    "while not os.path.exists('go'): time.sleep(0.01)\n"
)


# ---------------------------------------------------------------------------- what goes on


def test_an_execution_that_is_followed(service: LiveService) -> None:
    shell = make(service)
    it = Running(shell, GATE + "print('rest')\n6 * 7").until("begun")
    kill_server(service)
    it.come_back()
    shell.put("go", b"")
    end = it.until("rest").until("42").end()
    assert end["status"] == "ok" and end["id"] == it.id, end
    result = ask(service.port, "GET", f"/v1/executions/{it.id}").json["result"]
    assert result["status"] == "ok" and result["stdout"].endswith("rest\n"), result
    assert result["stdout_truncated"] and result["results_truncated"]  # the first server's is lost
    assert result["limit_hit"] is None


@pytest.mark.parametrize(
    "words",
    [
        [GATE + "print('rest')\n6 * 7"],
        ["--shell", "echo begun; while [ ! -e go ]; do sleep 0.01; done; echo rest; echo 42"],
    ],
)
def test_the_command_line_goes_on(service: LiveService, words: list[str]) -> None:
    shell = make(service)
    box = shell.url.rsplit("/", 1)[1]
    with subprocess.Popen(
        [cloche_bin(), "sandbox", "exec", "--server", service.url, box, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_env(),
    ) as cli:
        assert cli.stdout and cli.stderr and cli.stdout.readline() == b"begun\n"
        for _ in range(2):
            kill_server(service)
        shell.put("go", b"")
        assert cli.stdout.read() == b"rest\n42\n"
        assert re.fullmatch(rb"cloche: the server was restarted meanwhile: .*\n", cli.stderr.read())
        assert cli.wait() == 0


def test_an_execution_that_nobody_follows(service: LiveService) -> None:
    shell = make(service)
    it = Running(shell, "x = 0\n" + GATE + "x = 1").until("begun")
    it.close()
    kill_server(service)
    assert shell.info()["kernels"][0]["state"] == "busy"
    assert shell.info()["kernels"][0]["execution_id"] == it.id
    shell.put("go", b"")
    assert shell.run("print(x)") == "1\n"


def test_one_that_ends_while_no_server_is_there(service: LiveService) -> None:
    """Its last words wait in the socket; however it went, the kernel is free afterwards."""
    shell = make(service)
    for number in range(5):
        it = Running(shell, f"print('begun', flush=True)\nx = {number}").until("begun")
        kill_server(service)
        it.close()
        if not it.is_forgotten():  # else it had ended before
            it.come_back()
            last = [e.type for e in it.events][-1]
            it.close()
            assert last in ("end", "failed"), last
        assert shell.run("print(x)") == f"{number}\n"


def test_executions_that_wait(service: LiveService) -> None:
    """Those in the queue are lost with their server, which their clients see; the one that runs
    goes on, and what comes later runs after it."""
    shell = make(service)
    it = Running(shell, GATE + "x = ['first']").until("begun")
    ends: list[str] = []

    def wait() -> None:
        try:
            shell.run("x.append('queued')")
            ends.append("ran")
        except (ConnectionError, AssertionError, ValueError):
            ends.append("lost")

    threads = [threading.Thread(target=wait) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert soon(lambda: shell.info()["kernels"][0]["queued"] == 3)
    kill_server(service)
    for thread in threads:
        thread.join()
    it.come_back()
    shell.put("go", b"")
    assert it.end()["status"] == "ok"
    assert ends == ["lost"] * 3 and shell.run("print(x)") == "['first']\n"


def test_an_input_that_waits(service: LiveService) -> None:
    shell = make(service)
    it = Running(shell, "name = input('who? ')\nprint('hello', name)", allow_stdin=True)
    it.until("who?")
    kill_server(service)
    it.come_back()
    assert soon(lambda: shell.post("/stdin", {"value": "you"}).status == 200)
    it.until("hello you")
    assert it.end()["status"] == "ok"


def test_an_interrupt_reaches_it(service: LiveService) -> None:
    shell = make(service)
    it = Running(shell, GATE).until("begun")
    kill_server(service)
    it.come_back()
    assert shell.post("/interrupt", {}).json == {"interrupted": True}
    assert it.end()["status"] == "interrupted"
    assert shell.run("print(1)") == "1\n"


def test_its_time_is_still_counted(service: LiveService) -> None:
    shell = make(service)
    it = Running(shell, GATE, timeout_ms=4000).until("begun")
    kill_server(service)
    assert it.come_back().end()["status"] == "timeout"


# ---------------------------------------------------------------------------- files


def test_an_upload_is_all_or_nothing(service: LiveService) -> None:
    shell = make(service)
    shell.put("data", b"old")
    with Connection(service.port) as connection:
        connection.send("PUT", f"{shell.url}/files/data", None, {"Content-Length": "3000000"})
        connection.sock.sendall(b"n" * 2_000_000)
        assert soon(lambda: shell.info()["usage"]["disk_bytes"] > 500_000)
        kill_server(service)
        with contextlib.suppress(ConnectionError):
            connection.sock.sendall(b"n" * 1_000_000)
    assert shell.read("data") == b"old"
    assert shell.paths() == ["data"]
    assert set(shell.said("ls -A /workspace").split()) <= {"data", "__main__.py"}
    assert soon(lambda: shell.info()["usage"]["disk_bytes"] < 500_000)
    assert shell.put("data", b"new").status == 200 and shell.read("data") == b"new"


def test_a_download_is_cut_where_the_client_sees_it(service: LiveService) -> None:
    shell = make(service)
    shell.said("head -c 30000000 /dev/zero > big")
    with Connection(service.port) as connection:
        connection.send("GET", f"{shell.url}/files/big")
        head = connection.head()
        kill_server(service)
        got = 0
        with contextlib.suppress(ConnectionError):
            while block := connection.sock.recv(1 << 20):
                got += len(block)
    assert got < int(head.header("content-length") or 0)
    assert len(shell.read("big")) == 30_000_000


# ---------------------------------------------------------------------------- commands


def test_a_command_in_the_background(service: LiveService) -> None:
    shell = make(service)
    command = shell.start("echo begun; read a; echo got $a; read b; echo got $b")
    shell.prints(command, "begun")
    with shell.follow(command) as first:
        told = first.events()
        seen = [next(told), next(told)]
    kill_server(service)
    assert shell.look(command)["status"] == "running"
    assert shell.feed(command, data="one\n").status == 200
    shell.prints(command, "got one")
    with shell.follow(command, seen[-1].id or 0) as rest:
        shell.feed(command, data="two\n", eof=True)
        events = list(rest.events())
    assert all((e.id or 0) > (seen[-1].id or 0) for e in events)
    assert "".join(e.data["data"] for e in events if e.type == "stdout") == "got one\ngot two\n"
    assert events[-1].type == "end" and events[-1].data["exit_code"] == 0
    assert events[-1].data["stdout_truncated"]


def test_commands_hear_what_they_should(service: LiveService) -> None:
    """Signals, the end of their stdin, their time; and those that end meanwhile are over."""
    shell = make(service)
    caught = shell.start("trap 'echo caught; exit 3' TERM; echo begun; sleep 1000 & wait")
    late = shell.start("echo begun; exec sleep 1000", timeout_ms=2000)
    reads = shell.start("echo begun; cat")
    for command in (caught, late, reads):
        shell.prints(command, "begun")
    ends = shell.start("echo begun; while [ ! -e go ]; do sleep 0.01; done; exit 9")
    shell.prints(ends, "begun")
    kill_server(service)
    shell.signal(caught, "SIGTERM")
    assert shell.over(caught)["exit_code"] == 3
    assert shell.feed(reads, data="x", eof=True).status == 200
    assert shell.over(reads)["exit_code"] == 0
    assert shell.over(late)["status"] == "timeout"
    shell.put("go", b"")
    assert shell.over(ends)["exit_code"] == 9


def test_a_command_that_was_waited_for(service: LiveService) -> None:
    """Its client is gone, and the server that would have ended it: it goes on, and can be found."""
    shell = make(service)
    with shell.stream("echo begun; while [ ! -e go ]; do sleep 0.01; done; exit 4") as stream:
        events = stream.events()
        assert [next(events).type for _ in range(2)] == ["start", "stdout"]
        command = shell.commands()[0]["id"]
        kill_server(service)
    shell.put("go", b"")
    assert shell.over(command)["exit_code"] == 4


def test_commands_that_are_over_are_remembered(service: LiveService) -> None:
    """But for their output."""
    shell = make(service)
    exited = shell.command("echo said; exit 5")
    killed = shell.command("kill -9 $$")
    late = shell.command("sleep 1000", timeout_ms=200)
    kill_server(service)
    names = ("id", "status", "exit_code", "signal", "timed_out", "cmd", "created", "duration_ms")
    for before in (exited, killed, late):
        now = shell.look(before["id"])
        assert {n: now[n] for n in names} == {n: before[n] for n in names}
        assert now["stdout"] == "" and now["stdout_truncated"]
    assert shell.info()["idle_expires"] is not None  # none of them is use


def test_a_stdin_that_had_not_all_been_written_ends(service: LiveService) -> None:
    shell = make(service)
    code = "echo begun; while [ ! -e go ]; do sleep 0.01; done; cat > /dev/null; echo end"
    with shell.stream(code, stdin="x" * 500_000, on_disconnect="continue") as stream:
        events = stream.events()
        assert [next(events).type for _ in range(2)] == ["start", "stdout"]
        command = shell.commands()[0]["id"]
        kill_server(service)
    shell.put("go", b"")
    assert shell.over(command)["exit_code"] == 0


def test_a_terminal_hangs_up(service: LiveService) -> None:
    shell = make(service)
    with shell.terminal(on_disconnect="continue") as terminal:
        terminal.type("sleep 96420\n")
        assert soon(lambda: shell.processes("96420"))
        command = terminal.id
        kill_server(service)
    assert soon(lambda: not shell.processes("96420"))
    assert shell.over(command)["status"] in ("exited", "killed")


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


# ---------------------------------------------------------------------------- others that die


def gone(shell: Shell) -> str:
    reply = shell.ask("GET", "")
    assert reply.status == 410 and reply.json["error"]["code"] == "sandbox_gone", reply.body
    return str(reply.json["error"]["message"])


@pytest.fixture
def doomed(tmp_path: Path) -> Iterator[LiveService]:
    service = LiveService(tmp_path, "--config", write_config(tmp_path, QUICK))
    try:
        yield service
    finally:
        service.kill()


def test_the_warden_dies(doomed: LiveService, tmp_path: Path) -> None:
    """All sandboxes go with it; whoever asks is told so, now and by the next `cloche serve`."""
    service = doomed
    with drained(service):
        shells = [make(service) for _ in range(3)]
        deleted = make(service)
        deleted.end()
        kill(one(lambda: Family(service).warden()))
        assert soon(lambda: _status(shells[0]) == 410)  # the server that dies with it may answer
        for shell in shells:
            assert "restarted" in gone(shell)
        assert "restarted" not in gone(deleted)
        reply = ask(service.port, "GET", "/v1/sandboxes/sbx_never")
        assert reply.status == 404
    service.stop()
    heir = LiveService(tmp_path, "--config", str(tmp_path / "cloche.json"))
    try:
        for shell in (*shells, deleted):
            shell.port = heir.port
            gone(shell)
        heir.stop()
    finally:
        heir.kill()


def test_a_paused_sandbox_does_not_hold_up_the_end(doomed: LiveService) -> None:
    """What is frozen does not die of SIGKILL, and the warden waits for its children."""
    with drained(doomed):
        assert make(doomed).post("/pause", {}).status == 200
    doomed.stop()
    assert "does not end" not in doomed.text()


def _status(shell: Shell) -> int:
    try:
        return ask(shell.port, "GET", shell.url).status
    except ConnectionError:
        return 0


def _kernel(service: LiveService) -> Process:
    return one(lambda: Family(service).kernels(LIVE))


def test_a_nursery_dies(service: LiveService) -> None:
    shell = make(service)
    it = Running(shell, GATE).until("begun")
    kill(one(lambda: Family(service).nursery(LIVE)))
    it.seen += it.events
    it.close()
    assert it.seen[-1].type == "failed" and it.seen[-1].data["error"]["code"] == "sandbox_gone"
    assert "killed" in gone(shell)
    assert soon(lambda: service.live() == {"base": "ready"}), service.live()
    assert make(service).run("print(1)") == "1\n"


def test_a_lean_nursery_dies(service: LiveService) -> None:
    shell = make(service)
    shell.run("x = 1")
    kill(one(lambda: Family(service).nursery(LEAN)))
    assert shell.run("print(x)") == "1\n"


def test_a_zygote_dies(service: LiveService) -> None:
    """Live sandboxes go on, and get new kernels and commands from the next one."""
    shell = make(service)
    it = Running(shell, "x = 5\n" + GATE).until("begun")
    command = shell.start("echo begun; read x; exit 3")
    shell.prints(command, "begun")
    kill(one(lambda: Family(service).zygotes(LIVE)))
    shell.put("go", b"")
    assert it.end()["status"] == "ok" and shell.run("print(x)") == "5\n"
    shell.feed(command, data="\n")
    assert shell.over(command)["exit_code"] == 3
    assert soon(lambda: shell.command("echo on")["stdout"] == "on\n")
    assert shell.post("/restart", {}).status == 200
    assert shell.run("print('x' in globals())") == "False\n"


def test_an_init_dies(service: LiveService) -> None:
    shell = make(service)
    command = shell.start(["sleep", "95173"])
    (process,) = one_of(shell, "95173")
    kill(init_of(service, process))
    assert soon(lambda: shell.ask("GET", f"/commands/{command}").status == 410)
    assert "killed" in gone(shell)


def one_of(shell: Shell, word: str) -> list[Process]:
    assert soon(lambda: len(shell.processes(word)) == 1)
    return shell.processes(word)


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

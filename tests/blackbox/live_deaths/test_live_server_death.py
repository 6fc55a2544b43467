"""kill -9 of the server while live sandboxes are there: what runs in them goes on, with its files
and commands."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import threading

import pytest

from commands import soon
from deaths import GATE, Running, kill_server, make
from family import Family, kill, one
from harness import LiveService, clean_env, cloche_bin
from host import is_alive
from http_client import JSON, Connection, ask


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


def test_a_command_in_the_background_from_its_reply_on(service: LiveService) -> None:
    """Whoever has the 202 has a command, however soon the server dies."""
    shell = make(service)
    body = json.dumps({"cmd": "read a; echo got $a", "background": True}).encode()
    for turn in range(20):
        server = one(lambda: Family(service).server())
        with Connection(service.port) as connection:
            connection.ask("GET", "/health")  # it is this server's, and not left to the next one
            reply = connection.ask("POST", f"{shell.url}/commands", body, JSON)
            kill(server)
        assert reply.status == 202, reply.body
        command = reply.json["id"]
        assert soon(lambda: not is_alive(server))
        assert shell.look(command)["status"] == "running", turn
        assert shell.feed(command, data=f"{turn}\n").status == 200
        assert shell.over(command)["stdout"] == f"got {turn}\n"


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

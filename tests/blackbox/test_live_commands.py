"""Commands in live sandboxes: what they get, what comes back, how they end."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from commands import ENDLESS, LINES, SSE, Shell, gather, shell_of, soon
from harness import LiveService
from http_client import JSON, Connection, Stream, ask, post


@pytest.fixture
def shell(live_service: LiveService) -> Iterator[Shell]:
    with shell_of(live_service, env={"SHARED": "sandbox", "OWN": "sandbox"}) as shell:
        yield shell


# ---------------------------------------------------------------------------- whole


def test_a_line_for_the_shell(shell: Shell) -> None:
    done = shell.command("echo out; echo err >&2; (exit 3)")
    assert done["id"].startswith("cmd_")
    assert (done["status"], done["exit_code"], done["signal"]) == ("exited", 3, None)
    assert (done["stdout"], done["stderr"]) == ("out\n", "err\n")
    assert done["cmd"] == "echo out; echo err >&2; (exit 3)" and done["cwd"] == "/workspace"
    assert not (done["timed_out"] or done["stdout_truncated"] or done["stderr_truncated"])
    assert done["duration_ms"] >= 0 and done["created"] > 1e9 and done["problem"] is None


def test_a_program_and_its_arguments(shell: Shell) -> None:
    words = ["a b", "$HOME", "", "*", "ä\n"]
    code = "import sys, json; print(json.dumps(sys.argv[1:]))"
    assert json.loads(shell.said(["python3", "-c", code, *words])) == words


def test_files_are_those_of_the_kernel(shell: Shell) -> None:
    shell.run("open('made.txt', 'w').write('by the kernel')")
    assert shell.said("cat made.txt; echo -n more > other.txt") == "by the kernel"
    assert shell.read("other.txt") == b"more"


def test_directory(shell: Shell) -> None:
    shell.said("mkdir -p /workspace/below")
    assert shell.said("pwd", cwd="/workspace/below") == "/workspace/below\n"
    assert shell.said("pwd", cwd="below") == "/workspace/below\n"
    done = shell.command("pwd", cwd="/nowhere")
    assert done["exit_code"] == 126 and "cannot change to /nowhere" in done["stderr"], done


def test_environment(shell: Shell) -> None:
    """The usual, then the sandbox's, then the request's: each name once."""
    own = {"OWN": "request", "PATH": "/workspace/bin:/usr/bin:/bin", "WORDS": "a=b 'c'"}
    lines = shell.said(["env"], env=own).splitlines()
    found = dict(line.split("=", 1) for line in lines)
    assert len(found) == len(lines), lines
    assert found["SHARED"] == "sandbox" and found["OWN"] == "request"
    assert found["WORDS"] == "a=b 'c'" and found["PATH"] == own["PATH"]
    assert found["HOME"] and found["LANG"] == "C.UTF-8" and "TERM" not in found
    ours = [name for name in found if name.startswith(("CLOCHE", "PYTHON"))]
    assert sorted(ours) == ["PYTHONPATH", "PYTHONUSERBASE"]  # of packages
    shell.said("mkdir bin; printf '#!/bin/sh\\necho mine\\n' > bin/tool; chmod +x bin/tool")
    assert shell.said(["tool"], env=own) == "mine\n"


def test_python_is_the_profiles(shell: Shell) -> None:
    """Under both names, also where the system has one of them only."""
    code = "import sys; print(sys.executable, *sys.argv[1:])"
    for name in ("python", "python3"):
        assert shell.said([name, "-c", code, "a b", "'"]) == "/usr/bin/python3 a b '\n"
    assert shell.said("echo $PATH").startswith("/usr/bin:")
    assert shell.said("printf '#!/usr/bin/env python\nprint(7)\n' > s; chmod +x s; ./s") == "7\n"


def test_stdin(shell: Shell) -> None:
    assert shell.said("cat") == ""
    assert shell.said(["sort"], stdin="b\na\n") == "a\nb\n"
    much = "line\n" * 100_000
    assert shell.said("wc -c", stdin=much) == f"{len(much)}\n"
    assert shell.said("head -c 4", stdin=much) == "line"  # it leaves the rest


@pytest.mark.parametrize(
    ("what", "code", "words"),
    [
        ("no-such-program-there", 127, "not found"),
        (["no-such-program-there"], 127, "no-such-program-there"),
        (["/etc/passwd"], 126, "/etc/passwd"),
        (["/workspace"], 126, "/workspace"),
    ],
)
def test_what_cannot_be_run(shell: Shell, what: str | list[str], code: int, words: str) -> None:
    done = shell.command(what)
    assert done["exit_code"] == code and words in done["stderr"], done
    assert done["status"] == "exited" and done["problem"] is None


def test_death_by_a_signal(shell: Shell) -> None:
    done = shell.command("kill -SEGV $$")
    assert (done["status"], done["signal"], done["exit_code"]) == ("killed", signal.SIGSEGV, 139)


def test_time(shell: Shell) -> None:
    """When it is up all of the command's processes die, those in sessions of their own too."""
    done = shell.command("setsid sleep 54321 & sleep 54321 & echo begun; wait", timeout_ms=3000)
    assert done["status"] == "timeout" and done["timed_out"] and done["exit_code"] is None, done
    assert done["stdout"] == "begun\n"
    assert soon(lambda: not shell.processes("54321"))


def test_children_hold_nobody_up(shell: Shell) -> None:
    """A shell that is done is done, whoever still has its output open."""
    done = shell.command("sleep 65432 & echo done")
    assert done["stdout"] == "done\n" and done["exit_code"] == 0
    assert soon(lambda: len(shell.processes("65432")) == 1)  # at first it is a copy of the shell


def test_output_is_cut(shell: Shell) -> None:
    done = shell.command("yes | head -c 300000; echo x >&2", output_bytes=1000)
    assert done["exit_code"] == 0 and len(done["stdout"]) == 1000
    assert done["stdout_truncated"] and not done["stderr_truncated"]
    reply = shell.try_command("true", output_bytes=1 << 50)
    assert reply.status == 422 and reply.json["error"]["code"] == "limit_too_high", reply.body


def test_output_of_any_bytes(shell: Shell) -> None:
    done = shell.command(r"printf 'a\377\0\342\202\254\342\202b'")
    assert done["stdout"] == "a\ufffd\0€\ufffdb", done
    with shell.stream(r"for i in 342 202 254; do printf \\$i; sleep 0.05; done") as stream:
        assert gather(stream.events())[0]["stdout"] == "€"


# ---------------------------------------------------------------------------- streams


def test_a_stream_of_events(shell: Shell) -> None:
    """What is printed comes when it is printed."""
    with shell.stream("echo one; read x; echo two >&2; exit 4", stdin="x\n") as stream:
        assert stream.reply.header("content-type") == "text/event-stream; charset=utf-8"
        events = list(stream.events())
    assert [e.type for e in events] == ["start", "stdout", "stderr", "end"]
    assert events[0].data["id"].startswith("cmd_")
    assert events[-1].data["exit_code"] == 4 and events[-1].data["status"] == "exited"
    assert "stdout" not in events[-1].data


def test_a_stream_of_lines(shell: Shell) -> None:
    with shell.stream("echo one", LINES) as stream:
        assert stream.reply.header("content-type") == "application/x-ndjson"
        lines = list(stream.lines())
    assert [line["event"] for line in lines] == ["start", "stdout", "end"]
    assert [line["seq"] for line in lines] == sorted({line["seq"] for line in lines})
    assert lines[1]["data"] == {"data": "one\n"}


def test_output_comes_while_it_runs(shell: Shell) -> None:
    with shell.stream("echo first; while [ ! -e go ]; do sleep 0.01; done; echo last") as stream:
        events = stream.events()
        assert next(events).type == "start"
        assert next(events).data == {"data": "first\n"}
        shell.put("go", b"")
        assert next(events).data == {"data": "last\n"}
        assert next(events).type == "end"


@pytest.mark.parametrize("accept", [{}, SSE, LINES])
def test_a_client_that_leaves_ends_its_command(shell: Shell, accept: dict[str, str]) -> None:
    fields = {"cmd": "sleep 76543 & setsid sleep 76543 & wait"}
    stream = _begin(shell, fields, accept)
    assert soon(lambda: len(shell.processes("76543")) == 2)
    stream.close()
    assert soon(lambda: not shell.processes("76543"))
    assert soon(lambda: shell.commands()[0]["status"] == "killed")


def _begin(shell: Shell, fields: dict[str, Any], accept: dict[str, str]) -> Any:
    connection = Connection(shell.port)
    body = json.dumps(fields).encode()
    connection.send("POST", f"{shell.url}/commands", body, JSON | accept)
    return connection


def test_a_client_that_leaves_may_let_it_go_on(shell: Shell) -> None:
    code = "echo begun; while [ ! -e go ]; do sleep 0.01; done; echo done"
    with shell.stream(code, on_disconnect="continue") as stream:
        command = next(stream.events()).data["id"]
    shell.prints(command, "begun")
    shell.put("go", b"")
    assert shell.over(command)["stdout"] == "begun\ndone\n"


def test_a_reader_who_does_not_read(shell: Shell) -> None:
    """The command waits; nothing is lost when the reader goes on."""
    code = "i=0; while [ $i -lt 3000 ]; do echo $i; i=$((i+1)); done; yes | head -c 8000000"
    with shell.stream(code, output_bytes=1 << 20) as stream:
        for _ in range(20):
            assert shell.info()["state"] == "running"
        said, end = gather(stream.events())
    assert said["stdout"].startswith("0\n1\n2\n") and len(said["stdout"]) == 1 << 20
    assert end["exit_code"] == 0 and end["stdout_truncated"]


# ---------------------------------------------------------------------------- in the background


def test_a_command_in_the_background(shell: Shell) -> None:
    command = shell.start("echo begun; read word; echo got $word; cat")
    shell.prints(command, "begun")
    listed = shell.commands()
    assert [c["id"] for c in listed] == [command] and "stdout" not in listed[0]
    assert listed[0]["status"] == "running" and listed[0]["exit_code"] is None
    assert shell.feed(command, data="this\n").status == 200
    shell.prints(command, "got this")
    assert shell.feed(command, data="rest", eof=True).status == 200
    done = shell.over(command)
    assert done["stdout"] == "begun\ngot this\nrest" and done["exit_code"] == 0
    assert shell.feed(command, data="late").json["error"]["code"] == "command_over"
    assert shell.signal(command, "SIGTERM").json["error"]["code"] == "command_over"


def test_stdin_that_has_ended(shell: Shell) -> None:
    command = shell.start("cat; echo end; sleep 1000")
    assert shell.feed(command, eof=True).status == 200
    shell.prints(command, "end")
    assert shell.feed(command, data="late").json["error"]["code"] == "stdin_closed"
    assert shell.look(command)["status"] == "running"


def test_events_again_from_any_number(shell: Shell) -> None:
    command = shell.start("echo one; read x; echo two")
    with shell.follow(command) as live:
        events = live.events()
        first = [next(events), next(events)]
        assert [e.type for e in first] == ["start", "stdout"]
        shell.feed(command, data="\n")
        rest = list(events)
    assert [e.type for e in rest] == ["stdout", "end"]
    for after in range(5):
        with shell.follow(command, after) as again:
            numbers = [e.id for e in again.events()]
        assert numbers == [e.id for e in first + rest if (e.id or 0) > after]
    with shell.follow(command, 0, LINES) as again:
        assert [line["event"] for line in again.lines()] == ["start", "stdout", "stdout", "end"]


@pytest.mark.parametrize(
    ("sent", "number"), [("SIGTERM", 15), ("TERM", 15), (15, 15), ("15", 15), ("SIGKILL", 9)]
)
def test_signals(shell: Shell, sent: Any, number: int) -> None:
    """Also right after the start, when there is no process to take them yet."""
    command = shell.start(["sleep", "1000"])
    assert shell.signal(command, sent).status == 200
    done = shell.over(command)
    assert (done["status"], done["signal"], done["exit_code"]) == ("killed", number, 128 + number)


def test_a_signal_that_is_caught(shell: Shell) -> None:
    command = shell.start("trap 'echo caught; exit 5' INT; echo begun; sleep 1000 & wait")
    shell.prints(command, "begun")
    shell.signal(command, "SIGINT")
    done = shell.over(command)
    assert done["exit_code"] == 5 and done["stdout"] == "begun\ncaught\n"


def test_delete(shell: Shell) -> None:
    command = shell.start("setsid sleep 87654 & echo begun; exec sleep 87654")
    shell.prints(command, "begun")
    assert soon(lambda: len(shell.processes("87654")) == 2)
    path = f"/commands/{command}"
    assert shell.ask("DELETE", path).status == 204
    for method, where in (("GET", path), ("DELETE", path), ("GET", path + "/events")):
        reply = shell.ask(method, where)
        assert reply.status == 404 and reply.json["error"]["code"] == "no_such_command"
    assert soon(lambda: not shell.processes("87654"))
    assert shell.commands() == []


def test_background_time(shell: Shell) -> None:
    done = shell.over(shell.start(ENDLESS, timeout_ms=3000))
    assert done["status"] == "timeout" and done["stdout"] == "begun\n"


def test_stdin_that_nobody_reads_is_bounded(shell: Shell) -> None:
    command = shell.start(["sleep", "1000"])
    replies = [shell.feed(command, data="x" * 700_000) for _ in range(3)]
    assert [reply.status for reply in replies] == [200, 409, 409]
    error = replies[-1].json["error"]
    assert error["code"] == "stdin_full" and error["retryable"]


# ---------------------------------------------------------------------------- wrong requests


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"cmd": 5},
        {"argv": []},
        {"argv": "ls"},
        {"argv": [1]},
        {"argv": [""]},
        {"cmd": "x", "argv": ["x"]},
        {"cmd": "x", "cwd": 5},
        {"cmd": "x", "env": {"A": 1}},
        {"cmd": "x", "env": {"A=B": "1"}},
        {"cmd": "x", "env": {"": "1"}},
        {"cmd": "x", "timeout_ms": -1},
        {"cmd": "x", "timeout_ms": 0},
        {"cmd": "x", "timeout_ms": "5"},
        {"cmd": "x", "output_bytes": 0},
        {"cmd": "x", "background": "maybe"},
        {"cmd": "x", "on_disconnect": "explode"},
        {"cmd": "x", "unknown": 1},
        {"cmd": "x" * 50_000},
        {"argv": ["x"] * 1001},
        {"argv": ["x" * 30_000, "y" * 30_000]},
        {"cmd": "x", "env": {"A": "y" * 50_000}},
        {"cmd": "x\0y"},
    ],
)
def test_a_request_that_is_wrong(live_service: LiveService, body: Any) -> None:
    with shell_of(live_service) as shell:
        reply = shell.post("/commands", body)
        assert reply.status == 422 and reply.json["detail"], (reply.status, reply.body)
        assert shell.commands() == []


def test_words_about_commands_that_are_wrong(shell: Shell) -> None:
    command = shell.start(ENDLESS)
    for word in ("SIGNOPE", "", 0, 32, -1, 1.5, None, [9], "SIGTERM\n"):
        assert shell.signal(command, word).status == 422, word
    assert shell.feed(command, data=5).status == 422
    assert shell.feed(command, other="x").status == 422
    for after in ("x", "-1"):
        reply = shell.ask("GET", f"/commands/{command}/events?after={after}")
        assert reply.status == 422, reply.body
    for path in ("/commands/cmd_nope", "/commands/cmd_nope/events", "/commands/cmd_nope/pty"):
        reply = shell.ask("GET", path)
        assert reply.status == 404 and reply.json["error"]["code"] == "no_such_command"
    assert shell.look(command)["status"] == "running"


def test_a_sandbox_that_is_not_there(live_service: LiveService) -> None:
    for path in ("/commands", "/commands/pty", "/commands/cmd_x"):
        reply = ask(live_service.port, "GET", f"/v1/sandboxes/sbx_nope{path}")
        assert reply.status == 404 and reply.json["error"]["code"] == "no_such_sandbox"
    reply = post(live_service.port, "/v1/sandboxes/sbx_nope/commands", {"cmd": "true"})
    assert reply.status == 404


def test_events_of_a_stream_end_once(shell: Shell) -> None:
    """A follower who comes when all is over gets all of it and the end."""
    with shell.stream("seq 2000") as stream:
        first = list(stream.events())
    with Stream(
        shell.port, "GET", f"{shell.url}/commands/{first[0].data['id']}/events", None, SSE
    ) as again:
        assert list(again.events()) == first

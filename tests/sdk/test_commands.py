"""Commands and terminals in a live sandbox."""

from __future__ import annotations

from typing import Any

import pytest

from cloche import errors


def test_a_line_and_a_program(box: Any) -> None:
    out: list[str] = []
    done = box.commands.run(
        "echo $WHO; cat; echo e >&2; pwd; exit 3",
        env={"WHO": "you"},
        stdin="in\n",
        cwd="/tmp",
        timeout=20,
        on_stdout=out.append,
    )
    assert (done.stdout, done.stderr, done.exit_code) == ("you\nin\n/tmp\n", "e\n", 3)
    assert out == ["you", "in", "/tmp"] and done.status == "exited" and not done.ok
    assert box.commands.run(["printf", "%s|", "a b", "$c"]).check().stdout == "a b|$c|"
    with pytest.raises(errors.ExecutionFailed, match="exit status 3 .e."):
        done.check()
    late = box.commands.run("sleep 60", timeout=0.2)
    assert late.timed_out and "time" in late.failure
    assert box.commands.run(["no-such-program"]).exit_code == 127


def test_its_events(box: Any) -> None:
    kinds = [event.type for event in box.commands.stream("echo a; echo b >&2")]
    assert kinds[0] == "start" and kinds[-1] == "end" and {"stdout", "stderr"} <= set(kinds)


def test_in_the_background(box: Any) -> None:
    command = box.commands.start("trap 'echo caught; exit 5' INT; read a; echo got $a; cat")
    command.write("one\ntwo\n")
    with command.stream() as events:
        for event in events:
            if "two" in event.text:
                break
    assert command.info().status == "running"
    assert [c.id for c in box.commands.list()] == [command.id]
    command.write("", eof=True)
    out: list[str] = []
    done = command.wait(on_stdout=out.append)
    assert out == ["got one", "two"] and done.stdout == "got one\ntwo\n" and done.ok
    assert command.wait().stdout == done.stdout
    with pytest.raises(errors.CommandOver):
        command.signal()
    command.delete()
    with pytest.raises(errors.NoSuchCommand):
        box.commands.get(command.id).info()


def test_signals(box: Any) -> None:
    command = box.commands.start("trap 'exit 5' INT; echo ready; while :; do sleep 0.05; done")
    with command.stream() as events:
        for event in events:
            if event.text:
                break
    command.signal("SIGINT")
    assert command.wait().exit_code == 5
    other = box.commands.start("sleep 600")
    other.kill()
    assert other.wait().signal == 9


def test_a_callback_that_fails_ends_its_command(box: Any) -> None:
    class Enough(Exception):
        pass

    def stop(line: str) -> None:
        raise Enough

    with pytest.raises(Enough):
        box.commands.run("echo begun; sleep 600", timeout=700, on_stdout=stop)
    assert [c for c in box.commands.list() if c.status == "running"] == []


def test_a_terminal(box: Any) -> None:
    with box.commands.terminal(rows=30, cols=90) as terminal:
        assert terminal.command_id.startswith("cmd_")
        terminal.write("stty size\n")
        assert b"30 90" in terminal.read_until("30 90")
        terminal.resize(40, 100)
        terminal.write("stty size; exit 4\n")
        assert b"40 100" in b"".join(terminal)
        assert terminal.result.exit_code == 4 and terminal.read() == b""


def test_a_terminal_that_stays(box: Any) -> None:
    with box.commands.terminal("read a; echo got $a; read b", stays=True) as terminal:
        command = terminal.command_id
    with box.commands.attach(command) as terminal:
        terminal.write("x\n")
        assert b"got x" in terminal.read_until("got x")
    box.commands.get(command).delete()


def test_no_terminal(sdk: Any, client: Any, box: Any) -> None:
    with pytest.raises(errors.NoSuchCommand):
        box.commands.attach("cmd_00000000000000000000000000000000")
    box.delete()
    with pytest.raises(errors.SandboxGone):
        box.commands.terminal()

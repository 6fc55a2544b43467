"""Terminals in live sandboxes: a real shell over a WebSocket."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from commands import Shell, Terminal, shell_of, soon
from harness import LiveService
from raw_http import resident_mb
from raw_ws import CLOSE, TEXT, Socket, frame

PROMPT = "PS1='[''ready] '\n"  # typed in two parts, so that its echo is not taken for it
FLOOD = "while :; do echo 0123456789012345678901234567890123456789; done"


@pytest.fixture
def shell(live_service: LiveService) -> Iterator[Shell]:
    with shell_of(live_service) as shell:
        yield shell


def prompt(terminal: Terminal) -> Terminal:
    terminal.type(PROMPT).sees("[ready] ")
    return terminal


def test_a_shell(shell: Shell) -> None:
    """A prompt, an echo of what is typed, answers, and its end."""
    with shell.terminal() as terminal:
        assert terminal.id.startswith("cmd_")
        prompt(terminal).type("echo $((6*7)) $TERM; tty\n")
        shown = terminal.sees("[ready] ").decode()
        assert "echo $((6*7))" in shown and "42 xterm-256color" in shown and "/dev/pts/" in shown
        terminal.type("exit 7\n")
        end = terminal.end()
    assert (end["status"], end["exit_code"], end["terminal"]) == ("exited", 7, True)
    assert end["id"] == terminal.id and shell.look(terminal.id)["exit_code"] == 7


def test_keys_that_interrupt_and_end(shell: Shell) -> None:
    with shell.terminal() as terminal:
        prompt(terminal).type("sleep 1000\n").sees("sleep 1000")
        assert soon(lambda: shell.processes("1000"))
        terminal.type("\x03")
        assert b"^C" in terminal.sees("[ready] ")
        terminal.type("echo be''gun; cat; echo after\n").sees("begun")
        terminal.say(type="stdin", data="a word\n").sees("a word\r\na word")
        terminal.type("\x04").sees("after")
        terminal.sees("[ready] ")
        terminal.type("\x04")
        assert terminal.end()["exit_code"] == 0


def test_job_control(shell: Shell) -> None:
    """Ctrl-Z stops what is in front, and it can be brought back."""
    with shell.terminal("bash --norc -i") as terminal:
        prompt(terminal).type("echo be''gun; cat\n").sees("begun")  # and the shell reads no more
        terminal.type("here\n").sees("here\r\nhere")
        terminal.type("\x1a").sees("Stopped")
        terminal.sees("[ready] ")
        terminal.type("jobs; fg\n").sees("Stopped")
        terminal.sees("cat\r\n")
        terminal.sees("cat\r\n")  # says fg, and what is typed after that comes after that
        terminal.type("again\n").sees("again\r\nagain")
        terminal.type("\x03").sees("[ready] ")
        terminal.type("exit\n")
        terminal.end()


def test_size(shell: Shell) -> None:
    with shell.terminal("stty size; read x; stty size", rows=40, cols=132) as terminal:
        terminal.sees("40 132")
        terminal.say(type="resize", rows=50, cols=60).type("\n").sees("50 60")
        assert terminal.end()["exit_code"] == 0
    with shell.terminal("stty size") as terminal:
        terminal.sees("24 80")
    loop = "while :; do sleep 0.02; done"
    with shell.terminal(f"trap 'stty size; exit 3' WINCH; echo begun; {loop}") as terminal:
        terminal.sees("begun")
        terminal.say(type="resize", rows=11, cols=22).sees("11 22")
        assert terminal.end()["exit_code"] == 3


def test_size_from_the_sandboxs_own_connection(shell: Shell) -> None:
    with (
        shell.terminal("echo begun; read x; stty size") as terminal,
        Socket(shell.service, path=f"{shell.url}/ws") as ws,
    ):
        terminal.sees("begun")
        for wrong in (("cmd_x", 7, 9), (terminal.id, 0, 9), (terminal.id, 7, 1001)):
            ws.say(type="resize", command_id=wrong[0], rows=wrong[1], cols=wrong[2])
            assert ws.hear()["type"] == "failed"
        ws.say(type="resize", ref="r", command_id=terminal.id, rows=12, cols=34)
        assert ws.hear() == {"type": "resized", "ref": "r"}
        terminal.type("\n").sees("12 34")
        other = shell.try_command("sleep 1000", background=True).json["id"]
        ws.say(type="resize", command_id=other, rows=12, cols=34)
        assert ws.hear()["error"]["code"] == "no_terminal"


def test_keys_typed_before_it_is_there(shell: Shell) -> None:
    with shell.terminal("read a; echo got $a") as terminal:
        terminal.type("early\n")
        terminal.sees("got early")
        assert terminal.end()["exit_code"] == 0


def test_directory_and_user(shell: Shell) -> None:
    shell.said("mkdir below")
    with shell.terminal("pwd; id -u; stat -c %u $(tty); tty -s", cwd="/workspace/below") as it:
        it.sees("/workspace/below\r\n1000\r\n1000\r\n")
        assert it.end()["exit_code"] == 0


def test_the_last_words_are_heard(shell: Shell) -> None:
    for number in range(5):
        with shell.terminal(f"seq 2000; printf last-{number}") as terminal:
            terminal.sees(f"last-{number}")
            assert terminal.end()["exit_code"] == 0


def test_more_than_is_kept(shell: Shell) -> None:
    """A terminal never goes quiet; the end of what it showed is kept."""
    with shell.terminal("seq 400000; echo all; read x; echo $x") as terminal:
        terminal.sees("399999\r\n400000\r\nall\r\n")
        kept = shell.look(terminal.id)
        assert kept["stdout"].endswith("400000\r\nall\r\n") and kept["stdout_truncated"]
        assert len(kept["stdout"]) <= 1 << 17
        terminal.type("still there\n").sees("still there\r\nstill there")
        terminal.end()


def test_who_leaves_hangs_up(shell: Shell) -> None:
    """All at the terminal hear it, also those that the shell put into groups of their own."""
    with shell.terminal() as terminal:
        prompt(terminal).type("sleep 98765 & sleep 98765\n")
        assert soon(lambda: len(shell.processes("98765")) == 2)
        command = terminal.id
    done = shell.over(command)
    assert done["status"] in ("exited", "killed")
    assert soon(lambda: not shell.processes("98765"))


def test_who_leaves_early_ends_it(shell: Shell) -> None:
    with shell.terminal("sleep 97531; sleep 97531"):
        pass
    assert soon(lambda: shell.commands() and shell.commands()[0]["status"] != "running")
    assert soon(lambda: not shell.processes("97531"))


def test_it_may_go_on_and_be_sat_down_at_again(shell: Shell) -> None:
    with shell.terminal("echo begun; read a; echo got $a", on_disconnect="continue") as first:
        first.sees("begun")
        command = first.id
    assert shell.look(command)["status"] == "running"
    with shell.attach(command) as again:  # it goes on then, too
        again.sees("begun")
    with shell.attach(command) as second:
        second.sees("begun")  # what was shown before
        second.type("it\n").sees("got it")
        assert second.end()["exit_code"] == 0
    assert shell.attach(command).answer.status == 409


def test_who_sits_down_brings_a_size(shell: Shell) -> None:
    with shell.terminal("echo begun; read x; stty size", on_disconnect="continue") as first:
        first.sees("begun")
        command = first.id
    assert shell.attach(command, rows=0, cols=60).answer.status == 422
    with shell.attach(command, rows=20, cols=60) as second:
        second.sees("begun")
        second.type("\n").sees("20 60")
        assert second.end()["exit_code"] == 0


def test_one_sits_at_a_time(shell: Shell) -> None:
    with shell.terminal("cat") as first:
        first.type("one\n").sees("one\r\none")
        with shell.attach(first.id) as second:
            assert first.closed() == 1008
            second.sees("one\r\none")
            second.type("two\n").sees("two\r\ntwo")
            assert shell.look(first.id)["status"] == "running"
            second.type("\x04")
            assert second.end()["exit_code"] == 0


def test_one_who_does_not_read_is_waited_for(shell: Shell, live_service: LiveService) -> None:
    """The flood is held: the server's memory does not grow, others are served, Ctrl-C works."""
    with shell.terminal(f"trap 'echo caught; exit 3' INT; {FLOOD}") as terminal:
        terminal.sees("0123456789")
        before = resident_mb(live_service)
        for number in range(20):
            assert shell.said(f"echo {number}") == f"{number}\n"
        assert resident_mb(live_service) < before + 20
        terminal.type("\x03").sees("caught")
        assert terminal.end()["exit_code"] == 3


def test_one_who_does_not_read_can_be_replaced(shell: Shell) -> None:
    with shell.terminal(f"trap 'echo caught; exit 3' INT; {FLOOD}") as first:
        first.sees("0123456789")
        for number in range(10):
            shell.said("true")
        with shell.attach(first.id) as second:
            second.type("\x03").sees("caught")
            assert second.end()["exit_code"] == 3


def test_signals_and_stdin_over_http_too(shell: Shell) -> None:
    with shell.terminal("trap 'echo caught' USR1; echo begun; read a; echo got $a; cat") as it:
        it.sees("begun")
        assert shell.signal(it.id, "SIGUSR1").status == 200
        it.sees("caught")
        assert shell.feed(it.id, data="word\n").status == 200
        it.sees("word")
        assert shell.feed(it.id, eof=True).status == 200
        assert it.end()["exit_code"] == 0


def test_messages_that_are_wrong(shell: Shell) -> None:
    with shell.terminal("cat") as terminal:
        for text in (b"{}", b"x", b"[]", b'{"type":"stdin","data":5}', b'{"type":"other"}'):
            terminal.send(frame(TEXT, text))
        terminal.say(type="resize", rows=0, cols=5)
        terminal.say(type="resize", rows=5, cols=100000)
        while len(said := [t for t in terminal.texts if t["type"] == "failed"]) < 7:
            terminal.take()
        assert [t["error"]["code"] for t in said] == ["bad_fields"] * 7  # as with any other reply
        assert [t["detail"][0]["loc"][-1] for t in said[-2:]] == ["rows", "cols"]
        assert said[3]["detail"][0]["msg"] == "Input should be a valid string"
        terminal.type("still\n").sees("still\r\nstill")
        terminal.type("\x04")
        terminal.end()


@pytest.mark.parametrize(
    "query",
    [
        {"rows": 0},
        {"cols": 100000},
        {"rows": "x"},
        {"cmd": "x" * 40000},
        {"cwd": "/" + "x" * 5000},
        {"on_disconnect": "explode"},
    ],
)
def test_requests_that_are_wrong(shell: Shell, query: dict[str, object]) -> None:
    refused = shell.terminal(**query)  # type: ignore[arg-type]
    assert refused.answer.status in (414, 422), refused.answer
    assert shell.commands() == []


def test_a_plain_request_is_told_what_is_missing(shell: Shell) -> None:
    reply = shell.ask("GET", "/commands/pty")
    assert reply.status == 426 and reply.json["error"]["code"] == "no_websocket"
    command = shell.start("read x")
    assert shell.attach(command).answer.status == 409  # it has no terminal


def test_it_ends_with_its_sandbox(live_service: LiveService) -> None:
    with shell_of(live_service) as shell, shell.terminal() as terminal:
        prompt(terminal)
        shell.end()
        end = terminal.end()
        assert end["status"] == "killed" and end["problem"] == "its sandbox ended"


def test_bad_directory(shell: Shell) -> None:
    with shell.terminal("true", cwd="/nowhere") as terminal:
        terminal.sees("cannot change to /nowhere")
        assert terminal.end()["exit_code"] == 126


def test_close_frame(shell: Shell) -> None:
    """One who closes as the protocol has it is answered."""
    with shell.terminal("cat") as terminal:
        terminal.id
        terminal.send(frame(CLOSE, b"\x03\xe8"))
        assert terminal.closed() == 1000
    assert shell.over(terminal.id)["status"] in ("exited", "killed")

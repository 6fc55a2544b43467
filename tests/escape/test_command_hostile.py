"""Hostile commands and terminals in live sandboxes. The neighbour in another sandbox, its kernel,
its command and its terminal must not notice."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator

import pytest

from commands import Shell, shell_of, soon
from harness import LiveService
from hostile import HELPER, PROGRAMS, Program, fits
from raw_http import resident_mb


@pytest.fixture
def shell(live_service: LiveService) -> Iterator[Shell]:
    with shell_of(live_service) as neighbour, shell_of(live_service) as shell:
        neighbour.run("x = 1")
        waits = neighbour.start("read a; echo got $a")
        with neighbour.terminal("cat") as terminal:
            terminal.type("before\n").sees("before\r\nbefore")
            yield shell
            terminal.type("after\n").sees("after\r\nafter")
            terminal.type("\x04")
            assert terminal.end()["exit_code"] == 0
        neighbour.feed(waits, data="it\n")
        assert neighbour.over(waits)["stdout"] == "got it\n"
        assert neighbour.run("print(x)") == "1\n"


# Programs about the kernel's surface, which has to be the same for commands.
SURFACE = ["kernel_calls", "kernel_credentials", "kernel_notifications", "kernel_cores"]


@pytest.mark.parametrize("name", SURFACE)
def test_programs_as_commands(shell: Shell, name: str) -> None:
    program = Program.read(name)
    shell.put("attempt.py", HELPER)
    shell.put("__main__.py", (PROGRAMS / f"{name}.py").read_bytes())
    done = shell.command(["python3", "__main__.py"], timeout_ms=60000)
    lines = done["stdout"].splitlines()
    wrong = [pair for pair in zip(lines, program.lines) if not fits(*pair)]
    assert not wrong and len(lines) == len(program.lines), (wrong, done)


def test_nobody_elses_descriptors(shell: Shell) -> None:
    """Neither init's nor the kernel's: their control sockets stay theirs."""
    code = """
import os
libc = __import__("ctypes").CDLL(None, use_errno=True)
print(sorted(int(n) for n in os.listdir("/proc/self/fd"))[:-1])
got = []
for pid in os.listdir("/proc"):
    if not pid.isdigit() or int(pid) == os.getpid():
        continue
    for fd in (3, 4, 5, 1000, 1001, 1002, 1003):
        try: got.append((pid, fd, os.open(f"/proc/{pid}/fd/{fd}", os.O_RDWR)))
        except OSError: pass
        pidfd = libc.syscall(434, int(pid), 0)
        if pidfd >= 0 and libc.syscall(438, pidfd, fd, 0) >= 0:
            got.append((pid, fd, "pidfd_getfd"))
for fd in range(3, 2000):
    try: os.write(fd, b"x" * 100); got.append(fd)
    except OSError: pass
print(got)
"""
    lines = shell.said(["python3", "-c", code]).splitlines()
    assert lines == ["[0, 1, 2]", "[]"], lines
    assert shell.run("print(1)") == "1\n"


OPEN_TERMINALS = """
import os, time
held = []
try:
    while True: held.append(os.open("/dev/ptmx", os.O_RDWR))
except OSError as error:
    print(len(held), error.errno, flush=True)
time.sleep(1000)
"""


def open_terminals(shell: Shell) -> tuple[int, int]:
    command = shell.start(["python3", "-c", OPEN_TERMINALS])
    assert soon(lambda: "\n" in shell.look(command)["stdout"])
    count, number = shell.look(command)["stdout"].split()
    return int(count), int(number)


def test_programs_open_no_terminals(shell: Shell) -> None:
    """What they type there is worked on by threads that no group is charged for."""
    assert open_terminals(shell) == (0, errno.EACCES)
    assert shell.command("chmod 666 /dev/pts/ptmx")["exit_code"] != 0
    with shell.terminal("python3 -c 'import os; os.open(\"/dev/ptmx\", 2)'") as terminal:
        terminal.sees("Permission denied")
    with shell.terminal("tty; echo typed > $(tty)") as terminal:
        terminal.sees("/dev/pts/")  # the number of an earlier one may not be free yet
        terminal.sees("\r\ntyped")
        assert terminal.end()["exit_code"] == 0


def test_terminals_run_out_for_oneself_only(start_live: Callable[..., LiveService]) -> None:
    service = start_live("--profiles", "base", "--terminals", "4")
    with shell_of(service) as shell:
        assert open_terminals(shell) == (44, errno.ENOSPC)
        with shell.terminal("true") as refused:
            assert "no terminal" in str(refused.end())
        with shell_of(service) as other, other.terminal("tty") as terminal:
            terminal.sees("/dev/pts/")
            assert terminal.end()["exit_code"] == 0


def test_terminals_of_others_do_not_show(shell: Shell) -> None:
    """The neighbour sits at one all the time."""
    assert shell.said("ls /dev/pts").split() == ["ptmx"]
    for number in range(4):
        done = shell.command(f"echo intruder > /dev/pts/{number}")
        assert done["exit_code"] != 0


def test_typing_into_ones_own_terminal(shell: Shell) -> None:
    """TIOCSTI and what else a terminal lets a program do: refused, or nobody's business."""
    code = """
import fcntl, os, termios
for name, number, arg in (("TIOCSTI", 0x5412, b"\\n"), ("TIOCLINUX", 0x541C, b"\\x0b"),
                          ("TIOCSETD", 0x5423, b"\\x03\\0\\0\\0"), ("TIOCCONS", 0x541D, b"")):
    try: fcntl.ioctl(0, number, arg); print(name, "done")
    except OSError as error: print(name, "refused")
"""
    shell.put("fiddle.py", code.encode())
    with shell.terminal("python3 fiddle.py; exit 3") as terminal:
        shown = terminal.sees("TIOCCONS").decode()
        assert "TIOCLINUX refused" in shown and "TIOCSETD refused" in shown
        assert terminal.end()["exit_code"] == 3


def test_floods_of_escapes(shell: Shell, live_service: LiveService) -> None:
    """Whatever bytes: they are the client's to show or not. The server passes them on."""
    code = (
        "import os\nfor n in range(2000): os.write(1, os.urandom(500) + b'\\x1b]0;\\x07\\x1b[5n')"
    )
    shell.put("flood.py", code.encode())
    before = resident_mb(live_service)
    with shell.terminal("stty raw; python3 flood.py; printf the-end") as terminal:
        terminal.sees("the-end")
        assert terminal.end()["exit_code"] == 0
    assert resident_mb(live_service) < before + 24


def test_daemons_die_with_their_command(shell: Shell) -> None:
    """In sessions of their own, with no parent, with other names, forking as fast as they can."""
    code = """
import os, sys, time
for n in range(10):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execv("/bin/sleep", ["86421", "86421"])
        os._exit(0)
if os.fork() == 0:
    os.setsid()
    while True:
        if os.fork(): os._exit(0)  # never the same process twice
print("begun", flush=True)
time.sleep(1000)
"""
    command = shell.start(["python3", "-c", code])
    shell.prints(command, "begun")
    assert soon(lambda: len(shell.processes("86421")) == 10)
    assert shell.ask("DELETE", f"/commands/{command}").status == 204
    assert soon(lambda: not shell.processes("86421"))
    assert soon(lambda: shell.info() and len(shell.processes(code)) == 0)
    assert shell.run("print(2)") == "2\n"


def test_a_fork_bomb(live_service: LiveService, shell: Shell) -> None:
    with shell_of(live_service, limits={"pids": 64}) as bomb:
        done = bomb.command("b() { b | b & }; b; sleep 0.3", timeout_ms=1000)
        assert done["status"] in ("exited", "timeout", "killed"), done
        assert bomb.info()["state"] == "running"


def test_many_processes_that_end_with_the_sandbox(live_service: LiveService) -> None:
    with shell_of(live_service, limits={"pids": 200}) as shell:
        for _ in range(16):
            shell.start("trap '' TERM HUP INT; for i in 1 2 3; do setsid sleep 75319 & done; wait")
        assert soon(lambda: len(shell.processes("75319")) == 48)
        shell.end()
        assert not shell.processes("75319")

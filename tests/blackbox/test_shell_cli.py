"""`cloche shell` and `cloche sandbox shell`: what a person at a terminal gets."""

from __future__ import annotations

import signal
import subprocess
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness import Service, clean_env, cloche_bin, eventually, failed, run_cli
from sandbox_cli import FIGURE, listed, made, sandbox, terminal
from terminal import Terminal


@pytest.fixture
def service(live_service: Service) -> Service:
    return live_service


@pytest.fixture
def box(service: Service) -> Iterator[str]:
    with made(service) as name:
        yield name


# ---- the prompt ----


@contextmanager
def prompt(service: Service, home: Path, *words: str) -> Iterator[Terminal]:
    env = {"HOME": str(home), "XDG_STATE_HOME": ""}
    with Terminal("shell", "--server", service.url, *words, env=env) as t:
        t.expect("Ctrl-D leaves")
        t.expect(">>> ")
        yield t


def test_a_session_at_the_prompt(service: Service, tmp_path: Path) -> None:
    before = listed(service)
    with prompt(service, tmp_path) as t:
        (fresh,) = set(listed(service)) - set(before)
        t.type("x = 20\n")
        t.expect(">>> ")
        t.type("x + 22\n")
        t.expect("\r\n42\r\n")
        t.expect(">>> ")
        t.type("for i in range(2):\n")
        t.expect("... ")
        t.type("\tprint('line', i)\n")
        t.expect("... ")
        t.type("\n")
        t.expect("line 0\r\nline 1\r\n")
        t.expect(">>> ")
        t.type("'ä' * 3\n")
        t.expect("\r\n'äää'\r\n")
        t.expect(">>> ")
        t.type("1/0\n")
        t.expect("\x1b[31mZeroDivisionError: division by zero")
        t.expect(">>> ")
        t.type("\x04")
        assert t.end() == 0
    assert fresh not in listed(service)
    history = tmp_path / ".local/state/cloche/shell_history"
    assert "22" in history.read_text() and history.stat().st_mode & 0o777 == 0o600


def test_tab_completes(service: Service, tmp_path: Path) -> None:
    """A kernel that does not answer within ten seconds has no matches: on a machine that is busy
    enough a person presses the key again."""
    with prompt(service, tmp_path) as t:
        t.type("a_long_name_here = {'k': 77}\n")
        t.expect(">>> ")
        t.type("a_long_n\t")
        t.expect("ame_here", again="\t")
        t.type("['k'] + 700\n")
        t.expect("\r\n777\r\n")
        t.expect(">>> ")
        t.type("a_long_name_here.c\t")  # clear, copy
        t.expect("clear", again="\t")
        t.expect("copy")
        t.type("\x03")
        t.expect(">>> ")
        t.type("\x04")
        assert t.end() == 0


def test_ctrl_c_at_the_prompt_and_in_a_cell(service: Service, tmp_path: Path) -> None:
    with prompt(service, tmp_path) as t:
        t.type("abc(\n")
        t.expect("... ")
        t.type("\x03")
        t.expect(">>> ")
        t.type("import time; kept = 9; print('g' + 'o'); time.sleep(300)\n")
        t.expect("\r\ngo")
        t.type("\x03")
        t.expect("KeyboardInterrupt")
        t.expect(">>> ")
        t.type("kept\n")
        t.expect("\r\n9\r\n")
        t.expect(">>> ")
        t.type("exit()\n")
        assert t.end() == 0


def test_input_and_passwords_are_typed(service: Service, tmp_path: Path) -> None:
    with prompt(service, tmp_path) as t:
        t.type("n = input('na' + 'me: ')\n")
        t.expect("\r\nname: ")
        t.type("Ann\n")
        t.expect(">>> ")
        t.type("import getpass; p = getpass.getpass('sec' + 'ret: ')\n")
        t.expect("secret: ")
        assert eventually(lambda: not t.echoes())
        t.type("hidden\n")
        assert "hidden" not in t.expect(">>> ")
        t.type("n + p[::-1]\n")
        t.expect("'Annneddih'")
        t.type("input('again' + '? ')\n")
        t.expect("again? ")
        t.type("\x03")
        t.expect("KeyboardInterrupt")
        t.expect(">>> ")
        t.type("\x04")
        assert t.end() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_prompt_and_its_sandbox(
    service: Service, tmp_path: Path, number: signal.Signals
) -> None:
    before = listed(service)
    with prompt(service, tmp_path) as t:
        t.type("x = 'half a li")
        t.signal(number)
        assert t.end() == 128 + number
    assert listed(service) == before


def test_a_prompt_in_a_sandbox_that_is_there(service: Service, box: str, tmp_path: Path) -> None:
    assert sandbox(service, "exec", box, "there = 3").returncode == 0
    with prompt(service, tmp_path, box) as t:
        t.type("there\n")
        t.expect("\r\n3\r\n")
        t.expect(">>> ")
        assert sandbox(service, "delete", box).returncode == 0
        t.type("there\n")
        t.expect("cloche: ")
        assert t.end() == 125


def test_a_prompt_without_a_terminal(service: Service) -> None:
    text = b"for i in range(2):\n    print(i)\n\na = input()\nline\na\n1/0"
    done = run_cli("shell", "--server", service.url, stdin=text)
    assert (done.returncode, done.stdout) == (1, b"0\n1\n'line'\n")
    assert b"ZeroDivisionError" in done.stderr
    done = run_cli("shell", "--server", service.url, "--keep", stdin=b"q = 1\n")
    assert done.returncode == 0
    name = done.stderr.decode().split()[-1]
    assert sandbox(service, "exec", name, "q").stdout == b"1\n"
    assert sandbox(service, "delete", name).returncode == 0


SCRIPT = """
def total(n):
    sum = 0

    for i in range(n):
        sum += i

    return sum

try:
    total()

except TypeError:
    print('no', 'n')
print(total(10))
"""


@pytest.mark.parametrize("way", ["file", "pipe"])
@pytest.mark.parametrize(
    "end,status", [("", 0), ("import sys; sys.exit(7)", 7), ("1/0\nprint('not reached')", 1)]
)
def test_a_script_on_stdin_runs_as_one(
    service: Service, tmp_path: Path, way: str, end: str, status: int
) -> None:
    file = tmp_path / "script.py"
    file.write_text(f"{SCRIPT}{end}\n")
    with file.open("rb") as stdin:
        words = [str(cloche_bin()), "shell", "--server", service.url]
        if way == "file":
            done = subprocess.run(words, stdin=stdin, capture_output=True, env=clean_env())
        else:
            text = file.read_bytes()
            done = subprocess.run(words, input=text, capture_output=True, env=clean_env())
    assert (done.returncode, done.stdout) == (status, b"no n\n45\n"), done.stderr


def test_what_is_pasted_is_one_block(service: Service, tmp_path: Path) -> None:
    pasted = SCRIPT.strip().replace("\n", "\r")
    with prompt(service, tmp_path) as t:
        assert b"\x1b[?2004h" in t.raw
        t.type(f"\x1b[200~{pasted}\r\x1b[201~")
        t.expect("print(total(10))")
        t.type("\r")
        t.expect("no n\r\n45\r\n")
        t.expect(">>> ")
        t.type("x = '\x1b[200~a\x07b\x1b[201~'; x\r")
        t.expect("\r\n'ab'\r\n")  # no key, and no newline of its own
        t.expect(">>> ")
        t.type("\x1b[A\x1b[A")  # the block again, whole
        t.expect("print(total(10))")
        t.type("\r")
        t.expect("no n\r\n45\r\n")
        t.expect(">>> ")
        t.type("\x04")
        assert t.end() == 0
        assert t.raw.rindex(b"\x1b[?2004l") > t.raw.rindex(b"\x1b[?2004h")
    with prompt(service, tmp_path) as t:  # and from the file
        t.type("\x1b[A\x1b[A")
        t.expect("print(total(10))")
        t.type("\x03")
        t.expect(">>> ")
        t.type("\x04")
        assert t.end() == 0


def test_lines_are_indented(service: Service, tmp_path: Path) -> None:
    with prompt(service, tmp_path) as t:
        t.type("for i in range(2):\r")
        t.expect("...     ")
        t.type("if i:\r")
        t.expect("...         ")
        t.type("print('inner', i)\r")
        t.expect("...         ")
        t.type("\x7fprint('outer', i)\r")  # one step back
        t.expect("...     ")
        t.type("\r")
        t.expect("outer 0\r\ninner 1\r\nouter 1\r\n")
        t.expect(">>> ")
        t.type("for i in range(1):\r    print('keys that')\r    print('were there')\r\r")
        t.expect("keys that\r\nwere there\r\n")
        t.expect(">>> ")
        t.type("\x04")
        assert t.end() == 0


def test_completion_breaks_no_word(service: Service, tmp_path: Path) -> None:
    with prompt(service, tmp_path) as t:
        t.type("a_long_name_here = 77\r")
        t.expect(">>> ")
        t.type("a_long_here\x1b[D\x1b[D\x1b[D\x1b[D\t")  # in the middle of it
        t.expect("name_here")
        t.type("\x05 + 700\r")
        t.expect("\r\n777\r\n")
        t.expect(">>> ")
        t.type("alias\t")
        t.expect("%alias_magic")
        t.expect(">>> alias")  # as it was
        t.type("\x03")
        t.expect(">>> ")
        t.type("\x04")
        assert t.end() == 0


def test_figures_at_the_prompt_are_links(service: Service, tmp_path: Path) -> None:
    with prompt(service, tmp_path, "--image-dir", str(tmp_path)) as t:
        t.type(f"{FIGURE}\n")
        t.expect("\x1b]8;;file://" + urllib.parse.quote(str(tmp_path.resolve())) + "/figure-1.png")
        t.expect(">>> ")
        t.type("\x04")
        assert t.end() == 0
    assert (tmp_path / "figure-1.png").exists()


# ---- the terminal ----


def test_a_shell_at_the_terminal(service: Service, box: str) -> None:
    with terminal(service, box, "--cwd", "/tmp") as t:
        t.type("stty size; pwd; tty\n")
        t.expect("24 80")
        t.expect("/tmp")
        t.expect("/dev/")
        t.expect("$ ")
        t.resize(40, 100)
        t.signal(signal.SIGWINCH)
        t.type("until stty size | grep '40 100'; do sleep 0.05; done; echo now $((40 + 60))\n")
        t.expect("now 100")
        t.expect("$ ")
        t.type("sh -c 'echo sta$((1 - 1))rt; exec sleep 300'\n")
        t.expect("sta0rt")
        t.type("\x03")
        t.expect("$ ")
        t.type("echo status $?\n")
        t.expect("status 130")
        t.expect("$ ")
        t.type("exit 7\n")
        assert t.end() == 7


def test_a_signal_gives_the_terminal_back(service: Service, box: str) -> None:
    with terminal(service, box) as t:
        t.signal(signal.SIGTERM)
        assert t.end() == 143


def test_a_sandbox_that_ends_under_the_terminal(service: Service, box: str) -> None:
    with terminal(service, box) as t:
        assert sandbox(service, "delete", box).returncode == 0
        assert t.end() != 0


def test_a_terminal_is_needed(service: Service, box: str) -> None:
    failed(sandbox(service, "shell", box), "terminal", "sandbox exec")

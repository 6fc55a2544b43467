"""`cloche sandbox exec` and `logs` against a real server: code and commands."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness import Service, clean_env, cloche_bin, eventually, failed
from sandbox_cli import FIGURE, made, sandbox
from terminal import Terminal


@pytest.fixture
def service(live_service: Service) -> Service:
    return live_service


@pytest.fixture
def box(service: Service) -> Iterator[str]:
    with made(service) as name:
        yield name


@contextmanager
def popen(service: Service, verb: str, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [cloche_bin(), "sandbox", verb, "--server", service.url, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_env(),
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


# ---- exec ----


def test_state_stays_from_one_call_to_the_next(service: Service, box: str, tmp_path: Path) -> None:
    assert sandbox(service, "exec", box, "x = 20").stdout == b""
    file = tmp_path / "more.py"
    file.write_text("x += 1\nprint('more')\n")
    assert sandbox(service, "exec", box, file).stdout == b"more\n"
    assert sandbox(service, "exec", box, "-", stdin=b"x *= 2").returncode == 0
    done = sandbox(service, "exec", box, "-c", "x")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"42\n", b"")
    failed(sandbox(service, "exec", box, "nowhere.py"), "nowhere.py", "No such file")


def test_an_error_is_its_traceback_and_status_1(service: Service, box: str) -> None:
    done = sandbox(service, "exec", box, "import sys; print('out'); 1/0")
    assert (done.returncode, done.stdout) == (1, b"out\n")
    assert b"ZeroDivisionError: division by zero\n" in done.stderr and b"\x1b" not in done.stderr
    assert sandbox(service, "exec", box, "import sys; sys.exit(5)").returncode == 5


def test_a_timeout_is_124_and_the_state_is_kept(service: Service, box: str) -> None:
    done = sandbox(service, "exec", box, "--timeout", "2", "y = 5\nwhile True: pass")
    assert done.returncode == 124 and b"longer than 2 s (--timeout)" in done.stderr
    assert sandbox(service, "exec", box, "y").stdout == b"5\n"


def test_output_comes_as_it_is_printed_and_ctrl_c_interrupts(service: Service, box: str) -> None:
    code = "import time; z = 7; print('go', flush=True); time.sleep(300)"
    with popen(service, "exec", box, "--timeout", "60", code) as cli:
        assert cli.stdout and cli.stdout.readline() == b"go\n"
        cli.send_signal(signal.SIGINT)
        assert cli.stderr and b"KeyboardInterrupt" in cli.stderr.read()
        assert cli.wait() == 130
    assert sandbox(service, "exec", box, "z").stdout == b"7\n"


def test_interrupt_from_elsewhere(service: Service, box: str) -> None:
    with popen(service, "exec", box, "--timeout", "60", "print(1)\nwhile True: pass") as cli:
        assert cli.stdout and cli.stdout.readline() == b"1\n"
        assert sandbox(service, "interrupt", box).stderr == b""
        assert cli.wait() == 130
    assert b"nothing was running" in sandbox(service, "interrupt", box).stderr


def test_input_takes_lines_of_stdin_and_no_more(service: Service, box: str) -> None:
    code = "a = input('name? '); b = input(); (a, b)"
    script = f'"{cloche_bin()}" sandbox exec --server {service.url} {box} "{code}"; cat'
    done = subprocess.run(
        ["sh", "-c", script], input=b"Ann\nBob\nrest", capture_output=True, env=clean_env()
    )
    assert done.stdout == b"name? ('Ann', 'Bob')\nrest", done
    done = sandbox(service, "exec", box, "input()")
    assert done.returncode == 1 and b"EOFError" in done.stderr


def test_a_reader_who_goes_ends_it(service: Service, box: str) -> None:
    code = "while True: print('x' * 1000)"
    with popen(service, "exec", box, "--timeout", "60", code) as cli:
        assert cli.stdout and cli.stdout.readline()
        cli.stdout.close()
        assert cli.wait() == 128 + signal.SIGPIPE
    assert sandbox(service, "exec", box, "1").stdout == b"1\n"


def test_the_whole_result_as_json(service: Service, box: str) -> None:
    done = sandbox(service, "exec", box, "--json", "print('a'); 1 + 1")
    result = json.loads(done.stdout)
    assert (result["stdout"], result["status"], result["text"]) == ("a\n", "ok", "2")
    done = sandbox(service, "exec", box, "--json", "input()")
    assert json.loads(done.stdout)["error"]["name"] and done.returncode == 1


def test_figures_become_files(service: Service, box: str, tmp_path: Path) -> None:
    for number in (1, 2):
        done = sandbox(service, "exec", box, FIGURE, cwd=tmp_path)
        name = f"figure-{number}.png"
        assert done.stdout.decode().splitlines()[-1] == name, done
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    done = sandbox(service, "exec", box, "--images", "off", FIGURE, cwd=tmp_path)
    assert b"<Figure" in done.stdout and len(list(tmp_path.iterdir())) == 2
    done = sandbox(service, "exec", box, "--image-dir", tmp_path / "no", FIGURE, cwd=tmp_path)
    assert b"cannot save" in done.stderr and b"<Figure" in done.stdout and done.returncode == 0


def test_figures_are_shown_where_the_terminal_can(service: Service, box: str) -> None:
    words = ("sandbox", "exec", "--server", service.url, box, FIGURE)
    with Terminal(*words, env={"KITTY_WINDOW_ID": "1"}) as t:
        t.expect("\x1b_Ga=T,f=100")
        assert t.end() == 0
    with Terminal(*words, env={"TERM_PROGRAM": "iTerm.app"}) as t:
        t.expect("\x1b]1337;File=inline=1;size=")
        assert t.end() == 0


# ---- commands ----


def test_commands_and_their_status(service: Service, box: str) -> None:
    done = sandbox(service, "exec", box, "--shell", "echo out; echo err >&2; exit 3")
    assert (done.returncode, done.stdout, done.stderr) == (3, b"out\n", b"err\n")
    done = sandbox(service, "exec", box, "--", "printf", "%s|", "a b", "--json")
    assert (done.returncode, done.stdout) == (0, b"a b|--json|")
    done = sandbox(service, "exec", box, "--stdin", "--cwd", "/tmp", "--", "sh", "-c", "pwd; cat",
                   stdin=b"text")  # fmt: skip
    assert done.stdout == b"/tmp\ntext"
    done = sandbox(service, "exec", box, "--timeout", "0.3", "--shell", "sleep 100")
    assert done.returncode == 124
    done = sandbox(service, "exec", box, "--shell", "kill -9 $$")
    assert done.returncode == 137
    grow = "python3 -c 'x = bytearray(1 << 30)'; exit $?"
    done = sandbox(service, "exec", box, "--shell", grow)
    assert done.returncode == 137 and b"512 MB of memory" in done.stderr.splitlines()[-1]


def test_ctrl_c_reaches_a_command(service: Service, box: str) -> None:
    line = "trap 'echo caught; exit 5' INT; echo go; while :; do sleep 0.1; done"
    with popen(service, "exec", box, "--shell", line) as cli:
        assert cli.stdout and cli.stdout.readline() == b"go\n"
        cli.send_signal(signal.SIGINT)
        assert cli.stdout.readline() == b"caught\n"
        assert cli.wait() == 5


def test_what_a_background_command_prints_can_be_read(service: Service, box: str) -> None:
    line = "mkfifo f; echo one; read x < f; echo two >&2"
    done = sandbox(service, "exec", box, "--background", "--shell", line)
    command = done.stdout.decode().strip()
    assert command.startswith("cmd_") and done.returncode == 0

    def log() -> bytes:
        return sandbox(service, "logs", box, command).stdout

    assert eventually(lambda: log() == b"one\n")
    table = sandbox(service, "logs", box).stdout.decode()
    assert command in table and "running" in table and "echo one" in table
    with popen(service, "logs", box, command, "-f") as follower:
        assert follower.stdout and follower.stdout.readline() == b"one\n"
        sandbox(service, "exec", box, "--shell", "echo > f")
        assert follower.stderr and follower.stderr.read() == b"two\n"
        assert follower.wait() == 0
    failed(sandbox(service, "logs", box, "cmd_none"), "cmd_none")


THREADS = """
import threading
over = threading.Event()
try:
    for i in range(200):
        threading.Thread(target=over.wait).start()
except RuntimeError:
    over.set()
"""


@pytest.mark.parametrize(
    "words,note",
    [
        (
            ["print('x' * (17 << 20))"],
            "stdout was cut: there was more than 16 MiB of it (--output)",
        ),
        (["--shell", "yes | head -c 20000000"], "stdout was cut: there was more than 16 MiB of it"),
        (["--timeout", "0.2", "while True: pass"], "stopped: it ran longer than 0.2 s (--timeout)"),
        (["--timeout", "0.2", "--shell", "sleep 60"], "stopped: it ran longer than 0.2 s"),
        ([THREADS], "it could not start more: 64 processes and threads at once are allowed"),
        (["--shell", "for i in $(seq 99); do sleep 1 & done; wait"], "64 processes and threads at"),
        (["open('f', 'wb').write(bytes(700 << 20))"], "its disk became full: "),
        (["--shell", "head -c 700000000 /dev/zero > f"], "its disk became full: "),
    ],
)
def test_a_limit_that_was_hit_is_said_in_words(
    service: Service, box: str, words: list[str], note: str
) -> None:
    done = sandbox(service, "exec", box, *words)
    lines = [line for line in done.stderr.decode().splitlines() if line.startswith("cloche: ")]
    assert len(lines) == 1 and note in lines[0], done.stderr[-2000:]


def test_a_log_that_was_cut_says_so(service: Service, box: str) -> None:
    sandbox(service, "exec", box, "--shell", "yes | head -c 20000000")
    command = sandbox(service, "logs", box).stdout.decode().splitlines()[1].split()[0]
    done = sandbox(service, "logs", box, command)
    assert len(done.stdout) == 16 << 20
    assert b"stdout was cut: there was more than 16 MiB of it" in done.stderr

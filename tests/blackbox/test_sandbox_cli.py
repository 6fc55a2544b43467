"""`cloche sandbox` and `cloche shell` against a real server: what a person at a terminal gets."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness import Service, clean_env, cloche_bin, eventually, failed, run_cli, tree
from raw_http import KeyedService, ask, post, request
from terminal import Terminal

Done = subprocess.CompletedProcess[bytes]


def sandbox(service: Service, verb: str, *words: str | os.PathLike[str], **options: object) -> Done:
    return run_cli("sandbox", verb, "--server", service.url, *words, **options)  # type: ignore


@contextmanager
def made(service: Service, *words: str) -> Iterator[str]:
    """A sandbox of this test's own."""
    done = sandbox(service, "create", *words)
    assert (done.returncode, done.stderr) == (0, b""), done
    name = done.stdout.decode().strip()
    try:
        yield name
    finally:
        sandbox(service, "delete", name)


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


def listed(service: Service, *words: str) -> list[str]:
    done = sandbox(service, "list", "--json", *words)
    return [one["id"] for one in json.loads(done.stdout)["sandboxes"]]


# ---------------------------------------------------------------------------- life


def test_made_listed_shown_and_deleted(service: Service) -> None:
    with made(service, "--name", "plot", "--metadata", "who=me", "--ttl", "600") as name:
        lines = sandbox(service, "list").stdout.decode().splitlines()
        assert lines[0].split() == "id name state profile created ends metadata".split()
        row = next(line for line in lines if line.startswith(name))
        assert "plot" in row and "running" in row and "who=me" in row
        shown = sandbox(service, "show", name).stdout.decode()
        assert "kernel" in shown and "memory 512 MB" in shown and "who=me" in shown
        whole = json.loads(sandbox(service, "show", name, "--json").stdout)
        assert whole["id"] == name and whole["ttl_seconds"] == 600
        done = sandbox(service, "delete", name)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        assert name not in listed(service)
        failed(sandbox(service, "show", name), "deleted")


def test_a_list_can_be_narrowed_by_metadata(service: Service) -> None:
    with made(service, "--metadata", "team=a b&c") as one, made(service) as other:
        assert listed(service, "--metadata", "team=a b&c") == [one]
        assert listed(service, "--metadata", "team=x") == []
        assert {one, other} <= set(listed(service))


def test_a_name_that_two_have_needs_the_id(service: Service) -> None:
    """Other services' clients name sandboxes as they like."""
    with made(service, "--name", "twin") as one:
        session = "/workspace/se/session/twin"
        assert ask(service, post(session, {})).status == 200
        failed(sandbox(service, "show", "twin"), "2 sandboxes", "the whole id", "sandbox list")
        assert sandbox(service, "show", one).returncode == 0
        assert ask(service, request("DELETE", session)).status in (200, 204)


def test_names_and_beginnings_of_ids_are_enough(service: Service) -> None:
    with made(service, "--name", "first") as one, made(service) as two:
        assert json.loads(sandbox(service, "show", "first", "--json").stdout)["id"] == one
        same = len(os.path.commonprefix([one, two]))
        assert json.loads(sandbox(service, "show", two[: same + 1], "--json").stdout)["id"] == two
        failed(sandbox(service, "show", "sbx_"), "begins with", "write more")
        failed(sandbox(service, "show", "nowhere"), '"nowhere"', "sandbox list")
        failed(sandbox(service, "show", ""), "no sandbox")
        failed(sandbox(service, "show", "sbx_" + "0" * 32), "sandbox")


def test_what_others_wrote_cannot_steer_the_terminal(service: Service) -> None:
    with made(service, "--metadata", "k=\x1b[2J\x9b1m") as name:
        for verb in (["list"], ["show", name]):
            text = sandbox(service, *verb).stdout.decode()
            assert "\x1b" not in text and "\x9b" not in text and "\\x1b[2J" in text


def test_files_and_variables_from_the_start(service: Service, tmp_path: Path) -> None:
    file = tmp_path / "in.txt"
    file.write_bytes(b"\x00\xff")
    words = ("--file", f"{file}:sub/", "--env", "COLOUR=red", "--memory", "300", "--disk", "32")
    with made(service, *words) as name:
        code = "import os; open('sub/in.txt','rb').read(), os.environ['COLOUR']"
        assert sandbox(service, "exec", name, code).stdout == b"(b'\\x00\\xff', 'red')\n"
        limits = json.loads(sandbox(service, "show", name, "--json").stdout)["limits"]
        assert (limits["memory_mb"], limits["disk_mb"]) == (300, 32)


def test_a_name_that_is_taken_is_refused(service: Service) -> None:
    with made(service, "--name", "mine"):
        failed(sandbox(service, "create", "--name", "mine"), '"mine" already', "choose another")
        with made(service, "--name", "other") as other:
            where, is_json = f"/v1/sandboxes/{other}", "Content-Type: application/json"
            answer = ask(service, request("PATCH", where, is_json, body=b'{"name": "mine"}'))
            assert (answer.status, answer.json["error"]["code"]) == (409, "name_taken")
            answer = ask(service, request("PATCH", where, is_json, body=b'{"name": "other"}'))
            assert answer.status == 200, "its own is its own"
    with made(service, "--name", "mine"):
        pass  # free again


def test_pause_resume_restart_and_extend(service: Service) -> None:
    with made(service, "--ttl", "600") as name:
        sandbox(service, "exec", name, "x = 1")
        assert sandbox(service, "pause", name).returncode == 0
        assert b"paused" in sandbox(service, "show", name).stdout
        failed(sandbox(service, "exec", name, "x"), "paused")
        assert sandbox(service, "resume", name).returncode == 0
        assert sandbox(service, "exec", name, "x").stdout == b"1\n"
        assert sandbox(service, "restart", name).returncode == 0
        assert b"NameError" in sandbox(service, "exec", name, "x").stderr
        done = sandbox(service, "extend", name, "--ttl", "9000", "--idle", "3600")
        assert done.stdout == b"ends in 2.5 h, if idle in 60 min\n"
        assert b"ends in 2.5 h, " in sandbox(service, "extend", name).stdout, "as long again"


def test_numbers_are_for_people(service: Service) -> None:
    with made(service) as name:
        sandbox(service, "exec", name, "open('f', 'wb').write(bytes(3 << 20))")
        text = sandbox(service, "show", name).stdout.decode()
        assert "timeout 30 s, memory 512 MB, cpu unlimited, cpus 1, pids 64, disk 512 MB" in text
        assert ", output 16 MiB" in text and ", disk 3 MiB" in text
        assert re.search(r", cpu [0-9.]+ m?s,", text) and " 1 execution\n" in text, text


def limits_of(service: Service, name: str) -> dict[str, object]:
    limits: dict[str, object] = json.loads(sandbox(service, "show", name, "--json").stdout)[
        "limits"
    ]
    return limits


def test_every_limit_has_a_flag(service: Service) -> None:
    own = ("--cpus", "0.5", "--pids", "50", "--open-files", "99", "--disk", "90", "--memory", "400")
    with made(service, *own, "--cpu", "7", "--output", "5000") as name:
        limits = limits_of(service, name)
        assert {key: limits[key] for key in limits if key != "timeout_ms"} == {
            "memory_mb": 400,
            "cpu_seconds": 7,
            "cpus": 0.5,
            "pids": 50,
            "disk_mb": 90,
            "open_files": 99,
            "output_bytes": 5000,
        }
        # exec: the cell's own for this time, the sandbox's from then on
        more = ("--cpus", "1", "--pids", "60", "--open-files", "100", "--disk", "91")
        done = sandbox(service, "exec", name, *more, "--output", "10", "print('x' * 20)")
        assert done.stdout == b"x" * 10 and b"more than 10 bytes of it (--output)" in done.stderr
        limits = limits_of(service, name)
        assert (limits["cpus"], limits["pids"], limits["open_files"]) == (1, 60, 100)
        assert (limits["disk_mb"], limits["output_bytes"]) == (91, 5000)
        done = sandbox(service, "exec", name, "--cpu", "1", "--timeout", "60", "while True: pass")
        assert b"it used more than 1 s of CPU time (--cpu)" in done.stderr
        failed(sandbox(service, "exec", name, "--disk", "5000", "1"), "maximum of 4096 MB")
        failed(
            sandbox(service, "exec", name, "--cpu", "1", "--shell", "true"), "--cpu is for Python"
        )


# ---------------------------------------------------------------------------- exec


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


FIGURE = "import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show()"


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


# ---------------------------------------------------------------------------- commands


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


# ---------------------------------------------------------------------------- files


def test_files_go_in_and_out(service: Service, box: str, tmp_path: Path) -> None:
    data = os.urandom(3_000_000)
    (tmp_path / "a b.bin").write_bytes(data)
    done = sandbox(service, "put", box, tmp_path / "a b.bin", "in/ä.bin")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert sandbox(service, "put", box, "-", "in/stdin", stdin=b"typed").returncode == 0
    assert sandbox(service, "get", box, "/workspace/in/ä.bin", tmp_path / "back").returncode == 0
    assert (tmp_path / "back").read_bytes() == data
    assert sandbox(service, "get", box, "in/stdin", "-").stdout == b"typed"
    failed(sandbox(service, "get", box, "in/none", tmp_path / "none"), "in/none", "sandbox ls")
    assert not (tmp_path / "none").exists()
    failed(sandbox(service, "put", box, tmp_path / "none", "x"), "No such file")
    failed(sandbox(service, "put", box, tmp_path / "back", "/etc/x"), "/workspace")
    failed(sandbox(service, "get", box, "../x", tmp_path), "..")


def test_what_is_no_file_is_written_to_and_stays(
    service: Service, box: str, tmp_path: Path
) -> None:
    file, link, fifo = tmp_path / "file", tmp_path / "link", tmp_path / "fifo"
    file.write_text("something longer than that")
    link.symlink_to(file)
    os.mkfifo(fifo)
    assert sandbox(service, "exec", box, "open('f', 'w').write('data')").returncode == 0
    assert sandbox(service, "get", box, "f", link).returncode == 0
    assert link.is_symlink() and file.read_text() == "data"
    with subprocess.Popen(["cat", fifo], stdout=subprocess.PIPE) as reader:
        assert sandbox(service, "get", box, "f", fifo).returncode == 0
        assert reader.communicate()[0] == b"data" and fifo.is_fifo()


def test_several_files_go_into_a_directory(service: Service, box: str, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(name)
    assert sandbox(service, "put", box, tmp_path / "one", tmp_path / "two", "d").returncode == 0
    assert sandbox(service, "ls", box, "d").stdout == b"one\ntwo\n"
    assert sandbox(service, "put", box, tmp_path / "one", "d").returncode == 0, "it is one now"
    out = tmp_path / "out"
    assert sandbox(service, "get", box, "d/one", "d/two", out).returncode == 0
    assert tree(out) == {"one": b"one", "two": b"two"}


def test_directories_go_with_all_below(service: Service, box: str, tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "deep" / "er").mkdir(parents=True)
    (source / "empty").mkdir()
    (source / "deep" / "er" / "f").write_text("1")
    (source / "run.sh").write_text("#!/bin/sh\n")
    (source / "run.sh").chmod(0o755)
    os.mkfifo(source / "fifo")
    done = sandbox(service, "put", box, source, "tree")
    assert done.returncode == 0 and b"1 entry was left out" in done.stderr
    assert sandbox(service, "ls", box, "tree").stdout.split() == [b"deep/", b"empty/", b"run.sh"]
    listing = sandbox(service, "ls", box, "-lR", "tree").stdout.decode()
    assert "-rwxr-xr-x" in listing and "tree/deep/er/f" in listing
    code = "import os; os.symlink('/etc/passwd', 'tree/link')"
    assert sandbox(service, "exec", box, code).returncode == 0
    done = sandbox(service, "get", box, "tree", tmp_path / "copy")
    assert done.returncode == 0 and b"1 entry was left out" in done.stderr
    assert tree(tmp_path / "copy") == {"deep/er/f": b"1", "run.sh": b"#!/bin/sh\n"}
    assert (tmp_path / "copy" / "empty").is_dir() and os.access(tmp_path / "copy/run.sh", os.X_OK)
    assert sandbox(service, "put", box, source, "tree").returncode == 0
    assert b"tree/source/run.sh" in sandbox(service, "ls", box, "-R").stdout


def test_ls_of_odd_names(service: Service, box: str) -> None:
    code = "import os; os.mkdir('d'); open('d/a\\x1b[2J\\nb', 'w'); open('d/z', 'w').write('12345')"
    assert sandbox(service, "exec", box, code).stdout == b"5\n"
    assert sandbox(service, "ls", box, "d").stdout == b"a\\x1b[2J\\x0ab\nz\n"
    assert sandbox(service, "ls", box, "d/z").stdout == b"z\n"
    row = sandbox(service, "ls", box, "-l", "d/z").stdout.split()
    assert row[0].startswith(b"-rw") and row[1] == b"5" and row[3] == b"z"
    entries = json.loads(sandbox(service, "ls", box, "d", "--json").stdout)["entries"]
    assert [entry["name"] for entry in entries] == ["a\x1b[2J\nb", "z"]
    failed(sandbox(service, "ls", box, "none"), "none")


# ---------------------------------------------------------------------------- the prompt


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


# ---------------------------------------------------------------------------- the terminal


@contextmanager
def terminal(service: Service, box: str, *words: str) -> Iterator[Terminal]:
    """Before the shell's own prompt what is typed may be lost, as at any terminal."""
    with Terminal("sandbox", "shell", "--server", service.url, box, *words) as t:
        t.expect("$ ")
        yield t


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


# ---------------------------------------------------------------------------- what goes wrong


def test_refusals_come_through_in_one_line(service: Service, box: str) -> None:
    failed(sandbox(service, "create", "--profile", "gpu"), "gpu")
    failed(sandbox(service, "create", "--memory", "4000000"), "memory", "4096")
    failed(sandbox(service, "exec", box, "--kernel", "ker_none", "1"), "ker_none")
    done = sandbox(service, "create", "--profile", "gpu", "--json")
    assert json.loads(done.stdout)["error"]["code"] == "unknown_profile"
    failed(sandbox(service, "put", box, "x"), "one of ID, SOURCE and DESTINATION is missing")
    failed(sandbox(service, "exec", box, os.fsdecode(b"'\xff'")), "UTF-8")
    failed(sandbox(service, "create", "--env", "A=" + os.fsdecode(b"\xff")), "UTF-8")


@pytest.mark.parametrize("verb", ["list", "show sbx_x", "exec x 1", "shell x", "ls x", "logs x"])
def test_no_server(verb: str) -> None:
    words = verb.split()
    done = run_cli("sandbox", words[0], "--server", "http://127.0.0.1:1", *words[1:])
    failed(done, "terminal" if words[0] == "shell" else "no server answers")
    failed(run_cli("shell", "--server", "http://127.0.0.1:1"), "no server answers")


def test_the_server_from_the_environment(service: Service) -> None:
    env = clean_env(CLOCHE_SERVER=service.url)
    assert run_cli("sandbox", "list", env=env).returncode == 0
    failed(run_cli("sandbox", "list", env=clean_env(CLOCHE_SERVER="ftp://x")), "scheme")


def test_keys(keyed_service: KeyedService, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(keyed_service.key + "\n")
    failed(sandbox(keyed_service, "list"), "API key")
    assert sandbox(keyed_service, "list", "--key-file", file).returncode == 0


def test_a_unix_socket(start_live: Callable[..., Service], tmp_path: Path) -> None:
    path = tmp_path / "http.sock"
    start_live("--profiles", "base", "--http-socket", str(path))
    url = f"unix:{path}"
    name = run_cli("sandbox", "create", "--server", url).stdout.decode().strip()
    assert run_cli("sandbox", "exec", "--server", url, name, "6 * 7").stdout == b"42\n"
    with Terminal("sandbox", "shell", "--server", url, name) as t:
        t.expect("$ ")
        t.type("exit 4\n")
        assert t.end() == 4
    assert run_cli("sandbox", "delete", "--server", url, name).returncode == 0


def test_help(tmp_path: Path) -> None:
    overview = run_cli("sandbox", "--help").stdout.decode()
    verbs = "create list show delete exec shell put get ls logs interrupt".split()
    for verb in verbs:
        assert f"cloche sandbox {verb}" in overview
        done = run_cli("sandbox", verb, "--help")
        assert done.returncode == 0 and done.stdout.startswith(f"cloche sandbox {verb}".encode())
        assert all(len(line) <= 100 for line in done.stdout.decode().splitlines())
    assert run_cli("shell", "--help").stdout.startswith(b"cloche shell")

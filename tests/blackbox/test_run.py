"""`cloche run`: output, exit status, the world a program finds, Ctrl-C, the private engine."""

from __future__ import annotations

import hashlib
import os
import resource
import select
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from harness import (
    DEADLINE_S,
    LONG,
    Caller,
    Deadline,
    Engine,
    clean_env,
    cloche_bin,
    eventually,
    failed,
    run_cli,
)
from host import Process, cgroup_dirs, environment, mounts, processes
from plain_python import normal, plain


def test_output_passes_through(engine: Engine) -> None:
    done = engine.cli("-c", "import sys; print('out'); print('err', file=sys.stderr)")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"out\n", b"err\n")


def test_output_comes_while_the_program_runs(engine: Engine) -> None:
    code = "print('first', flush=True); input(); print('second')"
    with engine.popen("--stdin", "--timeout", "60", "-c", code) as cli:
        assert cli.stdin is not None and cli.stdout is not None
        assert cli.stdout.readline() == b"first\n"
        cli.stdin.write(b"go\n")
        cli.stdin.close()
        assert cli.stdout.read() == b"second\n"
        assert cli.wait() == 0


def test_no_newline_is_added(engine: Engine) -> None:
    assert engine.cli("-c", "print('x', end='')").stdout == b"x"


def test_bytes_pass_through_unchanged(engine: Engine) -> None:
    done = engine.cli("-c", "import sys; sys.stdout.buffer.write(bytes(range(256)))")
    assert done.stdout == bytes(range(256))


def test_more_than_a_message_holds(engine: Engine) -> None:
    code = "import os\nfor i in range(20): os.write(1, bytes([65 + i]) * 65536)"
    done = engine.cli("--output", "2000000", "-c", code)
    assert done.stdout == b"".join(bytes([65 + i]) * 65536 for i in range(20))


@pytest.mark.parametrize(
    "streams,word",
    [(["stdout"], "stdout"), (["stderr"], "stderr"), (["stdout", "stderr"], "output")],
)
def test_output_that_was_cut_is_said(engine: Engine, streams: list[str], word: str) -> None:
    code = "import sys\n" + "".join(f"sys.{name}.write('x' * 1000)\n" for name in streams)
    done = engine.cli("--output", "100", "-c", code)
    note = f"cloche: {word} was cut: there was more than 100 bytes of it (--output)\n"
    assert done.returncode == 0
    assert done.stdout == b"x" * 100 * ("stdout" in streams)
    assert done.stderr.decode().endswith(note)
    whole = engine.cli("--output", "1000", "-c", code)
    assert b"cloche:" not in whole.stderr


def test_an_empty_program_does_nothing(engine: Engine) -> None:
    done = engine.cli("-c", "")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_program_from_a_file(engine: Engine, tmp_path: Path) -> None:
    program = tmp_path / "prog with space.py"
    program.write_text("print('from a file', __name__)")
    assert engine.cli(program).stdout == b"from a file __main__\n"


def test_a_program_from_standard_input(engine: Engine) -> None:
    done = engine.cli("-", stdin=b"print('from stdin')")
    assert done.stdout == b"from stdin\n"


@pytest.mark.parametrize("status", [0, 1, 3, 124, 125, 137, 255])
def test_the_exit_status_is_the_programs(engine: Engine, status: int) -> None:
    assert engine.cli("-c", f"import sys; sys.exit({status})").returncode == status


EXITS = {
    "sys.exit()": 0,
    "sys.exit(None)": 0,
    "sys.exit(True)": 1,
    "sys.exit(256)": 0,
    "sys.exit(-1)": 255,
    "sys.exit(1 << 40)": 0,
    "sys.exit(1 << 80)": 255,
    "sys.exit('a message')": 1,
    "sys.exit((1, 2))": 1,
    "raise SystemExit": 0,
    "raise SystemExit(7)": 7,
    "exit(4)": 4,
    "quit(5)": 5,
    "os._exit(6)": 6,
    "os._exit(0)": 0,
    "raise ValueError": 1,
    "1/0": 1,
    "def": 1,
}


@pytest.mark.parametrize("statement", EXITS)
def test_ways_to_exit(engine: Engine, statement: str, tmp_path: Path) -> None:
    code = f"import os, sys\n{statement}\n"
    assert EXITS[statement] == plain(code, tmp_path).returncode
    outcome = engine.execute(code)
    assert outcome.exit_status == plain(code, tmp_path).returncode
    assert normal(outcome.stderr) == normal(plain(code, tmp_path).stderr, tmp_path)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL", "SIGSEGV", "SIGABRT", "SIGUSR1", "SIGALRM"])
def test_a_signal_gives_128_and_its_number(engine: Engine, name: str) -> None:
    number = signal.Signals[name]
    done = engine.cli("-c", f"import os, signal; os.kill(os.getpid(), signal.{name})")
    assert done.returncode == 128 + number
    assert f"signal {number.value} " in done.stderr.decode(), "the reason is said on stderr"


def test_a_signal_in_the_result(engine: Engine) -> None:
    result = engine.run("import os, signal; os.kill(os.getpid(), signal.SIGTERM)")
    assert result.status == "killed"
    assert result.exit_code == 143
    assert result.signal == signal.SIGTERM


def test_leaving_by_os_exit_is_killed(engine: Engine) -> None:
    result = engine.run("import os; print('x', flush=True); os._exit(3)")
    assert (result.status, result.exit_code, result.stdout) == ("killed", 3, "x\n")


def test_an_exception_in_the_result(engine: Engine) -> None:
    result = engine.run("def f():\n    raise KeyError('k')\nf()")
    assert (result.status, result.exit_code, result.exit_status) == ("error", 1, 1)
    assert result.error["name"] == "KeyError"
    assert result.error["value"] == "'k'"
    assert "".join(result.error["traceback"]).count("__main__.py") == 2
    assert result.stderr.startswith("Traceback (most recent call last):\n")


def test_a_syntax_error_in_the_result(engine: Engine) -> None:
    result = engine.run("x = (\n")
    assert (result.status, result.exit_code) == ("error", 1)
    assert result.error["name"] == "SyntaxError"


def test_arguments(engine: Engine) -> None:
    args = ["a", "-x", "--json", "two words", "", "ünï", "'\"\\"]
    result = engine.run("import sys; print(sys.argv)", *args)
    assert result.stdout == f"{['/workspace/__main__.py', *args]}\n"


def test_file_name_and_directory(engine: Engine) -> None:
    code = (
        "import os, sys\n"
        "print(__file__, os.getcwd(), sys.path[0], __name__)\n"
        "print(open(__file__).read() == open('/workspace/__main__.py').read())\n"
        "print(len(open(__file__).read()))\n"
    )
    result = engine.run(code)
    expected = f"/workspace/__main__.py /workspace /workspace __main__\nTrue\n{len(code)}\n"
    assert result.stdout == expected


def test_environment(engine: Engine) -> None:
    code = "import os; print(os.environ['A'], os.environ['B'] == '', os.environ['C'])"
    assert engine.run(code, env=["A=1", "B=", "C=x=y ü"]).stdout == "1 True x=y ü\n"


def test_environment_holds_nothing_of_the_host(engine: Engine) -> None:
    secret = clean_env(CLOCHE_TEST_SECRET="s3cret", OTHER_SECRET="s3cret")
    code = "import os, subprocess; print(dict(os.environ)); print(subprocess.getoutput('env'))"
    done = engine.cli("-c", code, env=secret)
    assert done.returncode == 0
    assert b"s3cret" not in done.stdout
    assert b"CLOCHE" not in done.stdout


def test_signals_that_the_engine_was_started_without(tmp_path: Path) -> None:
    """As with nohup, or in the background of a script."""
    caller = Caller(before=("env", "--ignore-signal=HUP,INT,QUIT,USR1"))
    engine = Engine(tmp_path, "--profiles", "base", caller=caller)
    try:
        code = (
            "import signal\n"
            "print([s.name for s in signal.Signals if signal.getsignal(s) is signal.SIG_IGN])"
        )
        assert engine.execute(code).stdout == b"['SIGPIPE', 'SIGXFSZ']\n"
        engine.stop()
    finally:
        engine.kill()


def test_a_hard_limit_of_core_dumps(engine: Engine, tmp_path: Path) -> None:
    """As sudo sets it, and nobody here may raise it."""
    usual = "(1, 1)" if resource.getrlimit(resource.RLIMIT_CORE)[1] else "(0, 0)"
    ask = "import resource\nprint(resource.getrlimit(resource.RLIMIT_CORE))"
    assert engine.execute(ask).stdout.decode() == usual + "\n"
    before = ("setpriv", "--bounding-set=-sys_resource", "prlimit", "--core=0:0")
    limited = Engine(tmp_path, "--profiles", "base", caller=Caller(before=before))
    try:
        outcome = limited.execute(ask + "\nimport os\nos.abort()")
        assert outcome.stdout == b"(0, 0)\n" and outcome.exit_status == 134
        limited.stop()
    finally:
        limited.kill()


def test_standard_input(engine: Engine) -> None:
    result = engine.run("import sys; print(sys.stdin.read().upper())", stdin="hello\nü\n")
    assert result.stdout == "HELLO\nÜ\n\n"


def test_large_standard_input(engine: Engine) -> None:
    data = os.urandom(3 << 20)
    code = "import sys, hashlib; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())"
    result = engine.run(code, stdin=data, **LONG)
    assert result.stdout.strip() == hashlib.sha256(data).hexdigest()


def test_input_that_nobody_reads(engine: Engine) -> None:
    assert engine.run("print('done')", stdin=b"x" * (1 << 20), **LONG).stdout == "done\n"


def test_input_function(engine: Engine) -> None:
    result = engine.run("a = input('name? '); b = input(); print(a + b)", stdin="x\ny\n")
    assert result.stdout == "name? xy\n"


def test_input_without_stdin_is_at_its_end(engine: Engine) -> None:
    result = engine.run("try:\n    input()\nexcept EOFError: print('eof')")
    assert result.stdout == "eof\n"


LAST_LINES = {
    "1+1\n2+2": "4\n",
    "'a'": "'a'\n",
    "x=3; x": "3\n",
    "if True:\n 7": "",
    "None": "",
    "print('p')\n[1, 'b']": "p\n[1, 'b']\n",
    "5\n_": None,
    "x = 1": "",
    "def f(): return 1\nf()": "1\n",
    "# only a comment": "",
    "": "",
    "1 # with a comment": "1\n",
    "(1,\n 2)": "(1, 2)\n",
    "'é\\n'": "'é\\n'\n",
    "'doc'\n": "'doc'\n",
    "from __future__ import annotations\ndef f(x: no): 1\nf.__annotations__": "{'x': 'no'}\n",
    "tree = 1\n2": "2\n",
}


@pytest.mark.parametrize("code", LAST_LINES)
def test_the_last_line_is_printed(engine: Engine, code: str) -> None:
    result = engine.run(code, interactive_last_line=True)
    if LAST_LINES[code] is None:
        assert result.status == "error"
    else:
        assert (result.stdout, result.stderr) == (LAST_LINES[code], "")


def test_the_last_line_is_not_printed_unless_asked_for(engine: Engine) -> None:
    assert engine.run("1+1").stdout == ""


def test_an_error_in_the_last_line(engine: Engine) -> None:
    result = engine.run("x = 1\nx / 0", interactive_last_line=True)
    assert result.exit_code == 1
    assert result.stderr.endswith("ZeroDivisionError: division by zero\n")
    assert 'File "/workspace/__main__.py", line 2, in <module>' in result.stderr


def test_a_repr_that_raises_in_the_last_line(engine: Engine) -> None:
    code = "class A:\n    def __repr__(self): raise RuntimeError('no')\nA()"
    result = engine.run(code, interactive_last_line=True)
    assert (result.status, result.error["name"]) == ("error", "RuntimeError")


def test_ctrl_c_stops_the_program_inside(engine: Engine) -> None:
    code = "print('up', flush=True)\nimport time\ntime.sleep(1000)\n"
    with engine.popen("--timeout", "60", "-c", code) as cli:
        assert cli.stdout is not None and cli.stderr is not None
        assert cli.stdout.readline() == b"up\n"
        os.killpg(cli.pid, signal.SIGINT)
        assert b"KeyboardInterrupt" in cli.stderr.read()
        assert cli.wait() == 130


def test_ctrl_c_can_be_handled_by_the_program(engine: Engine) -> None:
    code = (
        "import time\n"
        "try:\n"
        "    print('up', flush=True)\n"
        "    time.sleep(1000)\n"
        "except KeyboardInterrupt:\n"
        "    print('handled')\n"
    )
    with engine.popen("--timeout", "60", "-c", code) as cli:
        assert cli.stdout is not None
        assert cli.stdout.readline() == b"up\n"
        os.killpg(cli.pid, signal.SIGINT)
        assert cli.stdout.read() == b"handled\n"
        assert cli.wait() == 0


def test_a_program_that_ignores_ctrl_c_is_ended_by_more_of_them(engine: Engine) -> None:
    code = (
        "import signal\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "print('up', flush=True)\n"
        "while True: pass\n"
    )
    with engine.popen("--timeout", "60", "--cpu", "60", "-c", code) as cli:
        assert cli.stdout is not None
        assert cli.stdout.readline() == b"up\n"
        deadline = Deadline()
        while cli.poll() is None and not deadline.over:
            os.killpg(cli.pid, signal.SIGINT)
            select.select([cli.stdout], [], [], 0.2)
        assert cli.wait() in (130, 137)


def test_a_client_that_dies_takes_its_program_with_it(engine: Engine) -> None:
    code = "print('up', flush=True)\nimport time\ntime.sleep(1000)\n"
    with engine.popen("--timeout", "60", "-c", code) as cli:
        assert cli.stdout is not None
        assert cli.stdout.readline() == b"up\n"
        cli.kill()  # the leak check of the fixture sees that the sandbox is gone


@pytest.mark.skipif(Path("/run/cloche/engine.sock").exists(), reason="an engine runs here")
def test_without_an_engine_a_private_one_is_used(tmp_path: Path) -> None:
    env = clean_env(XDG_RUNTIME_DIR=str(tmp_path))
    done = run_cli("run", "-c", "print('private')", env=env)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"private\n", b"")
    told = run_cli("run", "-v", "-c", "import sys; sys.exit(3)", env=env)
    assert told.returncode == 3
    assert b"private" in told.stderr


@pytest.mark.skipif(Path("/run/cloche/engine.sock").exists(), reason="an engine runs here")
def test_a_private_engine_goes_away_after(tmp_path: Path) -> None:
    """Its processes are found by what they inherited from us, since other engines may run here."""
    env = clean_env(XDG_RUNTIME_DIR=str(tmp_path), TMPDIR=str(tmp_path))

    def ours() -> list[Process]:
        return [p for p in processes() if str(tmp_path) in environment(p.pid)]

    def groups() -> list[str]:
        return [path for path in cgroup_dirs() if path.rpartition("-")[2] in seen]

    before = mounts()
    words = [str(cloche_bin()), "run", "--timeout", "60", "--stdin", "-c", "print('x'); input()"]
    with subprocess.Popen(words, env=env, stdin=-1, stdout=-1) as cli:
        assert cli.stdin is not None and cli.stdout is not None
        assert cli.stdout.readline() == b"x\n"
        seen = [str(process.pid) for process in ours()]
        assert len(seen) > 1, "an engine was there"
        cli.stdin.write(b"go on\n")
        cli.stdin.close()
        assert cli.wait() == 0
    assert eventually(lambda: not ours() and not groups() and not mounts() - before)
    assert list(tmp_path.rglob("*")) == []


def installed(directory: Path) -> Path:
    """A copy of our programs that nobody but us can enter; returns the command line's."""
    directory.mkdir(mode=0o700)
    names = (
        "cloche",
        "cloche-warden",
        "cloche-gate",
        "cloche-server",
        "cloche-nursery",
        "cloche_zygote.abi3.so",
    )
    for name in names:
        shutil.copy2(cloche_bin().parent / name, directory / name)
    shutil.copytree(cloche_bin().parent / "py", directory / "py")
    return directory / "cloche"


def run_installed(binary: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [binary, "run", "--profile", "base", "-c", "print('hello')"],
        capture_output=True,
        timeout=DEADLINE_S,
        env=clean_env(CLOCHE_LOG_LEVEL="error"),
        check=False,
    )


def test_our_programs_may_lie_below_a_private_directory(tmp_path: Path) -> None:
    """The server runs as another user, who cannot enter it."""
    done = run_installed(installed(tmp_path / "private"))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"hello\n", b"")


def test_a_server_that_cannot_be_executed_is_told(tmp_path: Path) -> None:
    binary = installed(tmp_path / "spoilt")
    (tmp_path / "spoilt" / "cloche-server").write_text("not a program")
    failed(run_installed(binary), "cloche-server cannot be started")

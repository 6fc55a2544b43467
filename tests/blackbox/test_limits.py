"""Limits of a program: what happens at each, and how it is told."""

from __future__ import annotations

from pathlib import Path

from harness import LONG, Engine, failed


def test_a_timeout_is_124_and_keeps_the_output(engine: Engine) -> None:
    code = "print('before', flush=True)\nimport time\ntime.sleep(1000)"
    done = engine.cli("--timeout", "3", "-c", code)
    assert done.returncode == 124
    assert done.stdout == b"before\n"
    assert b"time" in done.stderr


def test_a_timeout_in_the_result(engine: Engine) -> None:
    result = engine.run("while True: pass", timeout=0.4)
    assert (result.status, result.timed_out, result.limit_hit) == ("timeout", True, "time")
    assert (result.exit_code, result.exit_status) == (None, 124)
    assert result.usage["wall_ms"] >= 400


def test_a_timeout_keeps_the_files(engine: Engine, tmp_path: Path) -> None:
    code = "open('kept', 'w').write('x')\nimport time\ntime.sleep(1000)"
    done = engine.cli("--timeout", "3", "--out", tmp_path / "out", "-c", code)
    assert done.returncode == 124
    assert (tmp_path / "out" / "kept").read_text() == "x"


def test_a_timeout_ends_children_too(engine: Engine) -> None:
    code = "import subprocess; subprocess.run(['sleep', '1000'])"
    assert engine.run(code, timeout=0.5).status == "timeout"


def test_ignoring_signals_does_not_help_against_a_timeout(engine: Engine) -> None:
    code = (
        "import signal\n"
        "for s in set(signal.valid_signals()) - {9, 19}:\n"
        "    signal.signal(s, signal.SIG_IGN)\n"
        "while True: pass\n"
    )
    assert engine.run(code, timeout=0.5).status == "timeout"


def test_memory_is_137(engine: Engine) -> None:
    done = engine.cli(
        "--memory", "64", "--timeout", "60", "-c", "x = b'x' * (900 << 20)\nprint('no')"
    )
    assert done.returncode == 137
    assert done.stdout == b""
    assert b"memory" in done.stderr


def test_memory_in_the_result(engine: Engine) -> None:
    code = "x = []\nwhile True: x.append(bytearray(1 << 20))"
    result = engine.run(code, memory=64, **LONG)
    assert (result.status, result.limit_hit) == ("memory_exceeded", "memory")
    assert result.exit_code == 137
    assert result.usage["memory_peak_bytes"] >= 32 << 20


def test_memory_of_a_child_counts(engine: Engine) -> None:
    code = (
        "import subprocess, sys\n"
        "p = subprocess.run([sys.executable, '-c', 'x = b\"x\" * (300 << 20)'])\n"
        "print(p.returncode)\n"
    )
    result = engine.run(code, memory=96, **LONG)
    assert result.limit_hit == "memory"


def test_enough_memory_is_enough(engine: Engine) -> None:
    result = engine.run("x = b'x' * (100 << 20); print(len(x))", memory=200, **LONG)
    assert (result.status, result.stdout) == ("ok", f"{100 << 20}\n")


def test_cpu_seconds(engine: Engine) -> None:
    result = engine.run("while True: pass", cpu=1, timeout=60)
    assert result.limit_hit == "cpu"
    assert (result.status, result.exit_code, result.signal) == ("killed", 137, 9)
    assert result.usage["cpu_ms"] >= 900


def test_cpu_of_children_counts(engine: Engine) -> None:
    code = (
        "import os\n"
        "for _ in range(3):\n"
        "    if os.fork() == 0:\n"
        "        while True: pass\n"
        "os.wait()\n"
    )
    assert engine.run(code, cpu=1, timeout=60).limit_hit == "cpu"


def test_pids(engine: Engine) -> None:
    code = (
        "import os, time\n"
        "made = 0\n"
        "try:\n"
        "    while made < 100:\n"
        "        if os.fork() == 0:\n"
        "            time.sleep(1000)\n"
        "        made += 1\n"
        "except BlockingIOError:\n"
        "    print('refused', made < 20)\n"
    )
    result = engine.run(code, pids=16, **LONG)
    assert result.stdout == "refused True\n"
    assert result.limit_hit == "pids"


def test_disk(engine: Engine) -> None:
    code = (
        "try:\n"
        "    open('big', 'wb').write(bytes(40 << 20))\n"
        "except OSError as e:\n"
        "    print(e.strerror)\n"
    )
    result = engine.run(code, disk=16, **LONG)
    assert result.stdout == "No space left on device\n"
    assert result.status == "ok"
    assert result.limit_hit == "disk"


def test_a_program_that_is_larger_than_its_disk(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "large.py").write_text("#" * (3 << 20))
    failed(engine.cli("--disk", "2", tmp_path / "large.py"), "3145728 bytes", "2 MB")


def test_more_disk_than_the_default(engine: Engine) -> None:
    code = "open('big', 'wb').write(bytes(40 << 20)); print('ok')"
    assert engine.run(code, disk=64, **LONG).stdout == "ok\n"


def test_open_files(engine: Engine) -> None:
    code = (
        "import errno\n"
        "held = []\n"
        "try:\n"
        "    while True: held.append(open('/dev/null'))\n"
        "except OSError as e:\n"
        "    print(errno.errorcode[e.errno], len(held) < 32)\n"
    )
    assert engine.run(code, open_files=32).stdout == "EMFILE True\n"


def test_output_over_the_limit_is_cut_and_said(engine: Engine) -> None:
    result = engine.run("import sys; sys.stdout.write('x' * 10_000_000)", output=1_000_000, **LONG)
    assert result.status == "ok"
    assert result.stdout_truncated is True
    assert result.stderr_truncated is False
    assert 900_000 <= len(result.stdout) <= 1_000_100
    assert result.limit_hit == "output"
    assert result.usage["output_bytes"] >= 1_000_000


def test_ten_megabytes_of_output_by_default(engine: Engine) -> None:
    result = engine.run("import sys; sys.stderr.write('y' * 10_000_000)", **LONG)
    assert result.stderr_truncated is True
    assert result.exit_status == 0


def test_output_within_the_limit_is_whole(engine: Engine) -> None:
    result = engine.run("print('x' * 999_000)", output=1_000_000, **LONG)
    assert result.stdout == "x" * 999_000 + "\n"
    assert result.stdout_truncated is False
    assert result.limit_hit is None

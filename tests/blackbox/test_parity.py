"""Programs that must not notice where they run: the same under plain python3 and in a sandbox.

Each file of parity/ runs both ways; stdout, stderr and the exit status must be equal, the fresh
directory's name and memory addresses apart. A program prints what is the same for every process of
this Python, never what differs between any two (pids, times, hashes of strings).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness import Engine
from plain_python import normal, plain

WITH_TERMINALS = Path(__file__).parent / "parity" / "pty_terminal.py"
PROGRAMS = sorted({*WITH_TERMINALS.parent.glob("*.py")} - {WITH_TERMINALS})


def shell_status(returncode: int) -> int:
    return 128 - returncode if returncode < 0 else returncode


def check_parity(engine: Engine, tmp_path: Path, program: Path) -> None:
    code = program.read_bytes()
    expected = plain(code, tmp_path)
    outcome = engine.execute(
        code,
        profile="base",
        timeout_ms=60000,
        cpu_seconds=60,
        memory_mb=512,
    )
    assert outcome.error is None
    assert normal(outcome.stderr) == normal(expected.stderr, tmp_path)
    assert normal(outcome.stdout) == normal(expected.stdout, tmp_path)
    assert outcome.exit_status == shell_status(expected.returncode)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_parity(engine: Engine, tmp_path: Path, program: Path) -> None:
    check_parity(engine, tmp_path, program)


def test_parity_where_programs_may_open_terminals(
    start_engine: Callable[..., Engine], tmp_path: Path
) -> None:
    check_parity(start_engine("--terminals", "4"), tmp_path, WITH_TERMINALS)


@pytest.mark.parametrize(
    "name,value",
    [
        ("TZ", "Asia/Tokyo"),
        ("TZ", "XYZ-5:30"),
        ("TZ", "No/Where"),
        ("PYTHONPATH", "lib:/there:/usr/lib/python3.11::lib"),
    ],
)
def test_variables_that_python_reads_when_it_starts(
    engine: Engine, tmp_path: Path, name: str, value: str
) -> None:
    code = (
        "import sys, time, datetime\nprint(time.tzname, time.timezone, time.localtime(0).tm_hour)\n"
        "print(datetime.datetime.fromtimestamp(0).isoformat(), time.strftime('%Z'))\n"
        "for path in sys.path: print(path)"
    )
    expected = plain(code, tmp_path, **{name: value})
    outcome = engine.execute(code, profile="base", env=[f"{name}={value}"])
    assert normal(outcome.stdout) == normal(expected.stdout, tmp_path)


def test_there_is_a_broad_sample() -> None:
    assert len(PROGRAMS) >= 60

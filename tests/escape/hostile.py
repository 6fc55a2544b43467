"""The programs of programs/: what each needs and what must come of it stands in its docstring.

    #! name=value …   options of the run (those of client.start)
    #= line           a line that it prints, in this order; `a|b` at the end: one of these
    #? name=value …   fields of the result
"""

from __future__ import annotations

import ast
import dataclasses
from itertools import zip_longest
from pathlib import Path
from typing import Any

from client import Outcome
from harness import Engine
from held import PATIENT

PROGRAMS = Path(__file__).resolve().parent / "programs"
HELPER = (PROGRAMS / "attempt.py").read_bytes()

WITH_ARGUMENTS = {
    "files_full",
    "files_odd",
    "proc_masked",
    "processes_binary",
    "processes_daemon",
    "processes_stop_and_go",
    "files_many",
    "memory_dentries",
    "memory_kept",
    "neighbours_canary",
    "neighbours_poison",
    "neighbours_pristine",
}


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


@dataclasses.dataclass
class Program:
    code: str
    options: dict[str, Any]
    lines: list[str]
    fields: dict[str, Any]

    @classmethod
    def read(cls, name: str) -> Program:
        code = (PROGRAMS / f"{name}.py").read_text()
        found: dict[str, list[str]] = {"#!": [], "#=": [], "#?": []}
        for line in (ast.get_docstring(ast.parse(code)) or "").splitlines():
            if line[:2] in found:
                found[line[:2]].append(line[3:])
        pairs = {
            mark: dict(pair.split("=", 1) for line in found[mark] for pair in line.split())
            for mark in ("#!", "#?")
        }
        return cls(
            code,
            {key: _value(value) for key, value in pairs["#!"].items()},
            found["#="],
            {key: _value(value) for key, value in pairs["#?"].items()},
        )


def fits(line: str, expected: str) -> bool:
    head, _, last = expected.rpartition(" ")
    return any(line == f"{head} {choice}".lstrip() for choice in last.split("|"))


def alone() -> list[str]:
    """The programs that need no arguments and nobody beside them."""
    named = {name: Program.read(name) for name in sorted(p.stem for p in PROGRAMS.glob("*_*.py"))}
    return [
        name
        for name, program in named.items()
        if (program.lines or program.fields)
        and name not in WITH_ARGUMENTS
        and not name.startswith("network_")  # test_network_hostile.py has these
    ]


def complaints(program: Program, stdout: str, result: dict[str, Any]) -> list[str]:
    """What came of it that it does not promise."""
    lines = stdout.splitlines() if program.lines else []
    found = [
        f"{line!r} instead of {expected!r}"
        for line, expected in zip_longest(lines, program.lines, fillvalue="")
        if not fits(line, expected)
    ]
    found += [
        f"{key}={result[key]!r} instead of {value!r}"
        for key, value in program.fields.items()
        if result[key] != value
    ]
    return found


def execute(engine: Engine, name: str, *args: str, **more: Any) -> Outcome:
    program = Program.read(name)
    inputs = {"attempt.py": HELPER, **more.pop("inputs", {})}
    options = {**PATIENT, **program.options, **more}
    return engine.execute(program.code, args=list(args), inputs=inputs, **options)


def check(engine: Engine, name: str, *args: str, **more: Any) -> Outcome:
    """Runs it and holds what came of it against what it promises."""
    outcome = execute(engine, name, *args, **more)
    shown = (
        f"{outcome.stdout[:8000].decode(errors='replace')}\n{outcome.stderr[:4000]!r}\n{outcome}"[
            :16000
        ]
    )
    assert outcome.error is None, shown
    wrong = complaints(Program.read(name), outcome.stdout.decode(errors="replace"), outcome.result)
    assert not wrong, f"{wrong}\n{shown}"
    return outcome

"""Every example in the README and in docs/ is run, and its output is what the page says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Iterator, List, Tuple

import pytest

from harness import Engine, cloche_bin

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def sessions(page: Path) -> Iterator[Tuple[str, List[Tuple[str, List[str]]]]]:
    """The page's console blocks, each a list of commands with the lines that they print."""
    for block in re.finditer(r"^```console\n(.*?)^```", page.read_text(), re.M | re.S):
        line = page.read_text()[: block.start()].count("\n") + 1
        commands: List[Tuple[str, List[str]]] = []
        for text in block.group(1).splitlines():
            if text.startswith("$ "):
                commands.append((text[2:], []))
            else:
                commands[-1][1].append(text)
        yield f"{page.name}:{line}", commands


EXAMPLES = [example for page in PAGES if page.exists() for example in sessions(page)]


def matches(expected: List[str], got: List[str]) -> bool:
    """`...` stands for any text in a line, and alone on a line for any lines."""
    if not expected:
        return not got
    if expected[0] == "...":
        return any(matches(expected[1:], got[n:]) for n in range(len(got) + 1))
    pattern = ".*".join(re.escape(part) for part in expected[0].split("..."))
    return bool(got) and bool(re.fullmatch(pattern, got[0])) and matches(expected[1:], got[1:])


@pytest.mark.parametrize("commands", [c for _, c in EXAMPLES], ids=[name for name, _ in EXAMPLES])
def test_example_does_what_the_page_says(
    commands: List[Tuple[str, List[str]]], engine: Engine, tmp_path: Path
) -> None:
    env = {
        "PATH": f"{cloche_bin().parent}:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
        "CLOCHE_SOCKET": str(engine.socket),
    }
    for command, expected in commands:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=tmp_path,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
        assert matches(expected, done.stdout.splitlines()), f"$ {command}\n{done.stdout}"


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 8
    assert shutil.which("bash") and os.access("/usr/bin/python3", os.X_OK)

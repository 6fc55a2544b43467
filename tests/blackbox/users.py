"""Users who are not root: making them, and calling cloche as them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from harness import Caller, eventually, flags, run_cli
from host import processes

RANGE = 65536
NAMELESS = 31337  # has no line in passwd
NOBODY = 65534


# ---------------------------------------------------------------------------- users and places


def administer(*words: str) -> None:
    """useradd and its kin lock files, which another test run may hold for a moment."""

    def try_it() -> bool:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1, 8, 10), (words, done.stderr)
        return done.returncode == 0

    assert eventually(try_it, step_s=0.2), words


def make_user(name: str) -> tuple[int, int]:
    administer("useradd", "--system", "--no-create-home", "--home-dir", "/nonexistent", name)
    entry = Path("/etc/passwd").read_text().split(f"\n{name}:")[1].split(":")
    return int(entry[1]), int(entry[2])


def make_caller(program: Path, place: Path, uid: int, gid: int, *words: str) -> Caller:
    home = place / f"home-{uid}"
    home.mkdir(mode=0o700, exist_ok=True)
    os.chown(home, uid, gid)
    who = ("setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups", *words, "--")
    return Caller(program, who, {"HOME": str(home), "XDG_RUNTIME_DIR": str(home)})


def home_of(caller: Caller) -> Path:
    return Path(caller.env["HOME"])


def private(caller: Caller, code: str, *args: str, **options: Any) -> dict[str, Any]:
    """`cloche run --json` with no engine, as that user."""
    done = run_cli(
        "run", *flags(options), "--json", "-c", code, *args, caller=caller, cwd=Path("/")
    )
    assert done.stdout, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result | {"exit_status": done.returncode}


def owner(pid: int) -> int | None:
    try:
        return Path(f"/proc/{pid}").stat().st_uid
    except FileNotFoundError:
        return None


def supervisors(caller: Caller) -> set[int]:
    """The command lines, wardens and servers that run as this user; all else dies with them."""
    uid = int(caller.before[1].split("=")[1])
    return {
        process.pid
        for process in processes()
        if process.role in ("cloche", "cloche-warden", "cloche-server")
        and owner(process.pid) == uid
    }

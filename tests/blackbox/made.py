"""`cloche profile`, as an operator calls it, and packages for it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import clean_env, cloche_bin
from wheels import wheel

DEADLINE_S = 300.0


@contextlib.contextmanager
def place_of_profiles() -> Iterator[Path]:
    """Where sandboxes can see what is in it: each has a /tmp of its own."""
    home = Path.home()
    if str(home).startswith("/tmp"):
        pytest.skip("no home outside of /tmp")
    with tempfile.TemporaryDirectory(prefix=".cloche-test-", dir=home) as name:
        Path(name).chmod(0o755)
        yield Path(name)


class Maker:
    """The command line, with a directory of profiles and one of wheels."""

    def __init__(self, place: Path, program: Path | None = None) -> None:
        self.place = place
        self.profiles = place / "profiles"
        self.wheels = place / "wheels"
        self.socket = place / "none.sock"
        self.program = program or cloche_bin()
        wheel(self.wheels, "alpha")
        wheel(self.wheels, "beta", needs="alpha")
        self.env: dict[str, str] = {}

    def start(self, verb: str, *words: Any) -> subprocess.Popen[bytes]:
        where = ("--profiles-dir", self.profiles, "--socket", self.socket)
        return subprocess.Popen(
            [self.program, "profile", verb, *where, *map(str, words)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=clean_env(**self.env),
        )

    def call(self, verb: str, *words: Any) -> subprocess.CompletedProcess[bytes]:
        process = self.start(verb, *words)
        out, err = process.communicate(timeout=DEADLINE_S)
        return subprocess.CompletedProcess([verb], process.returncode, out, err)

    def said(self, verb: str, *words: Any) -> str:
        done = self.call(verb, *words)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    def add(self, name: str, *words: Any) -> dict[str, Any]:
        """What it costs."""
        links = () if "--find-links" in words else ("--find-links", self.wheels)
        found: dict[str, Any] = json.loads(self.said("add", name, *links, "--json", *words))
        assert found["name"] == name
        return dict(found["costs"])

    def refused(self, verb: str, *words: Any) -> str:
        """One sentence, the last line, and nothing half-done."""
        before = self.names()
        links = ("--find-links", self.wheels) if verb == "add" else ()
        done = self.call(verb, *links, *words)
        last = done.stderr.decode().rstrip("\n").split("\n")[-1]
        assert done.returncode == 125 and last.startswith("cloche: "), (done.returncode, last)
        assert self.names() == before
        return last

    def record(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.said("show", name, "--json"))["record"]
        return found

    def names(self) -> list[str]:
        """What is there, but for locks."""
        if not self.profiles.is_dir():
            return []
        return sorted(name for name in os.listdir(self.profiles) if not name.endswith(".lock"))

    def site(self, name: str) -> Path:
        (found,) = (self.profiles / name / "env").glob("lib/python3*/site-packages")
        return found


def add_to_wheel(path: Path, files: dict[str, str]) -> None:
    """More files than wheel() makes; pip takes what RECORD does not name as well."""
    with zipfile.ZipFile(path, "a") as archive:
        for name, text in files.items():
            archive.writestr(name, text)

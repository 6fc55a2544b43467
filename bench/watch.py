"""The stop watch: bench_client (client.c), asked from Python."""

from __future__ import annotations

import dataclasses
import subprocess
from collections.abc import Sequence
from pathlib import Path

from client import ROOT
from harness import clean_env

TIMEOUT_S = 600.0


class WatchError(Exception):
    """A run that failed or printed something else."""


@dataclasses.dataclass(frozen=True)
class Timed:
    ns: list[int]
    warm: int  # how many of them found a sandbox ready
    elapsed_ns: int


class Watch:
    def __init__(self, build: Path) -> None:
        self.program = str(build / "bench_client")

    def _call(self, words: Sequence[str]) -> list[str]:
        try:
            done = subprocess.run(
                words,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                env=clean_env(),
                cwd=ROOT,
                timeout=TIMEOUT_S,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise WatchError(str(error)) from None
        if done.returncode != 0:
            # The contender's own words, if it had any, come before the watch's.
            raise WatchError("\n".join(reversed(done.stderr.strip().splitlines())))
        return done.stdout.splitlines()

    def run(
        self,
        wrap: Sequence[str],
        expect: str,
        how: Sequence[str],
        *,
        runs: int = 0,
        seconds: int = 0,
        clients: int = 1,
    ) -> Timed:
        amount = ["-n", str(runs)] if runs else ["-s", str(seconds)]
        words = [*wrap, self.program, "run", *amount, "-c", str(clients), expect, *how]
        *lines, last = self._call(words)
        pairs = [line.split() for line in lines]
        return Timed(
            [int(ns) for ns, _ in pairs], sum(int(warm) for _, warm in pairs), int(last.split()[1])
        )

    def start(self, expect: str, socket: Path, profile: str, code: str, *serve: str) -> int:
        """From the engine's exec to its first result, in ns."""
        lines = self._call([self.program, "start", expect, str(socket), profile, code, *serve])
        return int(lines[-1].split()[0])

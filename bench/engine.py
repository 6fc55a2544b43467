"""An engine to measure: the real `cloche serve`, on a socket of its own."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from client import Client
from harness import clean_env

START_DEADLINE_S = 300.0


class Engine:
    def __init__(self, build: Path, socket: Path, *options: str) -> None:
        self.socket = socket
        self.log = socket.with_suffix(".log")
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [build / "cloche", "serve", "--http", "off", "--socket", socket, *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=clean_env(),
            )

    def profiles(self) -> list[dict[str, Any]]:
        with Client(self.socket) as client:
            profiles: list[dict[str, Any]] = client.info()["profiles"]
            return profiles

    def _is_full(self, pool: int | None) -> bool:
        """Every profile is loaded and its sandboxes (at least one unless told) are ready."""
        try:
            states = self.profiles()
        except (ConnectionError, FileNotFoundError):
            return False
        least = 1 if pool is None else pool
        return all(
            p["state"] == "ready" and p["ready"] >= least and p["making"] == 0 for p in states
        )

    def wait_full(self, pool: int | None = None) -> None:
        deadline = time.monotonic() + START_DEADLINE_S
        while not self._is_full(pool):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the engine did not start:\n{self.log.read_text()}")
            time.sleep(0.02)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


@contextlib.contextmanager
def running(build: Path, socket: Path, *options: str, pool: int | None = None) -> Iterator[Engine]:
    """An engine that is ready when the block begins, and gone when it ends."""
    engine = Engine(build, socket, *options)
    try:
        engine.wait_full(pool)
        yield engine
    except BaseException:
        print(engine.log.read_text(), file=sys.stderr)
        raise
    finally:
        engine.stop()

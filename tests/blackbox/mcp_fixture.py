"""The server with the fixtures of the conformance suite (tests/mcp), for the tests."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from harness import cloche_bin


class Fixture:
    """Must be alive when it is stopped."""

    def __init__(self) -> None:
        program = cloche_bin().parent / "tests" / "mcp" / "mcp_fixture"
        self.process = subprocess.Popen([program, "0"], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout
        line = self.process.stdout.readline().strip()
        self.port = int(line.removesuffix("/mcp").rsplit(":", 1)[1])

    def stop(self) -> None:
        assert self.process.poll() is None, "it has died"
        self.process.terminate()

    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))


@contextlib.contextmanager
def running() -> Iterator[Fixture]:
    server = Fixture()
    try:
        yield server
        server.stop()
    finally:
        server.process.kill()
        server.process.wait()
        assert server.process.stdout
        server.process.stdout.close()

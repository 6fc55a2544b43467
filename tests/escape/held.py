"""A program that is kept running while the test looks at the host."""

from __future__ import annotations

import secrets
from typing import Any

from client import Client, Outcome, blob
from harness import Engine

SERVER_CANARY = "CANARY-" + secrets.token_hex(16)  # in the environment of the engine's processes
PATIENT: dict[str, Any] = {"timeout_ms": 60_000, "cpu_seconds": 60}


class Held:
    def __init__(self, engine: Engine, code: str, **options: Any) -> None:
        self.client: Client = engine.raw()
        self.client.start(code, stdin=True, **{**PATIENT, **options})
        self.outcome = Outcome()
        self.seen = 0

    def __enter__(self) -> Held:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def send(self, text: str) -> None:
        self.client.send("C_STDIN", blob(text.encode()))

    def _take(self) -> bool:
        """One packet; True at the end."""
        message = self.client.recv()
        assert message is not None, "the engine hung up"
        try:
            if message.name == "C_WANT":  # room for more input: we never send that much
                return False
            return self.client._take(message, self.outcome)
        finally:
            message.close()

    def line(self) -> str:
        """The next line of its output."""
        while b"\n" not in self.outcome.stdout[self.seen :]:
            assert not self._take(), f"it ended: {self.outcome}"
        line = self.outcome.stdout[self.seen :].split(b"\n")[0]
        self.seen += len(line) + 1
        return line.decode()

    def end(self) -> Outcome:
        """Closes its standard input and waits for its end."""
        self.send("")
        while not self._take():
            pass
        return self.outcome

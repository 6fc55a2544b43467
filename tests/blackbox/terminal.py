"""A program at a terminal of its own: what a person types, and what appears."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
from types import TracebackType
from typing import Any

from client import DEADLINE_S
from harness import OURSELVES, Caller, Deadline

AGAIN_S = 12  # longer than a server waits for a kernel's answer


class Terminal:
    def __init__(
        self, *words: str, env: dict[str, str] | None = None, caller: Caller = OURSELVES
    ) -> None:
        self.ours, self.theirs = pty.openpty()
        self.resize(24, 80)
        self.before = termios.tcgetattr(self.theirs)
        self.raw = b""  # all that came
        self.seen = b""  # without the switches of bracketed paste, which may stand anywhere
        self.at = 0
        self.process = subprocess.Popen(
            caller.command(*words),
            stdin=self.theirs,
            stdout=self.theirs,
            stderr=self.theirs,
            env={**caller.environment(), "TERM": "xterm", **(env or {})},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.terminate()  # it has something to clean up
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()
        os.close(self.ours)
        os.close(self.theirs)

    def resize(self, rows: int, cols: int) -> None:
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def type(self, text: str) -> None:
        os.write(self.ours, text.encode())

    def _read(self) -> None:
        self.raw += os.read(self.ours, 1 << 16)
        self.seen = self.raw.replace(b"\x1b[?2004h", b"").replace(b"\x1b[?2004l", b"")

    def expect(self, text: str, again: str = "") -> str:
        """Waits until this appears behind what was expected before; returns what came between.
        `again` is typed now and then until it does, as a person would."""
        wanted = text.encode()
        deadline, patience = Deadline(), Deadline(AGAIN_S)
        while wanted not in self.seen[self.at :]:
            assert not deadline.over, f"no {text!r} in {self.seen[self.at:]!r}"
            if select.select([self.ours], [], [], min(0.2, deadline.left))[0]:
                self._read()
            elif again and patience.over:
                self.type(again)
                patience = Deadline(AGAIN_S)
            elif self.process.poll() is not None:
                assert wanted in self.seen[self.at :], f"ended: {self.seen[self.at:]!r}"
        end = self.seen.index(wanted, self.at)
        between = self.seen[self.at : end]
        self.at = end + len(wanted)
        return between.decode(errors="replace")

    def end(self) -> int:
        """Waits for the program's end; the terminal must be as it was."""
        deadline = Deadline(DEADLINE_S)
        while self.process.poll() is None:
            assert not deadline.over, f"it does not end: {self.seen[self.at:]!r}"
            if select.select([self.ours], [], [], 0.05)[0]:
                self._read()
        while select.select([self.ours], [], [], 0)[0]:
            self._read()
        assert termios.tcgetattr(self.theirs) == self.before
        return self.process.wait()

    def echoes(self) -> bool:
        flags: Any = termios.tcgetattr(self.theirs)[3]
        return bool(flags & termios.ECHO)

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

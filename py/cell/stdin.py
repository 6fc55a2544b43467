"""sys.stdin of a live kernel: what came with the request, or lines of whoever answers input().

Descriptor 0 is another thing: it is empty, for what the kernel starts.
"""

from __future__ import annotations

import builtins
import io
import sys
from typing import Any

from cell.channel import channel


class Stdin(io.RawIOBase):
    """It gives a line at a time, so that sys.stdin takes no more than was asked for, and input()
    gets the next one."""

    name = "<stdin>"
    mode = "rb"

    def __init__(self) -> None:
        self._rest, self._at = b"", 0
        self.was_read = False

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return 0

    def has_rest(self) -> bool:
        return self._at < len(self._rest)

    def line(self, most: int = -1) -> bytes:
        """What is left of a line, at most so many bytes of it; b"" at the end."""
        self.was_read = True
        if not self.has_rest():
            self._rest, self._at = channel.ask_rest(), 0
        end = self._rest.find(b"\n", self._at) + 1 or len(self._rest)
        if most >= 0:
            end = min(end, self._at + most)
        begin, self._at = self._at, end
        return self._rest[begin:end]

    def readinto(self, to: Any) -> int:
        found = self.line(len(to))
        to[: len(found)] = found
        return len(found)


_raw = Stdin()
_text: Any = None
_input = builtins.input


def renew() -> None:
    """For the next cell, which gets nothing of what the last one left. sys.stdin stays what user
    code has made of it."""
    global _raw, _text
    if _text is not None and not _raw.was_read:
        return
    before, _raw = _text, Stdin()
    _text = io.TextIOWrapper(io.BufferedReader(_raw), "utf-8", "replace")
    _text.mode = "r"
    if before is None or sys.stdin is before:
        sys.stdin = _text


def ask(prompt: str) -> str:
    """input()"""
    if sys.stdin is not _text and channel.is_user_code():
        return _input(prompt)  # from a file, or whatever user code has put there
    if not _raw.has_rest():
        return channel.ask(prompt, False)
    return _raw.line().decode("utf-8", "replace").rstrip("\n")

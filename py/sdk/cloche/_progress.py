"""A bar for transfers that take long, on a terminal."""

from __future__ import annotations

import sys
import time
from typing import Optional, Union

from cloche._uploads import Progress

QUIET_S = 0.5  # what is faster needs no bar
STEP_S = 0.1
WIDTH = 30
Wish = Union[bool, Progress]


class Bar:
    """Drawn on stderr, and taken away at the end."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._next = time.monotonic() + QUIET_S
        self._is_drawn = False

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if total and done >= total and self._is_drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._is_drawn = False
        elif done < total and now >= self._next:
            self._next = now + STEP_S
            self._is_drawn = True
            full = WIDTH * done // total
            bar = "#" * full + "." * (WIDTH - full)
            sys.stderr.write(f"\r{self._name} [{bar}] {_people(done)} of {_people(total)}\x1b[K")
            sys.stderr.flush()


def progress_for(wish: Wish, name: str) -> Optional[Progress]:
    """True is a bar where somebody can see it."""
    if callable(wish):
        return wish
    return Bar(name) if wish and sys.stderr.isatty() else None


def _people(size: float) -> str:
    for unit in ("B", "KB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"

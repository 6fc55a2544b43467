"""Environment variables, and what plain Python and the C library make of some when they start: here
they started long before they are set."""

from __future__ import annotations

import os
import sys
import time
from typing import Callable, Dict


def set_for_good(env: Dict[str, str]) -> None:
    os.environ.update(env)
    if "TZ" in env:
        time.tzset()
    if env.get("PYTHONPATH"):
        paths = [os.path.abspath(path) for path in env["PYTHONPATH"].split(os.pathsep)]
        sys.path[1:] = dict.fromkeys([*paths, *sys.path[1:]])


def set_for_now(env: Dict[str, str]) -> Callable[[], None]:
    """What undoes it, but for what user code changed since."""
    before = {name: os.environ.get(name) for name in env}
    os.environ.update(env)
    if "TZ" in env:
        time.tzset()

    def undo() -> None:
        for name, value in before.items():
            if os.environ.get(name) != env[name]:
                continue
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        if "TZ" in env:
            time.tzset()

    return undo

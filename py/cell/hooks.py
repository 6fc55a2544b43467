"""What the standard library does around every fork, kept away from the zygote's own forks.

Its modules register functions for that: they take locks and make new ones, and draw new seeds. In a
zygote there is one thread and no lock is held, and seeds are our own business (oneshot.prepare), so
all that they would do there is write to a hundred pages in every kernel. Python gets to know one
function for each occasion instead, which calls them in a kernel only, where user code may fork.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Callable, Dict, List

import cloche_zygote

PURE = {"threading", "random", "logging", "concurrent.futures.thread"}

_register: Callable[..., None] = getattr(os, "register_at_fork")
kept: Dict[str, List[Callable[[], Any]]] = {
    "before": [],
    "after_in_parent": [],
    "after_in_child": [],
}


def _keep(**functions: Callable[[], Any]) -> None:
    if sys._getframe(1).f_globals.get("__name__") not in PURE:
        _register(**functions)
        return
    for when, function in functions.items():
        kept[when].append(function)


def record() -> None:
    """Before the first import of one of those modules."""
    setattr(os, "register_at_fork", _keep)
    _register(**{when: getattr(cloche_zygote, when) for when in kept})


def settle() -> None:
    """After the preloads."""
    setattr(os, "register_at_fork", _register)

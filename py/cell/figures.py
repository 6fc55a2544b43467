"""Figures of a program for somebody who looks on: plt.show() saves them (RUN_FIGURES).

A program has no screen, so that plt.show() does nothing; the file is one of those that it made.
"""

from __future__ import annotations

import os
import sys
from typing import Any


def keep(where: str) -> None:
    """For a program that is about to begin; what imports matplotlib later has no figures."""
    pyplot: Any = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return

    def path() -> str:
        number = 1
        while os.path.lexists(f"{where}/figure-{number}.png"):
            number += 1
        return f"{where}/figure-{number}.png"

    def show(*args: Any, **kwargs: Any) -> None:
        for number in pyplot.get_fignums():
            figure = pyplot.figure(number)
            figure.savefig(path())
            pyplot.close(figure)

    pyplot.show = show

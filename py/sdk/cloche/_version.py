"""The version of this package: that of its metadata or, in the source tree, of the file there."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def _found() -> str:
    beside = Path(__file__).resolve().parents[3] / "VERSION"
    if beside.is_file() and (beside.parent / "py" / "sdk").is_dir():
        return beside.read_text(encoding="utf-8").strip()
    try:
        return version("cloche")
    except PackageNotFoundError:  # a copy of the directory
        return "0"


__version__ = _found()

"""The zygote's main function: load what the profile preloads, then fork kernels for ever.

Started by the nursery with descriptor 3 as its channel, 4 the system call filter and 5 the setup:
lines `site DIR` and `preload MODULE`. From then on everything happens in cloche_zygote.serve().
"""

from __future__ import annotations

import gc
import importlib
import io
import os
import sys
from typing import Any

import cloche_zygote
from cell import hooks

hooks.record()  # before anything is imported that has some

from cell import oneshot  # noqa: E402

CHAN, FILTER, SETUP = 3, 4, 5


def read_setup() -> tuple[list[str], list[str]]:
    # From the beginning, wherever another zygote left the position that all of them share.
    setup = os.pread(SETUP, os.fstat(SETUP).st_size, 0).decode("utf-8")
    os.close(SETUP)
    pairs = [line.split(" ", 1) for line in setup.split("\n") if line]
    return ([v for k, v in pairs if k == "site"], [v for k, v in pairs if k == "preload"])


def make_streams() -> None:
    """The standard streams of the programs to come, as the interpreter makes them over pipes.

    A stream finds out what it can do when it is made, and ours may be files or the null device.
    """
    ends = os.pipe()
    saved = [os.dup(fd) for fd in range(3)]
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        old = getattr(sys, name)
        os.dup2(ends[fd > 0], fd)
        buffer: Any = io.open(fd, "wb" if fd else "rb", 0 if fd else -1, closefd=False)
        getattr(buffer, "raw", buffer).name = f"<{name}>"
        stream: Any = io.TextIOWrapper(
            buffer, old.encoding, old.errors, "\n", old.line_buffering, old.write_through
        )
        stream.mode = "w" if fd else "r"
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
        os.dup2(saved[fd], fd)
    for fd in (*ends, *saved):
        os.close(fd)


def main() -> None:
    gc.disable()
    make_streams()
    sites, preload = read_setup()
    # The directory of a script stands first on the path; for the programs to come it is theirs.
    sys.path[0] = "/workspace"
    sys.path.extend(sites)
    for name in preload:
        try:
            importlib.import_module(name)
        except BaseException as exc:  # SystemExit too: nobody else would say why
            why = f"module {name} cannot be imported: {type(exc).__name__}: {exc}"
            cloche_zygote.broken(CHAN, why.replace("\0", "?")[:1500])
            sys.exit(1)
    oneshot.prepare()
    version = ".".join(map(str, sys.version_info[:3]))
    tops = " ".join(sorted({name.partition(".")[0] for name in preload}))
    cell = (oneshot.settle, oneshot.begin if oneshot.has_to_begin() else None, hooks.kept)
    cloche_zygote.serve(CHAN, FILTER, *cell, version, tops[:4000])

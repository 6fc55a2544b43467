"""The zygote's main function: load what the profile preloads, then fork kernels for ever.

Started by the nursery with descriptor 3 as its channel, 4 the system call filter and 5 the setup:
lines `site DIR`, `env NAME=VALUE`, `preload MODULE`, `allow MODULE` and `deny MODULE` (the
operator's lists of the policy), `index URL` and `registry URL` (of packages), and `live` where
kernels stay. From then on everything happens in cloche_zygote.serve().
"""

from __future__ import annotations

import functools
import importlib
import io
import os
import sys
from typing import Any, Callable, NoReturn, Optional, Tuple

import cloche_zygote
from cell import hooks

hooks.record()  # before anything is imported that has some

from cell import blas, environment, oneshot, packages  # noqa: E402
from cell.policy import Policy  # noqa: E402

CHAN, FILTER, SETUP = 3, 4, 5


Live = Optional[Tuple[Callable[..., None], Callable[[], None]]]


def read_setup() -> dict[str, list[str]]:
    # From the beginning, wherever another zygote left the position that all of them share.
    setup = os.pread(SETUP, os.fstat(SETUP).st_size, 0).decode("utf-8")
    os.close(SETUP)
    pairs = [line.partition(" ") for line in setup.split("\n")]
    keys = ("site", "env", "preload", "live", "allow", "deny", "index", "registry")
    return {key: [v for k, _, v in pairs if k == key] for key in keys}


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


def give_up(why: str) -> NoReturn:
    cloche_zygote.broken(CHAN, why.replace("\0", "?")[:1500])
    sys.exit(1)


def prepare_live() -> Live:
    """What a kernel that stays runs."""
    try:
        from cell import live

        live.prepare(cloche_zygote.open_loop)
        packages.tell()
        return live.main, live.rehearse
    except BaseException as exc:
        if isinstance(exc, ModuleNotFoundError) and exc.name == "IPython":
            how = "install python3-ipython, or ipython with its pip, and send SIGHUP"
            give_up(f"IPython is not installed for {sys.executable}: {how}")
        give_up(f"IPython cannot be used: {type(exc).__name__}: {exc}")


def choose_begin(live: bool) -> Optional[Callable[[], None]]:
    """What a new kernel runs before it says that it is ready."""
    if not live:
        return oneshot.begin if oneshot.has_to_begin() else None

    def begin() -> None:
        oneshot.begin()
        packages.begin()

    return begin


def main() -> None:
    make_streams()
    setup = read_setup()
    sys.path.extend(setup["site"])
    env = dict(pair.split("=", 1) for pair in setup["env"])
    late = {name: env.pop(name) for name in blas.VARIABLES if name in env}  # here it has one thread
    environment.set_for_good(env)
    for name in setup["preload"]:
        try:
            importlib.import_module(name)
        except BaseException as exc:  # SystemExit too: nobody else would say why
            give_up(f"module {name} cannot be imported: {type(exc).__name__}: {exc}")
    os.environ.update(late)
    # The directory of a script stands first on the path; for the programs to come it is theirs.
    sys.path.insert(0, "/workspace")
    packages.prepare("".join(setup["index"]), "".join(setup["registry"]))
    live = prepare_live() if setup["live"] else None
    oneshot.prepare()
    policy = Policy(setup["allow"], setup["deny"])
    policy.check(b"import math\nprint(math.pi)")  # once, so that the first program finds it done
    version = ".".join(map(str, sys.version_info[:3]))
    tops = " ".join(sorted({name.partition(".")[0] for name in setup["preload"]}))
    settle = functools.partial(oneshot.settle, policy)
    cell = (settle, choose_begin(bool(live)), hooks.kept, live)
    cloche_zygote.serve(CHAN, FILTER, *cell, version, tops[:4000])

"""The Python half of a program's run, of which the C half is zygote/program.c.

`settle` makes in the zygote whatever is the same for every program: it is then there in every
kernel. `uncaught` is a generator that C drives: it yields (callable, args), which C calls with no
Python frame of ours on the stack, and gets the exception or None back; at the end it yields the
outcome.
"""

from __future__ import annotations

import _io
import ast
import atexit
import builtins
import gc
import linecache
import os
import random
import sys
import threading
import time
import traceback
import types
from _signal import SIGINT  # signal itself takes a while to import
from importlib.machinery import SourceFileLoader
from typing import Any, Callable, Dict, Generator, List, Optional, Set, Tuple

import cloche_zygote
from cell import blas, environment, figures, handler, hooks, lastline, packages, rehearsal, shown
from cell.policy import Policy, PolicyError

WORKSPACE = "/workspace"
PATH = f"{WORKSPACE}/__main__.py"
EXIT, EXCEPTION, INTERRUPTED, REFUSED = 1, 2, 3, 4  # enum done_how
MAX_LINES, MAX_TEXT = 200, 40_000
TIMES = 8  # what has run so often is adapted, and no kernel writes to its code
OURS = {"cell", "cloche_zygote"}  # modules that no program is to find
MANY_OBJECTS = 100_000
# What a program may leave behind without anything happening at its end.
CELL = type((lambda x: lambda: x)(0).__closure__[0])  # type: ignore[index]
QUIET = (dict, frozenset, list, set, tuple, CELL, types.FunctionType, types.ModuleType)

Outcome = Tuple[None, int, int, bytes, bytes, List[bytes]]
Step = Tuple[Callable[..., Any], Tuple[Any, ...]]

_modules = sys.modules  # whatever a program makes of that name
_known: Set[str] = set()  # those of the zygote
_libraries: List[str] = []  # where others are found
_secrets: List[Any] = []  # whatever C writes to stays where it is
_many = False  # objects are in the zygote
_generators: List[Any] = []  # those of the zygote that can only be seeded from Python


def _in_place(generator: Any) -> bool:
    """Whether C can write the state of this generator, which then holds nothing else."""
    bits: Any = getattr(generator, "_bit_generator", None)
    if not hasattr(generator, "seed"):
        return False
    generator.seed()  # forgets a normal variate that was drawn ahead
    if type(bits).__name__ == "MT19937":
        return cloche_zygote.numpy_state(int(bits.ctypes.state_address))
    if bits is None and isinstance(generator, random.Random):
        return cloche_zygote.python_state(generator, generator.getstate()[1])
    return False


def prepare() -> None:
    """In the zygote, after the preloads."""
    blas.prepare()
    numpy_random: Any = sys.modules.get("numpy.random")
    kinds: Tuple[type, ...] = (random.Random,)
    if numpy_random is not None:
        kinds += (numpy_random.RandomState, numpy_random.Generator)
    objects = gc.get_objects()
    found = [
        obj
        for obj in cloche_zygote.instances(objects, kinds)
        if not isinstance(obj, random.SystemRandom)
    ]
    global _many
    _many = len(objects) > MANY_OBJECTS
    legacy = getattr(getattr(numpy_random, "mtrand", None), "_rand", None)
    if legacy is not None and not any(obj is legacy for obj in found):
        found.append(legacy)
    _secrets.extend(found)
    _generators.extend(generator for generator in found if not _in_place(generator))
    process: Any = sys.modules.get("multiprocessing.process")
    if process is not None:
        _secrets.append(process._current_process._config["authkey"])
        cloche_zygote.bytes_state(_secrets[-1])
    # Compile and run something once, so that the first program finds all this done. A sleep too: an
    # interrupt that comes between Python's last look and the system call does not wake it, and
    # what it touches for the first time there makes that moment ten times longer.
    time.sleep(0)
    list(ast.walk(ast.parse("print(1)\n1")))
    try:
        raise ValueError
    except ValueError as exc:
        traceback.format_exception(type(exc), exc, exc.__traceback__)
    linecache.clearcache()
    if "ssl" in sys.modules:  # OpenSSL sets itself up at its first use
        sys.modules["ssl"].RAND_bytes(1)  # type: ignore[attr-defined]


def settle(policy: Policy) -> Dict[str, Any]:
    """In the zygote, as the last Python that runs there: what is the same for every child."""
    # The main thread has a new thread state, so the lock that stands for it (up to 3.12) is new
    # too; without it nobody waits for other threads at the end.
    main: Any = threading.main_thread()
    if hasattr(main, "_set_tstate_lock"):
        main._set_tstate_lock()
    modules = sys.modules
    hooks.settle()
    rehearsal.prepare()
    for _ in range(TIMES):
        policy.restrict(b"print(1)", {})
        for function in (lastline.split, lastline.split_value, lastline.print_last):
            function(b"print(1)")
    tempfile: Any = modules.get("tempfile")
    if tempfile is not None:
        tempfile._name_sequence = None
        tempfile.tempdir = None
    uuid: Any = modules.get("uuid")
    if uuid is not None:
        uuid._node = uuid._last_timestamp = None
    for name in [name for name in modules if name.partition(".")[0] in OURS]:
        modules.pop(name)
    if _many:  # a small heap is not worth the time at every start
        gc.collect()
    gc.freeze()
    gc.collect()  # nothing is left to look at, but the free lists are emptied
    _known.update(modules, ["__main__"])
    _libraries.extend(path for path in sys.path if path and not WORKSPACE.startswith(path))
    _libraries.append(packages.TREE)
    cell = {
        "path": PATH,
        "modules": modules,
        "rehearse": rehearsal.rehearse,
        "compile": builtins.compile,
        "split": lastline.split,
        "split_value": lastline.split_value,
        "print_last": lastline.print_last,
        "restrict": policy.restrict,
        "check": policy.check,
        "keep_figures": figures.keep,
        "arguments": _arguments,
        "use_threads": blas.use,
        "install": packages.install,
        "attach_tree": packages.attach_tree,
        "uncaught": _uncaught,
        "clear": _clear,
        "imported": _imported,
        "flush_files": _flush_files,
        "shutdown": threading._shutdown,  # type: ignore[attr-defined]
        "threading": vars(threading),
        "count_exitfuncs": atexit._ncallbacks,
        "run_exitfuncs": atexit._run_exitfuncs,
        "collect": gc.collect,
        "count_objects": gc.get_count,
        "objects": gc.get_objects,
        "collector": gc,
        **handler.PARTS,
        **shown.parts(),
    }
    gc.freeze()
    cell["main"] = _main_module()  # not frozen: the collector looks after what a program makes
    cell["quiet"] = QUIET + (type(cell["main"].__loader__),)
    _arguments([], [])
    gc.enable()
    return cell


def _reseed(generator: Any) -> None:
    if hasattr(generator, "bit_generator"):
        kind = type(generator.bit_generator)
        generator.bit_generator.state = kind().state
    else:
        generator.seed()


def has_to_begin() -> bool:
    return bool(_generators) or "ssl" in sys.modules


def begin() -> None:
    """In a new kernel: nothing that was drawn from in the zygote may repeat.

    No library's own fork detection is trusted: it compares pids, and pids repeat across namespaces.
    What C can write in place (see prepare) it has written already.
    """
    for generator in _generators:
        _reseed(generator)
    if "ssl" in sys.modules:
        sys.modules["ssl"].RAND_add(os.urandom(48), 48.0)  # type: ignore[attr-defined]


def _main_module() -> types.ModuleType:
    module = types.ModuleType("__main__")
    space = module.__dict__
    space.update(
        __loader__=SourceFileLoader("__main__", PATH),
        __annotations__={},
        __builtins__=builtins,
        __file__=PATH,
        __cached__=None,
    )
    sys.modules["__main__"] = module
    return module


def _arguments(args: List[str], env: List[str]) -> None:
    if env:
        environment.set_for_good(dict(pair.split("=", 1) for pair in env))
    sys.argv = [PATH, *args]
    if hasattr(sys, "orig_argv"):
        sys.orig_argv = [sys.executable, PATH, *args]


def _exit_code(exc: SystemExit) -> int:
    code = exc.code
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF if -(2**63) <= code < 2**63 else 0xFF
    stream = getattr(sys, "stderr", None)
    try:
        print(code, file=sys.__stderr__ if stream is None else stream)
    except BaseException:
        pass
    return 1


def _show(exc: BaseException) -> Generator[Step, Optional[BaseException], Optional[SystemExit]]:
    """What plain Python does with an exception that nobody caught; how the hook left, if it did."""
    sys.last_type, sys.last_value, sys.last_traceback = type(exc), exc, exc.__traceback__
    if sys.version_info >= (3, 12):
        setattr(sys, "last_exc", exc)
    hook = getattr(sys, "excepthook", None)
    if hook is None:
        print("sys.excepthook is missing", file=sys.stderr)
        yield sys.__excepthook__, (type(exc), exc, exc.__traceback__)
        return None
    again = yield hook, (type(exc), exc, exc.__traceback__)
    if again is None or isinstance(again, SystemExit):
        return again
    print("Error in sys.excepthook:", file=sys.stderr)
    yield sys.__excepthook__, (type(again), again, again.__traceback__)
    print("\nOriginal exception was:", file=sys.stderr)
    yield sys.__excepthook__, (type(exc), exc, exc.__traceback__)
    return None


def _is_library(module: Any) -> bool:
    spec, file = getattr(module, "__spec__", None), getattr(module, "__file__", None)
    if file is None:
        return spec is not None  # the interpreter's own
    return isinstance(file, str) and file.startswith(tuple(_libraries))


def _imported() -> List[Any]:
    """What the program imported and is no library, taken out of sys.modules, where it is at the
    end; the last first."""
    new: List[str] = []
    names: Any = _modules if hasattr(dict, "__reversed__") else list(_modules)  # from 3.8 on
    for name in reversed(names):
        if name in _known:
            break
        if not _is_library(_modules[name]):
            new.append(name)
    return [_modules.pop(name) for name in new]


def _flush_files() -> None:
    """Files that a library still holds: plain Python closes those at its end."""
    for held in gc.get_objects():
        if issubclass(type(held), _io._IOBase):
            try:
                held.flush()
            except BaseException:
                pass


def _clear(space: dict[str, Any]) -> None:
    """The end of a module's globals: names with one underscore first, then the others."""
    for private in (True, False):
        for name in list(space):
            if isinstance(name, str) and name != "__builtins__":
                if private == (name[:1] == "_" and name[1:2] != "_"):
                    space[name] = None


def _text(value: Any, limit: int) -> bytes:
    try:
        text = str(value)
    except BaseException:
        text = f"<{type(value).__name__} that cannot be shown>"
    return text[:limit].encode("utf-8", "replace").replace(b"\0", b"\\x00")


def _describe(exc: BaseException) -> Tuple[bytes, bytes, List[bytes]]:
    try:
        lines = traceback.format_exception(type(exc), exc, exc.__traceback__)
    except BaseException:
        lines = []
    if len(lines) > MAX_LINES:
        lines = lines[: MAX_LINES // 2] + ["  ...\n"] + lines[-MAX_LINES // 2 :]
    room, kept = MAX_TEXT, []
    for line in lines:
        kept.append(_text(line, min(4000, room)))
        room -= len(kept[-1])
        if room <= 0:
            break
    return _text(type(exc).__name__, 200), _text(exc, 8000), kept


def _uncaught(exc: BaseException) -> Generator[Any, Optional[BaseException], None]:
    """What ended the program, reported as plain Python does, and the outcome."""
    how, status = EXCEPTION, 1
    name = value = b""
    lines: List[bytes] = []
    if isinstance(exc, SystemExit):
        how, status = EXIT, _exit_code(exc)
        name, value = b"SystemExit", _text(exc, 8000)
    else:
        if isinstance(exc, KeyboardInterrupt):
            how = INTERRUPTED
            if type(exc) is KeyboardInterrupt:
                status = 128 + SIGINT
        elif type(exc) is PolicyError:
            how = REFUSED
        left = yield from _show(exc)
        if left is not None:
            status = _exit_code(left)
        name, value, lines = _describe(exc)
    del exc
    outcome: Outcome = (None, how, status, name, value, lines)
    yield outcome

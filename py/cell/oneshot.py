"""One program, run once, as `python3 /workspace/__main__.py` would run it.

`program` is a generator that the C side drives: it yields (callable, args) or (code, namespace),
which C calls with no Python frame of ours on the stack, and gets (result, exception) back; at the
end it yields the outcome. What plain Python does around a script is repeated here step by step:
the attributes of `__main__`, the report of an uncaught exception, waiting for threads, exit
functions, the flush of the standard streams, and the end of the script's own objects.
"""

from __future__ import annotations

import ast
import atexit
import builtins
import gc
import io
import linecache
import os
import random
import signal
import sys
import threading
import traceback
import types
import weakref
from importlib.machinery import SourceFileLoader
from typing import Any, Callable, Dict, Generator, List, Optional, Tuple, Union

import cloche_zygote

PATH = "/workspace/__main__.py"
LAST_LINE = 1  # enum run_flag in wire/run.h
RETURNED, EXIT, EXCEPTION, INTERRUPTED = range(4)  # enum done_how
MAX_LINES, MAX_TEXT = 200, 40_000
MANY_OBJECTS = 100_000
FUTURE_FLAGS = 0x1FF0000  # of co_flags: what `from __future__ import` turned on

Outcome = Tuple[None, int, int, bytes, bytes, List[bytes]]
Step = Union[Tuple[Callable[..., Any], Tuple[Any, ...]], Tuple[types.CodeType, Dict[str, Any]]]
Program = Generator[Any, Tuple[Any, Optional[BaseException]], None]

_generators: List[Any] = []  # every random generator that lives in the zygote


def _state_address(generator: Any) -> int:
    """Where a Mersenne twister of numpy's keeps its state, or 0; it then holds nothing else."""
    bits: Any = getattr(generator, "_bit_generator", None)
    if type(bits).__name__ != "MT19937" or not hasattr(generator, "seed"):
        return 0
    generator.seed()  # forgets a normal variate that was drawn ahead
    return int(bits.ctypes.state_address)


def prepare() -> None:
    """In the zygote, after the preloads."""
    numpy_random: Any = sys.modules.get("numpy.random")
    kinds: Tuple[type, ...] = (random.Random,)
    if numpy_random is not None:
        kinds += (numpy_random.RandomState, numpy_random.Generator)
    found = [
        obj
        for obj in gc.get_objects()
        if isinstance(obj, kinds) and not isinstance(obj, random.SystemRandom)
    ]
    legacy = getattr(getattr(numpy_random, "mtrand", None), "_rand", None)
    if legacy is not None and not any(obj is legacy for obj in found):
        found.append(legacy)
    for generator in found:
        address = _state_address(generator)
        if not address or not cloche_zygote.mt19937(address):
            _generators.append(generator)
    # Compile and run something once, so that the first program finds all this done.
    list(ast.walk(ast.parse("print(1)\n1")))
    try:
        raise ValueError
    except ValueError as exc:
        traceback.format_exception(type(exc), exc, exc.__traceback__)
    linecache.clearcache()
    if "ssl" in sys.modules:  # OpenSSL sets itself up at its first use
        sys.modules["ssl"].RAND_bytes(1)  # type: ignore[attr-defined]


def settle() -> None:
    """In the zygote, as the last Python that runs there: what is the same for every child."""
    # The main thread has a new thread state, so the lock that stands for it (up to 3.12) is new
    # too; without it nobody waits for other threads at the end.
    main: Any = threading.main_thread()
    if hasattr(main, "_set_tstate_lock"):
        main._set_tstate_lock()
    modules = sys.modules
    tempfile: Any = modules.get("tempfile")
    if tempfile is not None:
        tempfile._name_sequence = None
        tempfile.tempdir = None
    uuid: Any = modules.get("uuid")
    if uuid is not None:
        uuid._node = uuid._last_timestamp = None
    for name in ("cell", "cell.start", "cell.oneshot", "cloche_zygote"):
        modules.pop(name, None)
    if len(gc.get_objects()) > MANY_OBJECTS:  # a small heap is not worth the time at every start
        gc.collect()
    gc.freeze()
    gc.enable()


def _reseed(generator: Any) -> None:
    if hasattr(generator, "bit_generator"):
        kind = type(generator.bit_generator)
        generator.bit_generator.state = kind().state
    else:
        generator.seed()


def begin() -> None:
    """In a new kernel: nothing that was drawn from in the zygote may repeat.

    No library's own fork detection is trusted: it compares pids, and pids repeat across namespaces.
    """
    for generator in _generators:
        _reseed(generator)
    modules = sys.modules
    if "ssl" in modules:
        modules["ssl"].RAND_add(os.urandom(48), 48.0)  # type: ignore[attr-defined]
    process: Any = modules.get("multiprocessing.process")
    if process is not None:
        config = process._current_process._config
        config["authkey"] = process.AuthenticationString(os.urandom(32))
    _rehearse()


def _rehearse() -> None:
    """Walks the way of a program once, ahead of time: the pages that running one writes to are then
    the kernel's own, and the copying is not part of anybody's answer."""
    space = _main_module().__dict__
    exec(compile(b"print\n", PATH, "exec", 0, True), space)
    sys.stdout.write("")
    sys.stdout.flush()
    del sys.modules["__main__"]
    gc.collect()


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


def _place(code: bytes, args: List[str], env: List[str]) -> None:
    fd = os.open(PATH, os.O_WRONLY | os.O_TRUNC | os.O_CREAT, 0o644)
    with io.FileIO(fd, "wb") as file:
        view = memoryview(code)
        while view:
            view = view[file.write(view) or 0 :]
    for pair in env:
        key, _, value = pair.partition("=")
        os.environ[key] = value
    sys.argv = [PATH, *args]
    if hasattr(sys, "orig_argv"):
        sys.orig_argv = [sys.executable, PATH, *args]


def _split(code: bytes) -> Tuple[Any, Any]:
    """The statements but for a last expression, and that expression for the interactive printer."""
    tree = ast.parse(code, PATH)
    if not tree.body or not isinstance(tree.body[-1], ast.Expr):
        return compile(tree, PATH, "exec", dont_inherit=True), None
    last = ast.Interactive([tree.body.pop()])
    head = compile(tree, PATH, "exec", dont_inherit=True)
    return head, compile(last, PATH, "single", head.co_flags & FUTURE_FLAGS, dont_inherit=True)


def _exit_code(exc: SystemExit) -> int:
    code = exc.code
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF if -(2**63) <= code < 2**63 else 0xFF
    try:
        print(code, file=sys.stderr)
    except BaseException:
        pass
    return 1


def _show(exc: BaseException) -> Generator[Step, Tuple[Any, Optional[BaseException]], None]:
    """What plain Python does with an exception that nobody caught."""
    sys.last_type, sys.last_value, sys.last_traceback = type(exc), exc, exc.__traceback__
    if sys.version_info >= (3, 12):
        setattr(sys, "last_exc", exc)
    hook = getattr(sys, "excepthook", None)
    if hook is None:
        print("sys.excepthook is missing", file=sys.stderr)
        yield sys.__excepthook__, (type(exc), exc, exc.__traceback__)
        return
    _, again = yield hook, (type(exc), exc, exc.__traceback__)
    if again is None or isinstance(again, SystemExit):
        return
    print("Error in sys.excepthook:", file=sys.stderr)
    yield sys.__excepthook__, (type(again), again, again.__traceback__)
    print("\nOriginal exception was:", file=sys.stderr)
    yield sys.__excepthook__, (type(exc), exc, exc.__traceback__)


def _flush() -> Generator[Step, Tuple[Any, Optional[BaseException]], bool]:
    """False when a standard stream could not be flushed; plain Python then exits with 120."""
    good = True
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name, None)
        if stream is None or getattr(stream, "closed", False):
            continue
        _, exc = yield stream.flush, ()
        if exc is not None:
            good = False
            if name == "stdout":
                yield cloche_zygote.unraisable, (exc, stream)
    return good


def _clear(space: dict[str, Any]) -> None:
    """The end of a module's globals: names with one underscore first, then the others."""
    for private in (True, False):
        for name in list(space):
            if isinstance(name, str) and name != "__builtins__":
                if private == (name[:1] == "_" and name[1:2] != "_"):
                    space[name] = None


def _end(held: Any) -> Generator[Step, Tuple[Any, Optional[BaseException]], None]:
    """The end of the program's objects: those that only it held go first, with its globals intact,
    as the collector finds them; if somebody still holds the module, its globals are cleared."""
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        sys.__dict__.pop(name, None)
    for name in ("stdin", "stdout", "stderr"):
        setattr(sys, name, getattr(sys, f"__{name}__", None))
    yield sys.modules.pop, ("__main__", None)
    yield gc.collect, ()
    if held() is not None:
        yield _clear, (vars(held()),)
        yield gc.collect, ()


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


def program(code: bytes, flags: int, args: List[str], env: List[str]) -> Program:
    _place(code, args, env)
    module: Any = _main_module()
    if flags & LAST_LINE:
        parts, exc = yield _split, (code,)
    else:
        part, exc = yield builtins.compile, (code, PATH, "exec", 0, True)
        parts = (part, None)
    if exc is not None:
        exc.__traceback__ = None  # a program that does not compile has no frames
    for part in parts or ():
        if part is not None and exc is None:
            _, exc = yield part, module.__dict__
    how, status = RETURNED, 0
    name = value = b""
    lines: List[bytes] = []
    if isinstance(exc, SystemExit):
        how, status = EXIT, _exit_code(exc)
        name, value = b"SystemExit", _text(exc, 8000)
    elif exc is not None:
        how, status = EXCEPTION, 1
        if isinstance(exc, KeyboardInterrupt):
            how, status = INTERRUPTED, 128 + signal.SIGINT
        yield from _show(exc)
        name, value, lines = _describe(exc)
    exc = None
    yield threading._shutdown, ()  # type: ignore[attr-defined]
    yield atexit._run_exitfuncs, ()
    good = yield from _flush()
    held, module = weakref.ref(module), None
    yield from _end(held)
    if not ((yield from _flush()) and good):
        status = 120
    outcome: Outcome = (None, how, status, name, value, lines)
    yield outcome

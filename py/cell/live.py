"""The Python half of a live kernel: cells that keep their state, run by IPython's shell.

`prepare` makes the shell in the zygote, so every kernel has it at birth. `main` is the life of a
kernel: one request after the other, until the server is gone. User code runs in the same
interpreter and can break all of this, for itself: what goes wrong in a cell is that cell's error,
and what cannot be told ends the process, of which the server hears.

Messages are described in the functions that answer them; cell/channel.py carries them.
"""

from __future__ import annotations

import builtins
import functools
import getpass
import io
import keyword
import linecache
import os
import sys
from os import _exit
from signal import SIGINT
from signal import signal as set_handler
from sys import getrecursionlimit, setrecursionlimit
from types import CoroutineType
from typing import Any, Callable, Dict, List, Optional, Tuple

from IPython.core.completer import provisionalcompleter, rectify_completions
from IPython.utils.tokenutil import token_at_cursor

from cell import comms, environment, notebook, packages, pictures
from cell import shell as shells
from cell import stdin, variables
from cell.bundles import Message, bundle, plain
from cell.channel import channel
from cell.tasks import tasks

DEPTH = 1000  # of calls: what IPython needs to show an error, and Python's default
FORMATS = {"png", "retina", "jpeg", "svg", "pdf"}
MAX_MATCHES = 1000
QUESTION_S = 5.0  # for user code that a question calls; the server waits for 10
MAX_VARIABLES = 1000

# Run in the zygote, so that no kernel's first cell is the first of its kind.
REHEARSED = (
    "1 + 1",
    "print(end='')\n'a'",
    "def f(n):\n    return n / 0\nf(1)",
    "(",
    "%pwd",
    "len?",
)
REHEARSED_WITH = {
    "pandas": "import pandas\npandas.DataFrame({'n': [1]})",
    "sympy": "import sympy\nsympy.Symbol('x') ** 2 / 3",
    "matplotlib": "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.title('a')",
}

Streams = Tuple[
    Callable[[bytes], int], Callable[[bytes], int], Callable[[], None], Callable[[str], int]
]

_shell: Any = None
_run_cell: Any = None


# ---- in the zygote ----


def _input(prompt: Any = "", /) -> str:
    """Read a string from whoever runs this cell. A prompt, if given, is shown to them."""
    return stdin.ask(str(prompt))


def _getpass(prompt: Any = "Password: ", stream: Any = None) -> str:
    """Prompt for a password, with echo turned off."""
    return channel.ask(str(prompt), True)


def _rename(function: Any, name: str, module: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__module__ = module
    return function


def _rehearse() -> None:
    cells = [*REHEARSED, *(text for name, text in REHEARSED_WITH.items() if name in sys.modules)]
    for n, cell in enumerate(cells * 2):
        notebook.colour(_shell, n >= len(cells))
        _run_cell(cell, store_history=False)
        _shell.shown.clear()
    notebook.colour(_shell, False)
    fonts: Any = sys.modules.get("matplotlib.font_manager")
    if fonts is not None and hasattr(fonts, "_get_font"):
        fonts._get_font.cache_clear()  # an open file does not come along into a kernel


def _forget() -> None:
    """As if no cell had ever run."""
    hook = _shell.displayhook
    hook._ = hook.__ = hook.___ = ""
    space = _shell.user_ns
    for name in [name for name in space if name not in _shell.user_ns_hidden]:
        if not name.startswith("_"):
            del space[name]
    for name in [name for name in space if name[:1] == "_" and name[1:].isdigit()]:
        del space[name]
    space.update({"_": "", "__": "", "___": ""})
    _shell.history_manager.output_hist.clear()
    _shell.last_execution_result = None
    _shell.last_execution_succeeded = True
    _shell.compile._filename_map.clear()
    getattr(linecache, "_ipython_cache", {}).clear()
    linecache.clearcache()
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        if hasattr(sys, name):
            delattr(sys, name)


def prepare(open_loop: Callable[[], Any]) -> None:
    """After the profile's preloads and before the first fork. Raises where there is no IPython.
    `open_loop` makes the descriptors of cell/tasks.py."""
    global _shell, _run_cell
    _shell = shells.make()
    _run_cell = _shell.run_cell
    shells.attach_figures(_shell)
    comms.attach(_shell)
    pictures.attach()
    shells.add_directory()
    set_handler(SIGINT, tasks.on_interrupt)  # a kernel has it from birth
    setattr(builtins, "input", _rename(_input, "input", "builtins"))
    setattr(getpass, "getpass", _rename(_getpass, "getpass", "getpass"))
    setattr(os, "system", _rename(shells.system, "system", "posix"))
    tasks.prepare(open_loop)
    _rehearse()
    _forget()
    setrecursionlimit(DEPTH)  # one of IPython's libraries raises it


# ---- in a kernel ----


def rehearse() -> None:
    """In a kernel that nobody waits for yet, before main(): see cell/rehearsal.py."""
    _run_cell("1 + 1", store_history=False)
    _forget()


def _begin(message: Message) -> List[Callable[[], None]]:
    channel.allow_stdin = bool(message.get("allow_stdin"))
    channel.has_stdin = bool(message.get("has_stdin"))
    stdin.renew()
    channel.rich = bool(message.get("notebook"))
    notebook.colour(_shell, channel.rich)
    _shell.displayhook.cell = message.get("code", "")
    undo: List[Callable[[], None]] = []
    if message.get("env"):
        undo.append(environment.set_for_now(message["env"]))
    if message.get("formats"):
        undo.append(shells.choose_formats(_shell, set(message["formats"]) & FORMATS))
    return undo


def _leave(exc: Optional[BaseException]) -> None:
    """A child that user code forked and that came back here: it was to do the rest of the cell."""
    code = 1
    try:
        if exc is None:
            code = 0
        elif isinstance(exc, SystemExit):
            code = _exit_code(exc) or 0
        else:
            print("\n".join(_shell.take_shown(exc)), file=sys.stderr)
        channel.flush()
    finally:
        _exit(code)


def _exit_code(exc: Optional[BaseException]) -> Optional[int]:
    """What a program would leave with, of one that wants to; None: it did not say."""
    if not isinstance(exc, SystemExit):
        return None
    try:
        code: Any = exc.code
        return 0 if code is None else int.__and__(code, 0xFF)
    except BaseException:  # a text, or something worse
        return 1


def _report(exc: Optional[BaseException]) -> str:
    """The status, after the error event if there is one."""
    lines = _shell.take_shown(exc)
    if exc is None:
        return "ok"
    try:
        channel.event("error", **shells.describe(exc, lines))
    except Exception:  # out of memory, most likely
        channel.event("error", name=type(exc).__name__[:200], value="", traceback=[])
    return "interrupted" if isinstance(exc, KeyboardInterrupt) else "error"


def _finish(undo: List[Callable[[], None]], exc: Optional[BaseException]) -> str:
    status = "error"
    try:
        if getrecursionlimit() < DEPTH:
            setrecursionlimit(DEPTH)
        status = _report(exc)
        for function in undo:
            function()
    except Exception:  # user code has broken what this needs: the server still hears the end
        pass
    return status


def _run_or_start(code: str, keep: bool, silent: bool) -> Any:
    """What the cell gave, or a coroutine of it: it awaits something."""
    if ("await" in code or "async" in code) and shells.is_asyncio(_shell):
        how: Dict[str, Any] = {"transformed_cell": code, "preprocessing_exc_tuple": None}
        try:
            how["transformed_cell"] = _shell.transform_cell(code)
        except Exception:
            how["preprocessing_exc_tuple"] = sys.exc_info()
        if _shell.should_run_async(code, **how):
            return _shell.run_cell_async(code, store_history=keep, silent=silent, **how)
    return _run_cell(code, store_history=keep, silent=silent)


def _after_cell(message: Message, result: Any, awaited: bool) -> None:
    """What run_cell() does behind a cell, for one that awaited, and what only notebooks want."""
    if awaited:
        _shell.events.trigger("post_execute")
        if not message.get("silent"):
            _shell.events.trigger("post_run_cell", result)
    if channel.rich and result is not None and result.success:
        notebook.expressions(_shell, message.get("expressions") or {})
    notebook.payloads(_shell)


def _execute(message: Message) -> None:
    """{"op":"execute","id","code","silent","store_history","allow_stdin","env","formats"}

    Events are result, display, clear, input and error, and done as the last. With "notebook":true
    also comm, payload and expressions, which "expressions":{name:code} asks for. With op "comm" it
    is no code that runs but what hears a comm's message: see cell/comms.py.
    """
    count: int = _shell.execution_count
    undo: List[Callable[[], None]] = []
    set_handler(SIGINT, tasks.on_interrupt)  # a cell may have set its own
    silent = bool(message.get("silent"))

    def run() -> Any:
        undo.extend(_begin(message))
        if message.get("op") == "comm":
            comms.deliver(message)
            return None
        code, keep = message.get("code", ""), bool(message.get("store_history", True))
        return _run_or_start(code, keep and not silent, silent)

    def end(result: Any, exc: Optional[BaseException], awaited: bool = False) -> None:
        late: Optional[BaseException] = None
        if channel.is_ours() and (awaited or result is not None):
            _, late = channel.guarded(lambda: _after_cell(message, result, awaited))
        if awaited and tasks.was_asked:
            exc = shells.interrupted(_shell, result, exc)
        if result is not None:  # else an interrupt came too late to be the cell's
            exc = result.error_before_exec or result.error_in_exec
        exc = exc or late
        if not channel.is_ours():
            _leave(exc)
        channel.done(_finish(undo, exc), count, _exit_code(exc), _shell.exit_now)
        if _shell.exit_now:
            _exit(0)

    channel.begin(message.get("id"))
    result, exc = channel.guarded(run)
    if type(result) is not CoroutineType:
        end(result, exc)
    elif exc is None:
        tasks.start(result, functools.partial(end, awaited=True))
    else:
        result.close()
        end(None, exc)


def _kind(name: str) -> str:
    """Of a match, as far as it is known without calling anything."""
    if name.startswith("%"):
        return "magic"
    if name.endswith("="):
        return "param"
    if keyword.iskeyword(name):
        return "keyword"
    for space in (_shell.user_ns, vars(builtins)):
        if name in space:
            kind = type(space[name])
            return variables.NAMED.get(kind, "class" if issubclass(kind, type) else "instance")
    return ""


def _complete(message: Message) -> Message:
    """{"op":"complete","id","code","cursor"} -> matches, their types, and what they replace"""
    code, cursor = message["code"], message["cursor"]
    with provisionalcompleter():
        found = list(_shell.Completer.completions(code, cursor))
        found = list(rectify_completions(code, found))
    return {
        "matches": [match.text for match in found[:MAX_MATCHES]],
        "types": [_kind(match.text) for match in found[:MAX_MATCHES]],
        "start": found[0].start if found else cursor,
        "end": found[0].end if found else cursor,
    }


def _inspect(message: Message) -> Message:
    """{"op":"inspect","id","code","cursor","detail"} -> whether there is something, and the text"""
    name = token_at_cursor(message["code"], message["cursor"])
    try:
        found = _shell.object_inspect_mime(name, detail_level=message.get("detail") or 0)
    except KeyError:
        return {"found": False, "data": {}}
    return {"found": True, "data": {mime: text for mime, text in bundle(found).items() if text}}


def _variables(message: Message) -> Message:
    """{"op":"variables","id","most"} -> what the user's globals are"""
    most = min(int(message.get("most") or MAX_VARIABLES), MAX_VARIABLES)
    found, total = variables.rows(_shell.user_ns, _shell.user_ns_hidden, most)
    return {"variables": plain(found), "total": total, "truncated": total > len(found)}


def _setup(message: Message) -> Message:
    """{"op":"setup","env","cwd"}: for the rest of the kernel's life"""
    environment.set_for_good(message.get("env") or {})
    if message.get("cwd"):
        os.chdir(message["cwd"])
        sys.path[:1] = [os.getcwd()]
    _shell.history_manager.dir_hist[:] = [os.getcwd()]
    return {}


def _sync(message: Message) -> Message:
    """{"op":"sync","id"}: whoever asks wants to know when what was asked before is answered, and
    that an interrupt of the last cell does not become one of the next."""
    channel.missed = False
    return {}


def _is_complete(message: Message) -> Message:
    return notebook.is_complete(_shell, message)


def _history(message: Message) -> Message:
    return notebook.history(_shell, message)


def _comms(message: Message) -> Message:
    """{"op":"comms","id","target"} -> those that are open"""
    return comms.listed(message.get("target"))


def _bounded(answer: Callable[[Message], Message]) -> Callable[[Message], Message]:
    """A __dir__, __getattr__ or __repr__ that never ends must not take the kernel with it."""

    def within(message: Message) -> Message:
        if variables.timer_is_taken():
            return answer(message)
        try:
            found: Message = variables.timed(lambda: answer(message), QUESTION_S)
            return found
        except variables.Late:
            raise TimeoutError(f"the code of an object took longer than {QUESTION_S:g} s") from None

    return within


ANSWERS: Dict[str, Callable[[Message], Message]] = {
    "complete": _bounded(_complete),
    "inspect": _bounded(_inspect),
    "is_complete": _is_complete,
    "history": _history,
    "comms": _comms,
    "variables": _variables,
    "setup": _setup,
    "sync": _sync,
}


def _answer(answer: Optional[Callable[[Message], Message]], message: Message) -> None:
    """{"ev":"reply","id","ok","result","error"}, to requests that have an id"""
    result, exc = channel.guarded(lambda: answer(message)) if answer else (None, None)
    if not channel.is_ours():
        _exit(0)
    why = None
    if exc is not None and result is None:
        shown = shells.describe(exc, [])
        why = f"{shown['name']}: {shown['value']}"
    elif answer is None:
        why = f"op {message.get('op')!r} is not known; known are execute, {', '.join(ANSWERS)}"
    if message.get("id") is not None:
        ok = why is None
        channel.say({"ev": "reply", "id": message["id"], "ok": ok, "result": result, "error": why})


def _serve(message: Message) -> None:
    name = message.get("op")
    if name in ("execute", "comm"):
        _execute(message)
    elif name not in ("input", "go"):  # answers that came too late
        _answer(ANSWERS.get(str(name)), message)


# What may print by itself: what was printed before comes first.
STARTING = frozenset(
    ("subprocess.Popen", "os.system", "os.posix_spawn", "os.exec", "os.fork", "os.forkpty")
)


def _replace_streams(streams: Streams) -> None:
    """sys.stdout and sys.stderr over the zygote module's functions: see src/zygote/stdout.h."""
    flush = streams[2]
    for fd, name in ((1, "stdout"), (2, "stderr")):
        members = {
            "name": f"<{name}>",
            "mode": "wb",
            "write": staticmethod(streams[fd - 1]),
            "flush": staticmethod(flush),
            "fileno": staticmethod(lambda fd=fd: fd),
            "writable": staticmethod(lambda: True),
        }
        raw: Any = type("Stream", (io.RawIOBase,), members)()
        errors = "strict" if fd == 1 else "backslashreplace"
        text: Dict[str, Any] = {"__module__": "_io"}
        if fd == 1:
            text["write"] = staticmethod(streams[3])
        kind: Any = type("TextIOWrapper", (io.TextIOWrapper,), text)
        stream: Any = kind(raw, "utf-8", errors, "\n", write_through=True)
        stream.mode = "w"
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)

    def before(event: str, args: Any) -> None:
        if event in STARTING:
            flush()

    def write(fd: int, data: Any, /) -> int:
        """Write a bytes object to a file descriptor."""
        if fd in (1, 2):
            channel.flush()
        return os_write(fd, data)

    def leave(status: int) -> None:
        """Exit to the system with specified status, without normal exit processing."""
        try:
            flush()
        finally:
            _exit(status)

    os_write = os.write
    sys.addaudithook(before)
    setattr(os, "write", _rename(write, "write", "posix"))
    setattr(os, "_exit", _rename(leave, "_exit", "posix"))


def main(
    receive: Callable[[Optional[bool]], Optional[bytes]],
    send: Callable[[bytes], Any],
    streams: Optional[Streams] = None,
) -> None:
    """Returns when receive() gives None."""
    channel.open(receive, send, streams[2] if streams else None)
    if streams:
        _replace_streams(streams)
    set_handler(SIGINT, tasks.on_interrupt)
    packages.attach()
    sys.modules["__main__"] = _shell.user_module
    sys.argv = [""]
    _shell.history_manager.dir_hist[:] = [os.getcwd()]
    tasks.run(_serve)

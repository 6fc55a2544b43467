"""IPython's shell for live kernels: what it shows becomes events, and it writes no files.

It is made once in the zygote, with history off and without the directory that IPython keeps for a
user. Nothing here starts a thread.
"""

from __future__ import annotations

import asyncio
import builtins
import os
import pdb
import signal
import subprocess
import sys
import threading
import tokenize
import traceback
import warnings
from importlib.util import find_spec
from io import StringIO
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from IPython.core import debugger, interactiveshell
from IPython.core.application import ProfileDir
from IPython.core.async_helpers import _asyncio_runner
from IPython.core.autocall import ExitAutocall
from IPython.core.compilerop import CachingCompiler
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.formatters import DisplayFormatter
from IPython.core.interactiveshell import InteractiveShell
from traitlets import Type
from traitlets.config import Config

from cell import notebook
from cell.bundles import bundle
from cell.channel import channel

INLINE = "module://matplotlib_inline.backend_inline"
MAX_LINES, MAX_TEXT, MAX_VALUE = 200, 40_000, 8000
MAX_PARSED = 200  # lines of a file
MAX_MEMBERS = 10  # of an exception group
GRACE_S = 1.0  # that a command of `!` has after an interrupt
PLAIN = {bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset}
OURS = os.path.dirname(os.path.abspath(__file__))

Shown = Tuple[Any, List[str]]  # an exception and its traceback


class Formats(DisplayFormatter):
    """Asks ten formatters of an object, in a quarter of a millisecond; of an int only one knows."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        others = [f for mime, f in self.formatters.items() if mime != "text/plain"]
        others += [self.ipython_display_formatter, self.mimebundle_formatter]
        self._known = len(self.formatters)
        self._printers = [table for f in others for table in (f.type_printers, f.deferred_printers)]

    def _is_plain(self, kind: type) -> bool:
        names = (kind, object, ("builtins", kind.__name__), ("builtins", "object"))
        return (
            kind in PLAIN
            and len(self.formatters) == self._known
            and not any(name in table for table in self._printers if table for name in names)
        )

    def format(self, obj: Any, include: Any = None, exclude: Any = None) -> Any:
        if include or exclude or not self._is_plain(type(obj)):
            return super().format(obj, include, exclude)
        text = self.formatters["text/plain"](obj)
        return ({} if text is None else {"text/plain": text}), {}


class Hook(DisplayHook):
    """sys.displayhook: the value of a cell's last expression."""

    cell = ""

    def quiet(self) -> bool:
        """Whether the cell ends in a semicolon."""
        if ";" not in self.cell:
            return False
        kinds = (tokenize.ENDMARKER, tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT)
        try:
            tokens = list(tokenize.generate_tokens(StringIO(self.cell).readline))
        except (SyntaxError, tokenize.TokenError):
            return False
        last = [token.string for token in tokens if token.type not in kinds][-1:]
        return last == [";"]

    def write_output_prompt(self) -> None:
        pass

    def write_format_data(
        self, format_dict: Dict[str, Any], md_dict: Optional[Dict[str, Any]] = None
    ) -> None:
        channel.event(
            "result",
            data=bundle(format_dict),
            metadata=bundle(md_dict or {}),
            execution_count=self.prompt_count,
        )

    def log_output(self, format_dict: Dict[str, Any]) -> None:
        pass  # would keep every text for a database that we do not have

    def finish_displayhook(self) -> None:
        pass


class Publisher(DisplayPublisher):
    """display(), update_display() and clear_output()."""

    def publish(
        self,
        data: Dict[str, Any],
        metadata: Optional[Dict[str, Any]] = None,
        source: Any = None,
        *,
        transient: Optional[Dict[str, Any]] = None,
        update: bool = False,
        **kwargs: Any,
    ) -> None:
        self._validate_data(data, metadata)
        name = (transient or {}).get("display_id")
        channel.event_in_order(
            "display",
            data=bundle(data),
            metadata=bundle(metadata or {}),
            display_id=None if name is None else str(name),
            update=bool(update),
        )

    def clear_output(self, wait: bool = False) -> None:
        channel.event_in_order("clear", wait=bool(wait))


class Exit(ExitAutocall):
    """exit and quit, as in ipykernel: the kernel ends after the cell, and another one comes. With a
    status they end the cell alone, as sys.exit() does."""

    def __call__(self, keep_kernel: Any = False) -> None:
        if not isinstance(keep_kernel, bool):
            raise SystemExit(keep_kernel)
        self._ip.keepkernel_on_exit = keep_kernel
        self._ip.ask_exit()


def is_asyncio(shell: Any) -> bool:
    """Whether cells that await are for asyncio: `%autoawait` may say something else."""
    return shell.trio_runner is None and shell.loop_runner is _asyncio_runner


def interrupted(shell: Any, result: Any, exc: Optional[BaseException]) -> Optional[BaseException]:
    """A cell was cancelled because somebody interrupted it while it awaited: what ended it."""
    late = getattr(result, "error_in_exec", None)
    if isinstance(late, asyncio.CancelledError):
        result.error_in_exec = KeyboardInterrupt().with_traceback(late.__traceback__)
        shell.show_again(late, result.error_in_exec)
    return KeyboardInterrupt() if isinstance(exc, asyncio.CancelledError) else exc


def _stop(process: Any) -> None:
    for number, grace in ((signal.SIGINT, GRACE_S), (signal.SIGKILL, None)):
        try:
            os.killpg(process.pid, number)
            process.wait(grace)
        except (subprocess.TimeoutExpired, ProcessLookupError):
            continue


def run_line(line: Any, **how: Any) -> int:
    """With our own descriptors, so that its output comes in order, at once; an interrupt ends it.
    How it ended, as subprocess says it."""
    channel.flush()
    process, interrupted = channel.held(
        lambda: subprocess.Popen(line, shell=True, start_new_session=True, **how)
    )
    try:
        if interrupted:
            raise KeyboardInterrupt
        return int(process.wait())
    except BaseException:
        channel.held(lambda: _stop(process))
        raise


def system(command: Any) -> int:
    """Execute the command in a subshell."""
    # The C library's cannot be interrupted, nor can anything else meanwhile.
    if channel.is_user_code():
        code = run_line(os.fsencode(command), close_fds=False)
    else:
        code = subprocess.call(os.fsencode(command), shell=True, close_fds=False)
    return -code if code < 0 else code << 8


class _Flag(threading.Event):
    """Nobody waits for it, so to set it takes no lock."""

    def set(self) -> None:
        pass


class Names(CachingCompiler):
    """A cell is named by its text alone, as in ipykernel: when it is run again, its traceback shows
    the same lines as there."""

    def get_code_name(self, raw_code: str, transformed_code: str, number: int) -> Any:
        return super().get_code_name(raw_code, transformed_code, 0)


class Shell(InteractiveShell):
    """The shell of a kernel."""

    compiler_class = Type(Names)
    displayhook_class = Type(Hook)
    display_pub_class = Type(Publisher)

    def __init__(self, **kwargs: Any) -> None:
        self.shown: List[Shown] = []  # tracebacks of which it is not known yet whose they are
        super().__init__(**kwargs)

    # ---- no files ----

    def init_ipython_dir(self, ipython_dir: Any) -> None:
        self._trait_values["ipython_dir"] = "/tmp/.ipython"  # to set it would make it

    def init_profile_dir(self, profile_dir: Any) -> None:
        self.profile_dir = ProfileDir()

    # ---- what the base class leaves to others ----

    def init_display_formatter(self) -> None:
        self.display_formatter = Formats(parent=self)
        self.configurables.append(self.display_formatter)

    def init_hooks(self) -> None:
        super().init_hooks()
        self.set_hook("show_in_pager", notebook.page, 50)  # before the one that displays it

    def set_next_input(self, s: str, replace: bool = False) -> None:
        if channel.rich:
            item = {"source": "set_next_input", "text": s, "replace": replace}
            self.payload_manager.write_payload(item)
        else:
            super().set_next_input(s, replace)

    def _exiter_default(self) -> Exit:
        return Exit(self)

    def enable_gui(self, gui: Any = None) -> None:
        pass

    keepkernel_on_exit: Any = None
    exit_now = False

    def ask_exit(self) -> None:
        self.exit_now = not self.keepkernel_on_exit
        payload = {"source": "ask_exit", "keepkernel": self.keepkernel_on_exit}
        self.payload_manager.write_payload(payload)

    def system(self, cmd: str) -> None:
        """`!command`"""
        line = self.var_expand(cmd, depth=1)
        code = run_line(line, executable=os.environ.get("SHELL"))
        self.user_ns["_exit_code"] = -(code - 128) if code > 128 else code

    system_raw = system_piped = system

    # ---- errors ----

    def _get_exc_info(self, exc_tuple: Any = None) -> Any:
        kind, value, tb = super()._get_exc_info(exc_tuple)
        at = tb
        while at is not None:  # the first is the base class's, which skips it
            after = at.tb_next
            while after is not None and after.tb_frame.f_code.co_filename.startswith(OURS):
                after = after.tb_next
            if after is not at.tb_next:
                at.tb_next = after
            at = after
        return kind, value, tb

    def show_usage_error(self, exc: Any) -> None:
        self._showtraceback(type(exc), exc, [f"UsageError: {exc}"])

    def _showtraceback(self, etype: Any, evalue: Any, stb: Any) -> None:
        """What ended the cell becomes its error; everything else is text on stderr."""
        lines = [str(part) for part in stb]  # notebooks want a frame as one
        if not channel.rich:
            lines = "\n".join(lines).rstrip("\n").split("\n")
        run = self.displayhook.exec_result
        ends = run is None or evalue is run.error_in_exec or evalue is run.error_before_exec
        if not ends:
            print("\n".join(lines), file=sys.stderr)
        else:
            self.shown.append((evalue, lines))

    def show_again(self, before: BaseException, exc: BaseException) -> None:
        self.shown = [pair for pair in self.shown if pair[0] is not before]
        self.showtraceback((type(exc), exc, exc.__traceback__), tb_offset=1)

    def take_shown(self, exc: Optional[BaseException]) -> List[str]:
        """The traceback of what ended the cell."""
        shown, self.shown = self.shown, []
        found: List[str] = []
        for value, lines in shown:
            if value is exc and not found:
                found = lines
            else:
                try:
                    print("\n".join(lines), file=sys.stderr)
                except Exception:
                    pass
        return found


def _safely(make: Any, otherwise: str) -> str:
    try:
        return str(make())
    except BaseException:
        return otherwise


def _cut(lines: List[str]) -> List[str]:
    if len(lines) > MAX_LINES:
        lines = lines[: MAX_LINES // 2] + ["..."] + lines[-MAX_LINES // 2 :]
    while sum(map(len, lines)) > MAX_TEXT:
        longest = max(map(len, lines))
        lines = [line if len(line) < longest else line[: longest // 2] + "..." for line in lines]
    return lines


def _members(exc: BaseException) -> List[str]:
    """What is in an exception group, of which IPython shows the number only."""
    if not isinstance(exc, getattr(builtins, "BaseExceptionGroup", ())):
        return []
    lines: List[str] = []
    try:
        inside: Any = getattr(exc, "exceptions")
        for number, one in enumerate(inside[:MAX_MEMBERS], 1):
            lines += ["", f"---------------- {number} of {len(inside)} ----------------"]
            text = "".join(traceback.format_exception(type(one), one, one.__traceback__))
            lines += text.rstrip("\n").split("\n")
    except BaseException:  # they defy being shown
        pass
    return lines


def describe(exc: BaseException, lines: List[str]) -> Dict[str, Any]:
    """The members of an error event. `lines` may be empty: the exception could not be shown."""
    kind = type(exc)
    name = _safely(lambda: kind.__name__, "Exception")
    value = _safely(lambda: exc, f"<{name} that cannot be shown>")
    if not lines:
        try:
            lines = "".join(traceback.format_exception_only(kind, exc)).rstrip("\n").split("\n")
        except BaseException:
            lines = [f"{name}: {value[:MAX_VALUE]}"]
    return {
        "name": name[:200].replace("\0", "\\x00"),
        "value": value[:MAX_VALUE].replace("\0", "\\x00"),
        "traceback": [line.replace("\0", "\\x00") for line in _cut(lines + _members(exc))],
    }


def _config() -> Config:
    config = Config()
    config.HistoryManager.enabled = False
    config.HistoryManager.hist_file = ":memory:"  # for who asks; there is none
    config.InteractiveShell.colors = "NoColor"
    config.InteractiveShell.display_page = True  # the pager's text is a display
    config.InteractiveShell.banner1 = ""
    # Jedi reads sources and keeps caches in files; what is asked for is here and can be looked at.
    config.Completer.use_jedi = False
    return config


def _spare_long_files() -> None:
    """A traceback through a library costs a second and tens of MB, because every file on its way is
    parsed as a whole. Those that are long are shown as files that cannot be parsed are."""
    source: Any = getattr(sys.modules.get("stack_data.core"), "Source", None)
    if source is None:
        return
    parse = source.__init__

    def init(self: Any, filename: str, lines: Any) -> None:
        if len(lines) <= MAX_PARSED or filename.startswith("<"):
            parse(self, filename, lines)
            return
        parse(self, filename, ("(",))
        self.text = "".join(lines)
        self.lines = [line.rstrip("\r\n") for line in lines]

    source.__init__ = init


def add_directory() -> None:
    """The current directory, wherever that is, is where modules are found, as in ipykernel: before
    those of others, behind Python's own."""
    others = ("site-packages", "dist-packages")
    places = [at for at, path in enumerate(sys.path) if os.path.basename(path) in others]
    if "" not in sys.path:
        sys.path.insert(places[0] if places else len(sys.path), "")


def _replace_debugger() -> None:
    """An interrupt ends it, and its cell: with Python's own it only asks for the next command."""
    own: Any = getattr(debugger, "InterruptiblePdb", None)
    if own is not None:
        Shell.debugger_cls = own
        debugger.Pdb = pdb.Pdb = own  # type: ignore[misc]
        pdb.set_trace = debugger.set_trace


def _without_locks(history: Any) -> None:
    """An interrupt may come while a lock of the history's is held, and leave it so: every later
    cell would wait for that. No thread of ours saves anything."""
    history.save_flag = _Flag()
    history.db_input_cache_lock = history.db_output_cache_lock = threading.RLock()


def make() -> Shell:
    """In the zygote."""
    _replace_debugger()
    _spare_long_files()
    if hasattr(interactiveshell, "PickleShareDB"):
        interactiveshell.PickleShareDB = lambda path: {}  # a database of files
    shell: Shell = Shell.instance(config=_config())
    _without_locks(shell.history_manager)
    warnings.filterwarnings("ignore", message="To exit: use 'exit'", category=UserWarning)
    return shell


def attach_figures(shell: Shell) -> None:
    """matplotlib's figures come out as pictures, also where it is imported later."""
    if find_spec("matplotlib_inline") is None or find_spec("matplotlib") is None:
        return
    os.environ["MPLBACKEND"] = INLINE
    if "matplotlib" in sys.modules:
        shell.enable_matplotlib("inline")


def choose_formats(shell: Shell, wanted: Set[str]) -> Callable[[], None]:
    """For one execution; what undoes it."""
    config = shell.config.InlineBackend

    def select(names: Any) -> None:
        config.figure_formats = names
        inline: Any = sys.modules.get("matplotlib_inline.config")
        if inline is not None and inline.InlineBackend.initialized():
            inline.InlineBackend.instance().figure_formats = names

    inline: Any = sys.modules.get("matplotlib_inline.config")
    before = {"png"}
    if inline is not None and inline.InlineBackend.initialized():
        before = set(inline.InlineBackend.instance().figure_formats)
    select(wanted)
    return lambda: select(before)

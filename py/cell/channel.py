"""What a live kernel says to the server and hears from it: JSON messages.

User code shares this process and may replace whatever it can reach by name. So the encoder and the
scanner are C objects that are made in the zygote, and functions are held here by names of our own.
A child that user code forks has the same socket and must not speak: the channel knows its process.
"""

from __future__ import annotations

import json.decoder
import json.scanner
import sys
import threading
from collections import deque
from os import _exit, getpid
from threading import get_ident
from typing import Any, Callable, Deque, List, Optional, Tuple

from IPython.core.error import StdinNotImplementedError

from cell.bundles import Message, event_text, plain, text_of

MAX_LATE, MAX_LATE_BYTES = 200, 4 << 20  # of events between cells

NO_STDIN = "raw_input was called, but this frontend does not support input requests."

_scan: Any = getattr(json.scanner, "c_make_scanner")(json.decoder.JSONDecoder())


class Channel:
    """There is one. In the zygote it is closed, and whatever is said is dropped."""

    def __init__(self) -> None:
        self.id: Any = None  # of the execution that runs
        self.allow_stdin = False
        self.has_stdin = False  # there is text with the request, and nobody else who answers
        self.rich = False  # whoever sent the cell wants comms and pages as well
        self.interruptible = False  # whether a SIGINT is for user code
        self.holding = False  # which has to wait for it
        self.missed = False  # one came while it was not: it may be for the next cell
        self.waiting: Deque[Message] = deque()  # requests that nobody has looked at yet
        self._receive: Callable[[Optional[bool]], Optional[bytes]] = lambda wait: None
        self._send: Callable[[bytes], Any] = lambda text: None
        self._flush: Optional[Callable[[], Any]] = None
        self._pid = self._thread = 0
        self._heard = 0
        self._late: List[Message] = []  # events between cells
        self._late_bytes = self._late_lost = 0
        self._lost: Optional[OSError] = None  # why what was printed did not arrive
        self._lock = threading.RLock()

    def open(
        self,
        receive: Callable[[Optional[bool]], Optional[bytes]],
        send: Callable[[bytes], Any],
        flush: Optional[Callable[[], Any]],
    ) -> None:
        self._receive, self._send, self._flush = receive, send, flush
        self._pid, self._thread = getpid(), get_ident()
        self._lock = threading.RLock()

    def is_ours(self) -> bool:
        return getpid() == self._pid

    def is_user_code(self) -> bool:
        """Whether who asks is the cell that runs, not a thread or a child of it."""
        return self.is_ours() and self.id is not None and get_ident() == self._thread

    def flush(self) -> None:
        """What was printed so far comes before what is said next."""
        for name in ("stdout", "stderr"):
            try:
                getattr(sys, name).flush()
            except OSError as why:
                self._lost = self._lost or why
            except Exception:  # replaced, closed, gone: as the user wanted it
                pass
            except BaseException:
                if self.interruptible:
                    raise
        if self._flush is not None:
            self._flush()

    def say(self, message: Message) -> None:
        """Raises where a message cannot be encoded; nothing was sent then."""
        self._out(event_text(message))

    def _out(self, text: bytes) -> None:
        try:
            self._send(text)
        except OSError:  # the socket was closed by user code: nobody can be told anything
            _exit(1)

    def begin(self, name: Any) -> None:
        """An execution: what was shown since the last one comes first."""
        with self._lock:
            self.id = name
            late, self._late = self._late, []
            lost, self._late_lost, self._late_bytes = self._late_lost, 0, 0
            for message in late:
                self.say({**message, "id": name})
        if lost:
            note = f"cloche: {lost} of the outputs between two cells were too much and are lost\n"
            try:
                sys.stderr.write(note)
            except Exception:
                pass

    def event(self, kind: str, **members: Any) -> None:
        """For the execution that runs; between executions it is kept for the next."""
        if not self.is_ours():
            return
        self.flush()
        with self._lock:  # against threads: nothing comes after `done`
            if self.id is not None:
                self.say({"ev": kind, "id": self.id, **members})
            elif self._pid:
                self._keep({"ev": kind, **members})

    def _keep(self, message: Message) -> None:
        size = len(text_of(message))
        fits = len(self._late) < MAX_LATE and self._late_bytes + size <= MAX_LATE_BYTES
        if fits:
            self._late.append(message)
            self._late_bytes += size
        else:
            self._late_lost += 1

    def event_in_order(self, kind: str, **members: Any) -> None:
        """The same, and waits until it is heard: else what is printed next might overtake it."""
        if not self.is_user_code():
            self.event(kind, **members)
            return
        self._heard += 1
        number = self._heard
        self.event(kind, go=number, **members)
        while (message := self._read()) is None or message.get("go") != number:
            if message is None:
                _exit(0)
            self.waiting.append(message)
            if message.get("op") == "sync":  # of a server that does not know that we wait
                return

    def done(self, status: str, count: int, exit_code: Optional[int], leaves: bool) -> None:
        self.flush()
        with self._lock:
            lost, self._lost = self._lost, None
            if lost and status == "ok":
                status, value = "error", f"{lost}: something that was printed is lost"
                error = {"name": "OSError", "value": value, "traceback": []}
                self.say({"ev": "error", "id": self.id, **error})
            end, self.id = self.id, None
            more: Message = {} if exit_code is None else {"exit_code": exit_code}
            if leaves:
                more["leaves"] = True
            message = {"ev": "done", "id": end, "status": status, "execution_count": count}
            self.say({**message, **more})

    def listen(self, wait: Optional[bool]) -> bool:
        """Adds the next request to those that wait, if one is there; false at the end."""
        message = self._read(wait)
        if message:
            self.waiting.append(message)
        return message is not None

    def _read(self, wait: Optional[bool] = True) -> Optional[Message]:
        """{} if nothing is there and nobody waits for it, or if wait is None and there is something
        for the event loop first; None at the end."""
        text = self._receive(wait)
        if not text:
            return None if text is None else {}
        message, _ = _scan(text.decode("utf-8"), 0)
        return message if isinstance(message, dict) else {}

    def ask_rest(self) -> bytes:
        """For sys.stdin: all that came with the request, or the next line; b"" at the end."""
        if self.rich:
            return b""
        try:
            text = self.ask("", False, True)
        except EOFError:
            return b""
        return (text if self.has_stdin else text + "\n").encode("utf-8", "replace")

    def ask(self, prompt: str, password: bool, rest: bool = False) -> str:
        """input(): waits for the answer of whoever sent the code."""
        if not self.is_user_code():
            raise EOFError("input() works in the main thread of a running cell only")
        if not self.allow_stdin and self.rich:
            raise StdinNotImplementedError(NO_STDIN)
        if not self.allow_stdin:
            raise EOFError("input() was called, but the request says that nobody answers")
        more = {"rest": True} if rest else {}
        self.event("input", prompt=plain(prompt), password=password, **more)
        while True:
            message = self._read()
            if message is None:
                _exit(0)
            elif message.get("op") != "input":
                self.waiting.append(message)
            elif message.get("id") == self.id:
                if message.get("eof"):
                    raise EOFError("nobody answered input()")
                return str(message.get("value", ""))

    def guarded(self, function: Callable[[], Any]) -> Tuple[Any, Optional[BaseException]]:
        """Calls it with interrupts on: what it gave, and what it or an interrupt raised.

        The handler raises only while `interruptible` is set, and the two assignments that unset it
        are where an interrupt can come too late for user code.
        """
        value: Any = None
        caught: List[BaseException] = []
        try:
            try:
                self.interruptible = True
                if self.missed and self.id is not None:
                    self.missed = False
                    raise KeyboardInterrupt
                value = function()
            except BaseException as exc:
                caught.append(exc)
            self.interruptible = False
        except BaseException as exc:
            self.interruptible = False
            caught.append(exc)
        return value, caught[0] if caught else None

    def on_interrupt(self) -> None:
        """While our own code runs, or a cell below it; else see cell/tasks.py."""
        self.missed = self.holding or not self.interruptible or self.id is None
        if self.interruptible and not self.holding:
            raise KeyboardInterrupt

    def held(self, function: Callable[[], Any]) -> Tuple[Any, bool]:
        """For code of ours that user code calls and that must not be torn: whether an interrupt
        came meanwhile."""
        before, self.holding, self.missed = self.holding, True, False
        try:
            value = function()
        finally:
            self.holding = before
        came, self.missed = self.missed and self.id is not None, False
        return value, came


channel = Channel()

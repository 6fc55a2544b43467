"""The event loop of a live kernel: one, which runs from the kernel's start to its end.

Requests come to it as events of the server's socket. A cell without await runs inside that event's
callback, so asyncio.create_task() and its like find a running loop; a cell with await is a task of
its own, and other tasks go on beside it. Between cells the loop runs what cells have left in it,
and sleeps in one system call where there is nothing. All of this is as in ipykernel. Until a cell
uses the loop for the first time, nobody can tell whether it runs, so it does not.

An interrupt is for user code only. In a cell without await it is raised where the cell is
(cell/channel.py). A cell that awaits is cancelled, or interrupted where it is if its own code runs
at that moment. Whatever else keeps the loop to itself then, or between cells, is interrupted too.
Never is it raised in the loop's own code, which would not survive that.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import select
import selectors
import signal
import sys
import traceback
from _socket import socket as Socket  # Python's own class of that name touches a lot more
from _thread import get_ident, interrupt_main, start_new_thread
from asyncio.events import Handle
from os import _exit
from time import sleep
from typing import Any, Callable, Optional

from cell.bundles import Message
from cell.channel import channel

# The loop's descriptors are beside the channel's, out of the way of user code.
CHANNEL_FD = 1000  # KERNEL_CTL_FD in src/zygote/kernel.h
PAIR_FDS, WAITER_FD = (1001, 1002), 1003  # LOOP_PAIR and LOOP_FD in src/zygote/live.c
REHEARSALS = 20
AGAIN_S = 0.2  # after which a cell that was to be cancelled should have noticed

OURS, ASYNCIO = [os.path.dirname(os.path.abspath(m)) + os.sep for m in (__file__, asyncio.__file__)]
RUN = Handle._run.__code__  # type: ignore[attr-defined]


class Loop(asyncio.SelectorEventLoop):
    """asyncio's own, made in the zygote with all that it consists of, so that kernels share that.
    Its descriptors have fixed numbers. They do not come along into a kernel, which has others in
    their places before it runs any of this: src/zygote/live.c opens them."""

    def __init__(self) -> None:
        made: Any = selectors.EpollSelector()
        made._selector.close()
        made._selector = self.waiter = select.epoll.fromfd(WAITER_FD)
        super().__init__(made)
        self._ssock, self._csock = [Socket(fileno=fd) for fd in PAIR_FDS]
        self.waiter.unregister(PAIR_FDS[0])
        self.add_reader(PAIR_FDS[0], self._read_from_self)  # type: ignore[attr-defined]

    def _make_self_pipe(self) -> None:
        pass

    def wake_by_signals(self) -> None:
        """Else one that comes just before the loop falls asleep would not wake it."""
        signal.set_wakeup_fd(PAIR_FDS[1], warn_on_full_buffer=False)


def _is_user_code(frame: Any) -> bool:
    """Whether the loop runs a task or a callback of the user's, and not its own code or ours."""
    found, file = False, OURS
    while frame is not None and frame.f_code is not RUN:
        file = frame.f_code.co_filename
        found = found or not file.startswith(ASYNCIO)
        frame = frame.f_back
    return found and frame is not None and not file.startswith(OURS)


class Tasks:
    """There is one of these, and one loop."""

    def __init__(self) -> None:
        self._loop: Any = None
        self._context: Any = None  # of all cells
        self._serve: Callable[[Message], None] = lambda message: None
        self._ours = False  # our own code runs, or below it a cell
        self._is_open = self._over = False
        self._cell: Any = None  # the task of a cell that awaits
        self._then: Any = None  # what is called at its end
        self._asked = False  # it was to be interrupted

    def prepare(self, open_loop: Callable[[], Any]) -> None:
        """In the zygote. Whatever a loop makes at its first use is shared from then on."""
        open_loop()
        self._loop = Loop()
        self._context = contextvars.copy_context()
        os.dup2(PAIR_FDS[0], CHANNEL_FD)
        self._loop.add_reader(CHANNEL_FD, self._on_readable)
        self._loop.waiter.unregister(CHANNEL_FD)
        for _ in range(REHEARSALS):
            self._loop.run_until_complete(asyncio.sleep(0))
        for fd in (CHANNEL_FD, *PAIR_FDS, WAITER_FD):
            os.close(fd)

    def run(self, serve: Callable[[Message], None]) -> None:
        """Until the server is gone."""
        self._serve = serve
        self._is_open = True
        self._serve_without()
        self._loop.wake_by_signals()
        self._loop.waiter.register(CHANNEL_FD, select.EPOLLIN)
        while not self._over:
            try:
                self._loop.run_forever()
            except (KeyboardInterrupt, SystemExit) as exc:
                self._tell(exc)  # asyncio lets these two out of a task

    def _serve_without(self) -> None:
        """Most kernels never use their loop, and it would make a hundred pages their own. So it is
        only said to run, until there is something in it, or something for one of its descriptors.
        """
        self._loop._thread_id = get_ident()
        asyncio._set_running_loop(self._loop)
        while not (self._loop._ready or self._loop._scheduled):
            self._over = not channel.listen(None)
            if self._over or not channel.waiting:
                break
            self._go_on()
        asyncio._set_running_loop(None)
        self._loop._thread_id = None

    def _tell(self, exc: BaseException) -> None:
        cell = self._cell
        if cell is not None and cell.done() and not cell.cancelled() and cell.exception() is exc:
            return  # it is told as the cell's end
        try:
            traceback.print_exception(type(exc), exc, exc.__traceback__)
        except Exception:
            pass

    # ---- requests ----

    def _on_readable(self) -> None:
        if not channel.is_ours():
            _exit(0)  # a child of a task that did not leave by itself
        if channel.listen(False):
            self._go_on()
        else:
            self._over = True
            self._loop.stop()

    def _go_on(self) -> None:
        while channel.waiting and not self._ours and self._cell is None:
            self._guarded(self._serve, channel.waiting.popleft())

    def _guarded(self, function: Callable[..., None], *args: Any) -> None:
        """The loop would report what goes wrong in its callbacks, and go on without an answer."""
        self._ours = True
        try:
            self._context.run(function, *args)
        except BaseException:
            traceback.print_exc()
            channel.flush()
            _exit(1)
        self._ours = False
        if self._cell is not None and channel.missed:  # it came while the cell was made
            channel.missed, self._asked = False, True
            self._loop.call_soon(self._cancel)

    # ---- a cell that awaits ----

    def start(self, coroutine: Any, then: Callable[[Any, Optional[BaseException]], None]) -> None:
        """As a task; `then` gets what it gave or raised. Nothing else is served until then."""
        how = {"context": self._context} if sys.version_info >= (3, 11) else {}
        self._asked = False
        self._then = then
        self._cell = self._loop.create_task(coroutine, **how)
        self._cell.add_done_callback(self._on_done)

    def _on_done(self, task: Any) -> None:
        then, self._cell, self._then = self._then, None, None
        value = None
        exc: Optional[BaseException]
        if task.cancelled():
            exc = asyncio.CancelledError()
        else:
            exc = task.exception()
            value = task.result() if exc is None else None
        self._guarded(then, value, exc)
        self._go_on()

    @property
    def was_asked(self) -> bool:
        """Whether the last cell that awaited was to be interrupted."""
        return self._asked

    # ---- interrupts ----

    def _press(self, cell: Any) -> None:
        sleep(AGAIN_S)
        if self._cell is cell and not cell.done():
            interrupt_main()

    def _cancel(self) -> None:
        if self._cell is not None:
            self._cell.cancel()

    def on_interrupt(self, number: int, frame: Any) -> None:
        """The handler of SIGINT."""
        if channel.holding or self._ours or not self._is_open:
            channel.on_interrupt()
            return
        cell, at_hand = self._cell, _is_user_code(frame)
        if cell is None:
            channel.missed = True  # for the next cell, if there is one already
            if at_hand:
                raise KeyboardInterrupt
            return
        again, self._asked = self._asked, True
        if at_hand and (again or asyncio.current_task(self._loop) is cell):
            raise KeyboardInterrupt
        self._loop.call_soon_threadsafe(self._cancel)
        if at_hand:
            try:
                start_new_thread(self._press, (cell,))
            except RuntimeError:
                raise KeyboardInterrupt from None


tasks = Tasks()

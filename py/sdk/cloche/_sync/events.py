# Made by script/sdk-generate: change ../_async/events.py instead.
"""A stream of events, followed to its end: also over a lost connection, since the server keeps the
events of an execution and sends those after the last one that came."""

from __future__ import annotations

import collections
from types import TracebackType
from typing import Any, Iterator, Callable, Deque, Dict, Generic, Optional, Type, TypeVar

import httpx

from cloche._sync.transport import Transport, log
from cloche._both import call, sleep
from cloche._calls import EVENTS, Call, segment
from cloche._codes import NoEvents, NoExecution
from cloche._errors import BadReply, NoServer, refusal
from cloche._events import LAST, Assembly, Event, Handlers, Lines, event_of
from cloche._retry import Tries

R = TypeVar("R")


class Events(Generic[R]):
    """The events of an execution or a command, as they come. It begins when the first is asked for;
    `result()` reads the rest of them. Use it in a `with` block if you may leave before the end."""

    def __init__(
        self,
        transport: Transport,
        call: Call,
        place: str,  # of the events: {id} stands for that of the execution
        kind: Callable[[Dict[str, Any]], R],
    ) -> None:
        self.id = ""  #: of the execution or command, when it has started
        self._transport = transport
        self._call = call
        self._place = place
        self._kind = kind
        self._response: Optional[httpx.Response] = None
        self._pieces: Optional[Iterator[bytes]] = None
        self._lines = Lines()
        self._came: Deque[Event] = collections.deque()
        self._seq = 0  # of the last one that came
        self._is_over = False
        self._assembly = Assembly()
        self._end: Optional[Dict[str, Any]] = None
        self._tries: Optional[Tries] = None  # since the last event

    # ---- as an iterator

    def __iter__(self) -> Events[R]:
        return self

    def __next__(self) -> Event:
        while not self._came:
            if not self._read():
                self.close()
                raise StopIteration
        event = self._came.popleft()
        if event.type == "failed":
            self.close()
            error = refusal(event.data)
            raise error or BadReply("an execution failed without saying why")
        self._assembly.add(event)
        if event.type == "end":
            self._end = self._assembly.end(event.data)
        return event

    def __enter__(self) -> Events[R]:
        if self._response is None:
            self._open(self._call)
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def close(self) -> None:
        """Reads no more. The execution goes on; `interrupt()` of its kernel ends it."""
        if self._response is not None:
            self._response.close()
        if self._call.stored:
            self._transport.unstore(self._call)

    @property
    def is_over(self) -> bool:
        """Whether the execution has ended, as far as this has read."""
        return self._end is not None

    def result(self) -> R:
        """Reads to the end, and puts all events together."""
        return self.handle(Handlers())

    def handle(self, handlers: Handlers, on_input: Optional[Callable[[Event], Any]] = None) -> R:
        """The same, with callbacks on the way. `on_input` gets the event of a question."""
        for event in self:
            for handler, argument in handlers.due(event):
                call(handler, argument)
            if on_input and event.type == "input":
                call(on_input, event)
        assert self._end is not None  # else it would not be over
        return self._kind(self._end)

    # ---- reading

    def _open(self, call: Call) -> None:
        response = self._transport.send(call)
        self.id = response.headers.get("x-execution-id", self.id)
        self._response = response
        self._pieces = response.iter_bytes()
        self._lines = Lines()

    def _read(self) -> bool:
        """Takes in what comes next; False at the end."""
        if self._pieces is None:
            self._open(self._call)
        assert self._pieces is not None
        try:
            for line in self._lines.feed(self._pieces.__next__()):
                self._take(event_of(line))
            return True
        except StopIteration:
            if self._is_over:
                return False
            self._resume(httpx.ReadError("the stream ended early"))
        except ValueError:
            raise BadReply("a stream holds what is no event; check what stands between") from None
        except httpx.DecodingError as error:
            raise BadReply(f"a stream cannot be read: {error}") from error
        except httpx.TransportError as error:
            if self._is_over:
                return False
            self._resume(error)
        return True

    def _take(self, event: Event) -> None:
        if event.seq <= self._seq or self._is_over:
            return  # it was told before, or nothing may come any more
        if event.type == "start" and not self.id:
            self.id = str(event.data.get("id", ""))
        self._tries = None
        self._seq = event.seq
        self._is_over = event.type in LAST
        self._came.append(event)

    def _resume(self, error: httpx.TransportError) -> None:
        """Asks for the events behind the last one."""
        if self._response is not None:
            self._response.close()
        lost = self._transport.lost(self._call, error, self.id)
        if not self.id or not self._call.may_repeat:
            raise lost from error
        self._tries = self._tries or self._transport.tries()
        while True:
            pause = self._tries.next_pause()
            if pause is None:
                raise lost from error
            log.warning("lost the stream of %s after event %d (%r)", self.id, self._seq, error)
            sleep(pause)
            try:
                self._open(
                    Call(
                        "GET",
                        self._place.format(id=segment(self.id)),
                        query={"after": self._seq},
                        headers={"Accept": EVENTS},
                        streams=True,
                    )
                )
                return
            except NoServer:
                continue  # the pauses have their bound
            except (NoExecution, NoEvents):
                raise lost from error

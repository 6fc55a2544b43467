# Made by script/sdk-generate: change ../_async/talk.py instead.
"""A program that is talked to while it runs, over a WebSocket."""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, Optional, Union

from cloche._sync.events import Events
from cloche._sync.transport import Transport
from cloche._both import call
from cloche._calls import Call
from cloche._errors import BadReply, ClocheError, ConnectionLost
from cloche._events import Event, Handlers
from cloche._sockets import Socket
from cloche.results import Result

ABOUT = ("type", "seq", "execution_id")  # of a message; the rest is the event's data


class Talk(Events[Result]):
    """The events of a program, and what one says to it meanwhile. An `input` event waits for
    `answer()`. The program ends with the connection: use it in a `with` block."""

    def __init__(self, transport: Transport, call: Call) -> None:
        super().__init__(transport, call, "", Result)
        self._socket: Optional[Socket] = None

    # ---- to the program

    def answer(self, value: str) -> None:
        """What an input() that waits returns: the next line of stdin."""
        self._say({"type": "stdin", "value": value})

    def write(self, data: Union[str, bytes]) -> None:
        """More for its stdin, as it is."""
        (self._opened()).send(
            data if isinstance(data, bytes) else json.dumps({"type": "stdin", "data": data})
        )

    def end_input(self) -> None:
        """Its stdin is at its end: an input() that waits raises EOFError."""
        self._say({"type": "stdin", "eof": True})

    def interrupt(self) -> None:
        """Ctrl-C: a KeyboardInterrupt."""
        self._say({"type": "interrupt"})

    def converse(self, handlers: Handlers, on_input: Callable[[str], Any]) -> Result:
        """Reads to the end; `on_input` gets each prompt and returns the answer."""

        def reply(event: Event) -> None:
            answer = call(on_input, str(event.data.get("prompt", "")))
            if answer is None:
                self.end_input()
            else:
                self.answer(str(answer))

        return self.handle(handlers, reply)

    def _say(self, message: Dict[str, Any]) -> None:
        (self._opened()).send(json.dumps(message))

    # ---- from it

    def __enter__(self) -> Talk:
        self._opened()
        return self

    def close(self) -> None:
        """Leaves: a program that still runs ends."""
        if self._socket is not None:
            self._socket.close()
        super().close()

    def _opened(self) -> Socket:
        if self._socket is None:
            self._transport.store_inputs(self._call)
            self._socket = self._open_socket()
            self._socket.send(json.dumps(self._call.body))
        return self._socket

    def _open_socket(self) -> Socket:
        try:
            return Socket.open(self._transport.server, self._call.path)
        except ClocheError:
            # A WebSocket that is refused does not say why, but another request of ours is told.
            self._transport.send(Call("GET", "/v1/info"))
            raise

    def _read(self) -> bool:
        socket = self._opened()
        try:
            message = None if self._is_over else socket.receive()
        except ConnectionLost as error:
            raise ConnectionLost(f"{error}; what ran has ended", self.id) from error
        if message is None and self._is_over:
            return False
        if not isinstance(message, str):
            raise ConnectionLost("the WebSocket was closed before the program's end", self.id)
        self._hear(message)
        return True

    def _hear(self, message: str) -> None:
        try:
            told = dict(json.loads(message))
            kind, seq = str(told["type"]), int(told.get("seq") or self._seq + 1)
        except (KeyError, TypeError, ValueError):
            raise BadReply("a message is no event; check what stands between") from None
        self.id = str(told.get("execution_id", self.id))
        data = {name: value for name, value in told.items() if name not in ABOUT}
        if kind != "accepted":
            self._take(Event(seq, kind, data))

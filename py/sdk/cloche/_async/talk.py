"""A program that is talked to while it runs, over a WebSocket."""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, Optional, Union

from cloche._async.events import AsyncEvents
from cloche._async.transport import AsyncTransport
from cloche._both import async_call
from cloche._calls import Call
from cloche._errors import BadReply, ClocheError, ConnectionLost
from cloche._events import Event, Handlers
from cloche._sockets import AsyncSocket
from cloche.results import Result

ABOUT = ("type", "seq", "execution_id")  # of a message; the rest is the event's data


class AsyncTalk(AsyncEvents[Result]):
    """The events of a program, and what one says to it meanwhile. An `input` event waits for
    `answer()`. The program ends with the connection: use it in a `with` block."""

    def __init__(self, transport: AsyncTransport, call: Call) -> None:
        super().__init__(transport, call, "", Result)
        self._socket: Optional[AsyncSocket] = None

    # ---- to the program

    async def answer(self, value: str) -> None:
        """What an input() that waits returns: the next line of stdin."""
        await self._say({"type": "stdin", "value": value})

    async def write(self, data: Union[str, bytes]) -> None:
        """More for its stdin, as it is."""
        await (await self._opened()).send(
            data if isinstance(data, bytes) else json.dumps({"type": "stdin", "data": data})
        )

    async def end_input(self) -> None:
        """Its stdin is at its end: an input() that waits raises EOFError."""
        await self._say({"type": "stdin", "eof": True})

    async def interrupt(self) -> None:
        """Ctrl-C: a KeyboardInterrupt."""
        await self._say({"type": "interrupt"})

    async def converse(self, handlers: Handlers, on_input: Callable[[str], Any]) -> Result:
        """Reads to the end; `on_input` gets each prompt and returns the answer."""

        async def reply(event: Event) -> None:
            answer = await async_call(on_input, str(event.data.get("prompt", "")))
            if answer is None:
                await self.end_input()
            else:
                await self.answer(str(answer))

        return await self.handle(handlers, reply)

    async def _say(self, message: Dict[str, Any]) -> None:
        await (await self._opened()).send(json.dumps(message))

    # ---- from it

    async def __aenter__(self) -> AsyncTalk:
        await self._opened()
        return self

    async def aclose(self) -> None:
        """Leaves: a program that still runs ends."""
        if self._socket is not None:
            await self._socket.aclose()
        await super().aclose()

    async def _opened(self) -> AsyncSocket:
        if self._socket is None:
            await self._transport.store_inputs(self._call)
            self._socket = await self._open_socket()
            await self._socket.send(json.dumps(self._call.body))
        return self._socket

    async def _open_socket(self) -> AsyncSocket:
        try:
            return await AsyncSocket.open(self._transport.server, self._call.path)
        except ClocheError:
            # A WebSocket that is refused does not say why, but another request of ours is told.
            await self._transport.send(Call("GET", "/v1/info"))
            raise

    async def _read(self) -> bool:
        socket = await self._opened()
        try:
            message = None if self._is_over else await socket.receive()
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

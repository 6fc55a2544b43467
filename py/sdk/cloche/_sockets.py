"""WebSockets by the package websockets, which is imported only here and only when one is opened.
Its plain connections are younger than the versions that we work with: `Socket` runs an asynchronous
one on a loop of its own, in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, Coroutine, Optional, TypeVar, Union

from cloche._errors import BadArgument, ClocheError, ConnectionLost, NoServer
from cloche._settings import CONNECT_S, Server

T = TypeVar("T")
Message = Union[str, bytes]
MESSAGE_MAX = 1 << 25  # one value may have half of that


def _library() -> Any:
    try:
        import websockets
    except ImportError:
        raise BadArgument(
            "terminals and conversations need the package websockets: pip install"
            " 'cloche[terminal]', or Debian's python3-websockets"
        ) from None
    return websockets


def straight(connect: Any) -> Any:
    """SECURITY: the same, but a redirect is a refusal. Else it would take the key elsewhere."""

    class Straight(connect):  # type: ignore[misc]
        def handle_redirect(self, uri: str) -> None:  # of the client that was there first
            raise _library().exceptions.InvalidHandshake("redirects are not followed")

        def process_redirect(self, exc: Exception) -> Exception:  # of the one since
            return exc

    return Straight


async def _connect(server: Server, target: str) -> Any:
    """By the asyncio client of websockets 13 and later, or by the one that was there before."""
    _library()
    try:
        from websockets.asyncio.client import connect

        headers = "additional_headers"
    except ImportError:
        from websockets.client import connect

        headers = "extra_headers"
    kind = straight(connect)
    options = {headers: server.headers, "max_size": MESSAGE_MAX, "open_timeout": CONNECT_S}
    url = server.websocket_base + target
    if server.socket:
        return await kind(url, path=server.socket, unix=True, **options)
    if server.is_local and headers == "additional_headers":
        options["proxy"] = None
    try:
        return await kind(url, **options)
    except TypeError:  # websockets 13 and 14 know no proxies
        options.pop("proxy", None)
        return await kind(url, **options)


class AsyncSocket:
    """A connection that carries messages, text or bytes."""

    def __init__(self, connection: Any, shown: str) -> None:
        self._connection = connection
        self._shown = shown

    @classmethod
    async def open(cls, server: Server, target: str) -> AsyncSocket:
        try:
            return cls(await _connect(server, target), server.shown)
        except (OSError, asyncio.TimeoutError) as error:
            raise NoServer(
                f"no server answers at {server.shown} ({error}); start one with `cloche serve`"
            ) from error
        except _library().exceptions.WebSocketException as error:
            raise ClocheError(f"{server.shown} opened no WebSocket: {error}") from error

    async def send(self, message: Message) -> None:
        try:
            await self._connection.send(message)
        except _library().exceptions.ConnectionClosed as error:
            raise self._lost(error) from error

    async def receive(self) -> Optional[Message]:
        """The next message; None when the other side has closed."""
        closed = _library().exceptions
        try:
            message: Message = await self._connection.recv()
            return message
        except closed.ConnectionClosedOK:
            return None
        except closed.ConnectionClosed as error:
            raise self._lost(error) from error

    async def aclose(self) -> None:
        await self._connection.close()

    def _lost(self, error: Exception) -> ConnectionLost:
        return ConnectionLost(f"the WebSocket to {self._shown} was closed: {error}")


class Socket:
    """The same for plain code."""

    def __init__(self, socket: AsyncSocket, loop: asyncio.AbstractEventLoop) -> None:
        self._socket = socket
        self._loop = loop
        self._is_closed = False

    @classmethod
    def open(cls, server: Server, target: str) -> Socket:
        loop = asyncio.new_event_loop()
        threading.Thread(target=_run, args=(loop,), daemon=True, name="cloche-socket").start()
        try:
            return cls(_wait(loop, AsyncSocket.open(server, target)), loop)
        except BaseException:
            loop.call_soon_threadsafe(loop.stop)
            raise

    def send(self, message: Message) -> None:
        _wait(self._loop, self._socket.send(message))

    def receive(self) -> Optional[Message]:
        return _wait(self._loop, self._socket.receive())

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        try:
            _wait(self._loop, self._socket.aclose())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.close()


def _wait(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> T:
    future = asyncio.run_coroutine_threadsafe(work, loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise

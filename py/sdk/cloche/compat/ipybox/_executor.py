"""Kernels: code that runs one piece after the other and keeps its state."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import dataclasses
import io
import json
import time
import uuid
from types import TracebackType
from typing import Any, AsyncIterator, Dict, List, Optional, Type, Union

from cloche.compat.ipybox._errors import ConnectionError, ExecutionError, check
from cloche.compat.ipybox._http import http_client, server_at
from cloche.compat.ipybox._websocket import open_websocket

Message = Dict[str, Any]
INTERRUPT_S = 10.0  # then it goes on by itself; the server ends such a kernel before long
SETUP = "import sys\nsys.path.append('/app')"


@dataclasses.dataclass
class ExecutionResult:
    text: Optional[str]  #: all that was printed and shown, without the blanks around it
    images: List[Any]  #: of Pillow, in the order in which they were shown


class Execution:
    """One piece of code that was sent. Its messages are read by whoever asks first for them."""

    def __init__(self, client: ExecutionClient, req_id: str) -> None:
        self.client = client
        self.req_id = req_id
        self._chunks: List[str] = []
        self._images: List[Any] = []
        self._is_read = False

    async def result(self, timeout: float = 120) -> ExecutionResult:
        """Waits for the end. After `timeout` seconds the code is interrupted, and it is an
        asyncio.TimeoutError; what it raised is an ExecutionError."""
        if not self._is_read:
            async for _ in self.stream(timeout):
                pass
        text = "".join(self._chunks).strip()
        return ExecutionResult(text or None, self._images)

    async def stream(self, timeout: float = 120) -> AsyncIterator[str]:
        """What is printed and shown as text, as it comes. Images are in result() afterwards."""
        until = time.monotonic() + timeout
        try:
            async for found in self._read(until):
                if isinstance(found, str):
                    self._chunks.append(found)
                    yield found
                else:
                    self._images.append(found)
        except asyncio.TimeoutError:
            await self._interrupt()
            raise
        finally:
            self._is_read = True
            self.client._forget(self.req_id)

    async def _interrupt(self) -> None:
        """What is sent next would be called off, were it there before the interrupt is through."""
        await self.client._interrupt()
        with contextlib.suppress(asyncio.TimeoutError, ExecutionError):
            async for _ in self._read(time.monotonic() + INTERRUPT_S):
                pass

    async def _read(self, until: float) -> AsyncIterator[Union[str, Any]]:
        error: Optional[Message] = None
        while True:
            message = await self.client._next(self.req_id, until)
            kind, content = message["msg_type"], message["content"]
            if kind == "stream":
                yield content["text"]
            elif kind == "error":
                error = content
            elif kind in ("execute_result", "display_data"):
                yield content["data"].get("text/plain", "")
                if "image/png" in content["data"]:
                    yield _image(content["data"]["image/png"])
            elif kind == "execute_reply":
                if content["status"] != "ok":
                    raise _raised(error or content)
                return


def _image(text: str) -> Any:
    from PIL import Image

    image = Image.open(io.BytesIO(base64.b64decode(text)))
    image.load()
    return image


def _raised(content: Message) -> ExecutionError:
    name, value = content.get("ename", "Unknown Error"), content.get("evalue", "")
    return ExecutionError(f"{name}: {value}", "\n".join(content.get("traceback") or ()))


class ExecutionClient:
    """A kernel of its own in a container, from connect() to disconnect()."""

    def __init__(
        self,
        port: int,
        host: str = "localhost",
        heartbeat_interval: float = 10,
        *,
        api_key: Optional[str] = None,
    ) -> None:
        self.port = port
        self.host = host
        self._heartbeat_s = heartbeat_interval
        self._server = server_at(host, port, api_key)
        self._http = http_client(self._server)
        self._id: Optional[str] = None
        self._socket: Any = None
        self._reader: Optional[asyncio.Task[None]] = None
        self._heard: Dict[str, asyncio.Queue[Optional[Message]]] = {}

    async def __aenter__(self) -> ExecutionClient:
        await self.connect()
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        await self.disconnect()

    @property
    def kernel_id(self) -> str:
        if self._id is None:
            raise ValueError("Not connected to kernel")
        return self._id

    @property
    def base_http_url(self) -> str:
        return f"http://{self.host}:{self.port}/api/kernels"

    @property
    def kernel_http_url(self) -> str:
        return f"{self.base_http_url}/{self.kernel_id}"

    @property
    def kernel_ws_url(self) -> str:
        return f"ws://{self.host}:{self.port}/api/kernels/{self.kernel_id}/channels"

    # ---- its life ----

    async def connect(self, retries: int = 10, retry_interval: float = 1.0) -> None:
        """Makes a kernel; a server that is not there yet is asked again."""
        why: Optional[Exception] = None
        for turn in range(retries):
            if turn:
                await asyncio.sleep(retry_interval)
            try:
                reply = await self._http.post(self.base_http_url, json={"name": "python"})
                self._id = (await check(reply)).json()["id"]
                break
            except Exception as error:
                why = error
        else:
            raise ConnectionError("Failed to create kernel") from why
        self._socket = await open_websocket(
            self.kernel_ws_url, self._server.headers, self._heartbeat_s
        )
        self._reader = asyncio.ensure_future(self._hear())
        await self.execute(SETUP)

    async def disconnect(self) -> None:
        """Ends the kernel."""
        if self._reader:
            self._reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reader
        if self._socket:
            await self._socket.close()
        if self._id is not None:
            await self._http.delete(self.kernel_http_url)
        self._id = self._socket = self._reader = None
        await self._http.aclose()

    # ---- code ----

    async def execute(self, code: str, timeout: float = 120) -> ExecutionResult:
        """Runs code and waits for its end; see Execution.result."""
        execution = await self.submit(code)
        return await execution.result(timeout)

    async def submit(self, code: str) -> Execution:
        """Sends code, which runs when all that was sent before is through."""
        if self._socket is None:
            raise ConnectionError("Not connected to kernel")
        ident = uuid.uuid4().hex
        self._heard[ident] = asyncio.Queue()
        if self._reader and self._reader.done():
            self._heard[ident].put_nowait(None)
        header = {
            "msg_id": ident,
            "msg_type": "execute_request",
            "username": "",
            "session": "",
            "version": "5.3",
        }
        content = {
            "code": code,
            "silent": False,
            "store_history": False,
            "user_expressions": {},
            "allow_stdin": False,
        }
        message = {"header": header, "parent_header": {}, "metadata": {}, "content": content}
        await self._socket.send(json.dumps({**message, "channel": "shell", "buffers": []}))
        return Execution(self, ident)

    # ---- messages: of several executions, each gets its own ----

    async def _hear(self) -> None:
        try:
            async for frame in self._socket:
                message = json.loads(frame)
                heard = self._heard.get(message["parent_header"].get("msg_id"))
                if heard:
                    heard.put_nowait(message)
        finally:
            for heard in self._heard.values():
                heard.put_nowait(None)

    async def _next(self, ident: str, until: float) -> Message:
        left = max(0.0, until - time.monotonic())
        message = await asyncio.wait_for(self._heard[ident].get(), left)
        if message is None:
            raise ConnectionError("The connection to the kernel is closed")
        return message

    def _forget(self, ident: str) -> None:
        self._heard.pop(ident, None)

    async def _interrupt(self) -> None:
        await self._http.post(f"{self.kernel_http_url}/interrupt", json={"kernel_id": self._id})

# Made by script/sdk-generate: change ../_async/ports.py instead.
"""Servers that listen inside a live sandbox."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Iterator, List, Mapping, Optional, Type

import httpx

from cloche._sync.transport import Transport
from cloche._both import aside
from cloche._calls import INSIDE_S, Call, inside_path, sent
from cloche._records import listed
from cloche._uploads import Source, upload_of
from cloche.results import PortInfo, PortLink, PortReply


class PortStream:
    """An answer of a server inside, as it comes. In a `with` block it has `status` and `headers`,
    and iterating gives the body in pieces."""

    status = 0
    headers: Mapping[str, str] = {}

    def __init__(self, transport: Transport, call: Call, data: Optional[Source]) -> None:
        self._transport = transport
        self._call = call
        self._data = data
        self._response: Optional[httpx.Response] = None

    def __enter__(self) -> PortStream:
        if self._data is not None:
            self._call.upload = aside(upload_of, self._data)
        try:
            self._response = self._transport.send(self._call)
        finally:
            if self._call.upload:
                self._call.upload.close()
        self.status = self._response.status_code
        self.headers = self._response.headers
        return self

    def __iter__(self) -> Iterator[bytes]:
        if self._response is None:
            return
        try:
            for piece in self._response.iter_bytes():
                yield piece
        except httpx.TransportError as error:
            raise self._transport.lost(self._call, error) from error

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if self._response is not None:
            self._response.close()

    def _whole(self) -> PortReply:
        content = self._response.content if self._response else b""
        return PortReply(self.status, self.headers, content)


class Ports:
    """The servers inside a sandbox: which there are, and requests to them. What they answer is an
    answer, whatever its status; an exception is only what the server of cloche says."""

    def __init__(self, transport: Transport, path: str) -> None:
        self._transport = transport
        self._path = path

    def list(self) -> List[PortInfo]:
        """Those on which something listens."""
        found = self._transport.json(Call("GET", f"{self._path}/ports"))
        return [PortInfo(port) for port in listed(found["ports"])]

    def url(self, port: int, path: str = "/") -> str:
        """Where a client that has the key of the API reaches it."""
        return self._transport.server.base + inside_path(self._path, port, path)

    def link(self, port: int, ttl: Optional[float] = None) -> PortLink:
        """A URL that opens it in a browser, for `ttl` seconds (an hour). Whoever has it may use
        that server. For this the operator has to give a domain."""
        body = {"port": port} if ttl is None else {"port": port, "ttl_seconds": round(ttl)}
        return PortLink(self._transport.json(Call("POST", f"{self._path}/links", body)))

    def request(
        self,
        port: int,
        path: str = "/",
        method: str = "GET",
        *,
        data: Optional[Source] = None,
        json: Any = None,
        headers: Optional[Mapping[str, str]] = None,
        timeout: Optional[float] = None,
    ) -> PortReply:
        """One request, and its whole answer. `path` may have a query; `data` is text, bytes, an
        open file or a pathlib.Path of this machine, `json` what JSON can say. Redirects are not
        followed. `timeout`: for so many seconds nothing at all may come."""
        call = self._call(method, port, path, json, headers, timeout)
        with PortStream(self._transport, call, sent(data, json)) as answer:
            return answer._whole()

    def stream(
        self,
        port: int,
        path: str = "/",
        method: str = "GET",
        *,
        data: Optional[Source] = None,
        json: Any = None,
        headers: Optional[Mapping[str, str]] = None,
        timeout: Optional[float] = None,
    ) -> PortStream:
        """The same for a `with` block, in which the answer can be read as it comes."""
        call = self._call(method, port, path, json, headers, timeout)
        call.streams = True
        return PortStream(self._transport, call, sent(data, json))

    def _call(
        self,
        method: str,
        port: int,
        path: str,
        json: Any,
        headers: Optional[Mapping[str, str]],
        timeout: Optional[float],
    ) -> Call:
        given = {} if json is None else {"content-type": "application/json"}
        given.update((name.lower(), value) for name, value in (headers or {}).items())
        secret = self._transport.server.secret
        if "authorization" in given and secret:  # is that server's: ours goes beside it
            given["x-api-key"] = secret
        return Call(
            method,
            inside_path(self._path, port, path),
            headers={"accept": "*/*", **given},
            silence_s=INSIDE_S if timeout is None else timeout,
            inside=True,
        )

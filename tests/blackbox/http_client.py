"""A plain HTTP/1.1 client for the tests: it sends exactly what it is told, and shows what came."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import socket
from collections import deque
from collections.abc import Iterator
from types import TracebackType
from typing import Any
from urllib.parse import quote

import answers
from client import DEADLINE_S

BOUNDARY = "cloche-test-boundary"
JSON = {"Content-Type": "application/json"}
FORM = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}


@dataclasses.dataclass
class Reply:
    status: int
    headers: list[tuple[str, str]]  # names in lower case
    body: bytes = b""

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key == name.lower()), None)

    @property
    def json(self) -> Any:
        try:
            return json.loads(self.body)
        except ValueError:
            raise AssertionError(f"not JSON ({self.status}): {self.body[:2000]!r}") from None


@dataclasses.dataclass
class Event:
    type: str
    data: Any
    id: int | None = None


class Connection:
    """One connection, kept alive. Nothing is sent that the caller did not ask for but Host and the
    body's length."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.sock.makefile("rb")
        self.asked: deque[tuple[str, str]] = deque()
        self.answered: tuple[str, str] | None = None

    def close(self) -> None:
        self.file.close()
        self.sock.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def send(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] = {}
    ) -> None:
        self.asked.append((method, path))
        lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{self.port}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        self.sock.sendall("\r\n".join(lines + ["", ""]).encode("latin-1") + (body or b""))

    def head(self) -> Reply:
        line = self.file.readline()
        if not line:
            raise ConnectionError("the server closed the connection")
        status = int(line.split()[1])
        headers = []
        while (line := self.file.readline()) not in (b"\r\n", b""):
            name, _, value = line.decode("latin-1").partition(":")
            headers.append((name.lower(), value.strip()))
        self.answered = self.asked.popleft() if self.asked and status >= 200 else None
        return Reply(status, headers)

    def chunks(self) -> Iterator[bytes]:
        while size := int(self.file.readline(), 16):
            yield self.file.read(size)
            assert self.file.read(2) == b"\r\n"
        assert self.file.readline() == b"\r\n"

    def reply(self, method: str = "GET") -> Reply:
        reply = self._reply(method)
        if self.answered and method != "HEAD":
            kind = reply.header("content-type")
            answers.check(*self.answered, reply.status, kind, reply.body)
        return reply

    def _reply(self, method: str) -> Reply:
        reply = self.head()
        if method == "HEAD" or reply.status in (204, 304):
            return reply
        if reply.header("transfer-encoding") == "chunked":
            reply.body = b"".join(self.chunks())
        else:
            length = int(reply.header("content-length") or 0)
            reply.body = self.file.read(length)
            assert len(reply.body) == length, "cut short"
        return reply

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] = {}
    ) -> Reply:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it may know enough
            self.send(method, path, body, headers)
        return self.reply(method)

    def post(self, path: str, value: Any, **headers: str) -> Reply:
        return self.ask("POST", path, json.dumps(value).encode(), JSON | headers)

    def execute(self, code: str, **fields: Any) -> dict[str, Any]:
        reply = self.post("/v1/execute", {"code": code, **fields})
        assert reply.status == 200, (reply.status, reply.body)
        result: dict[str, Any] = reply.json
        return result


class Stream:
    """A reply that comes in pieces: server-sent events, or lines of JSON."""

    def __init__(
        self,
        port: int,
        method: str,
        path: str,
        value: Any = None,
        headers: dict[str, str] = {},
    ) -> None:
        self.connection = Connection(port)
        self.method, self.path = method, path
        body = None if value is None else json.dumps(value).encode()
        self.connection.send(method, path, body, (JSON if body else {}) | headers)
        self.reply = self.connection.head()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def blocks(self, end: bytes) -> Iterator[bytes]:
        data = b""
        for chunk in self.connection.chunks():
            data += chunk
            *whole, data = data.split(end)
            yield from whole
        assert data == b"", f"something hangs on: {data[-200:]!r}"

    def events(self) -> Iterator[Event]:
        for block in self.blocks(b"\n\n"):
            fields: dict[str, str] = {}
            for line in block.decode().splitlines():  # as the Onyx client does
                name, _, value = line.partition(":")
                assert name not in fields, block
                fields[name] = value.removeprefix(" ")
            if "event" in fields:  # and not a comment
                number = int(fields["id"]) if "id" in fields else None
                event = Event(fields["event"], json.loads(fields["data"]), number)
                seq = {} if number is None else {"seq": number}
                self.check("text/event-stream", {"event": event.type, "data": event.data} | seq)
                yield event

    def lines(self) -> Iterator[Any]:
        for line in self.blocks(b"\n"):
            if line:
                self.check("application/x-ndjson", value := json.loads(line))
                yield value

    def check(self, kind: str, value: Any) -> None:
        answers.check_part(self.method, self.path, kind, value)


def ask(
    port: int,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: dict[str, str] = {},
) -> Reply:
    """One request on a connection of its own."""
    with Connection(port) as connection:
        return connection.ask(method, path, body, headers)


def get(port: int, path: str, **headers: str) -> Reply:
    return ask(port, "GET", path, None, headers)


def post(port: int, path: str, value: Any, **headers: str) -> Reply:
    return ask(port, "POST", path, json.dumps(value).encode(), JSON | headers)


def execute(port: int, code: str, **fields: Any) -> dict[str, Any]:
    with Connection(port) as connection:
        return connection.execute(code, **fields)


def part(data: bytes, name: str = "file", filename: str | None = "a.txt") -> bytes:
    """A form with one part."""
    shown = "" if filename is None else f'; filename="{filename}"'
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"{shown}\r\n\r\n'
    return head.encode() + data + f"\r\n--{BOUNDARY}--\r\n".encode()


def upload(port: int, filename: str, data: bytes) -> str:
    reply = ask(port, "POST", "/v1/files", part(data, filename=filename), FORM)
    assert reply.status == 201, (reply.status, reply.body)
    file_id: str = reply.json["file_id"]
    return file_id


def download(port: int, file_id: str) -> bytes:
    reply = get(port, f"/v1/files/{quote(file_id)}")
    assert reply.status == 200, (reply.status, reply.body)
    return reply.body

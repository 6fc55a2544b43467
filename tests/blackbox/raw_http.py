"""HTTP over a plain socket: whatever bytes a test wants to send, and replies read with no mercy.

urllib and its kind would repair or refuse what the tests of the server's edges must send as it is.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import answers
from client import DEADLINE_S
from harness import Service, run_cli
from host import descendants

HOST = b"Host: localhost\r\n"


@dataclasses.dataclass
class Reply:
    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        found = [value for key, value in self.headers if key.lower() == name.lower()]
        return found[0] if found else None

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """Of an error of ours."""
        return str(self.json["error"]["code"])

    @property
    def keeps(self) -> bool:
        """Whether another request may follow on the connection."""
        return (self.header("Connection") or "").lower() != "close"


class Closed(Exception):
    """The server ended the connection where more was due."""


class Raw:
    """One connection."""

    def __init__(self, where: Service | int | Path, deadline_s: float = DEADLINE_S) -> None:
        if isinstance(where, Path):
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.settimeout(deadline_s)
            self.sock.connect(str(where))
        else:
            port = where if isinstance(where, int) else where.port
            self.sock = socket.create_connection(("127.0.0.1", port), timeout=deadline_s)
        self.got = b""
        self.asked: list[tuple[str, str]] | None = []  # None: nobody knows what is answered
        self.answered: tuple[str, str] | None = None

    def __enter__(self) -> Raw:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.sock.close()

    # -- out

    def send(self, data: bytes) -> Raw:
        self.note(data)
        self.sock.sendall(data)
        return self

    def note(self, data: bytes) -> None:
        """One request in one piece is remembered, for its reply."""
        found = re.match(rb"([A-Z]+) (/[!-~]*) HTTP/1\.[01]\r\n", data)
        if self.asked is not None and found and data.count(b" HTTP/1.") == 1:
            self.asked.append((found[1].decode(), found[2].decode()))
        else:
            self.asked = None

    def try_send(self, data: bytes) -> bool:
        """False when the server would not take all of it."""
        self.note(data)
        try:
            self.sock.sendall(data)
            return True
        except (BrokenPipeError, ConnectionResetError):
            return False

    def half_close(self) -> Raw:
        self.sock.shutdown(socket.SHUT_WR)
        return self

    def reset(self) -> None:
        """Leaves without a word: the other side sees a reset."""
        linger = b"\1\0\0\0\0\0\0\0"
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.sock.close()

    # -- in

    def more(self) -> bool:
        try:
            data = self.sock.recv(1 << 16)
        except ConnectionResetError:
            data = b""
        self.got += data
        return bool(data)

    def until(self, mark: bytes) -> bytes:
        """What comes up to and with the mark."""
        while mark not in self.got:
            if not self.more():
                raise Closed(self.got[-2000:])
        head, _, self.got = self.got.partition(mark)
        return head + mark

    def exactly(self, n: int) -> bytes:
        while len(self.got) < n:
            if not self.more():
                raise Closed(self.got[-2000:])
        data, self.got = self.got[:n], self.got[n:]
        return data

    def chunk(self) -> bytes:
        """One chunk of a chunked body; empty at its end."""
        size = int(self.until(b"\r\n").strip(), 16)
        data = self.exactly(size + 2)
        assert data.endswith(b"\r\n")
        return data[:-2]

    def head(self) -> Reply:
        lines = self.until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        version, status, _ = lines[0].split(" ", 2)
        assert version == "HTTP/1.1", lines[0]
        headers = [(line.split(": ", 1)[0], line.split(": ", 1)[1]) for line in lines[1:] if line]
        self.answered = self.asked.pop(0) if self.asked and int(status) >= 200 else None
        return Reply(int(status), headers, b"")

    def reply(self, head_only: bool = False) -> Reply:
        reply = self._reply(head_only)
        if self.answered and not head_only:
            kind = reply.header("Content-Type")
            answers.check(*self.answered, reply.status, kind, reply.body)
        return reply

    def _reply(self, head_only: bool) -> Reply:
        reply = self.head()
        length = reply.header("Content-Length")
        if head_only or reply.status in (204, 304) or reply.status < 200:
            return reply
        if (reply.header("Transfer-Encoding") or "").lower() == "chunked":
            reply.body = b"".join(iter(self.chunk, b""))
        elif length is not None:
            reply.body = self.exactly(int(length))
        else:
            while self.more():
                pass
            reply.body, self.got = self.got, b""
        return reply

    def ends(self) -> bytes:
        """What else comes until the server closes; a server that does not is a failure."""
        try:
            while self.more():
                pass
        except TimeoutError:
            raise AssertionError("the server kept the connection") from None
        return self.got


def request(
    method: str, path: str, *headers: str, body: bytes | None = None, host: bytes = HOST
) -> bytes:
    """A well-formed one, with the length of its body."""
    lines = f"{method} {path} HTTP/1.1\r\n".encode() + host
    lines += b"".join(line.encode() + b"\r\n" for line in headers)
    if body is not None:
        lines += b"Content-Length: %d\r\n" % len(body)
    return lines + b"\r\n" + (body or b"")


def post(path: str, value: Any, *headers: str) -> bytes:
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    return request("POST", path, "Content-Type: application/json", *headers, body=body)


def chunks(*pieces: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (*pieces, b""))


def ask(where: Service | int | Path, data: bytes) -> Reply:
    """One request on a connection of its own."""
    with Raw(where) as raw:
        raw.try_send(data)
        return raw.reply()


def execute(where: Service | int | Path, code: str, *headers: str, **more: Any) -> Reply:
    return ask(where, post("/v1/execute", {"code": code, "timeout_ms": 60000, **more}, *headers))


def server_pid(service: Service) -> int:
    (found,) = [p.pid for p in descendants(service.process.pid) if p.role == "cloche-server"]
    return found


def resident_mb(service: Service) -> float:
    """Memory of the process that speaks HTTP."""
    text = Path(f"/proc/{server_pid(service)}/status").read_text()
    (line,) = [line for line in text.splitlines() if line.startswith("VmRSS:")]
    return int(line.split()[1]) / 1024


@contextlib.contextmanager
def heard(service: Service) -> Iterator[None]:
    """Takes what the server logs meanwhile: it waits for a reader when the pipe is full."""
    over = threading.Event()

    def listen() -> None:
        while not over.is_set() and service.drain(0.05):
            pass

    thread = threading.Thread(target=listen)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class KeyedService(Service):
    """A service that wants keys, and a key that it knows."""

    def __init__(self, directory: Path, *options: str) -> None:
        directory.chmod(0o711)  # the server is another user, who reads the file again on SIGHUP
        file = directory / "keys.json"
        made = run_cli("key", "add", "alice", "--keys", file)
        assert made.returncode == 0, made.stderr
        self.key = made.stdout.decode().strip()
        super().__init__(directory, "--keys", str(file), *options)

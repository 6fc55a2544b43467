"""WebSocket over a plain socket: frames by hand, good and bad."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import os
import socket
import struct
from pathlib import Path
from typing import Any

import answers
from harness import Service
from raw_http import Closed, Raw

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
PATH = "/v1/execute/stream"
CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
KEY = b"dGhlIHNhbXBsZSBub25jZQ=="


def frame(opcode: int, payload: bytes = b"", *, fin: bool = True, rsv: int = 0) -> bytes:
    """A client's frame: masked."""
    mask = os.urandom(4)
    body = bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))
    return head(opcode, len(payload), fin=fin, rsv=rsv, masked=True) + mask + body


def head(
    opcode: int, length: int, *, fin: bool = True, rsv: int = 0, masked: bool = False
) -> bytes:
    first, bit = (0x80 if fin else 0) | rsv << 4 | opcode, 0x80 if masked else 0
    if length < 126:
        return struct.pack("!BB", first, bit | length)
    if length < 1 << 16:
        return struct.pack("!BBH", first, bit | 126, length)
    return struct.pack("!BBQ", first, bit | 127, length)


def handshake(path: str = PATH, more: bytes = b"", **changed: bytes | None) -> bytes:
    """The request; headers by their names with _ for -, None leaves one out."""
    headers: dict[str, bytes | None] = {
        "Host": b"localhost",
        "Upgrade": b"websocket",
        "Connection": b"Upgrade",
        "Sec-WebSocket-Version": b"13",
        "Sec-WebSocket-Key": KEY,
    }
    headers.update({name.replace("_", "-"): value for name, value in changed.items()})
    lines = [f"{name}: ".encode() + v + b"\r\n" for name, v in headers.items() if v is not None]
    return f"GET {path} HTTP/1.1\r\n".encode() + b"".join(lines) + more + b"\r\n"


@dataclasses.dataclass
class Frame:
    opcode: int
    payload: bytes

    @property
    def code(self) -> int:
        """Of a close frame."""
        assert self.opcode == CLOSE, self
        return int(struct.unpack("!H", self.payload[:2])[0]) if self.payload else 1005


class Socket(Raw):
    """One WebSocket, open when it is made; `early` goes with the handshake."""

    def __enter__(self) -> Socket:
        return self

    def __init__(
        self,
        where: Service | int | Path,
        early: bytes = b"",
        more: bytes = b"",
        rcvbuf: int = 0,
        path: str = PATH,
    ) -> None:
        super().__init__(where)
        self.path = path
        if rcvbuf:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        self.send(handshake(path, more) + early)
        self.answer = self.head()
        assert self.answer.status == 101, self.answer
        wanted = base64.b64encode(hashlib.sha1(KEY + GUID).digest()).decode()
        assert self.answer.header("Sec-WebSocket-Accept") == wanted
        assert (self.answer.header("Upgrade") or "").lower() == "websocket"
        assert (self.answer.header("Connection") or "").lower() == "upgrade"

    def say(self, **message: Any) -> Socket:
        self.send(frame(TEXT, json.dumps(message).encode()))
        return self

    def frame(self) -> Frame:
        """The next one, whatever it is."""
        first, second = self.exactly(2)
        assert first & 0xF0 == 0x80 and not second & 0x80, "a server's frames are whole and plain"
        length = second
        if second == 126:
            length = struct.unpack("!H", self.exactly(2))[0]
        elif second == 127:
            length = struct.unpack("!Q", self.exactly(8))[0]
        return Frame(first & 15, self.exactly(length))

    def hear(self) -> dict[str, Any]:
        """The next message."""
        got = self.frame()
        assert got.opcode == TEXT, got
        message = json.loads(got.payload)
        assert isinstance(message, dict)
        answers.check_message(self.path, message)
        return message

    def output(self, wanted: str) -> str:
        """What the program says up to and with these words."""
        said = ""
        while wanted not in said:
            message = self.hear()
            if message["type"] == "output":
                said += message["data"]
            else:
                assert message["type"] == "start", message
        return said

    def result(self) -> dict[str, Any]:
        """Of the run, which closes as it should."""
        message = self.hear()
        while message["type"] in ("start", "output"):
            message = self.hear()
        assert message["type"] == "result", message
        assert self.goodbye() == 1000
        return message

    def goodbye(self) -> int:
        """The server's close frame is answered, and nothing comes after it."""
        last = self.frame()
        while last.opcode != CLOSE:
            last = self.frame()
        self.try_send(frame(CLOSE, last.payload[:2]))
        self.ended()
        return last.code

    def ended(self) -> None:
        while self.more():
            pass
        if self.got:
            raise Closed(self.got[-2000:])


# ---------------------------------------------------------------------------- GET /v1/run


def talk(service: Service) -> Socket:
    return Socket(service, path="/v1/run")


def until(ws: Socket, kind: str) -> list[dict[str, Any]]:
    messages = [ws.hear()]
    while messages[-1]["type"] != kind:
        messages.append(ws.hear())
    return messages

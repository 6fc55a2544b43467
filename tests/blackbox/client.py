"""A client of the engine's socket, as honest or hostile as a test wants.

It speaks the protocol itself (src/wire/wire.h, run.h). Message numbers are read from
src/wire/messages_*.h, so that the two cannot drift apart.
"""

from __future__ import annotations

import array
import dataclasses
import fcntl
import json
import os
import re
import socket
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_S = float(os.environ.get("CLOCHE_TEST_DEADLINE", "120"))  # for what surely comes


def _messages() -> dict[str, int]:
    headers = (ROOT / "src" / "wire").glob("messages_*.h")
    text = "".join(header.read_text() for header in headers)
    found = re.findall(r"^\s*X\((\w+), (\d+), \d+\)", text, re.MULTILINE)
    numbers = {name: int(number) for name, number in found}
    assert "C_RUN" in numbers, "messages_client.h is not what the tests expect"
    return numbers


def _wire_version() -> int:
    text = (ROOT / "src" / "wire" / "wire.h").read_text()
    match = re.search(r"^#define WIRE_VERSION +(\d+)", text, re.MULTILINE)
    assert match, "wire.h is not what the tests expect"
    return int(match[1])


MESSAGES = _messages()
NAMES = {number: name for name, number in MESSAGES.items()}
WIRE_VERSION = _wire_version()
WIRE_MAX = 65536
WIRE_MAX_FDS = 32

RUN_LAST_LINE, RUN_STDIN, RUN_FILES, RUN_CODE_FD = 1, 2, 4, 8


def u32(value: int) -> bytes:
    return struct.pack("=I", value)


def u64(value: int) -> bytes:
    return struct.pack("=Q", value)


def blob(data: bytes) -> bytes:
    return u32(len(data)) + data


def text(value: str) -> bytes:
    return blob(value.encode("utf-8", "surrogateescape") + b"\0")


def strings(values: Sequence[str]) -> bytes:
    return u32(len(values)) + b"".join(map(text, values))


@dataclasses.dataclass
class Message:
    """One packet that came in; `get_*` read its fields in order."""

    name: str
    payload: bytes
    fds: list[int]
    at: int = 0

    def _take(self, size: int) -> bytes:
        assert self.at + size <= len(self.payload), f"{self.name}: short packet"
        self.at += size
        return self.payload[self.at - size : self.at]

    def get_u32(self) -> int:
        return int(struct.unpack("=I", self._take(4))[0])

    def get_u64(self) -> int:
        return int(struct.unpack("=Q", self._take(8))[0])

    def get_bytes(self) -> bytes:
        return self._take(self.get_u32())

    def get_text(self) -> str:
        data = self.get_bytes()
        assert data.endswith(b"\0"), f"{self.name}: a string without its NUL"
        return data[:-1].decode("utf-8", "surrogateescape")

    def end(self) -> None:
        assert self.at == len(
            self.payload
        ), f"{self.name}: {len(self.payload) - self.at} bytes left"

    def read_fd(self, index: int = 0) -> bytes:
        """All of a file that came with the packet, from its beginning."""
        with os.fdopen(os.dup(self.fds[index]), "rb") as file:
            file.seek(0)
            return file.read()

    def close(self) -> None:
        while self.fds:
            os.close(self.fds.pop())


def memfd(data: bytes, name: str = "test") -> int:
    fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with os.fdopen(os.dup(fd), "wb") as file:
        file.write(data)
    os.lseek(fd, 0, os.SEEK_SET)
    seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SEAL
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd


@dataclasses.dataclass
class Outcome:
    """The end of a run through the raw client."""

    stdout: bytes = b""
    stderr: bytes = b""
    exit_status: int | None = None
    why: str = ""
    result: dict[str, Any] = dataclasses.field(default_factory=dict)
    files: dict[str, bytes] = dataclasses.field(default_factory=dict)
    error: dict[str, Any] | None = None  # C_ERROR: kind, message, remediation, retryable
    id: str = ""


class Client:
    """A client of the engine's socket, as honest or hostile as the test wants."""

    def __init__(self, path: Path | str) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.settimeout(DEADLINE_S)
        self.sock.connect(str(path))

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.sock.close()

    def fileno(self) -> int:
        return self.sock.fileno()

    # -- packets

    def send_bytes(self, data: bytes, fds: Iterable[int] = ()) -> None:
        passed = array.array("i", fds)
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, passed)] if passed else []
        self.sock.sendmsg([data], ancillary, socket.MSG_NOSIGNAL)

    def send(self, name: str, payload: bytes = b"", fds: Iterable[int] = ()) -> None:
        self.send_bytes(struct.pack("=HH", MESSAGES[name], WIRE_VERSION) + payload, fds)

    def recv(self) -> Message | None:
        """The next packet, or None when the engine hung up."""
        room = socket.CMSG_SPACE(WIRE_MAX_FDS * 4)
        try:
            data, ancillary, flags, _ = self.sock.recvmsg(
                WIRE_MAX + 4, room, socket.MSG_CMSG_CLOEXEC
            )
        except ConnectionResetError:
            return None
        fds = array.array("i")
        for level, kind, value in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                fds.frombytes(value[: len(value) - len(value) % 4])
        assert not flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC)
        if not data and not fds:
            return None
        number, version = struct.unpack_from("=HH", data)
        assert version == WIRE_VERSION
        return Message(NAMES[number], data[4:], list(fds))

    # -- requests

    def info(self) -> dict[str, Any]:
        self.send("C_INFO")
        message = self.recv()
        assert message is not None, "the engine hung up on C_INFO"
        try:
            assert message.name == "C_STATE", message
            state: dict[str, Any] = json.loads(message.read_fd())
            return state
        finally:
            message.close()

    def start(
        self,
        code: str | bytes,
        *,
        profile: str = "auto",
        timeout_ms: int = 0,
        memory_mb: int = 0,
        cpu_seconds: int = 0,
        cpus_percent: int = 0,
        pids: int = 0,
        disk_mb: int = 0,
        open_files: int = 0,
        output_bytes: int = 0,
        args: Sequence[str] = (),
        env: Sequence[str] = (),
        inputs: dict[str, bytes] | None = None,
        last_line: bool = False,
        stdin: bool = False,
        want_files: bool = False,
    ) -> None:
        """Sends C_INPUT… and C_RUN; 0 is the engine's default."""
        data = code.encode("utf-8", "surrogateescape") if isinstance(code, str) else code
        for path, content in (inputs or {}).items():
            fd = memfd(content, "input")
            self.send("C_INPUT", text(path) + u32(0o644), [fd])
            os.close(fd)
        flags = last_line * RUN_LAST_LINE | stdin * RUN_STDIN | want_files * RUN_FILES
        code_fd = -1
        if len(data) > 32768:
            flags |= RUN_CODE_FD
            code_fd = memfd(data, "code")
            data = b""
        limits = (
            *(timeout_ms, memory_mb, cpu_seconds, cpus_percent, pids, disk_mb, open_files),
            output_bytes,
        )
        payload = u32(flags) + text(profile) + u32(len(limits)) + b"".join(map(u64, limits))
        payload += strings(args) + strings(env) + blob(data)
        self.send("C_RUN", payload, [code_fd] if code_fd >= 0 else [])
        if code_fd >= 0:
            os.close(code_fd)

    def finish(self, outcome: Outcome | None = None) -> Outcome:
        """Reads until the result or the error."""
        outcome = outcome or Outcome()
        while True:
            message = self.recv()
            assert message is not None, "the engine hung up before the result"
            try:
                if self._take(message, outcome):
                    return outcome
            finally:
                message.close()

    @staticmethod
    def _take(message: Message, outcome: Outcome) -> bool:
        if message.name == "C_STARTED":
            outcome.id = message.get_text()
        elif message.name == "C_OUTPUT":
            stream, data = message.get_u32(), message.get_bytes()
            if stream == 1:
                outcome.stdout += data
            else:
                assert stream == 2
                outcome.stderr += data
        elif message.name == "C_WANT":  # room for more stdin; the tests send little
            message.get_u32()
        elif message.name == "C_FILE":
            path, size = message.get_text(), message.get_u64()
            outcome.files[path] = message.read_fd()
            assert len(outcome.files[path]) == size
        elif message.name == "C_RESULT":
            outcome.exit_status, outcome.why = message.get_u32(), message.get_text()
            inline = message.get_bytes()
            outcome.result = json.loads(message.read_fd() if message.fds else inline)
        elif message.name == "C_ERROR":
            outcome.error = {
                "retryable": bool(message.get_u32()),
                "kind": message.get_text(),
                "message": message.get_text(),
                "remediation": message.get_text(),
            }
        else:
            raise AssertionError(f"unexpected {message.name}")
        message.end()
        return message.name in ("C_RESULT", "C_ERROR")

"""A client of Jupyter's API: kernels over REST, channels over a WebSocket in both framings."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import socket
import struct
import subprocess
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from harness import eventually
from http_client import Reply
from live import Client
from raw_ws import BINARY, TEXT, Socket, frame

HERE = Path(__file__).parent
SERVICES = HERE.parents[1] / "build/npm/node_modules/@jupyterlab/services"
HANG_S = 300
V1 = "v1.kernel.websocket.jupyter.org"
Message = dict[str, Any]


def pack_v1(channel: str, message: Message, buffers: Iterable[bytes] = ()) -> bytes:
    names = ("header", "parent_header", "metadata", "content")
    parts = [channel.encode(), *(json.dumps(message[name]).encode() for name in names), *buffers]
    at = [8 * (len(parts) + 2)]
    for part in parts:
        at.append(at[-1] + len(part))
    return struct.pack(f"<{len(at) + 1}Q", len(at), *at) + b"".join(parts)


def unpack_v1(data: bytes) -> Message:
    (count,) = struct.unpack_from("<Q", data)
    at = struct.unpack_from(f"<{count}Q", data, 8)
    assert at[0] == 8 * (count + 1) and at[-1] == len(data), at
    parts = [data[start:end] for start, end in zip(at, at[1:])]
    names = ("header", "parent_header", "metadata", "content")
    message: Message = {name: json.loads(part) for name, part in zip(names, parts[1:5])}
    message |= {"channel": parts[0].decode(), "buffers": parts[5:]}
    message["msg_type"] = message["header"]["msg_type"]
    message["msg_id"] = message["header"]["msg_id"]
    return message


def pack_old(message: Message, buffers: list[bytes]) -> bytes:
    parts = [json.dumps(message).encode(), *buffers]
    at = [4 * (len(parts) + 1)]
    for part in parts[:-1]:
        at.append(at[-1] + len(part))
    return struct.pack(f"!{len(at) + 1}I", len(at), *at) + b"".join(parts)


def unpack_old(data: bytes) -> Message:
    (count,) = struct.unpack_from("!I", data)
    at = [*struct.unpack_from(f"!{count}I", data, 4), len(data)]
    parts = [data[start:end] for start, end in zip(at, at[1:])]
    message: Message = json.loads(parts[0])
    assert message["buffers"] == []
    message["buffers"] = parts[1:]
    return message


@dataclasses.dataclass
class Run:
    """All that was heard of a request, in order."""

    id: str
    messages: list[Message]

    def of(self, *kinds: str) -> list[Any]:
        return [m["content"] for m in self.messages if m["msg_type"] in kinds]

    @property
    def kinds(self) -> list[str]:
        return [m["msg_type"] for m in self.messages]

    @property
    def reply(self) -> Message:
        last: Message = self.messages[-1]["content"]
        assert self.messages[-1]["channel"] in ("shell", "control"), self.messages[-1]
        return last

    @property
    def states(self) -> list[str]:
        return [content["execution_state"] for content in self.of("status")]

    def text(self, stream: str = "stdout") -> str:
        return "".join(part["text"] for part in self.of("stream") if part["name"] == stream)

    @property
    def result(self) -> str:
        (content,) = self.of("execute_result")
        return str(content["data"]["text/plain"])


class Channels:
    """One connection to a kernel."""

    def __init__(
        self, port: int, kernel: str, *, v1: bool = False, session: str = "", query: str = ""
    ) -> None:
        self.v1, self.session = v1, session or uuid.uuid4().hex
        more = f"Sec-WebSocket-Protocol: {V1}\r\n".encode() if v1 else b""
        path = f"/api/kernels/{kernel}/channels?session_id={self.session}{query}"
        self.socket = Socket(port, more=more, path=path)
        assert self.socket.answer.header("Sec-WebSocket-Protocol") == (V1 if v1 else None)
        self.strays: list[Message] = []  # of requests that nobody waits for

    def __enter__(self) -> Channels:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self.socket.sock.close()

    def send(
        self,
        kind: str,
        content: Message,
        channel: str = "shell",
        buffers: list[bytes] | None = None,
    ) -> str:
        ident = uuid.uuid4().hex
        header = {
            "msg_id": ident,
            "msg_type": kind,
            "username": "test",
            "session": self.session,
            "date": "2026-01-01T00:00:00.000000Z",
            "version": "5.3",
        }
        message = {"header": header, "parent_header": {}, "metadata": {}, "content": content}
        if self.v1:
            self.socket.send(frame(BINARY, pack_v1(channel, message, buffers or ())))
        elif buffers:
            data = pack_old(message | {"channel": channel}, buffers)
            self.socket.send(frame(BINARY, data))
        else:
            text = json.dumps(message | {"channel": channel, "buffers": []})
            self.socket.send(frame(TEXT, text.encode()))
        return ident

    def hear(self) -> Message:
        """The next message."""
        got = self.socket.frame()
        while got.opcode in (9, 10):
            got = self.socket.frame()
        if self.v1:
            assert got.opcode == BINARY, got
            return unpack_v1(got.payload)
        if got.opcode == BINARY:
            return unpack_old(got.payload)
        assert got.opcode == TEXT, got
        message: Message = json.loads(got.payload)
        return message

    def until(self, wanted: Callable[[Message], bool]) -> Message:
        """Reads on until such a message; the others are strays."""
        while not wanted(message := self.hear()):
            self.strays.append(message)
        return message

    def stray(self, wanted: Callable[[Message], bool]) -> Message:
        """The first of those heard already, or the next to come."""
        for at, message in enumerate(self.strays):
            if wanted(message):
                return self.strays.pop(at)
        return self.until(wanted)

    def finish(self, ident: str, answers: Iterable[str] = ()) -> Run:
        """Reads to the reply of this request: all of iopub was before it, from busy to idle."""
        run, rest = Run(ident, []), list(answers)
        while not run.messages or not run.messages[-1]["msg_type"].endswith("_reply"):
            message = self.hear()
            if message["parent_header"].get("msg_id") != ident:
                self.strays.append(message)
                continue
            run.messages.append(message)
            if message["msg_type"] == "input_request":
                assert message["channel"] == "stdin"
                self.send("input_reply", {"value": rest.pop(0)}, "stdin")
        assert run.states == ["busy", "idle"] and run.kinds[0] == "status", run.kinds
        assert run.kinds[-2] == "status", run.kinds
        return run

    def finish_late(self, ident: str) -> Run:
        """The same of one whose beginning was heard already."""
        reply = self.until(
            lambda m: m["msg_type"].endswith("_reply") and m["parent_header"]["msg_id"] == ident
        )
        return Run(ident, [reply])

    def ask(self, kind: str, channel: str = "shell", **content: Any) -> Run:
        return self.finish(self.send(kind, content, channel))

    def start(self, code: str, **fields: Any) -> str:
        content = {
            "code": code,
            "silent": False,
            "store_history": True,
            "user_expressions": {},
            "allow_stdin": True,
            "stop_on_error": True,
        }
        return self.send("execute_request", content | fields)

    def run(self, code: str, answers: Iterable[str] = (), **fields: Any) -> Run:
        return self.finish(self.start(code, **fields), answers)

    def ok(self, code: str, **fields: Any) -> Run:
        run = self.run(code, **fields)
        assert run.reply["status"] == "ok", run.reply
        return run


def printed(text: str) -> Callable[[Message], bool]:
    return lambda m: m["msg_type"] == "stream" and text in m["content"]["text"]


def is_state(state: str) -> Callable[[Message], bool]:
    return lambda m: m["msg_type"] == "status" and m["content"]["execution_state"] == state


class Jupyter:
    """The REST API; leaves nothing behind."""

    def __init__(self, port: int, **headers: str) -> None:
        self.port = port
        self.client = Client(port, **headers)

    def ask(self, method: str, path: str, value: Any = None, **headers: str) -> Reply:
        return self.client.ask(method, path, value, **headers)

    def get(self, path: str) -> Any:
        reply = self.ask("GET", path)
        assert reply.status == 200, reply
        return reply.json

    def kernel(self, name: str | None = None, **fields: Any) -> str:
        value = fields | ({} if name is None else {"name": name})
        reply = self.ask("POST", "/api/kernels", value)
        assert reply.status == 201, reply
        assert reply.header("Location") == f"/api/kernels/{reply.json['id']}"
        return str(reply.json["id"])

    def open(self, kernel: str | None = None, **fields: Any) -> Channels:
        return Channels(self.port, kernel or self.kernel(), **fields)

    def wipe(self) -> None:
        """All sandboxes, with the kernels in them."""
        for box in self.client.listed(limit=1000)["sandboxes"]:
            assert self.ask("DELETE", f"/v1/sandboxes/{box['id']}").status in (204, 404, 410)


def refused(reply: Reply, status: int, *words: str) -> None:
    """An error as Jupyter's clients read it, and as ours do."""
    assert reply.status == status, reply
    assert reply.json["message"] and "reason" in reply.json and reply.json["error"]["remediation"]
    for word in words:
        assert word in reply.json["message"], reply.json


# ---- jupyter-server ----


def free_port() -> int:
    """Nobody has it now; jupyter-server does not tell which one it took."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def answers(port: int) -> bool:
    try:
        return bool(Jupyter(port).get("/api"))
    except OSError:
        return False


@contextmanager
def jupyter_server(place: Path, *options: str, program: str = "jupyter-server") -> Iterator[int]:
    """A jupyter-server (or -notebook) of its own, with all its files there; its port."""
    port = free_port()
    app, root = {
        "jupyter-server": ("ServerApp", "root_dir"),
        "jupyter-notebook": ("NotebookApp", "notebook_dir"),
    }[program]
    places = {f"JUPYTER_{name}_DIR": str(place) for name in ("RUNTIME", "CONFIG", "DATA")}
    words = [
        program,
        *options,
        "--no-browser",
        "--allow-root",
        "--ip=127.0.0.1",
        f"--port={port}",
        f"--{app}.port_retries=0",
        f"--{app}.token=",
        f"--{app}.password=",
        f"--{app}.disable_check_xsrf=True",
        f"--{app}.{root}={place}",
    ]
    with (place / "log").open("w") as log:
        env = os.environ | places | {"IPYTHONDIR": str(place)}
        process = subprocess.Popen(words, env=env, stdout=log, stderr=log)
    try:
        assert eventually(lambda: answers(port)), (place / "log").read_text()
        yield port
    finally:
        process.terminate()
        process.wait()


def use_services(port: int, *key: str) -> None:
    """JupyterLab's client library against a server, all that it has of kernels and sessions."""
    if not SERVICES.exists() or shutil.which("node") is None:
        pytest.skip("@jupyterlab/services is not installed: script/setup --npm")
    done = subprocess.run(
        ["node", str(HERE / "lab_services.js"), f"http://127.0.0.1:{port}/", str(SERVICES), *key],
        capture_output=True,
        text=True,
        timeout=HANG_S,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])  # behind what the library logs
    assert found["specs"][0] == "python3" and found["info"] == "python"
    assert found["text"] == "hello\n" and found["result"] == "42"
    assert found["matches"] == ["number"] and found["input"] == "'typed'"
    assert found["interrupted"] == "KeyboardInterrupt" and found["restarted"] == "NameError"
    assert found["echo"] == {"data": {"b": 2}, "bytes": [1, 2, 3]}
    assert found["sessions"] == 1 and found["after"] == []

"""A live sandbox over HTTP, for the tests of its files."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote, quote_from_bytes

from harness import Service
from http_client import JSON, Connection, Reply, ask

BLOCK = 1 << 20


class Box:
    """One sandbox; paths are as its program would write them, from the workspace."""

    def __init__(self, port: int, **fields: Any) -> None:
        self.port = port
        reply = ask(port, "POST", "/v1/sandboxes", json.dumps(fields).encode(), JSON)
        assert reply.status == 201, (reply.status, reply.body)
        self.url = f"/v1/sandboxes/{reply.json['id']}"

    def at(self, path: str | bytes, what: str = "files", **query: Any) -> str:
        if isinstance(path, bytes):
            path = quote_from_bytes(path)
        else:
            path = quote(path)
        words = "&".join(f"{name}={quote(str(value))}" for name, value in query.items())
        return f"{self.url}/{what}/{path}" + (f"?{words}" if words else "")

    def get(self, path: str | bytes = "", headers: dict[str, str] = {}, **query: Any) -> Reply:
        return ask(self.port, "GET", self.at(path, **query), None, headers)

    def put(self, path: str | bytes, data: bytes, **query: Any) -> Reply:
        return ask(self.port, "PUT", self.at(path, **query), data)

    def delete(self, path: str | bytes, **query: Any) -> Reply:
        return ask(self.port, "DELETE", self.at(path, **query))

    def operate(self, path: str | bytes, **fields: Any) -> Reply:
        return ask(self.port, "POST", self.at(path), json.dumps(fields).encode(), JSON)

    def archive(self, path: str = "") -> Reply:
        return ask(self.port, "GET", self.at(path, "archive"))

    def unpack(self, path: str, data: bytes) -> Reply:
        return ask(self.port, "PUT", self.at(path, "archive"), data)

    def paths(self, path: str = "", **query: Any) -> list[str]:
        reply = self.get(path, **query)
        assert reply.status == 200, reply.body
        return [entry["path"] for entry in reply.json["entries"]]

    def read(self, path: str) -> bytes:
        reply = self.get(path)
        assert reply.status == 200, (path, reply.status, reply.body)
        return reply.body

    def result(self, code: str, **fields: Any) -> dict[str, Any]:
        body = json.dumps({"code": code, **fields}).encode()
        reply = ask(self.port, "POST", f"{self.url}/execute", body, JSON)
        assert reply.status == 200, (reply.status, reply.body)
        result: dict[str, Any] = reply.json
        assert result["status"] == "ok", result
        return result

    def run(self, code: str, **fields: Any) -> str:
        return str(self.result(code, **fields)["stdout"])

    def info(self) -> Any:
        return ask(self.port, "GET", self.url).json

    @contextlib.contextmanager
    def running(self, code: str) -> Iterator[None]:
        """The code runs meanwhile: it defines step(), which is called until the test is done."""
        whole = (
            f"{code}\nimport os, time\nopen('/tmp/begun', 'w').close()\n"
            "while not os.path.exists('/tmp/enough'):\n    step()\n    time.sleep(0.0005)\n"
        )
        look = "import os; print(os.path.exists('/tmp/begun'))"
        other = self.another_kernel()
        with ThreadPoolExecutor(1) as pool:
            work = pool.submit(self.run, whole, timeout_ms=60000)
            while not work.done() and self.run(look, kernel_id=other) == "False\n":
                pass
            try:
                yield
            finally:
                self.run("open('/tmp/enough', 'w').close()", kernel_id=other)
            work.result()

    def another_kernel(self) -> str:
        reply = ask(self.port, "POST", f"{self.url}/kernels", b"{}", JSON)
        assert reply.status == 201, reply.body
        return str(reply.json["id"])

    def end(self) -> None:
        assert ask(self.port, "DELETE", self.url).status in (204, 410)

    def __enter__(self) -> Box:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


def send_chunks(connection: Connection, path: str, blocks: Iterator[bytes]) -> Reply:
    """PUT, by chunks; what the server does not take any more is not sent."""
    connection.send("PUT", path, None, {"Transfer-Encoding": "chunked"})
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        for block in blocks:
            connection.sock.sendall(b"%x\r\n%s\r\n" % (len(block), block))
        connection.sock.sendall(b"0\r\n\r\n")
    return connection.reply("PUT")


def box_of(service: Service, **fields: Any) -> Box:
    return Box(service.port, **fields)

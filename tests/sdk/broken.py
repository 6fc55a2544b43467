"""A server that answers as a test says, and keeps what it was asked."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Callable
from typing import Any, NamedTuple


class Asked(NamedTuple):
    method: str
    path: str
    headers: Any
    body: bytes

    @property
    def key(self) -> str | None:
        found = self.headers.get("Idempotency-Key")
        return None if found is None else str(found)


class Answer(NamedTuple):
    """None for a body: the connection is closed without a reply."""

    body: Any = b""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def bytes(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


class Hostile:
    def __init__(self, answer: Callable[[Asked], Answer]) -> None:
        self.asked: list[Asked] = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                asked = Asked(self.command, self.path, self.headers, body)
                outer.asked.append(asked)
                said = answer(asked)
                if said.body is None:
                    self.close_connection = True
                    return
                self.send_response(said.status)
                for name, value in (*said.headers, ("X-Request-Id", "req_1")):
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(said.bytes)))
                self.end_headers()
                if asked.method != "HEAD":
                    self.wfile.write(said.bytes)

            do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = answer

            def log_message(self, *_: Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __enter__(self) -> Hostile:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def count(self, start: str) -> int:
        return sum(f"{asked.method} {asked.path}".startswith(start) for asked in self.asked)


def refusal(code: str, status: int, **headers: str) -> Answer:
    error = {"code": code, "message": code, "remediation": "none", "retryable": True}
    more = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Answer({"error": error, "detail": code}, status, more)

"""A line between a client and the real server that loses connections when a test says so."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Callable

PIECE = 1 << 16


class Lossy:
    """Passes bytes on. `lose(when)` says at which bytes from the server both ends of a connection
    are closed, once. What the client sent is in `requests`."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.requests: list[bytes] = []
        self.lost = 0
        self.received = 0  # bytes, by clients
        self._when: Callable[[bytes], bool] | None = None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Lossy:
        return self

    def __exit__(self, *_: object) -> None:
        shut(self._listener)
        for end in self._open:
            shut(end)

    def lose(self, when: Callable[[bytes], bool]) -> None:
        self._when = when

    def count(self, start: bytes) -> int:
        return sum(request.startswith(start) for request in self.requests)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self.port))
                self._open += [client, server]
                for work in (self._up, self._down):
                    threading.Thread(target=work, args=(client, server), daemon=True).start()

    def _up(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(PIECE):
                self.requests.append(data)
                server.sendall(data)
        shut(server)

    def _down(self, client: socket.socket, server: socket.socket) -> None:
        seen = b""
        with contextlib.suppress(OSError):
            while data := server.recv(PIECE):
                seen += data
                if self._when and self._when(seen):
                    self._when = None
                    self.lost += 1
                    break
                client.sendall(data)
                self.received += len(data)
        shut(client)
        shut(server)


def shut(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()

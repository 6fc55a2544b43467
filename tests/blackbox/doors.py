"""What the tests of sandboxes with ports of their own share."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import Any

from http_client import Connection, Reply, ask
from jupyter import Jupyter
from live import Box, Client

CLOSED = (ConnectionError, TimeoutError)


class Listening(Box):
    """A sandbox with a port of its own."""

    def __init__(self, client: Client, **fields: Any) -> None:
        super().__init__(client, **({"listen": True} | fields))
        self.door: int = self.made["port"]
        assert isinstance(self.door, int) and self.door != client.port, self.made

    def __enter__(self) -> Listening:
        return self

    def at(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Reply:
        """At its own port, with the key of its client."""
        return ask(self.door, method, path, body, self.client.headers | headers)

    @property
    def jupyter(self) -> Jupyter:
        return Jupyter(self.door, **self.client.headers)


def is_open(port: int) -> bool:
    try:
        with Connection(port) as connection:
            return connection.ask("GET", "/health").status == 200
    except CLOSED:
        return False


@contextlib.contextmanager
def taken(port: int) -> Iterator[None]:
    """Somebody else listens there."""
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("127.0.0.1", port))
        sock.listen()
        yield

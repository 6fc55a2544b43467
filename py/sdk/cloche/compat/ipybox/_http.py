"""How these clients connect: to a sandbox's own port, with the server's key."""

from __future__ import annotations

from typing import Optional

import httpx

from cloche._settings import CONNECT_S, Server


def http_client(server: Server) -> httpx.AsyncClient:
    """What the server does may take as long as it likes."""
    return httpx.AsyncClient(
        base_url=server.base,
        headers=server.headers,
        timeout=httpx.Timeout(None, connect=CONNECT_S),
        **server.options(),
    )


def server_at(host: str, port: int, api_key: Optional[str]) -> Server:
    return Server(f"http://{host}:{port}", api_key)

"""The clients of those who made none: one for each server and key, so that its connections are
kept; of async code for each event loop, which connections cannot leave."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from typing import TYPE_CHECKING, Dict, MutableMapping, Tuple

if TYPE_CHECKING:
    from cloche._async.client import AsyncClient
    from cloche._sync.client import Client

Who = Tuple[str, str]
_clients: Dict[Who, Client] = {}
_async_clients: MutableMapping[
    asyncio.AbstractEventLoop, Dict[Who, AsyncClient]
] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def _who() -> Who:
    return os.environ.get("CLOCHE_SERVER", ""), os.environ.get("CLOCHE_API_KEY", "")


def default_client() -> Client:
    from cloche._sync.client import Client

    with _lock:
        client = _clients.get(_who())
        if client is None:
            client = _clients[_who()] = Client()
    return client


def async_default_client() -> AsyncClient:
    from cloche._async.client import AsyncClient

    clients = _async_clients.setdefault(asyncio.get_running_loop(), {})
    client = clients.get(_who())
    if client is None:
        client = clients[_who()] = AsyncClient()
    return client


def _forget() -> None:
    """A child after fork() must not use the connections of its parent."""
    global _lock
    _lock = threading.Lock()
    _clients.clear()
    _async_clients.clear()


os.register_at_fork(after_in_child=_forget)

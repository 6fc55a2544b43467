"""One call of `websockets`, whose newer versions have other names for the same."""

from __future__ import annotations

import inspect
from typing import Any, Dict

import websockets

from cloche._sockets import straight

MESSAGE_MAX = 64 << 20


async def open_websocket(url: str, headers: Dict[str, str], heartbeat_s: float) -> Any:
    connect: Any = getattr(websockets, "connect")  # of the classes that it may be
    known = inspect.signature(connect.__init__).parameters
    options: Dict[str, Any] = {"max_size": MESSAGE_MAX, "ping_interval": heartbeat_s}
    options["additional_headers" if "additional_headers" in known else "extra_headers"] = headers
    if "proxy" in known:
        options["proxy"] = None
    return await straight(connect)(url, **options)

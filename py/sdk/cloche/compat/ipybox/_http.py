"""How these clients connect: to ports of this machine, with the server's key."""

from __future__ import annotations

import os
from typing import Any, Dict, Optional

import httpx

CONNECT_S = 15.0


def key_headers(api_key: Optional[str]) -> Dict[str, str]:
    """An empty key is none."""
    key = os.environ.get("CLOCHE_API_KEY", "") if api_key is None else api_key
    return {"Authorization": f"Bearer {key}"} if key else {}


def http_client(base_url: str, headers: Dict[str, str], **more: Any) -> httpx.AsyncClient:
    """What the server does may take as long as it likes. No proxy stands in between."""
    return httpx.AsyncClient(
        base_url=base_url,
        headers=headers,
        timeout=httpx.Timeout(None, connect=CONNECT_S),
        trust_env=False,
        **more,
    )

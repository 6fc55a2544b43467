"""What goes wrong, by the names that ipybox's users catch."""

from __future__ import annotations

import builtins
from typing import Any, Optional, Tuple

import httpx

_bases: Tuple[Any, ...] = (Exception,)
try:  # ipybox lets that one through, so it is what its users catch
    from aiohttp import ClientResponseError as _Theirs

    _bases = (_Theirs,)
except ImportError:
    pass


class ConnectionError(builtins.ConnectionError):
    """There is no connection to a kernel or a resource server."""


class ExecutionError(Exception):
    """The code raised something; `trace` is its traceback, with colours."""

    def __init__(self, message: str, trace: Optional[str] = None) -> None:
        super().__init__(message)
        self.trace = trace


class ClientResponseError(*_bases):  # type: ignore[misc]
    """A refusal of the resource server; `message` says why."""

    def __init__(self, status: int, message: str) -> None:
        Exception.__init__(self, message)
        self.request_info, self.history, self.headers = None, (), None
        self.status, self.message = status, message

    def __str__(self) -> str:
        return f"{self.status}, message={self.message!r}"

    def __repr__(self) -> str:
        return f"ClientResponseError({self})"

    def __reduce__(self) -> Any:
        return type(self), (self.status, self.message)


async def check(reply: httpx.Response) -> httpx.Response:
    """Raises for a reply that is no success."""
    if reply.is_success:
        return reply
    await reply.aread()
    try:
        found = reply.json()
        why = found.get("detail") or found["error"]["message"]
    except (ValueError, KeyError, TypeError, AttributeError):
        why = reply.reason_phrase
    raise ClientResponseError(reply.status_code, str(why))

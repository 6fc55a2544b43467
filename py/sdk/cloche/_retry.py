"""When a request is sent again: never when that could run something twice.

A GET, HEAD, PUT, PATCH or DELETE may be repeated, a POST only with an Idempotency-Key, under which
the server carries it out once. A server that was started anew has forgotten its keys: the transport
asks how long it is up before it sends such a POST again."""

from __future__ import annotations

import random
import time
from typing import Optional

from cloche._errors import APIError, BadReply, ClocheError

FIRST_S = 0.1
MOST_S = 2.0
# Part of what was asked may have been done.
STARTED = ("sandbox_lost", "client_gone")


class Tries:
    """The attempts at one request, within so many seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._began = time.monotonic()
        self._pause = FIRST_S

    def next_pause(self, least: Optional[float] = None) -> Optional[float]:
        """How long to wait before the next attempt; None: that was the last one. Who was told the
        same Retry-After must not come back at the same moment."""
        pause = (least or 0.0) + self._pause * random.uniform(0.5, 1.0)
        self._pause = min(2 * self._pause, MOST_S)
        if time.monotonic() - self._began + pause > self._seconds:
            return None
        return pause


def passes(error: ClocheError, is_post: bool) -> bool:
    """Whether the same request may be taken a little later."""
    if isinstance(error, BadReply):  # of a proxy, while the server is away
        return not is_post and error.status in (429, 502, 503, 504)
    if not isinstance(error, APIError) or not error.retryable:
        return False
    if error.code == "idempotency_key_busy":
        return True
    return error.status in (429, 503) and not (is_post and error.code in STARTED)

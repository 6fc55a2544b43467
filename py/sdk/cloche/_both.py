"""The few things that differ between async code and plain code, each in both forms. The plain
source is made from the async one by script/sdk-generate, which drops `async_` from names."""

from __future__ import annotations

import asyncio
import inspect
import time
from typing import Any, AsyncIterator, Callable, Iterator, TypeVar

from cloche._uploads import Upload

T = TypeVar("T")


async def async_sleep(seconds: float) -> None:
    await asyncio.sleep(seconds)


def sleep(seconds: float) -> None:
    time.sleep(seconds)


async def async_call(handler: Callable[..., Any], *args: Any) -> Any:
    """Calls what may be a coroutine function."""
    value = handler(*args)
    return await value if inspect.isawaitable(value) else value


def call(handler: Callable[..., Any], *args: Any) -> Any:
    return handler(*args)


async def async_aside(work: Callable[..., T], *args: Any) -> T:
    """Work with files of this machine, in a thread."""
    return await asyncio.get_running_loop().run_in_executor(None, lambda: work(*args))


def aside(work: Callable[..., T], *args: Any) -> T:
    return work(*args)


async def async_pieces_of(upload: Upload) -> AsyncIterator[bytes]:
    pieces = upload.pieces()
    while True:
        piece: bytes = await async_aside(_next, pieces)
        if not piece:
            return
        yield piece


def _next(pieces: Iterator[bytes]) -> bytes:
    return next(pieces, b"")


def pieces_of(upload: Upload) -> Iterator[bytes]:
    return upload.pieces()

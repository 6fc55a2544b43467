"""The package `ipybox` (0.6) over a cloche server: the same names, where a container is a live
sandbox with a port of its own. Replace `from ipybox import …` by `from cloche.compat.ipybox import
…`. The server is CLOCHE_SERVER (http://127.0.0.1:8000), the key CLOCHE_API_KEY. What differs is in
docs/ipybox.md."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, Callable, TypeVar

from cloche.compat.ipybox._container import DEFAULT_TAG, ExecutionContainer
from cloche.compat.ipybox._errors import ClientResponseError, ConnectionError, ExecutionError
from cloche.compat.ipybox._executor import Execution, ExecutionClient, ExecutionResult
from cloche.compat.ipybox._resource import ResourceClient

__all__ = [
    "DEFAULT_TAG",
    "ClientResponseError",
    "ConnectionError",
    "Execution",
    "ExecutionClient",
    "ExecutionContainer",
    "ExecutionError",
    "ExecutionResult",
    "ResourceClient",
    "arun",
]

T = TypeVar("T")


async def arun(func: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Calls a function that blocks, in a thread."""
    return await asyncio.get_running_loop().run_in_executor(None, partial(func, *args, **kwargs))

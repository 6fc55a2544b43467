"""The same as `cloche`, for async code: `await run(...)`, `AsyncClient`, `AsyncSandbox`."""

from cloche._async.api import run
from cloche._async.client import AsyncClient
from cloche._async.commands import AsyncCommand
from cloche._async.events import AsyncEvents
from cloche._async.kernels import AsyncKernel
from cloche._async.sandbox import AsyncSandbox
from cloche._async.talk import AsyncTalk
from cloche._async.terminal import AsyncTerminal

__all__ = [
    "AsyncClient",
    "AsyncCommand",
    "AsyncEvents",
    "AsyncKernel",
    "AsyncSandbox",
    "AsyncTalk",
    "AsyncTerminal",
    "run",
]

"""The client of cloche, which runs Python in sandboxes: programs with `run()`, and live sandboxes
that keep their variables, files and commands with `Sandbox`. The same for async code is in
`cloche.aio`. The server is that of CLOCHE_SERVER, with the key in CLOCHE_API_KEY."""

from cloche import errors
from cloche._errors import APIError, ClocheError, ConnectionLost, ExecutionFailed, NoServer
from cloche._events import Event
from cloche._sync.api import run
from cloche._sync.client import Client
from cloche._sync.commands import Command
from cloche._sync.events import Events
from cloche._sync.kernels import Kernel
from cloche._sync.sandbox import Sandbox
from cloche._sync.talk import Talk
from cloche._sync.terminal import Terminal
from cloche._version import __version__
from cloche.results import CommandResult, Display, Result

__all__ = [
    "APIError",
    "Client",
    "ClocheError",
    "Command",
    "CommandResult",
    "ConnectionLost",
    "Display",
    "Event",
    "Events",
    "ExecutionFailed",
    "Kernel",
    "NoServer",
    "Result",
    "Sandbox",
    "Talk",
    "Terminal",
    "__version__",
    "errors",
    "run",
]

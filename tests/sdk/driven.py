"""The async package with the interface of the plain one, so that the same tests run with both: what
is awaitable is awaited on one event loop, and async iterators are read on it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from typing import Any

import cloche
import cloche.aio
from cloche import _default


class World:
    """What tests use of the package."""

    name = "plain"
    Client: Any = cloche.Client
    Sandbox: Any = cloche.Sandbox
    run: Any = staticmethod(cloche.run)


class Driven:
    """An async object, for plain code."""

    def __init__(self, it: Any, loop: asyncio.AbstractEventLoop) -> None:
        self.__dict__.update(_it=it, _loop=loop)

    def __getattr__(self, name: str) -> Any:
        return wrapped(getattr(self._it, "aclose" if name == "close" else name), self._loop)

    def __call__(self, *args: Any, **options: Any) -> Any:
        async def call() -> Any:  # some look for the running loop
            value = self._it(*map(bare, args), **{k: bare(v) for k, v in options.items()})
            return await value if inspect.isawaitable(value) else value

        return wrapped(self._loop.run_until_complete(call()), self._loop)

    def __iter__(self) -> Iterator[Any]:
        rest = self._it.__aiter__()
        while True:
            try:
                yield wrapped(self._loop.run_until_complete(rest.__anext__()), self._loop)
            except StopAsyncIteration:
                return

    def __enter__(self) -> Any:
        return wrapped(self._loop.run_until_complete(self._it.__aenter__()), self._loop)

    def __exit__(self, *error: Any) -> None:
        self._loop.run_until_complete(self._it.__aexit__(*error))

    def __repr__(self) -> str:
        return repr(self._it)


def bare(value: Any) -> Any:
    return value._it if isinstance(value, Driven) else value


def wrapped(value: Any, loop: asyncio.AbstractEventLoop) -> Any:
    is_ours = type(value).__module__.startswith("cloche._async")
    if is_ours or inspect.isroutine(value) or inspect.isasyncgen(value):
        return Driven(value, loop)
    return value


class AsyncWorld(World):
    name = "async"

    def __enter__(self) -> World:
        self.loop = asyncio.new_event_loop()
        self.Client = Driven(cloche.aio.AsyncClient, self.loop)
        self.Sandbox = Driven(cloche.aio.AsyncSandbox, self.loop)
        self.run = Driven(cloche.aio.run, self.loop)
        return self

    def __exit__(self, *_: object) -> None:
        for client in _default._async_clients.pop(self.loop, {}).values():
            self.loop.run_until_complete(client.aclose())
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()


PLAIN = World()
ASYNC = AsyncWorld()

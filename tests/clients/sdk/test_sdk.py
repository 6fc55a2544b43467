"""The SDK with the newest httpx and websockets: its own tests run with those of Debian."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import websockets
from cloche import Sandbox, run
from cloche.aio import AsyncSandbox


def test_the_versions_are_those_that_were_pinned() -> None:
    assert (httpx.__version__, websockets.__version__) == ("0.28.1", "17.4")


def test_programs_and_live_sandboxes(service: Any) -> None:
    assert run("print(6 * 7)").stdout == "42\n"
    with Sandbox.create(files={"a.txt": "text"}) as box:
        assert box.run("open('a.txt').read()").text == "'text'"
        assert box.commands.run("cat a.txt").stdout == "text"
        assert box.files.read("a.txt") == b"text"
        seen: list[str] = []
        box.run("for i in range(3): print(i)", on_stdout=seen.append)
        assert seen == ["0", "1", "2"]


def test_async_code_and_a_terminal(service: Any) -> None:
    async def use() -> str:
        async with await AsyncSandbox.create() as box:
            failed = await box.run("1 / 0")
            assert failed.error and failed.error.name == "ZeroDivisionError"
            async with await box.commands.terminal() as terminal:
                await terminal.write(b"echo $((6 * 7)); exit\n")
                return b"".join([piece async for piece in terminal]).decode()

    assert "42" in asyncio.run(use())

"""The Python SDK of MCP as a client: stdio and HTTP, each era that it speaks; and the cases of
ipybox's own test of `ipybox mcp`, which its package does not carry, over `cloche mcp`."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from harness import cloche_bin
from mcp import Client, StdioServerParameters

Use = Callable[[Any], Awaitable[None]]


def stdio(service: Any, *words: str) -> Any:
    args = ["mcp", "--server", service.url, *words]
    return StdioServerParameters(command=str(cloche_bin()), args=args)


def use(server: Any, what: Use, **options: Any) -> None:
    async def run() -> None:
        async with Client(server, **options) as client:
            await what(client)

    asyncio.run(run())


def texts(result: Any) -> str:
    return "\n".join(part.text for part in result.content if part.type == "text")


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("way", ["stdio", "http"])
def test_state_images_and_errors(service: Any, way: str, mode: str) -> None:
    async def what(client: Any) -> None:
        modern = client.protocol_version >= "2026"
        assert modern == (mode == "auto"), client.protocol_version
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert {"run_python", "run_shell", "sandbox"} <= names
        await client.call_tool("run_python", {"code": "x = 41"})
        answer = await client.call_tool("run_python", {"code": "print(x + 1)"})
        assert texts(answer).startswith("42") and not answer.is_error
        code = "import matplotlib.pyplot as p; p.plot([1, 2]); p.show()"
        figure = await client.call_tool("run_python", {"code": code})
        (image,) = (part for part in figure.content if part.type == "image")
        assert base64.b64decode(image.data).startswith(b"\x89PNG")
        broken = await client.call_tool("run_python", {"code": "print('before'); 1/0"})
        assert broken.is_error and "before" in texts(broken)
        assert "ZeroDivisionError" in texts(broken)
        await client.call_tool("sandbox", {"action": "delete"})

    server = stdio(service) if way == "stdio" else f"{service.url}/mcp?sandbox=sdk"
    use(server, what, mode=mode)


# ---- ipybox's cases ----


def box(service: Any, allowed: Path, what: Use) -> None:
    words = ("--tools", "ipybox", "--allowed-dir", str(allowed))
    use(stdio(service, *words), what, mode="legacy")


def test_ipybox_tools(service: Any, tmp_path: Path) -> None:
    async def what(client: Any) -> None:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert names == {"execute_ipython_cell", "upload_file", "download_file", "reset"}

    box(service, tmp_path, what)


def test_ipybox_cells(service: Any, tmp_path: Path) -> None:
    async def what(client: Any) -> None:
        async def cell(code: str, **more: Any) -> Any:
            return await client.call_tool("execute_ipython_cell", {"code": code, **more})

        assert texts(await cell("print('Hello, World!')")) == "Hello, World!"
        await cell("x = 42")
        assert texts(await cell("print(x)")) == "42"
        empty = await cell("y = 1")
        assert [part.text for part in empty.content] == [""]
        broken = await cell("print('Before error')\nraise ValueError('Test error')")
        assert broken.is_error
        for word in ("Error executing tool execute_ipython_cell", "ValueError", "Test error"):
            assert word in texts(broken)
        assert "Before error" in texts(broken)
        late = await cell("import time; time.sleep(100)", timeout=1)
        assert late.is_error
        assert texts(await cell("print(x)")) == "42"

    box(service, tmp_path, what)


def test_ipybox_reset(service: Any, tmp_path: Path) -> None:
    async def what(client: Any) -> None:
        run = {"code": "x = 42\nopen('kept', 'w').write('k')"}
        await client.call_tool("execute_ipython_cell", run)
        done = await client.call_tool("reset", {})
        assert not done.is_error and list(done.content) == []
        gone = await client.call_tool("execute_ipython_cell", {"code": "print(x)"})
        assert gone.is_error and "NameError" in texts(gone)
        kept = await client.call_tool(
            "execute_ipython_cell", {"code": "print(open('kept').read())"}
        )
        assert texts(kept) == "k"

    box(service, tmp_path, what)


def test_ipybox_files(service: Any, tmp_path: Path) -> None:
    allowed, other = tmp_path / "allowed", tmp_path / "other"
    allowed.mkdir()
    other.mkdir()
    (allowed / "in.txt").write_text("content")
    (other / "in.txt").write_text("content")

    async def what(client: Any) -> None:
        async def move(tool: str, relpath: str, local: Path) -> Any:
            return await client.call_tool(tool, {"relpath": relpath, "local_path": str(local)})

        done = await move("upload_file", "data/up.txt", allowed / "in.txt")
        assert not done.is_error and list(done.content) == []
        code = {"code": "t = open('data/up.txt').read()\nopen('down.txt', 'w').write(t.upper())"}
        await client.call_tool("execute_ipython_cell", code)
        done = await move("download_file", "down.txt", allowed / "deep" / "out.txt")
        assert not done.is_error and (allowed / "deep" / "out.txt").read_text() == "CONTENT"
        for tool, word in (("upload_file", "upload"), ("download_file", "download")):
            refused = await move(tool, "down.txt", other / "in.txt")
            assert refused.is_error
            assert f"is not within allowed directories for {word}" in texts(refused)
        missing = await move("upload_file", "x", allowed / "none")
        assert missing.is_error and "File not found" in texts(missing)
        assert (await move("download_file", "none", allowed / "x")).is_error

    box(service, allowed, what)

"""An agent of the OpenAI Agents SDK with cloche's tools over MCP: Python, a shell and files."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from agents import Agent, Runner
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp

# Its own limit on an answer is five seconds, which is little for a program.
PATIENCE_S = 300


def on_stdio(command: str = "cloche", *args: str) -> Any:
    """cloche mcp as a process of ours: its sandbox ends with it."""
    return MCPServerStdio(
        {"command": command, "args": ["mcp", *args]},
        name="cloche",
        client_session_timeout_seconds=PATIENCE_S,
    )


def over_http(url: str, key: str = "") -> Any:
    """A server that runs already: http://127.0.0.1:8000."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return MCPServerStreamableHttp(
        {"url": f"{url}/mcp", "headers": headers},
        name="cloche",
        client_session_timeout_seconds=PATIENCE_S,
    )


async def ask(model: Any, question: str, server: Any) -> str:
    async with server:
        agent = Agent(
            name="Analyst",
            instructions="Compute with the tools; never guess.",
            mcp_servers=[server],
            model=model,
        )
        return str((await Runner.run(agent, question)).final_output)


if __name__ == "__main__":
    print(asyncio.run(ask(None, " ".join(sys.argv[1:]), on_stdio())))

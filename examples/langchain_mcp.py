"""A LangChain agent with cloche's tools over MCP, through LangChain's MCP adapters."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools


def on_stdio(command: str = "cloche", *args: str) -> dict[str, Any]:
    """cloche mcp as a process of ours: its sandbox ends with it."""
    return {"transport": "stdio", "command": command, "args": ["mcp", *args]}


def over_http(url: str, key: str = "") -> dict[str, Any]:
    """A server that runs already: http://127.0.0.1:8000."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return {"transport": "streamable_http", "url": f"{url}/mcp", "headers": headers}


async def ask(model: Any, question: str, server: dict[str, Any]) -> str:
    client = MultiServerMCPClient({"cloche": server})
    # One session for all calls. Without it each call has a session, and so a sandbox, of its own.
    async with client.session("cloche") as session:
        agent = create_agent(model, await load_mcp_tools(session))
        state = await agent.ainvoke({"messages": [("user", question)]})
        return str(state["messages"][-1].content)


if __name__ == "__main__":
    # A model by its name needs the package of its provider: pip install langchain-anthropic
    from langchain.chat_models import init_chat_model

    chosen = init_chat_model(sys.argv[1])
    print(asyncio.run(ask(chosen, " ".join(sys.argv[2:]), on_stdio())))

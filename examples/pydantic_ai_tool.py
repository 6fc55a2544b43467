"""An agent of Pydantic AI with a tool that runs Python in a sandbox of cloche."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from cloche.aio import AsyncSandbox
from pydantic_ai import Agent, ModelRetry, RunContext

agent: Agent[AsyncSandbox, str] = Agent(
    deps_type=AsyncSandbox, instructions="Compute with the tool; never guess."
)


@agent.tool
async def python(context: RunContext[AsyncSandbox], code: str) -> str:
    """Runs Python, as a cell of a notebook: variables and files stay. What the cell prints and the
    value of its last line are the answer."""
    result = await context.deps.run(code, timeout=60)
    if not result.ok:
        raise ModelRetry(f"{result.stdout}\n{result.failure}")
    return result.stdout + (result.text or "")


async def ask(model: Any, question: str) -> str:
    async with await AsyncSandbox.create() as box:
        return (await agent.run(question, model=model, deps=box)).output


if __name__ == "__main__":
    print(asyncio.run(ask("anthropic:claude-sonnet-5", " ".join(sys.argv[1:]))))

"""An agent of the OpenAI Agents SDK with a tool that runs Python in a sandbox of cloche."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from agents import Agent, Runner, function_tool
from cloche.aio import AsyncSandbox


def python_tool(box: AsyncSandbox) -> Any:
    @function_tool
    async def python(code: str) -> str:
        """Runs Python, as a cell of a notebook: variables and files stay.

        Args:
            code: the cell; what it prints and the value of its last line are the answer
        """
        result = await box.run(code, timeout=60)
        said = result.stdout + (result.text or "")
        return said if result.ok else f"{said}\n{result.failure}"

    return python


async def ask(model: Any, question: str) -> str:
    async with await AsyncSandbox.create() as box:
        agent = Agent(
            name="Analyst",
            instructions="Compute with the tool; never guess.",
            tools=[python_tool(box)],
            model=model,
        )
        return str((await Runner.run(agent, question)).final_output)


if __name__ == "__main__":
    print(asyncio.run(ask(None, " ".join(sys.argv[1:]))))

"""The OpenAI Agents SDK with cloche's tools over MCP, on stdio and over HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

import agents
import pytest
from harness import cloche_bin
from test_openai_agents import Script, run, say


@pytest.mark.parametrize("way", ["stdio", "http"])
def test_an_agent_with_the_tools_of_mcp(service: Any, example: Any, way: str) -> None:
    agents.set_tracing_disabled(True)
    module = example("openai_agents_mcp")
    server = (
        module.on_stdio(str(cloche_bin()), "--server", service.url)
        if way == "stdio"
        else module.over_http(service.url)
    )
    calls = [run(1, "x = 6"), run(2, "x * 7"), run(3, "1 / 0")]
    for call in calls:
        call.name = "run_python"
    model = Script(*calls, say("42"))
    assert asyncio.run(module.ask(model, "6 times 7?", server)) == "42"
    outputs = [str(item["output"]) for item in model.heard[-1] if "output" in item]
    assert "42" in outputs[1] and "ZeroDivisionError" in outputs[2], outputs

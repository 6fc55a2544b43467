"""LangChain's MCP adapters with a LangGraph agent, over stdio and over HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from harness import cloche_bin
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage


class Script(GenericFakeChatModel):  # type: ignore[misc]
    """Says what is written, one message after the other."""

    heard: list[Any] = []

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        assert {"run_python", "run_shell"} <= {tool.name for tool in tools}
        return self

    def _generate(self, messages: Any, *args: Any, **more: Any) -> Any:
        self.heard.append(messages)
        return super()._generate(messages, *args, **more)


def run(number: int, code: str) -> AIMessage:
    call = {"name": "run_python", "args": {"code": code}, "id": f"call_{number}"}
    return AIMessage("", tool_calls=[call])


@pytest.mark.parametrize("way", ["stdio", "http"])
def test_an_agent_computes_and_keeps_its_variables(service: Any, example: Any, way: str) -> None:
    module = example("langchain_mcp")
    server = (
        module.on_stdio(str(cloche_bin()), "--server", service.url)
        if way == "stdio"
        else module.over_http(service.url)
    )
    model = Script(
        messages=iter([run(1, "x = 6"), run(2, "x * 7"), run(3, "1 / 0"), AIMessage("42")])
    )
    assert asyncio.run(module.ask(model, "6 times 7?", server)) == "42"
    said = [str(message.content) for message in model.heard[-1] if message.type == "tool"]
    assert "42" in said[1] and "ZeroDivisionError" in said[2], said

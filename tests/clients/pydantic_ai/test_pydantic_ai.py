"""Pydantic AI with a tool that runs Python."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel


def test_an_agent_computes_and_is_told_of_errors(service: Any, example: Any) -> None:
    heard: list[Any] = []
    said = [
        ToolCallPart("python", {"code": "x = 6"}),
        ToolCallPart("python", {"code": "x / 0"}),
        ToolCallPart("python", {"code": "x * 7"}),
        TextPart("42"),
    ]

    def speak(messages: Any, _: Any) -> ModelResponse:
        heard.append(str(messages[-1]))
        return ModelResponse(parts=[said.pop(0)])

    answer = asyncio.run(example("pydantic_ai_tool").ask(FunctionModel(speak), "6 times 7?"))
    assert answer == "42"
    assert "ZeroDivisionError" in heard[2] and "42" in heard[3], heard

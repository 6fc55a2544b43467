"""The OpenAI Agents SDK with a tool that runs Python."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import agents
from agents.items import ModelResponse
from agents.usage import Usage
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)


class Script(agents.Model):  # type: ignore[misc]
    """Says what is written, one item after the other."""

    def __init__(self, *items: Any) -> None:
        self.items = list(items)
        self.heard: list[Any] = []

    async def get_response(self, *, input: Any, **_: Any) -> ModelResponse:
        self.heard.append(input)
        return ModelResponse(output=[self.items.pop(0)], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


def run(number: int, code: str) -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(
        type="function_call",
        call_id=f"call_{number}",
        name="python",
        arguments=json.dumps({"code": code}),
    )


def say(text: str) -> ResponseOutputMessage:
    content = [ResponseOutputText(type="output_text", text=text, annotations=[])]
    return ResponseOutputMessage(
        id="message", type="message", role="assistant", status="completed", content=content
    )


def test_an_agent_computes_and_keeps_its_variables(service: Any, example: Any) -> None:
    agents.set_tracing_disabled(True)
    model = Script(run(1, "x = 6"), run(2, "x * 7"), run(3, "1 / 0"), say("42"))
    assert asyncio.run(example("openai_agents_tool").ask(model, "6 times 7?")) == "42"
    outputs = [item["output"] for item in model.heard[-1] if "output" in item]
    assert outputs[1] == "42" and "ZeroDivisionError" in outputs[2], outputs

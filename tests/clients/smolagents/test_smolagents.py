"""smolagents with an executor in a sandbox."""

from __future__ import annotations

from typing import Any

import pytest
from cloche import Sandbox
from smolagents import Model, tool
from smolagents.models import ChatMessage, MessageRole
from smolagents.utils import AgentError


class Script(Model):  # type: ignore[misc]
    """Says what is written, one message after the other."""

    def __init__(self, *texts: str) -> None:
        super().__init__(model_id="script")
        self.texts = list(texts)
        self.heard: list[Any] = []

    def generate(self, messages: Any, **_: Any) -> ChatMessage:
        self.heard.append(messages)
        return ChatMessage(role=MessageRole.ASSISTANT, content=self.texts.pop(0))


@tool  # type: ignore[misc]
def twice(number: int) -> int:
    """Doubles.

    Args:
        number: what is doubled
    """
    return 2 * number


def code(text: str) -> str:
    return f"Thought: compute\n<code>\n{text}\n</code>"


def test_an_agents_code_tools_and_answer(service: Any, example: Any) -> None:
    model = Script(code("x = twice(21)\nprint('x is', x)"), code("final_answer(x)"))
    assert example("smolagents_executor").ask(model, "21 twice?", [twice]) == 42
    assert "x is 42" in str(model.heard[-1])


def test_an_error_is_heard_and_state_stays(service: Any, example: Any) -> None:
    model = Script(code("y = 5\n1 / 0"), code("final_answer(y + 1)"))
    assert example("smolagents_executor").ask(model, "?", []) == 6
    assert "ZeroDivisionError" in str(model.heard[-1])


def test_variables_go_there(service: Any, example: Any) -> None:
    with Sandbox.create() as box:
        executor = example("smolagents_executor").ClocheExecutor(box)
        executor.send_variables({"data": {"a": [1, 2]}})
        assert executor("sum(data['a'])").output == "3"
        with pytest.raises(AgentError, match="ZeroDivisionError"):
            executor("1 / 0")

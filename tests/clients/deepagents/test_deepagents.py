"""LangChain's deepagents with a backend in a sandbox."""

from __future__ import annotations

from typing import Any

from cloche import Sandbox
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult


class Script(BaseChatModel):
    """Says what is written, one message after the other."""

    messages: list[Any]
    heard: list[Any] = []

    @property
    def _llm_type(self) -> str:
        return "script"

    def bind_tools(self, tools: Any, **_: Any) -> Script:
        return self

    def _generate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
        self.heard.append(messages)
        return ChatResult(generations=[ChatGeneration(message=self.messages.pop(0))])


def call(number: int, name: str, **arguments: Any) -> AIMessage:
    one = {"name": name, "args": arguments, "id": f"call_{number}", "type": "tool_call"}
    return AIMessage(content="", tool_calls=[one])


def test_files_and_the_shell_are_the_sandboxes(service: Any, example: Any) -> None:
    with Sandbox.create() as box:
        backend = example("deepagents_backend").ClocheBackend(box)
        assert backend.write("/workspace/a/notes.txt", "one\ntwo\n").error is None
        assert "two" in str(backend.read("/workspace/a/notes.txt"))
        assert backend.edit("/workspace/a/notes.txt", "two", "three").error is None
        assert box.files.read_text("a/notes.txt") == "one\nthree\n"
        assert "notes.txt" in str(backend.ls("/workspace/a"))
        assert "notes.txt" in str(backend.glob("**/*.txt", "/workspace"))
        assert "three" in str(backend.grep("three", "/workspace"))
        done = backend.execute("cat a/notes.txt; exit 3")
        assert (done.output, done.exit_code) == ("one\nthree\n", 3)
        (got,) = backend.download_files(["/workspace/none"])
        assert got.error == "file_not_found"


def test_an_agent_works_in_it(service: Any, example: Any) -> None:
    model = Script(
        messages=[
            call(1, "write_file", file_path="/workspace/sum.py", content="print(6 * 7)\n"),
            call(2, "execute", command="python3 /workspace/sum.py"),
            AIMessage(content="It is 42."),
        ]
    )
    assert example("deepagents_backend").ask(model, "6 times 7?") == "It is 42."
    answers = [m.content for m in model.heard[-1] if isinstance(m, ToolMessage)]
    assert "42" in str(answers[-1]), answers

"""A code agent of smolagents whose code runs in a sandbox of cloche, and none of it here."""

from __future__ import annotations

import sys
from typing import Any

from cloche import Result, Sandbox
from smolagents import CodeAgent
from smolagents.local_python_executor import CodeOutput
from smolagents.monitoring import AgentLogger, LogLevel
from smolagents.remote_executors import RemotePythonExecutor
from smolagents.utils import AgentError


class ClocheExecutor(RemotePythonExecutor):
    """One sandbox for the agent's life. Tools go there as source, variables as JSON."""

    def __init__(self, box: Sandbox, logger: Any = None) -> None:
        super().__init__([], logger or AgentLogger(level=LogLevel.ERROR))
        self.box = box

    def run_code_raise_errors(self, code: str) -> CodeOutput:
        result = self.box.run(code)
        error = result.error
        if error and error.name == self.FINAL_ANSWER_EXCEPTION:
            answer = self._deserialize_final_answer(error.value, self.allow_pickle)
            return CodeOutput(output=answer, logs=result.stdout, is_final_answer=True)
        if not result.ok:
            raise AgentError(f"{result.stdout}\n{_trouble(result)}", self.logger)
        return CodeOutput(output=result.text, logs=result.stdout, is_final_answer=False)


def _trouble(result: Result) -> str:
    return "\n".join(result.error.traceback) if result.error else result.failure


def ask(model: Any, question: str, tools: list[Any]) -> Any:
    with Sandbox.create() as box:
        agent = CodeAgent(tools=tools, model=model, executor=ClocheExecutor(box), max_steps=4)
        return agent.run(question)


if __name__ == "__main__":
    from smolagents import InferenceClientModel

    print(ask(InferenceClientModel(), " ".join(sys.argv[1:]), []))

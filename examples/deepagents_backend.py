"""A deep agent of LangChain whose files and shell are in a sandbox of cloche."""

from __future__ import annotations

import sys
from typing import Any

from cloche import APIError, Sandbox
from deepagents import create_deep_agent
from deepagents.backends.protocol import (
    ExecuteResponse,
    FileDownloadResponse,
    FileUploadResponse,
)
from deepagents.backends.sandbox import BaseSandbox


class ClocheBackend(BaseSandbox):
    """All that deepagents does with a backend goes through these few."""

    def __init__(self, box: Sandbox) -> None:
        self.box = box

    @property
    def id(self) -> str:
        return self.box.id

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        done = self.box.commands.run(command, timeout=timeout)
        return ExecuteResponse(
            output=done.stdout + done.stderr,
            exit_code=done.exit_code,
            truncated=done.stdout_truncated or done.stderr_truncated,
        )

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        return [FileUploadResponse(path=path, error=self._put(path, data)) for path, data in files]

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        return [self._get(path) for path in paths]

    def _put(self, path: str, data: bytes) -> Any:
        try:
            self.box.files.write(path, data)
        except APIError as error:
            return _said(error)
        return None

    def _get(self, path: str) -> FileDownloadResponse:
        try:
            return FileDownloadResponse(path=path, content=self.box.files.read(path))
        except APIError as error:
            return FileDownloadResponse(path=path, error=_said(error))


def _said(error: APIError) -> str:
    """In the few words that the agent knows."""
    known = {"no_such_path": "file_not_found", "no_access": "permission_denied"}
    return known.get(error.code, "invalid_path")


def ask(model: Any, question: str) -> str:
    with Sandbox.create() as box:
        agent = create_deep_agent(model=model, backend=ClocheBackend(box))
        said = agent.invoke({"messages": [{"role": "user", "content": question}]})
        return str(said["messages"][-1].content)


if __name__ == "__main__":
    print(ask("anthropic:claude-sonnet-5", " ".join(sys.argv[1:])))

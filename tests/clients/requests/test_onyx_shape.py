"""The Code Interpreter API as Onyx's client uses it: requests, the stream first and the batch where
there is none, lines of events split as Python splits lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import requests  # type: ignore[import]


class Interpreter:
    def __init__(self, url: str) -> None:
        self.url = url
        self.session = requests.Session()

    def healthy(self) -> bool:
        reply = self.session.get(f"{self.url}/health", timeout=5)
        return bool(reply.json()["status"] == "ok")

    @staticmethod
    def payload(code: str, timeout_ms: int, **fields: Any) -> dict[str, Any]:
        return {"code": code, "timeout_ms": timeout_ms, **fields}

    def execute(self, code: str, timeout_ms: int = 30000, **fields: Any) -> Any:
        reply = self.session.post(
            f"{self.url}/v1/execute",
            json=self.payload(code, timeout_ms, **fields),
            timeout=timeout_ms / 1000 + 10,
        )
        reply.raise_for_status()
        return reply.json()

    def stream(self, code: str, timeout_ms: int = 30000, **fields: Any) -> Iterator[Any]:
        with self.session.post(
            f"{self.url}/v1/execute/stream",
            json=self.payload(code, timeout_ms, **fields),
            timeout=timeout_ms / 1000 + 10,
            stream=True,
        ) as reply:
            if reply.status_code == 404:
                yield "result", self.execute(code, timeout_ms, **fields)
                return
            reply.raise_for_status()
            kind: str = ""
            data: list[str] = []
            for line in reply.iter_lines(decode_unicode=True):
                if line == "":
                    if kind and data:
                        yield kind, json.loads("\n".join(data))
                    kind, data = "", []
                elif line.startswith("event:"):
                    kind = line[6:].strip()
                elif line.startswith("data:"):
                    data.append(line[5:].strip())

    def upload(self, content: bytes, name: str) -> str:
        files = {"file": (name, content, "application/octet-stream")}
        reply = self.session.post(f"{self.url}/v1/files", files=files, timeout=30)
        reply.raise_for_status()
        return str(reply.json()["file_id"])

    def download(self, ident: str) -> bytes:
        reply = self.session.get(f"{self.url}/v1/files/{ident}", timeout=30)
        reply.raise_for_status()
        return reply.content

    def delete(self, ident: str) -> None:
        self.session.delete(f"{self.url}/v1/files/{ident}", timeout=10).raise_for_status()


@pytest.fixture
def interpreter(service: Any) -> Interpreter:
    return Interpreter(service.url)


def test_health_and_a_program(interpreter: Interpreter) -> None:
    assert interpreter.healthy()
    done = interpreter.execute("print(input()); 6 * 7", stdin="hello\n")
    assert (done["stdout"], done["exit_code"], done["timed_out"]) == ("hello\n42\n", 0, False)
    assert interpreter.execute("while True: pass", timeout_ms=300)["timed_out"] is True


def test_files_go_there_and_come_back(interpreter: Interpreter) -> None:
    ident = interpreter.upload(b"x,y\n1,2\n3,4\n", "data.csv")
    code = "import pandas as pd; pd.read_csv('data.csv').sum().to_csv('out.csv')"
    done = interpreter.execute(code, files=[{"path": "data.csv", "file_id": ident}])
    (made,) = done["files"]
    assert (made["path"], made["kind"]) == ("out.csv", "file")
    assert interpreter.download(made["file_id"]) == b",0\nx,4\ny,6\n"
    for one in (ident, made["file_id"]):
        interpreter.delete(one)
    with pytest.raises(requests.HTTPError, match="404"):
        interpreter.download(ident)


def test_a_stream_whatever_is_printed(interpreter: Interpreter) -> None:
    """Also what str.splitlines takes for ends of lines."""
    odd = "a\x85b\u2028c\u2029d\x0be\x1cf"
    events = list(interpreter.stream(f"import sys\nprint({odd!r})\nprint('e', file=sys.stderr)"))
    printed: dict[str, str] = {"stdout": "", "stderr": ""}
    for kind, data in events[:-1]:
        assert kind == "output"
        printed[data["stream"]] += data["data"]
    assert printed == {"stdout": odd + "\n", "stderr": "e\n"}
    kind, result = events[-1]
    assert kind == "result" and result["exit_code"] == 0 and result["files"] == []

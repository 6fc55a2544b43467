"""The real Claude Code with a model that is a script: what that gets to see of our tools, over
`cloche mcp` and over HTTP."""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import npm  # noqa: E402
from deaths import kill_server  # noqa: E402
from harness import cloche_bin  # noqa: E402
from script_api import ScriptApi, Turn  # noqa: E402

CLAUDE = npm.modules(__file__) / "@anthropic-ai/claude-code-linux-x64/claude"
QUIET = {
    "ANTHROPIC_API_KEY": "x",
    "ENABLE_TOOL_SEARCH": "false",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
}


def use(number: int, tool: str, **given: Any) -> Turn:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": f"mcp__c__{tool}", "input": given}


def python(number: int, code: str) -> Turn:
    return use(number, "run_python", code=code)


def entry(service: Any, way: str) -> dict[str, Any]:
    if way == "http":
        return {"type": "http", "url": f"{service.url}/mcp?sandbox=claude"}
    args = ["mcp", "--server", service.url]
    return {"type": "stdio", "command": str(cloche_bin()), "args": args}


def claude(home: Path, service: Any, way: str, api: ScriptApi, **more: str) -> None:
    file = home / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"c": entry(service, way)}}))
    words = ["-p", "go", "--mcp-config", file, "--strict-mcp-config", "--allowedTools", "mcp__c"]
    known = QUIET | {"ANTHROPIC_BASE_URL": api.url} | more
    done = npm.run(__file__, home, CLAUDE, *words, **known)
    assert done.returncode == 0 and "done" in done.stdout, done.stdout + done.stderr


def texts(result: dict[str, Any]) -> str:
    content = result["content"]
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part["type"] == "text")


@pytest.mark.parametrize("way", ["stdio", "http"])
def test_what_the_model_gets(service: Any, tmp_path: Path, way: str) -> None:
    figure = "import matplotlib.pyplot as p; p.plot([1, 2]); p.show()"
    turns = [
        python(1, "x = 41"),
        python(2, "print(x + 1)"),
        python(3, figure),
        python(4, "print('before'); 1/0"),
        python(5, "print('y' * 200_000)"),
        use(6, "run_shell", command="echo from a shell"),
    ]
    with ScriptApi(*turns) as api:
        claude(tmp_path, service, way, api)
    by_id = {result["tool_use_id"]: result for result in api.results}
    assert texts(by_id["toolu_2"]).startswith("42")
    (image,) = (part for part in by_id["toolu_3"]["content"] if part["type"] == "image")
    assert base64.b64decode(image["source"]["data"]).startswith(b"\x89PNG")
    assert by_id["toolu_4"]["is_error"]
    assert "before" in texts(by_id["toolu_4"]) and "ZeroDivisionError" in texts(by_id["toolu_4"])
    long = texts(by_id["toolu_5"])
    assert 20_000 < len(long) < 40_000 and "cloche://execution/" in long
    assert "from a shell" in texts(by_id["toolu_6"])
    assert "mcp__c__run_python" in api.tools


@pytest.mark.parametrize("way", ["stdio", "http"])
def test_tools_that_are_searched_for(service: Any, tmp_path: Path, way: str) -> None:
    search = {"query": "select:mcp__c__run_python"}
    found = {"type": "tool_use", "id": "toolu_1", "name": "ToolSearch", "input": search}
    with ScriptApi(found, python(2, "print(6 * 7)")) as api:
        claude(tmp_path, service, way, api, ENABLE_TOOL_SEARCH="true")
    by_id = {result["tool_use_id"]: result for result in api.results}
    assert texts(by_id["toolu_2"]).startswith("42"), api.results


@pytest.mark.parametrize("way", ["stdio", "http"])
def test_a_server_that_is_killed_between_two_calls(service: Any, tmp_path: Path, way: str) -> None:
    class Killer(ScriptApi):
        def answer(self, body: dict[str, Any]) -> bytes:
            if len(self.turns) == 1 and body.get("tools"):
                kill_server(service)
            return super().answer(body)

    with Killer(python(1, "x = 41"), python(2, "print(x + 1)")) as api:
        claude(tmp_path, service, way, api)
    by_id = {result["tool_use_id"]: result for result in api.results}
    assert texts(by_id["toolu_2"]).startswith("42"), api.results


def test_mcp_add_and_list(service: Any, keyed_service: Any, tmp_path: Path) -> None:
    def run(*words: str) -> str:
        done = npm.run(__file__, tmp_path, CLAUDE, "mcp", *words, **QUIET)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("add", "--transport", "http", "over-http", f"{service.url}/mcp")
    run("add", "over-stdio", "--", str(cloche_bin()), "mcp", "--server", service.url)
    keyed = f"{keyed_service.url}/mcp"
    header = f"Authorization: Bearer {keyed_service.key}"
    run("add", "--transport", "http", "with-key", keyed, "--header", header)
    run("add", "--transport", "http", "without-key", keyed)
    listed = {line.split(":")[0]: line for line in run("list").splitlines() if ": " in line}
    for name in ("over-http", "over-stdio", "with-key"):
        assert "Connected" in listed[name], listed
    assert "Connected" not in listed["without-key"], listed

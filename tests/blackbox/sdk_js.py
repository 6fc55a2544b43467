"""The TypeScript client as users get it: packed, and installed beside a program of theirs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from client import ROOT

NPM = ROOT / "build/npm/node_modules"
SDK = ROOT / "js/sdk"
TESTS = ROOT / "tests/sdk-js"
DEADLINE_S = 600  # only a hang takes that long


def needed() -> None:
    if not (NPM / "typescript").exists() or shutil.which("node") is None:
        pytest.skip("no TypeScript compiler: script/setup --npm")


def install(directory: Path) -> Path:
    """A directory in which `import "cloche"` finds the package, with our programs in it."""
    done = subprocess.run(
        [ROOT / "script/sdk-js"], stdout=subprocess.PIPE, text=True, check=True, timeout=DEADLINE_S
    )
    tarball = ROOT / done.stdout.split()[-1]
    words = ["npm", "install", "--offline", "--silent", "--no-audit", "--no-fund", str(tarball)]
    (directory / "package.json").write_text('{"private": true, "type": "module"}')
    subprocess.run(words, cwd=directory, check=True, timeout=DEADLINE_S)
    for program in TESTS.iterdir():
        shutil.copy(program, directory)
    return directory


def environment(**more: str) -> dict[str, str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("CLOCHE_", "NODE_"))}
    return {**clean, "WS_PACKAGE": str(NPM / "ws/wrapper.mjs"), **more}


def runtimes() -> list[str]:
    """This machine's Node, and with script/test-sdk-js others."""
    return ["node", *os.environ.get("CLOCHE_JS_RUNTIMES", "").split()]


def words_to_test(runtime: str) -> list[str]:
    """The words that run tests in that runtime."""
    name = runtime.partition("@")[0]
    place = ROOT / "build/runtimes" / runtime / "node_modules/.bin" / name
    program = str(place) if "@" in runtime else shutil.which(name) or name
    return [program, *{"deno": ["test", "-A", "--no-check"], "bun": ["test"]}.get(name, ["--test"])]


def run_tests(
    directory: Path, program: str, runtime: str, **env: str
) -> subprocess.CompletedProcess[str]:
    return execute(directory, [*words_to_test(runtime), f"./{program}.test.mjs"], **env)


def execute(directory: Path, words: list[str], **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words,
        cwd=directory,
        env=environment(**env),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=DEADLINE_S,
    )


def node(directory: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return execute(directory, ["node", *words], **env)


def compiled(directory: Path, program: str) -> str:
    """By a user's compiler, with a user's settings; `await using` is made what Node knows."""
    words = ["--strict", "--exactOptionalPropertyTypes", "--target", "es2022"]
    words += ["--module", "nodenext", "--lib", "es2022,esnext.disposable,dom", program]
    done = node(directory, str(NPM / "typescript/bin/tsc"), *words)
    assert done.returncode == 0, done.stdout
    return program.replace(".ts", ".js")


def codes() -> list[str]:
    """Those of the server's table and of docs/errors.md that its own API has, without those that
    only a dialect has."""
    table = re.findall(r'^    \{"(\w+)", \d+', (ROOT / "src/api/core/problem.c").read_text(), re.M)
    page = (ROOT / "docs/errors.md").read_text().partition("## Over HTTP")[2]
    rows = re.findall(r"^\| [\d, ]+ \| (.*?) \| (.*) \|$", page, re.M)
    theirs = ("Sandbox Runtime:", "Jupyter's API", "`/modules`")
    of_dialects, ours = "", ""
    for names, what in rows:
        if what.startswith(theirs):
            of_dialects += names
        else:
            ours += names
    code = re.compile(r"`(\w+)`")
    return sorted(
        {*table, *code.findall(ours)} - {*code.findall(of_dialects)} | {*code.findall(ours)}
    )


def table() -> str:
    return json.dumps(codes())

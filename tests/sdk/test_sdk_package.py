"""The package itself: what is built and installed, its types, its version, its notebooks."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cloche
from harness import PYTHON, LiveService

ROOT = Path(__file__).resolve().parents[2]
VERSION = (ROOT / "VERSION").read_text().strip()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    subprocess.run([ROOT / "script" / "build-sdk", out], check=True, stdout=subprocess.DEVNULL)
    return out


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    (wheel,) = built.glob("*.whl")
    place = tmp_path_factory.mktemp("site")
    zipfile.ZipFile(wheel).extractall(place)
    return place


def python(*words: str, path: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PYTHON, *words],
        env={**os.environ, "PYTHONPATH": str(path), **env},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_wheel(built: Path, installed: Path, live: LiveService) -> None:
    (wheel,) = built.glob("*.whl")
    assert wheel.name == f"cloche-{VERSION}-py3-none-any.whl"
    ours = {str(p.relative_to(ROOT / "py/sdk")) for p in (ROOT / "py/sdk/cloche").rglob("*.py")}
    names = set(zipfile.ZipFile(wheel).namelist())
    assert ours | {"cloche/py.typed"} <= names
    metadata = (installed / f"cloche-{VERSION}.dist-info" / "METADATA").read_text()
    assert "Requires-Python: >=3.9" in metadata and "Requires-Dist: httpx" in metadata
    code = "import cloche; print(cloche.__version__, cloche.__file__, cloche.run('6 * 7').text)"
    done = python("-c", code, path=installed, CLOCHE_SERVER=live.url)
    assert done.stdout == f"{VERSION} {installed}/cloche/__init__.py 42\n", done.stderr


def test_the_source_archive(built: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as members:
        names = {name.partition("/")[2] for name in members.getnames()}
    assert {"pyproject.toml", "README.md", "cloche/_sync/client.py", "cloche/py.typed"} <= names
    assert {"VERSION", "LICENSE"} <= names


def test_its_version() -> None:
    assert cloche.__version__ == VERSION
    assert set(cloche.__all__) <= set(dir(cloche))


USER = """
from typing import List, Optional
import asyncio
from cloche import Client, Result, Sandbox, errors, run
from cloche.aio import AsyncSandbox

def plain() -> Optional[str]:
    result: Result = run("1", timeout=2.5, on_stdout=print)
    with Sandbox.create(files={"a": b"b"}, network=["pypi.org"]) as box:
        names: List[str] = [variable.name for variable in box.variables()]
        png: Optional[bytes] = box.run("1").results[0].png
        content: bytes = box.files.read(names[0])
        for event in box.stream("1"):
            kind: str = event.type
        code: Optional[int] = box.commands.run(["ls"]).exit_code
    try:
        Client(retry_seconds=1).info()
    except errors.SandboxGone as error:
        return error.request_id
    return result.text

async def coroutine() -> str:
    async with await AsyncSandbox.create() as box:
        async for event in box.stream("1"):
            print(event.seq + 1)
        return (await box.run("1")).stdout
"""
WRONG = "from cloche import run\nrun(1)\nx: int = run('1').text\nrun('1').nothing\n"


def test_its_types(installed: Path, tmp_path: Path) -> None:
    """As a user's type checker sees them."""
    (tmp_path / "user.py").write_text(USER)
    (tmp_path / "wrong.py").write_text(WRONG)
    words = ["-m", "mypy", "--strict", "--config-file=", f"--cache-dir={tmp_path}/cache"]
    good = python(*words, str(tmp_path / "user.py"), path=installed, MYPYPATH=str(installed))
    assert good.returncode == 0, good.stdout + good.stderr
    bad = python(*words, str(tmp_path / "wrong.py"), path=installed, MYPYPATH=str(installed))
    assert bad.stdout.count(" error: ") == 3, bad.stdout


def test_what_is_imported_and_when(installed: Path) -> None:
    """WebSockets only for terminals, pictures only in notebooks."""
    code = "import sys, cloche, cloche.aio, cloche.errors; print(*sys.modules)"
    loaded = python("-c", code, path=installed).stdout.split()
    assert "httpx" in loaded and not {"websockets", "IPython", "tqdm", "yaml"} & set(loaded)


NOTEBOOK = """
import sys
from cloche import Result
shown = []
import IPython.display as display
display.display = lambda data, metadata, raw: shown.append(data)
Result({"stdout": "out", "stderr": "err", "status": "error",
        "results": [{"data": {"text/html": "<b>"}, "metadata": {}}],
        "error": {"name": "E", "traceback": ["line 1", "line 2"]}})._ipython_display_()
Result({"status": "timeout", "limit_hit": "time"})._ipython_display_()
Result({"stderr": "a\\nline 1\\nline 2\\n", "status": "error",
        "error": {"name": "E", "traceback": ["line 1\\n", "line 2\\n"]}})._ipython_display_()
print(shown)
"""


def test_a_notebook_shows_a_result() -> None:
    done = python("-c", NOTEBOOK, path=ROOT / "py" / "sdk")
    assert done.stdout == "out[{'text/html': '<b>'}]\n", done.stderr
    assert done.stderr == (
        "errline 1\nline 2\nthe code ended with status timeout, at its limit of time\n"
        "a\nline 1\nline 2\n"
    )


def test_the_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only on a terminal, only when it takes long, and nothing is left of it."""
    from cloche import _progress

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    assert _progress.progress_for(True, "x") is None or sys.stderr.isatty()
    monkeypatch.setattr(sys, "stderr", terminal)
    clock = [100.0]
    monkeypatch.setattr(_progress.time, "monotonic", lambda: clock[0])
    bar: Callable[[int, int], Any] | None = _progress.progress_for(True, "big.bin")
    assert bar is not None and _progress.progress_for(False, "x") is None
    bar(10, 4_000_000)
    assert terminal.getvalue() == ""
    clock[0] += 1
    bar(2_000_000, 4_000_000)
    assert "big.bin [###############...............] 2 MB of 4 MB" in terminal.getvalue()
    bar(4_000_000, 4_000_000)
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_a_fork_has_connections_of_its_own(live: LiveService) -> None:
    assert cloche.run("1").text == "1"
    parents = cloche._default.default_client()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        is_own = cloche._default.default_client() is not parents
        os.write(writing, f"{cloche.run('2').text} {is_own}".encode())
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0 and os.read(reading, 10) == b"2 True"
    assert cloche.run("3").text == "3"
    os.close(reading)
    os.close(writing)


def test_the_made_files_are_up_to_date() -> None:
    subprocess.run([ROOT / "script" / "sdk-generate", "--check"], check=True)

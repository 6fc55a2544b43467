"""cloche.compat.sandbox_runtime and sandbox-run: programs written for Sandbox Runtime."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from cloche.compat.sandbox_runtime import (
    K8sServiceDiscovery,
    Sandbox,
    SandboxError,
    ServerSelectorType,
    SharedEnvSandbox,
    StaticServiceDiscovery,
)
from harness import LiveService

SDK = Path(__file__).resolve().parents[2] / "py" / "sdk"
Work = Callable[[SharedEnvSandbox], Awaitable[None]]


def use(live: LiveService, work: Work, session: str = "sdk-test") -> None:
    async def whole() -> None:
        async with SharedEnvSandbox(session, "static", {"servers": [live.url]}) as box:
            try:
                await work(box)
            finally:
                assert await box.delete_session() is True

    asyncio.run(whole())


def test_a_session(live: LiveService, tmp_path: Path) -> None:
    (tmp_path / "up").write_bytes(b"uploaded")

    async def work(box: SharedEnvSandbox) -> None:
        assert isinstance(box, Sandbox)
        assert (await box.create_session("20M"))["session_id"] == "sdk-test"
        assert await box.create_file("hello", "in/a.txt", 0o600) == {
            "filename": "in/a.txt",
            "size": 5,
        }
        assert (await box.upload_file(str(tmp_path / "up"), "in/b"))["size"] == 8
        assert (await box.upload_file(str(tmp_path / "up")))["filename"] == "up"
        assert await box.download_file("in/b", str(tmp_path / "down")) is True
        assert (tmp_path / "down").read_bytes() == b"uploaded"
        names = {file["filename"] for file in await box.list_files(recursive=True)}
        assert names == {"in/a.txt", "in/b", "up"}
        assert [file["filename"] for file in await box.list_files("in")] != []
        piece = await box.read_file("in/a.txt", offset=1, buffer_size=3)
        assert (piece["content"], piece["offset"], piece["is_eof"]) == ("ell", 4, False)
        done = await box.execute("cat in/a.txt; echo", "$HOME")
        assert (done["stdout"], done["returncode"]) == ("hello$HOME", 0)
        done = await box.execute_code("x = 6 * 7", "calc", output_params=["x"])
        assert done["output_variables"] == {"x": 42}
        done = await box.execute_code("echo $1", script_type="shell", args=["hi"])
        assert done["stdout"] == "hi"
        assert (await box.get_status())["exists"] is True

    use(live, work)


def test_code_with_backslashes(live: LiveService) -> None:
    """What is Python stays as it is; what was escaped once too often is not."""

    async def work(box: SharedEnvSandbox) -> None:
        assert (await box.execute_code(r"print('a\nb')"))["stdout"] == "a\nb"
        escaped = r"for c in 'ä\u00e4':\n    print(c)"
        assert (await box.execute_code(escaped))["stdout"] == "ä\nä"

    use(live, work)


def test_the_older_replies(start_live: Callable[..., LiveService]) -> None:
    live = start_live("--runtime-replies", "legacy")

    async def work(box: SharedEnvSandbox) -> None:
        assert (await box.execute("echo hi"))["stdout"] == "hi"

    use(live, work)


def test_what_goes_wrong(live: LiveService) -> None:
    async def work(box: SharedEnvSandbox) -> None:
        await box.create_session()
        with pytest.raises(SandboxError) as raised:
            await box.create_session()
        told = raised.value.to_dict()
        assert told["type"] == "SandboxError" and told["context"]["status"] == 409
        with pytest.raises(SandboxError, match="File not found"):
            await box.read_file("nothing")
        with pytest.raises(SandboxError):
            await box.download_file("nothing", "/tmp/nothing")
        with pytest.raises(SandboxError, match="e-fast"):
            await box.download_from_efast([{"docid": "gns://A"}], token="t")

    use(live, work)
    with pytest.raises(SandboxError, match="no server selector"):
        SharedEnvSandbox("x", "carrier pigeon")

    async def nobody() -> None:
        async with SharedEnvSandbox("x", servers=["127.0.0.1:9"]) as box:
            await box.get_status()

    with pytest.raises(SandboxError, match="no server is healthy"):
        asyncio.run(nobody())


def test_its_servers(live: LiveService) -> None:
    """Those that are not healthy are left out; a headless service has an address for each."""

    async def work() -> None:
        servers = ["http://127.0.0.1:9", live.url]
        async with SharedEnvSandbox("s", ServerSelectorType.STATIC, servers=servers) as box:
            assert (await box.get_status())["exists"] is False
        params: dict[str, Any] = {"service_name": "localhost", "port": live.port}
        assert f"http://127.0.0.1:{live.port}" in await K8sServiceDiscovery(**params).get_servers()
        async with SharedEnvSandbox("s", "k8s", params) as box:
            assert (await box.get_status())["exists"] is False
        assert await K8sServiceDiscovery("no.such.name.invalid").get_servers() == []
        assert await StaticServiceDiscovery(["host:1"]).get_servers() == ["http://host:1"]

    asyncio.run(work())


# ---------------------------------------------------------------------------- sandbox-run


def sandbox_run(
    live: LiveService, directory: Path, *words: str, code: str | None = None
) -> subprocess.CompletedProcess[str]:
    if code is not None:
        (directory / "script.py").write_text(code)
        words = ("script.py", *words)
    return subprocess.run(
        [sys.executable, "-m", "cloche.compat.sandbox_run", *words],
        cwd=directory,
        env={
            **os.environ,
            "PYTHONPATH": str(SDK),
            "CLOCHE_SERVER": live.url,
            "HOME": str(directory),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


DOUBLE = "def handler(event):\n    print('said')\n    return event['n'] * 2\n"


def test_a_handler(live: LiveService, tmp_path: Path) -> None:
    done = sandbox_run(live, tmp_path, "--event", '{"n": 21}', code=DOUBLE)
    assert (done.returncode, done.stdout) == (0, "said\n42\n"), done.stderr
    done = sandbox_run(live, tmp_path, "-q", "--event", '{"n": 1}', code=DOUBLE)
    assert done.stdout == "2\n"
    (tmp_path / "event.json").write_text('{"n": 4}')
    words = ("--event-file", "event.json", "--format", "json", "-o", "out.json")
    done = sandbox_run(live, tmp_path, *words, code=DOUBLE)
    reply = json.loads((tmp_path / "out.json").read_text())
    assert done.stdout == "" and (reply["exit_code"], reply["result"]) == (0, 8)
    code = "def handler(event, context):\n    return context.function_name"
    done = sandbox_run(live, tmp_path, "--context", '{"function_name": "f"}', "-p", code=code)
    assert done.stdout.startswith('"f"\nduration_ms: ')


@pytest.mark.parametrize(
    "code,status",
    [
        ("x = 1", 6),
        ("1 / 0\ndef handler(e): pass", 2),
        ("def handler(e): return e['none']", 2),
        ("def handler(e):\n while True: pass", 4),
        ("def handler(e): return len(b'x' * (1 << 30))", 137),
        ("def handler(e): return None", 0),
    ],
)
def test_its_exit_status(live: LiveService, tmp_path: Path, code: str, status: int) -> None:
    done = sandbox_run(live, tmp_path, "--timeout", "3", code=code)
    assert done.returncode == status, (done.stdout, done.stderr)


def test_bad_input(live: LiveService, tmp_path: Path) -> None:
    for words in (("nothing.py",), ("script.py", "--event", "{"), ("script.py", "--event", "[]")):
        (tmp_path / "script.py").write_text(DOUBLE)
        done = sandbox_run(live, tmp_path, *words)
        assert done.returncode == 2 and done.stderr.startswith("sandbox-run: "), done
    assert sandbox_run(live, tmp_path).returncode == 2
    done = sandbox_run(live, tmp_path, "--server", "http://127.0.0.1:9", code=DOUBLE)
    assert done.returncode == 4 and "no server answers" in done.stderr


def test_its_configuration(live: LiveService, tmp_path: Path) -> None:
    (tmp_path / ".sandboxrc.json").write_text('{"format": "json", "timeout": 7}')
    done = sandbox_run(live, tmp_path, "--event", '{"n": 1}', code=DOUBLE)
    assert json.loads(done.stdout)["metrics"]["timeout_seconds"] == 7
    assert sandbox_run(live, tmp_path, "--version").stdout.startswith("sandbox-run ")

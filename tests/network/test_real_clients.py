"""Real clients reach what they may, without knowing of cloche: client_table.py has the commands."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from client_table import CLIENTS, REFUSED, Client
from http_client import ask
from live import Box
from live_network import NAMES, NetworkService
from services import SERVICES, on_path, postgres
from world import FETCHED, PYTHON, World

HERE = Path(__file__).resolve().parent
ALL = bool(os.environ.get("CLOCHE_NETWORK_ALL"))  # script/test-network
LIMITS = {"memory_mb": 2048, "pids": 200, "disk_mb": 512}


def missing(client: Client) -> str:
    for need in client.needs:
        if need.startswith("python:"):
            words = [PYTHON, "-c", f"import {need[7:]}"]
            if subprocess.run(words, capture_output=True).returncode != 0:
                return need
        elif need.startswith("fetched:"):
            if not (FETCHED / need[8:]).exists():
                return need
        elif need == "postgres-server":
            if postgres() is None:
                return need
        elif not (Path(need).exists() if need.startswith("/") else on_path(need)):
            return need
    return ""


@pytest.fixture(scope="module")
def start_service(on_host: World) -> Iterator[Callable[[str], None]]:
    """Starts one of services.py, which then stays."""
    with contextlib.ExitStack() as stack:
        # Those of pytest are closed to other users.
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        directory.chmod(0o755)
        started: set[str] = set()

        def start(name: str) -> None:
            if name not in started:
                started.add(name)
                stack.enter_context(SERVICES[name](on_host, directory))

        yield start


def build(client: Client, directory: Path) -> bytes:
    out = directory / "client"
    source = HERE / "clients" / client.source
    words = client.builds.format(out=out, source=source, fetched=FETCHED)
    env = {**os.environ, "PATH": os.environ["PATH"] + ":/usr/local/go/bin"}
    subprocess.run(["bash", "-c", words], check=True, env=env, cwd=directory)
    return out.read_bytes()


def put_file(box: Box, name: str, data: bytes) -> None:
    assert ask(box.port, "PUT", f"{box.path}/files/{name}", data).status in (200, 201, 204)


def run(box: Box, command: str) -> tuple[int, str]:
    """The command in the sandbox's shell, and what it says."""
    code = (
        "import subprocess\n"
        "env = {'PATH': '/usr/bin:/bin:/usr/local/bin', 'HOME': '/workspace', 'LANG': 'C.UTF-8'}\n"
        f"done = subprocess.run(['bash', '-c', {command!r}], env=env, stdout=subprocess.PIPE, "
        "stderr=subprocess.STDOUT, text=True)\n"
        "print(done.stdout[-2000:])\ndone.returncode"
    )
    result = box.run(code, timeout_ms=60000)
    assert result["status"] == "ok", result
    return int(result["text"]), str(result["stdout"]) + str(result["denied"])


@pytest.mark.parametrize("name", list(CLIENTS))
def test_client(
    net: NetworkService,
    world: World,
    tmp_path: Path,
    start_service: Callable[[str], None],
    name: str,
) -> None:
    client = CLIENTS[name]
    if client.heavy and not ALL:
        pytest.skip("script/test-network runs it")
    if lacks := missing(client):
        pytest.skip(f"not here: {lacks}")
    if client.uses:
        start_service(client.uses)
    with net.box(NAMES, limits=LIMITS) as box:
        put_file(box, "ca.pem", world.ca.read_bytes())
        if client.builds:
            put_file(box, "client", build(client, tmp_path))
        command = client.command.replace("{ca}", "/workspace/ca.pem")
        command = command.replace("{{", "{").replace("}}", "}")
        end = time.monotonic() + 30
        while True:
            status, shown = run(box, f"chmod +x client 2>/dev/null; {command}")
            # A database may still be starting.
            if status == 0 or client.uses != "databases" or time.monotonic() > end:
                break
        assert status == 0, f"{shlex.quote(command)}: {status}\n{shown}"


@pytest.mark.parametrize("name", list(REFUSED))
def test_refused(net: NetworkService, world: World, name: str) -> None:
    with net.box(NAMES) as box:
        run(box, "curl -fsS http://four.example.test/")  # its address was told
        world.forget()
        status, shown = run(box, REFUSED[name])
        assert status in (6, 7, 52, 56), (status, shown)
        assert not [line for line in world.requests() if "evil" in line]

"""Real clients reach what they may, without knowing of cloche: client_table.py has the commands."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from client_table import CLIENTS, REFUSED, Client
from http_client import ask
from live import Box
from live_network import NAMES, NetworkService
from world import PYTHON, World, inside

HERE = Path(__file__).resolve().parent
ALL = bool(os.environ.get("CLOCHE_NETWORK_ALL"))  # script/test-network
LIMITS = {"memory_mb": 2048, "pids": 200, "disk_mb": 512}


def postgres() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else None


def missing(client: Client) -> str:
    for need in client.needs:
        if need.startswith("python:"):
            words = [PYTHON, "-c", f"import {need[7:]}"]
            if subprocess.run(words, capture_output=True).returncode != 0:
                return need
        elif need == "postgres-server":
            if postgres() is None:
                return need
        elif not (Path(need).exists() if need.startswith("/") else on_path(need)):
            return need
    return ""


def on_path(name: str) -> str | None:
    return shutil.which(name, path="/usr/bin:/bin:/usr/sbin:/usr/local/go/bin:/usr/local/bin")


@contextlib.contextmanager
def database(world: World, directory: Path) -> Iterator[None]:
    """postgres and redis on the internet, as far as they are installed."""
    started: list[subprocess.Popen[bytes]] = []
    with inside(world.internet):
        if server := on_path("redis-server"):
            words = [server, "--bind", "0.0.0.0", "--protected-mode", "no", "--save", ""]
            started.append(subprocess.Popen(words, cwd=directory, stdout=subprocess.DEVNULL))
        if programs := postgres():
            data = directory / "postgres"
            data.mkdir()
            shutil.chown(data, "nobody")
            as_nobody = ["setpriv", "--reuid=nobody", "--clear-groups", "--inh-caps=-all"]
            begin = [
                *as_nobody,
                str(programs / "initdb"),
                "-D",
                str(data),
                "-U",
                "postgres",
                "-A",
                "trust",
            ]
            subprocess.run(begin, check=True, capture_output=True)
            (data / "pg_hba.conf").write_text("host all all 0.0.0.0/0 trust\n")
            words = [*as_nobody, str(programs / "postgres"), "-D", str(data), "-h", "*", "-k", ""]
            with open(directory / "postgres.log", "wb") as log:
                started.append(subprocess.Popen(words, stderr=log, cwd=data))
    try:
        yield
    finally:
        for process in started:
            process.terminate()
            process.wait()


@pytest.fixture(scope="module")
def databases(on_host: World) -> Iterator[None]:
    with tempfile.TemporaryDirectory() as name:  # those of pytest are closed to other users
        Path(name).chmod(0o755)
        with database(on_host, Path(name)):
            yield


def build(client: Client, directory: Path) -> bytes:
    out = directory / "client"
    source = HERE / "clients" / client.source
    words = client.builds.format(out=out, source=source)
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
    net: NetworkService, world: World, tmp_path: Path, request: pytest.FixtureRequest, name: str
) -> None:
    client = CLIENTS[name]
    if client.heavy and not ALL:
        pytest.skip("script/test-network runs it")
    if lacks := missing(client):
        pytest.skip(f"not here: {lacks}")
    if {"postgres-server", "redis-server"} & set(client.needs):
        request.getfixturevalue("databases")
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
            if status == 0 or "server" not in str(client.needs) or time.monotonic() > end:
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

"""A program whose death takes longer than cloche waits for it: whatever is known of it is told and
billed, and its key pays at least for the time that it had."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import Service, eventually, run_cli
from host import descendants, is_first, namespace_pids
from http_client import JSON, Connection, post

TIMEOUT_MS = 3000


def pid_namespace(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return ""


def cpu_ticks(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11])
    except OSError:
        return 0


def init_of_the_busy(service: Service) -> int | None:
    """The init of the sandbox where somebody runs."""
    everyone = [p.pid for p in descendants(service.process.pid)]
    inits = {pid_namespace(pid): pid for pid in everyone if is_first(pid)}
    for pid in everyone:
        init = inits.get(pid_namespace(pid), pid)
        if init != pid and len(namespace_pids(pid)) > 2 and cpu_ticks(pid) > 20:
            return init
    return None


@pytest.mark.parametrize("options", [(), ("--cgroup", "none")], ids=["groups", "no groups"])
def test_a_death_that_takes_long_is_billed(
    start_service: Callable[..., Service], tmp_path: Path, options: tuple[str, ...]
) -> None:
    tmp_path.chmod(0o711)
    keys = tmp_path / "keys.json"
    words = ("--keys", keys, "--cpu-seconds-per-minute", "1")
    secret = run_cli("key", "add", "a", *words).stdout.decode().strip()
    service = start_service("--profiles", "base", "--keys", str(keys), *options)
    key = {"Authorization": f"Bearer {secret}"}
    wanted = json.dumps({"code": "while True: pass", "timeout_ms": TIMEOUT_MS}).encode()
    with Connection(service.port) as connection:
        connection.send("POST", "/v1/execute", wanted, JSON | key)
        init = eventually(lambda: init_of_the_busy(service))
        os.kill(init, signal.SIGSTOP)  # it does not answer any more
        result = connection.reply().json
    assert (result["status"], result["limit_hit"]) == ("timeout", "time"), result
    assert result["usage"]["cpu_ms"] > 150, result["usage"]
    if options:  # nobody knows what it used: the wall clock counts
        assert post(service.port, "/v1/execute", {"code": "1"}, **key).status == 429

"""The audit log when its disk is full, when it is large, and when it lies elsewhere: nothing runs
that is not in it, unless the operator says so, and it is bounded."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import Service, eventually, run_cli
from http_client import Reply, get, post

LONG = "pass  # " + "x" * 200_000  # a line of the log, where that has programs
CODE = ("--profiles", "base", "--audit-code", "on")
Starter = Callable[..., Service]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system of its own."""
    if os.geteuid() != 0:
        pytest.skip("mounts a file system")
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "none", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


def fill(disk: Path) -> Path:
    file = disk / "fill"
    with open(file, "wb", 0) as out:
        try:
            while out.write(bytes(65536)):
                pass
        except OSError:
            return file
    raise AssertionError("it has no end")


def run(service: Service, code: str = LONG) -> Reply:
    return post(service.port, "/v1/execute", {"code": code, "timeout_ms": 60000})


def lines(directory: Path) -> list[dict[str, Any]]:
    files = sorted(directory.glob("audit.log*"), key=lambda file: (len(file.name), file.name))
    return [json.loads(line) for file in reversed(files) for line in file.read_text().splitlines()]


def metric(service: Service, name: str) -> float:
    found = get(service.port, "/metrics").body.decode().splitlines()
    return next(float(x.split()[1]) for x in found if x.startswith(f"cloche_{name} "))


def refusals(service: Service, ran: list[str], most: int) -> Reply:
    """Runs until it is refused."""
    for _ in range(most):
        reply = run(service)
        if reply.status != 200:
            return reply
        ran.append(str(reply.header("x-execution-id")))
    raise AssertionError("it was never refused")


def logged(directory: Path) -> list[str]:
    return [line["execution"] for line in lines(directory)]


def test_nothing_runs_unaudited_on_a_full_disk(disk: Path, start_service: Starter) -> None:
    service = start_service(*CODE, "--audit-dir", str(disk))
    ran: list[str] = []
    first = run(service, "pass")
    assert first.status == 200 and metric(service, "audit_up") == 1
    ran.append(str(first.header("x-execution-id")))
    taken = fill(disk)
    refused = refusals(service, ran, 60)
    assert len(ran) > 5, "room for some was taken before the disk was full"
    assert refused.status == 503 and refused.json["error"]["code"] == "audit_unavailable"
    assert int(refused.header("retry-after") or 0) > 0
    assert "No space left" in refused.json["error"]["message"]
    assert metric(service, "audit_up") == 0
    health = get(service.port, "/health").json
    assert health["status"] == "error" and "audit log" in health["message"]
    told = run_cli("status", "--socket", service.socket)
    assert b"trouble" in told.stdout and b"audit log" in told.stdout
    assert logged(disk) == ran, "every one that ran is there, and nothing else"
    taken.unlink()
    assert eventually(lambda: run(service, "pass").status == 200), "by itself"
    assert metric(service, "audit_up") == 1 and metric(service, "audit_lines_lost_total") == 0
    assert get(service.port, "/health").json["status"] == "ok"
    assert logged(disk)[: len(ran)] == ran


def test_an_operator_may_let_programs_run_without_it(disk: Path, start_service: Starter) -> None:
    service = start_service(*CODE, "--audit-dir", str(disk), "--audit-full", "allow")
    taken = fill(disk)
    ran = [str(run(service).header("x-execution-id")) for _ in range(30)]
    assert None not in ran and metric(service, "audit_failures_total") > 0
    assert len(logged_so_far(disk)) < 30 and metric(service, "audit_lines_waiting") > 0
    taken.unlink()
    assert eventually(lambda: metric(service, "audit_lines_waiting") == 0), "there is room again"
    assert logged(disk) == ran


def logged_so_far(directory: Path) -> list[str]:
    """The last line may be half there."""
    return (directory / "audit.log").read_text().splitlines()[:-1]


def test_it_is_bounded(start_service: Starter, tmp_path: Path) -> None:
    place = tmp_path / "audit"
    options = ("--audit-dir", str(place), "--audit-mb", "1", "--audit-files", "2")
    service = start_service(*CODE, *options)
    ran = [str(run(service).header("x-execution-id")) for _ in range(24)]
    names = {file.name for file in place.iterdir()}
    assert names == {"audit.log", "audit.log.1", "audit.log.2"}
    assert all(file.stat().st_size <= 1 << 20 for file in place.iterdir())
    kept = logged(place)
    assert len(kept) > 9 and kept == ran[-len(kept) :], "the newest, in order"
    old = [file for file in place.iterdir() if file.name != "audit.log"]
    assert all(file.stat().st_blocks * 512 < 3 << 20 for file in old), "nor is room kept for them"


def test_a_file_that_is_moved_away_is_left_alone(start_service: Starter) -> None:
    service = start_service("--profiles", "base")
    log = service.state / "audit.log"
    first = run(service, "1")
    log.rename(service.state / "mine")
    second = run(service, "2")
    assert [line["execution"] for line in map(json.loads, log.read_text().splitlines())] == [
        second.header("x-execution-id")
    ]
    assert str(first.header("x-execution-id")) in (service.state / "mine").read_text()


def test_half_a_line_of_a_server_that_was_killed(start_service: Starter, tmp_path: Path) -> None:
    (tmp_path / "audit").mkdir()
    log = tmp_path / "audit" / "audit.log"
    log.write_text('{"time":1')
    log.chmod(0o666)  # the server is another user
    service = start_service("--profiles", "base", "--audit-dir", str(log.parent))
    run(service, "1")
    half, whole = log.read_text().splitlines()
    assert half == '{"time":1' and json.loads(whole)["status"] == "ok"

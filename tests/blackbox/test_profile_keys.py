"""What a profile gives its programs besides modules: variables and limits."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from commands import shell_of
from family import write_config
from harness import LiveService, failed, run_cli
from http_client import ask, execute
from live import Client

MINE: dict[str, Any] = {
    "preload": ["json"],
    "pool": 1,
    "env": {"COLOUR": "blue = green", "OMP_NUM_THREADS": "3", "TZ": "Etc/GMT-7"},
    "limits": {"open_files": 77, "cpus": 0.5, "disk_mb": 9},
}
LOOK = """
import os, resource, time
print(os.environ["COLOUR"], time.timezone, os.environ["OMP_NUM_THREADS"])
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
print(os.statvfs("/workspace").f_blocks * os.statvfs("/workspace").f_bsize >> 20)
"""
SEEN = "blue = green -25200 3\n77\n9\n"


@pytest.fixture
def service(start_live: Callable[..., LiveService], tmp_path: Path) -> LiveService:
    small = {"preload": ["json"], "pool": 1}
    return start_live(
        "--config", write_config(tmp_path, {"data": None, "base": small, "mine": MINE})
    )


def test_programs_and_live_sandboxes_have_both(service: LiveService) -> None:
    assert execute(service.port, LOOK, profile="mine")["stdout"] == SEEN
    more: dict[str, Any] = {"limits": {"open_files": 99}, "env": {"TZ": "UTC"}}
    asked = execute(service.port, LOOK, profile="mine", **more)
    assert asked["stdout"] == "blue = green 0 3\n99\n9\n", "what is asked for counts more"
    assert execute(service.port, "import os; os.environ['COLOUR']", profile="base")["error"]
    with Client(service.port).box(profile="mine") as box:
        assert box.run(LOOK)["stdout"] == SEEN
    with shell_of(service, profile="mine") as shell:
        assert shell.said("echo $COLOUR; ulimit -n") == "blue = green\n77\n"


def test_both_are_told(service: LiveService) -> None:
    profiles = {p["name"]: p for p in ask(service.port, "GET", "/v1/profiles").json["profiles"]}
    mine, base = profiles["mine"], profiles["base"]
    assert mine["env"] == MINE["env"] and base["env"] == {}
    assert mine["limits"] == {**base["limits"], **MINE["limits"]}
    assert mine["live_limits"] == {**base["live_limits"], **MINE["limits"]}


@pytest.mark.parametrize(
    "key, value, words",
    [
        ("env", ["A=1"], "object"),
        ("env", {"A B": "1"}, "name of a variable"),
        ("env", {"A": 1}, "string"),
        ("env", {"A": "1\n2"}, "one line"),
        ("env", {"PYTHONPATH": "/srv"}, "sites"),
        ("limits", 3, "object"),
        ("limits", {"memory": 3}, "no limit memory"),
        ("limits", {"memory_mb": 0}, "memory_mb must be a whole number from 1"),
        ("limits", {"memory_mb": 1.5}, "whole number"),
        ("limits", {"cpus": 0.001}, "cpus must be a number from 0.01"),
    ],
)
def test_what_cannot_be_meant(tmp_path: Path, key: str, value: Any, words: str) -> None:
    config = write_config(tmp_path, {"mine": {key: value}})
    failed(run_cli("config", "--config", config), f"profiles.mine.{key}", words)


def test_cloche_config_says_them(tmp_path: Path) -> None:
    config = write_config(tmp_path, {"mine": MINE})
    found = json.loads(run_cli("config", "--json", "--config", config).stdout)["profiles"]["mine"]
    assert found["limits"] == MINE["limits"]
    assert sorted(found["env"]) == sorted(f"{k}={v}" for k, v in MINE["env"].items())
    assert b"open_files 77" in run_cli("config", "--config", config).stdout

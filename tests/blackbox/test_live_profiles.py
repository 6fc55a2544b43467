"""The interpreters of live sandboxes: each profile has a second one, with IPython, that is shown as
a state of that profile and nowhere else."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import PYTHON, LiveService, clean_env, eventually, failed, run_cli
from raw_http import ask, execute, request
from made import place_of_profiles

Starter = Callable[..., LiveService]


def get(service: LiveService, path: str) -> bytes:
    return ask(service, request("GET", path)).body


def profile(service: LiveService, name: str) -> dict[str, Any]:
    listed = json.loads(get(service, "/v1/profiles"))["profiles"]
    return next(p for p in listed if p["name"] == name)


@pytest.fixture
def place() -> Iterator[Path]:
    with place_of_profiles() as place:
        yield place


class Changing:
    """A service whose profiles come from a file of the test's."""

    def __init__(self, start: Starter, place: Path, **profiles: Any) -> None:
        self.file = place / "config.json"
        self.write(**profiles)
        self.service = start("--config", str(self.file))

    def write(self, **profiles: Any) -> None:
        small = {"preload": ["json"], "pool": 1}
        self.file.write_text(json.dumps({"profiles": {"data": None, "base": small, **profiles}}))

    def reload(self) -> None:
        self.service.process.send_signal(signal.SIGHUP)

    def becomes(self, **live: str) -> bool:
        """Until the states are these."""
        return bool(eventually(lambda: self.service.drain() and self.service.live() == live))


# ---------------------------------------------------------------------------- hidden


def test_they_are_a_state_of_their_profile(live_service: LiveService) -> None:
    assert live_service.live() == {"base": "ready", "data": "ready"}
    assert len(live_service.nurseries()) == 4
    for name in ("base", "data"):
        assert profile(live_service, name)["live"] == "ready"
        assert profile(live_service, name)["live_what"] is None
    shown = run_cli("status", "--socket", live_service.socket).stdout.decode()
    rows = {line.split()[0]: line.split() for line in shown.splitlines() if line}
    assert rows["base"][-1] == rows["data"][-1] == "ready"


def test_nothing_else_shows_them(live_service: LiveService) -> None:
    paths = ("/v1/profiles", "/v1/info", "/metrics", "/health", "/openapi.json")
    told = b"".join(get(live_service, path) for path in paths)
    env = clean_env(CLOCHE_HTTP="on", CLOCHE_LIVE="on")
    for words in (
        ("status", "--json", "--socket", str(live_service.socket)),
        ("status", "--server", live_service.url),
        ("config",),
        ("config", "--json"),
        ("doctor", "--json"),
    ):
        told += run_cli(*words, env=env).stdout
    assert b'"live"' in told and b"+live" not in told


def test_no_program_runs_in_them(live_service: LiveService) -> None:
    refusal = execute(live_service, "1", profile="base+live").json["error"]
    assert refusal["code"] == "unknown_profile"
    assert refusal["message"].endswith("there are base, data, and auto")
    code = "import sys; print('IPython' in sys.modules)"
    for name, text in (("base", code), ("data", code), ("auto", f"import numpy\n{code}")):
        assert execute(live_service, text, profile=name).json["stdout"] == "False\n"


@pytest.mark.skipif(Path("/run/cloche/engine.sock").exists(), reason="an engine runs here")
def test_a_private_engine_has_none(tmp_path: Path) -> None:
    env = clean_env(XDG_RUNTIME_DIR=str(tmp_path), CLOCHE_LIVE="on", CLOCHE_HTTP="on")
    failed(run_cli("run", "--profile", "base+live", "-c", "1", env=env), "no profile")
    code = "import sys; print('IPython' in sys.modules)"
    assert run_cli("run", "-c", code, env=env).stdout == b"False\n"


def test_they_can_be_off(start_live: Starter) -> None:
    service = start_live("--profiles", "base", "--live", "off")
    assert service.live() == {"base": "off"} and len(service.nurseries()) == 1
    assert profile(service, "base")["live"] == "off"


# ---------------------------------------------------------------------------- broken


def test_without_ipython_only_they_are_broken(start_live: Starter, place: Path) -> None:
    venv = place / "venv"
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", venv], check=True)
    changing = Changing(start_live, place, venv={"python": f"{venv}/bin/python3", "preload": []})
    service = changing.service
    assert service.live() == {"base": "ready", "venv": "broken"}
    shown = profile(service, "venv")
    assert shown["state"] == "ready" and shown["problem"] is None
    assert f"IPython is not installed for {venv}/bin/python3" in shown["live_what"]
    assert "install python3-ipython" in shown["live_what"]
    status = run_cli("status", "--socket", service.socket).stdout.decode()
    assert "IPython is not installed" in status
    assert json.loads(get(service, "/health"))["status"] == "ok"
    assert execute(service, "print(1)", profile="venv").json["stdout"] == "1\n"
    # Installed since, and the signal is enough.
    (package,) = venv.glob("lib/python3*/site-packages")
    (package / "debian.pth").write_text("/usr/lib/python3/dist-packages\n")
    changing.reload()
    assert changing.becomes(base="ready", venv="ready"), service.text()


def id_range() -> int:
    """Ids of a line in /etc/subuid that root's engine takes, if it is the one that is usual."""
    found = re.findall(r"^(?:root|0|cloche):\d+:(\d+)$", Path("/etc/subuid").read_text(), re.M)
    return int(found[0]) if len(found) == 1 else 0


def test_with_too_few_ids_there_are_none(start_live: Starter) -> None:
    if os.geteuid() != 0 or not 10000 < id_range() < 150000:
        pytest.skip("needs root and a range of ids of the usual size")
    most = id_range() * 2 // 3  # sandboxes: one profile has that many ids, two have not
    service = start_live("--profiles", "base", "--max-sandboxes", str(most), "--pool", "1")
    assert service.live() == {"base": "broken"}
    assert "too few user ids" in profile(service, "base")["live_what"]
    assert "too few for live sandboxes" in service.text()
    assert execute(service, "import os; print(os.getuid())").json["stdout"] == "1000\n"


# ---------------------------------------------------------------------------- starting

WAITING = """
import os, time
while not os.path.exists({go!r}):
    time.sleep(0.01)
"""


def test_they_start_when_their_profile_is_ready(start_live: Starter, place: Path) -> None:
    site, go = place / "site", place / "site" / "go"
    site.mkdir()
    (site / "waiting.py").write_text(WAITING.format(go=str(go)))
    changing = Changing(start_live, place)
    service = changing.service
    before = service.nurseries()
    changing.write(slow={"sites": [str(site)], "preload": ["waiting"]})
    changing.reload()
    assert changing.becomes(base="ready", slow="starting")
    assert eventually(lambda: len(service.nurseries()) == 3), "base, its twin, and slow"
    assert profile(service, "slow")["state"] == "starting"
    assert json.loads(get(service, "/health"))["status"] == "ok"
    assert execute(service, "print(1)", profile="base").json["stdout"] == "1\n"
    assert len(service.nurseries()) == 3
    go.touch()
    assert changing.becomes(base="ready", slow="ready")
    assert profile(service, "slow")["state"] == "ready"
    assert len(service.nurseries()) == 4 and set(before) < set(service.nurseries())
    assert "could not be made" not in service.text()


def test_a_reload_adds_removes_and_changes_them(start_live: Starter, place: Path) -> None:
    changing = Changing(start_live, place)
    service = changing.service
    first = service.nurseries()
    assert service.live() == {"base": "ready"} and len(first) == 2
    changing.write(more={"preload": ["decimal"]})
    changing.reload()
    assert changing.becomes(base="ready", more="ready")
    second = service.nurseries()
    assert len(second) == 4 and set(first) < set(second)
    changing.write(more={"preload": ["decimal", "fractions"]})
    changing.reload()
    assert eventually(lambda: service.drain() and len(set(service.nurseries()) - set(second)) == 2)
    assert changing.becomes(base="ready", more="ready")
    assert eventually(lambda: len(service.nurseries()) == 4)
    changing.write()
    changing.reload()
    assert changing.becomes(base="ready")
    assert eventually(lambda: service.nurseries() == first)
    settings = json.loads(changing.file.read_text())
    changing.file.write_text(json.dumps({**settings, "live_pool": 2}))
    changing.reload()
    assert eventually(lambda: service.drain() and len(set(service.nurseries()) & set(first)) == 1)
    assert changing.becomes(base="ready")
    assert eventually(lambda: len(service.nurseries()) == 2)


def test_they_come_back_and_leave_the_rest_alone(start_live: Starter, place: Path) -> None:
    service = Changing(start_live, place).service
    age = {p.pid: p.started for p in service.remember()}
    lean, twin = sorted(service.nurseries(), key=lambda pid: age[pid])
    os.kill(twin, signal.SIGKILL)
    assert execute(service, "print(1)").json["stdout"] == "1\n"
    assert eventually(lambda: service.drain() and twin not in service.nurseries())
    assert eventually(lambda: service.live() == {"base": "ready"})
    assert lean in service.nurseries()

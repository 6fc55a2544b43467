"""`cloche status`: how a running engine is doing, through its socket and over HTTP."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import Engine, LiveService, Service, clean_env, eventually, failed, run_cli
from live import Client
from raw_http import Closed, KeyedService, ask, execute, request

QUICK = ("--profiles", "base")


def test_a_table_for_people(service: Service) -> None:
    for words in (("--socket", str(service.socket)), ("--server", service.url)):
        done = run_cli("status", *words)
        text = done.stdout.decode()
        assert done.returncode == 0 and done.stderr == b""
        assert f"at {words[1]}\nup since " in text
        for line in ("running", "sandboxes", "executions", "memory", "profile "):
            assert f"\n{line}" in text, text
        rows = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line}
        assert rows["base"][0] == rows["data"][0] == "ready"


def test_json_is_the_same_from_both_sides(service: Service) -> None:
    near = json.loads(run_cli("status", "--json", "--socket", service.socket).stdout)
    far = json.loads(run_cli("status", "--json", "--server", service.url).stdout)
    assert near.keys() == far.keys()
    for name in ("version", "started", "max_sandboxes", "restarts"):
        assert near[name] == far[name]
    assert far["requests"] == near["requests"] + 1
    assert far["memory_bytes"] > 1 << 20
    assert [p["name"] for p in far["profiles"]] == ["base", "data"]
    assert all(p["pool"] > 0 for p in far["profiles"])


def test_what_runs_and_what_waits(start_engine: Callable[..., Engine]) -> None:
    engine = start_engine(*QUICK, "--max-sandboxes", "1")

    def counts() -> tuple[int, int]:
        info = json.loads(run_cli("status", "--json", "--socket", engine.socket).stdout)
        return info["running"], info["queued"]

    assert counts() == (0, 0)
    with engine.raw() as one, engine.raw() as two:
        one.start("import time; time.sleep(300)", timeout_ms=60000)
        assert eventually(lambda: counts() == (1, 0))
        two.start("1", timeout_ms=60000)
        assert eventually(lambda: counts() == (1, 1))
    assert eventually(lambda: counts() == (0, 0))


def test_a_live_sandbox_runs_only_while_a_cell_does(live_service: LiveService) -> None:
    def status() -> str:
        return run_cli("status", "--server", live_service.url).stdout.decode()

    with Client(live_service.port).box() as box:
        assert "\nrunning     0, waiting 0\n" in status() and "; live 1\n" in status()
        with box.stream("input()") as events:
            events.until("input")
            assert "\nrunning     1, waiting 0\n" in status()
            box.do("/stdin", value="")
            events.until("end")
        assert eventually(lambda: "\nrunning     0, waiting 0\n" in status())
    assert "; live 0\n" in status()


def test_no_engine_is_125_and_one_line(tmp_path: Path) -> None:
    failed(run_cli("status", "--socket", tmp_path / "none"), "no engine listens", "cloche serve")
    done = run_cli("status", "--json", "--socket", tmp_path / "none")
    assert json.loads(done.stdout)["error"]["code"] == "no_engine" and done.returncode == 125
    failed(run_cli("status", "extra"), "extra")
    failed(run_cli("status", "--wrong"), "--wrong")
    failed(run_cli("status", "--server"), "needs a value")
    failed(run_cli("status", "--server", "http://x", "--socket", "/y"), "--socket")


def test_a_server_that_wants_a_key(keyed_service: KeyedService) -> None:
    failed(run_cli("status", "--server", keyed_service.url), "API key")
    env = clean_env(CLOCHE_API_KEY=keyed_service.key)
    assert run_cli("status", "--server", keyed_service.url, env=env).returncode == 0


# ---------------------------------------------------------------------------- restarts, isolation


def process(engine: Engine, role: str) -> int:
    return next(p.pid for p in engine.remember() if p.role == role)


def restarts(service: Service) -> dict[str, int]:
    text = ask(service, request("GET", "/metrics")).body.decode()
    lines = [line for line in text.splitlines() if line.startswith("cloche_restarts_total{")]
    return {line.split('"')[1]: int(line.split()[-1]) for line in lines}


def test_restarts_are_counted(start_service: Callable[..., Service]) -> None:
    service = start_service(*QUICK)
    assert restarts(service) == dict.fromkeys(("warden", "server", "nursery", "zygote", "gate"), 0)

    def ran() -> bool:
        try:
            return bool(execute(service, "print(1)").json.get("stdout") == "1\n")
        except (Closed, OSError):  # whoever accepted it was dying
            return False

    def runs() -> bool:
        return bool(eventually(ran))

    def counted(process: str) -> int:
        """A server that is about to die, or whose warden is, may still answer for a while."""
        try:
            return restarts(service)[process]
        except (Closed, OSError):
            return -1

    os.kill(service.nurseries()[0], signal.SIGKILL)
    assert eventually(lambda: restarts(service)["nursery"] == 1)
    assert runs()
    os.kill(process(service, "cloche-server"), signal.SIGKILL)
    assert eventually(lambda: counted("server") == 1)
    assert runs()
    os.kill(process(service, "cloche-gate"), signal.SIGKILL)
    assert eventually(lambda: counted("gate") == 1)
    now = {"warden": 0, "server": 1, "nursery": 1, "zygote": 0, "gate": 1}
    assert restarts(service) == now
    shown = run_cli("status", "--socket", service.socket).stdout
    assert b"restarts    server 1, nurseries 1, gate 1\n" in shown
    os.kill(process(service, "cloche-warden"), signal.SIGKILL)
    assert eventually(lambda: counted("warden") == 1)
    assert runs()
    assert restarts(service) == dict.fromkeys(now, 0) | {"warden": 1}


@pytest.mark.parametrize("groups", ["auto", "none"])
def test_isolation_layers_in_force(start_service: Callable[..., Service], groups: str) -> None:
    """What doctor finds is what the server says."""
    service = start_service(*QUICK, "--cgroup", groups)
    listed = ask(service, request("GET", "/v1/info")).json["isolation"]
    said = {layer["layer"]: (layer["state"], layer["detail"]) for layer in listed}
    found = json.loads(run_cli("doctor", "--json", "--cgroup", groups).stdout)
    layers = {layer["name"]: (layer["state"], layer["how"]) for layer in found["layers"]}
    if groups == "none":
        assert said.pop("cgroup")[0] == layers.pop("cgroup")[0] == "weak"
    assert said == layers and said["seccomp"][0] == "ok"


def test_the_layers_are_known_to_a_new_server(start_service: Callable[..., Service]) -> None:
    service = start_service(*QUICK)
    before = ask(service, request("GET", "/v1/info")).json["isolation"]
    os.kill(process(service, "cloche-server"), signal.SIGKILL)
    assert before and ask(service, request("GET", "/v1/info")).json["isolation"] == before

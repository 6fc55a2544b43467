"""Engines that ordinary users start, and what they say of what is missing."""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from harness import LONG, Caller, Engine, eventually, failed, run_cli
from users import NAMELESS, home_of, private, supervisors


# ---------------------------------------------------------------------------- a private engine


def test_a_private_engine(caller: Caller) -> None:
    before = supervisors(caller)
    result = private(caller, "import sys; print(sys.argv[1:]); sys.exit(3)", "--", "a", "b")
    assert (result["exit_status"], result["stdout"]) == (3, "['a', 'b']\n")
    assert private(caller, "import time; time.sleep(60)", timeout=0.5)["exit_status"] == 124
    memory = private(caller, "x = b'x' * (300 << 20)", memory=64, **LONG)
    assert (memory["status"], memory["exit_status"]) == ("memory_exceeded", 137)
    assert eventually(lambda: not supervisors(caller) - before)
    left = {path.name for path in home_of(caller).iterdir()}
    assert left <= {"engine.sock", "given.txt", "secret"}


def test_the_engine_of_a_user_is_found_and_closed_to_others(
    with_one_id: Caller, with_range: Caller
) -> None:
    home = home_of(with_one_id)
    command = with_one_id.command("serve", "--profiles", "base")
    env = with_one_id.environment()
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=env, cwd="/") as serve:
        assert serve.stdout is not None
        listening = serve.stdout.readline().decode()
        socket = home / "cloche" / "engine.sock"
        assert listening.rstrip().endswith(f"listening on {socket}")
        assert socket.stat().st_mode & 0o777 == 0o600
        assert socket.parent.stat().st_mode & 0o777 == 0o700
        done = run_cli("run", "-v", "-c", "print('here')", caller=with_one_id, cwd=Path("/"))
        assert done.stdout == b"here\n" and b"private" not in done.stderr
        other = run_cli("run", "--socket", socket, "-c", "1", caller=with_range, cwd=Path("/"))
        failed(other, "not open to this user")
        serve.terminate()
    assert not socket.exists()
    socket.parent.rmdir()


def test_a_user_who_did_not_log_in_has_an_engine_too(with_one_id: Caller, tmp_path: Path) -> None:
    """After su, or in a container, there is no runtime directory: the socket is with the state."""
    state = home_of(with_one_id) / "state"
    env = {**with_one_id.environment(), "XDG_STATE_HOME": str(state)}
    del env["XDG_RUNTIME_DIR"]
    command = with_one_id.command("serve", "--profiles", "base", "--port", "0")
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=env, cwd="/") as serve:
        assert serve.stdout is not None
        socket = state / "cloche" / "engine.sock"
        assert f"listening on {socket}" in serve.stdout.readline().decode()
        assert socket.parent.stat().st_mode & 0o777 == 0o700
        ask = with_one_id.command("run", "-v", "-c", "print('here')")
        done = subprocess.run(ask, capture_output=True, env=env, cwd="/", check=True)
        assert done.stdout == b"here\n" and b"private" not in done.stderr
        serve.terminate()
    assert not socket.exists()
    shutil.rmtree(state)


def test_no_new_privs_leaves_one_id(with_range: Caller) -> None:
    """newuidmap cannot work then, and that is said; programs run all the same."""
    *who, end = with_range.before
    bound = Caller(with_range.program, (*who, "--no-new-privs", end), with_range.env)
    done = run_cli("run", "-c", "print('ran')", caller=bound, cwd=Path("/"))
    assert (done.returncode, done.stdout) == (0, b"ran\n")
    assert b"no id range" in done.stderr
    doctor = run_cli("doctor", caller=bound, cwd=Path("/"))
    assert b"no_new_privs" in doctor.stdout


# ---------------------------------------------------------------------------- what is said


def test_what_is_missing_is_said_at_the_start(engine: Engine, caller: Caller) -> None:
    text = engine.text()
    assert "no control groups: " in text
    assert "watched, not enforced" in text
    assert ("no id range" in text) == (str(NAMELESS) in caller.before[1])


def test_doctor_says_the_same(caller: Caller) -> None:
    done = run_cli("doctor", "--json", caller=caller, cwd=Path("/"))
    found = json.loads(done.stdout)
    states = {layer["name"]: layer["state"] for layer in found["layers"]}
    single = str(NAMELESS) in caller.before[1]
    assert done.returncode == 0 and found["minimum"]["met"] is True
    assert states["cgroup"] == "weak"
    assert states["ids"] == ("weak" if single else "ok")


@pytest.mark.parametrize("words", ["strict,cgroup", "cgroup", "strict cgroup"])
def test_below_the_minimum_nothing_runs(caller: Caller, words: str) -> None:
    demanding = dataclasses.replace(caller, env=caller.env | {"CLOCHE_MINIMUM": words})
    run = run_cli("run", "-c", "print(1)", caller=demanding, cwd=Path("/"))
    failed(run, "cgroup")
    socket = home_of(caller) / "refused.sock"
    serve = run_cli("serve", "--socket", socket, "--minimum", words, caller=caller, cwd=Path("/"))
    failed(serve, "cgroup")
    assert not socket.exists()
    doctor = run_cli("doctor", "--json", "--minimum", words, caller=caller, cwd=Path("/"))
    assert doctor.returncode == 1
    assert json.loads(doctor.stdout)["minimum"]["unmet"] == ["cgroup"]


def test_no_minimum(caller: Caller) -> None:
    modest = dataclasses.replace(caller, env=caller.env | {"CLOCHE_MINIMUM": "none"})
    run = run_cli("run", "-c", "print(1)", caller=modest, cwd=Path("/"))
    assert (run.returncode, run.stdout) == (0, b"1\n")
    doctor = run_cli("doctor", "--minimum", "none", caller=caller, cwd=Path("/"))
    assert doctor.returncode == 0

"""cloche's own failures: one line, exit status 125, the kind in --json, nothing left behind."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from harness import Engine, clean_env, failed, run_cli


def failed_json(engine: Engine, *words: str | os.PathLike[str]) -> dict[str, Any]:
    done = engine.cli("--json", *words)
    assert done.returncode == 125
    error: dict[str, Any] = json.loads(done.stdout)["error"]
    assert set(error) >= {"code", "message", "remediation", "retryable"}
    assert error["message"] and error["remediation"]
    return error


def test_no_such_file(engine: Engine, tmp_path: Path) -> None:
    failed(engine.cli(tmp_path / "nope.py"), "nope.py", "no such file")


def test_a_directory_instead_of_a_file(engine: Engine, tmp_path: Path) -> None:
    failed(engine.cli(tmp_path), str(tmp_path), "directory")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file(engine: Engine, tmp_path: Path) -> None:
    program = tmp_path / "secret.py"
    program.write_text("print(1)")
    program.chmod(0)
    failed(engine.cli(program), "secret.py", "permission")


def test_no_such_input_file(engine: Engine, tmp_path: Path) -> None:
    failed(engine.cli("--file", tmp_path / "nope", "-c", "print(1)"), "nope", "no such file")


def test_an_input_that_is_a_directory(engine: Engine, tmp_path: Path) -> None:
    failed(engine.cli("--file", tmp_path, "-c", "print(1)"), "directory")


def test_a_program_that_is_a_device(engine: Engine) -> None:
    failed(engine.cli("/dev/zero"), "/dev/zero")


def test_out_that_is_a_file(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    failed(engine.cli("--out", tmp_path / "out", "-c", "print(1)"), "out", "directory")


def test_an_unknown_profile(engine: Engine) -> None:
    message = failed(engine.cli("--profile", "nope", "-c", "print(1)"), "nope", "profile")
    assert "base" in message, "the profiles that there are"


def test_an_unknown_profile_in_json(engine: Engine) -> None:
    assert failed_json(engine, "--profile", "nope", "-c", "1")["code"] == "unknown_profile"


LIMITS = ["timeout", "memory", "cpu", "cpus", "pids", "disk", "output", "open-files"]


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("value", ["", "x", "-1", "0", "1e3", "99999999999999999999", "nan", "5 "])
def test_a_limit_that_is_malformed_or_out_of_bounds(engine: Engine, limit: str, value: str) -> None:
    failed(engine.cli(f"--{limit}", value, "-c", "print(1)"), limit)


@pytest.mark.parametrize("limit", LIMITS)
def test_a_limit_over_the_maximum(engine: Engine, limit: str) -> None:
    failed(
        engine.cli(f"--{limit}", "4294967", "-c", "print(1)")
        if limit != "output"
        else engine.cli("--output", str(1 << 40), "-c", "print(1)")
    )


def test_a_bad_limit_in_json(engine: Engine) -> None:
    assert failed_json(engine, "--memory", "x", "-c", "1")["code"] == "bad_value"


@pytest.mark.parametrize("setting", ["", "=x", "novalue", "A\nB"])
def test_a_malformed_environment_setting(engine: Engine, setting: str) -> None:
    failed(engine.cli("--env", setting, "-c", "print(1)"), "env")


@pytest.mark.parametrize("words", [[], ["-c"], ["--nope", "-c", "1"], ["-c", "1", "file.py"]])
def test_a_wrong_command_line(engine: Engine, words: list[str]) -> None:
    failed(engine.cli(*words))


def test_a_named_engine_that_is_not_there(tmp_path: Path) -> None:
    nowhere = tmp_path / "nothing.sock"
    failed(run_cli("run", "--socket", nowhere, "-c", "print(1)"), str(nowhere), "serve")


def test_a_named_engine_that_is_not_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    failed(run_cli("run", "--socket", tmp_path / "file", "-c", "print(1)"), str(tmp_path / "file"))


def test_a_named_engine_that_is_not_there_in_json(tmp_path: Path) -> None:
    done = run_cli("run", "--socket", tmp_path / "x", "--json", "-c", "print(1)")
    assert done.returncode == 125
    assert json.loads(done.stdout)["error"]["code"] == "no_engine"


def test_a_socket_named_in_the_environment(engine: Engine) -> None:
    done = run_cli("run", "-c", "print('here')", env=clean_env(CLOCHE_SOCKET=str(engine.socket)))
    assert done.stdout == b"here\n"


@pytest.mark.parametrize(
    "words,meant",
    [
        (["rnu"], 'no verb "rnu" (did you mean run?)'),
        (["run", "--tiemout", "5"], "(did you mean --timeout?)"),
        (["run", "--memroy=5"], "(did you mean --memory?)"),
        (["status", "--jsn"], "(did you mean --json?)"),
        (["serve", "--prot", "1"], "(did you mean --port?)"),
        (["key", "--stat-dir", "x"], "(did you mean --state-dir?)"),
        (["sandbox", "craete"], 'sandbox: there is no verb "craete" (did you mean create?)'),
        (["sandbox", "create", "--nmae", "x"], "(did you mean --name?)"),
    ],
)
def test_a_mistyped_word_is_answered_with_the_right_one(words: list[str], meant: str) -> None:
    failed(run_cli(*words), meant)


def test_nothing_is_meant_where_nothing_is_like_it() -> None:
    assert "did you mean" not in failed(run_cli("run", "--xyzzy"), "is no option")
    failed(run_cli("status", "--server"), '"--server" needs a value')

"""The file `.env` beside the configuration file: below the environment, above the file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from harness import clean_env, failed, run_cli


@pytest.fixture(name="file")
def fixture_file(tmp_path: Path) -> Path:
    tmp_path.chmod(0o755)
    file = tmp_path / "config.json"
    file.write_text('{"port": 1001, "idle_s": 5}')
    return file


def write(file: Path, text: str, mode: int = 0o600) -> Path:
    beside = file.parent / ".env"
    beside.write_text(text)
    beside.chmod(mode)
    return beside


def shown(file: Path, *words: str, **env: str) -> dict[str, Any]:
    done = run_cli("config", "--json", "--config", str(file), *words, env=clean_env(**env))
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_it_goes_before_the_file_and_behind_the_environment(file: Path) -> None:
    beside = write(file, "# ours\nexport PORT=1002\nCLOCHE_DRAIN_S='3' # s\nREDIS_URL=redis://x\n")
    all_of_it = shown(file)
    assert all_of_it["env_file"] == str(beside)
    at = all_of_it["settings"]
    assert at["port"] == {
        "value": 1002,
        "origin": "env_file",
        "from": f"PORT in {beside}",
        "note": None,
    }
    assert (at["drain_s"]["value"], at["idle_s"]["value"]) == (3, 5)
    assert shown(file, PORT="1003")["settings"]["port"]["from"] == "PORT"
    assert shown(file, "--port", "1004")["settings"]["port"]["origin"] == "flag"
    text = run_cli("config", "--config", str(file)).stdout.decode()
    assert f"PORT in {beside}" in text and str(beside) in text.split("\n\n", 1)[0]


def test_without_one_nothing_is_said(file: Path) -> None:
    assert shown(file)["env_file"] is None
    assert ".env" not in run_cli("config", "--config", str(file)).stdout.decode()


def test_it_is_found_where_no_configuration_file_is(tmp_path: Path) -> None:
    place = tmp_path / "cloche"
    place.mkdir()
    write(place / "config.json", "PORT=1005\n")
    done = run_cli("config", "--json", env=clean_env(XDG_CONFIG_HOME=str(tmp_path)))
    assert json.loads(done.stdout)["settings"]["port"]["value"] == 1005


def test_that_of_the_working_directory_is_not_read(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere"
    other.mkdir()
    write(other / "x", "PORT=1006\n")
    done = run_cli("config", "--json", "--config", str(file), cwd=other)
    assert json.loads(done.stdout)["settings"]["port"]["value"] == 1001


@pytest.mark.parametrize(
    "text,words",
    [
        ("A=1\nnonsense\n", ["line 2", "NAME=VALUE"]),
        ("A='s3cret\n", ["line 1", "not closed"]),
        ("PORT=x\n", ["PORT in ", '"x"', "0 to 65535"]),
        ("#" * 70000, ["more than 65536 bytes"]),
    ],
)
def test_a_mistake_is_one_line_that_names_the_place(
    file: Path, text: str, words: list[str]
) -> None:
    beside = write(file, text)
    done = run_cli("config", "--config", str(file))
    failed(done, str(beside), *words)
    assert b"s3cret" not in done.stderr


def test_one_that_others_may_write_is_refused(file: Path) -> None:
    for mode in (0o620, 0o602, 0o666):
        beside = write(file, "PORT=1002\n", mode)
        failed(run_cli("config", "--config", str(file)), str(beside), "others")


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files away")
def test_one_of_another_user_is_refused(file: Path) -> None:
    beside = write(file, "PORT=1002\n")
    os.chown(beside, 12345, 12345)
    failed(run_cli("config", "--config", str(file)), str(beside), "12345")


def test_a_secret_in_it_is_not_shown(file: Path) -> None:
    write(file, "EFAST_TOKEN=s3cret\n")
    done = run_cli("config", "--config", str(file))
    assert b"(set)" in done.stdout and b"s3cret" not in done.stdout + done.stderr


def test_programs_run_with_it(file: Path) -> None:
    file.write_text("{}")
    write(file, "MAX_OUTPUT_BYTES=30\n")
    done = run_cli("run", "--config", str(file), "--json", "-c", "print('x' * 100)")
    assert json.loads(done.stdout)["limit_hit"] == "output"

"""`cloche config`: every setting, its value, and where that came from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness import clean_env, failed, run_cli


def settings(*words: str, **env: str) -> dict[str, Any]:
    done = run_cli("config", "--json", *words, env=clean_env(**env))
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)["settings"]
    return found


def test_flags_go_before_the_environment_and_that_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text('{"port": 1001, "idle_s": 5}')
    words = ("--config", str(file))
    at = settings(*words, "--port", "1004", CLOCHE_PORT="1003", PORT="1002")["port"]
    assert (at["value"], at["origin"], at["from"]) == (1004, "flag", "--port")
    at = settings(*words, CLOCHE_PORT="1003", PORT="1002")["port"]
    assert (at["value"], at["origin"], at["from"]) == (1003, "environment", "CLOCHE_PORT")
    at = settings(*words, PORT="1002")["port"]
    assert (at["value"], at["origin"], at["from"]) == (1002, "environment", "PORT")
    at = settings(*words)
    assert (at["port"]["value"], at["port"]["origin"]) == (1001, "file")
    assert (at["idle_s"]["value"], at["drain_s"]["origin"]) == (5, "default")
    assert settings()["port"]["value"] == 8000


@pytest.mark.parametrize(
    "name,setting",
    [
        ("MAX_EXEC_TIMEOUT_MS", "max_timeout_ms"),
        ("CPU_TIME_LIMIT_SEC", "cpu_seconds"),
        ("MEMORY_LIMIT_MB", "memory_mb"),
        ("MAX_FILE_SIZE_MB", "max_file_mb"),
        ("FILE_TTL_SEC", "file_ttl_s"),
        ("MAX_OUTPUT_BYTES", "output_bytes"),
    ],
)
def test_the_names_that_users_of_the_code_interpreter_set(name: str, setting: str) -> None:
    at = settings(**{name: "77"})[setting]
    assert (at["value"], at["from"]) == (77, name)
    assert settings(**{name: ""})[setting]["origin"] == "default", "empty is not set"


@pytest.mark.parametrize(
    "name,text,setting,value",
    [
        ("WORKSPACE_EXPIRATION_TIME", "600", "runtime_ttl_s", 600),
        ("SANDBOX_TIMEOUT_SECONDS", "30", "runtime_timeout_s", 30),
        ("SANDBOX_MEMORY_LIMIT", "131072", "runtime_memory_kb", 131072),
        ("SANDBOX_MAX_USER_PROGRESS", "10", "runtime_pids", 10),
        ("SANDBOX_CPU_QUOTA", "2", "runtime_cpus", 2.0),
        ("SANDBOX_POOL_SIZE", "2", "pool", "2"),
        ("EFAST_DOWNLOADER_URL", "http://efast:9123", "efast_url", "http://efast:9123"),
        ("DOWNLOADER_TIMEOUT", "60", "efast_timeout_s", 60),
        ("EFAST_TOKEN", "x", "efast_token", "(set)"),
        ("KG_ENV_WHITELIST", "A,B", "jupyter_allow_env", "A,B"),
    ],
)
def test_the_names_that_users_of_other_dialects_set(
    name: str, text: str, setting: str, value: object
) -> None:
    at = settings(**{name: text})[setting]
    assert (at["value"], at["from"]) == (value, name)


def test_an_environment_is_an_object_in_the_file_and_json_elsewhere(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text('{"jupyter_env": {"TZ": "UTC", "A": "b,c=d"}}')
    wanted = '{"TZ":"UTC","A":"b,c=d"}'
    assert settings("--config", str(file))["jupyter_env"]["value"] == wanted
    assert settings("--jupyter-env", wanted)["jupyter_env"]["value"] == wanted
    for bad, words in {
        "TZ=UTC": ['"TZ=UTC"', "JSON object"],
        "[]": ["JSON object"],
        '{"A=B": "c"}': ['"A=B"', "holds a '='"],
        '{"A": 1}': ['"A"', "must be a string"],
    }.items():
        failed(run_cli("config", "--jupyter-env", bad), "--jupyter-env", *words)
    file.write_text('{"port": {"a": "b"}}')
    failed(run_cli("config", "--config", str(file)), '"port" must be a number or a string')


@pytest.mark.parametrize(
    "text,words",
    [
        ('{"port": "x"}', ["port in ", '"x"', "0 to 65535"]),
        ('{"prot": 1}', ["no setting", '"prot"']),
        ('{"port": 1', ["not valid JSON", "line 1"]),
        ('{"port": 1, "port": 2}', ["duplicate", '"port"']),
        ("[]", ["must be a JSON object"]),
    ],
)
def test_a_file_with_a_mistake_is_one_line(tmp_path: Path, text: str, words: list[str]) -> None:
    file = tmp_path / "config.json"
    file.write_text(text)
    failed(run_cli("config", "--config", str(file)), str(file), *words)


def test_a_bad_value_names_where_it_is() -> None:
    failed(run_cli("config", "--port", "x"), "--port", '"x"', "0 to 65535")
    failed(run_cli("config", env=clean_env(CLOCHE_PORT="x")), "CLOCHE_PORT", '"x"')
    failed(run_cli("config", "--config", "/nowhere"), "/nowhere", "No such file")


def test_values_stand_in_one_column() -> None:
    lines = run_cli("config").stdout.decode().split("\n\n")[1].splitlines()
    assert len(lines) > 50
    assert len({len(line) - len(line.split(None, 1)[1]) for line in lines}) == 1
    text = run_cli("serve", "--help").stdout.decode()
    flags = [line for line in text.splitlines() if line.startswith("  --")]
    helped = [line for line in flags if len(line.split()) > 1]
    assert len({len(line) - len(line.split(None, 1)[1]) for line in helped}) == 1

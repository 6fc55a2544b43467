"""`cloche sandbox` against a real server: the life of a sandbox, and what goes wrong."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import Service, clean_env, failed, run_cli
from raw_http import KeyedService, ask, post, request
from sandbox_cli import listed, made, sandbox
from terminal import Terminal


@pytest.fixture
def service(live_service: Service) -> Service:
    return live_service


@pytest.fixture
def box(service: Service) -> Iterator[str]:
    with made(service) as name:
        yield name


# A flag, more than may be, and the maximum as people say it.
TOO_MUCH = [
    ("--timeout", "999", "60 s"),
    ("--memory", "5000", "4096 MB"),
    ("--cpu", "999", "300 s"),
    ("--cpus", "500", "64 processors"),
    ("--pids", "5000", "512 processes"),
    ("--disk", "5000", "4096 MB"),
    ("--open-files", "5000", "4096 descriptors"),
    ("--output", "900000000", "64 MiB"),
]


# ---- life ----


def test_made_listed_shown_and_deleted(service: Service) -> None:
    with made(service, "--name", "plot", "--metadata", "who=me", "--ttl", "600") as name:
        lines = sandbox(service, "list").stdout.decode().splitlines()
        assert lines[0].split() == "id name state profile created ends metadata".split()
        row = next(line for line in lines if line.startswith(name))
        assert "plot" in row and "running" in row and "who=me" in row
        shown = sandbox(service, "show", name).stdout.decode()
        assert "kernel" in shown and "memory 512 MB" in shown and "who=me" in shown
        whole = json.loads(sandbox(service, "show", name, "--json").stdout)
        assert whole["id"] == name and whole["ttl_seconds"] == 600
        done = sandbox(service, "delete", name)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        assert name not in listed(service)
        failed(sandbox(service, "show", name), "deleted")


def test_a_list_can_be_narrowed_by_metadata(service: Service) -> None:
    with made(service, "--metadata", "team=a b&c") as one, made(service) as other:
        assert listed(service, "--metadata", "team=a b&c") == [one]
        assert listed(service, "--metadata", "team=x") == []
        assert {one, other} <= set(listed(service))


def test_a_name_that_two_have_needs_the_id(service: Service) -> None:
    """Other services' clients name sandboxes as they like."""
    with made(service, "--name", "twin") as one:
        session = "/workspace/se/session/twin"
        assert ask(service, post(session, {})).status == 200
        failed(sandbox(service, "show", "twin"), "2 sandboxes", "the whole id", "sandbox list")
        assert sandbox(service, "show", one).returncode == 0
        assert ask(service, request("DELETE", session)).status in (200, 204)


def test_names_and_beginnings_of_ids_are_enough(service: Service) -> None:
    with made(service, "--name", "first") as one, made(service) as two:
        assert json.loads(sandbox(service, "show", "first", "--json").stdout)["id"] == one
        same = len(os.path.commonprefix([one, two]))
        assert json.loads(sandbox(service, "show", two[: same + 1], "--json").stdout)["id"] == two
        failed(sandbox(service, "show", "sbx_"), "begins with", "write more")
        failed(sandbox(service, "show", "nowhere"), '"nowhere"', "sandbox list")
        failed(sandbox(service, "show", ""), "no sandbox")
        failed(sandbox(service, "show", "sbx_" + "0" * 32), "sandbox")


def test_what_others_wrote_cannot_steer_the_terminal(service: Service) -> None:
    with made(service, "--metadata", "k=\x1b[2J\x9b1m") as name:
        for verb in (["list"], ["show", name]):
            text = sandbox(service, *verb).stdout.decode()
            assert "\x1b" not in text and "\x9b" not in text and "\\x1b[2J" in text


def test_files_and_variables_from_the_start(service: Service, tmp_path: Path) -> None:
    file = tmp_path / "in.txt"
    file.write_bytes(b"\x00\xff")
    words = ("--file", f"{file}:sub/", "--env", "COLOUR=red", "--memory", "300", "--disk", "32")
    with made(service, *words) as name:
        code = "import os; open('sub/in.txt','rb').read(), os.environ['COLOUR']"
        assert sandbox(service, "exec", name, code).stdout == b"(b'\\x00\\xff', 'red')\n"
        limits = json.loads(sandbox(service, "show", name, "--json").stdout)["limits"]
        assert (limits["memory_mb"], limits["disk_mb"]) == (300, 32)


def test_a_name_that_is_taken_is_refused(service: Service) -> None:
    with made(service, "--name", "mine"):
        failed(sandbox(service, "create", "--name", "mine"), '"mine" already', "choose another")
        with made(service, "--name", "other") as other:
            where, is_json = f"/v1/sandboxes/{other}", "Content-Type: application/json"
            answer = ask(service, request("PATCH", where, is_json, body=b'{"name": "mine"}'))
            assert (answer.status, answer.json["error"]["code"]) == (409, "name_taken")
            answer = ask(service, request("PATCH", where, is_json, body=b'{"name": "other"}'))
            assert answer.status == 200, "its own is its own"
    with made(service, "--name", "mine"):
        pass  # free again


def test_pause_resume_restart_and_extend(service: Service) -> None:
    with made(service, "--ttl", "600") as name:
        sandbox(service, "exec", name, "x = 1")
        assert sandbox(service, "pause", name).returncode == 0
        assert b"paused" in sandbox(service, "show", name).stdout
        refused = failed(sandbox(service, "exec", name, "x"), "paused")
        assert refused.count("resume") == 1 and "`cloche sandbox resume ID`" in refused
        assert sandbox(service, "resume", name).returncode == 0
        assert sandbox(service, "exec", name, "x").stdout == b"1\n"
        assert sandbox(service, "restart", name).returncode == 0
        assert b"NameError" in sandbox(service, "exec", name, "x").stderr
        done = sandbox(service, "extend", name, "--ttl", "9000", "--idle", "3600")
        assert done.stdout == b"ends in 2.5 h, if idle in 60 min\n"
        assert b"ends in 2.5 h, " in sandbox(service, "extend", name).stdout, "as long again"


def test_numbers_are_for_people(service: Service) -> None:
    with made(service) as name:
        sandbox(service, "exec", name, "open('f', 'wb').write(bytes(3 << 20))")
        text = sandbox(service, "show", name).stdout.decode()
        assert "timeout 30 s, memory 512 MB, cpu unlimited, cpus 1, pids 64, disk 512 MB" in text
        assert ", output 16 MiB" in text and ", disk 3 MiB" in text
        assert re.search(r", cpu [0-9.]+ m?s,", text) and " 1 execution\n" in text, text


def limits_of(service: Service, name: str) -> dict[str, object]:
    limits: dict[str, object] = json.loads(sandbox(service, "show", name, "--json").stdout)[
        "limits"
    ]
    return limits


def test_every_limit_has_a_flag(service: Service) -> None:
    own = ("--cpus", "0.5", "--pids", "50", "--open-files", "99", "--disk", "90", "--memory", "400")
    with made(service, *own, "--cpu", "7", "--output", "5000") as name:
        limits = limits_of(service, name)
        assert {key: limits[key] for key in limits if key != "timeout_ms"} == {
            "memory_mb": 400,
            "cpu_seconds": 7,
            "cpus": 0.5,
            "pids": 50,
            "disk_mb": 90,
            "open_files": 99,
            "output_bytes": 5000,
        }
        # exec: the cell's own for this time, the sandbox's from then on
        more = ("--cpus", "1", "--pids", "60", "--open-files", "100", "--disk", "91")
        done = sandbox(service, "exec", name, *more, "--output", "10", "print('x' * 20)")
        assert done.stdout == b"x" * 10 and b"more than 10 bytes of it (--output)" in done.stderr
        limits = limits_of(service, name)
        assert (limits["cpus"], limits["pids"], limits["open_files"]) == (1, 60, 100)
        assert (limits["disk_mb"], limits["output_bytes"]) == (91, 5000)
        done = sandbox(service, "exec", name, "--cpu", "1", "--timeout", "60", "while True: pass")
        assert b"it used more than 1 s of CPU time (--cpu)" in done.stderr
        for flag, value, most in TOO_MUCH:
            refused = failed(sandbox(service, "exec", name, flag, value, "1"), f"maximum of {most}")
            assert "GET " not in refused, "a command line has no use for that"
        failed(
            sandbox(service, "exec", name, "--cpu", "1", "--shell", "true"), "--cpu is for Python"
        )


# ---- what goes wrong ----


def test_refusals_come_through_in_one_line(service: Service, box: str) -> None:
    failed(sandbox(service, "create", "--profile", "gpu"), "gpu")
    failed(sandbox(service, "create", "--memory", "4000000"), "memory", "4096")
    failed(sandbox(service, "exec", box, "--kernel", "ker_none", "1"), "ker_none")
    done = sandbox(service, "create", "--profile", "gpu", "--json")
    assert json.loads(done.stdout)["error"]["code"] == "unknown_profile"
    failed(sandbox(service, "put", box, "x"), "one of ID, SOURCE and DESTINATION is missing")
    failed(sandbox(service, "exec", box, os.fsdecode(b"'\xff'")), "UTF-8")
    failed(sandbox(service, "create", "--env", "A=" + os.fsdecode(b"\xff")), "UTF-8")


@pytest.mark.parametrize("verb", ["list", "show sbx_x", "exec x 1", "shell x", "ls x", "logs x"])
def test_no_server(verb: str) -> None:
    words = verb.split()
    done = run_cli("sandbox", words[0], "--server", "http://127.0.0.1:1", *words[1:])
    failed(done, "terminal" if words[0] == "shell" else "no server answers")
    failed(run_cli("shell", "--server", "http://127.0.0.1:1"), "no server answers")


def test_the_server_from_the_environment(service: Service) -> None:
    env = clean_env(CLOCHE_SERVER=service.url)
    assert run_cli("sandbox", "list", env=env).returncode == 0
    failed(run_cli("sandbox", "list", env=clean_env(CLOCHE_SERVER="ftp://x")), "scheme")


def test_keys(keyed_service: KeyedService, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(keyed_service.key + "\n")
    failed(sandbox(keyed_service, "list"), "API key")
    assert sandbox(keyed_service, "list", "--key-file", file).returncode == 0


def test_a_unix_socket(start_live: Callable[..., Service], tmp_path: Path) -> None:
    path = tmp_path / "http.sock"
    start_live("--profiles", "base", "--http-socket", str(path))
    url = f"unix:{path}"
    name = run_cli("sandbox", "create", "--server", url).stdout.decode().strip()
    assert run_cli("sandbox", "exec", "--server", url, name, "6 * 7").stdout == b"42\n"
    with Terminal("sandbox", "shell", "--server", url, name) as t:
        t.expect("$ ")
        t.type("exit 4\n")
        assert t.end() == 4
    assert run_cli("sandbox", "delete", "--server", url, name).returncode == 0


def test_help(tmp_path: Path) -> None:
    overview = run_cli("sandbox", "--help").stdout.decode()
    verbs = "create list show delete exec shell put get ls logs interrupt".split()
    for verb in verbs:
        assert f"cloche sandbox {verb}" in overview
        done = run_cli("sandbox", verb, "--help")
        assert done.returncode == 0 and done.stdout.startswith(f"cloche sandbox {verb}".encode())
        assert all(len(line) <= 100 for line in done.stdout.decode().splitlines())
    assert run_cli("shell", "--help").stdout.startswith(b"cloche shell")

"""`cloche key`: keys are made, listed and revoked; the secret is shown once and kept nowhere."""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from harness import Caller, clean_env, cloche_bin, failed, run_cli

NOBODY = 65534
SECRET = re.compile(r"clk_[A-Za-z0-9_-]{43}\n")

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="becomes other users")


def test_the_settings_of_serve_name_the_file(tmp_path: Path) -> None:
    """Flag, environment and configuration file, as `cloche serve` reads them."""
    config, bare = tmp_path / "config.json", clean_env()
    ways: list[tuple[list[str], dict[str, str]]] = [
        (["--state-dir", "{}"], bare),
        ([], clean_env(CLOCHE_STATE_DIR="{}")),
        (["--config", str(config)], bare),
    ]
    for number, (words, env) in enumerate(ways):
        state = tmp_path / f"state{number}"
        config.write_text(json.dumps({"state_dir": str(state)}))
        env = {name: value.replace("{}", str(state)) for name, value in env.items()}
        done = run_cli("key", "add", "x", *(word.format(state) for word in words), env=env)
        assert done.returncode == 0, done.stderr
        assert (state / "keys.json").exists()
    config.write_text(json.dumps({"keys": str(tmp_path / "other.json")}))
    assert run_cli("key", "add", "x", "--config", config).returncode == 0
    assert (tmp_path / "other.json").exists()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "keys.json"


def key(file: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    return run_cli("key", *words, "--keys", file)


def add(file: Path, name: str, *words: str) -> str:
    done = key(file, "add", name, *words)
    assert done.returncode == 0, done.stderr
    assert SECRET.fullmatch(done.stdout.decode()), "the secret alone"
    return done.stdout.decode().strip()


def stored(file: Path) -> list[dict[str, Any]]:
    keys: list[dict[str, Any]] = json.loads(file.read_text())["keys"]
    return keys


def listed(file: Path) -> list[dict[str, Any]]:
    done = key(file, "list", "--json")
    assert done.returncode == 0, done.stderr
    keys: list[dict[str, Any]] = json.loads(done.stdout)["keys"]
    return keys


# ---------------------------------------------------------------------------- add


def test_only_the_hash_of_a_secret_is_kept(file: Path) -> None:
    secret = add(file, "alice")
    (entry,) = stored(file)
    assert entry["sha256"] == hashlib.sha256(secret.encode()).hexdigest()
    assert secret not in file.read_text() and "limits" not in entry
    assert re.fullmatch(r"key_[0-9a-f]{16}", entry["id"])
    assert (entry["name"], entry["tenant"]) == ("alice", "alice")


def test_what_to_do_with_the_secret_is_said(file: Path) -> None:
    done = key(file, "add", "alice")
    note = done.stderr.decode()
    assert note.startswith("cloche: key_") and note.count("\n") == 1
    assert "once" in note and "SIGHUP" in note and done.stdout.decode().strip() not in note


def test_rights_are_kept(file: Path) -> None:
    add(file, "alice", "--right", "profiles")
    add(file, "bob")
    assert [entry.get("rights") for entry in stored(file)] == [["profiles"], None]
    assert [entry["rights"] for entry in listed(file)] == [["profiles"], []]
    assert b"none, may: profiles\n" in key(file, "list").stdout
    done = key(file, "add", "carol", "--right", "everything")
    assert done.returncode == 125 and b"there is no right" in done.stderr


def test_tenant_and_limits_are_kept(file: Path) -> None:
    limits = ["--requests-per-second", "2.5", "--concurrent", "4"]
    add(file, "ci", "--tenant", "team-a", *limits, "--cpu-seconds-per-minute", "60")
    (entry,) = stored(file)
    assert entry["tenant"] == "team-a"
    assert entry["limits"] == {
        "requests_per_second": 2.5,
        "concurrent": 4,
        "cpu_seconds_per_minute": 60,
    }


def test_add_in_json(file: Path) -> None:
    done = key(file, "add", "alice", "--json", "--concurrent", "2")
    made = json.loads(done.stdout)
    assert SECRET.fullmatch(made.pop("secret") + "\n")
    assert [made] == listed(file)
    assert made["limits"]["concurrent"] == 2 and made["limits"]["requests_per_second"] is None


def test_the_file_is_closed_to_others(file: Path) -> None:
    add(file, "alice")
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert sorted(p.name for p in file.parent.iterdir()) == [".keys.json.lock", "keys.json"]


@as_root
def test_the_file_keeps_its_owner_and_group(file: Path) -> None:
    add(file, "alice")
    os.chown(file, 1234, 4321)
    add(file, "bob")
    assert (file.stat().st_uid, file.stat().st_gid) == (1234, 4321)


def test_a_secret_that_cannot_be_printed_is_no_success(file: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [cloche_bin(), "key", "add", "alice", "--keys", file],
            stdout=full,
            stderr=subprocess.PIPE,
            env=clean_env(),
            check=False,
        )
    assert done.returncode == 125
    assert stored(file)[0]["id"] in done.stderr.decode() and b"revoke" in done.stderr


def test_many_at_once_lose_nothing(file: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        secrets = list(pool.map(lambda n: add(file, f"n{n}"), range(24)))
    hashes = {hashlib.sha256(secret.encode()).hexdigest() for secret in secrets}
    assert {entry["sha256"] for entry in stored(file)} == hashes and len(hashes) == 24


# ---------------------------------------------------------------------------- list and revoke


def test_the_list_is_a_table(file: Path) -> None:
    add(file, "a-rather-long-name", "--requests-per-second", "0.5", "--concurrent", "4")
    add(file, "b", "--tenant", "t", "--cpu-seconds-per-minute", "9")
    add(file, "c")
    lines = key(file, "list").stdout.decode().splitlines()
    rows = [re.split(r" {2,}", line) for line in lines]
    assert rows[0] == ["id", "name", "tenant", "created", "limits"]
    assert [row[0] for row in rows[1:]] == [entry["id"] for entry in stored(file)]
    assert [row[1:3] for row in rows[1:]] == [["a-rather-long-name"] * 2, ["b", "t"], ["c", "c"]]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", row[3]) for row in rows[1:])
    limits = [row[4] for row in rows[1:]]
    assert limits == ["0.5 requests/s, 4 at once", "9 CPU s/min", "none"]
    assert len({line.index(row[4]) for line, row in zip(lines, rows)}) == 1


def test_hashes_are_not_listed(file: Path) -> None:
    add(file, "alice")
    sha256 = stored(file)[0]["sha256"].encode()
    assert sha256 not in key(file, "list").stdout + key(file, "list", "--json").stdout


def test_no_file_is_an_empty_list(file: Path) -> None:
    done = key(file, "list")
    assert done.returncode == 0 and str(file) in done.stderr.decode()
    assert len(done.stdout.splitlines()) == 1
    assert listed(file) == [] and listed(file.parent / "nowhere" / "k") == []
    assert list(file.parent.iterdir()) == [], "listing makes nothing"


@pytest.mark.parametrize("by", ["id", "name"])
def test_a_key_is_revoked(file: Path, by: str) -> None:
    for name in ("a", "b", "c"):
        add(file, name)
    gone = stored(file)[1]
    done = key(file, "revoke", gone[by])
    assert done.returncode == 0 and b"SIGHUP" in done.stderr
    assert done.stdout.decode() == f"revoked {gone['id']} (name b, tenant b)\n"
    assert [entry["name"] for entry in stored(file)] == ["a", "c"]


def test_revoke_in_json(file: Path) -> None:
    add(file, "alice")
    (entry,) = listed(file)
    assert json.loads(key(file, "revoke", "alice", "--json").stdout) == entry


def test_the_file_stays_when_the_last_key_goes(file: Path) -> None:
    add(file, "alice")
    key(file, "revoke", "alice")
    assert stored(file) == []


def test_an_ambiguous_name_is_not_revoked(file: Path) -> None:
    add(file, "alice")
    add(file, "alice")
    ids = [entry["id"] for entry in stored(file)]
    failed(key(file, "revoke", "alice"), "2 keys", *ids)
    assert key(file, "revoke", ids[0]).returncode == 0
    assert [entry["id"] for entry in stored(file)] == ids[1:]


def test_an_ambiguous_name_of_very_many(file: Path) -> None:
    one: dict[str, Any] = {"name": "alice", "created": 1}
    many = [{**one, "id": f"key_{n:016x}", "sha256": f"{n:064x}"} for n in range(500)]
    file.write_text(json.dumps({"keys": many}))
    message = failed(key(file, "revoke", "alice"), "500 keys", "492 more", "by its id")
    assert message.count("key_") == 8


def test_an_id_goes_before_a_name_that_looks_like_it(file: Path) -> None:
    add(file, "alice")
    add(file, stored(file)[0]["id"])
    assert key(file, "revoke", stored(file)[0]["id"]).returncode == 0
    assert len(stored(file)) == 1 and stored(file)[0]["name"] != "alice"


def test_an_unknown_key_is_not_revoked(file: Path) -> None:
    failed(key(file, "revoke", "nobody"), '"nobody"', "cloche key list")
    failed(key(file.parent / "nowhere" / "k", "revoke", "nobody"), '"nobody"')
    add(file, "alice")
    before = file.read_bytes()
    done = key(file, "revoke", "key_0000000000000000", "--json")
    assert done.returncode == 125 and json.loads(done.stdout)["error"]["code"] == "unknown_key"
    assert file.read_bytes() == before


# ---------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize("value", ["", "a b", "a\n", "é", "a/b", "x" * 65, "\x1b[1m"])
def test_an_odd_name_or_tenant(file: Path, value: str) -> None:
    failed(key(file, "add", value), "name is", "64")
    failed(key(file, "add", "alice", "--tenant", value), "tenant is", "64")
    assert not file.exists()


@pytest.mark.parametrize("flag", ["requests-per-second", "concurrent", "cpu-seconds-per-minute"])
@pytest.mark.parametrize("value", ["", "x", "-1", "0", "1e3", "nan", "99999999999999999999", "5 "])
def test_an_odd_limit(file: Path, flag: str, value: str) -> None:
    failed(key(file, "add", "alice", f"--{flag}", value), f"--{flag} is", "must be")
    assert not file.exists()


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["add"],
        ["revoke"],
        ["remove", "x"],
        ["add", "a", "b"],
        ["list", "a"],
        ["add", "a", "--nope"],
        ["add", "a", "-x"],
        ["add", "a", "--tenant"],
        ["list", "--tenant", "t"],
        ["revoke", "a", "--concurrent", "1"],
    ],
)
def test_a_wrong_command_line(words: list[str], tmp_path: Path) -> None:
    env = clean_env(CLOCHE_KEYS=str(tmp_path / "keys.json"))
    failed(run_cli("key", *words, env=env), "key", "see --help")
    assert list(tmp_path.iterdir()) == []


def test_help() -> None:
    for words in (["--help"], ["add", "-h"]):
        done = run_cli("key", *words)
        assert done.returncode == 0 and b"cloche key revoke" in done.stdout and not done.stderr
    assert b"cloche key " in run_cli("help").stdout


@pytest.mark.parametrize("place", ["", "dir/"])
def test_a_file_that_is_no_name(place: str) -> None:
    failed(run_cli("key", "add", "a", "--keys", place), "--keys is", "file")


@pytest.mark.parametrize("words", [["add", "bob"], ["list"], ["revoke", "bob"]])
@pytest.mark.parametrize(
    "text, says",
    [("", "JSON"), ('{"keys":[{"id":"x"}]}', "keys[0]: id must"), ('{"kez":[]}', '"kez"')],
)
def test_a_broken_file_is_left_alone(file: Path, words: list[str], text: str, says: str) -> None:
    file.write_text(text)
    failed(key(file, *words), str(file.parent), "keys.json", says)
    done = key(file, *words, "--json")
    assert json.loads(done.stdout)["error"]["code"] == "bad_keys"
    assert file.read_text() == text


def test_places_where_no_file_can_be(tmp_path: Path) -> None:
    failed(key(tmp_path / "nowhere" / "keys.json", "add", "a"), "nowhere", "no such file")
    assert list(tmp_path.iterdir()) == []
    failed(key(tmp_path, "add", "a"), tmp_path.name, "regular file")
    (tmp_path / "link").symlink_to("target")
    failed(key(tmp_path / "link", "add", "a"), "link", "regular file")


# ---------------------------------------------------------------------------- where the file is


def test_a_file_named_in_the_environment(file: Path) -> None:
    env = clean_env(CLOCHE_KEYS=str(file))
    assert run_cli("key", "add", "alice", env=env).returncode == 0
    other = file.with_name("other.json")
    assert run_cli("key", "add", "bob", "--keys", other, env=env).returncode == 0
    assert stored(file)[0]["name"] == "alice" and stored(other)[0]["name"] == "bob"


def test_a_relative_file(tmp_path: Path) -> None:
    assert run_cli("key", "add", "alice", "--keys", "k", cwd=tmp_path).returncode == 0
    assert stored(tmp_path / "k")[0]["name"] == "alice"


@pytest.fixture
def home() -> Iterator[Path]:
    """A directory of nobody's, and a copy of the program that nobody can read."""
    with tempfile.TemporaryDirectory(prefix="cloche-test-") as directory:
        os.chmod(directory, 0o755)
        shutil.copy(cloche_bin(), Path(directory) / "cloche")
        (Path(directory) / "home").mkdir(mode=0o755)
        os.chown(Path(directory) / "home", NOBODY, NOBODY)
        yield Path(directory) / "home"


def nobody(home: Path) -> Caller:
    return Caller(
        home.parent / "cloche",
        ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"),
    )


@as_root
@pytest.mark.parametrize("xdg", [False, True])
def test_the_file_of_an_ordinary_user(home: Path, xdg: bool) -> None:
    state = home / "x" / "y" if xdg else home / ".local" / "state"
    env = clean_env(HOME=str(home))
    env.pop("XDG_STATE_HOME", None)
    if xdg:
        env["XDG_STATE_HOME"] = str(state)
    done = run_cli("key", "add", "alice", env=env, caller=nobody(home), cwd=home)
    assert done.returncode == 0, done.stderr
    file = state / "cloche" / "keys.json"
    assert stored(file)[0]["name"] == "alice"
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert file.stat().st_uid == NOBODY and stat.S_IMODE(file.stat().st_mode) == 0o640


@as_root
def test_an_ordinary_user_without_a_home(home: Path) -> None:
    env = {k: v for k, v in clean_env().items() if k not in ("HOME", "XDG_STATE_HOME")}
    done = run_cli("key", "add", "alice", env=env, caller=nobody(home), cwd=home)
    failed(done, "HOME", "--keys")


@as_root
def test_a_file_of_another_user(home: Path) -> None:
    (home / "keys.json").write_text('{"keys":[]}')
    (home / "keys.json").chmod(0o600)
    who = nobody(home)
    failed(run_cli("key", "list", "--keys", home / "keys.json", caller=who), "permission")
    (home / "keys.json").chmod(0o644)
    done = run_cli("key", "add", "a", "--keys", home / "keys.json", caller=who)
    failed(done, "owner", "not permitted")
    assert stored(home / "keys.json") == []
    assert (home / "keys.json").stat().st_uid == 0


@as_root
def test_the_file_of_root(tmp_path: Path) -> None:
    """In a mount namespace of its own: the machine's /var/lib stays as it is."""
    script = """
        mount -t tmpfs none /var/lib && umask 077 && "$1" key add alice >&2 &&
        stat -c '%a %U %G' /var/lib/cloche /var/lib/cloche/keys.json
    """
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", str(cloche_bin())],
        capture_output=True,
        env=clean_env(),
        check=False,
    )
    if b"mount" in done.stderr or b"unshare" in done.stderr:
        pytest.skip(f"no mount namespace here: {done.stderr.decode()}")
    try:
        group = pwd.getpwnam("cloche").pw_gid
    except KeyError:
        group = 0
    names = subprocess.run(["getent", "group", str(group)], capture_output=True, check=True)
    expected = f"755 root root\n640 root {names.stdout.decode().split(':')[0]}\n"
    assert done.stdout.decode() == expected, done.stderr

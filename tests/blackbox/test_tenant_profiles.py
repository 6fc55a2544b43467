"""Profiles that tenants make over HTTP: built, used, refused, removed."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deaths import kill_server
from harness import eventually
from live import LINES, Client, error
from tenants import Tenants, ask_for, broken, built, follow, make, names, remove, run, tenants
from wheels import wheel

PLACE = "/run/cloche/profile/"


@pytest.fixture(scope="module")
def service_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenants]:
    with tenants(tmp_path_factory.mktemp("tenants")) as service:
        yield service


@pytest.fixture
def service(service_session: Tenants) -> Iterator[Tenants]:
    yield service_session
    for name in ("alice", "bob"):
        client = service_session.of(name)
        for profile in names(client):
            if profile != "base":
                assert remove(client, profile, force=True).status == 204
    assert eventually(lambda: service_session.left() == []), service_session.left()


@pytest.fixture
def alice(service: Tenants) -> Client:
    return service.of("alice")


# ---------------------------------------------------------------------------- what it is


def test_it_is_built_and_seen(service: Tenants, alice: Client) -> None:
    reply = ask_for(alice, "mine", "beta", "# a comment", "")
    assert reply.status == 202 and reply.json["own"] is True, reply
    events = follow(alice, "mine")
    assert [event.type for event in (events[0], events[-1])] == ["start", "end"]
    said = "".join(event.data["data"] for event in events if event.type == "stderr")
    assert "Successfully installed" in said
    found = events[-1].data
    assert (found["state"], found["from"], found["requirements"]) == ("ready", "base", ["beta"])
    assert {p["name"]: p["version"] for p in found["installed"]} == {"alpha": "1.0", "beta": "1.0"}
    assert found["bytes"] > 0 and found["users"] == 0 and found["version"].startswith("3.")
    assert alice.ask("GET", "/v1/profiles/mine").json == found
    assert names(alice) == ["base", "mine"]
    assert alice.ask("GET", "/v1/profiles/base").json["state"] == "ready"
    lines = follow(alice, "mine", LINES)
    assert [event.type for event in lines] == [event.type for event in events]
    (name,) = service.left()
    assert name.startswith("prf_")


def test_programs_have_it(alice: Client) -> None:
    make(alice, "mine", "beta", env={"COLOUR": "red", "TASTE": "sweet"})
    code = """
import beta, os, subprocess, sys
print(beta.__file__, os.environ["COLOUR"], os.environ["TASTE"])
print(subprocess.run(["beta"], capture_output=True, text=True).stdout, end="")
print(subprocess.run([sys.executable, "-c", "import alpha; print(alpha.VERSION)"],
                     capture_output=True, text=True).stdout, end="")
"""
    result = run(alice, "mine", code, env={"TASTE": "sour"})
    lines = result["stdout"].splitlines()
    assert result["stderr"] == "" and result["profile"] == "mine"
    assert lines[0].startswith(PLACE) and lines[0].endswith("beta.py red sour")
    assert lines[1:] == ["beta 1.0", "1.0"]
    other = run(alice, "base", "import beta")
    assert other["error"]["name"] == "ModuleNotFoundError"


def test_whatever_takes_a_profile_takes_it(alice: Client) -> None:
    make(alice, "mine", "alpha")
    code = "import alpha; alpha.VERSION"
    shown = alice.ask("POST", "/v1/run", {"code": code, "profile": "mine", "timeout_ms": 20000})
    assert shown.status == 200 and shown.json["text"] == "'1.0'", shown.json
    body = {"items": [{"code": "import alpha; print(alpha.VERSION)", "profile": "mine"}]}
    batch = alice.ask("POST", "/v1/execute/batch", body)
    assert batch.status == 200 and json.loads(batch.body)["stdout"] == "1.0\n", batch.body
    code = "import alpha, beta; print(alpha.VERSION, beta.VERSION)"
    assert run(alice, "mine", code, packages=["beta"])["stdout"] == "1.0 1.0\n"


def test_live_sandboxes_have_it(alice: Client) -> None:
    make(alice, "mine", "beta", env={"COLOUR": "red"}, limits={"memory_mb": 300})
    with alice.box(profile="mine", env={"TASTE": "sweet"}) as box:
        assert box.made["profile"] == "mine" and box.made["limits"]["memory_mb"] == 300
        assert box.text("import beta; beta.__file__").startswith("'" + PLACE)
        assert box.text("import os; os.environ['COLOUR'] + os.environ['TASTE']") == "'redsweet'"
        line = "beta && python3 -c 'import alpha; print(alpha.VERSION)' && echo $COLOUR"
        assert box.do("/commands", cmd=line)["stdout"] == "beta 1.0\n1.0\nred\n"
        assert box.text("!pip install --quiet alpha\nimport alpha; alpha.VERSION") == "'1.0'"
        kernel = box.kernel()
        assert box.text("import beta; beta.VERSION", kernel_id=kernel) == "'1.0'"
        assert alice.ask("GET", "/v1/profiles/mine").json["users"] == 1


def test_it_cannot_be_written_to(alice: Client) -> None:
    make(alice, "mine", "alpha")
    code = "import alpha\nopen(alpha.__file__, 'a')"
    assert run(alice, "mine", code)["error"]["name"] in ("PermissionError", "OSError")
    code = f"open('{PLACE}bin/x', 'w')"
    assert run(alice, "mine", code)["error"]["name"] in ("PermissionError", "OSError")


def test_limits_are_up_to_the_maxima(alice: Client) -> None:
    reply = ask_for(alice, "mine", "alpha", limits={"memory_mb": 1 << 20})
    error(reply, 422, "limit_too_high", "limits.memory_mb")
    make(alice, "mine", "alpha", limits={"memory_mb": 128})
    assert alice.ask("GET", "/v1/profiles/mine").json["limits"]["memory_mb"] == 128


# ---------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("--index-url http://x", "an option of pip"),
        ("-r other.txt", "an option of pip"),
        ("alpha @ http://x/alpha.whl", "an address"),
        ("git+https://x/y", "an address"),
        ("./alpha", "a path"),
        ("/tmp/alpha.whl", "a path"),
        ("alpha beta", "no requirement"),
        ("alpha==1.0 --hash=sha256:00", "no requirement"),
        ("alpha; python_version>'3' --global-option=x", "no requirement"),
        ("alpha\nbeta", "no requirement"),
        ("alpha>=", "no requirement"),
        ("x" * 301, "longer than 300 bytes"),
        ("$HOME", "no requirement"),
        ("älpha", "no requirement"),
    ],
)
def test_lines_that_are_no_requirements(alice: Client, line: str, why: str) -> None:
    reply = ask_for(alice, "mine", "alpha", line)
    error(reply, 422, "bad_value", "requirements[1]", why)
    assert names(alice) == ["base"]


@pytest.mark.parametrize(
    "body",
    [
        {"name": "mine"},
        {"name": "mine", "requirements": []},
        {"name": "mine", "requirements": ["# nothing"]},
        {"name": "Mine", "requirements": ["alpha"]},
        {"name": "auto", "requirements": ["alpha"]},
        {"name": "../x", "requirements": ["alpha"]},
        {"name": "mine", "requirements": ["alpha"], "preload": ["alpha"]},
        {"name": "mine", "requirements": ["alpha"], "from": "nothing"},
        {"name": "mine", "requirements": ["alpha"], "env": {"PYTHONPATH": "/x"}},
        {"name": "mine", "requirements": ["alpha"], "env": {"A": 1}},
        {"name": "mine", "requirements": ["alpha"], "env": {f"A{i}": "x" * 4000 for i in range(5)}},
        {"name": "mine", "requirements": ["alpha"], "limits": {"memory_mb": 0}},
    ],
)
def test_requests_that_cannot_be(alice: Client, body: dict[str, Any]) -> None:
    reply = alice.ask("POST", "/v1/profiles", body)
    assert reply.status == 422, reply
    assert names(alice) == ["base"]


def test_names_that_are_taken(alice: Client) -> None:
    make(alice, "mine", "alpha")
    error(ask_for(alice, "mine", "alpha"), 409, "profile_exists", "mine")
    reply = ask_for(alice, "base", "alpha")
    error(reply, 409, "profile_exists", "the operator's")
    assert reply.json["error"]["remediation"] == "choose another name"


def test_bounds_are_whole_numbers(alice: Client) -> None:
    reply = ask_for(alice, "mine", "alpha", limits={"memory_mb": 1 << 40})
    error(reply, 422, "bad_value", "from 1 to 4194304")


def test_its_env_and_that_of_a_request_have_one_bound(alice: Client) -> None:
    make(alice, "mine", "alpha", env={f"A{i}": "x" * 4000 for i in range(4)})
    code = "import os; print(len(os.environ['A3']), len(os.environ['B']))"
    assert run(alice, "mine", code, env={"B": "y" * 13000})["stdout"] == "4000 13000\n"
    body = {"code": code, "profile": "mine", "env": {"B": "y" * 20000}}
    error(alice.ask("POST", "/v1/execute", body), 422, "bad_value", "env of profile mine")
    body = {"profile": "mine", "env": {"B": "y" * 20000}}
    error(alice.ask("POST", "/v1/sandboxes", body), 422, "bad_value", "that of profile mine")


def test_keys_without_the_right(service: Tenants) -> None:
    carol = service.of("carol")
    error(ask_for(carol, "mine", "alpha"), 403, "no_right", "cloche key add --right profiles")
    error(remove(carol, "mine"), 403, "no_right")
    assert names(carol) == ["base"]


def test_another_tenants_is_neither_seen_nor_usable(service: Tenants, alice: Client) -> None:
    bob = service.of("bob")
    make(alice, "mine", "alpha")
    assert names(bob) == ["base"]
    for method, path in (("GET", ""), ("GET", "/events"), ("DELETE", "")):
        error(bob.ask(method, "/v1/profiles/mine" + path), 404, "no_such_profile")
    body = {"code": "1", "profile": "mine"}
    for path in ("/v1/execute", "/v1/run"):
        said = error(bob.ask("POST", path, body), 422, "unknown_profile")
        assert said == 'there is no profile "mine"; there are base, and auto'
    error(bob.ask("POST", "/v1/sandboxes", {"profile": "mine"}), 422, "unknown_profile")
    make(bob, "mine", "beta")  # a name is the tenant's own
    assert run(bob, "mine", "import beta; print(beta.VERSION)")["stdout"] == "1.0\n"
    assert run(alice, "mine", "import beta")["error"]["name"] == "ModuleNotFoundError"


def test_one_that_is_not_there(alice: Client) -> None:
    for method, path in (("GET", ""), ("GET", "/events"), ("DELETE", "")):
        error(alice.ask(method, "/v1/profiles/mine" + path), 404, "no_such_profile", "mine")
    error(remove(alice, "base"), 403, "no_right", "the operator's")


# ---------------------------------------------------------------------------- what fails


def test_a_package_that_is_not_there(service: Tenants, alice: Client) -> None:
    assert broken(alice, "mine", "alpha", "nowhere") == "no wheel of nowhere can be had"
    assert service.left() == []
    body = {"code": "1", "profile": "mine"}
    error(alice.ask("POST", "/v1/execute", body), 422, "unknown_profile")
    make(alice, "mine", "alpha")  # the name is free


def test_only_the_last_of_those_that_failed_are_kept(alice: Client) -> None:
    make(alice, "mine", "alpha")
    for i in range(12):
        broken(alice, f"not-{i}", "nowhere")
    assert names(alice) == sorted(["base", "mine", *(f"not-{i}" for i in range(2, 12))])


def test_what_made_pip_stumble_is_told(service: Tenants, alice: Client) -> None:
    wheel(service.wheels, "odd", needs="\U0001f600" * 300)
    said = broken(alice, "mine", "odd")
    assert "Exception:" not in said and "\U0001f600" in said, said


def test_many_small_files(service: Tenants, alice: Client) -> None:
    wheel(service.wheels, "many", more={f"many-data/{i}": "" for i in range(25000)})
    make(alice, "mine", "many")


def test_two_builds_of_one_name(service: Tenants, alice: Client) -> None:
    replies = [ask_for(alice, "mine", "alpha") for _ in range(2)]
    assert replies[0].status == 202
    assert replies[1].status == 409 and replies[1].json["error"]["code"] in (
        "profile_building",
        "profile_exists",
    )
    assert built(alice, "mine")["state"] == "ready" and len(service.left()) == 1


def test_it_is_removed_while_it_is_built(service: Tenants, alice: Client) -> None:
    for _ in range(5):
        assert ask_for(alice, "mine", "alpha").status == 202
        reply = remove(alice, "mine")
        if reply.status == 409:
            error(reply, 409, "profile_building", "mine")
            reply = remove(alice, "mine", force=True)
        assert reply.status == 204, reply
        assert names(alice) == ["base"]
    assert eventually(lambda: service.left() == []), service.left()


def test_it_is_removed_while_it_is_used(service: Tenants, alice: Client) -> None:
    make(alice, "mine", "alpha")
    with alice.box(profile="mine") as box:
        error(remove(alice, "mine"), 409, "profile_in_use", "1 sandbox has profile mine")
        assert remove(alice, "mine", force=True).status == 204
        assert names(alice) == ["base"]
        assert box.text("import alpha; alpha.VERSION") == "'1.0'"
        assert [name[:5] for name in service.left()] == [".old-"]
        make(alice, "mine", "beta")
        assert box.text("import importlib.util as u; u.find_spec('beta') is None") == "True"
    assert eventually(lambda: len(service.left()) == 1), service.left()


def test_what_a_build_may_not_reach(tmp_path: Path) -> None:
    """What `network` grants to programs is another matter."""
    options = ("--build-network", "nowhere.example", "--network", "open")
    with tenants(tmp_path, *options) as service:
        said = broken(service.of("alice"), "mine", "alpha")
        assert said.startswith("pypi.org cannot be reached from the build")
        assert said.endswith("see build_network")


def test_a_build_is_in_the_audit_log(service: Tenants, alice: Client) -> None:
    make(alice, "mine", "alpha")
    text = (service.state / "audit.log").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    last = [line for line in lines if line["tenant"] == "alice"][-1]
    assert (last["status"], last["profile"]) == ("ok", "base")
    assert last["code_sha256"] == hashlib.sha256(b"alpha\n").hexdigest()


# ---------------------------------------------------------------------------- bounds


def test_the_disk_of_a_build(tmp_path: Path) -> None:
    with tenants(tmp_path, "--build-disk-mb", "40") as service:
        wheel(service.wheels, "bulky", body=f"LARGE = {'x' * (60 << 20)!r}")
        said = broken(service.of("alice"), "large", "bulky")
        assert said == "it needs more than 40 MB of disk (setting build_disk_mb)"
        assert service.left() == []


def test_the_tenants_disk_and_number(tmp_path: Path) -> None:
    options = ("--tenant-profiles", "2", "--tenant-profiles-mb", "1")
    with tenants(tmp_path, *options) as service:
        alice, bob = service.of("alice"), service.of("bob")
        wheel(service.wheels, "bulky", body=f"LARGE = {'x' * (3 << 20)!r}")
        wheel(service.wheels, "scattered", more={f"scattered_{n}.py": "" for n in range(300)})
        for name in ("bulky", "scattered"):  # large, or of many files, which take room as well
            said = broken(alice, "large", name)
            assert said.startswith("it needs more of the disk than the 1 MB that are left of 1 MB")
        assert eventually(lambda: service.left() == []), service.left()
        make(alice, "one", "alpha")
        make(alice, "two", "alpha")
        error(ask_for(alice, "three", "alpha"), 429, "too_many_profiles", "2 profiles")
        make(bob, "one", "alpha")
        assert remove(alice, "one").status == 204
        make(alice, "three", "alpha")
        for client, name in ((alice, "two"), (alice, "three"), (bob, "one")):
            assert remove(client, name).status == 204
        assert eventually(lambda: service.left() == [])


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small disk")
def test_the_servers_disk_is_full(tmp_path: Path) -> None:
    place = tmp_path / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], check=True)
    try:
        with tenants(tmp_path, "--tenant-profiles-dir", str(place)) as service:
            service.trees = place
            alice = service.of("alice")
            wheel(service.wheels, "bulky", body=f"LARGE = {'x' * (3 << 20)!r}")
            assert broken(alice, "large", "bulky") == "the server's disk is full"
            assert eventually(lambda: service.left() == []), service.left()
            make(alice, "mine", "alpha")
            assert run(alice, "mine", "import alpha; print(alpha.VERSION)")["stdout"] == "1.0\n"
            assert remove(alice, "mine").status == 204
            assert eventually(lambda: service.left() == [])
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_none_where_the_operator_wants_none(tmp_path: Path) -> None:
    with tenants(tmp_path, "--tenant-profiles", "0") as service:
        error(ask_for(service.of("alice"), "mine", "alpha"), 501, "profiles_off")
        assert not service.trees.exists()


# ---------------------------------------------------------------------------- deaths


def test_the_next_server_has_them(tmp_path: Path) -> None:
    service = Tenants(tmp_path)
    try:
        alice = service.of("alice")
        make(alice, "mine", "alpha", env={"COLOUR": "red"})
        make(alice, "other", "alpha")
        with alice.box(profile="mine") as box, alice.box(profile="other") as gone:
            box.run("x = 1")
            assert remove(alice, "other", force=True).status == 204
            kill_server(service)
            assert names(alice) == ["base", "mine"]
            assert box.text("import alpha; (x, alpha.VERSION)") == "(1, '1.0')"
            assert gone.text("import alpha; alpha.VERSION") == "'1.0'"
            error(remove(alice, "mine"), 409, "profile_in_use")
            assert run(alice, "mine", "import os; print(os.environ['COLOUR'])")["stdout"] == "red\n"
            assert sorted(name[:4] for name in service.left()) == [".old", "prf_"]
            error(alice.ask("GET", "/v1/profiles/mine/events"), 404, "no_execution")
        assert eventually(lambda: len(service.left()) == 1), service.left()
        assert remove(alice, "mine").status == 204
        service.stop()
    finally:
        service.kill()


def test_a_death_in_the_midst_of_a_build(tmp_path: Path) -> None:
    service = Tenants(tmp_path)
    try:
        alice = service.of("alice")
        for n in range(6):
            assert ask_for(alice, "mine", "beta").status == 202
            if n % 2:  # while it is taken apart, or about then
                eventually(lambda: service.left() != [], seconds=5)
            kill_server(service)
            found = {p["name"]: p for p in alice.ask("GET", "/v1/profiles").json["profiles"]}
            left = service.left()
            if "mine" in found:
                assert found["mine"]["state"] == "ready" and len(left) == 1
                assert run(alice, "mine", "import beta; print(beta.VERSION)")["stdout"] == "1.0\n"
                assert remove(alice, "mine").status == 204
                assert eventually(lambda: service.left() == [])
            else:
                assert left == []
        make(alice, "mine", "beta")
        service.stop()
    finally:
        service.kill()

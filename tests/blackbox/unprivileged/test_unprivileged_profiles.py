"""A user's own profiles, made and used without any right."""

from __future__ import annotations

import dataclasses
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import Caller, LiveService, eventually, run_cli
from live import Client
from tenants import make, remove, run
from users import home_of, private
from wheels import wheel


@pytest.fixture
def reachable(caller: Caller) -> Iterator[Path]:
    """The user's, and sandboxes of his can be shown it: his home is below /tmp here."""
    with tempfile.TemporaryDirectory(prefix="cloche-test-", dir="/srv") as name:
        home = home_of(caller).stat()
        os.chown(name, home.st_uid, home.st_gid)
        yield Path(name)


def test_a_profile_is_made_and_used(caller: Caller, reachable: Path) -> None:
    wheel(reachable / "wheels", "alpha")
    (reachable / "wheels").chmod(0o755)
    env = {**caller.env, "CLOCHE_PROFILES_DIR": str(reachable / "profiles")}
    user = dataclasses.replace(caller, env=env)
    words = ("alpha", "--preload", "alpha", "--find-links", str(reachable / "wheels"))
    done = run_cli("profile", "add", "mine", *words, caller=user, cwd=Path("/"))
    assert done.returncode == 0, done.stderr.decode()
    code = "import sys; print('alpha' in sys.modules); import alpha; print(alpha.VERSION)"
    found = private(user, code, profile="mine", timeout=60)
    assert found["stdout"] == "True\n1.0\n", found
    uid = home_of(caller).stat().st_uid
    assert {p.lstat().st_uid for p in (reachable / "profiles").rglob("*")} == {uid}
    done = run_cli("profile", "remove", "mine", caller=user, cwd=Path("/"))
    assert done.returncode == 0 and not (reachable / "profiles" / "mine").exists()


def test_a_profile_over_http(caller: Caller) -> None:
    home = home_of(caller)
    wheel(home / "wheels", "alpha")
    for path in (home / "wheels", *(home / "wheels").iterdir()):
        path.chmod(0o755)
    (home / "tenants").mkdir()
    os.chown(home / "tenants", home.stat().st_uid, home.stat().st_gid)
    options = ("--profiles", "base", "--wheels", str(home / "wheels"), "--build-network", "none")
    service = LiveService(home / "tenants", *options, caller=caller)
    try:
        client = Client(service.port)
        make(client, "mine", "alpha")
        code = "import alpha; print(alpha.VERSION); open(alpha.__file__, 'a')"
        result = run(client, "mine", code)
        assert result["stdout"] == "1.0\n" and result["error"]["name"] in (
            "OSError",
            "PermissionError",
        )
        with client.box(profile="mine") as box:
            assert box.text("import alpha; alpha.VERSION") == "'1.0'"
            assert remove(client, "mine", force=True).status == 204
        trees = home / "tenants" / "state-tenants"
        assert eventually(lambda: list(trees.iterdir()) == []), list(trees.iterdir())
        service.stop()
    finally:
        service.kill()
        shutil.rmtree(home / "tenants")
        shutil.rmtree(home / "wheels")


def test_what_others_could_change_is_no_profile(caller: Caller, reachable: Path) -> None:
    place = reachable / "profiles"
    place.mkdir(mode=0o777)
    place.chmod(0o777)
    os.chown(place, *home_of(caller).stat()[4:6])
    env = {**caller.env, "CLOCHE_PROFILES_DIR": str(place)}
    user = dataclasses.replace(caller, env=env)
    done = run_cli("config", caller=user, cwd=Path("/"))
    assert done.returncode == 125 and b"others could change the profiles" in done.stderr

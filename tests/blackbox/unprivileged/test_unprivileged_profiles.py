"""A user's own profiles, made and used without any right."""

from __future__ import annotations

import dataclasses
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import Caller, run_cli
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


def test_what_others_could_change_is_no_profile(caller: Caller, reachable: Path) -> None:
    place = reachable / "profiles"
    place.mkdir(mode=0o777)
    place.chmod(0o777)
    os.chown(place, *home_of(caller).stat()[4:6])
    env = {**caller.env, "CLOCHE_PROFILES_DIR": str(place)}
    user = dataclasses.replace(caller, env=env)
    done = run_cli("config", caller=user, cwd=Path("/"))
    assert done.returncode == 125 and b"others could change the profiles" in done.stderr

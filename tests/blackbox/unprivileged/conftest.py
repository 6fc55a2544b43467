"""cloche as an ordinary user: with a range of ids of its own, and with no id but its own.

It is run from an installed tree, since nobody but its owner may be able to read the build. No user
here can use control groups, so limits are those of the watchdog (see test_nocgroup.py).
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import Caller, Engine, cloche_bin
from users import NAMELESS, RANGE, administer, home_of, make_caller, make_user


@pytest.fixture(scope="session", autouse=True)
def who_may_become_others() -> None:
    if os.geteuid() != 0:
        pytest.skip("becomes other users")
    if not shutil.which("newuidmap"):
        pytest.skip("no newuidmap (package uidmap)")


@pytest.fixture(scope="session")
def place() -> Iterator[Path]:
    """A directory that every user can reach; pytest's own ones are closed to them."""
    with tempfile.TemporaryDirectory(prefix="cloche-test-") as directory:
        os.chmod(directory, 0o755)
        yield Path(directory)


@pytest.fixture(scope="session")
def installed(place: Path) -> Path:
    """`meson install` of the build under test."""
    build = cloche_bin().resolve().parent
    if not (build / "build.ninja").exists():
        pytest.skip(f"{build} is no build directory")
    words: list[str | Path] = [
        "meson",
        "install",
        "-C",
        build,
        "--no-rebuild",
        "--quiet",
        "--destdir",
        place / "at",
    ]
    subprocess.run(words, check=True, capture_output=True, umask=0o022)
    (program,) = place.glob("at/**/bin/cloche")
    assert (program.parents[1] / "libexec" / "cloche" / "cloche-warden").exists()
    return program


@pytest.fixture(scope="session")
def with_range(installed: Path, place: Path) -> Iterator[Caller]:
    chosen = secrets.randbelow(8192)  # other directories have this fixture, too
    name = f"cloche-test-{os.getpid()}-{chosen}"
    first = 1_500_000_000 + chosen * RANGE
    uid, gid = make_user(name)
    try:
        ids = f"{first}-{first + RANGE - 1}"
        administer("usermod", "--add-subuids", ids, "--add-subgids", ids, name)
        yield make_caller(installed, place, uid, gid)
    finally:
        administer("userdel", name)


@pytest.fixture(scope="session")
def with_one_id(installed: Path, place: Path) -> Caller:
    return make_caller(installed, place, NAMELESS, NAMELESS)


@pytest.fixture(scope="session", params=["range", "one id"])
def caller(request: pytest.FixtureRequest) -> Caller:
    name = {"range": "with_range", "one id": "with_one_id"}[request.param]
    found: Caller = request.getfixturevalue(name)
    return found


@pytest.fixture(scope="session")
def user_engines(with_range: Caller, with_one_id: Caller) -> Iterator[Callable[[Caller], Engine]]:
    """One engine per caller for all tests; each must leave nothing. They end before their users are
    deleted, whichever test came first."""
    engines: dict[Path, Engine] = {}

    def get(caller: Caller) -> Engine:
        home = home_of(caller)
        if home not in engines:
            engine = engines[home] = Engine(home, "--profiles", "base", caller=caller)
            engine.execute("pass", timeout_ms=60000)
            engine.settle()
        return engines[home]

    try:
        yield get
        for engine in engines.values():
            engine.stop()
    finally:
        for engine in engines.values():
            engine.kill()


@pytest.fixture
def engine(caller: Caller, user_engines: Callable[[Caller], Engine]) -> Iterator[Engine]:
    found = user_engines(caller)
    yield found
    found.check_health()
    found.check_no_leak()


@pytest.fixture
def one_id_engine(
    with_one_id: Caller, user_engines: Callable[[Caller], Engine]
) -> Iterator[Engine]:
    found = user_engines(with_one_id)
    yield found
    found.check_health()
    found.check_no_leak()

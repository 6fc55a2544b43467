"""Builds on a machine that has uv: it resolves, pip installs. Here uv is in /usr/local/bin of a
mount namespace of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import clean_env
from made import Maker, place_of_profiles
from wheels import wheel

UV = Path(sys.executable).with_name("uv")


@pytest.fixture
def maker() -> Iterator[Maker]:
    with place_of_profiles() as place:
        yield Maker(place)


def add(maker: Maker, name: str, *words: str) -> subprocess.CompletedProcess[str]:
    own = maker.place / "bin"
    own.mkdir(exist_ok=True)
    if not (own / "uv").exists():
        (own / "uv").write_bytes(UV.read_bytes())
        (own / "uv").chmod(0o755)
    inside = 'mount --bind "$0" /usr/local/bin && exec "$@"'
    where = ["--profiles-dir", str(maker.profiles), "--socket", str(maker.socket)]
    command = [str(maker.program), "profile", "add", name, *where, *words]
    return subprocess.run(
        ["unshare", "--mount", "sh", "-c", inside, str(own), *command],
        capture_output=True,
        text=True,
        env=clean_env(),
    )


def test_it_resolves_from_a_directory(maker: Maker) -> None:
    wheel(maker.wheels, "alpha", "2.0")
    wheel(maker.wheels, "gamma", needs="alpha<2")
    done = add(maker, "web", "gamma", "--find-links", str(maker.wheels))
    assert done.returncode == 0, done.stderr
    assert "resolving with uv" in done.stderr
    installed = {p["name"]: p for p in maker.record("web")["installed"]}
    assert installed["alpha"]["version"] == "1.0" and len(installed["gamma"]["sha256"]) == 64
    assert maker.record("web")["build"]["requirements"] == ["gamma"]


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        (["nowhere"], "no wheel of nowhere can be had"),
        (["alpha==7"], "no wheel of alpha==7 can be had"),
        (["beta", "alpha>1"], "only alpha==1.0 is available and you require alpha>1;"),
    ],
)
def test_what_cannot_be(maker: Maker, wanted: list[str], why: str) -> None:
    done = add(maker, "web", *wanted, "--find-links", str(maker.wheels))
    assert done.returncode == 125 and why in done.stderr, done.stderr
    assert maker.names() == []


def test_it_resolves_from_the_index(maker: Maker) -> None:
    done = add(maker, "web", "rich>=13")
    assert done.returncode == 0 and "resolving with uv" in done.stderr, done.stderr
    installed = {p["name"] for p in maker.record("web")["installed"]}
    assert {"rich", "pygments", "markdown-it-py"} <= {name.lower() for name in installed}

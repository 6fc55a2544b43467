"""script/setup and script/server: what serving needs, and no more."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOR_TESTS = {"clang", "clang-tidy", "chromium", "libcmocka-dev", "python3-pytest", "cppcheck"}


def packages(name: str) -> set[str]:
    """One of the lists of script/setup, as bash reads it."""
    text = (ROOT / "script/setup").read_text()
    lists = text[: text.index("as_root()")]
    done = subprocess.run(
        ["bash", "-c", f'cd /; eval "$1"; printf "%s\\n" "${{{name}[@]}}"', "setup", lists],
        capture_output=True,
        text=True,
        env={**os.environ, "BASH_SOURCE": "/"},
    )
    return set(done.stdout.split())


def test_serving_needs_no_package_of_the_tests() -> None:
    assert FOR_TESTS <= packages("tests")
    assert {"gcc", "meson", "uidmap", "python3-numpy"} <= packages("packages")
    assert not packages("packages") & packages("tests")


def test_the_server_explains_itself_and_starts_nothing() -> None:
    for words in (["--help"], ["-h"], ["--port", "9000", "--help"]):
        done = subprocess.run(
            [ROOT / "script/server", *words], capture_output=True, text=True, timeout=60
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert "http://127.0.0.1:8000" in done.stdout and "cloche doctor" in done.stdout


@pytest.mark.once
def test_it_is_built_without_the_packages_of_the_tests(tmp_path: Path) -> None:
    """As far as finding all that is needed goes."""
    finder = tmp_path / "pkg-config"
    finder.write_text(
        '#!/bin/sh\ncase "$*" in *cmocka*) exit 1 ;; esac\nexec /usr/bin/pkg-config "$@"\n'
    )
    finder.chmod(0o755)
    done = subprocess.run(
        ["meson", "setup", tmp_path / "build", ROOT],
        capture_output=True,
        text=True,
        env={**os.environ, "PKG_CONFIG": str(finder)},
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    ninja = (tmp_path / "build/build.ninja").read_text()
    assert "cloche-server" in ninja and "test_base_buf" not in ninja

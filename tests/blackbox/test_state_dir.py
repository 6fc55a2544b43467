"""What root's `cloche serve` and `cloche key` make and give away: never what another user put there
before, or led to by a symbolic link."""

from __future__ import annotations

import os
import pwd
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import Service, failed, run_cli

STRANGER = 12345

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="root alone gives files away")


def server_uid() -> int:
    try:
        return pwd.getpwnam("cloche").pw_uid
    except KeyError:
        return 65534


@pytest.fixture
def public(tmp_path: Path) -> Path:
    """As /tmp: everybody may make entries."""
    tmp_path.chmod(0o755)
    path = tmp_path / "public"
    path.mkdir()
    path.chmod(0o1777)
    return path


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    path = tmp_path / "victim"
    path.mkdir(mode=0o700)
    return path


def of(path: Path, uid: int) -> Path:
    os.chown(path, uid, uid, follow_symlinks=False)
    return path


def link(path: Path, target: Path, uid: int) -> Path:
    path.symlink_to(target)
    return of(path, uid)


def directory(path: Path, uid: int) -> Path:
    path.mkdir()
    return of(path, uid)


def a_foreign_directory(public: Path, victim: Path) -> list[str]:
    return ["--state-dir", str(directory(public / "state", STRANGER))]


def a_link_in_a_foreign_directory(public: Path, victim: Path) -> list[str]:
    state = directory(public / "state", STRANGER)
    link(state / "files", victim, STRANGER)
    return ["--state-dir", str(state)]


def a_foreign_link(public: Path, victim: Path) -> list[str]:
    return ["--state-dir", str(link(public / "state", victim, STRANGER))]


def a_foreign_link_on_the_way(public: Path, victim: Path) -> list[str]:
    return ["--state-dir", str(link(public / "way", victim, STRANGER) / "state")]


def a_link_that_the_server_made(public: Path, victim: Path) -> list[str]:
    """A server that was taken over owns the state directory, and would own more."""
    state = directory(public.parent / "state", server_uid())
    link(state / "files", victim, server_uid())
    return ["--state-dir", str(state)]


def a_foreign_directory_for_files(public: Path, victim: Path) -> list[str]:
    state, files = public.parent / "state", directory(public / "files", STRANGER)
    return ["--state-dir", str(state), "--file-dir", str(files)]


def a_foreign_directory_for_the_socket(public: Path, victim: Path) -> list[str]:
    state, run = public.parent / "state", directory(public / "run", STRANGER)
    return ["--state-dir", str(state), "--http-socket", str(run / "http.sock")]


WAYS = (
    a_foreign_directory,
    a_link_in_a_foreign_directory,
    a_foreign_link,
    a_foreign_link_on_the_way,
    a_link_that_the_server_made,
    a_foreign_directory_for_files,
    a_foreign_directory_for_the_socket,
)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_root_gives_away_nothing_of_others(
    tmp_path: Path, public: Path, victim: Path, way: Callable[[Path, Path], list[str]]
) -> None:
    options = way(public, victim)
    before = {path: path.lstat() for path in tmp_path.rglob("*")}
    done = run_cli("serve", "--http", "on", "--socket", tmp_path / "s", "--port", "0", *options)
    message = failed(done, "name a directory that is yours alone")
    assert "is a symbolic link" in message or "belongs to another user" in message
    assert list(victim.iterdir()) == []
    for path, was in before.items():
        now = path.lstat()
        assert (now.st_uid, now.st_gid, now.st_mode) == (was.st_uid, was.st_gid, was.st_mode), path


def test_the_engines_socket_is_not_made_in_anothers_directory(public: Path) -> None:
    run = directory(public / "run", STRANGER)
    done = run_cli("serve", "--socket", run / "engine.sock", "--http", "off")
    failed(done, "another user")
    assert list(run.iterdir()) == []


def test_keys_are_not_kept_in_anothers_directory(public: Path, victim: Path) -> None:
    state = link(public / "state", victim, STRANGER)
    failed(run_cli("key", "add", "x", "--state-dir", state), "symbolic link")
    assert list(victim.iterdir()) == []


def test_roots_own_links_and_directories_serve(
    tmp_path: Path, public: Path, start_service: Callable[..., Service]
) -> None:
    """An operator may move the state elsewhere; what is made in a public place is the server's."""
    real = tmp_path / "real"
    real.mkdir()
    link(tmp_path / "moved", real, 0)
    service = start_service(
        "--state-dir", f"{tmp_path}/moved/deep/state", "--file-dir", f"{public}/files"
    )
    assert service.execute("print(1)").stdout == b"1\n"
    assert (real / "deep/state").stat().st_uid == server_uid()
    assert (public / "files").stat().st_uid == server_uid()
    added = run_cli("key", "add", "x", "--state-dir", f"{tmp_path}/moved/deep/state")
    assert added.returncode == 0 and (real / "deep/state/keys.json").exists()


def test_a_socket_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    stale, name = socket.socket(socket.AF_UNIX), tmp_path / "http.sock"
    link(name, tmp_path / "elsewhere", 0)
    stale.bind(str(tmp_path / "elsewhere"))
    stale.close()
    options = ["--state-dir", f"{tmp_path}/state", "--port", "0", "--http-socket", str(name)]
    failed(run_cli("serve", "--http", "on", "--socket", tmp_path / "s", *options), "listen")
    assert name.is_symlink() and (tmp_path / "elsewhere").exists()

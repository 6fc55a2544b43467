"""`cloche sandbox put`, `get` and `ls` against a real server."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import Service, failed, tree
from sandbox_cli import made, sandbox


@pytest.fixture
def service(live_service: Service) -> Service:
    return live_service


@pytest.fixture
def box(service: Service) -> Iterator[str]:
    with made(service) as name:
        yield name


def test_files_go_in_and_out(service: Service, box: str, tmp_path: Path) -> None:
    data = os.urandom(3_000_000)
    (tmp_path / "a b.bin").write_bytes(data)
    done = sandbox(service, "put", box, tmp_path / "a b.bin", "in/ä.bin")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert sandbox(service, "put", box, "-", "in/stdin", stdin=b"typed").returncode == 0
    assert sandbox(service, "get", box, "/workspace/in/ä.bin", tmp_path / "back").returncode == 0
    assert (tmp_path / "back").read_bytes() == data
    assert sandbox(service, "get", box, "in/stdin", "-").stdout == b"typed"
    failed(sandbox(service, "get", box, "in/none", tmp_path / "none"), "in/none", "sandbox ls")
    assert not (tmp_path / "none").exists()
    failed(sandbox(service, "put", box, tmp_path / "none", "x"), "No such file")
    failed(sandbox(service, "put", box, tmp_path / "back", "/etc/x"), "/workspace")
    failed(sandbox(service, "get", box, "../x", tmp_path), "..")


def test_what_is_no_file_is_written_to_and_stays(
    service: Service, box: str, tmp_path: Path
) -> None:
    file, link, fifo = tmp_path / "file", tmp_path / "link", tmp_path / "fifo"
    file.write_text("something longer than that")
    link.symlink_to(file)
    os.mkfifo(fifo)
    assert sandbox(service, "exec", box, "open('f', 'w').write('data')").returncode == 0
    assert sandbox(service, "get", box, "f", link).returncode == 0
    assert link.is_symlink() and file.read_text() == "data"
    with subprocess.Popen(["cat", fifo], stdout=subprocess.PIPE) as reader:
        assert sandbox(service, "get", box, "f", fifo).returncode == 0
        assert reader.communicate()[0] == b"data" and fifo.is_fifo()


def test_several_files_go_into_a_directory(service: Service, box: str, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(name)
    assert sandbox(service, "put", box, tmp_path / "one", tmp_path / "two", "d").returncode == 0
    assert sandbox(service, "ls", box, "d").stdout == b"one\ntwo\n"
    assert sandbox(service, "put", box, tmp_path / "one", "d").returncode == 0, "it is one now"
    out = tmp_path / "out"
    assert sandbox(service, "get", box, "d/one", "d/two", out).returncode == 0
    assert tree(out) == {"one": b"one", "two": b"two"}


def test_directories_go_with_all_below(service: Service, box: str, tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "deep" / "er").mkdir(parents=True)
    (source / "empty").mkdir()
    (source / "deep" / "er" / "f").write_text("1")
    (source / "run.sh").write_text("#!/bin/sh\n")
    (source / "run.sh").chmod(0o755)
    os.mkfifo(source / "fifo")
    done = sandbox(service, "put", box, source, "tree")
    assert done.returncode == 0 and b"1 entry was left out" in done.stderr
    assert sandbox(service, "ls", box, "tree").stdout.split() == [b"deep/", b"empty/", b"run.sh"]
    listing = sandbox(service, "ls", box, "-lR", "tree").stdout.decode()
    assert "-rwxr-xr-x" in listing and "tree/deep/er/f" in listing
    code = "import os; os.symlink('/etc/passwd', 'tree/link')"
    assert sandbox(service, "exec", box, code).returncode == 0
    done = sandbox(service, "get", box, "tree", tmp_path / "copy")
    assert done.returncode == 0 and b"1 entry was left out" in done.stderr
    assert tree(tmp_path / "copy") == {"deep/er/f": b"1", "run.sh": b"#!/bin/sh\n"}
    assert (tmp_path / "copy" / "empty").is_dir() and os.access(tmp_path / "copy/run.sh", os.X_OK)
    assert sandbox(service, "put", box, source, "tree").returncode == 0
    assert b"tree/source/run.sh" in sandbox(service, "ls", box, "-R").stdout


def test_ls_of_odd_names(service: Service, box: str) -> None:
    code = "import os; os.mkdir('d'); open('d/a\\x1b[2J\\nb', 'w'); open('d/z', 'w').write('12345')"
    assert sandbox(service, "exec", box, code).stdout == b"5\n"
    assert sandbox(service, "ls", box, "d").stdout == b"a\\x1b[2J\\x0ab\nz\n"
    assert sandbox(service, "ls", box, "d/z").stdout == b"z\n"
    row = sandbox(service, "ls", box, "-l", "d/z").stdout.split()
    assert row[0].startswith(b"-rw") and row[1] == b"5" and row[3] == b"z"
    entries = json.loads(sandbox(service, "ls", box, "d", "--json").stdout)["entries"]
    assert [entry["name"] for entry in entries] == ["a\x1b[2J\nb", "z"]
    failed(sandbox(service, "ls", box, "none"), "none")

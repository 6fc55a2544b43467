"""Directories of a live sandbox over HTTP: listed, made, moved, removed, packed and unpacked."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import tarfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from harness import Service
from http_client import Connection, ask
from live_box import BLOCK, Box, box_of
from live_files import GROWTH_MB, code_of, members, tar_of
from raw_http import resident_mb


@pytest.fixture
def service(live_service: Service) -> Service:
    return live_service


@pytest.fixture
def box(service: Service) -> Iterator[Box]:
    with box_of(service) as one:
        yield one


# ---- directories ----


def test_a_directory_is_listed_with_what_one_wants_to_know(box: Box) -> None:
    box.put("d/f.txt", b"12345", mode="0640")
    box.run(
        "import os; os.mkfifo('d/pipe'); os.symlink('f.txt', 'd/link');"
        "os.utime('d/f.txt', (9, 7.5))"
    )
    listing = box.get("d").json
    assert (listing["path"], listing["next"]) == ("d", None)
    by_name = {entry.pop("name"): entry for entry in listing["entries"]}
    assert by_name["f.txt"] == {
        "path": "d/f.txt",
        "type": "file",
        "size_bytes": 5,
        "mode": "0640",
        "modified": 7.5,
    }
    assert by_name["pipe"]["type"] == "other"
    assert (by_name["link"]["type"], by_name["link"]["target"]) == ("symlink", "f.txt")
    assert [e["type"] for e in box.get().json["entries"] if e["name"] == "d"] == ["directory"]


def test_pages_of_a_tree(box: Box) -> None:
    everything = ["a", "a/b", "a/b/1", "a/b/2", "a/c", "a.txt", "b", "ü"]
    for path in ["a/b/1", "a/b/2", "a/c", "a.txt", "b", "ü"]:
        box.put(path, b"")
    assert box.paths(recursive=True) == everything
    assert box.paths("a", recursive=True) == everything[1:5]
    assert box.paths() == ["a", "a.txt", "b", "ü"]
    pages: list[str] = []
    query: dict[str, Any] = {}
    while True:
        listing = box.get(recursive=True, limit=1, **query).json
        pages += [e["path"] for e in listing["entries"]]
        if listing["next"] is None:
            break
        query = {"after": listing["next"]}
    assert pages == everything


@pytest.mark.parametrize("query", ["limit=0", "limit=x", "limit=10001", "recursive=y", "after=zz"])
def test_queries_that_make_no_sense_are_refused(box: Box, query: str) -> None:
    reply = ask(box.port, "GET", f"{box.url}/files?{query}")
    assert code_of(reply) == (422, "bad_value")
    name, value = query.split("=")
    assert name in reply.json["error"]["message"] and value in reply.json["error"]["message"]


def test_a_parameter_that_comes_twice_is_refused(box: Box) -> None:
    reply = ask(box.port, "GET", f"{box.url}/files?limit=1&limit=2")
    assert code_of(reply) == (422, "bad_value")
    assert reply.json["error"]["message"] == "the query has limit more than once"


def test_pages_hold_while_files_come_and_go(box: Box) -> None:
    for i in range(40):
        box.put(f"d/stays{i:02}", b"")
    churn = (
        "import os, itertools\ncounter = itertools.count()\ndef step():\n"
        "    i = next(counter) % 50\n    name = f'd/goes{i:02}'\n"
        "    if os.path.exists(name): os.unlink(name)\n    else: open(name, 'w').close()\n"
    )
    with box.running(churn):
        for _ in range(20):
            seen: list[str] = []
            query: dict[str, Any] = {}
            while True:
                listing = box.get("d", limit=7, **query).json
                seen += [e["name"] for e in listing["entries"]]
                if listing["next"] is None:
                    break
                query = {"after": listing["next"]}
            assert len(seen) == len(set(seen)) and seen == sorted(seen)
            assert [n for n in seen if n.startswith("stays")] == [f"stays{i:02}" for i in range(40)]


def test_files_go_in_and_out_while_code_runs(box: Box) -> None:
    with box.running("def step(): sum(range(1000))"):
        assert box.put("f", b"x" * BLOCK).status == 201
        assert box.read("f") == b"x" * BLOCK
        assert box.paths() == ["f"]
        assert box.delete("f").status == 204


def test_directories_are_made_moved_and_removed(box: Box) -> None:
    reply = box.operate("a/b", op="mkdir", mode="0700")
    assert (reply.status, reply.json["type"], reply.json["mode"]) == (200, "directory", "0700")
    assert code_of(box.operate("a/b", op="mkdir")) == (409, "path_taken")
    box.put("a/b/f", b"x")
    reply = box.operate("a", op="move", to="new/place")
    assert (reply.status, reply.json["path"]) == (200, "new/place")
    assert box.read("new/place/b/f") == b"x"
    assert code_of(box.operate("new", op="move", to="new/inside")) == (422, "bad_path")
    box.put("other", b"y")
    assert code_of(box.operate("other", op="move", to="new/place/b/f")) == (409, "path_taken")
    assert code_of(box.operate("other", op="move", to="../x")) == (422, "bad_path")
    assert box.operate("other", op="chmod", mode="0600").json["mode"] == "0600"
    assert code_of(box.delete("new")) == (409, "not_empty")
    assert box.delete("new", recursive=True).status == 204
    assert box.paths(recursive=True) == ["other"]
    assert code_of(box.delete("", recursive=True)) == (422, "bad_path")


BAD_OPERATIONS = [
    {},
    {"op": "copy"},
    {"op": "move"},
    {"op": "chmod"},
    {"op": "chmod", "mode": "9"},
    {"op": "mkdir", "what": 1},
    {"op": "chmod", "mode": 644},
    {"op": "move", "to": ""},
]


@pytest.mark.parametrize("fields", BAD_OPERATIONS, ids=json.dumps)
def test_operations_that_make_no_sense_are_refused(box: Box, fields: dict[str, object]) -> None:
    box.put("f", b"x")
    reply = box.operate("f", **fields)
    assert reply.status == 422 and reply.json["error"]["code"] in ("bad_fields", "bad_value")
    assert box.read("f") == b"x"


# ---- archives ----


def test_a_directory_comes_as_an_archive(box: Box) -> None:
    box.run(
        "import os; os.makedirs('d/sub/empty'); open('d/grün', 'w').write('hello');"
        "os.symlink('grün', 'd/link'); os.mkfifo('d/pipe'); os.chmod('d/grün', 0o640);"
        "os.utime('d/grün', (5, 12345)); open(b'd/\\xff', 'w').close()"
    )
    reply = box.archive("d")
    assert (reply.status, reply.header("content-type")) == (200, "application/gzip")
    found = members(reply.body)
    assert set(found) == {"grün", "link", "sub", "sub/empty", "\udcff"}
    assert (found["grün"].mode, found["grün"].mtime, found["grün"].size) == (0o640, 12345, 5)
    assert found["link"].linkname == "grün"
    with tarfile.open(fileobj=io.BytesIO(reply.body)) as tar:
        assert tar.extractfile("grün").read() == b"hello"  # type: ignore[union-attr]
    assert set(members(box.archive("d/grün").body)) == {"grün"}
    assert "d/grün" in members(box.archive().body)
    assert code_of(box.archive("none")) == (404, "no_such_path")
    head = ask(box.port, "HEAD", box.at("d", "archive"))
    assert (head.status, head.body) == (200, b"")


def test_an_archive_comes_back_as_it_went(box: Box) -> None:
    for i in range(30):
        box.put(f"d/{i % 3}/file{i}", bytes([i]) * i * 1000, mode="0600")
    box.run("import os; os.symlink('../x', 'd/link'); os.utime('d/0/file3', (1, 1000))")
    packed = box.archive("d").body
    reply = box.unpack("copy/deep", packed)
    assert reply.status == 200, reply.body
    assert reply.json == {"files": 31, "size_bytes": sum(i * 1000 for i in range(30))}
    for i in range(30):
        assert box.read(f"copy/deep/{i % 3}/file{i}") == bytes([i]) * i * 1000
    entries = {e["path"]: e for e in box.get("copy/deep", recursive=True).json["entries"]}
    assert entries["copy/deep/link"]["target"] == "../x"
    assert entries["copy/deep/0/file3"]["modified"] == 1000.0
    assert entries["copy/deep/0/file3"]["mode"] == "0600"
    assert box.unpack("copy/deep", packed).status == 200  # over what is there
    box.run("open('copy/deep/0/file3', 'a').write('mine')")


def test_archives_of_other_makes_are_read(box: Box) -> None:
    for kind in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w:gz", format=kind) as tar:
            member = tarfile.TarInfo("./" + "d" * 150 + "/ü" * 3)
            member.size = 1
            tar.addfile(member, io.BytesIO(b"x"))
        assert box.unpack(f"of{kind}", out.getvalue()).json == {"files": 1, "size_bytes": 1}
        assert box.read(f"of{kind}/" + "d" * 150 + "/ü" * 3) == b"x"
    assert box.unpack("plain", tar_of({"f": b"y"}, "w:")).json["files"] == 1
    assert box.unpack("none", tar_of({})).json == {"files": 0, "size_bytes": 0}


@pytest.mark.parametrize("kind", ["v7", "oldgnu", "gnu", "ustar", "posix"])
def test_archives_of_gnu_tar_are_read(box: Box, tmp_path: Path, kind: str) -> None:
    name = "d" * 40 + "/ü" * 10 if kind == "v7" else "d" * 90 + "/ü" * 40
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).write_bytes(b"x" * 1000)
    (tmp_path / "link").symlink_to("t" * 90)
    if kind not in ("v7", "ustar"):
        (tmp_path / ("l" * 150)).symlink_to("t" * 150)
    command = ["tar", f"--format={kind}", "--label=it" if "gnu" in kind else "-v", "-cz", "."]
    packed = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True).stdout
    assert box.unpack("", packed).status == 200
    assert box.read(name) == b"x" * 1000
    targets = {entry["name"]: entry.get("target") for entry in box.get().json["entries"]}
    assert targets["link"] == "t" * 90
    assert targets.get("l" * 150) in (None, "t" * 150)


def odd(name: str, kind: bytes, link: str = "") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        tar.addfile(tarfile.TarInfo("before"))
        member = tarfile.TarInfo(name)
        member.type, member.linkname = kind, link
        tar.addfile(member)
    return out.getvalue()


REFUSED = {
    "absolute": odd("/etc/passwd", tarfile.REGTYPE),
    "upwards": odd("a/../../x", tarfile.REGTYPE),
    "hard link": odd("hard", tarfile.LNKTYPE, "/etc/passwd"),
    "inner hard link": odd("hard", tarfile.LNKTYPE, "before"),
    "device": odd("null", tarfile.CHRTYPE),
    "fifo": odd("pipe", tarfile.FIFOTYPE),
    "holes": odd("holes", tarfile.GNUTYPE_SPARSE),
    "no archive": b"hello" * 1000,
    "nothing": b"",
    "cut": tar_of({"f": bytes(range(256)) * 4096})[:-2000],
    "zip": b"PK\x03\x04" + bytes(1000),
}


@pytest.mark.parametrize("name", REFUSED)
def test_archives_that_are_refused_change_nothing(box: Box, name: str) -> None:
    reply = box.unpack("d", REFUSED[name])
    assert code_of(reply) == (422, "bad_archive")
    assert box.paths(recursive=True) == []


def test_an_archive_cannot_lead_itself_out(box: Box) -> None:
    """A link in it, and then a file through that link."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        member = tarfile.TarInfo("way")
        member.type, member.linkname = tarfile.SYMTYPE, "/tmp"
        tar.addfile(member)
        tar.addfile(tarfile.TarInfo("way/planted"))
    assert code_of(box.unpack("", out.getvalue())) == (422, "bad_path")
    assert box.run("import os; print(os.path.exists('/tmp/planted'))") == "False\n"


def test_a_bomb_does_not_go_off(service: Service) -> None:
    with box_of(service, limits={"disk_mb": 8}) as box:
        box.put("f", b"precious")
        bomb = gzip.compress(tar_of({"zeros": bytes(256 * BLOCK)}, "w:"), 9)
        before = resident_mb(service)
        assert code_of(box.unpack("", bomb)) == (507, "disk_full")
        assert resident_mb(service) - before < GROWTH_MB
        assert box.paths(recursive=True) == ["f"]
        assert code_of(box.unpack("", gzip.compress(bomb))) == (422, "bad_archive")
        many = io.BytesIO()
        with tarfile.open(fileobj=many, mode="w:gz") as tar:
            for i in range(50001):
                tar.addfile(tarfile.TarInfo("same"))
        assert code_of(box.unpack("", many.getvalue())) == (422, "bad_archive")
        assert box.paths(recursive=True) == ["f"]


@pytest.mark.parametrize("files, size", [(20001, 0), (2049, 1)])
def test_an_archive_of_many_small_files_fits_or_changes_nothing(
    service: Service, files: int, size: int
) -> None:
    with box_of(service, limits={"disk_mb": 8}) as box:
        box.put("1", b"precious")
        archive = tar_of({str(i): b"x" * size for i in range(files)})
        assert code_of(box.unpack("", archive)) == (507, "disk_full")
        assert box.paths() == ["1"] and box.read("1") == b"precious"


def test_large_archives_stream_both_ways(service: Service) -> None:
    with box_of(service, limits={"disk_mb": 400}) as box:
        code = (
            "import random\nfor i in range(5): open(f'{i}', 'wb').write(random.randbytes(20 << 20))"
        )
        box.run(code, timeout_ms=60000)
        before = resident_mb(service)
        packed = box.archive().body
        assert len(packed) > 100 * BLOCK
        assert resident_mb(service) - before < GROWTH_MB
        assert box.unpack("copy", packed).json["size_bytes"] >= 100 * BLOCK
        assert resident_mb(service) - before < GROWTH_MB
        code = (
            "read = lambda path: open(path, 'rb').read()\n"
            "print(all(read(f'{i}') == read(f'copy/{i}') for i in range(5)))"
        )
        assert box.run(code, timeout_ms=60000) == "True\n"


def test_others_are_served_while_an_archive_is_made(service: Service) -> None:
    with box_of(service, limits={"disk_mb": 200}) as box:
        box.run(
            "import random; open('f', 'wb').write(random.randbytes(100 << 20))", timeout_ms=60000
        )
        with Connection(service.port) as slow, ThreadPoolExecutor(1) as pool:
            slow.send("GET", box.at("", "archive"))
            assert slow.head().status == 200
            rest = pool.submit(lambda: sum(map(len, slow.chunks())))
            served = 0
            while not rest.done():
                assert ask(service.port, "GET", "/health").status == 200
                served += 1
            assert rest.result() > 100 * BLOCK
            assert served > 20

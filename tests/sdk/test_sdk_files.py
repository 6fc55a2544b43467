"""Files of a live sandbox, both ways."""

from __future__ import annotations

import io
import os
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

import cloche
from cloche import errors
from lossy import Lossy


def test_contents(box: Any, tmp_path: Path) -> None:
    assert box.files.write("in/a.txt", "täxt") == 5
    assert box.files.read_text("in/a.txt") == "täxt"
    assert box.files.read("/workspace/in/a.txt", offset=1, size=2) == "ä".encode()
    assert box.files.read("in/a.txt", offset=9) == b"" == box.files.read("in/a.txt", size=0)
    assert box.files.write("empty", b"") == 0 and box.files.read("empty") == b""
    with open(tmp_path / "f", "w+b") as file:
        file.write(b"skipped, sent")
        file.seek(9)
        assert box.files.write("f", file) == 4
    assert box.files.read("f") == b"sent"
    assert box.files.write("p", tmp_path / "f", mode=0o755) == 13
    assert box.run("import os; oct(os.stat('p').st_mode & 0o777)").text == "'0o755'"
    reading, writing = os.pipe()
    os.write(writing, b"piped")
    os.close(writing)
    with open(reading, "rb") as pipe:
        box.files.write("q", pipe)
    assert b"".join(box.files.pieces("q")) == b"piped"
    with pytest.raises(errors.BadArgument, match="not int"):
        box.files.write("x", 5)
    with pytest.raises(errors.BadArgument, match="/etc/passwd"):
        box.files.read("/etc/passwd")


def test_names(box: Any) -> None:
    for name in ("with space", "ä#?%41&=", "a'b\"c", "100%"):
        box.files.write(name, name)
        assert box.files.read_text(name) == name
    assert len(box.files.list()) == 4


def test_directories(box: Any) -> None:
    box.files.mkdir("d/e", mode=0o700)
    box.files.write("d/e/f", "1")
    box.files.move("d/e/f", "g")
    box.files.chmod("g", 0o600)
    entries = {entry.path: entry for entry in box.files.list(recursive=True)}
    assert set(entries) == {"d", "d/e", "g"}
    assert entries["d"].is_dir and not entries["g"].is_dir and entries["g"].size_bytes == 1
    assert box.files.exists("g") and not box.files.exists("h") and box.files.exists("d")
    assert box.files.is_dir("d") and not box.files.is_dir("g")
    with pytest.raises(errors.NotEmpty):
        box.files.delete("d")
    box.files.delete("d", recursive=True)
    box.files.delete("g")
    assert box.files.list() == []
    with pytest.raises(errors.NoSuchPath):
        box.files.read("g")
    with pytest.raises(FileNotFoundError):
        box.files.is_dir("g")


def test_long_lists_come_in_pages(box: Any) -> None:
    box.run("import os\nfor i in range(10050): os.close(os.open(f'{i:05}', os.O_CREAT))").check()
    assert len(box.files.list()) == 10050


def test_copies_of_files(box: Any, tmp_path: Path) -> None:
    content = os.urandom(3 << 20)
    (tmp_path / "here").write_bytes(content)
    seen: list[tuple[int, int]] = []
    box.files.upload(tmp_path / "here", "there", progress=lambda *now: seen.append(now))
    assert seen[-1] == (len(content), len(content)) and len(seen) > 3
    seen.clear()
    to = box.files.download("there", tmp_path / "back", progress=lambda *now: seen.append(now))
    assert to == tmp_path / "back" and to.read_bytes() == content
    assert seen[-1] == (len(content), len(content))
    with pytest.raises(FileNotFoundError):
        box.files.download("nothing", tmp_path / "n")
    with pytest.raises(FileNotFoundError):
        box.files.upload(tmp_path / "nothing")
    assert sorted(os.listdir(tmp_path)) == ["back", "here"]


def test_copies_of_directories(box: Any, tmp_path: Path) -> None:
    source = tmp_path / "tree"
    (source / "sub").mkdir(parents=True)
    (source / "a").write_text("1")
    (source / "sub" / "b").write_text("2")
    (source / "link").symlink_to("a")
    box.files.upload(source, "copy")
    assert box.run("import os; sorted(os.listdir('copy'))").text == "['a', 'link', 'sub']"
    box.files.download("copy", tmp_path / "back")
    assert (tmp_path / "back" / "sub" / "b").read_text() == "2"
    assert not (tmp_path / "back" / "link").exists()


def test_an_archive_of_a_hostile_server_leads_nowhere_else(tmp_path: Path) -> None:
    from cloche._uploads import unpack

    def archive(**fields: Any) -> io.BytesIO:
        kept = io.BytesIO()
        with tarfile.open(fileobj=kept, mode="w:gz") as members:
            member = tarfile.TarInfo(fields.pop("name"))
            for name, value in fields.items():
                setattr(member, name, value)
            members.addfile(member, io.BytesIO(b"x" * member.size))
        kept.seek(0)
        return kept

    for name in ("../out", "/etc/out", "a/../../out"):
        with pytest.raises(errors.BadArgument, match="refused"):
            unpack(archive(name=name, size=1), tmp_path)
    unpack(archive(name="l", type=tarfile.SYMTYPE, linkname="/etc"), tmp_path)
    unpack(archive(name="h", type=tarfile.LNKTYPE, linkname="/etc/passwd"), tmp_path)
    unpack(archive(name="dev", type=tarfile.CHRTYPE), tmp_path)
    assert os.listdir(tmp_path) == []
    unpack(archive(name="s", size=1, mode=0o6777), tmp_path)
    assert (tmp_path / "s").stat().st_mode & 0o7777 == 0o755
    with pytest.raises(errors.BadReply, match="cannot be read"):
        unpack(io.BytesIO(b"no archive"), tmp_path)


def test_file_objects(live: Any) -> None:
    with cloche.Sandbox.create(profile="base") as box:
        with box.files.open("t.txt", "w") as text:
            text.write("one\ntwo\nthree\n")
        with box.files.open("t.txt") as text:
            assert list(text) == ["one\n", "two\n", "three\n"]
        with box.files.open("z.zip", "wb") as raw, zipfile.ZipFile(raw, "w") as archive:
            archive.writestr("x", "packed " * 1000)
        with box.files.open("z.zip", "rb") as raw:
            assert zipfile.ZipFile(raw).read("x") == b"packed " * 1000
            assert raw.seek(-4, os.SEEK_END) > 0 and len(raw.read()) == 4
        with pytest.raises(ValueError, match="r, rb, w or wb"):
            box.files.open("t.txt", "a")
        with pytest.raises(FileNotFoundError):
            box.files.open("nothing")
        written = box.files.open("t.txt", "wb")
        written.close()
        written.close()
        assert box.files.read("t.txt") == b""


def test_only_what_is_asked_for_is_fetched(live: Any, lossy: Lossy) -> None:
    with cloche.Client(lossy.url) as far, cloche.Sandbox.create(profile="base", client=far) as box:
        box.files.write("big", b"." * (8 << 20) + b"the end")
        lossy.received = 0
        with box.files.open("big", "rb") as file:
            file.seek(8 << 20)
            assert file.read() == b"the end"
        assert lossy.received < 1 << 20


def test_a_download_goes_on(sdk: Any, far: Any, lossy: Lossy, tmp_path: Path) -> None:
    content = os.urandom(4 << 20)
    with sdk.Sandbox.create(profile="base", client=far) as box:
        box.files.write("f", content)
        lossy.lose(lambda seen: len(seen) > 1 << 20)
        assert box.files.download("f", tmp_path / "f").read_bytes() == content
        assert lossy.lost == 1 and lossy.count(b"GET") == 2
        lossy.lose(lambda seen: len(seen) > 1 << 20)
        assert b"".join(box.files.pieces("f")) == content


def test_an_upload_is_sent_again(sdk: Any, far: Any, lossy: Lossy) -> None:
    with sdk.Sandbox.create(profile="base", client=far) as box:
        lossy.lose(lambda seen: b"size_bytes" in seen)
        assert box.files.write("f", b"x" * (2 << 20)) == 2 << 20
        assert lossy.lost == 1 and lossy.count(b"PUT") == 2
        assert box.run("import os; os.path.getsize('f')").text == str(2 << 20)


def test_what_does_not_fit(sdk: Any, client: Any) -> None:
    with sdk.Sandbox.create(profile="base", limits={"disk_mb": 2}, client=client) as box:
        with pytest.raises(errors.DiskFull, match="disk_mb"):
            box.files.write("big", b"x" * (40 << 20))
        assert box.files.list() == []
    with pytest.raises(errors.FileTooLarge, match="max-file-mb"):
        client.files.upload(b"x" * (40 << 20))

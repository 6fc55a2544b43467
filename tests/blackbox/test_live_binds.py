"""Directories of the host in the workspaces of live sandboxes (live_bind), and /app, the
workspace's other name. What a sandbox can do with one is what the operator gave, and no more."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import stat
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from family import write_config
from harness import LiveService, Service, eventually, failed, run_cli, settled
from live_box import Box, box_of

SECRET = "the host's own"


class Host:
    """What the operator shows: `data` to read, `out` to write, and what lies beside them."""

    def __init__(self, top: Path) -> None:
        self.data, self.out = top / "data", top / "out"
        self.secret = top / "secret.txt"
        for directory in (self.data, self.out):
            directory.mkdir()
            directory.chmod(0o777)  # only how it is mounted keeps anybody from writing
        self.secret.write_text(SECRET)
        (self.data / "in.txt").write_text("shown")
        (self.data / "in.txt").chmod(0o666)
        (self.data / "deep").mkdir()
        (self.data / "deep" / "er.txt").write_text("deeper")
        (self.data / "private.txt").write_text(SECRET)
        (self.data / "private.txt").chmod(0o600)
        (self.data / "leads-out").symlink_to(self.secret)
        (self.data / "goes-up").symlink_to("../secret.txt")
        (self.data / "etc").symlink_to("/etc")
        self.binds = f"{self.data}:data,{self.out}:results/out:rw"


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    top = tmp_path_factory.mktemp("host")
    top.chmod(0o755)
    yield Host(top)


@pytest.fixture(scope="module")
def bound(tmp_path_factory: pytest.TempPathFactory, host: Host) -> Iterator[LiveService]:
    options = ("--profiles", "base", "--live-bind", host.binds)
    yield from settled(LiveService(tmp_path_factory.mktemp("bound"), *options))


@pytest.fixture
def box(bound: LiveService) -> Iterator[Box]:
    with box_of(bound) as one:
        yield one


def tried(box: Box, expression: str) -> str:
    """The name of what it raises, or its value."""
    code = f"try: print({expression})\nexcept Exception as e: print(type(e).__name__, e.errno)"
    return box.run("import os, stat, errno\n" + code).strip()


# ---------------------------------------------------------------------------- /app


def test_app_is_the_workspace(live_service: LiveService) -> None:
    with box_of(live_service, profile="base") as box:
        box.put("made.txt", b"outside")
        assert box.run("print(open('/app/made.txt').read())") == "outside\n"
        box.run("open('/app/inside.txt', 'w').write('inside')")
        assert box.read("inside.txt") == b"inside"
        code = "import sys, os\nos.mkdir('/app/pkg')\nopen('/app/pkg/mod.py', 'w').write('x = 7')\n"
        assert box.run(code + "sys.path.append('/app/pkg')\nimport mod\nprint(mod.x)") == "7\n"


def test_app_is_in_one_shot_sandboxes_too(service: Service) -> None:
    done = service.execute("open('/app/a', 'w').write('x'); print(open('/workspace/a').read())")
    assert done.stdout == b"x\n", done


# ---------------------------------------------------------------------------- read


def test_a_directory_of_the_host_is_read_as_it_is_now(box: Box, host: Host) -> None:
    assert box.run("print(open('data/in.txt').read())") == "shown\n"
    assert box.run("print(open('/app/data/deep/er.txt').read())") == "deeper\n"
    (host.data / "late.txt").write_text("came later")
    try:
        assert box.run("print(open('data/late.txt').read())") == "came later\n"
    finally:
        (host.data / "late.txt").unlink()


@pytest.mark.parametrize(
    "change",
    [
        "open('data/new', 'w')",
        "open('data/in.txt', 'a')",
        "os.unlink('data/in.txt')",
        "os.rename('data/in.txt', 'data/other')",
        "os.chmod('data/in.txt', 0o777)",
        "os.utime('data/in.txt')",
        "os.mkdir('data/dir')",
        "os.symlink('/etc', 'data/link')",
    ],
)
def test_what_is_only_to_be_read_is_not_changed(box: Box, host: Host, change: str) -> None:
    def look() -> list[tuple[str, float]]:
        return sorted((p.name, p.lstat().st_ctime) for p in host.data.iterdir())

    before = look()
    assert tried(box, change) == "OSError 30"
    assert look() == before


def test_what_the_host_keeps_private_stays_so(box: Box) -> None:
    assert tried(box, "open('data/private.txt').read()") == "PermissionError 13"
    reply = box.get("data/private.txt")
    assert (reply.status, reply.json["error"]["code"]) == (403, "no_access")


@pytest.mark.parametrize("path", ["data/leads-out", "data/goes-up", "data/../../secret.txt"])
def test_links_and_dots_lead_nowhere_on_the_host(box: Box, path: str) -> None:
    assert tried(box, f"open('{path}').read()") == "FileNotFoundError 2"
    reply = box.get(path)
    assert reply.status in (404, 422) and SECRET.encode() not in reply.body


def test_a_link_to_etc_is_the_sandboxes_etc(box: Box) -> None:
    inside = box.run("print(open('data/etc/passwd').read())")
    assert "user:x:1000" in inside and inside != Path("/etc/passwd").read_text() + "\n"
    assert box.get("data/etc/passwd").status == 422  # the files API stays in the workspace


# ---------------------------------------------------------------------------- write


def test_what_is_to_be_written_is_the_hosts_file(box: Box, host: Host) -> None:
    box.run("open('results/out/made.txt', 'w').write('by a program')")
    made = host.out / "made.txt"
    assert made.read_text() == "by a program"
    assert made.stat().st_uid != 0, "it belongs to no one on the host"
    box.run("import os; os.unlink('results/out/made.txt')")
    assert not made.exists()


def test_setuid_and_devices_have_no_effect_inside(box: Box, host: Host) -> None:
    shell = host.out / "suid"
    shell.write_bytes(Path("/usr/bin/id").read_bytes())
    shell.chmod(0o4755)
    with contextlib.suppress(PermissionError):
        os.mknod(host.out / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        (host.out / "null").chmod(0o666)
    try:
        ids = box.run("import subprocess; print(subprocess.getoutput('results/out/suid -u'))")
        assert ids == "1000\n"
        if (host.out / "null").exists():
            assert tried(box, "open('results/out/null').read()") == "PermissionError 13"
    finally:
        shell.unlink()
        (host.out / "null").unlink(missing_ok=True)


@pytest.mark.parametrize(
    "way",
    [
        "os.mknod('results/out/dev', 0o666 | stat.S_IFBLK, os.makedev(8, 0))",
        "os.link('/etc/passwd', 'results/out/passwd')",
        "os.rename('results/out', 'results/elsewhere')",
        "os.rmdir('results/out')",
        "os.rename('data', 'data2')",
    ],
)
def test_what_nobody_may_do_there(box: Box, host: Host, way: str) -> None:
    found = tried(box, way)
    assert found.startswith(("PermissionError", "OSError")), found
    assert not list(host.out.iterdir())


def test_the_mounts_cannot_be_changed(box: Box) -> None:
    found = box.run(
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "print(libc.mount(None, b'/workspace/data', None, 32, None), ctypes.get_errno())\n"
        "print(libc.umount2(b'/workspace/data', 2), ctypes.get_errno())\n"
        "print(sorted(__import__('os').listdir('/run/cloche/mounts')))"
    )
    assert found == "-1 1\n-1 1\n[]\n"
    flags = box.run(
        "for line in open('/proc/self/mountinfo'):\n"
        "    words = line.split()\n"
        "    if words[4].startswith('/workspace/'): print(words[4], words[5])"
    )
    shown = dict(line.split() for line in flags.splitlines())
    assert set(shown) == {"/workspace/data", "/workspace/results/out"}
    assert {"ro", "nosuid", "nodev"} <= set(shown["/workspace/data"].split(","))
    assert {"rw", "nosuid", "nodev"} <= set(shown["/workspace/results/out"].split(","))


# ---------------------------------------------------------------------------- the files API


def test_the_files_api_reads_and_lists_it(box: Box) -> None:
    assert box.read("data/in.txt") == b"shown"
    assert "data/deep/er.txt" in box.paths("data", recursive="true")
    with tarfile.open(fileobj=io.BytesIO(box.archive("data").body)) as tar:
        assert "in.txt" in tar.getnames()
        member = tar.extractfile("deep/er.txt")
        assert member and member.read() == b"deeper"


def test_the_files_api_writes_where_it_may(box: Box, host: Host) -> None:
    data = os.urandom(3 << 20)
    assert box.put("results/out/big.bin", data, mode="0640").status == 201
    made = host.out / "big.bin"
    assert made.read_bytes() == data and stat.S_IMODE(made.stat().st_mode) == 0o640
    assert box.put("results/out/big.bin", b"less").status == 200
    assert made.read_bytes() == b"less" and [p.name for p in host.out.iterdir()] == ["big.bin"]
    box.run("open('results/out/big.bin', 'a').write('!')")  # it belongs to the program's user
    assert box.delete("results/out/big.bin").status == 204
    assert not made.exists()


def test_the_files_api_changes_nothing_where_it_may_not(box: Box, host: Host) -> None:
    names = sorted(p.name for p in host.data.iterdir())
    for reply in (
        box.put("data/new.txt", b"x"),
        box.put("data/in.txt", b"x"),
        box.delete("data/in.txt"),
        box.operate("data/dir", op="mkdir"),
        box.operate("data/in.txt", op="chmod", mode="0777"),
    ):
        assert (reply.status, reply.json["error"]["code"]) == (403, "no_access"), reply
    assert sorted(p.name for p in host.data.iterdir()) == names
    assert (host.data / "in.txt").read_text() == "shown"


@pytest.mark.parametrize("path", ["results", "results/out", "data"])
def test_deleting_a_tree_stops_at_the_hosts_directory(box: Box, host: Host, path: str) -> None:
    (host.out / "kept.txt").write_text("kept")
    try:
        assert box.delete(path, recursive="true").status in (403, 409)
        assert (host.out / "kept.txt").read_text() == "kept"
    finally:
        (host.out / "kept.txt").unlink()


def test_files_made_there_are_not_told_as_the_cells(box: Box) -> None:
    result = box.result("open('own', 'w').write('x')\nopen('results/out/t', 'w').write('x')")
    assert [f["path"] for f in result["files"]] == ["own"]
    box.run("import os; os.unlink('results/out/t')")


# ---------------------------------------------------------------------------- attacks


def test_swapped_directories_lead_nowhere(box: Box, host: Host) -> None:
    code = (  # while the directory is away, an upload makes another one
        "import os, shutil\nout = 'results/out/'\nos.makedirs(out + 'dir')\n"
        "os.symlink('/tmp', out + 'link')\n"
        "def step():\n"
        "    os.rename(out + 'dir', out + 'other')\n"
        "    for old, new in (('link', 'dir'), ('dir', 'link'), ('other', 'dir')):\n"
        "        while True:\n"
        "            try: os.rename(out + old, out + new)\n"
        "            except OSError: shutil.rmtree(out + 'dir', True)\n"
        "            else: break\n"
    )
    with box.running(code):
        seen = {box.put("results/out/dir/file", b"x").status for _ in range(200)}
        seen |= {box.get("results/out/dir/file").status for _ in range(200)}
    assert seen <= {200, 201, 404, 409, 422}, seen
    assert {200, 201} & seen
    assert box.run("import os; print(os.path.exists('/tmp/file'))") == "False\n"
    assert not (host.out.parent / "file").exists() and not Path("/tmp/file").exists()
    box.run("import shutil, os\nshutil.rmtree('results/out/dir')\nos.unlink('results/out/link')")
    assert not list(host.out.iterdir())


def test_a_fifo_in_it_holds_nobody_up(box: Box, host: Host) -> None:
    os.mkfifo(host.out / "fifo", 0o666)
    (host.out / "fifo").chmod(0o666)
    try:
        assert box.get("results/out/fifo").status == 422
        assert box.put("results/out/fifo", b"x").status == 409
        assert box.archive("results/out").status == 200
    finally:
        (host.out / "fifo").unlink()


# ---------------------------------------------------------------------------- configuration


@pytest.mark.parametrize(
    "text, words",
    [
        ("/tmp", ["/tmp", "HOST:PATH"]),
        ("relative:data", ["relative", "absolute"]),
        ("/tmp:../up", ["../up", "workspace"]),
        ("/tmp:/abs", ["/abs", "workspace"]),
        ("/tmp:a//b", ["a//b", "workspace"]),
        ("/tmp:", ["/tmp:", "workspace"]),
        ("/tmp:data:rx", [":rw"]),
        ("/no/such/place:data", ["/no/such/place", "no directory"]),
        ("/etc/passwd:data", ["/etc/passwd", "no directory"]),
        ("/tmp:a,/usr:a/b", ["a/b", "in the other"]),
    ],
)
def test_a_bind_that_cannot_be_is_refused_at_the_start(
    tmp_path: Path, text: str, words: list[str]
) -> None:
    options = (
        "--http",
        "on",
        "--live",
        "on",
        "--port",
        "0",
        "--state-dir",
        str(tmp_path / "state"),
    )
    done = run_cli("serve", "--socket", tmp_path / "s", *options, "--live-bind", text)
    failed(done, "live_bind", *words)


def test_one_shot_programs_do_not_see_them(bound: LiveService) -> None:
    look = "import os; print(os.path.exists('data'), os.listdir('/run/cloche/mounts'))"
    assert bound.execute(look).stdout == b"False []\n"


def test_a_reload_changes_what_new_sandboxes_see(
    start_live: Callable[..., LiveService], tmp_path: Path, host: Host
) -> None:
    profiles: dict[str, Any] = {"data": None}
    config = write_config(tmp_path, profiles, live_bind=f"{host.data}:data")
    service = start_live("--config", config)
    with box_of(service, profile="base") as box:
        assert box.run("import os; print(os.listdir('.'))") == "['data']\n"
    write_config(tmp_path, profiles, live_bind=f"{host.out}:other:rw")
    service.process.send_signal(signal.SIGHUP)

    def seen() -> str:
        with box_of(service, profile="base") as box:
            return box.run("import os; print(os.listdir('.'))")

    assert eventually(lambda: seen() == "['other']\n"), service.text()

"""Directories of the host that a live sandbox asks for (binds), of those that the operator allows
(bind_allow): it gets these, as they were asked for, and sees nothing of the others."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deaths import kill_server
from family import write_config
from harness import LiveService, eventually, failed, run_cli, settled
from live import Box, Client, error

SECRET = "nobody asked for this"


class Host:
    """What the operator allows: `read` to read, `write` to write; `other` is allowed too."""

    def __init__(self, top: Path) -> None:
        self.read, self.write, self.other = top / "read", top / "write", top / "other"
        self.beside = top / "beside"
        for directory in (self.read, self.write, self.other, self.beside):
            directory.mkdir()
            directory.chmod(0o777)
        (self.read / "in.txt").write_text("shown")
        (self.read / "deep").mkdir()
        (self.read / "deep" / "er.txt").write_text("deeper")
        (self.read / "deep").chmod(0o777)
        (self.read / "link").symlink_to(self.beside)
        (self.read / "up").symlink_to("..")
        (self.read / "loop").symlink_to("deep")
        for directory in (self.other, self.beside):
            (directory / "secret.txt").write_text(SECRET)
        self.allowed = f"{self.read},{self.write}:rw,{self.other}:rw"


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    top = tmp_path_factory.mktemp("host")
    top.chmod(0o755)
    yield Host(top)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, host: Host) -> Iterator[LiveService]:
    options = ("--profiles", "base", "--bind-allow", host.allowed)
    yield from settled(LiveService(tmp_path_factory.mktemp("asked"), *options))


@pytest.fixture
def client(service: LiveService) -> Client:
    return Client(service.port)


def bind(host: Path, path: str, mode: str = "ro") -> dict[str, str]:
    return {"host": str(host), "path": path, "mode": mode}


def tried(box: Box, expression: str) -> str:
    """The name of what it raises, or its value."""
    code = f"try: print({expression})\nexcept OSError as e: print(type(e).__name__, e.errno)"
    result = box.run("import os, errno\n" + code)
    assert result["status"] == "ok", result
    return str(result["stdout"]).strip()


# ---------------------------------------------------------------------------- what it gets


def test_it_gets_what_it_asked_for(client: Client, host: Host) -> None:
    binds = [bind(host.read, "data"), bind(host.write, "/workspace/out/here", "rw")]
    with client.box(binds=binds) as box:
        assert box.made["binds"] == binds and box.get()["binds"] == binds
        assert tried(box, "open('data/in.txt').read()") == "shown"
        assert tried(box, "open('/app/data/deep/er.txt').read()") == "deeper"
        assert tried(box, "open('data/new', 'w')") == "OSError 30"
        assert tried(box, "os.chmod('data/in.txt', 0o777)") == "OSError 30"
        assert tried(box, "open('out/here/made', 'w').write('inside')") == "6"
        assert (host.write / "made").read_text() == "inside"
        assert (host.write / "made").stat().st_uid != 0
        assert box.ask("GET", "/files/data/in.txt").body == b"shown"
        assert tried(box, "os.unlink('out/here/made')") == "None"


def test_commands_and_further_kernels_see_it(client: Client, host: Host) -> None:
    with client.box(binds=[bind(host.read, "data")]) as box:
        assert box.text("open('data/in.txt').read()", kernel_id=box.kernel()) == "'shown'"
        assert box.do("/commands", cmd="cat data/deep/er.txt")["stdout"] == "deeper"


def test_a_directory_below_an_allowed_one_will_do(client: Client, host: Host) -> None:
    with client.box(binds=[bind(host.read / "deep", "d")]) as box:
        assert tried(box, "os.listdir('d')") == "['er.txt']"
        assert tried(box, "os.listdir('d/..')") == "['d']", "up leads to the workspace"


def test_what_may_be_written_to_can_be_had_for_reading(client: Client, host: Host) -> None:
    with client.box(binds=[bind(host.write, "out")]) as box:
        assert tried(box, "open('out/new', 'w')") == "OSError 30"


def test_files_of_the_request_come_after_it(client: Client, host: Host) -> None:
    files = [{"path": "out/given.txt", "content": "given"}]
    with client.box(binds=[bind(host.write, "out", "rw")], files=files) as box:
        assert tried(box, "open('out/given.txt').read()") == "given"
        assert (host.write / "given.txt").read_text() == "given"
        assert tried(box, "os.unlink('out/given.txt')") == "None"


def test_whoever_asks_for_nothing_gets_nothing(client: Client) -> None:
    with client.box() as box:
        assert box.made["binds"] == []
        assert tried(box, "os.listdir('/workspace')") == "[]"


def test_the_mount_lets_nothing_through_that_the_host_would_mind(
    client: Client, host: Host
) -> None:
    binds = [bind(host.read, "data"), bind(host.write, "out", "rw")]
    with client.box(binds=binds) as box:
        lines = box.run(
            "for line in open('/proc/self/mountinfo'):\n"
            "    words = line.split()\n"
            "    if words[4].startswith('/workspace/'): print(words[4], words[5])"
        )["stdout"]
        shown = dict(line.split() for line in lines.splitlines())
        assert {"ro", "nosuid", "nodev"} <= set(shown["/workspace/data"].split(","))
        assert {"rw", "nosuid", "nodev"} <= set(shown["/workspace/out"].split(","))


# ---------------------------------------------------------------------------- what it does not get


def ask_for(client: Client, *binds: dict[str, str], **fields: Any) -> Any:
    body = {"profile": "base", "binds": list(binds)} | fields
    return client.ask("POST", "/v1/sandboxes", body)


@pytest.mark.parametrize("place", ["beside", "", "read-not", "read/../beside", "read/", "read/."])
def test_what_is_not_allowed_is_refused(client: Client, host: Host, place: str) -> None:
    where = f"{host.read.parent}/{place}"
    reply = ask_for(client, {"host": where, "path": "data"})
    error(reply, 403, "bind_not_allowed", "the operator does not allow")
    assert str(host.other) not in str(reply.json), "others that are allowed are not told"


@pytest.mark.parametrize("where", ["", "relative", "/", "/etc", "//", "/proc/self/root"])
def test_other_places_of_the_host_are_refused(client: Client, where: str) -> None:
    error(ask_for(client, {"host": where, "path": "data"}), 403, "bind_not_allowed")


def test_what_is_to_be_read_only_cannot_be_had_otherwise(client: Client, host: Host) -> None:
    reply = ask_for(client, bind(host.read, "data", "rw"))
    error(reply, 403, "bind_not_allowed", "to be written to")


@pytest.mark.parametrize("below", ["link", "up", "up/beside", "loop", "link/x"])
def test_no_link_leads_anywhere(client: Client, host: Host, below: str) -> None:
    """Not even one that stays inside: it could be another one a moment later."""
    error(ask_for(client, bind(host.read / below, "data")), 422, "bad_bind", "symbolic links")


def test_what_is_no_directory_is_refused(client: Client, host: Host) -> None:
    error(ask_for(client, bind(host.read / "in.txt", "d")), 422, "bad_bind", "Not a directory")
    error(ask_for(client, bind(host.read / "none", "d")), 422, "bad_bind", "No such file")
    assert client.listed()["sandboxes"] == []


@pytest.mark.parametrize("path", ["", "/", "..", "a/../b", "/etc/x", "./a", "a//b", "x" * 201])
def test_a_place_outside_the_workspace_is_refused(client: Client, host: Host, path: str) -> None:
    error(ask_for(client, bind(host.read, path)), 422, "bad_value", "/workspace")


def test_two_cannot_have_one_place(client: Client, host: Host) -> None:
    reply = ask_for(client, bind(host.read, "a"), bind(host.write, "a/b"))
    error(reply, 422, "bad_value", "one in the other")


def test_their_number_is_bounded(client: Client, host: Host) -> None:
    many = [bind(host.read, f"d{i}") for i in range(17)]
    error(ask_for(client, *many), 422, "bad_fields")
    with client.box(binds=many[:16]) as box:
        assert tried(box, "open('d15/in.txt').read()") == "shown"


def test_nothing_is_allowed_unless_the_operator_says_so(start_live: Any, host: Host) -> None:
    client = Client(start_live().port)
    error(ask_for(client, bind(host.read, "data")), 403, "bind_not_allowed", "bind_allow")


def test_a_reload_changes_what_may_be_asked_for(
    start_live: Any, host: Host, tmp_path: Path
) -> None:
    config = write_config(tmp_path, {"data": None}, bind_allow=str(host.read))
    service = start_live("--config", config)
    client = Client(service.port)
    with client.box(binds=[bind(host.read, "data")]) as box:
        write_config(tmp_path, {"data": None}, bind_allow=str(host.other))
        service.process.send_signal(signal.SIGHUP)

        def status() -> int:
            reply = ask_for(client, bind(host.other, "data"))
            if reply.status == 201:
                client.ask("DELETE", f"/v1/sandboxes/{reply.json['id']}")
            return int(reply.status)

        assert eventually(lambda: status() == 201), service.text()
        error(ask_for(client, bind(host.read, "data")), 403, "bind_not_allowed")
        assert tried(box, "open('data/in.txt').read()") == "shown"


@pytest.mark.parametrize(
    "text, words",
    [
        ("relative", ["relative", "absolute"]),
        ("/", ["absolute"]),
        ("/tmp/../etc", ["absolute"]),
        ("/tmp:rx", [":rw"]),
        ("/no/such/place", ["/no/such/place", "no directory"]),
        ("/etc/passwd", ["/etc/passwd", "no directory"]),
    ],
)
def test_what_cannot_be_allowed_is_refused_at_the_start(
    tmp_path: Path, text: str, words: list[str]
) -> None:
    options = [
        "--http",
        "on",
        "--live",
        "on",
        "--port",
        "0",
        "--state-dir",
        str(tmp_path / "state"),
    ]
    done = run_cli("serve", "--socket", tmp_path / "s", *options, "--bind-allow", text)
    failed(done, *words)


# ---------------------------------------------------------------------------- hostile


def test_others_that_are_allowed_cannot_be_found(client: Client, host: Host) -> None:
    """Not at the place where they are kept, not through init, not by any path."""
    code = (
        "import os, glob\n"
        "found = []\n"
        "for top in ('/run/cloche/mounts', '/proc/1/root', '/proc/1/cwd', '/proc/1/fd',\n"
        "            '/proc/self/root/run/cloche/mounts', '/workspace/data/..', '/root'):\n"
        "    try: found += [(top, name) for name in os.listdir(top)]\n"
        "    except OSError: pass\n"
        "print([f for f in found if f[1] != 'data'])\n"
        "for number in range(300):\n"
        "    for top in (f'/proc/1/fd/{number}', f'/proc/self/fd/{number}',\n"
        "                f'/run/cloche/mounts/allowed-{number}'):\n"
        "        try: print(open(top + '/secret.txt').read())\n"
        "        except OSError: pass\n"
    )
    with client.box(binds=[bind(host.read, "data")]) as box:
        result = box.run(code)
        assert result["stdout"] == "[]\n", result
        cmd = "grep -rs asked /run /root /tmp /workspace /dev/shm /etc /app; true"
        assert SECRET not in str(box.do("/commands", cmd=cmd))


def test_it_can_neither_be_unmounted_nor_made_writable(client: Client, host: Host) -> None:
    with client.box(binds=[bind(host.read, "data")]) as box:
        found = box.run(
            "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
            "for path in (b'/workspace/data', b'/run/cloche/mounts'):\n"
            "    print(libc.mount(None, path, None, 32, None), ctypes.get_errno())\n"
            "    print(libc.umount2(path, 2), ctypes.get_errno())\n"
        )["stdout"]
        assert found == "-1 1\n" * 4
        assert tried(box, "os.rename('data', 'elsewhere')").startswith(("OSError", "Permission"))
        assert box.ask("DELETE", "/files/data?recursive=true").status in (403, 409)
        assert (host.read / "in.txt").read_text() == "shown"


def test_a_link_that_a_sandbox_made_leads_no_later_one_out(client: Client, host: Host) -> None:
    with client.box(binds=[bind(host.write, "out", "rw")]) as box:
        assert tried(box, f"os.symlink({str(host.beside)!r}, 'out/trap')") == "None"
        assert tried(box, "os.symlink('../beside', 'out/up')") == "None"
    try:
        for name in ("trap", "up"):
            error(ask_for(client, bind(host.write / name, "d", "rw")), 422, "bad_bind")
    finally:
        for name in ("trap", "up"):
            (host.write / name).unlink()


def test_it_stays_when_the_server_is_killed(start_live: Any, host: Host) -> None:
    service = start_live("--bind-allow", host.allowed)
    binds = [bind(host.read, "data")]
    with Client(service.port).box(binds=binds) as box:
        kill_server(service)
        assert box.get()["binds"] == binds
        assert tried(box, "open('data/in.txt').read()") == "shown"


def test_the_hosts_files_are_nobodys_inside(client: Client, host: Host) -> None:
    private = host.write / "private"
    private.write_text(SECRET)
    private.chmod(0o600)
    try:
        with client.box(binds=[bind(host.write, "out", "rw")]) as box:
            assert tried(box, "open('out/private').read()") == "PermissionError 13"
            assert box.ask("GET", "/files/out/private").status == 403
        assert os.stat(private).st_mode & 0o777 == 0o600
    finally:
        private.unlink()

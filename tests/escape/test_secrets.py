"""A secret of the server is in the server alone: not in the memory, nor behind a descriptor, of any
process that stands between it and a program. Root of the host looks."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import Caller, LiveService, run_cli
from host import Process
from live import Client

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="reads the memory of others")
PAGE = os.sysconf("SC_PAGESIZE")


def memory(pid: int) -> Iterator[bytes]:
    """All that a process has in memory that it may write to, run of pages by run of pages."""
    present = struct.Struct("=Q")
    with contextlib.ExitStack() as stack:
        maps = stack.enter_context(open(f"/proc/{pid}/maps"))
        mem = stack.enter_context(open(f"/proc/{pid}/mem", "rb", 0))
        pages = stack.enter_context(open(f"/proc/{pid}/pagemap", "rb", 0))
        for line in maps:
            span, rights = line.split()[:2]
            begin, end = (int(x, 16) for x in span.split("-"))
            if not rights.startswith("rw"):  # programs and libraries
                continue
            pages.seek(begin // PAGE * present.size)
            table = present.iter_unpack(pages.read((end - begin) // PAGE * present.size))
            there = [i for i, (entry,) in enumerate(table) if entry >> 63]
            for run in runs(there):
                mem.seek(begin + run.start * PAGE)
                with contextlib.suppress(OSError):  # it was let go
                    yield mem.read(len(run) * PAGE)


def runs(numbers: list[int]) -> Iterator[range]:
    """Numbers that follow each other."""
    first = 0
    for i in range(1, len(numbers) + 1):
        if i == len(numbers) or numbers[i] != numbers[i - 1] + 1:
            yield range(numbers[first], numbers[i - 1] + 1)
            first = i


def holds(process: Process, words: list[bytes]) -> list[bytes]:
    found = {word for piece in memory(process.pid) for word in words if word in piece}
    return sorted(found)


def start(directory: Path, token: str, url: str) -> tuple[LiveService, str]:
    """A service whose token is in the environment, and a key that it knows."""
    directory.chmod(0o711)
    file = directory / "keys.json"
    made = run_cli("key", "add", "alice", "--keys", file)
    assert made.returncode == 0, made.stderr
    caller = Caller(env={"CLOCHE_EFAST_TOKEN": token})
    options = ("--profiles", "base", "--pool", "1", "--keys", str(file), "--efast-url", url)
    return LiveService(directory, *options, caller=caller), made.stdout.decode().strip()


def below(service: LiveService) -> Iterator[Process]:
    """All but `cloche serve` itself and the server."""
    for process in service.remember()[1:]:
        if process.role != "cloche-server":
            yield process


@pytest.mark.once  # a sanitizer maps more than can be read
def test_nobody_but_the_server_has_its_secrets(tmp_path: Path) -> None:
    token, url = secrets.token_hex(20), f"http://127.0.0.1:1/{secrets.token_hex(8)}/"
    service, key = start(tmp_path, token, url)
    try:
        known = json.loads((tmp_path / "keys.json").read_text())["keys"][0]
        words = [token, url, key, *(text for text in known.values() if len(str(text)) > 30)]
        wanted = [str(word).encode() for word in words]
        # The directory of tenants' profiles is beside it, and its name begins so.
        wanted += [bytes(service.state) + end for end in (b"/", b"\0")]
        with Client(service.port, Authorization=f"Bearer {key}").box() as box:
            assert box.text("1 + 1") == "2"
            server = next(p for p in service.remember() if p.role == "cloche-server")
            assert token.encode() in holds(server, wanted), "the search finds it"
            seen = Counter(process.comm for process in below(service))
            assert all(seen[name] for name in ("cloche-warden", "cloche-nursery", "cloche-init"))
            assert sum(seen.values()) > sum(seen[n] for n in seen if n.startswith("cloche-"))
            for process in below(service):
                assert holds(process, wanted) == [], process
            check_descriptors(service)
        service.stop()
    finally:
        service.kill()


def links(pid: int) -> set[str]:
    directory = Path(f"/proc/{pid}/fd")
    with contextlib.suppress(OSError):  # it may end
        return {os.readlink(path) for path in directory.iterdir()}
    return set()


def check_descriptors(service: LiveService) -> None:
    """What stands between the server and a program has no file or socket of the service's."""
    for process in below(service):
        if process.comm == "cloche-warden":
            continue  # it hands them to the next server
        held = links(process.pid)
        bad = [name for name in held if "cloche-config" in name or str(service.state) in name]
        assert not bad, (process, bad)
        for name in held:
            if name.startswith("socket:"):
                inode = name[8:-1]
                assert inode not in listening(), (process, name)


def listening() -> set[str]:
    """Inodes of the sockets of this machine that listen for TCP."""
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return {line.split()[9] for line in lines if line.split()[3] == "0A"}

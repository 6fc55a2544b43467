"""What a sandbox had is gone, or still counts as its own, when somebody else gets its place:
sockets on their way through other sockets, which the kernel frees late, and files that a client
reads."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import Engine, LiveService, eventually
from host import descendants
from live import Client

MB = 1 << 20

# A descriptor in a socket in a socket … in two that hold each other. The kernel finds these when
# their processes are dead, and frees one of the chain in each tick of its clock.
CHAIN = """
import array, os, socket
def send(to, *fds):
    to.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', fds))])
def bury(fd, depth):
    for _ in range(depth):
        a, b = socket.socketpair()
        send(a, fd)
        os.close(fd)
        fd = b.detach()
    a, b = socket.socketpair()
    send(a, a.fileno(), b.fileno(), fd)
    send(b, a.fileno(), b.fileno())
    return a, b  # closed when it ends, not before
"""
NAMED = (
    CHAIN + "s = socket.socket(socket.AF_UNIX)\ns.bind('\\0known')\ns.listen()\n"
    "ends = bury(s.detach(), 900)\nprint('left')"
)
BIND = "import socket\nsocket.socket(socket.AF_UNIX).bind('\\0known')\nprint('mine')"
HEAVY = (
    CHAIN + "fd = os.memfd_create('x')\nos.posix_fallocate(fd, 0, 400 << 20)\n"
    "ends = bury(fd, 900)\nprint('left')"
)


def memory_mb(engine: Engine) -> int:
    """Of all sandboxes of the engine, the dead ones included."""
    for top in map(Path, engine.own_cgroups()):
        for name in ("memory.current", "memory.usage_in_bytes"):
            if (top / name).exists():
                return int((top / name).read_text()) // MB
    pytest.skip("no control groups here")


def leave(engine: Engine, code: str) -> None:
    """Once what an engine before this one left under the same uid is gone."""
    options = {"profile": "base", "memory_mb": 512, "open_files": 1000}
    assert eventually(lambda: engine.execute(code, **options).stdout == b"left\n")


def ids(engine: Engine) -> frozenset[int]:
    """The host's, of the processes in sandboxes and nurseries."""
    owners = {
        Path(f"/proc/{process.pid}").stat().st_uid for process in descendants(engine.process.pid)
    }
    return frozenset(owners - {0})


def test_engines_do_not_share_ids(start_engine: Callable[..., Engine]) -> None:
    # Each begins at a random one, so two may meet by chance: not all of four.
    engines = [start_engine("--profiles", "base") for _ in range(4)]
    for engine in engines:
        engine.settle()
    assert len({ids(engine) for engine in engines}) > 1


def test_a_name_of_the_sandbox_before_is_free(start_engine: Callable[..., Engine]) -> None:
    engine = start_engine("--profiles", "base")
    for _ in range(5):
        leave(engine, NAMED)
        for _ in range(10):  # more than are ready
            result = engine.execute(BIND, profile="base")
            assert result.stdout == b"mine\n", result


def test_memory_that_outlives_its_sandbox_is_in_the_budget(
    start_engine: Callable[..., Engine],
) -> None:
    engine = start_engine("--profiles", "base", "--memory-budget-mb", "1024")
    engine.settle()
    most = 0
    for _ in range(12):
        leave(engine, HEAVY)
        most = max(most, memory_mb(engine))
    assert most < 1024 + 512, "the budget, and one that had only begun"


def test_a_download_ends_with_its_sandbox(live_service: LiveService) -> None:
    before = memory_mb(live_service)
    fill = "import os\nos.posix_fallocate(os.open('big', os.O_CREAT | os.O_RDWR), 0, 200 << 20)"
    with Client(live_service.port).box(limits={"disk_mb": 256}) as box, socket.socket() as slow:
        assert box.run(fill)["status"] == "ok"
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", live_service.port))
        slow.sendall(f"GET {box.path}/files/big HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert slow.recv(15) == b"HTTP/1.1 200 OK"
        assert memory_mb(live_service) > before + 150
        box.delete()
        assert eventually(lambda: memory_mb(live_service) < before + 50, 20)

"""Pages of the kernel that one unread byte holds are no group's, so they are bounded: who holds
too many is ended, however it came by them. Those whose queues are full of data are not, whatever a
neighbour does."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import Engine, LiveService
from held import PATIENT, Held
from live import Client

HERE = Path(__file__).resolve().parent
CODE = (HERE / "programs" / "pages.py").read_text()
WAYS = ("received", "reset", "posted", "unsent", "waiting", "datagrams", "threads")
LIMITS = {"memory_mb": 64, "open_files": 1024}
BEYOND_MB, MOST_MB = 256, 1024  # a test takes no more

FULL_QUEUES = """
import socket, sys
held = []
def fill(sock, data):
    sock.setblocking(False)
    try:
        while True: sock.send(data)
    except BlockingIOError: pass
server = socket.create_server(("127.0.0.1", 0), backlog=16)
for i in range(100):
    pair = socket.create_connection(server.getsockname()), server.accept()[0]
    held.append(pair)
    for end in pair: fill(end, bytes(65536 if i % 2 else 200))
for i in range(20):
    held.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    held[-1].bind(("127.0.0.1", 0))
    held[-1].connect(held[-1].getsockname())
    for _ in range(500): held[-1].send(bytes(100))
print("full", flush=True)
sys.stdin.readline()
for pair in held[:100]:
    for end in pair: assert end.recv(100) == bytes(100)
print("good", flush=True)
"""


# Sockets that are in no list of the kernel's, and hold next to nothing.
IDLE_SOCKETS = """
import socket, struct, sys
held = [socket.socket(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)]
held.append(socket.socket(socket.AF_INET6))
held[2].bind(("::1", 0))
server = socket.create_server(("127.0.0.1", 0))
one, other = socket.create_connection(server.getsockname()), server.accept()[0]
one.send(b"good")
one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
one.close()
print("idle", flush=True)
sys.stdin.readline()
print("good", flush=True)
"""
LONG_MS = 600_000
LITTLE_MB = 20  # of a sandbox that is not ended, whatever the machine lacks


@pytest.fixture(scope="module")
def too_much() -> int:
    """MiB that are more than a sandbox may hold here, and that the machine can spare."""
    text = Path("/proc/meminfo").read_text()
    total, free = (
        int(re.findall(rf"{name}:\s+(\d+)", text)[0]) >> 10 for name in ("MemTotal", "MemAvailable")
    )
    wanted = max(64, total // 32) + BEYOND_MB
    if wanted > MOST_MB or free < 4 * wanted:
        pytest.skip("this machine is too large to notice so little, or has too little left")
    return wanted


def attack(engine: Engine, way: str, mb: int) -> None:
    outcome = engine.execute(CODE, args=[way, str(mb)], **{**PATIENT, **LIMITS})
    assert outcome.result["status"] == "memory_exceeded", outcome
    assert outcome.result["limit_hit"] == "memory", outcome


@pytest.mark.parametrize("way", WAYS)
def test_who_holds_too_many_is_ended(engine: Engine, way: str, too_much: int) -> None:
    attack(engine, way, too_much)


def test_full_queues_live_beside_that(engine: Engine, too_much: int) -> None:
    with Held(engine, FULL_QUEUES, memory_mb=512, open_files=1024) as honest:
        assert honest.line() == "full"
        for _ in range(3):
            attack(engine, "received", too_much)
        honest.send("\n")
        assert honest.end().stdout == b"full\ngood\n", honest.outcome


@pytest.mark.once  # timed out with sanitizers beside the whole suite: it is not known why
@pytest.mark.parametrize("groups", ["auto", "none"])
def test_idle_sockets_live_beside_many_that_hold_little(
    start_engine: Callable[..., Engine], too_much: int, groups: str
) -> None:
    """Each of the many holds less than anyone is ended for, all of them more than the machine may
    lack: the honest are not to pay for it, but those who hold much that no list has. Without
    control groups init lists the sockets all the time, with one of its own."""
    engine = start_engine("--cgroup", groups, "--max-timeout-ms", str(LONG_MS))
    limits = {**LIMITS, "timeout_ms": LONG_MS}
    full = str(4 * LITTLE_MB)
    guilty = [Held(engine, CODE, args=["reset", full], **limits) for _ in range(3)]
    honest = [Held(engine, IDLE_SOCKETS, timeout_ms=LONG_MS) for _ in range(8)]
    little: list[Held] = []
    try:
        assert all(one.line() == "idle" for one in honest)
        assert all(one.line().startswith("holds") for one in guilty)
        for _ in range(too_much // LITTLE_MB):
            little.append(Held(engine, CODE, args=["received", str(LITTLE_MB)], **limits))
        assert all(one.line().startswith("holds") for one in little)
        for one in guilty:
            assert one.end().result["limit_hit"] == "memory", one.outcome
        for one in honest:
            one.send("\n")
            assert one.end().stdout == b"idle\ngood\n", one.outcome
    finally:
        for one in guilty + honest + little:
            one.client.close()


def test_a_live_sandbox_goes_on(live_service: LiveService, too_much: int) -> None:
    with Client(live_service.port).box(limits=LIMITS) as box:
        code = CODE.replace("sys.argv[1]", "'received'").replace("sys.argv[2]", str(too_much))
        for _ in range(2):
            result = box.run(code, timeout_ms=60000)
            assert result["status"] == "memory_exceeded", result
            assert result["limit_hit"] == "memory", result
            assert box.text("1 + 1") == "2"

"""Memory that a program sends away and lets go of: whoever closes it last frees it, which takes the
longer the more it is. That is the sandbox's own init, never a process that others wait for. Told by
the processor time that ours have used."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import LiveService, eventually
from live import SSE, Box, Client
from raw_http import post
from test_live_hostile import TOOLS

MB = 1 << 20
SENT_MB = 1200
LEAVES = """
import time
def memory(mb):
    fd = os.memfd_create('x')
    os.posix_fallocate(fd, 0, mb << 20)
    return fd
def leave(fd):
    ends = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [fd]))]
    control.sendmsg([frame('K_SAY', blob(b'{}'))], ends)
    os.close(fd)
def unread():
    n = array.array('i', [0])
    fcntl.ioctl(control, 0x5411, n)
    return n[0]
"""
# Each is in the server's hands before the next one is made.
MANY = f"""
for _ in range(40):
    leave(memory({SENT_MB} // 10))
    while unread(): time.sleep(0.001)
"""
# Nobody reads what it shows: so the server does not read on, and the memory stays in the socket.
UNREAD = f"""
fd, looks = memory({SENT_MB}), 0
while looks < 20:
    looks = looks + 1 if unread() else 0
    if looks: time.sleep(0.02)
    else: say(event('display', data={{'text/plain': 'x' * 30000}}, metadata={{}}))
leave(fd)
open('left', 'w').close()
time.sleep(1000)
"""


def seconds_of(service: LiveService, role: str) -> float:
    """Of the system, for one of our processes: to free memory is nothing else."""
    pid = next(p.pid for p in service.remember() if p.role == role)
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[12]) / os.sysconf("SC_CLK_TCK")


@pytest.fixture
def box(live_service: LiveService) -> Iterator[Box]:
    with Client(live_service.port).box(limits={"memory_mb": 2000, "cpu_seconds": 60}) as made:
        assert made.run(TOOLS + LEAVES)["status"] == "ok"
        yield made


@pytest.mark.once
def test_the_server_does_not_free_what_it_was_sent(live_service: LiveService, box: Box) -> None:
    before = seconds_of(live_service, "cloche-server")
    assert box.run(MANY, timeout_ms=60000)["status"] == "ok"
    assert seconds_of(live_service, "cloche-server") - before < 0.1
    assert eventually(lambda: box.get()["usage"]["memory_bytes"] < 400 * MB), "but it is freed"


@pytest.mark.once
def test_the_warden_does_not_free_what_nobody_read(live_service: LiveService, box: Box) -> None:
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", live_service.port))
        body = {"code": UNREAD, "timeout_ms": 60000}
        slow.sendall(post(box.path + "/execute", body, "Accept: " + SSE["Accept"]))
        assert eventually(lambda: box.ask("GET", "/files/left").status == 200)
        roles = ("cloche-warden", "cloche-server")
        before = {role: seconds_of(live_service, role) for role in roles}
        box.delete()
        live_service.check_health()
        used = {role: seconds_of(live_service, role) - before[role] for role in roles}
        assert max(used.values()) < 0.2, used

"""No socket of the host's network namespace is ever in a descriptor table that user code can reach,
and our own processes beside it are closed to it."""

from __future__ import annotations

import ctypes
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from host import Process, descendants
from live import Box
from live_network import NetworkService, said, until
from world import WEB, World

SYS_PIDFD_GETFD = 438
SO_NETNS_COOKIE = 71
INET = (socket.AF_INET, socket.AF_INET6)
_libc = ctypes.CDLL(None, use_errno=True)

BUSY = f"""
import os, socket, threading, time
kept = [socket.create_connection(("{WEB}", 7), 20) for _ in range(20)]
def again():
    while not os.path.exists("enough"):
        try:
            with socket.create_connection(("{WEB}", 7), 20) as sock:
                sock.sendall(b"abc")
                sock.recv(3)
        except OSError:
            time.sleep(0.01)
threads = [threading.Thread(target=again) for _ in range(4)]
[thread.start() for thread in threads]
children = []
for _ in range(3):
    pid = os.fork()
    if pid == 0:
        again()
        os._exit(0)
    children.append(pid)
"""


def cookie(sock: socket.socket) -> int:
    return int(struct.unpack("Q", sock.getsockopt(socket.SOL_SOCKET, SO_NETNS_COOKIE, 8))[0])


def sockets(process: Process) -> Iterator[socket.socket]:
    """Copies of those that the process has."""
    try:
        pidfd = os.pidfd_open(process.pid)
        names = os.listdir(f"/proc/{process.pid}/fd")
    except OSError:
        return
    for name in names:
        fd = _libc.syscall(SYS_PIDFD_GETFD, pidfd, int(name), 0)
        if fd >= 0:
            if os.readlink(f"/proc/self/fd/{fd}").startswith("socket:"):
                with socket.socket(fileno=fd) as sock:
                    yield sock
            else:
                os.close(fd)
    os.close(pidfd)


def family(net: NetworkService, role: str) -> set[int]:
    return {p.pid for p in descendants(net.process.pid) if role in (p.comm, p.role)}


def of_users(net: NetworkService, usher: Process) -> list[Process]:
    """The processes of user code: those of the usher's pid namespace that are not ours."""

    def where(process: Process) -> str:
        try:
            return os.readlink(f"/proc/{process.pid}/ns/pid")
        except OSError:
            return ""

    ours = ("cloche-usher", "cloche-init")
    family = descendants(net.process.pid)
    return [p for p in family if where(p) == where(usher) and p.comm not in ours]


def find_usher(net: NetworkService, before: set[int]) -> Process:
    found = until(
        lambda: [
            p
            for p in descendants(net.process.pid)
            if "cloche-usher" in (p.comm, p.role) and p.pid not in before
        ]
    )
    assert len(found) == 1, found
    usher: Process = found[0]
    return usher


def test_no_socket_of_the_host_is_where_user_code_is(net: NetworkService, world: World) -> None:
    """Under load: connects, open connections, threads, children."""
    before = family(net, "cloche-usher")
    with socket.socket() as sock:
        outside = cookie(sock)  # this test runs in the host's namespace
    with net.box([f"{WEB}:7"]) as box:
        box.run(BUSY, timeout_ms=60000)
        usher = find_usher(net, before)
        seen: set[int] = set()
        many = 0
        for _ in range(100):
            for process in of_users(net, usher):
                for one in sockets(process):
                    if one.family in INET:
                        seen.add(cookie(one))
                        many += 1
        of_usher = {cookie(one) for one in sockets(usher) if one.family in INET}
        box.run("open('enough', 'w').close()")
        assert many > 1000 and len(seen) == 1 and outside not in seen, (many, seen, outside)
        assert of_usher == {outside} | seen  # it is the one that holds both


def test_the_usher_is_closed_to_user_code(net: NetworkService) -> None:
    before = family(net, "cloche-usher")
    with net.box([f"{WEB}:7"]) as box:
        box.run(f"import socket\nkept = socket.create_connection(('{WEB}', 7), 20)")
        usher = find_usher(net, before)
        status = dict(
            line.split(":\t", 1)
            for line in Path(f"/proc/{usher.pid}/status").read_text().splitlines()
            if ":\t" in line
        )
        assert {status[f"Cap{kind}"] for kind in ("Inh", "Prm", "Eff", "Amb")} == {"0" * 16}
        assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
        (user, *_) = of_users(net, usher)
        assert status["Uid"].split()[0] != str(os.stat(f"/proc/{user.pid}").st_uid)
        inside = status["NSpid"].split()[-1]
        assert reaches(box, inside) == ["nothing"]
        # Its work is the sandbox's: it is in the same groups for memory and processors.
        ours = Path(f"/proc/{usher.pid}/cgroup").read_text()
        theirs = Path(f"/proc/{user.pid}/cgroup").read_text()
        assert groups(ours) == groups(theirs)
        assert said(box, "kept.sendall(b'abc'); print(kept.recv(3))") == ["b'abc'"]


def groups(text: str) -> set[str]:
    """Those that charge."""
    kinds = ("memory", "cpu", "pids")
    lines = [line.split(":", 2) for line in text.splitlines()]
    return {path for _, names, path in lines if not names or set(names.split(",")) & set(kinds)}


def reaches(box: Box, pid: str) -> list[str]:
    """What user code can do to a process of this number; all other numbers, too."""
    return said(
        box,
        f"""
import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True)
mine = {{os.getpid(), os.getppid()}}
found = []
for pid in {{2, 3, 4, 5, 6, 7, 8, {pid}}} - mine:
    if os.path.exists(f"/proc/{{pid}}"):
        comm = open(f"/proc/{{pid}}/comm").read().strip()
        if comm.startswith("cloche"):
            found.append(comm)
            continue
    if pid != {pid}:
        continue
    if libc.ptrace(16, pid, 0, 0) == 0:
        found.append("ptrace")
    for name in ("fd", "mem", "maps", "root"):
        try:
            path = f"/proc/{{pid}}/{{name}}"
            os.listdir(path) if name == "fd" else open(path)
            found.append(name)
        except OSError:
            pass
    try:
        other = os.pidfd_open(pid)
        if libc.syscall(438, other, 0, 0) >= 0:
            found.append("pidfd_getfd")
    except OSError:
        pass
    try:
        os.kill(pid, signal.SIGKILL)
        found.append("kill")
    except OSError:
        pass
print(found or "nothing")
""",
    )


@pytest.mark.once  # a sanitized gate has no filter
def test_the_gate_has_no_privilege(net: NetworkService) -> None:
    (gate,) = [p for p in descendants(net.process.pid) if p.role == "cloche-gate"]
    status = Path(f"/proc/{gate.pid}/status").read_text()
    for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb"):
        assert f"Cap{kind}:\t{'0' * 16}\n" in status, status
    assert "NoNewPrivs:\t1\n" in status and "Seccomp:\t2\n" in status
    assert "Uid:\t0" not in status

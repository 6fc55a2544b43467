"""How much of the network a sandbox may use: connections, new ones, questions, bytes."""

from __future__ import annotations

import errno
import os
from typing import Any

from host import descendants
from live_network import NetworkService, attempt, denied, said, until
from world import SILENT, WEB

OPEN = """
import collections, errno, socket
def many(address, port, n, kept=[]):
    found = collections.Counter()
    for _ in range(n):
        sock = socket.socket()
        sock.settimeout(10)
        result = sock.connect_ex((address, port))
        found[errno.errorcode.get(result, "ok")] += 1
        if result == 0:
            kept.append(sock)
    return dict(found)
"""


def test_connections(net: NetworkService) -> None:
    with net.box({"allow": [f"{WEB}:7"], "connections": 5}) as box:
        box.run(OPEN)
        assert said(box, f"print(many('{WEB}', 7, 8))") == ["{'ok': 5, 'EADDRNOTAVAIL': 3}"]
        box.run("many.__defaults__[0].pop().close()")
        assert until(lambda: attempt(box, WEB, 7) == "connected")


def test_who_does_not_wait_hears_that_it_is_one_too_many(net: NetworkService) -> None:
    """EAGAIN is for asyncio a connect that goes on, and then one that succeeded."""
    with net.box({"allow": [f"{WEB}:7"], "connections": 5}) as box:
        code = f"""
import asyncio
many = [asyncio.open_connection("{WEB}", 7) for _ in range(8)]
found = await asyncio.gather(*many, return_exceptions=True)
print([one.errno for one in found if isinstance(one, OSError)])
"""
        assert said(box, code) == [str([errno.EADDRNOTAVAIL] * 3)]


def test_new_ones(net: NetworkService) -> None:
    """A burst, and then so many a second; the refusal says what it is about."""
    with net.box({"allow": [f"{WEB}:7"]}) as box:
        box.run(OPEN)
        result = box.run(f"print(many('{WEB}', 7, 160))", timeout_ms=60000)
        found = eval(result["stdout"])
        assert found["ok"] >= 100 and found["EACCES"] > 0 and set(found) == {"ok", "EACCES"}
        assert {told["rule"] for told in denied(result)} == {"network:limit"}
        assert until(lambda: attempt(box, WEB, 7) == "connected")


def test_pending_ones(net: NetworkService) -> None:
    """All that may be new at once, and more."""
    with net.box({"allow": [SILENT]}) as box:
        code = f"""
import collections, errno, socket, time
found, kept = collections.Counter(), []
while found["EADDRNOTAVAIL"] < 3:
    sock = socket.socket()
    sock.setblocking(False)
    how = errno.errorcode[sock.connect_ex(("{SILENT}", 80))]
    found[how] += 1
    kept.append(sock)
    if how == "EACCES":  # too many for now
        time.sleep(0.1)
print(found["EINPROGRESS"], sorted(found))
for sock in kept:
    sock.close()
"""
        assert said(box, code) == ["128 ['EACCES', 'EADDRNOTAVAIL', 'EINPROGRESS']"]


def test_bytes(net: NetworkService) -> None:
    """What is over the bound ends, and the receipt says why."""
    with net.box({"allow": [f"{WEB}:7", f"{WEB}:19"], "bytes": 1 << 20}) as box:
        code = f"""
import errno, socket
sock = socket.create_connection(("{WEB}", 19), 10)
got = 0
try:
    while data := sock.recv(65536):
        got += len(data)
    print("ended")
except OSError as error:
    print(errno.errorcode[error.errno])
print(got >= 1 << 19, got < 1 << 23)
"""
        result = box.run(code, timeout_ms=60000)
        assert result["stdout"].splitlines()[1] == "True True", result
        assert result["limit_hit"] == "network", result
        assert attempt(box, WEB, 7) == "EACCES"


def test_receipts(net: NetworkService) -> None:
    with net.box({"allow": [f"{WEB}:7", "203.0.113.0/24"]}) as box:
        code = f"""
import socket
for _ in range(3):
    with socket.create_connection(("{WEB}", 7), 10) as sock:
        sock.sendall(b"x" * 1000)
        sock.recv(1000, socket.MSG_WAITALL)
try:
    socket.create_connection(("{WEB}", 9), 10)
except OSError:
    pass
"""
        rows = {row["rule"]: row for row in box.run(code)["usage"]["network"]}
        row = rows[f"{WEB}:7"]
        assert row["connections"] == 3 and row["bytes_out"] == row["bytes_in"] == 3000, rows
        assert sum(one["refused"] for one in rows.values()) == 1
        assert box.run("pass")["usage"]["network"] == []  # of this execution


def test_descriptors_come_back(net: NetworkService) -> None:
    """Of gate and usher, after connections of every end."""

    def held() -> list[tuple[str, int, int]]:
        names = ("cloche-gate", "cloche-usher")
        found = [p for p in descendants(net.process.pid) if p.comm in names]
        return [(p.comm, p.pid, len(os.listdir(f"/proc/{p.pid}/fd"))) for p in found]

    with net.box({"allow": [f"{WEB}"]}) as box:
        assert attempt(box, WEB, 7) == "connected"
        assert until(lambda: len(held()) == 2)
        before = held()
        code = f"""
import socket, struct
for port in (7, 13, 25, 26, 28, 29, 4444) * 8:
    sock = socket.socket()
    sock.settimeout(10)
    try:
        sock.connect(("{WEB}", port))
        sock.sendall(b"x")
        if port % 2:
            sock.setsockopt(1, 13, struct.pack("ii", 1, 0))
    except OSError:
        pass
    sock.close()
"""
        box.run(code, timeout_ms=60000)
        # `before` may have the end of the first connection in it.
        assert until(lambda: [n[:2] for n in held()] == [n[:2] for n in before])
        assert until(lambda: all(now <= then for now, then in zip(held(), before))), held()


def test_memory_of_those_who_do_not_read(net: NetworkService) -> None:
    """Connections that are full both ways: the outside ones have small buffers."""
    box: Any
    with net.box({"allow": [f"{WEB}:19", f"{WEB}:27"]}) as box:
        code = f"""
import socket
kept, sent = [], 0
for port in (19, 27) * 20:
    sock = socket.create_connection(("{WEB}", port), 10)
    sock.setblocking(False)
    kept.append(sock)
    try:
        while port == 27:
            sent += sock.send(bytes(65536))
    except BlockingIOError:
        pass
print(sent < 40 * 16 << 20)
"""
        assert said(box, code, timeout_ms=60000) == ["True"]
        assert attempt(box, "127.0.0.1", 1) == "ECONNREFUSED"

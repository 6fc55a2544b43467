"""Who uses its network namespace leaves a mark, and nobody else ever gets that namespace. The mark
comes from the filter of system calls: every way to a socket is tried here."""

from __future__ import annotations

import pytest

from harness import Engine, LiveService
from live import Client

# What a program can see of those who were there before it.
LOOK = """
import re
def table(path):
    try:
        return open(path).read()
    except FileNotFoundError:
        return ""
lo = [line.split()[1:] for line in table("/proc/net/dev").splitlines() if "lo:" in line]
names, values = [line.split() for line in table("/proc/net/snmp").splitlines() if "Tcp:" in line]
tcp = dict(zip(names, values))
udp = [line for line in table("/proc/net/snmp").splitlines() if line.startswith("Udp:")]
print(set(*lo) == {"0"}, tcp["ActiveOpens"], tcp["AttemptFails"], udp[1].split()[1:5])
"""
FRESH = "True 0 0 ['0', '0', '0', '0']\n"

TALK = """
import socket
def talk(server):
    client = socket.create_connection(server.getsockname()[:2])
    peer, _ = server.accept()
    client.sendall(b"x")
    print(peer.recv(1).decode())
"""
USES = {
    "TCP": TALK + "talk(socket.create_server(('127.0.0.1', 0)))",
    "TCP over IPv6": TALK + "talk(socket.create_server(('::1', 0), family=socket.AF_INET6))",
    "UDP": (
        "import socket\na, b = (socket.socket(type=socket.SOCK_DGRAM) for _ in 'ab')\n"
        "a.bind(('127.0.0.1', 0))\nb.sendto(b'x', a.getsockname())\nprint(a.recv(1).decode())"
    ),
    "in a child": (
        "import subprocess, sys\n"
        f"subprocess.run([sys.executable, '-c', '''{TALK}"
        "talk(socket.create_server(('127.0.0.1', 0)))'''])"
    ),
    "in a thread": (
        TALK + "import threading\n"
        "t = threading.Thread(target=talk, args=(socket.create_server(('127.0.0.1', 0)),))\n"
        "t.start()\nt.join()"
    ),
    "with bits that the kernel does not read": (
        "import ctypes, os, socket, struct\nlibc = ctypes.CDLL(None)\nHIGH = 1 << 40\n"
        "fds = [libc.syscall(41, ctypes.c_long(HIGH | 2), ctypes.c_long(HIGH | 2),\n"
        "       ctypes.c_long(HIGH | 17)) for _ in 'ab']\n"
        "a, b = (socket.socket(fileno=fd) for fd in fds)\n"
        "a.bind(('127.0.0.1', 0))\nb.sendto(b'x', a.getsockname())\nprint(a.recv(1).decode())"
    ),
}


@pytest.mark.parametrize("code", USES.values(), ids=USES)
def test_a_used_namespace_is_nobodys(engine: Engine, code: str) -> None:
    for _ in range(3):
        used = engine.run(code)
        assert (used.status, used.stdout) == ("ok", "x\n"), used.json
        for _ in range(6):  # more than are ready
            assert engine.run(LOOK).stdout == FRESH


OUTSIDE = "import socket\ntry: socket.create_connection(('192.0.2.1', 80))\nexcept OSError: pass\n"
FLOOD = (
    "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
    "for _ in range(3000):\n    assert libc.mount(None, None, None, 0, None) == -1\n"
    "    assert ctypes.get_errno() == 1\n"
)


def test_who_tried_is_told_and_only_who(engine: Engine) -> None:
    for _ in range(3):
        tried = engine.run(OUTSIDE)
        assert [d["rule"] for d in tried.json["denied"]] == ["network:none"], tried.json
        for _ in range(6):
            assert engine.run("pass").json["denied"] == []


def test_refused_calls_without_end_take_no_socket_away(engine: Engine) -> None:
    result = engine.run(FLOOD + USES["TCP"])
    assert (result.status, result.stdout) == ("ok", "x\n"), result.json
    assert [d["rule"] for d in result.json["denied"]] == ["seccomp:mount"], result.json


def test_many_at_once(engine: Engine) -> None:
    code = (
        "import os, socket, threading\n"
        "def many():\n    for _ in range(200): socket.socket().close()\n"
        "for _ in range(3):\n    if os.fork() == 0:\n        many()\n        os._exit(0)\n"
        "threads = [threading.Thread(target=many) for _ in range(8)]\n"
        "for t in threads: t.start()\nfor t in threads: t.join()\n"
        "print({os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(3)})"
    )
    result = engine.run(code)
    assert (result.status, result.stdout) == ("ok", "{0}\n"), result.json


def test_live_kernels_and_commands_leave_it_too(live_service: LiveService) -> None:
    client = Client(live_service.port)
    for _ in range(3):
        with client.box() as box:
            assert box.run(LOOK)["stdout"] == FRESH
            first = box.run(OUTSIDE)
            assert [d["rule"] for d in first["denied"]] == ["network:none"]
            assert box.run("1")["denied"] == []
            assert box.run(USES["TCP"])["stdout"] == "x\n"
        with client.box() as box:
            assert box.run(LOOK)["stdout"] == FRESH
            command = {"argv": ["python3", "-c", USES["TCP"]]}
            assert box.do("/commands", **command)["stdout"] == "x\n"

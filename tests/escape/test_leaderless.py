"""Calls of a process whose first thread has ended. The number of the process has no descriptors and
no memory any more; those of the thread that calls are meant, and nobody else's."""

from __future__ import annotations

import ctypes
import os

import pytest

from harness import Engine, LiveService
from live import Client

PIDFD_OPEN, PIDFD_THREAD = 434, os.O_EXCL


def has_thread_pidfds() -> bool:
    """Before Linux 6.9 nobody gets at the descriptors of such a process."""
    fd = ctypes.CDLL(None).syscall(PIDFD_OPEN, os.getpid(), PIDFD_THREAD)
    if fd >= 0:
        os.close(fd)
    return bool(fd >= 0)


pytestmark = pytest.mark.skipif(not has_thread_pidfds(), reason="before Linux 6.9")

# In a child: the first thread of the program itself has more to do.
LEADERLESS = """
import ctypes, fcntl, os, select, socket, struct, threading
libc = ctypes.CDLL(None, use_errno=True)
file = open('locked', 'w+')
def call():
    {call}
def live():
    while open('/proc/self/stat').read().rsplit(')', 1)[1].split()[0] != 'Z': pass
    try:
        print(call(), flush=True)
    except BaseException as e:
        print(repr(e), flush=True)
    os._exit(0)
pid = os.fork()
if pid == 0:
    threading.Thread(target=live).start()
    libc.syscall(60, 0)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""

CALLS = {
    "flock": ("return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)", "None"),
    "a lock of the process": ("return fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)", "None"),
    "a lock that is kept": (
        "fcntl.lockf(file, fcntl.LOCK_EX)\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        try:\n"
        "            fcntl.lockf(open('locked', 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
        "            os._exit(1)\n"
        "        except BlockingIOError:\n"
        "            os._exit(7)\n"
        "    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])",
        "7",
    ),
    "a question about one": (
        "asked = struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 0, 0)\n"
        "    told = fcntl.fcntl(file, fcntl.F_GETLK, asked)\n"
        "    return struct.unpack('hhqqi4x', told)[0] == fcntl.F_UNLCK",
        "True",
    ),
    "a socket": ("return socket.socket().fileno() > 2", "True"),
    "a connection": (
        "server = socket.create_server(('127.0.0.1', 0))\n"
        "    client = socket.create_connection(server.getsockname())\n"
        "    server.accept()[0].sendall(b'x')\n"
        "    return client.recv(1)",
        "b'x'",
    ),
    "the size of a buffer": (
        "made = socket.socket()\n"
        "    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)\n"
        "    return made.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) > 0",
        "True",
    ),
    "an epoll descriptor": ("return select.epoll().fileno() > 2", "True"),
    "sysinfo": (
        "told = ctypes.create_string_buffer(112)\n"
        "    return libc.sysinfo(told), struct.unpack_from('8q', told)[4] >> 20",
        "(0, {memory_mb})",
    ),
    "the name of an interface": ("return socket.if_nametoindex('lo')", "1"),
    "a file that it does not have": (
        "fcntl.flock(999, fcntl.LOCK_EX)",
        "OSError(9, 'Bad file descriptor')",
    ),
}


@pytest.mark.parametrize("what", CALLS)
def test_a_thread_without_its_leader_calls(engine: Engine, what: str) -> None:
    call, answer = CALLS[what]
    result = engine.run(LEADERLESS.replace("{call}", call), memory=128)
    expected = answer.replace("{memory_mb}", "128") + "\n0\n"
    assert (result.status, result.stdout) == ("ok", expected), result.json


def test_in_a_live_sandbox_too(live_service: LiveService) -> None:
    call, answer = CALLS["a lock of the process"]
    with Client(live_service.port).box() as box:
        result = box.run(LEADERLESS.replace("{call}", call))
        assert result["stdout"] == answer + "\n0\n", result

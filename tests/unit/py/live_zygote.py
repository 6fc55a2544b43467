"""A zygote as the tests need it: the real cell.live, forked on request, without a sandbox.

Started as `live_zygote.py SOCKET_FD [MODULE...]`. A message on the socket brings four descriptors
(the control socket, and the standard streams) and is answered with the new kernel's pid.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import signal
import socket
import struct
import sys
import time
from os import _exit
from pathlib import Path
from typing import Any, Optional

sys.path[0] = str(Path(__file__).resolve().parents[3] / "py")
for name in sys.argv[2:]:
    importlib.import_module(name)

from cell import live  # noqa: E402
from cell.tasks import CHANNEL_FD, PAIR_FDS, WAITER_FD  # noqa: E402


class Control:
    """receive() and send() of the zygote module, over a stream: four bytes of length, then JSON."""

    def __init__(self, fd: int) -> None:
        self._socket = socket.socket(fileno=fd)

    def _exactly(self, n: int) -> bytes:
        text = b""
        while len(text) < n:
            part = self._socket.recv(min(n - len(text), 1 << 20))
            if not part:
                return b""
            text += part
        return text

    def receive(self, wait: Optional[bool]) -> Optional[bytes]:
        """An interrupt may end the wait."""
        both = [self._socket, WAITER_FD] if wait is None else [self._socket]
        if self._socket not in select.select(both, [], [], 0 if wait is False else None)[0]:
            return b""
        try:
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # all of it or nothing
            head = self._exactly(4)
            return self._exactly(*struct.unpack("!I", head)) if head else None
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

    def send(self, text: bytes) -> None:
        try:
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            self._socket.sendall(struct.pack("!I", len(text)) + text)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def open_loop() -> None:
    """That of the zygote module."""
    ends: list[Any] = [*socket.socketpair(), select.epoll()]
    for fd, end in zip((*PAIR_FDS, WAITER_FD), ends):
        os.set_blocking(end.fileno(), False)
        os.dup2(end.fileno(), fd, False)
        end.close()
    select.epoll.fromfd(os.dup(WAITER_FD)).register(PAIR_FDS[0], select.EPOLLIN)


def kernel(fds: list[int]) -> None:
    for to, fd in enumerate(fds[1:]):
        os.dup2(fd, to)
        os.close(fd)
    os.dup2(fds[0], CHANNEL_FD)
    os.close(fds[0])
    control = Control(CHANNEL_FD)
    open_loop()
    live.main(control.receive, control.send)
    _exit(0)


def state() -> bytes:
    """What a zygote must not have: threads, descriptors of its own."""
    for _ in range(2000):  # as cloche_zygote does: one that has built a font cache is ending
        threads = len(os.listdir("/proc/self/task"))
        if threads == 1:
            break
        time.sleep(0.001)
    links = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
    files = [os.readlink(link) for link in links if os.path.lexists(link)]
    return json.dumps({"threads": threads, "files": files}).encode()


def main() -> None:
    os.chdir(os.environ["HOME"])
    live.prepare(open_loop)
    chan = socket.socket(fileno=int(sys.argv[1]))
    chan.send(state())
    while True:
        text, fds, _, _ = socket.recv_fds(chan, 100, 4)
        if not text:
            _exit(0)
        pid = os.fork()
        if pid == 0:
            chan.close()
            try:
                kernel(fds)
            finally:
                _exit(1)
        for fd in fds:
            os.close(fd)
        chan.send(str(pid).encode())
        status = os.waitpid(pid, 0)[1]
        chan.send(str(os.waitstatus_to_exitcode(status)).encode())


main()

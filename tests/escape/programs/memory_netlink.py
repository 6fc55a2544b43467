"""The kernel answers a question over netlink by repeating it, and nobody is charged for an answer that
is not read: what all sockets of a sandbox can hold of them is bounded, and libc's own use works.

#! memory_mb=32 open_files=4096 pids=16
#= sockets: bounded
#= a bigger buffer: as before
#= held: bounded
#= interfaces: lo
#? status=ok
"""

import socket
import struct

from attempt import says

SIZES = (120_000, 30_000, 12_000, 2_000)


def question(size):
    return struct.pack("=IHHII", size, 0xFFF, 5, 0, 0) + bytes(size - 16)


def fill(sock):
    sock.setblocking(False)
    for size in SIZES:
        for _ in range(40):
            try:
                sock.send(question(size))
            except OSError:
                break


def drain(sock):
    total = 0
    while True:
        try:
            total += len(sock.recv(1 << 18))
        except BlockingIOError:
            return total
        except OSError:  # that something was lost is told first
            pass


sockets = []
try:
    while len(sockets) < 2000:
        sockets.append(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0))
except OSError:
    pass
says("sockets", "bounded" if len(sockets) < 1000 else len(sockets))
before = sockets[0].getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
for sock in sockets:
    for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
        sock.setsockopt(socket.SOL_SOCKET, option, 4 << 20)
    fill(sock)
after = sockets[0].getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
says("a bigger buffer", "as before" if before == after else after)
held = sum(drain(sock) for sock in sockets)
says("held", "bounded" if held < 32 << 20 else f"{held >> 20} MB")
for sock in sockets:
    sock.close()
says("interfaces", *(name for _, name in socket.if_nameindex()))

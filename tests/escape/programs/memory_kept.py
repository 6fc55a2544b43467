"""Memory that outlives its processes: memfds in descriptors in flight, in a cycle of sockets; SysV
segments; files without a name. The group must come out empty.

#! memory_mb=128 disk_mb=32
#= kept: all
#? status=ok
"""

import array
import os
import socket

from attempt import call, libc, says

import ctypes


def pass_on(sock, *fds):
    sock.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])


def filled():
    fd = os.memfd_create("kept")
    os.write(fd, bytes(4 << 20))
    return fd


one, two = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
three, four = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
for _ in range(4):
    pass_on(one, filled(), one.fileno(), two.fileno(), three.fileno())
    pass_on(three, filled(), four.fileno(), one.fileno())
segment = call("shmget", 0, 8 << 20, 0o1600)
libc.shmat.restype = ctypes.c_void_p
ctypes.memset(libc.shmat(segment, None, 0), 1, 8 << 20)
nameless = os.open("/tmp", os.O_TMPFILE | os.O_RDWR, 0o600)
os.write(nameless, bytes(8 << 20))
pass_on(one, nameless)
says("kept", "all")

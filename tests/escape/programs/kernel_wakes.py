"""Things that cost the host what nobody pays for: descriptors that wait for many others, priorities
with which a lock of the host's is kept, pages of files in sockets, tables of the kernel's.

#= as many epoll descriptors as one may have: 64
#= and as many again when they are closed: 64
#= in children too: 64
#= epoll_create: 64
#= an event loop: ran
#= nice: as before
#= idle: 0
#= scheduler attributes: refused EPERM
#= splice: refused EINVAL
#= sendfile: refused EINVAL
#= a copied file: 300000
#= a file through a socket: 300000
#= a table of futexes: refused EINVAL
#= a prctl of the future: refused EINVAL
#= a hint on a shared file: refused EINVAL
#= ethtool: refused ENOTSUP
#= interfaces: lo 127.0.0.1
#= the address of lo: 127.0.0.1
#= the address of eth0: refused ENODEV
#= if_nameindex: [(1, 'lo')]
#= a lock on the host's time namespace: refused ENOLCK
"""

import asyncio
import ctypes
import fcntl
import os
import select
import shutil
import socket
import struct
import threading

from attempt import attempt, call

libc = ctypes.CDLL(None, use_errno=True)


def fill(make) -> int:  # type: ignore[no-untyped-def]
    held = []
    try:
        while len(held) < 200:
            held.append(make())
    except OSError:
        pass
    for one in held:
        one.close() if hasattr(one, "close") else os.close(one)
    return len(held)


print("as many epoll descriptors as one may have:", fill(select.epoll))
print("and as many again when they are closed:", fill(select.epoll))
held = [select.epoll() for _ in range(20)]
to, fro = os.pipe()
if os.fork() == 0:
    os.write(fro, str(fill(select.epoll) + 20).encode())
    os._exit(0)
os.wait()
print("in children too:", os.read(to, 10).decode())
held.clear()


def old_style() -> int:
    fd = libc.epoll_create(1)
    if fd < 0:
        raise OSError(ctypes.get_errno())
    return fd


print("epoll_create:", fill(old_style))


async def nothing() -> None:
    await asyncio.sleep(0)
    print("an event loop: ran")


asyncio.run(nothing())

before = os.getpriority(os.PRIO_PROCESS, 0)
os.nice(5)
print("nice:", "as before" if os.getpriority(os.PRIO_PROCESS, 0) == before else "CHANGED")
os.sched_setscheduler(0, os.SCHED_IDLE | os.SCHED_RESET_ON_FORK, os.sched_param(0))
print("idle:", os.sched_getscheduler(0))
attributes = struct.pack("=IIQiI3Q", 48, 0, 0, 0, 0, 10**8, 0, 0)
attempt("scheduler attributes", call, "sched_setattr", 0, attributes, 0)

with open("big", "wb") as file:
    file.write(b"x" * 300_000)
source = os.open("big", os.O_RDONLY)
ours, theirs = socket.socketpair()
attempt("splice", os.splice if hasattr(os, "splice") else libc.splice, source, fro, 1)
attempt("sendfile", os.sendfile, ours.fileno(), source, 0, 1)
shutil.copyfile("big", "copy")
print("a copied file:", os.stat("copy").st_size)
got: list[int] = []


def receive() -> None:
    n = 0
    while piece := theirs.recv(65536):
        n += len(piece)
    got.append(n)


reader = threading.Thread(target=receive)
reader.start()
with open("big", "rb") as file:
    ours.sendfile(file)
ours.close()
reader.join()
print("a file through a socket:", got[0])

attempt("a table of futexes", call, "prctl", 78, 1, 1 << 10, 0, 0)
attempt("a prctl of the future", call, "prctl", 90, 1, 0, 0, 0)
shared = os.open("/etc/passwd", os.O_RDONLY)
attempt("a hint on a shared file", fcntl.fcntl, shared, 1036, struct.pack("Q", 3))

plain = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
wanted = ctypes.create_string_buffer(struct.pack("16sQ", b"lo", 0) + bytes(16))
attempt("ethtool", fcntl.ioctl, plain, 0x8946, wanted)
room = ctypes.create_string_buffer(400)
listed = fcntl.ioctl(plain, 0x8912, struct.pack("iQ", 400, ctypes.addressof(room)))
assert struct.unpack("iQ", listed)[0] == 40
print("interfaces:", room.raw[:2].decode(), socket.inet_ntoa(room.raw[20:24]))
answer = fcntl.ioctl(plain, 0x8915, struct.pack("16s24x", b"lo"))
print("the address of lo:", socket.inet_ntoa(answer[20:24]))
attempt("the address of eth0", fcntl.ioctl, plain, 0x8915, struct.pack("16s24x", b"eth0"))
print("if_nameindex:", socket.if_nameindex())

mine = os.open("/proc/self/ns/time", os.O_RDONLY)
attempt("a lock on the host's time namespace", fcntl.flock, mine, fcntl.LOCK_EX | fcntl.LOCK_NB)

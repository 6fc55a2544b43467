"""Makes as many kernel objects of one kind as it is given, says how many, and holds them until its
standard input ends. The kinds stand in KINDS; ../kernel_objects.py measures what each costs whom."""

import ctypes
import fcntl
import mmap
import os
import select
import signal
import socket
import struct
import sys
import time

MOST = 20_000_000
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
held = []


def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def until_refused(function, most=MOST):
    """Calls it with 0, 1, 2 … until it fails; how often it worked."""
    deadline = time.monotonic() + 4
    for n in range(most):
        if n % 64 == 0 and time.monotonic() > deadline:
            return n
        try:
            held.append(function(n))
        except (OSError, BlockingIOError, MemoryError, ValueError):
            return n
    return most


def each_descriptor(make):
    """`make` is called until there are no descriptors left, and returns how many it made with one."""
    total, deadline = 0, time.monotonic() + 4
    try:
        while time.monotonic() < deadline:
            total += make()
    except OSError:
        pass
    return total


def lock(fd, command, start, kind=fcntl.F_RDLCK):
    fcntl.fcntl(fd, command, struct.pack("=hhxxxxqqixxxx", kind, os.SEEK_SET, start, 1, 0))


def locks_of(path, command):
    fd = os.open(path, os.O_RDWR | os.O_CREAT if path.startswith("/tmp") else os.O_RDONLY)
    held.append(fd)
    return lambda n: lock(fd, command, 2 * n)


def netlink_echo():
    sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    held.append(sock)
    for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
        sock.setsockopt(socket.SOL_SOCKET, option, 4 << 20)
    sock.setblocking(False)
    for size in (120_000, 3000):
        message = struct.pack("=IHHII", size, 0xFFF, 5, 0, 0) + bytes(size - 16)
        for _ in range(100):
            try:
                sock.send(message)
            except OSError:
                break
    return 1


def error_queue(family, level, option, address):
    def make():
        sock = socket.socket(family, socket.SOCK_DGRAM)
        held.append(sock)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        sock.setsockopt(level, option, 1)
        made = 0
        for _ in range(3000):
            try:
                made += sock.sendto(bytes(1000), (address, 9)) > 0
            except OSError:
                pass
        return made

    return make


def datagrams():
    one, two = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    held.extend((one, two))
    one.setblocking(False)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
    return until_refused(lambda n: one.send(bytes(60_000)), 1000)


def udp():
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    held.append(one)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    one.bind(("127.0.0.1", 0))
    return until_refused(lambda n: one.sendto(bytes(60_000), one.getsockname()), 100)


def timestamps():
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    held.append(one)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    one.bind(("127.0.0.1", 0))
    stamp = [(socket.SOL_SOCKET, 37, struct.pack("=I", 2))]  # SO_TIMESTAMPING of this message
    return until_refused(lambda n: one.sendmsg([bytes(30_000)], stamp, 0, one.getsockname()), 200)


def groups4():
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    held.append(one)

    def join(n):
        group = socket.inet_aton(f"239.{os.getpid() % 250}.{one.fileno() % 250}.{n}")
        one.setsockopt(
            socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group + socket.inet_aton("127.0.0.1")
        )

    return until_refused(join, 250)


def groups6():
    one = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    held.append(one)
    lo = socket.if_nametoindex("lo")

    def join(n):
        group = struct.pack("!HIIIH", 0xFF05, os.getpid(), one.fileno(), n, 1)
        one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, group + struct.pack("=i", lo))

    return until_refused(join, 3000)


def in_flight():
    one, two = socket.socketpair()
    held.extend((one, two))
    one.setblocking(False)
    null = os.open("/dev/null", os.O_RDONLY)
    held.append(null)
    made = until_refused(lambda n: socket.send_fds(one, [b"x"], [null] * 250), 1000)
    return made * 250


def pipe():
    ends = os.pipe()
    held.extend(ends)
    os.set_blocking(ends[1], False)
    os.write(ends[1], bytes(65536))
    return 1


def queue(n):
    return checked(libc.msgget(0, 0o1600))


def message(ident):
    text = struct.pack("=q", 1) + bytes(8000)
    return lambda n: checked(libc.msgsnd(ident, text, len(text) - 8, 0o4000))


def timer(n):
    ident, event = ctypes.c_int(), struct.pack("=QiiQ40x", 0, signal.SIGRTMIN, 1, 0)
    return checked(libc.syscall(ctypes.c_long(222), 1, event, ctypes.byref(ident)))


def semaphores(n):
    return checked(libc.semget(0, 250, 0o1600))


def segment(n):
    return checked(libc.shmget(0, 4096, 0o1600))


def mqueue(n):
    attributes = struct.pack("=8q", 0, 10, 8192, 0, 0, 0, 0, 0)
    name = f"q{os.getpid()}.{n}".encode()
    return checked(
        libc.syscall(ctypes.c_long(240), name, os.O_CREAT | os.O_RDWR, 0o600, attributes)
    )


def negative(n):
    try:
        os.stat(f"/usr/{os.getpid()}.{n}")
    except FileNotFoundError:
        return None


def watched(epoll, fd):
    return lambda n: epoll.register(os.dup(fd))


def mapping(n):
    return mmap.mmap(-1, 4096, prot=mmap.PROT_READ if n % 2 else mmap.PROT_READ | mmap.PROT_WRITE)


def tables(n):
    area = mmap.mmap(
        -1,
        1 << 30,
        mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000,
        mmap.PROT_READ | mmap.PROT_WRITE,
    )
    for at in range(0, 1 << 30, 2 << 20):
        area[at]
    return area


def listener():
    sock = socket.socket()
    held.append(sock)
    sock.bind(("127.0.0.1", 0))
    sock.listen(4096)
    return 1


def watch_epoll():
    epoll, fd = select.epoll(), os.eventfd(0)
    held.append(epoll)
    return until_refused(watched(epoll, fd))


def record(n):
    fd = os.open(f"/tmp/f{os.getpid()}.{n}", os.O_CREAT | os.O_RDWR)
    os.close(fd)


def attribute(n):
    os.setxattr("/tmp", f"user.{n}", bytes(60_000))


def acl(n):
    entries = [(1, 6, -1), *[(2, 6, 1000)] * 8000, (4, 4, -1), (16, 6, -1), (32, 4, -1)]
    text = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
    os.mkdir(f"/tmp/{os.getpid()}.{n}")
    os.setxattr(f"/tmp/{os.getpid()}.{n}", "system.posix_acl_default", text)


KINDS = {
    "nothing": lambda: 0,
    "netlink sockets, echoes unread": lambda: each_descriptor(netlink_echo),
    "POSIX locks, own file": lambda: until_refused(locks_of("/tmp/l", fcntl.F_SETLK)),
    "POSIX locks, file of /usr": lambda: until_refused(locks_of("/usr/bin/env", fcntl.F_SETLK)),
    "OFD locks, own file": lambda: until_refused(locks_of("/tmp/l", 37)),
    "OFD locks, /dev/null": lambda: until_refused(locks_of("/dev/null", 37)),
    "UDP error queue, IPv4": lambda: each_descriptor(error_queue(2, 0, 11, "127.0.0.1")),
    "UDP error queue, IPv6": lambda: each_descriptor(error_queue(10, 41, 25, "::1")),
    "time stamps of sent datagrams": lambda: each_descriptor(timestamps),
    "multicast groups, IPv4": lambda: each_descriptor(groups4),
    "multicast groups, IPv6": lambda: each_descriptor(groups6),
    "UNIX datagrams unread": lambda: each_descriptor(datagrams),
    "UDP datagrams unread": lambda: each_descriptor(udp),
    "TCP listeners": lambda: each_descriptor(listener),
    "descriptors in flight": lambda: each_descriptor(in_flight),
    "pipes, full": lambda: each_descriptor(pipe),
    "System V queues": lambda: until_refused(queue),
    "System V messages": lambda: sum(until_refused(message(queue(0)), 10) for _ in range(2000)),
    "System V semaphores": lambda: until_refused(semaphores) * 250,
    "System V segments": lambda: until_refused(segment),
    "POSIX message queues": lambda: until_refused(mqueue),
    "POSIX timers": lambda: until_refused(timer),
    "names that are not there, /usr": lambda: until_refused(negative),
    "epoll watches": watch_epoll,
    "eventfds": lambda: until_refused(lambda n: os.eventfd(0)),
    "mappings": lambda: until_refused(mapping, 60_000),
    "page tables": lambda: until_refused(tables, 200),
    "empty files": lambda: until_refused(record),
    "extended attributes": lambda: until_refused(attribute),
    "ACLs": lambda: until_refused(acl),
}


def main():
    print(KINDS[sys.argv[1]](), flush=True)
    sys.stdin.read()
    os._exit(0)


main()

"""Every way to make a socket that was allowed somewhere lead somewhere else. Arguments: an address
that is allowed, one that is silent and allowed, one that is forbidden. Whatever succeeds here ends
inside; that no packet got out is the test's to see.
"""

import ctypes
import errno
import fcntl
import select
import socket
import struct
import sys

ALLOWED, SILENT, FORBIDDEN = sys.argv[1:4]
MSG_FASTOPEN = 0x20000000
NETNS_COOKIE = 71
libc = ctypes.CDLL(None, use_errno=True)


def in4(address, port):
    return struct.pack("=H", 2) + struct.pack("!H", port) + socket.inet_aton(address) + bytes(8)


def raw(call, sock, data, *more):
    return "ok" if call(sock.fileno(), data, *more) >= 0 else errno.errorcode[ctypes.get_errno()]


def connect(sock, address=FORBIDDEN, port=80):
    return raw(libc.connect, sock, in4(address, port), 16)


def established():
    sock = socket.socket()
    sock.connect((ALLOWED, 7))
    return sock


def pending():
    sock = socket.socket()
    sock.setblocking(False)
    assert sock.connect_ex((SILENT, 80)) == errno.EINPROGRESS
    return sock


def named(number):
    return "EOPNOTSUPP" if number == errno.EOPNOTSUPP else errno.errorcode.get(number, "timeout")


def talks(sock):
    """Whether somebody is there who answers."""
    try:
        sock.settimeout(0.3)
        sock.send(b"HEAD / HTTP/1.0\r\n\r\n")
        return bool(sock.recv(1))
    except OSError:
        return False


def listens(sock):
    try:
        sock.bind(("", 31337))
        sock.listen(5)
        return "listens inside"
    except OSError as error:
        return errno.errorcode[error.errno]


def fast_open(sock, how):
    sock.setblocking(True)
    sock.settimeout(0.3)
    try:
        if how == "sendto":
            sock.sendto(b"x", MSG_FASTOPEN, (FORBIDDEN, 80))
        elif how == "sendmsg":
            sock.sendmsg([b"x"], [], MSG_FASTOPEN, (FORBIDDEN, 80))
        else:
            name = ctypes.create_string_buffer(in4(FORBIDDEN, 80), 16)
            body = ctypes.create_string_buffer(b"x", 1)
            iovec = struct.pack("QQ", ctypes.addressof(body), 1)
            kept = ctypes.create_string_buffer(iovec, 16)
            message = struct.pack(
                "QIxxxxQQQQixxxxIxxxx",
                ctypes.addressof(name),
                16,
                ctypes.addressof(kept),
                1,
                0,
                0,
                0,
                0,
            )
            if libc.sendmmsg(sock.fileno(), message, 1, MSG_FASTOPEN) < 0:
                return named(ctypes.get_errno())
        return "ok"
    except OSError as error:
        return named(error.errno)


def says(name, value):
    print(f"{name}: {value}", flush=True)


sock = established()
says("unspec on established", raw(libc.connect, sock, bytes(16), 16))
says("  then forbidden", connect(sock))
says("  then listen", listens(sock))
sock.close()

sock = established()
says("forbidden on established", connect(sock))
sock.close()

for what in ("listen", "connect", "sendto", "sendmsg", "sendmmsg"):
    sock = pending()
    sock.shutdown(socket.SHUT_RDWR)
    if what == "listen":
        says("shut while pending, listen", listens(sock))
    elif what == "connect":
        says("shut while pending, forbidden", connect(sock))
    else:
        says(f"shut while pending, {what}", fast_open(sock, what))
    says("  somebody there", talks(sock))
    sock.close()

sock = pending()
says("listen while pending", listens(sock))
sock.close()

sock = established()
sock.shutdown(socket.SHUT_WR)
while sock.recv(100):
    pass
says("closed by both, forbidden", connect(sock))
sock.close()

for how in ("sendto", "sendmsg", "sendmmsg"):
    sock = socket.socket()
    says(f"fast open by {how}", fast_open(sock, how))
    says("  somebody there", talks(sock))

# Odd ways to write the address.
four = socket.inet_aton(FORBIDDEN)
for name, packed in {
    "mapped": b"\0" * 10 + b"\xff\xff" + four,
    "compatible": bytes(12) + four,
    "nat64": bytes.fromhex("0064ff9b0000000000000000") + four,
    "nat64 local": bytes.fromhex("0064ff9b0001000000000000") + four,
    "6to4": b"\x20\x02" + four + bytes(10),
    "teredo": b"\x20\x01\0\0" + bytes(8) + bytes(b ^ 255 for b in four),
    "isatap": bytes.fromhex("fe80000000000000" "00005efe") + four,
}.items():
    for scope in (0, 1, 2):
        sock = socket.socket(socket.AF_INET6)
        data = struct.pack("=H", 10) + struct.pack("!HI", 80, 0) + packed + struct.pack("=I", scope)
        got = raw(libc.connect, sock, data, 28)
        if got == "ok" or scope == 0:
            says(f"{name}, scope {scope}", got)

# What shows of the outside, and what options lead to.
sock = established()
mine = socket.socket()
size = struct.calcsize("Q")
says(
    "of our namespace",
    sock.getsockopt(1, NETNS_COOKIE, size) == mine.getsockopt(1, NETNS_COOKIE, size),
)
says("our name", sock.getsockname()[0])
names = []
for index in range(1, 64):
    try:
        names.append(
            fcntl.ioctl(sock, 0x8910, struct.pack("16si20x", b"", index))[:16]
            .rstrip(b"\0")
            .decode()
        )
    except OSError:
        pass
says("interfaces", ",".join(names))
for name, level, option, value in (
    ("SO_MARK", 1, 36, 1),
    ("SO_BINDTODEVICE", 1, 25, b"out\0"),
    ("SO_BINDTOIFINDEX", 1, 62, 2),
    ("IP_TRANSPARENT", 0, 19, 1),
    ("IP_OPTIONS source route", 0, 4, b"\x83\x07\x04" + four + b"\0"),
    ("TCP_REPAIR", 6, 19, 1),
    ("SO_RCVBUFFORCE", 1, 33, 1 << 26),
):
    try:
        mine.setsockopt(level, option, value)
        says(name, "ok")
    except OSError as error:
        says(name, errno.errorcode[error.errno])

for kind, protocol, name in (
    (3, 6, "raw"),
    (2, 1, "ping"),
    (1, 262, "mptcp"),
    (1, 132, "sctp"),
    (2, 136, "udplite"),
):
    try:
        socket.socket(socket.AF_INET, kind, protocol).connect((FORBIDDEN, 80))
        says(name, "ok")
    except OSError as error:
        says(name, errno.errorcode[error.errno])
try:
    socket.socket(17, 3, 0)
    says("packet", "ok")
except OSError as error:
    says("packet", errno.errorcode[error.errno])

sock = established()
sock.sendall(b"end")
says("afterwards", sock.recv(3, socket.MSG_WAITALL).decode())

"""What the rows of semantics.py are made of."""

import ctypes
import errno
import select
import socket
import struct
import time

WEB, WEB6 = "198.51.100.2", "2001:db8:1::2"
SILENT = "203.0.113.7"
UNREACHABLE, UNREACHABLE6 = "203.0.113.200", "2001:db8:beef::1"
NOBODY = "198.51.100.77"
ECHO, DISCARD, SOME, RESET, COUNT, MUTE, URGENT, ENDED, FULL, CLOSED = (
    7,
    9,
    13,
    25,
    26,
    27,
    28,
    29,
    81,
    4444,
)
LIBC = ctypes.CDLL(None, use_errno=True)
RESET_AT_CLOSE = struct.pack("ii", 1, 0)
WAIT = 20.0

rows = []


def row(function):
    rows.append((function, 4))
    return function


def costly(cost):
    def add(function):
        rows.append((function, cost))
        return function

    return add


def name(number):
    if number == errno.EOPNOTSUPP:
        return "EOPNOTSUPP"  # also known as ENOTSUP
    return "ok" if number == 0 else errno.errorcode.get(number, str(number))


def tcp(family=socket.AF_INET, timeout=WAIT):
    sock = socket.socket(family)
    sock.settimeout(timeout)
    return sock


def connected(port=ECHO, address=WEB, timeout=WAIT):
    return socket.create_connection((address, port), timeout)


def begun(port=ECHO, address=SILENT, family=socket.AF_INET):
    """A connect that does not wait."""
    sock = socket.socket(family)
    sock.setblocking(False)
    return sock, sock.connect_ex((address, port))


def echoes(sock, data=b"abc"):
    sock.settimeout(WAIT)
    sock.sendall(data)
    return "echo" if sock.recv(len(data), socket.MSG_WAITALL) == data else "no echo"


def masks(events):
    names = {1: "IN", 2: "PRI", 4: "OUT", 8: "ERR", 16: "HUP", 0x2000: "RDHUP"}
    return "+".join(text for bit, text in names.items() if events & bit) or "nothing"


def polled(sock, wait_s=WAIT, events=select.POLLIN | select.POLLOUT | 0x2000):
    poll = select.poll()
    poll.register(sock, events)
    found = poll.poll(wait_s * 1000)
    return masks(found[0][1]) if found else "nothing"


def pending_error(sock):
    return name(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))


def raw_connect(sock, data, length=None):
    done = LIBC.connect(sock.fileno(), data, len(data) if length is None else length)
    return "ok" if done == 0 else name(ctypes.get_errno())


def in4(address, port):
    return (
        struct.pack("=H", socket.AF_INET)
        + struct.pack("!H", port)
        + socket.inet_aton(address)
        + b"\0" * 8
    )


def in6(address, port, scope=0):
    packed = socket.inet_pton(socket.AF_INET6, address)
    return (
        struct.pack("=H", socket.AF_INET6)
        + struct.pack("!HI", port, 0)
        + packed
        + struct.pack("=I", scope)
    )


def took(function):
    began = time.monotonic()
    value = function()
    return value, time.monotonic() - began

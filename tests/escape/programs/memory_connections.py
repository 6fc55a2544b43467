"""Connections that nobody has accepted are charged to nobody, with what was sent through them: few
wait at each listener. Those that were accepted count among the sockets, however their other end is
used again.

#! memory_mb=64 open_files=4096 pids=16
#= waiting: few
#= accepted: refused ENFILE, few
"""

import ctypes
import errno
import socket

libc = ctypes.CDLL(None, use_errno=True)
NOWHERE = ctypes.create_string_buffer(16)  # AF_UNSPEC: the socket can be used again
data = b"x" * 60000


def listener():
    found = socket.socket()
    found.bind(("127.0.0.1", 0))
    found.listen(4096)
    return found


def cut_off(sock):
    libc.connect(sock.fileno(), NOWHERE, len(NOWHERE))


def wait_at(target, most):
    """How many connections one socket leaves there, each with something in it."""
    sock, n = socket.socket(), 0
    sock.setblocking(False)
    while n < most and sock.connect_ex(target.getsockname()) in (0, errno.EINPROGRESS):
        try:
            sock.send(data)
        except BlockingIOError:
            break
        cut_off(sock)
        n += 1
    return n


def accept_from(target, most):
    """Of one socket."""
    sock, held = socket.socket(), []
    try:
        while len(held) < most:
            sock.connect(target.getsockname())
            held.append(target.accept()[0])
            cut_off(sock)
    except OSError as error:
        return f"refused {errno.errorcode[error.errno]}, {'few' if len(held) <= 256 else len(held)}"
    return len(held)


waiting = wait_at(listener(), 500)
print("waiting:", "few" if 0 < waiting <= 20 else waiting)
print("accepted:", accept_from(listener(), 1000))

"""Rows of semantics.py: connects that wait, and calls in an odd order or with odd arguments."""

import asyncio
import ctypes
import errno
import os
import signal
import socket
import struct
import time

from semantics_base import (
    DISCARD,
    ECHO,
    LIBC,
    SILENT,
    WAIT,
    WEB,
    WEB6,
    begun,
    connected,
    costly,
    echoes,
    in4,
    in6,
    name,
    pending_error,
    polled,
    raw_connect,
    row,
    tcp,
    took,
)


# ---------------------------------------------------------------------------- waiting


@row
def silent_with_a_timeout():
    result, seconds = took(lambda: name(tcp(timeout=0.3).connect_ex((SILENT, 80))))
    return result, 0.25 < seconds < 3


@row
def silent_with_so_sndtimeo():
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 300_000))
    result, seconds = took(lambda: name(sock.connect_ex((SILENT, 80))))
    return result, 0.25 < seconds < 3


@row
def silent_and_an_alarm():
    class Alarm(Exception):
        pass

    def ring(*_):
        raise Alarm

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    began = time.monotonic()
    try:
        socket.socket().connect((SILENT, 80))
    except Alarm:
        return "interrupted", time.monotonic() - began < 3
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@row
def silent_and_a_ctrl_c():
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            socket.socket().connect((SILENT, 80))
        except KeyboardInterrupt:
            os._exit(7)
        os._exit(1)
    time.sleep(0.2)
    os.kill(child, signal.SIGINT)
    (_, status), seconds = took(lambda: os.waitpid(child, 0))
    return os.waitstatus_to_exitcode(status), seconds < 3


@row
def silent_and_a_kill():
    child = os.fork()
    if child == 0:
        socket.socket().connect((SILENT, 80))
        os._exit(1)
    time.sleep(0.2)
    os.kill(child, signal.SIGKILL)
    (_, status), seconds = took(lambda: os.waitpid(child, 0))
    return os.waitstatus_to_exitcode(status), seconds < 3


@row
def silent_and_polled():
    sock, result = begun()
    return name(result), polled(sock, 0.2), pending_error(sock)


@row
def what_a_pending_one_says():
    sock, _ = begun()
    found = [name(sock.connect_ex((SILENT, ECHO))), name(sock.connect_ex((WEB, ECHO)))]
    for call in (
        lambda: sock.recv(1),
        lambda: sock.send(b"x"),
        sock.getpeername,
        lambda: sock.listen(1),
    ):
        try:
            found.append(call())
        except OSError as error:
            found.append(name(error.errno))
    state = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
    return found, state, sock.getsockname()[1] > 1023


@row
def the_loop_stays_free():
    async def main():
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        task = asyncio.create_task(tick())
        try:
            await asyncio.wait_for(asyncio.open_connection(SILENT, 80), 0.5)
        except asyncio.TimeoutError:
            pass
        task.cancel()
        return ticks > 10

    return asyncio.run(main())


@costly(41)
def closed_while_pending():
    for _ in range(40):
        sock, _ = begun()
        sock.close()
    return echoes(connected())


@row
def shutdown_while_pending():
    sock, _ = begun()
    try:
        sock.shutdown(socket.SHUT_RDWR)
        first = "ok"
    except OSError as error:
        first = name(error.errno)
    sock.settimeout(WAIT)
    return first, name(sock.connect_ex((WEB, ECHO)))


@row
def unspec_while_pending():
    sock, _ = begun()
    sock.settimeout(WAIT)
    sock.setblocking(True)
    return raw_connect(sock, bytes(16)), raw_connect(sock, in4(WEB, ECHO)), echoes(sock)


# --------------------------------------------------------------------------- calls again, odd calls


@row
def connected_then_again():
    sock = connected()
    return name(sock.connect_ex((WEB, ECHO))), name(sock.connect_ex((WEB, DISCARD))), echoes(sock)


@row
def unspec_then_again():
    sock = socket.create_connection((WEB, ECHO))
    return raw_connect(sock, bytes(16)), raw_connect(sock, in4(WEB, ECHO)), echoes(sock)


@row
def listen_on_a_connected_one():
    try:
        connected().listen(1)
        return "ok"
    except OSError as error:
        return name(error.errno)


@costly(12)
def odd_lengths():
    found = []
    for length in (0, 1, 2, 7, 8, 15, 16, 128, 129, 2**31 - 1, -1):
        data = ctypes.create_string_buffer(in4(WEB, ECHO), 256)
        sock = socket.socket()
        found.append((length, raw_connect(sock, data, length)))
    return found


@costly(10)
def odd_lengths_v6():
    found = []
    for length in (2, 16, 23, 24, 27, 28, 128, 129):
        data = ctypes.create_string_buffer(in6(WEB6, ECHO), 256)
        found.append((length, raw_connect(socket.socket(socket.AF_INET6), data, length)))
    return found


@row
def odd_addresses():
    sock4, sock6 = socket.socket(), socket.socket(socket.AF_INET6)
    found = [raw_connect(sock6, in4(WEB, ECHO)), raw_connect(sock4, in6(WEB6, ECHO))]
    found.append(raw_connect(sock4, struct.pack("=H", 77) + bytes(14)))
    found.append(
        name(errno.EFAULT) if LIBC.connect(sock4.fileno(), ctypes.c_void_p(8), 16) else "ok"
    )
    with open("/dev/null") as file:
        found.append(raw_connect(file, in4(WEB, ECHO)))
    LIBC.connect(9999, in4(WEB, ECHO), 16)
    return found + [name(ctypes.get_errno())]

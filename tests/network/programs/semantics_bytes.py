"""Rows of semantics.py: what is sent and received, how connections end, and many at once."""

import array
import asyncio
import fcntl
import hashlib
import os
import select
import socket
import tempfile
import threading

from semantics_base import (
    COUNT,
    ECHO,
    ENDED,
    MUTE,
    RESET,
    RESET_AT_CLOSE,
    SILENT,
    SOME,
    URGENT,
    WAIT,
    WEB,
    connected,
    costly,
    echoes,
    name,
    polled,
    row,
)


# ---------------------------------------------------------------------------- bytes and ends


@row
def eight_megabytes_there_and_back():
    sock, data = connected(), os.urandom(1 << 20) * 8
    got = hashlib.sha256()

    def read():
        left = len(data)
        while left:
            piece = sock.recv(65536)
            got.update(piece)
            left -= len(piece)

    thread = threading.Thread(target=read)
    thread.start()
    sock.sendall(data)
    thread.join()
    return got.digest() == hashlib.sha256(data).digest()


@row
def many_small_writes():
    sock = connected(COUNT)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for _ in range(2000):
        sock.send(b"x")
    sock.shutdown(socket.SHUT_WR)
    return sock.recv(100)


@row
def half_closed_by_us():
    sock = connected(COUNT)
    sock.sendall(b"q" * 100_000)
    sock.shutdown(socket.SHUT_WR)
    found = [sock.recv(100), sock.recv(100)]
    try:
        sock.send(b"x")
    except OSError as error:
        found.append(name(error.errno))
    return found


@row
def half_closed_by_them():
    sock = connected(SOME)
    got = 0
    while data := sock.recv(65536):
        got += len(data)
    before = polled(sock)
    sock.sendall(b"still" * 1000)
    return got, before, sock.recv(1)


@row
def half_closed_reading_side():
    sock = connected()
    sock.shutdown(socket.SHUT_RD)
    return sock.recv(10), polled(sock)


@row
def reset_by_them():
    sock = connected(RESET)
    sock.sendall(b"x")
    try:
        first = sock.recv(10)
    except OSError as error:
        first = name(error.errno)
    events = polled(sock)
    try:
        sock.send(b"x")
        second = "ok"
    except OSError as error:
        second = name(error.errno)
    return first, events, second


@row
def closed_by_them():
    sock = connected(ENDED)
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    poll.poll(WAIT * 1000)
    return sock.recv(10)


@costly(21)
def reset_by_us():
    for _ in range(20):
        sock = connected()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
        sock.close()
    return echoes(connected())


@row
def an_urgent_byte():
    sock = connected(URGENT)
    got = b""
    while data := sock.recv(100):
        got += data
    return got


@row
def a_reader_that_does_not_read():
    sock = connected(MUTE)
    sock.setblocking(False)
    sent = 0
    try:
        while sent < 64 << 20:
            sent += sock.send(bytes(65536))
    except BlockingIOError:
        pass
    return "held up" if 0 < sent < 64 << 20 else sent


@row
def peek_waitall_fionread():
    sock = connected()
    sock.sendall(b"abcdef")
    first = sock.recv(3, socket.MSG_PEEK | socket.MSG_WAITALL)
    while True:
        size = array.array("i", [0])
        fcntl.ioctl(sock, 0x541B, size)
        if size[0] == 6:
            break
    return first, sock.recv(6, socket.MSG_WAITALL)


@row
def sendfile():
    sock = connected(COUNT)
    with tempfile.TemporaryFile() as file:
        file.write(bytes(300_000))
        file.flush()
        at = 0
        try:
            while at < 300_000:
                at += os.sendfile(sock.fileno(), file.fileno(), at, 300_000 - at)
        except OSError as error:
            return name(error.errno)
    sock.shutdown(socket.SHUT_WR)
    return sock.recv(100)


@row
def sendmsg_to_an_address_when_connected():
    sock = connected()
    try:
        sock.sendmsg([b"abc"], [], 0, (SILENT, 80))
    except OSError as error:
        return name(error.errno)
    return sock.recv(3)


# ---------------------------------------------------------------------------- many


@costly(60)
def sixty_at_once():
    async def one():
        reader, writer = await asyncio.open_connection(WEB, ECHO)
        writer.write(b"z")
        got = await reader.read(1)
        writer.close()
        return got == b"z"

    async def main():
        return sum(await asyncio.gather(*(one() for _ in range(60))))

    return asyncio.run(main())


@costly(32)
def thirty_two_threads():
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(echoes(connected()))) for _ in range(32)
    ]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    return found.count("echo")


@costly(16)
def sixteen_processes():
    children = []
    for _ in range(16):
        child = os.fork()
        if child == 0:
            try:
                os._exit(0 if echoes(connected()) == "echo" else 1)
            finally:
                os._exit(2)
        children.append(child)
    return sorted(os.waitpid(child, 0)[1] for child in children)

"""Holds as many MiB of the kernel's pages as it is told to: of each page it leaves one byte unread,
and the rest goes through another connection. Says what it holds, and goes on until it is ended.

    pages.py HOW MIB
"""

import socket
import struct
import sys
import threading
import time

PAGE = 32768
how, most = sys.argv[1], int(sys.argv[2]) * 2**20 // PAGE
rest, held, pages = bytes(PAGE - 1), [], 0


def listener(backlog=16):
    made = socket.socket()
    made.bind(("127.0.0.1", 0))
    made.listen(backlog)
    return made


def pair():
    server = listener()
    one = socket.create_connection(server.getsockname())
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return one, server.accept()[0]


def drain(through=pair()):
    through[0].sendall(rest)
    left = len(rest)
    while left:
        left -= len(through[1].recv(left))


def put(sock, flags=0, room=1000):
    """A byte of each page; a queue that overflows would be copied to fewer pages."""
    global pages
    for _ in range(room):
        try:
            if flags:
                sock.send(b"x", flags)
            sock.send(b"x", socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        pages += 1
        if pages == most:
            return
        drain()


def received():
    one, other = pair()
    held.append((one, other))
    put(one)


def reset():
    """In no list any more, and still there."""
    one, other = pair()
    put(one)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    one.close()
    held.append(other)


def posted(box=socket.socketpair()):
    """Nobody has a descriptor of it."""
    reset()
    socket.send_fds(box[0], [b"x"], [held[-1].fileno()])
    held.pop().close()


def unsent():
    """The other end takes no more."""
    one, other = pair()
    held.append((one, other))
    one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
    one.setblocking(False)
    try:
        while True:
            one.send(bytes(65536))
    except BlockingIOError:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 200000)
    put(one)


def waiting(listeners=[]):
    """Nobody accepts it."""
    if not listeners or len(held) % 16 == 0:
        listeners.append(listener())
    one = socket.create_connection(listeners[-1].getsockname())
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    put(one)
    held.append(None)


def datagrams():
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.bind(("127.0.0.1", 0))
    one.connect(one.getsockname())
    held.append(one)
    put(one, socket.MSG_MORE, room=150)


def threads():
    """A thread that ends leaves its page to who holds a byte of it."""
    global pages
    one, other = pair()
    held.append((one, other))
    for _ in range(1000):
        thread = threading.Thread(target=one.send, args=(b"x", socket.MSG_DONTWAIT))
        thread.start()
        thread.join()
    pages += 1000


while pages < most:
    globals()[how]()
print("holds", pages * PAGE >> 20, "MiB", flush=True)
time.sleep(1000)

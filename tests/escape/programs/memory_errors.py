"""What the kernel itself puts into the queue of a socket (errors of datagrams, and time stamps of what
was sent, with a copy of it) is charged to nobody: it is bounded. Sockets go on working.

#! memory_mb=32 open_files=4096 pids=16 disk_mb=16
#= sockets: bounded
#= errors: bounded
#= errors of IPv6: bounded
#= time stamps: bounded
#= time stamps of a stream: bounded
#= a datagram arrives: 1000
#? status=ok
"""

import socket
import struct

from attempt import says

STAMP = [(socket.SOL_SOCKET, 37, struct.pack("=I", 2))]  # asked for in the message itself
BOUND = 96 << 20
PAIRS = 100


def held(sockets):
    total = 0
    for sock in sockets:
        while True:
            try:
                data, _, _, _ = sock.recvmsg(
                    1 << 17, 512, socket.MSG_ERRQUEUE | socket.MSG_DONTWAIT
                )
                total += len(data) + 512
            except OSError:
                break
    return total


def judged(name, sockets):
    total = held(sockets)
    says(name, "bounded" if total < BOUND else f"{total >> 20} MB")
    for sock in sockets:
        sock.close()


def hoard():
    sockets = []
    try:
        while len(sockets) < 2000:
            sockets.append(socket.socket(socket.AF_INET6, socket.SOCK_DGRAM))
    except OSError:
        pass
    for sock in sockets:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    return sockets


def fill(sockets, address, times, size, control=()):
    for sock in sockets:
        for _ in range(times):
            try:
                sock.sendmsg([bytes(size)], control, 0, (address, 9))
            except OSError:
                pass


def errors(name, level, option, address):
    sockets = hoard()
    for sock in sockets:
        sock.setsockopt(level, option, 1)
    fill(sockets, address, 400, 1000)
    judged(name, sockets)


sockets = hoard()
says("sockets", "bounded" if len(sockets) < 1000 else len(sockets))
for sock in sockets:
    sock.close()
errors("errors", 0, 11, "::ffff:127.0.0.1")
errors("errors of IPv6", 41, 25, "::1")
sockets = hoard()
fill(sockets, "::1", 40, 30_000, STAMP)
judged("time stamps", sockets)

server = socket.socket()
server.bind(("127.0.0.1", 0))
server.listen()
streams = []
for _ in range(PAIRS):
    one = socket.create_connection(server.getsockname())
    two, _ = server.accept()
    streams += [one, two]
    for size in (1 << 14, 1 << 20):  # what is read in large pieces enlarges the buffer
        for _ in range(20):
            one.setblocking(False)
            two.setblocking(False)
            for here, there in ((one, two), (two, one)):
                try:
                    sent = here.sendmsg([bytes(size)], STAMP)
                    while sent > 0:
                        sent -= len(there.recv(1 << 20))
                except OSError:
                    pass
judged("time stamps of a stream", streams)

one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
one.bind(("127.0.0.1", 0))
one.sendto(bytes(1000), one.getsockname())
says("a datagram arrives", len(one.recv(2000)))

"""What one wake-up costs the host is paid by nobody, so how many wait for it is bounded: watches of
all epoll descriptors together, wherever these are hidden, and sockets that one datagram reaches.
Servers with many connections, which come and go, do not notice.

#! open_files=2048 pids=32 memory_mb=512
#= on one named pipe: bounded, refused ENOSPC
#= from many processes: bounded, refused ENOSPC
#= on one process: bounded, refused ENOSPC
#= again when they are gone: bounded, refused ENOSPC
#= beside what is in a message: bounded, refused ENOSPC
#= and what was in it: works
#= below a descriptor that a call waits for: bounded, refused ENOSPC
#= 900 connections at once, six times: 5400
#= event loops one after the other: 200
#= two sockets for one datagram: refused EADDRINUSE
#= by their port: refused EADDRINUSE
#= a TCP port again: ok
#= segments: refused ENOPROTOOPT
#= processors: as before
"""

import array
import asyncio
import os
import select
import signal
import socket
import threading

from attempt import attempt

MOST = 4096
SLACK = 64  # calls that are under way


def said(name: str, n: int, error: "OSError | None", most: int = MOST) -> None:
    number = os.strerror(error.errno) if error else "nothing"
    code = "ENOSPC" if error and error.errno == 28 else number
    size = "bounded" if most / 2 < n <= most + SLACK else f"{n} WATCHES"
    print(f"{name}: {size}, refused {code}", flush=True)


def watch_all(epolls: "list[select.epoll]", fds: "list[int]") -> "tuple[int, OSError | None]":
    n = 0
    try:
        for fd in fds:
            for one in epolls:
                one.register(fd, select.EPOLLIN)
                n += 1
    except OSError as e:
        return n, e
    return n, None


def closed(epolls: "list[select.epoll]", fds: "list[int]") -> None:
    for one in epolls:
        one.close()
    for fd in fds:
        os.close(fd)


def opened(n: int) -> "list[int]":
    return [os.open("pipe", os.O_RDWR | os.O_NONBLOCK) for _ in range(n)]


os.mkfifo("pipe")
epolls, fds = [select.epoll() for _ in range(60)], opened(200)
said("on one named pipe", *watch_all(epolls, fds))
closed(epolls, fds)

epolls = [select.epoll() for _ in range(60)]
told, tell = os.pipe()
children = []
for _ in range(20):
    child = os.fork()
    if child == 0:
        n, error = watch_all(epolls, opened(20))
        os.write(tell, b"%8d%8d" % (n, error.errno if error else 0))
        signal.pause()
    children.append(child)
numbers = [os.read(told, 16) for _ in children]
refused = {int(text[8:]) for text in numbers} - {0}
total = sum(int(text[:8]) for text in numbers)
said("from many processes", total, OSError(refused.pop(), "") if refused else None)
for child in children:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
closed(epolls, [told, tell])

epolls, fds = [select.epoll() for _ in range(60)], [os.pidfd_open(os.getpid()) for _ in range(200)]
said("on one process", *watch_all(epolls, fds))
closed(epolls, fds)
epolls, fds = [select.epoll() for _ in range(60)], opened(200)
said("again when they are gone", *watch_all(epolls, fds))
closed(epolls, fds)

ours, theirs = socket.socketpair()
fds = opened(1000)
hidden = select.epoll()
before, _ = watch_all([hidden], fds)
ours.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [hidden.fileno()]))])
hidden.close()
fill = [select.epoll() for _ in range(60)]
n, error = watch_all(fill, fds)
said("beside what is in a message", before + n, error)
_, ancillary, _, _ = theirs.recvmsg(1, 64)
back = select.epoll.fromfd(array.array("i", ancillary[0][2][:4])[0])
os.write(fds[0], b"x")
print("and what was in it:", "works" if back.poll(0) else "SILENT", flush=True)
os.read(fds[0], 1)
closed([back, *fill], [])

hidden = select.epoll()
silent = os.eventfd(0)
hidden.register(silent, select.EPOLLIN)
poll = select.poll()
poll.register(hidden, select.POLLIN)
waiting = threading.Thread(target=poll.poll)
waiting.start()
while open(f"/proc/self/task/{waiting.native_id}/syscall").read().split()[0] != "7":  # poll
    pass
before, _ = watch_all([hidden], fds)
hidden.close()
fill = [select.epoll() for _ in range(60)]
n, error = watch_all(fill, fds)
said("below a descriptor that a call waits for", before + n, error)
closed(fill, fds)  # one of them has its number
os.eventfd_write(silent, 1)
waiting.join()


async def talk(ours: socket.socket, theirs: socket.socket) -> bytes:
    """Both ends of a connection, which stays until all have one."""
    reader, writer = await asyncio.open_connection(sock=ours)
    peer_reader, peer_writer = await asyncio.open_connection(sock=theirs)
    writer.write(b"x\n")
    peer_writer.write(await peer_reader.readline())
    line = await reader.readline()
    await together.wait()
    writer.close()
    peer_writer.close()
    return line


async def serve() -> int:
    global together
    together = asyncio.Barrier(900)
    n = 0
    for _ in range(6):
        lines = await asyncio.gather(*(talk(*socket.socketpair()) for _ in range(900)))
        n += sum(line == b"x\n" for line in lines)
    return n


together: asyncio.Barrier
print("900 connections at once, six times:", asyncio.run(serve()), flush=True)


async def nothing() -> int:
    await asyncio.sleep(0)
    return 1


print("event loops one after the other:", sum(asyncio.run(nothing()) for _ in range(200)))


def datagrams(option: int) -> None:
    for _ in "ab":
        one = socket.socket(type=socket.SOCK_DGRAM)
        kept.append(one)
        one.setsockopt(socket.SOL_SOCKET, option, 1)
        one.bind(("127.0.0.1", 5000 + option))


kept: "list[socket.socket]" = []
attempt("two sockets for one datagram", datagrams, socket.SO_REUSEADDR)
attempt("by their port", datagrams, socket.SO_REUSEPORT)


def again() -> str:
    server = socket.create_server(("127.0.0.1", 0), reuse_port=True)
    kept.append(socket.create_server(server.getsockname(), reuse_port=True))
    return "ok"


print("a TCP port again:", again())
plain = socket.socket(type=socket.SOCK_DGRAM)
attempt("segments", plain.setsockopt, socket.IPPROTO_UDP, 103, 8)
mine = os.sched_getaffinity(0)
os.sched_setaffinity(0, {min(mine)})
print("processors:", "as before" if os.sched_getaffinity(0) == mine else "CHANGED")

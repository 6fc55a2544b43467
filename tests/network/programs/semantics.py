"""What sockets do, a row each: `name: outcome`. Run natively on the test internet's host and in a
sandbox that may reach all of it, it must print the same but for the rows that test_semantics.py
names. semantics.py --list prints the rows, each with the connects that it costs at most (a sandbox
has a burst of 100), semantics.py [ROW…] runs only these."""

import array
import asyncio
import ctypes
import errno
import fcntl
import hashlib
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
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


# ---------------------------------------------------------------------------- connecting


@row
def blocking_connect():
    return echoes(connected())


@row
def blocking_connect_without_a_timeout():
    sock = socket.socket()
    sock.connect((WEB, ECHO))
    return echoes(sock)


@row
def connect_v6():
    return echoes(connected(address=WEB6))


@row
def connect_mapped():
    sock = tcp(socket.AF_INET6)
    sock.connect(("::ffff:" + WEB, ECHO))
    return sock.getpeername()[0], echoes(sock)


@row
def connect_mapped_on_a_v6_only_socket():
    sock = tcp(socket.AF_INET6)
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    return name(sock.connect_ex(("::ffff:" + WEB, ECHO)))


@row
def nonblocking_connect():
    sock, result = begun(address=WEB)
    return name(result), polled(sock), pending_error(sock), polled(sock), echoes(sock)


@row
def nonblocking_connect_v6():
    sock, result = begun(address=WEB6, family=socket.AF_INET6)
    return name(result), polled(sock), pending_error(sock), echoes(sock)


@row
def epoll_before_connect():
    sock = socket.socket()
    sock.setblocking(False)
    epoll = select.epoll()
    epoll.register(sock, select.EPOLLIN | select.EPOLLOUT | select.EPOLLRDHUP)
    before = masks(epoll.poll(0)[0][1])
    result = sock.connect_ex((WEB, ECHO))
    after = masks(epoll.poll(WAIT)[0][1])
    sock.send(b"abc")
    epoll.modify(sock, select.EPOLLIN)
    return before, name(result), after, masks(epoll.poll(WAIT)[0][1]), sock.recv(9)


@row
def edge_epoll_before_connect():
    sock = socket.socket()
    sock.setblocking(False)
    epoll = select.epoll()
    epoll.register(sock, select.EPOLLIN | select.EPOLLOUT | select.EPOLLET)
    epoll.poll(0)
    sock.connect_ex((WEB, ECHO))
    while (got := epoll.poll(WAIT)) and got[0][1] & select.EPOLLHUP:
        pass
    return masks(got[0][1]) if got else "no event"


@row
def another_thread_polls():
    sock = socket.socket()
    sock.setblocking(False)
    sock.connect_ex((SILENT, ECHO))
    found = []
    thread = threading.Thread(target=lambda: found.append(polled(sock, 0.2)))
    thread.start()
    thread.join()
    return found


@row
def a_dup_made_before():
    sock = tcp()
    other = sock.dup()
    sock.connect((WEB, ECHO))
    return echoes(other)


@row
def a_child_made_before():
    sock = tcp()
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(ours, 1)
        os._exit(0 if echoes(sock) == "echo" else 1)
    sock.connect((WEB, ECHO))
    os.write(theirs, b"x")
    return os.waitpid(child, 0)[1]


@row
def a_child_connects():
    sock = tcp()
    child = os.fork()
    if child == 0:
        os._exit(sock.connect_ex((WEB, ECHO)))
    return os.waitpid(child, 0)[1], echoes(sock)


@row
def a_program_that_is_executed():
    sock = connected()
    code = (
        "import socket,sys;s=socket.socket(fileno=int(sys.argv[1]));s.setblocking(True);"
        "s.send(b'x');print(s.recv(1))"
    )
    words = ["/usr/bin/python3", "-c", code, str(sock.fileno())]
    return subprocess.run(
        words, pass_fds=[sock.fileno()], capture_output=True, text=True
    ).stdout.strip()


@row
def a_descriptor_that_was_passed():
    ours, theirs = socket.socketpair()
    sock = connected()
    socket.send_fds(ours, [b"x"], [sock.fileno()])
    sock.close()
    _, fds, _, _ = socket.recv_fds(theirs, 1, 1)
    return echoes(socket.socket(fileno=fds[0]))


@row
def options_are_kept():
    sock = tcp()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 40000)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 50000)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 3, 0))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 33)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 5000)
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 16)

    def all_of_them():
        soft = [(1, socket.SO_RCVBUF), (1, socket.SO_SNDBUF), (1, socket.SO_KEEPALIVE)]
        soft += [(6, socket.TCP_NODELAY), (6, socket.TCP_KEEPIDLE), (6, socket.TCP_USER_TIMEOUT)]
        soft += [
            (0, socket.IP_TOS),
            (1, socket.SO_DOMAIN),
            (1, socket.SO_TYPE),
            (1, socket.SO_PROTOCOL),
        ]
        soft += [(1, socket.SO_ACCEPTCONN), (1, socket.SO_REUSEADDR), (1, socket.SO_REUSEPORT)]
        return [sock.getsockopt(*one) for one in soft] + [
            sock.getsockopt(1, socket.SO_RCVTIMEO, 16)
        ]

    before = all_of_them()
    sock.connect((WEB, ECHO))
    return "the same" if all_of_them() == before else (before, all_of_them())


@row
def flags_are_kept():
    sock, _ = begun(address=WEB)
    os.set_inheritable(sock.fileno(), True)
    polled(sock)
    return os.get_inheritable(sock.fileno()), bool(fcntl.fcntl(sock, fcntl.F_GETFL) & os.O_NONBLOCK)


@row
def a_port_that_was_bound():
    sock = tcp()
    sock.bind(("", 25555))
    sock.connect((WEB, ECHO))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
    return sock.getsockname()[1], echoes(sock)


@row
def one_port_to_two_places():
    socks = []
    for port in (ECHO, COUNT):
        sock = tcp()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
        sock.bind(("", 25556))
        socks.append((sock, name(sock.connect_ex((WEB, port)))))
    return [result for _, result in socks], echoes(socks[0][0])


@row
def names_of_both_ends():
    sock = connected()
    return sock.getpeername(), sock.getsockname()[1] > 1023, sock.family.name


@row
def same_source_address_again():
    return connected().getsockname()[0] == connected().getsockname()[0]


@row
def two_connections_are_two():
    one, other = connected(), connected()
    one.sendall(b"1")
    other.sendall(b"2")
    return one.recv(1), other.recv(1)


# ---------------------------------------------------------------------------- failing


def refusals(family, address, port):
    sock = tcp(family)
    blocking = name(sock.connect_ex((address, port)))
    other, result = begun(port, address, family)
    events = polled(other)
    if port != CLOSED:  # who polls at once may see the error before the end
        return blocking, name(result), "ERR" in events, pending_error(other)
    return blocking, name(result), events, pending_error(other), pending_error(other)


@row
def refused():
    return refusals(socket.AF_INET, WEB, CLOSED)


@row
def refused_v6():
    return refusals(socket.AF_INET6, WEB6, CLOSED)


@row
def port_0():
    return name(tcp().connect_ex((WEB, 0)))


@row
def no_such_host():
    return refusals(socket.AF_INET, UNREACHABLE, 80)


@row
def no_such_host_v6():
    return refusals(socket.AF_INET6, UNREACHABLE6, 80)


@row
def nobody_has_the_address():
    return name(tcp().connect_ex((NOBODY, 80)))


@row
def a_full_queue():
    sock = tcp(timeout=0.3)
    return name(sock.connect_ex((WEB, FULL)))


@row
def refused_then_again():
    sock = socket.socket()
    first = name(sock.connect_ex((WEB, CLOSED)))
    return first, name(sock.connect_ex((WEB, ECHO))), echoes(sock)


@row
def failing_is_quick():
    _, seconds = took(lambda: tcp().connect_ex((WEB, CLOSED)))
    return seconds < 2


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


# ---------------------------------------------------------------------------- calls again, odd calls


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


# ---------------------------------------------------------------------------- servers beside it


@row
def out_to_a_port_that_we_serve():
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("0.0.0.0", 8080))
    server.listen()
    sock = connected(8080)
    sock.sendall(b"GET / HTTP/1.0\r\n\r\n")
    found = sock.recv(12)
    inside = connected(8080, "127.0.0.1")
    return found, server.accept()[0].getpeername() == inside.getsockname()


@row
def serve_a_port_that_we_are_out_to():
    sock = connected(8080)
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("0.0.0.0", 8080))
    server.listen()
    inside = connected(8080, "127.0.0.1")
    return sock.getpeername(), server.accept()[0].getpeername() == inside.getsockname()


@row
def own_loopback():
    found = []
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        server = socket.create_server((address, 0), family=family)
        for timeout in (WAIT, 0):
            sock = tcp(family, timeout)
            result = sock.connect_ex(server.getsockname()[:2])
            peer, _ = server.accept()
            peer.sendall(b"x")
            sock.settimeout(WAIT)
            found.append((name(result), sock.recv(1)))
    return found


@row
def own_loopback_and_nobody_there():
    return name(tcp().connect_ex(("127.0.0.1", 1))), name(
        tcp(socket.AF_INET6).connect_ex(("::1", 1))
    )


@row
def the_unspecified_address_is_ours():
    server = socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    port = server.getsockname()[1]
    return name(tcp().connect_ex(("0.0.0.0", port))), name(
        tcp(socket.AF_INET6).connect_ex(("::", port))
    )


@row
def our_own_address_is_ours():
    server = socket.create_server(("", 0))
    address = connected().getsockname()[0]
    return name(tcp().connect_ex((address, server.getsockname()[1])))


@row
def unix_sockets():
    found = []
    with tempfile.TemporaryDirectory() as directory:
        for where in (f"{directory}/s", f"\0cloche-{os.getpid()}"):
            server = socket.socket(socket.AF_UNIX)
            server.bind(where)
            server.listen()
            sock = socket.socket(socket.AF_UNIX)
            sock.connect(where)
            server.accept()[0].send(b"x")
            found.append(sock.recv(1))
    try:
        socket.socket(socket.AF_UNIX).connect("/nowhere")
    except OSError as error:
        found.append(name(error.errno))
    return found


@row
def udp_connect_only():
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.connect((WEB, 9))
    return sock.getpeername(), sock.getsockname()[0] != "0.0.0.0"


@row
def udp_among_ourselves():
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 0))
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.connect(server.getsockname())
    sock.send(b"u")
    return server.recv(9)


# ---------------------------------------------------------------------------- where we differ


@row
def fast_open_by_sendto():
    sock = socket.socket()
    try:
        sock.sendto(b"abc", socket.MSG_FASTOPEN, (WEB, ECHO))
        return sock.recv(3, socket.MSG_WAITALL)
    except OSError as error:
        return name(error.errno)


@row
def fast_open_by_option():
    sock = tcp()
    sock.setsockopt(socket.IPPROTO_TCP, 30, 1)
    sock.connect((WEB, ECHO))
    return echoes(sock)


@row
def udp_there_and_back():
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.settimeout(1)
    sock.connect((WEB, ECHO))
    try:
        sock.send(b"abc")
        return sock.recv(9)
    except OSError as error:
        return name(error.errno or 0)


@row
def udp_without_connect():
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.settimeout(0.3)
    sock.sendto(b"abc", (WEB, ECHO))
    try:
        return sock.recv(9)
    except TimeoutError:
        return "nothing"


@row
def broadcast_and_multicast():
    return [name(tcp().connect_ex((address, 80))) for address in ("255.255.255.255", "224.0.0.1")]


@row
def bind_to_an_address_of_somebody_else():
    try:
        socket.socket().bind((WEB, 0))
        return "ok"
    except OSError as error:
        return name(error.errno)


def main():
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    if sys.argv[1:] == ["--list"]:
        print("\n".join(f"{function.__name__} {cost}" for function, cost in rows))
        return
    for function, _ in rows:
        if sys.argv[1:] and function.__name__ not in sys.argv[1:]:
            continue
        try:
            outcome = function()
        except Exception as error:
            outcome = f"{type(error).__name__}: {error}"
        print(f"{function.__name__}: {outcome}", flush=True)


main()

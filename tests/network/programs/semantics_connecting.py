"""Rows of semantics.py: connects that succeed, and connects that fail."""

import fcntl
import os
import select
import socket
import struct
import subprocess
import threading

from semantics_base import (
    CLOSED,
    COUNT,
    ECHO,
    FULL,
    NOBODY,
    RESET_AT_CLOSE,
    SILENT,
    UNREACHABLE,
    UNREACHABLE6,
    WAIT,
    WEB,
    WEB6,
    begun,
    connected,
    echoes,
    masks,
    name,
    pending_error,
    polled,
    row,
    tcp,
    took,
)


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

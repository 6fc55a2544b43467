"""Rows of semantics.py: a network inside beside the one outside, and where we differ."""

import os
import socket
import tempfile

from semantics_base import ECHO, WAIT, WEB, connected, echoes, name, row, tcp


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

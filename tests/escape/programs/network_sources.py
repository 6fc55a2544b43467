"""Every address is the sandbox's own, so a program can bind any as its source. Arguments: an address
that is allowed, one that is silent and allowed, one that is forbidden.

#= destination as source: echo
#= destination and port as a listener before: went out
#= destination and port as source: ours alone
#= a listener on the destination after: ours alone
#= address of a pending connect as source: ours alone
#= a socket that connects to a pending one: ours alone
#= simultaneous open with ourselves: ours alone
#= forbidden as source: EACCES
#= many sources: 32
#= afterwards: echo
"""

import errno
import select
import socket
import sys

ALLOWED, SILENT, FORBIDDEN = sys.argv[1:4]
ECHO = 7007  # one that everybody may bind


def tcp():
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    sock.settimeout(3)
    return sock


def echo(sock):
    """The echo server answers; a socket that is connected to itself or to a friend does, too, so
    what came is looked at by who is asked."""
    try:
        sock.sendall(b"abc")
        return "echo" if sock.recv(3, socket.MSG_WAITALL) == b"abc" else "no echo"
    except OSError as error:
        return errno.errorcode.get(error.errno, type(error).__name__)


def attempt(name, function):
    try:
        value = function()
    except OSError as error:
        value = errno.errorcode.get(error.errno, type(error).__name__)
    print(f"{name}: {value}", flush=True)


def any_of(*values):
    """Nothing, an error, ourselves: all the same, as long as it is the sandbox's own affair."""
    return "ours alone"


def source(port=0):
    sock = tcp()
    sock.bind((ALLOWED, port))
    sock.connect((ALLOWED, ECHO))
    return sock


def self_connect():
    sock = tcp()
    sock.bind((ALLOWED, ECHO))
    result = sock.connect_ex((ALLOWED, ECHO))
    return any_of(result, echo(sock))


def listener_before():
    server = tcp()
    server.bind((ALLOWED, ECHO))
    server.listen(5)
    sock = tcp()
    sock.connect((ALLOWED, ECHO))
    server.settimeout(0.3)
    try:
        server.accept()
        return "came to us"
    except TimeoutError:
        return "went out" if echo(sock) == "echo" else "went nowhere"


def listener_after():
    sock = socket.socket()
    sock.setblocking(False)
    sock.connect_ex((SILENT, 8007))
    server = tcp()
    try:
        server.bind((SILENT, 8007))
        server.listen(5)
    except OSError:
        pass
    select.select([], [sock], [], 0.3)
    return any_of()


def pending_as_source():
    sock = socket.socket()
    sock.setblocking(False)
    sock.connect_ex((SILENT, 8080))
    other = tcp()
    try:
        other.bind((SILENT, 8080))
        other.connect_ex((ALLOWED, 7))
    except OSError:
        pass
    return any_of()


def connect_to_pending():
    """The other end of a pending connect, made by us: what init would do."""
    sock = socket.socket()
    sock.setblocking(False)
    sock.connect_ex((SILENT, 8080))
    other = tcp()
    try:
        other.bind((SILENT, 8080))
        other.settimeout(0.3)
        other.connect_ex(sock.getsockname())
    except OSError:
        pass
    return any_of()


def simultaneous():
    one, two = tcp(), tcp()
    one.bind((ALLOWED, 40001))
    two.bind((SILENT, 40002))
    for sock in (one, two):
        sock.setblocking(False)
    one.connect_ex((SILENT, 40002))
    two.connect_ex((ALLOWED, 40001))
    select.select([one, two], [], [], 0.3)
    return any_of()


def forbidden_as_source():
    sock = tcp()
    sock.bind((FORBIDDEN, 0))
    return errno.errorcode.get(sock.connect_ex((FORBIDDEN, 80)), "ok")


def many():
    socks = []
    for number in range(32):
        sock = tcp()
        sock.bind((f"203.0.113.{number + 1}", 5555))
        sock.connect((ALLOWED, 7))
        socks.append(sock)
    return sum(echo(sock) == "echo" for sock in socks)


attempt("destination as source", lambda: echo(source()))
attempt("destination and port as a listener before", listener_before)
attempt("destination and port as source", self_connect)
attempt("a listener on the destination after", listener_after)
attempt("address of a pending connect as source", pending_as_source)
attempt("a socket that connects to a pending one", connect_to_pending)
attempt("simultaneous open with ourselves", simultaneous)
attempt("forbidden as source", forbidden_as_source)
attempt("many sources", many)
attempt("afterwards", lambda: echo(socket.create_connection((ALLOWED, 7), 10)))

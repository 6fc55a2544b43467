"""Connects that nobody waits for. Arguments: an address that is allowed, one that is silent and
allowed, how many rounds.

#= closed: ok
#= replaced: ok
#= left: ok
#= killed: ok
#= executed: ok
#= signals: ok
#= reset at once: ok
#= storm: ok
#= afterwards: echo
"""

import errno
import os
import signal
import socket
import struct
import sys
import time

ALLOWED, SILENT, ROUNDS = sys.argv[1], sys.argv[2], int(sys.argv[3])


def pending():
    sock = socket.socket()
    sock.setblocking(False)
    sock.connect_ex((SILENT, 80))
    return sock


def closed():
    for _ in range(ROUNDS):
        pending().close()


def replaced():
    for _ in range(ROUNDS):
        sock = pending()
        with open("/dev/null") as null:
            os.dup2(null.fileno(), sock.fileno())
        sock.close()


def child(function):
    pid = os.fork()
    if pid == 0:
        try:
            function()
        finally:
            os._exit(0)
    return pid


def blocking():
    socket.socket().connect((SILENT, 80))


def left():
    for _ in range(ROUNDS):
        os.waitpid(child(pending), 0)


def killed():
    for _ in range(ROUNDS):
        pid = child(blocking)
        time.sleep(0.005)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def executed():
    for _ in range(ROUNDS):

        def run():
            sock = pending()
            os.set_inheritable(sock.fileno(), True)
            os.execv("/bin/true", ["true"])

        os.waitpid(child(run), 0)


def signals():
    def busy():
        signal.signal(signal.SIGUSR1, lambda *_: None)
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 100_000))
        for _ in range(ROUNDS):
            sock.connect_ex((SILENT, 80))

    pid = child(busy)
    end = time.monotonic() + 60
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        assert time.monotonic() < end
        os.kill(pid, signal.SIGUSR1)
        time.sleep(0.0002)


def reset_at_once():
    for _ in range(ROUNDS):
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.connect_ex((ALLOWED, 7))
        sock.close()


def storm():
    """Until something says that there are too many."""
    socks, found = [], set()
    for _ in range(300):
        try:
            sock = socket.socket()
        except OSError:  # the sandbox has as many as it may
            break
        sock.setblocking(False)
        found.add(errno.errorcode[sock.connect_ex((SILENT, 80))])
        socks.append(sock)
    too_many = {"EADDRNOTAVAIL", "EACCES"}
    assert found & too_many and found <= {"EINPROGRESS", *too_many}, found
    for sock in socks:
        sock.close()


for name in (
    "closed",
    "replaced",
    "left",
    "killed",
    "executed",
    "signals",
    "reset_at_once",
    "storm",
):
    try:
        globals()[name]()
        print(f"{name.replace('_', ' ')}: ok", flush=True)
    except Exception as error:
        print(f"{name.replace('_', ' ')}: {type(error).__name__} {error}", flush=True)

end = time.monotonic() + 60
answer = "nothing"
while time.monotonic() < end and answer != "echo":  # until there may be new ones
    time.sleep(0.2)
    try:
        with socket.create_connection((ALLOWED, 7), 5) as sock:
            sock.sendall(b"abc")
            answer = "echo" if sock.recv(3, socket.MSG_WAITALL) == b"abc" else "no echo"
    except OSError as error:
        answer = errno.errorcode.get(error.errno, str(error))
print(f"afterwards: {answer}", flush=True)

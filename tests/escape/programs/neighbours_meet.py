"""Two of these run at once and try to meet: same port, same names, same shared memory keys. The
argument is `serve` or `visit`; the server waits on standard input.

"""

import os
import socket
import sys

from attempt import attempt, call

if sys.argv[1] == "serve":
    tcp = socket.socket()
    tcp.bind(("127.0.0.1", 5555))
    tcp.listen()
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind("\0meeting")
    abstract.listen()
    named = socket.socket(socket.AF_UNIX)
    named.bind("/tmp/meeting")
    named.listen()
    call("shmget", 4242, 4096, 0o1666)
    open("/dev/shm/meeting", "w").close()
    print("ready", flush=True)
    sys.stdin.read()
else:
    attempt("port", socket.create_connection, ("127.0.0.1", 5555))
    attempt("port of ::1", socket.create_connection, ("::1", 5555))
    attempt("abstract name", socket.socket(socket.AF_UNIX).connect, "\0meeting")
    attempt("name", socket.socket(socket.AF_UNIX).connect, "/tmp/meeting")
    attempt("segment", call, "shmget", 4242, 4096, 0)
    attempt("shared file", os.open, "/dev/shm/meeting", os.O_RDONLY)
    attempt("outside", socket.create_connection, ("192.0.2.7", 80))
    attempt("metadata", socket.create_connection, ("169.254.169.254", 80))

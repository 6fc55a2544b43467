"""Takes all it can get of what the machine has few of, says so, and holds it until its standard
input ends.

#! pids=64 open_files=256
"""

import ctypes
import os
import signal
import socket
import struct
import sys

from attempt import call, libc


def until_refused(function, *args, most=100_000):
    held = []
    try:
        while len(held) < most:
            held.append(function(*args))
    except OSError:
        pass
    return held


def queue_signal():
    if libc.sigqueue(os.getpid(), signal.SIGRTMIN, ctypes.c_void_p(0)) < 0:
        raise OSError(ctypes.get_errno(), "sigqueue")


def flow_label():
    sock = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    address = socket.inet_pton(socket.AF_INET6, "::1")
    sock.setsockopt(
        41, 32, address + struct.pack("!I", 0) + struct.pack("=BBHHHI", 0, 255, 1, 60, 60, 0)
    )
    return sock


signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
watches = until_refused(call, "inotify_init1", 0, most=200)
labels = until_refused(flow_label, most=20)
signals = until_refused(queue_signal)
print("watches", len(watches), "labels", len(labels), "signals", len(signals), flush=True)
sys.stdin.read()

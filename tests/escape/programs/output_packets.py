"""Standard output as a packet pipe, full of pages it may still change, and read by itself.

#! timeout_ms=20000
#? status=ok
"""

import contextlib
import fcntl
import os

with contextlib.suppress(OSError):  # O_DIRECT is refused, of pipes too
    fcntl.fcntl(1, fcntl.F_SETFL, os.O_DIRECT)
for _ in range(100):
    os.write(1, b"x" * 5000)
    os.write(1, b"y")
source = os.open("/usr/bin/python3", os.O_RDONLY)
with contextlib.suppress(OSError):  # refused, too
    os.splice(source, 1, 10_000)
own = os.open("/proc/self/fd/1", os.O_RDONLY | os.O_NONBLOCK)
for _ in range(100):
    os.write(1, b"z" * 4096)
    try:
        os.read(own, 100)
    except BlockingIOError:
        pass
stdin = os.open("/proc/self/fd/0", os.O_WRONLY | os.O_NONBLOCK)
try:
    while True:
        os.write(stdin, bytes(4096))
except (BlockingIOError, BrokenPipeError):
    pass

"""Children that nobody waits for, orphans that init inherits.

#= orphans: 200
#= zombies: 10
#? status=ok
"""

import os

from attempt import says


def fork() -> int:
    """Orphans count until init has seen them, which on a busy machine is a little later."""
    while True:
        try:
            return os.fork()
        except BlockingIOError:
            pass


for _ in range(200):
    r, w = os.pipe()
    if fork() == 0:
        if fork() == 0:
            os._exit(0)
        os._exit(0)
    os.close(w)
    os.read(r, 1)  # the end of both
    os.close(r)
    os.wait()
says("orphans", 200)
for _ in range(10):
    if fork() == 0:
        os._exit(0)
says("zombies", 10)

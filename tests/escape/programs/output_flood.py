"""Both streams at once, as fast as it goes, until the clock ends it.

#! timeout_ms=3000 output_bytes=100000
#? status=timeout stdout_truncated=True stderr_truncated=True
"""

import os
import threading


def flood(fd):
    while True:
        os.write(fd, b"y\n" * 32768)


threading.Thread(target=flood, args=(2,)).start()
flood(1)

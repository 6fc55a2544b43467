"""The memory is in the children.

#! memory_mb=64
#? limit_hit=memory
"""

import os
import signal

for _ in range(16):
    if os.fork() == 0:
        hoard = bytearray(32 << 20)
        signal.pause()
        os._exit(0)
os.wait()  # the first that had to die

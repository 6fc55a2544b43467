"""CPU time in children that come and go, SIGXCPU ignored.

#! timeout_ms=60000 cpu_seconds=1
#? limit_hit=cpu
"""

import os
import signal

signal.signal(signal.SIGXCPU, signal.SIG_IGN)
while True:
    if os.fork() == 0:
        for _ in range(1_000_000):
            pass
        os._exit(0)
    os.wait()

"""A child stops and continues the program for ever: its parent, outside, must not be kept busy.

#! timeout_ms=60000 cpu_seconds=2
#? status=killed limit_hit=cpu
"""

import os
import signal

parent = os.getpid()
if os.fork() == 0:
    while True:
        os.kill(parent, signal.SIGSTOP)
        os.kill(parent, signal.SIGCONT)
while True:
    signal.pause()

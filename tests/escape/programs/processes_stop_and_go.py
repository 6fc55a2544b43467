"""A child stops and continues the program for ever: its parent, outside, must not be kept busy.

#! timeout_ms=2000
#? status=timeout limit_hit=time
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

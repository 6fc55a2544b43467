"""Sleeping for ever, SIGINT and SIGTERM ignored, timers of its own.

#! timeout_ms=700
#? status=timeout limit_hit=time
"""

import signal
import time

for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGXCPU):
    signal.signal(number, signal.SIG_IGN)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
while True:
    time.sleep(1000)

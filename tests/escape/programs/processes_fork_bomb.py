"""Fork until it is refused, in every child.

#! pids=24
#= bomb: refused EAGAIN
#? limit_hit=pids
"""

import os
import signal
import time

from attempt import attempt


def bomb():
    while True:
        if os.fork() == 0:
            while True:
                try:
                    if os.fork() == 0:
                        continue
                except OSError:
                    time.sleep(1000)


for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
attempt("bomb", bomb)

"""Double fork, a session of its own, every signal ignored, standard streams held: dead after the
reply. The argument is the name it gives itself.

#= daemon: runs
#? status=ok
"""

import os
import signal
import sys
import time

from attempt import libc, says

r, w = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        libc.prctl(15, sys.argv[1].encode(), 0, 0, 0)
        libc.prctl(36, 1, 0, 0, 0)  # a subreaper
        for number in set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        os.write(w, b"x")
        while True:
            time.sleep(1)
    os._exit(0)
os.read(r, 1)
says("daemon", "runs")

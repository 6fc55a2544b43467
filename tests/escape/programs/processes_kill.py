"""Signals to everyone: only its own children hear them; stopping itself does not stop the clock.

#! timeout_ms=3000
#= kill everyone: refused ESRCH
#= a child of ours: dies of 9
#= stopped children: 5
#? status=timeout limit_hit=time
"""

import os
import signal
import time

from attempt import attempt, says

signal.signal(signal.SIGTERM, signal.SIG_IGN)
attempt("kill everyone", os.kill, -1, signal.SIGTERM)
pid = os.fork()
if pid == 0:
    time.sleep(1000)
os.kill(-1, signal.SIGKILL)
says("a child of ours", f"dies of {os.WTERMSIG(os.waitpid(pid, 0)[1])}")
stopped = 0
for _ in range(5):
    pid = os.fork()
    if pid == 0:
        os.kill(os.getpid(), signal.SIGSTOP)
    os.waitpid(pid, os.WUNTRACED)
    stopped += 1
says("stopped children", stopped)
os.kill(os.getpid(), signal.SIGSTOP)

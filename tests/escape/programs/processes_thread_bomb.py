"""Threads until they are refused.

#! pids=24
#= bomb: can't start new thread
#? limit_hit=pids
"""

import threading
import time

from attempt import says

try:
    while True:
        threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
except RuntimeError as exc:
    says("bomb", exc)

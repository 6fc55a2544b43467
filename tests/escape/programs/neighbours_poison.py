"""Spoils whatever a next program could inherit.

#? status=ok
"""

import atexit
import builtins
import gc
import json
import locale
import os
import random
import signal
import socket
import sys
import tempfile
import threading

builtins.print = lambda *_: None
builtins.len = lambda _: 7
builtins.poisoned = True
json.loads = lambda _: "poisoned"
sys.modules["math"] = None
sys.modules["poisoned"] = sys
sys.meta_path.clear()
sys.path_hooks.clear()
sys.path[:] = ["/poisoned"]
sys.setrecursionlimit(100)
sys.setswitchinterval(1000)
os.environ["POISONED"] = "1"
os.environ["PATH"] = "/poisoned"
os.umask(0o777)
os.nice(19)
locale.setlocale(locale.LC_ALL, "C")
random.seed(1)
gc.disable()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
socket.setdefaulttimeout(0.0001)
tempfile.tempdir = "/poisoned"
threading.excepthook = None
atexit.register(lambda: os.write(1, b"poisoned"))
for place in ("/tmp", "/dev/shm", "/workspace"):
    os.write(os.open(f"{place}/poisoned.py", os.O_CREAT | os.O_WRONLY, 0o644), b"poisoned = 1")
os.chdir("/tmp")

"""After neighbours_poison.py: nothing of it is here.

#= builtins: True False
#= modules: True False
#= json: [1]
#= path: False True True
#= environment: None /usr/bin:/run/cloche/bin:/usr/local/bin:/usr/bin:/bin
#= numbers: 1000 0.005 0o22 0
#= locale: C.UTF-8
#= signal: True
#= garbage: True
#= socket: None
#= places: [] [] ['__main__.py', 'attempt.py']
#= directory: /workspace
#= library: 64
"""

import builtins
import gc
import hashlib
import json
import locale
import math
import os
import signal
import socket
import sys

print("builtins:", len("ab") == 2, hasattr(builtins, "poisoned"))
print("modules:", math.sqrt(4) == 2, "poisoned" in sys.modules)
print("json:", json.loads("[1]"))
print("path:", "/poisoned" in sys.path, bool(sys.meta_path), bool(sys.path_hooks))
print("environment:", os.environ.get("POISONED"), os.environ["PATH"])
mask = os.umask(0)
print("numbers:", sys.getrecursionlimit(), sys.getswitchinterval(), oct(mask), os.nice(0))
print("locale:", locale.setlocale(locale.LC_CTYPE))
print("signal:", signal.getsignal(signal.SIGTERM) == signal.SIG_DFL)
print("garbage:", gc.isenabled())
print("socket:", socket.getdefaulttimeout())
files = sorted(name for name in os.listdir("/workspace") if name != "__pycache__")
print("places:", os.listdir("/tmp"), os.listdir("/dev/shm"), files)
print("directory:", os.getcwd())
print("library:", len(hashlib.sha256(open(os.__file__, "rb").read()).hexdigest()))

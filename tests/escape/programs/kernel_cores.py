"""A core dump reaches nobody: the limit is 1 (none, also for a piped core_pattern) and stays so.

#= limit: (1, 1)
#= after setrlimit 0: (1, 1)
#= after prlimit 0: (1, 1)
#= after a raw setrlimit: (1, 1)
#= raised: (1, 1)
#= crashed: -6 dumped False
#= files: ['__main__.py', 'attempt.py']
"""

import os
import resource
import struct

from attempt import call, says

CORE = resource.RLIMIT_CORE
says("limit", resource.getrlimit(CORE))
resource.setrlimit(CORE, (0, 0))
says("after setrlimit 0", resource.getrlimit(CORE))
resource.prlimit(0, CORE, (0, 0))
says("after prlimit 0", resource.getrlimit(CORE))
call("setrlimit", CORE, struct.pack("=2Q", 0, 0))
says("after a raw setrlimit", resource.getrlimit(CORE))
resource.setrlimit(CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
says("raised", resource.getrlimit(CORE))
pid = os.fork()
if pid == 0:
    os.abort()
_, status = os.waitpid(pid, 0)
print("crashed:", -os.WTERMSIG(status), "dumped", os.WCOREDUMP(status))
says("files", sorted(name for name in os.listdir() if name != "__pycache__"))

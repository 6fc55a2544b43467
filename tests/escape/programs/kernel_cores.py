"""A core dump reaches nobody: the limit is 1 (none, also for a piped core_pattern), or 0
where the hard limit of the host is 0 and nothing is piped, and stays so.

#= limit: 1/1|0/0
#= after setrlimit 0: 1/1|0/0
#= after prlimit 0: 1/1|0/0
#= after a raw setrlimit: 1/1|0/0
#= raised: 1/1|0/0
#= crashed: -6 dumped False
#= files: ['__main__.py', 'attempt.py']
"""

import os
import resource
import struct

from attempt import call, says

CORE = resource.RLIMIT_CORE


def limit() -> str:
    return "/".join(map(str, resource.getrlimit(CORE)))


says("limit", limit())
resource.setrlimit(CORE, (0, 0))
says("after setrlimit 0", limit())
resource.prlimit(0, CORE, (0, 0))
says("after prlimit 0", limit())
call("setrlimit", CORE, struct.pack("=2Q", 0, 0))
says("after a raw setrlimit", limit())
resource.setrlimit(CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
says("raised", limit())
pid = os.fork()
if pid == 0:
    os.abort()
_, status = os.waitpid(pid, 0)
print("crashed:", -os.WTERMSIG(status), "dumped", os.WCOREDUMP(status))
says("files", sorted(name for name in os.listdir() if name != "__pycache__"))

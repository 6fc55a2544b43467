"""Limits can be lowered, never raised.

#= NOFILE: refused not allowed to raise maximum limit
#= CPU: refused not allowed to raise maximum limit
#= MEMLOCK: refused not allowed to raise maximum limit
#= MSGQUEUE: refused not allowed to raise maximum limit
#= SIGPENDING: refused not allowed to raise maximum limit
#= RTPRIO: refused not allowed to raise maximum limit
#= NICE: refused not allowed to raise maximum limit
#= nice: refused EPERM|EACCES
#= real-time: refused EPERM
#= deadline: refused EPERM
"""

import os
import resource
import struct

from attempt import attempt, call

for name in ("NOFILE", "CPU", "MEMLOCK", "MSGQUEUE", "SIGPENDING", "RTPRIO", "NICE"):
    kind = getattr(resource, f"RLIMIT_{name}")
    attempt(name, resource.setrlimit, kind, (resource.getrlimit(kind)[1] + 1,) * 2)
attempt("nice", os.nice, -5)
attempt("real-time", os.sched_setscheduler, 0, os.SCHED_FIFO, os.sched_param(1))
attempt(
    "deadline",
    call,
    "sched_setattr",
    0,
    struct.pack("=IIQiI3Q", 48, 6, 0, 0, 0, 10**7, 10**8, 10**8),
    0,
)

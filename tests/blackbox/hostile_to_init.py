"""A program that tries everything against init, the first process of its sandbox."""

from __future__ import annotations

HOSTILE = r"""
import ctypes, errno, json, os, signal, resource, struct
libc = ctypes.CDLL(None, use_errno=True)
found = {}

def call(name, *args):
    ctypes.set_errno(0)
    args = [a if isinstance(a, (bytes, ctypes.Array)) else ctypes.c_long(a) for a in args]
    r = libc.syscall(*args)
    found[name] = errno.errorcode[ctypes.get_errno()] if r < 0 else "done"
    return r

def python(name, f, *args):
    try:
        f(*args)
        found[name] = "done"
    except OSError as e:
        found[name] = errno.errorcode[e.errno]

for request, name in [(16, "attach"), (0x4206, "seize")]:
    call("ptrace " + name, 101, request, 1, 0, 0)
buffer = ctypes.create_string_buffer(64)
iov = ctypes.create_string_buffer(struct.pack("QQ", ctypes.addressof(buffer), 8))
remote = ctypes.create_string_buffer(struct.pack("QQ", 0x400000, 8))
call("process_vm_readv", 310, 1, iov, 1, remote, 1, 0)
call("process_vm_writev", 311, 1, iov, 1, remote, 1, 0)
call("kcmp", 312, 1, os.getpid(), 0, 0, 0)
call("process_madvise", 440, 1, iov, 1, 4, 0)
python("prlimit get", resource.prlimit, 1, resource.RLIMIT_CPU)
python("prlimit set", resource.prlimit, 1, resource.RLIMIT_CPU, (0, 0))
python("affinity", os.sched_setaffinity, 1, {min(os.sched_getaffinity(0))})
python("priority", os.setpriority, os.PRIO_PROCESS, 1, 19)
python("priority user", os.setpriority, os.PRIO_USER, 0, 19)
python("priority group", os.setpriority, os.PRIO_PGRP, 1, 19)
python("scheduler", os.sched_setscheduler, 1, os.SCHED_IDLE, os.sched_param(0))
call("sched_setattr", 314, 1, struct.pack("IIQiIQQQ", 48, 5, 0, 0, 0, 0, 0, 0), 0)
call("ioprio", 251, 1, 1, 3 << 13)
call("ioprio user", 251, 3, 1000, 3 << 13)
call("migrate_pages", 256, 1, 64, buffer, buffer)
call("move_pages", 279, 1, 0, 0, 0, 0, 0)
call("get_robust_list", 274, 1, buffer, buffer)
python("setpgid", os.setpgid, 1, 1)
for name in ("environ", "maps", "mem", "root", "cwd", "exe", "fd", "status", "oom_score_adj",
             "attr/current", "ns/mnt", "task/1/comm", "limits", "stack", "syscall"):
    path = "/proc/1/" + name
    python("read " + name, lambda: open(path, "rb").read(1))
    python("list " + name, os.listdir, path)
    python("link " + name, os.readlink, path)
    python("write " + name, lambda: open(path, "wb").write(b"0"))
found["proc"] = [name for name in os.listdir("/proc") if name == "1"]

# Signals may be refused or sent: they must not do anything.
for number in sorted(signal.valid_signals()):
    python(f"signal {number}", os.kill, 1, number)
pidfd = call("pidfd_open", 434, 1, 0)
if pidfd >= 0:
    python("pidfd signal", signal.pidfd_send_signal, pidfd, signal.SIGKILL)
    call("pidfd_getfd", 438, pidfd, 0, 0)
    call("pidfd setns", 308, pidfd, 0x10000000)
import fcntl
r, w = os.pipe()
fcntl.fcntl(r, fcntl.F_SETOWN, 1)
fcntl.fcntl(r, 10, signal.SIGKILL)  # F_SETSIG
python("async", fcntl.fcntl, r, fcntl.F_SETFL, os.O_ASYNC)
os.write(w, b"x")
open("made", "w").write(json.dumps(found))
print(json.dumps(found))
"""
# Priorities are answered as if they had been set; that init's stays is looked at.
MAY_BE_DONE = ("signal ", "pidfd_open", "pidfd signal", "priority", "scheduler", "ioprio")

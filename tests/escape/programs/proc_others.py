"""Only its own processes are there; init is out of reach in every way.

#= processes: only its own
#= parent: 0
#= /proc/1/environ: refused ENOENT
#= /proc/1/mem: refused ENOENT
#= /proc/1/root: refused ENOENT
#= /proc/1/fd: refused ENOENT
#= /proc/1/task/1/maps: refused ENOENT
#= signals to init: []
#= signal to nobody's group: refused ESRCH
#= pidfd signal to init: refused EPERM
#= init of the control socket, signal: refused EPERM
#= init of the control socket, its namespaces: refused EPERM|EACCES
#= init of the control socket, its descriptors: refused EPERM
#= ptrace init: refused EPERM
#= read init's memory: refused EPERM
#= write init's memory: refused EPERM
#= advise init's memory: refused EPERM
#= release init's memory: refused EPERM
#= compare with init: refused EPERM
#= robust list of init: refused EPERM
#= limits of init: refused EPERM
#= CPUs of init: refused EPERM
#= scheduler of init: pretended
#= attributes of init: refused EPERM
#= priority of init: pretended
#= priority of the user: pretended
#= I/O priority of init: pretended
#= wait for a parent: refused ECHILD
"""

import fcntl
import os
import resource
import signal
import socket
import struct

from attempt import attempt, pretend, call, says

pids = {int(name) for name in os.listdir("/proc") if name.isdigit()}
says("processes", "only its own" if pids == {os.getpid()} else pids)
says("parent", os.getppid())
for name in ("environ", "mem", "root", "fd", "task/1/maps"):
    attempt(f"/proc/1/{name}", lambda: os.open(f"/proc/1/{name}", os.O_RDONLY))
taken = []
for number in [0, *signal.valid_signals()]:
    try:
        os.kill(1, number)
        taken.append(number)
    except PermissionError:
        pass
says("signals to init", taken)
attempt("signal to nobody's group", os.killpg, 1, 0)
init = os.pidfd_open(1)
attempt("pidfd signal to init", signal.pidfd_send_signal, init, signal.SIGTERM)
control = socket.socket(fileno=os.dup(1000))
peer = struct.unpack("=i", control.getsockopt(socket.SOL_SOCKET, 77, 4))[0]  # SO_PEERPIDFD
attempt("init of the control socket, signal", signal.pidfd_send_signal, peer, signal.SIGKILL)
attempt("init of the control socket, its namespaces", fcntl.ioctl, peer, 0xFF03)  # mount namespace
attempt("init of the control socket, its descriptors", call, "pidfd_getfd", peer, 0, 0)
attempt("ptrace init", call, "ptrace", 16, 1, 0, 0)
iov = struct.pack("=2Q", 4096, 8)
attempt("read init's memory", call, "process_vm_readv", 1, iov, 1, iov, 1, 0)
attempt("write init's memory", call, "process_vm_writev", 1, iov, 1, iov, 1, 0)
attempt("advise init's memory", call, "process_madvise", init, iov, 1, 21, 0)
attempt("release init's memory", call, "process_mrelease", init, 0)
attempt("compare with init", call, "kcmp", 1, os.getpid(), 0, 0, 0)
attempt("robust list of init", call, "get_robust_list", 1, bytes(8), bytes(8))
attempt("limits of init", resource.prlimit, 1, resource.RLIMIT_CPU, (0, 0))
attempt("CPUs of init", os.sched_setaffinity, 1, {0})
pretend("scheduler of init", os.sched_setscheduler, 1, os.SCHED_IDLE, os.sched_param(0))
attempt(
    "attributes of init", call, "sched_setattr", 1, struct.pack("=II5Q", 48, 5, 0, 0, 0, 0, 0), 0
)
pretend("priority of init", os.setpriority, os.PRIO_PROCESS, 1, 19)
pretend("priority of the user", os.setpriority, os.PRIO_USER, 0, 19)
pretend("I/O priority of init", call, "ioprio_set", 1, 1, 3 << 13)
attempt("wait for a parent", os.waitpid, -1, os.WNOHANG)

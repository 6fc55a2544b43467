"""Refusals that init answers: from many threads, from processes killed while they wait, from vfork;
after thousands of them the answers are the same.

#= threads: ['EPERM']
#= killed while they waited: 20
#= after vfork: refused
#= flood: only refusals
#= after that: refused EPERM
#= a socket after that: refused EAFNOSUPPORT
#? status=ok
"""

import errno
import os
import signal
import socket
import subprocess
import threading

from attempt import attempt, call, says

seen = set()


def refused():
    try:
        call("unshare", 0x10000000)
    except OSError as exc:
        return errno.errorcode[exc.errno]
    return "GOT THROUGH"


def worker():
    for _ in range(10):
        seen.add(refused())


threads = [threading.Thread(target=worker) for _ in range(10)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
says("threads", sorted(seen))

killed = 0
for _ in range(20):
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(w, b"x")
        while True:
            refused()
    os.read(r, 1)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(r)
    os.close(w)
    killed += 1
says("killed while they waited", killed)
done = subprocess.run(["unshare", "-U", "true"], capture_output=True)
says("after vfork", "refused" if done.returncode else "GOT THROUGH")
says("flood", "only refusals" if {refused() for _ in range(2000)} <= {"EPERM"} else "GOT THROUGH")
attempt("after that", call, "mount", b"tmpfs", b"/tmp", b"tmpfs", 0, None)
attempt("a socket after that", socket.socket, socket.AF_VSOCK, socket.SOCK_STREAM)

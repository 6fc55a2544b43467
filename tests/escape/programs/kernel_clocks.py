"""Nothing that a clock wakes can have many who wait for it: nobody pays for an interrupt's time.
Timers of event loops, threads and signals go on.

#= a timer's file: refused ENOSYS
#= one that is set: refused ENOSYS
#= a file of signals: refused ENOSYS
#= the same, older: refused ENOSYS
#= a pace: as before
#= a delay: refused ENOPROTOOPT
#= a pacemaker: refused ENOENT
#= congestion control: reno
#= a fast retransmission: refused ENOPROTOOPT
#= an event loop's timer: ran
#= a thread's timer: ran
#= a timer's signal: SIGALRM
#= a connection without delay: 1
"""

import asyncio
import signal
import socket
import threading

from attempt import attempt, call

attempt("a timer's file", call, "timerfd_create", 1, 0)
attempt("one that is set", call, "timerfd_settime", 0, 0, 0, 0)
attempt("a file of signals", call, "signalfd4", -1, bytes(8), 8, 0)
attempt("the same, older", call, "signalfd", -1, bytes(8), 8)

PACE, DELAY, RETRANSMISSION = 47, 37, 45
plain = socket.socket()
before = plain.getsockopt(socket.SOL_SOCKET, PACE)
plain.setsockopt(socket.SOL_SOCKET, PACE, 1000)
after = plain.getsockopt(socket.SOL_SOCKET, PACE)
print("a pace:", "as before" if before == after else "CHANGED")
attempt("a delay", plain.setsockopt, socket.IPPROTO_TCP, DELAY, 1000)
attempt("a pacemaker", plain.setsockopt, socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"bbr")
algorithm = plain.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
print("congestion control:", algorithm.rstrip(b"\0").decode())
attempt("a fast retransmission", plain.setsockopt, socket.IPPROTO_TCP, RETRANSMISSION, 1)


async def wait() -> None:
    await asyncio.sleep(0.001)
    print("an event loop's timer: ran")


asyncio.run(wait())
rang = threading.Event()
threading.Timer(0.001, rang.set).start()
rang.wait()
print("a thread's timer: ran")
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
signal.setitimer(signal.ITIMER_REAL, 0.001)
print("a timer's signal:", signal.sigwait({signal.SIGALRM}).name)
plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
print("a connection without delay:", plain.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

"""What programs have the kernel do for those who wait, seen from the host: no epoll descriptor of
ours is watched by another one (whoever adds to such a one waits for a mutex of the whole machine,
which a program can hold), all watches of a sandbox are bounded, and a victim on the host goes on.
programs/kernel_watches.py is the same seen from inside."""

from __future__ import annotations

import os
import re
import select
import subprocess
import threading
import time
from pathlib import Path

import pytest

from harness import PYTHON, Engine, LiveService, Service
from held import Held
from host import descendants
from live import Client

MOST, SLACK = 4096, 64


def epolls(pid: int) -> dict[int, list[int]]:
    """The epoll descriptors of a process, and the numbers that each watches."""
    found = {}
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        try:
            if os.readlink(fd) == "anon_inode:[eventpoll]":
                info = Path(f"/proc/{pid}/fdinfo/{fd.name}").read_text()
                found[int(fd.name)] = [int(n) for n in re.findall(r"^tfd: +(\d+)", info, re.M)]
        except FileNotFoundError:
            pass
    return found


def nested(pid: int) -> list[int]:
    """Those that watch something and are watched."""
    all_of_it = epolls(pid)
    watched = {fd for fds in all_of_it.values() for fd in fds}
    return [fd for fd, fds in all_of_it.items() if fds and fd in watched]


def named(engine: Engine, *names: str) -> list[int]:
    return [p.pid for p in descendants(engine.process.pid) if p.comm in names]


def test_no_epoll_descriptor_of_ours_is_watched(live_session: LiveService) -> None:
    with Client(live_session.port).box() as box:
        assert box.text("import select; e = select.epoll(); e.register(0); 1") == "1"
        names = ("cloche-server", "cloche-warden", "cloche-nursery", "cloche-init")
        for name in names:
            pids = named(live_session, name)
            assert pids and not any(nested(pid) for pid in pids), name
    live_session.check_no_leak()


# Each child has a tree of its own below one descriptor, and all add that one over and over.
TREES = """
import os, select, signal, sys
below, above = [select.epoll() for _ in range(40)], select.epoll()
for one in below: above.register(one, select.EPOLLIN)
roots, n = [select.epoll() for _ in range(20)], 0
os.mkfifo("pipe")
def fill():
    global n
    try:
        while True:
            fd = os.open("pipe", os.O_RDWR | os.O_NONBLOCK)
            for one in below:
                one.register(fd, select.EPOLLIN)
                n += 1
    except OSError:
        pass
told, tell = os.pipe()
for root in roots:
    if os.fork() == 0:
        fill()
        os.write(tell, b"%8d" % n)
        while True:
            try:
                root.register(above, select.EPOLLIN)
                root.unregister(above)
            except OSError:
                pass
print(sum(int(os.read(told, 8)) for _ in roots), flush=True)
sys.stdin.readline()
"""


def nests_s(over_s: float) -> float:
    """The longest that it took to watch an epoll descriptor with another, tried for so long."""
    above, below = select.epoll(), select.epoll()
    worst, end = 0.0, time.monotonic() + over_s
    while True:
        began = time.monotonic()
        above.register(below, select.EPOLLIN)
        worst = max(worst, time.monotonic() - began)
        above.unregister(below)
        if time.monotonic() > end:
            return worst
        threading.Event().wait(0.001)


def test_trees_of_epoll_descriptors_hold_nobody_up(engine: Engine) -> None:
    alone = nests_s(0.5)
    with Held(engine, TREES) as tree:
        total = int(tree.line())
        assert MOST / 2 < total <= MOST + SLACK
        beside = nests_s(3)
        tree.send("\n")
    assert beside < 10 * max(alone, 0.03), (beside, alone)


# As many as may wait for one file, which a clock wakes as often as it can.
CLOCKS = """
import ctypes, os, select, signal, socket, struct, sys, time
libc = ctypes.CDLL(None)
def watch(fd):
    fds = [os.dup(fd) for _ in range(66)]
    epolls = [select.epoll() for _ in range(62)]
    for epoll in epolls:
        for one in fds: epoll.register(one, select.EPOLLIN | select.EPOLLET)
    return epolls
def timer():
    fd = libc.timerfd_create(1, 0)
    yield fd
    soon = struct.pack("4q", 0, 0, 0, 150_000)
    while True: yield libc.timerfd_settime(fd, 0, soon, 0)
def signals():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    yield libc.signalfd(-1, struct.pack("Q", 1 << signal.SIGALRM - 1), 0)
    while True:
        yield signal.setitimer(signal.ITIMER_REAL, 0.00015)
        signal.sigtimedwait({signal.SIGALRM}, 0)
def pace():
    server = socket.create_server(("127.0.0.1", 0))
    ours = socket.socket()
    ours.setsockopt(socket.SOL_SOCKET, 47, 2000)
    ours.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    ours.connect(server.getsockname())
    theirs, _ = server.accept()
    yield theirs.fileno()
    ours.setblocking(False)
    while True:
        try:
            for _ in range(200): ours.send(b"x", socket.MSG_EOR)
        except BlockingIOError: pass
        try: theirs.recv(1 << 16, socket.MSG_DONTWAIT)
        except BlockingIOError: pass
        yield
        time.sleep(0.02)
clock = globals()[sys.argv[1]]()
watched = next(clock)
kept = watch(watched) if watched >= 0 else []
print(len(kept), flush=True)
while kept and not select.select([0], [], [], 0)[0]:
    next(clock)
    time.sleep(0.0005)
"""

# Which part of the time that it was charged a program did not run, one for each processor.
INTERRUPTED = """
import os, sys, time
cpu, end = int(sys.argv[1]), time.monotonic() + float(sys.argv[2])
os.sched_setaffinity(0, {cpu})
first = last = time.thread_time_ns()
lost = 0
while time.monotonic() < end:
    now = time.thread_time_ns()
    if now - last > 50_000: lost += now - last
    last = now
print(lost / (last - first))
"""


def interrupted(over_s: float) -> float:
    """The part of the most interrupted processor's time."""
    spinning = [
        subprocess.Popen([PYTHON, "-c", INTERRUPTED, str(cpu), str(over_s)], stdout=subprocess.PIPE)
        for cpu in os.sched_getaffinity(0)
    ]
    return max(float(one.communicate()[0]) for one in spinning)


@pytest.mark.parametrize("clock", ["timer", "signals", "pace"])
def test_no_clock_wakes_many_at_the_cost_of_others(engine: Engine, clock: str) -> None:
    with Held(engine, CLOCKS, args=[clock]) as hostile:
        hostile.line()
        lost = interrupted(3.0)
        hostile.send("\n")
    assert lost < 0.1, f"{lost:.0%} of a processor's time went into interrupts"


def test_descriptors_of_all_processes_together_are_bounded(service_session: Service) -> None:
    client = Client(service_session.port)

    def tries(**limits: int) -> tuple[int, str]:
        reply = client.ask("POST", "/v1/execute", {"code": "print(1)", "limits": limits})
        return reply.status, reply.body.decode()

    assert tries()[0] == tries(pids=256)[0] == tries(open_files=1024)[0] == 200
    assert tries(pids=512, open_files=128)[0] == 200
    status, text = tries(pids=512, open_files=4096)
    assert status == 422 and "limit_too_high" in text, text
    for word in ("pids of 512", "open_files of 4096", "65536", "may be 128"):
        assert word in text, (word, text)


def test_a_live_sandbox_cannot_get_them_later(live_session: LiveService) -> None:
    with Client(live_session.port).box(limits={"pids": 16, "open_files": 4096}) as box:
        reply = box.ask("PATCH", "", {"limits": {"pids": 32}})
        assert reply.status == 422 and b"may be 2048" in reply.body, reply
        assert box.ask("PATCH", "", {"limits": {"pids": 32, "open_files": 2048}}).status == 200
    live_session.check_no_leak()

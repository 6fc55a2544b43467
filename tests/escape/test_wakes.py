"""What programs have the kernel do for those who wait, seen from the host: no epoll descriptor of
ours is watched by another one (whoever adds to such a one waits for a mutex of the whole machine,
which a program can hold), all watches of a sandbox are bounded, and a victim on the host goes on.
programs/kernel_watches.py is the same seen from inside."""

from __future__ import annotations

import os
import re
import select
import threading
import time
from pathlib import Path

from harness import Engine, LiveService, Service
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

"""/proc and /sys of a sandbox: what is there is on a list, and what the machine does shows in none
of it; and who reads it in a loop does not slow down the host."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import resource
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

from harness import Engine
from held import Held

HERE = Path(__file__).resolve().parent
SYSTEM_ONLY = "/usr/bin/python3"


def judgements() -> tuple[dict[str, str], set[str]]:
    listed: dict[str, str] = {}
    needed: set[str] = set()
    for line in (HERE / "proc.expected").read_text().splitlines():
        if line.startswith("#"):
            continue
        judgement, path = line[1:].split()
        listed[path] = judgement
        if line[0] == "!":
            needed.add(path)
    return listed, needed


@contextlib.contextmanager
def looking(engine: Engine, **options: object) -> Iterator[Callable[[], dict[str, str]]]:
    with Held(engine, (HERE / "proc.py").read_text(), **options) as program:
        hosts = [name for name in os.listdir("/proc") if not name.isdigit()]
        program.send(" ".join(hosts) + "\n")

        def look() -> dict[str, str]:
            program.send("\n")
            found = json.loads(program.line())
            assert isinstance(found, dict)
            return found

        yield look
        program.end()


def busy_host(tmp_path: Path) -> None:
    """Processes, memory, files, locks, sockets, packets and disk: the kernel counts all of it."""
    for _ in range(20):
        subprocess.run(["/bin/true"], check=True)
    memory = bytearray(200 << 20)
    with contextlib.ExitStack() as held:
        for i in range(200):
            file = held.enter_context(open(tmp_path / f"f{i}", "wb"))
            fcntl.lockf(file, fcntl.LOCK_EX)
            held.enter_context(socket.socket())
        with open(tmp_path / "f0", "r+b") as file:
            file.write(memory[: 8 << 20])
            os.fsync(file.fileno())
        server = held.enter_context(socket.create_server(("127.0.0.1", 0)))
        client = held.enter_context(socket.create_connection(server.getsockname()))
        client.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                client.send(bytes(1 << 16))
        used = resource.getrusage(resource.RUSAGE_SELF).ru_utime
        while resource.getrusage(resource.RUSAGE_SELF).ru_utime < used + 0.1:
            pass


def test_everything_that_shows_is_on_the_list(engine: Engine) -> None:
    listed, needed = judgements()
    with looking(engine) as look:
        found = look()
    assert not found.keys() - listed.keys(), "not in proc.expected: judge it"
    assert not needed - found.keys()
    readable = {path for path, judgement in listed.items() if judgement == "refused"}
    assert {found[path] for path in readable & found.keys()} <= {"EACCES", "EPERM"}


def test_what_the_machine_does_does_not_show(engine: Engine, tmp_path: Path) -> None:
    listed, _ = judgements()
    with looking(engine) as look:
        before = look()
        busy_host(tmp_path)
        with Held(engine, "input()") as neighbour:  # another sandbox, and what it takes to make it
            after = look()
            neighbour.end()
    still = {path for path in before if listed.get(path) == "still"}
    assert still
    assert {path for path in still if before[path] != after[path]} == set()


def test_two_sandboxes_see_the_same(engine: Engine) -> None:
    """Which of them it is in, and how many there are, a program cannot read."""
    listed, _ = judgements()
    with looking(engine) as first, looking(engine) as second:
        one, other = first(), second()
    assert {p for p in one if listed.get(p) == "still" and one[p] != other.get(p)} == set()


# ---------------------------------------------------------------------------- its own figures

SAID = """
import os
text = dict(line.split(":") for line in open("/proc/meminfo"))
said = {name: int(text[name].split()[0]) >> 10 for name in ("MemTotal", "MemFree", "MemAvailable")}
pages = [os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_AVPHYS_PAGES")]
print(*said.values(), *(n * os.sysconf("SC_PAGE_SIZE") >> 20 for n in pages), *os.getloadavg())
"""


@pytest.mark.parametrize("memory_mb", [None, 100, 700])
def test_memory_is_its_limit(engine: Engine, memory_mb: int | None) -> None:
    options = {} if memory_mb is None else {"memory_mb": memory_mb}
    outcome = engine.execute(SAID, **options)
    words = outcome.stdout.decode().split()
    assert set(words[:5]) == {str(memory_mb or 256)} and set(words[5:]) == {"0.0"}, outcome


def test_sysinfo_writes_where_its_caller_can(engine: Engine) -> None:
    code = (
        "import ctypes, threading\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "for at in (0, 8, 2**47 - 4096, 2**64 - 8):\n"
        "    print(libc.sysinfo(ctypes.c_void_p(at)), ctypes.get_errno())\n"
        "room = ctypes.create_string_buffer(112)\n"
        "thread = threading.Thread(target=lambda: print(libc.sysinfo(room)))\n"
        "thread.start(); thread.join()\n"
        "print(int.from_bytes(room[32:40], 'little') >> 20)\n"
    )
    assert engine.execute(code).stdout.decode() == "-1 14\n" * 4 + "0\n256\n"


def test_libraries_find_what_they_look_for(engine: Engine) -> None:
    code = (
        "import os, subprocess, warnings\n"
        "warnings.simplefilter('error')\n"
        "import psutil\n"
        "for ask in (psutil.virtual_memory, psutil.swap_memory, psutil.cpu_times,\n"
        "            psutil.cpu_stats, psutil.cpu_freq, psutil.boot_time, psutil.pids,\n"
        "            psutil.disk_partitions, psutil.disk_io_counters, psutil.net_io_counters,\n"
        "            psutil.net_connections, psutil.getloadavg, psutil.Process().as_dict):\n"
        "    ask()\n"
        "print(psutil.cpu_count() == os.cpu_count(), psutil.cpu_percent(0.01))\n"
        "for command in (['free'], ['ps', 'aux'], ['uptime'], ['vmstat']):\n"
        "    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)\n"
    )
    there = subprocess.run([SYSTEM_ONLY, "-c", "import psutil"], capture_output=True)
    if there.returncode:
        pytest.skip("no psutil")
    outcome = engine.execute(code, timeout_ms=60_000, cpu_seconds=60)
    assert outcome.stdout == b"True 0.0\n", outcome.stderr


# ---------------------------------------------------------------------------- locks of the host

READERS = """
import os, sys
paths = sys.argv[1:]
def read():
    fds = []
    for path in paths:
        try: fds.append(os.open(path, os.O_RDONLY))
        except OSError: pass
    while True:
        for fd in fds:
            try: os.pread(fd, 1 << 20, 0)
            except OSError: pass
for _ in range(3):
    if os.fork() == 0: read()
print('begun', flush=True)
read()
"""


def locks_in_a_while(file: IO[bytes]) -> int:
    """Long enough for those who read to be at it."""
    end, done = time.monotonic() + 1, 0
    while time.monotonic() < end:
        fcntl.lockf(file, fcntl.LOCK_EX)
        fcntl.lockf(file, fcntl.LOCK_UN)
        done += 1
    return done


def test_readers_do_not_slow_the_locks_of_the_host(engine: Engine, tmp_path: Path) -> None:
    """Against others that only keep the processors busy."""
    done: list[int] = []
    with open(tmp_path / "lock", "wb") as file, open(tmp_path / "others", "wb") as others:
        for at in range(0, 10000, 2):  # the longer the list, the longer a reader holds it
            fcntl.lockf(others, fcntl.LOCK_EX, 1, at)
        for args in ([], ["/proc/locks"]):
            with Held(engine, READERS, args=args) as readers:
                assert readers.line() == "begun"
                done.append(locks_in_a_while(file))
    assert done[0] < 3 * done[1], done

"""The limit of memory where control groups cannot be used: see test_nocgroup.py."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator

import pytest

from harness import LONG, Engine, Result, checked, warm
from host import descendants

MB = 1 << 20
LARGE = "data"  # its kernels are born with hundreds of megabytes that they share


@pytest.fixture(scope="module")
def engine_here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    yield from warm(Engine(tmp_path_factory.mktemp("engine"), "--cgroup", "none"))


@pytest.fixture
def engine(engine_here: Engine) -> Iterator[Engine]:
    yield from checked(engine_here)


def is_out_of_memory(result: Result) -> bool:
    found = (result.status, result.limit_hit, result.exit_code, result.signal, result.exit_status)
    return found == ("memory_exceeded", "memory", 137, 9, 137)


# ---------------------------------------------------------------------------- memory

# Each holds more than 200 MB, in its own way, and then waits to be ended.
GREEDY = {
    "at once": "x = b'x' * (250 << 20)\n",
    "bit by bit": "x = []\nfor _ in range(250): x.append(bytearray(1 << 20))\n",
    "in a child": (
        "import subprocess, sys\n"
        "subprocess.run([sys.executable, '-c', 'x = b\"x\" * (250 << 20); input()'], "
        "stdin=subprocess.PIPE)\n"
    ),
    "in many children": (
        "import os\n"
        "for _ in range(10):\n"
        "    if os.fork() == 0:\n"
        "        x = b'x' * (25 << 20)\n"
        "        time.sleep(1000)\n"
    ),
    "shared by a chain of children": (
        "import os\n"
        "held = []\n"
        "for _ in range(12):\n"
        "    held.append(b'x' * (20 << 20))\n"
        "    if os.fork():\n"
        "        time.sleep(1000)\n"
    ),
    "in a shared mapping": (
        "import mmap\n"
        "m = mmap.mmap(-1, 250 << 20)\n"
        "for at in range(0, len(m), 4096): m[at] = 1\n"
    ),
    "in a System V segment": (
        "import ctypes\n"
        "libc = ctypes.CDLL(None)\n"
        "libc.shmat.restype = ctypes.c_void_p\n"
        "at = libc.shmat(libc.shmget(0, 250 << 20, 0o1600), None, 0)\n"
        "ctypes.memset(at, 1, 250 << 20)\n"
        "libc.shmdt(ctypes.c_void_p(at))\n"
    ),
    "in System V messages": (
        "import ctypes\n"
        "libc = ctypes.CDLL(None)\n"
        "m = ctypes.create_string_buffer(8 + 8192)\n"
        "m[0] = 1\n"
        "while (q := libc.msgget(0, 0o1600)) >= 0:\n"
        "    while libc.msgsnd(q, m, 8192, 0o4000) == 0: pass\n"
    ),
    "in semaphores": (
        "import ctypes\n"
        "libc = ctypes.CDLL(None)\n"
        "while libc.semget(0, 32000, 0o1600) >= 0: pass\n"
    ),
    "in the buffers of sockets": (
        "import os, socket\n"
        "def fill(s):\n"
        "    try:\n"
        "        while True: s.send(bytes(1 << 16))\n"
        "    except BlockingIOError: return s\n"
        "held = []\n"
        "for _ in range(20):\n"
        "    if os.fork(): continue\n"
        "    while True:\n"
        "        for s in socket.socketpair():\n"
        "            s.setblocking(False)\n"
        "            s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)\n"
        "            try: held.append(fill(s))\n"
        "            except OSError: time.sleep(1000)\n"
    ),
    "in sockets whose sender is gone": (
        "import os, socket\n"
        "held = []\n"
        "def hold():\n"
        "    while True:\n"
        "        try: a, b = socket.socketpair()\n"
        "        except OSError: time.sleep(1000)\n"
        "        a.setblocking(False)\n"
        "        a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)\n"
        "        try:\n"
        "            while True: a.send(bytes(1 << 16))\n"
        "        except BlockingIOError: a.close(); held.append(b)\n"
        "for _ in range(20):\n"
        "    if os.fork() == 0: hold()\n"
    ),
    "behind a first thread that has ended": (
        "import ctypes, threading\n"
        "def hold():\n"
        "    time.sleep(0.2)\n"
        "    held = b'x' * (250 << 20)\n"
        "    time.sleep(1000)\n"
        "threading.Thread(target=hold).start()\n"
        "ctypes.CDLL(None).syscall(60, 0)\n"  # exit(2) of this thread alone
    ),
    "in page tables": (
        "import mmap\n"
        "NORESERVE = 0x4000\n"
        "m = mmap.mmap(-1, 220 << 30, flags=mmap.MAP_PRIVATE | NORESERVE, "
        "prot=mmap.PROT_READ)\n"
        "m.madvise(mmap.MADV_NOHUGEPAGE)\n"
        "for at in range(0, len(m), 2 << 20): m[at]\n"
    ),
}


@pytest.mark.parametrize("code", GREEDY.values(), ids=GREEDY.keys())
def test_too_much_memory(engine: Engine, code: str) -> None:
    result = engine.run(f"import time\n{code}time.sleep(1000)\n", memory=100, **LONG)
    assert is_out_of_memory(result), result.json
    assert result.usage["memory_peak_bytes"] > 100 * MB


def test_what_is_in_tcp_counts(engine: Engine) -> None:
    """There are too few sockets to get far with them."""
    code = (
        "import socket, time\n"
        "held, sent = [], 0\n"
        "server = socket.create_server(('127.0.0.1', 0), backlog=100)\n"
        "for _ in range(40):\n"
        "    s = socket.create_connection(server.getsockname())\n"
        "    s.setblocking(False); held += [s, server.accept()]\n"
        "    try:\n"
        "        while True: sent += s.send(bytes(1 << 16))\n"
        "    except BlockingIOError: pass\n"
        "time.sleep(0.5)\n"
        "print(sent)\n"
    )
    result = engine.run(code, **LONG)
    sent = int(result.stdout)
    assert sent > 8 * MB and result.usage["memory_peak_bytes"] > sent / 2, (sent, result.json)


def test_a_memfd_is_bounded_as_files_are(engine: Engine) -> None:
    """Wherever it is: these are in no table of descriptors, but in messages that nobody reads."""
    code = (
        "import os, socket\n"
        "made, held = 0, []\n"
        "try:\n"
        "    for _ in range(50):\n"
        "        fd = os.memfd_create('x')\n"
        "        os.write(fd, bytes(2 << 20))\n"
        "        held.append(socket.socketpair())\n"
        "        socket.send_fds(held[-1][0], [b'x'], [fd])\n"
        "        os.close(fd)\n"
        "        made += 2\n"
        "except OSError as e: print(e.strerror)\n"
        "print(made <= 32)\n"
    )
    result = engine.run(code, disk=32, memory=100, **LONG)
    assert result.stdout == "No space left on device\nTrue\n", result.json


def test_a_memfd_is_a_file(engine: Engine) -> None:
    code = (
        "import mmap, os, subprocess\n"
        "fd = os.memfd_create('x', 0)\n"
        "os.write(fd, b'#!/bin/sh\\necho run\\n')\n"
        "print(os.get_inheritable(fd), os.get_inheritable(os.memfd_create('y')))\n"
        "print(mmap.mmap(fd, 0)[:2], open(f'/proc/self/fd/{fd}', 'r+b').read(2))\n"
        "print(subprocess.check_output(['cat', f'/proc/self/fd/{fd}'], pass_fds=[fd])[:4])\n"
    )
    assert engine.run(code, **LONG).stdout == "True False\nb'#!' b'#!'\nb'#!/b'\n"


def test_pages_cannot_be_buried_in_sockets_a_byte_each(engine: Engine) -> None:
    """What copies files goes on: it does without."""
    code = (
        "import ctypes, errno, os, shutil, socket\n"
        "a, b = socket.socketpair()\n"
        "r, w = os.pipe()\n"
        "os.write(w, b'x')\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "def call(*args): return libc.syscall(*args), errno.errorcode[ctypes.get_errno()]\n"
        "print(call(275, r, None, a.fileno(), None, 1, 0), call(278, w, None, 0, 0))\n"
        "open('f', 'wb').write(b'data')\n"
        "shutil.copyfile('f', 'g')\n"
        "with open('g', 'rb') as f: a.sendfile(f)\n"
        "with open('g', 'rb') as f: print(call(40, a.fileno(), f.fileno(), None, 4))\n"
        "print(b.recv(8))\n"
    )
    result = engine.run(code, **LONG)
    assert result.stdout == "(-1, 'EINVAL') (-1, 'ENOSYS')\n(-1, 'EINVAL')\nb'data'\n", result.json


def test_too_much_memory_on_the_command_line(engine: Engine) -> None:
    code = "print('begun', flush=True)\nx = b'x' * (250 << 20)\nimport time; time.sleep(1000)"
    done = engine.cli("--memory", "64", "--timeout", "60", "-c", code)
    assert (done.returncode, done.stdout) == (137, b"begun\n")
    assert b"64 MB" in done.stderr


def test_memory_of_a_large_profile(engine: Engine) -> None:
    code = "import numpy, time\nx = numpy.ones(25 << 20)\ntime.sleep(1000)"
    assert is_out_of_memory(engine.run(code, profile=LARGE, memory=100, **LONG))


def test_memory_beside_processes_that_are_slow_to_look_at(engine: Engine) -> None:
    """Details of a process take as long as it has much mapped; nobody waits for all of them."""
    code = (
        "import mmap, os, time\n"
        "with open('f', 'w+b') as f:\n"
        "    f.write(bytes(16 << 20))\n"
        "    f.flush()\n"
        "    POPULATE = 0x8000\n"
        "    flags = mmap.MAP_SHARED | POPULATE\n"
        "    maps = [mmap.mmap(f.fileno(), 0, flags, mmap.PROT_READ) for _ in range(30)]\n"
        "for _ in range(50):\n"
        "    if os.fork() == 0:\n"
        "        for m in maps:\n"
        "            m.madvise(22)\n"  # MADV_POPULATE_READ
        "        time.sleep(1000)\n"
        "time.sleep(2)\n"
        "held = []\n"
        "while len(held) < 300:\n"
        "    held.append(b'x' * (10 << 20))\n"
        "    print(len(held) * 10, flush=True)\n"
        "time.sleep(1000)\n"
    )
    result = engine.run(code, memory=200, disk=32, pids=100, **LONG)
    assert result.status == "memory_exceeded", result.json
    assert int(result.stdout.split()[-1]) < 1000, result.stdout[-100:]


def test_files_make_room_for_no_more_than_themselves(engine: Engine) -> None:
    """Mapped files do not count, but they are on one file system, whatever the number of its
    places."""
    code = (
        "import mmap, time\n"
        "with open('f', 'wb') as f: f.write(bytes(60 << 20))\n"
        "m = mmap.mmap(-1, 220 << 20)\n"
        "for at in range(0, len(m), 4096): m[at] = 1\n"
        "time.sleep(1000)\n"
    )
    assert is_out_of_memory(engine.run(code, memory=100, disk=64, **LONG))


# None of these holds as much as 200 MB that is not shared with the zygote or bounded elsewhere.
MODEST = {
    "at once": "x = b'x' * (150 << 20)\n",
    "in children": (
        "import os\n"
        "for _ in range(8):\n"
        "    if os.fork() == 0:\n"
        "        x = b'x' * (15 << 20)\n"
        "        time.sleep(0.5)\n"
        "        os._exit(0)\n"
        "for _ in range(8): os.wait()\n"
    ),
    "shared with children": (
        "import os\n"
        "x = b'x' * (120 << 20)\n"
        "for _ in range(8):\n"
        "    if os.fork() == 0:\n"
        "        time.sleep(0.5)\n"
        "        os._exit(0)\n"
        "for _ in range(8): os.wait()\n"
    ),
    "in files": (
        "import mmap\n"
        "for path in ('/workspace/f', '/tmp/f', '/dev/shm/f'):\n"
        "    with open(path, 'wb') as f: f.write(bytes(20 << 20))\n"
        "files = [open(p, 'r+b') for p in ('/workspace/f', '/tmp/f', '/dev/shm/f')]\n"
        "maps = [mmap.mmap(f.fileno(), 0) for f in files]\n"
        "for m in maps:\n"
        "    for at in range(0, len(m), 4096): m[at] = 1\n"
        "x = b'x' * (100 << 20)\n"
    ),
}


@pytest.mark.parametrize("profile", ["base", LARGE])
@pytest.mark.parametrize("code", MODEST.values(), ids=MODEST.keys())
def test_enough_memory(engine: Engine, code: str, profile: str) -> None:
    # Long enough for many looks.
    code = f"import time\n{code}time.sleep(0.5)\nprint('ended')\n"
    result = engine.run(code, profile=profile, memory=200, disk=64, **LONG)
    assert (result.status, result.limit_hit, result.stdout) == ("ok", None, "ended\n"), result.json


def test_a_pandas_job_within_its_limit(engine: Engine) -> None:
    code = (
        "import numpy as np, pandas as pd\n"
        "total = 0\n"
        "for seed in range(8):\n"
        "    r = np.random.default_rng(seed)\n"
        "    d = pd.DataFrame({'k': r.integers(0, 100, 200_000), 'v': r.random(200_000)})\n"
        "    total += len(d.groupby('k').v.agg(['sum', 'mean', 'std']))\n"
        "print(total)\n"
    )
    result = engine.run(code, profile=LARGE, memory=256, **LONG)
    assert (result.status, result.stdout) == ("ok", "800\n"), result.json
    assert 0 < result.usage["memory_peak_bytes"] < 256 * MB


def test_inherited_memory_does_not_count_when_nobody_else_has_it(
    start_engine: Callable[..., Engine],
) -> None:
    """With the zygote and its other children gone, every page is the program's own."""
    engine = start_engine("--cgroup", "none", "--profiles", LARGE, "--pool", "1")
    code = "print('up', flush=True)\ninput()\nimport time; time.sleep(0.5)\nprint('ended')"
    words = ["--stdin", "--memory", "64", "--timeout", "60", "-c", code]
    with engine.popen("--profile", LARGE, *words) as cli:
        assert cli.stdin is not None and cli.stdout is not None and cli.stderr is not None
        assert cli.stdout.readline() == b"up\n"
        family = [p for p in descendants(engine.process.pid) if p.comm.startswith("python3")]
        young = max(p.started for p in family)
        (zygote,) = (p for p in family if any(p.pid == other.ppid for other in family))
        kernels = sorted((p for p in family if p.ppid == zygote.pid), key=lambda p: p.started)
        assert kernels and kernels[-1].started == young
        os.kill(zygote.pid, signal.SIGKILL)
        for idle in kernels[1:]:
            os.kill(idle.pid, signal.SIGKILL)
        cli.stdin.write(b"\n")
        cli.stdin.close()
        assert cli.stdout.read() == b"ended\n", cli.stderr.read()
        assert cli.wait() == 0


def test_disk_is_bounded_by_its_own_quota(engine: Engine) -> None:
    code = (
        "for path in ('/workspace/f', '/tmp/f', '/dev/shm/f'):\n"
        "    try: open(path, 'wb').write(bytes(40 << 20))\n"
        "    except OSError as e: print(e.strerror)\n"
    )
    result = engine.run(code, disk=16, memory=100, **LONG)
    assert result.stdout == "No space left on device\n" * 3
    assert (result.status, result.limit_hit) == ("ok", "disk")

"""Kernels that go against the limits of their own: a neighbour in the same sandbox, with state and
a cell that runs, lives through it, and nothing of theirs stays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import LiveService, eventually
from live import Box, Client

LIMITS = {"memory_mb": 48, "pids": 24, "cpus": 0.5}
WAITS = (
    "import os, time\nopen('begun', 'w').close()\n"
    "while not os.path.exists('enough'): time.sleep(0.01)"
)

HOSTILE = {
    "a fork bomb": "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
    "children that leave the session": (
        "import os, time\nfor i in range(15):\n    if os.fork() == 0:\n        os.setsid()\n"
        "        if os.fork(): os._exit(0)\n        time.sleep(1000)\nos._exit(0)"
    ),
    "memory": "x = []\nwhile True: x.append(bytearray(4 << 20))",
    "memory of many children": (
        "import os, time\nfor i in range(10):\n    if os.fork() == 0:\n"
        "        x = bytearray(200 << 20)\n        time.sleep(1000)\nx = bytearray(600 << 20)"
    ),
    "memory that is mapped by nobody": (
        "import os\nfds = []\nwhile True:\n    fds.append(os.memfd_create('x'))\n"
        "    os.write(fds[-1], bytes(8 << 20))"
    ),
    "a full disk": "while True:\n    open('/tmp/fill', 'ab').write(bytes(1 << 20))",
    "threads": (
        "import threading, time\nwhile True:\n"
        "    try: threading.Thread(target=time.sleep, args=(1000,)).start()\n"
        "    except RuntimeError: pass"
    ),
    "processor time": ("import os\nfor i in range(10): os.fork()\nwhile True: pass"),
}


@pytest.fixture
def box(live_service: LiveService) -> Iterator[Box]:
    if not live_service.own_cgroups():
        pytest.skip("no control groups here")
    with Client(live_service.port).box(limits={"memory_mb": 512, "pids": 128, "cpus": 2}) as made:
        yield made


def has_subs(service: LiveService) -> bool:
    return any(path for top in service.own_cgroups() for path in Path(top).glob("*/k*"))


@pytest.mark.parametrize("code", HOSTILE.values(), ids=HOSTILE)
def test_a_neighbour_lives_through(live_service: LiveService, box: Box, code: str) -> None:
    box.run("mine = 'here'")
    own = box.kernel(limits=LIMITS)
    with box.later(WAITS, timeout_ms=60000) as runs:
        other = box.kernel()
        begun = "import os\nos.path.exists('begun')"
        assert eventually(lambda: box.text(begun, kernel_id=other) == "True")
        result = box.run(code, kernel_id=own, timeout_ms=3000)
        assert result["status"] in ("timeout", "memory_exceeded", "killed", "error"), result
        box.run(
            "import os\nos.path.exists('/tmp/fill') and os.unlink('/tmp/fill')", kernel_id=other
        )
        box.run("open('enough', 'w').close()", kernel_id=other)
        ran = runs.reply().json
        assert ran["status"] == "ok", ran
    assert box.text("mine") == "'here'"
    box.ask("DELETE", f"/kernels/{own}")
    assert eventually(lambda: not has_subs(live_service))
    assert eventually(lambda: box.get()["usage"]["processes"] <= 8), box.get()["usage"]


def test_the_group_is_out_of_its_reach(box: Box) -> None:
    own = box.kernel(limits=LIMITS)
    code = (
        "import os\nfound = []\nfor line in open('/proc/self/mountinfo'):\n"
        "    if ' cgroup' in line: found.append(line)\n"
        "print(found, set(l.strip().split(':')[2] for l in open('/proc/self/cgroup')))\n"
        "try: os.mkdir('/sys/fs/cgroup/x')\nexcept OSError as e: print(type(e).__name__)"
    )
    lines = box.run(code, kernel_id=own)["stdout"].splitlines()
    assert lines[0] == "[] {'/'}", lines
    assert lines[1] in ("FileNotFoundError", "PermissionError", "OSError")

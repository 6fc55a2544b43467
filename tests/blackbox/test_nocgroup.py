"""Limits where control groups cannot be used: init watches, and it is said that it only watches.

Run as root with control groups switched off; unprivileged/ has the users who never had any.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from harness import LONG, Engine, checked, failed, run_cli, warm
from host import cgroup_dirs, descendants

MB = 1 << 20
LARGE = "data"  # its kernels are born with hundreds of megabytes that they share


@pytest.fixture(scope="module")
def engine_here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    yield from warm(Engine(tmp_path_factory.mktemp("engine"), "--cgroup", "none"))


@pytest.fixture
def engine(engine_here: Engine) -> Iterator[Engine]:
    yield from checked(engine_here)


# ---------------------------------------------------------------------------- CPU, processes

SPINS = {
    "alone": "while True: pass\n",
    "in a thread": (
        "import threading\n"
        "def spin():\n    while True: pass\n"
        "threading.Thread(target=spin).start()\n"
    ),
    "in children": (
        "import os\n"
        "for _ in range(3):\n"
        "    if os.fork() == 0:\n"
        "        while True: pass\n"
        "os.wait()\n"
    ),
    "in short-lived orphans": (
        "import os\n"
        "while True:\n"
        "    if os.fork() == 0:\n"
        "        if os.fork() == 0:\n"
        "            for _ in range(2_000_000): pass\n"
        "        os._exit(0)\n"
        "    os.wait()\n"
    ),
    "in children that nobody waits for": (
        "import os, signal, time\n"
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "while True:\n"
        "    if os.fork() == 0:\n"
        "        while time.process_time() < 0.1: pass\n"
        "        os._exit(0)\n"
        "    try: os.wait()\n"
        "    except ChildProcessError: pass\n"
    ),
    "in short-lived children that nobody waits for": (
        "import os, signal, time\n"
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "while True:\n"
        "    if os.fork() == 0:\n"
        "        while time.process_time() < 0.004: pass\n"
        "        os._exit(0)\n"
        "    try: os.wait()\n"
        "    except ChildProcessError: pass\n"
    ),
}


@pytest.mark.parametrize("code", SPINS.values(), ids=SPINS.keys())
def test_cpu_seconds(engine: Engine, code: str) -> None:
    result = engine.run(code, cpu=1, timeout=60)
    assert (result.status, result.limit_hit) == ("killed", "cpu"), result.json
    assert result.usage["cpu_ms"] >= 900


def test_pids(engine: Engine) -> None:
    code = (
        "import os, time\n"
        "made = 0\n"
        "try:\n"
        "    while made < 100:\n"
        "        if os.fork() == 0: time.sleep(1000)\n"
        "        made += 1\n"
        "except BlockingIOError: print(made)\n"
    )
    assert engine.run(code, pids=16, **LONG).stdout == "15\n"


def test_a_timeout_kills_all_of_it(engine: Engine) -> None:
    code = (
        "import os, time\n"
        "for _ in range(5):\n"
        "    if os.fork() == 0: os.setsid(); time.sleep(1000)\n"
        "time.sleep(1000)\n"
    )
    assert engine.run(code, timeout=0.5).status == "timeout"


# ---------------------------------------------------------------------------- usage


def test_usage_of_a_small_program(engine: Engine) -> None:
    usage = engine.run("print('hello')").usage
    assert 0 < usage["cpu_ms"] <= 1000
    assert 0 < usage["memory_peak_bytes"] < 8 * MB


def test_usage_of_a_large_profile_is_not_what_it_inherited(engine: Engine) -> None:
    usage = engine.run("print('hello')", profile=LARGE, **LONG).usage
    assert 0 < usage["memory_peak_bytes"] < 32 * MB


def test_a_peak_is_seen_however_short(engine: Engine) -> None:
    usage = engine.run("x = bytes(80 << 20); x = bytearray(x); del x", **LONG).usage
    assert 75 * MB <= usage["memory_peak_bytes"] <= 200 * MB


def test_cpu_time_is_counted_with_that_of_children(engine: Engine) -> None:
    code = (
        "import os, time\n"
        "def burn():\n"
        "    while time.process_time() < 0.3: pass\n"
        "if os.fork() == 0:\n"
        "    burn(); os._exit(0)\n"
        "os.wait(); burn()\n"
    )
    usage = engine.run(code, **LONG).usage
    assert 550 <= usage["cpu_ms"] <= 5000


# ---------------------------------------------------------------------------- what is said


def test_it_is_said_at_the_start(engine: Engine) -> None:
    assert "warn " in engine.text()
    assert "no control groups: switched off (cgroup=none)" in engine.text()
    assert "watched, not enforced" in engine.text()


def test_no_control_group_is_made(start_engine: Callable[..., Engine]) -> None:
    engine = start_engine("--cgroup", "none", "--profiles", "base")
    assert engine.run("print(1)").stdout == "1\n"
    mine = str(next(p.pid for p in descendants(engine.process.pid) if p.comm == "cloche-warden"))
    assert not [path for path in cgroup_dirs() if path.endswith("-" + mine)]


def test_doctor_says_it() -> None:
    done = run_cli("doctor", "--json", "--cgroup", "none")
    layer = {found["name"]: found for found in json.loads(done.stdout)["layers"]}["cgroup"]
    assert (layer["state"], done.returncode) == ("weak", 0)
    assert "watched, not enforced" in layer["cost"]
    assert b"watched, not enforced" in run_cli("doctor", "--cgroup", "none").stdout


@pytest.mark.parametrize("minimum", ["cgroup", "strict,cgroup"])
def test_switched_off_is_below_a_minimum_that_names_it(minimum: str) -> None:
    doctor = run_cli("doctor", "--json", "--cgroup", "none", "--minimum", minimum)
    assert doctor.returncode == 1
    assert json.loads(doctor.stdout)["minimum"]["unmet"] == ["cgroup"]
    failed(run_cli("serve", "--cgroup", "none", "--minimum", minimum), "cgroup")

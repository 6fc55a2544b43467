#!/usr/bin/env python3
"""What kernel objects cost, and who pays: the table in SECURITY.md, for the kernel it runs on.

    tests/escape/kernel_objects.py [KIND …]

A process in a sandbox (64 MB, 256 descriptors) makes as many objects of a kind as it gets within
four seconds (programs/objects.py). `machine` is what the machine has less of while they are there,
`charged` what the engine's control groups have more. Both in MiB; what is not charged has to be
bounded by something else. To be run as root on a machine that is otherwise idle: others' memory
counts too, so the smaller of what was gone when they were made and what came back is shown.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "blackbox"), str(HERE)]

from harness import Engine, eventually  # noqa: E402
from held import Held  # noqa: E402

CODE = (HERE / "programs" / "objects.py").read_text()
MEMORY_MB = 64
CHARGES = ("memory.current", "memory.usage_in_bytes", "memory.kmem.tcp.usage_in_bytes")
USED = {"MemTotal": 1, "MemFree": -1, "Buffers": -1, "Cached": -1, "Shmem": 1}


def used() -> float:
    """MiB that are not free, nor the page cache's."""
    found = dict(re.findall(r"(\w+):\s+(\d+)", Path("/proc/meminfo").read_text()))
    return sum(int(found[name]) * sign for name, sign in USED.items()) / 1024


def charged(engine: Engine) -> float:
    engine.remember()
    files = (Path(group) / name for group in engine.own_cgroups() for name in CHARGES)
    return sum(int(file.read_text()) for file in files if file.exists()) / 2**20


def row(engine: Engine, kind: str) -> str:
    assert eventually(engine.is_full)
    machine, group = used(), charged(engine)
    with Held(engine, CODE, args=[kind], memory_mb=MEMORY_MB) as held:
        try:
            made = held.line()
        except AssertionError:  # it was killed: the limit is what bounds it
            return f"| {kind} | until the memory limit ends it | | |"
        top, group_top = used(), charged(engine)
    eventually(lambda: charged(engine) < group + 8, seconds=5.0)
    cost = min(top - machine, top - used())
    return f"| {kind} | {made} | {max(cost, 0.0):.0f} | {max(group_top - group, 0.0):.0f} |"


def main() -> None:
    kinds = sys.argv[1:] or re.findall(r'^    "(.*?)": ', CODE.split("KINDS = {")[1], re.M)
    with tempfile.TemporaryDirectory() as directory:
        engine = Engine(Path(directory), "--profiles", "base", "--pool", "1")
        try:
            print("| kind | made | machine | charged |\n|---|---|---|---|", flush=True)
            for kind in kinds:
                print(row(engine, kind), flush=True)
        finally:
            engine.stop()


if __name__ == "__main__":
    main()

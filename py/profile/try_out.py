"""Tries the modules that a profile is to preload: a program that `cloche profile` runs in a
sandbox of the profile, whose zygote has loaded none of them yet (src/profile/try_out.c).

/workspace/try_out.json says which; what comes out is result.json: how long each takes to import,
why one cannot be, which of them start threads (a zygote must have only one, so those are left to
be imported by the programs), and what a process that has loaded the others costs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, Dict, List

WORKSPACE = "/workspace"
THREADS = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}  # as there

# In a process of its own. A thread may be about to end: matplotlib starts one for its fonts.
CHILD = r"""
import importlib, json, os, sys, time

def threads():
    return len(os.listdir("/proc/self/task"))

def settled():
    for _ in range(200):
        if threads() == 1:
            break
        time.sleep(0.01)
    return threads() == 1

def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE") >> 20

found, out = [], os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
for name in json.loads(sys.argv[1]):
    start = time.perf_counter()
    try:
        importlib.import_module(name)
        why = None
    except BaseException as exc:
        why = f"{type(exc).__name__}: {exc}"[:200]
    took = round((time.perf_counter() - start) * 1000, 1)
    found.append({"name": name, "ms": took, "why": why, "threads": not settled()})
    if why or found[-1]["threads"]:
        break
costs = {}
if not found or not (found[-1]["why"] or found[-1]["threads"]):
    times = []
    for _ in range(9):
        start = time.perf_counter()
        child = os.fork()
        if child == 0:
            os._exit(0)
        times.append(time.perf_counter() - start)
        os.waitpid(child, 0)
    costs = {"fork_ms": round(sorted(times)[4] * 1000, 2), "memory_mb": resident()}
json.dump({"modules": found, "costs": costs}, out)
out.flush()
os._exit(0)
"""

FIGURE = r"""
import sys, time
try:
    import matplotlib
except ImportError:
    sys.exit(5)
import io
import matplotlib.pyplot as plt
start = time.perf_counter()
plt.plot([1, 2, 4])
plt.savefig(io.BytesIO(), format="png")
print(round((time.perf_counter() - start) * 1000))
"""


def child(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        env={**os.environ, **THREADS},
        check=False,
    )


def look(names: List[str]) -> Dict[str, Any]:
    """Those that start threads are taken out, one after the other, until there are none."""
    lazy: List[Dict[str, Any]] = []
    while True:
        done = child(CHILD, json.dumps(names))
        try:
            found: Dict[str, Any] = json.loads(done.stdout)
        except ValueError:
            last = done.stderr.strip().split("\n")[-1][:200]
            return {"error": f"Python ended with {done.returncode} while it imported: {last}"}
        last_one = found["modules"][-1] if found["modules"] else {}
        if last_one.get("why"):
            return {"error": f"{last_one['name']} cannot be imported: {last_one['why']}"}
        if not last_one.get("threads"):
            return {**found, "lazy": lazy}
        lazy.append(last_one)
        names = [name for name in names if name != last_one["name"]]


def main() -> None:
    with open(f"{WORKSPACE}/try_out.json", encoding="utf-8") as f:
        asked = json.load(f)
    result = look(asked["preload"])
    figure = child(FIGURE)
    if figure.returncode == 0:
        result["figure_ms"] = int(figure.stdout)
    elif figure.returncode != 5:
        result["figure_why"] = (figure.stderr.strip().split("\n") or [""])[-1][:200]
    try:
        with open(f"{WORKSPACE}/result.json", "w", encoding="utf-8") as f:
            json.dump(result, f)
    except OSError:
        sys.exit(3)  # its disk is full


if __name__ == "__main__":
    main()

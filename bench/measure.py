"""The measurements. Each returns plain data, which report.py prints and main.py saves.

The machine may be shared and noisy, so nothing is measured alone: a round runs every contender
once, in an order shuffled anew, and contenders are compared within the round.
"""

from __future__ import annotations

import dataclasses
import os
import random
import re
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.contenders import HELLO, HELLO_IN_DATA, PYTHON, Contender, Program, bwrap
from bench.engine import running
from bench.watch import Watch

GAP_S = 0.02  # what one contender leaves to be cleaned up is not charged to the next
SLOW_EVERY = 5  # rounds
CLIENTS = (1, 2, 4, 16)
IDLE = 100  # sandboxes whose memory is measured
IDLE_PLAIN = 20  # processes of the others
SETTLE_S = 1.5


@dataclasses.dataclass(frozen=True)
class Size:
    """How much of everything."""

    hello_rounds: int
    pandas_rounds: int
    throughput_rounds: int
    throughput_seconds: int
    memory_rounds: int
    start_rounds: int
    start_data_rounds: int


QUICK = Size(40, 6, 1, 1, 1, 6, 2)
FULL = Size(250, 40, 5, 2, 3, 25, 8)

Say = Callable[[str], None]


def percentile(values: Sequence[float], percent: int) -> float:
    """Nearest rank."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def summary(values: Sequence[float]) -> dict[str, float]:
    return {f"p{p}": percentile(values, p) for p in (10, 50, 90, 99)} | {"n": len(values)}


class Measure:
    def __init__(self, build: Path, directory: Path, size: Size, say: Say) -> None:
        self.build, self.directory, self.size, self.say = build, directory, size, say
        self.watch = Watch(build)
        self.random = random.Random(1)  # the same orders in every run of the bench

    def shuffled(self, items: Sequence[Any]) -> list[Any]:
        return self.random.sample(items, len(items))

    # ------------------------------------------------------------------ latency

    def latency(self, contenders: list[Contender], program: Program) -> dict[str, Any]:
        rounds = self.size.hello_rounds if program == HELLO else self.size.pandas_rounds
        samples: dict[str, dict[int, float]] = {c.name: {} for c in contenders}
        warm = 0
        for number in range(rounds):
            if number % 10 == 0:
                self.say(f"latency {program.name}: round {number} of {rounds}")
            for c in self.shuffled(contenders):
                if c.slow and number % SLOW_EVERY:
                    continue
                timed = self.watch.run(c.wrap, program.expect, c.how(program), runs=1)
                samples[c.name][number] = timed.ns[0] / 1e6
                warm += timed.warm
                time.sleep(GAP_S)
        return {
            "rounds": rounds,
            "warm": warm,
            "ms": {name: summary(list(s.values())) for name, s in samples.items()},
            "to_python3": {name: ratio(s, samples["python3"]) for name, s in samples.items()},
            "to_bwrap": {
                name: ratio(s, samples["bwrap"])
                for name, s in samples.items()
                if "bwrap" in samples
            },
            "samples_ms": {name: list(s.values()) for name, s in samples.items()},
        }

    # ------------------------------------------------------------------ throughput

    def throughput(self, contenders: list[Contender]) -> dict[str, Any]:
        by_name = {c.name: c for c in contenders}
        jobs: list[tuple[str, Contender, Program]] = []
        for label, name, program in (
            ("cloche base", "cloche socket", HELLO),
            ("cloche data", "cloche socket", HELLO_IN_DATA),
            ("bwrap", "bwrap", HELLO),
            ("python3", "python3", HELLO),
        ):
            if name in by_name:
                jobs.append((label, by_name[name], program))
        rates: dict[str, dict[int, list[float]]] = {j[0]: {n: [] for n in CLIENTS} for j in jobs}
        busy: dict[str, list[float]] = {j[0]: [] for j in jobs}
        for number in range(self.size.throughput_rounds):
            self.say(f"throughput: round {number} of {self.size.throughput_rounds}")
            for clients in self.shuffled(CLIENTS):
                for label, c, program in self.shuffled(jobs):
                    before = cpu_busy_s()
                    timed = self.watch.run(
                        c.wrap,
                        program.expect,
                        c.how(program),
                        seconds=self.size.throughput_seconds,
                        clients=clients,
                    )
                    time.sleep(0.3)  # for the sandboxes that are still being taken down
                    rates[label][clients].append(len(timed.ns) / timed.elapsed_ns * 1e9)
                    if clients == max(CLIENTS):
                        busy[label].append((cpu_busy_s() - before) / max(1, len(timed.ns)) * 1e3)
        return {
            "per_second": {
                label: {str(n): statistics.median(r) for n, r in by.items()}
                for label, by in rates.items()
            },
            "to_bwrap": {
                label: {
                    str(n): statistics.median(a / b for a, b in zip(by[n], rates["bwrap"][n]))
                    for n in CLIENTS
                }
                for label, by in rates.items()
                if "bwrap" in rates
            },
            "machine_cpu_ms_per_run_16": {
                label: statistics.median(values) for label, values in busy.items()
            },
        }

    # ------------------------------------------------------------------ memory

    def memory(self) -> dict[str, Any]:
        kib: dict[str, list[float]] = {}
        for number in range(self.size.memory_rounds):
            self.say(f"memory: round {number} of {self.size.memory_rounds}")
            for profile in ("base", "data"):
                kib.setdefault(f"cloche {profile}", []).append(self._sandboxes_kib(profile))
            prefixes: dict[str, list[str]] = {"python3": [], "bwrap": bwrap()}
            for name, prefix in prefixes.items():
                kib.setdefault(name, []).append(idle_kib(prefix, ""))
                kib.setdefault(f"{name} with pandas", []).append(
                    idle_kib(prefix, "import numpy, pandas; ")
                )
        return {"mib": {name: statistics.median(v) / 1024 for name, v in kib.items()}, "kib": kib}

    def _engine_kib(self, profile: str, pool: int) -> float:
        """MemAvailable while an engine with so many ready sandboxes sits idle."""
        socket = self.directory / "memory.sock"
        options = ["--profiles", profile, "--pool", str(pool), "--max-sandboxes", str(IDLE + 10)]
        with running(self.build, socket, *options, pool=pool):
            how = ["socket", str(socket), profile, HELLO.code]
            self.watch.run((), HELLO.expect, how, runs=1)
            return settled_available_kib()

    def _sandboxes_kib(self, profile: str) -> float:
        # Without a pool, with one, without: so a slow drift of the machine cancels out.
        before = self._engine_kib(profile, 0)
        full = self._engine_kib(profile, IDLE)
        after = self._engine_kib(profile, 0)
        return ((before + after) / 2 - full) / IDLE

    # ------------------------------------------------------------------ start

    def start(self, modules: dict[str, list[str]]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for profile, rounds, plain in (
            ("base", self.size.start_rounds, "pass"),
            ("data", self.size.start_data_rounds, "import " + ", ".join(modules["data"])),
        ):
            engine: dict[int, float] = {}
            yardstick: dict[int, float] = {}
            self._plain(plain)  # once for the caches of files and fonts
            for number in range(rounds):
                if number % 5 == 0:
                    self.say(f"start {profile}: round {number} of {rounds}")
                steps: list[Callable[[], None]] = [
                    lambda n=number: yardstick.update({n: self._plain(plain)}),  # type: ignore
                    lambda n=number: engine.update({n: self._first(profile)}),  # type: ignore
                ]
                for step in self.shuffled(steps):
                    step()
                    time.sleep(5 * GAP_S)
            result[profile] = {
                "engine_ms": summary(list(engine.values())),
                "plain_ms": summary(list(yardstick.values())),
                "ratio": ratio(engine, yardstick),
            }
        return result

    def _plain(self, code: str) -> float:
        return self.watch.run((), "", ["exec", PYTHON, "-c", code], runs=1).ns[0] / 1e6

    def _first(self, profile: str) -> float:
        socket = self.directory / "start.sock"
        serve = [str(self.build / "cloche"), "serve", "--http", "off", "--socket", str(socket)]
        words = [*serve, "--profiles", profile]
        return self.watch.start(HELLO.expect, socket, profile, HELLO.code, *words) / 1e6


def ratio(ours: dict[int, float], theirs: dict[int, float]) -> float:
    """The median over the rounds in which both ran."""
    return statistics.median(ours[n] / theirs[n] for n in ours if n in theirs)


def cpu_busy_s() -> float:
    """Processor time that the whole machine has spent, whoever did."""
    fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    user, nice, system, _, _, irq, softirq = map(int, fields[:7])
    return (user + nice + system + irq + softirq) / 100


def available_kib() -> float:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return float(line.split()[1])
    raise RuntimeError("no MemAvailable in /proc/meminfo")


def free_kib() -> float:
    """MemAvailable, and what it leaves out: free pages that each processor keeps in a list."""
    zones = Path("/proc/zoneinfo").read_text()
    pages = sum(map(int, re.findall(r"^\s+count:\s+(\d+)$", zones, re.MULTILINE)))
    return available_kib() + pages * os.sysconf("SC_PAGE_SIZE") / 1024


def settled_kib(read: Callable[[], float]) -> float:
    time.sleep(SETTLE_S)
    values = []
    for _ in range(20):
        values.append(read())
        time.sleep(0.05)
    return statistics.median(values)


def settled_available_kib() -> float:
    return settled_kib(available_kib)


def idle_kib(prefix: Sequence[str], code: str) -> float:
    """Memory of one more interpreter that waits for its input, as the others would keep it."""
    words = [*prefix, PYTHON, "-c", f"{code}print('ready', flush=True); input()"]
    before = settled_kib(free_kib)
    waiting = [
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(IDLE_PLAIN)
    ]
    try:
        for process in waiting:
            assert process.stdout is not None
            if process.stdout.readline() != b"ready\n":
                raise RuntimeError(f"{words[0]} did not start")
        full = settled_kib(free_kib)
    finally:
        for process in waiting:
            process.communicate(b"\n")
    # As with ours: what an engine before left behind comes back while we measure.
    return ((before + settled_kib(free_kib)) / 2 - full) / IDLE_PLAIN

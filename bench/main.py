"""The command line of bench/run."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from client import ROOT

from bench import report
from bench.contenders import HELLO, PANDAS, PYTHON, gather
from bench.engine import running
from bench.measure import FULL, QUICK, Measure

SECTIONS = ("latency", "throughput", "memory", "start")


def machine() -> dict[str, Any]:
    """What the figures depend on; no names, no paths."""
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    version = subprocess.run([PYTHON, "-V"], capture_output=True, text=True, check=True).stdout
    return {
        "cores": os.cpu_count(),
        "memory_mb": pages * size >> 20,
        "kernel": platform.release(),
        "python": version.split()[1],
        "load": os.getloadavg()[0],
    }


def modules(build: Path) -> dict[str, list[str]]:
    """What each profile imports ahead of time."""
    words = [str(build / "cloche"), "config", "--json"]
    config = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
    return {name: p["preload"] for name, p in config["profiles"].items()}


@contextlib.contextmanager
def workplace() -> Iterator[Path]:
    """A directory for a while. The peers mount the host's /usr below it, in namespaces of their
    own; should one have left a mount here, nothing is removed."""
    directory = Path(tempfile.mkdtemp(prefix="cloche-bench-"))
    try:
        yield directory
    finally:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
        left = [line.split()[4] for line in lines if line.split()[4].startswith(str(directory))]
        if left:
            say(f"mounts are left, so the directory stays: {' '.join(left)}")
        else:
            shutil.rmtree(directory)


def parse(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/run", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a minute or two, coarser")
    parser.add_argument(
        "--sections", default=",".join(SECTIONS), help="some of %(default)s", metavar="LIST"
    )
    parser.add_argument(
        "--contenders",
        default="",
        help="some of the names in the tables, separated by commas; python3 is always there",
        metavar="LIST",
    )
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "gcc", metavar="DIR")
    parser.add_argument("--no-save", action="store_true", help="print only: no results, no plot")
    options = parser.parse_args(words)
    unknown = set(options.sections.split(",")) - set(SECTIONS)
    if unknown:
        parser.error(f"there is no section {', '.join(sorted(unknown))}")
    return options


def say(line: str) -> None:
    print(f"bench: {line}", file=sys.stderr, flush=True)


def measure(options: argparse.Namespace, directory: Path, data: dict[str, Any]) -> None:
    """Fills `data` section by section, so that what was measured before a failure is not lost."""
    build: Path = options.build.resolve()
    size = QUICK if options.quick else FULL
    sections = options.sections.split(",")
    only = {name for name in options.contenders.split(",") if name}
    m = Measure(build, directory, size, say)
    data["date"] = datetime.date.today().isoformat()
    data["quick"] = options.quick
    data["machine"] = machine()
    if {"latency", "throughput"} & set(sections):
        with running(build, directory / "engine.sock") as engine:
            with gather(build, directory, engine, only) as (contenders, missing):
                data["missing"] = missing
                if "latency" in sections:
                    data["latency"] = {}
                    for program in (HELLO, PANDAS):
                        data["latency"][program.name] = m.latency(contenders, program)
                if "throughput" in sections:
                    data["throughput"] = m.throughput(contenders)
    if "memory" in sections:
        data["memory"] = m.memory()
    if "start" in sections:
        data["start"] = m.start(modules(build))
    data["verdicts"] = [vars(v) for v in report.verdicts(data)]


def save(data: dict[str, Any]) -> None:
    what = data["machine"]
    name = f"{data['date']}-{what['kernel']}-{what['cores']}.json"
    path = ROOT / "bench" / "results" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(data, indent=1) + "\n")
    say(f"saved {path.relative_to(ROOT)}")
    if all(section in data for section in SECTIONS):
        report.plot(data, ROOT / "docs" / "bench.png")
        say("drew docs/bench.png")


def main(words: list[str]) -> int:
    options = parse(words)
    if not (options.build / "bench_client").exists():
        print(f"bench/run: {options.build} holds no build; script/build makes it", file=sys.stderr)
        return 2
    data: dict[str, Any] = {}
    try:
        with workplace() as directory:
            measure(options, directory, data)
    finally:
        if data:
            print(report.text(data))
    if not options.no_save:
        save(data)
    return 0

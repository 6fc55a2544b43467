"""What an engine holds, as the host sees it: processes, descriptors, cgroups, mounts."""

from __future__ import annotations

import dataclasses
import os
import re
from collections import Counter
from pathlib import Path


@dataclasses.dataclass(frozen=True)
class Process:
    pid: int
    ppid: int
    started: int  # with the pid it names a process for ever
    state: str
    comm: str

    @property
    def role(self) -> str:
        if self.state in "ZX":
            return "zombie"
        try:
            return os.path.basename(os.readlink(f"/proc/{self.pid}/exe"))
        except OSError:
            return self.comm


def read_process(pid: int) -> Process | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    comm, rest = stat[stat.index("(") + 1 : stat.rindex(")")], stat[stat.rindex(")") + 2 :].split()
    return Process(pid, int(rest[1]), int(rest[19]), rest[0], comm)


def processes() -> list[Process]:
    found = (read_process(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return [process for process in found if process is not None]


def children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            found += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_text().split())
    except OSError:  # it has just ended
        pass
    return found


def descendants(pid: int) -> list[Process]:
    """The process and all below it. Much quicker than to look at every process of the machine."""
    first = read_process(pid)
    found = [first] if first else []
    for process in found:  # grows while it is walked
        found += filter(None, map(read_process, children(process.pid)))
    return found


def namespace_pids(pid: int) -> list[int]:
    """The process's pids from the host's namespace inwards."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(errors="replace")
    except OSError:
        return []
    found = re.search(r"^NSpid:\s+(.*)$", status, re.MULTILINE)
    return [int(word) for word in found[1].split()] if found else []


def is_first(pid: int) -> bool:
    """Whether it is the init of a pid namespace of its own."""
    return namespace_pids(pid)[1:][-1:] == [1]


def environment(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/environ").read_text(errors="replace")
    except OSError:
        return ""


def is_alive(process: Process) -> bool:
    now = read_process(process.pid)
    return now is not None and now.started == process.started and now.state not in "ZX"


def cgroup_dirs() -> set[str]:
    """The directories of engines in every cgroup hierarchy, not what is below them."""
    found: set[str] = set()
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        if fields[fields.index("-") + 1] not in ("cgroup", "cgroup2"):
            continue
        for directory, names, _ in os.walk(fields[4]):
            ours = [name for name in names if name.startswith("cloche-")]
            found.update(os.path.join(directory, name) for name in ours)
            names[:] = [name for name in names if name not in ours]
    return found


def mounts(pid: int | str = "self") -> Counter[str]:
    """Mount points, without those that others on this machine make (containers, benches)."""
    try:
        lines = Path(f"/proc/{pid}/mountinfo").read_text().splitlines()
    except OSError:
        return Counter()
    points = (line.split()[4] for line in lines)
    return Counter(p for p in points if not p.startswith(("/tmp/", "/var/", "/run/")))


def descriptors(pid: int) -> Counter[str]:
    """Open files by kind; the knobs of a cgroup stay open once its slot was used, so they do not
    count."""
    kinds: Counter[str] = Counter()
    directory = f"/proc/{pid}/fd"
    try:
        names = os.listdir(directory)
    except OSError:
        return kinds
    for name in names:
        try:
            target = os.readlink(f"{directory}/{name}")
        except OSError:
            continue
        if "/cgroup" in target or "cloche-" in target:
            continue
        # a table of a network namespace loses its name when the one who opened it moves on
        kinds[re.sub(r"\d+", "N", target.removesuffix(" (deleted)"))] += 1
    return kinds

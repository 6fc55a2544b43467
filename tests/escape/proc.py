"""What of /proc and /sys can a sandbox see, and does it stay as it is?

Runs inside a sandbox. The first line of input names what the host has at the top of its /proc. Then
for every further line it prints a JSON object: each path that is there, below /proc (a process's
own entries under "self", numbers as N) and /sys, and a digest of what a reader gets: its bytes, or
the name of the error. proc.expected has the judgement on each path.
"""

import errno
import hashlib
import json
import os
import stat
import sys
from collections.abc import Iterator

MOST = 1 << 20
# Streams, or larger than they are worth; that they are there is enough.
NOT_READ = {"self/mem", "self/pagemap", "self/clear_refs", "self/environ", "self/auxv"}
OWN_DIRECTORIES = {"self/task", "self/fd", "self/fdinfo", "self/map_files", "self/cwd", "self/root"}


def digest(path: str) -> str:
    try:
        if stat.S_ISLNK(os.lstat(path).st_mode):
            return "link"
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as e:
        return errno.errorcode[e.errno or 0]
    try:
        text = b""
        while len(text) < MOST and (more := os.read(fd, 1 << 16)):
            text += more
        return hashlib.sha256(text).hexdigest()[:16]
    except OSError as e:
        return errno.errorcode[e.errno or 0]
    finally:
        os.close(fd)


def below(top: str, name: str) -> Iterator[tuple[str, str]]:
    path = f"{top}/{name}"
    if not os.path.islink(path) and os.path.isdir(path):
        yield f"{name}/", "directory"
        if name in OWN_DIRECTORIES:
            return
        try:
            for inner in sorted(os.listdir(path)):
                yield from below(top, f"{name}/{inner}")
        except OSError as e:
            yield f"{name}/", errno.errorcode[e.errno or 0]
    elif os.path.lexists(path):
        yield name, "not read" if name in NOT_READ else digest(path)


def look(names: list[str]) -> dict[str, str]:
    seen = {n for n in os.listdir("/proc") if not n.isdigit()} | set(names)
    found: dict[str, str] = {}
    for name in sorted(seen - {"self", "thread-self", "net"}):
        found.update(below("/proc", name))
    for name in sorted(os.listdir("/proc/self")):
        found.update(below("/proc", f"self/{name}"))
    for name in os.listdir("/sys"):
        found[f"/sys/{name}"] = "there"
    return found


hosts = sys.stdin.readline().split()
for _ in sys.stdin:
    print(json.dumps(look(hosts)), flush=True)

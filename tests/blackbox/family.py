"""The processes of an engine by what they are, programs to load it with, profiles that start at
once."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from client import Client, Outcome
from harness import Engine, eventually
from host import Process, descendants, is_first, namespace_pids, read_process

# Profiles whose imports take no time: the tests are about processes, not about libraries.
QUICK: dict[str, Any] = {
    "data": None,
    "base": {"preload": ["json"], "pool": 2},
    "tiny": {"preload": ["colorsys"], "pool": 2},
}
PROFILES = ("base", "tiny")  # in the order in which the engine numbers them

# Waits for a line and leaves with a status that only the one who reaps it can tell.
HELD = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(15, {name!r}.encode())  # PR_SET_NAME: how the test finds it
print("held", flush=True)
line = sys.stdin.readline()
print("got", line.strip(), flush=True)
os._exit(7)
"""


def write_config(directory: Path, profiles: dict[str, Any], **settings: Any) -> str:
    path = directory / "cloche.json"
    path.write_text(json.dumps({"profiles": profiles, **settings}))
    return str(path)


# ---------------------------------------------------------------------------- who is who


def words(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")
    except OSError:
        return []


class Family:
    """One look at an engine's processes."""

    def __init__(self, engine: Engine) -> None:
        self.everyone = [p for p in engine.remember() if p.state not in "ZX"]

    def warden(self) -> list[Process]:
        return [p for p in self.everyone if p.role == "cloche-warden"]

    def server(self) -> list[Process]:
        return [p for p in self.everyone if p.role == "cloche-server"]

    def gate(self) -> list[Process]:
        return [p for p in self.everyone if p.role == "cloche-gate"]

    def nursery(self, profile: int) -> list[Process]:
        wardens = {p.pid for p in self.warden()}
        return [
            p
            for p in self.everyone
            if p.ppid in wardens
            and words(p.pid)[1:3] == ["nurse", str(profile)]
            and is_first(p.pid)  # and not the one that gives birth to it
        ]

    def _below(self, profile: int) -> list[tuple[Process, list[int]]]:
        """Processes of the nursery with their pids counted from inside it."""
        found = []
        for nursery in self.nursery(profile):
            depth = len(namespace_pids(nursery.pid))
            if depth:
                for process in descendants(nursery.pid)[1:]:
                    pids = namespace_pids(process.pid)
                    found.append((process, pids[depth - 1 :]))
        return found

    def zygotes(self, profile: int) -> list[Process]:
        return [
            p
            for p, pids in self._below(profile)
            if len(pids) == 1 and any(word.endswith("cell/zygote.py") for word in words(p.pid))
        ]

    def inits(self, profile: int) -> list[Process]:
        return [p for p, pids in self._below(profile) if len(pids) > 1 and pids[-1] == 1]

    def kernels(self, profile: int) -> list[Process]:
        return [p for p, pids in self._below(profile) if len(pids) > 1 and pids[-1] != 1]


def named(engine: Engine, name: str) -> Process:
    """The kernel that has given itself this name."""

    def find() -> list[Process]:
        return [p for p in engine.remember() if p.comm == name and p.state not in "ZX"]

    found = eventually(find)
    assert len(found) == 1, found
    return found[0]


def init_of(engine: Engine, kernel: Process) -> Process:
    space = os.readlink(f"/proc/{kernel.pid}/ns/pid")
    for process in engine.remember():
        pids = namespace_pids(process.pid)
        with contextlib.suppress(OSError):
            if pids and pids[-1] == 1 and os.readlink(f"/proc/{process.pid}/ns/pid") == space:
                return process
    raise AssertionError(f"no init for {kernel}")


def kill(process: Process) -> None:
    """kill -9, unless it is gone already."""
    now = read_process(process.pid)
    if now is not None and now.started == process.started:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)


def one(find: Callable[[], list[Process]]) -> Process:
    """The process, once it is there."""
    found = eventually(find)
    assert found, "no such process"
    return found[0]


# ---------------------------------------------------------------------------- programs


class Held:
    """A program that runs until it is given a line."""

    serial = 0

    def __init__(self, engine: Engine, profile: str) -> None:
        Held.serial += 1
        self.name = f"held-{os.getpid() % 10000}-{Held.serial}"
        self.profile = profile
        self.client: Client = engine.raw()
        self.outcome = Outcome()
        self.client.start(
            HELD.format(name=self.name), profile=profile, timeout_ms=60000, stdin=True
        )
        while b"held\n" not in self.outcome.stdout:
            message = self.client.recv()
            assert message is not None, "hung up"
            assert not Client._take(message, self.outcome), self.outcome
            message.close()

    def __enter__(self) -> Held:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def release(self, word: str) -> None:
        """It must end as it should, whatever happened around it."""
        data = word.encode() + b"\n"
        self.client.send("C_STDIN", len(data).to_bytes(4, "little") + data)
        outcome = self.client.finish(self.outcome)
        assert outcome.error is None, outcome
        assert outcome.stdout == b"held\ngot " + word.encode() + b"\n", outcome
        assert outcome.exit_status == 7, outcome

    def end(self) -> str:
        """What became of it: how(outcome), or "hung up"."""
        try:
            return how(self.client.finish(self.outcome))
        except (AssertionError, ConnectionError) as exc:
            if isinstance(exc, AssertionError) and "hung up" not in str(exc):
                raise
            return "hung up"


def how(outcome: Outcome) -> str:
    if outcome.error is not None:
        assert outcome.error["message"], outcome
        return str(outcome.error["kind"])
    return str(outcome.result["status"])


class Load:
    """Clients that run small programs one after the other and check every answer."""

    def __init__(self, engine: Engine, clients: int = 4) -> None:
        self.engine = engine
        self.ends: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.stopping = threading.Event()
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self._go, args=(i,)) for i in range(clients)]

    def __enter__(self) -> Load:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        for thread in self.threads:
            thread.join()

    def _go(self, client: int) -> None:
        number = client
        while not self.stopping.is_set():
            number += 1000
            try:
                end = self._one(number, PROFILES[number // 1000 % 2])
            except Exception as exc:
                with self.lock:
                    self.wrong.append(f"{type(exc).__name__}: {exc}")
                return
            with self.lock:
                self.ends[end] += 1
            if end == "refused":  # the engine is down for good
                return

    def _one(self, number: int, profile: str) -> str:
        try:
            outcome = self.engine.execute(f"print({number})", profile=profile, timeout_ms=60000)
        except (ConnectionRefusedError, FileNotFoundError):
            return "refused"
        except ConnectionError:
            return "hung up"
        except AssertionError as exc:
            if "hung up" in str(exc):
                return "hung up"
            raise
        end = how(outcome)
        if end == "ok":
            assert outcome.stdout == b"%d\n" % number, outcome
        return end

    def check(self, *allowed: str) -> None:
        """Nothing ended otherwise than well or in one of these ways, and nothing hung."""
        assert not self.wrong, self.wrong[:3]
        surprising = {k: n for k, n in self.ends.items() if k not in ("ok", *allowed)}
        assert not surprising, (surprising, self.ends)
        assert self.ends["ok"] > 0


# ---------------------------------------------------------------------------- at rest


def at_rest(engine: Engine) -> dict[str, Any]:
    """The footprint without the names that follow from a warden's pid, and without what others on
    this machine unmounted meanwhile."""
    now = engine.footprint()
    for kind in ("mounts", "warden mounts"):
        now[kind] = {k: n for k, n in now[kind].items() if n > engine.mounts_before.get(k, 0)}
    now["cgroups"] = sorted(re.sub(r"cloche-\d+", "cloche-N", path) for path in now["cgroups"])
    return now


def come_to_rest(engine: Engine) -> dict[str, Any]:
    assert eventually(engine.is_full), engine.info()
    last: dict[str, Any] = {}
    same = 0

    def quiet() -> bool:
        nonlocal last, same
        engine.drain()
        now = at_rest(engine)
        same = same + 1 if now == last else 0
        last = now
        return same >= 10

    assert eventually(quiet, step_s=0.03), last
    return last


def check_back_at(engine: Engine, before: dict[str, Any]) -> None:
    now: dict[str, Any] = {}

    def same() -> bool:
        nonlocal now
        engine.drain()
        now = at_rest(engine)
        return now == before

    if not eventually(same, seconds=60.0, step_s=0.05):
        changed = {k: (before[k], now[k]) for k in before if before[k] != now[k]}
        raise AssertionError(f"left (before, now): {changed}\n{engine.text()[-3000:]}")


@contextlib.contextmanager
def drained(engine: Engine) -> Iterator[None]:
    """Keeps the engine's log pipe empty while the body waits for something else."""
    stopping = threading.Event()

    def go() -> None:
        while not stopping.is_set():
            if not engine.drain(0.1):
                return

    thread = threading.Thread(target=go)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()

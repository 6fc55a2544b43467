"""What the black-box tests stand on: a real engine, its command line, a raw client, a leak check.

The engine is started as a user would start it (`cloche serve --socket PATH`) and nothing in it is
replaced. `Engine.run` and `Engine.cli` go through the command line; `Engine.execute` and
`Engine.raw` speak the socket's protocol (client.py), for speed and for clients that misbehave.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import re
import select
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from client import DEADLINE_S, ROOT, Client, Outcome
from host import Process, cgroup_dirs, descendants, descriptors, is_alive, is_first, mounts

PYTHON = "/usr/bin/python3"  # the yardstick; python3 in PATH may be a wrapper
START_DEADLINE_S = 300.0  # the data profile imports much, and the machine may be busy
LONG: dict[str, Any] = {
    "timeout": 60,
    "cpu": 60,
}  # options for what takes its time on a busy machine


def cloche_bin() -> Path:
    return Path(os.environ.get("CLOCHE_BIN") or ROOT / "build" / "gcc" / "cloche").resolve()


# ---------------------------------------------------------------------------- waiting


class Deadline:
    def __init__(self, seconds: float = DEADLINE_S) -> None:
        self.end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        return max(0.0, self.end - time.monotonic())

    @property
    def over(self) -> bool:
        return self.left == 0.0


def eventually(check: Callable[[], Any], seconds: float = DEADLINE_S, step_s: float = 0.01) -> Any:
    """Polls what has no event to wait for (a process list, a file system) until it is true."""
    deadline = Deadline(seconds)
    while True:
        value = check()
        if value or deadline.over:
            return value
        select.select([], [], [], step_s)


def turns(least: int, is_enough: Callable[[], bool]) -> Iterator[int]:
    """So many, and more until it is enough: of two that race, one may run alone for a while."""
    deadline = Deadline()
    for turn in itertools.count():
        if turn >= least and (is_enough() or deadline.over):
            return
        yield turn


# ---------------------------------------------------------------------------- the command line


@dataclasses.dataclass
class Result:
    """What `cloche run --json` gave."""

    exit_status: int
    json: dict[str, Any]
    cli_stderr: str

    def __getattr__(self, name: str) -> Any:
        try:
            return self.json[name]
        except KeyError:
            raise AttributeError(f"no {name} in {str(self.json)[:2000]}") from None


def flags(options: dict[str, Any]) -> list[str]:
    """timeout=3, env=["A=1"], interactive_last_line=True → what the command line calls them."""
    words: list[str] = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            words.append(flag)
        elif value is None or value is False:
            continue
        elif isinstance(value, (list, tuple)):
            for item in value:
                words += [flag, str(item)]
        else:
            words += [flag, str(value)]
    return words


def clean_env(**more: str) -> dict[str, str]:
    """The environment for the command line, without what would lead it elsewhere."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("CLOCHE_", "PYTHON"))}
    for name in ("HOST", "PORT"):
        env.pop(name, None)
    env["CLOCHE_HTTP"] = "off"  # one port would not be enough for all engines; see Service
    env["CLOCHE_LIVE"] = "off"  # twice as many interpreters; see LiveService
    env.update(more)
    return env


@dataclasses.dataclass(frozen=True)
class Caller:
    """Who starts cloche: by default we ourselves, the program that was built."""

    program: Path | None = None
    before: tuple[str, ...] = ()  # words that start the program as somebody else
    env: dict[str, str] = dataclasses.field(default_factory=dict)

    def command(self, *words: str | bytes | os.PathLike[str]) -> list[Any]:
        return [*self.before, self.program or cloche_bin(), *words]

    def environment(self) -> dict[str, str]:
        return clean_env(**{"CLOCHE_TIMEOUT_MS": "60000", **self.env})  # it may be busy


OURSELVES = Caller()
AS_USUAL = Caller(env={"CLOCHE_TIMEOUT_MS": ""})  # programs have the two seconds of the default


def run_cli(
    *words: str | bytes | os.PathLike[str],
    stdin: bytes | None = None,
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
    caller: Caller = OURSELVES,
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        caller.command(*words),
        input=b"" if stdin is None else stdin,
        capture_output=True,
        timeout=DEADLINE_S,
        env=env if env is not None else caller.environment(),
        cwd=cwd,
        check=False,
    )


def failed(done: subprocess.CompletedProcess[bytes], *words: str) -> str:
    """cloche's own failure: 125, one line that says what, nothing ran."""
    message = done.stderr.decode()
    assert done.returncode == 125, (done.returncode, message)
    assert done.stdout == b"", done.stdout
    assert message.startswith("cloche: ") and message.count("\n") == 1 and message.endswith("\n")
    for word in words:
        assert word.lower() in message.lower(), message
    return message


def tree(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


# ---------------------------------------------------------------------------- the engine


class Engine:
    """One engine of our own, on a socket of its own."""

    def __init__(self, directory: Path, *options: str, caller: Caller = OURSELVES) -> None:
        self.socket = directory / "engine.sock"
        self.caller = caller
        self.log = b""
        self.mounts_before = mounts()
        self.process = subprocess.Popen(
            caller.command("serve", "--socket", self.socket, *options),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=caller.environment(),
            cwd=directory,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        self.output = self.process.stdout.fileno()
        os.set_blocking(self.output, False)
        self.known: set[Process] = set()
        self.settled: dict[str, Any] = {}
        try:
            self._wait_ready()
        except BaseException:
            self.kill()
            raise

    # -- life

    def drain(self, wait_s: float = 0.0) -> bool:
        """Takes what the engine logged, so that it never blocks on us; False at its end."""
        if not select.select([self.output], [], [], wait_s)[0]:
            return True
        try:
            data = os.read(self.output, 1 << 16)
        except BlockingIOError:  # another thread was faster
            return True
        self.log += data
        return bool(data)

    def _wait_ready(self) -> None:
        deadline = Deadline(START_DEADLINE_S)
        while not self._is_ready():
            alive = self.drain(min(0.2, deadline.left))
            if not alive or deadline.over:
                raise AssertionError(f"the engine did not start:\n{self.text()}")

    def _is_ready(self) -> bool:
        # Its own word: the socket may still be that of an engine that is being taken down.
        if b"listening on" not in self.log:
            return False
        try:
            profiles = self.info()["profiles"]
        except (ConnectionError, FileNotFoundError):
            return False
        return all(profile["state"] in ("ready", "broken") for profile in profiles)

    def text(self) -> str:
        return self.log.decode(errors="replace")

    def remember(self) -> list[Process]:
        found = descendants(self.process.pid)
        self.known.update(found)
        return found

    def stop(self, sig: int = signal.SIGTERM) -> int:
        """Ends it as an operator would, and checks that nothing is left."""
        self.remember()
        if self.process.poll() is None:
            self.process.send_signal(sig)
        status = self._reap()
        self.check_gone()
        return status

    def _reap(self) -> int:
        deadline = Deadline()
        while self.drain(min(0.2, deadline.left)):  # its end is the end of all who hold the pipe
            assert not deadline.over, f"the engine did not stop:\n{self.text()}"
        return self.process.wait(timeout=DEADLINE_S)

    def kill(self) -> None:
        """For a fixture that must not fail a second time."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def own_cgroups(self) -> list[str]:
        """Control groups are named after their warden; other engines may come and go meanwhile, and
        have pids that our sandboxes had."""
        wardens = {str(p.pid) for p in self.known if p.comm in ("cloche", "cloche-warden")}
        return sorted(path for path in cgroup_dirs() if path.rpartition("-")[2] in wardens)

    def check_gone(self) -> None:
        def left() -> dict[str, Any]:
            found = {
                "processes": [process for process in self.known if is_alive(process)],
                "cgroups": self.own_cgroups(),
                "mounts": sorted((mounts() - self.mounts_before).elements()),
                "socket": self.socket.exists(),
            }
            return {name: value for name, value in found.items() if value}

        assert eventually(lambda: not left()), f"left behind: {left()}\n{self.text()[-4000:]}"
        assert not re.search(r"Sanitizer|runtime error:", self.text()), self.text()[-8000:]

    # -- use

    def raw(self) -> Client:
        return Client(self.socket)

    def nurseries(self) -> list[int]:
        """Those that are born. A child of the warden has its name until it executes another, and
        what gives birth to a nursery is its brother for a while."""
        found = self.remember()
        wardens = {p.pid for p in found if p.role == "cloche-warden"}
        mine = [p.pid for p in found if p.role == "cloche-nursery" and p.ppid in wardens]
        return sorted(filter(is_first, mine))

    def info(self) -> dict[str, Any]:
        with self.raw() as client:
            return client.info()

    def execute(self, code: str | bytes, **options: Any) -> Outcome:
        """A whole run through the raw client."""
        with self.raw() as client:
            client.start(code, **options)
            return client.finish()

    def cli(
        self, *words: str | os.PathLike[str], **options: Any
    ) -> subprocess.CompletedProcess[bytes]:
        """`cloche run --socket …` with these words."""
        return run_cli("run", "--socket", self.socket, *words, caller=self.caller, **options)

    def popen(self, *words: str | os.PathLike[str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self.caller.command("run", "--socket", self.socket, *words),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.caller.environment(),
            process_group=0,
        )

    def run(
        self,
        code: str,
        *args: str,
        stdin: bytes | str | None = None,
        **options: Any,
    ) -> Result:
        """`cloche run --json -c CODE -- ARGS` → the parsed result."""
        data = stdin.encode() if isinstance(stdin, str) else stdin
        words = [*flags(options), *(["--stdin"] if data is not None else []), "--json", "-c", code]
        done = self.cli(*words, *(["--", *args] if args else []), stdin=data)
        try:
            parsed = json.loads(done.stdout)
        except ValueError:
            raise AssertionError(f"not JSON: {done.stdout!r}\n{done.stderr!r}") from None
        return Result(done.returncode, parsed, done.stderr.decode())

    # -- leaks

    def footprint(self) -> dict[str, Any]:
        """What must come back to where it was once a program has ended."""
        family = self.remember()
        own = [p for p in family if p.role.startswith("cloche")]
        held: Counter[str] = Counter()
        inside: Counter[str] = Counter()
        for process in own:
            if process.role in ("cloche-warden", "cloche-server"):
                kinds = descriptors(process.pid)
                held.update({f"{process.role} {kind}": n for kind, n in kinds.items()})
            if process.role == "cloche-warden":
                inside.update(mounts(process.pid))
        return {
            "processes": dict(Counter(process.role for process in family)),
            "descriptors": dict(held),
            "cgroups": self.own_cgroups(),
            "mounts": dict(mounts()),
            "warden mounts": dict(inside),
        }

    def is_full(self) -> bool:
        """Whether every pool has what it wants, as far as there is room for it."""
        info = self.info()
        pools = [p for p in info["profiles"] if p["state"] != "broken"]
        if any(p["making"] or p["queued"] for p in pools):
            return False
        is_all = all(p["ready"] >= p["pool"] for p in pools)
        return is_all or bool(info["sandboxes"] >= info["max_sandboxes"])

    def settle(self) -> None:
        """Remembers the footprint at rest: the pool is full and nothing is being taken down."""
        assert eventually(self.is_full), f"the pools are not filled: {self.info()}"
        last: dict[str, Any] = {}
        same = 0

        def quiet() -> bool:
            nonlocal last, same
            self.drain()
            now = self.footprint()
            same = same + 1 if now == last else 0
            last = now
            return same >= 10

        assert eventually(quiet, step_s=0.02), f"the engine does not come to rest: {last}"
        self.settled = last

    def check_no_leak(self) -> None:
        before = self.settled
        now: dict[str, Any] = {}

        def same() -> bool:
            nonlocal now
            self.drain()
            now = self.footprint()
            return now == before

        # Sooner than a forgotten program would end by itself, later than a ping finds nobody.
        if not eventually(same, seconds=50.0):
            changed = {k: (before[k], now[k]) for k in before if before[k] != now[k]}
            raise AssertionError(f"leak (before, now): {changed}\n{self.text()[-2000:]}")

    def check_health(self) -> None:
        """Answers at once: a deadline for a hang, not a measure of speed."""
        with self.raw() as client:
            client.sock.settimeout(10.0)
            client.info()


class Service(Engine):
    """An engine that serves HTTP on a port of its own, with a state directory of its own."""

    def __init__(self, directory: Path, *options: str, caller: Caller = OURSELVES) -> None:
        self.state = directory / "state"
        http = ("--http", "on", "--port", "0", "--state-dir", str(self.state))
        super().__init__(directory, *http, *options, caller=caller)
        found = re.search(r"^http://127\.0\.0\.1:(\d+)$", self.text(), re.MULTILINE)
        assert found, self.text()
        self.port = int(found.group(1))
        self.url = found.group(0)


class LiveService(Service):
    """One that has live sandboxes, in all profiles that can have them."""

    def __init__(self, directory: Path, *options: str, caller: Caller = OURSELVES) -> None:
        super().__init__(directory, "--live", "on", *options, caller=caller)
        deadline = Deadline(START_DEADLINE_S)
        try:
            while "starting" in self.live().values():
                assert self.drain(min(0.2, deadline.left)) and not deadline.over, self.text()
        except BaseException:
            self.kill()
            raise

    def live(self) -> dict[str, str]:
        """Whether they can be had, by profile."""
        return {profile["name"]: profile["live"] for profile in self.info()["profiles"]}


# ---------------------------------------------------------------------------- for fixtures

Kind = TypeVar("Kind", bound=Engine)


def warm(started: Kind) -> Iterator[Kind]:
    """For many tests: what is made once is made before the first."""
    try:
        started.execute("pass", profile="base", timeout_ms=60000)
        started.settle()
        yield started
        started.stop()
    finally:
        started.kill()


def settled(started: Kind, tidy: Callable[[Kind], Any] = lambda _: None) -> Iterator[Kind]:
    """For the tests of one file. At the end it is tidied up, and has let go of everything."""
    try:
        started.settle()
        yield started
        tidy(started)
        started.check_no_leak()
        started.stop()
    finally:
        started.kill()


def checked(started: Kind) -> Iterator[Kind]:
    yield started
    started.check_health()
    started.check_no_leak()


def starter(make: Callable[..., Kind]) -> Iterator[Callable[..., Kind]]:
    """Starts some with options of the test's own; each is stopped and must leave nothing."""
    all_started: list[Kind] = []

    def start(*options: str) -> Kind:
        all_started.append(make(*options))
        return all_started[-1]

    try:
        yield start
        for started in all_started:
            started.check_health()
            started.stop()
    finally:
        for started in all_started:
            started.kill()

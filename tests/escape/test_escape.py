"""Hostile programs, each in a sandbox of a real engine. What happens inside stands in the programs;
that nobody outside notices is checked here and, after every test, by the engine fixture."""

from __future__ import annotations

import ctypes
import fcntl
import json
import mmap
import os
import pydoc_data.topics
import secrets
import socket
import struct
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from client import MESSAGES, WIRE_VERSION
from harness import Engine, Result, cloche_bin, eventually, flags, tree
from held import PATIENT, SERVER_CANARY, Held
from host import descendants, is_first, processes
from hostile import HELPER, PROGRAMS, Program, alone, check, execute

HERE = Path(__file__).resolve().parent


@pytest.mark.parametrize("name", alone())
def test_program(engine: Engine, name: str) -> None:
    check(engine, name)


# ---------------------------------------------------------------------------- kernel surface


def test_every_system_call(engine: Engine) -> None:
    """The sweep; syscalls.expected is the judgement on each."""
    code = (HERE / "syscalls.py").read_text()
    outcome = engine.execute(code, **PATIENT)
    expected = (HERE / "syscalls.expected").read_text().splitlines()
    got = outcome.stdout.decode().splitlines()
    wrong = [pair for pair in zip(got, expected) if pair[0] != pair[1]]
    assert not wrong and len(got) == len(expected), (wrong, outcome.stderr[-2000:])


def test_refusals_are_told(engine: Engine) -> None:
    code = "import socket\ntry: socket.socket(socket.AF_VSOCK)\nexcept OSError: pass"
    denied = engine.execute(code).result["denied"]
    assert [d["op"] for d in denied] == ["open a virtual machine socket"]


# ---------------------------------------------------------------------------- /proc, /sys, /dev


def test_nothing_of_the_host_shows(engine: Engine) -> None:
    words = [str(engine.socket.parent), str(cloche_bin().parent), os.getcwd(), socket.gethostname()]
    check(engine, "proc_masked", *words, "cloche-warden", "cloche-server", SERVER_CANARY)


# ---------------------------------------------------------------------------- files


@pytest.mark.parametrize("place", ["/workspace", "/tmp", "/dev/shm"])
def test_a_full_file_system(engine: Engine, place: str) -> None:
    check(engine, "files_full", place)


def test_odd_things_where_files_are_collected(engine: Engine, tmp_path: Path) -> None:
    out, helper = tmp_path / "out", tmp_path / "attempt.py"
    helper.write_bytes(HELPER)
    words = flags({"timeout": 60, "cpu": 60, "file": helper, "out": out, "json": True})
    done = engine.cli(*words, PROGRAMS / "files_odd.py")
    result = Result(done.returncode, json.loads(done.stdout), done.stderr.decode())
    assert result.stdout == "made: all\n", done
    assert result.files_truncated is True  # the tree is too deep, and a file larger than the disk
    found = {os.fsencode(name): data for name, data in tree(out).items()}
    hole = found.pop(b"hole")
    assert len(hole) == (10 << 20) + 3 and hole.endswith(b"\0end")
    assert os.stat(out / "hole").st_blocks * 512 < 1 << 20
    assert found == {
        b"closed/inside": b"i",
        b"unreadable": b"u",
        b"setuid": b"s",
        b"good": b"g",
        b"hard": b"g",
        b"\xff\xfe not utf-8": b"n",
        b"line\nbreak": b"l",
        b"x" * 255: b"x",
    }
    assert os.stat(out / "setuid").st_mode & 0o6000 == 0


def test_many_files_give_a_bounded_reply(engine: Engine) -> None:
    result = check(engine, "files_many").result
    assert len(result["files"]) <= 1000
    assert result["files_truncated"] is True


def resident_pages(path: Path) -> int:
    """How many pages of the file the page cache holds."""
    libc = ctypes.CDLL(None, use_errno=True)
    size = path.stat().st_size
    with open(path, "rb") as file:
        view = mmap.mmap(file.fileno(), size, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
    pages = (ctypes.c_ubyte * ((size + mmap.PAGESIZE - 1) // mmap.PAGESIZE))()
    anchor = ctypes.c_char.from_buffer(view)
    code = libc.mincore(ctypes.c_void_p(ctypes.addressof(anchor)), ctypes.c_size_t(size), pages)
    del anchor
    view.close()
    assert code == 0
    return sum(page & 1 for page in pages)


def test_the_page_cache_of_libraries_cannot_be_emptied(engine: Engine) -> None:
    """Nobody maps this file, so the cache could let go of it."""
    path = Path(pydoc_data.topics.__file__)
    path.read_bytes()
    before = resident_pages(path)
    code = (
        "import os, sys\nfd = os.open(sys.argv[1], os.O_RDONLY)\n"
        "os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)"
    )
    assert engine.execute(code, args=[str(path)]).result["status"] == "ok"
    assert before > 0 and resident_pages(path) == before


SHARED = [
    "/dev/null",
    "/dev/urandom",
    "/usr/bin/env",
    os.path.realpath("/lib/x86_64-linux-gnu/libc.so.6"),
]


def test_locks_on_shared_files_reach_nobody(engine: Engine) -> None:
    """The host asks for the locks that a program believes to have, and so does a neighbour."""
    with Held(
        engine, (PROGRAMS / "neighbours_locks.py").read_text(), args=["take", *SHARED]
    ) as held:
        assert held.line() == "taken"
        asked = engine.execute(
            (PROGRAMS / "neighbours_locks.py").read_text(), args=["ask", *SHARED]
        )
        assert asked.stdout == b"".join(f"{path}: free\n".encode() for path in SHARED), asked
        for path in SHARED:
            with open(path, "rb") as file:
                answer = fcntl.fcntl(
                    file, fcntl.F_GETLK, struct.pack("=hhxxxxqqixxxx", fcntl.F_WRLCK, 0, 0, 0, 0)
                )
                assert struct.unpack_from("=h", answer) == (fcntl.F_UNLCK,), path
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert held.end().result["status"] == "ok"


# ---------------------------------------------------------------------------- processes


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("what", ["refused", "locks", "sockets"])
def test_calls_that_init_answers_do_not_take_a_processor(engine: Engine, what: str) -> None:
    """No limit of the sandbox counts the time of its init."""
    before = {process.pid for process in engine.remember() if is_first(process.pid)}
    with Held(engine, (PROGRAMS / "time_calls.py").read_text(), args=[what]) as held:
        assert held.line() == "busy"
        inits = [p.pid for p in engine.remember() if is_first(p.pid) and p.pid in before]
        start, spent = time.monotonic(), {pid: cpu_seconds(pid) for pid in inits}
        assert held.line() == "still busy"  # after two seconds
        wall = time.monotonic() - start
        most = max((cpu_seconds(pid) - spent[pid] for pid in inits if pid in spent), default=0.0)
        assert most < 0.35 * wall, (most, wall)


def test_a_daemon_dies_with_its_execution(engine: Engine) -> None:
    name = "esc" + secrets.token_hex(5)
    check(engine, "processes_daemon", name)
    assert eventually(lambda: not [p for p in processes() if p.comm == name], seconds=30.0)


def test_a_binary_of_its_own(engine: Engine, tmp_path: Path) -> None:
    binary = tmp_path / "static"
    subprocess.run(["gcc", "-static", "-O1", "-o", binary, HERE / "static.c"], check=True)
    check(engine, "processes_binary", inputs={"static": binary.read_bytes()})


def zygote_ticks(engine: Engine) -> int:
    """CPU time of the zygotes: the Python processes that are children of a nursery."""
    total = 0
    family = descendants(engine.process.pid)
    nurseries = {p.pid for p in family if p.role == "cloche-nursery"}
    for process in family:
        if process.ppid in nurseries and process.role.startswith("python"):
            fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
    return total


def test_stopping_and_continuing_does_not_keep_the_zygote_busy(engine: Engine) -> None:
    before = zygote_ticks(engine)
    outcome = check(engine, "processes_stop_and_go")
    used_ms = (zygote_ticks(engine) - before) * 1000 // os.sysconf("SC_CLK_TCK")
    assert used_ms < outcome.result["usage"]["cpu_ms"] / 10


# ---------------------------------------------------------------------------- memory


def slot_bytes(engine: Engine) -> int:
    """What is charged to the sandboxes of this engine."""
    total = 0
    for directory in engine.footprint()["cgroups"]:
        for name in ("memory.usage_in_bytes", "memory.current"):
            for path in Path(directory).glob(f"*/{name}"):
                total += int(path.read_text())
    return total


@pytest.mark.parametrize("name", ["memory_kept", "memory_dentries"])
def test_memory_does_not_outlive_its_sandbox(engine: Engine, name: str) -> None:
    before = slot_bytes(engine)
    check(engine, name)
    assert eventually(lambda: slot_bytes(engine) < before + (16 << 20), seconds=30.0), (
        before,
        slot_bytes(engine),
    )


def test_slots_that_are_slow_to_come_clean_do_not_hold_up_others(engine: Engine) -> None:
    for _ in range(10):
        check(engine, "memory_kept")


# ---------------------------------------------------------------------------- output and protocol

# What the engine says of an execution whose control socket talked nonsense: its own end (an exit
# status), a kill, or a failure; never a hang, never anybody else's trouble.
FRAMES: dict[str, tuple[str, ...]] = {
    "done": ("ok",),
    "done with noise": ("error",),
    "done twice": ("ok",),
    "done of an impossible kind": ("killed",),
    "done with an impossible status": ("killed",),
    "done with a wrapping length": ("killed",),
    "done with too many lines": ("killed",),
    "ready again": ("killed",),
    "a request for the warden": ("killed",),
    "a request for init": ("killed",),
    "another version": ("killed", "ok"),
    "an unknown message": ("killed", "ok"),
    "one byte": ("killed", "ok"),
    "nothing": ("killed", "ok"),
    "a huge frame": ("killed", "ok"),
    "without end": ("killed",),
    "half of it shut": ("killed", "ok"),
    "all of it shut": ("killed", "ok"),
    "descriptors": ("killed", "ok", "error"),
    "descriptors with done": ("ok", "error"),
    "a lingering socket": ("ok", "error"),
}


NUMBERS = {**MESSAGES, "version": WIRE_VERSION}


@pytest.mark.parametrize("what", FRAMES)
def test_forged_frames(engine: Engine, what: str) -> None:
    outcome = execute(engine, "protocol_frames", what, json.dumps(NUMBERS), timeout_ms=20_000)
    assert outcome.error is None, outcome
    assert outcome.result["status"] in FRAMES[what], outcome
    assert outcome.stdout == b"before\n"
    assert b"AssertionError" not in outcome.stderr, outcome.stderr


def test_a_kernel_that_says_it_is_broken(engine: Engine) -> None:
    """Its words reach nobody's terminal as they are."""
    code = (PROGRAMS / "protocol_frames.py").read_text()
    done = engine.cli("-c", code, "--", "broken", json.dumps(NUMBERS))
    assert done.returncode != 0
    assert b"\x1b" not in done.stderr and done.stderr.count(b"\n") == 1, done.stderr


STREAMS = (
    "closed",
    "control closed",
    "control is standard output",
    "control is null",
    "streams are the control",
    "streams swapped",
    "executed",
)


@pytest.mark.parametrize("what", STREAMS)
def test_streams_closed_or_swapped(engine: Engine, what: str) -> None:
    outcome = execute(engine, "protocol_streams", what, timeout_ms=20_000)
    assert outcome.error is None, outcome
    assert outcome.result["timed_out"] is False, outcome
    assert b"Traceback" not in outcome.stderr, outcome.stderr


def test_a_control_socket_that_blocks_ends_by_the_clock(engine: Engine) -> None:
    outcome = execute(engine, "protocol_streams", "control blocks", timeout_ms=1000)
    assert outcome.result["status"] == "timeout"


def test_bytes_that_are_no_text_on_the_command_line(engine: Engine) -> None:
    done = engine.cli("--json", PROGRAMS / "output_text.py")
    result = json.loads(done.stdout.decode("utf-8"))
    assert result["error"]["name"].startswith("O")
    assert "\ud800" not in json.dumps(result, ensure_ascii=False)


def resident_bytes(engine: Engine) -> int:
    server = [p for p in descendants(engine.process.pid) if p.role == "cloche-server"]
    (statm,) = (Path(f"/proc/{p.pid}/statm").read_text().split() for p in server)
    return int(statm[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.once
def test_clients_that_never_read_cost_bounded_memory(engine: Engine) -> None:
    code = "import os\nwhile True: os.write(1, bytes(65536))"
    before = resident_bytes(engine)
    clients = [engine.raw() for _ in range(4)]
    for client in clients:
        client.start(code, output_bytes=1 << 24, timeout_ms=60_000, cpu_seconds=60)
    for _ in range(20):
        assert engine.execute("print(1)").stdout == b"1\n"
    assert resident_bytes(engine) - before < 32 << 20
    for client in clients:
        client.close()


# ---------------------------------------------------------------------------- neighbours


@pytest.mark.once
@pytest.mark.parametrize("profile", ["base", "data"])
def test_no_memory_of_others(engine: Engine, profile: str) -> None:
    """Of an earlier program (in its code, its arguments, its environment and its output), of one
    that still runs, and of the server."""
    word = "CANARY-" + secrets.token_hex(16)
    keep = "import sys\nx = [sys.argv[1] * 1000]\nprint(x[0][:39], flush=True)\nsys.stdin.read()"
    with Held(engine, keep, args=[word], env=[f"SECRET={word}"], profile=profile) as other:
        assert other.line() == word
        for _ in range(3):
            done = engine.execute(
                f"print({word!r})", args=[word], env=[f"S={word}"], profile=profile
            )
            assert done.stdout.decode() == word + "\n"
        check(engine, "neighbours_canary", profile=profile)
        other.end()


def test_the_canary_would_be_found(engine: Engine) -> None:
    word = "CANARY-" + secrets.token_hex(16)
    outcome = execute(engine, "neighbours_canary", env=[f"S={word}"])
    assert word.encode() in outcome.stdout


def test_what_one_program_spoils_is_whole_in_the_next(engine: Engine) -> None:
    for _ in range(3):
        check(engine, "neighbours_poison")
        check(engine, "neighbours_pristine")


DRAW = """
import os, random, secrets, ssl, tempfile, uuid
print(random.random(), uuid.uuid4(), secrets.token_hex(8), ssl.RAND_bytes(8).hex(),
      next(tempfile._get_candidate_names()), os.urandom(8).hex(), random.Random().random(),
      sep='\\n')
"""
DRAW_NUMPY = (
    "import numpy\nprint(numpy.random.rand(), numpy.random.default_rng().random(), sep='\\n')"
)


@pytest.mark.once
@pytest.mark.parametrize("code, runs", [(DRAW, 200), (DRAW_NUMPY, 60)], ids=["base", "data"])
def test_nothing_random_repeats(engine: Engine, code: str, runs: int) -> None:
    draws: list[list[bytes]] = []
    with engine.raw() as client:
        for _ in range(runs):
            client.start(code, timeout_ms=60_000)
            outcome = client.finish()
            assert outcome.result["status"] == "ok", outcome
            draws.append(outcome.stdout.split())
    for column in zip(*draws):
        assert len(set(column)) == runs


def test_neighbours_do_not_meet(engine: Engine) -> None:
    inputs = {"attempt.py": HELPER}
    code = Program.read("neighbours_meet").code
    with Held(engine, code, args=["serve"], inputs=inputs) as server:
        assert server.line() == "ready"
        visit = engine.execute(code, args=["visit"], inputs=inputs, **PATIENT)
        assert server.end().result["status"] == "ok"
    assert visit.stdout.decode().splitlines() == [
        "port: refused ECONNREFUSED",
        "port of ::1: refused ECONNREFUSED",
        "abstract name: refused ECONNREFUSED",
        "name: refused ENOENT",
        "segment: refused ENOENT",
        "shared file: refused ENOENT",
        "outside: refused ENETUNREACH",
        "metadata: refused ENETUNREACH",
    ]


# ---------------------------------------------------------------------------- the machine


def test_the_machine_has_enough_left(engine: Engine) -> None:
    """inotify instances and queued signals are counted for the host's root too."""
    program = Program.read("machine_hoard")
    options: dict[str, Any] = {**program.options, "inputs": {"attempt.py": HELPER}}
    libc = ctypes.CDLL(None, use_errno=True)
    timer = ctypes.c_void_p()
    with Held(engine, program.code, **options) as one, Held(engine, program.code, **options) as two:
        for held in (one, two):
            assert held.line() == "watches 0 labels 0 signals 256"
        fd = libc.inotify_init()
        assert fd >= 0, os.strerror(ctypes.get_errno())
        os.close(fd)
        assert libc.timer_create(1, None, ctypes.byref(timer)) == 0
        libc.timer_delete(timer)
        one.end()
        two.end()

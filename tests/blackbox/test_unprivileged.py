"""cloche as an ordinary user: with a range of ids of its own, and with no id but its own.

It is run from an installed tree, since nobody but its owner may be able to read the build. No user
here can use control groups, so limits are those of the watchdog (see test_nocgroup.py).
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import (
    LONG,
    Caller,
    Engine,
    LiveService,
    cloche_bin,
    eventually,
    failed,
    flags,
    run_cli,
)
from host import descendants, processes
from live_box import box_of

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="becomes other users"),
    pytest.mark.skipif(not shutil.which("newuidmap"), reason="no newuidmap (package uidmap)"),
]

RANGE = 65536
NAMELESS = 31337  # has no line in passwd
NOBODY = 65534


# ---------------------------------------------------------------------------- users and places


@pytest.fixture(scope="session")
def place() -> Iterator[Path]:
    """A directory that every user can reach; pytest's own ones are closed to them."""
    with tempfile.TemporaryDirectory(prefix="cloche-test-") as directory:
        os.chmod(directory, 0o755)
        yield Path(directory)


@pytest.fixture(scope="session")
def installed(place: Path) -> Path:
    """`meson install` of the build under test."""
    build = cloche_bin().resolve().parent
    if not (build / "build.ninja").exists():
        pytest.skip(f"{build} is no build directory")
    words: list[str | Path] = [
        "meson",
        "install",
        "-C",
        build,
        "--no-rebuild",
        "--quiet",
        "--destdir",
        place / "at",
    ]
    subprocess.run(words, check=True, capture_output=True, umask=0o022)
    (program,) = place.glob("at/**/bin/cloche")
    assert (program.parents[1] / "libexec" / "cloche" / "cloche-warden").exists()
    return program


def administer(*words: str) -> None:
    """useradd and its kin lock files, which another test run may hold for a moment."""

    def try_it() -> bool:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1, 10), (words, done.stderr)
        return done.returncode == 0

    assert eventually(try_it, step_s=0.2), words


def make_user(name: str) -> tuple[int, int]:
    administer("useradd", "--system", "--no-create-home", "--home-dir", "/nonexistent", name)
    entry = Path("/etc/passwd").read_text().split(f"\n{name}:")[1].split(":")
    return int(entry[1]), int(entry[2])


def make_caller(program: Path, place: Path, uid: int, gid: int, *words: str) -> Caller:
    home = place / f"home-{uid}"
    home.mkdir(mode=0o700, exist_ok=True)
    os.chown(home, uid, gid)
    who = ("setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups", *words, "--")
    return Caller(program, who, {"HOME": str(home), "XDG_RUNTIME_DIR": str(home)})


def home_of(caller: Caller) -> Path:
    return Path(caller.env["HOME"])


@pytest.fixture(scope="session")
def with_range(installed: Path, place: Path) -> Iterator[Caller]:
    name = f"cloche-test-{os.getpid()}"
    first = 1_500_000_000 + os.getpid() % 8192 * RANGE
    uid, gid = make_user(name)
    try:
        ids = f"{first}-{first + RANGE - 1}"
        administer("usermod", "--add-subuids", ids, "--add-subgids", ids, name)
        yield make_caller(installed, place, uid, gid)
    finally:
        administer("userdel", name)


@pytest.fixture(scope="session")
def with_one_id(installed: Path, place: Path) -> Caller:
    return make_caller(installed, place, NAMELESS, NAMELESS)


@pytest.fixture(scope="session", params=["range", "one id"])
def caller(request: pytest.FixtureRequest) -> Caller:
    name = {"range": "with_range", "one id": "with_one_id"}[request.param]
    found: Caller = request.getfixturevalue(name)
    return found


@pytest.fixture(scope="session")
def user_engines() -> Iterator[Callable[[Caller], Engine]]:
    """One engine per caller for all tests; each must leave nothing."""
    engines: dict[Path, Engine] = {}

    def get(caller: Caller) -> Engine:
        home = home_of(caller)
        if home not in engines:
            engine = engines[home] = Engine(home, "--profiles", "base", caller=caller)
            engine.execute("pass", timeout_ms=60000)
            engine.settle()
        return engines[home]

    try:
        yield get
        for engine in engines.values():
            engine.stop()
    finally:
        for engine in engines.values():
            engine.kill()


@pytest.fixture
def engine(caller: Caller, user_engines: Callable[[Caller], Engine]) -> Iterator[Engine]:
    found = user_engines(caller)
    yield found
    found.check_health()
    found.check_no_leak()


@pytest.fixture
def one_id_engine(
    with_one_id: Caller, user_engines: Callable[[Caller], Engine]
) -> Iterator[Engine]:
    found = user_engines(with_one_id)
    yield found
    found.check_health()
    found.check_no_leak()


def private(caller: Caller, code: str, *args: str, **options: Any) -> dict[str, Any]:
    """`cloche run --json` with no engine, as that user."""
    done = run_cli(
        "run", *flags(options), "--json", "-c", code, *args, caller=caller, cwd=Path("/")
    )
    assert done.stdout, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result | {"exit_status": done.returncode}


def owner(pid: int) -> int | None:
    try:
        return Path(f"/proc/{pid}").stat().st_uid
    except FileNotFoundError:
        return None


def supervisors(caller: Caller) -> set[int]:
    """The command lines, wardens and servers that run as this user; all else dies with them."""
    uid = int(caller.before[1].split("=")[1])
    return {
        process.pid
        for process in processes()
        if process.role in ("cloche", "cloche-warden", "cloche-server")
        and owner(process.pid) == uid
    }


# ---------------------------------------------------------------------------- live sandboxes


def test_a_directory_of_the_users_is_bound_into_live_sandboxes(
    caller: Caller,
) -> None:
    home = home_of(caller)
    places = {"shown": home / "shown", "out": home / "out"}
    for directory in places.values():
        directory.mkdir()
        os.chown(directory, home.stat().st_uid, home.stat().st_gid)
    places["out"].chmod(0o777)
    (places["shown"] / "in.txt").write_text("shown")
    binds = f"{places['shown']}:shown,{places['out']}:out:rw"
    (home / "live").mkdir()
    os.chown(home / "live", home.stat().st_uid, home.stat().st_gid)
    service = LiveService(home / "live", "--profiles", "base", "--live-bind", binds, caller=caller)
    try:
        with box_of(service) as box:
            assert box.run("print(open('shown/in.txt').read())") == "shown\n"
            code = "try: open('shown/new', 'w')\nexcept OSError as e: print(e.errno)"
            assert box.run(code) in ("30\n", "13\n")
            box.run("open('out/made.txt', 'w').write('by a program')")
            assert box.put("out/sent.txt", b"by a client").status == 201
            assert box.read("out/sent.txt") == b"by a client"
        assert (places["out"] / "made.txt").read_text() == "by a program"
        assert (places["out"] / "sent.txt").read_text() == "by a client"
        service.stop()
    finally:
        service.kill()
        for directory in (*places.values(), home / "live"):
            shutil.rmtree(directory)


# ---------------------------------------------------------------------------- running programs


def test_nothing_of_it_is_root(engine: Engine) -> None:
    owners = set()
    for process in descendants(engine.process.pid):
        status = Path(f"/proc/{process.pid}/status").read_text()
        owners.update(status.split("\nUid:")[1].split("\n")[0].split())
    assert "0" not in owners


def test_output_and_exit_codes(engine: Engine) -> None:
    done = engine.cli("-c", "import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)")
    assert (done.returncode, done.stdout, done.stderr) == (7, b"out\n", b"err\n")
    assert engine.run("import os, signal; os.kill(os.getpid(), signal.SIGTERM)").exit_status == 143
    assert engine.run("1/0").error["name"] == "ZeroDivisionError"


def test_standard_input(engine: Engine) -> None:
    assert engine.run("print(input() + input())", stdin=b"a\nb\n").stdout == "ab\n"


def test_files_in_and_out(engine: Engine, caller: Caller) -> None:
    home = home_of(caller)
    given = home / "given.txt"
    given.write_text("given\n")
    given.chmod(0o644)
    out = home / "out"
    code = (
        "import os\n"
        "text = open('in/given.txt').read()\n"
        "os.makedirs('deep/er')\n"
        "open('deep/er/made', 'w').write(text.upper())\n"
    )
    done = engine.cli("--file", f"{given}:in/given.txt", "--out", out, "-c", code)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (out / "deep" / "er" / "made").read_text() == "GIVEN\n"
    assert not (out / "in").exists()
    shutil.rmtree(out)


def test_processes_and_threads(engine: Engine) -> None:
    code = (
        "import subprocess, threading, multiprocessing\n"
        "print(subprocess.check_output(['echo', 'shell'], text=True), end='')\n"
        "t = threading.Thread(target=print, args=('thread',)); t.start(); t.join()\n"
        "with multiprocessing.Pool(2) as p: print(p.map(abs, [-1, -2]))\n"
    )
    assert engine.run(code, **LONG).stdout == "shell\nthread\n[1, 2]\n"


def test_who_we_are_inside(engine: Engine) -> None:
    code = (
        "import os, pwd, json\n"
        "status = dict(l.rstrip('\\n').split(':\\t', 1) for l in open('/proc/self/status'))\n"
        "print(json.dumps({'ids': os.getresuid() + os.getresgid(), 'groups': os.getgroups(),\n"
        "    'name': pwd.getpwuid(os.getuid()).pw_name, 'status': status,\n"
        "    'map': open('/proc/self/uid_map').read().split()}))\n"
    )
    found = json.loads(engine.run(code).stdout)
    assert found["ids"] == [1000] * 6
    assert found["groups"] == []
    assert found["name"] == "user"
    assert (found["map"][0], found["map"][2]) == ("1000", "1")
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(found["status"][name], 16) == 0, name
    assert found["status"]["NoNewPrivs"].strip() == "1"
    assert found["status"]["Seccomp"].strip() == "2"


def test_the_root_is_read_only_and_shows_nothing_of_the_user(
    engine: Engine, caller: Caller
) -> None:
    (home_of(caller) / "secret").write_text("secret")
    code = (
        "import os, errno\n"
        f"print(os.path.exists({str(home_of(caller))!r}))\n"
        "for path in ('/usr/x', '/etc/x', '/x', '/run/cloche/x', '/proc/sys/kernel/hostname'):\n"
        "    try: open(path, 'w'); print('wrote', path)\n"
        "    except OSError as e: print(errno.errorcode[e.errno])\n"
        "print(open('/proc/self/mountinfo').read())\n"
    )
    out = engine.run(code).stdout.splitlines()
    assert out[0] == "False"
    assert set(out[1:6]) <= {"EROFS", "EACCES", "EPERM"}
    assert not any("cloche-test-" in line for line in out), out


def test_a_timeout_kills_all_of_it(engine: Engine) -> None:
    code = (
        "import os, signal, time\n"
        "for s in set(signal.valid_signals()) - {9, 19}: signal.signal(s, signal.SIG_IGN)\n"
        "for _ in range(3):\n"
        "    if os.fork() == 0: os.setsid(); time.sleep(1000)\n"
        "print('up', flush=True)\n"
        "while True: pass\n"
    )
    result = engine.run(code, timeout=3)
    assert (result.status, result.limit_hit, result.exit_status) == ("timeout", "time", 124)
    assert result.stdout == "up\n"


def test_the_pids_limit(engine: Engine) -> None:
    code = (
        "import os, time\n"
        "made = 0\n"
        "try:\n"
        "    while made < 100:\n"
        "        if os.fork() == 0:\n"
        "            time.sleep(1000)\n"
        "        made += 1\n"
        "except BlockingIOError:\n"
        "    print(made)\n"
    )
    assert engine.run(code, pids=16, **LONG).stdout == "15\n"


def test_two_sandboxes_do_not_share_the_pids_limit(engine: Engine) -> None:
    """They have one uid where there is a single id; the kernel counts by namespace too."""
    hold = (
        "import os, sys\nfor _ in range(12):\n    if os.fork() == 0: os.read(0, 1); os._exit(0)\n"
    )
    with engine.popen("--stdin", "--pids", "16", "--timeout", "60", "-c", hold + "os.read(0, 1)"):
        code = "import os\nfor _ in range(12):\n    if os.fork() == 0: os._exit(0)\nprint('made')\n"
        assert engine.run(code, pids=16, **LONG).stdout == "made\n"


def test_memory_and_cpu_limits(engine: Engine) -> None:
    over = engine.run("x = b'x' * (300 << 20)\nimport time; time.sleep(60)", memory=64, **LONG)
    assert (over.status, over.limit_hit, over.exit_code) == ("memory_exceeded", "memory", 137)
    spin = engine.run("while True: pass", cpu=1, timeout=60)
    assert (spin.status, spin.limit_hit) == ("killed", "cpu")


def test_refusals_are_told(engine: Engine) -> None:
    code = "import ctypes; print(ctypes.CDLL(None).ptrace(0, 0, 0, 0))"
    result = engine.run(code)
    assert result.stdout == "-1\n"
    assert [d["op"] for d in result.denied] == ["run under a debugger"]


def test_no_network(engine: Engine) -> None:
    code = (
        "import socket\n"
        "try: socket.create_connection(('192.0.2.1', 80), 5)\n"
        "except OSError as e: print(e.strerror)\n"
    )
    result = engine.run(code, **LONG)
    assert result.stdout == "Network is unreachable\n"
    assert [d["rule"] for d in result.denied] == ["network:none"]


# ---------------------------------------------------------------------------- a private engine


def test_a_private_engine(caller: Caller) -> None:
    before = supervisors(caller)
    result = private(caller, "import sys; print(sys.argv[1:]); sys.exit(3)", "--", "a", "b")
    assert (result["exit_status"], result["stdout"]) == (3, "['a', 'b']\n")
    assert private(caller, "import time; time.sleep(60)", timeout=0.5)["exit_status"] == 124
    memory = private(caller, "x = b'x' * (300 << 20)", memory=64, **LONG)
    assert (memory["status"], memory["exit_status"]) == ("memory_exceeded", 137)
    assert eventually(lambda: not supervisors(caller) - before)
    left = {path.name for path in home_of(caller).iterdir()}
    assert left <= {"engine.sock", "given.txt", "secret"}


def test_the_engine_of_a_user_is_found_and_closed_to_others(
    with_one_id: Caller, with_range: Caller
) -> None:
    home = home_of(with_one_id)
    command = with_one_id.command("serve", "--profiles", "base")
    env = with_one_id.environment()
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=env, cwd="/") as serve:
        assert serve.stdout is not None
        listening = serve.stdout.readline().decode()
        socket = home / "cloche" / "engine.sock"
        assert listening.rstrip().endswith(f"listening on {socket}")
        assert socket.stat().st_mode & 0o777 == 0o600
        assert socket.parent.stat().st_mode & 0o777 == 0o700
        done = run_cli("run", "-v", "-c", "print('here')", caller=with_one_id, cwd=Path("/"))
        assert done.stdout == b"here\n" and b"private" not in done.stderr
        other = run_cli("run", "--socket", socket, "-c", "1", caller=with_range, cwd=Path("/"))
        failed(other, "not open to this user")
        serve.terminate()
    assert not socket.exists()
    socket.parent.rmdir()


def test_a_user_who_did_not_log_in_has_an_engine_too(with_one_id: Caller, tmp_path: Path) -> None:
    """After su, or in a container, there is no runtime directory: the socket is with the state."""
    state = home_of(with_one_id) / "state"
    env = {**with_one_id.environment(), "XDG_STATE_HOME": str(state)}
    del env["XDG_RUNTIME_DIR"]
    command = with_one_id.command("serve", "--profiles", "base", "--port", "0")
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=env, cwd="/") as serve:
        assert serve.stdout is not None
        socket = state / "cloche" / "engine.sock"
        assert f"listening on {socket}" in serve.stdout.readline().decode()
        assert socket.parent.stat().st_mode & 0o777 == 0o700
        ask = with_one_id.command("run", "-v", "-c", "print('here')")
        done = subprocess.run(ask, capture_output=True, env=env, cwd="/", check=True)
        assert done.stdout == b"here\n" and b"private" not in done.stderr
        serve.terminate()
    assert not socket.exists()
    shutil.rmtree(state)


def test_no_new_privs_leaves_one_id(with_range: Caller) -> None:
    """newuidmap cannot work then, and that is said; programs run all the same."""
    *who, end = with_range.before
    bound = Caller(with_range.program, (*who, "--no-new-privs", end), with_range.env)
    done = run_cli("run", "-c", "print('ran')", caller=bound, cwd=Path("/"))
    assert (done.returncode, done.stdout) == (0, b"ran\n")
    assert b"no id range" in done.stderr
    doctor = run_cli("doctor", caller=bound, cwd=Path("/"))
    assert b"no_new_privs" in doctor.stdout


# ---------------------------------------------------------------------------- init out of reach

HOSTILE = r"""
import ctypes, errno, json, os, signal, resource, struct
libc = ctypes.CDLL(None, use_errno=True)
found = {}

def call(name, *args):
    ctypes.set_errno(0)
    args = [a if isinstance(a, (bytes, ctypes.Array)) else ctypes.c_long(a) for a in args]
    r = libc.syscall(*args)
    found[name] = errno.errorcode[ctypes.get_errno()] if r < 0 else "done"
    return r

def python(name, f, *args):
    try:
        f(*args)
        found[name] = "done"
    except OSError as e:
        found[name] = errno.errorcode[e.errno]

for request, name in [(16, "attach"), (0x4206, "seize")]:
    call("ptrace " + name, 101, request, 1, 0, 0)
buffer = ctypes.create_string_buffer(64)
iov = ctypes.create_string_buffer(struct.pack("QQ", ctypes.addressof(buffer), 8))
remote = ctypes.create_string_buffer(struct.pack("QQ", 0x400000, 8))
call("process_vm_readv", 310, 1, iov, 1, remote, 1, 0)
call("process_vm_writev", 311, 1, iov, 1, remote, 1, 0)
call("kcmp", 312, 1, os.getpid(), 0, 0, 0)
call("process_madvise", 440, 1, iov, 1, 4, 0)
python("prlimit get", resource.prlimit, 1, resource.RLIMIT_CPU)
python("prlimit set", resource.prlimit, 1, resource.RLIMIT_CPU, (0, 0))
python("affinity", os.sched_setaffinity, 1, {min(os.sched_getaffinity(0))})
python("priority", os.setpriority, os.PRIO_PROCESS, 1, 19)
python("priority user", os.setpriority, os.PRIO_USER, 0, 19)
python("priority group", os.setpriority, os.PRIO_PGRP, 1, 19)
python("scheduler", os.sched_setscheduler, 1, os.SCHED_IDLE, os.sched_param(0))
call("sched_setattr", 314, 1, struct.pack("IIQiIQQQ", 48, 5, 0, 0, 0, 0, 0, 0), 0)
call("ioprio", 251, 1, 1, 3 << 13)
call("ioprio user", 251, 3, 1000, 3 << 13)
call("migrate_pages", 256, 1, 64, buffer, buffer)
call("move_pages", 279, 1, 0, 0, 0, 0, 0)
call("get_robust_list", 274, 1, buffer, buffer)
python("setpgid", os.setpgid, 1, 1)
for name in ("environ", "maps", "mem", "root", "cwd", "exe", "fd", "status", "oom_score_adj",
             "attr/current", "ns/mnt", "task/1/comm", "limits", "stack", "syscall"):
    path = "/proc/1/" + name
    python("read " + name, lambda: open(path, "rb").read(1))
    python("list " + name, os.listdir, path)
    python("link " + name, os.readlink, path)
    python("write " + name, lambda: open(path, "wb").write(b"0"))
found["proc"] = [name for name in os.listdir("/proc") if name == "1"]

# Signals may be refused or sent: they must not do anything.
for number in sorted(signal.valid_signals()):
    python(f"signal {number}", os.kill, 1, number)
pidfd = call("pidfd_open", 434, 1, 0)
if pidfd >= 0:
    python("pidfd signal", signal.pidfd_send_signal, pidfd, signal.SIGKILL)
    call("pidfd_getfd", 438, pidfd, 0, 0)
    call("pidfd setns", 308, pidfd, 0x10000000)
import fcntl
r, w = os.pipe()
fcntl.fcntl(r, fcntl.F_SETOWN, 1)
fcntl.fcntl(r, 10, signal.SIGKILL)  # F_SETSIG
python("async", fcntl.fcntl, r, fcntl.F_SETFL, os.O_ASYNC)
os.write(w, b"x")
open("made", "w").write(json.dumps(found))
print(json.dumps(found))
"""
# Priorities are answered as if they had been set; that init's stays is looked at.
MAY_BE_DONE = ("signal ", "pidfd_open", "pidfd signal", "priority", "scheduler", "ioprio")


def init_state(pid: int) -> dict[str, Any]:
    status = Path(f"/proc/{pid}/status").read_text()
    kept = ("Uid", "SigIgn", "SigCgt", "Cpus_allowed", "TracerPid", "State", "CapEff")
    stat = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return {
        "status": [line for line in status.splitlines() if line.startswith(kept)],
        "priority": stat[15:17],
        "policy": stat[38],
        "limits": Path(f"/proc/{pid}/limits").read_text(),
    }


def inits(engine: Engine) -> dict[int, dict[str, Any]]:
    found = {}
    for process in descendants(engine.process.pid):
        if process.comm == "cloche-init":
            with contextlib.suppress(OSError):  # one that is over goes away
                found[process.pid] = init_state(process.pid)
    return found


def test_init_is_out_of_reach(engine: Engine) -> None:
    code = HOSTILE + "\nimport sys; sys.stdout.flush(); input()\n"
    with engine.popen("--stdin", "--timeout", "60", "-c", code) as cli:
        assert cli.stdin is not None and cli.stdout is not None and cli.stderr is not None
        line = cli.stdout.readline()
        assert line, cli.stderr.read()
        found = json.loads(line)

        def alike() -> bool:  # one that is made ready for the pool becomes like the others
            states = list(inits(engine).values())
            return len(states) >= 2 and all(state == states[0] for state in states)

        assert eventually(alike), inits(engine)
        cli.stdin.write(b"\n")
        cli.stdin.close()
        assert cli.wait() == 0
    assert found.pop("proc") == []
    done = {name for name, result in found.items() if result == "done"}
    assert not {name for name in done if not name.startswith(MAY_BE_DONE)}


def test_init_serves_on_after_the_attack(engine: Engine, caller: Caller) -> None:
    out = home_of(caller) / "after"
    done = engine.cli("--timeout", "60", "--out", out, "-c", HOSTILE + "\nos._exit(9)\n")
    assert done.returncode == 9, done.stderr
    assert json.loads((out / "made").read_text())["ptrace attach"] == "EPERM"
    shutil.rmtree(out)


def test_neighbours_of_one_id_do_not_see_each_other(one_id_engine: Engine) -> None:
    """One uid for both, so only namespaces keep them apart."""
    code = (
        "import os, socket, time\n"
        "open('/tmp/mark', 'w'); open('/dev/shm/mark', 'w'); open('mark', 'w')\n"
        "s = socket.socket(socket.AF_UNIX); s.bind('\\0mark'); s.listen()\n"
        "t = socket.socket(); t.bind(('127.0.0.1', 4321)); t.listen()\n"
        "print('up', flush=True); input()\n"
    )
    look = (
        "import os, socket\n"
        "print([p for p in ('/tmp/mark', '/dev/shm/mark', 'mark') if os.path.exists(p)])\n"
        "print([p for p in os.listdir('/proc') if p.isdigit()] == [str(os.getpid())])\n"
        "for s, to in ((socket.socket(socket.AF_UNIX), '\\0mark'),\n"
        "              (socket.socket(), ('127.0.0.1', 4321))):\n"
        "    try: s.connect(to); print('reached')\n"
        "    except OSError as e: print('refused')\n"
        "try: os.kill(-1, 9); print('killed')\n"
        "except (ProcessLookupError, PermissionError): print('nobody')\n"
    )
    with one_id_engine.popen("--stdin", "--timeout", "60", "-c", code) as cli:
        assert cli.stdin is not None and cli.stdout is not None
        assert cli.stdout.readline() == b"up\n"
        result = one_id_engine.run(look, **LONG)
        assert result.stdout == "[]\nTrue\nrefused\nrefused\nnobody\n"
        cli.stdin.write(b"\n")
        cli.stdin.close()
        assert cli.wait() == 0


# ---------------------------------------------------------------------------- root without a range


@pytest.fixture(scope="module")
def rangeless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """Started by root, with the ids of a user that has none: one id for all, and not root's."""
    engine = Engine(tmp_path_factory.mktemp("engine"), "--profiles", "base", "--id-user", "nobody")
    try:
        engine.execute("pass", timeout_ms=60000)
        engine.settle()
        yield engine
        engine.stop()
    finally:
        engine.kill()


def outside_uids(engine: Engine) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for process in descendants(engine.process.pid):
        status = Path(f"/proc/{process.pid}/status").read_text()
        uids = status.split("\nUid:")[1].split("\n")[0].split()
        name = "sandbox" if process.comm.startswith(("python3", "cloche-init")) else process.comm
        found.setdefault(name, set()).update(map(int, uids))
    return found


def test_root_without_a_range_uses_nobody(rangeless: Engine) -> None:
    assert "no id range" in rangeless.text()
    uids = outside_uids(rangeless)
    assert uids["sandbox"] == {NOBODY}
    assert 0 not in uids["cloche-server"]
    assert rangeless.run("import os; print(os.getuid())").stdout == "1000\n"
    rangeless.check_no_leak()


def test_init_of_nobody_is_out_of_reach(rangeless: Engine) -> None:
    found = json.loads(rangeless.run(HOSTILE, timeout=60).stdout)
    assert found.pop("proc") == []
    done = {name for name, result in found.items() if result == "done"}
    assert not {name for name in done if not name.startswith(MAY_BE_DONE)}
    rangeless.check_no_leak()


REACH = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
reached = []
for pid in map(int, sys.argv[1:]):
    for name in ("mem", "environ", "maps", "fd/0", "root/workspace", "ns/user"):
        path = f"/proc/{pid}/{name}"
        try:
            if name in ("ns/user", "fd/0"): os.readlink(path)
            elif name == "root/workspace": os.listdir(path)
            else: open(path, "rb").read(1)
            reached.append(path)
        except OSError:
            pass
    if libc.ptrace(0x4206, pid, None, None) == 0: reached.append(f"ptrace {pid}")
print(reached)
"""


def test_nobody_outside_does_not_reach_into_sandboxes(rangeless: Engine) -> None:
    """The server is nobody too where no user cloche exists, and so are other services."""
    family = descendants(rangeless.process.pid)
    inside = [str(p.pid) for p in family if p.comm.startswith(("python3", "cloche-init"))]
    assert len(inside) > 2
    words = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--"]
    done = subprocess.run(
        [*words, "/usr/bin/python3", "-c", REACH, *inside], capture_output=True, text=True, cwd="/"
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")
    rangeless.check_no_leak()


# ---------------------------------------------------------------------------- what is said


def test_what_is_missing_is_said_at_the_start(engine: Engine, caller: Caller) -> None:
    text = engine.text()
    assert "no control groups: " in text
    assert "watched, not enforced" in text
    assert ("no id range" in text) == (str(NAMELESS) in caller.before[1])


def test_doctor_says_the_same(caller: Caller) -> None:
    done = run_cli("doctor", "--json", caller=caller, cwd=Path("/"))
    found = json.loads(done.stdout)
    states = {layer["name"]: layer["state"] for layer in found["layers"]}
    single = str(NAMELESS) in caller.before[1]
    assert done.returncode == 0 and found["minimum"]["met"] is True
    assert states["cgroup"] == "weak"
    assert states["ids"] == ("weak" if single else "ok")


@pytest.mark.parametrize("words", ["strict,cgroup", "cgroup", "strict cgroup"])
def test_below_the_minimum_nothing_runs(caller: Caller, words: str) -> None:
    demanding = dataclasses.replace(caller, env=caller.env | {"CLOCHE_MINIMUM": words})
    run = run_cli("run", "-c", "print(1)", caller=demanding, cwd=Path("/"))
    failed(run, "cgroup")
    socket = home_of(caller) / "refused.sock"
    serve = run_cli("serve", "--socket", socket, "--minimum", words, caller=caller, cwd=Path("/"))
    failed(serve, "cgroup")
    assert not socket.exists()
    doctor = run_cli("doctor", "--json", "--minimum", words, caller=caller, cwd=Path("/"))
    assert doctor.returncode == 1
    assert json.loads(doctor.stdout)["minimum"]["unmet"] == ["cgroup"]


def test_no_minimum(caller: Caller) -> None:
    modest = dataclasses.replace(caller, env=caller.env | {"CLOCHE_MINIMUM": "none"})
    run = run_cli("run", "-c", "print(1)", caller=modest, cwd=Path("/"))
    assert (run.returncode, run.stdout) == (0, b"1\n")
    doctor = run_cli("doctor", "--minimum", "none", caller=caller, cwd=Path("/"))
    assert doctor.returncode == 0

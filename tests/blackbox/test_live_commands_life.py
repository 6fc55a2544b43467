"""Commands in live sandboxes: many of them, their end with the sandbox, how they are confined, and
what the audit log says of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from commands import ENDLESS, Shell, audited, shell_of, soon
from harness import LiveService
from http_client import ask, post


@pytest.fixture
def shell(live_service: LiveService) -> Iterator[Shell]:
    with shell_of(live_service, env={"SHARED": "sandbox", "OWN": "sandbox"}) as shell:
        yield shell


# ---------------------------------------------------------------------------- many, and the end


def test_many_at_once_and_one_too_many(shell: Shell) -> None:
    commands = [shell.start(f"echo begun; read x; echo {n}") for n in range(32)]
    reply = shell.try_command("true")
    assert reply.status == 429 and reply.json["error"]["code"] == "too_many_commands", reply.body
    assert shell.terminal().answer.status == 429
    for command in commands:
        shell.prints(command, "begun")
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda c: shell.feed(c, data="\n"), commands))
    done = [shell.over(command) for command in commands]
    assert [c["stdout"] for c in done] == [f"begun\n{n}\n" for n in range(32)]
    assert shell.said("echo again") == "again\n"


def test_those_that_are_over_are_forgotten_in_time(shell: Shell) -> None:
    with ThreadPoolExecutor(4) as threads:
        done = list(threads.map(lambda n: shell.command(f"echo {n}"), range(80)))
    listed = shell.commands()
    assert len(listed) == 64
    assert {c["id"] for c in listed} < {c["id"] for c in done}


def test_all_ends_with_the_sandbox(live_service: LiveService) -> None:
    """Whoever waits hears of it, and nobody is left: the fixture looks."""
    with shell_of(live_service) as shell:
        background = shell.start("setsid sleep 1000 & echo begun; trap '' TERM HUP; sleep 1000")
        shell.prints(background, "begun")
        with (
            shell.stream(ENDLESS) as stream,
            shell.follow(background) as follower,
            shell.terminal("echo begun; exec sleep 1000") as terminal,
        ):
            events = stream.events()
            assert [next(events).type for _ in range(2)] == ["start", "stdout"]
            terminal.sees("begun")
            shell.end()
            for last in (list(events)[-1], list(follower.events())[-1]):
                assert last.type == "end" and last.data["status"] == "killed"
                assert last.data["problem"] == "its sandbox ended"
            assert terminal.end()["status"] == "killed"
        reply = shell.ask("GET", f"/commands/{background}")
        assert reply.status == 410 and reply.json["error"]["code"] == "sandbox_gone"


def test_a_command_is_use(live_service: LiveService) -> None:
    with shell_of(live_service) as shell:
        assert shell.info()["idle_expires"] is not None
        command = shell.start(ENDLESS)
        assert shell.info()["idle_expires"] is None
        shell.signal(command, 9)
        shell.over(command)
        assert shell.info()["idle_expires"] is not None


def test_pause(shell: Shell) -> None:
    """Nothing runs, nothing begins, and the clock stands still."""
    code = "echo x > ticks; echo begun; while [ ! -e go ]; do echo x >> ticks; done; echo done"
    command = shell.start(code, timeout_ms=20000)
    shell.prints(command, "begun")
    assert shell.post("/pause", {}).status == 200
    reply = shell.try_command("true")
    assert reply.status == 409 and reply.json["error"]["code"] == "sandbox_paused"
    assert shell.terminal().answer.status == 409
    assert soon(lambda: shell.read("ticks") == shell.read("ticks"))  # one may be on its way
    ticks = len(shell.read("ticks"))
    for _ in range(20):
        assert len(shell.read("ticks")) == ticks
    shell.put("go", b"")
    assert shell.look(command)["status"] == "running"
    assert shell.post("/resume", {}).status == 200
    assert shell.over(command)["stdout"] == "begun\ndone\n"


def test_what_is_paused_is_not_late(shell: Shell) -> None:
    command = shell.start(ENDLESS, timeout_ms=3000)
    other = shell.start("while [ ! -e go ]; do sleep 0.01; done", timeout_ms=60000)
    shell.prints(command, "begun")
    shell.post("/pause", {})
    born = shell.look(command)["duration_ms"]
    assert soon(lambda: shell.look(command)["duration_ms"] > born + 3000)
    assert shell.look(command)["status"] == "running"
    shell.post("/resume", {})
    assert shell.over(command)["status"] == "timeout"
    shell.put("go", b"")
    assert shell.over(other)["exit_code"] == 0


def test_a_paused_sandbox_can_be_deleted(live_service: LiveService) -> None:
    with shell_of(live_service) as shell:
        shell.prints(shell.start(ENDLESS), "begun")
        assert shell.post("/pause", {}).status == 200


# ---------------------------------------------------------------------------- confinement


def test_a_command_is_confined_as_a_kernel_is(shell: Shell) -> None:
    """The same status lines, limits, namespaces and mounts."""
    code = """
import os, resource
status = dict(l.split(":", 1) for l in open("/proc/self/status"))
for name in ("Uid", "Gid", "Groups", "NoNewPrivs", "Seccomp", "CapEff", "CapBnd", "CapPrm"):
    print(name, status[name].split())
for name in ("NOFILE", "CORE", "NPROC", "MEMLOCK", "SIGPENDING", "RTPRIO", "NICE", "MSGQUEUE"):
    print(name, resource.getrlimit(getattr(resource, "RLIMIT_" + name)))
for name in ("mnt", "net", "ipc", "uts", "pid"):
    print(name, os.readlink(f"/proc/self/ns/{name}"))
print(open("/proc/self/cgroup").read(), sorted(os.listdir("/")), os.umask(0o22))
print(open("/proc/self/uid_map").read(), open("/proc/self/mountinfo").read())
"""
    assert shell.said(["python3", "-c", code]) == shell.run(code)


def test_no_network_no_forbidden_calls_no_descriptors(shell: Shell) -> None:
    code = """
import ctypes, os, socket
print(sorted(os.listdir("/proc/self/fd")))
for family in (socket.AF_INET, socket.AF_VSOCK, socket.AF_NETLINK):
    try:
        s = socket.socket(family)
        s.connect(("192.0.2.1", 80))
    except OSError as error:
        print(error.errno)
libc = ctypes.CDLL(None, use_errno=True)
print(libc.unshare(0x10000000) and ctypes.get_errno())
"""
    lines = shell.said(["python3", "-c", code]).splitlines()
    assert lines[0] == "['0', '1', '2', '3']"  # 3 is the directory that is read
    assert lines[1] == "101" and all(int(line) in (1, 94, 97) for line in lines[2:5]), lines


def test_limits_are_the_sandboxs(live_service: LiveService) -> None:
    with shell_of(live_service, limits={"memory_mb": 128, "pids": 20}) as shell:
        many = shell.command("for i in $(seq 30); do sleep 1000 & done; echo all")
        assert "all" not in many["stdout"] and many["exit_code"] != 0, many
        shell.post("/restart", {})
        shell.end()
    with shell_of(live_service, limits={"memory_mb": 128, "disk_mb": 64}) as shell:
        done = shell.command(["python3", "-c", "x = bytearray(400 << 20)"])
        assert done["status"] == "killed" and done["signal"] == 9, done
        assert "128 MB of memory" in done["problem"]
        done = shell.command("python3 -c 'x = bytearray(400 << 20)'; exit $?")
        assert done["exit_code"] == 137 and "128 MB of memory" in done["problem"], done
        assert shell.command("kill -9 $$")["problem"] is None
        assert shell.said("echo on") == "on\n"  # the kernel did not die of it
        assert shell.run("print(1)") == "1\n"


# ---------------------------------------------------------------------------- the audit log


def test_commands_are_in_the_audit_log(shell: Shell, live_service: LiveService) -> None:
    """Who ran what, by its hash, and how it ended; with whatever the command was asked for."""
    done = shell.command("echo needle; exit 3")
    words = shell.command(["echo", "needle", "two"])
    late = shell.command("sleep 1000", timeout_ms=100)
    deleted = shell.start(ENDLESS)
    assert shell.ask("DELETE", f"/commands/{deleted}").status == 204
    with shell.terminal("echo needle; read x") as terminal:
        terminal.type("x\n")
        terminal.end()
    assert soon(lambda: deleted in audited(live_service))
    log = audited(live_service)
    for id, line, status in [
        (done["id"], "echo needle; exit 3", "exited"),
        (words["id"], "echo needle two", "exited"),
        (late["id"], "sleep 1000", "timeout"),
        (deleted, ENDLESS, "killed"),
        (terminal.id, "echo needle; read x", "exited"),
    ]:
        found = log[id]
        assert found["status"] == status and found["profile"] == "base", found
        assert found["code_sha256"] == hashlib.sha256(line.encode()).hexdigest()
        assert found["code_bytes"] == len(line) and found["cpu_ms"] is None
        assert found["request"].startswith("req_") and found["tenant"] == "default"
        assert found["denied"] == [] and "code" not in found


def test_bash_of_sessions_is_in_the_audit_log(live_service: LiveService) -> None:
    path = "/v1/sessions/" + post(live_service.port, "/v1/sessions", {}).json["session_id"]
    assert post(live_service.port, path + "/bash", {"cmd": "echo of a session"}).status == 200
    assert ask(live_service.port, "DELETE", path).status == 204
    hashes = [line["code_sha256"] for line in audited(live_service).values()]
    assert hashlib.sha256(b"echo of a session").hexdigest() in hashes

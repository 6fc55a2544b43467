"""The process that copies bytes, and the sockets that are ours: what they cost a sandbox."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from host import Process, descendants
from live_network import NAMES, NetworkService, denied, program, put, said, until
from world import RECORDER, WEB, World

COUNT = """
import errno, socket
def fill():
    made = []
    while True:
        try:
            made.append(socket.socket())
        except OSError as error:
            return len(made), errno.errorcode[error.errno]
"""

THREADS = """
import errno, socket, threading
stop, started = threading.Event(), 0
while True:
    try:
        threading.Thread(target=stop.wait, daemon=True).start()
        started += 1
    except RuntimeError:
        break
def attempt():
    with socket.socket() as sock:
        return errno.errorcode.get(sock.connect_ex(("{WEB}", 7)), "ok")
"""


def the_usher(net: NetworkService) -> Process:
    """Of the one sandbox that has one. It takes its name when it has given up its rights."""

    def named() -> list[Process]:
        return [p for p in descendants(net.process.pid) if p.comm == "cloche-usher"]

    (usher,) = until(named)
    return usher


def test_without_a_process_there_is_no_connection(net: NetworkService) -> None:
    """It is one of the sandbox's; the receipt says why, and it comes when there is room."""
    with net.box([f"{WEB}:7"], limits={"pids": 8}) as box:
        result = box.run(THREADS.replace("{WEB}", WEB) + "print(attempt())")
        assert result["stdout"] == "EADDRNOTAVAIL\n", result
        told = [one for one in denied(result) if one["rule"] == "network:limit"]
        assert told and "could not be started" in told[0]["detail"], result
        code = """
import time
stop.set()
end = time.monotonic() + 60
while (result := attempt()) != "ok" and time.monotonic() < end:
    time.sleep(0.05)
print(result)
"""
        assert said(box, code, timeout_ms=60000) == ["ok"]


@pytest.mark.parametrize("network", [None, "open"])
def test_our_sockets_are_not_the_sandboxs(net: NetworkService, network: str | None) -> None:
    """Those that make a connection count for nothing: with many open there are as many left."""
    with net.box(network, limits={"open_files": 1000}) as box:
        (before,) = said(box, COUNT + "print(*fill())")
        if network is None:
            return
        code = f"""
kept = [socket.create_connection(("{WEB}", 7), 10) for _ in range(40)]
kept += [socket.create_connection(("10.0.2.3", 53), 10) for _ in range(5)]
n, error = fill()
print(n + len(kept), error)
"""
        (after,) = said(box, COUNT + code, timeout_ms=60000)
        most, error = before.split()
        assert after.split()[1] == error == "ENFILE"
        # Some that were closed just now may still be there, the first time or the second.
        assert abs(int(most) - int(after.split()[0])) <= 8


def test_a_hello_that_the_gate_never_answers_is_reset(net: NetworkService) -> None:
    (gate,) = [p for p in descendants(net.process.pid) if p.comm == "cloche-gate"]
    with net.box(NAMES) as box:
        said(box, program("speak") + "sock = socket.create_connection(('raw.example.test', 443))")
        os.kill(gate.pid, signal.SIGSTOP)
        try:
            code = """
sock.sendall(client_hello("raw.example.test"))
sock.settimeout(50)
try:
    print(sock.recv(1))
except ConnectionResetError:
    print("reset")
"""
            assert said(box, code, timeout_ms=60000) == ["reset"]
        finally:
            os.kill(gate.pid, signal.SIGCONT)


def test_what_a_policy_takes_away_comes_before_bytes(net: NetworkService, world: World) -> None:
    """However much there is to copy when it runs again: that is never."""
    with net.box([RECORDER]) as box:
        connect = f"socket.create_connection(('{RECORDER}', 80))"
        said(box, f"import socket\nkept = [{connect} for _ in range(40)]")
        usher = the_usher(net)
        os.kill(usher.pid, signal.SIGSTOP)
        try:
            said(box, "for sock in kept:\n    sock.sendall(b'secret')")
            put(box, "none")
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(usher.pid, signal.SIGCONT)
        code = """
def ends(sock):
    try:
        return sock.recv(1) == b""
    except ConnectionResetError:
        return True
print(all(map(ends, kept)))
"""
        assert said(box, code, timeout_ms=60000) == ["True"]
        assert "secret" not in "".join(world.received())


def test_one_that_takes_no_orders_is_ended(net: NetworkService) -> None:
    """A sandbox can keep it from running. What a policy takes away is taken away all the same."""
    allowed = [f"{WEB}:7"]
    with net.box(allowed) as box:
        said(box, f"import socket\nsock = socket.create_connection(('{WEB}', 7))")
        usher = the_usher(net)
        os.kill(usher.pid, signal.SIGSTOP)
        try:
            for _ in range(300):  # its channel is full then
                put(box, allowed)
            put(box, "none")
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(usher.pid, signal.SIGCONT)
        code = """
sock.settimeout(20)
try:
    sock.sendall(b"?")
    print(sock.recv(1))
except OSError:
    print(b"")
"""
        assert said(box, code, timeout_ms=60000) == ["b''"]


CROWD = f"""
import errno, os, signal, socket, time
made = []
for _ in range(40):
    pid = os.fork()
    if not pid:
        while True:
            pass
    made.append(pid)
pid = os.fork()
if not pid:
    def say(word):
        with open("said", "a") as f:
            f.write(word + " ")
    say("connecting")
    try:
        sock = socket.create_connection(("{WEB}", 7), 60)
        say("connected")
        sock.sendall(b"secret")
        say(repr(sock.recv(6)))
    except OSError as error:
        say(errno.errorcode.get(error.errno, "none"))
    os._exit(0)
"""
END = """
for other in made:
    os.kill(other, signal.SIGKILL)
os.waitpid(pid, 0)
print(open("said").read())
"""


def starting(net: NetworkService) -> list[Process]:
    """It is one more process of an init's, which bears init's name until it is ready."""
    family = descendants(net.process.pid)
    inits = [p.pid for p in family if p.comm == "cloche-init"]
    return [p for p in family if p.ppid in inits and p.comm in ("cloche-init", "cloche-usher")]


def takes_away_in_time(net: NetworkService) -> bool:
    """Whether the usher was not ready when the policy was taken away."""
    with net.box([f"{WEB}:7"], limits={"cpus": 0.1, "pids": 64}) as box:
        box.run(CROWD, timeout_ms=60000)
        (usher,) = until(lambda: starting(net))
        os.kill(usher.pid, signal.SIGSTOP)
        try:
            put(box, "none")
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(usher.pid, signal.SIGCONT)
        (words,) = said(box, END, timeout_ms=60000)
        assert words.split()[1:] in (["EACCES"], ["ENETUNREACH"], ["connected", "ECONNRESET"])
        return usher.comm == "cloche-init"


def test_a_connect_that_waits_for_it_is_judged_again(net: NetworkService) -> None:
    """A sandbox can keep its usher from being ready for as long as it likes. What was allowed
    before it is ready is not connected after it was taken away."""
    assert any(takes_away_in_time(net) for _ in range(8))


@pytest.mark.once
def test_a_program_that_has_gone_is_noticed(net: NetworkService) -> None:
    """A host that says nothing may keep a connection for ever, and the kernel forgets a program
    that has closed after a minute: the inner side is probed."""
    with net.box([f"{WEB}:7"]) as box:
        said(box, f"import socket\nsock = socket.create_connection(('{WEB}', 7))")
        usher = the_usher(net)
        status = Path(f"/proc/{usher.pid}/status").read_text()
        (init,) = re.findall(r"^PPid:\s+(\d+)", status, re.M)
        command = ["nsenter", "-t", init, "-n", "ss", "-tnoH", "sport", "=", ":7"]
        inner = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
        assert inner.count("\n") == inner.count("timer:(keepalive,") == 1, inner

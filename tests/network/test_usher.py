"""The process that copies bytes, and the sockets that are ours: what they cost a sandbox."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from host import descendants
from live_network import NAMES, NetworkService, denied, program, said
from world import WEB

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


def test_without_a_process_there_is_no_connection(net: NetworkService) -> None:
    """It is one of the sandbox's; the receipt says why, and it comes when there is room."""
    with net.box([f"{WEB}:7"], limits={"pids": 8}) as box:
        result = box.run(THREADS.replace("{WEB}", WEB) + "print(attempt())")
        assert result["stdout"] == "EAGAIN\n", result
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
        # One that was closed just now may still be there.
        assert int(most) - 2 <= int(after.split()[0]) <= int(most)


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


def test_a_program_that_has_gone_is_noticed(net: NetworkService) -> None:
    """A host that says nothing may keep a connection for ever, and the kernel forgets a program
    that has closed after a minute: the inner side is probed."""
    with net.box([f"{WEB}:7"]) as box:
        said(box, f"import socket\nsock = socket.create_connection(('{WEB}', 7))")
        (usher,) = [p for p in descendants(net.process.pid) if p.comm == "cloche-usher"]
        status = Path(f"/proc/{usher.pid}/status").read_text()
        (init,) = re.findall(r"^PPid:\s+(\d+)", status, re.M)
        command = ["nsenter", "-t", init, "-n", "ss", "-tnoH", "sport", "=", ":7"]
        inner = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
        assert inner.count("\n") == inner.count("timer:(keepalive,") == 1, inner

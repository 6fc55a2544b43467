"""Programs that were allowed somewhere and want to be elsewhere, on the test internet. No packet
may go where none is allowed to go: the fixture `world` looks after every test."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from http_client import ask
from harness import eventually, turns
from hostile import PROGRAMS, Program, complaints
from live_network import ECHO, FORBIDDEN, NetworkService, attempt, put, said
from world import OTHER, SILENT, WEB, World

HERE = Path(__file__).resolve().parent
ALLOWED = {"allow": [f"{WEB}:7,7007", "203.0.113.0/25"]}
ROUNDS = int(os.environ.get("CLOCHE_RACE_ROUNDS", "3000"))  # script/test-network: 100,000


def run(net: NetworkService, name: str, *args: str, **fields: Any) -> dict[str, Any]:
    code = (PROGRAMS / f"network_{name}.py").read_text()
    body = {"code": code, "args": list(args), "network": ALLOWED, "timeout_ms": 60000, **fields}
    reply = net.client.ask("POST", "/v1/execute", body)
    assert reply.status == 200, reply
    result: dict[str, Any] = reply.json
    return result


def test_sockets_that_are_led_elsewhere(net: NetworkService) -> None:
    result = run(net, "reach", WEB, SILENT, OTHER)
    rows = dict(line.strip().split(": ", 1) for line in result["stdout"].splitlines())
    lines = result["stdout"].splitlines()
    assert lines[-1] == "afterwards: end", result
    assert not [line for line in lines if line == "  somebody there: True"], lines
    assert rows["of our namespace"] == "True"
    assert rows["our name"] == "10.0.2.15" and rows["interfaces"] == "lo"
    for name in ("unspec on established", "listen while pending"):
        assert name in rows
    for name in ("SO_MARK", "IP_TRANSPARENT", "TCP_REPAIR", "SO_RCVBUFFORCE"):
        assert rows[name] in ("EPERM", "EACCES"), (name, rows[name])
    for name in ("raw", "ping", "mptcp", "sctp", "udplite", "packet"):
        assert rows[name] != "ok", name
    for name in ("fast open by sendto", "fast open by sendmsg", "fast open by sendmmsg"):
        assert rows[name] == "EOPNOTSUPP", (name, rows[name])


@pytest.mark.parametrize("forbidden", sorted(FORBIDDEN - {OTHER})[:3])
def test_sockets_that_are_led_to_closed_ranges(net: NetworkService, forbidden: str) -> None:
    if ":" not in forbidden:
        result = run(net, "reach", WEB, SILENT, forbidden)
        assert result["stdout"].endswith("afterwards: end\n"), result


def test_sources_that_are_the_destination(net: NetworkService, world: World) -> None:
    result = run(net, "sources", WEB, SILENT, OTHER)
    wrong = complaints(Program.read("network_sources"), result["stdout"], result)
    assert not wrong, (wrong, result["stderr"])
    assert {place for _, place, _ in world.seen()} <= {WEB, SILENT}


def test_connects_that_nobody_waits_for(net: NetworkService) -> None:
    result = run(net, "abandon", WEB, SILENT, "8")
    wrong = complaints(Program.read("network_abandon"), result["stdout"], result)
    assert not wrong, (wrong, result["stderr"])


# ---------------------------------------------------------------------------- the kernel's memory

# To ever new addresses of IPv6, as fast as it goes: none is allowed.
NEIGHBOURS = """
import socket, time
made = 0
datagrams = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
end = time.monotonic() + 1
while time.monotonic() < end:
    for form in ("2001:db8::%x:%x", "fe80::%x:%x", "ff01::%x:%x", "ff02::%x:%x"):
        made += 1
        address = form % (made >> 16, made & 65535)
        try:
            datagrams.sendto(b"x", (address, 9))
        except OSError:
            pass
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as stream:
            stream.setblocking(False)
            stream.connect_ex((address, 53))  # of a name server: nobody asks the gate
print(made)
"""


def neighbours() -> int:
    """Of IPv6, in all namespaces: the kernel has one table."""
    lines = Path("/proc/1/net/stat/ndisc_cache").read_text().splitlines()
    return int(lines[1].split()[lines[0].split().index("entries")], 16)


def test_addresses_cost_no_memory(net: NetworkService) -> None:
    """At a loopback the kernel keeps what it knows of each neighbour, and charges nobody."""
    with net.box([f"{WEB}:7", "2001:db8:1::2"]) as box:
        before = neighbours()
        (made,) = said(box, NEIGHBOURS)
        assert int(made) > 2000
        assert neighbours() - before < 200


# To a host that never reads, as much as fits.
FILLS = f"""
import errno, socket
socks = []
for _ in range(40):
    sock = socket.create_connection(("{WEB}", 27), 10)
    sock.setblocking(False)
    try:
        while True: sock.send(b"x" * 65536)
    except BlockingIOError:
        socks.append(sock)
print(len(socks))
"""


def left_behind(port: int) -> list[str]:
    """Connections from this host to that port that no process has any more."""
    states = [word for state in ("fin-wait-1", "last-ack", "closing") for word in ("state", state)]
    words = ["ss", "-tneH", *states, "dport", "=", f":{port}"]
    shown = subprocess.run(words, stdout=-1, check=True, text=True).stdout
    return [line for line in shown.splitlines() if "ino:0" in line or "ino:" not in line]


def test_nothing_stays_in_the_hosts_network(net: NetworkService) -> None:
    """What was sent to a host that does not read goes with the sandbox."""
    body = {"code": FILLS, "network": [f"{WEB}:27"], "timeout_ms": 60000}
    reply = net.client.ask("POST", "/v1/execute", body)
    assert reply.json["stdout"] == "40\n", reply
    assert eventually(lambda: not left_behind(27), 20), left_behind(27)


# Through both ways, and closed by both, but for what the host has not taken.
CLOSES = f"""
import errno, socket
for _ in range(40):
    with socket.create_connection(("{WEB}", 30), 10) as sock:
        sock.sendall(b"x" * 200_000)
        sock.shutdown(socket.SHUT_WR)
        assert sock.recv(1) == b""
kept = []
for _ in range(2):
    kept.append(socket.socket())
    print(errno.errorcode.get(kept[-1].connect_ex(("{WEB}", 7)), "ok"))
"""


def test_what_nobody_acknowledges_counts_as_a_connection(net: NetworkService) -> None:
    with net.box({"allow": [f"{WEB}:30,7"], "connections": 41}) as box:
        assert said(box, CLOSES, timeout_ms=60000) == ["ok", "EADDRNOTAVAIL"]
        assert not left_behind(30)  # it has an owner
    assert eventually(lambda: not left_behind(30), 20), left_behind(30)


# ---------------------------------------------------------------------------- races


@pytest.fixture(scope="module")
def racer(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    binary = tmp_path_factory.mktemp("race") / "race"
    words = ["gcc", "-static", "-O1", "-pthread", "-o", str(binary), str(HERE / "network_race.c")]
    subprocess.run(words, check=True)
    return binary.read_bytes()


# And how many rounds in one sandbox. Where each begins a connection, the first hundred do, and then
# 20 a second: what comes behind them is refused before anything could go wrong.
MODES = {
    **{"address": 200, "descriptor": 1000, "loopback": 10_000, "family": 10_000},
    **{"datagram": 10_000, "unix": 10_000},
}


@pytest.mark.parametrize("mode", list(MODES))
@pytest.mark.parametrize("policy", ["rules", "open"])
def test_races(net: NetworkService, racer: bytes, mode: str, policy: str) -> None:
    """While it is judged, the address or the descriptor becomes another."""
    some, begun, enough = min(ROUNDS, MODES[mode]), 0, ROUNDS // 100
    for _ in turns(ROUNDS // some, lambda: begun >= enough):
        begun += race(net, racer, mode, policy, some)
    assert begun >= enough, begun


def race(net: NetworkService, racer: bytes, mode: str, policy: str, rounds: int) -> int:
    """How many connects went on, to wherever."""
    forbidden = OTHER if policy == "rules" else "10.9.9.9"
    with net.box(ALLOWED if policy == "rules" else "open") as box:
        assert ask(net.port, "PUT", f"{box.path}/files/race", racer).status in (200, 201, 204)
        words = ["./race", mode, str(rounds), WEB, forbidden, "80"]
        code = f"""
import os, subprocess
os.chmod("race", 0o700)
done = subprocess.run({words!r}, capture_output=True, text=True)
print(done.stdout.strip() or done)
"""
        (line,) = said(box, code, timeout_ms=60000)
        assert line.startswith("held:"), line
        counts = {name: int(n) for name, n in (word.split("=") for word in line.split()[1:])}
        assert attempt(box, "127.0.0.1", 9) == "ECONNREFUSED"
        return sum(counts.get(name, 0) for name in ("ok", "EINPROGRESS", "ECONNREFUSED"))


# ---------------------------------------------------------------------------- two sandboxes


def test_descriptors_from_a_neighbour(
    world: World,
    start_net: Callable[..., NetworkService],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Two sandboxes, one directory, two policies. A socket that came from the other one is of the
    other's namespace, for which nobody here opens a way."""
    shared = tmp_path_factory.mktemp("shared")
    shared.chmod(0o777)
    shared.parent.chmod(0o755)
    service = start_net("--live-bind", f"{shared}:shared:rw")
    make = """
import errno, os, socket, time
os.chdir("shared")
"""
    give = f"""
server = socket.socket(socket.AF_UNIX)
server.bind("door")
os.chmod("door", 0o777)
server.listen()
fresh, held = socket.socket(), socket.socket()
held.connect(("{WEB}", 9))
listener = socket.create_server(("127.0.0.1", 5000))
caller = socket.create_connection(("127.0.0.1", 5000))
"""
    take = f"""
door = socket.socket(socket.AF_UNIX)
door.connect("door")
_, fds, _, _ = socket.recv_fds(door, 1, 3)
fresh, held, listener = (socket.socket(fileno=fd) for fd in fds)
def go(sock, *where):
    sock.settimeout(3)
    return errno.errorcode.get(sock.connect_ex(where), "ok")
mine = socket.socket()
is_mine = fresh.getsockopt(1, 71, 8) == mine.getsockopt(1, 71, 8)
try:
    accepted = bool(listener.accept())
except OSError as error:
    accepted = errno.errorcode[error.errno]
print(is_mine, go(fresh, "{WEB}", 7), go(fresh, "{OTHER}", 7), accepted)
"""
    serve = """
peer, _ = server.accept()
socket.send_fds(peer, [b'x'], [fresh.fileno(), held.fileno(), listener.fileno()])
"""
    with service.box([f"{WEB}:9"]) as one, service.box(ECHO) as other:
        one.run(make + give)
        with one.later(serve):
            (line,) = said(other, make + take)
            is_mine, first, second, accepted = line.split()
            assert is_mine == "False"
            assert accepted == "EINVAL"  # nobody would count it
            assert first != "ok" and second != "ok", line
    assert ("tcp", WEB, 7) not in world.seen()


def test_a_sandbox_without_a_network_gets_none_from_a_neighbour(
    world: World,
    start_net: Callable[..., NetworkService],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    shared = tmp_path_factory.mktemp("shared")
    shared.chmod(0o777)
    shared.parent.chmod(0o755)
    service = start_net("--live-bind", f"{shared}:shared:rw")
    with service.box("none") as poor, service.box(ECHO) as rich:
        poor.run(
            "import os, socket\nserver = socket.socket(socket.AF_UNIX)\nserver.bind('shared/s')\n"
            "os.chmod('shared/s', 0o777)\n"
            "server.listen()\nmine = socket.socket()"
        )
        serve = "peer, _ = server.accept()\nsocket.send_fds(peer, [b'x'], [mine.fileno()])\n"
        with poor.later(serve + "peer.recv(1)"):
            code = f"""
import errno, socket
door = socket.socket(socket.AF_UNIX)
door.connect("shared/s")
_, fds, _, _ = socket.recv_fds(door, 1, 1)
sock = socket.socket(fileno=fds[0])
sock.settimeout(3)
print(errno.errorcode.get(sock.connect_ex(("{WEB}", 7)), "ok"))
door.close()
"""
            assert said(rich, code) != ["ok"]
    assert not world.seen()


# ---------------------------------------------------------------------------- odd processes


def test_a_process_whose_memory_nobody_may_read(net: NetworkService) -> None:
    """Executed from a file that may not be read. Refused or connected, and nothing hangs."""
    code = f"""
import shutil, os, subprocess
shutil.copy("/bin/bash", "secret")
os.chmod("secret", 0o111)
words = ["./secret", "-c", "exec 3<>/dev/tcp/{WEB}/7 && echo in"]
subprocess.run(words, capture_output=True, timeout=30)
print("over")
"""
    with net.box(ECHO) as box:
        assert said(box, code) == ["over"]
        assert attempt(box, WEB, 7) == "connected"


def test_many_processes_at_once(net: NetworkService) -> None:
    code = f"""
import collections, errno, os, socket
children = []
for _ in range(100):
    pid = os.fork()
    if pid == 0:
        try:
            sock = socket.socket()
            sock.settimeout(20)
            os._exit(sock.connect_ex(("{WEB}", 7)))
        finally:
            os._exit(99)
    children.append(pid)
too_many = {{errno.EADDRNOTAVAIL, errno.EACCES}}
found = collections.Counter(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children)
print(sum(found.values()), found[0] > 40, sorted(set(found) - {{0, *too_many}}))
"""
    with net.box(ECHO, limits={"pids": 200}) as box:
        assert said(box, code, timeout_ms=60000) == ["100 True []"]


def test_a_namespace_with_a_past_is_not_used_again(net: NetworkService) -> None:
    """Whoever comes next finds no route, no address and no socket of before."""
    look = """
import os, socket, struct
print(open("/proc/net/tcp").read().count("\\n"), open("/proc/net/udp").read().count("\\n"))
sock = socket.socket()
print(sock.getsockopt(1, 71, 8).hex())
try:
    socket.socket().bind(("198.51.100.2", 0))
    print("bound")
except OSError:
    print("not bound")
"""
    cookies = set()
    for turn in range(12):
        body = {"code": look, "network": "open" if turn % 2 == 0 else "none"}
        if turn % 3 == 2:
            del body["network"]
        lines = net.client.ask("POST", "/v1/execute", body).json["stdout"].splitlines()
        if turn % 2 == 0 and "network" in body:
            assert lines[2] == "bound"
            cookies.add(lines[1])
        else:
            assert lines[2] == "not bound", lines
            assert lines[1] not in cookies
    with net.box() as box:
        put(box, "open")
        assert attempt(box, WEB, 7) == "connected"

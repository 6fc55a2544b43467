"""kill -9 of each of our processes while a sandbox uses the network, in each state that a
connection has: what stands, goes on; what cannot, ends; and nobody gets more than before."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from family import kill
from host import Process, descendants, is_alive
from live import Box
from live_network import NetworkService, attempt, attempts, put, said, until
from world import OTHER, SILENT, WEB, World

POLICY = {"allow": [f"{WEB}:7", f"{WEB}:19", SILENT, "*.example.test"]}
STATES = {
    "idle": "sock = None",
    "open": f"sock = socket.create_connection(('{WEB}', 7), 10)",
    "busy": f"""
sock = socket.create_connection(('{WEB}', 19), 10)
def read():
    try:
        while sock.recv(1 << 20):
            pass
    except OSError:
        pass
threading.Thread(target=read, daemon=True).start()
""",
    "pending": f"""
sock = socket.socket()
sock.setblocking(False)
sock.connect_ex(('{SILENT}', 80))
""",
    "asking": """
sock = None
def ask():
    for _ in range(20):
        try:
            socket.getaddrinfo("slow.example.test", 80)
        except OSError:
            pass
threading.Thread(target=ask, daemon=True).start()
""",
}


@pytest.fixture(scope="module")
def doomed_session(
    on_host: World, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[NetworkService]:
    service = NetworkService(tmp_path_factory.mktemp("doomed"))
    try:
        yield service
        service.check_health()
        service.stop()
    finally:
        service.kill()


@pytest.fixture
def doomed(doomed_session: NetworkService, world: World) -> NetworkService:
    return doomed_session


def found(service: NetworkService, role: str) -> list[Process]:
    service.drain()
    family = descendants(service.process.pid)
    return [p for p in family if role in (p.comm, p.role) and is_alive(p)]


def kill_all(service: NetworkService, role: str) -> None:
    victims = until(lambda: found(service, role))  # it has its name once it has given up all
    assert victims, [(p.comm, p.role) for p in descendants(service.process.pid)]
    for victim in victims:
        kill(victim)
    assert until(lambda: not [v for v in victims if is_alive(v)])


def works_again(service: NetworkService, box: Box) -> None:
    """New connects get through, to where they may and nowhere else."""
    assert until(lambda: service.drain() and attempt(box, WEB, 7) == "connected")
    assert attempt(box, OTHER, 7) == "EACCES"
    put(box, [f"{WEB}:7"])
    found = attempts(box, [(WEB, 7), (WEB, 19)])
    assert list(found.values()) == ["connected", "EACCES"]


@pytest.mark.parametrize("state", list(STATES))
def test_the_gate_dies(doomed: NetworkService, state: str) -> None:
    with doomed.box(POLICY) as box:
        box.run(f"import socket, threading\n{STATES[state]}")
        kill_all(doomed, "cloche-gate")
        if state == "open":  # established connections outlive it
            assert said(box, "sock.sendall(b'abc'); print(sock.recv(3))") == ["b'abc'"]
        # Nothing hangs: a connect waits for the next gate, and says so if it does not come.
        assert attempt(box, WEB, 7, timeout_ms=60000) in ("connected", "ENETDOWN")
        works_again(doomed, box)
        if state == "open":
            assert said(box, "sock.sendall(b'abc'); print(sock.recv(3))") == ["b'abc'"]
            put(box, "none")  # the next gate knows of it
            assert said(box, "try: print(sock.recv(3))\nexcept OSError: print('reset')") == [
                "reset"
            ]


@pytest.mark.parametrize("state", list(STATES))
def test_the_usher_dies(doomed: NetworkService, state: str) -> None:
    with doomed.box(POLICY) as box:
        assert attempt(box, WEB, 7) == "connected"
        box.run(f"import socket, threading\n{STATES[state]}")
        kill_all(doomed, "cloche-usher")
        if state == "open":
            shown = said(
                box, "try: print(sock.recv(3))\nexcept OSError: print(b'')", timeout_ms=60000
            )
            assert shown == ["b''"]
        works_again(doomed, box)


@pytest.mark.parametrize("state", ["open", "busy", "pending"])
def test_init_dies(doomed: NetworkService, state: str) -> None:
    """The sandbox is gone, and its connections with it."""
    box = doomed.box(POLICY)
    before = {p.pid for p in found(doomed, "cloche-usher")}
    box.run(f"import socket, threading\n{STATES[state]}")
    if state != "pending":
        (usher,) = until(lambda: [p for p in found(doomed, "cloche-usher") if p.pid not in before])
        (init,) = [p for p in descendants(doomed.process.pid) if p.pid == usher.ppid]
        kill(init)
        assert until(lambda: not is_alive(usher))
        assert until(lambda: box.ask("GET").status == 410)
    box.delete()
    with doomed.box(POLICY) as other:
        works_again(doomed, other)


@pytest.mark.parametrize("state", list(STATES))
def test_the_server_dies(doomed: NetworkService, state: str) -> None:
    with doomed.box(POLICY) as box:
        box.run(f"import socket, threading\n{STATES[state]}")
        kill_all(doomed, "cloche-server")
        assert until(lambda: doomed.drain() and box.ask("GET").status == 200)
        if state == "open":
            assert said(box, "sock.sendall(b'abc'); print(sock.recv(3))") == ["b'abc'"]
        assert box.ask("GET", "/network").json != "none"
        works_again(doomed, box)


def test_gate_and_server_die(doomed: NetworkService) -> None:
    with doomed.box(POLICY) as box:
        box.run(f"import socket\n{STATES['open']}")
        kill_all(doomed, "cloche-gate")
        kill_all(doomed, "cloche-server")
        assert until(lambda: doomed.drain() and box.ask("GET").status == 200)
        assert said(box, "sock.sendall(b'abc'); print(sock.recv(3))") == ["b'abc'"]
        works_again(doomed, box)


def test_the_warden_dies(world: World, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Everything ends with it."""
    service = NetworkService(tmp_path_factory.mktemp("orphans"))
    try:
        service.settle()
        box = service.box(POLICY)
        box.run(f"import socket\n{STATES['open']}")
        family = service.remember()
        kill_all(service, "cloche-warden")
        assert until(lambda: not [p for p in family if p.role == "cloche-gate" and is_alive(p)])
        assert until(lambda: not [p for p in family if p.role == "cloche-usher" and is_alive(p)])
    finally:
        service.kill()

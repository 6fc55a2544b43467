"""What some clients need beside the test internet, for as long as a context lasts. Whoever enters
is on the host."""

from __future__ import annotations

import collections
import contextlib
import os
import select
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from world import FAR, FAR_HOST, GRPC, PYTHON, World, batch, inside, made

HERE = Path(__file__).resolve().parent
SO_RCVBUFFORCE = 33
SOL_PACKET, PACKET_VNET_HDR, PACKET_IGNORE_OUTGOING = 263, 15, 23
FRAME = 1 << 17  # bytes: no segment is larger, whatever the kernel leaves to cards
WIRE_SECONDS = 0.025  # one way


def on_path(name: str) -> str | None:
    return shutil.which(name, path="/usr/bin:/bin:/usr/sbin:/usr/local/go/bin:/usr/local/bin")


def postgres() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else None


@contextlib.contextmanager
def databases(world: World, directory: Path) -> Iterator[None]:
    """postgres and redis on the internet, as far as they are installed."""
    started: list[subprocess.Popen[bytes]] = []
    with inside(world.internet):
        if server := on_path("redis-server"):
            words = [server, "--bind", "0.0.0.0", "--protected-mode", "no", "--save", ""]
            started.append(subprocess.Popen(words, cwd=directory, stdout=subprocess.DEVNULL))
        if programs := postgres():
            data = directory / "postgres"
            data.mkdir()
            shutil.chown(data, "nobody")
            as_nobody = ["setpriv", "--reuid=nobody", "--clear-groups", "--inh-caps=-all"]
            begin = [*as_nobody, str(programs / "initdb"), "-D", str(data)]
            begin += ["-U", "postgres", "-A", "trust"]
            subprocess.run(begin, check=True, capture_output=True)
            (data / "pg_hba.conf").write_text("host all all 0.0.0.0/0 trust\n")
            words = [*as_nobody, str(programs / "postgres"), "-D", str(data), "-h", "*", "-k", ""]
            with open(directory / "postgres.log", "wb") as log:
                started.append(subprocess.Popen(words, stderr=log, cwd=data))
    try:
        yield
    finally:
        for process in started:
            process.terminate()
            process.wait()


@contextlib.contextmanager
def grpc_server(world: World, _: Path) -> Iterator[None]:
    with inside(world.internet):
        server = subprocess.Popen(
            [PYTHON, HERE / "grpc_server.py", world.directory, GRPC],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
    assert server.stdin is not None and server.stdout is not None
    try:
        assert server.stdout.readline() == "up\n"
        yield
    finally:
        server.stdin.close()
        server.wait(timeout=60)


@contextlib.contextmanager
def large_repository(world: World, directory: Path) -> Iterator[None]:
    """large.git beside repo.git (sites.py), of 100 MB that cannot be compressed."""
    work = directory / "large"
    work.mkdir()
    for n in range(100):
        (work / f"file{n}").write_bytes(os.urandom(1 << 20))
    script = (
        "git init -q && git config core.compression 0 && git config core.bigFileThreshold 64k && "
        "git add . && git -c user.name=t -c user.email=t@example.test commit -q -m large && "
        f"git clone -q --bare . {world.directory}/large.git && "
        f"git -C {world.directory}/large.git config core.bigFileThreshold 64k"
    )
    env = {"PATH": os.environ["PATH"], "HOME": str(directory), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["bash", "-c", script], cwd=work, env=env, check=True)
    yield
    shutil.rmtree(world.directory / "large.git")


# ---------------------------------------------------------------------------- a long wire


def end_of_wire(interface: str) -> socket.socket:
    """Takes and gives frames as the kernel has them: segments that nobody has cut yet, sums that
    nobody has written yet."""
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    sock.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    sock.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)
    sock.bind((interface, 3))
    return sock


def carry(source: socket.socket, target: socket.socket, over: threading.Event) -> None:
    waiting: collections.deque[tuple[float, bytes]] = collections.deque()
    while not over.is_set():
        pause = max(0.0, waiting[0][0] - time.monotonic()) if waiting else 0.2
        if select.select([source], [], [], pause)[0]:
            waiting.append((time.monotonic() + WIRE_SECONDS, source.recv(FRAME)))
        while waiting and waiting[0][0] <= time.monotonic():
            target.send(waiting.popleft()[1])


@contextlib.contextmanager
def long_wire(world: World, _: Path) -> Iterator[None]:
    """From the host to FAR it is 50 ms, there and back: what netem would do, which many kernels
    come without."""
    middle = made()
    ends: list[socket.socket] = []
    sides = {"near": (world.host, FAR_HOST), "distant": (world.internet, FAR)}
    for name, (namespace, address) in sides.items():
        with inside(middle):
            there = f"/proc/{os.getpid()}/fd/{namespace}"
            words = f"ip link add {name} type veth peer name long netns {there}"
            subprocess.run(words.split(), check=True)
        batch(middle, f"link set {name} addrgenmode none", f"link set {name} up")
        up = ("link set long addrgenmode none", "link set long up")
        batch(namespace, *up, f"addr add {address}/25 dev long")
        with inside(middle):
            ends.append(end_of_wire(name))
    over = threading.Event()
    ways = ((ends[0], ends[1], over), (ends[1], ends[0], over))
    threads = [threading.Thread(target=carry, args=way, daemon=True) for way in ways]
    for thread in threads:
        thread.start()
    try:
        socket.create_connection((FAR, 7), 30).close()  # from now on they know their neighbour
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()
        for sock in ends:
            sock.close()
        os.close(middle)


SERVICES: dict[str, Callable[[World, Path], contextlib.AbstractContextManager[None]]] = {
    "databases": databases,
    "gRPC": grpc_server,
    "large repository": large_repository,
    "long wire": long_wire,
}

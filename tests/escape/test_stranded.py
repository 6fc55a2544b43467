"""What a sandbox leaves in the hands of another, through a directory that both may write to: it
counts in the memory budget, and takes no place for sandboxes away."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness import LiveService, eventually
from live import Client
from test_output_hostile import MB, metric

PLACES = 4
FILE_MB = 40

KEEPS = """
import os, socket, threading
os.umask(0)
server = socket.socket(socket.AF_UNIX)
server.bind("shared/s")
server.listen()
held = []
def serve():
    while True:
        peer, _ = server.accept()
        held.extend(socket.recv_fds(peer, 1, 1)[1])
        peer.send(b"k")
        peer.close()
threading.Thread(target=serve, daemon=True).start()
"""
GIVES = f"""
import os, socket
file = os.open("/workspace", os.O_TMPFILE | os.O_RDWR, 0o600)
for _ in range({FILE_MB}):
    os.write(file, b"x" * (1 << 20))
door = socket.socket(socket.AF_UNIX)
door.connect("shared/s")
socket.send_fds(door, [b"x"], [file])
door.recv(1)
"""


BURIES = """
import os, socket
null = os.open("/dev/null", os.O_RDONLY)
mine, other = socket.socketpair()
mine.setblocking(False)
door = socket.socket(socket.AF_UNIX)
door.connect("shared/s")
socket.send_fds(door, [b"x"], [other.fileno()])
door.recv(1)
n = 0
try:
    while n < 1000:
        socket.send_fds(mine, [b"x"], [null] * 100)
        n += 100
except OSError:
    pass
print(n)
"""
SENDS = """
import errno, socket
a, b = socket.socketpair()
try:
    socket.send_fds(a, [b"x"], [0])
    print("sent")
except OSError as error:
    print(errno.errorcode[error.errno])
"""


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    directory = tmp_path / "shared"
    directory.mkdir()
    directory.chmod(0o777)
    for part in (tmp_path, *tmp_path.parents[:2]):
        part.chmod(part.stat().st_mode | 0o111)
    return directory


@pytest.mark.once
def test_what_others_hold_counts_and_takes_no_place(
    start_live: Callable[..., LiveService], shared: Path
) -> None:
    service = start_live("--live-bind", f"{shared}:shared:rw", "--max-sandboxes", str(PLACES))
    client = Client(service.port)

    def charged_mb() -> float:
        return metric(service.port, "memory_charged_bytes") / MB

    def give(_: int) -> None:
        with client.box(limits={"disk_mb": 64}) as giver:
            assert giver.run(GIVES)["status"] == "ok"

    rounds = 2 * (PLACES - 1)
    with contextlib.ExitStack() as stack:
        keeper = stack.enter_context(client.box(limits={"memory_mb": 64, "disk_mb": 16}))
        keeper.run(KEEPS)
        before = charged_mb()
        with ThreadPoolExecutor(PLACES - 1) as pool:
            list(pool.map(give, range(rounds)))
        assert keeper.text("len(held)") == str(rounds)
        assert eventually(lambda: charged_mb() - before > 0.8 * rounds * FILE_MB), charged_mb()
        assert client.ask("POST", "/v1/execute", {"code": "1"}).status == 200
        keeper.run("for fd in held: os.close(fd)")
        assert eventually(lambda: charged_mb() - before < FILE_MB), charged_mb()


@pytest.mark.once
def test_descriptors_that_a_neighbour_keeps_are_not_the_next_sandboxs(
    start_live: Callable[..., LiveService], shared: Path
) -> None:
    """The kernel counts descriptors in messages for the uid that sent them, until they are read."""
    service = start_live("--live-bind", f"{shared}:shared:rw", "--max-sandboxes", "8")
    client = Client(service.port)
    with client.box() as keeper:
        keeper.run(KEEPS)
        for _ in range(4):
            with client.box() as gone:
                assert int(gone.run(BURIES)["stdout"]) >= 200
        found = set()
        for _ in range(12):
            with client.box() as fresh:
                found.add(fresh.run(SENDS)["stdout"].strip())
    assert found == {"sent"}

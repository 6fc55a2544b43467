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


@pytest.mark.once
def test_what_others_hold_counts_and_takes_no_place(
    start_live: Callable[..., LiveService], tmp_path: Path
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    for part in (tmp_path, *tmp_path.parents[:2]):
        part.chmod(part.stat().st_mode | 0o111)
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

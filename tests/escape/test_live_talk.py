"""Kernels that keep the server busy with what they say: the sandbox pays for it, gets a small share
of a processor for all its kernels together, and whoever else asks is answered as before."""

from __future__ import annotations

import contextlib
import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from harness import LiveService
from http_client import post
from live import Box, Client
from raw_http import server_pid
from test_live_hostile import TOOLS

KERNELS = 8
# 20 MB that mean nothing, again and again, until somebody interrupts it.
BABBLE = (
    TOOLS
    + """
import time
large = memfd(b'{"ev":"nothing","x":"' + rb'\\u0041' * 3_300_000 + b'"}')
ends = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [large]))]
print('ready', flush=True)
while True:
    try:
        control.sendmsg([frame('K_SAY', blob(b''))], ends, socket.MSG_DONTWAIT)
    except OSError:
        time.sleep(0.01)
"""
)


def server_cpu_s(service: LiveService) -> float:
    stat = Path(f"/proc/{server_pid(service)}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")


def victim_s(port: int, over_s: float) -> float:
    """How long a request takes whose body is read beside the loop, asked now and then."""
    took = []
    for _ in range(9):
        began = time.monotonic()
        assert post(port, "/v1/execute", {"code": "1", "stdin": "x" * 200_000}).status == 200
        took.append(time.monotonic() - began)
        time.sleep(over_s / 9)
    return statistics.median(took)


@contextlib.contextmanager
def babbling(box: Box) -> Iterator[None]:
    kernels = [box.made["kernels"][0]["id"]] + [box.kernel() for _ in range(KERNELS - 1)]
    with contextlib.ExitStack() as stack:
        for kernel in kernels:
            stream = box.stream(BABBLE, kernel_id=kernel, timeout_ms=60_000)
            stack.enter_context(stream)
            stream.printed("ready")
        yield


def test_what_kernels_say_is_paid_for_and_paced(live_service: LiveService) -> None:
    client = Client(live_service.port)
    with client.box(limits={"memory_mb": 512}) as box:
        alone = victim_s(box.port, 0)
        with babbling(box):
            before, paid = server_cpu_s(live_service), box.get()["usage"]["cpu_ms"]
            began = time.monotonic()
            beside = victim_s(box.port, 4)
            wall = time.monotonic() - began
            used = server_cpu_s(live_service) - before
            paid = (box.get()["usage"]["cpu_ms"] - paid) / 1000
    assert beside < 10 * max(alone, 0.03), (beside, alone)
    assert used < 0.6 * wall, (used, wall)
    assert paid > 0.6 * used, (paid, used)

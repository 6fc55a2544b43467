"""What was refused is told to the one who was refused it, and to nobody beside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from commands import audited, soon
from harness import LiveService
from live import Box, Client

REFUSED = "import socket\ntry: socket.socket(socket.AF_VSOCK)\nexcept OSError: pass"
OUTSIDE = "import socket\ntry: socket.create_connection(('192.0.2.1', 80))\nexcept OSError: pass"
VSOCK, NETWORK = "open a virtual machine socket", "connect to the network"
WAITS = (
    "import os, time\nprint('here', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.01)"
)


@pytest.fixture
def box(live_service: LiveService) -> Iterator[Box]:
    with Client(live_service.port).box() as box:
        yield box


def ops(result: dict[str, Any]) -> list[str]:
    return [str(d["op"]) for d in result["denied"]]


def beside(box: Box, code: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The results of a cell that does nothing wrong and of one that runs `code` meanwhile."""
    other = box.do("/kernels")["id"]
    with box.stream(WAITS, kernel_id=other) as quiet:
        quiet.printed("here")
        loud = box.run(code)
        box.run("open('go', 'w').close()")
        return quiet.until("end").data, loud


def test_a_neighbouring_cell_is_not_blamed(live_service: LiveService, box: Box) -> None:
    quiet, loud = beside(box, REFUSED)
    assert ops(loud) == [VSOCK] and ops(quiet) == []
    log = audited(live_service)
    assert log[loud["id"]]["denied"] == [VSOCK] and log[quiet["id"]]["denied"] == []


def test_the_network_is_told_to_one_that_ran_alone(box: Box) -> None:
    assert ops(box.run(OUTSIDE)) == [NETWORK]
    quiet, loud = beside(box, OUTSIDE)
    assert ops(quiet) == [] and ops(loud) == []  # nobody knows whose it was
    assert ops(box.run(OUTSIDE)) == [NETWORK]


def test_each_cell_is_told_once(box: Box) -> None:
    for _ in range(3):  # within one second
        assert ops(box.run(f"for _ in range(3):\n exec({REFUSED!r})")) == [VSOCK]
    assert ops(box.run("1")) == []


def test_a_command_is_told(live_service: LiveService, box: Box) -> None:
    for code, op in [(REFUSED, VSOCK), (OUTSIDE, NETWORK)]:
        done = box.do("/commands", argv=["/usr/bin/python3", "-c", code])
        assert ops(done) == [op], done
        assert soon(lambda: done["id"] in audited(live_service))
        assert audited(live_service)[done["id"]]["denied"] == [op]
    assert ops(box.do("/commands", cmd="true")) == []
    assert ops(box.run("1")) == []

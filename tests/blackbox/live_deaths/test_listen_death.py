"""kill -9 of the server while sandboxes have ports of their own: the next one opens the same."""

from __future__ import annotations

import os
import signal

from deaths import kill_server
from doors import Listening, is_open, taken
from family import Family, kill, one
from harness import LiveService, eventually
from host import is_alive
from live import Client


def test_the_port_is_the_same_and_leads_to_the_same_sandbox(service: LiveService) -> None:
    with Listening(Client(service.port)) as box, Listening(Client(service.port)) as other:
        kernel = box.jupyter.kernel()
        with box.jupyter.open(kernel) as channels:
            channels.ok("kept = 41")
        for _ in range(2):
            kill_server(service)
            assert box.get()["port"] == box.door and other.get()["port"] == other.door
            assert [k["id"] for k in box.jupyter.get("/api/kernels")] == [kernel]
            assert other.jupyter.get("/api/kernels") == []
            with box.jupyter.open(kernel) as channels:
                assert channels.ok("kept + 1").result == "42"
        assert box.delete().status == 204
        assert not is_open(box.door) and is_open(other.door)


def test_a_port_that_was_taken_meanwhile_is_lost(service: LiveService) -> None:
    with Listening(Client(service.port)) as box:
        (warden,), server = Family(service).warden(), one(lambda: Family(service).server())
        os.kill(warden.pid, signal.SIGSTOP)  # or the next server would be there at once
        kill(server)
        assert eventually(lambda: not is_open(box.door))
        with taken(box.door):
            os.kill(warden.pid, signal.SIGCONT)
            assert eventually(lambda: not is_alive(server))
            assert box.get()["port"] is None
            assert box.text("6 * 7") == "42"
        assert eventually(lambda: service.drain() and "has lost its port" in service.text())
        with Listening(Client(service.port)) as other:
            assert is_open(other.door)

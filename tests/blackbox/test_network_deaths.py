"""The gate dies or does not answer, or the server dies: policies stay, nobody waits for ever."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator

import pytest

from family import Family, kill, one
from harness import LiveService, eventually
from host import Process, is_alive
from live import Client, error
from test_network_api import TRY

PINNED = "PermissionError 13\n"  # what the policy makes of TRY
NONE = "OSError 101\n"


def gate_of(service: LiveService) -> Process:
    return one(lambda: Family(service).gate())


@pytest.fixture
def service(start_live: Callable[..., LiveService]) -> Iterator[LiveService]:
    yield start_live("--profiles", "base", "--network", "198.51.100.0/24")


@pytest.fixture
def client(service: LiveService) -> Client:
    return Client(service.port)


def end(process: Process) -> None:
    kill(process)
    assert eventually(lambda: not is_alive(process))


def test_another_gate_gets_the_policies(service: LiveService, client: Client) -> None:
    with client.box(network=["198.51.100.1"]) as box, client.box() as without:
        assert box.run(TRY)["stdout"] == PINNED
        end(gate_of(service))
        # What is asked meanwhile waits; the policy is not gone with the gate.
        assert box.run(TRY)["stdout"] == PINNED
        assert without.run(TRY)["stdout"] == NONE
        body = {"code": TRY, "profile": "base", "network": ["198.51.100.1"], "timeout_ms": 20000}
        assert client.ask("POST", "/v1/execute", body).json["stdout"] == PINNED
        assert box.ask("PUT", "/network", "none").json == "none"
        assert box.run(TRY)["stdout"] == NONE


def test_the_next_server_has_the_policies(service: LiveService, client: Client) -> None:
    with client.box(network=["198.51.100.1"]) as box, client.box() as without:
        assert without.ask("PUT", "/network", ["198.51.100.3"]).status == 200
        for _ in range(2):
            end(one(lambda: Family(service).server()))
            assert box.get("/network") == {"allow": ["198.51.100.1"]}
            assert without.get("/network") == {"allow": ["198.51.100.3"]}
            assert box.run(TRY)["stdout"] == PINNED == without.run(TRY)["stdout"]
        assert box.ask("PUT", "/network", "none").json == "none"
        assert box.run(TRY)["stdout"] == NONE
        end(one(lambda: Family(service).server()))
        assert box.get("/network") == "none" and box.run(TRY)["stdout"] == NONE


def test_both_die(service: LiveService, client: Client) -> None:
    with client.box(network=["198.51.100.1"]) as box:
        gate, server = gate_of(service), one(lambda: Family(service).server())
        kill(gate)
        end(server)
        assert box.get("/network") == {"allow": ["198.51.100.1"]}
        assert box.run(TRY)["stdout"] == PINNED
        assert box.ask("PUT", "/network", ["198.51.100.4"]).status == 200


def test_a_gate_that_does_not_answer(service: LiveService, client: Client) -> None:
    with client.box(network=["198.51.100.1"]) as box:
        gate = gate_of(service)
        os.kill(gate.pid, signal.SIGSTOP)
        try:
            error(box.ask("PUT", "/network", "none"), 503, "network_unavailable")
            body = {"code": "1", "profile": "base", "network": ["198.51.100.1"]}
            reply = client.ask("POST", "/v1/execute", body)
            error(reply, 503, "network_unavailable")
            assert reply.json["error"]["retryable"] and reply.header("retry-after")
            reply = client.ask("POST", "/v1/sandboxes", {"profile": "base", "network": "none"})
            assert reply.status == 201  # nothing is asked of the gate
            assert client.ask("DELETE", f"/v1/sandboxes/{reply.json['id']}").status == 204
            assert client.listed()["sandboxes"][0]["id"] == box.id
        finally:
            os.kill(gate.pid, signal.SIGCONT)
        # What was asked for last is what it comes to.
        assert eventually(lambda: box.run(TRY)["stdout"] == NONE)
        assert box.get("/network") == "none"
        assert box.ask("PUT", "/network", ["198.51.100.1"]).status == 200

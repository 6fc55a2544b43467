"""Sandboxes with ports of their own: what is there means that sandbox, and nothing else is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from doors import Listening, is_open
from harness import LiveService, eventually, settled
from http_client import JSON, Connection, get
from jupyter import refused
from keyed_live import KeyedLive
from live import Box, Client, error
from sandbox_cli import listed, made, sandbox


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    directory = tmp_path_factory.mktemp("listen")
    options = ("--profiles", "base", "--live-listeners", "3")
    yield from settled(LiveService(directory, *options))


@pytest.fixture
def client(service: LiveService) -> Client:
    return Client(service.port)


# ---------------------------------------------------------------------------- what is there


def test_a_sandbox_has_a_port_when_it_asks_for_one(client: Client) -> None:
    with client.box() as plain, Listening(client) as box:
        assert plain.made["port"] is None and plain.get()["port"] is None
        assert box.get()["port"] == box.door
        (found,) = [one for one in client.listed()["sandboxes"] if one["id"] == box.id]
        assert found["port"] == box.door


def test_files_there_are_those_of_the_sandbox(client: Client) -> None:
    with Listening(client) as one, Listening(client) as other:
        assert one.at("POST", "/files/a.txt", b"one's").status == 200
        assert other.at("GET", "/files/a.txt").status == 404
        assert one.text("open('a.txt').read()") == '"one\'s"'
        assert one.at("GET", "/directories/").status == 200
        assert one.at("GET", "/modules?q=nowhere").json["detail"] == "Module nowhere not found"
        assert one.at("DELETE", "/files/a.txt").status == 204
        assert len(client.listed()["sandboxes"]) == 2, "no shared one was made"


def test_kernels_there_are_those_of_the_sandbox(client: Client) -> None:
    with Listening(client, env={"WHOSE": "one"}) as one, Listening(client) as other:
        kernel = one.jupyter.kernel()
        assert [k["id"] for k in one.jupyter.get("/api/kernels")] == [kernel]
        assert other.jupyter.get("/api/kernels") == []
        refused(other.jupyter.ask("GET", f"/api/kernels/{kernel}"), 404, kernel)
        refused(other.jupyter.ask("DELETE", f"/api/kernels/{kernel}"), 404, kernel)
        refused(other.jupyter.ask("GET", f"/api/kernels/{kernel}/channels"), 426)
        assert len(one.get()["kernels"]) == 2 and len(other.get()["kernels"]) == 1
        with one.jupyter.open(kernel) as channels:
            channels.ok("import os; open('made', 'w').write('here')")
            assert channels.ok("os.environ['WHOSE']").result == "'one'"
        assert one.text("open('made').read()") == "'here'"


def test_sessions_there_are_those_of_the_sandbox(client: Client) -> None:
    with Listening(client) as one, Listening(client) as other:
        session = {"path": "a.ipynb", "name": "", "type": "notebook", "kernel": {"name": "python3"}}
        first = one.jupyter.ask("POST", "/api/sessions", session)
        second = other.jupyter.ask("POST", "/api/sessions", session)
        assert (first.status, second.status) == (201, 201)
        assert first.json["id"] != second.json["id"], "the same path, but another sandbox"
        assert [s["id"] for s in one.jupyter.get("/api/sessions")] == [first.json["id"]]
        kernel = {"kernel": {"id": second.json["kernel"]["id"]}}
        path = f"/api/sessions/{first.json['id']}"
        refused(one.jupyter.ask("PATCH", path, kernel), 404)
        assert one.jupyter.get("/api/status")["kernels"] == 1


def test_there_is_one_kernelspec(client: Client) -> None:
    with Listening(client) as box:
        assert list(box.jupyter.get("/api/kernelspecs")["kernelspecs"]) == ["python3"]
        for name in ("python3-isolated", "base", "base-isolated"):
            refused(box.jupyter.ask("POST", "/api/kernels", {"name": name}), 404, name)
        assert len(client.listed()["sandboxes"]) == 1
        assert box.jupyter.kernel("python")


@pytest.mark.parametrize(
    "method, path",
    [
        ("GET", "/v1/sandboxes"),
        ("POST", "/v1/sandboxes"),
        ("POST", "/v1/execute"),
        ("GET", "/v1/info"),
        ("GET", "/metrics"),
        ("GET", "/"),
        ("GET", "/docs"),
        ("GET", "/docs/"),
        ("GET", "/openapi.json"),
        ("POST", "/run"),
        ("GET", "/workspace/se/sessions"),
    ],
)
def test_nothing_else_is_there(client: Client, method: str, path: str) -> None:
    with Listening(client) as box:
        error(box.at(method, path, b"{}" if method == "POST" else None, **JSON), 404, "no_route")
        assert box.at("GET", "/health").json["status"] == "ok"
        assert box.at("GET", "/status").json == {"status": "ok"}


def test_no_header_leads_to_another_sandbox(client: Client) -> None:
    with Listening(client) as box, client.box() as other:
        where = {"X-Cloche-Sandbox": other.id}
        assert box.at("POST", "/files/a", b"x", **where).status == 404
        assert other.ask("GET", "/files/a").status == 404
        assert box.at("POST", "/files/a", b"x", **{"X-Cloche-Sandbox": box.id}).status == 200


# ---------------------------------------------------------------------------- its end


def test_the_port_is_closed_with_the_sandbox(client: Client) -> None:
    with Listening(client) as box, Connection(box.door) as kept:
        assert kept.ask("GET", "/api/kernels").json == []
        channels = box.jupyter.open()
        assert box.delete().status == 204
        assert not is_open(box.door)
        error(kept.ask("GET", "/api/kernels"), 410, "sandbox_gone", "deleted")
        error(kept.ask("GET", "/v1/info"), 404, "no_route")
        assert channels.socket.frame().opcode == 8
        channels.close()


def test_a_sandbox_that_ends_by_itself_gives_its_port_back(client: Client) -> None:
    box = Listening(client, ttl_seconds=1)
    assert eventually(lambda: not is_open(box.door))
    with Listening(client), Listening(client), Listening(client):
        pass


# ---------------------------------------------------------------------------- how many


def test_their_number_is_bounded(client: Client) -> None:
    with Listening(client), Listening(client) as second, Listening(client):
        reply = client.ask("POST", "/v1/sandboxes", {"listen": True})
        error(reply, 429, "too_many_listeners", "3 sandboxes")
        assert reply.header("Retry-After")
        with client.box() as plain:
            assert plain.made["port"] is None
        assert second.delete().status == 204
        with Listening(client):
            assert len(client.listed()["sandboxes"]) == 3


def test_there_may_be_none(start_live: Any) -> None:
    client = Client(start_live("--live-listeners", "0").port)
    reply = client.ask("POST", "/v1/sandboxes", {"listen": True})
    error(reply, 501, "cannot_listen", "live_listeners")
    assert client.listed()["sandboxes"] == []
    assert get(client.port, "/v1/info").json["live"]["listeners"] == 0


def test_there_must_be_something_to_speak(start_live: Any) -> None:
    client = Client(start_live("--dialects", "pyrunner").port)
    reply = client.ask("POST", "/v1/sandboxes", {"listen": True})
    error(reply, 501, "cannot_listen", "dialects")


def test_what_is_no_truth_is_refused(client: Client) -> None:
    error(client.ask("POST", "/v1/sandboxes", {"listen": 8888}), 422, "bad_fields", "listen")


# ---------------------------------------------------------------------------- whose


@pytest.fixture
def keyed(tmp_path: Path) -> Iterator[KeyedLive]:
    yield from settled(KeyedLive(tmp_path))


def test_a_port_wants_a_key_of_its_tenant(keyed: KeyedLive) -> None:
    alice, bob = keyed.client(0), keyed.client(1)
    with Listening(alice) as box:
        kernel = box.jupyter.kernel()
        for path in ("/api/kernels", "/api/kernelspecs", f"/api/kernels/{kernel}", "/files/a"):
            reply = get(box.door, path)
            assert (reply.status, reply.json["error"]["code"]) == (401, "no_key"), path
            reply = get(box.door, path, Authorization="Bearer nobody")
            assert (reply.status, reply.json["error"]["code"]) == (401, "bad_key"), path
            reply = get(box.door, path, **bob.headers)
            assert (reply.status, reply.json["error"]["code"]) == (404, "no_such_sandbox"), path
        key = keyed.keys[0]
        assert get(box.door, f"/api/kernels?token={key}").status == 200
        assert get(box.door, "/api/kernels", Authorization=f"token {key}").status == 200
        assert get(box.door, "/status").status == 200, "open, as at the main port"
        refused(box.jupyter.ask("GET", "/api/nothing"), 404)


def test_a_tenant_gets_half_of_the_ports(tmp_path: Path) -> None:
    keyed = KeyedLive(tmp_path, "--live-listeners", "2")
    try:
        alice, bob = keyed.client(0), keyed.client(1)
        with Listening(alice):
            reply = alice.ask("POST", "/v1/sandboxes", {"listen": True})
            error(reply, 429, "too_many_listeners", "its half")
            with Listening(bob):
                pass
        keyed.stop()
    finally:
        keyed.kill()


# ---------------------------------------------------------------------------- the command line


def test_the_command_line_asks_for_one_and_shows_it(service: LiveService) -> None:
    with made(service, "--listen") as name:
        port = json.loads(sandbox(service, "show", name, "--json").stdout)["port"]
        assert is_open(port)
        assert f"port {port}" in " ".join(sandbox(service, "show", name).stdout.decode().split())
    with made(service) as name:
        assert b"port" not in sandbox(service, "show", name).stdout


def test_all_can_be_deleted_at_once(service: LiveService, client: Client) -> None:
    for of in ("a", "a", "b c"):
        Box(client, metadata={"of": of})
    done = sandbox(service, "delete", "--all", "--metadata", "of=a")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert len(listed(service)) == 1 == len(listed(service, "--metadata", "of=b c"))
    for words, why in [
        ("", b"the sandbox's ID is missing"),
        ("--all x", b"exclude each other"),
        ("x --metadata of=a", b"--metadata is for --all"),
    ]:
        done = sandbox(service, "delete", *words.split())
        assert done.returncode == 125 and why in done.stderr, done
    assert sandbox(service, "delete", "--all").returncode == 0
    assert listed(service) == []

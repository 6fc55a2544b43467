"""Live sandboxes: what they show, lists of them, whose they are, their time, bad requests."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from harness import LiveService, eventually, settled
from http_client import Connection
from keyed_live import KeyedLive
from live import Box, Client, error


@pytest.fixture(scope="module")
def tenants(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedLive]:
    yield from settled(KeyedLive(tmp_path_factory.mktemp("tenants")))


@pytest.fixture
def client(live_service: LiveService) -> Client:
    return Client(live_service.port)


@pytest.fixture
def box(client: Client) -> Iterator[Box]:
    with client.box() as made:
        yield made


# ---------------------------------------------------------------------------- what it is


def test_what_a_sandbox_shows(client: Client) -> None:
    before = time.time()
    made = client.ask("POST", "/v1/sandboxes", {"profile": "base"})
    assert made.status == 201
    with client.box(
        name="mine", metadata={"a": "1"}, ttl_seconds=1000, idle_seconds=100, limits={"pids": 40}
    ) as box:
        assert client.ask("DELETE", f"/v1/sandboxes/{made.json['id']}").status == 204
        shown = box.get()
        assert shown["id"].startswith("sbx_") and shown["name"] == "mine"
        assert (shown["state"], shown["profile"], shown["network"]) == ("running", "base", "none")
        assert shown["metadata"] == {"a": "1"} and shown["executions"] == 0
        assert before - 1 <= shown["created"] <= time.time() + 1
        assert abs(shown["expires"] - shown["created"] - 1000) < 5
        assert abs(shown["idle_expires"] - shown["created"] - 100) < 60
        assert (shown["ttl_seconds"], shown["idle_seconds"]) == (1000, 100)
        assert shown["limits"]["pids"] == 40 and shown["limits"]["memory_mb"] == 512
        (kernel,) = shown["kernels"]
        assert kernel["id"].startswith("ker_")
        assert kernel | {"id": ""} == {
            "id": "",
            "state": "idle",
            "execution_count": 0,
            "execution_id": None,
            "queued": 0,
            "restarts": 0,
            "cwd": "/workspace",
            "is_default": True,
            "limits": None,
        }
        box.run("open('f', 'w').write('x' * 100000)\nx = 'y' * 50_000_000\ndel x")
        usage = box.get()["usage"]
        assert usage["memory_peak_bytes"] > 50_000_000 > usage["memory_bytes"] > 0
        assert usage["disk_bytes"] >= 100000 and usage["files"] >= 1
        assert usage["cpu_ms"] > 0 and usage["processes"] >= 1


def test_auto_is_the_profile_with_the_most_in_it(client: Client) -> None:
    with client.box(profile="auto") as box:
        assert box.made["profile"] == "data"


def test_what_is_told_of_all(client: Client) -> None:
    live = client.ask("GET", "/v1/info").json["live"]
    most = live["max_ttl_seconds"]
    with client.box() as box:
        assert box.made["limits"] == live["defaults"]
        for name in ("ttl_seconds", "idle_seconds"):
            assert box.made[name] == live[name]
        assert box.ask("PATCH", "", {"ttl_seconds": most}).status == 200
        reply = box.ask("PATCH", "", {"ttl_seconds": most + 1})
        error(reply, 422, "limit_too_high", str(most), "/v1/info")


def test_the_same_create_twice_makes_one(client: Client) -> None:
    key = {"Idempotency-Key": "make-one"}
    first, second = (client.ask("POST", "/v1/sandboxes", {"profile": "base"}, **key) for _ in "ab")
    assert (first.status, second.status) == (201, 201) and first.json["id"] == second.json["id"]
    assert len(client.listed()["sandboxes"]) == 1
    assert client.ask("DELETE", f"/v1/sandboxes/{first.json['id']}").status == 204


def test_a_creator_who_leaves_leaves_nothing(client: Client) -> None:
    with Connection(client.port) as connection:
        body = json.dumps({"profile": "base"}).encode()
        connection.send("POST", "/v1/sandboxes", body, {"Content-Type": "application/json"})
    for made in client.listed()["sandboxes"]:  # it was faster
        client.ask("DELETE", f"/v1/sandboxes/{made['id']}")


# ---------------------------------------------------------------------------- lists


def test_a_list_in_pages_and_by_metadata(client: Client) -> None:
    colours = ["red", "blue", "red", "red"]
    boxes = [client.box(metadata={"colour": c, "n": str(i)}) for i, c in enumerate(colours)]
    ids = [box.id for box in boxes]
    try:
        whole = client.listed()
        assert [s["id"] for s in whole["sandboxes"]] == ids and whole["next"] is None
        page = client.listed(limit=3)
        assert [s["id"] for s in page["sandboxes"]] == ids[:3] and page["next"]
        assert client.listed(limit=3, after=ids[2])["sandboxes"][0]["id"] == ids[3]
        rest = client.listed(limit=3, after=page["next"])
        assert [s["id"] for s in rest["sandboxes"]] == ids[3:] and rest["next"] is None
        red = client.listed(**{"metadata.colour": "red"})["sandboxes"]
        assert [s["id"] for s in red] == [ids[0], ids[2], ids[3]]
        query = {"metadata.colour": "red", "metadata.n": "2"}
        assert [s["id"] for s in client.listed(**query)["sandboxes"]] == [ids[2]]
        assert client.listed(**{"metadata.colour": "green"})["sandboxes"] == []
        assert client.listed(**{"metadata.none": ""})["sandboxes"] == []
        page = client.listed(limit=2, **{"metadata.colour": "red"})
        rest = client.listed(limit=2, after=page["next"], **{"metadata.colour": "red"})
        assert [s["id"] for s in page["sandboxes"] + rest["sandboxes"]] == [ids[0], ids[2], ids[3]]
        assert client.listed(limit=3, **{"metadata.colour": "red"})["next"] is None
    finally:
        for box in boxes:
            box.delete()
    error(client.ask("GET", f"/v1/sandboxes?after={ids[0]}"), 410, "sandbox_gone")
    for limit in ("0", "x", "1001"):
        error(client.ask("GET", f"/v1/sandboxes?limit={limit}"), 422, "bad_value", "limit")
    for wrong in ("name=x", "metadata=x", "metdata.colour=red"):
        name = '"' + wrong.partition("=")[0] + '"'
        error(client.ask("GET", f"/v1/sandboxes?limit=1&{wrong}"), 422, "bad_value", name)


def test_pages_hold_while_sandboxes_end(client: Client) -> None:
    made = [client.box().id for _ in range(5)]
    found: list[str] = []
    page: dict[str, Any] = client.listed(limit=2)
    while True:
        for sandbox in page["sandboxes"]:
            found.append(sandbox["id"])
            assert client.ask("DELETE", f"/v1/sandboxes/{sandbox['id']}").status == 204
        if page["next"] is None:
            break
        page = client.listed(limit=2, after=page["next"])
    assert found == made


# ---------------------------------------------------------------------------- tenants


def test_tenants_do_not_see_each_other(tenants: KeyedLive) -> None:
    alice, bob = tenants.client(0), tenants.client(1)
    with alice.box() as hers, bob.box() as his:
        result = hers.run("secret = 1")
        assert [s["id"] for s in alice.listed()["sandboxes"]] == [hers.id]
        assert [s["id"] for s in bob.listed()["sandboxes"]] == [his.id]
        asked: list[tuple[str, str, Any]] = [
            ("GET", "", None),
            ("PATCH", "", {"name": "x"}),
            ("DELETE", "", None),
            ("POST", "/execute", {"code": "1"}),
            ("POST", "/interrupt", {}),
            ("POST", "/restart", {}),
            ("POST", "/pause", None),
            ("POST", "/resume", None),
            ("POST", "/stdin", {"value": ""}),
            ("POST", "/kernels", {}),
            ("GET", "/kernels", None),
            ("POST", "/complete", {"code": "s"}),
            ("POST", "/inspect", {"code": "s"}),
            ("GET", "/variables", None),
        ]
        for method, path, value in asked:
            error(bob.ask(method, hers.path + path, value), 404, "no_such_sandbox")
        error(bob.ask("GET", f"/v1/sandboxes?after={hers.id}"), 404, "no_such_sandbox")
        error(bob.ask("GET", f"/v1/executions/{result['id']}"), 404, "no_execution")
        assert hers.text("secret") == "1"
    error(bob.ask("GET", hers.path), 404, "no_such_sandbox")
    error(alice.ask("GET", hers.path), 410, "sandbox_gone")
    assert Client(tenants.port).ask("GET", "/v1/sandboxes").status == 401


def test_a_tenant_has_so_many(tenants: KeyedLive) -> None:
    alice, bob = tenants.client(0), tenants.client(1)
    boxes = [alice.box() for _ in range(3)]
    refused = alice.ask("POST", "/v1/sandboxes", {"profile": "base"})
    error(refused, 429, "too_many_sandboxes", "3")
    assert refused.header("retry-after")
    with bob.box():
        pass
    boxes.pop().delete()
    boxes.append(alice.box())
    for box in boxes:
        box.delete()


# ---------------------------------------------------------------------------- its time


def test_its_time_is_up(tenants: KeyedLive) -> None:
    client = tenants.client(0)
    box = client.box(ttl_seconds=3)
    with box.stream("print('runs', flush=True)\nwhile True: pass") as stream:
        last = list(stream)[-1]
        assert (last.type, last.data["error"]["code"]) == ("failed", "sandbox_gone")
    error(box.ask("GET"), 410, "sandbox_gone", "ttl_seconds")
    error(box.ask("POST", "/execute", {"code": "1"}), 410, "sandbox_gone", "ttl_seconds")
    error(box.ask("DELETE"), 410, "sandbox_gone")


def test_it_was_idle(tenants: KeyedLive) -> None:
    client = tenants.client(0)
    box = client.box(idle_seconds=1)
    busy = client.box(idle_seconds=3)
    with busy.stream("input()") as stream:
        stream.until("input")
        assert busy.get()["idle_expires"] is None
        assert eventually(lambda: box.ask("GET").status == 410)
        error(box.ask("GET"), 410, "sandbox_gone", "idle_seconds")
        busy.do("/stdin", value="")
        stream.until("end")
    assert busy.get()["idle_expires"] is not None
    assert eventually(lambda: busy.ask("GET").status == 410)


def test_its_time_can_be_extended(tenants: KeyedLive) -> None:
    client = tenants.client(0)
    with client.box(ttl_seconds=60, idle_seconds=3000) as box:
        changed = box.ask("PATCH", "", {"ttl_seconds": 1000}).json
        assert changed["ttl_seconds"] == 1000 and changed["expires"] > time.time() + 900
        assert box.ask("PATCH", "", {"idle_seconds": 2000}).json["idle_seconds"] == 2000
        error(box.ask("PATCH", "", {"ttl_seconds": 5001}), 422, "limit_too_high", "5000")
        assert box.get()["ttl_seconds"] == 1000
        assert box.ask("PATCH", "", {"ttl_seconds": 1}).status == 200
        assert eventually(lambda: box.ask("GET").status == 410)
    refused = client.ask("POST", "/v1/sandboxes", {"profile": "base", "ttl_seconds": 5001})
    error(refused, 422, "limit_too_high", "ttl_seconds")


def test_what_can_be_changed(box: Box) -> None:
    changed = box.ask("PATCH", "", {"metadata": {"new": "1"}, "name": "é"}).json
    assert changed["metadata"] == {"new": "1"} and changed["name"] == "é"
    assert box.ask("PATCH", "", {}).json["name"] == "é"
    limits = box.ask("PATCH", "", {"limits": {"memory_mb": 100, "disk_mb": 5}}).json["limits"]
    assert (limits["memory_mb"], limits["disk_mb"]) == (100, 5)
    assert limits["pids"] == box.made["limits"]["pids"]
    result = box.run("a = b'x' * (300 << 20)")
    assert result["status"] in ("memory_exceeded", "error"), result
    full = box.run("open('big', 'wb').write(b'x' * (6 << 20))")
    assert full["error"]["name"] == "OSError" and full["limit_hit"] == "disk"
    box.ask("PATCH", "", {"limits": {"memory_mb": 600, "disk_mb": 50}})
    assert box.text("len(b'x' * (200 << 20))") == str(200 << 20)
    assert box.text("open('big', 'wb').write(b'x' * (6 << 20))") == str(6 << 20)
    before = box.get()["limits"]
    error(box.ask("PATCH", "", {"limits": {"memory_mb": 10**8}}), 422, "limit_too_high")
    lower = box.ask("PATCH", "", {"limits": {"disk_mb": 5}})
    error(lower, 422, "bad_value", "disk_mb of 5", "files have")
    assert box.get()["limits"] == before


# ---------------------------------------------------------------------------- bad input

BAD: list[tuple[Any, str]] = [
    ({"profile": 1}, "profile"),
    ({"profile": "none"}, "none"),
    ({"profile": "base+live"}, "base+live"),
    ({"files": [{"path": "../x", "content": ""}]}, ""),
    ({"files": [{"path": "/etc/x", "content": ""}]}, ""),
    ({"files": [{"content": ""}]}, "path"),
    ({"files": [{"path": "x", "content": "!", "encoding": "base64"}]}, "base64"),
    ({"env": {"A": 1}}, "env"),
    ({"env": {"A=B": ""}}, "env"),
    ({"env": ["A"]}, "env"),
    ({"limits": {"memory": 1}}, "memory"),
    ({"limits": {"memory_mb": 0}}, "memory_mb"),
    ({"limits": {"memory_mb": 10**9}}, "memory"),
    ({"limits": {"cpus": 0}}, "cpus"),
    ({"limits": {"cpus": 1025}}, "from 0.01 to 1024"),
    ({"ttl_seconds": 0}, "ttl_seconds"),
    ({"ttl_seconds": -1}, "ttl_seconds"),
    ({"ttl_seconds": 10**9}, "ttl_seconds"),
    ({"idle_seconds": "x"}, "idle_seconds"),
    ({"metadata": {"a": 1}}, "metadata"),
    ({"metadata": {"": "x"}}, "metadata"),
    ({"metadata": {"k" * 129: "x"}}, "metadata"),
    ({"metadata": {"k": "x" * 1025}}, "metadata"),
    ({"metadata": {str(i): "" for i in range(33)}}, "metadata"),
    ({"name": 5}, "name"),
    ({"name": "x" * 129}, "name"),
    ({"colour": "red"}, "colour"),
    ([], ""),
]


def test_bad_requests_name_the_field(client: Client, box: Box) -> None:
    for value, word in BAD:
        reply = client.ask("POST", "/v1/sandboxes", value)
        assert reply.status == 422 and word in json.dumps(reply.json), (value, reply)
    for value, word in BAD[-16:]:
        if word in ("colour", "metadata", "name", "ttl_seconds", "idle_seconds", "cpus"):
            reply = box.ask("PATCH", "", value)
            assert reply.status == 422 and word in json.dumps(reply.json), (value, reply)
    for kind in ("application/x-www-form-urlencoded", "text/plain"):
        headers = {"Content-Type": kind}
        error(
            client.ask("POST", "/v1/sandboxes", {}, **headers),
            422,
            "bad_fields",
            "application/json",
        )
    missing = client.ask("POST", "/v1/sandboxes", {"files": [{"path": "x", "file_id": "no"}]})
    assert missing.status == 404
    for path in ("/v1/sandboxes/sbx_no", "/v1/sandboxes/x", "/v1/sandboxes/%00"):
        assert client.ask("GET", path).status in (400, 404), path
    assert len(client.listed()["sandboxes"]) == 1

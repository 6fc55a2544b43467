"""The life of live sandboxes: made, listed, changed, paused, ended."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from harness import LiveService, eventually, run_cli
from http_client import Connection
from live import Box, Client, error

Starter = Callable[..., LiveService]


class KeyedLive(LiveService):
    """One with keys for two tenants."""

    def __init__(self, directory: Path, *options: str) -> None:
        directory.chmod(0o711)
        file = directory / "keys.json"
        made = [run_cli("key", "add", name, "--keys", file) for name in ("alice", "bob")]
        self.keys = [done.stdout.decode().strip() for done in made]
        super().__init__(directory, "--keys", str(file), *options)

    def client(self, number: int) -> Client:
        return Client(self.port, Authorization=f"Bearer {self.keys[number]}")


@pytest.fixture(scope="module")
def tenants(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedLive]:
    options = ("--profiles", "base", "--live-per-tenant", "3", "--live-ttl-max-seconds", "5000")
    service = KeyedLive(tmp_path_factory.mktemp("tenants"), *options)
    try:
        service.settle()
        yield service
        service.check_no_leak()
        service.stop()
    finally:
        service.kill()


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


# ---------------------------------------------------------------------------- tenants


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


# ---------------------------------------------------------------------------- pause


COUNT = (
    "import os\nfd = os.open('count', os.O_RDWR | os.O_CREAT)\n"
    "def count(n):\n"
    "    for i in range(n):\n        os.pwrite(fd, b'%12d' % i, 0)\n"
    "count(1)\nprint('runs', flush=True)\ncount(10**12)"
)


def cpu_of(box: Box) -> float:
    return float(box.get()["usage"]["cpu_ms"])


def test_a_paused_sandbox_stands_still(tenants: KeyedLive) -> None:
    client = tenants.client(0)
    with client.box() as box:
        box.run("x = 7")
        with box.stream(COUNT, timeout_ms=3000) as stream:
            stream.printed("runs")
            shown = box.do("/pause")
            assert shown["state"] == "paused" and box.get()["state"] == "paused"
            assert box.do("/pause")["state"] == "paused"
            stood = [cpu_of(box)]

            def stands() -> bool:
                stood.append(cpu_of(box))
                return stood[-1] - stood[-2] < 1

            assert eventually(stands, step_s=0.2)
            seen = stood[-1]
            for _ in range(5):  # longer than its time
                eventually(lambda: False, seconds=0.7)
                assert cpu_of(box) - seen < 20
            assert box.get()["kernels"][0]["state"] == "busy"
            for path, value in [
                ("/execute", {"code": "1"}),
                ("/complete", {"code": "x"}),
                ("/restart", {}),
                ("/interrupt", {}),
                ("/kernels", {}),
            ]:
                error(box.ask("POST", path, value), 409, "sandbox_paused")
            error(box.ask("GET", "/variables"), 409, "sandbox_paused")
            assert box.do("/resume")["state"] == "running"
            assert box.do("/resume")["state"] == "running"
            assert eventually(lambda: cpu_of(box) - seen > 100)
            end = stream.until("end").data
            assert end["status"] == "timeout" and end["error"]["name"] == "KeyboardInterrupt"
        assert box.text("x") == "7"


def test_a_client_that_leaves_a_paused_sandbox_interrupts_when_it_goes_on(
    tenants: KeyedLive,
) -> None:
    with tenants.client(0).box() as box:
        box.run("x = 7")
        with box.stream(COUNT) as stream:
            stream.printed("runs")
            box.do("/pause")
        eventually(lambda: False, seconds=0.5)
        box.do("/resume")
        assert eventually(lambda: box.get()["kernels"][0]["state"] == "idle")
        assert box.text("x") == "7"


def test_a_paused_sandbox_can_be_deleted(tenants: KeyedLive) -> None:
    client = tenants.client(0)
    box = client.box()
    with box.stream(COUNT) as stream:
        stream.printed("runs")
        box.do("/pause")
        assert box.delete().status == 204
        assert list(stream)[-1].type == "failed"
    again = client.box()  # in a control group that is not frozen any more
    assert again.text("1") == "1"
    assert again.delete().status == 204
    box = client.box(ttl_seconds=3)
    box.do("/pause")
    assert eventually(lambda: box.ask("GET").status == 410)
    error(box.ask("GET"), 410, "sandbox_gone", "ttl_seconds")


# ---------------------------------------------------------------------------- the end


def test_a_delete_is_complete_when_it_answers(tenants: KeyedLive) -> None:
    client = tenants.client(0)
    before = {p.pid for p in tenants.remember()}
    with client.box() as box:
        other = box.kernel()
        box.run("import subprocess\nfor _ in range(5): subprocess.Popen(['sleep', '1000'])")
        box.run("import os\nif os.fork() == 0:\n    os.setsid()\n    os.system('sleep 1000')")
        box.run("import os\nos.system('sleep 1001 &')", kernel_id=other)

        def sleeping() -> list[int]:
            found = [p for p in tenants.remember() if p.pid not in before]
            return [p.pid for p in found if p.role == "sleep"]

        assert eventually(lambda: len(sleeping()) == 7), tenants.remember()
        pids = sleeping()
        assert box.delete().status == 204
        assert not [pid for pid in pids if os.path.exists(f"/proc/{pid}")]
        error(box.ask("GET"), 410, "sandbox_gone", "deleted")
        error(box.delete(), 410, "sandbox_gone", "deleted")


def test_those_who_wait_hear_of_the_end(tenants: KeyedLive) -> None:
    box = tenants.client(0).box()
    with box.stream("input()") as stream, ThreadPoolExecutor() as pool:
        stream.until("input")
        waiting = [box.later("1") for _ in range(3)]
        question = pool.submit(box.ask, "POST", "/complete", {"code": "a"})
        while box.get()["kernels"][0]["queued"] < 3:
            pass
        assert box.delete().status == 204
        for connection in waiting:
            error(connection.reply(), 410, "sandbox_gone")
        reply = question.result()
        error(reply, 410, "sandbox_gone")
        assert list(stream)[-1].type == "failed"


def test_two_deletes_at_once(tenants: KeyedLive) -> None:
    box = tenants.client(0).box()
    with ThreadPoolExecutor() as pool:
        replies = [job.result().status for job in [pool.submit(box.delete) for _ in range(4)]]
    assert replies.count(204) >= 1 and set(replies) <= {204, 410}


# ---------------------------------------------------------------------------- many


@pytest.mark.once
def test_a_hundred_keep_their_own(start_live: Starter) -> None:
    service = start_live(
        "--profiles",
        "base",
        "--max-sandboxes",
        "140",
        "--live-pool",
        "8",
        "--live-idle-seconds",
        "600",
    )
    client = Client(service.port)
    with ThreadPoolExecutor(8) as pool:
        boxes = list(pool.map(lambda i: client.box(metadata={"n": str(i)}), range(100)))
        for turn in range(3):
            code = (
                "x = [{i}]" if turn == 0 else "x.append(x[0] + {turn}); open('f', 'a').write('.')"
            )

            def step(i: int) -> Any:
                return boxes[i].run(code.format(i=i, turn=turn))["status"]

            assert set(pool.map(step, range(100))) == {"ok"}
        found = list(pool.map(lambda box: box.text("x, open('f').read()"), boxes))
        assert found == [f"([{i}, {i + 1}, {i + 2}], '..')" for i in range(100)]
        assert len(client.listed(limit=1000)["sandboxes"]) == 100
        assert set(pool.map(lambda box: box.delete().status, boxes)) == {204}
    assert client.listed()["sandboxes"] == []


def test_reasons_outlive_the_server(start_live: Starter) -> None:
    service = start_live("--profiles", "base")
    client = Client(service.port)
    box = client.box()
    box.delete()
    (server,) = [p.pid for p in service.remember() if p.role == "cloche-server"]
    os.kill(server, 9)
    assert eventually(lambda: server not in [p.pid for p in service.remember()])
    error(box.ask("GET"), 410, "sandbox_gone", "deleted")


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


@pytest.mark.once
def test_the_machine_gets_back_what_many_took(start_live: Starter) -> None:
    """Control groups that nobody needs any more go; those that are used again are made again."""
    service = start_live("--profiles", "base", "--pool", "1")
    client = Client(service.port)

    service.remember()

    def groups() -> int:
        """As many as are in the hierarchy that has most."""
        return max(len(next(os.walk(path))[1]) for path in service.own_cgroups())

    def use_many() -> list[Box]:
        boxes = [client.box() for _ in range(40)]
        assert groups() > 40
        assert all(box.run("'here'")["text"] == "'here'" for box in boxes[::10])
        return boxes

    for box in use_many():
        box.delete()
    assert eventually(lambda: groups() < 30), groups()
    use_many()

"""Live sandboxes: pauses, the end, and many at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from harness import LiveService, eventually, settled
from keyed_live import KeyedLive
from live import Box, Client, error

Starter = Callable[..., LiveService]


@pytest.fixture(scope="module")
def tenants(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedLive]:
    yield from settled(KeyedLive(tmp_path_factory.mktemp("tenants")))


@pytest.fixture
def client(live_service: LiveService) -> Client:
    return Client(live_service.port)


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

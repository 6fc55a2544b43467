"""More work than the machine can do: every request gets an answer, nothing leaks, memory stays
bounded."""

from __future__ import annotations

import json
import resource
import subprocess
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness import Caller, Service, eventually
from http_client import upload
from raw_http import (
    Raw,
    Reply,
    ask,
    execute,
    heard,
    post,
    request,
    resident_mb,
    server_pid,
)

HEALTH = request("GET", "/health")
QUICK = ("--profiles", "base")
HELLO = post("/v1/execute", {"code": "print('hello')", "timeout_ms": 60000})
HOLD = {"code": "print('up', flush=True)\nimport time\ntime.sleep(600)", "timeout_ms": 60000}
GROWTH_MB = 64.0


def judged(reply: Reply) -> str:
    """An answer is the result, or says whose limit it was and when to come back."""
    if reply.status == 200:
        assert reply.json["stdout"] == "hello\n", reply.body
        return "200"
    assert reply.status in (429, 503), reply.body
    assert int(reply.header("Retry-After") or 0) >= 1
    error = reply.json["error"]
    assert error["retryable"] is True and error["message"] and error["remediation"]
    return f"{reply.status} {error['code']}"


def storm(service: Service, connections: int, requests: int) -> Counter[str]:
    """So many connections at once, each with so many requests one after the other."""

    def one(raw: Raw) -> Counter[str]:
        found: Counter[str] = Counter()
        for _ in range(requests):
            found[judged(raw.send(HELLO).reply())] += 1
        return found

    clients = [Raw(service) for _ in range(connections)]
    try:
        with heard(service), ThreadPoolExecutor(connections) as pool:
            return sum(pool.map(one, clients), Counter())
    finally:
        for client in clients:
            client.sock.close()


def test_ten_times_more_work_than_slots(start_service: Callable[..., Service]) -> None:
    service = start_service(*QUICK, "--max-sandboxes", "20", "--queue-max", "40")
    assert judged(ask(service, HELLO)) == "200"
    service.settle()
    before = resident_mb(service)
    found = storm(service, 200, 5)
    assert sum(found.values()) == 1000
    assert found["200"] > 0 and found["503 queue_full"] > 0, found
    assert resident_mb(service) - before < GROWTH_MB
    service.check_no_leak()


@pytest.mark.once
def test_a_queue_that_is_long_enough_answers_all(start_service: Callable[..., Service]) -> None:
    service = start_service(*QUICK, "--queue-max", "1000", "--queue-ms", "600000")
    assert judged(ask(service, HELLO)) == "200"
    service.settle()
    assert storm(service, 200, 3) == {"200": 600}
    service.check_no_leak()


def test_health_answers_under_load(start_service: Callable[..., Service]) -> None:
    service = start_service(*QUICK, "--max-sandboxes", "8", "--queue-ms", "600000")
    with ThreadPoolExecutor(1) as pool, Raw(service) as raw:
        work = pool.submit(storm, service, 100, 3)
        answers = 0
        while not work.done():
            assert raw.send(HEALTH).reply().json["status"] == "ok"
            answers += 1
        assert work.result()["200"] == 300 and answers > 0


def test_without_a_queue(start_service: Callable[..., Service]) -> None:
    service = start_service(*QUICK, "--max-sandboxes", "2", "--pool", "1", "--queue-max", "0")
    held: list[Raw] = []

    def hold_one_more() -> bool:  # one that is refused came while the second place was not ready
        raw = Raw(service).send(post("/v1/execute/stream", HOLD))
        if raw.head().status != 200:
            raw.reset()
            return False
        assert b"up" in raw.until(b"\n\n"), raw.got
        held.append(raw)
        return len(held) == 2

    try:
        assert eventually(hold_one_more)
        assert judged(ask(service, HELLO)) == "503 queue_full"
    finally:
        for raw in held:
            raw.reset()
    assert eventually(lambda: ask(service, HELLO).status == 200), "and then there is room again"


def test_a_queue_of_one(start_service: Callable[..., Service]) -> None:
    service = start_service(*QUICK, "--max-sandboxes", "1", "--pool", "1", "--queue-max", "1")
    with Raw(service) as runs, Raw(service) as waits:
        runs.send(post("/v1/execute/stream", HOLD)).until(b"up")
        waits.send(HELLO)
        assert eventually(lambda: queue_length(service) == 1)
        assert judged(ask(service, HELLO)) == "503 queue_full"
        runs.reset()
        reply = waits.reply()
        assert judged(reply) == "200"
        assert reply.json["usage"]["queue_ms"] > 0


def queue_length(service: Service) -> int:
    return int(metric(service, "queue_length{"))


def metric(service: Service, name: str) -> float:
    text = ask(service, request("GET", "/metrics")).body.decode()
    (line,) = [line for line in text.splitlines() if line.startswith(f"cloche_{name}")]
    return float(line.split()[1])


def test_time_in_the_queue_has_a_deadline_of_its_own(start_service: Callable[..., Service]) -> None:
    options = ("--max-sandboxes", "1", "--pool", "1", "--queue-ms", "3000")
    service = start_service(*QUICK, *options)
    with Raw(service) as runs:
        runs.send(post("/v1/execute/stream", HOLD)).until(b"up")
        assert judged(ask(service, HELLO)) == "503 queue_timeout"
        stream = ask(service, post("/v1/execute/stream", HOLD))
        assert b"queue_timeout" in stream.body
        runs.reset()
    assert eventually(lambda: ask(service, HELLO).status == 200)


def test_a_client_that_leaves_the_queue_makes_room(start_service: Callable[..., Service]) -> None:
    options = ("--max-sandboxes", "1", "--pool", "1", "--queue-max", "1", "--queue-ms", "600000")
    service = start_service(*QUICK, *options)
    with Raw(service) as runs:
        runs.send(post("/v1/execute/stream", HOLD)).until(b"up")
        for _ in range(20):
            with Raw(service) as waits:
                waits.send(HELLO)
                assert eventually(lambda: queue_length(service) == 1)
                waits.reset()
            assert eventually(lambda: queue_length(service) == 0), "it waits for nobody"


def test_a_batch_with_a_single_sandbox(start_service: Callable[..., Service]) -> None:
    service = start_service(*QUICK, "--max-sandboxes", "1", "--pool", "1")
    items = [{"code": f"print({n})", "timeout_ms": 60000} for n in range(5)]
    reply = ask(service, post("/v1/execute/batch", {"items": items}))
    lines = [json.loads(line) for line in reply.body.splitlines() if line]
    assert sorted(line["index"] for line in lines) == list(range(5))
    assert all(line["stdout"] == f"{line['index']}\n" for line in lines)


@pytest.mark.once
def test_a_batch_of_a_thousand(start_service: Callable[..., Service]) -> None:
    service = start_service(*QUICK)
    assert judged(ask(service, HELLO)) == "200"
    service.settle()
    before = resident_mb(service)
    items = [{"code": f"print({n})", "timeout_ms": 60000} for n in range(1000)]
    reply = ask(service, post("/v1/execute/batch", {"items": items}))
    lines = {line["index"]: line for line in map(json.loads, reply.body.splitlines()) if line}
    assert all(lines[n]["stdout"] == f"{n}\n" for n in range(1000))
    assert resident_mb(service) - before < GROWTH_MB
    service.check_no_leak()


SLOW = post("/v1/execute", {"code": "print('hello')", "timeout_ms": 60000})[:-1]


def slow(service: Service) -> Raw:
    """A request under way: it lacks one byte, and the server has seen the rest."""
    raw = Raw(service).send(SLOW.replace(b"\r\n", b"\r\nExpect: 100-continue\r\n", 1))
    assert raw.head().status == 100
    return raw


def test_more_requests_than_connections_allowed(start_service: Callable[..., Service]) -> None:
    service = start_service(*QUICK, "--max-connections", "20")
    kept = [slow(service) for _ in range(20)]
    try:
        for _ in range(100):
            reply = ask(service, HEALTH)
            assert judged(reply) == "503 too_many_connections"
            assert not reply.keeps
        for raw in kept[:10]:
            assert judged(raw.send(b"}").reply()) == "200", "those inside are not disturbed"
        for _ in range(100):
            assert ask(service, HEALTH).status == 200, "who waits with its next makes a place"
        for raw in kept[10:]:
            assert judged(raw.send(b"}").reply()) == "200"
    finally:
        for raw in kept:
            raw.sock.close()


WAITING = {
    "nothing": b"",
    "half a head": HEALTH[:-2],
    "between two requests": HEALTH,
    "a body that nobody reads": request("POST", "/nope", "Content-Length: 9999"),
}


@pytest.mark.parametrize("shape", WAITING)
def test_connections_that_wait_keep_nobody_out(
    shape: str, start_service: Callable[..., Service]
) -> None:
    service = start_service(*QUICK, "--max-connections", "20", "--idle-s", "3600")
    kept = []
    try:
        with slow(service) as works:
            for _ in range(60):
                kept.append(Raw(service).send(WAITING[shape]))
                if shape not in ("nothing", "half a head"):
                    assert kept[-1].reply().status in (200, 404)
            assert ask(service, HEALTH).status == 200
            assert metric(service, "connections ") <= 20
            assert metric(service, "connections_evicted_total") >= 40
            assert kept[0].ends() == b"", "the first to wait is the first to go"
            if shape == "between two requests":
                assert kept[-1].send(HEALTH).reply().status == 200, "and the last stays"
            assert judged(works.send(b"}").reply()) == "200"
    finally:
        for raw in kept:
            raw.sock.close()


def test_thousands_of_idle_connections_cost_little(start_service: Callable[..., Service]) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 4096:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    service = start_service(*QUICK)
    before = resident_mb(service)
    kept = [Raw(service) for _ in range(1500)]
    try:
        with heard(service):
            for raw in kept:
                raw.send(HEALTH)
            for raw in kept:
                assert raw.reply().status == 200
        assert resident_mb(service) - before < 1500 * 0.1 + 32, "64 KiB each, and a little"
        assert execute(service, "print(1)").json["stdout"] == "1\n"
    finally:
        for raw in kept:
            raw.sock.close()


def test_out_of_descriptors_and_back(tmp_path: Path) -> None:
    """Connections wait or are refused; those inside are served, and all is well afterwards."""
    few = Caller(before=("prlimit", "--nofile=1024:1024"))
    service = Service(tmp_path, *QUICK, "--pool", "1", caller=few)
    kept: list[Raw] = []
    try:
        assert judged(ask(service, HELLO)) == "200"
        kept.append(slow(service))
        kept += [Raw(service).send(HELLO) for _ in range(1500)]
        assert judged(kept[0].send(b"}").reply()) == "200"
        for raw in kept:
            raw.reset()
        assert eventually(lambda: ask(service, HELLO).status == 200)
        assert "server ended" not in service.text()
        service.stop()
    finally:
        for raw in kept:
            raw.sock.close()
        service.kill()


def test_files_of_requests_leave_descriptors_for_the_rest(tmp_path: Path) -> None:
    """Each stored file that waits with its request is one; without any the server ends."""
    few = Caller(before=("prlimit", "--nofile=1024:1024"))
    service = Service(tmp_path, *QUICK, "--max-sandboxes", "2", "--queue-ms", "60000", caller=few)
    kept: list[Raw] = []
    try:
        stored = upload(service.port, "a", b"bytes")
        files = [{"path": f"f{n}", "file_id": stored} for n in range(60)]
        many = post("/v1/execute/stream", {**HOLD, "files": files})
        for _ in range(20):
            kept.append(Raw(service).send(many))
            reply = kept[-1].head()
            if reply.status != 200:
                break
        reply.body = kept[-1].exactly(int(reply.header("Content-Length") or 0))
        assert judged(reply) == "503 no_descriptors"
        assert ask(service, request("GET", f"/v1/files/{stored}")).body == b"bytes"
        assert upload(service.port, "b", b"more")
        for raw in kept:
            raw.reset()
        assert eventually(lambda: ask(service, HELLO).status == 200)
        assert "server ended" not in service.text()
        service.stop()
    finally:
        for raw in kept:
            raw.sock.close()
        service.kill()


def limit_files(pid: int, soft: str) -> None:
    """As the user whose process it is, who may."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    ids = {line[:3]: int(line.split()[1]) for line in lines if line.startswith(("Uid", "Gid"))}
    words = ["prlimit", f"--pid={pid}", f"--nofile={soft}:"]
    subprocess.run(words, check=True, user=ids["Uid"], group=ids["Gid"])


def test_without_a_descriptor(start_service: Callable[..., Service]) -> None:
    """What needs one is told to come back, nobody is told that a file is not there, and the
    server does not run in circles for a client that it cannot let in."""
    service = start_service(*QUICK, "--pool", "1", "--live", "off")
    ready = b'cloche_pool_ready{profile="base"} 1\n'  # no sandbox is on its way: it takes many
    assert eventually(lambda: ready in ask(service, request("GET", "/metrics")).body)
    stored = upload(service.port, "a", b"bytes")
    pid = server_pid(service)
    before = str(resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    with_stored = {"code": "1", "files": [{"path": "a", "file_id": stored}]}
    with_inline = {"code": "1", "files": [{"path": "a", "content": "x" * 70_000}]}
    asked = {
        "download": request("GET", f"/v1/files/{stored}"),
        "a stored file": post("/v1/execute", with_stored),
        "an inline file": post("/v1/execute", with_inline),
    }
    with Raw(service) as inside:
        assert inside.send(HEALTH).reply().status == 200
        limit_files(pid, "0")
        try:
            for name, data in asked.items():
                assert judged(inside.send(data).reply()) == "503 no_descriptors", name
            late, local = Raw(service).send(HEALTH), service.raw()
            local.start("print(2)")
            stat = Path(f"/proc/{pid}/stat")
            assert eventually(lambda: stat.read_text().rpartition(") ")[2].startswith("S"))
        finally:
            limit_files(pid, before)
        assert late.reply().status == 200
        late.sock.close()
        with local:
            assert local.finish().stdout == b"2\n"
        assert inside.send(asked["download"]).reply().body == b"bytes"
        assert execute(service, "print(1)").json["stdout"] == "1\n"


def test_a_sandbox_without_a_descriptor(start_service: Callable[..., Service]) -> None:
    """It is given up, and so is who waits for it; the server stays, and the next has its limits."""
    service = start_service(*QUICK, "--pool", "1", "--live", "off")
    pid = server_pid(service)
    before = str(resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    with Raw(service) as inside:
        assert inside.send(HEALTH).reply().status == 200
        limit_files(pid, "0")
        try:
            replies = [inside.send(HELLO).reply() for _ in range(3)]
        finally:
            limit_files(pid, before)
        assert judged(replies[-1]) == "503 no_sandbox" and b"files open" in replies[-1].body
        assert eventually(lambda: inside.send(HELLO).reply().status == 200)
    assert server_pid(service) == pid
    for _ in range(8):  # more than had been asked for
        reply = execute(service, "x = b'x' * (300 << 20)", limits={"memory_mb": 64})
        assert reply.json["limit_hit"] == "memory", reply.body

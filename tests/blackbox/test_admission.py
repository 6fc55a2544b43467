"""Who is let in: tenants take turns, memory has a budget, bodies have a common bound, and the pool
goes back to its size."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from family import QUICK as PROFILES
from family import Family, Held, drained, write_config
from harness import Engine, Service, eventually, run_cli
from http_client import upload
from raw_http import Raw, Reply, ask, chunks, post, request, resident_mb
from raw_ws import TEXT, Socket, frame

ONE = ("--profiles", "base", "--max-sandboxes", "1", "--pool", "1", "--queue-ms", "600000")
WHEN = "import time; print(time.monotonic_ns())"  # the machine's clock: tells who was first
WAIT = "import time\n{}\nprint('up', flush=True)\ntime.sleep(1000)"
HOLD = WAIT.format("")
Starter = Callable[..., Service]


class Tenants(Service):
    """A service with a key for each of some tenants."""

    def __init__(self, directory: Path, *options: str, names: tuple[str, ...]) -> None:
        directory.chmod(0o711)
        file = directory / "keys.json"
        self.keys: dict[str, str] = {}
        for name in names:
            made = run_cli("key", "add", name, "--keys", file)
            assert made.returncode == 0, made.stderr
            self.keys[name] = made.stdout.decode().strip()
        super().__init__(directory, "--keys", str(file), *options)

    def send(self, name: str, code: str, path: str = "/v1/execute") -> Raw:
        """Asks on a connection of its own and does not wait."""
        body = {"code": code, "timeout_ms": 60000}
        return Raw(self).send(post(path, body, f"Authorization: Bearer {self.keys[name]}"))

    def metric(self, name: str) -> float:
        header = f"Authorization: Bearer {next(iter(self.keys.values()))}"
        return metric(self, name, header)


def metric(service: Service, name: str, *headers: str) -> float:
    service.drain()  # of the lines that our looking makes it log
    text = ask(service, request("GET", "/metrics", *headers)).body.decode()
    found = [line for line in text.splitlines() if line.startswith(f"cloche_{name}")]
    return sum(float(line.rsplit(" ", 1)[1]) for line in found)


def refused(reply: Reply) -> str:
    assert int(reply.header("Retry-After") or 0) >= 1
    error = reply.json["error"]
    assert error["retryable"] is True and error["message"] and error["remediation"]
    return f"{reply.status} {error['code']}"


@pytest.fixture
def tenants(tmp_path: Path) -> Iterator[Callable[..., Tenants]]:
    services: list[Tenants] = []

    def start(*options: str) -> Tenants:
        services.append(Tenants(tmp_path, *options, names=("alice", "bob")))
        return services[-1]

    try:
        yield start
        for service in services:
            service.check_health()
            service.stop()
    finally:
        for service in services:
            service.kill()


# ---------------------------------------------------------------------------- turns


def test_a_tenant_with_many_does_not_hold_up_another(tenants: Callable[..., Tenants]) -> None:
    service = tenants(*ONE)
    with service.send("alice", HOLD, "/v1/execute/stream") as runs:
        runs.until(b"up")
        many = [service.send("alice", WHEN) for _ in range(20)]
        assert eventually(lambda: service.metric("queue_length") == 20)
        single = service.send("bob", WHEN)
        assert eventually(lambda: service.metric("queue_length") == 21)
        runs.reset()
    order = [(int(raw.reply().json["stdout"]), "alice") for raw in many]
    order.append((int(single.reply().json["stdout"]), "bob"))
    assert [who for _, who in sorted(order)].index("bob") <= 1, "its turn came at once"
    assert order == [*sorted(order[:-1]), order[-1]], "and alice's own were served in order"
    for raw in (*many, single):
        raw.sock.close()


def test_a_batch_counts_like_its_tenants_others(tenants: Callable[..., Tenants]) -> None:
    service = tenants(*ONE)
    body = {"items": [{"code": WHEN, "timeout_ms": 60000}] * 200, "concurrency": 20}
    headers = f"Authorization: Bearer {service.keys['alice']}"
    with service.send("bob", HOLD, "/v1/execute/stream") as runs, Raw(service) as batch:
        runs.until(b"up")
        batch.send(post("/v1/execute/batch", body, headers))
        assert eventually(lambda: service.metric("queue_length") == 20)
        with service.send("bob", WHEN) as single:
            assert eventually(lambda: service.metric("queue_length") == 21)
            runs.reset()
            mine = int(single.reply().json["stdout"])
        lines = batch.reply().body.splitlines()
    theirs = sorted(int(line.split(b'"stdout":"')[1].split(b"\\n")[0]) for line in lines if line)
    assert len(theirs) == 200 and mine < theirs[2]


def test_a_full_queue_is_shared(tenants: Callable[..., Tenants]) -> None:
    service = tenants(*ONE, "--queue-max", "4")
    with service.send("alice", HOLD, "/v1/execute/stream") as runs:
        runs.until(b"up")
        alices = []
        for n in range(4):  # alone she may have all of it
            alices.append(service.send("alice", WHEN))
            assert eventually(lambda: service.metric("queue_length") == n + 1)
        with service.send("alice", WHEN) as late:
            assert refused(late.reply()) == "503 queue_full"
        bobs = []
        for _ in range(2):  # the newest of hers give way, until both have as many
            bobs.append(service.send("bob", WHEN))
            with alices.pop() as newest:
                assert refused(newest.reply()) == "503 queue_full"
        with service.send("bob", WHEN) as late:
            assert refused(late.reply()) == "503 queue_full"
        assert service.metric("queue_length") == 4
        assert service.metric('refused_total{code="queue_full"}') == 4
        runs.reset()
    for raw in (*alices, *bobs):
        with raw:
            assert raw.reply().json["status"] == "ok"


def test_a_full_queue_for_live_sandboxes_is_shared(tenants: Callable[..., Tenants]) -> None:
    service = tenants(*ONE, "--live", "on", "--queue-max", "4")

    def create(name: str) -> Raw:
        header = f"Authorization: Bearer {service.keys[name]}"
        return Raw(service).send(post("/v1/sandboxes", {"profile": "base"}, header))

    with service.send("alice", HOLD, "/v1/execute/stream") as runs:
        runs.until(b"up")
        alices = []
        for n in range(4):
            alices.append(create("alice"))
            assert eventually(lambda: service.metric("live_queue_length") == n + 1)
        with create("alice") as late:
            assert refused(late.reply()) == "503 queue_full"
        bobs = []
        for _ in range(2):
            bobs.append(create("bob"))
            with alices.pop() as newest:
                assert refused(newest.reply()) == "503 queue_full"
        with create("bob") as late:
            assert refused(late.reply()) == "503 queue_full"
        for raw in (*alices, *bobs):
            raw.reset()
        assert eventually(lambda: service.metric("live_queue_length") == 0)


def test_profiles_take_turns(start_engine: Callable[..., Engine], tmp_path: Path) -> None:
    settings = {"max_sandboxes": 1, "queue_ms": 600000}
    engine = start_engine("--config", write_config(tmp_path, PROFILES, **settings))
    with drained(engine), contextlib.ExitStack() as stack:
        held = stack.enter_context(Held(engine, "base"))

        def ask_for(profile: str) -> Any:
            client = stack.enter_context(engine.raw())
            client.start(WHEN, profile=profile, timeout_ms=60000)
            return client

        many = [ask_for("base") for _ in range(10)]
        single = ask_for("tiny")
        assert eventually(lambda: sum(p["queued"] for p in engine.info()["profiles"]) == 11)
        held.release("go")
        mine = int(single.finish().stdout)
        theirs = sorted(int(client.finish().stdout) for client in many)
        assert mine < theirs[2], "one place for both, and the first profile does not get it always"


# ---------------------------------------------------------------------------- memory

BUDGET = ("--profiles", "base", "--pool", "2")
GREEDY = WAIT.format("keep = b'x' * (200 << 20)")
LARGE = {"limits": {"memory_mb": 400}, "timeout_ms": 60000}


def charged_mb(service: Service) -> float:
    return metric(service, "memory_charged_bytes") / 2**20


def test_programs_wait_for_memory(start_service: Starter) -> None:
    service = start_service(*BUDGET, "--memory-budget-mb", "220", "--queue-ms", "600000")
    hello = post("/v1/execute", {"code": "print(1)", "timeout_ms": 60000})
    with Raw(service) as runs, Raw(service) as waits:
        runs.send(post("/v1/execute/stream", {"code": GREEDY, **LARGE})).until(b"up")
        waits.send(hello)
        assert eventually(lambda: metric(service, "queue_length") == 1)
        assert charged_mb(service) > 200, "measured, not promised"
        full = eventually(lambda: metric(service, "pool_ready") == 2)
        assert full and metric(service, "queue_length") == 1, "it is not a sandbox that is missing"
        runs.reset()
        reply = waits.reply()
        assert reply.json["stdout"] == "1\n" and reply.json["usage"]["queue_ms"] > 0
    assert eventually(lambda: charged_mb(service) == 0), "all of it was given back"


def test_memory_that_does_not_come_is_a_503(start_service: Starter) -> None:
    options = ("--memory-budget-mb", "220", "--queue-ms", "3000", "--queue-max", "1")
    service = start_service(*BUDGET, *options)
    service.settle()  # nobody waits for a sandbox, and one that is missing is not what is told
    hello = post("/v1/execute", {"code": "print(1)", "timeout_ms": 60000})
    with Raw(service) as runs:
        runs.send(post("/v1/execute/stream", {"code": GREEDY, **LARGE})).until(b"up")
        with Raw(service) as first, Raw(service) as second:
            replies = [raw.send(hello) for raw in (first, second)]
            assert {refused(raw.reply()) for raw in replies} == {"503 memory_budget"}
        assert metric(service, 'refused_total{code="memory_budget"}') == 2
        runs.reset()
    assert eventually(lambda: ask(service, hello).status == 200)


def test_many_small_ones_fit_though_their_limits_do_not(start_service: Starter) -> None:
    service = start_service(*BUDGET, "--memory-budget-mb", "256")  # one program's limit
    with contextlib.ExitStack() as stack:
        body = {"code": HOLD, "timeout_ms": 60000}
        for _ in range(8):  # eight times the least that one counts with
            raw = stack.enter_context(Raw(service))
            raw.send(post("/v1/execute/stream", body)).until(b"up")
        assert charged_mb(service) == 256
        ninth = stack.enter_context(Raw(service)).send(post("/v1/execute/stream", body))
        assert eventually(lambda: metric(service, "queue_length") == 1)
        raw.reset()
        ninth.until(b"up")


def test_files_count_against_the_budget(start_service: Starter) -> None:
    service = start_service(*BUDGET, "--memory-budget-mb", "100", "--queue-ms", "600000")

    def file(mb: int) -> list[dict[str, str]]:
        return [{"path": "f", "file_id": upload(service.port, "f", bytes(mb << 20))}]

    body = {"code": HOLD, "timeout_ms": 60000, "files": file(50)}
    with Raw(service) as runs, Raw(service) as waits:
        runs.send(post("/v1/execute/stream", body)).until(b"up")
        assert 82 <= charged_mb(service) < 100
        waits.send(post("/v1/execute/stream", body))
        assert eventually(lambda: metric(service, "queue_length") == 1)
        runs.reset()
        waits.until(b"up")
    never = ask(service, post("/v1/execute", {**body, "files": file(70)}))
    assert never.status == 422 and never.code == "limit_too_high"
    assert "102 MB" in never.json["error"]["message"] and "100 MB" in never.json["error"]["message"]


# ---------------------------------------------------------------------------- bodies


def big(size: int) -> bytes:
    """A request with a body of so many bytes."""
    body = b'{"code":"#%s","timeout_ms":60000}'
    return post("/v1/execute", body % (b"x" * (size - len(body) + 2)))


def test_bodies_have_a_common_bound(start_service: Starter) -> None:
    service = start_service("--profiles", "base", "--bodies-mb", "2")
    large, small = big(1500000), big(60000)
    with Raw(service) as first:
        first.send(large[:1400000])  # what has come counts, not what is announced
        assert eventually(lambda: 1000000 < metric(service, "bodies_bytes") <= 1500000)
        with Raw(service) as second:
            second.send(large.split(b"\r\n\r\n")[0] + b"\r\n\r\n")
            reply = second.reply()  # with nothing of the body sent
            assert refused(reply) == "503 bodies_full" and not reply.keeps
        assert ask(service, small).json["status"] == "ok"
        first.send(large[1400000:])
        assert first.reply().json["status"] == "ok"
        assert eventually(lambda: metric(service, "bodies_bytes") == 0)
        assert first.send(large).reply().json["status"] == "ok", "the same connection goes on"
    assert metric(service, 'refused_total{code="bodies_full"}') == 1


def test_a_body_counts_until_its_request_is_over(start_service: Starter) -> None:
    service = start_service("--profiles", "base", "--bodies-mb", "2")
    body = {"code": HOLD, "timeout_ms": 60000, "args": [], "stdin": "x" * 1500000}
    with Raw(service) as runs:
        runs.send(post("/v1/execute/stream", body)).until(b"up")
        assert refused(ask(service, big(1500000))) == "503 bodies_full"
        runs.reset()
    assert eventually(lambda: ask(service, big(1500000)).status == 200)


def test_what_is_made_of_a_body_counts(start_service: Starter) -> None:
    """Each of these values takes two hundred bytes for its three."""
    service = start_service("--profiles", "base", "--bodies-mb", "64")

    def odd(values: int) -> bytes:
        item = b'{"code":%s,"timeout_ms":60000,"x":[%s{}]}'
        body = b'{"items":[%s]}' % (item % (json.dumps(HOLD).encode(), b"{}," * values))
        return post("/v1/execute/batch", body)

    with Raw(service) as first:
        first.send(odd(150_000))
        assert eventually(lambda: metric(service, "bodies_bytes") > 35 << 20)
        assert refused(ask(service, odd(150_000))) == "503 bodies_full"
        assert ask(service, big(60000)).json["status"] == "ok"
    assert eventually(lambda: metric(service, "bodies_bytes") == 0)
    reply = ask(service, odd(300_000))
    assert reply.status == 413 and reply.code == "body_too_large"
    assert "values" in reply.json["error"]["message"]


def test_what_nobody_asked_for_is_dropped(start_service: Starter) -> None:
    """Names that are not known are told of, and nothing else of them is kept."""
    service = start_service("--profiles", "base", "--bodies-mb", "64")
    odd = b",".join(b'"x%d":[%s{}]' % (i, b"{}," * 3_000) for i in range(30))
    body = b'{"code":"input()","timeout_ms":60000,%s}' % odd
    with Raw(service) as runs:
        runs.send(post("/v1/execute/stream", b'{"code":%s,%s}' % (json.dumps(HOLD).encode(), odd)))
        runs.until(b"up")
        assert metric(service, "bodies_bytes") < 1 << 20
        runs.reset()
    warnings = ask(service, post("/v1/execute", body)).json["warnings"]
    told = [line for line in warnings if "is not known and was ignored" in line]
    assert len(told) == 20 and any("more fields" in line for line in warnings)


def test_messages_of_websockets_count_too(start_service: Starter) -> None:
    service = start_service("--profiles", "base", "--bodies-mb", "2")
    size = 1000000
    message = json.dumps({"code": "print(1)#" + "x" * (size - 60)}).encode()
    with Socket(service) as first, Socket(service) as second, Socket(service) as third:
        whole = frame(TEXT, message)
        first.send(whole[:100])  # it says how long it will be
        second.send(frame(TEXT, message[:-10], fin=False))  # in pieces, and the last is missing
        assert eventually(lambda: metric(service, "bodies_bytes") == 2 * len(message) - 10)
        third.send(whole)
        assert third.goodbye() == 1013
        first.send(whole[100:])
        assert first.output("1\n")
        assert eventually(lambda: metric(service, "bodies_bytes") == len(message) - 10)
        second.reset()
        assert eventually(lambda: metric(service, "bodies_bytes") == 0)


def test_chunks_count_as_they_come(start_service: Starter) -> None:
    service = start_service("--profiles", "base", "--bodies-mb", "2")
    head = request("POST", "/v1/execute", "Content-Type: application/json")[:-2]
    head += b"Transfer-Encoding: chunked\r\n\r\n"
    body = big(1000000).split(b"\r\n\r\n")[1]
    with Raw(service) as first:
        first.send(big(1500000)[:1400000])
        assert eventually(lambda: metric(service, "bodies_bytes") > 1200000)
        pieces = [body[at : at + 50000] for at in range(0, len(body), 50000)]
        assert refused(ask(service, head + chunks(*pieces))) == "503 bodies_full"
    assert eventually(lambda: metric(service, "bodies_bytes") == 0)
    assert ask(service, head + chunks(*pieces)).json["status"] == "ok"


def test_a_body_that_could_never_fit_is_too_large(start_service: Starter) -> None:
    service = start_service("--profiles", "base", "--bodies-mb", "2")
    reply = ask(service, big(3000000))
    assert reply.status == 413 and reply.code == "body_too_large"
    assert "2097152" in reply.json["error"]["message"]


@pytest.mark.once
def test_large_bodies_that_wait_leave_memory_bounded(start_service: Starter) -> None:
    options = ("--max-sandboxes", "1", "--pool", "1", "--bodies-mb", "64", "--queue-ms", "600000")
    service = start_service("--profiles", "base", *options)
    body = {"code": "print(1)", "timeout_ms": 60000, "stdin": "x" * 8000000}
    data = post("/v1/execute", body)
    with contextlib.ExitStack() as stack, Raw(service) as runs:
        runs.send(post("/v1/execute/stream", {"code": HOLD, "timeout_ms": 60000})).until(b"up")
        before = resident_mb(service)
        raws = [stack.enter_context(Raw(service)) for _ in range(80)]
        kept = [raw for raw in raws if raw.try_send(data)]
        assert eventually(lambda: metric(service, "queue_length") == 8)
        # Copies of each, and what a sanitizer keeps; all eighty would be 1,280 at the least.
        assert resident_mb(service) - before < 512
        runs.reset()
        found = [raw.reply().status for raw in kept]
    assert found.count(200) == 8 and set(found) <= {200, 503}


# ---------------------------------------------------------------------------- the pool


def test_the_pool_goes_back_to_its_size(start_service: Starter) -> None:
    service = start_service("--profiles", "base", "--pool", "1", "--queue-ms", "600000")
    (nursery,) = Family(service).nursery(0)
    assert eventually(lambda: service.info()["profiles"][0]["ready"] == 1)
    os.kill(nursery.pid, signal.SIGSTOP)  # sandboxes are asked for and do not come
    try:
        assert Raw(service).send(post("/v1/execute", {"code": WHEN})).reply().json["status"] == "ok"
        raws = [Raw(service).send(post("/v1/execute", {"code": WHEN})) for _ in range(7)]
        assert eventually(lambda: metric(service, "queue_length") == 7)
        making = service.info()["profiles"][0]["making"]
        for raw in raws:
            raw.reset()
        assert eventually(lambda: metric(service, "queue_length") == 0)
    finally:
        os.kill(nursery.pid, signal.SIGCONT)
    assert making > 1, "or there is nothing to see"

    def state() -> tuple[int, int]:
        profile = service.info()["profiles"][0]
        return profile["ready"], profile["making"]

    assert eventually(lambda: state() == (1, 0)), state()

"""What the server remembers for tenants: one of them cannot push out what another was promised."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import eventually
from raw_http import Raw, Reply, ask, post, request
from test_admission import Tenants

MANY = "--idempotency-keys"
LARGE = "print('x' * 3_900_000)"  # about as much as is kept of one reply
Starter = Callable[..., Tenants]


@pytest.fixture
def tenants(tmp_path: Path) -> Iterator[Starter]:
    services: list[Tenants] = []

    def start(*options: str) -> Tenants:
        services.append(Tenants(tmp_path, "--profiles", "base", *options, names=("alice", "bob")))
        return services[-1]

    try:
        yield start
        for service in services:
            service.check_health()
            service.stop()
    finally:
        for service in services:
            service.kill()


def body_of(code: str) -> dict[str, Any]:
    return {"code": code, "timeout_ms": 60000, "limits": {"output_bytes": 4_000_000}}


def run(
    service: Tenants, who: str, key: str, code: str = "import uuid; print(uuid.uuid4())"
) -> Reply:
    headers = (f"Authorization: Bearer {service.keys[who]}", f"Idempotency-Key: {key}")
    return ask(service, post("/v1/execute", body_of(code), *headers))


def record(service: Tenants, who: str, first: Reply) -> Reply:
    path = f"/v1/executions/{first.header('X-Execution-Id') or first.json['execution_id']}"
    return ask(service, request("GET", path, f"Authorization: Bearer {service.keys[who]}"))


def test_large_replies_push_out_only_their_own_tenants(tenants: Starter) -> None:
    service = tenants()
    first = run(service, "alice", "a")
    assert first.status == 200
    own = [run(service, "bob", f"b{i}", LARGE) for i in range(14)]
    assert all(reply.status == 200 and len(reply.json["stdout"]) > 3_000_000 for reply in own)
    again = run(service, "alice", "a")
    assert again.header("Idempotent-Replayed") == "true" and again.json == first.json
    assert record(service, "alice", first).status == 200
    pushed = run(service, "bob", "b0", LARGE)
    assert pushed.status == 409 and pushed.code == "reply_not_kept"
    assert "make room" in pushed.json["error"]["message"], "and that is the reason"
    assert record(service, "bob", own[0]).status == 404
    assert run(service, "bob", "b13", LARGE).header("Idempotent-Replayed") == "true"


def test_a_tenant_with_too_many_keys_is_refused_and_no_key_is_forgotten(tenants: Starter) -> None:
    service = tenants(MANY, "5")
    first = run(service, "alice", "a")
    own = [run(service, "bob", f"b{i}") for i in range(5)]
    assert all(reply.status == 200 for reply in own)
    more = run(service, "bob", "b5")
    assert more.status == 429 and more.code == "idempotency_keys_full"
    assert int(more.header("Retry-After") or 0) > 0
    for i, reply in enumerate(own):
        assert run(service, "bob", f"b{i}").json == reply.json, "it was promised"
    assert run(service, "alice", "a").json == first.json
    assert run(service, "alice", "b0").json != own[0].json, "another tenant's key is another key"


def test_what_failed_takes_no_place_among_the_keys(tenants: Starter) -> None:
    service = tenants(MANY, "1")
    header = f"Authorization: Bearer {service.keys['bob']}"
    for _ in range(3):
        bad = ask(service, post("/v1/execute", {"code": 5}, header, "Idempotency-Key: k"))
        assert bad.status == 422
    assert run(service, "bob", "other").status == 200


# ---------------------------------------------------------------------------- what is under way


def bearer(service: Tenants, who: str) -> str:
    return f"Authorization: Bearer {service.keys[who]}"


def announce(service: Tenants, who: str, length: int, first: bytes) -> Raw:
    """A body of so many bytes, of which only the first ones come; the server has seen the head."""
    head = request(
        "POST",
        "/v1/execute",
        bearer(service, who),
        "Content-Type: application/json",
        "Expect: 100-continue",
        f"Content-Length: {length}",
    )
    raw = Raw(service).send(head)
    if raw.head().status == 100:
        raw.send(first)
    return raw


def large(service: Tenants, who: str) -> Reply:
    body = {"code": "print(1)", "stdin": "x" * 200_000, "timeout_ms": 60000}
    return ask(service, post("/v1/execute", body, bearer(service, who)))


def close(kept: list[Raw]) -> None:
    for raw in kept:
        raw.sock.close()


def test_a_tenant_has_half_of_the_connections(tenants: Starter) -> None:
    service = tenants("--max-connections", "20")
    kept = [announce(service, "bob", 100, b"{") for _ in range(10)]
    try:
        for _ in range(30):
            over = ask(service, request("GET", "/v1/info", bearer(service, "bob")))
            assert over.status == 429 and over.code == "too_many_at_once"
            assert over.header("Retry-After") == "1"
        assert "half" in over.json["error"]["message"]
        kept += [announce(service, "alice", 100, b"{") for _ in range(9)]
        assert ask(service, request("GET", "/v1/info", bearer(service, "alice"))).status == 200
        kept[0].reset()
        info = request("GET", "/v1/info", bearer(service, "bob"))
        assert eventually(lambda: ask(service, info).status == 200), "a place is given back"
    finally:
        close(kept)


def test_a_body_that_was_only_announced_takes_no_room(tenants: Starter) -> None:
    service = tenants("--bodies-mb", "8")
    kept = [announce(service, "bob", 4_190_000, b"{") for _ in range(20)]
    try:
        for who in ("bob", "alice") * 3:
            assert large(service, who).status == 200
    finally:
        close(kept)


def test_a_tenant_has_half_of_the_room_for_bodies(tenants: Starter) -> None:
    service = tenants("--bodies-mb", "8")
    part = (1 << 20) - 10
    kept = [announce(service, "bob", 1 << 20, b"{".ljust(part)) for _ in range(4)]
    held = "bodies_bytes"
    try:
        assert eventually(lambda: service.metric(held) == 4 * part)
        assert large(service, "bob").code == "bodies_full"
        assert large(service, "alice").status == 200
        never = announce(service, "bob", (4 << 20) + 1, b"")
        assert b"body_too_large" in never.until(b"}"), "and at once"
        never.sock.close()
        close(kept)
        assert eventually(lambda: service.metric(held) == 0)
        assert large(service, "bob").status == 200
    finally:
        close(kept)


def leave(service: Tenants, who: str, key: str, code: str) -> None:
    """Whoever asks is gone before there is a reply."""
    headers = (bearer(service, who), f"Idempotency-Key: {key}", "Connection: close")
    with Raw(service) as raw:
        raw.send(post("/v1/execute", body_of(code), *headers))
        assert eventually(lambda: under_way(service) > 1)  # besides that for the metrics


def under_way(service: Tenants) -> int:
    text = ask(service, request("GET", "/metrics", bearer(service, "alice"))).body.decode()
    (active,) = re.findall(r"^cloche_requests_active (\d+)$", text, re.MULTILINE)
    return int(active)


def test_work_without_clients_leaves_room_for_others(tenants: Starter) -> None:
    """A tenant may have 64 pieces of work that go on when their clients have left."""
    service = tenants()
    for i in range(66):
        leave(service, "bob", f"b{i}", "import time; time.sleep(15)")
    code = "import time, uuid; time.sleep(1); print(uuid.uuid4())"
    leave(service, "alice", "a", code)
    first, again = run(service, "alice", "a", code), run(service, "alice", "a", code)
    assert first.header("Idempotent-Replayed") == "true"
    assert first.json == again.json

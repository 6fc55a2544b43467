"""What the server remembers for tenants: one of them cannot push out what another was promised."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from raw_http import Reply, ask, post, request
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


def run(
    service: Tenants, who: str, key: str, code: str = "import uuid; print(uuid.uuid4())"
) -> Reply:
    headers = (f"Authorization: Bearer {service.keys[who]}", f"Idempotency-Key: {key}")
    body = {"code": code, "timeout_ms": 60000, "limits": {"output_bytes": 4_000_000}}
    return ask(service, post("/v1/execute", body, *headers))


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

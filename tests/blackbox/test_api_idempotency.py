"""Idempotency-Key: a request that is sent again is not carried out again, whatever it asks for."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from harness import LiveService, Service, eventually
from host import descendants
from http_client import BOUNDARY, FORM, JSON, Connection, Reply, ask, download, get, part
from live import LINES, Client
from raw_http import Raw
from raw_http import post as raw_post

RANDOM = "import uuid\nprint(uuid.uuid4())"
# Waits for its input to be over; a name tells that it runs.
NAMED = """
import ctypes, time
ctypes.CDLL(None).prctl(15, {name!r}.encode())
time.sleep({seconds})
print("done")
"""


def new_key() -> dict[str, str]:
    return {"Idempotency-Key": str(uuid.uuid4())}


def send(service: Service, path: str, body: Any, key: dict[str, str]) -> Reply:
    return ask(service.port, "POST", path, json.dumps(body).encode(), JSON | key)


def body_of(path: str, code: str) -> dict[str, Any]:
    item = {"code": code, "timeout_ms": 60000}
    return {"items": [item] * 3} if path.endswith("batch") else item


def runs(service: Service, name: str) -> int:
    found = descendants(service.process.pid)
    return len([p for p in found if p.comm == name and p.state not in "ZX"])


def ended(service: Service) -> int:
    text = get(service.port, "/metrics").body.decode()
    found = re.findall(r"^cloche_executions_total\{[^}]*\} (\d+)$", text, re.MULTILINE)
    return sum(map(int, found))


PATHS = ["/v1/execute", "/v1/execute/stream", "/v1/execute/batch"]


@pytest.mark.parametrize("path", PATHS)
def test_the_same_request_is_carried_out_once(service: Service, path: str) -> None:
    key, body = new_key(), body_of(path, RANDOM)
    before = ended(service)
    first = send(service, path, body, key)
    assert first.status == 200 and first.header("idempotent-replayed") is None
    after = ended(service)
    assert after > before
    for _ in range(3):
        again = send(service, path, body, key)
        assert (again.status, again.body) == (200, first.body)
        assert again.header("content-type") == first.header("content-type")
        assert again.header("idempotent-replayed") == "true"
    assert ended(service) == after
    assert send(service, path, body, new_key()).body != first.body


@pytest.mark.parametrize("path", PATHS)
def test_a_key_is_for_one_request(service: Service, path: str) -> None:
    key = new_key()
    assert send(service, path, body_of(path, "1"), key).status == 200
    for other in [p for p in PATHS if p != path] + [path]:
        reply = send(service, other, body_of(other, "1" if other != path else "2"), key)
        assert (reply.status, reply.json["error"]["code"]) == (422, "idempotency_key_reused")
    reply = ask(service.port, "POST", "/v1/files", part(b"x"), FORM | key)
    assert (reply.status, reply.json["error"]["code"]) == (422, "idempotency_key_reused")


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, "é"])
@pytest.mark.parametrize("path", [*PATHS, "/v1/files"])
def test_bad_keys(service: Service, path: str, key: str) -> None:
    if path == "/v1/files":
        reply = ask(service.port, "POST", path, part(b"x"), FORM | {"Idempotency-Key": key})
    else:
        reply = send(service, path, body_of(path, "1"), {"Idempotency-Key": key})
    assert (reply.status, reply.json["error"]["code"]) == (422, "bad_idempotency_key")


@pytest.mark.parametrize("path", PATHS)
def test_requests_at_the_same_time_run_once(service: Service, path: str) -> None:
    key, body = new_key(), body_of(path, RANDOM)
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: send(service, path, body, key), range(8)))
    assert {r.status for r in replies} == {200}
    assert len({r.body.replace(b"\n\n\n", b"\n") for r in replies}) == 1
    assert len([r for r in replies if not r.header("idempotent-replayed")]) == 1


@pytest.mark.parametrize("path", PATHS)
def test_work_goes_on_when_its_client_leaves(service: Service, path: str) -> None:
    name = f"alone-{len(path)}"
    key, body = new_key(), body_of(path, NAMED.format(name=name, seconds=1))
    header = f"Idempotency-Key: {key['Idempotency-Key']}"
    with Raw(service) as raw:
        raw.send(raw_post(path, body, header))
        assert eventually(lambda: runs(service, name))
    reply = send(service, path, body, key)
    assert (reply.status, reply.header("idempotent-replayed")) == (200, "true")
    assert reply.body.count(b"done") == (3 if path.endswith("batch") else 1)


@pytest.mark.parametrize("path", PATHS)
def test_what_was_refused_may_be_sent_again(service: Service, path: str) -> None:
    if path.endswith("batch"):
        return
    key = new_key()
    missing = {"code": "1", "files": [{"path": "a", "file_id": str(uuid.uuid4())}]}
    assert send(service, path, missing, key).status == 404
    assert send(service, path, {"code": "1"}, key).status == 200


@pytest.mark.parametrize("path, body", [("/execute", {"code": "1"}), ("/commands", {"cmd": "ls"})])
def test_a_key_is_for_one_sandbox(
    live_service: LiveService, path: str, body: dict[str, Any]
) -> None:
    """Another sandbox is another request: it does not get the first one's reply."""
    key, client = new_key(), Client(live_service.port)
    with client.box() as one, client.box() as two:
        first = send(live_service, one.path + path, body, key)
        assert first.status == 200
        assert send(live_service, one.path + path, body, key).json == first.json
        other = send(live_service, two.path + path, body, key)
        assert (other.status, other.json["error"]["code"]) == (422, "idempotency_key_reused")


@pytest.mark.parametrize(
    "path, body",
    [("/execute", {"code": RANDOM}), ("/commands", {"cmd": "cat /proc/sys/kernel/random/uuid"})],
)
def test_a_stream_of_a_live_sandbox_runs_once(
    live_service: LiveService, path: str, body: dict[str, Any]
) -> None:
    key = new_key()
    with Client(live_service.port).box() as box:
        first = send(live_service, box.path + path, body, key | LINES)
        again = send(live_service, box.path + path, body, key | LINES)
        assert first.status == again.status == 200 and again.body == first.body
        assert again.header("Idempotent-Replayed") == "true" and b'"end"' in again.body
        assert first.header("Idempotent-Replayed") is None
        whole = send(live_service, box.path + path, body, key)
        assert (whole.status, whole.json["error"]["code"]) == (409, "reply_not_kept")
        wrong = send(live_service, box.path + path, {**body, "env": {"A": "1"}}, key | LINES)
        assert (wrong.status, wrong.json["error"]["code"]) == (422, "idempotency_key_reused")


def test_a_stream_of_a_live_sandbox_goes_on_without_its_client(live_service: LiveService) -> None:
    key = new_key()
    body = {"code": "import time\nprint('up')\ntime.sleep(1)\nprint('through')"}
    with Client(live_service.port).box() as box:
        with Raw(live_service) as raw:
            raw.send(
                raw_post(
                    box.path + "/execute",
                    body,
                    f"Idempotency-Key: {key['Idempotency-Key']}",
                    "Accept: application/x-ndjson",
                )
            )
            raw.until(b"up")
            raw.reset()
        again = send(live_service, box.path + "/execute", body, key | LINES)
        assert again.status == 200 and b"through" in again.body and b'"status":"ok"' in again.body


def test_a_stream_has_the_same_events(service: Service) -> None:
    key = new_key()
    code = "import sys\nfor i in range(50): print(i, flush=True)\nprint('e', file=sys.stderr)"
    first, again = (send(service, "/v1/execute/stream", {"code": code}, key) for _ in range(2))
    assert first.body == again.body and b"event: result\n" in first.body
    assert first.header("x-execution-id") == again.header("x-execution-id")


def test_both_replies_name_the_execution(service: Service) -> None:
    key = new_key()
    first, again = (send(service, "/v1/execute", {"code": "1"}, key) for _ in range(2))
    assert first.json["id"] == first.header("x-execution-id") == again.header("x-execution-id")


def test_a_reply_that_is_too_large_is_said_to_be(service: Service) -> None:
    """It is not run a second time, and the reply of the first is whole."""
    key = new_key()
    body = {
        "code": "print('x' * 6_000_000)",
        "timeout_ms": 60000,
        "limits": {"output_bytes": 8_000_000},
    }
    for path in ("/v1/execute", "/v1/execute/stream"):
        key = new_key()
        first = send(service, path, body, key)
        assert first.status == 200 and first.body.count(b"x") >= 6_000_000
        before = ended(service)
        again = send(service, path, body, key)
        assert (again.status, again.json["error"]["code"]) == (409, "reply_not_kept")
        name = re.search(r"exe_[0-9a-z]+", again.json["error"]["message"])
        assert name and get(service.port, f"/v1/executions/{name.group(0)}").status == 200
        assert ended(service) == before


def test_many_replies_do_not_fill_the_memory(start_service: Callable[..., Service]) -> None:
    """Of forty megabytes some are given up, the oldest first; none of it runs again."""
    service = start_service("--profiles", "base")
    body = {"code": "print('x' * 900_000)", "timeout_ms": 60000}
    keys = [new_key() for _ in range(45)]
    for key in keys:
        assert send(service, "/v1/execute", body, key).status == 200
    before = ended(service)
    assert send(service, "/v1/execute", body, keys[0]).status == 409
    assert send(service, "/v1/execute", body, keys[-1]).status == 200
    assert ended(service) == before


# ---------------------------------------------------------------------------- uploads


def put(service: Service, data: bytes, key: dict[str, str], name: str = "a.txt") -> Reply:
    return ask(service.port, "POST", "/v1/files", part(data, filename=name), FORM | key)


def listed(service: Service) -> int:
    return len(get(service.port, "/v1/files").json["files"])


def test_an_upload_makes_one_file(service: Service) -> None:
    key, data = new_key(), b"data" * 100_000
    before = listed(service)
    first = put(service, data, key)
    assert first.status == 201
    again = put(service, data, key)
    assert (again.status, again.json) == (201, first.json)
    assert again.header("idempotent-replayed") == "true"
    assert listed(service) == before + 1
    assert download(service.port, first.json["file_id"]) == data


def test_another_boundary_is_the_same_upload(service: Service) -> None:
    key = new_key()
    first = put(service, b"data", key)
    other = {"Content-Type": "multipart/form-data; boundary=other"} | key
    body = part(b"data").replace(BOUNDARY.encode(), b"other")
    again = ask(service.port, "POST", "/v1/files", body, other)
    assert (again.status, again.json) == (201, first.json)


def test_another_file_is_another_upload(service: Service) -> None:
    key = new_key()
    assert put(service, b"data", key).status == 201
    before = listed(service)
    for data, name in ((b"datA", "a.txt"), (b"data", "b.txt"), (b"", "a.txt"), (b"data2", "a.txt")):
        reply = put(service, data, key, name)
        assert (reply.status, reply.json["error"]["code"]) == (422, "idempotency_key_reused")
    assert put(service, b"data", key).status == 201
    assert listed(service) == before


def stored(service: Service) -> list[Path]:
    return sorted((service.state / "files").iterdir())


def test_an_upload_that_breaks_off_frees_its_key(service: Service) -> None:
    key, body = new_key(), part(b"x" * 1_000_000)
    before = stored(service)
    connection = Connection(service.port)
    lines = ["POST /v1/files HTTP/1.1", f"Host: 127.0.0.1:{service.port}"]
    lines += [f"{n}: {v}" for n, v in (FORM | key).items()] + [f"Content-Length: {len(body)}"]
    connection.sock.sendall("\r\n".join([*lines, "", ""]).encode() + body[:600_000])
    assert eventually(lambda: stored(service) != before)
    busy = put(service, b"x" * 1_000_000, key)
    assert (busy.status, busy.json["error"]["code"]) == (409, "idempotency_key_busy")
    assert busy.header("retry-after") == "1"
    connection.close()
    assert eventually(lambda: stored(service) == before)
    assert put(service, b"x" * 1_000_000, key).status == 201

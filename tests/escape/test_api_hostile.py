"""Hostile clients of the HTTP API. Each gets its answer, a clear one; and while and after that the
server answers others, holds no more than before, and has lost nothing of what it had."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import Service, cloche_bin, eventually
from host import descendants
from raw_http import (
    HOST,
    Raw,
    Reply,
    ask,
    chunks,
    execute,
    heard,
    post,
    request,
    resident_mb,
    server_pid,
)

GROWTH_MB = 96.0 if "asan" in str(cloche_bin()) else 24.0  # what it frees stays with a sanitizer
HEALTH = request("GET", "/health")
NEIGHBOUR = """
import sys
for line in sys.stdin:
    pass
print("unharmed")
"""


def upload(service: Service, data: bytes) -> Reply:
    form = b'--BOUND\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
    form += data + b"\r\n--BOUND--\r\n"
    kind = "Content-Type: multipart/form-data; boundary=BOUND"
    return ask(service, request("POST", "/v1/files", kind, body=form))


@pytest.fixture
def service(service_session: Service) -> Iterator[Service]:
    """Somebody else's file and program live through every test."""
    service = service_session
    before = resident_mb(service)
    kept = upload(service, b"kept").json["file_id"]
    yield service
    assert ask(service, HEALTH).json["status"] == "ok"
    assert ask(service, request("GET", f"/v1/files/{kept}")).body == b"kept"
    assert execute(service, NEIGHBOUR, stdin="x").json["stdout"] == "unharmed\n"
    assert ask(service, request("DELETE", f"/v1/files/{kept}")).status == 204
    service.check_health()
    service.check_no_leak()
    if "asan" not in str(service.caller.command()[0]):
        grown = resident_mb(service) - before
        assert grown < GROWTH_MB, grown


# ---------------------------------------------------------------------------- requests

BODY = b'{"code": "print(6 * 7)"}'
LENGTH = b"Content-Length: %d\r\n" % len(BODY)
CHUNKED = b"Transfer-Encoding: chunked\r\n"
JSON = b"Content-Type: application/json\r\n"
DEEP = 100_000


def raw_post(*headers: bytes, body: bytes = BODY, path: bytes = b"/v1/execute") -> bytes:
    return b"POST " + path + b" HTTP/1.1\r\n" + HOST + JSON + b"".join(headers) + b"\r\n" + body


SMUGGLED = b"DELETE /v1/files/x HTTP/1.1\r\n" + HOST + b"\r\n"
REFUSED: dict[str, tuple[bytes, int]] = {
    "CL.TE": (raw_post(LENGTH, CHUNKED, body=b"0\r\n\r\n" + SMUGGLED), 400),
    "TE.CL": (raw_post(CHUNKED, LENGTH, body=b"5c\r\n" + SMUGGLED), 400),
    "TE.TE": (raw_post(CHUNKED, b"Transfer-Encoding: x\r\n", body=chunks(BODY)), 400),
    "CL.CL": (raw_post(LENGTH, b"Content-Length: 0\r\n", body=SMUGGLED), 400),
    "CL.0": (raw_post(b"Content-Length: 0\r\nContent-Length: 99\r\n", body=SMUGGLED), 400),
    "a tab in the name": (raw_post(b"Transfer-Encoding\t: chunked\r\n", body=chunks(BODY)), 400),
    "a folded encoding": (raw_post(b"X: y\r\n Transfer-Encoding: chunked\r\n"), 400),
    "a NUL that hides a line": (raw_post(b"X: y\x00\r\nContent-Length: 3\r\n", LENGTH), 400),
    "a bare LF": (raw_post(b"X: y\nContent-Length: 3\r\n", LENGTH), 400),
    "a chunk of 2^64 bytes": (raw_post(CHUNKED, body=b"10000000000000000\r\n" + BODY), 400),
    "a negative chunk": (raw_post(CHUNKED, body=b"-1\r\n" + BODY), 400),
    "no host": (b"GET /health HTTP/1.1\r\n\r\n" + SMUGGLED, 400),
    "two hosts": (b"GET /health HTTP/1.1\r\n" + HOST * 2 + b"\r\n" + SMUGGLED, 400),
    "10^5 headers": (request("GET", "/health", *["A: b"] * DEEP), 431),
    "10^4 parameters": (request("GET", "/health?" + "a=b&" * 10_000), 400),
    "a long path": (request("GET", "/" + "a" * 100_000), 414),
    "a gigabyte": (raw_post(b"Content-Length: 1073741824\r\n"), 413),
    "an exabyte": (raw_post(b"Content-Length: 999999999999999999\r\n"), 413),
    "more than can be counted": (raw_post(b"Content-Length: 99999999999999999999999\r\n"), 400),
}


@pytest.mark.parametrize("name", REFUSED)
def test_requests_that_end_the_connection(service: Service, name: str) -> None:
    """One clear answer; what follows is not taken for a request."""
    data, status = REFUSED[name]
    with Raw(service) as raw:
        raw.try_send(data)
        said = raw.ends()
    assert said.startswith(b"HTTP/1.1 %d " % status), said[:500]
    assert said.count(b"HTTP/1.1 ") == 1, said[:500]


BODIES: dict[str, tuple[bytes, int]] = {
    "JSON 10^5 deep": (b"[" * DEEP + b"]" * DEEP, 422),
    "objects 10^5 deep": (b'{"a":' * DEEP + b"1" + b"}" * DEEP, 422),
    "an unknown field 10^5 deep": (b'{"code":"1","x":' + b"[" * DEEP + b"]" * DEEP + b"}", 422),
    "a million values": (b'{"code":"1","x":[' + b"0," * 1_000_000 + b"0]}", 422),
    "a key twice": (b'{"code": "1", "code": "2"}', 422),
    "NaN": (b'{"code": "1", "timeout_ms": NaN}', 422),
    "a huge integer": (b'{"code": "1", "timeout_ms": ' + b"9" * 100_000 + b"}", 422),
    "a huge exponent": (b'{"code": "1", "limits": {"cpus": 1e99999}}', 422),
    "not UTF-8": (b'{"code": "\xff\xfe"}', 400),
    "a lone surrogate": (b'{"code": "\\udc00"}', 422),
    "a path upwards": (
        b'{"code":"1","files":[{"path":"../../etc/passwd","content":"x"}]}',
        422,
    ),
    "an absolute path": (b'{"code":"1","files":[{"path":"/etc/passwd","content":"x"}]}', 422),
    "a NUL in a path": (b'{"code":"1","files":[{"path":"a\\u0000b","content":"x"}]}', 422),
    "a name of 300 bytes": (
        b'{"code":"1","files":[{"path":"' + b"a" * 300 + b'","content":"x"}]}',
        422,
    ),
    "another's file": (b'{"code":"1","files":[{"path":"a","file_id":"../keys.json"}]}', 404),
    "1001 files": (
        json.dumps({"code": "1", "files": [{"path": "a", "content": ""}] * 1001}).encode(),
        422,
    ),
    "an environment too large": (
        json.dumps({"code": "1", "env": {f"A{n}": "x" * 400 for n in range(100)}}).encode(),
        422,
    ),
    "a name with =": (b'{"code":"1","env":{"LD_PRELOAD=x":"y"}}', 422),
    "all the memory": (b'{"code":"1","limits":{"memory_mb":999999999}}', 422),
    "for ever": (b'{"code":"1","timeout_ms":9999999999}', 422),
    "a profile that is a path": (b'{"code":"1","profile":"../../etc"}', 422),
}


@pytest.mark.parametrize("name", BODIES)
def test_bodies_that_are_refused(service: Service, name: str) -> None:
    """The connection goes on, and so may the client."""
    body, status = BODIES[name]
    with Raw(service) as raw:
        reply = raw.send(post("/v1/execute", body)).reply()
        assert reply.status == status, reply.body[:500]
        assert reply.json["detail"] and reply.json["error"]["message"]
        assert len(reply.body) < 20_000
        assert raw.send(post("/v1/execute", BODY)).reply().json["stdout"] == "42\n"


def test_dots_lead_nowhere(service: Service) -> None:
    for path in (
        "/v1/files/%2e%2e",
        "/v1/files/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/v1/files/..%5c..",
        "/v1/files/%252e%252e",
        "/v1/executions/..%2f..",
        "/assets/%2e%2e%2fapi.c",
        "/assets/..",
    ):
        for method in ("GET", "DELETE"):
            reply = ask(service, request(method, path))
            assert reply.status in (404, 405), (method, path)
            assert b"root:" not in reply.body


def test_names_and_values_cannot_forge_headers(service: Service) -> None:
    """What a client says comes back in headers: ids of requests, names of files, places."""
    made = execute(service, "n = open('a\\r\\nSet-Cookie: x=1', 'w').write('x')").json["files"][0]
    for data in (
        request("GET", f"/v1/files/{made['file_id']}"),
        request("GET", "/v1/files/?a=%0d%0aSet-Cookie:%20x=1"),
        request("GET", "/v1/files/?a=b", "Origin: http://x%0d%0aSet-Cookie: x=1"),
        request("GET", "/v1/info", "traceparent: 00-x%0d%0aSet-Cookie: x=1"),
    ):
        reply = ask(service, data)
        assert reply.header("Set-Cookie") is None
    assert ask(service, request("DELETE", f"/v1/files/{made['file_id']}")).status == 204


def test_ten_thousand_requests_in_a_row(service: Service) -> None:
    """On one connection, without waiting for any answer."""
    n = 10_000
    with heard(service), Raw(service) as raw:
        writer = threading.Thread(target=lambda: raw.try_send(HEALTH * n))
        writer.start()
        assert all(raw.reply().status == 200 for _ in range(n))
        writer.join()


def test_requests_in_a_row_that_nobody_reads(service: Service) -> None:
    with heard(service), Raw(service) as raw:
        raw.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.sock.settimeout(1.0)
        before = resident_mb(service)
        with contextlib.suppress(TimeoutError, OSError):
            raw.sock.sendall(request("GET", "/openapi.json") * 100_000)
        assert resident_mb(service) - before < GROWTH_MB
        assert ask(service, HEALTH).status == 200


# ---------------------------------------------------------------------------- slow clients


def test_slow_clients_do_not_hold_up_others(start_service: Callable[..., Service]) -> None:
    service = start_service("--profiles", "base", "--idle-s", "2")
    half = [HEALTH[:10], post("/v1/execute", BODY)[:-5], b"", b"POST /v1/files HTTP/1.1\r\n" + HOST]
    slow = [Raw(service) for _ in range(200)]
    try:
        for number, raw in enumerate(slow):
            raw.send(half[number % len(half)])
        assert execute(service, "print(1)").json["stdout"] == "1\n"
        for raw in slow:
            assert b" 200 " not in raw.ends()
    finally:
        for raw in slow:
            raw.sock.close()


# ---------------------------------------------------------------------------- a machine in need


@contextlib.contextmanager
def small_disk(path: Path) -> Iterator[Path]:
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", path], check=True)
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", path], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a disk")
def test_a_full_disk_and_back(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        service = Service(tmp_path, "--profiles", "base", "--file-dir", str(disk))
        try:
            first = upload(service, b"x" * 600_000)
            assert first.status == 201
            reply = upload(service, b"x" * 600_000)
            assert (reply.status, reply.code) == (507, "disk_full")
            assert reply.json["error"]["retryable"] is True
            result = execute(service, "n = open('big', 'wb').write(b'x' * 900_000)").json
            assert result["status"] == "ok" and result["files"][0]["file_id"] is None
            path = f"/v1/files/{first.json['file_id']}"
            assert ask(service, request("DELETE", path)).status == 204
            assert upload(service, b"x" * 600_000).status == 201
            service.check_health()
            service.stop()
        finally:
            service.kill()


@pytest.mark.skipif(os.geteuid() != 0, reason="changes the limits of another user's process")
def test_no_more_processes_and_back(start_service: Callable[..., Service]) -> None:
    """Sandboxes cannot be made: a 503 that says so, and then they can again."""
    service = start_service("--profiles", "base", "--queue-ms", "2000")
    service.settle()
    family = descendants(service.process.pid)
    makers = [p.pid for p in family if p.role == "cloche-nursery" or p.role.startswith("python")]
    limits = {pid: resource.prlimit(pid, resource.RLIMIT_NPROC) for pid in makers}
    try:
        for pid in makers:
            resource.prlimit(pid, resource.RLIMIT_NPROC, (0, limits[pid][1]))
        replies = [execute(service, "1") for _ in range(12)]
        bad = [reply for reply in replies if reply.status != 200]
        assert bad and all(reply.status == 503 for reply in bad)
        for reply in bad:
            assert reply.json["error"]["retryable"] is True and reply.header("Retry-After")
        assert ask(service, HEALTH).status in (200, 503)
    finally:
        for pid in makers:
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(pid, resource.RLIMIT_NPROC, limits[pid])
    assert eventually(lambda: execute(service, "1").status == 200)


def test_clients_that_leave_while_their_body_is_read(service: Service) -> None:
    """A large body is read beside the loop; what it asks for begins only for one who is there."""
    body = json.dumps({"code": "import time; time.sleep(0.03)", "stdin": "x" * 66_000}).encode()
    message = raw_post(b"Content-Length: %d\r\n" % len(body), body=body)
    before = server_pid(service)

    def leave() -> None:
        for turn in range(100):
            socks = []
            for _ in range(12):
                sock = socket.create_connection(("127.0.0.1", service.port))
                sock.sendall(message)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                socks.append(sock)
            select.select([], [], [], turn % 5 * 0.0005)  # sooner or later in the reading
            for sock in socks:
                sock.close()

    leaving = [threading.Thread(target=leave) for _ in range(4)]
    with heard(service):
        for thread in leaving:
            thread.start()
        for thread in leaving:
            thread.join()
    assert ask(service, HEALTH).json["status"] == "ok"
    assert server_pid(service) == before, "the server died of it"

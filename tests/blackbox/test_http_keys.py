"""Who may do what: keys, tenants, limits of a key, and the audit log."""

from __future__ import annotations

import hashlib
import json
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import Service, eventually
from http_keys import QUICK, WAITS, bearer, get, key
from raw_http import HOST, KeyedService, Raw, Reply, ask, execute, post, request


def reload(service: Service) -> None:
    """SIGHUP, and the server's own word that it has read the keys."""
    get(service, "/health")  # whatever it said at its start is there
    service.drain()
    said = service.text().count("keys read") + service.text().count("keys not read")
    service.process.send_signal(signal.SIGHUP)

    def heard() -> bool:
        service.drain()
        text = service.text()
        return text.count("keys read") + text.count("keys not read") > said

    assert eventually(heard)


def upload(service: Service, data: bytes, *headers: str) -> str:
    body = (
        b'--BOUND\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n'
        + data
        + b"\r\n--BOUND--\r\n"
    )
    kind = "Content-Type: multipart/form-data; boundary=BOUND"
    reply = ask(service, request("POST", "/v1/files", kind, *headers, body=body))
    assert reply.status == 201
    return str(reply.json["file_id"])


@pytest.fixture
def start_doomed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Service]]:
    """Starts services that the test itself ends."""
    services: list[Service] = []

    def start(*options: str) -> Service:
        services.append(Service(tmp_path_factory.mktemp("doomed"), *options))
        return services[-1]

    try:
        yield start
    finally:
        for service in services:
            service.kill()


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    tmp_path.chmod(0o711)  # the server is another user
    return tmp_path / "keys.json"


# ---- keys ----


def test_without_a_key_nothing_but_the_open_paths(keyed_service: KeyedService) -> None:
    for path in ("/v1/info", "/v1/profiles", "/v1/files", "/v1/files/x", "/metrics"):
        reply = get(keyed_service, path)
        assert reply.status == 401 and reply.code == "no_key", path
        assert "Bearer" in reply.json["error"]["remediation"]
    for path in ("/health", "/openapi.json", "/docs", "/"):
        assert get(keyed_service, path).status == 200, path
    assert execute(keyed_service, "1").status == 401


@pytest.mark.parametrize("path", ["/v1/execute", "/v1/execute/stream", "/v1/execute/batch"])
def test_a_body_is_not_looked_at_without_a_key(keyed_service: KeyedService, path: str) -> None:
    assert ask(keyed_service, post(path, b"nonsense")).status == 401
    with Raw(keyed_service) as raw:  # nor waited for
        head = b"POST " + path.encode() + b" HTTP/1.1\r\n" + HOST
        reply = raw.send(head + b"Content-Length: 1000000\r\n\r\n").reply()
        assert reply.status == 401 and not reply.keeps


def test_wrong_keys_are_refused(keyed_service: KeyedService) -> None:
    good = keyed_service.key
    wrong = ["", "x", good[:-1], good + "x", good.upper(), good[1:], "clk_" + "A" * 43, "x" * 10000]
    for secret in wrong:
        for header in (bearer(secret), f"X-API-Key: {secret}"):
            reply = get(keyed_service, "/v1/info", header)
            assert reply.status == 401 and reply.code in ("bad_key", "no_key"), header
            assert good not in reply.body.decode()
    for header in (f"Authorization: Basic {good}", f"Authorization: {good}", f"Cookie: key={good}"):
        assert get(keyed_service, "/v1/info", header).status == 401


def test_a_key_in_either_header(keyed_service: KeyedService) -> None:
    good = keyed_service.key
    for header in (bearer(good), f"X-API-Key: {good}", f"authorization: bearer {good}"):
        assert get(keyed_service, "/v1/info", header).status == 200, header
    assert execute(keyed_service, "print(6 * 7)", bearer(good)).json["stdout"] == "42\n"


def test_blanks_around_a_key_are_none_of_it(keyed_service: KeyedService) -> None:
    for line in ("Authorization:  Bearer  {} \t", "X-API-Key:\t {}  "):
        header = line.format(keyed_service.key)
        assert ask(keyed_service, request("GET", "/v1/files", header)).status == 200, line


def test_ambiguity_is_judged_before_the_key(keyed_service: KeyedService) -> None:
    assert ask(keyed_service, request("GET", "/v1/info", "Host: localhost")).status == 400


def test_keys_are_never_logged(keyed_service: KeyedService) -> None:
    get(keyed_service, "/v1/info", bearer(keyed_service.key))
    get(keyed_service, "/v1/info", bearer("clk_notmykey"))
    service = keyed_service
    assert eventually(lambda: service.drain() and service.text().count("/v1/info") >= 2)
    assert service.key not in service.text() and "clk_notmykey" not in service.text()


def test_keys_in_the_state_directory(tmp_path: Path, start_service: Callable[..., Service]) -> None:
    state = tmp_path / "own"
    state.mkdir(mode=0o755)
    secret = key(state / "keys.json", "add", "alice")
    service = start_service(*QUICK, "--state-dir", str(state))
    assert get(service, "/v1/info").status == 401
    assert get(service, "/v1/info", bearer(secret)).status == 200


def test_sighup_takes_up_added_and_revoked_keys(
    keys: Path, start_service: Callable[..., Service]
) -> None:
    first = key(keys, "add", "first")
    service = start_service(*QUICK, "--keys", str(keys))
    second = key(keys, "add", "second")
    assert get(service, "/v1/info", bearer(second)).status == 401, "not before the signal"
    reload(service)
    assert get(service, "/v1/info", bearer(first)).status == 200
    assert get(service, "/v1/info", bearer(second)).status == 200
    key(keys, "revoke", "first")
    reload(service)
    assert get(service, "/v1/info", bearer(first)).status == 401
    assert get(service, "/v1/info", bearer(second)).status == 200


def test_a_broken_or_lost_key_file_opens_nothing(
    keys: Path, start_service: Callable[..., Service]
) -> None:
    secret = key(keys, "add", "alice")
    service = start_service(*QUICK, "--keys", str(keys))
    text = keys.read_text()
    keys.write_text(text[: len(text) // 2])
    reload(service)
    assert get(service, "/v1/info").status == 401
    assert get(service, "/v1/info", bearer(secret)).status == 200, "those known stay"
    keys.unlink()
    reload(service)
    assert get(service, "/v1/info").status == 401, "without keys nobody comes in"
    assert "level=warn" in service.text() and "nobody has a key" in service.text()
    keys.write_text(text)
    reload(service)
    assert get(service, "/v1/info", bearer(secret)).status == 200


def test_a_program_of_a_revoked_key_is_answered(
    keys: Path, start_service: Callable[..., Service]
) -> None:
    secret = key(keys, "add", "alice", "--concurrent", "5")
    service = start_service(*QUICK, "--keys", str(keys))
    with Raw(service) as raw:
        body = {"code": WAITS, "timeout_ms": 60000, "env": {"WAIT": "file"}}
        raw.send(post("/v1/execute/stream", body, bearer(secret)))
        raw.until(b"running")
        key(keys, "revoke", "alice")
        reload(service)
        assert b"event: result" in raw.until(b"event: result")
        assert raw.send(request("GET", "/v1/info", bearer(secret))).try_send(b"")


# ---- tenants ----


def test_what_one_tenant_made_is_a_404_to_another(
    keys: Path, start_service: Callable[..., Service]
) -> None:
    alice, bob = key(keys, "add", "alice"), key(keys, "add", "bob")
    colleague = key(keys, "add", "carol", "--tenant", "alice")
    service = start_service(*QUICK, "--keys", str(keys))
    file = upload(service, b"secret", bearer(alice))
    run = execute(service, "open('made', 'w').write('x')\nprint('secret')", bearer(alice)).json
    made = run["files"][0]["file_id"]
    nowhere = get(service, "/v1/files/" + "0" * 8 + file[8:], bearer(bob))

    for name in (file, made):
        path = f"/v1/files/{name}"
        reply = get(service, path, bearer(bob))
        assert reply.status == 404
        assert reply.json["error"]["code"] == nowhere.json["error"]["code"], "as if it were nowhere"
        assert ask(service, request("DELETE", path, bearer(bob))).status == 404
        taken = execute(service, "1", bearer(bob), files=[{"path": "a", "file_id": name}])
        assert taken.status == 404
        assert get(service, path, bearer(colleague)).status == 200
    for path in (f"/v1/executions/{run['id']}", f"/v1/executions/{run['id']}/events"):
        assert get(service, path, bearer(bob)).status == 404
        assert get(service, path, bearer(alice)).status == 200
        assert get(service, path).status == 401
    assert get(service, "/v1/files", bearer(bob)).json["files"] == []
    assert len(get(service, "/v1/files", bearer(alice)).json["files"]) == 2


# ---- limits of a key ----


def too_much(reply: Reply, code: str, *words: str) -> None:
    assert reply.status == 429 and reply.code == code, reply.body
    assert int(reply.header("Retry-After") or 0) >= 1
    assert reply.json["error"]["retryable"] is True
    for word in words:
        assert word in reply.json["error"]["message"]


def test_requests_per_second(keys: Path, start_service: Callable[..., Service]) -> None:
    slow = key(keys, "add", "slow", "--requests-per-second", "0.01")
    free = key(keys, "add", "free")
    service = start_service(*QUICK, "--keys", str(keys))
    assert get(service, "/v1/info", bearer(slow)).status == 200
    reply = get(service, "/v1/info", bearer(slow))
    too_much(reply, "too_many_requests", "0.01", "second")
    assert int(reply.header("Retry-After") or 0) > 50
    reload(service)
    assert get(service, "/v1/info", bearer(slow)).status == 429, "reloading forgets nothing"
    for _ in range(50):
        assert get(service, "/v1/info", bearer(free)).status == 200
        assert get(service, "/health").status == 200


def test_the_first_second_has_all_its_requests(
    keys: Path, start_service: Callable[..., Service]
) -> None:
    secret = key(keys, "add", "quick", "--requests-per-second", "8")
    service = start_service(*QUICK, "--keys", str(keys))
    assert [get(service, "/v1/info", bearer(secret)).status for _ in range(8)] == [200] * 8


def test_requests_at_once(keys: Path, start_service: Callable[..., Service]) -> None:
    secret = key(keys, "add", "two", "--concurrent", "2")
    service = start_service(*QUICK, "--keys", str(keys))
    body = {"code": "import sys\nprint('up', flush=True)\nwhile True: pass", "timeout_ms": 60000}
    held = [Raw(service) for _ in range(2)]
    for raw in held:
        raw.send(post("/v1/execute/stream", body, bearer(secret)))
        raw.until(b"up")
    too_much(execute(service, "1", bearer(secret)), "too_many_at_once", "2")
    too_much(get(service, "/v1/info", bearer(secret)), "too_many_at_once")
    assert get(service, "/metrics", bearer(secret)).status == 200, "looking on is free"
    for raw in held:
        raw.reset()
    assert eventually(lambda: execute(service, "1", bearer(secret)).status == 200), "given back"


def test_refused_requests_do_not_hold_a_place(
    keys: Path, start_service: Callable[..., Service]
) -> None:
    secret = key(keys, "add", "one", "--concurrent", "1")
    service = start_service(*QUICK, "--keys", str(keys))
    for data in (b"nonsense", b"{}", b'{"code": 1}'):
        assert ask(service, post("/v1/execute", data, bearer(secret))).status == 422
    with Raw(service) as raw:  # leaves in the middle of its body
        raw.send(post("/v1/execute", {"code": "1"}, bearer(secret))[:-3])
        raw.reset()
    assert eventually(lambda: execute(service, "1", bearer(secret)).status == 200)


def test_cpu_seconds_per_minute(keys: Path, start_service: Callable[..., Service]) -> None:
    secret = key(keys, "add", "cpu", "--cpu-seconds-per-minute", "1")
    service = start_service(*QUICK, "--keys", str(keys))
    burn = "import time\nwhile time.process_time() < 2.5: pass\nprint('burnt')"
    assert execute(service, burn, bearer(secret)).json["stdout"] == "burnt\n"
    reply = execute(service, "1", bearer(secret))
    too_much(reply, "too_much_cpu", "1", "CPU")
    assert int(reply.header("Retry-After") or 0) > 10
    stream = ask(service, post("/v1/execute/stream", {"code": "1"}, bearer(secret)))
    too_much(stream, "too_much_cpu")
    batch = ask(service, post("/v1/execute/batch", {"items": [{"code": "1"}]}, bearer(secret)))
    assert "too_much_cpu" in batch.body.decode()
    assert get(service, "/v1/info", bearer(secret)).status == 200, "looking on uses none"


# ---- the audit log ----


def test_the_audit_log_has_a_line_per_execution_and_no_code(keyed_service: KeyedService) -> None:
    log = keyed_service.state / "audit.log"
    before = len(log.read_text().splitlines())
    mine = bearer(keyed_service.key)
    codes = ["print('needle-1')", "raise ValueError('needle-2')", "while True: pass # needle-3"]
    ran = [execute(keyed_service, code, mine, timeout_ms=1000).json for code in codes]
    batch = {"items": [{"code": "print('needle-4')"}] * 3}
    ask(keyed_service, post("/v1/execute/batch", batch, mine))
    assert execute(keyed_service, "needle-5", "X-API-Key: no").status == 401
    text = log.read_text()
    lines = [json.loads(line) for line in text.splitlines()[before:]]
    assert len(lines) == 6 and "needle" not in text
    for code, result, line in zip(codes, ran, lines):
        assert line["execution"] == result["id"] and line["status"] == result["status"]
        assert line["code_sha256"] == hashlib.sha256(code.encode()).hexdigest()
        assert line["code_bytes"] == len(code)
        assert line["key"].startswith("key_") and line["tenant"] and line["time"] > 1.7e9
        assert line["request"].startswith("req_")
    assert keyed_service.key not in text


def test_programs_are_in_the_audit_log_where_the_operator_wants_it(
    start_service: Callable[..., Service],
) -> None:
    service = start_service(*QUICK, "--audit-code", "on")
    code = "print('grün \\x00\\n\"')"
    assert execute(service, code).status == 200
    (line,) = (service.state / "audit.log").read_text().splitlines()
    assert json.loads(line)["code"] == code


def test_an_execution_whose_client_left_is_in_the_audit_log(service: Service) -> None:
    log = service.state / "audit.log"
    body = {"code": "print('up', flush=True)\nwhile True: pass", "timeout_ms": 60000}
    with Raw(service) as raw:
        raw.send(post("/v1/execute/stream", body))
        name = raw.head().header("X-Execution-Id") or "none"
        raw.until(b"up")
        raw.reset()
    assert eventually(lambda: name in log.read_text(), seconds=20), "who ran what, also then"


def test_the_audit_log_outlives_a_restart(
    tmp_path: Path, start_doomed: Callable[..., Service]
) -> None:
    state = tmp_path / "kept"
    for number in (1, 2):
        service = start_doomed(*QUICK, "--state-dir", str(state))
        assert execute(service, "1").status == 200
        service.stop()
        assert len((state / "audit.log").read_text().splitlines()) == number


def test_a_port_is_not_shared(service: Service) -> None:
    with socket.socket() as probe, pytest.raises(OSError):
        probe.bind(("127.0.0.1", service.port))

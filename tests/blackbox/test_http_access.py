"""Who may do what: keys, tenants, limits of a key, names and origins, sockets, signals, the audit
log."""

from __future__ import annotations

import hashlib
import json
import re
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import Service, eventually, failed, run_cli
from host import descendants
from raw_http import HOST, Closed, KeyedService, Raw, Reply, ask, execute, post, request

HEALTH = request("GET", "/health")
QUICK = ("--profiles", "base")


def key(file: Path, *words: str) -> str:
    done = run_cli("key", *words, "--keys", file)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().strip()


def bearer(secret: str) -> str:
    return f"Authorization: Bearer {secret}"


def get(service: Service, path: str, *headers: str) -> Reply:
    return ask(service, request("GET", path, *headers))


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


# ---------------------------------------------------------------------------- keys


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


# ---------------------------------------------------------------------------- tenants

WAITS = """
import time
print("running", flush=True)
time.sleep(1.5)
print("finished")
"""


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


# ---------------------------------------------------------------------------- limits of a key


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


# ---------------------------------------------------------------------------- where it listens


def serve(directory: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    own = ["--socket", str(directory / "e.sock"), "--state-dir", str(directory / "state")]
    return run_cli("serve", "--http", "on", *own, *QUICK, *words)


def test_a_start_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    done = serve(tmp_path, "--port", "0", "--socket", str(tmp_path / "no" / "where" / "e.sock"))
    failed(done, "cannot make", "--socket")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_other_addresses_without_keys_are_refused(tmp_path: Path, host: str) -> None:
    done = serve(tmp_path, "--host", host, "--port", "0")
    failed(done, host, "not loopback", "cloche key add", "--without-keys allow")


@pytest.mark.parametrize(
    "setting,value,word",
    [
        ("cors_origin", "https://app.example/", "https://app.example/"),
        ("cors_origin", "https://a.example,app.example", "app.example"),
        ("cors_origin", "https://a.example, https://b.example", " https://b.example"),
        ("cors_origin", "https://", "https://"),
        ("allow_host", "http://cloche.test", "http://cloche.test"),
        ("allow_host", "cloche.test:8000", "cloche.test:8000"),
        ("allow_host", "a.test,b.test/", "b.test/"),
    ],
)
def test_names_that_nothing_can_match_are_told(
    tmp_path: Path, setting: str, value: str, word: str
) -> None:
    flag = "--" + setting.replace("_", "-")
    failed(serve(tmp_path, "--port", "0", flag, value), setting, f'"{word}"', "without")


def listening(service: Service) -> int:
    found = re.search(r"^http://[^\n]*:(\d+)$", service.text(), re.MULTILINE)
    assert found
    return int(found.group(1))


def open_service(tmp_path: Path, *words: str) -> Service:
    """Service looks for a loopback address in what is said; these have another."""

    class Open(Service):
        def text(self) -> str:
            return super().text().replace("http://0.0.0.0:", "http://127.0.0.1:")

    return Open(tmp_path, *QUICK, "--host", "0.0.0.0", *words)


def test_other_addresses_when_asked_for_by_name(tmp_path: Path) -> None:
    service = open_service(tmp_path, "--without-keys", "allow", "--allow-host", "known.test")
    try:
        assert ask(service, HEALTH).status == 200
        for host in ("192.0.2.7:8000", "[2001:db8::1]", "cloche.test", "known.test:1"):
            name = f"Host: {host}\r\n".encode()
            assert ask(service, request("GET", "/v1/info", host=name)).status == 200, host
            page = f"Origin: http://{host}"
            status = ask(service, request("GET", "/v1/info", page, host=name)).status
            # A name that anybody may have pointed here makes no page ours.
            assert status == (403 if host == "cloche.test" else 200), host
        service.stop()
    finally:
        service.kill()


def test_other_addresses_with_keys(tmp_path: Path, keys: Path) -> None:
    secret = key(keys, "add", "alice")
    service = open_service(tmp_path, "--keys", str(keys))
    try:
        other = request("GET", "/v1/info", bearer(secret), host=b"Host: cloche.example.com\r\n")
        assert ask(service, other).status == 200, "with keys any name will do"
        assert get(service, "/v1/info").status == 401
        service.stop()
    finally:
        service.kill()


def test_a_port_that_is_taken(tmp_path: Path, service: Service) -> None:
    done = serve(tmp_path, "--port", str(service.port))
    failed(done, str(service.port), "taken", "--port")


def test_a_unix_socket(tmp_path: Path, start_doomed: Callable[..., Service]) -> None:
    path = tmp_path / "http.sock"
    service = start_doomed(*QUICK, "--http-socket", str(path))
    assert path.stat().st_mode & 0o777 == 0o600
    assert execute(path, "print(6 * 7)").json["stdout"] == "42\n"
    anyone = request("GET", "/v1/info", host=b"Host: whatever.example.com\r\n")
    assert ask(path, anyone).status == 200, "no browser comes this way"
    assert ask(service, HEALTH).status == 200
    service.stop()
    assert not path.exists()


# ---------------------------------------------------------------------------- names and origins


def with_host(service: Service, host: str, *headers: str) -> Reply:
    return ask(service, request("GET", "/v1/info", *headers, host=f"Host: {host}\r\n".encode()))


def test_only_loopback_names(service: Service) -> None:
    port = service.port
    for host in (
        "localhost",
        f"localhost:{port}",
        f"127.0.0.1:{port}",
        "LOCALHOST",
        "[::1]",
        f"[::1]:{port}",
        "127.9.9.9",
        "[0:0:0:0:0:0:0:1]",
        "[::ffff:127.0.0.1]:80",
        "localhost:",
        "app.localhost",
        f"a.b.localhost:{port}",
    ):
        assert with_host(service, host).status == 200, host
    for host in (
        "example.com",
        "localhost.example.com",
        "127.0.0.1.example.com",
        "127.example.com",
        "notlocalhost",
        "localhost.",
        "10.0.0.1",
        "[::2]",
        "[::1",
        "::1",
        "0.0.0.0",
        "",
        "x:80@localhost",
        "localhost,example.com",
        "[::1].example.com",
        "[::1]x:80",
        "[::1]:80.example.com",
        "localhost:80.example.com",
        "127.0.0.1:80.example.com",
        "127.0.0.1:80:90",
        "127.0.0.1:x",
        "127.0.0.1:999999",
        "127.1",
        "127.0.0.1.1",
        "127.0.0.256",
        "127.",
        "[127.0.0.1]",
        "[localhost]",
        "local host",
        "example.com/.localhost",
        "example.com%2f.localhost",
        "example.com?.localhost",
        "example.com\\\\.localhost",
        "example.com#.localhost/",
    ):
        reply = with_host(service, host)
        assert reply.status == 421 and reply.code == "bad_host", host
        assert "--allow-host" in reply.json["error"]["remediation"]


def test_a_foreign_name_runs_nothing(service: Service) -> None:
    data = post("/v1/execute", {"code": "1"}).replace(HOST, b"Host: rebound.example.com\r\n")
    assert ask(service, data).status == 421


def test_names_that_the_operator_listed(start_service: Callable[..., Service]) -> None:
    service = start_service(*QUICK, "--allow-host", "cloche.test,other.test")
    assert with_host(service, "cloche.test").status == 200
    assert with_host(service, f"Other.test:{service.port}").status == 200
    assert with_host(service, "localhost").status == 200
    assert with_host(service, "cloche.test.example.com").status == 421
    assert with_host(service, "cloche").status == 421


def test_pages_of_other_sites_are_refused(service: Service) -> None:
    own = f"127.0.0.1:{service.port}"
    for origin in (
        "http://example.com",
        "https://localhost.example.com",
        "null",
        "",
        "file://",
        f"http://example.com#://{own}",
        "http://localhost:1",
        f"http://{own}.example.com",
    ):
        for data in (
            request("GET", "/v1/info", f"Origin: {origin}"),
            post("/v1/execute", {"code": "1"}, f"Origin: {origin}"),
        ):
            reply = ask(service, data.replace(HOST, f"Host: {own}\r\n".encode()))
            assert reply.status == 403 and reply.code == "bad_origin", origin
            assert reply.header("Access-Control-Allow-Origin") is None
    reply = with_host(service, own, f"Origin: http://{own}")
    assert reply.status == 200


def test_no_cors_unless_configured(service: Service) -> None:
    preflight = request(
        "OPTIONS",
        "/v1/execute",
        "Origin: http://example.com",
        "Access-Control-Request-Method: POST",
    )
    reply = ask(service, preflight)
    assert reply.status == 403 and reply.header("Access-Control-Allow-Origin") is None
    assert ask(service, request("OPTIONS", "/v1/execute")).status == 405


def test_sites_that_the_operator_listed(keys: Path, start_service: Callable[..., Service]) -> None:
    secret = key(keys, "add", "alice")
    site = "https://app.example.com"
    service = start_service(*QUICK, "--cors-origin", site, "--keys", str(keys))
    reply = get(service, "/v1/info", f"Origin: {site}", bearer(secret))
    assert reply.status == 200 and reply.header("Access-Control-Allow-Origin") == site
    assert reply.header("Vary") == "Origin"
    refused = get(service, "/v1/info", f"Origin: {site}")
    assert refused.status == 401, "the page still needs a key"
    assert refused.header("Access-Control-Allow-Origin") == site, "and may read why"
    preflight = ask(
        service,
        request(
            "OPTIONS",
            "/v1/execute",
            f"Origin: {site}",
            "Access-Control-Request-Method: POST",
            "Access-Control-Request-Headers: authorization",
        ),
    )
    assert preflight.status == 204 and preflight.header("Access-Control-Allow-Origin") == site
    assert "POST" in (preflight.header("Access-Control-Allow-Methods") or "")
    allowed = (preflight.header("Access-Control-Allow-Headers") or "").lower().split(", ")
    assert {"authorization", "last-event-id", "range", "if-range", "if-none-match"} <= set(allowed)
    seen = (reply.header("Access-Control-Expose-Headers") or "").lower().split(", ")
    assert {"etag", "content-range", "retry-after", "x-execution-id"} <= set(seen)
    for other in ("https://app.example.com.evil.test", "http://app.example.com", "null"):
        assert get(service, "/v1/info", f"Origin: {other}", bearer(secret)).status == 403


def test_any_site_when_asked_for(start_service: Callable[..., Service]) -> None:
    service = start_service(*QUICK, "--cors-origin", "*")
    reply = get(service, "/v1/info", "Origin: https://anything.example.com")
    assert reply.status == 200
    assert reply.header("Access-Control-Allow-Origin") in ("*", "https://anything.example.com")


# ---------------------------------------------------------------------------- signals


def test_sigterm_lets_a_program_finish(start_doomed: Callable[..., Service]) -> None:
    service = start_doomed(*QUICK, "--drain-s", "60")
    with Raw(service) as stream, Raw(service) as plain:
        stream.send(post("/v1/execute/stream", {"code": WAITS, "timeout_ms": 60000}))
        plain.send(post("/v1/execute", {"code": WAITS, "timeout_ms": 60000}))
        stream.until(b"running")
        service.process.send_signal(signal.SIGTERM)
        reply = plain.reply()
        assert reply.json["stdout"] == "running\nfinished\n"
        assert not reply.keeps, "the connection is not to be used again"
        assert b"finished" in stream.until(b"event: result")
        assert service._reap() == 0
    with pytest.raises(ConnectionRefusedError):
        Raw(service)
    service.check_gone()


def test_a_second_sigterm_ends_at_once(start_doomed: Callable[..., Service]) -> None:
    service = start_doomed(*QUICK, "--drain-s", "3000")
    with Raw(service) as raw:
        raw.send(
            post(
                "/v1/execute/stream",
                {"code": "print('up', flush=True)\nwhile True: pass", "timeout_ms": 60000},
            )
        )
        raw.until(b"up")
        service.remember()
        service.process.send_signal(signal.SIGTERM)
        assert eventually(lambda: not accepts(service.port)), "nobody new comes in"
        assert any(p.role == "cloche-server" for p in descendants(service.process.pid))
        service.process.send_signal(signal.SIGTERM)
        assert service._reap() == 0
        assert b"event: result" not in raw.ends()
    service.check_gone()


def accepts(port: int) -> bool:
    """Whether somebody answers there: a queue that nobody empties does not count."""
    try:
        with Raw(port, deadline_s=1.0) as raw:
            return raw.send(HEALTH).reply().status == 200
    except (OSError, Closed):
        return False


def test_draining_has_an_end(start_doomed: Callable[..., Service]) -> None:
    service = start_doomed(*QUICK, "--drain-s", "1")
    with Raw(service) as raw:
        raw.send(
            post(
                "/v1/execute/stream",
                {"code": "print('up', flush=True)\nwhile True: pass", "timeout_ms": 60000},
            )
        )
        raw.until(b"up")
        service.stop()


def test_idle_connections_do_not_hold_up_the_end(start_doomed: Callable[..., Service]) -> None:
    service = start_doomed(*QUICK, "--drain-s", "3000")
    with Raw(service) as idle, Raw(service) as half:
        assert idle.send(HEALTH).reply().status == 200
        half.send(HEALTH[:10])
        assert service.stop() == 0
        assert idle.ends() == b"" and half.ends() == b""


# ---------------------------------------------------------------------------- the audit log


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

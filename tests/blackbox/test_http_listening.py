"""Where the service listens, for which names and origins, and how it ends."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import Service, eventually, failed, run_cli
from host import descendants
from http_keys import QUICK, WAITS, bearer, get, key
from raw_http import HOST, Closed, Raw, Reply, ask, execute, post, request

HEALTH = request("GET", "/health")


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


# ---- where it listens ----


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


# ---- names and origins ----


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


# ---- signals ----


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

"""`cloche sandbox ports` and `link` against a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from harness import LiveService, eventually, failed, settled
from inside import raw_request
from raw_http import request
from sandbox_cli import made, sandbox

PORT = 8001


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    options = ("--profiles", "base", "--ports-domain", "ports.localhost")
    yield from settled(LiveService(tmp_path_factory.mktemp("ports"), *options))


@pytest.fixture
def box(service: LiveService) -> Iterator[str]:
    """With a server inside."""
    with made(service, "--profile", "base") as name:
        words = ("--background", "--", "python3", "-m", "http.server", str(PORT))
        assert sandbox(service, "exec", name, *words).returncode == 0
        assert eventually(lambda: str(PORT).encode() in sandbox(service, "ports", name).stdout)
        yield name


def host_of(service: LiveService, box: str) -> str:
    return f"http://{PORT}-{box.replace('_', '')}.ports.localhost:{service.port}/"


def test_ports_are_listed(service: LiveService, box: str) -> None:
    lines = sandbox(service, "ports", box).stdout.decode().splitlines()
    assert [line.split() for line in lines] == [
        ["port", "where"],
        [str(PORT), host_of(service, box)],
    ]
    whole = json.loads(sandbox(service, "ports", box, "--json").stdout)
    assert whole["ports"][0]["port"] == PORT and whole["truncated"] is False


def test_without_servers_there_are_none(service: LiveService) -> None:
    with made(service) as name:
        assert sandbox(service, "ports", name).stdout.split() == [b"port", b"where"]


def test_a_link_opens_it(service: LiveService, box: str) -> None:
    done = sandbox(service, "link", box, str(PORT), "--ttl", "60")
    assert (done.returncode, done.stderr) == (0, b"")
    url = done.stdout.decode().strip()
    assert url.startswith(host_of(service, box) + "?cloche_link=")
    host = f"Host: {url.split('/')[2]}\r\n".encode()
    with raw_request(service.port, request("GET", "/?" + url.partition("?")[2], host=host)) as raw:
        assert raw.reply().status == 303
    whole = json.loads(sandbox(service, "link", box, str(PORT), "--json").stdout)
    assert whole["url"].startswith(host_of(service, box)) and whole["expires"] > 0


@pytest.mark.parametrize(
    "words, why",
    [
        (["PORT"], "PORT"),
        (["0"], "PORT"),
        (["65536"], "PORT"),
        ([], "one of ID and PORT is missing"),
        ([str(PORT), "x"], "one word too many"),
        ([str(PORT), "--ttl", "0"], "--ttl"),
        ([str(PORT), "--ttl", "9999999"], "ttl_seconds"),
        ([str(PORT), "--idle", "1"], "--idle"),
    ],
)
def test_what_cannot_be_meant(service: LiveService, box: str, words: list[str], why: str) -> None:
    failed(sandbox(service, "link", box, *words), why)


def test_without_a_domain(live_service: LiveService) -> None:
    with made(live_service) as name:
        failed(sandbox(live_service, "link", name, "1"), "no hosts of their own")
    failed(sandbox(live_service, "ports", "nobody"), "no sandbox")

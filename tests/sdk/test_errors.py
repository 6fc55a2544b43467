"""What goes wrong, and what is said about it."""

from __future__ import annotations

import copy
import http.server
import logging
import pickle
import re
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import cloche
from cloche import errors
from cloche._calls import Call
from cloche._codes import CODES
from cloche._errors import refusal
from driven import World
from harness import LiveService
from raw_http import KeyedService


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedService]:
    service = KeyedService(tmp_path_factory.mktemp("keyed"), "--profiles", "base")
    try:
        yield service
        service.stop()
    finally:
        service.kill()


def test_keys(sdk: World, keyed: KeyedService, monkeypatch: pytest.MonkeyPatch) -> None:
    with sdk.Client(keyed.url, keyed.key) as client:
        assert client.files.list() == []
    with sdk.Client(keyed.url, "clk_wrong") as client:
        with pytest.raises(errors.BadKey, match="check CLOCHE_API_KEY") as raised:
            client.files.list()
        assert raised.value.status == 401 and "clk_wrong" not in repr(client)
    monkeypatch.delenv("CLOCHE_API_KEY", raising=False)
    with sdk.Client(keyed.url) as client, pytest.raises(errors.NoKey, match="CLOCHE_API_KEY"):
        client.files.list()
    monkeypatch.setenv("CLOCHE_API_KEY", keyed.key)
    monkeypatch.setenv("CLOCHE_SERVER", keyed.url)
    with sdk.Client() as client:
        assert client.files.list() == []


@pytest.mark.parametrize("key", ["two words", "täst", "a\nb", "x" * 600])
def test_what_is_no_key(key: str) -> None:
    with pytest.raises(errors.BadArgument, match="holds no key") as raised:
        cloche.Client("http://127.0.0.1:1", key)
    assert key not in str(raised.value)


@pytest.mark.parametrize(
    "url",
    ["127.0.0.1:8000", "ftp://host", "http://", "http://u:p@host", "http://h/?q", "http://h:x"]
    + ["unix:", "http://a b"],
)
def test_what_is_no_url(url: str) -> None:
    with pytest.raises(errors.BadArgument, match="it must be http://HOST:PORT"):
        cloche.Client(url)


def test_no_server(sdk: World) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with sdk.Client(f"http://127.0.0.1:{port}") as client:
        with pytest.raises(errors.NoServer, match="start one with `cloche serve`"):
            client.run("1")
    with sdk.Client("unix:/nowhere/cloche.sock") as client:
        with pytest.raises(ConnectionError, match="unix:/nowhere/cloche.sock"):
            client.info()


class Stranger(http.server.BaseHTTPRequestHandler):
    """A server of another kind."""

    def do_GET(self) -> None:
        body = b"<html>hello</html>"
        self.send_response(200 if self.path == "/v1/info" else 502)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, *_: Any) -> None:
        pass


def test_what_is_no_cloche(sdk: World) -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Stranger)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    with sdk.Client(url, retry_seconds=0) as client:
        with pytest.raises(errors.BadReply, match="is no cloche server"):
            client.info()
        with pytest.raises(errors.BadReply, match="status 502 and is none of cloche's"):
            client.run("1")
        with pytest.raises(errors.BadReply):
            client.profiles()
    server.shutdown()
    server.server_close()


def test_an_older_server(client: Any) -> None:
    """What the server does not know yet is what no server knows."""
    version = client.info()["version"]
    for call in (Call("POST", "/v1/tomorrow", {}), Call("PUT", "/v1/info", {})):
        with pytest.raises(errors.OlderServer, match=f"is cloche {version}, which has no P") as e:
            client.transport.json(call)
        assert e.value.version == version


def test_refusals(client: Any) -> None:
    with pytest.raises(errors.BadFields, match="body.limits.pids: Input should be") as raised:
        client.run("1", limits={"pids": "many"})
    error = raised.value
    assert (error.code, error.status, error.retryable) == ("bad_fields", 422, False)
    assert error.request_id.startswith("req_") and error.request_id in str(error)
    assert isinstance(error.detail, list) and isinstance(error, cloche.APIError)
    with pytest.raises(errors.BadFields, match="tomorrow"):
        client.run("1", tomorrow=True)
    with pytest.raises(errors.UnknownProfile, match=r"Client.profiles\(\) lists them"):
        client.run("1", profile="gpu")
    with pytest.raises(errors.LimitTooHigh):
        client.run("1", limits={"memory_mb": 10**8})
    with pytest.raises(errors.NoExecution):
        client.result("exe_00000000000000000000000000000000")
    with pytest.raises(errors.NetworkNotAllowed):
        client.run("1", network=["example.com:443"])
    with pytest.raises(errors.BadPath):
        client.run("1", files={"../x": "1"})


def test_what_cannot_be_sent(client: Any) -> None:
    for wrong in ({"timeout": 0}, {"timeout": -1}, {"timeout": float("nan")}):
        with pytest.raises(errors.BadArgument, match="timeout"):
            client.run("1", **wrong)
    with pytest.raises(errors.BadArgument, match="JSON"):
        client.run("1", env={"a": object()})
    with pytest.raises(errors.BadArgument, match="JSON"):
        client.run("'\ud800'")
    with pytest.raises(errors.BadArgument, match="cannot be sent"):
        client.run("1", idempotency_key="two\nlines")
    with pytest.raises(ValueError):
        client.run("1", files={"a": 5})


def test_every_code_has_its_class() -> None:
    root = Path(__file__).resolve().parents[2]
    table = (root / "src" / "api" / "core" / "problem.c").read_text()
    known = re.findall(r'^\s*\{"([a-z0-9_]+)", \d+', table, re.MULTILINE)
    assert len(known) > 60 and set(known) <= set(CODES)
    for code, kind in CODES.items():
        error = refusal({"error": {"code": code, "message": "m", "retryable": True}})
        assert type(error) is kind is getattr(errors, kind.__name__)
        assert error.code == code and error.retryable and kind.__doc__
    unknown = refusal({"error": {"code": "of_tomorrow", "message": "m"}})
    assert type(unknown) is errors.APIError and unknown.code == "of_tomorrow"


def test_errors_are_copied_whole(client: Any) -> None:
    with pytest.raises(errors.UnknownProfile) as raised:
        client.run("1", profile="gpu")
    for other in (pickle.loads(pickle.dumps(raised.value)), copy.copy(raised.value)):
        assert type(other) is errors.UnknownProfile and str(other) == str(raised.value)
        assert other.request_id == raised.value.request_id


def test_what_the_log_has(client: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="cloche"):
        client.run("'secret code'", env={"A": "secret value"})
    text = caplog.text
    assert re.search(r"POST /v1/run: 200 after \d+ ms, request req_", text) and "secret" not in text


def test_a_busy_server_is_asked_again(
    sdk: World, tmp_path: Path, start_live: Callable[..., LiveService]
) -> None:
    service = start_live("--live-per-tenant", "1")
    with sdk.Client(service.url, retry_seconds=0) as hasty:
        with sdk.Sandbox.create(client=hasty):
            with pytest.raises(errors.TooManySandboxes) as raised:
                sdk.Sandbox.create(client=hasty)
            assert raised.value.retryable and raised.value.retry_after
    with sdk.Client(service.url) as patient:
        first = sdk.Sandbox.create(client=patient)
        with cloche.Client(service.url) as other:
            box = cloche.Sandbox.connect(first.id, client=other)
            threading.Timer(0.5, box.delete).start()  # while the other waits
            with sdk.Sandbox.create(client=patient) as second:
                assert second.run("1").text == "1"


def test_keys_that_run_out(sdk: World, start_live: Callable[..., LiveService]) -> None:
    """Then requests go without."""
    service = start_live("--idempotency-keys", "2")
    with sdk.Client(service.url) as client:
        assert [client.run(str(n)).text for n in range(5)] == ["0", "1", "2", "3", "4"]


def test_a_socket(sdk: World, start_live: Callable[..., LiveService], tmp_path: Path) -> None:
    place = tmp_path / "http.sock"
    service = start_live("--http-socket", str(place))
    with sdk.Client(f"unix:{place}") as client:
        assert client.info()["name"] == "cloche"
        with sdk.Sandbox.create(client=client) as box:
            with box.commands.terminal("echo over a socket") as terminal:
                assert b"over a socket" in b"".join(terminal)
    assert service.url


def test_without_websockets(live: LiveService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "websockets", None)
    with cloche.Sandbox.create() as box:
        with pytest.raises(errors.BadArgument, match="python3-websockets"):
            box.commands.terminal()

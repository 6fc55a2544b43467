"""The dialect Sandbox Runtime: files from an e-fast server, which is ours here."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from harness import LiveService, eventually, run_cli
from http_client import JSON, Connection, Reply, ask, post

PLACE = "/workspace/se"
# For libcurl "Name;" is a header without a value, and replaces its own.
TRICKS = ["Host;", "HOST : evil", "Content-Length;", "Transfer-Encoding: chunked", "X-Evil;", ": x"]


class Efast(ThreadingHTTPServer):
    """An e-fast server and the storage behind it. A docid says what it is to do."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.seen: list[tuple[str, dict[str, str], Any]] = []
        self.gate = threading.Event()
        self.left = threading.Event()  # a client went away in the middle


class Handler(BaseHTTPRequestHandler):
    server: Efast
    protocol_version = "HTTP/1.0"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def note(self, value: Any = None) -> None:
        headers = {name.lower(): text for name, text in self.headers.items()}
        self.server.seen.append((self.path, headers, value))

    def send(self, body: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.note(asked)
        kind, _, rest = asked["docid"].partition(":")
        url = f"{self.server.url}/storage/{rest}"
        answers: dict[str, Any] = {
            "file": {"authrequest": ["GET", url, "X-Sign: s3"], "name": "told.txt", "rev": "r9"},
            "elsewhere": {"authrequest": ["GET", rest], "name": "x"},
            "climbs": {"authrequest": ["GET", url], "name": "../../up"},
            "dots": {"authrequest": ["GET", url], "name": ".."},
            "splits": {"authrequest": ["GET", url, "A: b\r\nX-Evil: 1", "Host: evil", 5, "none"]},
            "tricks": {"authrequest": ["GET", url, *TRICKS, "X-Good: yes"]},
            "lacks": {"name": "x"},
            "list": [1],
        }
        if kind == "moved":
            self.send(b"", 307, Location=f"{self.server.url}/other")
        elif kind == "denied":
            self.send(b'{"cause":"no"}', 403)
        elif kind == "text":
            self.send(b"<html>")
        elif kind == "huge":
            self.send(b" " * (2 << 20))
        elif kind == "waits":
            self.server.gate.wait(60)
        else:
            self.send(json.dumps(answers[kind]).encode())

    def do_GET(self) -> None:
        self.note()
        name = self.path.rpartition("/")[2]
        if name.isdigit():
            self.send(b"x" * int(name))
        elif name == "moved":
            self.send(b"", 302, Location="/storage/5")
        elif name == "slow":
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"first")
            self.wfile.flush()
            self.server.gate.wait(60)
            try:
                while True:
                    self.wfile.write(b"x" * 100000)
            except OSError:
                self.server.left.set()
        else:
            self.send(b"", 404)


@pytest.fixture(scope="module")
def efast() -> Iterator[Efast]:
    server = Efast()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield server
    server.gate.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def service(efast: Efast, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    options = ("--efast-url", efast.url, "--efast-token", "operators")
    service = LiveService(tmp_path_factory.mktemp("efast"), *options)
    try:
        yield service
        service.check_health()
        service.stop()
    finally:
        service.kill()


@pytest.fixture
def port(service: LiveService, efast: Efast) -> Iterator[int]:
    efast.seen.clear()
    yield service.port
    assert ask(service.port, "DELETE", f"{PLACE}/session/s1").status == 200


def fetch(port: int, *docids: str, **fields: Any) -> Reply:
    files = [{"docid": docid} for docid in docids]
    body = {"file_params": files, **fields}
    return post(port, f"{PLACE}/download_from_efast/s1", body)


def run(port: int, command: str) -> str:
    reply = post(port, f"{PLACE}/execute/s1", {"command": command})
    return str(reply.json["stdout"])


def test_files_come_into_a_session(port: int, efast: Efast) -> None:
    files = [
        {"docid": "file:5"},
        {"docid": "file:200000", "savename": "sub/named.bin", "rev": "r1"},
    ]
    reply = fetch(port, file_params=files, save_path="/in", token="mine")
    assert reply.status == 200, reply.body
    assert reply.json["message"] == "下载完成: 2个成功, 共2 个文件"
    counts = [reply.json[f"{name}_count"] for name in ("success", "failed", "total")]
    assert counts == [2, 0, 2] and reply.json["save_path"] == "in"
    first, second = reply.json["results"]
    assert first == {
        "success": True,
        "index": 0,
        "docid": "file:5",
        "rev": "",
        "savename": "told.txt",
        "file_path": "/workspace/in/told.txt",
        "file_info": {"name": "told.txt", "size": 5, "rev": "r9"},
        "downloaded_size": 5,
        "total_size": 5,
    }
    assert second["file_path"] == "/workspace/in/sub/named.bin"
    assert run(port, "cat in/told.txt; stat -c %s in/sub/named.bin") == "xxxxx200000"
    asked = [entry for entry in efast.seen if entry[2]]
    assert asked[0][0] == "/api/efast/v1/file/osdownload/"
    assert asked[0][1]["authorization"] == "Bearer mine" and asked[0][2] == {"docid": "file:5"}
    assert asked[1][2] == {"docid": "file:200000", "savename": "sub/named.bin", "rev": "r1"}
    got = [entry for entry in efast.seen if not entry[2]]
    assert got[0][0] == "/storage/5" and got[0][1]["x-sign"] == "s3"
    assert "authorization" not in got[0][1]


def test_the_operators_token_is_for_the_operators_server(port: int, efast: Efast) -> None:
    fetch(port, "file:1")
    fetch(port, "file:1", efast_url=efast.url + "/")
    with_token, without = [entry[1] for entry in efast.seen if entry[2]]
    assert with_token["authorization"] == "Bearer operators" and "authorization" not in without


@pytest.mark.parametrize(
    "docid,error",
    [
        ("moved:", "the server answered with HTTP status 307"),
        ("denied:", "the server answered with HTTP status 403"),
        ("text:", "e-fast answered with something that is no JSON"),
        ("huge:", "e-fast answered with more than 1 MiB"),
        ("lacks:", "e-fast answered without an authrequest"),
        ("list:", "e-fast answered without an authrequest"),
        ("file:nothing", "the server answered with HTTP status 404"),
        ("file:moved", "the server answered with HTTP status 302"),
        ("file:209715200", "the session's disk has no room for all of it"),
        (
            "elsewhere:http://127.0.0.1:9/x",
            "this server is not allowed to download from http://127",
        ),
        ("elsewhere:file:///etc/passwd", "this server is not allowed to download from file:///etc"),
    ],
)
def test_files_that_do_not_come(port: int, docid: str, error: str) -> None:
    reply = fetch(port, docid, "file:3").json
    bad, good = reply["results"]
    assert bad["error"].startswith(error) and bad["success"] is False
    assert (bad["docid"], bad["index"], bad["save_path"]) == (docid, 0, "/workspace")
    assert good["success"] and (reply["success_count"], reply["failed_count"]) == (1, 1)
    assert run(port, "ls") == "told.txt"


@pytest.mark.parametrize("docid,name", [("climbs:2", "up"), ("dots:2", "download_file")])
def test_names_that_efast_tells(port: int, docid: str, name: str) -> None:
    assert fetch(port, docid).json["results"][0]["file_path"] == f"/workspace/{name}"
    assert run(port, "ls") == name


def test_headers_that_efast_tells(port: int, efast: Efast) -> None:
    assert fetch(port, "splits:2").json["success_count"] == 1
    headers = efast.seen[-1][1]
    assert "x-evil" not in headers and headers["host"] == efast.url.removeprefix("http://")


def test_headers_that_are_not_efasts_to_tell(port: int, efast: Efast) -> None:
    assert fetch(port, "tricks:2").json["success_count"] == 1
    headers = efast.seen[-1][1]
    assert headers["host"] == efast.url.removeprefix("http://") and headers["x-good"] == "yes"
    assert not {"content-length", "transfer-encoding", "x-evil", ""} & set(headers)


def test_what_is_in_the_way_of_a_file(port: int) -> None:
    run(port, "mkdir -p told.txt; ln -s /etc out; touch f")
    for path, words in (("", "Is a directory"), ("f", "Not a directory"), ("out", "cross-device")):
        (result,) = fetch(port, "file:1", save_path=path).json["results"]
        assert words in result["error"], result


@pytest.mark.parametrize(
    "fields,status,detail",
    [
        ({"file_params": []}, 400, "No file parameters provided"),
        ({"file_params": [{"docid": "a"}, {}]}, 400, "Missing docid in file_params[1]"),
        ({"file_params": [{"docid": ""}]}, 400, "Missing docid in file_params[0]"),
        (
            {"file_params": [{"docid": "a", "savename": "../x"}]},
            400,
            "Invalid filename: ../x (cannot contain '..')",
        ),
        (
            {"file_params": [{"docid": "a", "savename": "/x"}]},
            400,
            "Invalid filename: /x (cannot begin with '/')",
        ),
        ({"token": "a\nX-Evil: 1"}, 400, "token has a line break"),
    ],
)
def test_requests_that_are_none(port: int, fields: Any, status: int, detail: str) -> None:
    reply = fetch(port, "file:1", **fields)
    assert (reply.status, reply.json["detail"]) == (status, detail)


@pytest.mark.parametrize(
    "fields,place",
    [
        ({"file_params": None}, ["body", "file_params"]),
        ({"file_params": ["x"]}, ["body", "file_params", 0]),
        ({"file_params": [{"docid": 1}]}, ["body", "file_params", 0, "docid"]),
        ({"file_params": [{"docid": "a"}] * 101}, ["body", "file_params"]),
        ({"timeout": 0}, ["body", "timeout"]),
        ({"timeout": 3601}, ["body", "timeout"]),
        ({"save_path": 1}, ["body", "save_path"]),
    ],
)
def test_fields_that_are_none(port: int, fields: Any, place: Any) -> None:
    reply = fetch(port, "file:1", **fields)
    assert (reply.status, reply.json["detail"][0]["loc"]) == (422, place)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1",
        "http://localhost",
        "HOST@127.0.0.1:1/",
        "HOST.evil.example/",
        "HOST:80@evil.example/",
        "ftp://127.0.0.1/",
        "file:///etc/passwd",
        "gopher://127.0.0.1/",
        "//evil",
        "not a url",
        "http://169.254.169.254/latest",
        "http://user@HOSTONLY/",
        "HOST?x=",
        "HOST/?x=",
        "HOST#x",
        "HOST/#",
        "HOST/?#",
    ],
)
def test_servers_that_are_not_allowed(port: int, efast: Efast, url: str) -> None:
    url = url.replace("HOSTONLY", efast.url.removeprefix("http://")).replace("HOST", efast.url)
    reply = fetch(port, "file:1", efast_url=url)
    assert (reply.status, reply.json["error"]["code"]) == (400, "efast_not_allowed")
    assert "--efast-allow" in reply.json["detail"] and not efast.seen


def test_only_what_is_below_is_allowed(
    start_live: Callable[..., LiveService], efast: Efast
) -> None:
    service = start_live("--efast-allow", f"http://other.example/,{efast.url}/storage/a/")
    efast.seen.clear()
    wrong = ["", "/storage", "/storage/ab", "/storage/a/../b", "/storage/a/%2e%2e/b"]
    for path in (*wrong, "/storage/a?x=", "/storage/a/?x=", "/storage/a/#", "/storage/a/b?#"):
        reply = fetch(service.port, "file:1", efast_url=efast.url + path)
        assert reply.status == 400 and not efast.seen, path
    reply = fetch(service.port, "file:1", efast_url=efast.url + "/storage/a")
    assert "is not allowed to download" in reply.json["results"][0]["error"]  # of /storage/1
    assert [entry[0] for entry in efast.seen] == ["/storage/a/api/efast/v1/file/osdownload/"]
    assert ask(service.port, "DELETE", f"{PLACE}/session/s1").status == 200


def test_nothing_is_allowed_unless_it_is_said(live_service: LiveService) -> None:
    reply = fetch(live_service.port, "a")
    assert (reply.status, reply.json["error"]["code"]) == (400, "efast_off")
    assert "--efast-url" in reply.json["detail"]
    reply = fetch(live_service.port, "a", efast_url="http://127.0.0.1:1")
    assert (reply.status, reply.json["error"]["code"]) == (400, "efast_not_allowed")


def test_a_server_that_does_not_answer(port: int) -> None:
    (result,) = fetch(port, "waits:", timeout=1).json["results"]
    assert result["error"] == "Timeout was reached"


def test_a_download_ends_with_its_client(port: int, efast: Efast) -> None:
    body = json.dumps({"file_params": [{"docid": "file:slow"}]}).encode()
    with Connection(port) as connection:
        connection.send("POST", f"{PLACE}/download_from_efast/s1", body, JSON)
        eventually(lambda: [path for path, _, _ in efast.seen if path == "/storage/slow"])
    efast.gate.set()
    assert efast.left.wait(60)
    efast.gate.clear()
    assert run(port, "ls") == ""


def test_the_token_is_not_shown() -> None:
    done = run_cli("config", "--efast-token", "secret")
    assert b"secret" not in done.stdout and b"(set)" in done.stdout


def test_downloads_count_against_the_memory_budget(
    start_live: Callable[..., LiveService], efast: Efast
) -> None:
    service = start_live("--efast-url", efast.url, "--memory-budget-mb", "60")
    [good] = fetch(service.port, f"file:{10 << 20}").json["results"]
    assert good["success"], good
    [bad] = fetch(service.port, f"file:{40 << 20}").json["results"]
    assert not bad["success"] and "memory budget" in bad["error"], bad
    assert run(service.port, "du -sm . | cut -f1").strip() == "10", "what came of it is gone"
    assert ask(service.port, "DELETE", f"{PLACE}/session/s1").status == 200

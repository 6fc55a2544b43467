"""Connections of the API: many requests on one, in pieces, at the end."""

from __future__ import annotations

import json
import socket
from pathlib import Path

from harness import Service
from http_client import JSON, Connection, Stream, execute


def test_a_connection_serves_many_requests(service: Service) -> None:
    with Connection(service.port) as connection:
        for i in range(50):
            assert connection.execute(f"{i}")["stdout"] == f"{i}\n"
            assert connection.ask("GET", "/health").status == 200
            assert connection.ask("GET", "/nope").status == 404
            assert connection.post("/v1/execute", {}).status == 422


def test_a_connection_survives_a_stream(service: Service) -> None:
    with Connection(service.port) as connection:
        for _ in range(5):
            reply = connection.post("/v1/execute/stream", {"code": "print('x' * 100000)"})
            assert reply.body.endswith(b"\n\n")
            assert connection.ask("GET", "/health").status == 200


def test_requests_may_be_sent_before_the_replies_have_come(service: Service) -> None:
    with Connection(service.port) as connection:
        for i in range(20):
            body = json.dumps({"code": f"{i}", "timeout_ms": 60000}).encode()
            connection.send("POST", "/v1/execute", body, JSON)
            connection.send("GET", "/health")
        for i in range(20):
            assert connection.reply().json["stdout"] == f"{i}\n"
            assert connection.reply().json["status"] == "ok"


def test_a_request_in_small_pieces_is_a_request(service: Service) -> None:
    body = b'{"code":"1"}'
    head = (
        f"POST /v1/execute HTTP/1.1\r\nHost: 127.0.0.1:{service.port}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with Connection(service.port) as connection:
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in head.encode() + body:
            connection.sock.sendall(bytes([byte]))
        assert connection.reply().json["stdout"] == "1\n"


def test_a_chunked_body_is_a_body(service: Service) -> None:
    headers = JSON | {"Transfer-Encoding": "chunked"}
    with Connection(service.port) as connection:
        for _ in range(3):
            connection.send("POST", "/v1/execute", None, headers)
            connection.sock.sendall(b'5\r\n{"cod\r\n7\r\ne":"1"}\r\n0\r\n\r\n')
            assert connection.reply().json["stdout"] == "1\n"


def test_a_client_may_ask_whether_to_go_on(service: Service) -> None:
    body = b'{"code":"1"}'
    headers = JSON | {"Expect": "100-continue", "Content-Length": str(len(body))}
    with Connection(service.port) as connection:
        connection.send("POST", "/v1/execute", None, headers)
        assert connection.head().status == 100
        connection.sock.sendall(body)
        assert connection.reply().json["stdout"] == "1\n"


def test_close_is_obeyed(service: Service) -> None:
    with Connection(service.port) as connection:
        reply = connection.ask("GET", "/health", None, {"Connection": "close"})
        assert (reply.header("connection") or "").lower() == "close"
        assert connection.file.read() == b""


def test_a_draining_server_answers_what_it_has_begun(tmp_path: Path) -> None:
    service = Service(tmp_path, "--profiles", "base")
    body = {"code": "print(1, flush=True)\nimport time\ntime.sleep(1)\n5", "timeout_ms": 60000}
    try:
        with Connection(service.port) as idle:
            with Stream(service.port, "POST", "/v1/execute/stream", body) as stream:
                received = stream.events()
                next(received)
                service.process.terminate()
                rest = list(received)
            assert (rest[-1].type, rest[-1].data["status"]) == ("result", "ok")
            assert idle.file.read() == b"", "and the idle connection is closed"
        service.stop()
    finally:
        service.kill()


def test_of_two_files_for_one_path_the_later_is_there(service: Service) -> None:
    files = [{"path": "a", "content": "first"}, {"path": "a", "content": "later"}]
    result = execute(service.port, "open('a').read()", files=files, timeout_ms=60000)
    assert (result["stdout"], result["files"]) == ("'later'\n", []), "it was not changed"
    result = execute(service.port, "open('a', 'w').write('first')", files=files, timeout_ms=60000)
    assert [file["path"] for file in result["files"]] == ["a"]

"""The longest turn of the server's loop that a request may cause: for so long everybody
else waits. What takes longer is done beside the loop, or in slices. Each row of the tables is
something large that somebody may send; the processor time of the loop's turns is read from the
server itself, so that a busy machine does not count."""

from __future__ import annotations

import base64
import contextlib
import gzip
import io
import json
import re
import tarfile
from collections.abc import Callable, Iterator

import pytest

from harness import eventually
from http_client import BOUNDARY, FORM, JSON, Connection, Reply, Stream, ask
from live import Box, Client
from turns import FEW_S, LONGEST_S, MB, Turns, many_descriptors, tar_of


def post(port: int, path: str, body: bytes, **headers: str) -> Reply:
    return ask(port, "POST", path, body, JSON | headers)


def execute(port: int, body: bytes, **headers: str) -> Reply:
    return post(port, "/v1/execute", body, **headers)


def fields(n: int) -> bytes:
    return b",".join(b'"f%d":1' % i for i in range(n))


def names(n: int) -> bytes:
    return b"{" + b",".join(b'"N%d":"x"' % i for i in range(n)) + b"}"


def upload(port: int, data: bytes) -> str:
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
    form = head.encode() + data + f"\r\n--{BOUNDARY}--\r\n".encode()
    reply = ask(port, "POST", "/v1/files", form, FORM)
    assert reply.status == 201, reply
    return str(reply.json["file_id"])


# ---------------------------------------------------------------------------- requests

LONG = b"x" * (20 * MB)  # a tenth of a second and more for a parser
PASS = b'"code":"pass"'


def references(port: int) -> Reply:
    """A hundred to one stored file; the disk has room for a few."""
    file = upload(port, b"x" * (90 * MB))
    wanted = [{"path": f"f{i}", "file_id": file} for i in range(100)]
    body = {"code": "pass", "files": wanted, "limits": {"disk_mb": 400}}
    reply = execute(port, json.dumps(body).encode())
    assert ask(port, "DELETE", f"/v1/files/{file}").status == 204
    return reply


def given_back(port: int) -> Reply:
    """Files that come and go unchanged are compared, one that changed is kept."""
    content = base64.b64encode(b"x" * (20 * MB)).decode()
    wanted = [{"path": f"f{i}", "content": content, "encoding": "base64"} for i in range(2)]
    body = {"code": "open('f1', 'r+').write('y')", "files": wanted}
    reply = execute(port, json.dumps(body).encode())
    assert [file["path"] for file in reply.json["files"]] == ["f1"], reply.json
    return reply


def many_given(port: int) -> Reply:
    """A thousand small files, in a body that is read in the loop and in one that is not."""
    for content in ("", "x" * 100):
        wanted = [{"path": f"{i}", "content": content} for i in range(1000)]
        body = {"code": "import os; print(len(os.listdir()))", "files": wanted}
        reply = execute(port, json.dumps(body | {"timeout_ms": 20_000}).encode())
        assert reply.json["stdout"] == "1001\n", reply.json
    return reply


def sparse(port: int) -> Reply:
    code = "for i in range(100): open(f'f{i}', 'wb').truncate(60 << 20)"
    reply = execute(port, json.dumps({"code": code}).encode())
    assert reply.json["files_truncated"] and len(reply.json["files"]) == 1, reply.json
    return reply


def full(port: int) -> Reply:
    code = "open('f', 'wb').write(b'x' * (60 << 20))"
    reply = execute(port, json.dumps({"code": code, "timeout_ms": 10000}).encode())
    assert len(reply.json["files"]) == 1 and not reply.json["files_truncated"], reply.json
    return reply


def many(port: int) -> Reply:
    code = "for i in range(1000): open(f'f{i}', 'wb').write(b'x' * 60000)"
    reply = execute(port, json.dumps({"code": code, "timeout_ms": 10000}).encode())
    assert len(reply.json["files"]) == 1000, reply.json
    return reply


REQUESTS: dict[str, tuple[Callable[[int], Reply], int]] = {
    "code of 20 MB": (lambda port: execute(port, b'{"code":"%s"}' % LONG), 413),
    "code of 8 MB": (lambda port: execute(port, b'{"code":"#%s"}' % LONG[: 8 * MB]), 200),
    "code of 500,000 lines": (
        lambda port: execute(port, b'{"code":"%s"}' % (rb"import os\n" * 500_000)),
        200,
    ),
    "stdin of 20 MB": (lambda port: execute(port, b'{%s,"stdin":"%s"}' % (PASS, LONG)), 200),
    "an unknown field of 20 MB": (lambda port: execute(port, b'{%s,"x":"%s"}' % (PASS, LONG)), 200),
    "20 MB of escapes": (
        lambda port: execute(port, b'{%s,"x":"%s"}' % (PASS, rb"\u00e9" * (3 * MB))),
        200,
    ),
    "20 MB that are no JSON": (lambda port: execute(port, b'{%s,"x":"%s}' % (PASS, LONG)), 422),
    "20 MB that are not UTF-8": (
        lambda port: execute(port, b'{%s,"x":"%s"}' % (PASS, b"\xff" * (20 * MB))),
        400,
    ),
    "20 MB of another type": (
        lambda port: execute(port, LONG, **{"Content-Type": "text/plain"}),
        422,
    ),
    "20 MB with an idempotency key": (
        lambda port: execute(port, b'{%s,"x":"%s"}' % (PASS, LONG), **{"Idempotency-Key": "turns"}),
        200,
    ),
    "490,000 unknown fields": (
        lambda port: execute(port, b"{%s,%s}" % (PASS, fields(490_000))),
        200,
    ),
    "490,000 fields that are refused": (
        lambda port: post(port, "/v1/sandboxes", b"{%s}" % fields(490_000)),
        422,
    ),
    "240,000 names in env": (
        lambda port: execute(port, b'{%s,"env":%s}' % (PASS, names(240_000))),
        422,
    ),
    "240,000 names in a sandbox's env": (
        lambda port: post(port, "/v1/sandboxes", b'{"env":%s}' % names(240_000)),
        422,
    ),
    "240,000 names in metadata": (
        lambda port: post(port, "/v1/sandboxes", b'{"metadata":%s}' % names(240_000)),
        422,
    ),
    "a variable of 20 MB": (
        lambda port: execute(port, b'{%s,"env":{"A":"%s"}}' % (PASS, LONG)),
        422,
    ),
    "a variable of 20 MB of escapes for a sandbox": (
        lambda port: post(
            port, "/v1/sandboxes", b'{"env":{"A":"%s"}}' % (rb"\u0001" * (20 * MB // 6))
        ),
        422,
    ),
    "20 MB in metadata": (
        lambda port: post(port, "/v1/sandboxes", b'{"metadata":{"A":"%s"}}' % LONG),
        422,
    ),
    "a policy of 20 MB": (
        lambda port: execute(port, b'{%s,"network":"%s"}' % (PASS, b"," * (20 * MB))),
        422,
    ),
    "a policy of 20 MB in one rule": (
        lambda port: execute(port, b'{%s,"network":["%s"]}' % (PASS, LONG)),
        422,
    ),
    "a path of ten million parts": (
        lambda port: execute(
            port, b'{%s,"files":[{"path":"%s","content":""}]}' % (PASS, b"x/" * (10 * MB))
        ),
        422,
    ),
    "an argument of 20 MB": (
        lambda port: execute(port, b'{%s,"args":["%s"]}' % (PASS, LONG)),
        422,
    ),
    "a file of 20 MB in base64": (
        lambda port: execute(
            port,
            b'{%s,"files":[{"path":"f","encoding":"base64","content":"%s"}]}'
            % (PASS, base64.b64encode(LONG)),
        ),
        200,
    ),
    "a file of 20 MB as text": (
        lambda port: execute(port, b'{%s,"files":[{"path":"f","content":"%s"}]}' % (PASS, LONG)),
        200,
    ),
    "a batch of 10,000 broken items": (
        lambda port: post(port, "/v1/execute/batch", b'{"items":[%s{}]}' % (b"{}," * 9_999)),
        200,
    ),
    "a batch with code of 8 MB twice": (
        lambda port: post(
            port,
            "/v1/execute/batch",
            b'{"items":[%s]}' % b",".join([b'{"code":"#%s"}' % LONG[: 8 * MB]] * 2),
        ),
        200,
    ),
    "the specification": (lambda port: ask(port, "GET", "/openapi.json"), 200),
    "a hundred references to a file of 90 MB": (references, 413),
    "files that come back": (given_back, 200),
    "a thousand small files given": (many_given, 200),
    "a hundred sparse files of 60 MB": (sparse, 200),
    "a file of 60 MB": (full, 200),
    "a thousand files": (many, 200),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_takes_no_long_turn(port: int, name: str) -> None:
    send, status = REQUESTS[name]
    turns = Turns(port)
    reply = send(port)
    assert reply.status == status, (reply.status, reply.body[:500])
    assert turns.longest() <= LONGEST_S


# ------------------------------------------------------------------ live sandboxes: requests


def tar_with_headers(size: int, entries: int) -> bytes:
    """Each entry's comment has so many bytes, which gzip makes a thousandth of."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", format=tarfile.PAX_FORMAT) as tar:
        for i in range(entries):
            info = tarfile.TarInfo(f"f{i}")
            info.pax_headers = {"comment": "x" * size}
            tar.addfile(info)
    return out.getvalue()


def gzip_named(size: int) -> bytes:
    """In the head of a gzip there may be a name."""
    packed = gzip.compress(b"")
    return packed[:3] + b"\x08" + packed[4:10] + b"x" * size + b"\0" + packed[10:]


def archive(box: Box, data: bytes) -> Reply:
    return ask(box.port, "PUT", box.path + "/archive", data)


def cell(box: Box, body: bytes, path: str = "/execute") -> Reply:
    return post(box.port, box.path + path, body)


def too_large(box: Box) -> Reply:
    """In chunks, so that nobody knows before the disk is full; the pages are freed at once then."""
    with Connection(box.port) as connection:
        head = f"PUT {box.path}/files/f HTTP/1.1\r\nHost: 127.0.0.1:{box.port}\r\n"
        connection.sock.sendall(head.encode() + b"Transfer-Encoding: chunked\r\n\r\n")
        with contextlib.suppress(OSError):
            for _ in range(220):
                connection.sock.sendall(b"100000\r\n%s\r\n" % LONG[:MB])
            connection.sock.sendall(b"0\r\n\r\n")
        return connection.reply()


BOXES: dict[str, tuple[Callable[[Box], Reply], int]] = {
    "code of 20 MB": (lambda box: cell(box, b'{"code":"%s"}' % LONG), 413),
    "code of 8 MB": (lambda box: cell(box, b'{"code":"#%s"}' % LONG[: 8 * MB]), 200),
    "stdin of 20 MB": (lambda box: cell(box, b'{%s,"stdin":"%s"}' % (PASS, LONG)), 200),
    "240,000 names in env": (
        lambda box: cell(box, b'{%s,"env":%s}' % (PASS, names(240_000))),
        422,
    ),
    "a variable of 20 MB": (
        lambda box: cell(box, b'{%s,"env":{"A":"%s"}}' % (PASS, LONG)),
        422,
    ),
    "a command with stdin of 15 MB": (
        lambda box: cell(box, b'{"cmd":"wc -c","stdin":"%s"}' % LONG[: 15 * MB], "/commands"),
        200,
    ),
    "a command with 200,000 words": (
        lambda box: cell(box, b'{"argv":[%s"x"]}' % (b'"x",' * 200_000), "/commands"),
        422,
    ),
    "an upload of 20 MB": (
        lambda box: ask(box.port, "PUT", box.path + "/files/f", LONG),
        201,
    ),
    "an upload of which 200 MB fit": (too_large, 507),
    "an archive of 60 MB comes": (
        lambda box: ask(box.port, "PUT", box.path + "/archive", tar_of(60 * MB)),
        200,
    ),
    "an archive with headers of 64 MB": (
        lambda box: archive(box, tar_with_headers(MB // 2, 128)),
        200,
    ),
    "an entry with a header of 2 MB": (lambda box: archive(box, tar_with_headers(2 * MB, 1)), 422),
    "an archive with a name of 20 MB": (lambda box: archive(box, gzip_named(20 * MB)), 422),
    "an archive in an archive with a name of 50 MB": (
        lambda box: archive(box, gzip.compress(gzip_named(50 * MB))),
        422,
    ),
    "an archive of 20 MB goes": (
        lambda box: (
            box.run("import os; open('f', 'wb').write(os.urandom(20 << 20))"),
            ask(box.port, "GET", box.path + "/archive"),
        )[1],
        200,
    ),
    "20,000 variables": (
        lambda box: (
            box.run("globals().update({f'v{i}': i for i in range(20_000)}); None"),
            box.ask("GET", "/variables"),
        )[1],
        200,
    ),
    "20,000 completions": (
        lambda box: (
            box.run("globals().update({f'v{i}': i for i in range(20_000)}); None"),
            box.ask("POST", "/complete", {"code": "v"}),
        )[1],
        200,
    ),
}


@pytest.fixture
def box(port: int) -> Iterator[Box]:
    with Client(port).box(limits={"disk_mb": 200}) as box:
        yield box


@pytest.mark.parametrize("name", BOXES)
def test_a_request_to_a_sandbox_takes_no_long_turn(box: Box, name: str) -> None:
    send, status = BOXES[name]
    turns = Turns(box.port)
    reply = send(box)
    assert reply.status == status, (reply.status, reply.body[:500])
    assert turns.longest() <= LONGEST_S


# ------------------------------------------------------------------- those who leave meanwhile


def bodies(port: int) -> int:
    text = ask(port, "GET", "/metrics").body.decode()
    return int(float(re.findall(r"^cloche_bodies_bytes (\S+)$", text, re.MULTILINE)[0]))


@pytest.mark.parametrize("path, status", [("/openapi.json", 200), ("/nothing", 404)])
def test_many_requests_make_no_long_turn(port: int, path: str, status: int) -> None:
    """They need no key. Each connection has as many requests on the way as it likes; a turn takes
    a few of them, a tenth of a millisecond each."""
    turns = Turns(port)
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()
    with many_descriptors(), contextlib.ExitStack() as open_ones:
        clients = [open_ones.enter_context(Connection(port)) for _ in range(800)]
        for client in clients:
            client.sock.sendall(request * 4)
        for client in clients:
            for _ in range(4):
                assert client.reply().status == status
    assert turns.longest() <= FEW_S


def test_small_bodies_of_many_values_make_no_long_turn(port: int) -> None:
    """Five milliseconds for a parser, in 64 KB."""
    body = b'{"x":[' + b"{}," * 21_700 + b"{}]}"
    turns = Turns(port)
    with contextlib.ExitStack() as open_ones:
        clients = [open_ones.enter_context(Connection(port)) for _ in range(20)]
        for _ in range(4):
            for client in clients:
                client.send("POST", "/v1/execute", body, JSON)
            for client in clients:
                assert client.reply().status == 422
    assert turns.longest() <= FEW_S


def test_small_chunks_are_read_in_many_turns(port: int) -> None:
    """A chunk for every six bytes: the library's buffer holds thousands, and hundreds of clients
    without a key may send such. Each may have 500 read in a turn."""
    chunks = b"1\r\nx\r\n" * 150_000
    head = f"POST /v1/execute HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
    fields = b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    turns = Turns(port)
    with Connection(port) as connection:
        connection.sock.sendall(head.encode() + fields)
        connection.sock.sendall(chunks + b"0\r\n\r\n")
        assert connection.reply().status == 422
    assert turns.many() >= 150_000 / 500
    assert turns.longest() <= FEW_S


def test_bodies_count_until_they_are_freed(port: int) -> None:
    body = b'{%s,"x":"%s"}' % (PASS, LONG)
    for _ in range(4):
        with Connection(port) as connection:
            connection.send("POST", "/v1/execute", body, JSON)
    eventually(lambda: bodies(port) == 0)


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_client_leaves_while_its_files_are_copied(port: int, goes_on: bool) -> None:
    code = "for i in range(3): open(f'f{i}', 'wb').write(b'x' * (20 << 20))\nprint('written')"
    fields = {"code": code, "timeout_ms": 20_000}
    if goes_on:
        fields["on_disconnect"] = "continue"
    with Stream(port, "POST", "/v1/execute/stream", fields) as stream:
        run = stream.reply.header("x-execution-id")
        assert next(stream.events()).data["data"].startswith("written")
    reply = eventually(lambda: over(port, str(run)))
    if not goes_on:
        return
    files = reply.json["result"]["files"]
    for file in files:
        assert ask(port, "DELETE", f"/v1/files/{file['file_id']}").status == 204
    assert len(files) == 3


def over(port: int, run: str) -> Reply | None:
    reply = ask(port, "GET", f"/v1/executions/{run}")
    assert reply.status == 200, reply
    return reply if reply.json["state"] == "done" else None

"""Bodies over raw sockets: too deep, too large, broken; and files, which do not sit in memory."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from harness import Service, eventually
from http_raw import BAD_JSON, CHUNKED, GROWTH_MB, HEALTH, JSON, UPLOAD, asan, form, stored
from raw_http import HOST, Raw, ask, chunks, post, request, resident_mb


# ---- bodies ----


@pytest.mark.parametrize("path", ["/v1/execute", "/v1/execute/stream", "/v1/execute/batch"])
@pytest.mark.parametrize("shape", BAD_JSON)
def test_bad_json_is_a_clear_4xx(service: Service, shape: str, path: str) -> None:
    with Raw(service) as raw:
        reply = raw.send(post(path, BAD_JSON[shape])).reply()
        assert reply.status in (400, 422), reply.body[:500]
        assert reply.json["detail"]
        assert len(reply.body) < 20_000
        assert raw.send(HEALTH).reply().status == 200, "the connection goes on"


def test_bad_items_do_not_spoil_a_batch(service: Service) -> None:
    items = [{"code": "1"}, {}, {"code": 5}, {"code": "1", "timeout_ms": 10**12}, {"code": "2"}]
    reply = ask(service, post("/v1/execute/batch", {"items": items}))
    lines = {line["index"]: line for line in map(json.loads, reply.body.split(b"\n")[:-1]) if line}
    assert lines[0]["stdout"] == "1\n" and lines[4]["stdout"] == "2\n"
    assert all("detail" in lines[n] for n in (1, 2, 3))


def test_a_batch_of_thousands_of_bad_items(service: Service) -> None:
    """Lines are made as fast as the client takes them, and none is lost."""
    items = [{"code": 5, "padding": "x" * (n % 97)} for n in range(10_000)]
    with Raw(service) as raw:
        reply = raw.send(post("/v1/execute/batch", {"items": items})).reply()
        found = [json.loads(line)["index"] for line in reply.body.splitlines() if line]
        assert found == list(range(10_000))
    too_many = post("/v1/execute/batch", {"items": [{}] * 10_001})
    assert ask(service, too_many).status == 422


@pytest.mark.parametrize("path", ["/v1/execute", "/v1/execute/stream", "/v1/files"])
def test_a_length_beyond_the_limit_is_refused_at_once(service: Service, path: str) -> None:
    """Nothing of a gigabyte needs to be read to know that it is too much."""
    before = resident_mb(service)
    form = b"Content-Type: multipart/form-data; boundary=b\r\n" if "files" in path else JSON
    head = b"POST " + path.encode() + b" HTTP/1.1\r\n" + HOST + form
    for length in (1 << 30, 1 << 50):
        with Raw(service) as raw:
            reply = raw.send(head + b"Content-Length: %d\r\n\r\n" % length).reply()
            assert reply.status == 413 and reply.code.endswith("_too_large")
            assert not reply.keeps
    assert resident_mb(service) - before < GROWTH_MB


def test_a_chunked_body_over_its_limit_is_drained_to_a_bound(service: Service) -> None:
    """What is not a form may have a megabyte; so much of the rest is thrown away."""
    head = b"POST /v1/files HTTP/1.1\r\n" + HOST + CHUNKED + b"\r\n"
    with Raw(service) as raw:
        reply = raw.send(head + chunks(b"x" * 1_100_000)).reply()
        assert 400 <= reply.status < 500
        assert raw.send(HEALTH).reply().status == 200
    with Raw(service) as raw:
        raw.send(head)
        piece = chunks(b"x" * 1_000_000)[:-5]
        sent = 0
        while raw.try_send(piece):
            sent += len(piece)
            assert sent < 300 << 20, "it drinks without end"
        assert b" 200 " not in raw.ends()


def test_a_large_body_is_given_back(service: Service) -> None:
    """Sixty megabytes of JSON come and go; the allocator may keep a part of one."""
    if asan(service):
        pytest.skip("the sanitizer keeps what was freed")
    body = json.dumps({"code": "print(1)", "unknown": "x" * (60 << 20)}).encode()
    before = resident_mb(service)
    for _ in range(3):
        assert ask(service, post("/v1/execute", body)).json["stdout"] == "1\n"
    assert eventually(lambda: resident_mb(service) - before < 64, seconds=20), (
        before,
        resident_mb(service),
    )


# ---- files ----


def test_a_client_that_leaves_an_upload_leaves_nothing(impatient: Service) -> None:
    before = stored(impatient)
    body = form(b"x" * 5_000_000)
    for leave in (Raw.reset, lambda raw: raw.sock.close(), lambda raw: raw.half_close().ends()):
        with Raw(impatient) as raw:
            raw.send(UPLOAD + b"Content-Length: %d\r\n\r\n" % len(body) + body[:3_000_000])
            assert eventually(lambda: stored(impatient) - before), "it goes to disk as it comes"
            leave(raw)
        assert eventually(lambda: stored(impatient) == before), stored(impatient) - before


@pytest.mark.once
def test_uploads_and_downloads_do_not_sit_in_memory(start_service: Callable[..., Service]) -> None:
    service = start_service("--profiles", "base", "--max-file-mb", "600")
    size = 512 << 20
    head, piece = form(b"").split(b"\r\n\r\n", 1)[0] + b"\r\n\r\n", b"z" * (1 << 20)
    tail = b"\r\n--BOUND--\r\n"
    before = most = resident_mb(service)
    with Raw(service) as raw:
        raw.send(UPLOAD + b"Content-Length: %d\r\n\r\n" % (len(head) + size + len(tail)) + head)
        for sent_mb in range(size >> 20):
            raw.send(piece)
            if sent_mb % 16 == 0:
                most = max(most, resident_mb(service))
        reply = raw.send(tail).reply()
        assert reply.status == 201 and reply.json["size_bytes"] == size
        path = f"/v1/files/{reply.json['file_id']}"
        head_of = raw.send(request("GET", path)).head()
        left = int(head_of.header("Content-Length") or 0)
        assert left == size
        while left:
            left -= len(raw.exactly(min(left, 16 << 20)))
            most = max(most, resident_mb(service))
        assert raw.send(request("DELETE", path)).reply().status == 204
    assert most - before < GROWTH_MB, (before, most)


def test_broken_forms_make_no_file(service: Service) -> None:
    before = stored(service)
    whole = form(b"x" * 1000)
    bodies = [
        whole[:50],
        whole[:-20],
        whole.replace(b"BOUND", b"OTHER"),
        b"",
        b"--BOUND--\r\n",
        b"--BOUND\r\n" * 1000,
        whole.replace(b"filename", b"filenamf"),
        b"\0" * 100_000,
    ]
    for body in bodies:
        data = UPLOAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
        with Raw(service) as raw:
            raw.send(data)
            reply = raw.reply()
            if reply.status == 201:  # the form's end was missing, the file was there
                path = f"/v1/files/{reply.json['file_id']}"
                assert ask(service, request("DELETE", path)).status == 204
            else:
                assert 400 <= reply.status < 500, body[:60]
    assert eventually(lambda: stored(service) == before), stored(service) - before


def test_a_form_header_without_end(service: Service) -> None:
    with Raw(service) as raw:
        raw.try_send(UPLOAD + b"Content-Length: 4000000\r\n\r\n--BOUND\r\nX: " + b"y" * 3_999_988)
        assert 400 <= raw.reply().status < 500


@pytest.fixture
def impatient(start_service: Callable[..., Service]) -> Service:
    return start_service("--profiles", "base", "--idle-s", "1")

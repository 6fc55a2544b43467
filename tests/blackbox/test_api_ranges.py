"""Parts of files: Range, and what tells one version of a file from another."""

from __future__ import annotations

import email.utils
import time

import pytest

from harness import Service
from http_client import Connection, Reply, get, upload

DATA = bytes(range(100))


@pytest.fixture(scope="module")
def file(service_session: Service) -> str:
    return f"/v1/files/{upload(service_session.port, 'a.bin', DATA)}"


def part(service: Service, path: str, text: str, **headers: str) -> Reply:
    return get(service.port, path, Range=text, **headers)


PARTS = {
    "bytes=0-9": (0, 10),
    "bytes=0-0": (0, 1),
    "bytes=99-99": (99, 100),
    "bytes=90-": (90, 100),
    "bytes=90-1000": (90, 100),
    "bytes=0-": (0, 100),
    "bytes=-10": (90, 100),
    "bytes=-1000": (0, 100),
    "Bytes=10-19": (10, 20),
    "bytes= 10-19 ": (10, 20),
    "bytes=5-99999999999999999999999999": (5, 100),
    "bytes=00000000000000000000000000000001-2": (1, 3),
}


@pytest.mark.parametrize("text", PARTS)
def test_a_part_of_a_file(service: Service, file: str, text: str) -> None:
    start, end = PARTS[text]
    reply = part(service, file, text)
    assert (reply.status, reply.body) == (206, DATA[start:end])
    assert reply.header("content-range") == f"bytes {start}-{end - 1}/100"
    assert reply.header("content-type") == "application/octet-stream"
    assert "a.bin" in (reply.header("content-disposition") or "")


@pytest.mark.parametrize(
    "text",
    ["bytes=100-", "bytes=100-200", "bytes=-0", "bytes=99999999999999999999999999-"],
)
def test_a_part_that_is_not_there(service: Service, file: str, text: str) -> None:
    reply = part(service, file, text)
    assert (reply.status, reply.header("content-range")) == (416, "bytes */100")
    assert reply.json["error"]["code"] == "bad_range"
    assert "100 bytes" in reply.json["detail"]


@pytest.mark.parametrize(
    "text",
    [
        "bytes=9-0",
        "bytes=",
        "bytes=-",
        "bytes=a-b",
        "bytes=1",
        "bytes=1-2-3",
        "bytes=0x1-2",
        "bytes=+1-2",
        "bytes=--1",
        "bytes=1.5-2",
        "lines=0-9",
        "0-9",
        "bytes 0-9",
        "bytes=0-1,3-4",  # several at once: the whole is an answer too
        "",
    ],
)
def test_what_is_no_range_is_left_out(service: Service, file: str, text: str) -> None:
    reply = part(service, file, text)
    assert (reply.status, reply.body) == (200, DATA)
    assert reply.header("content-range") is None


def test_an_empty_file_has_no_parts(service: Service) -> None:
    path = f"/v1/files/{upload(service.port, 'empty', b'')}"
    for text in ("bytes=0-", "bytes=-1", "bytes=0-0"):
        assert part(service, path, text).status == 416
    assert get(service.port, path).status == 200


def test_the_tag_and_the_date_of_a_file(service: Service, file: str) -> None:
    before = int(time.time()) - 3600
    with Connection(service.port) as connection:
        for method in ("GET", "HEAD"):
            reply = connection.ask(method, file)
            assert reply.header("accept-ranges") == "bytes"
            assert reply.header("etag") == '"' + file.rpartition("/")[2] + '"'
            date = email.utils.parsedate_to_datetime(reply.header("last-modified") or "")
            assert before < date.timestamp() <= time.time()
            assert reply.header("content-length") == "100"


def test_a_head_has_no_parts(service: Service, file: str) -> None:
    with Connection(service.port) as connection:
        reply = connection.ask("HEAD", file, None, {"Range": "bytes=0-9"})
        assert (reply.status, reply.header("content-length")) == (200, "100")
        assert connection.ask("GET", file).body == DATA


def test_a_part_only_of_what_the_client_has(service: Service, file: str) -> None:
    head = get(service.port, file)
    tag, date = head.header("etag") or "", head.header("last-modified") or ""
    for good in (tag, date):
        assert part(service, file, "bytes=0-9", **{"If-Range": good}).status == 206
    for other in ('"other"', f"W/{tag}", "Thu, 01 Jan 1970 00:00:00 GMT", "nonsense"):
        reply = part(service, file, "bytes=0-9", **{"If-Range": other})
        assert (reply.status, reply.body) == (200, DATA)
        assert part(service, file, "bytes=500-", **{"If-Range": other}).status == 200


def test_what_the_client_has_is_not_sent_again(service: Service, file: str) -> None:
    head = get(service.port, file)
    tag, date = head.header("etag") or "", head.header("last-modified") or ""
    with Connection(service.port) as connection:
        for fresh in (
            {"If-None-Match": tag},
            {"If-None-Match": f'"x", W/{tag}'},
            {"If-None-Match": "*"},
            {"If-Modified-Since": date},
        ):
            reply = connection.ask("GET", file, None, fresh)
            assert (reply.status, reply.header("etag")) == (304, tag), fresh
        for old in (
            {"If-None-Match": '"x"'},
            {"If-Modified-Since": "Thu, 01 Jan 1970 00:00:00 GMT"},
            {"If-None-Match": '"x"', "If-Modified-Since": date},
        ):
            assert connection.ask("GET", file, None, old).body == DATA


def test_a_broken_download_is_put_together(service: Service) -> None:
    data = b"".join(i.to_bytes(4, "big") for i in range(2_000_000))
    path = f"/v1/files/{upload(service.port, 'large', data)}"
    with Connection(service.port) as connection:
        connection.send("GET", path)
        connection.head()
        got = connection.file.read(1_234_567)
    tag = get(service.port, path, Range="bytes=0-0").header("etag") or ""
    rest = part(service, path, f"bytes={len(got)}-", **{"If-Range": tag})
    assert rest.status == 206 and got + rest.body == data

"""What the tests of raw HTTP share: requests in bytes, and how they are refused."""

from __future__ import annotations

from pathlib import Path

from harness import Service
from raw_http import HOST, Raw, request

BODY = b'{"code": "print(6 * 7)"}'

LENGTH = b"Content-Length: %d\r\n" % len(BODY)

CHUNKED = b"Transfer-Encoding: chunked\r\n"

JSON = b"Content-Type: application/json\r\n"

HEALTH = request("GET", "/health")

GROWTH_MB = 16.0


def asan(service: Service) -> bool:
    """Sanitized programs keep what they freed for a while."""
    maps = Path(f"/proc/{service.process.pid}/maps").read_text()
    return "asan" in maps or "san" in str(service.caller.command()[0])


def refused(service: Service, data: bytes, first: int = 400) -> bytes:
    """The first words are the status, and then the connection is over."""
    with Raw(service) as raw:
        raw.try_send(data)
        said = raw.ends()
    assert said.startswith(b"HTTP/1.1 %d " % first), said[:300]
    assert b"connection: close" in said.lower()
    assert b"HTTP/1.1 200" not in said
    return said


CHUNKED_HEAD = b"POST /v1/execute HTTP/1.1\r\n" + HOST + JSON + CHUNKED + b"\r\n"

DEEP = 100_000

BAD_JSON = {
    "arrays, deep": b"[" * DEEP + b"]" * DEEP,
    "arrays, deep and open": b"[" * DEEP,
    "objects, deep": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "a deep field": b'{"code":' + b"[" * DEEP + b"]" * DEEP + b"}",
    "a deep field nobody knows": b'{"code": "1", "x":' + b"[" * DEEP + b"]" * DEEP + b"}",
    "a key twice": b'{"code": "1", "code": "2"}',
    "NaN": b'{"code": "1", "timeout_ms": NaN}',
    "Infinity": b'{"code": "1", "timeout_ms": -Infinity}',
    "a huge integer": b'{"code": "1", "timeout_ms": 1' + b"0" * 5000 + b"}",
    "a large integer": b'{"code": "1", "timeout_ms": 18446744073709551617}',
    "2^63 - 1": b'{"code": "1", "timeout_ms": 9223372036854775807}',
    "a huge real": b'{"code": "1", "limits": {"cpus": 1e999}}',
    "a large real": b'{"code": "1", "limits": {"cpus": 1e308}}',
    "a negative timeout": b'{"code": "1", "timeout_ms": -1}',
    "not UTF-8": b'{"code": "\xff\xfe"}',
    "UTF-8 that is too long": b'{"code": "\xc0\xaf"}',
    "a surrogate in UTF-8": b'{"code": "\xed\xa0\x80"}',
    "half a surrogate pair": b'{"code": "\\ud800"}',
    "a raw control byte": b'{"code": "\x01"}',
    "a raw NUL": b'{"code": "\x00"}',
    "two values": b'{"code": "1"}{"code": "1"}',
    "nothing": b"",
    "a string": b'"code"',
    "half of it": b'{"code": "1"',
    "single quotes": b"{'code': '1'}",
    "UTF-16": '{"code": "1"}'.encode("utf-16"),
    "a form": b"code=1",
}


def form(data: bytes, name: str = "a.bin") -> bytes:
    return (
        b'--BOUND\r\nContent-Disposition: form-data; name="file"; filename="'
        + name.encode()
        + b'"\r\nContent-Type: application/octet-stream\r\n\r\n'
        + data
        + b"\r\n--BOUND--\r\n"
    )


UPLOAD = (
    b"POST /v1/files HTTP/1.1\r\n" + HOST + b"Content-Type: multipart/form-data; boundary=BOUND\r\n"
)


def stored(service: Service) -> set[str]:
    return {path.name for path in (service.state / "files").iterdir()}

"""What archives take while they are on their way: buffers of the server, and room on its disk."""

from __future__ import annotations

import contextlib
import gzip
import os
from collections.abc import Callable, Iterator

import pytest

from harness import eventually, settled
from http_client import BOUNDARY, FORM, Connection, Reply, ask
from keyed_live import KeyedLive
from live import Box
from live_files import tar_of

MB = 1 << 20
MOST = 128  # archives of a tenant at once
FILES_MB = 12
DISK_MB = 8
GOOD = tar_of({"f": b"x"})


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedLive]:
    more = ("--files-mb", str(FILES_MB))
    yield from settled(KeyedLive(tmp_path_factory.mktemp("archives"), *more))


def key(service: KeyedLive, number: int) -> dict[str, str]:
    return {"Authorization": f"Bearer {service.keys[number]}"}


def put(service: KeyedLive, number: int, box: Box, data: bytes = GOOD) -> Reply:
    return ask(service.port, "PUT", box.path + "/archive", data, key(service, number))


def get(service: KeyedLive, number: int, box: Box) -> Reply:
    return ask(service.port, "GET", box.path + "/archive", None, key(service, number))


def code_of(reply: Reply) -> tuple[int, str]:
    return reply.status, reply.json["error"]["code"] if reply.status >= 300 else ""


def begin(service: KeyedLive, box: Box, data: bytes) -> Connection:
    """Alice's upload, of which the last part never comes."""
    connection = Connection(service.port)
    headers = key(service, 0) | {"Transfer-Encoding": "chunked"}
    connection.send("PUT", box.path + "/archive", None, headers)
    with contextlib.suppress(OSError):  # it may be refused before its end
        connection.sock.sendall(b"%x\r\n%s\r\n" % (len(data), data))
    return connection


def test_a_tenant_has_so_many_archives_at_once(service: KeyedLive) -> None:
    with service.client(0).box() as own, service.client(1).box() as other:
        with contextlib.ExitStack() as stack:
            for _ in range(MOST):
                stack.enter_context(begin(service, own, GOOD[:10]))

            def refused(ask_for: Callable[[KeyedLive, int, Box], Reply]) -> Reply | None:
                reply = ask_for(service, 0, own)
                if reply.status == 429:
                    return reply
                # This had a place for a moment, for want of which one of those above got none.
                stack.enter_context(begin(service, own, GOOD[:10]))
                return None

            assert eventually(lambda: refused(put) and refused(get)), "no more for alice"
            replies = [eventually(lambda: refused(put)), eventually(lambda: refused(get))]
            for reply in replies:
                assert code_of(reply) == (429, "too_many_archives")
                assert int(reply.header("Retry-After") or 0) > 0
            assert put(service, 1, other).status == 200, "bob has his own"
        assert eventually(lambda: put(service, 0, own).status == 200), "they are given back"


def test_archives_on_their_way_to_one_sandbox_fit_its_disk_together(service: KeyedLive) -> None:
    with service.client(0).box(limits={"disk_mb": DISK_MB}) as box:
        part = os.urandom(DISK_MB * MB * 5 // 8)
        with contextlib.ExitStack() as stack:
            stack.enter_context(begin(service, box, part))
            assert eventually(lambda: put(service, 0, box, part).status == 507), "they count"
            reply = put(service, 0, box, part)
            assert code_of(reply) == (507, "disk_full")
            assert "on their way to this sandbox" in reply.json["error"]["message"]
        assert eventually(lambda: put(service, 0, box).status == 200), "they are given back"


def store(service: KeyedLive, number: int, size: int) -> Reply:
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n'
    body = head.encode() + bytes(size) + f"\r\n--{BOUNDARY}--\r\n".encode()
    return ask(service.port, "POST", "/v1/files", body, FORM | key(service, number))


def test_archives_on_their_way_count_as_stored_files_do(service: KeyedLive) -> None:
    """However many sandboxes they are for: the disk that the audit log is on stays free."""
    client = service.client(0)
    with client.box() as one, client.box() as two, contextlib.ExitStack() as stack:
        half = os.urandom((FILES_MB - 2) * MB // 2)
        stack.enter_context(begin(service, one, half))
        stack.enter_context(begin(service, two, half))
        assert eventually(lambda: store(service, 1, 3 * MB).status == 507), "they count"
        assert code_of(put(service, 0, one, half)) == (507, "disk_full")
        stack.close()
        assert eventually(lambda: store(service, 1, 3 * MB).status < 300), "they are given back"
        assert put(service, 0, one, gzip.compress(b"")).status == 422

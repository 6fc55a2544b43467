"""As in test_turns.py: archives of sandboxes, out and in, for many clients at once. They are packed
and unpacked beside the server's loop, and the sandbox pays for that."""

from __future__ import annotations

import contextlib
import gzip
import io
import tarfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import LiveService
from http_client import Connection, ask
from live import Box, Client
from test_live_talk import server_cpu_s
from turns import FEW_S, MB, Turns, tar_of

CLIENTS = 20
SIZE = 8 * MB
FILES = f"import os\nfor i in range(4): open(f'f{{i}}', 'wb').write(os.urandom({SIZE // 4}))"


@pytest.fixture
def box(live_service: LiveService) -> Iterator[Box]:
    client = Client(live_service.port)
    with client.box() as neighbour, client.box(limits={"disk_mb": 200}) as box:
        neighbour.run("mine = 1")
        yield box
        assert neighbour.text("mine") == "1"
    live_service.check_health()


def paid_s(box: Box) -> float:
    return float(box.get()["usage"]["cpu_ms"]) / 1000


def put(box: Box, data: bytes) -> int:
    return ask(box.port, "PUT", box.path + "/archive", data).status


def get(box: Box) -> int:
    with Connection(box.port) as connection:
        connection.send("GET", box.path + "/archive")
        reply = connection.head()
        assert sum(len(chunk) for chunk in connection.chunks()) > SIZE
        return reply.status


def of_members(data: bytes, size: int, between: bytes = b"") -> bytes:
    """A gzip of many that are so short."""
    pieces = (data[i : i + size] for i in range(0, len(data), size))
    return between.join(gzip.compress(piece, 1) for piece in pieces)


EMPTY = gzip.compress(b"")
COMES = tar_of(4 * MB)
BOMB = tar_of(400 * MB)
EMPTIES = of_members(gzip.decompress(tar_of(MB // 16)), 512, EMPTY * 1_500)
TINY = of_members(gzip.decompress(tar_of(MB // 16)), 1)
ONLY_EMPTIES = EMPTY * (4 * MB // len(EMPTY))

ASKS: dict[str, tuple[Callable[[Box], int], int]] = {
    "archives that go": (get, 200),
    "archives that come": (lambda box: put(box, COMES), 200),
    "archives that hold too much": (lambda box: put(box, BOMB), 507),
    "archives with pieces of nothing": (lambda box: put(box, EMPTIES), 200),
    "archives of nothing": (lambda box: put(box, ONLY_EMPTIES), 422),
    "archives in tiny pieces": (lambda box: put(box, TINY), 200),
}


PAID = ("archives that go", "archives that hold too much", "archives with pieces of nothing")


@pytest.mark.parametrize("what", ASKS)
def test_archives_for_many_take_no_long_turn(
    live_service: LiveService, box: Box, what: str
) -> None:
    send, status = ASKS[what]
    box.run(FILES)
    turns, used, paid = Turns(box.port), server_cpu_s(live_service), paid_s(box)
    with ThreadPoolExecutor(CLIENTS) as pool:
        assert set(pool.map(lambda _: send(box), range(CLIENTS))) == {status}
    used, paid = server_cpu_s(live_service) - used, paid_s(box) - paid
    assert turns.longest() <= FEW_S
    assert what not in PAID or paid > used / 2, (used, paid)


def with_headers(headers: dict[str, str], content: bytes = b"") -> bytes:
    """An archive of one file, of which a pax header says that."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", format=tarfile.PAX_FORMAT) as tar:
        info = tarfile.TarInfo("f")
        info.pax_headers, info.size = headers, len(content)
        tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def test_lists_of_access_rights_cost_no_more_than_their_bytes(
    live_service: LiveService, box: Box
) -> None:
    """166,000 of them in a header of a MB: whoever looks each one up among the others takes a
    minute, in a single call, which nothing can end."""
    rights = with_headers({"SCHILY.acl.access": "u:a:r," * 166_000})
    used = server_cpu_s(live_service)
    assert [put(box, rights) for _ in range(4)] == [200] * 4
    assert server_cpu_s(live_service) - used < 2


def test_maps_of_holes_are_refused_before_they_are_read(
    live_service: LiveService, box: Box
) -> None:
    """A few bytes for each piece in an archive, and many times as much in memory."""
    headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "9"}
    content = b"250000\n" + b"0\n1\n" * 250_000
    reply = ask(box.port, "PUT", box.path + "/archive", with_headers(headers, content))
    assert reply.status == 422 and reply.json["error"]["code"] == "bad_archive", reply
    assert "without --sparse" in reply.json["error"]["message"]


def test_archives_for_those_who_leave_take_no_long_turn(box: Box) -> None:
    """Hundreds of them are begun and left at once, again and again."""
    box.run(FILES)
    turns = Turns(box.port)
    for _ in range(5):
        with contextlib.ExitStack() as stack:
            for _ in range(200):
                connection = stack.enter_context(Connection(box.port))
                connection.send("GET", box.path + "/archive")
                assert connection.head().status in (200, 429, 503)  # these are many
    assert box.run("1")["status"] == "ok"
    assert turns.longest() <= FEW_S

"""Pages that the server wrote (an upload, a large request) are the server's. Nobody can hold them
after they are deleted: whatever a program still has of them is charged to its sandbox."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness import LiveService
from http_client import ask
from live import Box, Client
from test_live_hostile import TOOLS

MB = 1 << 20
SIZE = 32 * MB

PIN = """
import errno, os, socket
held, open_ends, pinned = [], [], 0

def room():
    if not open_ends:
        pair = socket.socketpair()
        for end in pair:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
            end.setblocking(False)
        held.append(pair)
        open_ends.extend(pair)
    return open_ends[-1].fileno()

def by_splice(fd, page):
    reader, writer = os.pipe()
    os.splice(fd, writer, 1, offset_src=page * 4096)
    held.append((reader, writer))

def by_splice_on(fd, page):
    reader, writer = os.pipe()
    try:
        os.splice(fd, writer, 1, offset_src=page * 4096)
        os.splice(reader, room(), 1, flags=2)
    finally:
        os.close(reader)
        os.close(writer)

def by_sendfile(fd, page):
    os.sendfile(room(), fd, page * 4096, 1)

def pin(fd, means):
    global pinned
    for page in range(os.fstat(fd).st_size // 4096):
        try:
            means(fd, page)
            pinned += 1
        except BlockingIOError:
            open_ends.pop()
        except OSError as error:
            if error.errno == errno.EMFILE: continue
            raise SystemExit(0) if pinned == 0 else error
    return pinned
"""
MEANS = ["by_splice", "by_splice_on", "by_sendfile"]

TAKES_REQUESTS = """
say(event('done', status='ok', execution_count=1))
while True:
    data, ends, _, _ = control.recvmsg(70000, socket.CMSG_SPACE(32 * 4))
    if not data: break
    fds = array.array('i')
    for _, _, value in ends: fds.frombytes(value[:len(value) // 4 * 4])
    size = struct.unpack('=I', data[4:8])[0]
    head = os.pread(fds[0], 4096, 0) if fds else data[8:8 + size]
    at = head.index(b'"id":"') + 6
    ident = head[at:head.index(b'"', at)].decode()
    if fds:
        try: pin(fds[0], MEANS)
        except (OSError, SystemExit): pass
    for fd in fds: os.close(fd)
    open('/workspace/pinned', 'w').write(str(pinned))
    say({'ev': 'done', 'id': ident, 'status': 'ok', 'execution_count': 1})
"""


@pytest.fixture
def box(live_service: LiveService) -> Iterator[Box]:
    if not live_service.own_cgroups():
        pytest.skip("no control groups here")
    limits = {"memory_mb": 256, "disk_mb": 64, "open_files": 1024}
    with Client(live_service.port).box(limits=limits) as made:
        yield made


def paid(box: Box) -> int:
    usage = box.get()["usage"]
    return int(usage["memory_bytes"]) + int(usage["disk_bytes"])


def judge(before: int, box: Box, pinned: int) -> None:
    assert paid(box) - before >= 0.8 * pinned * 4096, f"{pinned} pages are charged to nobody"


@pytest.mark.parametrize("means", MEANS)
def test_pages_of_an_upload_are_not_held(box: Box, means: str) -> None:
    box.run(PIN)
    before = paid(box)
    assert ask(box.port, "PUT", f"{box.path}/files/u", b"\1" * SIZE).status == 201
    box.run(f"f = os.open('u', os.O_RDONLY)\npin(f, {means})")
    box.run("os.close(f); os.unlink('u')")
    judge(before, box, int(box.text("pinned")))


@pytest.mark.parametrize("means", MEANS)
def test_pages_of_a_large_request_are_not_held(box: Box, means: str) -> None:
    """The kernel is taken over, and pins what it is lent before it says that it is done."""
    before = paid(box)
    box.run(TOOLS + PIN + TAKES_REQUESTS.replace("MEANS", means))
    for _ in range(3):
        box.run("#" + "\x01" * (8 * MB), timeout_ms=30000)
    pinned = box.get("/files/pinned")
    judge(before, box, int(pinned))

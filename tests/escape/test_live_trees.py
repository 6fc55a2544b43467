"""Trees that fight back: what a program does to its own files while the server lists, reads, writes
and packs them. Nothing outside of the workspace comes out or changes, nothing blocks, and whatever
is asked ends with an answer or a closed connection."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from typing import Any

import pytest

from harness import Service, eventually, turns
from http_client import Connection, ask, post
from live_box import BLOCK, Box, box_of
from raw_http import resident_mb

GROWTH_MB = 24.0


@pytest.fixture
def service(live_service: Service) -> Iterator[Service]:
    """Somebody else's sandbox lives through every test."""
    with box_of(live_service) as neighbour:
        neighbour.put("kept", b"kept")
        before = resident_mb(live_service)
        yield live_service
        assert neighbour.read("kept") == b"kept"
        assert neighbour.run("print(open('kept').read())") == "kept\n"
    if "asan" not in str(live_service.caller.command()[0]):
        assert resident_mb(live_service) - before < GROWTH_MB


@pytest.fixture
def box(service: Service) -> Iterator[Box]:
    with box_of(service) as one:
        yield one


SWAP = """
import ctypes, os
libc = ctypes.CDLL(None)
os.makedirs('real', exist_ok=True)
open('real/f', 'w').write('inside')
open('/tmp/f', 'w').write('SECRET')
os.symlink('/tmp', 'fake')
os.rename('real', 'p')
def step():  # p is now a directory, now a link that leads out
    libc.renameat2(-100, b'p', -100, b'fake', 2)
"""


def test_a_directory_that_is_swapped_for_a_link(box: Box) -> None:
    with box.running(SWAP):
        seen: set[int] = set()
        for i in turns(150, lambda: 200 in seen):
            seen.add(box.get("p/f").status)
            assert b"SECRET" not in box.get("p/f").body
            assert box.put(f"p/planted{i}", b"x").status in (201, 404, 409, 422)
            assert box.operate(f"p/made{i}", op="mkdir").status in (200, 404, 409, 422)
            box.delete("p/precious")
            listed = box.get("p", recursive=True)
            assert listed.status in (200, 404, 422)
            assert "SECRET" not in str(listed.body)
        assert 200 in seen
    ours = ("begun", "enough", ".local")
    look = f"import os; print(sorted(n for n in os.listdir('/tmp') if n not in {ours}))"
    assert box.run(look) == "['f']\n"
    assert box.run("print(open('/tmp/f').read())") == "SECRET\n"


def test_an_archive_of_a_tree_in_which_everything_is_swapped(box: Box) -> None:
    with box.running(SWAP):
        for _ in range(20):
            reply = box.archive()
            assert reply.status == 200
            with tarfile.open(fileobj=io.BytesIO(reply.body)) as tar:
                for member in tar.getmembers():
                    assert not member.name.startswith("/") and ".." not in member.name
                    if member.isfile():
                        data = tar.extractfile(member)
                        assert data is not None and b"SECRET" not in data.read()


def test_an_archive_unpacked_through_a_link_that_comes_and_goes(box: Box) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for i in range(20):
            tar.addfile(tarfile.TarInfo(f"planted{i}"))
    with box.running(SWAP):
        for _ in range(20):
            assert box.unpack("p", out.getvalue()).status in (200, 404, 409, 422)
    assert "planted" not in box.run("import os; print(os.listdir('/tmp'))")


ODD = """
import os, socket
os.mkfifo('fifo')
socket.socket(socket.AF_UNIX).bind('socket')
for n, t in (('loop', 'loop'), ('dev', '/dev/zero'), ('self', '/proc/self/mem'), ('up', '..')):
    os.symlink(t, n)
"""


@pytest.mark.parametrize("name", ["fifo", "socket", "loop", "dev", "self", "up"])
def test_what_is_no_file_is_not_opened(box: Box, name: str) -> None:
    box.run(ODD)
    assert box.get(name).status == 422
    assert box.get(f"{name}/x").status in (404, 422)
    assert ask(box.port, "HEAD", box.at(name)).status == 422
    assert box.put(f"{name}/x", b"x").status in (404, 409, 422)
    assert box.archive().status == 200
    assert name in box.paths()
    assert box.delete(name, recursive=True).status == 204


def test_a_lease_holds_nobody_up(box: Box) -> None:
    """The lease's holder ignores the signal; the kernel would let an opener wait for 45 s."""
    box.put("leased", b"old")
    told = box.run(
        "import fcntl, signal\nsignal.signal(signal.SIGIO, signal.SIG_IGN)\n"
        "held = open('leased', 'r+')\ntry:\n"
        "    fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_WRLCK)\n"
        "    print('leased')\nexcept OSError as e: print(e.errno)"
    )
    reply = box.get("leased")
    if told == "leased\n":
        assert (reply.status, reply.json["error"]["code"]) == (409, "path_busy")
    else:
        assert reply.body == b"old"
    assert box.archive().status == 200
    assert box.put("leased", b"new").status == 200
    assert box.read("leased") == b"new"


def test_a_file_that_is_cut_while_it_is_sent(service: Service) -> None:
    with box_of(service, limits={"disk_mb": 200}) as box:
        box.put("f", b"x" * (128 * BLOCK))
        with Connection(service.port) as slow:
            slow.send("GET", box.at("f"))
            assert slow.head().header("content-length") == str(128 * BLOCK)
            assert len(slow.file.read(BLOCK)) == BLOCK
            box.run("import os; os.truncate('f', 0)")
            rest = slow.file.read()
            assert len(rest) < 127 * BLOCK  # and then the connection was closed


def test_a_file_that_is_replaced_or_removed_while_it_is_sent(service: Service) -> None:
    with box_of(service, limits={"disk_mb": 200}) as box:
        box.put("f", b"x" * (64 * BLOCK))
        with Connection(service.port) as slow:
            slow.send("GET", box.at("f"))
            assert slow.head().status == 200
            box.run("import os; open('g', 'w').write('other'); os.rename('g', 'f'); os.unlink('f')")
            assert slow.file.read(64 * BLOCK) == b"x" * (64 * BLOCK)


def test_files_that_grow_and_shrink_while_they_are_packed(box: Box) -> None:
    code = (
        "import os, itertools\nfor i in range(20): open(f'f{i}', 'wb').write(b'x' * 100000)\n"
        "turn = itertools.count()\ndef step():\n"
        "    i = next(turn)\n    os.truncate(f'f{i % 20}', 0 if i % 40 < 20 else 100000)\n"
    )
    with box.running(code):
        for _ in range(10):
            with tarfile.open(fileobj=io.BytesIO(box.archive().body)) as tar:
                assert {m.name for m in tar.getmembers()} >= {f"f{i}" for i in range(20)}


def test_a_sparse_file_of_a_petabyte(box: Box) -> None:
    box.run("import os; open('huge', 'w').close(); os.truncate('huge', 1 << 50)")
    (entry,) = [e for e in box.get().json["entries"] if e["name"] == "huge"]
    assert entry["size_bytes"] == 1 << 50
    part = box.get("huge", {"Range": "bytes=-5"})
    assert (part.status, part.body) == (206, bytes(5))
    for what in ["files", "archive"]:
        with Connection(box.port) as impatient:
            path = "huge" if what == "files" else ""
            impatient.send("GET", box.at(path, what))
            assert impatient.head().status == 200
            assert len(impatient.file.read(1000)) == 1000
    usage = box.info()["usage"]["disk_bytes"]
    assert usage < 4 * BLOCK


def test_a_tree_deeper_than_any_path(box: Box) -> None:
    code = (
        "import os\nfor i in range(1500): os.mkdir('d' * 10); os.chdir('d' * 10)\nopen('f', 'w')\n"
    )
    box.run(code + "os.chdir('/workspace')", timeout_ms=60000)
    paths = box.paths(recursive=True, limit=10000)
    assert max(path.count("/") for path in paths) + 1 == 64
    with tarfile.open(fileobj=io.BytesIO(box.archive().body)) as tar:
        *there, told = tar.getmembers()
        assert len(there) == 64 and told.name == "cloche-left-out.txt"
        text = tar.extractfile(told)
        assert text and text.read().decode() == "/".join(["d" * 10] * 64) + "\n"
    assert box.delete("d" * 10, recursive=True).status == 204
    assert box.paths() == []


DEEP = "a/" * 64 + "f"  # one too many


def tar_of(*names: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", format=tarfile.GNU_FORMAT) as tar:
        for name in names:
            tar.addfile(tarfile.TarInfo(name))
    return out.getvalue()


def test_paths_have_a_bounded_depth(box: Box) -> None:
    """Each name on the way costs time that no sandbox pays for."""
    bound = "at most 64 components"
    for path in (DEEP, "a/" * 2000 + "f"):
        files = [{"path": path, "content": ""}]
        reply = post(box.port, "/v1/execute", {"code": "1", "files": files})
        assert reply.status == 422 and bound in reply.body.decode(), reply
        assert "a/a/a" in reply.body.decode()
        reply = post(box.port, "/v1/sandboxes", {"profile": "base", "files": files})
        assert reply.status == 422 and bound in reply.body.decode(), reply
        for reply in (box.put(path, b""), box.operate("x", op="move", to=path)):
            assert reply.status == 422 and bound in reply.body.decode(), reply
        reply = box.unpack("", tar_of("first", path))
        assert reply.status == 422 and reply.json["error"]["code"] == "bad_archive", reply
    assert box.unpack("b", tar_of(DEEP[2:])).status == 422, "what is above it counts"
    assert box.paths() == []
    assert box.put(DEEP[2:], b"x").status == 201
    assert box.unpack("", tar_of(DEEP[2:])).status == 200
    assert box.read(DEEP[2:]) == b""


def test_a_tree_that_grows_while_it_is_removed(box: Box) -> None:
    code = (
        "import os, itertools\nturn = itertools.count()\ndef step():\n"
        "    try:\n        os.makedirs('d/a/b', exist_ok=True)\n"
        "        open(f'd/a/b/{next(turn) % 100}', 'w').close()\n"
        "    except OSError: pass\n"
    )
    with box.running(code):
        for _ in range(50):
            reply = box.delete("d", recursive=True)
            assert reply.status in (204, 404, 409), reply.body
    assert box.delete("d", recursive=True).status in (204, 404)
    assert box.paths(recursive=True) == []


def test_names_of_all_bytes(box: Box) -> None:
    box.run(
        "import os\nfor i in range(1, 256):\n"
        "    if i not in (46, 47): open(bytes([i]) + b'-', 'wb').write(bytes([i]))"
    )
    entries = box.get().json["entries"]
    assert len(entries) == 253
    assert sum("path_encoded" in e for e in entries) == 128
    for i in range(128, 256):
        assert box.get(bytes([i]) + b"-").body == bytes([i])
    with tarfile.open(fileobj=io.BytesIO(box.archive().body)) as tar:
        assert len(tar.getnames()) == 253
    seen = 0
    query: dict[str, Any] = {}
    while True:
        listing = box.get(limit=10, **query).json
        seen += len(listing["entries"])
        if listing["next"] is None:
            break
        query = {"after": listing["next"]}
    assert seen == 253


def test_clients_who_leave_in_the_middle_of_everything(box: Box) -> None:
    box.put("f", b"x" * (32 * BLOCK))
    for _ in range(20):
        for method, path, what in [("GET", "f", "files"), ("GET", "", "archive")]:
            with Connection(box.port) as gone:
                gone.send(method, box.at(path, what))
        for path, what in [("g", "files"), ("", "archive")]:
            with Connection(box.port) as gone:
                gone.send("PUT", box.at(path, what), None, {"Content-Length": "100000"})
                gone.sock.sendall(b"x" * 50000)
    box.put("last", b"x")
    assert eventually(lambda: box.paths() == ["f", "last"])


def test_many_uploads_that_stand_still(box: Box) -> None:
    """Each holds a file without a name; all of them go with their clients."""
    before = box.info()["usage"]["files"]
    clients = [Connection(box.port) for _ in range(60)]
    for client in clients:
        client.send("PUT", box.at("f"), None, {"Content-Length": "1000"})
        client.sock.sendall(b"x")
    assert eventually(lambda: box.info()["usage"]["files"] == before + 60)
    assert box.put("g", b"y").status == 201
    for client in clients:
        client.close()
    assert eventually(lambda: box.info()["usage"]["files"] == before + 1)

"""Files of live sandboxes: one file in and out, names and paths, parts of it, the quota."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Any

import pytest

from harness import Service, eventually
from http_client import JSON, Connection, ask
from live_box import BLOCK, Box, box_of, send_chunks
from live_files import GROWTH_MB, code_of, disk, tar_of
from raw_http import resident_mb


@pytest.fixture
def service(live_service: Service) -> Service:
    return live_service


@pytest.fixture
def box(service: Service) -> Iterator[Box]:
    with box_of(service) as one:
        yield one


# ---- one file ----


def test_a_file_goes_in_and_out_and_the_program_sees_it(box: Box) -> None:
    reply = box.put("data/in.txt", b"hello")
    assert (reply.status, reply.json) == (201, {"path": "data/in.txt", "size_bytes": 5})
    assert box.run("print(open('data/in.txt').read())") == "hello\n"
    box.run("open('data/out.bin', 'wb').write(bytes(range(256)))")
    assert box.read("data/out.bin") == bytes(range(256))


@pytest.mark.parametrize("seconds", [2**63 - 1, 2**62, 253402300800, -1, -(2**63)])
def test_times_that_no_date_can_tell(box: Box, seconds: int) -> None:
    """tmpfs keeps any; utime(2) takes what Python's os.utime does not."""
    box.run(
        "import ctypes, struct\nopen('old', 'w').close()\n"
        f"times = struct.pack('qqqq', 1, 0, {seconds}, 999999999)\n"
        "assert ctypes.CDLL(None).utimensat(-100, b'old', times, 0) == 0"
    )
    reply = box.get("old")
    date = reply.header("Last-Modified")
    assert reply.status == 200
    assert date is None or re.fullmatch(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT", date)
    (entry,) = box.get("").json["entries"]
    assert 0 <= entry["modified"] < 9.3e9


def test_a_second_upload_replaces_the_first(box: Box) -> None:
    assert box.put("f", b"one").status == 201
    assert box.put("f", b"other").status == 200
    assert box.read("f") == b"other"
    box.run("open('f', 'a').write('!')")  # it belongs to the program's user
    assert box.read("f") == b"other!"


def test_an_upload_may_be_empty(box: Box) -> None:
    assert box.put("empty", b"").json["size_bytes"] == 0
    assert box.read("empty") == b""


@pytest.mark.parametrize("mode", ["0755", "600"])
def test_an_upload_has_the_mode_it_asks_for(box: Box, mode: str) -> None:
    assert box.put("f", b"x", mode=mode).status == 201
    assert box.run("import os; print(oct(os.stat('f').st_mode & 0o7777))") == f"0o{int(mode)}\n"


@pytest.mark.parametrize("mode", ["4755", "0888", "rwx", "", "07777"])
def test_a_mode_that_is_none_is_refused(box: Box, mode: str) -> None:
    reply = box.put("f", b"x", mode=mode)
    assert code_of(reply) == (422, "bad_value")
    assert mode in reply.json["error"]["message"]
    assert box.get("f").status == 404


@pytest.mark.parametrize(
    "header, value",
    [
        ("Content-Range", "bytes 5-10/11"),
        ("If-Match", '"other"'),
        ("If-None-Match", "*"),
        ("If-Unmodified-Since", "Thu, 01 Jan 1970 00:00:00 GMT"),
    ],
)
def test_a_part_or_a_condition_replaces_nothing(box: Box, header: str, value: str) -> None:
    assert box.put("f", b"what is there").status == 201
    reply = ask(box.port, "PUT", box.at("f"), b"tail", {header: value})
    assert code_of(reply) == (400, "bad_header") and header in reply.json["error"]["message"]
    assert box.read("f") == b"what is there"


NAMES = ["with space", "grün 文.txt", "a+b&c=d?e#f", "%41", "'\"\\", "x" * 255, "...", "-rf"]


@pytest.mark.parametrize("name", NAMES)
def test_any_name_will_do(box: Box, name: str) -> None:
    assert box.put(name, b"x").json["path"] == name
    assert box.paths() == [name]
    assert box.read(name) == b"x"
    assert box.delete(name).status == 204
    assert box.paths() == []


def test_a_name_that_is_not_utf8_is_told_as_a_url(box: Box) -> None:
    assert box.put(b"d/caf\xe9", b"x").status == 201
    (entry,) = box.get("d").json["entries"]
    assert (entry["name"], entry["path_encoded"]) == ("caf�", "d/caf%E9")
    url = f"{box.url}/files/{entry['path_encoded']}"
    assert ask(box.port, "GET", url).body == b"x"
    assert "path_encoded" not in box.get().json["entries"][-1]


def test_names_that_no_url_can_hold_are_listed(box: Box) -> None:
    box.run("open('a\\nb', 'w').close()")
    assert box.paths() == ["a\nb"]
    assert box.get("a\nb").status == 400
    assert box.delete("a\nb").status == 400


PATHS = ["..", "../x", "a/../../x", "a/..", "/etc/passwd", "//x"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "POST"])
def test_paths_that_lead_elsewhere_are_refused(box: Box, method: str, path: str) -> None:
    body = {"PUT": b"x", "POST": b'{"op": "mkdir"}'}.get(method)
    headers = JSON if method == "POST" else {}
    assert code_of(ask(box.port, method, box.at(path), body, headers)) == (422, "bad_path")
    encoded = box.at(path).replace(".", "%2e")
    assert code_of(ask(box.port, method, encoded, body, headers)) == (422, "bad_path")


def test_names_and_paths_that_are_too_long_are_refused(box: Box) -> None:
    reply = box.put("x" * 256, b"")
    assert code_of(reply) == (422, "bad_path")
    assert reply.json["error"]["message"].endswith("...: File name too long")
    longest = "/".join(["d" * 255] * 15 + ["f" * 255])
    assert len(longest) == 4095
    assert box.put(longest, b"deep").status == 201
    assert box.read(longest) == b"deep"
    assert box.paths(recursive=True)[-1] == longest
    assert code_of(box.put(longest + "x", b"")) == (422, "bad_path")
    assert box.delete("d" * 255, recursive=True).status == 204


def test_what_is_not_there_is_a_404(box: Box) -> None:
    box.put("file", b"x")
    for path in ["none", "none/none", "file/none"]:
        assert code_of(box.get(path)) == (404, "no_such_path")
        assert code_of(box.delete(path)) == (404, "no_such_path")
        assert code_of(box.operate(path, op="chmod", mode="600")) == (404, "no_such_path")
        assert code_of(box.operate(path, op="move", to="x")) == (404, "no_such_path")


def test_what_is_in_the_way_is_a_409(box: Box) -> None:
    box.put("file", b"x")
    box.operate("dir", op="mkdir")
    for path in ["dir", "file/below"]:
        reply = box.put(path, b"y")
        assert code_of(reply) == (409, "path_taken")
    assert code_of(box.put("", b"y")) == (422, "bad_path")
    assert box.read("file") == b"x"


def test_a_link_is_not_followed_but_on_the_way(box: Box) -> None:
    box.run(
        "import os; os.mkdir('d'); open('d/f', 'w').write('x'); os.symlink('d', 'way');"
        "os.symlink('d/f', 'end'); os.symlink('/etc', 'out'); os.symlink('none', 'loose')"
    )
    assert box.read("way/f") == b"x"
    for path in ["end", "way", "loose", "out/passwd"]:
        assert code_of(box.get(path)) == (422, "bad_path")
    targets = {e["name"]: e.get("target") for e in box.get().json["entries"]}
    assert targets["end"] == "d/f" and targets["out"] == "/etc" and targets["d"] is None
    assert box.put("end", b"a file now").status == 200
    assert box.read("d/f") == b"x"
    assert box.delete("out", recursive=True).status == 204


# ---- downloads ----


def test_parts_and_versions_of_a_file(box: Box) -> None:
    box.put("f", b"0123456789")
    whole = box.get("f")
    tag, date = whole.header("etag"), whole.header("last-modified")
    assert tag and date and whole.header("accept-ranges") == "bytes"
    part = box.get("f", {"Range": "bytes=2-4"})
    assert (part.status, part.body) == (206, b"234")
    assert part.header("content-range") == "bytes 2-4/10"
    assert box.get("f", {"Range": "bytes=-3"}).body == b"789"
    assert code_of(box.get("f", {"Range": "bytes=10-"})) == (416, "bad_range")
    assert box.get("f", {"If-None-Match": tag}).status == 304
    assert box.get("f", {"If-Modified-Since": date}).status == 304
    assert box.get("f", {"Range": "bytes=2-4", "If-Range": tag}).status == 206
    head = ask(box.port, "HEAD", box.at("f"))
    assert (head.status, head.header("content-length"), head.body) == (200, "10", b"")
    assert head.header("etag") == tag


def test_a_changed_file_has_another_tag(box: Box) -> None:
    box.put("f", b"0123456789")
    tag = box.get("f").header("etag") or ""
    box.run("import os; s = os.stat('f'); open('f', 'r+').write('X')\nos.utime('f', ns=(0, 0))")
    again = box.get("f", {"If-None-Match": tag})
    assert (again.status, again.body) == (200, b"X123456789")
    assert again.header("last-modified") == "Thu, 01 Jan 1970 00:00:00 GMT"
    whole = box.get("f", {"Range": "bytes=2-4", "If-Range": tag})
    assert (whole.status, whole.body) == (200, b"X123456789")


def test_large_files_stream_both_ways(service: Service) -> None:
    """Hundreds of megabytes pass through, and the server grows by none of them."""
    blocks = [hashlib.sha256(bytes([i])).digest() * (BLOCK // 32) for i in range(7)]
    count = 300
    digest = hashlib.sha256()
    for i in range(count):
        digest.update(blocks[i % 7])
    with box_of(service, limits={"disk_mb": 400}) as box:
        before = resident_mb(service)
        with Connection(service.port) as connection:
            reply = send_chunks(connection, box.at("big"), (blocks[i % 7] for i in range(count)))
        assert (reply.status, reply.json["size_bytes"]) == (201, count * BLOCK)
        assert resident_mb(service) - before < GROWTH_MB
        with Connection(service.port) as connection:
            connection.send("GET", box.at("big"))
            assert connection.head().header("content-length") == str(count * BLOCK)
            got = hashlib.sha256()
            for _ in range(count):
                got.update(connection.file.read(BLOCK))
        assert got.digest() == digest.digest()
        assert resident_mb(service) - before < GROWTH_MB
        code = "import hashlib; print(hashlib.sha256(open('big', 'rb').read()).hexdigest())"
        assert box.run(code, timeout_ms=60000) == digest.hexdigest() + "\n"
        tail = box.get("big", {"Range": f"bytes={count * BLOCK - 10}-"})
        assert tail.body == blocks[(count - 1) % 7][-10:]


# ---- the quota ----


@pytest.mark.parametrize("chunked", [False, True])
def test_a_full_disk_is_a_507_and_what_was_there_stays(service: Service, chunked: bool) -> None:
    with box_of(service, limits={"disk_mb": 8}) as box:
        box.put("f", b"precious")
        before = disk(box)
        data = b"x" * (16 * BLOCK)
        if chunked:
            with Connection(service.port) as connection:
                reply = send_chunks(connection, box.at("f"), iter([data]))
        else:
            reply = box.put("f", data)
        assert code_of(reply) == (507, "disk_full")
        assert box.read("f") == b"precious"
        assert eventually(lambda: disk(box) == before)
        assert box.put("f", b"y" * (4 * BLOCK)).status == 200


def test_a_disk_that_the_program_filled(service: Service) -> None:
    with box_of(service, limits={"disk_mb": 8}) as box:
        box.put("f", b"precious")
        assert "28" in box.run(
            "try:\n    with open('full', 'wb', 0) as f:\n"
            "        while True: f.write(bytes(65536))\n"
            "except OSError as e: print(e.errno)"
        )
        assert code_of(box.put("f", b"x" * 65536)) == (507, "disk_full")
        assert code_of(box.unpack("", tar_of({"f": b"x" * 65536}))) == (507, "disk_full")
        assert box.read("f") == b"precious"
        assert box.delete("full").status == 204
        assert box.put("f", b"x").status == 200


def test_files_are_counted_too(box: Box) -> None:
    box.put("f", b"precious")
    made = box.run(
        "import os\nos.mkdir('many')\nn = 0\ntry:\n    while True:\n"
        "        os.close(os.open(f'many/{n}', os.O_CREAT)); n += 1\n"
        "except OSError as e: print(e.errno, n)",
        timeout_ms=60000,
    )
    assert made.startswith("28 ")
    assert code_of(box.put("g", b"x")) == (507, "disk_full")
    assert code_of(box.operate("d", op="mkdir")) == (507, "disk_full")
    assert box.read("f") == b"precious"
    seen: list[str] = []
    query: dict[str, Any] = {}
    while True:
        listing = box.get("many", limit=10000, **query).json
        seen += [e["name"] for e in listing["entries"]]
        if listing["next"] is None:
            break
        query = {"after": listing["next"]}
    assert sorted(seen, key=int) == [str(i) for i in range(int(made.split()[1]))]
    assert box.delete("many", recursive=True).status == 204
    assert box.put("g", b"x").status == 201

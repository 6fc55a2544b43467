"""The dialect ipybox: files and directories of the default sandbox, in its words."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from harness import LiveService
from http_client import Connection, ask, get
from ipybox import default_of, detail, put, run, serving, unpack
from live_files import tar_of
from raw_http import resident_mb


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    yield from serving(tmp_path_factory.mktemp("ipybox"))


# ---------------------------------------------------------------------------- files


def test_a_file_is_the_workspaces_and_apps(box: LiveService) -> None:
    reply = put(box, "in/new.txt", b"hello")
    assert (reply.status, reply.json) == (200, {"message": "File uploaded to in/new.txt"})
    assert run(box, "print(open('in/new.txt').read(), open('/app/in/new.txt').read())") == (
        "hello hello\n"
    )
    assert put(box, "in/new.txt", b"other").status == 200
    assert get(box.port, "/files/in/new.txt").body == b"other"


@pytest.mark.parametrize(
    "name, kind",
    [
        ("a.csv", "text/csv"),
        ("plot.PNG", "image/png"),
        ("m.py", "text/x-python"),
        ("data.json", "application/json"),
        ("noend", "application/octet-stream"),
        ("odd.xyz123", "application/octet-stream"),
        ("dir.csv/plain", "application/octet-stream"),
    ],
)
def test_a_download_has_its_type_and_name(box: LiveService, name: str, kind: str) -> None:
    put(box, f"types/{name}", b"x")
    reply = get(box.port, f"/files/types/{name}")
    assert reply.status == 200 and reply.header("content-type") == kind
    base = name.rpartition("/")[2]
    assert reply.header("content-disposition") == f'attachment; filename="{base}"'
    assert reply.header("x-content-type-options") == "nosniff"


def test_parts_of_a_file_can_be_asked_for(box: LiveService) -> None:
    put(box, "part.bin", bytes(range(100)))
    reply = get(box.port, "/files/part.bin", Range="bytes=10-19")
    assert (reply.status, reply.body) == (206, bytes(range(10, 20)))


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_what_is_no_file_is_not_found(box: LiveService, method: str) -> None:
    put(box, "adir/inner.txt", b"x")
    for path in ("nothing.txt", "adir", "adir/inner.txt/below", "", "adir/"):
        detail(ask(box.port, method, f"/files/{path}"), 404, "File not found")
    assert get(box.port, "/files/adir/inner.txt").status == 200


@pytest.mark.parametrize(
    "path", ["%2e%2e/x", "a/%2e%2e/%2e%2e/x", "..%2f..%2fetc%2fpasswd", "%2fetc"]
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_a_path_out_of_the_workspace_is_refused(box: LiveService, method: str, path: str) -> None:
    body = b"x" if method == "POST" else None
    reply = ask(box.port, method, f"/files/{path}", body)
    detail(reply, 400, "Invalid path: escapes root directory")
    if method != "DELETE":
        reply = ask(box.port, method, f"/directories/{path}", tar_of({}) if body else None)
        detail(reply, 400, "Invalid path: escapes root directory")


def test_links_do_not_lead_out(box: LiveService) -> None:
    run(
        box,
        "import os\nfor name, to in (('up', '..'), ('abs', '/etc'), ('file', '/etc/passwd')):\n"
        "    if not os.path.lexists(name): os.symlink(to, name)",
    )
    for path in ("up/etc/passwd", "abs/passwd", "file"):
        reply = get(box.port, f"/files/{path}")
        assert reply.status == 400 and reply.json["detail"].startswith("Invalid path"), reply
        assert put(box, path, b"mine").status in (200, 400)
    assert run(box, "print('root:' in open('/etc/passwd').read())") == "True\n"


def test_an_upload_over_a_directory_changes_nothing(box: LiveService) -> None:
    put(box, "taken/inner.txt", b"x")
    reply = put(box, "taken", b"y")
    assert reply.status == 409 and reply.json["detail"], reply
    assert put(box, "taken/inner.txt/below", b"y").status == 409
    assert get(box.port, "/files/taken/inner.txt").body == b"x"


def test_names_of_all_kinds_go_in_and_out(box: LiveService) -> None:
    for name in ("sp ace.txt", "ünï/cødé", "per%cent", "a+b&c=d?e"):
        assert put(box, name, name.encode()).status == 200
        assert get(box.port, f"/files/{quote(name)}").body == name.encode()


@pytest.mark.parametrize("query", ["mode=x", "mode=000", "recursive=x&limit=x&after=x", "a&=&a=1"])
def test_words_of_a_query_are_passed_over(box: LiveService, query: str) -> None:
    assert ask(box.port, "POST", f"/files/words.txt?{query}", b"x").status == 200
    assert get(box.port, f"/files/words.txt?{query}").body == b"x"
    assert ask(box.port, "DELETE", f"/files/words.txt?{query}").status == 204


def test_a_large_file_streams_both_ways(box: LiveService) -> None:
    default_of(box)
    size, block = 40, os.urandom(1 << 20)
    before = resident_mb(box)
    with Connection(box.port) as connection:
        connection.send("POST", "/files/large.bin", None, {"Transfer-Encoding": "chunked"})
        for _ in range(size):
            connection.sock.sendall(b"%x\r\n%s\r\n" % (len(block), block))
        connection.sock.sendall(b"0\r\n\r\n")
        assert connection.reply("POST").status == 200
    got = get(box.port, "/files/large.bin").body
    assert got == block * size
    assert resident_mb(box) - before < 16.0
    assert ask(box.port, "DELETE", "/files/large.bin").status == 204


def test_more_than_the_disk_holds_is_refused_and_leaves_nothing(box: LiveService) -> None:
    reply = put(box, "huge.bin", b"x" * (80 << 20))
    assert reply.status == 507 and "disk" in reply.json["error"]["remediation"], reply
    detail(get(box.port, "/files/huge.bin"), 404, "File not found")


# ---------------------------------------------------------------------------- directories


def test_an_uploaded_directory_is_merged_into_what_is_there(box: LiveService) -> None:
    put(box, "merge/old.txt", b"old")
    put(box, "merge/both.txt", b"old")
    data = tar_of({"both.txt": b"new", "sub/new.txt": b"new"})
    reply = ask(box.port, "POST", "/directories/merge", data)
    assert (reply.status, reply.json) == (200, {"message": "Directory uploaded to merge"})
    reply = get(box.port, "/directories/merge")
    assert reply.status == 200 and reply.header("content-type") == "application/x-gzip"
    assert reply.header("content-disposition") == 'attachment; filename="merge.tar.gz"'
    assert unpack(reply.body) == {"old.txt": b"old", "both.txt": b"new", "sub/new.txt": b"new"}


def test_only_regular_files_are_in_a_downloaded_directory(box: LiveService) -> None:
    run(
        box,
        "import os, shutil\nshutil.rmtree('odd', True)\nos.makedirs('odd/empty')\n"
        "os.symlink('/etc/passwd', 'odd/link')\nos.mkfifo('odd/fifo')\n"
        "open('odd/file', 'w').write('x')",
    )
    assert unpack(get(box.port, "/directories/odd").body) == {"file": b"x"}
    assert unpack(get(box.port, "/directories/odd/empty").body) == {}


def test_what_is_no_directory_is_not_found(box: LiveService) -> None:
    put(box, "afile", b"x")
    for path in ("nowhere", "afile"):
        detail(get(box.port, f"/directories/{path}"), 404, "Directory not found")


@pytest.mark.parametrize("member", ["../up.txt", "/abs.txt", "a/../../up.txt"])
def test_a_member_that_escapes_spoils_the_whole(box: LiveService, member: str) -> None:
    data = tar_of({"good.txt": b"x", member: b"bad"})
    reply = ask(box.port, "POST", "/directories/refused", data)
    assert reply.status == 400 and reply.json["detail"].startswith("Invalid tar member: "), reply
    assert member in reply.json["detail"]
    detail(get(box.port, "/files/refused/good.txt"), 404, "File not found")


@pytest.mark.parametrize(
    "data",
    [b"no gzip at all", gzip.compress(b"no tar at all" * 100), tar_of({"a": b"x" * 9999})[:60]],
    ids=["no gzip", "no tar", "half"],
)
def test_what_is_no_archive_is_a_bad_request(box: LiveService, data: bytes) -> None:
    reply = ask(box.port, "POST", "/directories/broken", data)
    assert reply.status == 400 and reply.json["detail"].startswith("Invalid archive: "), reply
    detail(get(box.port, "/directories/broken"), 404, "Directory not found")

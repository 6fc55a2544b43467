"""ipybox's resource server (contract 4 §2): files, directories and modules of the tenant's default
sandbox, in its words; by a client like its own, and by hand."""

from __future__ import annotations

import asyncio
import gzip
import io
import os
import tarfile
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import pytest

from family import Family, kill, one
from harness import LiveService, eventually
from host import is_alive
from http_client import Connection, Reply, ask, get
from live import Client
from raw_http import KeyedService, resident_mb

aiohttp = pytest.importorskip("aiohttp")
T = TypeVar("T")


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    options = ("--profiles", "base", "--live-disk-mb", "64")
    service = LiveService(tmp_path_factory.mktemp("ipybox"), *options)
    try:
        service.settle()
        yield service
        end_all(service)
        service.check_no_leak()
        service.stop()
    finally:
        service.kill()


def end_all(service: LiveService) -> None:
    for found in get(service.port, "/v1/sandboxes").json["sandboxes"]:
        assert ask(service.port, "DELETE", f"/v1/sandboxes/{found['id']}").status == 204


def default_of(service: LiveService) -> str:
    """The id of the default sandbox, which is there."""
    get(service.port, "/files/none")
    boxes = get(service.port, "/v1/sandboxes").json["sandboxes"]
    assert len(boxes) == 1, boxes
    return str(boxes[0]["id"])


def put(service: LiveService, path: str, data: bytes, **headers: str) -> Reply:
    return ask(service.port, "POST", f"/files/{quote(path)}", data, headers)


def run(service: LiveService, code: str) -> str:
    """Code in the default sandbox's default kernel."""
    reply = Client(service.port).ask(
        "POST", f"/v1/sandboxes/{default_of(service)}/execute", {"code": code}
    )
    assert reply.status == 200 and reply.json["status"] == "ok", reply
    return str(reply.json["stdout"])


def detail(reply: Reply, status: int, text: str) -> None:
    """An error of the contract's, with ours beside it."""
    assert reply.status == status, reply
    assert reply.json["detail"] == text, reply.json
    assert reply.json["error"]["code"] and reply.json["error"]["remediation"], reply.json


def pack(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def unpack(data: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as tar:
        assert all(member.isreg() for member in tar.getmembers())
        found = {member.name: tar.extractfile(member) for member in tar.getmembers()}
        return {name: file.read() for name, file in found.items() if file}


# ---------------------------------------------------------------------------- a client like its own


class ResourceClient:
    """The calls of ipybox's ResourceClient, from the contract."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    async def __aenter__(self) -> ResourceClient:
        self.session = aiohttp.ClientSession()
        async with self.session.get(f"{self.url}/status") as reply:
            reply.raise_for_status()
            assert await reply.json() == {"status": "ok"}
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.session.close()

    async def get_module_sources(self, names: list[str]) -> Any:
        query = [("q", name) for name in names]
        async with self.session.get(f"{self.url}/modules", params=query) as reply:
            reply.raise_for_status()
            return await reply.json()

    async def upload_file(self, relpath: str, local: Path) -> None:
        async with self.session.post(f"{self.url}/files/{relpath}", data=local.open("rb")) as reply:
            reply.raise_for_status()

    async def download_file(self, relpath: str, local: Path) -> None:
        async with self.session.get(f"{self.url}/files/{relpath}") as reply:
            reply.raise_for_status()
            local.parent.mkdir(parents=True, exist_ok=True)
            with local.open("wb") as out:
                async for chunk in reply.content.iter_chunked(8192):
                    out.write(chunk)

    async def delete_file(self, relpath: str) -> None:
        async with self.session.delete(f"{self.url}/files/{relpath}") as reply:
            reply.raise_for_status()

    async def upload_directory(self, relpath: str, local: Path) -> None:
        with io.BytesIO() as out:
            with tarfile.open(fileobj=out, mode="w:gz") as tar:
                for path in local.rglob("*"):
                    tar.add(path, arcname=path.relative_to(local), recursive=False)
            data = out.getvalue()
        headers = {"Content-Type": "application/gzip"}
        url = f"{self.url}/directories/{relpath}"
        async with self.session.post(url, data=data, headers=headers) as reply:
            reply.raise_for_status()

    async def download_directory(self, relpath: str, local: Path) -> None:
        async with self.session.get(f"{self.url}/directories/{relpath}") as reply:
            reply.raise_for_status()
            for name, data in unpack(await reply.read()).items():
                (local / name).parent.mkdir(parents=True, exist_ok=True)
                (local / name).write_bytes(data)


def with_client(service: LiveService, use: Callable[[ResourceClient], Awaitable[T]]) -> T:
    async def go() -> T:
        async with ResourceClient(service.port) as client:
            return await use(client)

    return asyncio.run(go())


def test_files_go_in_and_out_by_its_client(box: LiveService, tmp_path: Path) -> None:
    source, target = tmp_path / "a.bin", tmp_path / "out" / "b.bin"
    source.write_bytes(os.urandom(1 << 20))

    async def use(client: ResourceClient) -> None:
        await client.upload_file("some/dir/a.bin", source)
        await client.download_file("some/dir/a.bin", target)
        await client.delete_file("some/dir/a.bin")
        with pytest.raises(aiohttp.ClientResponseError) as gone:
            await client.download_file("some/dir/a.bin", target)
        assert gone.value.status == 404
        with pytest.raises(aiohttp.ClientResponseError) as twice:
            await client.delete_file("some/dir/a.bin")
        assert twice.value.status == 404

    with_client(box, use)
    assert target.read_bytes() == source.read_bytes()


def test_directories_go_in_and_out_by_its_client(box: LiveService, tmp_path: Path) -> None:
    files = {"a.txt": b"a", "sub/b.txt": b"b" * 100_000, "sub/deep/c": b""}
    for name, data in files.items():
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_bytes(data)

    async def use(client: ResourceClient) -> None:
        await client.upload_directory("tree", tmp_path / "in")
        await client.download_directory("tree", tmp_path / "out")
        with pytest.raises(aiohttp.ClientResponseError) as none:
            await client.download_directory("no-tree", tmp_path / "out")
        assert none.value.status == 404

    with_client(box, use)
    found = {str(p.relative_to(tmp_path / "out")): p for p in (tmp_path / "out").rglob("*")}
    assert {n: p.read_bytes() for n, p in found.items() if p.is_file()} == files


def test_modules_are_told_to_its_client(box: LiveService) -> None:
    put(box, "mine/__init__.py", b"WHO = 'package'\n")
    put(box, "mine/inner.py", b"def f():\n    return 1\n")

    async def use(client: ResourceClient) -> Any:
        with pytest.raises(aiohttp.ClientResponseError) as none:
            await client.get_module_sources(["mine", "no.such"])
        assert none.value.status == 404
        return await client.get_module_sources(["mine", "mine.inner", "json.decoder"])

    found = with_client(box, use)
    assert list(found) == ["mine", "mine.inner", "json.decoder"]
    assert found["mine"] == "WHO = 'package'\n" and "def f" in found["mine.inner"]
    assert "class JSONDecoder" in found["json.decoder"]


# ---------------------------------------------------------------------------- status


@pytest.mark.parametrize("path", ["/status", "/status/"])
def test_status_is_ok_and_makes_nothing(start_live: Any, path: str) -> None:
    service = start_live("--profiles", "base")
    reply = get(service.port, path)
    assert (reply.status, reply.json) == (200, {"status": "ok"})
    assert get(service.port, "/v1/sandboxes").json["sandboxes"] == []


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
        reply = ask(box.port, method, f"/directories/{path}", pack({}) if body else None)
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
    data = pack({"both.txt": b"new", "sub/new.txt": b"new"})
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
    data = pack({"good.txt": b"x", member: b"bad"})
    reply = ask(box.port, "POST", "/directories/refused", data)
    assert reply.status == 400 and reply.json["detail"].startswith("Invalid tar member: "), reply
    assert member in reply.json["detail"]
    detail(get(box.port, "/files/refused/good.txt"), 404, "File not found")


@pytest.mark.parametrize(
    "data",
    [b"no gzip at all", gzip.compress(b"no tar at all" * 100), pack({"a": b"x" * 9999})[:60]],
    ids=["no gzip", "no tar", "half"],
)
def test_what_is_no_archive_is_a_bad_request(box: LiveService, data: bytes) -> None:
    reply = ask(box.port, "POST", "/directories/broken", data)
    assert reply.status == 400 and reply.json["detail"].startswith("Invalid archive: "), reply
    detail(get(box.port, "/directories/broken"), 404, "Directory not found")


# ---------------------------------------------------------------------------- modules


def modules(service: LiveService, *names: str, **headers: str) -> Reply:
    query = urlencode([("q", name) for name in names])
    return get(service.port, f"/modules?{query}", **headers)


def test_a_module_that_is_not_there_is_named(box: LiveService) -> None:
    detail(modules(box, "json", "nowhere.at_all", "other"), 404, "Module nowhere.at_all not found")
    for name in ("", ".relative", "a b", "../up", "x" * 300):
        detail(modules(box, name), 404, f"Module {name} not found")


def test_a_module_without_source_has_none(box: LiveService) -> None:
    assert modules(box, "sys", "math").json == {"sys": "", "math": ""}


def test_names_are_wanted(box: LiveService) -> None:
    reply = get(box.port, "/modules")
    assert reply.status == 422
    assert reply.json["detail"] == [
        {"type": "missing", "loc": ["query", "q"], "msg": "Field required", "input": None}
    ]


def test_what_is_on_disk_now_is_told(box: LiveService) -> None:
    for source in ("x = 1\n", "x = 2  # changed\n"):
        put(box, "changing.py", source.encode())
        assert modules(box, "changing").json == {"changing": source}
    assert run(box, "import os; print(os.path.exists('__pycache__'))") == "False\n"


@pytest.mark.parametrize(
    "source, status",
    [
        ("print('noise'); import sys; sys.stderr.write('more')", 200),
        ("raise RuntimeError('no')", 404),
        ("raise SystemExit(0)", 404),
        ("import os; os._exit(0)", 500),
        ("import os; os.kill(os.getpid(), 9)", 500),
        (
            "import os\nfor fd in range(3, 20):\n    try: os.write(fd, b'{\"found\": 1}')\n"
            "    except OSError: pass\nos._exit(0)",
            500,
        ),
        ("import threading, time\nthreading.Thread(target=time.sleep, args=(1000,)).start()", 200),
    ],
)
def test_a_hostile_module_spoils_nothing_but_its_answer(
    box: LiveService, source: str, status: int
) -> None:
    run(box, "kept = 1")
    put(box, "hostile.py", source.encode())
    reply = modules(box, "hostile")
    assert reply.status == status, reply
    assert status != 200 or reply.json == {"hostile": source + "\n"}
    assert run(box, "print(kept)") == "1\n"
    commands = get(box.port, f"/v1/sandboxes/{default_of(box)}/commands").json["commands"]
    assert commands == []


def test_a_module_that_never_ends_is_given_up(start_live: Any) -> None:
    service = start_live("--profiles", "base", "--live-timeout-ms", "4000")
    put(service, "endless.py", b"while True: pass")
    assert modules(service, "endless").status == 504
    assert modules(service, "json").status == 200
    end_all(service)


# ---------------------------------------------------------------------------- which sandbox


def test_a_header_names_another_sandbox(box: LiveService) -> None:
    with Client(box.port).box() as other:
        there = {"X-Cloche-Sandbox": other.id}
        assert put(box, "only-there.txt", b"x", **there).status == 200
        assert get(box.port, "/files/only-there.txt", **there).body == b"x"
        put(box, "there.py", b"x = 1\n", **there)
        assert modules(box, "there", **there).json == {"there": "x = 1\n"}
        assert unpack(get(box.port, "/directories/", **there).body).keys() == {
            "only-there.txt",
            "there.py",
        }
        detail(get(box.port, "/files/only-there.txt"), 404, "File not found")
        assert ask(box.port, "DELETE", "/files/only-there.txt", None, there).status == 204
    gone = get(box.port, "/files/x", **there)
    assert gone.status == 410 and gone.json["error"]["code"] == "sandbox_gone"
    nobody = get(box.port, "/files/x", **{"X-Cloche-Sandbox": "sbx_nobody"})
    assert nobody.status == 404 and nobody.json["error"]["code"] == "no_such_sandbox"


def test_many_first_uses_make_one_sandbox(start_live: Any) -> None:
    service = start_live("--profiles", "base")
    together = threading.Barrier(8)

    def upload(number: int) -> int:
        together.wait()
        return put(service, f"f{number}", b"%d" % number * 100_000).status

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(upload, range(8))) == [200] * 8
    default_of(service)  # there is one
    for number in range(8):
        assert get(service.port, f"/files/f{number}").body == b"%d" % number * 100_000
    end_all(service)
    detail(get(service.port, "/files/f1"), 404, "File not found")  # in another one
    end_all(service)


def test_the_default_sandbox_outlives_the_server(box: LiveService) -> None:
    put(box, "kept.txt", b"kept")
    before = default_of(box)
    server = one(lambda: Family(box).server())
    kill(server)
    assert eventually(lambda: not is_alive(server))
    assert get(box.port, "/files/kept.txt").body == b"kept"
    assert default_of(box) == before


# ---------------------------------------------------------------------------- the rest


def test_it_can_be_switched_off(start_live: Any) -> None:
    service = start_live("--profiles", "base", "--dialects", "code-interpreter,pyrunner")
    for path in ("/status", "/files/x", "/directories/x", "/modules?q=json"):
        reply = get(service.port, path)
        assert (reply.status, reply.json["detail"]) == (404, "Not Found"), reply


def test_without_live_sandboxes_it_says_so(start_service: Any) -> None:
    service = start_service("--profiles", "base")
    for reply in (get(service.port, "/files/x"), ask(service.port, "POST", "/files/x", b"x")):
        assert reply.status == 503 and "live" in reply.json["detail"], reply
    assert get(service.port, "/status").status == 200


def test_it_wants_a_key_where_there_are_keys(keyed_service: KeyedService) -> None:
    assert get(keyed_service.port, "/status").status == 200
    for path in ("/files/x", "/directories/x", "/modules?q=json"):
        assert get(keyed_service.port, path).status == 401


def test_it_is_in_the_specification(box: LiveService) -> None:
    paths = get(box.port, "/openapi.json").json["paths"]
    assert {"get", "post", "delete"} <= paths["/files/{path}"].keys()
    assert {"get", "post"} <= paths["/directories/{path}"].keys()
    assert "get" in paths["/modules"] and "get" in paths["/status"]
    assert not [path for path in paths if path.startswith("/mcp")]

"""The memory budget of live sandboxes: what the server writes onto their disks counts, by any API,
while it is written, and is given back when the sandbox deletes it."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import select
import tarfile
from collections.abc import Callable, Iterator

import pytest

from harness import LiveService, eventually
from http_client import FORM, JSON, Connection, Reply, ask, get, part, post
from live_box import BLOCK, Box, box_of, send_chunks

BUDGET_MB = 300
BIG, MORE = 160, 100  # one fits beside two sandboxes of 32 MB, both do not
SMALL = {"limits": {"memory_mb": 32, "disk_mb": 600}}
OPTIONS = ("--profiles", "base", "--pool", "0", "--queue-ms", "60000", "--max-disk-mb", "600")
Starter = Callable[..., LiveService]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    budget = ("--memory-budget-mb", str(BUDGET_MB))
    made = LiveService(tmp_path_factory.mktemp("budget"), *OPTIONS, *budget)
    try:
        yield made
        made.stop()
    finally:
        made.kill()


def metric(service: LiveService, name: str) -> float:
    service.drain()  # of the lines that our looking makes it log
    lines = get(service.port, "/metrics").body.decode().splitlines()
    return sum(float(x.rsplit(" ", 1)[1]) for x in lines if x.startswith(f"cloche_{name}"))


def charged_mb(service: LiveService) -> float:
    return metric(service, "memory_charged_bytes") / BLOCK


def tarball(mb: int) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        entry = tarfile.TarInfo("f")
        entry.size = mb * BLOCK
        tar.addfile(entry, io.BytesIO(bytes([1]) * entry.size))
    return gzip.compress(out.getvalue(), 1)


def refused(reply: Reply) -> bool:
    return reply.status == 503 and reply.json["error"]["code"] == "memory_budget"


def put(box: Box, mb: int) -> Reply:
    return box.put("f", bytes(mb * BLOCK))


def put_chunks(box: Box, mb: int) -> Reply:
    with Connection(box.port) as connection:
        return send_chunks(connection, box.at("f"), (bytes(BLOCK) for _ in range(mb)))


def unpack(box: Box, mb: int) -> Reply:
    return box.unpack("", tarball(mb))


@pytest.mark.parametrize("door", [put, put_chunks, unpack])
def test_uploads_stay_within_the_budget(
    service: LiveService, door: Callable[[Box, int], Reply]
) -> None:
    with contextlib.ExitStack() as stack:
        boxes = [stack.enter_context(box_of(service, **SMALL)) for _ in range(3)]
        replies = [door(box, BIG) for box in boxes]
        assert [reply.status for reply in replies] == [201 if door != unpack else 200, 503, 503]
        assert refused(replies[1]) and refused(replies[2])
        on_disk = sum(box.info()["usage"]["disk_bytes"] for box in boxes) / BLOCK
        assert BIG <= on_disk < BUDGET_MB
        assert charged_mb(service) <= BUDGET_MB
    assert eventually(lambda: charged_mb(service) == 0)


def test_an_upload_counts_while_it_comes(service: LiveService) -> None:
    with box_of(service, **SMALL) as one, box_of(service, **SMALL) as two:
        with Connection(service.port) as slow:
            slow.send("PUT", one.at("f"), None, {"Content-Length": str(BIG * BLOCK)})
            slow.sock.sendall(bytes((BIG - 1) * BLOCK))
            assert eventually(lambda: one.info()["usage"]["disk_bytes"] > (BIG - 2) * BLOCK)
            assert refused(put(two, MORE))
        assert eventually(lambda: put(two, MORE).status in (200, 201)), "who left gave it back"


def test_what_a_sandbox_deletes_is_given_back(service: LiveService) -> None:
    with box_of(service, **SMALL) as one, box_of(service, **SMALL) as two:
        for turn in range(4):
            assert put(one, BIG).status in (200, 201), turn
            assert refused(put(two, MORE)), "all that is there counts"
            one.run("import os; os.remove('f')")
            assert put(two, MORE).status in (200, 201), turn
            two.run("import os; os.remove('f')")


def test_a_file_that_is_deleted_and_open_still_counts(service: LiveService) -> None:
    with box_of(service, **SMALL) as one, box_of(service, **SMALL) as two:
        assert put(one, BIG).status == 201
        one.run("import os; keep = open('f', 'rb'); os.remove('f')")
        assert refused(put(two, MORE))
        one.run("keep.close()")
        assert put(two, MORE).status == 201


def test_who_waits_for_memory_gets_what_is_deleted(service: LiveService) -> None:
    with box_of(service, **SMALL) as one, box_of(service, **SMALL):
        assert put(one, 220).status == 201
        with Connection(service.port) as waits:
            body = b'{"limits": {"memory_mb": 32}, "name": "waits"}'
            waits.send("POST", "/v1/sandboxes", body, JSON)
            assert not select.select([waits.sock], [], [], 0.5)[0], "there is no memory for it"
            one.run("import os; os.remove('f')")
            reply = waits.reply("POST")
            assert reply.status == 201, reply
            assert ask(service.port, "DELETE", f"/v1/sandboxes/{reply.json['id']}").status == 204


def test_memory_that_a_live_sandbox_had_once_does_not_count_for_ever(service: LiveService) -> None:
    with box_of(service, limits={"memory_mb": 300}) as one, box_of(service, **SMALL) as two:
        one.run(
            "import mmap; keep = mmap.mmap(-1, 200 << 20)\n"
            "for _ in range(200): keep.write(bytes(1 << 20))"
        )
        assert refused(put(two, MORE))
        one.run("keep.close()")
        assert put(two, MORE).status == 201


def test_sandbox_runtimes_files_count(service: LiveService) -> None:
    def create(session: str, mb: int) -> Reply:
        body = {"filename": "f", "content": "x" * (mb * BLOCK)}
        return post(service.port, f"/workspace/se/create/{session}", body)

    def upload(session: str, mb: int) -> Reply:
        path = f"/workspace/se/upload/{session}"
        return ask(service.port, "POST", path, part(bytes(mb * BLOCK)), FORM)

    with box_of(service, **SMALL) as box:
        assert put(box, 200).status == 201
        name = f"s{os.getpid()}"
        for door in (create, upload):
            assert door(name, 1).status == 200, door
            assert door(name, 50).status in (429, 503), door
        box.run("import os; os.remove('f')")
        assert create(name, 50).status == 200
    for found in get(service.port, "/v1/sandboxes").json["sandboxes"]:
        ask(service.port, "DELETE", f"/v1/sandboxes/{found['id']}")


def test_files_of_a_sandbox_that_outlives_its_server_still_count(start_live: Starter) -> None:
    service = start_live(*OPTIONS, "--memory-budget-mb", str(BUDGET_MB))
    with box_of(service, **SMALL) as one, box_of(service, **SMALL) as two:
        assert put(one, BIG).status == 201
        server = next(p for p in service.remember() if p.role == "cloche-server")
        os.kill(server.pid, 9)
        assert eventually(lambda: get(service.port, one.url).status == 200)
        assert refused(put(two, MORE))
        one.run("import os; os.remove('f')")
        assert put(two, MORE).status == 201

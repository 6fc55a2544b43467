"""Files of live sandboxes: who and what may come between, and that nothing is lost or left."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness import Service, eventually, run_cli
from host import descendants, descriptors
from http_client import JSON, Connection, ask
from live_box import BLOCK, Box, box_of, send_chunks
from live_files import code_of, disk, members, tar_of
from raw_http import server_pid


@pytest.fixture
def service(live_service: Service) -> Service:
    return live_service


@pytest.fixture
def box(service: Service) -> Iterator[Box]:
    with box_of(service) as one:
        yield one


# ---- life ----


def test_files_of_a_paused_sandbox_can_be_reached(box: Box) -> None:
    assert ask(box.port, "POST", f"{box.url}/pause").status == 200
    assert box.put("f", b"x").status == 201
    assert box.read("f") == b"x"
    assert box.paths() == ["f"]
    assert set(members(box.archive().body)) >= {"f"}
    assert ask(box.port, "POST", f"{box.url}/resume").status == 200


def test_a_sandbox_that_is_gone_or_never_was(box: Box, service: Service) -> None:
    none = Box(service.port)
    none.end()
    for url, status, code in [
        (none.url, 410, "sandbox_gone"),
        ("/v1/sandboxes/sbx_none", 404, "no_such_sandbox"),
    ]:
        for method, path, body in [
            ("GET", "files", None),
            ("PUT", "files/f", b"x" * (3 * BLOCK)),
            ("DELETE", "files/f", None),
            ("GET", "archive", None),
            ("PUT", "archive", b"x"),
        ]:
            assert code_of(ask(service.port, method, f"{url}/{path}", body)) == (status, code)


def test_a_sandbox_that_is_deleted_under_an_upload(service: Service) -> None:
    box = Box(service.port)
    with Connection(service.port) as connection:

        def blocks() -> Iterator[bytes]:
            yield b"x" * BLOCK
            box.end()
            yield b"x" * BLOCK

        assert code_of(send_chunks(connection, box.at("f"), blocks())) == (410, "sandbox_gone")


def test_a_stalled_upload_does_not_hold_on_to_a_deleted_sandbox(service: Service) -> None:
    def nameless() -> list[str]:
        return [kind for kind in descriptors(server_pid(service)) if "/#" in kind]

    box = Box(service.port)
    with Connection(service.port) as connection:
        connection.send("PUT", box.at("f"), None, {"Content-Length": str(2 * BLOCK)})
        connection.sock.sendall(b"x" * BLOCK)
        assert eventually(lambda: disk(box) >= BLOCK) and nameless()
        box.end()
        assert not nameless()
        connection.sock.sendall(b"x" * BLOCK)
        assert code_of(connection.reply("PUT")) == (410, "sandbox_gone")


def test_a_sandbox_that_is_deleted_under_a_download(service: Service) -> None:
    box = Box(service.port)
    box.put("f", b"x" * (32 * BLOCK))
    with Connection(service.port) as file, Connection(service.port) as archive:
        file.send("GET", box.at("f"))
        archive.send("GET", box.at("", "archive"))
        assert file.head().status == archive.head().status == 200
        box.end()
        data = file.file.read(32 * BLOCK)
        assert data == b"x" * len(data), "what was sent, and no more"


def test_a_client_that_leaves_in_the_middle_leaves_nothing(box: Box) -> None:
    box.put("f", b"precious")
    before = disk(box)
    with Connection(box.port) as connection:
        connection.send("PUT", box.at("f"), None, {"Content-Length": str(16 * BLOCK)})
        connection.sock.sendall(b"x" * (8 * BLOCK))
        assert eventually(lambda: disk(box) > before + BLOCK)
    assert eventually(lambda: disk(box) == before)
    assert box.read("f") == b"precious"
    assert box.paths(recursive=True) == ["f"]


def test_uploads_to_one_path_at_the_same_time(box: Box) -> None:
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda i: box.put("f", bytes([i]) * BLOCK), range(24)))
    assert {r.status for r in replies} <= {200, 201}
    data = box.read("f")
    assert len(data) == BLOCK and len(set(data)) == 1
    assert box.paths(recursive=True) == ["f"]


def test_leave_to_send_is_given_when_there_is_room(box: Box) -> None:
    with Connection(box.port) as connection:
        connection.send("PUT", box.at("f"), None, {"Content-Length": "5", "Expect": "100-continue"})
        assert connection.head().status == 100
        connection.sock.sendall(b"hello")
        assert connection.reply("PUT").status == 201
    with Connection(box.port) as connection:
        size = str(1 << 40)
        connection.send(
            "PUT", box.at("f"), None, {"Content-Length": size, "Expect": "100-continue"}
        )
        assert code_of(connection.reply("PUT")) == (507, "disk_full")
    assert box.read("f") == b"hello"


def is_asleep(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


def test_no_answer_is_lost_while_the_server_is_slow(service: Service, box: Box) -> None:
    """Many questions at once, whose answers have to wait in the sandbox's socket. (Where wmem_max
    is the kernel's own 208 KB, they are more than it holds.)"""
    top = "/".join(["d" * 250] * 15)
    names = [f"{top}/{i:02}" + "f" * 250 for i in range(90)]
    there = [name for i, name in enumerate(names) if i % 9]
    assert box.unpack("", tar_of({name: b"" for name in there})).status == 200
    box.run(f"import os\nfor n in {there!r}: os.unlink(n); os.symlink('x' * 4000, n)")
    inits = [p.pid for p in descendants(service.process.pid) if p.comm == "cloche-init"]
    server = server_pid(service)
    clients = [Connection(service.port) for _ in names]
    for pid in inits:
        os.kill(pid, signal.SIGSTOP)
    try:
        for client, name in zip(clients, names):
            client.send("HEAD", box.at(name, "archive"))
        for _ in range(3):  # by then it has read what came before
            assert ask(box.port, "GET", "/health").status == 200
        os.kill(server, signal.SIGSTOP)
    finally:
        for pid in inits:
            os.kill(pid, signal.SIGCONT)
        eventually(lambda: all(is_asleep(pid) for pid in inits))
        os.kill(server, signal.SIGCONT)
    assert [client.reply("HEAD").status for client in clients] == [404, *[200] * 8] * 10
    for client in clients:
        client.close()


def test_one_tenants_files_are_another_ones_404(
    start_live: Callable[..., Service], tmp_path: Path
) -> None:
    keys = tmp_path / "keys" / "keys.json"
    keys.parent.mkdir(mode=0o755)
    bearer = []
    for name in ["alice", "bob"]:
        made = run_cli("key", "add", name, "--keys", keys)
        bearer.append({"Authorization": f"Bearer {made.stdout.decode().strip()}"})
    port = start_live("--profiles", "base", "--keys", str(keys)).port
    made_box = ask(port, "POST", "/v1/sandboxes", b"{}", JSON | bearer[0]).json
    url = f"/v1/sandboxes/{made_box['id']}"
    assert ask(port, "PUT", f"{url}/files/f", b"mine", bearer[0]).status == 201
    for method, path, body in [
        ("GET", "files/f", None),
        ("GET", "files", None),
        ("PUT", "files/f", b"theirs"),
        ("DELETE", "files/f", None),
        ("GET", "archive", None),
        ("PUT", "archive", tar_of({"f": b"theirs"})),
    ]:
        reply = ask(port, method, f"{url}/{path}", body, bearer[1])
        assert code_of(reply) == (404, "no_such_sandbox")
        assert ask(port, method, f"{url}/{path}", body).status == 401
    assert ask(port, "GET", f"{url}/files/f", None, bearer[0]).body == b"mine"
    assert ask(port, "DELETE", url, None, bearer[0]).status == 204


def test_a_server_that_is_killed_in_the_middle_of_uploads(
    start_live: Callable[..., Service]
) -> None:
    service = start_live("--profiles", "base")
    box = Box(service.port)
    box.put("f", b"precious")
    before = disk(box)
    clients = [Connection(service.port) for _ in range(5)]
    for client in clients:
        client.send("PUT", box.at("f"), None, {"Content-Length": str(4 * BLOCK)})
        client.sock.sendall(b"x" * (2 * BLOCK))
    assert eventually(lambda: disk(box) >= before + 5 * BLOCK)
    os.kill(server_pid(service), signal.SIGKILL)
    for client in clients:
        with contextlib.suppress(ConnectionError):
            assert client.file.read() == b""
        client.close()
    assert eventually(lambda: box.paths() == ["f"])
    assert box.read("f") == b"precious"
    assert eventually(lambda: disk(box) == before)
    assert box.put("f", b"new").status == 200
    box.end()

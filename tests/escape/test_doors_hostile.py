"""Hostile use of what single sandboxes get: ports of their own, and directories of the host."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from doors import CLOSED, Listening, is_open
from harness import LiveService, settled, turns
from http_client import Connection, ask, get
from keyed_live import KeyedLive
from live import Box, Client, error

SECRET = "the host's own"
MOST = 4


@pytest.fixture(scope="module")
def allowed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory that all sandboxes may write to, beside one that none may see."""
    top = tmp_path_factory.mktemp("host")
    top.chmod(0o755)
    for name in ("allowed", "beside"):
        (top / name).mkdir()
        (top / name).chmod(0o777)
    (top / "beside" / "secret.txt").write_text(SECRET)
    yield top / "allowed"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, allowed: Path) -> Iterator[LiveService]:
    options = ("--profiles", "base", "--live-listeners", str(MOST), "--bind-allow", f"{allowed}:rw")
    yield from settled(LiveService(tmp_path_factory.mktemp("hostile"), *options))


@pytest.fixture
def client(service: LiveService) -> Client:
    return Client(service.port)


# ---------------------------------------------------------------------------- ports


@pytest.mark.parametrize(
    "headers, status, code",
    [
        ({"Origin": "https://page.example"}, 403, "bad_origin"),
        ({"Origin": "null"}, 403, "bad_origin"),
        ({"Origin": "http://127.0.0.1:{main}"}, 403, "bad_origin"),
        ({"Host": "page.example:{own}"}, 421, "bad_host"),
        ({"Host": "page.example", "Origin": "http://page.example"}, 421, "bad_host"),
    ],
)
def test_no_web_page_can_use_it(
    client: Client, headers: dict[str, str], status: int, code: str
) -> None:
    """The page of another port of this machine is another site's, too."""
    with Listening(client) as box:
        said = {k: v.format(main=client.port, own=box.door) for k, v in headers.items()}
        for path in ("/api/kernels", "/files/a"):
            with Connection(box.door) as connection:
                own_host = "Host" not in said
                lines = [f"POST {path} HTTP/1.1", "Content-Length: 0"]
                lines += [f"Host: 127.0.0.1:{box.door}"] if own_host else []
                lines += [f"{name}: {value}" for name, value in said.items()]
                connection.sock.sendall("\r\n".join([*lines, "", ""]).encode())
                reply = connection.reply()
            assert (reply.status, reply.json["error"]["code"]) == (status, code), reply
        assert len(box.get()["kernels"]) == 1
        assert box.ask("GET", "/files/a").status == 404


def test_many_at_once_are_no_more_than_may_be(client: Client) -> None:
    with ThreadPoolExecutor(3 * MOST) as pool:
        body = {"profile": "base", "listen": True}
        asks = [pool.submit(client.ask, "POST", "/v1/sandboxes", body) for _ in range(3 * MOST)]
    replies = [one.result() for one in asks]
    made = [reply.json for reply in replies if reply.status == 201]
    assert {reply.status for reply in replies} == {201, 429}
    assert len(made) == MOST == len({box["port"] for box in made})
    found = client.listed()["sandboxes"]
    assert {box["id"] for box in found} == {box["id"] for box in made}, "others were ended"
    for box in made:
        assert client.ask("DELETE", f"/v1/sandboxes/{box['id']}").status == 204
        assert not is_open(box["port"])


def test_a_connection_never_leads_to_a_later_sandbox(client: Client) -> None:
    """Whoever has a connection open when the sandbox ends has it to that one, whatever gets the
    port."""
    with Listening(client) as box:
        kept = [Connection(box.door) for _ in range(20)]
        unused, used = kept[:10], kept[10:]
        for one in used:
            assert one.ask("GET", "/api/kernels").status == 200
    with Listening(client) as later:
        assert later.at("POST", "/files/mine", b"later's").status == 200
        for one in kept:
            try:
                reply = one.ask("GET", "/files/mine")
                assert reply.status == 410 and b"later's" not in reply.body, reply
            except CLOSED:
                assert one in unused, "the server had not taken it in"
            one.close()


def test_another_tenants_key_finds_nothing(tmp_path: Path) -> None:
    keyed = KeyedLive(tmp_path)
    try:
        alice, bob = keyed.client(0), keyed.client(1)
        with Listening(alice) as box:
            assert box.at("POST", "/files/a", b"alice's").status == 200
            kernel = box.jupyter.kernel()
            where = {"X-Cloche-Sandbox": box.id}
            paths = ["/files/a", "/directories/", "/modules?q=os", "/api/kernels", "/api/status"]
            paths += [f"/api/kernels/{kernel}", f"/api/kernels/{kernel}/channels", "/api/sessions"]
            for path in paths:
                for reply in (
                    get(box.door, path, **bob.headers),
                    get(box.door, path, **(bob.headers | where)),
                ):
                    assert reply.status == 404 and b"alice" not in reply.body, (path, reply)
            assert ask(box.door, "POST", "/api/kernels", b"", bob.headers).status == 404
            assert len(box.get()["kernels"]) == 2
        keyed.stop()
    finally:
        keyed.kill()


def test_programs_cannot_reach_any(client: Client) -> None:
    with Listening(client) as box:
        found = box.run(
            "import socket\n"
            f"for port in ({box.door}, {client.port}):\n"
            "    try: socket.create_connection(('127.0.0.1', port))\n"
            "    except OSError as error: print(type(error).__name__)"
        )
        assert found["stdout"] == "ConnectionRefusedError\n" * 2


# ---------------------------------------------------------------------------- directories


def bind(host: Path | str, mode: str = "rw") -> dict[str, Any]:
    one = {"host": str(host), "path": "d", "mode": mode}
    return {"profile": "base", "binds": [one]}


@pytest.mark.parametrize(
    "way",
    ["/../beside", "/./../beside", "//../beside", "/x/../../beside", "/\x00/../beside", "\u2215.."],
)
def test_dots_lead_nowhere(client: Client, allowed: Path, way: str) -> None:
    reply = client.ask("POST", "/v1/sandboxes", bind(f"{allowed}{way}"))
    assert reply.status in (403, 422) and SECRET not in str(reply.body)


def test_a_directory_that_becomes_a_link_leads_nowhere(client: Client, allowed: Path) -> None:
    """One sandbox swaps it, as fast as it can, while others ask for it."""
    swap = (
        "import os\nos.mkdir('d/real')\n"
        f"os.symlink({str(allowed.parent / 'beside')!r}, 'd/link')\n"
        "os.symlink('../beside', 'd/near')\n"
        "print('begun', flush=True)\n"
        "while True:\n"
        "    for link in ('link', 'near'):\n"
        "        os.rename('d/real', 'd/name'), os.rename('d/name', 'd/real')\n"
        f"        os.rename('d/' + link, 'd/name'), os.rename('d/name', 'd/' + link)\n"
    )
    got = {"mounted": 0, "refused": 0}
    with Box(client, **bind(allowed)) as writer:
        stream = writer.stream(swap, timeout_ms=60000)
        stream.printed("begun")
        for _ in turns(10, lambda: all(got.values())):
            reply = client.ask("POST", "/v1/sandboxes", bind(allowed / "name"))
            if reply.status != 201:
                error(reply, 422, "bad_bind")
                got["refused"] += 1
                continue
            path = f"/v1/sandboxes/{reply.json['id']}"
            code = {"code": "import os; print(os.listdir('d'))"}
            assert client.ask("POST", path + "/execute", code).json["stdout"] == "[]\n"
            assert client.ask("DELETE", path).status == 204
            got["mounted"] += 1
        writer.do("/interrupt")
        stream.connection.close()
        writer.run(
            "import shutil, os\nfor n in os.listdir('d'):\n    p = 'd/' + n\n"
            "    os.unlink(p) if os.path.islink(p) else os.rmdir(p)"
        )
    assert got["mounted"] and got["refused"], got
    assert os.listdir(allowed) == []


def test_two_that_share_one_see_only_it(client: Client, allowed: Path) -> None:
    """What is passed on there leads nowhere that the other could not go."""
    with Box(client, **bind(allowed)) as one, Box(client, **bind(allowed)) as two:
        with Box(client) as stranger:
            one.run("open('d/note', 'w').write('hello')\nopen('own', 'w').write('mine')")
            assert two.text("open('d/note').read()") == "'hello'"
            assert two.run("open('d/../own')")["error"]["name"] == "FileNotFoundError"
            assert stranger.run("open('/workspace/d/note')")["error"]["name"] == "FileNotFoundError"
            two.run("import os; os.unlink('d/note')")


def test_asking_at_once_holds_nobody_up(client: Client, allowed: Path) -> None:
    """Many that ask for a directory that is not there: each is told so, and nothing is left."""
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            assert get(client.port, "/health").status == 200

    looker = threading.Thread(target=look)
    looker.start()
    try:
        with ThreadPoolExecutor(8) as pool:
            body = bind(allowed / "none")
            asks = [pool.submit(client.ask, "POST", "/v1/sandboxes", body) for _ in range(24)]
        assert {one.result().status for one in asks} == {422}
    finally:
        done.set()
        looker.join()
    assert client.listed()["sandboxes"] == []

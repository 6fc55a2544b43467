"""The dialect ipybox: status, modules, which sandbox is meant, and who may ask."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlencode

import pytest

from family import Family, kill, one
from harness import LiveService, eventually
from host import is_alive
from http_client import Reply, ask, get
from ipybox import default_of, detail, end_all, put, run, serving, unpack
from live import Client
from raw_http import KeyedService


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    yield from serving(tmp_path_factory.mktemp("ipybox"))


# ---------------------------------------------------------------------------- status


@pytest.mark.parametrize("path", ["/status", "/status/"])
def test_status_is_ok_and_makes_nothing(start_live: Any, path: str) -> None:
    service = start_live("--profiles", "base")
    reply = get(service.port, path)
    assert (reply.status, reply.json) == (200, {"status": "ok"})
    assert get(service.port, "/v1/sandboxes").json["sandboxes"] == []


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


def test_the_default_sandbox_is_idle_for_as_long_as_notebooks_may(start_live: Any) -> None:
    options = ("--dialects", "ipybox", "--jupyter-idle-seconds", "77")
    service = start_live("--profiles", "base", *options)
    path = f"/v1/sandboxes/{default_of(service)}"
    assert get(service.port, path).json["idle_seconds"] == 77
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
    assert not [path for path in paths if path.startswith("/mcp/{relpath}")]

"""Jupyter's API and the service around it: keys, tenants, limits, culling, a server that dies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from family import Family, drained, kill, one
from harness import LiveService, eventually, run_cli
from host import is_alive
from http_client import ask
from jupyter import Channels, Jupyter, printed, refused, use_services
from raw_http import Raw
from raw_ws import handshake

Starter = Callable[..., LiveService]


@pytest.fixture
def keyed(start_live: Starter, tmp_path: Path) -> Iterator[tuple[LiveService, dict[str, str]]]:
    """A service that wants keys, and those of two tenants."""
    for place in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        place.chmod(0o711)  # the server is another user
    file = tmp_path / "keys.json"
    keys = {}
    for name in ("alice", "bob"):
        made = run_cli("key", "add", name, "--keys", file)
        assert made.returncode == 0, made.stderr
        keys[name] = made.stdout.decode().strip()
    yield start_live("--keys", str(file), "--profiles", "base"), keys


def test_variables_that_the_operator_sets_and_allows(start_live: Starter) -> None:
    env = '{"TZ": "Asia/Tokyo", "KERNEL_SITE": "here", "MINE": "1"}'
    options = ("--jupyter-env", env, "--jupyter-allow-env", "COLOUR,MINE")
    jupyter = Jupyter(start_live("--profiles", "base", *options).port)
    asked = {"COLOUR": "red", "MINE": "2", "OTHER": "x"}
    names = ["TZ", "KERNEL_SITE", "MINE", "COLOUR", "OTHER"]
    code = f"import os; ' '.join(str(os.environ.get(name)) for name in {names})"
    with jupyter.open() as kernel:
        assert kernel.ok(code).result == "'Asia/Tokyo here 1 None None'"
    with jupyter.open(jupyter.kernel(env=asked)) as kernel:
        assert kernel.ok(code).result == "'Asia/Tokyo here 2 red None'"


def test_all_variables_may_be_allowed(start_live: Starter) -> None:
    service = start_live("--profiles", "base", "--jupyter-allow-env", "*")
    jupyter = Jupyter(service.port)
    with jupyter.open(jupyter.kernel(env={"ANY": "thing"})) as kernel:
        assert kernel.ok("import os; os.environ['ANY']").result == "'thing'"


def status_of(service: LiveService, path: str, authorization: str = "") -> int:
    more = f"Authorization: {authorization}\r\n".encode() if authorization else b""
    with Raw(service) as raw:
        raw.send(handshake(path, more))
        return raw.head().status


def test_keys_in_jupyters_forms(keyed: tuple[LiveService, dict[str, str]]) -> None:
    service, keys = keyed
    alice = Jupyter(service.port, Authorization=f"token {keys['alice']}")
    bob = Jupyter(service.port, Authorization=f"Bearer {keys['bob']}")
    refused(ask(service.port, "GET", "/api/kernels"), 401)
    refused(ask(service.port, "GET", "/api/kernels", headers={"Authorization": "token x"}), 401)
    ident = alice.kernel()
    assert ask(service.port, "GET", f"/api/kernels/{ident}?token={keys['alice']}").status == 200
    assert ask(service.port, "GET", f"/v1/sandboxes?token={keys['alice']}").status == 401
    path = f"/api/kernels/{ident}/channels"
    assert status_of(service, path) == 401
    assert status_of(service, path + "?token=wrong") == 401
    assert status_of(service, path, f"token {keys['bob']}") == 404
    assert status_of(service, path, f"token {keys['alice']}") == 101
    with Channels(service.port, ident, query=f"&token={keys['alice']}") as kernel:
        kernel.ok("open('mine', 'w').close()")
    refused(bob.ask("GET", f"/api/kernels/{ident}"), 404)
    refused(bob.ask("DELETE", f"/api/kernels/{ident}"), 404)
    assert bob.get("/api/kernels") == [] and bob.get("/api/sessions") == []
    with Channels(service.port, bob.kernel(), query=f"&token={keys['bob']}") as kernel:
        assert kernel.ok("import os; os.listdir()").result == "[]"  # another sandbox
    alice.wipe()
    bob.wipe()


def test_vs_code_with_a_key(keyed: tuple[LiveService, dict[str, str]]) -> None:
    service, keys = keyed
    stranger = Jupyter(service.port)
    assert stranger.ask("GET", "/hub/api").status == 404
    assert stranger.ask("GET", "/tree?").status == 401
    use_services(service.port, keys["alice"])


def test_limits_answer_as_jupyters_errors_do(start_live: Starter) -> None:
    jupyter = Jupyter(start_live("--profiles", "base", "--live-per-tenant", "1").port)
    jupyter.kernel()
    jupyter.kernel()  # in the same sandbox
    reply = jupyter.ask("POST", "/api/kernels", {"name": "python3-isolated"})
    refused(reply, 429)
    assert reply.header("Retry-After")
    jupyter.wipe()


def test_no_dialect_no_routes(start_live: Starter) -> None:
    jupyter = Jupyter(start_live("--profiles", "base", "--dialects", "code-interpreter").port)
    for path in ("/api", "/api/kernels", "/api/kernelspecs", "/api/sessions"):
        assert jupyter.ask("GET", path).status == 404
    assert "/api/kernels" not in jupyter.get("/openapi.json")["paths"]


def test_no_live_sandboxes_no_kernels(start_live: Starter) -> None:
    service = start_live("--profiles", "base", "--live", "off")
    reply = ask(service.port, "POST", "/api/kernels", b"{}")
    assert 400 <= reply.status <= 503 and reply.json["message"], reply


def test_idle_kernels_are_culled(start_live: Starter) -> None:
    jupyter = Jupyter(start_live("--profiles", "base", "--jupyter-cull-seconds", "3").port)
    with jupyter.open() as kernel:
        left = jupyter.kernel()
        assert eventually(lambda: jupyter.ask("GET", f"/api/kernels/{left}").status == 404)
        assert len(jupyter.get("/api/kernels")) == 1  # somebody is connected to that one
        assert kernel.ok("1").result == "1"
    assert eventually(lambda: jupyter.get("/api/kernels") == [])
    jupyter.wipe()


def test_a_cell_has_the_time_that_is_set(start_live: Starter) -> None:
    jupyter = Jupyter(start_live("--profiles", "base", "--jupyter-timeout-s", "3").port)
    with jupyter.open() as kernel:
        assert kernel.run("while True: pass").reply["ename"] == "KeyboardInterrupt"
        assert kernel.ok("'on'").result == "'on'"
    jupyter.wipe()


def test_kernels_outlive_the_server(start_live: Starter) -> None:
    """Their ids, what they know, the sessions; and what runs is heard to its end."""
    service = start_live("--profiles", "base")
    jupyter = Jupyter(service.port)
    body = {"path": "a.ipynb", "type": "notebook", "kernel": {"name": "base"}}
    session = jupyter.ask("POST", "/api/sessions", body).json
    ident = session["kernel"]["id"]
    with drained(service):
        with jupyter.open(ident, session="mine") as kernel:
            kernel.ok("a = 1")
            asked = kernel.start("print('on', flush=True)\nb = input('? ')\nprint('off')\nb")
            kernel.until(lambda m: m["msg_type"] == "input_request")
            server = one(lambda: Family(service).server())
            kill(server)
            assert eventually(lambda: not is_alive(server))
        assert jupyter.get(f"/api/kernels/{ident}")["name"] == "base"
        assert jupyter.get(f"/api/sessions/{session['id']}")["path"] == "a.ipynb"
        with jupyter.open(ident, session="mine") as kernel:
            kernel.send("input_reply", {"value": "text"}, "stdin")
            kernel.until(printed("off"))
            assert kernel.finish_late(asked).reply["status"] == "ok"
            assert kernel.ok("a, b").result == "(1, 'text')"
        jupyter.wipe()

"""Jupyter's API: kernels, and what runs in them."""

from __future__ import annotations

import ast
import base64
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness import LiveService
from jupyter import Channels, Jupyter, Message, is_state, printed, refused
from jupyter_kernel import BOTH
from raw_ws import Socket

UUID = re.compile(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}")


@pytest.fixture
def jupyter(live_service: LiveService) -> Iterator[Jupyter]:
    found = Jupyter(live_service.port)
    yield found
    found.wipe()


@pytest.fixture
def kernel(jupyter: Jupyter) -> Iterator[Channels]:
    with jupyter.open() as channels:
        yield channels


# ---- REST ----


def test_a_kernelspec_for_each_profile(jupyter: Jupyter) -> None:
    found = jupyter.get("/api/kernelspecs")
    assert found["default"] == "python3"
    assert {"python3", "python3-isolated", "base", "base-isolated"} <= set(found["kernelspecs"])
    for name, spec in found["kernelspecs"].items():
        assert spec["name"] == name and spec["spec"]["language"] == "python"
        assert jupyter.get(f"/api/kernelspecs/{name}") == spec
        logo = jupyter.ask("GET", spec["resources"]["logo-svg"])
        assert logo.status == 200 and logo.header("Content-Type") == "image/svg+xml"
    refused(jupyter.ask("GET", "/api/kernelspecs/julia"), 404, "julia")
    refused(jupyter.ask("GET", "/kernelspecs/python3/other.png"), 404)
    assert jupyter.get("/api")["version"]


def test_the_life_of_a_kernel(jupyter: Jupyter) -> None:
    ident = jupyter.kernel("python")
    assert UUID.fullmatch(ident)
    model = jupyter.get(f"/api/kernels/{ident}")
    assert model["name"] == "python" and model["connections"] == 0
    assert model["execution_state"] == "idle" and model["last_activity"].endswith("Z")
    assert jupyter.get("/api/kernels") == [model]
    assert jupyter.get("/api/status")["kernels"] == 1
    with jupyter.open(ident):
        assert jupyter.get(f"/api/kernels/{ident}")["connections"] == 1
    assert jupyter.ask("DELETE", f"/api/kernels/{ident}").status == 204
    for method, path in (
        ("GET", ""),
        ("DELETE", ""),
        ("POST", "/interrupt"),
        ("POST", "/restart"),
    ):
        refused(jupyter.ask(method, f"/api/kernels/{ident}{path}"), 404, ident)
    assert jupyter.get("/api/kernels") == []


def test_a_kernel_is_asked_for_in_many_ways(jupyter: Jupyter) -> None:
    named: dict[str, Any] = {"name": "python3", "path": "a/b.ipynb"}
    ways: list[tuple[Any, dict[str, str]]] = [(None, {}), ({}, {}), ({"name": None}, {})]
    for body, headers in [*ways, (named, {"Content-Type": "text/plain"})]:
        reply = jupyter.ask("POST", "/api/kernels", body, **headers)
        assert reply.status == 201 and reply.json["name"] == "python3", reply
    refused(jupyter.ask("POST", "/api/kernels", {"name": "julia"}), 404, "julia")
    refused(jupyter.ask("POST", "/api/kernels", {"name": 5}), 422)
    refused(jupyter.ask("POST", "/api/kernels", {"env": {"A=B": "c"}}), 422)


def test_a_kernel_has_its_environment(jupyter: Jupyter) -> None:
    with jupyter.open(jupyter.kernel(env={"KERNEL_USERNAME": "ann"})) as kernel:
        assert kernel.ok("import os; os.environ['KERNEL_USERNAME']").result == "'ann'"


def test_a_request_sets_variables_of_kernels_only(jupyter: Jupyter) -> None:
    env = {"KERNEL_FOO": "a", "OTHER": "b", "KERNEL_GATEWAY": "c", "PATH": "/nowhere"}
    for kind in ("python3", "python3-isolated"):
        with jupyter.open(jupyter.kernel(name=kind, env=env)) as kernel:
            kernel.ok("import os")
            found = kernel.ok(f"[os.environ.get(name) for name in {[*env]}]").result
            foo, other, gateway, path = ast.literal_eval(found)
            assert (foo, other, gateway) == ("a", None, "1") and "/usr/bin" in path


def test_what_is_not_there_is_said_as_jupyter_says_it(jupyter: Jupyter) -> None:
    for path in ("/api/contents", "/api/kernels/a/b/c", "/api/terminals/1"):
        reply = jupyter.ask("GET", path)
        refused(reply, 404)
        assert (reply.json["reason"], reply.json["detail"]) == ("Not Found", "Not Found")
    reply = jupyter.ask("PUT", "/api/kernels")
    refused(reply, 405)
    assert reply.json["reason"] == "Method Not Allowed" and "POST" in (reply.header("allow") or "")
    assert "reason" not in jupyter.ask("GET", "/v1/nothing").json


def test_it_describes_itself(jupyter: Jupyter) -> None:
    reply = jupyter.ask("GET", "/api/swagger.json")
    assert reply.header("content-type") == "application/json"
    assert {"/api", "/api/kernels", "/api/sessions/{session_id}"} <= set(reply.json["paths"])
    assert not [path for path in reply.json["paths"] if path.startswith("/v1")]
    yaml = jupyter.ask("GET", "/api/swagger.yaml")
    assert yaml.header("content-type") == "text/x-yaml" and yaml.json == reply.json


def test_a_kernel_has_limits_of_its_own(jupyter: Jupyter) -> None:
    with jupyter.open() as one, jupyter.open() as other:
        other.ok("kept = 1")
        run = one.run("a = []\nwhile True: a.append(b'x' * (1 << 20))")
        assert run.reply["ename"] == "KernelDied" and "512 MB" in run.reply["evalue"], run.reply
        assert other.ok("kept").result == "1"
        (box,) = jupyter.client.listed()["sandboxes"]
        assert box["limits"]["memory_mb"] == 2048
        limits = [kernel["limits"] for kernel in box["kernels"]]
        assert [x and x["memory_mb"] for x in limits] == [None, 512, 512]


def test_kernels_share_files_and_isolated_ones_do_not(jupyter: Jupyter) -> None:
    with jupyter.open() as one, jupyter.open() as other:
        one.ok("x = 1\nopen('shared', 'w').write('here')")
        assert other.ok("open('shared').read()").result == "'here'"
        assert other.run("x").reply["ename"] == "NameError"
    ident = jupyter.kernel("python3-isolated")
    with jupyter.open(ident) as alone:
        assert alone.ok("import os; os.path.exists('shared')").result == "False"
    boxes = len(jupyter.client.listed()["sandboxes"])
    assert jupyter.ask("DELETE", f"/api/kernels/{ident}").status == 204
    assert len(jupyter.client.listed()["sandboxes"]) == boxes - 1  # its sandbox goes with it


def test_sessions(jupyter: Jupyter) -> None:
    body = {"path": "a.ipynb", "name": "a", "type": "notebook", "kernel": {"name": "python3"}}
    reply = jupyter.ask("POST", "/api/sessions", body)
    assert reply.status == 201, reply
    made = reply.json
    path = f"/api/sessions/{made['id']}"
    assert reply.header("Location") == path
    assert made["path"] == "a.ipynb" and made["notebook"] == {"path": "a.ipynb", "name": "a"}
    assert jupyter.get("/api/sessions") == [made] and jupyter.get(path) == made
    assert jupyter.get("/api/kernels") == [made["kernel"]]
    assert jupyter.ask("POST", "/api/sessions", body).json["id"] == made["id"]  # it has one
    changed = jupyter.ask("PATCH", path, {"path": "b.ipynb"}).json
    assert changed["path"] == "b.ipynb" and changed["kernel"]["id"] == made["kernel"]["id"]
    other = jupyter.ask("PATCH", path, {"kernel": {"name": "base"}}).json
    assert other["id"] == made["id"] and other["kernel"]["name"] == "base"
    assert [k["id"] for k in jupyter.get("/api/kernels")] == [other["kernel"]["id"]]
    by_id: dict[str, Any] = {"path": "c", "type": "console", "kernel": {"id": jupyter.kernel()}}
    third = jupyter.ask("POST", "/api/sessions", by_id).json
    assert third["kernel"]["id"] == by_id["kernel"]["id"] and "notebook" not in third
    assert jupyter.ask("DELETE", path).status == 204
    refused(jupyter.ask("GET", path), 404)
    refused(jupyter.ask("PATCH", path, {"path": "x"}), 404)
    refused(jupyter.ask("POST", "/api/sessions", {"path": "d", "kernel": {"id": "nope"}}), 404)
    refused(jupyter.ask("POST", "/api/sessions", {"path": "d" * 5000}), 400, "path")
    refused(jupyter.ask("POST", "/api/sessions", {"path": "\1" * 1000}), 400, "path", "JSON")
    for env in ({"A": 1}, [1], {"A": {"B": "c" * 100000}}, {"KERNEL_A": "\1" * 10000}):
        refused(jupyter.ask("POST", "/api/sessions", {"path": "d", "env": env}), 422)
    assert len(jupyter.get("/api/kernels")) == 1


# ---- cells ----


@BOTH
def test_a_cell(jupyter: Jupyter, v1: bool) -> None:
    with jupyter.open(v1=v1) as kernel:
        run = kernel.ok("import sys\nprint('out')\nprint('err', file=sys.stderr)\n40 + 2")
    shown = [kind for kind in run.kinds if kind != "stream"]
    assert shown == ["status", "execute_input", "execute_result", "status", "execute_reply"]
    assert "stream" in run.kinds[2 : run.kinds.index("execute_result")]
    (entered,) = run.of("execute_input")
    assert entered["execution_count"] == 1 and entered["code"].endswith("40 + 2")
    assert run.text() == "out\n" and run.text("stderr") == "err\n" and run.result == "42"
    assert run.reply["execution_count"] == 1 and run.reply["payload"] == []
    assert run.reply["user_expressions"] == {}
    header = run.messages[0]["header"]
    assert header["version"] == "5.3" and header["session"] and header["date"].endswith("Z")
    assert len({m["msg_id"] for m in run.messages}) == len(run.messages)


def test_execution_client_of_ipybox(jupyter: Jupyter) -> None:
    """Its very messages: buffers are an object, there is no session, lines are indented."""
    ident = jupyter.kernel("python")
    with Socket(jupyter.port, path=f"/api/kernels/{ident}/channels") as socket:
        header = {"username": "", "version": "5.0", "session": "", "msg_id": "ab" * 16}
        code = (
            "\n            import sys\n            sys.path.append('/app')\n            print(5)\n"
        )
        content = {"code": code, "silent": False, "store_history": False, "allow_stdin": False}
        socket.say(
            header=header | {"msg_type": "execute_request"},
            parent_header={},
            channel="shell",
            content=content | {"user_expressions": {}},
            metadata={},
            buffers={},
        )
        heard: list[Message] = []
        while not heard or heard[-1]["msg_type"] != "execute_reply":
            heard.append(socket.hear())
    assert all(m["parent_header"]["msg_id"] == "ab" * 16 for m in heard)
    assert "".join(m["content"]["text"] for m in heard if m["msg_type"] == "stream") == "5\n"
    assert heard[-1]["content"]["status"] == "ok"


def test_an_error_has_colours(kernel: Channels) -> None:
    run = kernel.run("def f():\n    return 1 / 0\nf()")
    (error,) = run.of("error")
    assert error["ename"] == "ZeroDivisionError" and error["evalue"] == "division by zero"
    assert any("\x1b[" in line for line in error["traceback"])
    assert {key: run.reply[key] for key in error} == error and run.reply["status"] == "error"
    assert run.kinds.index("error") < run.kinds.index("execute_reply")
    assert kernel.run("(").reply["ename"] == "SyntaxError"


def test_displays(kernel: Channels) -> None:
    run = kernel.ok(
        "from IPython.display import display, clear_output, HTML\n"
        "h = display(HTML('<b>1</b>'), display_id='x', metadata={'text/html': {'a': 1}})\n"
        "print('between')\nh.update(HTML('<b>2</b>'))\nclear_output(wait=True)"
    )
    shown = [m for m in run.messages if m["msg_type"] not in ("status", "execute_input")]
    kinds = ["display_data", "stream", "update_display_data", "clear_output", "execute_reply"]
    assert [m["msg_type"] for m in shown] == kinds
    first, _, second, cleared, _ = (m["content"] for m in shown)
    assert first["data"]["text/html"] == "<b>1</b>" and first["transient"] == {"display_id": "x"}
    assert first["metadata"] == {"text/html": {"a": 1}}
    assert second["data"]["text/html"] == "<b>2</b>" and second["transient"]["display_id"] == "x"
    assert cleared == {"wait": True}


def test_plots(kernel: Channels) -> None:
    pytest.importorskip("matplotlib")
    run = kernel.ok("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()")
    (shown,) = run.of("display_data")
    assert base64.b64decode(shown["data"]["image/png"]).startswith(b"\x89PNG")
    assert shown["data"]["text/plain"].startswith("<Figure")


def test_silence_and_history(kernel: Channels) -> None:
    assert kernel.ok("1").reply["execution_count"] == 1
    silent = kernel.ok("2", silent=True)
    assert silent.kinds == ["status", "status", "execute_reply"]
    kernel.ok("3", store_history=False)
    kernel.ok("four = 4")
    assert kernel.ok("5").reply["execution_count"] == 3
    tail = kernel.ask("history_request", hist_access_type="tail", n=2, raw=True, output=False)
    assert tail.reply["history"] == [[1, 2, "four = 4"], [1, 3, "5"]]
    found = kernel.ask("history_request", hist_access_type="search", pattern="f*r*", raw=True)
    assert [entry[2] for entry in found.reply["history"]] == ["four = 4"]
    some = kernel.ask("history_request", hist_access_type="range", session=0, start=1, stop=2)
    assert some.reply["history"] == [[1, 1, "1"]]


def test_expressions_and_payloads(kernel: Channels) -> None:
    run = kernel.ok("a = 20", user_expressions={"double": "a * 2", "bad": "nope"})
    found = run.reply["user_expressions"]
    assert found["double"]["data"]["text/plain"] == "40" and found["double"]["status"] == "ok"
    assert found["bad"]["status"] == "error" and found["bad"]["ename"] == "NameError"
    paged = kernel.ok("len?")
    (page,) = paged.reply["payload"]
    assert page["source"] == "page" and "number of items" in page["data"]["text/plain"]
    assert paged.of("display_data", "stream") == []
    kernel.ok("get_ipython().set_next_input('x = 1')")
    (item,) = kernel.ok("get_ipython().set_next_input('y')").reply["payload"]
    assert item == {"source": "set_next_input", "text": "y", "replace": False}


def test_questions(kernel: Channels) -> None:
    kernel.ok("number = 5\ndef greet(name):\n    'Says hello.'")
    found = kernel.ask("complete_request", code="x = numb", cursor_pos=8).reply
    assert found["matches"] == ["number"]
    assert (found["cursor_start"], found["cursor_end"]) == (4, 8)
    (kind,) = found["metadata"]["_jupyter_types_experimental"]
    assert kind["text"] == "number" and kind["type"] == "instance"
    seen = kernel.ask("inspect_request", code="greet", cursor_pos=3, detail_level=0).reply
    assert seen["found"] and "Says hello." in seen["data"]["text/plain"]
    assert not kernel.ask("inspect_request", code="nope", cursor_pos=1).reply["found"]
    for code, status in (("1", "complete"), ("for i in x:", "incomplete"), (")", "invalid")):
        assert kernel.ask("is_complete_request", code=code).reply["status"] == status
    assert kernel.ask("is_complete_request", code="if 1:").reply["indent"] == "    "
    about = kernel.ask("kernel_info_request").reply
    assert about["protocol_version"] == "5.3" and about["language_info"]["name"] == "python"
    assert re.fullmatch(r"3\.\d+\.\d+", about["language_info"]["version"])
    assert kernel.ask("kernel_info_request", "control").reply["status"] == "ok"
    ports = {f"{name}_port": 0 for name in ("shell", "iopub", "stdin", "control", "hb")}
    reply = kernel.ask("connect_request").reply
    assert reply.pop("status") == "ok" and reply == ports
    debug = kernel.ask("debug_request", "control", seq=7, command="initialize").reply
    assert debug["success"] is False and debug["request_seq"] == 7


def test_input(kernel: Channels) -> None:
    run = kernel.run(
        "import getpass\nprint(input('name? ') + getpass.getpass('word? '))", ["a", "b"]
    )
    first, second = run.of("input_request")
    assert first == {"prompt": "name? ", "password": False}
    assert second == {"prompt": "word? ", "password": True}
    assert run.text() == "ab\n"
    refused_ = kernel.run("input()", allow_stdin=False)
    assert refused_.reply["ename"] == "StdinNotImplementedError"


def test_the_queue_ends_with_an_error(kernel: Channels) -> None:
    kernel.ok("import time")
    first = kernel.start("input('wait')\n1 / 0")
    rest = [kernel.start(f"print({n})") for n in range(3)]
    kernel.until(lambda m: m["msg_type"] == "input_request")
    kernel.send("input_reply", {"value": ""}, "stdin")
    reply = kernel.until(
        lambda m: m["msg_type"] == "execute_reply" and m["parent_header"]["msg_id"] == first
    )
    assert reply["content"]["status"] == "error"
    assert [kernel.finish(ident).reply["status"] for ident in rest] == ["aborted"] * 3
    ident, after = kernel.start("1 / 0", stop_on_error=False), kernel.start("'on'")
    assert kernel.finish(ident).reply["status"] == "error"
    assert kernel.finish(after).result == "'on'"


def interrupt(jupyter: Jupyter, ident: str, kernel: Channels, way: str) -> None:
    if way == "rest":
        assert jupyter.ask("POST", f"/api/kernels/{ident}/interrupt", {}).status == 204
    else:
        kernel.send("interrupt_request", {}, "control")


@pytest.mark.parametrize("way", ["rest", "message"])
def test_interrupt(jupyter: Jupyter, way: str) -> None:
    ident = jupyter.kernel()
    with jupyter.open(ident) as kernel:
        running = kernel.start("print('on', flush=True)\nwhile True: a = 5")
        kernel.until(printed("on"))
        interrupt(jupyter, ident, kernel, way)
        reply = kernel.until(lambda m: m["msg_type"] == "execute_reply")
        assert reply["parent_header"]["msg_id"] == running
        assert reply["content"]["ename"] == "KeyboardInterrupt"
        assert kernel.ok("a").result == "5"


@pytest.mark.parametrize("way", ["rest", "message"])
def test_restart(jupyter: Jupyter, way: str) -> None:
    ident = jupyter.kernel()
    with jupyter.open(ident) as kernel:
        kernel.ok("a = 1\nopen('f', 'w').close()")
        if way == "rest":
            reply = jupyter.ask("POST", f"/api/kernels/{ident}/restart")
            assert reply.status == 200 and reply.json["id"] == ident
        else:
            done = kernel.send("shutdown_request", {"restart": True}, "control")
            answer = kernel.until(
                lambda m: m["msg_type"] == "shutdown_reply" and m["channel"] == "control"
            )
            assert answer["parent_header"]["msg_id"] == done and answer["content"]["restart"]
        kernel.stray(is_state("starting"))
        assert not any(map(is_state("restarting"), kernel.strays))  # for those that died
        assert kernel.run("a").reply["ename"] == "NameError"
        assert kernel.ok("import os; os.path.exists('f')").result == "True"
        assert kernel.ok("1").reply["execution_count"] == 3


def test_shutdown_by_message(jupyter: Jupyter) -> None:
    ident = jupyter.kernel()
    with jupyter.open(ident) as kernel:
        kernel.send("shutdown_request", {"restart": False}, "control")
        kernel.until(lambda m: m["msg_type"] == "shutdown_reply" and m["channel"] == "control")
        assert kernel.socket.goodbye() == 1001
    refused(jupyter.ask("GET", f"/api/kernels/{ident}"), 404)


def test_a_kernel_that_dies_is_announced_and_comes_back(kernel: Channels) -> None:
    run = kernel.run("import os\nos._exit(3)")
    assert run.reply["status"] == "error" and run.reply["ename"] == "KernelDied"
    kernel.stray(is_state("restarting"))
    kernel.stray(is_state("starting"))
    assert kernel.ok("'back'").result == "'back'"


# ---- sizes ----


@BOTH
def test_much_output_and_long_code(jupyter: Jupyter, v1: bool) -> None:
    with jupyter.open(v1=v1) as kernel:
        assert kernel.ok("print('a\\n' * 500_000)").text() == "a\n" * 500_000 + "\n"
        assert kernel.ok("print('é' * 250_000)").text() == "é" * 250_000 + "\n"
        code = "\n".join(f"x{n} = {n}" for n in range(10_000)) + "\nx9999"
        assert kernel.ok(code).result == "9999"


def test_what_is_printed_beyond_the_limit_is_told(start_live: Callable[..., LiveService]) -> None:
    jupyter = Jupyter(start_live("--live-output-bytes", "1000").port)
    with jupyter.open() as kernel:
        run = kernel.ok("print('x' * 5000)")
        assert len(run.text()) == 1000 and "--live-output-bytes" in run.text("stderr")
    jupyter.wipe()

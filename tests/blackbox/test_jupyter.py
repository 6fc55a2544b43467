"""Jupyter's API: kernels, their channels, what runs in them."""

from __future__ import annotations

import ast
import base64
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness import LiveService, eventually
from jupyter import Channels, Jupyter, Message, is_state, printed, refused
from raw_http import Closed
from raw_ws import BINARY, TEXT, Socket, frame, head

UUID = re.compile(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}")
BOTH = pytest.mark.parametrize("v1", [False, True], ids=["json", "v1"])


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


# ---- clients ----


def test_two_clients_of_one_kernel(jupyter: Jupyter) -> None:
    ident = jupyter.kernel()
    with jupyter.open(ident) as one, jupyter.open(ident, v1=True) as other:
        run = one.run("print(input('?'))", ["yes"])
        mine = {m["msg_id"] for m in run.messages if m["channel"] == "iopub"}
        seen = [other.hear() for _ in mine]
        assert {m["msg_id"] for m in seen} == mine  # and no input_request, no reply
        assert all(m["parent_header"]["msg_id"] == run.id for m in seen)
        assert other.ok("6 * 7").result == "42"


def test_who_comes_back_gets_what_was_missed(jupyter: Jupyter) -> None:
    ident = jupyter.kernel()
    with jupyter.open(ident, session="mine") as kernel:
        asked = kernel.start("print('before', flush=True)\nprint(input('?'))")
        kernel.until(lambda m: m["msg_type"] == "input_request")
    eventually(lambda: jupyter.get(f"/api/kernels/{ident}")["connections"] == 0)
    with jupyter.open(ident, session="other") as kernel:  # forgets what was kept
        kernel.send("input_reply", {"value": "text"}, "stdin")
        kernel.until(printed("text"))
    with jupyter.open(ident, session="mine") as kernel:
        second = kernel.start("print(input('?'))\n'done'")
        kernel.until(lambda m: m["msg_type"] == "input_request")
    eventually(lambda: jupyter.get(f"/api/kernels/{ident}")["connections"] == 0)
    path = jupyter.client.listed()["sandboxes"][0]["id"]
    name = "ker_" + ident.replace("-", "")
    answer = {"value": "late", "kernel_id": name}
    assert jupyter.ask("POST", f"/v1/sandboxes/{path}/stdin", answer).status == 200
    eventually(lambda: jupyter.get(f"/api/kernels/{ident}")["execution_state"] == "idle")
    with jupyter.open(ident, session="mine") as kernel:
        heard = [kernel.hear() for _ in range(4)]
        assert [m["msg_type"] for m in heard] == [
            "stream", "execute_result", "status", "execute_reply"
        ]  # fmt: skip
        assert all(m["parent_header"]["msg_id"] == second for m in heard)
        assert second != asked


def test_a_slow_client_holds_its_own_cell_only(jupyter: Jupyter) -> None:
    ident = jupyter.kernel()
    with jupyter.open(ident) as slow:
        slow.start("for n in range(4000): print('x' * 1000)\nprint('the end')")
        slow.until(printed("x"))
        with jupyter.open() as other:
            assert other.ok("'free'").result == "'free'"
        slow.until(printed("the end"))


def test_one_who_runs_a_cell_and_reads_nothing_is_cut_off(jupyter: Jupyter) -> None:
    """What others ask comes to it as well: it must not pile up without a bound."""
    ident = jupyter.kernel()
    header = {"msg_id": "x", "msg_type": "kernel_info_request", "pad": "y" * 8000}
    message = {"header": header, "parent_header": {}, "metadata": {}, "content": {}}
    text = frame(TEXT, json.dumps(message).encode())
    with jupyter.open(ident) as slow, jupyter.open(ident) as other:
        slow.start("input()")
        slow.until(lambda m: bool(m["msg_type"] == "input_request"))
        for _ in range(200):  # each time 64 questions, of which two messages of 8 KB go to all
            other.socket.send(text * 64)
            for _ in range(64):
                other.until(lambda m: bool(m["msg_type"] == "kernel_info_reply"))
            other.strays.clear()
            if jupyter.get(f"/api/kernels/{ident}")["connections"] == 1:
                return
    raise AssertionError("it was not cut off")


def test_a_question_that_is_too_long_gets_an_empty_answer(kernel: Channels) -> None:
    def matches(code: str) -> Any:
        return kernel.ask("complete_request", code=code, cursor_pos=4).reply["matches"]

    assert "print" in matches("prin")
    assert matches("prin\n" + "#" * (600 << 10)) == []


# ---- comms ----

COMMS = """
from comm import get_comm_manager, create_comm
heard = []
def target(comm, message):
    heard.append(message["content"]["data"])
    def on_msg(m):
        heard.append((m["content"]["data"], [bytes(b) for b in m["buffers"]]))
        comm.send({"echo": m["content"]["data"]}, buffers=[b"\\x00\\x01", *m["buffers"]])
        print("handled")
    comm.on_msg(on_msg)
get_comm_manager().register_target("test", target)
"""


def comm_run(kernel: Channels, kind: str, content: Message, buffers: Any = None) -> list[Message]:
    """A comm's message has no reply: its end is a status."""
    ident = kernel.send(kind, content, buffers=buffers)
    mine: list[Message] = []
    while len([m for m in mine if m["msg_type"] == "status"]) < 2:
        message = kernel.hear()
        if message["parent_header"].get("msg_id") == ident:
            mine.append(message)
    return mine


@BOTH
def test_comms_carry_bytes(jupyter: Jupyter, v1: bool) -> None:
    pytest.importorskip("comm")
    with jupyter.open(v1=v1) as kernel:
        kernel.ok(COMMS)
        comm_run(kernel, "comm_open", {"comm_id": "c1", "target_name": "test", "data": {"a": 1}})
        mine = comm_run(kernel, "comm_msg", {"comm_id": "c1", "data": {"b": 2}}, [b"", b"\xff" * 5])
        (echo,) = [m for m in mine if m["msg_type"] == "comm_msg"]
        assert echo["content"] == {"comm_id": "c1", "data": {"echo": {"b": 2}}}
        assert echo["buffers"] == [b"\x00\x01", b"", b"\xff" * 5]
        assert [m["content"]["text"] for m in mine if m["msg_type"] == "stream"] == ["handled\n"]
        assert (
            kernel.ok("heard").result
            == "[{'a': 1}, ({'b': 2}, [b'', b'\\xff\\xff\\xff\\xff\\xff'])]"
        )
        known = kernel.ask("comm_info_request", target_name="test").reply["comms"]
        assert known == {"c1": {"target_name": "test"}}
        run = kernel.ok("c = create_comm(target_name='mine', data={'x': 1}); c.close()")
        assert run.kinds[2:4] == ["comm_open", "comm_close"]
        comm_run(kernel, "comm_close", {"comm_id": "c1", "data": {}})
        assert kernel.ask("comm_info_request").reply["comms"] == {}
        mine = comm_run(kernel, "comm_open", {"comm_id": "c2", "target_name": "none", "data": {}})
        assert "comm_close" in [m["msg_type"] for m in mine]


def test_widgets(kernel: Channels) -> None:
    pytest.importorskip("ipywidgets")
    run = kernel.ok(
        "import ipywidgets\ns = ipywidgets.IntSlider(value=3)\n"
        "s.observe(lambda change: print('now', change['new']), 'value')\ns"
    )
    opened = {content["comm_id"]: content for content in run.of("comm_open")}
    assert len(opened) >= 2  # a widget and its layout
    (shown,) = run.of("display_data", "execute_result")
    model = shown["data"]["application/vnd.jupyter.widget-view+json"]["model_id"]
    assert opened[model]["data"]
    state = {"value": 7}
    data = {"method": "update", "state": state, "buffer_paths": [], "sync_data": state}
    data["method"] = "backbone" if "state" not in opened[model]["data"] else "update"
    mine = comm_run(kernel, "comm_msg", {"comm_id": model, "data": data})
    assert "now 7\n" in [m["content"].get("text") for m in mine if m["msg_type"] == "stream"]
    assert kernel.ok("s.value").result == "7"


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


# ---- what nobody should send ----


def bad_frames() -> list[tuple[int, bytes]]:
    header = {"msg_id": "a", "msg_type": "execute_request"}
    return [
        (TEXT, b"not json"),
        (TEXT, b"[]"),
        (TEXT, b"{}"),
        (TEXT, b'{"header":{},"content":{}}'),
        (TEXT, b'{"header":{"msg_id":5,"msg_type":"x"},"content":{}}'),
        (TEXT, json.dumps({"header": header, "content": 5}).encode()),
        (TEXT, json.dumps({"header": header, "content": {}, "channel": "iopub2"}).encode()),
        (TEXT, json.dumps({"header": header | {"x": "y" * 9000}, "content": {}}).encode()),
        (TEXT, json.dumps({"header": header | {"msg_type": "dance"}, "content": {}}).encode()),
        (TEXT, b'{"a":' * 100 + b"1" + b"}" * 100),
        (TEXT, json.dumps({"header": header, "content": {"code": "\0"}}).encode()),
        (BINARY, b""),
        (BINARY, b"\xff" * 8),
        (BINARY, b"\xff" * 64),
        (BINARY, (1).to_bytes(4, "big") + (2).to_bytes(4, "big")),
        (BINARY, (2).to_bytes(8, "little") + (24).to_bytes(8, "little") * 2),
        (BINARY, (7).to_bytes(8, "little") + (64).to_bytes(8, "little") * 7),
    ]


@BOTH
def test_messages_that_are_none_are_answered(jupyter: Jupyter, v1: bool) -> None:
    with jupyter.open(v1=v1) as kernel:
        for opcode, data in bad_frames():
            kernel.socket.send(frame(opcode, data))
            answer = kernel.hear()
            assert answer["msg_type"] == "stream" and answer["parent_header"] == {}, (data, answer)
            assert "not understood" in answer["content"]["text"]
        assert kernel.ok("'well'").result == "'well'"


def test_odd_contents_are_taken_as_they_come(kernel: Channels) -> None:
    cells: list[Message] = [{}, {"code": 5}, {"code": "1", "silent": "yes", "user_expressions": []}]
    for content in cells:
        assert kernel.finish(kernel.send("execute_request", content)).reply["status"] == "ok"
    for kind in ("complete_request", "inspect_request", "is_complete_request", "history_request"):
        odd: list[Message] = [{}, {"code": 5, "cursor_pos": "x", "n": "many"}, {"cursor_pos": -5}]
        for content in odd:
            kernel.finish(kernel.send(kind, content))
    comm_run(kernel, "comm_msg", {"comm_id": 5})
    comm_run(kernel, "comm_open", {})
    kernel.send("input_reply", {"value": "nobody asked"}, "stdin")
    assert kernel.ok("'well'").result == "'well'"


def test_a_frame_that_is_too_large_ends_the_connection_alone(jupyter: Jupyter) -> None:
    ident = jupyter.kernel()
    with jupyter.open(ident) as kernel:
        kernel.ok("a = 1")
        kernel.socket.send(head(TEXT, 1 << 30, masked=True) + b"\0" * 1000)
        assert kernel.socket.goodbye() == 1009
    with jupyter.open(ident) as kernel:
        assert kernel.ok("a").result == "1"


def test_who_is_no_websocket_hears_so(jupyter: Jupyter) -> None:
    ident = jupyter.kernel()
    refused(jupyter.ask("GET", f"/api/kernels/{ident}/channels"), 426)
    with pytest.raises((AssertionError, Closed)):
        jupyter.open("00000000-0000-0000-0000-000000000000")


def test_many_requests_at_once(kernel: Channels) -> None:
    """More than may wait: all are answered, in their order."""
    held = kernel.start("input()")
    kernel.until(lambda m: m["msg_type"] == "input_request")
    asked = [kernel.start(f"{n}") for n in range(300)]
    kernel.send("input_reply", {"value": ""}, "stdin")
    replies: dict[str, str] = {}
    while len(replies) < 301:
        message = kernel.hear()
        if message["msg_type"] == "execute_reply":
            replies[message["parent_header"]["msg_id"]] = message["content"]["status"]
    assert replies[held] == "ok" and replies[asked[0]] == "ok" and replies[asked[255]] == "ok"
    assert replies[asked[299]] == "error"


# ---- kernels that lie ----

LIES = """
channel = input.__globals__['channel']
def say(**members):
    channel.say({"id": channel.id, **members})
say(ev="comm", value={"type": "status", "content": {"execution_state": "dead"}})
say(ev="comm", value={"type": "comm_msg", "content": 5, "metadata": [], "buffers": "x"})
say(ev="comm", value={"type": "comm_msg", "content": {}, "buffers": ["not base64!", 5, None]})
say(ev="comm", value=5)
say(ev="expressions", value=[])
say(ev="payload", value="text")
say(ev="payload", value={"source": "page"})
say(ev="display", data=5, metadata=[], display_id=7)
say(ev="nonsense", value={})
"""


def test_a_kernel_that_lies_forges_nothing(kernel: Channels) -> None:
    run = kernel.run(LIES)
    assert run.states == ["busy", "idle"]  # none of its own making
    assert all(isinstance(m["content"], dict) for m in run.messages), run.messages
    assert run.reply["status"] == "ok" and run.reply["user_expressions"] == {}
    assert run.reply["payload"] == [{}, {"source": "page"}]
    assert kernel.ok("1").result == "1"


@pytest.mark.once
def test_payloads_have_a_bound(kernel: Channels) -> None:
    run = kernel.run(
        "channel = input.__globals__['channel']\n"
        "for _ in range(40):\n"
        "    channel.say({'id': channel.id, 'ev': 'payload', 'value': {'a': 'x' * 1_000_000}})"
    )
    assert run.reply["status"] == "ok" and 10 <= len(run.reply["payload"]) <= 16


@pytest.mark.once
def test_a_flood_for_who_only_looks_on(jupyter: Jupyter) -> None:
    """It is cut off, and the one who runs it gets all."""
    ident = jupyter.kernel()
    with jupyter.open(ident) as looker, jupyter.open(ident) as kernel:
        run = kernel.ok("for _ in range(16): print('x' * 999_999)")
        assert len(run.text()) == 16_000_000
        again = kernel.ok("for _ in range(16): print('x' * 999_999)")
        assert len(again.text()) == 16_000_000
        assert eventually(lambda: jupyter.get(f"/api/kernels/{ident}")["connections"] == 1)
        with pytest.raises(Closed):
            while True:
                looker.socket.frame()

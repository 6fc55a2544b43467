"""Live kernels: what a cell gives, what it says when it fails, and what it cannot break."""

from __future__ import annotations

import base64
import json
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from live_kernel import Kernel, Zygote, drain, read_line


def zygote(factory: pytest.TempPathFactory, *modules: str) -> Iterator[Zygote]:
    home = factory.mktemp("zygote") / "home"
    home.mkdir()
    made = Zygote(home, *modules)
    yield made
    made.close()


@pytest.fixture(scope="session")
def lean_zygote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    yield from zygote(tmp_path_factory)


@pytest.fixture(scope="session")
def data_zygote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    yield from zygote(tmp_path_factory, "pandas", "matplotlib.pyplot", "sympy", "PIL.Image")


@pytest.fixture
def kernel(lean_zygote: Zygote) -> Iterator[Kernel]:
    made = Kernel(lean_zygote.chan)
    yield made
    made.close()


@pytest.fixture
def data_kernel(data_zygote: Zygote) -> Iterator[Kernel]:
    made = Kernel(data_zygote.chan)
    yield made
    made.close()


# ---- results and state ----


def test_the_last_expression_is_the_result(kernel: Kernel) -> None:
    outcome = kernel.run("x = 20\nx + 1")
    assert outcome.result == {"text/plain": "21"}
    assert outcome.of("result")[0]["execution_count"] == 1
    assert outcome.done == {"ev": "done", "id": "exe_1", "status": "ok", "execution_count": 1}


@pytest.mark.parametrize(
    "code", ["x = 1", "None", "1;", "1; # said", "if True:\n    1", "", "  \n"]
)
def test_no_result(kernel: Kernel, code: str) -> None:
    outcome = kernel.run(code)
    assert (outcome.status, outcome.result) == ("ok", None)


def test_a_semicolon_inside_is_not_one_at_the_end(kernel: Kernel) -> None:
    assert kernel.run("a = 1; 'b;'").text == "'b;'"


def test_state_stays(kernel: Kernel) -> None:
    kernel.run("import math\ndef f(x):\n    return math.floor(x) + y")
    kernel.run("y = 2")
    assert kernel.run("f(1.5)").text == "3"


def test_earlier_cells_and_results_are_there(kernel: Kernel) -> None:
    kernel.run("41 + 1")
    assert kernel.run("_ + 1").text == "43"
    assert kernel.run("Out[1], _1, In[1], _i1, __name__").text == (
        "(42, 42, '41 + 1', '41 + 1', '__main__')"
    )


def test_cells_are_counted_but_not_those_that_are_not_kept(kernel: Kernel) -> None:
    assert kernel.run("1").done["execution_count"] == 1
    assert kernel.run("5", store_history=False).of("result")[0]["execution_count"] == 2
    silent = kernel.run("x = 6\nx", silent=True)
    assert (silent.result, silent.status) == (None, "ok")
    assert kernel.run("x, In").done["execution_count"] == 2
    assert kernel.run("1 /").done["execution_count"] == 3
    assert kernel.run("In").text == "['', '1', 'x, In', '1 /', 'In']"


def test_classes_of_a_cell_can_be_pickled(kernel: Kernel) -> None:
    kernel.run("import pickle\nclass A:\n    n = 3")
    assert kernel.run("pickle.loads(pickle.dumps(A())).n").text == "3"


def test_await_at_top_level(kernel: Kernel) -> None:
    kernel.run("import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return 5")
    assert kernel.run("await f()").text == "5"
    assert "running event loop" in kernel.run("asyncio.run(f())").error["value"]
    assert kernel.run("await asyncio.gather(f(), f())").text == "[5, 5]"


# ---- the event loop ----


def test_tasks_go_on_between_cells_and_are_awaited_in_later_ones(kernel: Kernel) -> None:
    outcome = kernel.run(
        "import asyncio\nasync def f():\n    await asyncio.sleep(0.01)\n"
        "    print('ran', flush=True)\n    return 7\n"
        "task, future = asyncio.create_task(f()), asyncio.Future()"
    )
    assert (outcome.stdout or read_line(kernel.stdout)) == "ran\n"  # and no cell runs
    assert kernel.run("task.result()").text == "7"
    kernel.run("asyncio.get_running_loop().call_later(0.01, future.set_result, 8);")
    assert kernel.run("await future").text == "8"
    assert kernel.run("asyncio.get_event_loop() is asyncio.get_running_loop()").text == "True"


@pytest.mark.parametrize("before", ["1", "import asyncio\nawait asyncio.sleep(0)"])
def test_a_thread_wakes_the_loop_between_cells(kernel: Kernel, before: str) -> None:
    """Also one that no cell has used yet."""
    kernel.run(before)
    outcome = kernel.run(
        "import asyncio, threading, time\nloop = asyncio.get_running_loop()\n"
        "async def f(): print('ran', flush=True)\n"
        "def run():\n    time.sleep(0.05)\n    asyncio.run_coroutine_threadsafe(f(), loop)\n"
        "threading.Thread(target=run).start()"
    )
    assert (outcome.stdout or read_line(kernel.stdout)) == "ran\n"


def test_a_descriptor_wakes_the_loop_between_cells(kernel: Kernel) -> None:
    kernel.run(
        "import asyncio, os, threading\nr, w = os.pipe()\nloop = asyncio.get_running_loop()\n"
        "def heard():\n    os.read(r, 1)\n    print('heard', flush=True)\n"
        "loop.add_reader(r, heard)\nloop.is_running()"
    )
    outcome = kernel.run("threading.Timer(0.05, os.write, (w, b'x')).start()")
    assert (outcome.stdout or read_line(kernel.stdout)) == "heard\n"


def test_a_cell_that_awaits_lets_other_tasks_run_and_is_alone_with_requests(kernel: Kernel) -> None:
    kernel.run(
        "import asyncio\nn = 0\nasync def count():\n    global n\n"
        "    while True:\n        n += 1\n        await asyncio.sleep(0)\n"
        "task = asyncio.create_task(count())"
    )
    kernel.start("m = n\nwhile n < m + 5: await asyncio.sleep(0)\ndisplay('a')\nn > m")
    kernel.send(op="variables", id="v", most=1)
    outcome = kernel.collect()
    assert outcome.text == "True" and len(outcome.of("display")) == 1
    assert kernel.receive()["id"] == "v"
    assert kernel.run("task.cancel()").text == "True"


def test_what_is_shown_between_cells_comes_with_the_next(kernel: Kernel) -> None:
    outcome = kernel.run(
        "import asyncio\nasync def f(n):\n    await asyncio.sleep(0)\n"
        "    for i in range(n): display(i)\n    print('shown', flush=True)\n"
        "task = asyncio.create_task(f(2))"
    )
    assert (outcome.stdout or read_line(kernel.stdout)) == "shown\n"
    outcome = kernel.run("5")
    assert [event["data"]["text/plain"] for event in outcome.of("display")] == ["0", "1"]
    assert outcome.events[-2]["data"] == {"text/plain": "5"} and outcome.stderr == ""
    outcome = kernel.run("task = asyncio.create_task(f(1000))")
    assert (outcome.stdout or read_line(kernel.stdout)) == "shown\n"
    outcome = kernel.run("6")
    assert len(outcome.of("display")) == 200
    assert "800 of the outputs between two cells" in outcome.stderr


def test_figures_of_a_cell_that_awaits(data_kernel: Kernel) -> None:
    outcome = data_kernel.run(
        "import asyncio, matplotlib.pyplot as plt\nplt.plot([1, 2])\nawait asyncio.sleep(0)\n"
        "plt.title('a');"
    )
    assert outcome.status == "ok" and len(outcome.of("display")) == 1


def test_context_variables_stay(kernel: Kernel) -> None:
    kernel.run("import asyncio, contextvars\nv = contextvars.ContextVar('v')\nv.set(1);")
    assert kernel.run("v.get()").text == "1"
    kernel.run("await asyncio.sleep(0)\nv.set(2);")
    assert kernel.run("v.get()").text == ("2" if sys.version_info >= (3, 11) else "1")
    assert kernel.run("await asyncio.create_task(asyncio.sleep(0, v.get()))").text in "12"


def test_a_task_that_fails_or_leaves_is_told_and_ends_nothing(kernel: Kernel) -> None:
    for how in ("1 / 0", "raise KeyboardInterrupt", "raise SystemExit(3)"):
        kernel.run(
            f"import asyncio, gc\nasync def f():\n    {how}\ntask = asyncio.create_task(f())"
        )
        kernel.run("await asyncio.sleep(0)\ndel task\ngc.collect();")
        outcome = kernel.run("asyncio.get_running_loop().is_running()")
        assert outcome.text == "True"


def test_a_loop_inside_the_loop(kernel: Kernel) -> None:
    """As nest_asyncio does it: requests that come meanwhile wait for the cell."""
    kernel.start(
        "import asyncio\nloop = asyncio.get_running_loop()\ndisplay('go')\n"
        "asyncio._set_running_loop(None)\nouter, loop._thread_id = loop._thread_id, None\n"
        "loop.run_until_complete(asyncio.sleep(0.05))\n"
        "loop._thread_id = outer\nasyncio._set_running_loop(loop)\n'in'"
    )
    started = kernel.receive()
    kernel.send(op="variables", id="v", most=1)
    assert kernel.collect(started).text == "'in'"
    assert kernel.receive()["id"] == "v"
    assert kernel.run("await asyncio.sleep(0)\n1").text == "1"


def test_a_cell_that_closes_all_descriptors_keeps_its_loop(kernel: Kernel) -> None:
    kernel.run("import os, asyncio\nos.closerange(3, 1000)")
    assert kernel.run("await asyncio.sleep(0)\n5").text == "5"


def test_an_idle_kernel_sleeps(kernel: Kernel) -> None:
    kernel.run("import asyncio\nawait asyncio.sleep(0)")
    wait = "/proc/{}/{}".format

    def switches() -> str:
        with open(wait(kernel.pid, "status")) as status:
            return "".join(line for line in status if "ctxt_switches" in line)

    deadline = time.monotonic() + 60
    while True:  # it falls asleep and stays so
        before = switches()
        time.sleep(0.2)
        if switches() == before:
            break
        assert time.monotonic() < deadline


# ---- output ----


def test_output_goes_through_the_descriptors_in_order_with_events(kernel: Kernel) -> None:
    kernel.start(
        "import os, sys\nprint('a')\nos.write(1, b'b')\nos.system('echo c')\n"
        "display(1)\nprint('d', file=sys.stderr)\nget_ipython().system('echo e')\ninput()",
        allow_stdin=True,
    )
    assert kernel.receive()["ev"] == "display"
    assert drain(kernel.stdout).startswith("a\nbc\n")
    assert kernel.receive()["ev"] == "input"
    assert drain(kernel.stderr) == "d\n"
    kernel.send(op="input", id="exe_1", value="x")
    assert kernel.collect().text == "'x'"


def test_commands_keep_their_place_in_the_output(kernel: Kernel) -> None:
    outcome = kernel.run("name = 'b'\nprint('a')\n!echo {name}; echo wrong >&2; exit 3\nprint('c')")
    assert outcome.stdout == "a\nb\nc\n"
    assert outcome.stderr == "wrong\n"
    assert kernel.run("_exit_code").text == "3"
    assert kernel.run("got = !echo one; echo two\ngot").text == "['one', 'two']"


def test_magics(kernel: Kernel) -> None:
    assert kernel.run("%%bash\necho from bash").stdout == "from bash\n"
    assert "per loop" in kernel.run("%timeit -n1 -r1 1").stdout
    assert "CPU times" in kernel.run("%%time\nx = 1").stdout
    assert kernel.run("%%writefile note.txt\nhello").status == "ok"
    assert kernel.run("open('note.txt').read()").text == "'hello\\n'"
    assert kernel.run("import os\nos.remove('note.txt')").status == "ok"


def test_help_is_a_display(kernel: Kernel) -> None:
    outcome = kernel.run("len?")
    (shown,) = outcome.of("display")
    assert "number of items" in shown["data"]["text/plain"]
    assert "\x1b" not in shown["data"]["text/plain"] and outcome.stdout == ""


# ---- rich output ----


def test_display_update_and_clear(kernel: Kernel) -> None:
    outcome = kernel.run(
        "from IPython.display import HTML, clear_output, update_display\n"
        "display(HTML('<b>1</b>'), display_id='here')\n"
        "update_display(HTML('<b>2</b>'), display_id='here')\n"
        "clear_output(wait=True)\n"
        "display({'a/b': 1, 'text/plain': 't'}, raw=True, metadata={'a/b': {'w': 1}})"
    )
    first, second, clear, raw = outcome.events[:-1]
    assert (first["display_id"], first["update"]) == ("here", False)
    assert first["data"]["text/html"] == "<b>1</b>"
    assert (second["display_id"], second["update"]) == ("here", True)
    assert clear == {"ev": "clear", "id": "exe_1", "wait": True}
    assert raw["data"] == {"a/b": 1, "text/plain": "t"}
    assert (raw["metadata"], raw["display_id"]) == ({"a/b": {"w": 1}}, None)


def test_what_ipykernels_session_sends(kernel: Kernel) -> None:
    kernel.run("kernel = get_ipython().kernel\nsend, io = kernel.session.send, kernel.iopub_socket")
    outcome = kernel.run(
        "about = {'data': {'text/plain': 'a'}, 'metadata': {}, 'transient': {'display_id': 'd'}}\n"
        "for kind in ('display_data', 'update_display_data'):\n"
        "    send(io, kind, about, parent=get_ipython().parent_header)\n"
        "send(io, 'execute_result', {**about, 'execution_count': 2});\n"
        "send(io, 'stream', {'name': 'stdout', 'text': 'printed'});"
    )
    kinds = [(e["ev"], e.get("display_id"), e.get("update")) for e in outcome.events[:-1]]
    assert kinds == [("display", "d", False), ("display", "d", True), ("result", "d", None)]
    assert outcome.stdout == "printed"
    assert "sends no nonsense" in kernel.run("send(io, 'nonsense', {})").error["value"]


def test_a_class_chooses_its_own_looks(kernel: Kernel) -> None:
    outcome = kernel.run(
        "class A:\n"
        "    def _repr_html_(self): return '<i>'\n"
        "    def _repr_png_(self): return b'\\x89PNG'\n"
        "    def _repr_json_(self): return {'a': 1}\n"
        "    def __repr__(self): return 'A!'\n"
        "A()"
    )
    png = base64.b64encode(b"\x89PNG").decode()
    assert outcome.result == {
        "text/plain": "A!",
        "text/html": "<i>",
        "image/png": png,
        "application/json": {"a": 1},
    }


def test_a_formatter_for_a_built_in_class_is_asked(kernel: Kernel) -> None:
    assert kernel.run("[1]").result == {"text/plain": "[1]"}
    kernel.run(
        "f = get_ipython().display_formatter.formatters['text/html']\n"
        "f.for_type(int, lambda n: f'<b>{n}</b>')"
    )
    assert kernel.run("7").result == {"text/plain": "7", "text/html": "<b>7</b>"}


@pytest.mark.parametrize(
    "value, sent",
    [
        ("{1: 'a', '1': 'b'}", {"1": "b"}),
        ("[float('nan'), float('inf'), 2**80, True]", [None, None, str(2**80), True]),
        ("'nul \\0 and \\ud800'", "nul \\x00 and ?"),
        ("b'raw'", "cmF3"),
        ("(1, [2, {'a': None}])", [1, [2, {"a": None}]]),
    ],
)
def test_values_become_json_that_everybody_reads(kernel: Kernel, value: str, sent: Any) -> None:
    (shown,) = kernel.run(f"display({{'a/b': {value}}}, raw=True)").of("display")
    assert shown["data"] == {"a/b": sent}


def test_what_is_not_json_is_left_out(kernel: Kernel) -> None:
    outcome = kernel.run(
        "loop = []\nloop.append(loop)\n"
        "display({'a/loop': loop, 'a/object': object(), 'text/plain': 'kept'}, raw=True)"
    )
    assert outcome.status == "ok"
    assert outcome.of("display")[0]["data"] == {"text/plain": "kept"}


def test_too_much_is_cut_with_a_note(kernel: Kernel) -> None:
    text = kernel.run("'x' * (20 << 20)").text
    assert text.startswith("'xxx") and "text/plain: 2097" in text and len(text) < 70_000
    (shown,) = kernel.run("display({'image/png': bytes(20 << 20)}, raw=True)").of("display")
    assert list(shown["data"]) == ["text/plain"] and "image/png" in shown["data"]["text/plain"]


# ---- errors ----


def test_an_error_shows_the_cell_and_nothing_of_ours(kernel: Kernel) -> None:
    outcome = kernel.run("def f(n):\n    return 1 / n\n\nprint('before')\nf(0)")
    assert (outcome.status, outcome.stdout, outcome.stderr) == ("error", "before\n", "")
    assert (outcome.error["name"], outcome.error["value"]) == (
        "ZeroDivisionError",
        "division by zero",
    )
    text = outcome.traceback
    assert "Cell In" in text and ", line 5" in text and "----> 2     return 1 / n" in text
    assert "\x1b" not in text and "cell/" not in text and "interactiveshell" not in text
    assert all("\n" not in line for line in outcome.error["traceback"])


def test_the_error_is_of_the_right_cell(kernel: Kernel) -> None:
    kernel.run("def f():\n    raise KeyError('k')")
    text = kernel.run("f()").traceback
    assert "In [1], line 2" in text.replace("In[", "In [") and "In [2]" in text.replace(
        "In[", "In ["
    )


def test_a_syntax_error(kernel: Kernel) -> None:
    outcome = kernel.run("x = = 1")
    assert (outcome.status, outcome.error["name"]) == ("error", "SyntaxError")
    assert "x = = 1" in outcome.traceback and outcome.error["traceback"][-1].startswith(
        "SyntaxError"
    )


@pytest.mark.parametrize(
    "code, name",
    [
        ("%nomagic", "UsageError"),
        ("return 1", "SyntaxError"),
        ("  x = 1\n y = 2", "IndentationError"),
        ("bytearray(1 << 60)", "MemoryError"),
        ("def r():\n    return r()\nr()", "RecursionError"),
        ("raise SystemError('x')", "SystemError"),
        ("import asyncio\nawait asyncio.sleep(0)\n1 / 0", "ZeroDivisionError"),
        ("raise ExceptionGroup('g', [ValueError(1)])", "ExceptionGroup"),
        ("eval('(' * 300)", "SyntaxError"),
    ],
)
def test_errors_by_name(kernel: Kernel, code: str, name: str) -> None:
    outcome = kernel.run(code)
    assert (outcome.status, outcome.error["name"]) == ("error", name)
    assert outcome.error["traceback"]
    assert kernel.run("'after'").text == "'after'"


def test_causes_are_told(kernel: Kernel) -> None:
    text = kernel.run(
        "try:\n    {}['k']\nexcept KeyError as e:\n    raise ValueError from e"
    ).traceback
    assert "KeyError" in text and "direct cause" in text


@pytest.mark.parametrize(
    "body",
    [
        "def __str__(self): raise ValueError",
        "def __str__(self): return 5",
        "def __str__(self): raise KeyboardInterrupt",
        "def __str__(self): raise SystemExit",
        "def __str__(self): return str(self)",
        "def __repr__(self): 1 / 0",
        "__module__ = property(lambda self: 1 / 0)",
        "def _render_traceback_(self): return [5]",
        "def _render_traceback_(self): 1 / 0",
        "def __getattribute__(self, name): raise RuntimeError(name)",
    ],
)
def test_exceptions_that_cannot_be_shown(kernel: Kernel, body: str) -> None:
    outcome = kernel.run(f"class Bad(Exception):\n    {body}\nraise Bad('x')")
    assert (outcome.status, outcome.error["name"] in ("Bad", "RuntimeError")) == ("error", True)
    assert kernel.run("1").text == "1"


def test_an_error_inside_a_library_shows_its_lines(kernel: Kernel) -> None:
    text = kernel.run(
        "import decimal, argparse\nargparse.ArgumentParser().add_argument()"
    ).traceback
    assert "argparse.py:" in text and "---> " in text and "add_argument" in text


def test_a_long_message_is_cut(kernel: Kernel) -> None:
    outcome = kernel.run("raise ValueError('x' * 10_000_000 + '\\0')")
    assert len(outcome.error["value"]) == 8000 and len(outcome.traceback) < 50_000
    many = kernel.run("raise ValueError('\\n' * 100_000)")
    assert len(many.error["traceback"]) <= 201


@pytest.mark.parametrize(
    "body, shown",
    [
        ("1 / 0", "ZeroDivisionError"),
        ("return repr(self)", "RecursionError"),
        ("return 5", "TypeError"),
    ],
)
def test_a_failing_repr_is_text_and_not_the_cells_error(
    kernel: Kernel, body: str, shown: str
) -> None:
    outcome = kernel.run(f"class A:\n    def __repr__(self): {body}\nx = A()\nx")
    assert (outcome.status, outcome.of("error")) == ("ok", [])
    assert shown in outcome.stderr
    assert kernel.run("1").text == "1"


def test_a_failing_repr_is_told_at_once(kernel: Kernel) -> None:
    code = "class A:\n    def __repr__(self): 1 / 0\ndisplay(A())\ninput()"
    kernel.start(code, allow_stdin=True)
    asked = kernel.receive()
    assert "ZeroDivisionError" in drain(kernel.stderr)
    kernel.send(op="input", id=asked["id"], value="")
    assert kernel.collect(asked).status == "ok"


def test_a_nested_error_is_text(kernel: Kernel) -> None:
    outcome = kernel.run("get_ipython().run_cell('1 / 0')\n'went on'")
    assert (outcome.status, outcome.text) == ("ok", "'went on'")
    assert "ZeroDivisionError" in outcome.stderr


@pytest.mark.parametrize(
    "code, value",
    [("exit(3)", "3"), ("import sys\nsys.exit()", ""), ("import sys\nsys.exit('why')", "why")],
)
def test_a_status_ends_the_cell_only(kernel: Kernel, code: str, value: str) -> None:
    kernel.run("x = 1")
    outcome = kernel.run(code)
    assert (outcome.status, outcome.error["name"]) == ("error", "SystemExit")
    assert (outcome.error["value"], outcome.stderr) == (value, "")
    assert kernel.run("x").text == "1"


@pytest.mark.parametrize("code", ["exit", "quit()", "exit()", "get_ipython().ask_exit()"])
def test_exit_ends_the_kernel_after_the_cell(kernel: Kernel, code: str) -> None:
    outcome = kernel.run(f"{code}\nprint('after')" if "(" in code else code, notebook=True)
    assert outcome.status == "ok"
    assert [event["value"]["source"] for event in outcome.of("payload")] == ["ask_exit"]
    assert kernel.left() == 0
    assert outcome.stdout == ("after\n" if "(" in code else "")


def test_exit_may_keep_the_kernel(kernel: Kernel) -> None:
    assert kernel.run("x = 1\nexit(keep_kernel=True)").status == "ok"
    assert kernel.run("x").text == "1"


# ---- input ----


def test_input_is_answered(kernel: Kernel) -> None:
    name = kernel.start("a = input('Name? ')\nb = input()\n(a, b)", allow_stdin=True)
    asked: dict[str, Any] = {"ev": "input", "id": name, "password": False}
    assert kernel.receive() == {**asked, "prompt": "Name? "}
    kernel.send(op="input", id=name, value="Ada")
    assert kernel.receive() == {**asked, "prompt": ""}
    kernel.send(op="input", id="exe_of_before", value="wrong")
    kernel.send(op="input", id=name, value="")
    assert kernel.collect().text == "('Ada', '')"


def test_getpass_is_answered(kernel: Kernel) -> None:
    name = kernel.start("import getpass\ngetpass.getpass()", allow_stdin=True)
    assert kernel.receive() == {"ev": "input", "id": name, "prompt": "Password: ", "password": True}
    kernel.send(op="input", id=name, value="secret")
    assert kernel.collect().text == "'secret'"


def test_input_that_nobody_answers(kernel: Kernel) -> None:
    outcome = kernel.run("input()")
    assert (outcome.status, outcome.error["name"], outcome.of("input")) == ("error", "EOFError", [])
    assert "channel" not in outcome.traceback
    name = kernel.start("input()", allow_stdin=True)
    asked = kernel.receive()
    kernel.send(op="input", id=name, eof=True)
    assert kernel.collect(asked).error["name"] == "EOFError"


def test_requests_that_come_during_input_wait_for_its_end(kernel: Kernel) -> None:
    name = kernel.start("x = input()", allow_stdin=True)
    asked = kernel.receive()
    kernel.send(op="complete", id="c", code="impor", cursor=5)
    kernel.send(op="input", id=name, value="1")
    assert kernel.collect(asked).status == "ok"
    assert kernel.receive()["result"]["matches"] == ["import"]


def test_input_is_interrupted_and_a_late_answer_is_nobodys(kernel: Kernel) -> None:
    name = kernel.start("input()", allow_stdin=True)
    asked = kernel.receive()
    kernel.interrupt()
    assert kernel.collect(asked).status == "interrupted"
    kernel.send(op="input", id=name, value="late")
    assert kernel.run("1").text == "1"


def test_input_in_a_thread_is_refused(kernel: Kernel) -> None:
    code = """
import threading
def ask():
    global said
    try:
        input()
    except EOFError as exc:
        said = str(exc)
thread = threading.Thread(target=ask)
thread.start()
thread.join()
said
"""
    assert "main thread" in kernel.run(code, allow_stdin=True).text


# ---- interrupts ----


@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "import time\ntime.sleep(1000)",
        "import asyncio\nawait asyncio.sleep(1000)\nx = 'late'",
        "import asyncio\nawait asyncio.sleep(0)\nwhile True: pass",
        "class A:\n    def __repr__(self):\n        while True: pass\nA()",
        "import threading\nthreading.Event().wait()",
        "[i for i in iter(int, 1)]",
    ],
)
def test_an_interrupt_ends_the_cell_and_keeps_the_state(kernel: Kernel, code: str) -> None:
    kernel.run("x = 5")
    kernel.start("display('go')\n" + code)
    started = kernel.receive()
    kernel.interrupt()
    outcome = kernel.collect(started)
    assert (outcome.status, outcome.error["name"]) == ("interrupted", "KeyboardInterrupt")
    assert "KeyboardInterrupt" in outcome.traceback
    assert kernel.run("x").text == "5"
    assert kernel.run("import asyncio\nawait asyncio.sleep(0)\nx").text == "5"


def test_an_interrupted_await_does_not_go_on_later(kernel: Kernel) -> None:
    kernel.run("import asyncio\nx, event = 5, asyncio.Event()")
    kernel.start("display('go')\nawait event.wait()\nx = 'late'")
    started = kernel.receive()
    kernel.interrupt()
    assert kernel.collect(started).error["name"] == "KeyboardInterrupt"
    assert kernel.run("event.set()\nfor _ in range(9): await asyncio.sleep(0)\nx").text == "5"


def test_an_interrupt_between_cells_ends_the_task_at_hand(kernel: Kernel) -> None:
    outcome = kernel.run(
        "import asyncio\nasync def hog():\n    print('hogs', flush=True)\n    while True: pass\n"
        "async def nap():\n    await asyncio.sleep(1000)\n"
        "other, task = [asyncio.create_task(f()) for f in (nap, hog)]"
    )
    assert (outcome.stdout or read_line(kernel.stdout)) == "hogs\n"
    kernel.interrupt()
    assert kernel.ask("sync")["ok"]
    outcome = kernel.run("task.done(), other.done()")
    assert outcome.text == "(True, False)" and "KeyboardInterrupt" in outcome.stderr


def test_a_cell_behind_a_task_that_hogs_is_interrupted_with_it(kernel: Kernel) -> None:
    outcome = kernel.run(
        "import asyncio\nasync def hog():\n    print('hogs', flush=True)\n    while True: pass\n"
        "task = asyncio.create_task(hog())"
    )
    assert (outcome.stdout or read_line(kernel.stdout)) == "hogs\n"
    kernel.start("1")
    kernel.interrupt()
    assert kernel.collect().status == "interrupted"


@pytest.mark.parametrize(
    "code",
    [
        "await asyncio.gather(hog(), asyncio.sleep(1000))",
        "task = asyncio.create_task(hog())\nawait asyncio.sleep(1000)",
        "asyncio.get_running_loop().call_soon(block)\nawait asyncio.sleep(1000)",
    ],
)
def test_what_keeps_the_loop_from_a_cell_is_interrupted_too(kernel: Kernel, code: str) -> None:
    kernel.run(
        "import asyncio\ndef block():\n    print('hogs', flush=True)\n    while True: pass\n"
        "async def hog(): block()"
    )
    kernel.start(code)
    assert read_line(kernel.stdout) == "hogs\n"
    kernel.interrupt()
    assert kernel.collect().status == "interrupted"
    assert kernel.run("await asyncio.sleep(0)\n5").text == "5"


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0] == "Z"


def test_an_interrupt_ends_a_command_with_its_children(kernel: Kernel) -> None:
    kernel.start("!sleep 60 & echo $!; wait; echo no")
    pid = int(read_line(kernel.stdout))
    kernel.interrupt()
    outcome = kernel.collect()
    assert (outcome.status, outcome.stdout) == ("interrupted", "")
    while not is_gone(pid):  # it was told to; the test's own limit is for one that is not
        os.sched_yield()


def test_a_cell_may_catch_its_interrupt(kernel: Kernel) -> None:
    kernel.start(
        "try:\n    display(1)\n    while True: pass\nexcept KeyboardInterrupt:\n    x = 'c'\nx"
    )
    started = kernel.receive()
    kernel.interrupt()
    outcome = kernel.collect(started)
    assert (outcome.status, outcome.text) == ("ok", "'c'")


def test_raising_one_is_the_same(kernel: Kernel) -> None:
    assert kernel.run("raise KeyboardInterrupt").status == "interrupted"


def test_a_cells_own_handler_ends_with_it(kernel: Kernel) -> None:
    kernel.run("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)")
    kernel.start("display(1)\nwhile True: pass")
    started = kernel.receive()
    kernel.interrupt()
    assert kernel.collect(started).status == "interrupted"


def test_a_cell_that_stops_the_loop_does_no_harm(kernel: Kernel) -> None:
    kernel.run("import asyncio\nloop = asyncio.get_running_loop()\n_ = loop.call_soon(loop.stop)")
    assert kernel.run("await asyncio.sleep(0.01)\n5").text == "5"
    assert kernel.run("loop.stop()\nawait asyncio.sleep(0.01)\n6").text == "6"
    mine = kernel.run("await asyncio.sleep(0)\nraise RuntimeError('mine')")
    assert mine.error["value"] == "mine"


def test_an_interrupt_of_nothing_is_harmless(kernel: Kernel) -> None:
    kernel.run("x = 1")
    for _ in range(50):
        kernel.interrupt()
    assert kernel.run("pass").status in ("ok", "interrupted")  # the last may still be on its way
    assert kernel.run("x").text == "1"


def test_interrupts_at_any_moment_leave_one_done_each(kernel: Kernel) -> None:
    """A thread of the kernel sends them, so that they come in the middle of everything."""
    kernel.run(
        "import os, random, signal, threading\nstop, x = threading.Event(), 1\n"
        "def send():\n"
        "    while not stop.wait(random.random() / 500): os.kill(os.getpid(), signal.SIGINT)\n"
        "thread = threading.Thread(target=send)"
    )
    kernel.run("thread.start()")
    cells = ["sum(range(5000))\nx", "import asyncio\nawait asyncio.sleep(0.001)", "!true", "1 / 0"]
    statuses = [kernel.run(cells[turn % 4]).status for turn in range(400)]
    assert set(statuses) == {"ok", "error", "interrupted"}
    while kernel.run("stop.set()\nthread.join()").status != "ok":
        pass
    for code in ("x", "import asyncio\nawait asyncio.sleep(0)\nx"):
        while (outcome := kernel.run(code)).status == "interrupted":  # the last may be this one's
            pass
        assert outcome.text == "1"


# ---- what user code does to its kernel ----


@pytest.mark.parametrize(
    "code",
    [
        "import sys\nsys.stdout = sys.stderr = None",
        "import sys\ndel sys.stdout",
        "import sys\nsys.stdout.close()",
        "import io, sys\nsys.stdout = io.StringIO()",
        "import sys\nclass S:\n    def flush(self): 1 / 0\nsys.stdout = S()",
        "import sys\nclass S:\n    def flush(self): raise SystemExit\nsys.stdout = S()",
        "import os\nos.closerange(0, 3)",
        "import json\njson.dumps = json.loads = json.JSONEncoder = json.JSONDecoder = None",
        "import json.encoder\njson.encoder.c_make_encoder = json.encoder.encode_basestring = None",
        "import os\nos.getpid = lambda: 1\nos._exit = os.write = None",
        "import signal, threading\nsignal.signal = threading.get_ident = threading.RLock = None",
        "import sys\nsys.setrecursionlimit(60)",
        "import sys\nsys.displayhook = sys.excepthook = None",
        "import builtins\nbuiltins.input = builtins.print = builtins.display = None",
        "import sys\nsys.modules.clear()",
        "import traceback as t\nt.format_exception_only = t.TracebackException = None",
        "import linecache\nlinecache.cache.clear()\nlinecache._ipython_cache = None",
        "get_ipython().displayhook.quiet = None",
        "get_ipython().user_ns_hidden.clear()",
        "import os\nos.environ.clear()",
        "import os, tempfile\nd = tempfile.mkdtemp()\nos.chdir(d)\nos.rmdir(d)",
        "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()",
        "import gc\ngc.disable()\ngc.set_threshold(1)",
        "%reset -f",
        "globals().clear()",
        "import warnings\nwarnings.simplefilter('error')",
    ],
)
def test_a_kernel_outlives(kernel: Kernel, code: str) -> None:
    """It may be a poorer kernel, but every cell has its end, and errors are told."""
    kernel.run(code)
    assert kernel.run("1 / 0").error["name"] in ("ZeroDivisionError", "TypeError")
    assert kernel.run("x = 2").status in ("ok", "error")
    assert kernel.ask("variables", most=10)["ev"] == "reply"
    assert kernel.end() == 0


def test_a_low_recursion_limit_does_not_outlast_its_cell(kernel: Kernel) -> None:
    kernel.run(
        "import sys\nfor n in range(1, 999):\n"
        "    try: sys.setrecursionlimit(n)\n    except RecursionError: continue\n    break"
    )
    assert "----> 1 1 / 0" in kernel.run("1 / 0").traceback


@pytest.mark.parametrize(
    "patch",
    [
        "InteractiveShell.run_cell = None",
        "InteractiveShell._run_cell = None",
        "InteractiveShell.run_code = lambda *a, **k: 1 / 0",
        "InteractiveShell.transform_cell = None",
        "type(get_ipython())._showtraceback = None",
        "type(get_ipython()).take_shown = None",
        "get_ipython().display_formatter.format = None",
        "InteractiveShell.clear_instance()",
        "InteractiveShell.showtraceback = None",
    ],
)
def test_a_patched_ipython_still_ends_its_cells(kernel: Kernel, patch: str) -> None:
    kernel.run(f"from IPython.core.interactiveshell import InteractiveShell\n{patch}")
    for code in ("1", "1 / 0"):
        assert kernel.run(code).status in ("ok", "error")
    assert kernel.end() == 0


def test_a_fork_that_comes_back_is_not_the_kernel(kernel: Kernel) -> None:
    outcome = kernel.run(
        "import os, sys\npid = os.fork()\ndisplay(pid)\nif pid: status = os.waitpid(pid, 0)[1]\n"
        "print('both')\npid > 0"
    )
    assert (outcome.text, len(outcome.of("display"))) == ("True", 1)
    assert outcome.stdout == "both\nboth\n"
    assert kernel.run("status").text == "0"


@pytest.mark.parametrize(
    "code, status", [("sys.exit(3)", 3), ("1 / 0", 1), ("sys.exit()", 0), ("input()", 1)]
)
def test_a_forked_child_ends_with_its_own_status(kernel: Kernel, code: str, status: int) -> None:
    kernel.run(
        "import os, sys\nif pid := os.fork():\n    status = os.waitpid(pid, 0)[1] >> 8\n"
        f"else:\n    {code}",
        allow_stdin=True,
    )
    assert kernel.run("status").text == str(status)


def test_multiprocessing(kernel: Kernel) -> None:
    kernel.run(
        "import multiprocessing as m\n"
        "with m.get_context('fork').Pool(2) as p:\n    got = p.map(abs, [-1, 2])"
    )
    assert kernel.run("got").text == "[1, 2]"


def test_threads_speak_for_the_cell_that_runs_and_never_after_the_end(kernel: Kernel) -> None:
    kernel.run(
        "import threading\nstop = threading.Event()\n"
        "def speak():\n    while not stop.is_set(): display('t')\n"
        "thread = threading.Thread(target=speak)\nthread.start()"
    )
    for _ in range(20):
        assert kernel.run("1").status == "ok"  # collect() checks whose the events are
    kernel.run("stop.set()\nthread.join()")
    assert kernel.run("2").events[0]["ev"] == "result"


def test_a_kernel_without_its_socket_ends(kernel: Kernel) -> None:
    kernel.start("import os\nos.closerange(3, 2000)")
    with pytest.raises((EOFError, ConnectionError)):
        kernel.collect()
    assert kernel.left() == 1


def test_a_kernel_that_leaves(kernel: Kernel) -> None:
    kernel.start("import os\nos._exit(7)")
    with pytest.raises((EOFError, ConnectionError)):
        kernel.collect()
    assert kernel.left() == 7


def test_the_end_of_requests_is_the_end(kernel: Kernel) -> None:
    kernel.run("import threading\nthreading.Thread(target=threading.Event().wait).start()")
    assert kernel.end() == 0


# ---- environment ----


def test_setup_is_for_the_life_of_the_kernel(kernel: Kernel) -> None:
    kernel.run(
        "import os\nos.makedirs('proj', exist_ok=True)\nopen('proj/my_mod.py', 'w').write('n = 4')"
    )
    assert kernel.ask("setup", env={"A": "1"}, cwd="proj")["ok"]
    assert kernel.run(
        "import my_mod\nos.environ['A'], os.path.basename(os.getcwd()), my_mod.n"
    ).text == ("('1', 'proj', 4)")
    assert kernel.run("!echo $A").stdout == "1\n"
    kernel.run("os.remove('my_mod.py')\nimport shutil; shutil.rmtree('../proj')")


def test_modules_are_found_in_the_current_directory(kernel: Kernel) -> None:
    code = "import os, tempfile\nos.chdir(tempfile.mkdtemp())\nopen('here_only.py', 'w').close()\n"
    assert kernel.run(code + "import here_only, sys\nsys.path.count('')").text == "1"


def test_setup_that_fails_says_so(kernel: Kernel) -> None:
    reply = kernel.ask("setup", env={}, cwd="/nowhere")
    assert not reply["ok"] and "/nowhere" in reply["error"]


def test_environment_of_one_execution(kernel: Kernel) -> None:
    code = "import os\nos.environ.get('A'), os.environ.get('B')"
    kernel.run("import os\nos.environ['A'] = 'mine'")
    assert kernel.run(code, env={"A": "1", "B": "2"}).text == "('1', '2')"
    assert kernel.run(code).text == "('mine', None)"
    kernel.run("os.environ['B'] = 'set here'", env={"B": "2"})
    assert kernel.run(code).text == "('mine', 'set here')"


# ---- completion, inspection, variables ----


def test_completion(kernel: Kernel) -> None:
    kernel.run("word = 'a'\ndef work(): pass")
    result = kernel.ask("complete", code="x = wor", cursor=7)["result"]
    assert dict(zip(result["matches"], result["types"])) == {"word": "instance", "work": "function"}
    assert (result["start"], result["end"]) == (4, 7)
    result = kernel.ask("complete", code="é = word.upp", cursor=12)["result"]
    assert "upper" in " ".join(result["matches"]) and result["end"] == 12
    nothing = kernel.ask("complete", code="zzz", cursor=3)
    assert nothing["ok"] and nothing["result"]["matches"] == []


def test_inspection(kernel: Kernel) -> None:
    kernel.run('def work(a, b=2):\n    """Does it."""\n    return a')
    found = kernel.ask("inspect", code="work(", cursor=5, detail=0)["result"]
    assert found["found"] and "work(a, b=2)" in found["data"]["text/plain"]
    assert "Does it." in found["data"]["text/plain"] and "\x1b" not in found["data"]["text/plain"]
    deep = kernel.ask("inspect", code="work", cursor=2, detail=1)["result"]
    assert "return a" in deep["data"]["text/plain"]
    assert kernel.ask("inspect", code="nope", cursor=2, detail=0)["result"] == {
        "found": False,
        "data": {},
    }


def listed(kernel: Kernel, most: int = 100) -> dict[str, Any]:
    reply = kernel.ask("variables", most=most)
    assert reply["ok"], reply
    return {row["name"]: row for row in reply["result"]["variables"]}


def test_variables(kernel: Kernel) -> None:
    assert listed(kernel) == {}
    kernel.run(
        "n = 5\ntext = 'ab'\nitems = list(range(1000))\nd = {'a': [1, (2,)]}\nimport os\n_p = 1\n7"
    )
    rows = listed(kernel)
    assert sorted(rows) == ["d", "items", "n", "os", "text"]
    assert rows["n"] == {
        "name": "n",
        "type": "int",
        "len": None,
        "shape": None,
        "nbytes": None,
        "repr": "5",
    }
    assert (rows["text"]["len"], rows["text"]["repr"]) == (2, "'ab'")
    assert rows["items"]["repr"] == "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...]"
    assert rows["items"]["len"] == 1000
    assert (rows["d"]["repr"], rows["os"]["repr"]) == ("{'a': [1, (2,)]}", "<module os>")
    reply = kernel.ask("variables", most=2)["result"]
    assert (len(reply["variables"]), reply["total"]) == (2, 5)


def test_variables_that_are_big_slow_or_broken(kernel: Kernel) -> None:
    kernel.run(
        """
class Slow:
    def __repr__(self):
        while True:
            try: pass
            except: pass
class Broken:
    def __repr__(self): 1 / 0
class Odd:
    def __repr__(self): return 5
    def __len__(self): return 1 / 0
class Liar:
    __class__ = property(lambda self: 1 / 0)
class Long:
    def __repr__(self): return 'x' * 100_000
slow, broken, odd, liar, long = Slow(), Broken(), Odd(), Liar(), Long()
deep = []
for _ in range(100_000): deep = [deep]
loop = {}
loop['a'] = loop
big = {i: 'x' * 100 for i in range(100_000)}
huge = 1 << 10_000_000
many = [[[[i] * 9 for i in range(9)] for j in range(9)] for k in range(9)]
text = 'y' * 50_000_000
"""
    )
    rows = listed(kernel)
    assert {name: row["repr"] for name, row in rows.items()}[
        "slow"
    ] == "<Slow, whose repr() takes too long>"
    assert rows["broken"]["repr"] == "<Broken, whose repr() fails>"
    assert rows["huge"]["repr"] == "<int of 10000001 bits>"
    assert rows["loop"]["repr"] == "{'a': {'a': {'a': {...}}}}"
    assert rows["deep"]["repr"] == "[[[[...]]]]"
    assert all(len(row["repr"]) <= 200 for row in rows.values()) and len(rows) >= 15
    assert kernel.run("import signal\nsignal.getitimer(signal.ITIMER_REAL)").text == "(0.0, 0.0)"


def test_a_request_that_hangs_is_interrupted(kernel: Kernel) -> None:
    kernel.run(
        "class A:\n    def __dir__(self):\n        print('go')\n        while True: pass\na = A()"
    )
    kernel.send(op="complete", id="c", code="a.", cursor=2)
    assert read_line(kernel.stdout) == "go\n"
    kernel.interrupt()
    assert kernel.receive()["result"]["matches"] == []
    assert kernel.run("1").status == "interrupted"  # it was meant for what came behind it
    assert kernel.run("1").text == "1"


def test_an_interrupt_that_comes_too_late_is_not_the_next_cells(kernel: Kernel) -> None:
    kernel.run("1")
    kernel.interrupt()
    kernel.send(op="sync", id="s")
    assert kernel.receive()["ok"]
    assert kernel.run("2").text == "2"


def test_requests_that_are_wrong_are_answered(kernel: Kernel) -> None:
    assert "op 'dance' is not known" in kernel.ask("dance")["error"]
    assert "KeyError" in kernel.ask("complete", code="x")["error"]
    assert kernel.run("1").text == "1"


# ---- the zygote ----


def test_a_zygote_has_one_thread_and_writes_nothing(lean_zygote: Zygote) -> None:
    assert lean_zygote.state["threads"] == 1
    assert not [name for name in lean_zygote.state["files"] if "sqlite" in name or "epoll" in name]
    assert list(lean_zygote.home.iterdir()) == []


def test_a_kernel_starts_as_if_no_cell_had_run(kernel: Kernel) -> None:
    names = kernel.run("import sys\nlist(globals()), hasattr(sys, 'last_value')").text
    assert "'f'" not in names and "False" in names
    assert kernel.run(
        "sys.getrecursionlimit(), sys.argv, len(Out), _dh[0].__class__"
    ).text.startswith("(1000, [''], 1")


def test_kernels_share_nothing(lean_zygote: Zygote) -> None:
    seen = []
    for _ in range(2):
        made = Kernel(lean_zygote.chan)
        assert made.run("'x' in globals()").text == "False"
        seen.append(made.run("x = 1\ndisplay(1, display_id=True)").of("display")[0]["display_id"])
        assert made.end() == 0
        made.close()
    assert seen[0] != seen[1]


# ---- libraries ----


def png(event: dict[str, Any]) -> bytes:
    return base64.b64decode(event["data"]["image/png"], validate=True)


@pytest.mark.parametrize("which", ["data_kernel", "kernel"])
def test_figures_come_out_by_themselves(which: str, request: pytest.FixtureRequest) -> None:
    kernel: Kernel = request.getfixturevalue(which)
    outcome = kernel.run(
        "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.figure()\nplt.plot([1]);"
    )
    shown = outcome.of("display")
    assert outcome.status == "ok" and len(shown) == 2
    assert all(png(event).startswith(b"\x89PNG") for event in shown)
    assert shown[0]["data"]["text/plain"].startswith("<Figure")
    assert kernel.run("plt.get_fignums()").text == "[]"


def test_figures_of_a_cell_that_fails(data_kernel: Kernel) -> None:
    outcome = data_kernel.run("import matplotlib.pyplot as plt\nplt.plot([1])\n1 / 0")
    assert len(outcome.of("display")) == 1 and outcome.error["name"] == "ZeroDivisionError"


@pytest.mark.parametrize("which", ["data_kernel", "kernel"])
def test_figures_in_the_formats_that_are_asked_for(
    which: str, request: pytest.FixtureRequest
) -> None:
    kernel: Kernel = request.getfixturevalue(which)
    plot = "import matplotlib.pyplot as plt\nplt.plot([1]);"
    (shown,) = kernel.run(plot, formats=["svg"]).of("display")
    assert "image/png" not in shown["data"] and "<svg" in shown["data"]["image/svg+xml"]
    (shown,) = kernel.run(plot, formats=["png", "svg"]).of("display")
    assert {"image/png", "image/svg+xml"} <= set(shown["data"])
    (shown,) = kernel.run(plot).of("display")
    assert "image/png" in shown["data"] and "image/svg+xml" not in shown["data"]


def test_showing_and_saving_figures(data_kernel: Kernel) -> None:
    data_kernel.start(
        "%matplotlib inline\nimport matplotlib.pyplot as plt, io\n"
        "plt.plot([1])\nplt.show()\nprint('after')\nf, a = plt.subplots()\n"
        "to = io.BytesIO()\nf.savefig(to)\nplt.close(f)\nto.getvalue()[1:4]"
    )
    first = data_kernel.receive()
    outcome = data_kernel.collect(first)
    assert first["ev"] == "display" and len(outcome.of("display")) == 1
    assert (outcome.text, outcome.stdout) == ("b'PNG'", "after\n")


def test_frames_images_and_formulas(data_kernel: Kernel) -> None:
    frame = data_kernel.run("import pandas as pd\ndf = pd.DataFrame({'a': [1, 2]})\ndf").result
    assert "<table" in frame["text/html"] and frame["text/plain"].split() == [
        "a",
        "0",
        "1",
        "1",
        "2",
    ]
    picture = data_kernel.run("from PIL import Image\nImage.new('RGB', (2, 2))")
    assert png(picture.of("result")[0]).startswith(b"\x89PNG")
    formula = data_kernel.run("import sympy\nsympy.sqrt(sympy.Symbol('x')) / 2").result
    assert "\\frac{\\sqrt{x}}{2}" in formula["text/latex"] and formula["text/plain"] == "sqrt(x)/2"


def test_pil_shows_pictures_in_the_cell(data_kernel: Kernel) -> None:
    """Also where programs could do so: PIL asks those first."""
    outcome = data_kernel.run(
        "import os, sys, tempfile\nplace = tempfile.mkdtemp()\nname = f'{place}/xdg-open'\n"
        "open(name, 'w').write('#!/bin/sh\\necho opened\\n')\nos.chmod(name, 0o755)\n"
        "os.environ['PATH'] = f\"{place}:{os.environ['PATH']}\"\n"
        "from PIL import Image\nImage.new('RGB', (2, 2)).show()"
    )
    (shown,) = outcome.of("display")
    assert png(shown).startswith(b"\x89PNG") and outcome.stdout == ""


def test_variables_of_libraries(data_kernel: Kernel) -> None:
    data_kernel.run(
        "import numpy as np, pandas as pd\nz = np.zeros((300, 200))\ns = np.arange(3)\n"
        "df = pd.DataFrame({'a': range(1000)})\nf = np.float64(1.5)"
    )
    rows = listed(data_kernel)
    assert (rows["z"]["shape"], rows["z"]["nbytes"], rows["z"]["len"]) == ([300, 200], 480000, 300)
    assert rows["z"]["repr"] == "<numpy.ndarray 300 x 200>"
    assert rows["s"]["repr"] == "array([0, 1, 2])"
    assert (rows["df"]["shape"], rows["df"]["type"]) == ([1000, 1], "pandas.core.frame.DataFrame")
    assert json.dumps(rows["f"]["repr"]) == '"1.5"'


def test_a_zygote_with_libraries_has_one_thread(data_zygote: Zygote) -> None:
    assert data_zygote.state["threads"] == 1
    assert not [name for name in data_zygote.state["files"] if ".ttf" in name]
    assert list(data_zygote.home.iterdir()) == []

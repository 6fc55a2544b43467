"""Live kernels: what a cell gives, and the event loop in which it runs."""

from __future__ import annotations

import base64
import sys
import time
from typing import Any

import pytest

from live_kernel import Kernel, drain, read_line

pytest_plugins = ["cell_kernel"]


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

"""Cells in a live kernel: what they show, print and keep."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from harness import LiveService
from live import Box, Client


@pytest.fixture
def client(live_service: LiveService) -> Client:
    return Client(live_service.port)


@pytest.fixture
def box(client: Client) -> Iterator[Box]:
    with client.box() as made:
        yield made


@pytest.fixture
def data(client: Client) -> Iterator[Box]:
    with client.box(profile="data") as made:
        yield made


def shown(box: Box, code: str, **fields: Any) -> list[tuple[str, Any]]:
    """What a cell showed and printed, in order."""
    found: list[tuple[str, Any]] = []
    with box.stream(code, **fields) as events:
        for event in events:
            if event.type in ("start", "end"):
                continue
            value = event.data["data"] if "data" in event.data else event.data
            if found and event.type in ("stdout", "stderr") and found[-1][0] == event.type:
                found[-1] = (event.type, found[-1][1] + value)
            else:
                found.append((event.type, value))
    return found


# ---------------------------------------------------------------------------- what a cell shows


def test_the_last_expression_is_the_result(box: Box) -> None:
    result = box.run("x = 20\nx + 1")
    assert result["status"] == "ok" and result["exit_code"] == 0 and result["error"] is None
    assert result["text"] == "21"
    assert result["results"] == [
        {"data": {"text/plain": "21"}, "metadata": {}, "is_main_result": True}
    ]
    assert box.run("x + 2;")["text"] is None
    assert box.run("x = 3")["results"] == []


def test_displays_are_not_the_main_result(box: Box) -> None:
    result = box.run("display('a', {'b': 1})\n'c'")
    assert [(r["data"]["text/plain"], r["is_main_result"]) for r in result["results"]] == [
        ("'a'", False),
        ("{'b': 1}", False),
        ("'c'", True),
    ]
    assert result["text"] == "'c'"


def test_mime_reprs(box: Box) -> None:
    box.run(
        "class A:\n"
        "    def _repr_html_(self): return '<b>é</b>'\n"
        "    def _repr_png_(self): return b'\\x89PNG'\n"
        "    def _repr_latex_(self): return '$x$'\n"
        "    def _repr_json_(self): return {'a': [1, None]}\n"
        "    def __repr__(self): return 'an A'\n"
    )
    assert box.run("A()")["results"][0]["data"] == {
        "text/plain": "an A",
        "text/html": "<b>é</b>",
        "image/png": base64.b64encode(b"\x89PNG").decode(),
        "text/latex": "$x$",
        "application/json": {"a": [1, None]},
    }


def test_a_repr_that_fails_is_no_result(box: Box) -> None:
    result = box.run("class B:\n    def __repr__(self): return 1/0\nB()")
    assert "ZeroDivisionError" in result["stderr"] + json.dumps(result["error"])
    assert box.text("1") == "1"


def test_update_display_and_clear_output(box: Box) -> None:
    result = box.run("h = display('one', display_id='d')\nh.update('two')")
    assert [r["data"]["text/plain"] for r in result["results"]] == ["'two'"]
    assert [e[0] for e in shown(box, "h.update('three')")] == ["display"]
    with box.stream("h.update('four')") as events:
        event = events.until("display")
        assert event.data["update"] is True and event.data["display_id"] == "d"
    cleared = (
        "from IPython.display import clear_output\n"
        "print('gone'); display('gone too'); clear_output(%s); print('there')"
    )
    for wait in (False, True):
        result = box.run(cleared % wait)
        assert (result["stdout"], result["results"]) == ("there\n", [])
        assert ("clear", {"wait": wait}) in shown(box, cleared % wait)


def test_top_level_await(box: Box) -> None:
    assert box.text("import asyncio\nawait asyncio.sleep(0, 'slept')") == "'slept'"
    assert box.text("async def f():\n    return 3\nawait f()") == "3"


def test_magics_and_shell_lines(box: Box) -> None:
    assert box.text("%pwd") == "'/workspace'"
    assert box.run("!echo from the shell; echo error >&2")["stdout"] == "from the shell\n"
    assert box.text("files = !printf 'a\\nb'\nlist(files)") == "['a', 'b']"
    assert "ns" in box.run("%timeit -n1 -r1 pass")["stdout"]
    assert box.run("%%bash\necho $((6*7))")["stdout"] == "42\n"
    assert box.run("%nothing")["error"]["name"] == "UsageError"


def test_an_error_has_name_value_and_traceback(box: Box) -> None:
    result = box.run("def f(n):\n    return 1 / n\nprint('before')\nf(0)")
    assert (result["status"], result["exit_code"], result["stdout"]) == ("error", 1, "before\n")
    error = result["error"]
    assert (error["name"], error["value"]) == ("ZeroDivisionError", "division by zero")
    text = "\n".join(error["traceback"])
    assert "return 1 / n" in text and "f(0)" in text and "cell/live.py" not in text
    assert "\x1b" not in text
    assert box.run("if")["error"]["name"] == "SyntaxError"
    assert box.run("exit(3)")["error"]["name"] == "SystemExit"
    assert box.text("n = 1\nf(n)") == "1.0"


@pytest.mark.parametrize(
    "code, status",
    [
        ("3", 3),
        ("", 0),
        ("0", 0),
        ("None", 0),
        ("True", 1),
        ("256 + 7", 7),
        ("-1", 255),
        ("'x'", 1),
    ],
)
def test_the_exit_code_is_that_of_a_program(box: Box, code: str, status: int) -> None:
    result = box.run(f"import sys\nsys.exit({code})\nprint('not me')")
    assert (result["exit_code"], result["error"]["name"]) == (status, "SystemExit")
    assert (result["stdout"], result["status"]) == ("", "error")


def test_an_exit_code_that_defies_being_told(box: Box) -> None:
    code = "class E(SystemExit):\n    code = property(lambda self: 1 / 0)\nraise E"
    assert box.run(code)["exit_code"] == 1
    code = "class N(int):\n    def __and__(self, other): raise SystemExit\nraise SystemExit(N(4))"
    assert box.run(code)["exit_code"] == 4
    assert box.run("1")["kernel_restarted"] is False


def test_what_is_in_an_exception_group_is_told(box: Box) -> None:
    code = """
import asyncio
async def fails(n):
    raise ValueError(f'number {n}')
async with asyncio.TaskGroup() as group:
    for n in (1, 2):
        group.create_task(fails(n))
"""
    found = box.run(code)["error"]
    assert found["name"] == "ExceptionGroup"
    text = "\n".join(found["traceback"])
    assert "ValueError: number 1" in text and "ValueError: number 2" in text and "in fails" in text
    code = "class E(ExceptionGroup):\n    exceptions = property(lambda self: 1 / 0)\n"
    assert box.run(code + "raise E('x', [ValueError()])")["error"]["name"] == "E"


def test_errors_that_defy_being_shown(box: Box) -> None:
    result = box.run("class E(Exception):\n    def __str__(self): raise self\nraise E")
    assert result["status"] == "error" and result["error"]["name"] == "E"
    result = box.run("raise ValueError('x\\0' + 'y' * 100000 + '\\ud800')")
    assert result["error"]["name"] == "ValueError" and len(result["error"]["value"]) < 20000
    assert box.run("def f():\n    f()\nf()")["error"]["name"] == "RecursionError"
    assert box.text("1") == "1"


# ---------------------------------------------------------------------------- with the data profile


def test_frames_come_as_html_and_text(data: Box) -> None:
    result = data.run("import pandas as pd\npd.DataFrame({'a': [1, 2]})")
    assert "<table" in result["results"][0]["data"]["text/html"]
    assert "   a\n0  1" in result["text"]


def test_formulas_come_as_latex(data: Box) -> None:
    result = data.run("import sympy\nsympy.sqrt(sympy.Symbol('x')) / 2")
    assert "\\frac{\\sqrt{x}}{2}" in result["results"][0]["data"]["text/latex"]


def test_pictures_come_as_png(data: Box) -> None:
    code = "from PIL import Image\nImage.new('RGB', (3, 2), 'red')"
    picture = base64.b64decode(data.run(code)["results"][0]["data"]["image/png"])
    assert picture.startswith(b"\x89PNG\r\n")


def test_figures_come_by_themselves_in_the_formats_asked_for(data: Box) -> None:
    plot = "import matplotlib.pyplot as plt\nplt.plot([1, 2]);"
    (shown,) = data.run(plot)["results"]
    assert shown["data"]["image/png"].startswith("iVBOR") and "image/svg+xml" not in shown["data"]
    (shown,) = data.run("plt.plot([1, 2]);", formats=["svg"])["results"]
    assert "<svg" in shown["data"]["image/svg+xml"] and "image/png" not in shown["data"]
    kinds = {
        k for r in data.run("plt.plot([1]);", formats=["svg", "png"])["results"] for k in r["data"]
    }
    assert {"image/png", "image/svg+xml"} <= kinds
    (shown,) = data.run("plt.plot([1, 2]);")["results"]
    assert "image/png" in shown["data"] and "image/svg+xml" not in shown["data"]


def test_figures_are_before_the_value_in_the_result(data: Box) -> None:
    code = "import pandas as pd\npd.Series([1, 3]).plot()"
    assert [kind for kind, _ in shown(data, code)] == ["result", "display"]
    figure, value = data.run(code)["results"]
    assert "image/png" in figure["data"] and not figure["is_main_result"]
    assert value["data"]["text/plain"].startswith("<Axes") and value["is_main_result"]


def test_figures_and_prints_stay_in_order(data: Box) -> None:
    code = "import matplotlib.pyplot as plt\nprint(1)\nplt.plot([1])\nplt.show()\nprint(2)"
    assert [kind for kind, _ in shown(data, code)] == ["stdout", "display", "stdout"]


# ---------------------------------------------------------------------------- what a cell prints


def test_what_is_printed_does_not_overtake_what_is_shown(box: Box) -> None:
    code = "for i in range(300):\n    print(i)\n    display(i)"
    expected: list[tuple[str, Any]] = []
    for i in range(300):
        expected += [("stdout", f"{i}\n"), ("display", {"text/plain": str(i)})]
    assert shown(box, code) == expected


def test_output_of_all_kinds_is_in_order(box: Box) -> None:
    code = """
import ctypes, os, subprocess, sys
libc = ctypes.CDLL(None)
print('python')
display('shown')
libc.puts(b'c')
display('again')
subprocess.run(['echo', 'child'])
display('three')
if os.fork() == 0:
    print('forked')
    sys.stdout.flush()
    os._exit(0)
os.wait()
display('four')
os.write(1, b'raw\\n')
print('error', file=sys.stderr)
'five'
"""
    assert shown(box, code) == [
        ("stdout", "python\n"),
        ("display", {"text/plain": "'shown'"}),
        ("stdout", "c\n"),
        ("display", {"text/plain": "'again'"}),
        ("stdout", "child\n"),
        ("display", {"text/plain": "'three'"}),
        ("stdout", "forked\n"),
        ("display", {"text/plain": "'four'"}),
        ("stdout", "raw\n"),
        ("stderr", "error\n"),
        ("result", {"text/plain": "'five'"}),
    ]


def test_what_is_printed_and_written_stays_in_order(box: Box) -> None:
    code = """
import os
for i in range(0, 300, 3):
    print(i)
    os.write(1, f'{i + 1}\\n'.encode())
    os.system(f'echo {i + 2}') if i < 30 else print(i + 2)
"""
    assert box.run(code)["stdout"] == "".join(f"{i}\n" for i in range(300))
    result = box.run("print('a')\nos.close(1)\nos.write(2, b'b')\nos.write(1, b'c')")
    assert (result["stderr"], result["error"]["name"]) == ("b", "OSError")


def test_output_comes_as_it_is_printed(box: Box) -> None:
    with box.stream("print('first')\ninput()\nprint('second')") as events:
        events.printed("first")
        events.until("input")
        box.do("/stdin", value="")
        events.printed("second")
        assert events.until("end").data["status"] == "ok"


def test_characters_are_never_torn(box: Box) -> None:
    text = "aé€😀" * 30000
    code = (
        "import os\ndata = ('aé€😀' * 30000).encode()\n"
        "for i in range(0, len(data), 999):\n    os.write(1, data[i : i + 999])"
    )
    with box.stream(code) as events:
        got = "".join(e.data["data"] for e in events if e.type == "stdout")
    assert got == text


def test_what_is_no_text_is_replaced(box: Box) -> None:
    assert box.run("import os\n_ = os.write(1, b'a\\xff\\xe2\\x82')")["stdout"] == "a\ufffd\ufffd"


def test_output_beyond_the_limit_is_cut(box: Box) -> None:
    result = box.run("print('x' * 5000)", output_bytes=100)
    assert (result["stdout"], result["stdout_truncated"]) == ("x" * 100, True)
    assert (result["status"], result["limit_hit"]) == ("ok", "output")
    assert result["usage"]["output_bytes"] == 5001
    result = box.run("print('y')")
    assert (result["stdout"], result["stdout_truncated"]) == ("y\n", False)


def test_threads_that_print_between_cells_are_heard_in_the_next(box: Box) -> None:
    box.run(
        "import os, threading\nr, w = os.pipe()\nr2, w2 = os.pipe()\n"
        "def later():\n    os.read(r, 1)\n    os.write(1, b'late\\n')\n    os.write(w2, b'x')\n"
        "threading.Thread(target=later).start()"
    )
    result = box.run("_ = os.write(w, b'x')\n_ = os.read(r2, 1)\nprint('now')")
    assert result["stdout"] == "late\nnow\n"


# ---------------------------------------------------------------------------- what stays


def test_state_is_kept(box: Box) -> None:
    box.run("import math\nx = [1]\ndef f():\n    return x\nopen('kept', 'w').write('here')")
    assert box.text("x.append(math.floor(2.5)); f()") == "[1, 2]"
    assert box.text("open('kept').read()") == "'here'"


def test_the_execution_counter(box: Box) -> None:
    assert [box.run("1")["execution_count"] for _ in range(3)] == [1, 2, 3]
    assert box.text("_3 + _2") == "2"
    assert box.get()["kernels"][0]["execution_count"] == 4
    box.run("1", store_history=False)
    silent = box.run("y = 5\nprint('printed')\ny", silent=True)
    assert (silent["text"], silent["results"], silent["stdout"]) == (None, [], "printed\n")
    assert box.run("y")["execution_count"] == 5
    assert box.get()["executions"] == 7


def test_environment_of_the_sandbox_and_of_one_execution(client: Client) -> None:
    with client.box(env={"COLOUR": "blue", "WHERE": "there"}) as box:
        ask = "import os\nos.environ.get('COLOUR'), os.environ.get('WHERE'), os.environ.get('NEW')"
        assert box.text(ask) == "('blue', 'there', None)"
        assert box.text(ask, env={"COLOUR": "red", "NEW": "1"}) == "('red', 'there', '1')"
        assert box.text(ask) == "('blue', 'there', None)"
        assert box.run("!echo $COLOUR", env={"COLOUR": "green"})["stdout"] == "green\n"


def test_variables_that_python_reads_when_it_starts(client: Client) -> None:
    files = [{"path": "lib/mine.py", "content": "name = 'from lib'"}]
    with client.box(env={"TZ": "Asia/Tokyo", "PYTHONPATH": "lib"}, files=files) as box:
        ask = "import time, mine\nmine.name, time.tzname[0], time.localtime(0).tm_hour"
        assert box.text(ask) == "('from lib', 'JST', 9)"
        assert box.text(ask, env={"TZ": "UTC"}) == "('from lib', 'UTC', 0)"
        assert box.text(ask) == "('from lib', 'JST', 9)"


def test_files_are_there_from_the_beginning(client: Client) -> None:
    files = [
        {"path": "a.txt", "content": "text"},
        {"path": "d/b.bin", "content": base64.b64encode(b"\0\xff").decode(), "encoding": "base64"},
    ]
    with client.box(files=files) as box:
        assert box.text("open('a.txt').read(), open('d/b.bin', 'rb').read()") == (
            "('text', b'\\x00\\xff')"
        )


def test_files_that_a_cell_made_are_in_its_result(box: Box) -> None:
    old = box.run(
        "import os, time\nopen('old', 'w').write('1')\n"
        "while time.clock_gettime(5) <= os.stat('old').st_ctime: pass"  # the tick's: see fd.h
    )
    assert old["status"] == "ok", old
    result = box.run("import os\nos.mkdir('d')\nopen('d/new', 'w').write('22')")
    assert [(f["path"], f["size_bytes"]) for f in result["files"]] == [("d/new", 2)]


def test_a_result_has_all_that_is_known(box: Box) -> None:
    result = box.run("sum(range(10))")
    assert result["id"].startswith("exe_") and result["kernel_id"].startswith("ker_")
    assert result["kernel_id"] == box.made["kernels"][0]["id"]
    assert result["profile"] == "base" and result["warm"] is True
    assert result["kernel_restarted"] is False and result["limit_hit"] is None
    assert (result["signal"], result["timed_out"], result["denied"]) == (None, False, [])
    assert set(result["usage"]) == {
        "wall_ms",
        "queue_ms",
        "cpu_ms",
        "memory_peak_bytes",
        "output_bytes",
    }
    assert result["usage"]["memory_peak_bytes"] > 1 << 20
    looked_up = box.client.ask("GET", f"/v1/executions/{result['id']}").json
    assert looked_up["state"] == "done" and looked_up["result"] == result


def test_what_is_refused_is_said(box: Box) -> None:
    result = box.run("import socket\ns = socket.socket()\ns.connect(('192.0.2.1', 80))")
    assert result["error"]["name"] == "OSError"
    assert [d["rule"] for d in result["denied"]] == ["network:none"]
    assert box.run("1")["denied"] == []


def test_large_code_and_large_results(box: Box) -> None:
    text = "x" * 3_000_000
    assert box.text(f"len('{text}')") == "3000000"
    result = box.run("'é' * 2_000_000")
    assert len(result["text"]) == 2_000_002 and not result["results_truncated"]
    result = box.run("class H:\n    def _repr_html_(self): return 'x' * (20 << 20)\nH()")
    assert result["status"] == "ok" and "can be shown" in result["text"]
    assert result["results_truncated"] is True and result["limit_hit"] == "output"


# ---- linear algebra ----

PRODUCT = """
import numpy, os
a = numpy.ones((300, 300))
threads = lambda: len(os.listdir('/proc/self/task'))
before, right = threads(), bool((a @ a == 300).all())
print(before, right, os.environ['OPENBLAS_NUM_THREADS'])
"""


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="needs two processors")
def test_libraries_use_as_many_threads_as_there_are_processors(client: Client) -> None:
    """In a kernel that forks they are gone and come back."""
    fork = "pid = os.fork()\nif not pid: os._exit(int(not (a @ a == 300).all()))\n"
    for cpus in (1, 2):
        with client.box(profile="data", limits={"cpus": cpus}) as box:
            assert box.run(PRODUCT)["stdout"] == f"{cpus} True {cpus}\n"
            assert box.text(fork + "os.waitpid(pid, 0)[1]") == "0"
        body = {"code": PRODUCT, "profile": "data", "limits": {"cpus": cpus}}
        reply = client.ask("POST", "/v1/execute", body)
        assert reply.json["stdout"] == f"{cpus} True {cpus}\n", reply

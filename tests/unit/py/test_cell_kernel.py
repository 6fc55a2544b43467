"""Live kernels: what user code cannot break, its environment, questions, and the zygote."""

from __future__ import annotations


import pytest

from cell_kernel import listed
from live_kernel import Kernel, Zygote, read_line

pytest_plugins = ["cell_kernel"]


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

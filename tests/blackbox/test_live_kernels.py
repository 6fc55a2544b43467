"""Live kernels: what ends them, what breaks them, who shares them, and questions to them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from harness import LiveService, eventually, settled
from live import Box, Client, error
from live_kernels import SLEEP, dead, fresh, keep


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    """One whose grace period is short, but not for a cell that a busy machine lets wait."""
    options = ("--profiles", "base", "--live-grace-ms", "2000")
    yield from settled(LiveService(tmp_path_factory.mktemp("quick"), *options))


@pytest.fixture
def box(quick: LiveService) -> Iterator[Box]:
    with Client(quick.port).box() as made:
        yield made


# ---- deaths ----


@pytest.mark.parametrize(
    ("code", "words", "signal"),
    [
        ("import os\nos._exit(7)", "status 7", None),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "signal 9", 9),
        ("import ctypes\nctypes.string_at(0)", "signal 11", 11),
        ("import os\nos.abort()", "signal 6", 6),
        ("import os\nos.execv('/bin/false', ['false'])", "status 1", None),
        ("import os\nos.closerange(0, 1100)\nwhile True: pass", "", None),
        ("import os\nos.closerange(0, 1100)", "", None),
    ],
)
def test_a_kernel_that_dies(box: Box, code: str, words: str, signal: int | None) -> None:
    keep(box)
    result = box.run("print('before', flush=True)\n" + code)
    dead(result, "killed", words)
    assert result["stdout"] == "before\n"
    if signal:
        assert result["signal"] == signal
    fresh(box)


@pytest.mark.parametrize("code", ["os.close(1)", "os.closerange(0, 3)", "os.dup2(reader, 1)"])
def test_what_cannot_be_printed_is_not_lost_in_silence(box: Box, code: str) -> None:
    box.run("import os\nreader, writer = os.pipe()")
    result = box.run(f"kept = 1\n{code}\nprint('unheard')")
    assert (result["status"], result["stdout"]) == ("error", "")
    assert result["error"]["name"] == "OSError" and "is lost" in result["error"]["value"]
    assert box.text("kept") == "1"


def test_a_kernel_that_needs_too_much_memory(quick: LiveService) -> None:
    with Client(quick.port).box(limits={"memory_mb": 64}) as box:
        keep(box)
        result = box.run("a = []\nwhile True: a.append(b'x' * (1 << 20))")
        dead(result, "memory_exceeded", "64 MB")
        assert (result["limit_hit"], result["signal"]) == ("memory", 9)
        fresh(box)


def test_a_kernel_that_dies_between_executions(box: Box) -> None:
    keep(box)
    box.run(
        "import os, threading\nr, w = os.pipe()\n"
        "threading.Thread(target=lambda: (os.read(r, 1), os._exit(1))).start()"
    )
    box.run("_ = os.write(w, b'x')")  # it may live to tell, or not

    def is_another() -> bool:
        found = box.get("/kernels")["kernels"][0]
        return bool(found["restarts"] and found["state"] == "idle")

    assert eventually(is_another)
    assert box.run("'x' in globals()")["text"] == "False"
    assert box.text("open('kept').read()") == "'here'"


def test_those_that_wait_run_in_the_next_kernel(box: Box) -> None:
    keep(box)
    with box.stream("input()\nimport os\nos._exit(1)") as events:
        events.until("input")
        waiting = [box.later(f"print({i}, 'x' in globals())") for i in range(3)]
        while box.get()["kernels"][0]["queued"] < 3:
            pass
        box.do("/stdin", value="")
        dead(events.until("end").data, "killed")
    results = [connection.reply().json for connection in waiting]
    assert [r["stdout"] for r in results] == [f"{i} False\n" for i in range(3)]
    assert [r["kernel_restarted"] for r in results] == [True, False, False]


def test_recursion_and_lack_of_memory_are_errors(quick: LiveService) -> None:
    with Client(quick.port).box(limits={"memory_mb": 128}) as box:
        assert box.run("def f():\n    f()\nf()")["error"]["name"] == "RecursionError"
        assert box.run("x = bytearray(1 << 50)")["error"]["name"] == "MemoryError"
        assert box.text("1") == "1"


# ---- breaking it ----


@pytest.mark.parametrize(
    "code",
    [
        "import sys\nsys.stdout = None",
        "import sys\nsys.stdout = sys.stderr = 5",
        "import sys\nsys.stdout.close()",
        "import sys\nsys.modules.clear()",
        "import builtins\nfor name in dir(builtins): delattr(builtins, name)",
        "from IPython import get_ipython\nget_ipython().run_cell = None",
        "from IPython import get_ipython\nget_ipython().displayhook = None",
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "for name in list(vars(InteractiveShell)):\n"
        "    try: delattr(InteractiveShell, name)\n"
        "    except Exception: pass",
        "input.__globals__['channel'].say = None",
        "input.__globals__['channel'].id = 'other'",
        "input.__globals__.clear()",
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)",
        "import sys\nsys.settrace(lambda *a: 1 / 0)",
        "import sys\nsys.setrecursionlimit(60)",
        "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))",
        "import os\nos.rmdir('/workspace') if 0 else None\nos.chdir('/proc')",
        "import gc\ngc.disable()\nimport threading\nthreading.Lock = None",
        "import json\njson.encoder = json.dumps = None",
        "raise BaseException",
        "import sys\nsys.exit()",
        "class X(type):\n    def __instancecheck__(a, b): 1/0\n"
        "    def __subclasscheck__(a, b): 1/0\n"
        "class E(BaseException, metaclass=X):\n    pass\nraise E()",
        "get_ipython().events.register('post_run_cell', lambda *a: 1 / 0)",
        "get_ipython().ast_transformers.append(5)",
        "get_ipython().ex = get_ipython().user_ns = None",
    ],
)
def test_a_cell_that_breaks_its_kernel(box: Box, code: str) -> None:
    """Whatever it did, this result and the next one come, and a restart mends it."""
    for text in (code, "1"):
        result = box.run(text, timeout_ms=5000)
        assert result["status"] in ("ok", "error", "killed", "timeout", "interrupted"), result
        assert result["status"] in ("ok",) or result["error"]["name"]
    box.do("/restart")
    assert box.text("40 + 2") == "42"


def test_fork_that_returns_twice(box: Box) -> None:
    result = box.run(
        "import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\n"
        "print('parent' if pid else 'child')"
    )
    assert (result["status"], sorted(result["stdout"].split())) == ("ok", ["child", "parent"])
    result = box.run(
        "pid = os.fork()\nif pid == 0: raise ValueError('in the child')\nos.waitpid(pid, 0)[1] >> 8"
    )
    assert result["text"] == "1" and "in the child" in result["stderr"] and result["error"] is None
    assert box.text("6 * 7") == "42"


def test_children_that_stay_do_not_hold_up_the_cell(box: Box) -> None:
    code = "import subprocess\np = subprocess.Popen(['sleep', '1000'])\nprint('started')"
    assert box.run(code)["stdout"] == "started\n"
    assert box.text("repr(p.poll())") == "'None'"


# ---- order and company ----


def test_executions_of_a_kernel_come_one_after_the_other(box: Box) -> None:
    with box.stream("seen = [0]\ninput()") as events:
        events.until("input")
        waiting = []
        for i in range(1, 6):
            waiting.append(box.later(f"seen.append({i})\nseen"))
            while box.get()["kernels"][0]["queued"] < i:
                pass
        kernel = box.get()["kernels"][0]
        assert (kernel["state"], kernel["execution_id"]) == ("busy", events.id)
        box.do("/stdin", value="")
        events.until("end")  # or our leaving would interrupt it
    results = [connection.reply().json for connection in waiting]
    assert [r["text"] for r in results] == [str(list(range(n + 1))) for n in range(1, 6)]
    assert [r["execution_count"] for r in results] == [2, 3, 4, 5, 6]


def test_kernels_share_files_and_nothing_else(box: Box) -> None:
    other = box.kernel()
    box.run("x = 'mine'\nopen('shared', 'w').write('seen')\nimport os\nos.environ['A'] = '1'")
    ask = "import os\n'x' in globals(), open('shared').read(), os.environ.get('A')"
    assert box.text(ask, kernel_id=other) == "(False, 'seen', None)"
    box.run("x = 'other'", kernel_id=other)
    assert box.text("x") == "'mine'"
    assert box.text("os.chdir('/tmp') or os.getcwd()", kernel_id=other) == "'/tmp'"
    assert box.text("os.getcwd()") == "'/workspace'"
    found = box.get("/kernels")["kernels"]
    assert [(k["id"], k["is_default"]) for k in found] == [
        (box.made["kernels"][0]["id"], True),
        (other, False),
    ]
    assert box.get(f"/kernels/{other}")["execution_count"] == 3


def test_kernels_run_at_the_same_time(box: Box) -> None:
    other = box.kernel()
    with box.stream(
        "import os\nos.mkfifo('a'); os.mkfifo('b')\nprint('there', flush=True)\n"
        "open('a').read()\nopen('b', 'w').write('x')"
    ) as events:
        events.printed("there")
        code = "open('a', 'w').write('x')\nopen('b').read()"
        assert box.text(code, kernel_id=other) == "'x'"
        assert events.until("end").data["status"] == "ok"


def test_a_kernel_has_its_own_directory_and_environment(quick: LiveService) -> None:
    with Client(quick.port).box(env={"A": "all", "B": "all"}) as box:
        box.run("import os\nos.mkdir('sub')")
        other = box.kernel(cwd="/workspace/sub", env={"B": "own"})
        ask = "import os\nos.getcwd(), os.environ['A'], os.environ['B']"
        expected = "('/workspace/sub', 'all', 'own')"
        assert box.text(ask, kernel_id=other) == expected
        box.do("/restart", kernel_id=other)
        assert box.text(ask, kernel_id=other) == expected
        assert box.get(f"/kernels/{other}")["cwd"] == "/workspace/sub"
        reply = box.ask("POST", "/kernels", {"cwd": "/nowhere"})
        error(reply, 422, "bad_value", "/nowhere")
        assert len(box.get("/kernels")["kernels"]) == 2


def test_a_kernel_that_is_deleted(box: Box) -> None:
    other = box.kernel()
    with box.stream(SLEEP, kernel_id=other) as events:
        events.printed("runs")
        waiting = box.later("1", kernel_id=other)
        while box.get(f"/kernels/{other}")["queued"] < 1:
            pass
        assert box.ask("DELETE", f"/kernels/{other}").status == 204
        dead(events.until("end").data, "killed", "deleted")
        error(waiting.reply(), 404, "no_such_kernel")
    for method, path in (("GET", f"/kernels/{other}"), ("DELETE", f"/kernels/{other}")):
        error(box.ask(method, path), 404, "no_such_kernel", other)
    error(box.ask("POST", "/execute", {"code": "1", "kernel_id": other}), 404, "no_such_kernel")
    error(box.ask("DELETE", f"/kernels/{box.made['kernels'][0]['id']}"), 409, "is_default")
    assert len(box.get("/kernels")["kernels"]) == 1


def test_a_restart(box: Box) -> None:
    keep(box)
    with box.stream(SLEEP) as events:
        events.printed("runs")
        waiting = box.later("1")
        while box.get()["kernels"][0]["queued"] < 1:
            pass
        kernel = box.do("/restart")
        assert (kernel["state"], kernel["restarts"], kernel["execution_count"]) == ("idle", 1, 0)
        dead(events.until("end").data, "killed", "restarted")
        error(waiting.reply(), 409, "interrupted")
    fresh(box)


def test_a_sandbox_has_so_many_kernels(box: Box) -> None:
    with box.client.box(limits={"pids": 256, "memory_mb": 2048}) as large:
        made = [large.kernel() for _ in range(63)]
        error(large.ask("POST", "/kernels", {}), 422, "limit_too_high", "64")
        found = {large.text(f"{i}", kernel_id=k) for i, k in enumerate(made)}
        assert found == set(map(str, range(63)))


# ---- questions ----


def test_completion(box: Box) -> None:
    box.run("import os\nmy_own_name = 1")
    found = box.do("/complete", code="my_own_n")
    assert found == {"matches": ["my_own_name"], "types": ["instance"], "start": 0, "end": 8}
    found = box.do("/complete", code="é = os.path.joi + 1", cursor=15)
    assert (found["matches"], found["start"], found["end"]) == (["os.path.join"], 4, 15)
    assert box.do("/complete", code="nothing_like_it")["matches"] == []


def test_an_object_that_never_answers_does_not_hold_the_kernel(box: Box) -> None:
    box.run("import time\nclass Mute:\n    def __dir__(self): time.sleep(1000)\nmute = Mute()")
    assert box.do("/complete", code="mute.a")["matches"] == []
    assert box.text("6 * 7") == "42"


def test_inspection(box: Box) -> None:
    box.run("def f(a, b=2):\n    'adds things'\n    return a + b")
    found = box.do("/inspect", code="f(")
    assert found["found"] and "adds things" in found["data"]["text/plain"]
    assert "return a + b" not in found["data"]["text/plain"]
    assert "return a + b" in box.do("/inspect", code="f", detail=1)["data"]["text/plain"]
    assert box.do("/inspect", code="no_such_name") == {"found": False, "data": {}}


def test_variables(box: Box) -> None:
    assert box.get("/variables") == {"variables": [], "total": 0, "truncated": False}
    box.run("import os\nx = [1, 2]\nname = 'é'\ndef f(): pass\n_hidden = 1")
    found = box.get("/variables")
    rows = {row["name"]: row for row in found["variables"]}
    assert {"x", "name"} <= set(rows) and rows["x"]["type"] == "list"
    assert rows["x"]["repr"] == "[1, 2]" and rows["name"]["repr"] == "'é'"
    found = box.get("/variables?limit=1")
    assert len(found["variables"]) == 1 and found["truncated"] is True
    box.run("class Bad:\n    def __repr__(self): 1/0\nbad = Bad()")
    assert "bad" in {row["name"] for row in box.get("/variables")["variables"]}


def test_questions_wait_for_the_cell(box: Box) -> None:
    with box.stream("input()\nlate_name = 1") as events:
        events.until("input")
        with ThreadPoolExecutor() as pool:
            answer = pool.submit(box.do, "/complete", code="late_n")
            box.do("/stdin", value="")
            assert answer.result()["matches"] in (["late_name"], [])
        events.until("end")
    assert box.do("/complete", code="late_n")["matches"] == ["late_name"]


def test_a_question_that_takes_too_long_or_breaks_the_kernel(box: Box) -> None:
    box.run(
        "class Dies:\n    def __dir__(self):\n        import os\n        os._exit(3)\nd = Dies()"
    )
    reply = box.ask("POST", "/complete", {"code": "d."})
    assert reply.status in (200, 502, 503, 409, 500), reply
    if reply.status != 200:
        assert reply.json["error"]["code"] == "kernel_failed"
    assert box.text("1") == "1"


# ---- bad input ----

BAD: list[tuple[str, str, Any, str]] = [
    ("POST", "/execute", {}, "code"),
    ("POST", "/execute", {"code": 1}, "code"),
    ("POST", "/execute", {"code": "1", "timeout_ms": 0}, "timeout_ms"),
    ("POST", "/execute", {"code": "1", "timeout_ms": "x"}, "timeout_ms"),
    ("POST", "/execute", {"code": "1", "formats": ["bmp"]}, "formats"),
    ("POST", "/execute", {"code": "1", "formats": "png"}, "formats"),
    ("POST", "/execute", {"code": "1", "on_disconnect": "explode"}, "on_disconnect"),
    ("POST", "/execute", {"code": "1", "env": {"A": 1}}, "env"),
    ("POST", "/execute", {"code": "1", "env": {"A=B": "x"}}, "env"),
    ("POST", "/execute", {"code": "1", "silent": "maybe"}, "silent"),
    ("POST", "/execute", {"code": "1", "output_bytes": 0}, "output_bytes"),
    ("POST", "/execute", {"code": "1", "nonsense": 0}, "nonsense"),
    ("POST", "/interrupt", {"kernel_id": 5}, "kernel_id"),
    ("POST", "/restart", {"kernel": "x"}, "kernel"),
    ("POST", "/stdin", {}, "value"),
    ("POST", "/stdin", {"value": 1}, "value"),
    ("POST", "/complete", {}, "code"),
    ("POST", "/complete", {"code": "a", "cursor": -1}, "cursor"),
    ("POST", "/inspect", {"code": "a", "detail": 2}, "detail"),
    ("POST", "/kernels", {"cwd": 1}, "cwd"),
    ("POST", "/kernels", {"env": {"": "x"}}, "env"),
    ("GET", "/variables?limit=0", None, "limit"),
    ("GET", "/variables?limit=x", None, "limit"),
]


def test_bad_requests_name_the_field(box: Box) -> None:
    for method, path, value, field in BAD:
        reply = box.ask(method, path, value)
        assert reply.status == 422 and field in json.dumps(reply.json), (path, value, reply)
    for path in ("/execute", "/interrupt", "/restart", "/stdin", "/complete", "/inspect"):
        value = {"code": "1"} if path in ("/execute", "/complete", "/inspect") else {}
        value |= {"value": "x"} if path == "/stdin" else {}
        error(
            box.ask("POST", path, value | {"kernel_id": "ker_no"}), 404, "no_such_kernel", "ker_no"
        )
    error(box.ask("GET", "/variables?kernel_id=ker_no"), 404, "no_such_kernel")
    too_long = box.ask("POST", "/execute", {"code": "1", "timeout_ms": 2**31 - 1})
    error(too_long, 422, "limit_too_high")
    most = box.client.ask("GET", "/v1/info").json["maxima"]
    for name, words in (
        ("cpu_seconds", f"{most['cpu_seconds']} s"),
        ("output_bytes", f"{most['output_bytes'] >> 20} MiB"),
    ):
        too_much = box.ask("POST", "/execute", {"code": "1", name: most[name] + 1})
        error(too_much, 422, "limit_too_high", f"maximum of {words}")
        assert box.run("1", **{name: most[name]})["status"] == "ok"
    assert box.ask("POST", "/execute", {"code": "a\0b"}).status == 422


def test_a_request_without_a_body_means_the_default_kernel(box: Box) -> None:
    assert box.ask("POST", "/interrupt").json == {"interrupted": False}
    assert box.ask("POST", "/restart").status == 200
    assert box.ask("POST", "/kernels").status == 201


def test_the_same_execute_twice_runs_once(box: Box) -> None:
    box.run("n = 0")
    key = {"Idempotency-Key": "once"}
    first, second = (box.ask("POST", "/execute", {"code": "n += 1\nn"}, **key) for _ in range(2))
    assert first.json == second.json and first.json["text"] == "1"
    assert box.text("n") == "1"

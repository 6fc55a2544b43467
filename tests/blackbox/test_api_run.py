"""POST and GET /v1/run: a program in a fresh sandbox, told in the words of a live cell."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest

from family import init_of, kill, named
from harness import Service, eventually
from http_client import Stream, download, execute, get, post
from live import LINES, SSE, Client, Events, error
from raw_ws import talk, until

# Of a cell's result; `warnings` only when there are some.
FIELDS = (
    "stdout stderr exit_code timed_out duration_ms files id status signal stdout_truncated "
    "stderr_truncated files_truncated results_truncated execution_count results text error "
    "kernel_id kernel_restarted limit_hit denied usage profile warm"
)
PNG = b"\x89PNG\r\n\x1a\n"
DATA = {"profile": "data", "timeout_ms": 60000}
RICH = """
class Rich:
    def __repr__(self): return "plain"
    def _repr_html_(self): return "<b>html</b>"
    def _repr_markdown_(self): return "**md**", {"isolated": True}
    def _repr_svg_(self): return "<svg/>"
    def _repr_png_(self): return b"\\x89PNG"
    def _repr_pdf_(self): return b"%PDF"
    def _repr_jpeg_(self): return b"\\xff\\xd8"
    def _repr_latex_(self): return "$x$"
    def _repr_json_(self): return {"a": [1, None, 2.5]}
    def _repr_javascript_(self): return "alert(1)"
"""


def run(service: Service, code: str, **fields: Any) -> dict[str, Any]:
    reply = post(service.port, "/v1/run", {"code": code, "timeout_ms": 20000} | fields)
    assert reply.status == 200, (reply.status, reply.body)
    result: dict[str, Any] = reply.json
    return result


def data_of(result: dict[str, Any]) -> list[dict[str, Any]]:
    return [one["data"] for one in result["results"]]


def joined(events: list[Any]) -> list[Any]:
    """What was printed comes in pieces, of which the last counts."""
    return [
        event
        for event, after in zip(events, [*events[1:], None])
        if after is None or event.type != after.type or event.type not in ("stdout", "stderr")
    ]


def stream(service: Service, code: str, form: dict[str, str] = SSE, **fields: Any) -> Events:
    body = {"code": code, "timeout_ms": 20000} | fields
    return Events(service.port, "POST", "/v1/run", body, form)


# ---------------------------------------------------------------------------- values


def test_the_last_value_is_a_result_and_not_printed(service: Service) -> None:
    result = run(service, "print('said')\n6 * 7")
    assert (result["stdout"], result["text"], result["status"]) == ("said\n", "42", "ok")
    value = {"data": {"text/plain": "42"}, "metadata": {}, "is_main_result": True}
    assert result["results"] == [value]
    assert execute(service.port, "6 * 7")["stdout"] == "42\n"


def test_its_fields_are_those_of_a_cell(live_service: Any) -> None:
    with Client(live_service.port).box() as box:
        cell = box.run("6 * 7")
    result = run(live_service, "6 * 7")
    assert list(result) == list(cell) and set(result) == set(FIELDS.split())
    assert (result["kernel_id"], result["kernel_restarted"]) == (None, False)


@pytest.mark.parametrize(
    "code",
    ["", "x = 1", "None", "print(end='')", "1;", "1 ; # said", "if True:\n    1", "(\n1\n);"],
)
def test_no_value(service: Service, code: str) -> None:
    result = run(service, code)
    assert (result["status"], result["results"], result["text"]) == ("ok", [], None)
    assert result["stdout"] == ""


@pytest.mark.parametrize("code", ["a = 1; 'b;'", "'b;' # c;", "(1,\n';')[1] and 'b;'"])
def test_a_semicolon_that_ends_nothing(service: Service, code: str) -> None:
    assert run(service, code)["text"] == "'b;'"


def test_a_silent_one_shows_no_value(service: Service) -> None:
    result = run(service, "display(1)\n2", silent=True)
    assert data_of(result) == [{"text/plain": "1"}] and result["text"] is None


def test_a_value_has_all_its_forms(service: Service) -> None:
    (value,) = run(service, RICH + "Rich()")["results"]
    assert value["data"] == {
        "text/plain": "plain",
        "text/html": "<b>html</b>",
        "text/markdown": "**md**",
        "image/svg+xml": "<svg/>",
        "image/png": base64.b64encode(b"\x89PNG").decode(),
        "application/pdf": base64.b64encode(b"%PDF").decode(),
        "image/jpeg": base64.b64encode(b"\xff\xd8").decode(),
        "text/latex": "$x$",
        "application/json": {"a": [1, None, 2.5]},
        "application/javascript": "alert(1)",
    }
    assert value["metadata"] == {"text/markdown": {"isolated": True}}


def test_the_forms_are_those_of_a_cell(live_service: Any) -> None:
    codes = [
        RICH + "Rich()",
        "class B:\n    def _repr_mimebundle_(self, include=None, exclude=None):\n"
        "        return {'text/plain': 'p', 'x/y': {'a': 1}}, {'x/y': {'b': 2}}\nB()",
        "[1, 'a', None]",
        "b'\\0'",
        "float('nan')",
        "import fractions\nfractions.Fraction(1, 3)",
        "class C:\n    def __getattr__(self, name): return lambda **k: name\n"
        "    def __repr__(self): return 'c'\nC()",
        "'\\ud800 lone'",
        "class D:\n    def _repr_html_(self): raise NotImplementedError\n"
        "    def __repr__(self): return 'd'\nD()",
    ]
    with Client(live_service.port).box() as box:
        for code in codes:
            cell, result = box.run(code), run(live_service, code)
            assert [pick(one) for one in result["results"]] == [
                pick(one) for one in cell["results"]
            ], code
            assert result["text"] == cell["text"], code


def pick(one: dict[str, Any]) -> Any:
    return one["data"], one["metadata"], one["is_main_result"]


@pytest.mark.parametrize(
    "broken", ["raise ValueError('bad form')", "return {}['bad form']", "1 / 0 # bad form"]
)
def test_a_form_that_fails_is_told_on_stderr(service: Service, broken: str) -> None:
    code = f"class A:\n    def _repr_html_(self): {broken}\n    def __repr__(self): return 'a'\nA()"
    result = run(service, code)
    assert (result["status"], data_of(result)) == ("ok", [{"text/plain": "a"}])
    assert "bad form" in result["stderr"] and "/cell/" not in result["stderr"], result["stderr"]


def test_a_value_that_cannot_be_shown_is_no_end(service: Service) -> None:
    result = run(service, "class A:\n    def __repr__(self): raise ValueError('no')\nA()")
    assert (result["status"], result["results"], result["error"]) == ("ok", [], None)
    assert "ValueError: no" in result["stderr"]


def test_leaving_in_a_form_is_leaving(service: Service) -> None:
    code = "import sys\nclass A:\n    def __repr__(self): sys.exit(7)\nA()"
    result = run(service, code)
    assert (result["status"], result["exit_code"]) == ("error", 7)
    assert result["error"]["name"] == "SystemExit"


def test_an_exception_is_the_error(service: Service) -> None:
    result = run(service, "print('a')\n1 / 0")
    assert (result["status"], result["exit_code"], result["text"]) == ("error", 1, None)
    assert result["error"]["name"] == "ZeroDivisionError"
    plain = execute(service.port, "print('a')\n1 / 0")
    assert result["error"] == plain["error"] and result["stderr"] == plain["stderr"]


def test_it_is_a_script_otherwise(service: Service) -> None:
    code = "import sys\n(__name__, __file__, sys.argv, '_' in dir(), 'IPython' in sys.modules)"
    expected = (
        "('__main__', '/workspace/__main__.py', ['/workspace/__main__.py', 'x'], False, False)"
    )
    assert run(service, code, args=["x"])["text"] == expected


def test_what_the_request_brings(service: Service) -> None:
    code = "import os\n(input(), os.environ['A'], open('f').read(), open('g', 'w').write('new'))"
    files = [{"path": "f", "content": "in"}]
    result = run(service, code, stdin="line\n", env={"A": "b"}, files=files)
    assert result["text"] == "('line', 'b', 'in', 3)"
    (made,) = result["files"]
    assert download(service.port, made["file_id"]) == b"new"
    assert run(service, "input()")["error"]["name"] == "EOFError"


def test_the_policy_holds(service: Service) -> None:
    result = run(service, "import socket\n1", policy="restricted")
    assert (result["error"]["name"], result["results"]) == ("PolicyError", [])
    assert run(service, "1 + 1", policy="restricted")["text"] == "2"


def test_fields_that_are_not_known_are_refused(service: Service) -> None:
    for field in ("last_line_interactive", "figures", "store_history", "x"):
        reply = post(service.port, "/v1/run", {"code": "1", field: True})
        assert reply.status == 422 and field in str(reply.json["detail"]), reply


# ---------------------------------------------------------------------------- displays and figures


def test_displays_come_in_order_with_what_is_printed(service: Service) -> None:
    code = "for i in range(20):\n    print(i)\n    display(i)\nprint('end')\n'last'"
    with stream(service, code) as events:
        told = ""
        for event in events:
            if event.type in ("stdout", "display"):
                text = event.data.get("data")
                told += text if isinstance(text, str) else f"<{text['text/plain']}>"
    assert told == "".join(f"{i}\n<{i}>" for i in range(20)) + "end\n"


def test_display_takes_data_as_it_is(service: Service) -> None:
    result = run(service, "display({'x/y': {'a': [1]}, 'text/plain': 'p'}, raw=True)")
    assert data_of(result) == [{"x/y": {"a": [1]}, "text/plain": "p"}]


def test_there_is_no_display_elsewhere(service: Service) -> None:
    assert execute(service.port, "display(1)")["error"]["name"] == "NameError"


def test_threads_and_children(service: Service) -> None:
    code = """
import os, threading
def show(n):
    for i in range(20): display(f"{n}-{i}")
threads = [threading.Thread(target=show, args=(n,)) for n in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
if os.fork() == 0:
    display("child")
    os._exit(0)
os.wait()
"the end"
"""
    result = run(service, code)
    assert result["status"] == "ok" and result["text"] == "'the end'", result
    shown = [data["text/plain"] for data in data_of(result)[:-1]]
    assert sorted(shown) == sorted(repr(f"{n}-{i}") for n in range(4) for i in range(20))


PLOT = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\n"


def test_a_figure_that_is_shown(service: Service) -> None:
    result = run(service, PLOT + "plt.show()\nprint(plt.get_fignums())", **DATA)
    (data,) = data_of(result)
    assert base64.b64decode(data["image/png"]).startswith(PNG)
    assert data["text/plain"].startswith("<Figure size ")
    assert (result["stdout"], result["files"], result["text"]) == ("[]\n", [], None)


def test_figures_that_are_left_open(service: Service) -> None:
    code = "import matplotlib.pyplot as plt\nfor i in range(3):\n    plt.figure().gca().plot([i])"
    assert ["image/png" in data for data in data_of(run(service, code, **DATA))] == [True] * 3
    failed = run(service, code + "\n1 / 0", **DATA)
    assert len(failed["results"]) == 3 and failed["error"]["name"] == "ZeroDivisionError"


def test_figures_are_before_the_value(service: Service) -> None:
    result = run(service, "import pandas as pd\npd.Series([1, 3]).plot()", **DATA)
    assert ["image/png" in data for data in data_of(result)] == [True, False]
    assert result["text"] == result["results"][-1]["data"]["text/plain"]


def test_figures_are_those_of_a_cell(live_service: Any) -> None:
    codes = [
        PLOT + "plt.show()",
        PLOT + "plt.gcf()",
        "import matplotlib.pyplot as plt\nplt.figure()",
        "from matplotlib.figure import Figure\nf = Figure()\nf.add_subplot().plot([1])\nf",
        PLOT,
    ]
    with Client(live_service.port).box(profile="data") as box:
        for code in codes:
            for formats in (["png"], ["svg", "pdf"], ["retina"], ["jpeg"], []):
                cell = box.run(code, formats=formats)
                result = run(live_service, code, formats=formats, **DATA)
                assert [kinds(one) for one in result["results"]] == [
                    kinds(one) for one in cell["results"]
                ], (code, formats)


def kinds(one: dict[str, Any]) -> Any:
    """Pictures of the same size."""
    data = one["data"]
    sizes = {
        mime: base64.b64decode(text)[16:24] if mime == "image/png" else None
        for mime, text in data.items()
    }
    return sizes, one["metadata"], one["is_main_result"]


def test_a_table_of_pandas(service: Service) -> None:
    result = run(service, "import pandas as pd\npd.DataFrame({'n': [1]})", timeout_ms=60000)
    (data,) = data_of(result)
    assert "<table" in data["text/html"] and result["text"] == data["text/plain"]
    assert result["profile"] == "data"


# ---------------------------------------------------------------------------- streams


@pytest.mark.parametrize("form", [SSE, LINES])
def test_the_events_are_those_of_a_cell(service: Service, form: dict[str, str]) -> None:
    code = "import sys\nprint('a', flush=True)\ndisplay(1)\nprint('b', file=sys.stderr)\n2"
    with stream(service, code, form) as found:
        events = list(found)
        name = found.id
    told = joined(events)
    types = [event.type for event in told]
    assert types == ["start", "stdout", "display", "stderr", "result", "end"]
    assert [event.id for event in events] == list(range(1, len(events) + 1))
    start, _, display, _, result, end = (event.data for event in told)
    assert start == {"id": name}
    assert display == {
        "data": {"text/plain": "1"},
        "metadata": {},
        "display_id": None,
        "update": False,
    }
    assert result == {"data": {"text/plain": "2"}, "metadata": {}, "execution_count": 1}
    assert end["status"] == "ok" and not {"stdout", "stderr", "results", "text"} & set(end)
    looked_up = get(service.port, f"/v1/executions/{name}").json["result"]
    assert looked_up["text"] == "2" and looked_up["stdout"] == "a\n"
    again = Stream(service.port, "GET", f"/v1/executions/{name}/events?after=2")
    assert [(event.type, event.data) for event in again.events()] == [
        (event.type, event.data) for event in events[2:]
    ]


def test_error_means_one_thing(service: Service) -> None:
    with stream(service, "1 / 0") as found:
        events = joined(list(found))
    assert [event.type for event in events] == ["start", "stderr", "error", "end"]
    assert events[2].data["name"] == "ZeroDivisionError"
    assert events[3].data["error"] == events[2].data


NAMED = """
import ctypes
ctypes.CDLL(None).prctl(15, b"doomed")  # PR_SET_NAME: how the test finds it
print("there", flush=True)
while True: pass
"""


@pytest.mark.parametrize("talks", [False, True])
def test_what_the_service_did_wrong_is_another(
    start_service: Callable[..., Service], talks: bool
) -> None:
    """A program whose sandbox died under it is none that failed: `failed` is not `error`."""
    service = start_service("--profiles", "base")
    if talks:
        with talk(service) as ws:
            ws.say(code=NAMED, timeout_ms=60000)
            until(ws, "stdout")
            kill(init_of(service, named(service, "doomed")))
            (failed,) = [message for message in until(ws, "failed") if message["type"] == "failed"]
            assert failed["error"]["code"] == "sandbox_lost" and failed["execution_id"]
            assert ws.goodbye() != 1000
        return
    with stream(service, NAMED, timeout_ms=60000) as found:
        found.printed("there")
        kill(init_of(service, named(service, "doomed")))
        events = joined(list(found))
    assert [event.type for event in events][-1:] == ["failed"]
    assert events[-1].data["error"]["code"] == "sandbox_lost"


def test_a_client_that_left_is_told_later(service: Service) -> None:
    with stream(service, "print('there', flush=True)\nwhile True: pass", LINES) as found:
        found.printed("there")
        name = found.id
    reply = eventually(lambda: done(service, name))
    assert reply["error"]["code"] == "client_gone"
    again = Stream(service.port, "GET", f"/v1/executions/{name}/events")
    assert [event.type for event in again.events()][-1] == "failed"


def done(service: Service, name: str) -> Any:
    found = get(service.port, f"/v1/executions/{name}").json
    return found["result"] if found["state"] == "done" else None


def test_one_that_goes_on_without_its_client(service: Service) -> None:
    code = "print('there', flush=True)\nprint(input())\ndisplay('shown')\n'last'"
    with stream(service, code, LINES, on_disconnect="continue", stdin="read\n") as found:
        found.printed("there")
        name = found.id
    result = eventually(lambda: done(service, name))
    assert (result["text"], len(result["results"])) == ("'last'", 2)


def test_a_slow_reader_makes_it_wait(service: Service) -> None:
    code = "for i in range(40): display({'text/plain': 'x' * 1_000_000}, raw=True)"
    with stream(service, code, LINES, timeout_ms=60000) as found:
        events = list(found)
    shown = sum(
        len(event.data["data"]["text/plain"]) for event in events if event.type == "display"
    )
    assert shown == 40_000_000 and events[-1].data["results_truncated"]
    assert events[-1].data["limit_hit"] == "output" and "results" in str(
        events[-1].data["warnings"]
    )


def test_asking_twice_runs_once(service: Service) -> None:
    body = {"code": "import uuid\nuuid.uuid4().hex", "timeout_ms": 20000}
    whole = [post(service.port, "/v1/run", body, **{"Idempotency-Key": "run-1"}) for _ in range(2)]
    assert whole[0].json == whole[1].json and whole[0].json["text"]
    told = []
    for _ in range(2):
        key = {"Idempotency-Key": "run-2"} | LINES
        with Stream(service.port, "POST", "/v1/run", body, key) as found:
            told.append([(line["event"], line["data"]) for line in found.lines()])
    assert told[0] == told[1] and told[0][-1][0] == "end"


# ---------------------------------------------------------------------------- many


def test_a_batch_is_of_run_requests(service: Service) -> None:
    items = [{"code": "1 + 1"}, {"code": "2", "figures": True}, {"cod": 1}, {"code": "display(3)"}]
    with Stream(service.port, "POST", "/v1/run/batch", {"items": items}) as found:
        lines = sorted(found.lines(), key=lambda line: int(line["index"]))
    assert lines[0]["text"] == "2" and lines[0]["stdout"] == ""
    assert [line["error"]["code"] for line in lines[1:3]] == ["bad_fields"] * 2
    assert data_of(lines[3]) == [{"text/plain": "3"}]


# ---------------------------------------------------------------------------- others


def test_execute_is_as_it_was(service: Service) -> None:
    result = execute(service.port, "print(1)\n2")
    assert (result["stdout"], result["results"], result["text"]) == ("1\n2\n", [], None)
    assert "results_truncated" not in result


def test_a_problem_is_a_reply(service: Service) -> None:
    reply = post(service.port, "/v1/run", {"code": "1", "profile": "nothing"})
    error(reply, 422, "unknown_profile")
    with Stream(service.port, "POST", "/v1/run", {"code": "1", "profile": "no"}, LINES) as found:
        assert found.reply.status == 422


def test_output_is_cut_as_a_cells_is(service: Service) -> None:
    result = run(service, "print('x' * 5000)", limits={"output_bytes": 1000})
    assert result["stdout"] == "x" * 1000 and result["stdout_truncated"]

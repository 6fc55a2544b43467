"""Executions beyond contract 1: more fields, the result of api.md, streams that can be resumed, and
what the service says about itself."""

from __future__ import annotations

import base64
import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import Service, eventually
from http_client import JSON, Connection, Stream, ask, execute, get, post, upload
from test_result import FIELDS

SLEEP = "import time\nwhile True:\n    time.sleep(1000)"
SLOW = """if True:
    import os, time
    for i in range(20):
        os.write(1, f'{i}\\n'.encode())  # print() would write twice
        time.sleep(0.05)
"""


def problem(service: Service, **body: Any) -> tuple[int, str, str]:
    """The status, the code and the message of a refused request."""
    reply = post(service.port, "/v1/execute", {"code": "1", **body})
    error = reply.json["error"]
    assert set(error) == {"code", "message", "remediation", "retryable"}
    return reply.status, error["code"], error["message"]


# ---------------------------------------------------------------------------- more fields


def test_args_and_env_reach_the_program(service: Service) -> None:
    code = "import os, sys\nprint(sys.argv[1:], os.environ['NAME'], repr(os.environ['EMPTY']))"
    env = {"NAME": "wert ü =", "EMPTY": ""}
    result = execute(service.port, code, args=["a b", "", "--x=ü"], env=env)
    assert result["stdout"] == "['a b', '', '--x=ü'] wert ü = ''\n"


@pytest.mark.parametrize(
    "fields,loc,kind",
    [
        ({"args": "x"}, ["args"], "list_type"),
        ({"args": [1]}, ["args", 0], "string_type"),
        ({"args": ["x"] * 257}, ["args"], "too_long"),
        ({"env": []}, ["env"], "dict_type"),
        ({"env": {"A": 1}}, ["env", "A"], "string_type"),
        ({"env": {f"A{i}": "" for i in range(257)}}, ["env"], "too_long"),
        ({"limits": []}, ["limits"], "model_attributes_type"),
        ({"limits": {"memory_mb": "1"}}, ["limits", "memory_mb"], "int_type"),
        ({"limits": {"memory_mb": 0}}, ["limits", "memory_mb"], "greater_than_equal"),
        ({"limits": {"memory": 64}}, ["limits", "memory"], "extra_forbidden"),
        ({"limits": {"cpus": "1"}}, ["limits", "cpus"], "float_type"),
        ({"on_disconnect": "explode"}, ["on_disconnect"], "literal_error"),
        (
            {"files": [{"path": "a", "content": "", "encoding": "hex"}]},
            ["files", 0, "encoding"],
            "literal_error",
        ),
        ({"files": [{"path": "a", "content": 1}]}, ["files", 0, "content"], "string_type"),
        ({"profile": 1}, ["profile"], "string_type"),
    ],
)
def test_a_field_of_the_wrong_kind_is_named(
    service: Service, fields: dict[str, Any], loc: list[Any], kind: str
) -> None:
    reply = post(service.port, "/v1/execute", {"code": "1", **fields})
    assert reply.status == 422
    assert [(d["loc"], d["type"]) for d in reply.json["detail"]] == [(["body", *loc], kind)]


@pytest.mark.parametrize("fields", [{"args": ["x" * 40000]}, {"env": {"A": "x" * 40000}}])
def test_too_long_args_and_env_are_refused(service: Service, fields: dict[str, Any]) -> None:
    assert problem(service, **fields)[:2] == (422, "bad_value")


@pytest.mark.parametrize("name", ["", "A=B"])
def test_a_name_that_no_variable_can_have_is_refused(service: Service, name: str) -> None:
    assert problem(service, env={name: "x"})[:2] == (422, "bad_value")


@pytest.mark.parametrize("size", [30_000, 40_000, 70_000, 1_000_000])
def test_a_long_program_runs(service: Service, size: int) -> None:
    result = execute(service.port, "'end' #" + "x" * size, timeout_ms=60000)
    assert (result["stdout"], result["status"]) == ("'end'\n", "ok")


def test_a_program_that_is_too_long_is_refused(service: Service) -> None:
    assert problem(service, code="#" * (16 * 1024 * 1024 + 1))[:2] == (413, "code_too_long")


@pytest.mark.parametrize("profile", ["base", "data", "auto"])
def test_the_profile_is_the_one_asked_for(service: Service, profile: str) -> None:
    result = execute(service.port, "1", profile=profile, timeout_ms=60000)
    assert result["profile"] == ("base" if profile == "auto" else profile)


def test_auto_chooses_by_the_imports(service: Service) -> None:
    result = execute(service.port, "import pandas", timeout_ms=60000)
    assert (result["profile"], result["status"]) == ("data", "ok")


def test_figures_are_files_if_somebody_wants_them(service: Service) -> None:
    code = "import matplotlib.pyplot as plt\nopen('figure-1.png', 'w')\nplt.plot([1])\nplt.show()"
    result = execute(service.port, code, figures=True, timeout_ms=60000)
    assert result["status"] == "ok", result
    assert sorted(file["path"] for file in result["files"]) == ["figure-1.png", "figure-2.png"]
    result = execute(service.port, code, timeout_ms=60000)
    assert [file["path"] for file in result["files"]] == ["figure-1.png"]
    assert "warnings" not in execute(service.port, "1", figures=True)


def test_unknown_fields_are_ignored_and_named(service: Service) -> None:
    unknown = {"timeout": 5, "language": "python", "a\nb\x1b": 1}
    expected = [
        'the field "timeout" is not known and was ignored (did you mean timeout_ms?)',
        'the field "language" is not known and was ignored',
        'the field "a\\x0ab\\x1b" is not known and was ignored',
    ]
    result = execute(service.port, "print(1)", **unknown)
    assert (result["stdout"], result["warnings"]) == ("1\n", expected)
    assert "warnings" not in execute(service.port, "print(1)")
    many = execute(service.port, "1", **{f"x{n}": n for n in range(1000)})["warnings"]
    assert len(many) == 21 and many[-1] == "more fields that are not known were ignored"
    # limits come first
    both = execute(service.port, "print('x' * 10)", limits={"output_bytes": 5}, nope=1)["warnings"]
    assert both[0].startswith("stdout was cut") and '"nope"' in both[1]


def test_an_unknown_profile_is_refused(service: Service) -> None:
    status, code, message = problem(service, profile="nope")
    assert (status, code) == (422, "unknown_profile") and "nope" in message


def test_inline_files_are_there(service: Service) -> None:
    data = bytes(range(256))
    files = [
        {"path": "a.txt", "content": "ä\n"},
        {"path": "b.txt", "content": "ö", "encoding": "utf8"},
        {"path": "d/c.bin", "content": base64.b64encode(data).decode(), "encoding": "base64"},
        {"path": "lines", "content": base64.encodebytes(data).decode(), "encoding": "base64"},
        {"path": "empty", "content": ""},
        {"path": "stored", "file_id": upload(service.port, "x", b"stored")},
    ]
    code = """if True:
    data = bytes(range(256))
    print(open('a.txt').read(), open('b.txt').read(), repr(open('empty').read()))
    print(open('d/c.bin', 'rb').read() == data, open('lines', 'rb').read() == data)
    print(open('stored').read())
"""
    result = execute(service.port, code, files=files)
    assert result["stdout"] == "ä\n ö ''\nTrue True\nstored\n"
    assert result["files"] == []


@pytest.mark.parametrize(
    "content", ["a", "ab=", "abc=d", "a b!", "====", "YQ", "YQ=", "YQ===", "é"]
)
def test_bad_base64_is_refused(service: Service, content: str) -> None:
    files = [{"path": "a", "content": content, "encoding": "base64"}]
    status, code, message = problem(service, files=files)
    assert (status, code) == (422, "bad_base64") and "'a'" in message


@pytest.mark.parametrize(
    "limits",
    [
        {"memory_mb": 4097},
        {"memory_mb": 2**40},
        {"cpu_seconds": 301},
        {"cpus": 65},
        {"pids": 513},
        {"disk_mb": 4097},
        {"output_bytes": 67108865},
        {"open_files": 4097},
    ],
)
def test_a_limit_above_the_maximum_is_refused(service: Service, limits: dict[str, Any]) -> None:
    assert problem(service, limits=limits)[:2] == (422, "limit_too_high")
    maxima = get(service.port, "/v1/info").json["maxima"]
    allowed = {name: maxima[name] for name in limits}
    if "memory_mb" not in limits:  # all of a small machine's memory is not there for one
        assert execute(service.port, "1", limits=allowed)["stdout"] == "1\n"


def test_limits_are_obeyed(service: Service) -> None:
    code = """if True:
    import resource
    print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    x = bytearray(300 << 20)
"""
    limits = {"open_files": 99, "memory_mb": 600}
    assert execute(service.port, code, limits=limits, timeout_ms=60000)["stdout"] == "99\n"
    small = execute(service.port, code, limits={"memory_mb": 64}, timeout_ms=60000)
    assert small["status"] == "memory_exceeded"


# ---------------------------------------------------------------------------- the result


@pytest.mark.parametrize("code", ["print(1)", "1/0", "import os; os.abort()", SLEEP])
def test_the_result_has_every_field(service: Service, code: str) -> None:
    result = execute(service.port, code, timeout_ms=1000)
    assert set(result) - {"warnings"} == set(FIELDS)
    for name, kind in FIELDS.items():
        assert isinstance(result[name], kind), (name, result[name])
    assert re.fullmatch(r"exe_[0-9a-f]{32}", result["id"])
    assert set(result["usage"]) == {
        "wall_ms",
        "queue_ms",
        "cpu_ms",
        "memory_peak_bytes",
        "output_bytes",
    }


ENDS = [
    ("1", {}, "ok", None),
    ("1/0", {}, "error", None),
    ("import sys; sys.exit(3)", {}, "error", None),
    ("import os; os.kill(os.getpid(), 9)", {}, "killed", None),
    ("import os; os._exit(0)", {}, "killed", None),
    (SLEEP, {"timeout_ms": 300}, "timeout", "time"),
    ("x = b'x' * (1 << 30)", {}, "memory_exceeded", "memory"),
    ("while True: pass", {"limits": {"cpu_seconds": 1}}, "killed", "cpu"),
    ("print('x' * 1000)", {"limits": {"output_bytes": 100}}, "ok", "output"),
]


@pytest.mark.parametrize("code,fields,status,limit", ENDS)
def test_how_it_ended_is_told(
    service: Service, code: str, fields: dict[str, Any], status: str, limit: str | None
) -> None:
    result = execute(service.port, code, **({"timeout_ms": 60000} | fields))
    assert (result["status"], result["limit_hit"]) == (status, limit)


def test_a_full_disk_is_told(service: Service) -> None:
    code = "open('f', 'wb').write(b'x' * (20 << 20))"
    result = execute(service.port, code, limits={"disk_mb": 8}, timeout_ms=60000)
    assert (result["status"], result["error"]["name"]) == ("error", "OSError")
    assert result["limit_hit"] == "disk"


def test_an_exception_is_taken_apart(service: Service) -> None:
    error = execute(service.port, "def f():\n    raise ValueError('bad ü')\nf()")["error"]
    assert (error["name"], error["value"]) == ("ValueError", "bad ü")
    assert isinstance(error["traceback"], list) and error["traceback"]


def test_truncation_is_told_for_each_stream(service: Service) -> None:
    result = execute(service.port, "print('x' * 1000)", limits={"output_bytes": 100})
    assert (result["stdout_truncated"], result["stderr_truncated"]) == (True, False)
    assert result["usage"]["output_bytes"] == 1001


def test_what_was_denied_is_told(service: Service) -> None:
    code = "import ctypes\nprint(ctypes.CDLL(None).unshare(0x10000000))"
    result = execute(service.port, code)
    assert result["stdout"] == "-1\n"
    assert [set(d) for d in result["denied"]] == [{"op", "detail", "rule"}]


def test_sizes_of_files_are_told(service: Service) -> None:
    (made,) = execute(service.port, "n = open('f', 'w').write('x' * 1234)")["files"]
    assert set(made) == {"path", "kind", "file_id", "size_bytes"}
    assert made["size_bytes"] == 1234


# ---------------------------------------------------------------------------- executions


def test_an_execution_can_be_looked_up(service: Service) -> None:
    result = execute(service.port, "print('hi')")
    found = get(service.port, f"/v1/executions/{result['id']}").json
    assert (found["id"], found["state"], found["result"]) == (result["id"], "done", result)
    assert isinstance(found["created"], float)


@pytest.mark.parametrize("execution", ["exe_" + "0" * 32, "nope", "exe_", "x" * 2000])
@pytest.mark.parametrize("after", ["", "/events"])
def test_an_unknown_execution_is_a_404(service: Service, execution: str, after: str) -> None:
    reply = get(service.port, f"/v1/executions/{execution}{after}")
    assert (reply.status, reply.json["error"]["code"]) == (404, "no_execution")


def test_a_running_execution_is_running(service: Service) -> None:
    body = {"code": "print(1, flush=True)\n" + SLEEP, "timeout_ms": 60000}
    with Stream(service.port, "POST", "/v1/execute/stream", body) as stream:
        next(stream.events())
        found = get(service.port, f"/v1/executions/{stream.reply.header('x-execution-id')}").json
        assert (found["state"], found["result"]) == ("running", None)


def test_a_stream_as_lines(service: Service) -> None:
    code = "import sys\nprint('out', flush=True)\nprint('err', file=sys.stderr)"
    headers = {**JSON, "Accept": "application/x-ndjson"}
    with Connection(service.port) as connection:
        body = json.dumps({"code": code}).encode()
        reply = connection.ask("POST", "/v1/execute/stream", body, headers)
    assert reply.header("content-type") == "application/x-ndjson"
    lines = [json.loads(line) for line in reply.body.splitlines() if line]
    said = {"stdout": "", "stderr": ""}
    for line in lines[:-1]:
        assert line["event"] == "output", line
        said[line["data"]["stream"]] += line["data"]["data"]
    assert said == {"stdout": "out\n", "stderr": "err\n"}
    assert lines[-1]["event"] == "result" and lines[-1]["data"]["exit_code"] == 0
    assert [line["seq"] for line in lines[:-1]] == sorted(line["seq"] for line in lines[:-1])


def events(service: Service, execution: str, query: str = "", **headers: str) -> list[Any]:
    path = f"/v1/executions/{execution}/events{query}"
    with Stream(service.port, "GET", path, headers=headers) as stream:
        assert stream.reply.status == 200
        assert stream.reply.header("content-type") == "text/event-stream; charset=utf-8"
        return list(stream.events())


def test_the_events_of_an_execution_are_numbered(service: Service) -> None:
    code = "import sys\nprint('out', flush=True)\nprint('err', file=sys.stderr)\n1/0"
    result = execute(service.port, code, last_line_interactive=False)
    found = events(service, result["id"])
    assert [e.id for e in found] == list(range(1, len(found) + 1))
    assert (found[0].type, found[0].data) == ("start", {"id": result["id"]})
    assert "".join(e.data["data"] for e in found if e.type == "stdout") == result["stdout"]
    assert "".join(e.data["data"] for e in found if e.type == "stderr") == result["stderr"]
    assert found[-1].type == "end"
    whole = {k: v for k, v in result.items() if k not in ("stdout", "stderr")}
    assert found[-1].data == whole


def test_events_may_begin_after_a_number(service: Service) -> None:
    result = execute(service.port, "print('a')")
    everything = events(service, result["id"])
    assert len(everything) >= 3
    for n in range(len(everything) + 2):
        assert events(service, result["id"], f"?after={n}") == everything[n:]
        assert events(service, result["id"], **{"Last-Event-ID": str(n)}) == everything[n:]
    assert events(service, result["id"], "?after=1", **{"Last-Event-ID": "2"}) == everything[1:]


@pytest.mark.parametrize("after", ["x", "-1", "1.5", "99999999999999999999999"])
def test_a_number_that_is_none_is_refused(service: Service, after: str) -> None:
    result = execute(service.port, "1")
    reply = get(service.port, f"/v1/executions/{result['id']}/events?after={after}")
    assert (reply.status, reply.json["error"]["code"]) == (422, "bad_value")


def test_events_may_come_as_lines(service: Service) -> None:
    result = execute(service.port, "import os; n = os.write(1, b'a\\n')")
    path = f"/v1/executions/{result['id']}/events"
    with Stream(service.port, "GET", path, headers={"Accept": "application/x-ndjson"}) as stream:
        assert stream.reply.header("content-type") == "application/x-ndjson"
        lines = list(stream.lines())
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    assert [line["event"] for line in lines] == ["start", "stdout", "end"]
    assert lines[1]["data"] == {"data": "a\n"}


@pytest.mark.parametrize("way", ["query", "header"])
def test_a_stream_that_was_cut_can_be_resumed(service: Service, way: str) -> None:
    body = {"code": SLOW, "timeout_ms": 60000, "on_disconnect": "continue"}
    with Stream(service.port, "POST", "/v1/execute/stream", body) as stream:
        execution = stream.reply.header("x-execution-id")
        assert execution
        assert next(stream.events()).data["data"].startswith("0\n")
    seen = []
    path = f"/v1/executions/{execution}/events"
    with Stream(service.port, "GET", path) as stream:  # and this one breaks off too
        for event in stream.events():
            seen.append(event)
            if len(seen) == 2:  # all that it says may have come at once
                break
    last = seen[-1].id
    if way == "query":
        seen += events(service, execution, f"?after={last}")
    else:
        seen += events(service, execution, **{"Last-Event-ID": str(last)})
    assert [e.id for e in seen] == list(range(1, len(seen) + 1)), "nothing twice, nothing left out"
    said = "".join(e.data["data"] for e in seen if e.type == "stdout")
    assert said == "".join(f"{i}\n" for i in range(20))
    assert (seen[-1].type, seen[-1].data["status"]) == ("end", "ok")


def test_several_may_follow_one_execution(service: Service) -> None:
    body = {"code": SLOW, "timeout_ms": 60000}
    with Stream(service.port, "POST", "/v1/execute/stream", body) as stream:
        path = f"/v1/executions/{stream.reply.header('x-execution-id')}/events"
        with Stream(service.port, "GET", path) as one, Stream(service.port, "GET", path) as two:
            assert list(one.events()) == list(two.events())
        assert list(stream.events())[-1].type == "result"


def test_a_client_that_leaves_ends_its_program(service: Service) -> None:
    body = {"code": "print(1, flush=True)\n" + SLEEP, "timeout_ms": 60000}
    with Stream(service.port, "POST", "/v1/execute/stream", body) as stream:
        execution = stream.reply.header("x-execution-id")
        next(stream.events())

    def found() -> Any:
        return get(service.port, f"/v1/executions/{execution}").json

    assert eventually(lambda: found()["state"] == "done")
    assert found()["result"]["error"]["code"] == "client_gone"


def audited(service: Service) -> list[dict[str, Any]]:
    text = (service.state / "audit.log").read_text()  # the last line may be on its way
    return [json.loads(line) for line in text.rpartition("\n")[0].splitlines()]


def test_a_client_that_leaves_is_in_the_audit_log_all_the_same(service: Service) -> None:
    body = {"code": "print(1, flush=True)\n" + SLEEP, "timeout_ms": 60000}
    with Stream(service.port, "POST", "/v1/execute/stream", body) as stream:
        execution = stream.reply.header("x-execution-id")
        next(stream.events())
    assert eventually(lambda: execution in [line["execution"] for line in audited(service)])


def test_a_client_that_does_not_wait_for_its_result_ends_its_program(service: Service) -> None:
    """The same without a stream; the fixture sees to it that nothing is left."""
    before = len(audited(service))
    with Connection(service.port) as connection:
        code = "import time\nopen('/tmp/x', 'w')\ntime.sleep(1000)"
        body = json.dumps({"code": code, "timeout_ms": 60000}).encode()
        connection.send("POST", "/v1/execute", body, JSON)
        assert eventually(lambda: active(service) >= 2), "ours, and the one that asks"
    assert eventually(lambda: len(audited(service)) == before + 1)


def test_a_slow_reader_gets_everything(service: Service) -> None:
    """Far more than the server holds for a reader; the program waits meanwhile."""
    code = "for i in range(300): print('x' * 9999)"
    body = {"code": code, "timeout_ms": 60000, "limits": {"output_bytes": 10_000_000}}
    with Stream(service.port, "POST", "/v1/execute/stream", body) as stream:
        assert execute(service.port, "1", timeout_ms=60000)["stdout"] == "1\n"
        said = sum(len(e.data["data"]) for e in stream.events() if e.type == "output")
    assert said == 3_000_000


# ---------------------------------------------------------------------------- the service itself


@pytest.mark.parametrize(
    "method,path,allow",
    [
        ("PUT", "/v1/execute", "POST"),
        ("DELETE", "/health", "GET, HEAD"),
        ("PATCH", "/v1/files", "POST, GET, HEAD"),
        ("POST", "/v1/files/x", "GET, HEAD, DELETE"),
        ("HEAD", "/v1/execute", "POST"),
    ],
)
def test_another_method_is_a_405(service: Service, method: str, path: str, allow: str) -> None:
    reply = ask(service.port, method, path, b"" if method != "HEAD" else None)
    assert (reply.status, reply.header("allow")) == (405, allow)
    if method != "HEAD":
        assert reply.json["error"]["code"] == "bad_method"


@pytest.mark.parametrize("path", ["/v1", "/v1/", "/v1/execute/x", "/v2/execute", "/%2e%2e/"])
def test_another_path_is_a_404(service: Service, path: str) -> None:
    reply = get(service.port, path)
    assert (reply.status, reply.json["detail"]) == (404, "Not Found")
    assert reply.json["error"]["code"] == "no_route"


@pytest.mark.parametrize(
    "path", ["/health", "/v1/info", "/v1/files", "/openapi.json", "/metrics", "/docs", "/"]
)
def test_head_is_get_without_the_body(service: Service, path: str) -> None:
    with Connection(service.port) as connection:
        head = connection.ask("HEAD", path)
        whole = connection.ask("GET", path)
    assert head.status == whole.status == 200
    assert head.header("content-type") == whole.header("content-type")
    assert int(head.header("content-length") or 0) > 0


def test_info_tells_the_limits(service: Service) -> None:
    info = get(service.port, "/v1/info").json
    names = {
        "timeout_ms",
        "memory_mb",
        "cpu_seconds",
        "cpus",
        "pids",
        "disk_mb",
        "open_files",
        "output_bytes",
    }
    assert set(info["defaults"]) == set(info["maxima"]) == names
    defaults = info["defaults"]
    assert (defaults["timeout_ms"], defaults["cpu_seconds"]) == (60000, 5)
    assert (defaults["memory_mb"], defaults["output_bytes"]) == (256, 1000000)
    assert info["version"] == get(service.port, "/health").json["version"]
    assert info["files"] == {"max_mb": 100, "ttl_seconds": 3600}


def test_profiles_tell_their_modules(service: Service) -> None:
    profiles = {p["name"]: p for p in get(service.port, "/v1/profiles").json["profiles"]}
    assert set(profiles) == {"base", "data"}
    assert profiles["data"]["state"] == "ready"
    assert "pandas" in profiles["data"]["modules"]


SAMPLE = re.compile(r'([a-z_:][a-z0-9_:]*)(?:\{((?:[a-z_]+="[^"\n]*",?)*)\})? (\S+)', re.I)


def samples(service: Service) -> dict[tuple[str, str], float]:
    """The text format of Prometheus, read strictly."""
    reply = get(service.port, "/metrics")
    assert reply.status == 200
    assert (reply.header("content-type") or "").startswith("text/plain; version=0.0.4")
    found: dict[tuple[str, str], float] = {}
    types: dict[str, str] = {}
    for line in reply.body.decode().splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in types and kind in ("counter", "gauge", "histogram")
            types[name] = kind
        elif not line.startswith("# HELP "):
            match = SAMPLE.fullmatch(line)
            assert match, line
            name, labels = match.group(1), match.group(2) or ""
            family = re.sub(r"_(bucket|sum|count)$", "", name)
            assert name in types or types.get(family) == "histogram", line
            assert (name, labels) not in found, line
            found[name, labels] = float(match.group(3))
    return found


def active(service: Service) -> float:
    return samples(service)["cloche_requests_active", ""]


def test_metrics_count(service: Service) -> None:
    ok = ("cloche_executions_total", 'status="ok",profile="base"')
    asked = ("cloche_requests_total", 'method="POST",route="/v1/execute",status="200"')
    refused = ("cloche_requests_total", 'method="POST",route="/v1/execute",status="422"')
    seconds = ("cloche_execution_seconds_count", "")
    before = samples(service)
    for _ in range(3):
        execute(service.port, "1", profile="base")
    post(service.port, "/v1/execute", {})
    after = samples(service)
    for key, more in ((ok, 3), (asked, 3), (refused, 1), (seconds, 3)):
        assert after[key] == before.get(key, 0) + more, key


def test_histograms_add_up(service: Service) -> None:
    execute(service.port, "1")
    found = samples(service)
    for name in ("request_seconds", "execution_seconds", "queue_seconds"):
        buckets = [v for (n, _), v in found.items() if n == f"cloche_{name}_bucket"]
        assert buckets == sorted(buckets) and len(buckets) > 5
        assert buckets[-1] == found[f"cloche_{name}_count", ""] > 0


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref":
                yield value
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def test_the_specification_is_consistent(service: Service) -> None:
    spec = get(service.port, "/openapi.json").json
    assert spec["openapi"].startswith("3.1") and spec["info"]["version"]
    found = list(references(spec))
    assert found
    for reference in found:
        node = spec
        for step in reference.removeprefix("#/").split("/"):
            node = node[step]
    ids = [op["operationId"] for path in spec["paths"].values() for op in path.values()]
    assert len(ids) == len(set(ids))
    for path, operations in spec["paths"].items():
        for operation in operations.values():
            names = {p["name"] for p in operation.get("parameters", []) if p["in"] == "path"}
            assert names == set(re.findall(r"\{(\w+)\}", path))
            assert operation["responses"] and operation["summary"]


ROUTES = {
    "/v1/execute": {"post"},
    "/v1/execute/stream": {"get", "post"},
    "/v1/execute/batch": {"post"},
    "/v1/executions/{id}": {"get"},
    "/v1/executions/{id}/events": {"get"},
    "/v1/files": {"get", "post"},
    "/v1/files/{file_id}": {"get", "delete"},
    "/v1/info": {"get"},
    "/v1/profiles": {"get"},
    "/health": {"get"},
    "/metrics": {"get"},
    "/openapi.json": {"get"},
    "/docs": {"get"},
    "/": {"get"},
}


def test_the_specification_has_every_route_and_every_route_is_there(service: Service) -> None:
    paths = get(service.port, "/openapi.json").json["paths"]
    assert {path: set(paths[path]) for path in ROUTES} == ROUTES
    for path, operations in paths.items():
        for method in operations:
            real = re.sub(r"\{\w+\}", "x", path)
            reply = ask(service.port, method.upper(), real, b"" if method == "post" else None)
            assert reply.status not in (405, 500, 501), (method, path)
            if reply.status == 404:
                assert reply.json["error"]["code"] != "no_route", (method, path)


def test_the_specification_tells_what_is_enforced(service: Service) -> None:
    schemas = get(service.port, "/openapi.json").json["components"]["schemas"]
    request = schemas["ExecuteRequest"]
    assert request["required"] == ["code"]
    assert request["properties"]["timeout_ms"]["minimum"] == 1
    assert request["properties"]["timeout_ms"]["default"] == 2000
    assert request["properties"]["on_disconnect"]["enum"] == ["interrupt", "continue"]


def test_the_specification_tells_what_a_query_has(service: Service) -> None:
    paths = get(service.port, "/openapi.json").json["paths"]
    listing = paths["/v1/sandboxes/{id}/files/{path}"]["get"]["parameters"]
    query = {p["name"]: p["schema"] for p in listing if p["in"] == "query"}
    assert set(query) == {"recursive", "limit", "after"}
    assert query["limit"] == {"type": "integer", "minimum": 1, "maximum": 10000, "default": 1000}
    for path, method in [
        ("/v1/sandboxes/x/files/a?recursiv=1", "GET"),
        ("/v1/sandboxes?a=1", "GET"),
    ]:
        reply = ask(service.port, method, path)
        assert reply.status == 422 and reply.json["error"]["code"] == "bad_value"
        assert "limit, after" in reply.json["error"]["message"]


def test_the_specification_tells_each_status_of_success(service: Service) -> None:
    paths = get(service.port, "/openapi.json").json["paths"]
    for path, method, statuses in [
        ("/v1/sandboxes/{id}/commands", "post", {"200", "202", "422"}),
        ("/v1/sandboxes/{id}/files/{path}", "put", {"200", "201"}),
        ("/v1/files", "post", {"201", "422"}),
    ]:
        assert set(paths[path][method]["responses"]) == statuses


def test_the_specification_tells_where_a_body_may_be_left_out(service: Service) -> None:
    paths = get(service.port, "/openapi.json").json["paths"]
    for path, required in [
        ("/v1/execute", True),
        ("/v1/files", True),
        ("/v1/sessions", True),
        ("/v1/sandboxes", False),
        ("/v1/sandboxes/{id}/restart", False),
    ]:
        assert paths[path]["post"]["requestBody"]["required"] == required, path


def test_the_specification_tells_of_keys(service: Service) -> None:
    spec = get(service.port, "/openapi.json").json
    used = {name for one in spec["security"] for name in one}
    assert used == set(spec["components"]["securitySchemes"])
    assert spec["paths"]["/health"]["get"]["security"] == []
    assert "security" not in spec["paths"]["/v1/execute"]["post"]


def test_the_specification_tells_what_a_form_has(service: Service) -> None:
    spec = get(service.port, "/openapi.json").json
    content = spec["paths"]["/v1/files"]["post"]["requestBody"]["content"]
    form = spec["components"]["schemas"][content["multipart/form-data"]["schema"]["$ref"][21:]]
    assert (form["type"], form["required"]) == ("object", ["file"])
    assert form["properties"]["file"]["format"] == "binary"


def test_the_first_page_is_json_unless_a_browser_asks(service: Service) -> None:
    for accept in ("*/*", "application/json", ""):
        reply = get(service.port, "/", Accept=accept) if accept else get(service.port, "/")
        assert (reply.status, reply.json["name"]) == (200, "cloche")
        assert "accept" in (reply.header("vary") or "").lower()
    page = get(service.port, "/", Accept="text/html,application/xhtml+xml,*/*;q=0.8")
    assert page.status == 200
    assert (page.header("content-type") or "").startswith("text/html")
    assert "accept" in (page.header("vary") or "").lower()
    assert "default-src 'self'" in (page.header("content-security-policy") or "")
    assert b"<html" in page.body.lower()


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_the_pages_load_nothing_from_elsewhere(service: Service, path: str) -> None:
    page = get(service.port, path, Accept="text/html").body.decode()
    for link in re.findall(r"""(?:src|href)=["']([^"']+)["']""", page):
        assert not re.match(r"(https?:)?//", link) or "<a " in page, link
    for asset in re.findall(r"""<(?:script|link|img)[^>]+(?:src|href)=["']([^"']+)["']""", page):
        assert asset.startswith(("/", "data:")) and not asset.startswith("//")
        if asset.startswith("/"):
            assert get(service.port, asset).status == 200, asset


def test_every_reply_names_its_request(service: Service) -> None:
    ids = {get(service.port, path).header("x-request-id") for path in ("/health", "/nope", "/")}
    assert len(ids) == 3 and None not in ids


# ---------------------------------------------------------------------------- connections


def test_a_connection_serves_many_requests(service: Service) -> None:
    with Connection(service.port) as connection:
        for i in range(50):
            assert connection.execute(f"{i}")["stdout"] == f"{i}\n"
            assert connection.ask("GET", "/health").status == 200
            assert connection.ask("GET", "/nope").status == 404
            assert connection.post("/v1/execute", {}).status == 422


def test_a_connection_survives_a_stream(service: Service) -> None:
    with Connection(service.port) as connection:
        for _ in range(5):
            reply = connection.post("/v1/execute/stream", {"code": "print('x' * 100000)"})
            assert reply.body.endswith(b"\n\n")
            assert connection.ask("GET", "/health").status == 200


def test_requests_may_be_sent_before_the_replies_have_come(service: Service) -> None:
    with Connection(service.port) as connection:
        for i in range(20):
            body = json.dumps({"code": f"{i}", "timeout_ms": 60000}).encode()
            connection.send("POST", "/v1/execute", body, JSON)
            connection.send("GET", "/health")
        for i in range(20):
            assert connection.reply().json["stdout"] == f"{i}\n"
            assert connection.reply().json["status"] == "ok"


def test_a_request_in_small_pieces_is_a_request(service: Service) -> None:
    body = b'{"code":"1"}'
    head = (
        f"POST /v1/execute HTTP/1.1\r\nHost: 127.0.0.1:{service.port}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with Connection(service.port) as connection:
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in head.encode() + body:
            connection.sock.sendall(bytes([byte]))
        assert connection.reply().json["stdout"] == "1\n"


def test_a_chunked_body_is_a_body(service: Service) -> None:
    headers = JSON | {"Transfer-Encoding": "chunked"}
    with Connection(service.port) as connection:
        for _ in range(3):
            connection.send("POST", "/v1/execute", None, headers)
            connection.sock.sendall(b'5\r\n{"cod\r\n7\r\ne":"1"}\r\n0\r\n\r\n')
            assert connection.reply().json["stdout"] == "1\n"


def test_a_client_may_ask_whether_to_go_on(service: Service) -> None:
    body = b'{"code":"1"}'
    headers = JSON | {"Expect": "100-continue", "Content-Length": str(len(body))}
    with Connection(service.port) as connection:
        connection.send("POST", "/v1/execute", None, headers)
        assert connection.head().status == 100
        connection.sock.sendall(body)
        assert connection.reply().json["stdout"] == "1\n"


def test_close_is_obeyed(service: Service) -> None:
    with Connection(service.port) as connection:
        reply = connection.ask("GET", "/health", None, {"Connection": "close"})
        assert (reply.header("connection") or "").lower() == "close"
        assert connection.file.read() == b""


def test_a_draining_server_answers_what_it_has_begun(tmp_path: Path) -> None:
    service = Service(tmp_path, "--profiles", "base")
    body = {"code": "print(1, flush=True)\nimport time\ntime.sleep(1)\n5", "timeout_ms": 60000}
    try:
        with Connection(service.port) as idle:
            with Stream(service.port, "POST", "/v1/execute/stream", body) as stream:
                received = stream.events()
                next(received)
                service.process.terminate()
                rest = list(received)
            assert (rest[-1].type, rest[-1].data["status"]) == ("result", "ok")
            assert idle.file.read() == b"", "and the idle connection is closed"
        service.stop()
    finally:
        service.kill()


def test_of_two_files_for_one_path_the_later_is_there(service: Service) -> None:
    files = [{"path": "a", "content": "first"}, {"path": "a", "content": "later"}]
    result = execute(service.port, "open('a').read()", files=files, timeout_ms=60000)
    assert (result["stdout"], result["files"]) == ("'later'\n", []), "it was not changed"
    result = execute(service.port, "open('a', 'w').write('first')", files=files, timeout_ms=60000)
    assert [file["path"] for file in result["files"]] == ["a"]

"""The dialect Sandbox Runtime: handlers, POST /workspace/se/v2/execute_code."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from harness import LiveService, Service
from http_client import Reply, ask, post

PATH = "/workspace/se/v2/execute_code"


def send(port: int, code: str, **fields: Any) -> Reply:
    return post(port, PATH, {"handler_code": code, **fields})


def call(port: int, code: str, **fields: Any) -> Any:
    reply = send(port, code, **fields)
    assert reply.status == 200, reply.body
    assert set(reply.json) == {"stdout", "stderr", "result", "metrics"}
    return reply.json


@pytest.mark.parametrize(
    "code,result",
    [
        ("def handler(event): return event", {"a": [1, "ü"]}),
        ("def handler(event, context): return [event, context.function_name]", "both"),
        ("def handler(event, context=None): return context is not None", True),
        ("def handler(event, retries=3): return retries", 3),
        ("def handler(*args): return len(args)", 1),
        ("handler = lambda event: event['a'][0]", 1),
        ("class H:\n def __call__(self, event, context): return 2\nhandler = H()", 2),
        ("class H:\n def m(self, event): return 1\nhandler = H().m", 1),
        (
            "import functools\ndef two(f):\n @functools.wraps(f)\n def g(*a): return f(*a)\n"
            " return g\n@two\ndef handler(event, context): return 'wrapped'",
            "wrapped",
        ),
        ("def handler(event): pass", None),
        ("def handler(event): return float('nan')", None),
        ("def handler(e): return {'x': [1.5, float('inf'), (float('-inf'),)]}", "infinities"),
        ("def handler(event): return 2**200", 2**200),
        ("def handler(event): return '\\ud800\\0é'", "?\0é"),
        ("def handler(event): return (1, None, True, {})", [1, None, True, {}]),
        ("def handler(event): return {1: 2, None: 3}", {"1": 2, "null": 3}),
        ("def handler(event): return 'x' * 5000000", "long"),
        ("from __future__ import annotations\ndef handler(event: Nothing): return 1", 1),
    ],
)
def test_what_a_handler_returns(service: Service, code: str, result: Any) -> None:
    special = {
        "both": [{"a": [1, "ü"]}, "unknown-function"],
        "infinities": {"x": [1.5, None, [None]]},
        "long": "x" * 5000000,
    }
    reply = call(service.port, code, event={"a": [1, "ü"]})
    expected = special.get(result, result) if isinstance(result, str) else result
    assert (reply["result"], reply["stderr"], reply["stdout"]) == (expected, "", "")


CONTEXT = """
def handler(event, context):
    left = context.get_remaining_time_in_millis()
    return dict(vars(context), left=left, _began=None)
"""


def test_the_context_of_a_handler(service: Service) -> None:
    found = call(service.port, CONTEXT)["result"]
    uuid = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
    assert uuid.fullmatch(found.pop("request_id")) and uuid.fullmatch(found.pop("log_stream_name"))
    assert 0 < found.pop("left") <= 3000
    assert found == {
        "function_name": "unknown-function",
        "function_version": "$LATEST",
        "log_group_name": "/lambda-sandbox/logs",
        "remaining_time_in_millis": 3000,
        "memory_limit_in_mb": 256,
        "invoked_function_arn": None,
        "_began": None,
    }
    given = {
        "function_name": "f",
        "request_id": "r",
        "remaining_time_in_millis": 60000,
        "invoked_function_arn": "arn",
    }
    found = call(service.port, CONTEXT, context=given)["result"]
    assert {name: found[name] for name in given} == given and 50000 < found["left"] <= 60000


def test_what_it_prints_and_what_it_used(service: Service) -> None:
    code = """
import sys
print("module")
def handler(event):
    print("handler"); print("err", file=sys.stderr)
    data = bytearray(30 << 20)
    for i in range(0, len(data), 4096):
        data[i] = 1
    sum(range(3_000_000))
    return len(data)
"""
    reply = call(service.port, code, event={"__timeout": 20})
    assert (reply["stdout"], reply["stderr"]) == ("module\nhandler\n", "err\n")
    metrics = reply["metrics"]
    assert set(metrics) == {"duration_ms", "memory_peak_mb", "cpu_time_ms", "timeout_seconds"}
    assert 30 < metrics["memory_peak_mb"] < 256 and metrics["timeout_seconds"] == 20
    assert 5 < metrics["cpu_time_ms"] and 5 < metrics["duration_ms"] < 20000


@pytest.mark.parametrize(
    "code,stderr",
    [
        ("", "System error: handler_code 不能为空"),
        (" \n\t", "System error: handler_code 不能为空"),
        ("def handler(", "System error: 代码语法错误: '(' was never closed"),
        ("def handler(e):\nreturn", "System error: 代码语法错误: expected an indented block"),
        ("x = 1", "System error: 代码中未找到 handler 函数定义\n"),
        ("handler = 5", "System error: 代码中未找到 handler 函数定义\n"),
        ("def handler(e): return {1}", "Handler 执行异常: Object of type set is not JSON"),
        ("def handler(e): e['x'] = e; return e", "Handler 执行异常: Circular reference detected"),
        ("1/0\ndef handler(e): pass", "Handler 执行异常: division by zero\nTraceback (most"),
        ("def handler(e): return e['none']", "Traceback (most recent call last):\n  File"),
        ("def handler(a, b, c): pass", "TypeError: handler() missing 1 required positional"),
        ("import sys\ndef handler(e): sys.exit(3)", ""),
        ("import sys\nsys.exit('bye')", "bye\n"),
    ],
)
def test_handlers_that_fail(service: Service, code: str, stderr: str) -> None:
    reply = call(service.port, code)
    assert reply["result"] is None
    assert reply["stderr"].startswith(stderr) and bool(reply["stderr"]) == bool(stderr)
    assert "cell" not in reply["stderr"] and "json" not in reply["stderr"].replace("JSON", "")


def test_a_context_with_more(service: Service) -> None:
    reply = call(service.port, "def handler(e): return 1", context={"colour": "red"})
    assert reply["result"] is None
    assert reply["stderr"] == (
        "System error: LambdaContext.__init__() got an unexpected keyword argument 'colour'"
    )


def test_a_handler_that_takes_too_long(service: Service) -> None:
    code = "def handler(event):\n while True: pass"
    reply = send(service.port, code, event={"__timeout": 1})
    assert reply.status == 500
    assert reply.json["detail"] == {
        "error_code": "Sandbox.ExecTimeout",
        "description": "Handler execution timeout",
        "error_detail": "Execution timed out after 1 seconds",
        "solution": "Consider optimizing your handler or increasing the __timeout parameter in the"
        " event",
    }


@pytest.mark.parametrize(
    "asked,seconds",
    [(5, 5), (0, 300), (-3, 300), (9999, 3600), (1e300, 3600), (2.5, 3), (None, 300)],
)
def test_the_time_of_a_handler(service: Service, asked: Any, seconds: int) -> None:
    reply = call(service.port, "def handler(e): return e", event={"__timeout": asked})
    assert reply["metrics"]["timeout_seconds"] == seconds
    assert reply["result"] == {"__timeout": asked}


@pytest.mark.parametrize("asked", ["5", True, [], {}])
def test_a_time_that_is_none(service: Service, asked: Any) -> None:
    reply = send(service.port, "def handler(e): return e", event={"__timeout": asked})
    assert reply.status == 400
    assert reply.json["detail"]["error_code"] == "Sandbox.InvalidParameter"
    assert "__timeout" in reply.json["detail"]["error_detail"]


@pytest.mark.parametrize(
    "fields,place",
    [
        ({}, ["body", "handler_code"]),
        ({"handler_code": 1}, ["body", "handler_code"]),
        ({"handler_code": "", "event": []}, ["body", "event"]),
        ({"handler_code": "", "context": "x"}, ["body", "context"]),
    ],
)
def test_requests_that_are_none(service: Service, fields: Any, place: Any) -> None:
    reply = post(service.port, PATH, fields)
    assert (reply.status, reply.json["detail"][0]["loc"]) == (422, place)


@pytest.mark.parametrize(
    "code,detail",
    [
        ("def handler(e): return bytearray(1 << 30)[0]", "killed: it needed more than 256 MB"),
        ("import os\ndef handler(e): os.kill(os.getpid(), 9)", "killed by signal 9"),
    ],
)
def test_a_handler_that_is_killed(service: Service, code: str, detail: str) -> None:
    reply = send(service.port, code.replace("bytearray(1 << 30)[0]", "len(b'x' * (1 << 30))"))
    assert reply.status == 500
    assert reply.json["detail"]["error_code"] == "Sandbox.ExecException"
    assert reply.json["detail"]["error_detail"].startswith(detail)


def test_a_handler_that_leaves(service: Service) -> None:
    reply = send(service.port, "import os\ndef handler(e): os._exit(0)")
    assert (reply.status, reply.json["detail"]["error_detail"]) == (
        500,
        "its process ended before the handler returned",
    )


FORGED = """
def handler(event, context):
    type(context).__init__.__globals__["_encode"] = lambda result, level: [SAID]
    return 1
"""


@pytest.mark.parametrize(
    "said",
    [
        "'nothing'",
        "'{\"a\":1,}'",
        "'[' * 100000",
        "'[' * 513 + ']' * 513",
        "'1 2'",
        "'\"\\x01\"'",
        "'[1'",
        "'{}}'",
        "'{\"a\" 1}'",
        "'01'",
        "'1.'",
        "'tru'",
    ],
)
def test_a_result_that_is_forged(service: Service, said: str) -> None:
    """The program owns its process and may say what it likes: never more than no result."""
    reply = call(service.port, FORGED.replace("SAID", said))
    assert reply["result"] is None
    assert reply["stderr"].endswith("System error: the result is no JSON, or nested too deeply\n")


def test_a_result_that_is_forged_well(service: Service) -> None:
    said = ' { "a" : [ 1e5 , -0.5 , "\\u00e9" , true , {} ] } '
    reply = call(service.port, FORGED.replace("SAID", repr(said)))
    assert reply["result"] == {"a": [1e5, -0.5, "é", True, {}]}


def test_no_state_is_left(service: Service) -> None:
    code = "import builtins\ndef handler(e):\n builtins.n = getattr(builtins, 'n', 0) + 1; return n"
    assert [call(service.port, code)["result"] for _ in range(5)] == [1] * 5


def test_large_events(service: Service) -> None:
    event = {"text": "é" * 1000000, "list": list(range(10000)), "real": 0.1}
    reply = call(service.port, "def handler(e): return e", event=event)
    assert reply["result"] == event


def test_its_profile_is_that_of_its_imports(start_service: Callable[..., Service]) -> None:
    service = start_service("--profiles", "base,data")
    code = "import numpy as np\ndef handler(e): return float(np.mean(e['x']))"
    assert call(service.port, code, event={"x": [1, 2, 3], "import pandas": 1})["result"] == 2.0


def test_its_settings(start_service: Callable[..., Service]) -> None:
    options = ["--runtime-timeout-s", "7", "--runtime-memory-kb", "65536", "--runtime-pids", "20"]
    service = start_service(*options)
    reply = call(service.port, "def handler(e): return 1")
    assert reply["metrics"]["timeout_seconds"] == 7
    reply = send(service.port, "def handler(e): return len(b'x' * (200 << 20))")
    assert "more than 64 MB" in reply.json["detail"]["error_detail"]
    code = """
import threading
def handler(e):
    gate, n = threading.Event(), 0
    try:
        for n in range(100):
            threading.Thread(target=gate.wait).start()
    except RuntimeError:
        pass
    gate.set()
    return n
"""
    assert 10 < call(service.port, code)["result"] < 20


def test_its_processors(start_live: Callable[..., LiveService]) -> None:
    """SANDBOX_CPU_QUOTA: of handlers and of sessions."""
    service = start_live("--profiles", "base", "--runtime-cpus", "0.2")
    code = """
import time
def handler(event):
    began = time.monotonic(), time.process_time()
    while time.process_time() - began[1] < 0.3:
        pass
    return (time.monotonic() - began[0]) / (time.process_time() - began[1])
"""
    assert call(service.port, code)["result"] > 3
    assert post(service.port, "/workspace/se/session/s", {}).status == 200
    (box,) = ask(service.port, "GET", "/v1/sandboxes").json["sandboxes"]
    assert box["limits"]["cpus"] == 0.2


def test_the_legacy_reply(service: Service) -> None:
    value = {"handler_code": "def handler(e): return 1"}
    reply = post(service.port, PATH, value, **{"X-Sandbox-Dialect": "legacy"})
    assert reply.json["result"]["result"] == 1 and set(reply.json) == {"result", "full_result"}


def test_too_many(start_service: Callable[..., Service]) -> None:
    service = start_service("--queue-max", "0", "--pool", "0")
    reply = send(service.port, "def handler(e): return 1")
    assert reply.status == 503 and reply.header("retry-after")
    assert reply.json["detail"]["error_code"] == "Sandbox.TooManyRequestsExection"
    assert ask(service.port, "GET", "/health").status == 200


def test_what_a_handler_prints_is_bounded_as_in_sessions(service: Service) -> None:
    reply = call(service.port, "def handler(event): print('x' * (20 << 20))")
    assert 0.9 < len(reply["stdout"]) / (16 << 20) <= 1 and reply["stdout"].endswith("[truncated]")

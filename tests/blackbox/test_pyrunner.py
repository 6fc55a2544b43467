"""The dialect PyRunner: what its server was seen to answer where that is no bug, every
bound and error of POST /run, its policy, and the setting that turns dialects off."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from harness import Service, failed, run_cli
from http_client import JSON, Connection, ask, execute, get, post
from raw_http import KeyedService

KEYS = ["status", "stdout", "stderr", "execution_time", "memory_used", "error"]
LIBRARIES = ["sympy", "numpy", "pandas", "matplotlib", "scipy", "sklearn"]
MODEL = "Input should be a valid dictionary or object to extract fields from"


def run(service: Service, code: str, **fields: Any) -> dict[str, Any]:
    reply = post(service.port, "/run", {"code": code, **fields})
    assert reply.status == 200, (reply.status, reply.body)
    result: dict[str, Any] = reply.json
    assert list(result) == KEYS
    assert isinstance(result["memory_used"], float) and isinstance(result["execution_time"], float)
    return result


def success(stdout: str) -> dict[str, Any]:
    return {"status": "success", "stdout": stdout, "stderr": "", "error": None}


def outcome(result: dict[str, Any]) -> dict[str, Any]:
    return {key: result[key] for key in ("status", "stdout", "stderr", "error")}


def fault(kind: str, loc: list[Any], msg: str, value: Any, **ctx: Any) -> dict[str, Any]:
    made = {"type": kind, "loc": ["body", *loc], "msg": msg, "input": value}
    return made | {"ctx": ctx} if ctx else made


def bound(field: str, value: Any, least: bool, limit: int) -> dict[str, Any]:
    kind, word, key = (
        ("greater_than_equal", "greater", "ge") if least else ("less_than_equal", "less", "le")
    )
    msg = f"Input should be {word} than or equal to {limit}"
    return fault(kind, [field], msg, value, **{key: limit})


def value_fault(msg: str, value: Any) -> dict[str, Any]:
    return fault("value_error", ["code"], f"Value error, {msg}", value, error={})


# ---------------------------------------------------------------------------- bodies

FRACTION = "Input should be a valid integer, got a number with a fractional part"
NO_NUMBER = "Input should be a valid integer, unable to parse string as an integer"
REFUSED: list[tuple[str, Any, list[dict[str, Any]]]] = [
    ("no code", {}, [fault("missing", ["code"], "Field required", {})]),
    ("no text", {"code": ""}, [value_fault("Code cannot be empty", "")]),
    ("blank", {"code": "   "}, [value_fault("Code cannot be empty", "   ")]),
    (
        "wide blanks",
        {"code": "\u2003\xa0\n"},
        [value_fault("Code cannot be empty", "\u2003\xa0\n")],
    ),
    (
        "large",
        {"code": "é" * 1_000_001},
        [value_fault("Code too large (max 1MB)", "é" * 500 + "...")],
    ),
    (
        "a number as code",
        {"code": 5},
        [fault("string_type", ["code"], "Input should be a valid string", 5)],
    ),
    ("no time", {"code": "x", "timeout": 0}, [bound("timeout", 0, True, 1)]),
    ("too long", {"code": "x", "timeout": 301}, [bound("timeout", 301, False, 300)]),
    ("too long as text", {"code": "x", "timeout": "301"}, [bound("timeout", "301", False, 300)]),
    ("far too long", {"code": "x", "timeout": 1e30}, [bound("timeout", 1e30, False, 300)]),
    ("little memory", {"code": "x", "memory_limit": 32}, [bound("memory_limit", 32, True, 64)]),
    (
        "much memory",
        {"code": "x", "memory_limit": 2049},
        [bound("memory_limit", 2049, False, 2048)],
    ),
    (
        "unknown field",
        {"code": "x", "foo": 1},
        [fault("extra_forbidden", ["foo"], "Extra inputs are not permitted", 1)],
    ),
    (
        "a fraction",
        {"code": "x", "timeout": 1.5},
        [fault("int_from_float", ["timeout"], FRACTION, 1.5)],
    ),
    (
        "no number",
        {"code": "x", "timeout": "soon"},
        [fault("int_parsing", ["timeout"], NO_NUMBER, "soon")],
    ),
    (
        "a list as time",
        {"code": "x", "timeout": []},
        [fault("int_type", ["timeout"], "Input should be a valid integer", [])],
    ),
    (
        "no boolean",
        {"code": "x", "auto_print": "maybe"},
        [
            fault(
                "bool_parsing",
                ["auto_print"],
                "Input should be a valid boolean, unable to interpret input",
                "maybe",
            )
        ],
    ),
    ("a list", [1], [fault("model_attributes_type", [], MODEL, [1])]),
    (
        "two faults",
        {"code": " ", "memory_limit": 1},
        [value_fault("Code cannot be empty", " "), bound("memory_limit", 1, True, 64)],
    ),
]


@pytest.mark.parametrize("body,faults", [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_a_body_is_refused_as_pydantic_does_it(
    service: Service, body: Any, faults: list[dict[str, Any]]
) -> None:
    reply = post(service.port, "/run", body)
    assert (reply.status, reply.json["detail"]) == (422, faults)
    assert reply.json["error"]["code"] == "bad_fields"


@pytest.mark.parametrize("timeout", [1, 300, "10", " 10 ", "10.0", 2.0, True, None])
def test_numbers_are_read_as_pydantic_reads_them(service: Service, timeout: Any) -> None:
    assert outcome(run(service, "6 * 7", timeout=timeout)) == success("42\n")


@pytest.mark.parametrize("memory", [64, 2048, "512", None])
def test_memory_limits_within_the_bounds_are_taken(service: Service, memory: Any) -> None:
    assert outcome(run(service, "6 * 7", memory_limit=memory)) == success("42\n")


def test_a_million_characters_are_not_too_many(service: Service) -> None:
    code = "print(len('" + "é" * (1_000_000 - 14) + "'))"
    assert len(code) == 1_000_000
    assert outcome(run(service, code)) == success("999986\n")


def test_a_body_without_a_type_is_json(service: Service) -> None:
    reply = ask(service.port, "POST", "/run", b'{"code": "2+3"}')
    assert reply.status == 200 and reply.json["stdout"] == "5\n"
    reply = ask(service.port, "POST", "/run", b"invalid json")
    expected = {
        "type": "json_invalid",
        "loc": ["body", 0],
        "msg": "JSON decode error",
        "input": {},
        "ctx": {"error": "Expecting value"},
    }
    assert (reply.status, reply.json["detail"]) == (422, [expected])


def test_other_requests_are_refused_as_fastapi_does_it(service: Service) -> None:
    reply = get(service.port, "/run")
    assert (reply.status, reply.json["detail"]) == (405, "Method Not Allowed")
    assert reply.header("allow") == "POST"
    reply = get(service.port, "/nope")
    assert (reply.status, reply.json["detail"]) == (404, "Not Found")
    reply = ask(service.port, "POST", "/run", b'{"code": "\xff"}', JSON)
    assert (reply.status, reply.json["detail"]) == (400, "There was an error parsing the body")


# ---------------------------------------------------------------------------- results

PRINTS = [
    ("2+3", "5\n"),
    ("'a'", "a\n"),
    ("a=1; a+1", "2\n"),
    ("None", ""),
    ("print('x')", "x\n"),
    ("x = 5", ""),
    ("if True:\n    7", ""),
    ("(1 +\n 2)", "3\n"),
    ("'''\na\nb'''", "\na\nb\n"),
    ("def f():\n    return 'é'\nf()", "é\n"),
    ("from __future__ import annotations\nimport math\nmath.floor(math.pi)", "3\n"),
    ("# only a comment", ""),
    ("class A:\n    def __str__(self): return 'str'\nA()", "str\n"),
]


@pytest.mark.parametrize("code,stdout", PRINTS, ids=[p[0] for p in PRINTS])
def test_a_last_expression_is_printed(service: Service, code: str, stdout: str) -> None:
    assert outcome(run(service, code)) == success(stdout)


@pytest.mark.parametrize("auto_print", [False, None, "no"])
def test_auto_print_can_be_turned_off(service: Service, auto_print: Any) -> None:
    assert outcome(run(service, "2+2", auto_print=auto_print)) == success("")


@pytest.mark.parametrize(
    "code,stdout,last",
    [
        ("1/0", "", "ZeroDivisionError: division by zero\n"),
        ('print("x")\nraise ValueError("e")', "x\n", "ValueError: e\n"),
        ("print(1)\nreturn", "", "SyntaxError: 'return' outside function\n"),
        ("class A:\n    def __str__(self): return 1\nA()", "", "type int)\n"),
    ],
)
def test_an_exception_is_an_error(service: Service, code: str, stdout: str, last: str) -> None:
    result = run(service, code)
    assert result["status"] == "error" and result["stdout"] == stdout
    assert result["stderr"].endswith(last) and result["error"] == result["stderr"]
    assert "cell" not in result["stderr"] and "__auto_print" not in result["stderr"]


@pytest.mark.parametrize("code,status", [("raise SystemExit", "success"), ("exit(3)", "error")])
def test_the_exit_status_decides(service: Service, code: str, status: str) -> None:
    result = run(service, code)
    assert (result["status"], result["error"]) == (status, None if status == "success" else "")


@pytest.mark.parametrize("seconds", [2, 3])
def test_a_timeout_reports_its_seconds_and_keeps_the_output(service: Service, seconds: int) -> None:
    result = run(service, "print('before')\nwhile True: pass", timeout=seconds)
    assert outcome(result) == {
        "status": "timeout",
        "stdout": "before\n",
        "stderr": f"Execution timed out after {seconds} seconds",
        "error": None,
    }
    assert result["execution_time"] == float(seconds)


@pytest.mark.parametrize("millions", [30, 50, 100])
def test_too_much_resident_memory_is_exceeded_memory(service: Service, millions: int) -> None:
    code = f"print('before')\ndata=[0]*({millions}*1024*1024)"
    result = run(service, code, memory_limit=64)
    assert outcome(result) == {
        "status": "memory_exceeded",
        "stdout": "before\n",
        "stderr": "Memory limit exceeded",
        "error": None,
    }
    assert result["memory_used"] > 60


def test_memory_that_is_not_touched_does_not_count(service: Service) -> None:
    code = "import numpy as np\nx = np.zeros(25_000_000)\nx[0] = 1\nprint(int(x[:10].sum()))"
    result = run(service, code, memory_limit=64)
    assert outcome(result) == success("1\n")
    assert 0 < result["memory_used"] < 100


def test_much_memory_can_be_had(service: Service) -> None:
    result = run(service, "len([0]*(64*2**20))", memory_limit=1536, timeout=120)
    assert outcome(result) == success("67108864\n") and result["memory_used"] > 512


def test_much_output_is_not_cut(service: Service) -> None:
    result = run(service, "for i in range(200_000): print(f'Line {i:6}')", timeout=120)
    assert result["stdout"].count("\n") == 200_000 and result["status"] == "success"


@pytest.mark.parametrize("module", LIBRARIES)
def test_the_libraries_that_pyrunner_promises_are_there(service: Service, module: str) -> None:
    assert outcome(run(service, f"import {module}\n{module}.__name__")) == success(module + "\n")


def test_one_key_runs_it_once(service: Service) -> None:
    with Connection(service.port) as connection:
        replies = [
            connection.post(
                "/run",
                {"code": "import random\nrandom.random()"},
                **{"Idempotency-Key": "pyrunner-once"},
            )
            for _ in range(2)
        ]
    assert replies[0].json["stdout"] == replies[1].json["stdout"] != ""


def test_a_server_with_keys_wants_one(keyed_service: KeyedService) -> None:
    reply = post(keyed_service.port, "/run", {"code": "1"})
    assert reply.status == 401 and isinstance(reply.json["detail"], str)
    bearer = {"Authorization": f"Bearer {keyed_service.key}"}
    assert post(keyed_service.port, "/run", {"code": "1"}, **bearer).json["stdout"] == "1\n"


# ---------------------------------------------------------------------------- the policy

IO = "Direct import of 'io' is not allowed. Use 'from io import specific_item' instead"
FORBIDDEN = [
    ("import os", "Import of 'os' is not allowed"),
    ("x = 1\nimport os.path as p", "Import of 'os' is not allowed"),
    ("import io", IO),
    ("import time", "Import of 'time' is not in the allowed list"),
    ("import _thread", "Import of '_thread' is not in the allowed list"),
    ("from os import path", "Import from 'os' is not allowed"),
    ("from time import sleep", "Import from 'time' is not in the allowed list"),
    ("from . import x", "Import from '.' is not in the allowed list"),
    ("from io import *", "Wildcard import from 'io' is not allowed"),
    ("from io import open", "Import of 'open' from 'io' is not allowed"),
    ("eval('1')", "Call to 'eval' is not allowed"),
    ("open('/etc/passwd')", "Call to 'open' is not allowed"),
    ("().__class__", "Access to '__class__' attribute is not allowed"),
    ("print('a'", "Syntax error: '(' was never closed (<unknown>, line 1)"),
    ("x = eval", "Use of 'eval' is not allowed"),
]


@pytest.mark.parametrize("code,why", FORBIDDEN, ids=[f[0] for f in FORBIDDEN])
def test_what_the_policy_refuses_is_told_in_its_words(
    service: Service, code: str, why: str
) -> None:
    result = run(service, code)
    expected = {
        "status": "error",
        "stdout": "",
        "stderr": f"Security validation failed: {why}",
        "error": why,
    }
    assert outcome(result) == expected and result["execution_time"] == 0.0


def test_names_that_are_bound_late_are_not_the_builtins(service: Service) -> None:
    result = run(service, "def f():\n    return eval\nf()\neval = 1")
    assert result["stderr"].endswith("NameError: name 'eval' is not defined\n")
    code = "globals()['__builtins__']['__import__']('os')"
    result = run(service, code)
    assert result["stderr"].endswith("ImportError: Import of 'os' is not allowed\n")


def test_the_policy_is_there_on_the_native_api(service: Service) -> None:
    result = execute(service.port, "import os", policy="restricted")
    assert (result["status"], result["exit_code"]) == ("error", 1)
    assert result["stderr"] == "PolicyError: Import of 'os' is not allowed\n"
    assert result["error"]["name"] == "PolicyError"
    refused = {
        "op": "program",
        "detail": "Import of 'os' is not allowed",
        "rule": "policy restricted",
    }
    assert result["denied"] == [refused]
    assert execute(service.port, "import os\nos.sep")["stdout"] == "'/'\n"
    assert execute(service.port, "import math\nmath.pi > 3", policy="restricted")["exit_code"] == 0
    reply = post(service.port, "/v1/execute", {"code": "1", "policy": "strict"})
    assert reply.status == 422 and reply.json["detail"][0]["type"] == "literal_error"


def test_the_operator_has_lists_of_their_own(start_service: Callable[..., Service]) -> None:
    service = start_service(
        "--profiles", "base", "--policy-allow", "os,time", "--policy-deny", "json,time"
    )
    assert outcome(run(service, "import os\nos.sep")) == success("/\n")
    assert run(service, "import json")["error"] == "Import of 'json' is not allowed"
    assert run(service, "import time")["error"] == "Import of 'time' is not allowed"
    assert outcome(run(service, "import math\nmath.floor(2.5)")) == success("2\n")


@pytest.mark.parametrize("value", ["os.path", "a b", ",os", "os,,sys"])
def test_a_bad_list_of_modules_is_refused(value: str) -> None:
    failed(run_cli("config", "--policy-allow", value), "--policy-allow", "names of modules")


# ---------------------------------------------------------------------------- shared paths


def test_the_front_page_says_what_both_want(service: Service) -> None:
    about = get(service.port, "/").json
    assert about["name"] == "cloche"
    assert (about["service"], about["status"]) == ("PyRunner", "healthy")
    assert about["capabilities"] == {
        "max_timeout": 300,
        "max_memory_mb": 2048,
        "libraries": LIBRARIES,
    }
    page = get(service.port, "/", Accept="text/html")
    assert page.header("content-type") == "text/html; charset=utf-8"
    assert get(service.port, "/health").json["status"] == "ok"
    assert get(service.port, "/redoc").status == 307


def test_the_specification_has_run(service: Service) -> None:
    spec = get(service.port, "/openapi.json").json
    reference = spec["paths"]["/run"]["post"]["requestBody"]["content"]["application/json"]
    assert reference["schema"]["$ref"].endswith("/PyRunnerRequest")


def test_the_first_dialect_has_the_shared_words(start_service: Callable[..., Service]) -> None:
    service = start_service("--profiles", "base", "--dialects", "pyrunner,code-interpreter")
    assert get(service.port, "/health").json["status"] == "healthy"
    about = get(service.port, "/").json
    assert (about["version"], about["capabilities"]["libraries"]) == ("1.0.0", [])


def test_the_sessions_of_the_code_interpreter_can_be_turned_off(
    start_service: Callable[..., Service],
) -> None:
    service = start_service("--profiles", "base", "--dialects", "pyrunner")
    for method, path in (
        ("POST", "/v1/sessions"),
        ("DELETE", "/v1/sessions/x"),
        ("POST", "/v1/sessions/x/bash"),
    ):
        reply = ask(service.port, method, path, b"{}" if method == "POST" else None, JSON)
        assert (reply.status, reply.json["detail"]) == (404, "Not Found")
    assert not [
        path for path in get(service.port, "/openapi.json").json["paths"] if "session" in path
    ]
    assert outcome(run(service, "1")) == success("1\n")


@pytest.mark.parametrize("dialects", ["code-interpreter", ""])
def test_a_dialect_can_be_turned_off(start_service: Callable[..., Service], dialects: str) -> None:
    service = start_service("--profiles", "base", "--dialects", dialects)
    for method, path in (("POST", "/run"), ("GET", "/run"), ("GET", "/redoc"), ("POST", "/run/")):
        reply = ask(service.port, method, path, b"{}" if method == "POST" else None)
        assert (reply.status, reply.json["detail"]) == (404, "Not Found")
    assert "/run" not in get(service.port, "/openapi.json").json["paths"]
    assert "capabilities" not in get(service.port, "/").json
    assert execute(service.port, "1")["stdout"] == "1\n"


def test_an_unknown_dialect_is_refused() -> None:
    failed(run_cli("config", "--dialects", "pyrunner,perl"), "--dialects", "perl", "pyrunner")
    shown = run_cli("config", "--json", "--dialects", "pyrunner")
    assert b"pyrunner" in shown.stdout and json.loads(shown.stdout)


def test_the_operator_may_allow_less(start_service: Callable[..., Service]) -> None:
    service = start_service(
        "--profiles", "base", "--pyrunner-max-timeout-s", "20", "--pyrunner-max-memory-mb", "256"
    )
    reply = post(service.port, "/run", {"code": "1", "timeout": "21"})
    assert (reply.status, reply.json["detail"]) == (422, [bound("timeout", "21", False, 20)])
    reply = post(service.port, "/run", {"code": "1", "memory_limit": 512})
    assert (reply.status, reply.json["detail"]) == (422, [bound("memory_limit", 512, False, 256)])
    assert outcome(run(service, "1")) == success("1\n")  # the defaults are lowered
    assert get(service.port, "/").json["capabilities"]["max_timeout"] == 20

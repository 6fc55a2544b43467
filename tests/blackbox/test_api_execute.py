"""Executions beyond the Code Interpreter API: more fields, and the result of api.md."""

from __future__ import annotations

import base64
import re
from typing import Any

import pytest

from api_execute import SLEEP
from harness import Service
from http_client import execute, get, post, upload
from test_result import FIELDS


def problem(service: Service, **body: Any) -> tuple[int, str, str]:
    """The status, the code and the message of a refused request."""
    reply = post(service.port, "/v1/execute", {"code": "1", **body})
    error = reply.json["error"]
    assert set(error) == {"code", "message", "remediation", "retryable"}
    return reply.status, error["code"], error["message"]


# ---- more fields ----


def test_args_and_env_reach_the_program(service: Service) -> None:
    code = "import os, sys\nprint(sys.argv[1:], os.environ['NAME'], repr(os.environ['EMPTY']))"
    env = {"NAME": "wert ü =", "EMPTY": ""}
    result = execute(service.port, code, args=["a b", "", "--x=ü"], env=env)
    assert result["stdout"] == "['a b', '', '--x=ü'] wert ü = ''\n"


def test_a_file_that_came_along_can_be_run(service: Service) -> None:
    """Nobody has it open to write to any more: it was Text file busy once in some hundred times."""
    files = [{"path": "tool", "content": "#!/bin/sh\nexit 7\n"}]
    code = """
import os
os.chmod("tool", 0o700)
if (pid := os.fork()) == 0:
    try:
        os.execv("./tool", ["tool"])
    except OSError as error:
        os._exit(error.errno)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    assert {execute(service.port, code, files=files)["stdout"] for _ in range(40)} == {"7\n"}


@pytest.mark.parametrize(
    "code",
    [
        "print(int(open('/proc/meminfo').read().split()[1]) >> 10)",
        "import os\nprint(os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') >> 20)",
    ],
)
def test_the_first_thing_a_program_sees_is_its_own_memory(service: Service, code: str) -> None:
    """Init is told of it while the program is on its way."""
    found = {execute(service.port, code, limits={"memory_mb": 300})["stdout"] for _ in range(60)}
    assert found == {"300\n"}


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
    few = {"pids": 16, "open_files": 128}  # together they have a bound of their own
    allowed = few | {name: maxima[name] for name in limits}
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


# ---- the result ----


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

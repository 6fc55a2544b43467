"""Contract 1, the public Code Interpreter API: what its server was seen to answer, and what its
document says, over real sockets. Sessions are in test_sessions.py."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import AS_USUAL, Service, eventually
from http_client import (
    FORM,
    JSON,
    Event,
    Reply,
    Stream,
    ask,
    download,
    execute,
    get,
    part,
    post,
    upload,
)

MODEL = "Input should be a valid dictionary or object to extract fields from"
UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
SLEEP = "import time\nwhile True:\n    time.sleep(1000)"


def fault(kind: str, loc: list[Any], msg: str, value: Any, **ctx: Any) -> dict[str, Any]:
    made = {"type": kind, "loc": loc, "msg": msg, "input": value}
    return made | {"ctx": ctx} if ctx else made


def string_fault(value: Any, *loc: Any) -> dict[str, Any]:
    return fault("string_type", ["body", *loc], "Input should be a valid string", value)


def int_fault(value: Any, *loc: Any) -> dict[str, Any]:
    return fault("int_type", ["body", *loc], "Input should be a valid integer", value)


def missing(value: Any, *loc: Any) -> dict[str, Any]:
    return fault("missing", ["body", *loc], "Field required", value)


def run_stream(service: Service, code: str, **fields: Any) -> tuple[Reply, list[Event]]:
    with Stream(service.port, "POST", "/v1/execute/stream", {"code": code, **fields}) as stream:
        return stream.reply, list(stream.events())


def said(events: list[Event], name: str) -> str:
    return "".join(
        e.data["data"] for e in events if e.type == "output" and e.data["stream"] == name
    )


def paths(result: dict[str, Any]) -> list[str]:
    return sorted(f["path"] for f in result["files"])


# ---------------------------------------------------------------------------- as it was observed

GOLDEN: list[tuple[str, Any, int, Any]] = [
    ("no code", {}, 422, [missing({}, "code")]),
    ("code is a number", {"code": 1}, 422, [string_fault(1, "code")]),
    (
        "no time",
        {"code": "x", "timeout_ms": 0},
        422,
        [
            fault(
                "greater_than_equal",
                ["body", "timeout_ms"],
                "Input should be greater than or equal to 1",
                0,
                ge=1,
            )
        ],
    ),
    ("time as text", {"code": "x", "timeout_ms": "5"}, 422, [int_fault("5", "timeout_ms")]),
    (
        "too long",
        {"code": "x", "timeout_ms": 60001},
        422,
        "timeout_ms exceeds maximum of 60000 ms",
    ),
    ("a list", [1], 422, [fault("model_attributes_type", ["body"], MODEL, [1])]),
    (
        "no file id",
        {"code": "x", "files": [{"path": "a"}]},
        422,
        [missing({"path": "a"}, "files", 0, "file_id")],
    ),
    (
        "unknown file",
        {"code": "x", "files": [{"path": "a", "file_id": "nope"}]},
        404,
        "File with ID 'nope' not found for path 'a'.",
    ),
    (
        "all wrong",
        {"code": 1, "timeout_ms": "z", "files": 5},
        422,
        [
            string_fault(1, "code"),
            int_fault("z", "timeout_ms"),
            fault("list_type", ["body", "files"], "Input should be a valid list", 5),
        ],
    ),
]


@pytest.mark.parametrize("body,status,detail", [g[1:] for g in GOLDEN], ids=[g[0] for g in GOLDEN])
@pytest.mark.parametrize("path", ["/v1/execute", "/v1/execute/stream"])
def test_a_refused_body_is_answered_as_observed(
    service: Service, path: str, body: Any, status: int, detail: Any
) -> None:
    reply = post(service.port, path, body)
    assert (reply.status, reply.json["detail"]) == (status, detail)
    assert reply.header("content-type") == "application/json"


RAW: list[tuple[str, bytes, str | None, int, Any]] = [
    (
        "bad json",
        b"{bad",
        "application/json",
        422,
        [
            fault(
                "json_invalid",
                ["body", 1],
                "JSON decode error",
                {},
                error="Expecting property name enclosed in double quotes",
            )
        ],
    ),
    ("empty", b"", "application/json", 422, [missing(None)]),
    (
        "no type",
        b'{"code":"x"}',
        None,
        422,
        [fault("model_attributes_type", ["body"], MODEL, '{"code":"x"}')],
    ),
    (
        "another type",
        b'{"code":"x"}',
        "text/plain",
        422,
        [fault("model_attributes_type", ["body"], MODEL, '{"code":"x"}')],
    ),
    (
        "not utf-8",
        b'{"code":"\xff"}',
        "application/json",
        400,
        "There was an error parsing the body",
    ),
]


@pytest.mark.parametrize("body,kind,status,detail", [g[1:] for g in RAW], ids=[g[0] for g in RAW])
def test_an_unreadable_body_is_answered_as_observed(
    service: Service, body: bytes, kind: str | None, status: int, detail: Any
) -> None:
    headers = {"Content-Type": kind} if kind else {}
    reply = ask(service.port, "POST", "/v1/execute", body, headers)
    assert (reply.status, reply.json["detail"]) == (status, detail)


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "application/vnd.x+json"])
def test_other_names_of_json_are_json(service: Service, kind: str) -> None:
    reply = ask(service.port, "POST", "/v1/execute", b'{"code":"1"}', {"Content-Type": kind})
    assert (reply.status, reply.json["stdout"]) == (200, "1\n")


def test_what_is_not_there_is_answered_as_observed(service: Service) -> None:
    wrong = get(service.port, "/v1/execute")
    assert (wrong.status, wrong.header("allow")) == (405, "POST")
    assert wrong.json["detail"] == "Method Not Allowed"
    nothing = get(service.port, "/nope")
    assert (nothing.status, nothing.json["detail"]) == (404, "Not Found")


def test_a_path_with_a_slash_too_many_leads_to_the_one_without(service: Service) -> None:
    reply = get(service.port, "/v1/files/")
    assert (reply.status, reply.body) == (307, b"")
    assert (reply.header("location") or "").endswith("/v1/files")
    reply = get(service.port, "/v1/files/?a=%20b&c=%C3%A9")
    assert (reply.header("location") or "").endswith("/v1/files?a=%20b&c=%C3%A9")


@pytest.mark.parametrize("name", ["té st.txt", "数据.txt"])
def test_a_file_is_uploaded_listed_and_deleted_as_observed(service: Service, name: str) -> None:
    reply = ask(service.port, "POST", "/v1/files", part(b"abc", filename=name), FORM)
    made = reply.json
    assert reply.status == 201
    assert (made["filename"], made["size_bytes"]) == (name, 3)
    assert UUID4.fullmatch(made["file_id"])
    listed = get(service.port, "/v1/files").json["files"]
    (entry,) = [f for f in listed if f["file_id"] == made["file_id"]]
    assert isinstance(entry.pop("upload_time"), float)
    assert entry == made
    gone = ask(service.port, "DELETE", f"/v1/files/{made['file_id']}")
    assert (gone.status, gone.body) == (204, b"")
    again = ask(service.port, "DELETE", f"/v1/files/{made['file_id']}")
    expected = f"File with ID '{made['file_id']}' not found"
    assert (again.status, again.json["detail"]) == (404, expected)


FORMS: list[tuple[str, bytes, dict[str, str], list[Any]]] = [
    ("no part", part(b"x", name="other"), FORM, [missing(None, "file")]),
    ("json", b"{}", JSON, [missing(None, "file")]),
    (
        "a string",
        part(b"x", filename=None),
        FORM,
        [
            fault(
                "value_error",
                ["body", "file"],
                "Value error, Expected UploadFile, received: <class 'str'>",
                "x",
                error={},
            )
        ],
    ),
]


@pytest.mark.parametrize("body,headers,detail", [f[1:] for f in FORMS], ids=[f[0] for f in FORMS])
def test_a_form_without_a_file_is_answered_as_observed(
    service: Service, body: bytes, headers: dict[str, str], detail: list[Any]
) -> None:
    reply = ask(service.port, "POST", "/v1/files", body, headers)
    assert (reply.status, reply.json["detail"]) == (422, detail)
    assert reply.json["error"]["code"] == "bad_fields"  # as in every error body of ours


def test_health_is_as_clients_expect_it(service: Service) -> None:
    reply = get(service.port, "/health")
    assert reply.status == 200
    assert list(reply.json)[:3] == ["status", "message", "version"]
    assert (reply.json["status"], reply.json["message"]) == ("ok", None)
    assert isinstance(reply.json["version"], str)


# ---------------------------------------------------------------------------- the request


@pytest.mark.parametrize("value", ["5", 5.0, True, None, [], {}])
def test_the_time_limit_is_strictly_an_integer(service: Service, value: Any) -> None:
    reply = post(service.port, "/v1/execute", {"code": "", "timeout_ms": value})
    assert (reply.status, reply.json["detail"]) == (422, [int_fault(value, "timeout_ms")])


@pytest.mark.parametrize("field,value", [("code", None), ("code", ["a"]), ("stdin", 1)])
def test_texts_are_strictly_texts(service: Service, field: str, value: Any) -> None:
    reply = post(service.port, "/v1/execute", {"code": "", field: value})
    assert (reply.status, reply.json["detail"]) == (422, [string_fault(value, field)])


def test_the_fields_of_a_file_are_strictly_texts(service: Service) -> None:
    files = [{"path": 1, "file_id": None}, {}]
    reply = post(service.port, "/v1/execute", {"code": "", "files": files})
    assert reply.json["detail"] == [
        string_fault(1, "files", 0, "path"),
        string_fault(None, "files", 0, "file_id"),
        missing({}, "files", 1, "path"),
        missing({}, "files", 1, "file_id"),
    ]


@pytest.mark.parametrize("value", [True, "yes", "on", "true", "T", "y", 1, "1", 1.0])
def test_what_means_yes_shows_the_last_line(service: Service, value: Any) -> None:
    assert execute(service.port, "7", last_line_interactive=value)["stdout"] == "7\n"


@pytest.mark.parametrize("value", [False, "no", "off", "FALSE", "f", "n", 0, "0", 0.0])
def test_what_means_no_does_not(service: Service, value: Any) -> None:
    assert execute(service.port, "7", last_line_interactive=value)["stdout"] == ""


@pytest.mark.parametrize(
    "value,kind,msg",
    [
        ("maybe", "bool_parsing", "Input should be a valid boolean, unable to interpret input"),
        (2, "bool_parsing", "Input should be a valid boolean, unable to interpret input"),
        (None, "bool_type", "Input should be a valid boolean"),
        ([], "bool_type", "Input should be a valid boolean"),
    ],
)
def test_what_means_neither_is_refused(service: Service, value: Any, kind: str, msg: str) -> None:
    reply = post(service.port, "/v1/execute", {"code": "", "last_line_interactive": value})
    expected = [fault(kind, ["body", "last_line_interactive"], msg, value)]
    assert (reply.status, reply.json["detail"]) == (422, expected)


def test_unknown_fields_are_ignored(service: Service) -> None:
    result = execute(service.port, "1", language="python", session_id=5, verbose={"a": []})
    assert result["stdout"] == "1\n"


def test_no_code_is_a_program_too(service: Service) -> None:
    result = execute(service.port, "")
    assert (result["exit_code"], result["stdout"], result["stderr"]) == (0, "", "")


@pytest.mark.parametrize("fields", [{}, {"stdin": None}, {"stdin": ""}])
def test_without_stdin_there_is_its_end(service: Service, fields: dict[str, Any]) -> None:
    result = execute(service.port, "import sys; repr(sys.stdin.read())", **fields)
    assert result["stdout"] == "\"''\"\n"


def test_stdin_is_read(service: Service) -> None:
    text = "ä\n" + "b" * 300_000
    code = "import sys\nprint(ascii(input()), len(sys.stdin.read()))"
    assert execute(service.port, code, stdin=text)["stdout"] == "'\\xe4' 300000\n"


def test_two_seconds_are_the_default(tmp_path: Path) -> None:
    service = Service(tmp_path, "--profiles", "base", caller=AS_USUAL)
    try:
        assert get(service.port, "/v1/info").json["defaults"]["timeout_ms"] == 2000
        result = execute(service.port, SLEEP)
        assert result["timed_out"] and result["duration_ms"] >= 2000
        service.stop()
    finally:
        service.kill()


def test_the_checks_have_an_order(service: Service) -> None:
    """Fields, then the time limit, then file ids, then paths."""
    gone = {"path": "../a", "file_id": str(uuid.uuid4())}
    there = {"path": "/a", "file_id": upload(service.port, "a", b"")}

    def detail(**body: Any) -> Any:
        return post(service.port, "/v1/execute", body).json["detail"]

    assert isinstance(detail(code=1, timeout_ms=60001, files=[gone, there]), list)
    assert detail(code="", timeout_ms=60001, files=[gone]) == (
        "timeout_ms exceeds maximum of 60000 ms"
    )
    assert detail(code="", files=[there, gone]) == (
        f"File with ID '{gone['file_id']}' not found for path '../a'."
    )
    assert detail(code="", files=[there]) == "File paths must be relative."


WRONG_PATHS = [
    ("/etc/passwd", "File paths must be relative."),
    ("../a", "File paths must not contain '..'."),
    ("a/../b", "File paths must not contain '..'."),
    ("", "File path must not be empty."),
    (".", "File path must not be empty."),
    ("./", "File path must not be empty."),
    ("__main__.py", "File path '__main__.py' is reserved for the execution entrypoint."),
    ("./__main__.py", "File path '__main__.py' is reserved for the execution entrypoint."),
]


@pytest.mark.parametrize("path,message", WRONG_PATHS)
def test_a_wrong_path_is_refused(service: Service, path: str, message: str) -> None:
    files = [{"path": path, "file_id": upload(service.port, "a", b"")}]
    reply = post(service.port, "/v1/execute", {"code": "", "files": files})
    assert (reply.status, reply.json["detail"]) == (422, message)
    assert reply.json["error"]["code"] == "bad_path"
    streamed, events = run_stream(service, "", files=files)
    assert streamed.status == 200
    assert [(e.type, e.data["message"]) for e in events] == [("error", message)]


def test_dots_and_empty_parts_of_a_path_are_dropped(service: Service) -> None:
    files = [{"path": "./a//./b.txt", "file_id": upload(service.port, "x", b"data")}]
    code = "import os\nprint(os.listdir('a'), open('a/b.txt').read())"
    assert execute(service.port, code, files=files)["stdout"] == "['b.txt'] data\n"


# ---------------------------------------------------------------------------- execution


@pytest.mark.parametrize(
    "code,stdout",
    [
        ("1+1\n2+2", "4\n"),
        ("'a'", "'a'\n"),
        ("x=3; x", "3\n"),
        ("if True:\n 7", ""),
        ("None", ""),
        ("print(1)", "1\n"),
        ("x = 5", ""),
        ("tree = 1\n2", "2\n"),
        ("code = 1\nast = 2\ncode + ast", "3\n"),
        ("__name__", "'__main__'\n"),
        (
            "from __future__ import annotations\ndef f(x: nobody): pass\nf.__annotations__['x']",
            "'nobody'\n",
        ),
    ],
)
def test_the_last_line_is_shown_as_a_prompt_would(service: Service, code: str, stdout: str) -> None:
    result = execute(service.port, code)
    assert (result["stdout"], result["exit_code"]) == (stdout, 0), result["stderr"]


def test_nothing_is_shown_when_it_is_not_asked_for(service: Service) -> None:
    result = execute(service.port, "x = 3\nx", last_line_interactive=False)
    assert (result["stdout"], result["exit_code"]) == ("", 0)


@pytest.mark.parametrize("flag", [True, False])
def test_an_exception_ends_with_one_and_a_traceback(service: Service, flag: bool) -> None:
    result = execute(service.port, "print('a')\n\n1/0", last_line_interactive=flag)
    assert (result["exit_code"], result["stdout"]) == (1, "a\n")
    assert result["stderr"].startswith("Traceback (most recent call last):\n")
    assert result["stderr"].endswith("ZeroDivisionError: division by zero\n")
    assert "line 3, in <module>" in result["stderr"]
    if not flag:
        assert 'File "/workspace/__main__.py", line 3' in result["stderr"]


@pytest.mark.parametrize("flag", [True, False])
def test_a_syntax_error_ends_with_one(service: Service, flag: bool) -> None:
    result = execute(service.port, "print(1)\nx = = 1", last_line_interactive=flag)
    assert (result["exit_code"], result["stdout"]) == (1, "")
    assert "SyntaxError" in result["stderr"]


@pytest.mark.parametrize(
    "code,status",
    [
        ("import sys; sys.exit(3)", 3),
        ("import sys; sys.exit()", 0),
        ("import sys; sys.exit(0)", 0),
        ("import sys; sys.exit('why')", 1),
        ("import sys; sys.exit(-1)", 255),
        ("raise SystemExit(256)", 0),
        ("import os; os._exit(7)", 7),
        ("import os; os.kill(os.getpid(), 9)", 137),
        ("import os; os.kill(os.getpid(), 15)", 143),
        ("import os; os.abort()", 134),
    ],
)
def test_the_exit_code_is_the_shells(service: Service, code: str, status: int) -> None:
    result = execute(service.port, code)
    assert (result["exit_code"], result["timed_out"]) == (status, False)


def test_too_much_memory_is_137(service: Service) -> None:
    result = execute(service.port, "x = b'x' * (1 << 30)", timeout_ms=60000)
    assert (result["exit_code"], result["timed_out"]) == (137, False)


def test_too_much_cpu_is_137(service: Service) -> None:
    code = "while True: pass"
    result = execute(service.port, code, timeout_ms=60000, limits={"cpu_seconds": 1})
    assert (result["exit_code"], result["timed_out"]) == (137, False)


def test_a_program_out_of_time_keeps_what_it_did(service: Service) -> None:
    code = (
        "import sys\nprint('out')\nprint('err', file=sys.stderr)\n"
        "open('f', 'w').write('data')\n" + SLEEP
    )
    result = execute(service.port, code, timeout_ms=1500)
    assert (result["timed_out"], result["exit_code"]) == (True, None)
    assert (result["stdout"], result["stderr"]) == ("out\n", "err\n")
    assert paths(result) == ["f"]
    assert download(service.port, result["files"][0]["file_id"]) == b"data"


def test_the_program_is_where_the_contract_says(service: Service) -> None:
    code = (
        "import os, sys\nprint(os.getcwd(), sys.argv, __file__, os.path.exists(__file__))\n"
        "names = 'PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE PYTHONIOENCODING MPLCONFIGDIR'\n"
        "print([os.environ.get(name) for name in names.split()])\nprint(sys.stdout.encoding)"
    )
    assert execute(service.port, code, last_line_interactive=False)["stdout"] == (
        "/workspace ['/workspace/__main__.py'] /workspace/__main__.py True\n"
        "['1', '1', 'utf-8', '/tmp/matplotlib']\nutf-8\n"
    )


def test_nothing_stays_from_one_program_to_the_next(service: Service) -> None:
    execute(service.port, "open('a', 'w'); open('/tmp/b', 'w'); import builtins; builtins.x = 1")
    code = "import os, builtins; print(os.listdir(), os.listdir('/tmp'), hasattr(builtins, 'x'))"
    result = execute(service.port, code, last_line_interactive=True)
    assert "'a'" not in result["stdout"] and "'b'" not in result["stdout"]
    assert result["stdout"].endswith("False\n")


# ---------------------------------------------------------------------------- output


def test_too_much_output_ends_with_a_mark(service: Service) -> None:
    code = "import sys\nprint('x' * 1000)\nprint('y' * 1000, file=sys.stderr)"
    result = execute(service.port, code, limits={"output_bytes": 100})
    assert result["stdout"] == "x" * 68 + "\n...[truncated]"
    assert result["stderr"] == "y" * 68 + "\n...[truncated]"
    assert len(result["stdout"]) == 83


def test_output_up_to_the_limit_is_whole(service: Service) -> None:
    result = execute(service.port, "print('x' * 99)", limits={"output_bytes": 100})
    assert result["stdout"] == "x" * 99 + "\n"


def test_a_character_cut_in_two_is_replaced(service: Service) -> None:
    result = execute(service.port, "print('é' * 100)", limits={"output_bytes": 101})
    assert result["stdout"] == "é" * 34 + "\ufffd\n...[truncated]"


def test_a_stream_that_is_cut_has_no_mark(service: Service) -> None:
    _, events = run_stream(service, "print('x' * 1000)", limits={"output_bytes": 100})
    assert said(events, "stdout") == "x" * 100
    assert events[-1].type == "result"


def test_bytes_that_are_no_text_are_replaced(service: Service) -> None:
    code = "import os; n = os.write(1, b'a\\xffb\\x00c')"
    assert execute(service.port, code)["stdout"] == "a\ufffdb\0c"
    _, events = run_stream(service, code)
    assert said(events, "stdout") == "a\ufffdb\0c"


# ---------------------------------------------------------------------------- streams


def test_a_stream_has_the_contracts_headers(service: Service) -> None:
    reply, _ = run_stream(service, "1")
    assert reply.status == 200
    assert reply.header("content-type") == "text/event-stream; charset=utf-8"
    assert reply.header("cache-control") == "no-cache"
    assert reply.header("x-accel-buffering") == "no"
    assert (reply.header("connection") or "keep-alive").lower() == "keep-alive"


def test_a_stream_ends_with_one_result(service: Service) -> None:
    code = (
        "import sys\nprint('out')\nprint('err', file=sys.stderr)\n"
        "open('f', 'w').write('x')\nsys.exit(4)"
    )
    _, events = run_stream(service, code)
    assert [e.type for e in events].count("result") == 1
    assert (said(events, "stdout"), said(events, "stderr")) == ("out\n", "err\n")
    result = events[-1]
    assert result.type == "result"
    assert list(result.data)[:4] == ["exit_code", "timed_out", "duration_ms", "files"]
    assert "stdout" not in result.data and "stderr" not in result.data
    assert (result.data["exit_code"], result.data["timed_out"]) == (4, False)
    assert download(service.port, result.data["files"][0]["file_id"]) == b"x"


def test_a_stream_is_framed_as_its_readers_expect(service: Service) -> None:
    body = {"code": "import os; n = os.write(1, b'a b\\n')"}
    reply = post(service.port, "/v1/execute/stream", body)
    frames = reply.body.decode().split("\n\n")
    # The contract's two lines; ours, which says where to resume, comes behind them.
    first = 'event: output\ndata: {"stream":"stdout","data":"a b\\n"}\nid: 2'
    assert frames[0] == first
    assert frames[1].startswith("event: result\ndata: {") and "\n" not in frames[1][15:]
    assert frames[2:] == [""]


def test_a_silent_program_sends_only_its_result(service: Service) -> None:
    _, events = run_stream(service, "pass")
    assert [e.type for e in events] == ["result"]


def test_a_stream_that_times_out_says_so_in_its_result(service: Service) -> None:
    _, events = run_stream(service, "print('a')\n" + SLEEP, timeout_ms=1500)
    assert said(events, "stdout") == "a\n"
    assert (events[-1].data["timed_out"], events[-1].data["exit_code"]) == (True, None)


def test_output_comes_while_the_program_runs(service: Service) -> None:
    """The program waits for as long as it may; its first line is here long before that."""
    body = {"code": "import os; n = os.write(1, b'first\\n')\n" + SLEEP, "timeout_ms": 60000}
    with Stream(service.port, "POST", "/v1/execute/stream", body) as stream:
        first = next(stream.events())
        assert first.data == {"stream": "stdout", "data": "first\n"}


def test_line_separators_do_not_break_the_frames(service: Service) -> None:
    code = "print('a\\x85b\\u2028c\\u2029d\\x0be\\x0cf\\x1cg\\rh')"
    text = "a\x85b\u2028c\u2029d\x0be\x0cf\x1cg\rh\n"
    _, events = run_stream(service, code)
    assert said(events, "stdout") == text


def test_characters_are_never_cut_between_events(service: Service) -> None:
    code = (
        "import os\nfor _ in range(3):\n    for b in '€😀é'.encode():\n"
        "        os.write(1, bytes([b]))\nn = os.write(1, '€😀'.encode() * 10000)"
    )
    _, events = run_stream(service, code)
    assert said(events, "stdout") == "€😀é" * 3 + "€😀" * 10000
    assert all(e.data["data"] for e in events if e.type == "output")


def test_a_character_that_never_ends_is_replaced_at_the_end(service: Service) -> None:
    _, events = run_stream(service, "import os; n = os.write(1, b'a\\xe2\\x82')")
    assert said(events, "stdout") in ("a\ufffd", "a\ufffd\ufffd")


# ---------------------------------------------------------------------------- files of programs


def test_a_result_begins_with_the_contracts_fields(service: Service) -> None:
    result = execute(service.port, "n = open('d.txt', 'w').write('x')")
    first = ["stdout", "stderr", "exit_code", "timed_out", "duration_ms", "files"]
    assert list(result)[:6] == first
    (made,) = result["files"]
    assert list(made)[:3] == ["path", "kind", "file_id"]
    assert (made["path"], made["kind"]) == ("d.txt", "file")
    assert UUID4.fullmatch(made["file_id"])
    assert isinstance(result["duration_ms"], int) and result["duration_ms"] >= 0


def test_only_new_and_modified_regular_files_are_returned(service: Service) -> None:
    files = [
        {"path": name, "file_id": upload(service.port, "x", b"same")}
        for name in ("same.txt", "changed.txt", "rewritten.txt", "d/removed.txt")
    ]
    code = """if True:
    import os
    open('changed.txt', 'a').write('!')
    open('rewritten.txt', 'w').write('same')
    os.remove('d/removed.txt')
    os.makedirs('deep/er')
    open('deep/er/new.txt', 'w').write('n')
    open('deep/__main__.py', 'w').write('n')
    open('__main__.py', 'a').write('#')
    os.symlink('same.txt', 'link')
    os.symlink('deep', 'dirlink')
    os.mkfifo('fifo')
    open('.hidden', 'w').write('h')
    open('empty', 'w')
"""
    result = execute(service.port, code, files=files)
    assert paths(result) == [".hidden", "changed.txt", "deep/er/new.txt", "empty"]
    kept = {f["path"]: download(service.port, f["file_id"]) for f in result["files"]}
    assert kept[".hidden"] == b"h" and kept["changed.txt"] == b"same!" and kept["empty"] == b""


def test_a_returned_file_is_stored_under_its_path(service: Service) -> None:
    code = "import os\nos.makedirs('out')\nn = open('out/plot.png', 'wb').write(b'png')"
    (made,) = execute(service.port, code)["files"]
    reply = get(service.port, f"/v1/files/{made['file_id']}")
    assert reply.body == b"png"
    assert reply.header("content-disposition") == 'attachment; filename="out/plot.png"'
    listed = {f["file_id"]: f for f in get(service.port, "/v1/files").json["files"]}
    assert listed[made["file_id"]]["filename"] == "out/plot.png"
    assert listed[made["file_id"]]["size_bytes"] == 3


def test_a_returned_file_may_be_given_to_the_next_program(service: Service) -> None:
    (made,) = execute(service.port, "n = open('a.bin', 'wb').write(bytes(range(256)))")["files"]
    files = [{"path": "in/b.bin", "file_id": made["file_id"]}]
    code = "open('in/b.bin', 'rb').read() == bytes(range(256))"
    assert execute(service.port, code, files=files)["stdout"] == "True\n"


# ---------------------------------------------------------------------------- the store


def test_a_download_is_the_bytes_as_an_attachment(service: Service) -> None:
    data = bytes(range(256)) * 1000 + b"\r\n--cloche"
    reply = get(service.port, f"/v1/files/{upload(service.port, 'a.bin', data)}")
    assert (reply.status, reply.body) == (200, data)
    assert reply.header("content-type") == "application/octet-stream"
    assert reply.header("content-length") == str(len(data))
    assert reply.header("content-disposition") == 'attachment; filename="a.bin"'


@pytest.mark.parametrize("file_id", ["nonexistent-id", "a" * 1000, "%00", "..", "%2e%2e%2fx", "é"])
def test_a_malformed_id_is_no_file(service: Service, file_id: str) -> None:
    for method in ("GET", "DELETE"):
        reply = ask(service.port, method, "/v1/files/" + file_id.replace("é", "%C3%A9"))
        assert reply.status == (400 if file_id == "%00" else 404)
        if file_id in ("nonexistent-id", "é"):
            assert reply.json["detail"] == f"File with ID '{file_id}' not found"


def test_an_id_in_capitals_is_another(service: Service) -> None:
    file_id = upload(service.port, "a", b"x")
    assert get(service.port, f"/v1/files/{file_id.upper()}").status == 404


def test_what_the_store_knows_about_a_file_is_no_file(service: Service) -> None:
    file_id = upload(service.port, "a", b"x")
    assert (service.state / "files" / f"{file_id}.meta.json").exists()
    reply = get(service.port, f"/v1/files/{file_id}.meta.json")
    assert reply.status == 404
    files = [{"path": "a", "file_id": f"{file_id}.meta.json"}]
    assert post(service.port, "/v1/execute", {"code": "", "files": files}).status == 404


def test_a_deleted_file_is_gone(service: Service) -> None:
    file_id = upload(service.port, "a", b"x")
    assert ask(service.port, "DELETE", f"/v1/files/{file_id}").status == 204
    assert get(service.port, f"/v1/files/{file_id}").status == 404
    assert file_id not in [f["file_id"] for f in get(service.port, "/v1/files").json["files"]]
    files = [{"path": "a", "file_id": file_id}]
    assert post(service.port, "/v1/execute", {"code": "", "files": files}).status == 404
    assert not list((service.state / "files").glob(f"*{file_id}*"))


def test_a_file_may_be_as_large_as_the_limit(start_service: Callable[..., Service]) -> None:
    service = start_service("--max-file-mb", "1", "--profiles", "base")
    most = 1024 * 1024
    assert len(download(service.port, upload(service.port, "a", b"x" * most))) == most
    for size in (most + 1, most + most // 2, 20 * most):
        reply = ask(service.port, "POST", "/v1/files", part(b"x" * size), FORM)
        expected = "File size exceeds maximum of 1 MB"
        assert (reply.status, reply.json["detail"]) == (413, expected), size

    def kept() -> list[str]:
        names = [path.name.split(".meta")[0] for path in (service.state / "files").iterdir()]
        return [name for name in names if UUID4.search(name)]

    assert eventually(lambda: len(kept()) == 2), "one file and what is known of it; no leftovers"


def test_a_file_is_kept_for_its_time(start_service: Callable[..., Service]) -> None:
    service = start_service("--file-ttl-s", "1", "--profiles", "base")
    file_id = upload(service.port, "a", b"x")
    assert eventually(lambda: get(service.port, f"/v1/files/{file_id}").status == 404)
    assert get(service.port, "/v1/files").json == {"files": []}
    assert eventually(lambda: not list((service.state / "files").glob(f"{file_id}*")))


def test_a_stored_file_survives_a_restart(
    start_service: Callable[..., Service], tmp_path: Path
) -> None:
    first = Service(tmp_path, "--profiles", "base")
    try:
        file_id = upload(first.port, "数据 1.txt", b"kept")
        (made,) = execute(first.port, "n = open('made', 'w').write('made')")["files"]
        before = get(first.port, "/v1/files").json
        first.stop()
    finally:
        first.kill()
    second = start_service("--profiles", "base", "--state-dir", str(first.state))
    assert get(second.port, "/v1/files").json == before
    assert download(second.port, file_id) == b"kept"
    assert download(second.port, made["file_id"]) == b"made"


def test_the_state_directory_is_its_owners(service: Service) -> None:
    file_id = upload(service.port, "a", b"x")
    for path in (service.state / "files", service.state / "files" / file_id):
        assert path.stat().st_mode & 0o077 == 0, path


def test_json_replies_are_whole_numbers_of_bytes(service: Service) -> None:
    """A body is as long as its Content-Length in bytes, whatever its characters are."""
    reply = post(service.port, "/v1/execute", {"code": "'数据😀'"})
    assert int(reply.header("content-length") or 0) == len(reply.body)
    assert json.loads(reply.body)["stdout"] == "'数据😀'\n"

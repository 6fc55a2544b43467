"""The Code Interpreter API as it was observed: requests and replies."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest

from code_interpreter import SLEEP, UUID4, run_stream
from harness import AS_USUAL, Service
from http_client import FORM, JSON, ask, execute, get, part, post, upload

MODEL = "Input should be a valid dictionary or object to extract fields from"


def fault(kind: str, loc: list[Any], msg: str, value: Any, **ctx: Any) -> dict[str, Any]:
    made = {"type": kind, "loc": loc, "msg": msg, "input": value}
    return made | {"ctx": ctx} if ctx else made


def string_fault(value: Any, *loc: Any) -> dict[str, Any]:
    return fault("string_type", ["body", *loc], "Input should be a valid string", value)


def int_fault(value: Any, *loc: Any) -> dict[str, Any]:
    return fault("int_type", ["body", *loc], "Input should be a valid integer", value)


def missing(value: Any, *loc: Any) -> dict[str, Any]:
    return fault("missing", ["body", *loc], "Field required", value)


# ---- as it was observed ----

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


# ---- the request ----


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

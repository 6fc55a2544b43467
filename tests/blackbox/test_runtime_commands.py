"""The dialect Sandbox Runtime: commands and scripts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness import LiveService, eventually
from http_client import JSON, Connection
from runtime_session import Session, names


@pytest.fixture
def session(live_service: LiveService, request: pytest.FixtureRequest) -> Iterator[Session]:
    made = Session(live_service.port, "s1")
    yield made
    assert made.end().status == 200


@pytest.mark.parametrize(
    "command,args,stdout",
    [
        ("echo", ["a;", "id"], "a; id"),
        ("echo", ["two  spaces", "$HOME", "`id`", "*", "'", '"'], "two  spaces $HOME `id` * ' \""),
        ("printf '%s|'", ["", "-n", "ü"], "|-n|ü|"),
        ("echo a | cat - ", ["/dev/null"], "a"),
        ("echo $(( 6 * 7 )) && echo b\n", [], "42\nb"),
        ("echo x\n", ["y"], "x y"),
        ("echo", None, ""),
        ("printf 'a\\n\\n\\n'", [], "a"),
        ("printf '=== STDOUT ===\\nx'", [], "=== STDOUT ===\nx"),
        ("printf '\\377'", [], "\ufffd"),
        ("cat", [], ""),
    ],
)
def test_args_are_arguments(session: Session, command: str, args: Any, stdout: str) -> None:
    reply = session.good("execute", command=command, args=args)
    assert reply == {"stdout": stdout, "stderr": "\n", "returncode": 0}


@pytest.mark.parametrize(
    "command,stderr,code",
    [
        ("exit 3", "\n", 3),
        ("kill -9 $$", "\n", 137),
        ("echo oops >&2; false", "oops\n", 1),
        ("printf 'a\\n\\n' >&2", "a\n", 0),
        ("", "\n", 0),
    ],
)
def test_how_commands_end(session: Session, command: str, stderr: str, code: int) -> None:
    assert session.run(command) == {"stdout": "", "stderr": stderr, "returncode": code}


def test_commands_that_are_none(session: Session) -> None:
    cases: list[tuple[dict[str, Any], list[Any]]] = [
        ({}, ["body", "command"]),
        ({"command": 1}, ["body", "command"]),
        ({"command": "a", "args": "b"}, ["body", "args"]),
        ({"command": "a", "args": [1]}, ["body", "args", 0]),
        ({"command": "a", "args": ["x"] * 201}, ["body", "args"]),
    ]
    for fields, place in cases:
        reply = session.post("execute", **fields)
        assert (reply.status, reply.json["detail"][0]["loc"]) == (422, place), fields
    reply = session.post("execute", command="echo", args=["x" * 40001])
    assert reply.status == 413 and "40000 bytes" in reply.json["detail"]
    assert session.run("echo", *["x"] * 200)["stdout"].count("x") == 200
    assert names(session.port) == {"s1"}


def test_a_command_that_takes_too_long(start_live: Callable[..., LiveService]) -> None:
    service = start_live("--runtime-timeout-s", "3")
    session = Session(service.port, "s1")
    result = session.run("echo begun; exec 2>&1; sleep 1000")
    assert result == {
        "stdout": "begun",
        "stderr": "Execution timed out after 3 seconds\n",
        "returncode": 124,
    }
    assert eventually(lambda: session.run("pgrep sleep")["returncode"] == 1)
    session.end()


def test_a_command_ends_with_its_client(session: Session) -> None:
    session.run("mkfifo wait")
    with Connection(session.port) as connection:
        body = json.dumps({"command": "touch begun; cat wait"}).encode()
        connection.send("POST", session.at("execute"), body, JSON)
        eventually(lambda: "begun" in session.files())
    eventually(lambda: session.run("pgrep -x cat")["returncode"] == 1)


def test_scripts_stay_and_variables_do_not(session: Session) -> None:
    session.code("x = 1", filename="d/one")
    session.code("import d.one; print(d.one.x)", filename="two.py")
    session.code("print('x' in globals())")
    found = session.files(query="?recursive=true")
    unnamed = [name for name in found if name.startswith("script_")]
    assert {"d/one.py", "two.py"} < set(found) and len(unnamed) == 1
    assert unnamed[0].endswith(".py")
    assert session.run("cat two.py")["stdout"] == "import d.one; print(d.one.x)"


@pytest.mark.parametrize("name", ["-c", "a b", "'; id", "$(id)", "é", "x.py.py", "a.sh"])
def test_names_of_scripts(session: Session, name: str) -> None:
    result = session.code("import sys; print(sys.argv)", filename=name, args=["-v", "a b"])
    path = name if name.endswith(".py") else name + ".py"
    shown = ("./" if name[0] == "-" else "") + path
    assert result["stdout"] == repr([shown, "-v", "a b"])


def test_scripts_of_a_shell(session: Session) -> None:
    result = session.code('echo "$0" "$2"', script_type="shell", filename="s", args=["1", "a  b"])
    assert result == {"stdout": "s.sh a  b", "stderr": "\n", "returncode": 0}
    assert session.run("stat -c %a s.sh; ./s.sh x y")["stdout"] == "755\n./s.sh y"
    result = session.code("x=1; exit 4", script_type="shell", output_params=["x"])
    assert (result["returncode"], result["output_variables"]) == (4, {})


def test_scripts_that_are_none(session: Session) -> None:
    reply = session.post("execute_code", code="1", script_type="perl")
    assert reply.status == 400
    assert reply.json["detail"] == "Unsupported script type: perl; it may be python or shell"
    cases: list[tuple[dict[str, Any], list[Any]]] = [
        ({}, ["body", "code"]),
        ({"code": None}, ["body", "code"]),
        ({"code": "", "filename": 1}, ["body", "filename"]),
        ({"code": "", "args": {}}, ["body", "args"]),
        ({"code": "", "script_type": 1}, ["body", "script_type"]),
        ({"code": "", "output_params": "a"}, ["body", "output_params"]),
        ({"code": "", "output_params": ["x"] * 201}, ["body", "output_params"]),
    ]
    for fields, place in cases:
        reply = session.post("execute_code", **fields)
        assert (reply.status, reply.json["detail"][0]["loc"]) == (422, place), fields
    assert names(session.port) == set()


OUTPUTS = """
import datetime, math, sys
a, b, c = 2**100, float("nan"), {"x": [1, (2, math.inf)], 3: None}
d, e, f = datetime.date(2020, 1, 2), "ü\\0\\ud800", print
g = []; g.append(g)
h = lambda: 1
sys.stderr.write("warned")
"""


def test_variables_of_a_script(session: Session) -> None:
    result = session.code(OUTPUTS, output_params=["a", "b", "c", "d", "e", "f", "g", "none", "a"])
    found = result["output_variables"]
    assert result["stderr"] == "warned\n" and set(found) == set("abcdef")
    assert found["a"] == 2**100 and found["b"] is None
    assert found["c"] == {"x": [1, [2, None]], "3": None}
    assert found["d"] == "2020-01-02" and found["e"] == "ü\0?"
    assert found["f"] == "<built-in function print>"


@pytest.mark.parametrize(
    "code,code_shown,variables",
    [
        ("x = 1; raise SystemExit", 0, {"x": 1}),
        ("x = 1; raise SystemExit(3)", 3, {}),
        ("x = 1; 1/0", 1, {}),
        ("x = 1 +", 1, {}),
        ("import os; x = 1; os._exit(0)", 0, {}),
        ("import os; x = 1; os.close(1); os.close(2)", 0, {"x": 1}),
        (
            "import sys; x = len(sys.argv), __name__, __file__",
            0,
            {"x": [1, "__main__", "/workspace/s.py"]},
        ),
        ("import pickle\nclass A: pass\nx = len(pickle.dumps(A())) > 0", 0, {"x": True}),
        ("x = globals().keys() & {'mark', 'names', 'path', 'fd', 'main'}", 0, {"x": "set()"}),
    ],
)
def test_variables_at_the_end(
    session: Session, code: str, code_shown: int, variables: dict[str, Any]
) -> None:
    result = session.code(code, filename="s", output_params=["x"])
    assert (result["returncode"], result["output_variables"]) == (code_shown, variables)
    if code_shown == 1:
        assert "outputs.py" not in result["stderr"] and "/workspace/s.py" in result["stderr"]


def test_output_is_cut_with_a_mark(start_live: Callable[..., LiveService]) -> None:
    service = start_live("--live-output-bytes", "1000")
    session = Session(service.port, "s1")
    result = session.run("yes | head -c 5000; yes | head -c 5000 >&2")
    assert result["stdout"].endswith("...[truncated]") and len(result["stdout"]) < 1100
    assert result["stderr"].endswith("...[truncated]\n") and len(result["stderr"]) < 1100
    session.end()

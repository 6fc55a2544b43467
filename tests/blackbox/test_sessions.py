"""Sessions of the Code Interpreter API: bash in a sandbox that stays."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness import LiveService, eventually
from http_client import ask, post, upload

FIVE = {"stdout", "stderr", "exit_code", "timed_out", "duration_ms"}


class Session:
    def __init__(self, port: int, **fields: Any) -> None:
        reply = post(port, "/v1/sessions", fields)
        assert reply.status == 201, reply.body
        self.port, self.made = port, reply.json
        self.path = f"/v1/sessions/{self.made['session_id']}"

    def bash(self, cmd: str, **fields: Any) -> dict[str, Any]:
        reply = post(self.port, f"{self.path}/bash", {"cmd": cmd, **fields})
        assert reply.status == 200, reply.body
        assert set(reply.json) == FIVE
        result: dict[str, Any] = reply.json
        return result


@pytest.fixture
def session(live_service: LiveService) -> Iterator[Session]:
    made = Session(live_service.port)
    yield made
    assert ask(made.port, "DELETE", made.path).status == 204


def test_a_session_is_made_and_ended(live_service: LiveService) -> None:
    before = time.time()
    session = Session(live_service.port, ttl_seconds=60)
    assert re.fullmatch("code-session-[0-9a-f]{32}", session.made["session_id"])
    assert set(session.made) == {"session_id", "expires_at"}
    assert before + 59 < session.made["expires_at"] < time.time() + 61
    assert ask(session.port, "DELETE", session.path).status == 204
    for reply in (
        ask(session.port, "DELETE", session.path),
        post(session.port, f"{session.path}/bash", {"cmd": "true"}),
    ):
        name = session.made["session_id"]
        assert (reply.status, reply.json["detail"]) == (404, f"Session '{name}' not found")


def test_it_lives_for_fifteen_minutes_unless_told_otherwise(session: Session) -> None:
    assert 890 < session.made["expires_at"] - time.time() < 901


@pytest.mark.parametrize(
    "cmd,stdout,stderr,code",
    [
        ("echo hello", "hello\n", "", 0),
        ("echo oops >&2; exit 3", "", "oops\n", 3),
        ("pwd; cat", "/workspace\n", "", 0),  # stdin is at its end
        ("kill -9 $$", "", "", 137),
        ("a=(1 2 3); echo ${#a[@]}", "3\n", "", 0),  # bash, no other shell
        ("python3 -c 'print(6 * 7)'", "42\n", "", 0),
        ("", "", "", 0),
    ],
)
def test_bash(session: Session, cmd: str, stdout: str, stderr: str, code: int) -> None:
    result = session.bash(cmd)
    assert (result["stdout"], result["stderr"]) == (stdout, stderr)
    assert (result["exit_code"], result["timed_out"]) == (code, False)
    assert isinstance(result["duration_ms"], int)


def test_files_stay_and_variables_do_not(session: Session) -> None:
    session.bash("x=5; echo $x > x; mkdir d; cd d")
    assert session.bash('cat x; echo "[$x]"; pwd')["stdout"] == "5\n[]\n/workspace\n"


def test_files_are_there_from_the_start(live_service: LiveService) -> None:
    file = upload(live_service.port, "a.txt", b"hello")
    staged = [{"path": "d/./a.txt", "file_id": file}, {"path": "__main__.py", "file_id": file}]
    session = Session(live_service.port, files=staged)
    assert session.bash("cat d/a.txt __main__.py; ls -A")["stdout"] == "hellohello__main__.py\nd\n"
    ask(session.port, "DELETE", session.path)


def test_a_timeout_kills_all_that_was_started(session: Session) -> None:
    cmd = "echo before; (sleep 1000; touch late) & sleep 1000"
    result = session.bash(cmd, timeout_ms=3000)
    assert (result["stdout"], result["exit_code"], result["timed_out"]) == ("before\n", None, True)
    assert eventually(lambda: session.bash("ls; pgrep sleep")["stdout"] == "")


def test_long_output_is_cut_and_says_so(start_live: Callable[..., LiveService]) -> None:
    service = start_live("--output", "100", "--live-output-bytes", "100")
    result = Session(service.port).bash("printf 'x%.0s' {1..500}; printf 'y%.0s' {1..500} >&2")
    assert result["stdout"] == "x" * 68 + "\n...[truncated]"
    assert result["stderr"] == "y" * 68 + "\n...[truncated]"


def test_its_time_is_up(live_service: LiveService) -> None:
    session = Session(live_service.port, ttl_seconds=1)
    while post(session.port, f"{session.path}/bash", {"cmd": "true"}).status == 200:
        time.sleep(0.05)
    assert post(session.port, f"{session.path}/bash", {"cmd": "true"}).status == 404


GOLDEN: list[tuple[str, Any, int, Any]] = [
    (
        "",
        {"ttl_seconds": 0},
        422,
        [
            {
                "type": "greater_than_equal",
                "loc": ["body", "ttl_seconds"],
                "msg": "Input should be greater than or equal to 1",
                "input": 0,
                "ctx": {"ge": 1},
            }
        ],
    ),
    (
        "",
        {"ttl_seconds": 86401},
        422,
        [
            {
                "type": "less_than_equal",
                "loc": ["body", "ttl_seconds"],
                "msg": "Input should be less than or equal to 86400",
                "input": 86401,
                "ctx": {"le": 86400},
            }
        ],
    ),
    (
        "",
        {"files": [{"path": "d", "file_id": "zz"}]},
        404,
        "File with ID 'zz' not found for path 'd'.",
    ),
    (
        "/x/bash",
        {},
        422,
        [{"type": "missing", "loc": ["body", "cmd"], "msg": "Field required", "input": {}}],
    ),
    (
        "/x/bash",
        {"cmd": "true", "timeout_ms": 1000000},
        422,
        "timeout_ms exceeds maximum of 60000 ms",
    ),
    ("/x/bash", {"cmd": "true"}, 404, "Session 'x' not found"),
    (
        "/sbx_0123456789abcdef/bash",
        {"cmd": "true"},
        404,
        "Session 'sbx_0123456789abcdef' not found",
    ),
]


@pytest.mark.parametrize("path,body,status,detail", GOLDEN)
def test_refusals(
    live_service: LiveService, path: str, body: Any, status: int, detail: Any
) -> None:
    reply = post(live_service.port, f"/v1/sessions{path}", body)
    assert (reply.status, reply.json["detail"]) == (status, detail)


def test_a_body_is_required(live_service: LiveService) -> None:
    reply = ask(live_service.port, "POST", "/v1/sessions")
    missing = [{"type": "missing", "loc": ["body"], "msg": "Field required", "input": None}]
    assert (reply.status, reply.json["detail"]) == (422, missing)


def test_the_sandbox_of_a_session_is_an_ordinary_one(session: Session) -> None:
    name = session.made["session_id"].replace("code-session-", "sbx_")
    session.bash("echo hello > a.txt")
    assert ask(session.port, "GET", f"/v1/sandboxes/{name}/files/a.txt").body == b"hello\n"

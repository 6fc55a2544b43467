"""MCP: sandboxes by name, whose they are, what a URL says of them, and what ends or cancels."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from deaths import kill_server
from harness import LiveService, eventually, starter
from keyed_live import KeyedLive
from mcp_http import ERAS, LEGACY, MODERN, Failure, Mcp, file_uri


@pytest.fixture(params=ERAS)
def mcp(request: pytest.FixtureRequest, live_service: LiveService) -> Mcp:
    return Mcp(live_service.port, request.param)


# ---------------------------------------------------------------------------- names


def test_sandboxes_have_names_and_are_machines_of_their_own(mcp: Mcp) -> None:
    with mcp:
        mcp.python("a = 1", sandbox="one")
        assert mcp.value("'a' in globals()", sandbox="two") == "False"
        assert mcp.value("a", sandbox="one") == "1"
        listed = mcp.call("sandbox", action="list").text
        assert {line.split()[0] for line in listed.splitlines()} == {"one", "two"}


@pytest.mark.parametrize("name", ["", "a b", "../x", "a/b", "x" * 65, "ä", "a\0b", "default/key"])
def test_other_names_are_refused(mcp: Mcp, name: str) -> None:
    with mcp:
        try:
            answer = mcp.python("1", sandbox=name)
        except Failure:
            return  # a NUL is no JSON that we read
        assert answer.is_error and "sandbox" in answer.text


def test_two_clients_share_a_sandbox(live_service: LiveService) -> None:
    with Mcp(live_service.port, MODERN) as one:
        two = Mcp(live_service.port, LEGACY)
        one.python("shared = 7", sandbox="both")
        assert two.value("shared", sandbox="both") == "7"


def test_a_legacy_session_has_a_sandbox_of_its_own(live_service: LiveService) -> None:
    with Mcp(live_service.port, LEGACY) as one:
        two = Mcp(live_service.port, LEGACY)
        if not one.session:
            pytest.fail("initialize gave no session")
        one.python("mine = 1")
        assert two.value("'mine' in globals()") == "False"
        assert one.value("mine") == "1"


def test_the_url_names_a_sandbox_and_what_it_is_like(live_service: LiveService) -> None:
    with Mcp(live_service.port, MODERN, "sandbox=big&profile=base&memory_mb=300") as mcp:
        assert mcp.python("1").receipt["profile"] == "base"
        info = mcp.call("sandbox", action="info").text
        assert info.startswith("sandbox big: idle, profile base") and "of 300 MB" in info
        other = Mcp(live_service.port, MODERN, "sandbox=big&memory_mb=200")
        answer = other.python("1")
        assert answer.is_error and "memory_mb" in answer.text and "delete" in answer.text


@pytest.mark.parametrize(
    "query",
    ["tools=none", "sandbox=a/b", "memory_mb=x", "memory_mb=0", "nobody=1", "cpus=-1"]
    + ["memory_mb=64&memory_mb=128"],
)
def test_a_url_that_means_nothing_is_refused(live_service: LiveService, query: str) -> None:
    reply = Mcp(live_service.port, MODERN, query).send("tools/list", {})
    assert 400 <= reply.status < 500, reply
    assert query.split("=")[0] in reply.body.decode()


@pytest.mark.parametrize("query", ["memory_mb=4000000", "profile=nobody", "network=open"])
def test_more_than_may_be_had_is_refused_at_the_first_call(
    live_service: LiveService, query: str
) -> None:
    with Mcp(live_service.port, MODERN, query) as mcp:
        answer = mcp.python("1")
        assert answer.is_error and answer.text


def test_sets_of_tools(live_service: LiveService) -> None:
    def names(query: str) -> set[str]:
        listed = Mcp(live_service.port, MODERN, query).ask("tools/list")["tools"]
        for tool in listed:
            assert len(tool["description"]) <= 2048 and tool["inputSchema"]["type"] == "object"
            assert "outputSchema" not in tool or tool["name"] == "list_files"
        return {tool["name"] for tool in listed}

    core = {"run_python", "run_shell", "read_file", "write_file", "list_files", "sandbox"}
    assert names("") == core
    assert names("tools=files") == {"read_file", "write_file", "list_files"}
    assert names("tools=ipybox") == {"execute_ipython_cell", "reset"}
    assert names("tools=all") == core | {"execute_ipython_cell", "reset"}
    said = Mcp(live_service.port, MODERN).ask("server/discover")["instructions"]
    assert len(said) <= 1500 and "run_python" in said


# ---------------------------------------------------------------------------- the tool sandbox


def test_info_shows_variables(mcp: Mcp) -> None:
    with mcp:
        assert mcp.call("sandbox", action="info").is_error
        mcp.python("number = 41; text = '\\x1b[31m'")
        info = mcp.call("sandbox", action="info").text
        assert "\n  number: int = 41" in info and "variables: 2" in info
        assert "\x1b" not in info


def test_reset_interrupt_and_delete(mcp: Mcp) -> None:
    with mcp:
        mcp.python("v = 1; open('kept', 'w').close()")
        assert "nothing runs" in mcp.call("sandbox", action="interrupt").text
        with mcp.begin("run_python", code="open('runs', 'w').close()\nwhile True: pass") as busy:
            eventually(lambda: "runs" in mcp.call("list_files").text)
            assert "not known" in mcp.call("sandbox", action="info").text
            assert "interrupted" in mcp.call("sandbox", action="interrupt").text
            answer = mcp.answer(busy)
            assert answer.is_error and "KeyboardInterrupt" in answer.text
        assert mcp.value("v") == "1"
        assert "is reset" in mcp.call("sandbox", action="reset").text
        assert mcp.value("'v' in globals()") == "False"
        assert "kept" in mcp.call("list_files").text
        assert "is deleted" in mcp.call("sandbox", action="delete").text
        assert mcp.call("sandbox", action="delete").is_error
        again = mcp.python("import os; os.listdir()")
        assert again.text == "[]" and "the one before is gone" in again.texts


def test_unknown_arguments_are_told(mcp: Mcp) -> None:
    with mcp:
        wrong: list[dict[str, Any]] = [{"action": "explode"}, {}, {"action": 1}]
        for arguments in wrong:
            answer = mcp.call_with("sandbox", arguments)
            assert answer.is_error and "action" in answer.text
        assert mcp.call("sandbox", action="output", id="cmd_nobody").is_error


# ---------------------------------------------------------------------------- keys


@pytest.fixture
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], KeyedLive]:
    return lambda: KeyedLive(tmp_path_factory.mktemp("mcp"))


def test_nobody_reaches_what_is_anothers(keyed: Callable[[], KeyedLive]) -> None:
    for service in starter(keyed):
        made = service()
        alice, bob = (
            Mcp(made.port, MODERN, "", None, Authorization=f"Bearer {key}") for key in made.keys
        )
        with alice, bob:
            answer = alice.python("secret = 1; open('s', 'w').write('hidden')", sandbox="safe")
            execution = answer.receipt["execution"]
            assert bob.value("'secret' in globals()", sandbox="safe") == "False"
            assert "safe" not in bob.call("sandbox", action="list").text.replace("safe  ", "", 1)
            for uri in (file_uri("s", "safe"), f"cloche://execution/{execution}/output"):
                assert alice.resource(uri)["uri"] == uri
                with pytest.raises(Failure) as why:
                    bob.resource(uri)
                assert why.value.code == -32602 and why.value.data == {"uri": uri}
            alice.python("1")
            assert bob.call("sandbox", action="info").is_error, "default is a key's own"


# ---------------------------------------------------------------------------- ends


def test_a_restart_of_the_server_leaves_variables(start_live: Callable[..., LiveService]) -> None:
    service = start_live()
    with Mcp(service.port, MODERN) as modern:
        legacy = Mcp(service.port, LEGACY)
        modern.python("x = 1")
        legacy.python("y = 2")
        kill_server(service)
        assert modern.value("x") == "1"
        assert legacy.value("y") == "2"


def test_a_modern_client_that_leaves_cancels(live_service: LiveService) -> None:
    with Mcp(live_service.port, MODERN) as mcp:
        mcp.python("n = 0")
        busy = mcp.begin("run_python", code="open('runs', 'w').close()\nwhile True: n += 1")
        eventually(lambda: "runs" in mcp.call("list_files").text)
        busy.close()
        assert int(mcp.value("n")) > 0, "it was interrupted, and the state stays"


def test_a_legacy_client_cancels_by_a_notification(live_service: LiveService) -> None:
    with Mcp(live_service.port, LEGACY) as mcp:
        mcp.python("n = 0")
        with mcp.begin("run_python", code="open('runs', 'w').close()\nwhile True: n += 1"):
            number = next(mcp.ids) - 1
            eventually(lambda: "runs" in mcp.call("list_files").text)
            mcp.notify("notifications/cancelled", requestId=number)
            assert int(mcp.value("n")) > 0


def test_progress_has_the_last_line(live_service: LiveService) -> None:
    code = "import time\nfor i in range(4): print('step', i, flush=True); time.sleep(1)"
    with Mcp(live_service.port, MODERN) as mcp:
        answer = mcp.call_with("run_python", {"code": code}, _meta={"progressToken": "p"})
        said = [m["params"] for m in answer.before if m["method"] == "notifications/progress"]
        assert said and all(p["progressToken"] == "p" for p in said), answer.before
        assert any(p.get("message", "").startswith("step ") for p in said)
        assert answer.text == "step 0\nstep 1\nstep 2\nstep 3"


def test_input_is_asked_where_the_client_can(live_service: LiveService) -> None:
    can: dict[str, Any] = {"elicitation": {}}
    with Mcp(live_service.port, MODERN, "", can) as mcp:
        arguments = {"code": "name = input('who? \x1b[31m')\nprint('hello', name)"}
        asked = mcp.call_with("run_python", arguments).result
        assert asked["resultType"] == "input_required", asked
        ((key, request),) = asked["inputRequests"].items()
        message = request["params"]["message"]
        assert request["method"] == "elicitation/create" and "who?" in message
        assert "\x1b" not in message
        (field,) = request["params"]["requestedSchema"]["properties"]
        more = {
            "inputResponses": {key: {"action": "accept", "content": {field: "Ada"}}},
            "requestState": asked.get("requestState"),
        }
        done = mcp.call_with("run_python", arguments, **more)
        assert "hello Ada" in done.text


def test_a_thousand_idle_sessions_cost_nothing(live_service: LiveService) -> None:
    clients = [Mcp(live_service.port, LEGACY) for _ in range(50)]
    assert len({json.dumps(client.session) for client in clients}) == 50
    with clients[0] as mcp:
        listed = mcp.call("sandbox", action="list").text
        assert "there is none" in listed, "a session without a call has no sandbox"

"""MCP clients that mean harm or are broken: everybody else is answered, and nothing is kept."""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from harness import LiveService, eventually
from http_client import Connection, ask
from mcp_fixture import Fixture, running
from mcp_http import BOTH, LEGACY, META, MODERN, Mcp, messages
from raw_http import Raw

ASK = "test_input_required_result_elicitation"
TEXT = "test_simple_text"


@pytest.fixture
def server() -> Iterator[Fixture]:
    """Afterwards it answers, and has no more descriptors than before."""
    with running() as fixture:
        legacy = Mcp(fixture.port, LEGACY)
        before = eventually(fixture.descriptors)
        yield fixture
        assert call(legacy, TEXT)["content"]
        eventually(lambda: fixture.descriptors() <= before + 1)


def call(mcp: Mcp, tool: str, **more: Any) -> dict[str, Any]:
    return mcp.ask("tools/call", name=tool, arguments={}, **more)


def whole_request(mcp: Mcp, method: str, params: dict[str, Any]) -> bytes:
    body = mcp.body(method, params, 1)
    heads = {"Host": "127.0.0.1", "Content-Length": str(len(body))} | BOTH
    heads |= mcp.heads(method, params)
    lines = [f"POST {mcp.path} HTTP/1.1", *(f"{name}: {value}" for name, value in heads.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


@pytest.mark.parametrize("era", [MODERN, LEGACY])
@pytest.mark.parametrize("tool", [TEXT, ASK, "test_tool_with_progress", "test_reconnection"])
def test_clients_that_leave_at_any_point(server: Fixture, era: str, tool: str) -> None:
    mcp = Mcp(server.port, era, can={"elicitation": {}})
    params = {"name": tool, "arguments": {}, "_meta": {"progressToken": 1}}
    data = whole_request(mcp, "tools/call", params)
    for length in [*range(0, len(data), 7), len(data) - 1, len(data)]:
        for reset in (False, True):
            with Raw(server.port) as raw:
                raw.send(data[:length])
                if reset:
                    raw.reset()
    for wanted in (b"HTTP/1.1 200", b"\r\n\r\n"):
        with Raw(server.port) as raw:
            raw.send(data).until(wanted)
    assert call(Mcp(server.port, era), TEXT)["content"]


def test_a_modern_client_may_leave_in_the_midst_of_listening(server: Fixture) -> None:
    mcp = Mcp(server.port, MODERN)
    for _ in range(50):
        connection = mcp.open("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        connection.head()
        connection.close()
    call(mcp, "test_trigger_tool_change")


def test_listeners_are_bounded(server: Fixture) -> None:
    mcp = Mcp(server.port, MODERN)
    with contextlib.ExitStack() as stack:
        heads = []
        for _ in range(110):
            wanted = {"notifications": {"toolsListChanged": True}}
            connection = stack.enter_context(mcp.open("subscriptions/listen", wanted))
            heads.append(connection.head().status)
        assert heads == [200] * 100 + [503] * 10
        call(mcp, "test_trigger_tool_change")


def test_questions_that_nobody_answers_are_bounded(server: Fixture) -> None:
    mcp = Mcp(server.port, MODERN, can={"elicitation": {}})
    for _ in range(500):
        assert call(mcp, ASK)["resultType"] == "input_required"


def test_a_batch_of_ten_thousand(server: Fixture) -> None:
    one = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    reply = ask(server.port, "POST", "/mcp", json.dumps([one] * 10000).encode(), BOTH)
    assert reply.status == 400


def test_streams_that_nobody_comes_back_for_are_bounded(server: Fixture) -> None:
    mcp = Mcp(server.port, LEGACY)
    params = {"name": "test_tool_with_progress", "arguments": {}, "_meta": {"progressToken": 1}}
    ids = []
    for _ in range(60):
        connections = [mcp.open("tools/call", params) for _ in range(10)]
        for connection in connections:
            connection.head()
            ids.append(next(connection.chunks()).split(b"\n")[0].removeprefix(b"id: ").decode())
            connection.close()

    def status(last: str) -> int:
        with Connection(server.port) as connection:
            heads = {"Accept": "text/event-stream", "Last-Event-ID": last} | mcp.session
            connection.send("GET", "/mcp", None, heads)
            return connection.head().status

    assert status(ids[-1]) == 200
    assert status(ids[0]) == 404  # an owner has five hundred


def test_sessions_that_were_ended_are_bounded(server: Fixture) -> None:
    for _ in range(600):
        session = Mcp(server.port, LEGACY).session
        assert ask(server.port, "DELETE", "/mcp", None, session).status == 204
        assert ask(server.port, "DELETE", "/mcp", None, session).status == 404


def test_a_session_watches_few_resources(server: Fixture) -> None:
    mcp = Mcp(server.port, LEGACY)
    for n in range(32):
        mcp.ask("resources/subscribe", uri=f"test://{n}")
    with pytest.raises(Exception, match="at most 32"):
        mcp.ask("resources/subscribe", uri="test://more")
    mcp.ask("resources/unsubscribe", uri="test://0")
    mcp.ask("resources/subscribe", uri="test://more")


def test_one_id_for_two_calls_is_nobody_s(server: Fixture) -> None:
    """Two programs with one key and no session may count alike: neither cancels the other's."""
    mcp = Mcp(server.port, LEGACY, can={"elicitation": {}})
    params = {"name": ASK, "arguments": {}}
    with contextlib.ExitStack() as stack:
        streams, questions = [], []
        for _ in range(2):
            mcp.ids = itertools.count(7)
            connection = stack.enter_context(mcp.open("tools/call", params))
            assert connection.head().status == 200
            streams.append(connection.chunks())
        for stream in streams:
            text = b""
            while b"elicitation/create" not in text:
                text += next(stream)
            questions.append(json.loads(text.split(b"data: ")[-1])["id"])
        mcp.notify("notifications/cancelled", requestId=7)
        for question, stream in zip(questions, streams):
            answer = {"jsonrpc": "2.0", "id": question, "result": {"action": "decline"}}
            ask(server.port, "POST", "/mcp", json.dumps(answer).encode(), BOTH | mcp.session)
            assert b"Hello" in b"".join(stream)


def test_a_million_bytes_of_answer_that_nobody_reads(live_service: LiveService) -> None:
    with Mcp(live_service.port, MODERN) as mcp:
        mcp.python("open('/workspace/big', 'wb').write(b'x' * 3_000_000)")
        uri = "cloche://sandbox/default/big"
        data = whole_request(mcp, "resources/read", {"uri": uri})
        slow = [Raw(live_service).send(data) for _ in range(20)]
        assert mcp.value("1") == "1"
        for raw in slow:
            raw.reset()
        assert mcp.value("2") == "2"


def test_hanging_up_interrupts_a_modern_call_and_no_legacy_one(live_service: LiveService) -> None:
    wait = "import time\ntime.sleep({})\nmarks.append(1)"
    with Mcp(live_service.port, MODERN) as mcp:
        mcp.python("marks = []")
        connection = mcp.begin("run_python", code=wait.format(600))
        eventually(lambda: "busy" in json.dumps(kernels(live_service)))
        connection.close()
        assert mcp.value("marks") == "[]"  # it ran until then, and not to its end
        old = Mcp(live_service.port, LEGACY, query="sandbox=default")
        connection = old.begin("run_python", code=wait.format(1))
        eventually(lambda: "busy" in json.dumps(kernels(live_service)))
        connection.close()
        assert mcp.value("marks") == "[1]"


def kernels(service: LiveService) -> list[Any]:
    found = []
    for box in ask(service.port, "GET", "/v1/sandboxes").json["sandboxes"]:
        found += ask(service.port, "GET", f"/v1/sandboxes/{box['id']}/kernels").json["kernels"]
    return found


def test_a_legacy_client_gets_the_end_of_what_it_left(live_service: LiveService) -> None:
    with Mcp(live_service.port, LEGACY) as mcp:
        code = "import time\nfor i in range(30): print(i, flush=True); time.sleep(0.1)\n'the end'"
        params = {"name": "run_python", "arguments": {"code": code}, "_meta": {"progressToken": 1}}
        with mcp.open("tools/call", params) as connection:
            connection.head()
            last = next(connection.chunks()).split(b"\n")[0].removeprefix(b"id: ").decode()
        heads = {"Accept": "text/event-stream", "Last-Event-ID": last} | mcp.session
        with Connection(live_service.port) as connection:
            connection.send("GET", "/mcp", None, heads)
            said = messages(connection.reply())
        assert "the end" in said[-1]["result"]["content"][0]["text"]
        other = {"Accept": "text/event-stream", "Last-Event-ID": last}
        assert ask(live_service.port, "GET", "/mcp", None, other).status == 200  # the same key's


def test_many_clients_in_one_sandbox_take_turns(live_service: LiveService) -> None:
    with Mcp(live_service.port, MODERN) as mcp:
        mcp.python("n = 0")
        wrong: list[Any] = []

        def work(era: str) -> None:
            own = Mcp(live_service.port, era, query="sandbox=default")
            for _ in range(10):
                answer = own.python("n += 1; k = n; k")
                if answer.is_error:
                    wrong.append(answer)

        threads = [threading.Thread(target=work, args=(era,)) for era in (MODERN, LEGACY) * 4]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong and mcp.value("n") == "80"


def test_members_that_are_not_what_they_should_be(server: Fixture) -> None:
    """Of every method, each member in turn is something else."""
    known = {META + "protocolVersion": MODERN, META + "clientCapabilities": {}}
    mcp = Mcp(server.port, MODERN)
    shapes: dict[str, dict[str, Any]] = {
        "tools/call": {"name": TEXT, "arguments": {}, "requestState": "x", "inputResponses": {}},
        "prompts/get": {"name": "test_simple_prompt", "arguments": {}},
        "resources/read": {"uri": "test://static-text"},
        "completion/complete": {
            "ref": {"type": "ref/prompt", "name": "test_prompt_with_arguments"},
            "argument": {"name": "arg1", "value": "p"},
        },
        "subscriptions/listen": {"notifications": {"toolsListChanged": 7}},
        "tools/list": {"cursor": ""},
    }
    for method, params in shapes.items():
        for member in [*params, "_meta"]:
            others: tuple[Any, ...] = (
                None,
                7,
                "x" * 3000,
                [],
                {},
                [{}],
                {"a": {"b": [None]}},
                True,
            )
            for value in others:
                bad = {"_meta": known} | params | {member: value}
                heads = BOTH | {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
                name = bad.get("name", bad.get("uri"))
                if isinstance(name, str):
                    heads["Mcp-Name"] = name
                body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": bad}
                with Connection(server.port) as connection:
                    connection.send("POST", "/mcp", json.dumps(body).encode(), heads)
                    assert connection.head().status in (200, 400)
    assert call(mcp, TEXT)["content"]

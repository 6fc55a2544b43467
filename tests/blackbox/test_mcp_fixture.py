"""What the protocol does for tools that ask, break off, tell progress and change: at the server of
tests/mcp, message by message."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from http_client import Connection, Reply, ask
from mcp_fixture import Fixture, running
from mcp_http import BOTH, LEGACY, MODERN, Failure, Mcp, messages

EVENTS = {"Accept": "text/event-stream"}
ALL: dict[str, Any] = {"elicitation": {}, "sampling": {}, "roots": {}}
ASK = "test_input_required_result_elicitation"
ACCEPT = {"user_name": {"action": "accept", "content": {"name": "Ada"}}}


@pytest.fixture(scope="module")
def server() -> Iterator[Fixture]:
    with running() as fixture:
        yield fixture


def modern(server: Fixture, can: Any = ALL) -> Mcp:
    return Mcp(server.port, MODERN, can=can)


def legacy(server: Fixture, can: Any = ALL) -> Mcp:
    return Mcp(server.port, LEGACY, can=can)


def call(mcp: Mcp, tool: str, **more: Any) -> dict[str, Any]:
    return mcp.ask("tools/call", name=tool, arguments={}, **more)


class Events:
    """An open stream: its messages as they come, and the ids of its events."""

    def __init__(self, connection: Connection) -> None:
        self.connection, self.ids = connection, list[str]()
        self.reply: Reply = connection.head()
        assert self.reply.header("content-type") == "text/event-stream", self.reply
        self.chunks = connection.chunks()
        self.data = b""

    def blocks(self) -> Iterator[dict[str, str]]:
        for chunk in self.chunks:
            self.data += chunk
            *whole, self.data = self.data.split(b"\n\n")
            for block in whole:
                lines = [line.partition(": ") for line in block.decode().splitlines()]
                fields = {name: value for name, _, value in lines}
                if "id" in fields:
                    self.ids.append(fields["id"])
                yield fields

    def messages(self) -> Iterator[Any]:
        for fields in self.blocks():
            if fields.get("data"):
                yield json.loads(fields["data"])


# ---------------------------------------------------------------------------- modern questions


def test_a_question_is_a_result_and_its_answer_a_request(server: Fixture) -> None:
    mcp = modern(server)
    first = call(mcp, ASK)
    assert first["resultType"] == "input_required"
    question = first["inputRequests"]["user_name"]
    assert question["method"] == "elicitation/create" and question["params"]["message"]
    last = call(mcp, ASK, inputResponses=ACCEPT, requestState=first["requestState"])
    assert last["resultType"] == "complete" and last["content"][0]["text"] == "Hello, Ada!"


def test_a_state_counts_once(server: Fixture) -> None:
    mcp = modern(server)
    state = call(mcp, ASK)["requestState"]
    call(mcp, ASK, inputResponses=ACCEPT, requestState=state)
    again = call(mcp, ASK, inputResponses=ACCEPT, requestState=state)
    (only,) = again["content"]  # some models take no empty texts
    assert again["isError"] and "has ended" in only["text"]


@pytest.mark.parametrize(
    "spoil", [lambda s: s + "x", lambda s: s[:-1], lambda s: "", lambda s: "." + s]
)
def test_a_state_that_is_not_ours_is_refused(server: Fixture, spoil: Any) -> None:
    mcp = modern(server)
    state = spoil(call(mcp, ASK)["requestState"])
    with pytest.raises(Failure) as failed:
        call(mcp, ASK, inputResponses=ACCEPT, requestState=state)
    assert failed.value.code == -32602


def test_a_state_is_for_its_call_alone(server: Fixture) -> None:
    mcp = modern(server)
    state = call(mcp, ASK)["requestState"]
    for params in (
        {"name": "test_streaming_elicitation", "arguments": {}},
        {"name": "test_simple_text", "arguments": {}},
    ):
        with pytest.raises(Failure) as failed:
            mcp.ask("tools/call", inputResponses=ACCEPT, requestState=state, **params)
        assert failed.value.code == -32602


@pytest.mark.parametrize("responses", [None, 7, [], {}, {"user_name": 7}, {"other": {}}])
def test_what_was_not_answered_is_asked_again(server: Fixture, responses: Any) -> None:
    mcp = modern(server)
    state = call(mcp, ASK)["requestState"]
    again = call(mcp, ASK, inputResponses=responses, requestState=state)
    assert again["resultType"] == "input_required" and again["requestState"] != state
    last = call(mcp, ASK, inputResponses=ACCEPT, requestState=again["requestState"])
    assert last["content"][0]["text"] == "Hello, Ada!"


def test_only_what_the_client_can_is_asked(server: Fixture) -> None:
    three = "test_input_required_result_multiple_inputs"
    assert set(call(modern(server), three)["inputRequests"]) == {
        "user_name",
        "greeting",
        "client_roots",
    }
    assert set(call(modern(server, {"sampling": {}}), three)["inputRequests"]) == {"greeting"}
    assert call(modern(server, {}), three)["resultType"] == "complete"
    url_only: dict[str, Any] = {"elicitation": {"url": {}}}
    assert call(modern(server, url_only), ASK)["content"][0]["text"] == "Hello, stranger!"


def test_the_oldest_of_too_many_questions_is_not_answered(server: Fixture) -> None:
    mcp = modern(server)
    states = [call(mcp, ASK)["requestState"] for _ in range(9)]
    late = call(mcp, ASK, inputResponses=ACCEPT, requestState=states[0])
    assert late["isError"]
    for state in states[1:]:
        last = call(mcp, ASK, inputResponses=ACCEPT, requestState=state)
        assert last["content"][0]["text"] == "Hello, Ada!"


def test_what_a_client_cannot_is_an_error(server: Fixture) -> None:
    with pytest.raises(Failure) as failed:
        call(modern(server, {}), "test_missing_capability")
    assert failed.value.code == -32021
    assert failed.value.data == {"requiredCapabilities": {"sampling": {}}}
    assert call(modern(server), "test_missing_capability")["resultType"] == "complete"


# ---------------------------------------------------------------------------- legacy questions


def respond(server: Fixture, mcp: Mcp, number: Any, **more: Any) -> int:
    body = json.dumps({"jsonrpc": "2.0", "id": number, **more}).encode()
    return ask(server.port, "POST", "/mcp", body, BOTH | mcp.session).status


def test_a_legacy_client_is_asked_on_the_stream(server: Fixture) -> None:
    mcp = legacy(server)
    with mcp.open("tools/call", {"name": ASK, "arguments": {}}) as connection:
        said = Events(connection).messages()
        question = next(said)
        assert question["method"] == "elicitation/create"
        assert respond(server, mcp, "unknown", result=ACCEPT["user_name"]) == 202
        assert respond(server, mcp, question["id"], result=ACCEPT["user_name"]) == 202
        assert next(said)["result"]["content"][0]["text"] == "Hello, Ada!"
        assert next(said, None) is None


def test_an_error_is_no_answer(server: Fixture) -> None:
    mcp = legacy(server)
    with mcp.open("tools/call", {"name": ASK, "arguments": {}}) as connection:
        said = Events(connection).messages()
        number = next(said)["id"]
        assert respond(server, mcp, number, error={"code": -1, "message": "no"}) == 202
        assert next(said)["result"]["content"][0]["text"] == "Hello, stranger!"


def test_who_cannot_be_asked_is_not(server: Fixture) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": ASK}}
    nobody = ask(server.port, "POST", "/mcp", json.dumps(body).encode(), BOTH)  # no session
    assert messages(nobody)[-1]["result"]["content"][0]["text"] == "Hello, stranger!"
    mcp = legacy(server)
    plain = BOTH | {"Accept": "application/json"} | mcp.session
    reply = ask(server.port, "POST", "/mcp", json.dumps(body).encode(), plain)
    assert reply.json["result"]["content"][0]["text"] == "Hello, stranger!"


# ---------------------------------------------------------------------------- streams that break


def test_a_legacy_client_comes_back_for_the_rest(server: Fixture) -> None:
    mcp = legacy(server)
    with mcp.open("tools/call", {"name": "test_reconnection", "arguments": {}}) as connection:
        stream = Events(connection)
        assert [fields for fields in stream.blocks() if fields.get("data")] == []
    last = stream.ids[-1]
    for _ in range(2):  # and once more, since its connection may break again
        with Connection(server.port) as connection:
            connection.send("GET", "/mcp", None, EVENTS | mcp.session | {"Last-Event-ID": last})
            said = list(Events(connection).messages())
            assert said[-1]["result"]["content"][0]["text"] == "Reconnection test completed."


def test_events_that_were_read_are_not_sent_again(server: Fixture) -> None:
    mcp = legacy(server)
    params = {"name": "test_tool_with_progress", "arguments": {}, "_meta": {"progressToken": 7}}
    with mcp.open("tools/call", params) as connection:
        stream = Events(connection)
        said = list(stream.messages())
    assert [message.get("method") for message in said] == ["notifications/progress"] * 3 + [None]
    assert [message["params"]["progress"] for message in said[:3]] == [0, 50, 100]
    assert all(message["params"]["progressToken"] == 7 for message in said[:3])
    assert stream.ids[0].endswith(":0")
    heads = EVENTS | mcp.session | {"Last-Event-ID": stream.ids[2]}
    with Connection(server.port) as connection:
        connection.send("GET", "/mcp", None, heads)
        assert list(Events(connection).messages()) == said[2:]


@pytest.mark.parametrize(
    "last", ["", "x", ":", ":1", "0" * 32 + ":0", "x" * 5000, "%s:99999999999999999999"]
)
def test_events_that_never_were(server: Fixture, last: str) -> None:
    mcp = legacy(server)
    heads = EVENTS | mcp.session | {"Last-Event-ID": last}
    assert ask(server.port, "GET", "/mcp", None, heads).status in (400, 404)


def test_a_modern_stream_has_no_ids(server: Fixture) -> None:
    params = {"name": "test_tool_with_progress", "arguments": {}, "_meta": {"progressToken": "t"}}
    with modern(server).open("tools/call", params) as connection:
        stream = Events(connection)
        said = list(stream.messages())
    assert stream.ids == [] and len(said) == 4


# ---------------------------------------------------------------------------- cancelled


def test_a_cancelled_call_is_not_answered(server: Fixture) -> None:
    mcp = legacy(server)
    with mcp.open("tools/call", {"name": ASK, "arguments": {}}) as connection:
        said = Events(connection).messages()
        assert next(said)["method"] == "elicitation/create"
        number = next(mcp.ids) - 1
        other = legacy(server)
        other.notify("notifications/cancelled", requestId=number)  # of another session
        mcp.notify("notifications/cancelled", requestId=str(number))  # another id
        assert call(mcp, "test_simple_text")["content"]
        mcp.notify("notifications/cancelled", requestId=number, reason="enough")
        assert list(said) == []


# ---------------------------------------------------------------------------- changes


def listen(mcp: Mcp, **wanted: Any) -> tuple[Connection, Iterator[Any]]:
    connection = mcp.open("subscriptions/listen", {"notifications": wanted})
    return connection, Events(connection).messages()


def test_changes_are_told_to_those_who_listen(server: Fixture) -> None:
    mcp = modern(server)
    tools, of_tools = listen(mcp, toolsListChanged=True, unknown=True)
    prompts, of_prompts = listen(mcp, promptsListChanged=True, resourceSubscriptions=["test://a"])
    with tools, prompts:
        first = next(of_tools)
        assert first["method"] == "notifications/subscriptions/acknowledged"
        assert first["params"]["notifications"] == {"toolsListChanged": True}
        number = first["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"]
        assert next(of_prompts)["params"]["notifications"] == {
            "promptsListChanged": True,
            "resourceSubscriptions": ["test://a"],
        }
        call(mcp, "test_trigger_tool_change")
        call(mcp, "test_trigger_prompt_change")
        changed = next(of_tools)
        assert changed["method"] == "notifications/tools/list_changed"
        assert changed["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == number
        assert next(of_prompts)["method"] == "notifications/prompts/list_changed"


@pytest.mark.parametrize(
    "wanted", [None, [], {"resourceSubscriptions": "x"}, {"resourceSubscriptions": ["x"] * 101}]
)
def test_wishes_that_are_none(server: Fixture, wanted: Any) -> None:
    with pytest.raises(Failure) as failed:
        modern(server).ask("subscriptions/listen", notifications=wanted)
    assert failed.value.code == -32602


def test_a_legacy_client_listens_with_get(server: Fixture) -> None:
    mcp = legacy(server)
    with Connection(server.port) as connection:
        connection.send("GET", "/mcp", None, EVENTS | mcp.session)
        said = Events(connection).messages()
        call(mcp, "test_trigger_tool_change")
        assert next(said) == {
            "jsonrpc": "2.0",
            "method": "notifications/tools/list_changed",
            "params": {},
        }


# ---------------------------------------------------------------------------- logs


def test_logs_begin_at_the_level_that_was_set(server: Fixture) -> None:
    mcp = legacy(server)
    logging = {"name": "test_tool_with_logging", "arguments": {}}
    logs = mcp.read(mcp.send("tools/call", logging))[1]
    assert [log["params"]["level"] for log in logs] == ["info"] * 3
    mcp.ask("logging/setLevel", level="error")
    assert mcp.read(mcp.send("tools/call", logging))[1] == []
    with pytest.raises(Failure):
        mcp.ask("logging/setLevel", level="loud")
    new = modern(server)
    assert new.read(new.send("tools/call", logging))[1] == []
    meta = {"io.modelcontextprotocol/logLevel": "debug"}
    assert len(new.read(new.send("tools/call", logging | {"_meta": meta}))[1]) == 3


# ---------------------------------------------------------------------------- headers of arguments


@pytest.mark.parametrize(
    "value, header, good",
    [
        ("Hello", "Hello", True),
        ("Hello", "=?base64?SGVsbG8=?=", True),
        ("grün", "=?base64?Z3LDvG4=?=", True),
        ("Hello", "hello", False),
        ("Hello", None, False),
        (None, None, True),
        (None, "x", False),
        ("Hello", "=?base64?SGVsbG8?=", False),
    ],
)
def test_an_argument_in_a_header(
    server: Fixture, value: str | None, header: str | None, good: bool
) -> None:
    mcp = modern(server)
    mcp.headers = {"Mcp-Param-Region": header} if header is not None else {}
    reply = mcp.send("tools/call", {"name": "test_custom_header", "arguments": {"region": value}})
    assert reply.status == (200 if good else 400)
    assert good or reply.json["error"]["code"] == -32020

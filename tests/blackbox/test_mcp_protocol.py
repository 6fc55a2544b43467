"""MCP at the real server, message by message: eras, headers, sessions, errors, keys."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deaths import kill_server
from harness import LiveService, Service, settled
from http_client import Connection, Reply, ask
from keyed_live import KeyedLive
from mcp_http import BOTH, ERAS, LEGACY, META, MODERN, Failure, Mcp, messages

ID = {"jsonrpc": "2.0", "id": 1}
KNOWN = {META + "protocolVersion": MODERN, META + "clientCapabilities": {}}


@pytest.fixture(scope="module")
def keyed_mcp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedLive]:
    yield from settled(KeyedLive(tmp_path_factory.mktemp("keyed")))


def post(service: Service, value: Any, headers: dict[str, str] = {}, path: str = "/mcp") -> Reply:
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    return ask(service.port, "POST", path, body, BOTH | headers)


def modern(
    service: Service, method: str, params: dict[str, Any] = {}, **headers: str | None
) -> Reply:
    """With all that it needs, but for headers that are None; "_" stands for "-"."""
    known = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
    if "name" in params:
        known["Mcp-Name"] = params["name"]
    for name, value in headers.items():
        known.pop(name.replace("_", "-"), None)
        if value is not None:
            known[name.replace("_", "-")] = value
    return post(service, ID | {"method": method, "params": {"_meta": KNOWN} | params}, known)


def code(reply: Reply) -> tuple[int, int]:
    assert reply.json["jsonrpc"] == "2.0" and reply.json["error"]["message"]
    return reply.status, reply.json["error"]["code"]


# ---------------------------------------------------------------------------- messages


@pytest.mark.parametrize(
    "body, status, number",
    [
        (b"", 400, -32700),
        (b"{", 400, -32700),
        (b"nonsense", 400, -32700),
        (b"7", 400, -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}', 400, -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"a\\u0000"}', 400, -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', 400, -32700),
        (b"[" * 100, 400, -32700),
        (b"[" + b"1," * 60000 + b"1]", 400, -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","x":NaN}', 400, -32700),
        (b'{"id":1,"method":"ping"}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":"%s","method":"ping"}' % (b"x" * 257), 400, -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":[]}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', 400, -32602),
        (b'{"jsonrpc":"2.0","id":1,"result":7}', 400, -32600),
        (b"{}", 400, -32600),
        (b"[]", 400, -32600),
    ],
)
def test_what_is_no_message(
    live_service: LiveService, body: bytes, status: int, number: int
) -> None:
    assert code(post(live_service, body)) == (status, number)


def test_a_message_has_four_megabytes(live_service: LiveService) -> None:
    with Mcp(live_service.port, MODERN) as mcp:
        code_of = "#" + "x" * (4 << 20)
        reply = mcp.send("tools/call", {"name": "run_python", "arguments": {"code": code_of}})
        assert reply.status == 413 and reply.json["error"]["code"] == -32600
        assert mcp.value("#" + "x" * (3 << 20) + "\n1") == "1"  # read beside the loop


@pytest.mark.parametrize("number", [0, -1, 2**53, "", "a", 'ü\n"', "x" * 256])
def test_ids_come_back_as_they_came(live_service: LiveService, number: Any) -> None:
    reply = post(live_service, {"jsonrpc": "2.0", "id": number, "method": "ping"})
    assert reply.json == {"jsonrpc": "2.0", "id": number, "result": {}}
    unknown = post(live_service, {"jsonrpc": "2.0", "id": number, "method": "unknown"})
    assert unknown.json["id"] == number and unknown.status == 200


@pytest.mark.parametrize(
    "headers, status",
    [
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/jsonx"}, 415),
        ({"Content-Type": "application/json; charset=utf-8"}, 200),
        ({"Accept": "text/html"}, 406),
        ({"Accept": "*/*"}, 200),
        ({"Accept": "application/json"}, 200),
    ],
)
def test_what_is_sent_and_wanted(
    live_service: LiveService, headers: dict[str, str], status: int
) -> None:
    assert post(live_service, ID | {"method": "ping"}, headers).status == status


def test_a_client_that_wants_events_gets_events(live_service: LiveService) -> None:
    reply = post(live_service, ID | {"method": "ping"}, {"Accept": "text/event-stream"})
    assert reply.header("content-type") == "text/event-stream"
    assert reply.header("x-accel-buffering") == "no"
    assert messages(reply) == [ID | {"result": {}}]


def test_whoever_wants_events_only_has_a_session(live_service: LiveService) -> None:
    reply = initialize(live_service, LEGACY, Accept="text/event-stream")
    assert reply.header("content-type") == "text/event-stream"
    assert reply.header("mcp-session-id")


def test_notifications_and_responses_are_taken(live_service: LiveService) -> None:
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    response = {"jsonrpc": "2.0", "id": "nobody's", "result": {}}
    for value in (note, response):
        reply = post(live_service, value)
        assert (reply.status, reply.body) == (202, b"")


# ---------------------------------------------------------------------------- the modern era


def test_discover_says_what_there_is(live_service: LiveService) -> None:
    result = modern(live_service, "server/discover").json["result"]
    assert result["resultType"] == "complete" and result["supportedVersions"] == [MODERN]
    assert set(result["capabilities"]) == {"tools", "resources", "prompts", "completions"}
    assert result["_meta"][META + "serverInfo"]["name"] == "cloche"
    assert result["ttlMs"] >= 0 and result["cacheScope"] == "private"
    assert 0 < len(result["instructions"]) <= 1500


@pytest.mark.parametrize(
    "meta",
    [
        {},
        {META + "protocolVersion": MODERN},
        {META + "clientCapabilities": {}},
        {META + "protocolVersion": 7, META + "clientCapabilities": {}},
        {META + "protocolVersion": MODERN, META + "clientCapabilities": []},
    ],
)
def test_a_modern_request_says_what_its_client_is(
    live_service: LiveService, meta: dict[str, Any]
) -> None:
    assert code(modern(live_service, "server/discover", {"_meta": meta})) == (400, -32602)


def test_versions_that_nobody_speaks(live_service: LiveService) -> None:
    new = "2099-01-01"
    meta = KNOWN | {META + "protocolVersion": new}
    reply = modern(live_service, "server/discover", {"_meta": meta}, MCP_Protocol_Version=new)
    assert code(reply) == (400, -32022)
    assert reply.json["error"]["data"] == {"supported": [MODERN], "requested": new}
    old = post(live_service, ID | {"method": "ping"}, {"MCP-Protocol-Version": "2024-11-05"})
    assert code(old) == (400, -32022) and LEGACY in old.json["error"]["data"]["supported"]


@pytest.mark.parametrize(
    "headers",
    [
        {"MCP_Protocol_Version": None},
        {"MCP_Protocol_Version": LEGACY},
        {"Mcp_Method": None},
        {"Mcp_Method": "tools/list"},
        {"Mcp_Method": "TOOLS/CALL"},
        {"Mcp_Name": None},
        {"Mcp_Name": "run_shell"},
        {"Mcp_Name": "=?base64?cnVuX3NoZWxs?="},
        {"Mcp_Name": "=?base64?!!!!?="},
    ],
)
def test_headers_say_what_the_body_says(
    live_service: LiveService, headers: dict[str, str | None]
) -> None:
    call = {"name": "run_python", "arguments": {"code": "1"}}
    assert code(modern(live_service, "tools/call", call, **headers)) == (400, -32020)


def test_a_header_may_be_encoded_or_padded(live_service: LiveService) -> None:
    call = {"name": "run_python", "arguments": {}}
    for name in ("=?base64?cnVuX3B5dGhvbg==?=", "  run_python  "):
        reply = modern(live_service, "tools/call", call, Mcp_Name=name)
        assert reply.status == 200 and reply.json["result"]["isError"]


def test_two_headers_that_differ_are_none(live_service: LiveService) -> None:
    body = json.dumps(ID | {"method": "server/discover", "params": {"_meta": KNOWN}}).encode()
    heads = BOTH | {"MCP-Protocol-Version": MODERN, "Mcp-Method": "server/discover"}
    with Connection(live_service.port) as connection:
        connection.send("POST", "/mcp", body, heads | {"mcp-method": "tools/call"})
        assert code(connection.reply("POST")) == (400, -32020)


@pytest.mark.parametrize(
    "method",
    ["initialize", "ping", "logging/setLevel", "resources/subscribe", "no/such", "x" * 5000],
)
def test_methods_that_a_modern_client_does_not_have(live_service: LiveService, method: str) -> None:
    reply = modern(live_service, method)
    assert code(reply) == (404, -32601) and reply.json["id"] == 1


def test_sessions_are_nothing_to_a_modern_client(live_service: LiveService) -> None:
    assert modern(live_service, "tools/list", Mcp_Session_Id="anything").status == 200
    for method in ("GET", "DELETE"):
        heads = {"MCP-Protocol-Version": MODERN, "Accept": "text/event-stream"}
        reply = ask(live_service.port, method, "/mcp", None, heads)
        assert reply.status == 405 and reply.header("allow") == "POST"


# ---------------------------------------------------------------------------- the legacy era


def initialize(service: Service, version: Any = LEGACY, **headers: str) -> Reply:
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t"}}
    return post(service, ID | {"method": "initialize", "params": params}, headers)


@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18", LEGACY])
def test_initialize_agrees_to_a_version(live_service: LiveService, version: str) -> None:
    reply = initialize(live_service, version)
    result = reply.json["result"]
    assert result["protocolVersion"] == version and result["serverInfo"]["name"] == "cloche"
    assert "resultType" not in result and "tools" in result["capabilities"]
    session = reply.header("mcp-session-id")
    assert session and all(0x21 <= ord(c) <= 0x7E for c in session)


@pytest.mark.parametrize("version", ["2024-11-05", "1999-01-01", MODERN, "x"])
def test_initialize_offers_the_newest_to_others(live_service: LiveService, version: str) -> None:
    assert initialize(live_service, version).json["result"]["protocolVersion"] == LEGACY


def test_a_session_is_missed_by_nobody(live_service: LiveService) -> None:
    assert post(live_service, ID | {"method": "tools/list"}).json["result"]["tools"]


def test_a_session_ends_once(live_service: LiveService) -> None:
    session = {"Mcp-Session-Id": str(initialize(live_service).header("mcp-session-id"))}
    assert post(live_service, ID | {"method": "ping"}, session).status == 200
    assert ask(live_service.port, "DELETE", "/mcp", None, session).status == 204
    assert code(post(live_service, ID | {"method": "ping"}, session)) == (404, -32600)
    assert ask(live_service.port, "DELETE", "/mcp", None, session).status == 404
    assert ask(live_service.port, "DELETE", "/mcp", None, {}).status == 400


def test_a_get_has_nothing_to_hear(live_service: LiveService) -> None:
    reply = ask(live_service.port, "GET", "/mcp", None, {"Accept": "text/event-stream"})
    assert reply.status == 405
    gone = {"Accept": "text/event-stream", "Last-Event-ID": "0" * 32 + ":1"}
    assert ask(live_service.port, "GET", "/mcp", None, gone).status == 404


def test_batches_are_of_one_version(live_service: LiveService) -> None:
    one = {"jsonrpc": "2.0", "method": "ping"}
    batch = [one | {"id": 1}, one, {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}, {"id": 3}]
    replies = post(live_service, batch).json
    assert sorted(str(reply["id"]) for reply in replies) == ["1", "2", "3"]
    assert post(live_service, batch, {"MCP-Protocol-Version": "2025-03-26"}).status == 200
    assert code(post(live_service, batch, {"MCP-Protocol-Version": LEGACY})) == (400, -32600)
    assert code(post(live_service, [one | {"id": n} for n in range(17)])) == (400, -32600)
    assert post(live_service, [one]).status == 202
    inside = post(live_service, [ID | {"method": "initialize", "params": {}}]).json
    assert inside[0]["error"]["code"] == -32600


def test_a_restarted_server_knows_its_sessions(start_live: Any) -> None:
    service = start_live()
    with Mcp(service.port, LEGACY) as mcp:
        mcp.python("x = 41")
        kill_server(service)
        assert mcp.value("x + 1") == "42"


# ---------------------------------------------------------------------------- tools and resources


@pytest.mark.parametrize("era", ERAS)
def test_what_is_not_there(live_service: LiveService, era: str) -> None:
    with Mcp(live_service.port, era) as mcp:
        asked: tuple[tuple[str, dict[str, Any]], ...] = (
            ("tools/call", {"name": "no_such"}),
            ("tools/call", {"name": "execute_ipython_cell", "arguments": {"code": "1"}}),
            ("tools/list", {"cursor": "x"}),
            ("completion/complete", {"ref": {"type": "ref/prompt", "name": "x"}}),
        )
        for method, params in asked:
            with pytest.raises(Failure) as failed:
                mcp.ask(method, **params)
            assert failed.value.code == -32602
        with pytest.raises(Failure) as failed:
            mcp.ask("resources/read", uri="cloche://nothing")
        assert failed.value.code == (-32602 if era == MODERN else -32002)
        assert failed.value.data == {"uri": "cloche://nothing"}


@pytest.mark.parametrize("era", ERAS)
def test_there_are_no_prompts(live_service: LiveService, era: str) -> None:
    with Mcp(live_service.port, era) as mcp:
        assert mcp.ask("prompts/list")["prompts"] == []
        with pytest.raises(Failure) as failed:
            mcp.ask("prompts/get", name="x")
        assert failed.value.code == -32602


@pytest.mark.parametrize("era", ERAS)
def test_arguments_that_do_not_fit_are_for_the_model(live_service: LiveService, era: str) -> None:
    with Mcp(live_service.port, era) as mcp:
        bad: tuple[dict[str, Any], ...] = (
            {},
            {"code": 7},
            {"code": "1", "no": 1},
            {"code": "1", "timeout_s": "x"},
        )
        for arguments in bad:
            answer = mcp.call("run_python", **arguments)
            assert answer.is_error and answer.text.split(":")[0] in ("code", "no", "timeout_s")
        with pytest.raises(Failure) as failed:
            mcp.ask("tools/call", name="run_python", arguments=[])
        assert failed.value.code == -32602


def test_the_list_of_tools_has_schemas_and_hints(live_service: LiveService) -> None:
    with Mcp(live_service.port, MODERN) as mcp:
        tools = {tool["name"]: tool for tool in mcp.ask("tools/list")["tools"]}
        assert next(iter(tools)) == "run_python"
        schema = tools["run_python"]["inputSchema"]
        assert schema["type"] == "object" and schema["required"] == ["code"]
        assert "$ref" not in json.dumps(tools)
        assert tools["read_file"]["annotations"]["readOnlyHint"] is True
        assert tools["run_python"]["annotations"]["readOnlyHint"] is False
        assert all(len(tool["description"]) <= 2048 for tool in tools.values())


# ---------------------------------------------------------------------------- who asks


def test_without_a_key_the_reply_says_which_header(keyed_mcp: KeyedLive) -> None:
    reply = post(keyed_mcp, ID | {"method": "ping"})
    assert (
        code(reply) == (401, -32600) and "Authorization: Bearer" in reply.json["error"]["message"]
    )
    assert reply.header("www-authenticate") == 'Bearer realm="cloche"'
    wrong = post(keyed_mcp, ID | {"method": "ping"}, {"Authorization": "Bearer nonsense"})
    assert wrong.status == 401
    assert wrong.header("www-authenticate") == 'Bearer realm="cloche", error="invalid_token"'


@pytest.mark.parametrize(
    "method, path",
    [
        ("GET", "/.well-known/oauth-protected-resource/mcp"),
        ("GET", "/.well-known/oauth-protected-resource"),
        ("GET", "/.well-known/oauth-authorization-server"),
        ("GET", "/.well-known/oauth-authorization-server/mcp"),
        ("GET", "/.well-known/openid-configuration"),
        ("POST", "/register"),
    ],
)
def test_who_looks_for_oauth_is_told_of_keys(
    keyed_mcp: KeyedLive, live_service: LiveService, method: str, path: str
) -> None:
    body = b'{"client_name":"x"}' if method == "POST" else None
    reply = ask(keyed_mcp.port, method, path, body, {"Content-Type": "application/json"})
    assert reply.status == 404
    assert "add the header Authorization: Bearer <key>" in reply.json["error_description"]
    open_one = ask(live_service.port, method, path, body, {"Content-Type": "application/json"})
    assert open_one.status == 404 and "no key" in open_one.json["error_description"]


def test_what_one_key_has_is_nothing_to_another(keyed_mcp: KeyedLive) -> None:
    alice, bob = ({"Authorization": f"Bearer {key}"} for key in keyed_mcp.keys)
    with Mcp(keyed_mcp.port, LEGACY, **alice) as one, Mcp(keyed_mcp.port, LEGACY, **bob) as other:
        stolen = bob | {"Mcp-Session-Id": one.session["Mcp-Session-Id"]}
        assert code(post(keyed_mcp, ID | {"method": "ping"}, stolen)) == (404, -32600)
        assert ask(keyed_mcp.port, "DELETE", "/mcp", None, stolen).status == 404
        one.python("open('/workspace/secret', 'w').write('x')", sandbox="shared")
        uri = "cloche://sandbox/shared/secret"
        assert one.resource(uri)["text"] == "x"
        with pytest.raises(Failure):
            other.resource(uri)
        assert (
            other.value("import os; os.path.exists('/workspace/secret')", sandbox="shared")
            == "False"
        )


def test_another_key_can_neither_answer_nor_resume(keyed_mcp: KeyedLive) -> None:
    alice, bob = ({"Authorization": f"Bearer {key}"} for key in keyed_mcp.keys)
    can: dict[str, Any] = {"elicitation": {}}
    with Mcp(keyed_mcp.port, MODERN, can=can, **alice) as one:
        other = Mcp(keyed_mcp.port, MODERN, can=can, **bob)
        call = {"name": "run_python", "arguments": {"code": "input('who? ')"}}
        asked = one.ask("tools/call", **call)
        (key,) = asked["inputRequests"]
        answer = {key: {"action": "accept", "content": {"answer": "me"}}}
        again = call | {"inputResponses": answer, "requestState": asked["requestState"]}
        with pytest.raises(Failure) as failed:
            other.ask("tools/call", **again)
        assert failed.value.code == -32602
        assert "'me'" in one.ask("tools/call", **again)["content"][0]["text"]
        old = Mcp(keyed_mcp.port, LEGACY, **alice)
        params = {"name": "run_python", "arguments": {"code": "import time\ntime.sleep(1.2)"}}
        with old.open("tools/call", params) as connection:
            connection.head()
            last = next(connection.chunks()).split(b"\n")[0].removeprefix(b"id: ").decode()
        wanted = {"Accept": "text/event-stream", "Last-Event-ID": last}
        assert ask(keyed_mcp.port, "GET", "/mcp", None, wanted | bob).status == 404
        assert ask(keyed_mcp.port, "GET", "/mcp", None, wanted | alice).status == 200


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Host": "evil.example"}],
)
def test_pages_of_others_are_kept_out(live_service: LiveService, headers: dict[str, str]) -> None:
    lines = {"Host": f"127.0.0.1:{live_service.port}"} | BOTH | headers
    body = json.dumps(ID | {"method": "ping"}).encode()
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    with Connection(live_service.port) as connection:
        connection.sock.sendall(
            f"POST /mcp HTTP/1.1\r\n{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
        )
        assert connection.head().status in (403, 421)


def test_a_key_is_named_in_no_path(keyed_mcp: KeyedLive, tmp_path: Path) -> None:
    reply = ask(keyed_mcp.port, "POST", f"/mcp?token={keyed_mcp.keys[0]}", b"{}", BOTH)
    assert reply.status == 401

"""A client for live sandboxes: a sandbox that is deleted at the end of its block, and what can be
done with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import TracebackType
from typing import Any
from urllib.parse import urlencode

from http_client import JSON, Connection, Event, Reply, Stream, ask

SSE = {"Accept": "text/event-stream"}
LINES = {"Accept": "application/x-ndjson"}


class Events(Stream):
    """The events of an execution, of either form, as they come."""

    def __init__(
        self, port: int, method: str, path: str, value: Any, headers: dict[str, str]
    ) -> None:
        self.are_lines = headers.get("Accept") == LINES["Accept"]
        super().__init__(port, method, path, value, headers)
        assert self.reply.status == 200, (self.reply, self.connection.file.read(2000))
        self.id = self.reply.header("x-execution-id") or ""
        self.rest = self._all()

    def _all(self) -> Iterator[Event]:
        if not self.are_lines:
            yield from self.events()
            return
        for line in self.lines():
            yield Event(line["event"], line["data"], line["seq"])

    def __enter__(self) -> Events:
        return self

    def __iter__(self) -> Iterator[Event]:
        return self.rest

    def until(self, kind: str) -> Event:
        """Reads on until such an event."""
        for event in self.rest:
            if event.type == kind:
                return event
        raise AssertionError(f"the stream ended without {kind}")

    def printed(self, text: str) -> None:
        """Reads on until this was printed."""
        got = ""
        while text not in got:
            got += str(self.until("stdout").data["data"])


class Client:
    """Requests of one tenant."""

    def __init__(self, port: int, **headers: str) -> None:
        self.port = port
        self.headers = headers

    def ask(self, method: str, path: str, value: Any = None, **headers: str) -> Reply:
        body = None if value is None else json.dumps(value).encode()
        return ask(self.port, method, path, body, (JSON if body else {}) | self.headers | headers)

    def box(self, **fields: Any) -> Box:
        return Box(self, **fields)

    def listed(self, **query: Any) -> dict[str, Any]:
        reply = self.ask("GET", "/v1/sandboxes?" + urlencode(query))
        assert reply.status == 200, reply
        found: dict[str, Any] = reply.json
        return found


def error(reply: Reply, status: int, code: str, *words: str) -> str:
    """One of ours: what is wrong, and what to do."""
    assert reply.status == status, reply
    found = reply.json["error"]
    assert found["code"] == code and found["message"] and found["remediation"], found
    assert reply.json["detail"] is not None
    for word in words:
        assert word in str(reply.json), (word, reply.json)
    return str(found["message"])


class Box:
    """A live sandbox, of profile base unless something else is said."""

    def __init__(self, client: Client, **fields: Any) -> None:
        self.client = client
        self.port = client.port
        reply = client.ask("POST", "/v1/sandboxes", {"profile": "base"} | fields)
        assert reply.status == 201, reply
        self.made: dict[str, Any] = reply.json
        self.id: str = self.made["id"]
        self.path = f"/v1/sandboxes/{self.id}"

    def __enter__(self) -> Box:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        reply = self.delete()
        assert kind or reply.status in (204, 410), reply

    def ask(self, method: str, path: str = "", value: Any = None, **headers: str) -> Reply:
        return self.client.ask(method, self.path + path, value, **headers)

    def get(self, path: str = "") -> Any:
        reply = self.ask("GET", path)
        assert reply.status == 200, reply
        return reply.json

    def do(self, path: str, **fields: Any) -> Any:
        reply = self.ask("POST", path, fields)
        assert reply.status in (200, 201), reply
        return reply.json

    def delete(self) -> Reply:
        return self.ask("DELETE")

    def run(self, code: str, **fields: Any) -> dict[str, Any]:
        result: dict[str, Any] = self.do("/execute", code=code, **fields)
        return result

    def text(self, code: str, **fields: Any) -> Any:
        """The value of the last expression."""
        result = self.run(code, **fields)
        assert result["status"] == "ok", result
        return result["text"]

    def stream(self, code: str, form: dict[str, str] = SSE, **fields: Any) -> Events:
        path = self.path + "/execute"
        return Events(self.port, "POST", path, {"code": code} | fields, self.client.headers | form)

    def later(self, code: str, **fields: Any) -> Connection:
        """Starts an execution; .reply() waits for its result."""
        connection = Connection(self.port)
        body = json.dumps({"code": code} | fields).encode()
        connection.send("POST", self.path + "/execute", body, JSON | self.client.headers)
        return connection

    def kernel(self, **fields: Any) -> str:
        return str(self.do("/kernels", **fields)["id"])


def events_after(client: Client, execution: str, number: int, form: dict[str, str] = SSE) -> Events:
    path = f"/v1/executions/{execution}/events?after={number}"
    return Events(client.port, "GET", path, None, client.headers | form)

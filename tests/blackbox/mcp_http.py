"""An MCP client for the tests, raw over HTTP, of either era of the protocol: it sends what it is
told, and shows what came."""

from __future__ import annotations

import base64
import dataclasses
import itertools
import json
import re
from collections.abc import Callable
from types import TracebackType
from typing import Any
from urllib.parse import quote

from http_client import Connection, Reply, ask

MODERN, LEGACY = "2026-07-28", "2025-11-25"
ERAS = (MODERN, LEGACY)
META = "io.modelcontextprotocol/"
BOTH = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


def messages(reply: Reply) -> list[Any]:
    """Those of a reply of either form, in order."""
    if not (reply.header("content-type") or "").startswith("text/event-stream"):
        return [reply.json] if reply.body else []
    lines = reply.body.decode().splitlines()
    data = [line[5:].strip() for line in lines if line.startswith("data:")]
    return [json.loads(text) for text in data if text]


@dataclasses.dataclass
class Answer:
    """The result of a tool."""

    result: dict[str, Any]
    before: list[Any] = dataclasses.field(default_factory=list)  # notifications

    @property
    def is_error(self) -> bool:
        return bool(self.result.get("isError"))

    @property
    def content(self) -> list[dict[str, Any]]:
        parts: list[dict[str, Any]] = self.result["content"]
        return parts

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [part for part in self.content if part["type"] == kind]

    @property
    def text(self) -> str:
        """What was said, but for the line on what is new of the sandbox."""
        news = r"\n?\[(new sandbox|reset|the kernel was restarted)\b.*\]$"
        return re.sub(news, "", self.texts)

    @property
    def texts(self) -> str:
        return "\n".join(part["text"] for part in self.of("text"))

    @property
    def images(self) -> list[bytes]:
        return [base64.b64decode(part["data"], validate=True) for part in self.of("image")]

    @property
    def links(self) -> dict[str, str]:
        return {part["uri"]: part["name"] for part in self.of("resource_link")}

    @property
    def receipt(self) -> dict[str, Any]:
        found: dict[str, Any] = self.result["_meta"]["dev.cloche/receipt"]
        return found


class Failure(Exception):
    """A JSON-RPC error."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(str(error))
        self.code, self.message = error["code"], error["message"]
        self.data = error.get("data")


class Mcp:
    """A client of one key. Its sandboxes end with its block."""

    def __init__(
        self, port: int, era: str = MODERN, query: str = "", can: Any = None, **headers: str
    ) -> None:
        self.port, self.era, self.can = port, era, can or {}
        self.path = "/mcp" + (f"?{query}" if query else "")
        self.headers = headers
        self.session: dict[str, str] = {}
        self.ids = itertools.count(1)
        if era == LEGACY:
            self.initialize()

    def __enter__(self) -> Mcp:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        listed = ask(self.port, "GET", "/v1/sandboxes", None, self.headers)
        for box in listed.json["sandboxes"]:
            if "mcp" not in box["metadata"]:
                continue
            ask(self.port, "DELETE", f"/v1/sandboxes/{box['id']}", None, self.headers)

    # ---- messages ----

    def initialize(self) -> Any:
        me = {"name": "test", "version": "0"}
        params = {"protocolVersion": LEGACY, "capabilities": self.can, "clientInfo": me}
        reply = self.send("initialize", params)
        found = reply.header("mcp-session-id")
        self.session = {"Mcp-Session-Id": found} if found else {}
        self.notify("notifications/initialized")
        return messages(reply)[-1]["result"]

    def heads(self, method: str, params: dict[str, Any]) -> dict[str, str]:
        if self.era == LEGACY:
            return self.session | {"MCP-Protocol-Version": LEGACY}
        own = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
        if "name" in params or "uri" in params:
            own["Mcp-Name"] = str(params.get("name", params.get("uri")))
        return own

    def body(self, method: str, params: dict[str, Any], number: Any) -> bytes:
        if self.era == MODERN:
            meta = {"protocolVersion": MODERN, "clientCapabilities": self.can}
            known = {META + name: value for name, value in meta.items()}
            params = params | {"_meta": known | params.get("_meta", {})}
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        if number is not None:
            message["id"] = number
        return json.dumps(message).encode()

    def open(self, method: str, params: dict[str, Any]) -> Connection:
        """Sends a request; its reply is read by the caller."""
        connection = Connection(self.port)
        heads = BOTH | self.headers | self.heads(method, params)
        body = self.body(method, params, next(self.ids))
        connection.send("POST", self.path, body, heads)
        return connection

    def send(self, method: str, params: dict[str, Any]) -> Reply:
        with self.open(method, params) as connection:
            return connection.reply("POST")

    def notify(self, method: str, **params: Any) -> Reply:
        heads = BOTH | self.headers | self.heads(method, params)
        return ask(self.port, "POST", self.path, self.body(method, params, None), heads)

    # ---- requests ----

    def read(self, reply: Reply) -> tuple[dict[str, Any], list[Any]]:
        *before, last = messages(reply)
        if "error" in last:
            raise Failure(last["error"])
        return last["result"], before

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        return self.read(self.send(method, params))[0]

    def call(self, tool: str, **arguments: Any) -> Answer:
        return self.call_with(tool, arguments)

    def call_with(self, tool: str, arguments: dict[str, Any], **more: Any) -> Answer:
        params = {"name": tool, "arguments": arguments} | more
        return Answer(*self.read(self.send("tools/call", params)))

    def begin(self, tool: str, **arguments: Any) -> Connection:
        """A call whose answer is read later, with `answer`."""
        return self.open("tools/call", {"name": tool, "arguments": arguments})

    def answer(self, connection: Connection) -> Answer:
        return Answer(*self.read(connection.reply("POST")))

    def python(self, code: str, **arguments: Any) -> Answer:
        return self.call("run_python", code=code, **arguments)

    def value(self, code: str, **arguments: Any) -> str:
        """What it says, of code that does well."""
        answer = self.python(code, **arguments)
        assert not answer.is_error, answer
        return answer.text

    def shell(self, command: str, **arguments: Any) -> Answer:
        return self.call("run_shell", command=command, **arguments)

    def resource(self, uri: str) -> dict[str, Any]:
        contents = self.ask("resources/read", uri=uri)["contents"]
        assert len(contents) == 1, contents
        found: dict[str, Any] = contents[0]
        return found


Connect = Callable[..., Mcp]


def file_uri(path: str, sandbox: str = "default") -> str:
    return f"cloche://sandbox/{sandbox}/{quote(path)}"

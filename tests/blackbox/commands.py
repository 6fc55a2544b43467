"""Commands in a live sandbox, for the tests: whole, in the background, streamed, at a terminal."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

from family import words
from harness import Service, eventually
from host import Process, descendants
from http_client import JSON, Event, Reply, Stream, ask
from live_box import Box
from raw_http import Raw
from raw_ws import BINARY, CLOSE, GUID, KEY, PING, PONG, TEXT, Frame, frame, handshake

SSE = {"Accept": "text/event-stream"}
LINES = {"Accept": "application/x-ndjson"}
ENDLESS = "echo begun; exec sleep 1000"


def soon(check: Callable[[], Any]) -> Any:
    return eventually(check, seconds=30.0)


def audited(service: Service) -> dict[str, dict[str, Any]]:
    lines = (service.state / "audit.log").read_text().splitlines()
    told = map(json.loads, lines)  # of connections, too
    return {line["execution"]: line for line in told if "execution" in line}


def fields_of(what: str | list[str], fields: dict[str, Any]) -> dict[str, Any]:
    return {"cmd" if isinstance(what, str) else "argv": what, **fields}


class Shell(Box):
    """A sandbox by its commands. `what` is a line for the shell, or a program and its arguments."""

    service: Service

    def __enter__(self) -> Shell:
        return self

    def post(self, path: str, value: Any, headers: dict[str, str] = {}) -> Reply:
        return ask(self.port, "POST", self.url + path, json.dumps(value).encode(), JSON | headers)

    def ask(self, method: str, path: str) -> Reply:
        return ask(self.port, method, self.url + path)

    def try_command(self, what: str | list[str], **fields: Any) -> Reply:
        return self.post("/commands", fields_of(what, fields))

    def command(self, what: str | list[str], **fields: Any) -> Any:
        reply = self.try_command(what, **fields)
        assert reply.status == 200, (reply.status, reply.body)
        return reply.json

    def said(self, what: str | list[str], **fields: Any) -> str:
        """What a command that must end well prints."""
        done = self.command(what, **fields)
        assert done["exit_code"] == 0 and done["status"] == "exited", done
        return str(done["stdout"])

    def start(self, what: str | list[str], **fields: Any) -> str:
        """One in the background; its id."""
        reply = self.try_command(what, background=True, **fields)
        assert reply.status == 202, (reply.status, reply.body)
        assert reply.json["status"] == "running", reply.json
        return str(reply.json["id"])

    def look(self, command: str) -> Any:
        reply = self.ask("GET", f"/commands/{command}")
        assert reply.status == 200, (reply.status, reply.body)
        return reply.json

    def commands(self) -> list[Any]:
        found: list[Any] = self.ask("GET", "/commands").json["commands"]
        return found

    def feed(self, command: str, **fields: Any) -> Reply:
        return self.post(f"/commands/{command}/stdin", fields)

    def signal(self, command: str, signal: Any) -> Reply:
        return self.post(f"/commands/{command}/signal", {"signal": signal})

    def stream(self, what: str | list[str], headers: dict[str, str] = SSE, **fields: Any) -> Stream:
        return Stream(self.port, "POST", f"{self.url}/commands", fields_of(what, fields), headers)

    def follow(self, command: str, after: int = 0, headers: dict[str, str] = SSE) -> Stream:
        path = f"{self.url}/commands/{command}/events?after={after}"
        return Stream(self.port, "GET", path, None, headers)

    def prints(self, command: str, text: str) -> Any:
        """Once it has printed this."""
        assert soon(lambda: text in self.look(command)["stdout"]), self.look(command)
        return self.look(command)

    def over(self, command: str) -> Any:
        """Once it has ended."""
        assert soon(lambda: self.look(command)["status"] != "running"), self.look(command)
        return self.look(command)

    def cpu_ms(self) -> float:
        """What the sandbox has used, or has been billed for."""
        return float(self.ask("GET", "").json["usage"]["cpu_ms"])

    def processes(self, word: str) -> list[Process]:
        """Those of the service that have this word on their command lines: the host sees all."""
        found = descendants(self.service.process.pid)
        return [p for p in found if p.state not in "ZX" and word in words(p.pid)]

    def terminal(self, cmd: str | None = None, **query: Any) -> Terminal:
        given = {"cmd": cmd, **query}
        text = "&".join(f"{k}={quote(str(v), safe='')}" for k, v in given.items() if v is not None)
        return Terminal(self.port, f"{self.url}/commands/pty" + (f"?{text}" if text else ""))

    def attach(self, command: str, **query: Any) -> Terminal:
        text = "&".join(f"{k}={quote(str(v))}" for k, v in query.items())
        path = f"{self.url}/commands/{command}/pty" + (f"?{text}" if text else "")
        return Terminal(self.port, path)


def shell_of(service: Service, **fields: Any) -> Shell:
    shell = Shell(service.port, **{"profile": "base", **fields})
    shell.service = service
    return shell


def gather(events: Iterator[Event]) -> tuple[dict[str, str], Any]:
    """What a stream of events says, and its end."""
    said = {"stdout": "", "stderr": ""}
    last = 0
    for event in events:
        assert event.id is not None and event.id > last
        last = event.id
        if event.type == "end":
            return said, event.data
        if event.type != "start":
            said[event.type] += event.data["data"]
    raise AssertionError(f"no end: {said}")


class Terminal(Raw):
    """The client's end of a terminal: a WebSocket, read at one's own pace."""

    def __init__(self, port: int, path: str) -> None:
        super().__init__(port)
        self.send(handshake(path))
        self.answer = self.head()
        self.shown = b""
        self.texts: list[Any] = []
        self.pings = 0  # one after the other: there is one every 20 s
        if self.answer.status == 101:
            wanted = base64.b64encode(hashlib.sha1(KEY + GUID).digest()).decode()
            assert self.answer.header("Sec-WebSocket-Accept") == wanted

    def __enter__(self) -> Terminal:
        assert self.answer.status == 101, self.answer
        return self

    def frame(self) -> Frame:
        first, second = self.exactly(2)
        length = second
        if second == 126:
            length = int.from_bytes(self.exactly(2), "big")
        elif second == 127:
            length = int.from_bytes(self.exactly(8), "big")
        return Frame(first & 15, self.exactly(length))

    def take(self) -> Frame:
        """One frame; what it shows or says is kept."""
        got = self.frame()
        if got.opcode == BINARY:
            self.shown += got.payload
        elif got.opcode == TEXT:
            self.texts.append(json.loads(got.payload))
        self.pings = self.pings + 1 if got.opcode == PING else 0
        assert self.pings < 7, ("it has nothing else to say", self.shown[-2000:], self.texts)
        if got.opcode == PING:
            self.send(frame(PONG, got.payload))
        return got

    def type(self, text: str) -> Terminal:
        self.send(frame(BINARY, text.encode()))
        return self

    def say(self, **message: Any) -> Terminal:
        self.send(frame(TEXT, json.dumps(message).encode()))
        return self

    def sees(self, mark: str) -> bytes:
        """What is shown up to and with this; the next look begins after it."""
        word = mark.encode()
        while word not in self.shown:
            assert self.take().opcode != CLOSE, (self.shown[-2000:], self.texts)
        before, _, self.shown = self.shown.partition(word)
        return before + word

    @property
    def id(self) -> str:
        while not self.texts:
            self.take()
        assert self.texts[0]["type"] == "start", self.texts
        return str(self.texts[0]["id"])

    def end(self) -> Any:
        """The command's object, when it is over; the connection closes as it should."""
        while (got := self.take()).opcode != CLOSE:
            pass
        self.try_send(frame(CLOSE, got.payload[:2]))
        assert got.code == 1000, got
        assert self.texts[-1]["type"] == "end", self.texts
        return self.texts[-1]

    def closed(self) -> int:
        """The code with which the server closes."""
        while (got := self.take()).opcode != CLOSE:
            pass
        self.try_send(frame(CLOSE, got.payload[:2]))
        return got.code

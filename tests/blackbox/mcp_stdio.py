"""`cloche mcp` as a client sees it: lines in, lines out, of either era of the protocol."""

from __future__ import annotations

import itertools
import json
import os
import select
import signal
import subprocess
from types import TracebackType
from typing import Any

from harness import Caller, Deadline, clean_env
from host import Process, descendants, processes
from mcp_http import LEGACY, META, MODERN, Answer, Failure


class Stdio:
    """A running `cloche mcp`; killed at the end of its block if it has not ended before."""

    def __init__(
        self,
        *words: str,
        era: str = MODERN,
        server: str = "",
        can: Any = None,
        env: dict[str, str] | None = None,
        caller: Caller | None = None,
    ) -> None:
        self.era, self.can = era, can or {}
        self.ids = itertools.count(1)
        self.seen: list[dict[str, Any]] = []  # what came and nobody has asked for yet
        self.rest = b""
        named = ["--server", server] if server else []
        who = caller or Caller()
        self.process = subprocess.Popen(
            who.command("mcp", *named, *words),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=clean_env(**who.env, **(env or {})),
            cwd="/",
            start_new_session=True,
        )
        if era == LEGACY:
            me = {"name": "test", "version": "0"}
            params = {"protocolVersion": LEGACY, "capabilities": self.can, "clientInfo": me}
            self.initialized = self.ask("initialize", **params)
            self.notify("notifications/initialized")

    def __enter__(self) -> Stdio:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.end()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream:
                stream.close()

    # ---- lines ----

    def write(self, line: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        """The next line, whatever it is."""
        assert self.process.stdout
        deadline = Deadline()
        while b"\n" not in self.rest:
            ready, _, _ = select.select([self.process.stdout], [], [], deadline.left)
            assert ready, "no line came"
            some = os.read(self.process.stdout.fileno(), 65536)
            assert some, "it has ended: " + self.errors()
            self.rest += some
        line, _, self.rest = self.rest.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        assert message["jsonrpc"] == "2.0", message
        return message

    def errors(self) -> str:
        assert self.process.stderr
        self.process.wait()
        return self.process.stderr.read().decode()

    # ---- messages ----

    def message(self, method: str, params: dict[str, Any], number: Any) -> bytes:
        if self.era == MODERN:
            meta = {"protocolVersion": MODERN, "clientCapabilities": self.can}
            known = {META + name: value for name, value in meta.items()}
            params = params | {"_meta": known | params.get("_meta", {})}
        whole: dict[str, Any] = {"method": method, "params": params, "jsonrpc": "2.0"}
        if number is not None:
            whole["id"] = number
        return json.dumps(whole).encode()

    def send(self, method: str, **params: Any) -> int:
        number = next(self.ids)
        self.write(self.message(method, params, number))
        return number

    def notify(self, method: str, **params: Any) -> None:
        self.write(self.message(method, params, None))

    def until(self, number: Any) -> dict[str, Any]:
        """The answer to this request; what comes before it is in .seen."""
        while True:
            for i, message in enumerate(self.seen):
                if message.get("id") == number and "method" not in message:
                    return self.seen.pop(i)
            self.seen.append(self.read())

    def answer(self, number: Any) -> Any:
        message = self.until(number)
        if "error" in message:
            raise Failure(message["error"])
        return message["result"]

    def until_method(self, method: str) -> dict[str, Any]:
        """The next message of the server that is a request or notification of this kind."""
        while True:
            for i, message in enumerate(self.seen):
                if message.get("method") == method:
                    return self.seen.pop(i)
            self.seen.append(self.read())

    def ask(self, method: str, **params: Any) -> Any:
        return self.answer(self.send(method, **params))

    # ---- tools ----

    def start(self, tool: str, **arguments: Any) -> int:
        """A call that tells of its progress, with its number as token."""
        token = {"progressToken": f"p{tool}"}
        return self.send("tools/call", name=tool, arguments=arguments, _meta=token)

    def call(self, tool: str, **arguments: Any) -> Answer:
        return Answer(self.ask("tools/call", name=tool, arguments=arguments))

    def text(self, code: str, **arguments: Any) -> str:
        answer = self.call("run_python", code=code, **arguments)
        assert not answer.is_error, answer.texts
        return answer.text

    # ---- the end ----

    def family(self) -> list[Process]:
        """Itself and all that it started: what keeps its server has a session of its own."""
        found = descendants(self.process.pid)
        group = [p for p in processes() if p.ppid == self.process.pid]
        return list({p.pid: p for p in [*found, *group]}.values())

    def end(self, sig: int = signal.SIGTERM) -> int:
        self.process.send_signal(sig)
        return self.process.wait(timeout=Deadline().left)

    def leave(self) -> int:
        """As clients do: its stdin ends."""
        assert self.process.stdin
        self.process.stdin.close()
        return self.process.wait(timeout=Deadline().left)

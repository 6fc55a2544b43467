"""kill -9 of our processes while live sandboxes are there: what the tests of that share."""

from __future__ import annotations

import json
from typing import Any

from commands import SSE, Shell, shell_of, soon
from family import Family, kill, one
from harness import LiveService
from host import Process, is_alive
from http_client import Event, Stream, ask

QUICK: dict[str, Any] = {"data": None, "base": {"preload": ["json"], "pool": 2}}
LEAN, LIVE = 0, 1  # the profile and its twin, in the order in which the engine numbers them


def kill_server(service: LiveService) -> None:
    """Clients wait in the backlog of the next one."""
    server = one(lambda: Family(service).server())
    kill(server)
    assert soon(lambda: not is_alive(server))


def make(service: LiveService, **fields: Any) -> Shell:
    return shell_of(service, **fields)


class Running:
    """An execution whose events are read by hand, and read on after the server's death."""

    def __init__(self, shell: Shell, code: str, **fields: Any) -> None:
        self.port = shell.port
        body = {"code": code, "timeout_ms": 60000, "on_disconnect": "continue", **fields}
        self.stream = Stream(shell.port, "POST", f"{shell.url}/execute", body, SSE)
        self.id = str(self.stream.reply.header("x-execution-id"))
        self.events = self.stream.events()
        self.seen: list[Event] = []

    def until(self, text: str) -> Running:
        """Until this was printed or is in an event; a line may come in pieces."""
        printed = ""
        for event in self.events:
            self.seen.append(event)
            is_text = event.type in ("stdout", "stderr")
            printed += event.data["data"] if is_text else json.dumps(event.data)
            if text in printed:
                return self
        raise AssertionError(f"no {text} in {self.seen}")

    def come_back(self) -> Running:
        self.stream.connection.close()
        path = f"/v1/executions/{self.id}/events?after={self.seen[-1].id}"
        self.stream = Stream(self.port, "GET", path, None, SSE)
        assert self.stream.reply.status == 200, self.stream.reply
        self.events = self.stream.events()
        return self

    def is_forgotten(self) -> bool:
        return ask(self.port, "GET", f"/v1/executions/{self.id}").status == 404

    def close(self) -> None:
        self.stream.connection.close()

    def end(self) -> Any:
        self.seen += self.events
        self.close()
        numbers = [event.id or 0 for event in self.seen]
        assert numbers == sorted(set(numbers)), numbers
        assert self.seen[-1].type == "end", self.seen
        return self.seen[-1].data


GATE = "import os, time\nprint('begun', flush=True)\n" + (
    "while not os.path.exists('go'): time.sleep(0.01)\n"
)


# ---------------------------------------------------------------------------- others that die


def gone(shell: Shell) -> str:
    reply = shell.ask("GET", "")
    assert reply.status == 410 and reply.json["error"]["code"] == "sandbox_gone", reply.body
    return str(reply.json["error"]["message"])


def one_of(shell: Shell, word: str) -> list[Process]:
    assert soon(lambda: len(shell.processes(word)) == 1)
    return shell.processes(word)

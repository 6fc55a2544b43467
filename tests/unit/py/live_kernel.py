"""Kernels of cell.live in processes of their own, over a socket pair: no sandbox, no server."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HANG_S = 60  # only a hang takes that long
Event = dict[str, Any]


def drain(fd: int) -> str:
    """What is there; whatever was printed before an event is."""
    os.set_blocking(fd, False)
    text = b""
    try:
        while part := os.read(fd, 1 << 16):
            text += part
    except BlockingIOError:
        pass
    return text.decode()


def read_line(fd: int) -> str:
    os.set_blocking(fd, True)
    text = b""
    while not text.endswith(b"\n"):
        text += os.read(fd, 1)
    return text.decode()


@dataclass
class Outcome:
    events: list[Event] = field(default_factory=list)
    stdout: str = ""
    stderr: str = ""

    def of(self, kind: str) -> list[Event]:
        return [event for event in self.events if event["ev"] == kind]

    @property
    def done(self) -> Event:
        assert [event["ev"] for event in self.events].count("done") == 1
        assert self.events[-1]["ev"] == "done"
        return self.events[-1]

    @property
    def status(self) -> str:
        return str(self.done["status"])

    @property
    def result(self) -> Any:
        """The data of the one result, or None."""
        found = self.of("result")
        assert len(found) <= 1
        return found[0]["data"] if found else None

    @property
    def text(self) -> Any:
        return self.result["text/plain"]

    @property
    def error(self) -> Event:
        (found,) = self.of("error")
        return found

    @property
    def traceback(self) -> str:
        return "\n".join(self.error["traceback"])


class Kernel:
    def __init__(self, chan: socket.socket) -> None:
        self.chan = chan
        self.control, theirs = socket.socketpair()
        self.control.settimeout(HANG_S)
        pipes = [os.pipe() for _ in range(3)]
        self.stdin, self.stdout, self.stderr = pipes[0][1], pipes[1][0], pipes[2][0]
        given = [pipes[0][0], pipes[1][1], pipes[2][1]]
        socket.send_fds(chan, [b"fork"], [theirs.fileno(), *given])
        self.pid = int(chan.recv(100))
        theirs.close()
        for fd in given:
            os.close(fd)
        self.count = 0

    def send(self, **message: Any) -> None:
        text = json.dumps(message).encode()
        self.control.sendall(struct.pack("!I", len(text)) + text)

    def _exactly(self, n: int) -> bytes:
        text = b""
        while len(text) < n:
            part = self.control.recv(n - len(text))
            if not part:
                raise EOFError("the kernel has gone")
            text += part
        return text

    def receive(self) -> Event:
        (size,) = struct.unpack("!I", self._exactly(4))
        event = json.loads(self._exactly(size))
        assert isinstance(event, dict)
        if "go" in event:  # it waits until it was heard
            self.send(op="go", go=event.pop("go"))
        return event

    def start(self, code: str, **options: Any) -> str:
        self.count += 1
        name = f"exe_{self.count}"
        request = {"silent": False, "store_history": True, "allow_stdin": False, **options}
        self.send(op="execute", id=name, code=code, **request)
        return name

    def collect(self, *before: Event) -> Outcome:
        """The events up to `done`, and what was printed up to then."""
        outcome = Outcome(list(before))
        while not outcome.events or outcome.events[-1]["ev"] != "done":
            outcome.events.append(self.receive())
        assert {event["id"] for event in outcome.events} == {f"exe_{self.count}"}
        outcome.stdout, outcome.stderr = drain(self.stdout), drain(self.stderr)
        return outcome

    def run(self, code: str, **options: Any) -> Outcome:
        self.start(code, **options)
        return self.collect()

    def ask(self, op: str, **members: Any) -> Event:
        self.send(op=op, id="ask", **members)
        reply = self.receive()
        assert reply["ev"] == "reply" and reply["id"] == "ask"
        return reply

    def interrupt(self) -> None:
        os.kill(self.pid, signal.SIGINT)

    def end(self) -> int:
        """Its exit status, after the end of its requests."""
        self.control.close()
        return self.left()

    def left(self) -> int:
        status = int(self.chan.recv(100))
        self.pid = 0
        return status

    def close(self) -> None:
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            self.left()
        self.control.close()
        for fd in (self.stdin, self.stdout, self.stderr):
            os.close(fd)


class Zygote:
    """Gives one kernel at a time."""

    def __init__(self, home: Path, *modules: str) -> None:
        self.home = home
        self.chan, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.chan.settimeout(HANG_S)
        script = Path(__file__).with_name("live_zygote.py")
        environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", "MPLBACKEND": "Agg"}
        environment["OPENBLAS_NUM_THREADS"] = "1"  # as the nursery does
        self.process = subprocess.Popen(
            [sys.executable, str(script), str(theirs.fileno()), *modules],
            env={**environment, "PYTHONUNBUFFERED": "1", "MPLCONFIGDIR": str(home.parent)},
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        self.state = json.loads(self.chan.recv(10000))

    def close(self) -> None:
        self.chan.close()
        assert self.process.wait(HANG_S) == 0

"""What the tests of the network share: a service on the test internet's host, policies, and a live
sandbox with a policy."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harness import OURSELVES, Caller, LiveService
from live import Box, Client
from world import CLOSED, CLOSED6, OTHER, PYTHON, RESOLVER, WEB

PROGRAMS = Path(__file__).resolve().parent / "programs"
FORBIDDEN = {*CLOSED, *CLOSED6, OTHER}
# Everything of the test internet that is not forbidden, by its number.
ALL = {
    "allow": ["198.51.100.2", "198.51.100.3", "198.51.100.64/26", "203.0.113.0/24", "2001:db8::/32"]
}
ECHO = {"allow": [f"{WEB}:7"]}
NAMES = {"allow": ["*.example.test", "cdn.provider.test"]}


class NetworkService(LiveService):
    """Made and asked from inside the host's namespace."""

    def __init__(self, directory: Path, *options: str, caller: Caller = OURSELVES) -> None:
        if "--network" not in options:
            options += ("--network", "open")
        if "--profiles" not in options:
            options += ("--profiles", "base")
        super().__init__(directory, "--network-resolvers", RESOLVER, *options, caller=caller)
        self.client = Client(self.port)

    def box(self, network: Any = None, **fields: Any) -> Box:
        if network is not None:
            fields["network"] = network
        return Box(self.client, **fields)


def put(box: Box, network: Any) -> dict[str, Any]:
    reply = box.ask("PUT", "/network", network)
    assert reply.status == 200, reply
    result: dict[str, Any] = reply.json
    return result


def program(name: str) -> str:
    return (PROGRAMS / f"{name}.py").read_text()


SEMANTICS = [PYTHON, "-B", "-W", "ignore", str(PROGRAMS / "semantics.py")]  # on the host


def semantics(rows: list[str]) -> dict[str, Any]:
    """The same as a request."""
    parts = sorted(PROGRAMS.glob("semantics_*.py"))
    return {
        "code": program("semantics"),
        "files": [{"path": part.name, "content": part.read_text()} for part in parts],
        "args": rows,
        "profile": "base",
        "network": ALL,
        "timeout_ms": 60000,
    }


def said(box: Box, code: str, **fields: Any) -> list[str]:
    """The lines that it prints."""
    result = box.run(code, **fields)
    assert result["status"] == "ok", result
    lines: list[str] = result["stdout"].splitlines()
    return lines


TRY = """
import errno, socket
def attempt(address, port=80, timeout=5, say=b""):
    try:
        sock = socket.create_connection((address, port), timeout)
        sock.sendall(say)
        return "connected"
    except socket.gaierror as error:
        return {-2: "no such name", -3: "try again", -5: "no address"}.get(error.errno, str(error))
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, type(error).__name__)
"""


def attempts(box: Box, targets: Iterable[tuple[str, int]], **fields: Any) -> dict[str, str]:
    """What comes of connecting to each, by "address:port"."""
    code = f"{TRY}\nimport json\nfor a, p in {list(targets)!r}:\n"
    code += "    print(json.dumps([f'{a}:{p}', attempt(a, p)]))"
    return dict(json.loads(line) for line in said(box, code, **fields))


def attempt(box: Box, address: str, port: int = 80, **fields: Any) -> str:
    return attempts(box, [(address, port)], **fields)[f"{address}:{port}"]


def denied(result: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = result["denied"]
    return found


def until(check: Any, seconds: float = 60.0) -> Any:
    """Polls what has no event."""
    end = time.monotonic() + seconds
    while not (value := check()) and time.monotonic() < end:
        time.sleep(0.01)
    return value


def rule_words(text: str) -> list[str]:
    return re.findall(r"[\w.*:/-]+", text)

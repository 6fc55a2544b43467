"""Many MCP clients at once, each with a session and a connection of its own: on cloche, where each
has a sandbox too, and on Jupyter's MCP server, where all share one kernel."""

from __future__ import annotations

import dataclasses
import http.client
import json
import os
import random
import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests/blackbox"), str(ROOT / "tests/clients")]

from bench.measure import percentile  # noqa: E402
from jupyter import jupyter_server  # noqa: E402
from mcp_http import BOTH, LEGACY, Mcp  # noqa: E402
from pypi import environment  # noqa: E402

CODE = "1"
PEER = "jupyter-mcp-server"
PINNED = f"{PEER}==2.2.4\njupyter-server==2.21.1\nipykernel==7.4.0\nmcp==2.3.0\n"
DEADLINE_S = 120


class Kept:
    """One connection, kept alive, as a client would have it; the same bytes again and again."""

    def __init__(self, port: int, path: str, body: bytes, headers: dict[str, str]) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)
        self.path, self.body, self.headers = path, body, headers

    def __call__(self) -> bytes:
        self.connection.request("POST", self.path, self.body, self.headers)
        reply = self.connection.getresponse()
        text = reply.read()
        assert reply.status == 200, text[:500]
        return text


def kept_call(client: Mcp, tool: str, arguments: dict[str, str]) -> Kept:
    params = {"name": tool, "arguments": arguments}
    headers = BOTH | client.heads("tools/call", params)
    return Kept(client.port, client.path, client.body("tools/call", params, 1), headers)


def result_of(text: bytes) -> Any:
    """Of an answer of either form."""
    lines = text.decode().splitlines()
    data = next((line[5:] for line in lines if line.startswith("data:")), text)
    return json.loads(data)["result"]


class Client:
    """One of the crowd: a session, and what is asked in it."""

    def __init__(self, port: int, tool: str, **arguments: str) -> None:
        self.mcp, self.tool, self.arguments = Mcp(port, LEGACY), tool, arguments
        self.call = kept_call(self.mcp, tool, {"code": CODE} | arguments)

    def says(self, code: str) -> str:
        answer = self.mcp.call_with(self.tool, {"code": code} | self.arguments)
        assert not answer.is_error, answer
        return answer.text


@dataclasses.dataclass
class Crowd:
    """The clients of one server, and what was seen of them, by how many were at it."""

    name: str
    clients: list[Client]
    ms: dict[int, list[float]] = dataclasses.field(default_factory=dict)
    per_second: dict[int, list[float]] = dataclasses.field(default_factory=dict)
    wrong: dict[int, list[str]] = dataclasses.field(default_factory=dict)

    def shared(self) -> int:
        """How many of the others see a variable of the first."""
        first, *others = self.clients
        first.says("mine = 1")
        return sum(one.says("'mine' in globals()") == "True" for one in others)

    def window(self, n: int, seconds: float) -> None:
        """So many of them for so long; an answer counts when it came within."""
        begin, until = threading.Barrier(n + 1), [0.0]
        ms: list[float] = []
        wrong: list[str] = []
        failed: list[BaseException] = []

        def work(client: Client) -> None:
            begin.wait()
            try:
                while time.perf_counter() < until[0]:
                    began = time.perf_counter()
                    text = client.call()
                    ended = time.perf_counter()
                    if ended > until[0]:
                        return
                    parts = result_of(text)["content"]
                    lines = "\n".join(part.get("text", "") for part in parts).splitlines()
                    if lines[-1:] == [CODE]:  # IPython warns once, before, of a full Out
                        ms.append((ended - began) * 1e3)
                    else:
                        wrong.append(json.dumps(parts)[:200])
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=work, args=[one]) for one in self.clients[:n]]
        for thread in threads:
            thread.start()
        until[0] = time.perf_counter() + seconds
        begin.wait()
        for thread in threads:
            thread.join()
        if failed:
            raise failed[0]
        self.ms.setdefault(n, []).extend(ms)
        self.per_second.setdefault(n, []).append(len(ms) / seconds)
        self.wrong.setdefault(n, []).extend(wrong)

    def figures(self, shared: int) -> dict[str, Any]:
        by_n = {
            n: {
                "per_second": statistics.median(self.per_second[n]),
                "p50_ms": percentile(self.ms[n], 50),
                "p99_ms": percentile(self.ms[n], 99),
                "wrong": dict(Counter(self.wrong[n])),
                "answers": len(self.ms[n]),
                "each_window": self.per_second[n],
            }
            for n in sorted(self.ms)
        }
        return {"clients": by_n, "see_anothers_variable": shared}


@contextmanager
def peer(place: Path, said: Callable[[str], None]) -> Iterator[int | None]:
    """The port of a Jupyter server with the extension; None, and why is said, if it cannot be."""
    python, why = environment(ROOT / "build/bench" / PEER, PINNED)
    if why:
        said(f"{PEER}: not here: {why}")
        yield None
        return
    path = f"{python.parent}:{os.environ['PATH']}"
    quiet = {"PATH": path, "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    with ExitStack() as stack:
        stack.enter_context(patch.dict(os.environ, quiet))
        try:
            port = stack.enter_context(jupyter_server(place))
        except (AssertionError, OSError) as error:
            said(f"{PEER}: does not start: {str(error)[-500:]}")
            port = None
        yield port


def crowds(ours: int, theirs: int | None, n: int, rounds: int, seconds: float) -> dict[str, Any]:
    """In turns within a round, in an order shuffled anew."""
    mine = [Client(ours, "run_python", sandbox=f"crowd-{number}") for number in range(n)]
    seen = [Crowd("cloche", mine)]
    if theirs is not None:
        seen.append(Crowd(PEER, [Client(theirs, "execute_code") for _ in range(n)]))
    shared = {crowd.name: crowd.shared() for crowd in seen}
    turns = [(crowd, many) for crowd in seen for many in (1, n)]
    for number in range(rounds):
        print(f"bench: mcp: clients: round {number} of {rounds}", file=sys.stderr)
        for crowd, many in random.sample(turns, len(turns)):
            crowd.window(many, seconds)
            time.sleep(0.2)
    return {crowd.name: crowd.figures(shared[crowd.name]) for crowd in seen}


def each_window(figures: dict[str, Any], n: int) -> list[float]:
    rates: list[float] = figures["clients"][n]["each_window"]
    return rates


def ratio(some: list[float], others: list[float]) -> float:
    """The median of the ratios within a round."""
    return statistics.median(a / b for a, b in zip(some, others))


def report(seen: dict[str, Any]) -> list[str]:
    rows = []
    for name, figures in seen.items():
        for n, of in figures["clients"].items():
            rate = f"{of['per_second']:8.1f} calls/s  p50 {of['p50_ms']:8.3f} ms"
            more = f"p99 {of['p99_ms']:8.3f} ms  {sum(of['wrong'].values())} wrong"
            rows.append(f"{name:18} {n:3} at once  {rate}  {more}")
            rows += [f"{name:18}     {times} × {what}" for what, times in of["wrong"].items()]
        one, many = (each_window(figures, n) for n in sorted(figures["clients"]))
        rows.append(f"{name:18} {ratio(many, one):.2f} × the calls of one client")
        others = figures["see_anothers_variable"]
        rows.append(f"{name:18} a variable of one client is seen by {others} others")
    if PEER in seen:
        for n in seen[PEER]["clients"]:
            times = ratio(each_window(seen["cloche"], n), each_window(seen[PEER], n))
            rows.append(f"cloche, {n} at once: {times:.0f} × the calls of {PEER}")
    return rows

"""Hostile programs behind /v1/run: what they show, and what they say in place of that, harms their
own result only. Somebody else's live sandbox lives through every test."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from client import MESSAGES, WIRE_VERSION
from harness import eventually
from http_client import ask, execute, post
from raw_ws import Socket

MB = 1 << 20
MOST = 10_000  # results and displays of a program
MOST_BYTES = 32 * MB

TOOLS = f"""
import array, fcntl, json, os, socket, struct, time
numbers = {json.dumps(MESSAGES)}
control = socket.socket(fileno=os.dup(1000))
def frame(name, payload=b''):
    return struct.pack('=HH', numbers[name], {WIRE_VERSION}) + payload
def blob(data):
    return struct.pack('=I', len(data)) + data
def text(value):
    return value if isinstance(value, bytes) else json.dumps(value).encode()
def say(value):
    control.send(frame('K_SAY', blob(text(value))))
def send_fd(*fds):
    ends = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', fds))]
    control.sendmsg([frame('K_SAY', blob(b''))], ends)
def memfd(data, seals=15):
    fd = os.memfd_create('x', os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with os.fdopen(os.dup(fd), 'wb') as file: file.write(data)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd
shown = {{'ev': 'display', 'data': {{'text/plain': 'forged'}}}}
"""


def run(port: int, code: str, **fields: Any) -> dict[str, Any]:
    body = {"code": code, "timeout_ms": 3000, "profile": "base"} | fields
    reply = post(port, "/v1/run", body)
    assert reply.status == 200, (reply.status, reply.body[:500])
    result: dict[str, Any] = reply.json
    return result


# ---------------------------------------------------------------------------- what it says

DEADLY = {
    "no JSON": "say(b'x' * 100)",
    "nothing": "control.send(frame('K_SAY', blob(b'')))",
    "bytes that are no text": 'say(b\'{"ev":"\\xff\\xfe"}\')',
    "deep": "say(b'[' * 60000)",
    "deep in a file": "send_fd(memfd(b'[' * 1000000 + b']' * 1000000))",
    "many values": "send_fd(memfd(b'[' + b'{},' * 5000000 + b'{}]'))",
    "a length that wraps": "control.send(frame('K_SAY', struct.pack('=I', 0xffffffff)))",
    "half a frame": "control.send(frame('K_SAY', struct.pack('=I', 50) + b'x'))",
    "a message for init": "control.send(frame('I_KILL'))",
    "ready again": "control.send(frame('K_READY'))",
    "a file of the host": "send_fd(os.open('/usr/bin/env', 0))",
    "a file that says nothing": "send_fd(memfd(b'nothing'))",
    "a pipe": "send_fd(os.pipe()[0])",
    "a file that is too large": "send_fd(memfd(b' ' * (30 << 20)))",
    "an empty file": "send_fd(memfd(b''))",
    "its own socket": "send_fd(1000)",
    "without end": "while True: say(shown)",
}


@pytest.mark.parametrize("what", DEADLY)
def test_a_program_that_says_nonsense_is_ended(port: int, what: str) -> None:
    result = run(port, f"{TOOLS}\n{DEADLY[what]}\nwhile True: time.sleep(1)", timeout_ms=10_000)
    assert (result["status"], result["signal"]) == ("killed", 9), result
    assert len(result["results"]) < 1000  # that it did not wait for


QUIET = {
    "what no kernel of a program says": "say({'ev': 'done', 'status': 'ok'})",
    "what means nothing": "say({'ev': 'x' * 4000, 'data': 1, 'go': 'on'})",
    "an object": "say({})",
    "a list": "say([1, 2])",
    "metadata of no kind": "say({'ev': 'display', 'data': 7, 'metadata': [1]})",
    "a count that is its own": "say({'ev': 'result', 'data': {}, 'execution_count': -5})",
    "an unsealed file": "send_fd(memfd(text(shown), 0))",
    "a display that is cut": "say({**shown, 'cut': True})",
}


@pytest.mark.parametrize("what", QUIET)
def test_a_program_may_say_it_as_it_shows(port: int, what: str) -> None:
    wait = "control.recv(100)"
    result = run(port, f"{TOOLS}\n{QUIET[what]}\n{wait}\n'the end'", timeout_ms=10_000)
    assert result["status"] == "ok" and result["text"] == "'the end'", result
    assert result["execution_count"] == 1
    assert result["results_truncated"] == ("cut" in what)


def test_whoever_shows_nothing_may_not_say_so(port: int) -> None:
    code = f"{TOOLS}\nsay(shown)\nwhile True: time.sleep(1)"
    result = execute(port, code, timeout_ms=10_000, profile="base")
    assert (result["status"], result["signal"], result["results"]) == ("killed", 9, [])


def test_a_child_that_speaks_for_it(port: int) -> None:
    """It may forge what is shown: the result is the program's, whoever of it speaks."""
    code = f"""{TOOLS}
if os.fork() == 0:
    for i in range(100):
        say(shown)
        control.recv(100)
    os._exit(0)
os.wait()
"the end"
"""
    result = run(port, code, timeout_ms=10_000)
    assert result["text"] == "'the end'" and len(result["results"]) == 101


def test_children_that_go_on_speaking_hold_nothing_up(port: int) -> None:
    code = f"""{TOOLS}
for child in range(4):
    if os.fork() == 0:
        while True:
            try: send_fd(memfd(text(shown) + b' ' * 4_000_000))
            except OSError: time.sleep(0.001)
os._exit(3)
"""
    result = run(port, code, timeout_ms=10_000, limits={"memory_mb": 512})
    assert result["status"] == "killed", result
    assert execute(port, "1", profile="base")["stdout"] == "1\n"


# ---------------------------------------------------------------------------- what it shows


def test_a_million_displays(port: int) -> None:
    result = run(port, "for i in range(1_000_000): display(i)", timeout_ms=8000)
    assert result["status"] in ("timeout", "killed"), result["status"]
    assert len(result["results"]) <= MOST
    if len(result["results"]) == MOST:
        assert result["results_truncated"]


def test_many_displays_are_bounded_in_number(port: int) -> None:
    """However they are said, no more are kept."""
    code = f"""{TOOLS}
message = frame('K_SAY', blob(text(shown)))
for i in range({MOST + 100}):
    control.send(message)
    control.recv(100)
"""
    result = run(port, code, timeout_ms=60_000, limits={"cpu_seconds": 60})
    assert result["status"] == "ok", result["status"]
    assert len(result["results"]) == MOST and result["results_truncated"]
    assert result["limit_hit"] == "output" and "results" in str(result["warnings"])


def test_large_displays_are_bounded_together(port: int) -> None:
    code = "for i in range(12): display({'text/plain': 'x' * 4_000_000}, raw=True)"
    result = run(port, code, timeout_ms=60_000, limits={"cpu_seconds": 60})
    sizes = [len(one["data"]["text/plain"]) for one in result["results"]]
    assert result["status"] == "ok" and result["results_truncated"]
    assert sum(sizes) <= MOST_BYTES and len(sizes) == MOST_BYTES // 4_000_000


def test_one_that_is_too_large_is_told_as_such(port: int) -> None:
    result = run(port, "'x' * (40 << 20)", timeout_ms=60_000, limits={"memory_mb": 512})
    assert result["status"] == "ok" and result["results_truncated"], result["status"]
    assert "can be shown; write to a file" in result["text"]


def one(name: str, *body: str) -> str:
    """A program whose value has this method."""
    inside = "".join(f"\n        {line}" for line in body)
    plain = "" if name == "__repr__" else "\n    def __repr__(self): return 'a'"
    return f"import os, time\nclass A:\n    def {name}(self, **how):{inside}{plain}\nA()"


ODD = {
    "lone surrogates": ("'\\ud800 \\udfff'", "'\\ud800 \\udfff'"),
    "NUL": (one("__repr__", "return 'a\\0b'"), "a\\x00b"),
    "surrogates in a repr": (one("__repr__", "return '\\ud800'"), "?"),
    "a name that is no text": ("display({1: 'x', None: 'y'}, raw=True)\n5", "5"),
    "deep": ("a = []\nfor i in range(2000): a = [a]\ndisplay({'x': a}, raw=True)\n5", "5"),
    "one that holds itself": ("a = []\na.append(a)\na", "[[...]]"),
    "a form that is no data": (one("_repr_html_", "return object()"), "a"),
    "a bundle that is none": (one("_repr_mimebundle_", "return 5"), "a"),
    "a repr that is no text": (one("__repr__", "return 5"), None),
    "a repr that raises": (one("__repr__", "raise ValueError"), None),
    "a repr without end of calls": (one("__repr__", "return repr(self)"), None),
    "an exception that cannot be shown": (
        "class E(Exception):\n    def __str__(self): raise self\n"
        "class A:\n    def __repr__(self): raise E\nA()",
        None,
    ),
    "one that answers to every name": (
        "class A:\n    def __getattr__(self, name): raise ValueError(name)\n"
        "    def __repr__(self): return 'a'\nA()",
        "a",
    ),
    "streams that are gone": ("import sys\nsys.stdout = sys.stderr = None\n5", "5"),
    "streams that raise": (
        "import sys\nclass S:\n    def flush(self): raise ValueError\n    write = None\n"
        "sys.stdout = sys.stderr = S()\n5",
        "5",
    ),
    "no descriptors": (
        "import os\ntry:\n    while True: os.dup(0)\nexcept OSError: pass\n5",
        "5",
    ),
    "no descriptors for what is large": (
        "import os\ntry:\n    while True: os.dup(0)\nexcept OSError: pass\n'x' * 100_000",
        None,
    ),
    "modules that are gone": ("import sys\nsys.modules.clear()\n5", "5"),
    "builtins that are gone": (
        "import builtins\nfor n in list(vars(builtins)): delattr(builtins, n)\n5",
        None,
    ),
    "another pyplot": ("import sys\nsys.modules['matplotlib.pyplot'] = 5\n5", "5"),
}


@pytest.mark.parametrize("what", ODD)
def test_odd_values_are_shown_or_not(port: int, what: str) -> None:
    code, text = ODD[what]
    result = run(port, code, timeout_ms=20_000, limits={"open_files": 64})
    assert result["text"] == text, result
    json.dumps(result).encode()


ENDLESS = {
    "sleeps": one("__repr__", "time.sleep(1000)"),
    "never ends": one("__repr__", "while True: pass"),
    "never ends in C": one("__repr__", "range(1 << 62).__contains__(object())"),
    "wants memory": one("__repr__", "return 'x' * (1 << 40)"),
    "leaves": one("__repr__", "os._exit(4)"),
    "dies": one("__repr__", "os.abort()"),
    "forks": one("__repr__", "os.fork()", "return 'forked'"),
    "closes its socket": one("__repr__", "os.close(1000)", "return 'x'"),
    "shows itself": one("__repr__", "display(self)", "return 'x'"),
}


@pytest.mark.parametrize("what", ENDLESS)
def test_a_repr_is_a_part_of_its_program(port: int, what: str) -> None:
    result = run(port, ENDLESS[what], timeout_ms=2000)
    if what in ("sleeps", "never ends", "never ends in C"):
        assert result["status"] == "timeout", result
    elif what in ("leaves", "dies", "closes its socket"):
        assert result["status"] == "killed", result
    elif what == "forks":
        assert result["text"] == "forked" and len(result["results"]) == 1, result
    assert execute(port, "1", profile="base")["stdout"] == "1\n"


# ---------------------------------------------------------------------------- who pays


def charged_mb(port: int) -> float:
    """The charge is measured when somebody wants memory."""
    assert execute(port, "1", profile="base")["status"] == "ok"
    text = ask(port, "GET", "/metrics").body.decode()
    found = re.findall(r"^cloche_memory_charged_bytes (\S+)$", text, re.MULTILINE)
    return float(found[0]) / MB


def grown_mb(port: int) -> float:
    """What is charged more after a program has shown 24 MB of text."""
    code = """
large = bytearray(150 << 20)
del large
print("there", flush=True)
input()
for i in range(6): display({"text/plain": "x" * 4_000_000}, raw=True)
input()
"""
    with Socket(port, path="/v1/run") as ws:
        ws.say(code=code, timeout_ms=60_000, profile="base", limits={"memory_mb": 400})
        until(ws, "stdout")
        before = charged_mb(port)
        ws.say(type="stdin", value="go")
        for _ in range(6):
            until(ws, "display")
        grown = charged_mb(port) - before
        ws.say(type="stdin", value="go")
        until(ws, "end")
        ws.goodbye()
    return grown


def test_what_is_kept_counts_as_its_memory(port: int) -> None:
    """Three times, since something of another test may end meanwhile, and is charged no more."""
    assert eventually(lambda: charged_mb(port) < 60)
    assert max(grown_mb(port) for _ in range(3)) > 15


def until(ws: Socket, kind: str) -> dict[str, Any]:
    message = ws.hear()
    while message["type"] != kind:
        message = ws.hear()
    return message


def test_to_hear_it_is_its_processor_time(port: int) -> None:
    """What takes the server a second to read is on its bill."""
    code = "for i in range(8): display({'x': [0] * 190_000}, raw=True)"
    result = run(port, code, timeout_ms=60_000, limits={"cpu_seconds": 60})
    alone = run(port, code.replace("display", "str"), timeout_ms=60_000)
    assert result["status"] == "ok"
    assert result["usage"]["cpu_ms"] > alone["usage"]["cpu_ms"]

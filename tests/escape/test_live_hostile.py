"""Hostile code in live kernels: what it says to the server harms its own kernel only, and it
reaches no more than a program that runs once. Another kernel of the same sandbox and a sandbox of
somebody else live through every test."""

from __future__ import annotations

import ctypes
import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import answers
from client import MESSAGES, WIRE_VERSION
from family import Family, one
from harness import LiveService, eventually
from hostile import HELPER, Program, fits
from live import Box, Client, error
from raw_http import resident_mb

HERE = Path(__file__).resolve().parent
GROWTH_MB = 250.0  # what is kept of recent executions included

TOOLS = f"""
import array, fcntl, json, os, socket, struct
numbers = {json.dumps({name: MESSAGES[name] for name in MESSAGES})}
control = socket.socket(fileno=os.dup(1000))
live = input.__globals__
channel = live['channel']
def frame(name, payload=b''):
    return struct.pack('=HH', numbers[name], {WIRE_VERSION}) + payload
def blob(data):
    return struct.pack('=I', len(data)) + data
def text(value):
    return (value if isinstance(value, bytes) else json.dumps(value).encode())
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
def event(ev, **members):
    return {{'ev': ev, 'id': channel.id, **members}}
"""


@pytest.fixture
def box(live_service: LiveService) -> Iterator[Box]:
    client = Client(live_service.port)
    with client.box() as neighbour, client.box() as made:
        neighbour.run("mine = 'neighbour'")
        other = made.kernel()
        made.run("mine = 'other'", kernel_id=other)
        assert made.run(TOOLS)["status"] == "ok"
        before = resident_mb(live_service)
        yield made
        if made.ask("GET").status == 200:
            assert made.text("mine", kernel_id=other) == "'other'"
            assert made.text("40 + 2") == "42"
        assert neighbour.text("mine") == "'neighbour'"
        if "asan" not in str(live_service.caller.command()[0]):
            assert resident_mb(live_service) - before < GROWTH_MB


# ---------------------------------------------------------------------------- what it says

DEADLY = {
    "no JSON": "say(b'x' * 100)",
    "nothing": "control.send(frame('K_SAY', blob(b'')))",
    "a list": "say([1, 2])\nsay(b'[1, ')",
    "bytes that are no text": 'say(b\'{"ev":"\\xff\\xfe"}\')',
    "deep": "say(b'[' * 60000)",
    "deep in a file": "send_fd(memfd(b'[' * 1000000 + b']' * 1000000))",
    "many values": "send_fd(memfd(b'[' + b'{},' * 5000000 + b'{}]'))",
    "a length that wraps": "control.send(frame('K_SAY', struct.pack('=I', 0xffffffff)))",
    "half a frame": "control.send(frame('K_SAY', struct.pack('=I', 50) + b'x'))",
    "one byte": "control.send(b'x')",
    "another version": "control.send(struct.pack('=HH', numbers['K_SAY'], 99))",
    "an unknown message": f"control.send(struct.pack('=HH', 60000, {WIRE_VERSION}))",
    "a message for the warden": "control.send(frame('W_END', struct.pack('=Q', 1)))",
    "a message for init": "control.send(frame('I_KILL'))",
    "ready again": "control.send(frame('K_READY'))",
    "done of a program": "control.send(frame('K_DONE', b'\\0' * 40))",
    "a file of the host": "send_fd(os.open('/usr/bin/env', 0))",
    "a file that says nothing": "send_fd(memfd(b'nothing'))",
    "a pipe": "send_fd(os.pipe()[0])",
    "a directory": "send_fd(os.open('/', 0))",
    "a terminal of nobody": "send_fd(os.open('/dev/zero', 0))",
    "a file that is too large": "send_fd(memfd(b' ' * (30 << 20)))",
    "an empty file": "send_fd(memfd(b''))",
    "its own socket": "send_fd(1000)",
    "more descriptors than fit": "send_fd(*[1] * 60)",
}


@pytest.mark.parametrize("what", DEADLY)
def test_a_kernel_that_says_nonsense(box: Box, what: str) -> None:
    code = DEADLY[what].replace("\n", "\n    ")
    result = box.run(
        f"try:\n    {code}\nexcept OSError as e: print(e)\n"
        "import time\nwhile True: time.sleep(1)",
        timeout_ms=3000,
    )
    assert result["status"] in ("killed", "timeout"), result
    if result["status"] == "killed":
        assert result["error"]["name"] == "KernelDied" and result["signal"] == 9


# What counts is the server's own copy of such a file, so nobody has to keep it from changing.
FILES = {
    "an unsealed file": "send_fd(memfd(text(event('done', status='ok')), 0))",
    "a file that may shrink": "send_fd(memfd(text(event('done', status='ok')), 8))",
    "a file of the workspace": "open('f', 'wb').write(text(event('done', status='ok')))\n"
    "send_fd(os.open('f', 0))",
}


@pytest.mark.parametrize("what", FILES)
def test_a_kernel_may_say_it_in_any_file_of_memory(box: Box, what: str) -> None:
    result = box.run(FILES[what], timeout_ms=30_000)
    assert result["status"] in ("ok", "killed"), result
    assert box.text("1 + 1") == "2"


def test_a_traceback_has_a_bound_if_its_lines_are_empty(box: Box) -> None:
    lines = "event('error', name='E', value='', traceback=[''] * 400_000)"
    result = box.run(f"send_fd(memfd(text({lines})))", timeout_ms=30_000)
    assert result["error"]["name"] == "E" and len(result["error"]["traceback"]) < 5000


HARMLESS = {
    "an object of nothing": "say({})",
    "an unknown event": "say(event('unheard of'))",
    "an event of nobody": "say({'ev': 'display', 'id': 'other', 'data': {'text/plain': 'lie'}})",
    "wrong types": "say(event('display', data=[1], metadata='x', display_id=5, update='yes'))\n"
    "say(event('error', name=1, value=[], traceback='x'))\nsay(event('clear', wait=[]))\n"
    "say(event('input', prompt={}, password=2))",
    "unasked answers": "say({'ev': 'reply', 'id': '1', 'ok': True, 'result': 'lie'})\n"
    "say({'ev': 'reply', 'id': -5})\nsay({'ev': 'reply'})",
    "many displays": "for i in range(5000): say(event('display', data={'text/plain': 'x' * 1000}))",
    "large displays": "fd = memfd(text(event('display', data={'text/plain': 'x' * (8 << 20)})))\n"
    "for i in range(5): send_fd(fd)",
    "many values": "fd = memfd(text(event('display', data={'application/json': [[]] * 400000})))\n"
    "for i in range(5): send_fd(fd)",
    "many answers wanted": "for i in range(100): say({'ev': 'x', 'go': i})",
}


@pytest.mark.parametrize("what", HARMLESS)
def test_a_kernel_that_says_too_much(box: Box, what: str) -> None:
    result = box.run(HARMLESS[what] + "\nprint('done')")
    assert result["status"] in ("ok", "killed"), result
    assert "lie" not in json.dumps(result["results"])
    assert len(json.dumps(result["results"])) < 40 << 20


def test_a_kernel_that_wants_answers_and_never_reads(box: Box) -> None:
    code = "while True: say({'ev': 'x', 'go': 1})"
    result = box.run(code, timeout_ms=20000)
    assert result["status"] == "killed" and "does not listen" in result["error"]["value"]


@pytest.mark.parametrize(
    "code, words",
    [
        ("while True: say({'ev': 'x', 'go': 1})", "does not listen"),
        ("os._exit(7)", "status 7"),
        ("os.kill(os.getpid(), 11)", "signal 11"),
    ],
)
def test_a_death_that_is_told_late(
    live_service: LiveService, box: Box, code: str, words: str
) -> None:
    """The warden tells it; that the kernel hung up is heard before, and is not the reason."""
    with box.stream(f"import os\ninput()\n{code}") as events:
        events.until("input")
        warden = one(lambda: Family(live_service).warden())
        os.kill(warden.pid, signal.SIGSTOP)
        try:
            box.do("/stdin", value="")
            eventually(lambda: False, seconds=2.5)  # longer than one that hung up may go on
        finally:
            os.kill(warden.pid, signal.SIGCONT)
        end = events.until("end").data
    assert end["status"] == "killed" and words in end["error"]["value"], end


def test_others_are_served_while_a_kernel_shouts(box: Box) -> None:
    code = (
        "fd = memfd(text(event('display', data={'text/plain': 'x' * (15 << 20)})))\n"
        "print('runs', flush=True)\nwhile True: send_fd(fd)"
    )
    with box.stream(code) as stream:
        stream.printed("runs")
        for _ in range(5):
            assert box.client.ask("GET", "/health").status == 200
    assert eventually(lambda: box.get()["kernels"][0]["state"] == "idle")


def test_a_kernel_can_end_its_own_cell_only(box: Box) -> None:
    """It may lie about itself: that is its own result."""
    other = box.get("/kernels")["kernels"][1]["id"]
    with box.stream("input()", kernel_id=other) as stream:
        stream.until("input")
        box.run(f"say({{'ev': 'done', 'id': '{stream.id}', 'status': 'ok', 'execution_count': 9}})")
        box.do("/stdin", value="x", kernel_id=other)
        assert stream.until("end").data["execution_count"] == 2
    box.run("say(event('done', status='ok', execution_count=77))\nprint('after')")


def test_a_question_is_answered_by_lies_at_most(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        answers, "check", lambda *_: None
    )  # they are not as the specification has it
    box.run("live['ANSWERS']['complete'] = lambda m: 'x' * (5 << 20)")
    assert box.do("/complete", code="a") == "x" * (5 << 20)
    box.run("live['ANSWERS']['inspect'] = lambda m: os._exit(0)")
    error(box.ask("POST", "/inspect", {"code": "a"}), 409, "kernel_failed")


# ---------------------------------------------------------------------------- what it reaches

SAME = [
    "files_libraries",
    "kernel_calls",
    "kernel_cores",
    "kernel_credentials",
    "kernel_notifications",
    "proc_others",
]


@pytest.mark.parametrize("name", SAME)
def test_a_live_kernel_reaches_what_a_program_does(live_service: LiveService, name: str) -> None:
    program = Program.read(name)
    files = [{"path": "attempt.py", "content": HELPER.decode()}]
    with Client(live_service.port).box(files=files) as box:
        result = box.run(program.code, timeout_ms=60000, cpu_seconds=60)
        lines = result["stdout"].splitlines()
        expected = [line.replace("'__main__.py', ", "") for line in program.lines]
        wrong = [pair for pair in zip(lines, expected) if not fits(*pair)]
        assert not wrong and len(lines) == len(expected), (wrong, result)


def test_every_system_call(live_service: LiveService) -> None:
    expected = (HERE / "syscalls.expected").read_text().splitlines()
    with Client(live_service.port).box() as box:
        result = box.run((HERE / "syscalls.py").read_text(), timeout_ms=60000)
    got = result["stdout"].splitlines()
    wrong = [pair for pair in zip(got, expected) if pair[0] != pair[1]]
    assert not wrong and len(got) == len(expected), (wrong, result["stderr"], result["error"])


OTHER = """
import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True)
pid = int(open('pid').read())
def attempt(name, function, *args):
    try:
        r = function(*args)
        if isinstance(r, int) and r == -1: raise OSError(ctypes.get_errno(), 'x')
        print(name, 'DONE')
    except OSError as e:
        print(name, 'refused')
attempt('ptrace', libc.ptrace, 16, pid, 0, 0)
attempt('seize', libc.ptrace, 0x4206, pid, 0, 0)
buffer = ctypes.create_string_buffer(8)
class Vec(ctypes.Structure):
    _fields_ = [('base', ctypes.c_void_p), ('len', ctypes.c_size_t)]
local, remote = Vec(ctypes.addressof(buffer), 8), Vec(id(0), 8)
attempt('read', libc.process_vm_readv, pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)
attempt('write', libc.process_vm_writev, pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)
attempt('mem', os.open, f'/proc/{pid}/mem', os.O_RDWR)
attempt('environ', lambda: open(f'/proc/{pid}/environ').read())
attempt('fd', os.open, f'/proc/{pid}/fd/1000', os.O_RDWR)
attempt('maps', lambda: open(f'/proc/{pid}/maps').read())
attempt('cwd', os.listdir, f'/proc/{pid}/root/')
fd = libc.syscall(434, pid, 0)
attempt('getfd', libc.syscall, 438, fd, 1000, 0)
"""
SIGNALS = """
attempt('stop', os.kill, pid, signal.SIGSTOP)
attempt('kill', os.kill, pid, signal.SIGKILL)
attempt('everyone', os.kill, -1, signal.SIGKILL)
attempt('init', os.kill, 1, signal.SIGKILL)
"""


def landlock_abi() -> int:
    return int(ctypes.CDLL(None).syscall(444, None, 0, 1))


def test_kernels_of_a_sandbox_do_not_reach_into_each_other(box: Box) -> None:
    other = box.get("/kernels")["kernels"][1]["id"]
    box.run("import os\nopen('pid', 'w').write(str(os.getpid()))", kernel_id=other)
    lines = box.run(OTHER)["stdout"].splitlines()
    assert len(lines) == 10 and all(line.endswith(" refused") for line in lines), lines


@pytest.mark.skipif(landlock_abi() < 6, reason="before Linux 6.12 they can signal each other")
def test_kernels_of_a_sandbox_do_not_signal_each_other(box: Box) -> None:
    other = box.get("/kernels")["kernels"][1]["id"]
    box.run("import os\nopen('pid', 'w').write(str(os.getpid()))", kernel_id=other)
    box.run(OTHER)
    lines = box.run(SIGNALS)["stdout"].splitlines()
    everyone = "everyone DONE"  # Linux says so although each was refused; see the fixture
    assert lines == ["stop refused", "kill refused", everyone, "init refused"]


KEEPS = """
got = []
while len(got) < 4:
    data, ends, _, _ = control.recvmsg(100, socket.CMSG_SPACE(16), socket.MSG_PEEK)
    for _, _, fds in ends:
        got += array.array('i', fds)
"""
GROWS = """
def attempt(call, *args):
    try:
        print(call(*args))
    except OSError as e:
        print(type(e).__name__)
for fd in got:
    attempt(os.ftruncate, fd, 1 << 20)
    attempt(os.pwrite, fd, b'x' * 4096, 0)
    attempt(fcntl.fcntl, fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
"""


def test_large_requests_are_not_the_kernels_to_keep(box: Box) -> None:
    """They are files in the server's memory: a kernel that keeps descriptors keeps nothing, and has
    no place there for anything else."""
    body = {"code": "x" * 900_000, "cursor": 1}
    with ThreadPoolExecutor(1) as pool:
        cell = pool.submit(box.run, KEEPS, timeout_ms=60000)
        while not cell.done():  # one that comes before the cell begins is answered at once
            assert box.ask("POST", "/complete", body).status in (200, 409)
        assert cell.result()["status"] == "ok"
    sizes = box.text("[os.fstat(fd).st_blocks for fd in got]")
    assert sizes == "[0, 0, 0, 0]", sizes
    assert box.run(GROWS)["stdout"] == "PermissionError\n" * 4 * 3
    box.run("for fd in got: os.close(fd)")

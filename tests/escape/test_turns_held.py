"""What the server holds for a live sandbox: the journal that the next server reads, answers that it
lends to kernels, what they show, what is typed at their terminals. However much of it a sandbox
has, it takes no long turn, has a bound, and the sandbox pays for it."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator

import pytest

from commands import shell_of, soon
from family import Family, kill, one
from harness import LiveService, eventually
from host import is_alive
from http_client import JSON, Reply, ask
from live import Box, Client, Events, error
from raw_ws import BINARY, CLOSE, PING, TEXT, frame, head
from test_live_hostile import TOOLS
from test_live_talk import server_cpu_s
from turns import IS_ASAN, LONGEST_S, MB, Turns

ANSWER = 15 * MB  # four of them fit


@pytest.fixture
def box(live_service: LiveService) -> Iterator[Box]:
    client = Client(live_service.port)
    with client.box() as neighbour, client.box(limits={"pids": 256, "memory_mb": 1000}) as box:
        neighbour.run("mine = 1")
        yield box
        assert neighbour.text("mine") == "1"
    live_service.check_health()


def paid_s(box: Box) -> float:
    return float(box.get()["usage"]["cpu_ms"]) / 1000


# ---------------------------------------------------------------------------- the journal

KERNELS = 24
# 64 KB for each of them, as a string of JSON in a string of JSON.
LONG_ENV = {"A": '"' * 16_000}
ASKS = (
    TOOLS
    + """
import time
message = frame('K_SAY', blob(text(event('input', prompt='', password=False))))
for i in range(1_000):
    control.send(message)
    time.sleep(0.002)
"""
)


def test_what_lasts_is_not_written_for_every_change(live_service: LiveService, box: Box) -> None:
    """Each question for input is a change that the next server has to know of. To write a megabyte
    and a half for each would take a second and a half."""
    for _ in range(KERNELS):
        box.kernel(env=LONG_ENV)
    turns, before, paid = Turns(box.port), server_cpu_s(live_service), paid_s(box)
    assert box.run(ASKS, timeout_ms=60_000)["status"] == "ok"
    used = server_cpu_s(live_service) - before
    assert used < (8 if IS_ASAN else 0.6), used
    assert turns.longest() <= LONGEST_S
    assert paid_s(box) > paid


# -------------------------------------------------------------------- answers to input()

KEEPS = (
    TOOLS
    + """
keep = []
def ask():
    say(event('input', prompt='', password=False))
    while True:
        ends = control.recvmsg(70_000, 4096)[1]
        for level, kind, data in ends:
            keep.extend(array.array('i', data))
        if ends:
            return
"""
)
KEEPS_SOME = (
    KEEPS
    + """
import time
for i in range(%d):
    ask()
print('kept', flush=True)
while not os.path.exists('go'): time.sleep(0.01)
while any(os.fstat(fd).st_size for fd in keep[:-1]): time.sleep(0.01)
print([os.fstat(fd).st_size for fd in keep[:-1]], os.fstat(keep[-1]).st_size > 0)
"""
)


def answer(box: Box, kernel: str | None = None, size: int = ANSWER) -> Reply:
    body = {"value": "x" * size} | ({"kernel_id": kernel} if kernel else {})
    return ask(box.port, "POST", box.path + "/stdin", json.dumps(body).encode(), JSON)


def keep_one(box: Box, kernel: str) -> Events:
    stream = box.stream(KEEPS_SOME % 1, kernel_id=kernel, on_disconnect="continue")
    stream.until("input")
    return stream


def test_an_answer_is_taken_back_with_the_next(box: Box) -> None:
    with box.stream(KEEPS_SOME % 20, timeout_ms=60_000) as stream:
        for _ in range(20):
            stream.until("input")
            assert answer(box).status == 200
        stream.printed("kept")
        turns = Turns(box.port)
        assert ask(box.port, "PUT", box.path + "/files/go", b"").status == 201
        stream.printed(f"{[0] * 19} True")
        assert stream.until("end").data["status"] == "ok"
    assert eventually(lambda: box.text("[os.fstat(fd).st_size for fd in keep]") == str([0] * 20))
    assert turns.longest() <= LONGEST_S


def test_answers_in_a_sandbox_have_a_maximum(box: Box) -> None:
    with contextlib.ExitStack() as stack:
        kernels = [box.kernel() for _ in range(5)]
        streams = [stack.enter_context(keep_one(box, kernel)) for kernel in kernels]
        for kernel, stream in list(zip(kernels, streams))[:4]:
            assert answer(box, kernel).status == 200
            stream.printed("kept")
        error(answer(box, kernels[4]), 409, "stdin_full", "bytes to read already")
        assert answer(box, kernels[4], 100).status == 200, "a short one is no file"


def test_what_a_killed_server_lent_counts_still(live_service: LiveService) -> None:
    """Nobody can take it back: the kernel has the only descriptor."""
    box = Client(live_service.port).box(limits={"pids": 256, "memory_mb": 1000})
    with contextlib.ExitStack() as stack:
        kernels = [box.kernel() for _ in range(5)]
        streams = [stack.enter_context(keep_one(box, kernel)) for kernel in kernels]
        for kernel, stream in list(zip(kernels, streams))[:4]:
            assert answer(box, kernel).status == 200
            stream.printed("kept")
    server = one(lambda: Family(live_service).server())
    kill(server)
    assert soon(lambda: not is_alive(server))
    refused = eventually(lambda: late(answer(box, kernels[4])))
    error(refused, 409, "stdin_full", "bytes to read already")
    box.delete()


def late(reply: Reply) -> Reply | None:
    """Once the next server has the sandbox."""
    return reply if reply.status != 404 else None


# -------------------------------------------------------------------------- what is shown

SHOWS = (
    TOOLS
    + """
message = frame('K_SAY', blob(text(event('display', data={}, metadata={}))))
for i in range(60_000):
    control.send(message)
"""
)
WAITS = "print('shown', flush=True)\ninput()"


def test_displays_of_an_execution_have_a_maximum(box: Box) -> None:
    turns = Turns(box.port)
    result = box.run(SHOWS, timeout_ms=60_000)
    assert result["status"] == "ok" and len(result["results"]) == 10_000
    assert result["results_truncated"] and any("results" in line for line in result["warnings"])
    assert turns.longest() <= LONGEST_S
    assert len(box.run("display(1)")["results"]) == 1


def test_displays_of_a_sandbox_end_with_it_in_no_long_turn(live_service: LiveService) -> None:
    box = Client(live_service.port).box(limits={"pids": 256, "memory_mb": 1000})
    with contextlib.ExitStack() as stack:
        kernels = [box.kernel() for _ in range(4)]
        code = SHOWS + WAITS
        streams = [box.stream(code, kernel_id=kernel, timeout_ms=60_000) for kernel in kernels]
        for stream in streams:
            stack.enter_context(stream)
            stream.printed("shown")
        turns = Turns(box.port)
        box.delete()
        assert turns.longest() <= LONGEST_S


# ------------------------------------------------------------------------------ terminals


def test_typing_is_paid_for(live_service: LiveService) -> None:
    """Ctrl-R has the terminal print its line once more, all of 4 KB, in a thread of the kernel that
    nobody pays for."""
    with shell_of(live_service) as shell:
        with shell.terminal("stty sane; echo ready; sleep 100") as terminal:
            terminal.sees("ready")
            before = shell.cpu_ms()
            terminal.type("x" * 4000 + "\x12" * 10_000)
            assert soon(lambda: shell.cpu_ms() - before > 150)


# Whatever comes to its stdin wakes all these, and none of them takes it.
MANY_WAIT = b"""
import os, select, time
fds = [os.dup(0) for _ in range(200)]
epolls = [select.epoll() for _ in range(20)]
for epoll in epolls:
    for fd in fds: epoll.register(fd, select.EPOLLIN | select.EPOLLET)
for _ in range(40):
    if os.fork() == 0:
        poll = select.poll()
        for fd in fds: poll.register(fd, select.POLLPRI)
        poll.poll()
time.sleep(1)
print("ready", flush=True)
while os.read(0, 1 << 16): pass
"""


def test_those_whom_typing_wakes_are_paid_for(live_service: LiveService) -> None:
    """Each line wakes them, in a thread of the kernel: 0.1 ms and more."""
    with shell_of(live_service) as shell:
        shell.put("wait.py", MANY_WAIT)
        with shell.terminal("stty sane -echo; exec python3 wait.py") as terminal:
            terminal.sees("ready")
            before = shell.cpu_ms()
            terminal.type("\n" * 1500)
            assert soon(lambda: shell.cpu_ms() - before > 150)


def test_those_whom_a_stdin_wakes_are_paid_for(live_service: LiveService) -> None:
    """In the server's own time, half a millisecond for each write."""
    with shell_of(live_service) as shell:
        shell.put("wait.py", MANY_WAIT)
        command = shell.start(["python3", "wait.py"])
        shell.prints(command, "ready")
        used, paid = server_cpu_s(live_service), shell.cpu_ms()
        for _ in range(500):
            reply = shell.feed(command, data="x")
            assert reply.status < 300, reply
        used = server_cpu_s(live_service) - used
        assert used < 3 * (shell.cpu_ms() - paid) / 1000


def test_what_a_terminal_does_not_take_waits(live_service: LiveService) -> None:
    """Longer than the kernel holds for a program that does not read."""
    with shell_of(live_service) as shell:
        shell.put("count.py", COUNT)
        with shell.terminal("stty raw -echo; python3 count.py") as terminal:
            terminal.sees("ready")
            terminal.type("x" * 200_000)
            assert shell.put("go", b"")
            terminal.sees("all of it")


def test_who_types_too_fast_is_not_read(live_service: LiveService) -> None:
    """What cannot be typed yet stays with the client. To read and to refuse it would take the
    server a whole processor, and the sandbox would not pay."""
    many = 1_300_000
    with shell_of(live_service) as shell:
        shell.put("count.py", COUNT.replace(b"200_000", b"%d" % many))
        shell.put("go", b"")
        with shell.terminal("stty raw -echo; python3 count.py") as terminal:
            terminal.sees("ready")
            used, paid = server_cpu_s(live_service), shell.cpu_ms()
            text = frame(BINARY, b"x" * 100) * (many // 100)
            typist = threading.Thread(target=terminal.send, args=(text,))
            typist.start()
            while b"all of it" not in terminal.shown:
                assert terminal.take().opcode != CLOSE
                assert not [said for said in terminal.texts if said["type"] == "failed"]
            typist.join()
            assert server_cpu_s(live_service) - used < (shell.cpu_ms() - paid) / 1000


MESSAGES = {
    "sizes": frame(TEXT, b'{"type":"resize","rows":24,"cols":80}'),
    "nothing": frame(BINARY),
    "pings": frame(PING),
    "mistakes": frame(TEXT, b'{"type":"what"}'),
}


@pytest.mark.parametrize("of", MESSAGES)
def test_messages_at_a_terminal_are_paid_for(live_service: LiveService, of: str) -> None:
    """Also those that type nothing: the client of a terminal has the server work as fast as it
    likes, and the sandbox pays for it and rests."""
    with shell_of(live_service) as shell, shell.terminal("stty raw; echo ready; cat") as terminal:
        terminal.sees("ready")
        used, paid = server_cpu_s(live_service), shell.cpu_ms()
        text = MESSAGES[of] * 100_000 + frame(BINARY, b"all of it")
        typist = threading.Thread(target=terminal.send, args=(text,))
        typist.start()
        terminal.sees("all of it")
        typist.join()
        used, paid = server_cpu_s(live_service) - used, (shell.cpu_ms() - paid) / 1000
        assert paid > used / 2, (used, paid)


def test_a_message_at_a_terminal_takes_no_long_turn(live_service: LiveService) -> None:
    """It says nothing in many values, and what was typed around it keeps its order."""
    odd = b'{"type":"resize","rows":24,"cols":80,"x":[' + b"{}," * 340_000 + b"{}]}"
    unmasked = head(TEXT, len(odd), masked=True) + bytes(4) + odd
    with shell_of(live_service) as shell, shell.terminal("stty raw; echo ready; cat") as terminal:
        terminal.sees("ready")
        turns = Turns(live_service.port)
        for i in range(3):
            terminal.type(f"before {i}")
            terminal.send(unmasked)
            terminal.say(type="stdin", data=f"behind {i}")
        for i in range(3):
            terminal.sees(f"before {i}")
            terminal.sees(f"behind {i}")
        assert turns.longest() <= LONGEST_S
        assert [said["type"] for said in terminal.texts].count("failed") == 3


COUNT = b"""
import os, time
print('ready', flush=True)
while not os.path.exists('go'): time.sleep(0.01)
n = 0
while n < 200_000:
    n += len(os.read(0, 65536))
print('all of it', flush=True)
"""

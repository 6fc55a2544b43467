"""Many small things that together would hold the server's loop up: frames of WebSockets, messages
of kernels, executions that wait. As in test_turns.py it is the processor time of the loop's turns
that counts."""

from __future__ import annotations

import contextlib
import json
import select
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from http_client import Connection, Reply
from live import Box, Client, error
from raw_ws import PING, PONG, TEXT, Socket, frame
from test_live_hostile import TOOLS
from turns import LONGEST_S, Turns, many_descriptors

END = b"the end"


@pytest.fixture
def box(port: int) -> Iterator[Box]:
    with Client(port).box() as box:
        yield box


# ------------------------------------------------------------------------------- WebSockets


def sends(socket: Socket, what: bytes) -> threading.Thread:
    """It goes on sending while somebody else reads the answers."""
    thread = threading.Thread(target=lambda: socket.send(what + frame(PING, END)))
    thread.start()
    return thread


def reads_to_the_end(socket: Socket) -> None:
    got = b""
    while bytes([0x80 | PONG, len(END)]) + END not in got:
        more = socket.sock.recv(1 << 18)
        assert more, "the server closed it"
        got = got[-16:] + more


def flood(box: Box, unit: bytes, many: int, sockets: int, path: str = "/ws") -> float:
    """The longest turn while each of the sockets says so many of these, and reads what comes."""
    turns = Turns(box.port)
    with contextlib.ExitStack() as stack:
        all_of_them = [
            stack.enter_context(Socket(box.port, path=box.path + path)) for _ in range(sockets)
        ]
        senders = [sends(socket, unit * many) for socket in all_of_them]
        for socket in all_of_them:
            reads_to_the_end(socket)
        for sender in senders:
            sender.join()
    return turns.longest()


def test_a_websocket_that_is_answered_all_the_time_holds_nobody_up(box: Box) -> None:
    assert flood(box, frame(TEXT, b"{}"), 20_000, 1) <= LONGEST_S


def test_websockets_that_are_answered_all_the_time_share_a_turn(box: Box) -> None:
    assert flood(box, frame(TEXT, b"{}"), 1_000, 20) <= LONGEST_S


def test_pings_on_many_websockets_share_a_turn(box: Box) -> None:
    assert flood(box, frame(PING), 20_000, 40) <= LONGEST_S


def test_a_large_message_is_read_between_small_ones(box: Box) -> None:
    text = json.dumps({"type": "execute", "code": "#" * 300_000 + "\nprint(6 * 7)"}).encode()
    with Socket(box.port, path=box.path + "/ws") as socket:
        sender = sends(socket, frame(PING, b"1") * 200 + frame(TEXT, text) + frame(PING, b"2") * 99)
        said, pongs = "", 0
        while "42" not in said or pongs < 300:
            got = socket.frame()
            pongs += got.opcode == PONG
            said += got.payload.decode() if got.opcode == TEXT else ""
        sender.join()


# ---------------------------------------------------------------------------------- kernels

# Each of 64 KB takes a parser some milliseconds.
BABBLE = (
    TOOLS
    + """
message = frame('K_SAY', blob(b'{"ev":"nothing","x":[' + b'0,' * 32_000 + b'0]}'))
for i in range(100):
    control.send(message)
print('said')
"""
)
# As long as they may be and still be read in the loop; the names differ at their ends.
SHOW = (
    TOOLS
    + """
def show(i, update):
    name = 'x' * 3_700 + str(i)
    say(event('display', data={}, metadata={}, display_id=name, update=update))
for i in range(3_000):
    show(i, False)
for i in range(300):
    show(2_999, True)
"""
)


def run_in_all(boxes: list[Box], code: str) -> list[Reply]:
    replies: list[Reply] = []

    def run(box: Box) -> None:
        body = {"code": code, "timeout_ms": 50_000}
        replies.append(box.ask("POST", "/execute", body))

    threads = [threading.Thread(target=run, args=(box,)) for box in boxes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return replies


def test_what_kernels_say_shares_a_turn(port: int) -> None:
    with contextlib.ExitStack() as stack:
        boxes = [stack.enter_context(Client(port).box()) for _ in range(3)]
        turns = Turns(port)
        replies = run_in_all(boxes, BABBLE)
        assert turns.longest() <= LONGEST_S
    assert [reply.json["stdout"] for reply in replies] == ["said\n"] * 3, replies


def test_to_find_a_display_takes_no_time(box: Box) -> None:
    turns = Turns(box.port)
    (reply,) = run_in_all([box], SHOW)
    assert reply.json["status"] == "ok", reply.json
    assert turns.longest() <= LONGEST_S


# What a kernel says in files of 20 MB is read one after the other, and slowly.
LARGE = (
    TOOLS
    + """
import time
large = memfd(b'{"ev":"nothing","x":"' + rb'\\u0041' * 3_300_000 + b'"}')
"""
)
TWICE = "send_fd(large), send_fd(large)"
LEAVES = """
if os.fork():
    os._exit(0)
time.sleep(60)
"""


@pytest.mark.parametrize("deletes", ["kernel", "sandbox"])
def test_a_kernel_leaves_while_what_it_said_is_being_read(port: int, deletes: str) -> None:
    """Its child has the socket, so there is more to read when its end is told."""
    with contextlib.ExitStack() as stack:
        boxes = [stack.enter_context(Client(port).box()) for _ in range(4)]
        for box in boxes:
            assert box.run(LARGE)["status"] == "ok"
        with Client(port).box() as target:
            kernel = target.kernel()
            assert target.run(LARGE, kernel_id=kernel)["status"] == "ok"
            others = [threading.Thread(target=box.run, args=(TWICE,)) for box in boxes]
            for other in others:
                other.start()
            assert target.run(TWICE + LEAVES, kernel_id=kernel)["status"] == "killed"
            if deletes == "kernel":
                assert target.ask("DELETE", f"/kernels/{kernel}").status == 204
        for other in others:
            other.join()


# ------------------------------------------------------------------------- those who follow


# All of them behind by all of it hold less than --replies-mb: nobody is cut, however slow we are.
FOLLOWERS = 200
# Each piece is 120 KB of JSON for each of them.
PRINTS = """
import sys
input()
for i in range(5):
    sys.stdout.write('\\n' * 60_000)
    sys.stdout.flush()
"""


def follow(box: Box, execution: str) -> Connection:
    connection = Connection(box.port)
    path = f"/v1/executions/{execution}/events?after=0"
    connection.send("GET", path, None, box.client.headers | {"Accept": "text/event-stream"})
    assert connection.head().status == 200
    return connection


def read_all(followers: list[Connection]) -> list[bytearray]:
    """What comes to each of them until its end."""
    got = {f.sock.fileno(): bytearray() for f in followers}
    waiting = {f.sock.fileno(): f for f in followers}
    poll = select.epoll()
    for fd in waiting:
        poll.register(fd, select.EPOLLIN)
    while waiting:
        ready = poll.poll(20)
        assert ready, f"{len(waiting)} of them hear no more"
        for fd, _ in ready:
            piece = waiting[fd].sock.recv(1 << 20)
            assert piece, f"cut after {len(got[fd])} bytes: {bytes(got[fd][-100:])!r}"
            got[fd] += piece
            if got[fd].endswith(b"0\r\n\r\n"):
                poll.unregister(fd)
                del waiting[fd]
    return list(got.values())


def test_those_who_follow_an_execution_share_a_turn(box: Box) -> None:
    with many_descriptors(), contextlib.ExitStack() as stack:
        stream = stack.enter_context(box.stream(PRINTS))
        stream.until("input")
        followers = [stack.enter_context(follow(box, stream.id)) for _ in range(FOLLOWERS)]
        turns = Turns(box.port)
        with ThreadPoolExecutor(1) as pool:
            reading = pool.submit(read_all, followers)
            assert box.ask("POST", "/stdin", {"value": ""}).status < 300
            stream.until("end")
            got = reading.result()
        assert turns.longest() <= LONGEST_S
    assert all(b"event: end" in said for said in got)
    assert all(said.count(rb"\n") > 299_900 for said in got)  # chunks may cut some in two


# --------------------------------------------------------------------------- those who wait


def test_what_waits_in_a_sandbox_ends_in_no_long_turn(port: int) -> None:
    with Client(port).box() as box, contextlib.ExitStack() as stack:
        kernels = [box.made["kernels"][0]["id"]] + [box.kernel() for _ in range(3)]
        for kernel in kernels:
            stream = stack.enter_context(box.stream("input()", kernel_id=kernel))
            stream.until("input")
        later = {"code": "1", "on_disconnect": "continue"}
        for i in range(256):
            stack.enter_context(box.stream("1", kernel_id=kernels[i % 4], on_disconnect="continue"))
        refused = box.ask("POST", "/execute", later | {"kernel_id": kernels[0]})
        error(refused, 503, "queue_full", "256 executions wait already in this sandbox")
        turns = Turns(port)
        box.delete()
        assert turns.longest() <= LONGEST_S

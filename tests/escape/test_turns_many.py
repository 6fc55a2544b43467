"""Many who do the same at once: each takes little of the server's loop, and all of them together
take their share of a turn. As in test_turns.py it is the processor time of the loop's turns that
counts."""

from __future__ import annotations

import contextlib
import json
import select
import threading
from collections.abc import Callable, Iterator

import pytest

from harness import LiveService, eventually
from http_client import JSON, ask
from jupyter import Jupyter, printed
from live import Box, Client
from raw_ws import TEXT, Socket, frame
from test_live_hostile import TOOLS
from turns import FEW_S, LONGEST_S, Turns, many_descriptors

BOXES, KERNELS = 4, 10  # of each


@pytest.fixture
def kernels(port: int) -> Iterator[list[tuple[Box, str]]]:
    with contextlib.ExitStack() as stack:
        limits = {"pids": 256, "memory_mb": 1000}
        boxes = [stack.enter_context(Client(port).box(limits=limits)) for _ in range(BOXES)]
        yield [(box, box.kernel()) for box in boxes for _ in range(KERNELS)]


# ---------------------------------------------------------------------------- those who print

# Each byte is six in JSON.
PRINTS = r"""
import os
stream = 1 if os.fork() else 2
for i in range(12):
    os.write(stream, b'\x01' * 65_536)
if stream == 2:
    os._exit(0)
os.wait()
"""


def test_kernels_that_print_share_a_turn(port: int, kernels: list[tuple[Box, str]]) -> None:
    turns = Turns(port)
    fields = {"timeout_ms": 50_000, "output_bytes": 16 << 20}
    running = [box.later(PRINTS, kernel_id=kernel, **fields) for box, kernel in kernels]
    for connection in running:
        reply = connection.reply()
        assert reply.json["status"] == "ok", reply.json["status"]
        assert len(reply.json["stdout"]) == 12 * 65_536
    assert turns.longest() <= LONGEST_S


# ------------------------------------------------------------------------------ those who end

# As much as the server takes, and then what the socket takes; when all have done that, all end.
LAST_WORDS = (
    TOOLS
    + """
import signal, time
message = frame('K_SAY', blob(b'{"ev":"nothing","x":[' + b'{},' * 1_350 + b'0]}'))
control.setblocking(False)
def fill():
    try:
        while True:
            control.send(message)
    except BlockingIOError:
        pass
fill()
open(f'full-{os.getpid()}', 'w').close()
while not os.path.exists('go'):
    time.sleep(0.01)
    fill()
os.kill(os.getpid(), signal.SIGKILL)
"""
)
GO = f"""
import glob, time
while len(glob.glob('full-*')) < {KERNELS}:
    time.sleep(0.01)
open('go', 'w').close()
"""


def test_kernels_that_end_together_share_a_turn(port: int, kernels: list[tuple[Box, str]]) -> None:
    turns = Turns(port)
    running = [
        box.later(LAST_WORDS, kernel_id=kernel, timeout_ms=50_000) for box, kernel in kernels
    ]
    for box in {box.path: box for box, _ in kernels}.values():
        assert box.run(GO, timeout_ms=50_000)["status"] == "ok"
    for connection in running:
        assert connection.reply().json["status"] == "killed"
    assert turns.longest() <= LONGEST_S


# ---------------------------------------------------------------------------- those who follow

FOLLOWERS = 500
# Each is a few hundred KB of JSON, or nothing but many small messages.
SAYS = {
    "large": r"for i in range(10): print(chr(1) * 30_000)",
    "small": "for i in range(1_500): show({}, raw=True)",
}
SHOW = "from IPython.display import display as show\n"


@contextlib.contextmanager
def read_by_somebody(sockets: list[Socket]) -> Iterator[None]:
    """Whatever comes is read, and thrown away."""
    over = threading.Event()

    def read() -> None:
        poll = select.epoll()
        left = {socket.sock.fileno(): socket for socket in sockets}
        for fd in left:
            poll.register(fd, select.EPOLLIN)
        while not over.is_set():
            for fd, _ in poll.poll(0.1):
                if not left[fd].sock.recv(1 << 20):
                    poll.unregister(fd)

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("says", SAYS)
@pytest.mark.parametrize("reads", [True, False])
def test_websockets_that_follow_share_a_turn(port: int, says: str, reads: bool) -> None:
    with many_descriptors(), contextlib.ExitStack() as stack:
        box = stack.enter_context(Client(port).box())
        stream = stack.enter_context(box.stream(SHOW + "input()\n" + SAYS[says], timeout_ms=50_000))
        stream.until("input")
        sockets = [
            stack.enter_context(Socket(port, path=box.path + "/ws")) for _ in range(FOLLOWERS)
        ]
        for socket in sockets:
            socket.say(type="resume", execution_id=stream.id, after=0)
        turns = Turns(port)
        with read_by_somebody(sockets if reads else []):
            assert box.ask("POST", "/stdin", {"value": ""}).status < 300
            stream.until("end")
            assert turns.longest() <= LONGEST_S
        for socket in sockets:
            socket.sock.close()
        assert turns.longest() <= LONGEST_S


@pytest.mark.parametrize("says", SAYS)
@pytest.mark.parametrize("reads", [True, False])
def test_clients_of_a_jupyter_kernel_share_a_turn(port: int, says: str, reads: bool) -> None:
    server = Jupyter(port)
    others = {box["id"] for box in server.client.listed()["sandboxes"]}
    kernel = server.kernel()
    with many_descriptors(), contextlib.ExitStack() as stack:
        path = f"/api/kernels/{kernel}/channels?session_id="
        sockets = [stack.enter_context(Socket(port, path=path + str(i))) for i in range(FOLLOWERS)]
        turns = Turns(port)
        with read_by_somebody(sockets if reads else []):
            with server.open(kernel) as runs:
                runs.ok(SHOW + SAYS[says])
            (made,) = {box["id"] for box in server.client.listed()["sandboxes"]} - others
            assert server.ask("DELETE", f"/v1/sandboxes/{made}").status == 204  # all are told
            assert turns.longest() <= LONGEST_S


def test_what_one_request_leads_to_goes_to_all_in_many_turns(port: int) -> None:
    """A cell that fails ends all that wait behind it: three messages for each, for everybody."""
    server = Jupyter(port)
    kernel = server.kernel("base-isolated")
    with many_descriptors(), contextlib.ExitStack() as stack:
        path = f"/api/kernels/{kernel}/channels?session_id="
        sockets = [stack.enter_context(Socket(port, path=path + str(i))) for i in range(FOLLOWERS)]
        with read_by_somebody(sockets), server.open(kernel) as runs:
            runs.start("import time\nprint('on', flush=True)\nwhile True: time.sleep(1)")
            runs.until(printed("on"))
            behind = [runs.start("1") for _ in range(200)]
            runs.ask("kernel_info_request")  # all are there
            turns = Turns(port)
            assert server.ask("POST", f"/api/kernels/{kernel}/interrupt").status == 204
            for ident in behind:
                assert runs.finish(ident).reply["status"] == "aborted"
            assert turns.longest() <= FEW_S
        assert server.ask("DELETE", f"/api/kernels/{kernel}").status == 204


QUESTIONS = 100_000  # each has two messages for everybody


def question(ident: str) -> bytes:
    header = {"msg_id": ident, "msg_type": "kernel_info_request"}
    asks = {"channel": "shell", "header": header, "metadata": {}, "content": {}}
    return frame(TEXT, json.dumps(asks).encode())


def leaves_much_behind(port: int) -> Turns:
    """A client has hundreds of thousands of messages to read, and leaves. Since then."""
    server = Jupyter(port)
    kernel = server.kernel()
    path = f"/api/kernels/{kernel}/channels?session_id=a"
    with Socket(port, path=path, rcvbuf=4096) as socket, server.open(kernel) as other:
        text = question("one of them") * QUESTIONS + question("the last")
        asks = threading.Thread(target=other.socket.send, args=(text,))
        asks.start()
        seen = b""
        while b"the last" not in seen:
            seen = seen[-100:] + other.socket.sock.recv(1 << 20)
        asks.join()
        turns = Turns(port)
        socket.sock.close()
        assert eventually(lambda: server.get(f"/api/kernels/{kernel}")["connections"] == 1)
    return turns


def test_a_client_that_leaves_much_behind_makes_no_long_turn(
    start_live: Callable[..., LiveService],
) -> None:
    """Hundreds of thousands of small pieces are freed, and the allocator does not put them together
    in one go. Nor does it move a large body that comes to where they were, again and again."""
    port = start_live("--reply-buffer-kb", "524288", "--replies-mb", "1024").port
    turns = leaves_much_behind(port)
    for _ in range(20):
        assert ask(port, "POST", "/v1/execute", b"x" * 5_000, JSON).status == 422
    assert turns.longest() <= FEW_S
    large = b'{"code":"pass","x":"%s"}' % (b"x" * (60 << 20))
    for _ in range(3):
        assert ask(port, "POST", "/v1/execute", large, JSON).status == 200
    assert turns.longest() <= FEW_S

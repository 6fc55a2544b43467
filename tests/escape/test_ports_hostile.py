"""Servers inside that mean harm, and clients that use them for that: whoever else asks is answered
as before, and what was taken comes back."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Iterator

import pytest

from harness import LiveService, checked, eventually, settled
from inside import OK, PORT, Inside, raw_request, refused
from keyed_live import KeyedLive
from live import Client
from raw_http import Raw, ask, request, resident_mb
from turns import IS_ASAN, LONGEST_S, Turns

PLAIN = OK + b"Content-Length: 2\r\n\r\nhi"
MOST_MB = 400 if IS_ASAN else 64  # sanitizers keep what was freed for a while
# A server in one thread, for many connections: what it does with each is the code in BODY.
MANY = """
import socket, threading
taken = []
def many():
    server = socket.create_server(("127.0.0.1", %d))
    while True:
        c = server.accept()[0]
        taken.append(c)
        try:
            %s
        except OSError:
            pass
threading.Thread(target=many, daemon=True).start()
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    directory = tmp_path_factory.mktemp("ports")
    options = ["--profiles", "base", "--ports-connect-s", "3", "--ports-answer-s", "2"]
    yield from settled(LiveService(directory, *options, "--ports-idle-s", "2"))


@pytest.fixture
def box(service: LiveService) -> Iterator[Inside]:
    with Inside(Client(service.port)) as made:
        yield made


@pytest.fixture(autouse=True)
def nothing_is_left(service: LiveService) -> Iterator[LiveService]:
    yield from checked(service)


def many(box: Inside, code: str) -> None:
    box.python(MANY % (PORT, code))
    assert eventually(lambda: box.ports() == [PORT])


@contextlib.contextmanager
def connected(box: Inside, n: int, data: bytes = b"") -> Iterator[list[Raw]]:
    held = [raw_request(box.port, data or request("GET", box.at("/"))) for _ in range(n)]
    try:
        yield held
    finally:
        for raw in held:
            raw.sock.close()


# ---------------------------------------------------------------------------- time


def test_a_server_that_accepts_nothing(box: Inside) -> None:
    box.python(
        "s = socket.create_server(('127.0.0.1', %d), backlog=0)\n"
        "full = []\n"
        "for _ in range(4):\n"
        "    c = socket.socket(); c.setblocking(False); c.connect_ex(('127.0.0.1', %d))\n"
        "    full.append(c)" % (PORT, PORT)
    )
    refused(box.ask_inside(), 504, "port_timeout", "accepts no connection")


@pytest.mark.parametrize("says", [[], [b"HTTP/1.1 "], [b"HTTP/1.1 100 Wait\r\n\r\n"] * 9])
def test_a_server_that_never_answers(box: Inside, says: list[bytes]) -> None:
    box.serve([*says, 3600])
    refused(box.ask_inside(), 504, "port_timeout", "does not answer")


def test_a_server_that_says_a_byte_now_and_then(box: Inside) -> None:
    """The head has its time in all."""
    box.serve([step for _ in range(100) for step in (b"H", 0.2)])
    refused(box.ask_inside(), 504, "port_timeout", "does not answer")


def test_a_server_that_stops_in_the_middle(box: Inside) -> None:
    box.serve([OK + b"Content-Length: 5\r\n\r\nhe", 3600])
    with raw_request(box.port, request("GET", box.at("/"))) as raw:
        assert raw.head().status == 200
        assert raw.ends() == b"he"


def test_a_tunnel_that_is_quiet(box: Inside) -> None:
    box.serve([b"HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: own\r\n\r\n", 3600])
    headers = ("Connection: Upgrade", "Upgrade: own")
    with raw_request(box.port, request("GET", box.at("/"), *headers)) as raw:
        assert raw.head().status == 101
        assert raw.ends() == b""


def test_a_server_that_never_reads(box: Inside) -> None:
    box.serve(["deaf", 3600])
    with raw_request(box.port, request("PUT", box.at("/"), "Content-Length: 99999999")) as raw:
        with contextlib.suppress(OSError):
            raw.sock.sendall(bytes(99_999_999))
        refused(raw.reply(), 504, "port_timeout")


# ---------------------------------------------------------------------------- turns


@pytest.mark.parametrize(
    "head, again",
    [("", "bytes(1 << 20)"), ("Transfer-Encoding: chunked\\r\\n", "b'1\\r\\nx\\r\\n' * 100000")],
    ids=["flood", "tiny chunks"],
)
def test_servers_that_never_stop(service: LiveService, box: Inside, head: str, again: str) -> None:
    box.python(f"def go_on(c):\n    while True: c.sendall({again})")
    many(
        box,
        f"c.recv(9999); c.sendall(b'HTTP/1.1 200 OK\\r\\n{head}\\r\\n'); "
        "threading.Thread(target=go_on, args=(c,), daemon=True).start()",
    )
    turns, before = Turns(service.port), resident_mb(service)
    over = threading.Event()

    def read(raw: Raw) -> None:
        with contextlib.suppress(OSError):
            while not over.is_set() and raw.sock.recv(1 << 20):
                pass

    with connected(box, 16) as held:
        readers = [threading.Thread(target=read, args=(raw,)) for raw in held[:8]]
        for reader in readers:
            reader.start()
        assert eventually(lambda: turns.many() > 1000)
        assert ask(service, request("GET", "/health")).status == 200
        assert resident_mb(service) - before < MOST_MB, "half of them do not read"
        over.set()
    for reader in readers:
        reader.join()
    assert turns.longest() <= LONGEST_S


def test_heads_that_take_long_to_read(service: LiveService, box: Inside) -> None:
    many(box, "c.recv(9999); c.sendall(b'HTTP/1.1 200 OK\\r\\n' + b'A: b\\r\\n' * 6000)")
    turns = Turns(service.port)
    for _ in range(10):
        with connected(box, 10) as held:
            for raw in held:
                refused(raw.reply(), 502, "port_bad_answer", "headers|32 KiB")
    assert turns.longest() <= LONGEST_S


def test_a_server_that_resets_at_every_point(box: Inside) -> None:
    answers = [PLAIN[:n] for n in range(0, len(PLAIN), 3)]
    box.python(
        "import struct\n"
        f"answers = {answers!r}\n"
        "def resets():\n"
        f"    s = socket.create_server(('127.0.0.1', {PORT}))\n"
        "    for answer in answers:\n"
        "        c = s.accept()[0]\n"
        "        c.recv(9999); c.sendall(answer)\n"
        "        c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))\n"
        "        c.close()\n"
        "    s.close()\n"
        "threading.Thread(target=resets, daemon=True).start()"
    )
    assert eventually(lambda: box.ports() == [PORT])
    for _ in answers:
        with raw_request(box.port, request("GET", box.at("/"))) as raw:
            raw.more()
            assert raw.got[:12] in (b"", b"HTTP/1.1 502", b"HTTP/1.1 200")


# ---------------------------------------------------------------------------- elsewhere


def test_a_port_is_never_the_hosts(service: LiveService, box: Inside) -> None:
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        with socket.socket(family) as server:
            server.bind((host, 0))
            server.listen()
            server.settimeout(0.2)
            port = server.getsockname()[1]
            refused(box.ask_inside(port=port), 502, "port_closed")
            with pytest.raises(TimeoutError):
                server.accept()
    refused(box.ask_inside(port=service.port), 502, "port_closed")


def test_a_thousand_ports(service: LiveService, box: Inside) -> None:
    for port in range(20000, 21000):
        refused(box.ask_inside(port=port), 502, "port_closed")
    box.python("many = [socket.create_server(('', 30000 + i)) for i in range(200)]")
    assert box.ports() == [30000 + i for i in range(200)]
    turns = Turns(service.port)
    for _ in range(20):
        box.ports()
    assert turns.longest() <= LONGEST_S


def test_another_tenants_port(tmp_path_factory: pytest.TempPathFactory) -> None:
    service = KeyedLive(tmp_path_factory.mktemp("keyed"))
    try:
        with Inside(service.client(0)) as box:
            box.serve(PLAIN)
            assert box.ask_inside().body == b"hi"
            refused(service.client(1).ask("GET", box.at("/")), 404, "no_such_sandbox")
            refused(service.client(1).ask("GET", box.path + "/ports"), 404, "no_such_sandbox")
            refused(Client(service.port).ask("GET", box.at("/")), 401, "no_key")
            assert box.python("len(heard)") == "1"
            assert service.keys[0].encode() not in box.heard()
    finally:
        service.stop()


SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize(
    "lines, body",
    [
        (["Content-Length: 5", "Transfer-Encoding: chunked"], b"0\r\n\r\n" + SMUGGLED),
        (["Content-Length: 0", "Content-Length: 40"], SMUGGLED),
        (["Transfer-Encoding: chunked, identity"], b"0\r\n\r\n" + SMUGGLED),
        (["Transfer-Encoding:\tchunked", "Content-Length: 5"], b"0\r\n\r\n" + SMUGGLED),
        (["Transfer-Encoding: chunked"], b"0\r\nContent-Length: 40\r\n\r\n" + SMUGGLED),
        (["Transfer-Encoding: chunked"], b"0\n\n" + SMUGGLED),
        (["Connection: content-length", "Content-Length: 35"], SMUGGLED),
        (["Connection: host, x-forwarded-host", "Content-Length: 35"], SMUGGLED),
        (["X: a\rTransfer-Encoding: chunked"], SMUGGLED),
    ],
)
def test_nothing_is_smuggled_in(box: Inside, lines: list[str], body: bytes) -> None:
    """Each connection inwards has one request, whatever came."""
    box.serve(PLAIN)
    with raw_request(box.port, request("POST", box.at("/"), *lines) + body) as raw:
        raw.half_close()
        raw.ends()
    for number in range(int(box.python("len(heard)"))):
        head, _, rest = box.heard(number).partition(b"\r\n\r\n")
        assert head.startswith((b"POST / HTTP/1.1\r\nHost: localhost:", b"GET /")), head
        assert b"smuggled" not in head and len(re.findall(rb"(?i)\ncontent-length", head)) < 2
        assert head.lower().count(b"\nhost:") == 1
        length = re.search(rb"(?i)\ncontent-length: (\d+)", head)
        assert b"smuggled" not in rest or length and int(length[1]) == len(rest)


@pytest.mark.parametrize("field", ["A\r\nSet-Cookie: b=c", "A: b\nSet-Cookie: c=d", "A: b\0"])
def test_nothing_is_smuggled_out(box: Inside, field: str) -> None:
    box.serve(OK + field.encode() + b"\r\nContent-Length: 2\r\n\r\nhi")
    with raw_request(box.port, request("GET", box.at("/"))) as raw:
        assert b"Cookie" not in raw.reply().body


def test_a_server_that_comes_and_goes(box: Inside) -> None:
    """As we connect."""
    box.python(
        "stop = []\n"
        "def flicker():\n"
        "    while not stop:\n"
        f"        s = socket.create_server(('127.0.0.1', {PORT}))\n"
        "        s.close()\n"
        "flickering = threading.Thread(target=flicker, daemon=True)\n"
        "flickering.start()"
    )
    for _ in range(300):
        assert box.ask_inside().status in (502, 504)
    box.python("stop.append(1); flickering.join()")
    box.serve(PLAIN)
    assert box.ask_inside().body == b"hi"


def test_a_program_that_meets_our_connection_half_way(box: Inside) -> None:
    """Without listening: it connects to where we may come from, as we connect to it."""
    box.python(
        "stop = []\n"
        "def meet():\n"
        "    while not stop:\n"
        "        for to in range(32768, 61000, 7):\n"
        "            c = socket.socket(); c.setblocking(False)\n"
        "            c.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
        "            try:\n"
        f"                c.bind(('127.0.0.1', {PORT})); c.connect_ex(('127.0.0.1', to))\n"
        "            except OSError: pass\n"
        "            c.close()\n"
        "            if stop: break\n"
        "threading.Thread(target=meet, daemon=True).start()"
    )
    for _ in range(100):
        assert box.ask_inside().status in (502, 504)
    box.python("stop.append(1)")


def test_a_kernel_that_dies_with_the_server_in_it(box: Inside) -> None:
    box.serve([OK + b"\r\nx", "hold"])
    with raw_request(box.port, request("GET", box.at("/"), "Connection: close")) as raw:
        assert raw.head().status == 200
        box.ask("POST", "/restart")
        raw.ends()
    refused(box.ask_inside(), 502, "port_closed")

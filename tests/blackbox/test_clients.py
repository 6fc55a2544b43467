"""Clients of the socket that misbehave harm nobody but themselves."""

from __future__ import annotations

import select
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from client import MESSAGES, WIRE_VERSION, Client
from harness import Engine
from host import descendants


PACKETS = {
    "an empty payload": ("C_RUN", b""),
    "a message of another direction": ("C_RESULT", b"\0" * 8),
    "a request for the warden": ("W_MAKE", b"\0\0\0\0"),
    "a kernel's word": ("K_DONE", b"\0" * 32),
    "a signal for nobody": ("C_SIGNAL", b"\x02\0\0\0"),
    "stdin for nobody": ("C_STDIN", b"\0\0\0\0"),
    "rules without their end": ("C_NETWORK", b"\xff\xff\xff\xff"),
    "a string without its end": ("C_INPUT", b"\xff\xff\xff\xff"),
    "noise": ("C_RUN", bytes(range(256)) * 40),
}


@pytest.mark.parametrize("what", PACKETS)
def test_a_malformed_request_ends_only_its_client(engine: Engine, what: str) -> None:
    name, payload = PACKETS[what]
    with engine.raw() as client:
        client.send(name, payload)
        try:
            client.send("C_INFO")  # what has no meaning may also be passed over
        except BrokenPipeError:
            pass
        message = client.recv()
        if message is not None:
            message.close()
            assert message.name in ("C_ERROR", "C_STATE")
    assert engine.execute("print(1)").stdout == b"1\n"


def test_a_packet_without_a_header(engine: Engine) -> None:
    with engine.raw() as client:
        client.send_bytes(b"\x01")
        message = client.recv()
        assert message is None or message.name == "C_ERROR"


def test_a_client_of_another_version_is_told(engine: Engine) -> None:
    with engine.raw() as client:
        client.send_bytes(struct.pack("=HH", MESSAGES["C_INFO"], WIRE_VERSION + 1))
        reply = client.recv()
        assert reply is not None and reply.name == "C_ERROR"
        assert (reply.get_u32(), reply.get_text()) == (0, "other_version")
        assert f"version {WIRE_VERSION + 1}" in reply.get_text()


def test_clients_that_say_nothing(engine: Engine) -> None:
    clients = [engine.raw() for _ in range(20)]
    assert engine.execute("print(1)").stdout == b"1\n"
    for client in clients:
        client.close()


def test_surplus_descriptors_are_closed(engine: Engine) -> None:
    with open("/dev/null") as null, engine.raw() as client:
        client.send("C_INFO", b"", [null.fileno()] * 20)
        message = client.recv()
        if message is not None:
            message.close()


def test_a_client_that_hangs_up_at_once(engine: Engine) -> None:
    for _ in range(10):
        with engine.raw() as client:
            client.start("import time; time.sleep(1000)", timeout_ms=60000)


def test_a_client_that_never_reads(engine: Engine) -> None:
    """Its program blocks on its output; the engine serves others meanwhile."""
    with engine.raw() as client:
        client.start(
            "import sys\nwhile True: sys.stdout.write('x' * 65536)",
            timeout_ms=60000,
            output_bytes=1 << 24,
        )
        assert engine.execute("print(1)").stdout == b"1\n"


def descriptors(engine: Engine) -> int:
    (server,) = [p for p in descendants(engine.process.pid) if p.role == "cloche-server"]
    return len(list(Path(f"/proc/{server.pid}/fd").iterdir()))


def ask_without_reading(engine: Engine, client: Client, ask: Callable[[], None]) -> int:
    """As often as the engine listens; it stops listening, or hangs up. The number of times."""
    client.sock.setblocking(False)
    for sent in range(20_000):
        while not select.select([], [client.sock], [], 0)[1]:
            before = descriptors(engine)
            assert engine.execute("print(1)").stdout == b"1\n"  # it had a turn to read more
            if not select.select([], [client.sock], [], 0)[1] and descriptors(engine) <= before:
                return sent
        try:
            ask()
        except (BrokenPipeError, ConnectionResetError):
            return sent
        except BlockingIOError:
            continue
    return 20_000


def test_a_client_that_asks_and_never_reads_costs_little(engine: Engine) -> None:
    """Answers have descriptors, and what waits for a reader is the server's."""
    before = descriptors(engine)
    with engine.raw() as client:
        assert ask_without_reading(engine, client, lambda: client.send("C_INFO")) < 20_000
        assert descriptors(engine) - before < 64
    assert engine.execute("print(1)").stdout == b"1\n"


def test_a_client_may_ask_many_times_and_read(engine: Engine) -> None:
    with engine.raw() as client:
        for _ in range(100):
            client.send("C_INFO")
            message = client.recv()
            assert message is not None and message.name == "C_STATE"
            message.close()


def test_errors_that_nobody_reads_are_few(engine: Engine) -> None:
    """What is refused at once is answered at once: the next request waits for the reader."""
    with engine.raw() as client:
        sent = ask_without_reading(engine, client, lambda: client.start("1", profile="nowhere"))
        assert sent < 20_000
    assert engine.execute("print(1)").stdout == b"1\n"

"""Clients of the socket that misbehave harm nobody but themselves."""

from __future__ import annotations

import pytest

from harness import Engine


PACKETS = {
    "an empty payload": ("C_RUN", b""),
    "a message of another direction": ("C_RESULT", b"\0" * 8),
    "a request for the warden": ("W_MAKE", b"\0\0\0\0"),
    "a kernel's word": ("K_DONE", b"\0" * 32),
    "a signal for nobody": ("C_SIGNAL", b"\x02\0\0\0"),
    "stdin for nobody": ("C_STDIN", b"\0\0\0\0"),
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

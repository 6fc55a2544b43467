"""The test internet itself: what the other tests take for granted of it, natively on its host."""

from __future__ import annotations

import socket

import pytest

from internet import program
from world import CLOSED, CLOSED6, HOST, NOBODY, OTHER, RESOLVER, WEB, WEB6, World, inside

SCRIPT = """
import socket, sys
for word in sys.argv[1:]:
    sock = socket.socket(socket.AF_INET6 if ":" in word else socket.AF_INET)
    sock.settimeout(5)
    try:
        sock.connect((word, 80))
        sock.sendall(b"HEAD / HTTP/1.0\\r\\n\\r\\n")
        print(sock.recv(12).decode())
    except OSError as error:
        print(error.errno)
"""


@pytest.fixture
def quiet(world_session: World) -> World:
    world_session.forget()
    return world_session


def test_every_address_has_a_server_and_every_packet_is_seen(quiet: World) -> None:
    """A canary that nobody can reach would sing of nothing."""
    places = [WEB, WEB6, OTHER, *CLOSED, *CLOSED6]
    printed = quiet.run(["/usr/bin/python3", "-c", SCRIPT, *places]).split("\n")[:-1]
    assert printed == ["HTTP/1.1 200"] * len(places)
    assert quiet.seen() == {("tcp", place, 80) for place in places}
    quiet.forget()
    assert quiet.seen() == set()


def test_datagrams_are_seen_but_for_questions(quiet: World) -> None:
    code = "import socket, sys\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
    code += f"s.sendto(b'x', ('{OTHER}', 53)); s.sendto(b'x' * 12, ('{RESOLVER}', 53))"
    quiet.run(["/usr/bin/python3", "-c", code])
    assert quiet.seen() == {("udp", OTHER, 53)}


def test_the_host_is_alone(quiet: World) -> None:
    printed = quiet.run(["ip", "-o", "-4", "addr"])
    assert HOST in printed and "127.0.0.1" in printed and len(printed.splitlines()) == 3
    assert quiet.run(["/usr/bin/python3", "-c", SCRIPT, NOBODY]) == "113\n"


def test_the_filter_of_packets_is_within_bounds() -> None:
    lines = program()
    for number, (_, yes, no, _) in enumerate(lines):
        assert 0 <= yes < 256 and number + 1 + max(yes, no) < len(lines) or (yes, no) == (0, 0)


def test_we_are_where_we_were(world_session: World) -> None:
    """Stepping inside is for a while, and for this thread."""
    before = socket.if_nameindex()
    with inside(world_session.host):
        assert {"out", "private"} < {name for _, name in socket.if_nameindex()}
    assert socket.if_nameindex() == before

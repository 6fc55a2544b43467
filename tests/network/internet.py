"""The servers of the test internet (world.py): internet.py DIRECTORY, in its namespace. Requests
come as lines of JSON on stdin; its end is ours."""

from __future__ import annotations

import contextlib
import ctypes
import json
import select
import socket
import struct
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from names import Resolver
from sites import Recorder, Web
from world import RECORDER, RESOLVER, WEB

SO_ATTACH_FILTER, SO_RCVBUFFORCE = 26, 33
SOL_PACKET, PACKET_STATISTICS, PACKET_OUTGOING = 263, 6, 4
LINGER_RESET = struct.pack("ii", 1, 0)
BLOCK = 1 << 20


# ---------------------------------------------------------------------------- every packet

_LDH, _LDB, _LDXMSH, _LDBX, _JEQ, _JGE, _AND, _RET = 0x28, 0x30, 0xB1, 0x50, 0x15, 0x35, 0x54, 0x06


def program() -> list[tuple[int, int, int, int]]:
    """What the sniffer is given (classic BPF over Ethernet): SYNs of TCP, UDP, ICMP, and ICMPv6 but
    for what the kernel says by itself (multicast listeners, routers, neighbours)."""
    labels: dict[str, int] = {}
    lines: list[tuple[int, str, str, int]] = []

    def at(label: str) -> None:
        labels[label] = len(lines)

    def say(code: int, k: int, yes: str = "", no: str = "") -> None:
        lines.append((code, yes, no, k))

    say(_LDH, 12)
    say(_JEQ, 0x0800, "", "six")
    say(_LDB, 23)
    say(_JEQ, 17, "take")
    say(_JEQ, 1, "take")
    say(_JEQ, 6, "", "drop")
    say(_LDXMSH, 14)
    say(_LDBX, 14 + 13)
    say(_AND, 0x12)
    say(_JEQ, 0x02, "take", "drop")
    at("six")
    say(_JEQ, 0x86DD, "", "drop")
    say(_LDB, 20)
    say(_JEQ, 17, "take")
    say(_JEQ, 58, "icmp6")
    say(_JEQ, 6, "", "drop")
    say(_LDB, 54 + 13)
    say(_AND, 0x12)
    say(_JEQ, 0x02, "take", "drop")
    at("icmp6")
    say(_LDB, 54)
    say(_JGE, 130, "drop", "take")
    at("take")
    say(_RET, 0xFFFF)
    at("drop")
    say(_RET, 0)

    def far(line: int, label: str) -> int:
        return labels[label] - line - 1 if label else 0

    return [(code, far(n, yes), far(n, no), k) for n, (code, yes, no, k) in enumerate(lines)]


class Sniffer(threading.Thread):
    """Remembers the destination of whatever comes from the host."""

    def __init__(self, interface: str) -> None:
        super().__init__(daemon=True)
        self.found: set[tuple[str, str, int]] = set()
        self.lock = threading.Lock()
        self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        self._attach()
        self.sock.bind((interface, 0))
        self.start()

    def _attach(self) -> None:
        code = b"".join(struct.pack("HBBI", *line) for line in program())
        buffer = ctypes.create_string_buffer(code)
        value = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))
        self.sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, value)

    def run(self) -> None:
        while select.select([self.sock], [], []):
            self.seen()

    def seen(self) -> list[tuple[str, str, int]]:
        """With what waits in the socket. A packet that had no room there would be said, too."""
        with self.lock, contextlib.suppress(BlockingIOError):
            while True:
                packet, (_, _, kind, *_) = self.sock.recvfrom(65536, socket.MSG_DONTWAIT)
                if kind != PACKET_OUTGOING:
                    self._take(packet)
        _, lost = struct.unpack("II", self.sock.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
        if lost:
            self.found.add(("lost", "", lost))
        return list(self.found)

    def forget(self) -> None:
        self.seen()
        self.found.clear()

    def _take(self, packet: bytes) -> None:
        if packet[12:14] == b"\x08\x00":
            protocol, rest = packet[23], packet[14 + (packet[14] & 15) * 4 :]
            address = socket.inet_ntop(socket.AF_INET, packet[30:34])
        else:
            protocol, rest = packet[20], packet[54:]
            address = socket.inet_ntop(socket.AF_INET6, packet[38:54])
        if protocol in (1, 58):
            self.found.add(("icmp", address, 0))
            return
        kind = "tcp" if protocol == 6 else "udp"
        (port,) = struct.unpack_from("!H", rest, 2)
        if (kind, address, port) != ("udp", RESOLVER, 53):
            self.found.add((kind, address, port))


# ---------------------------------------------------------------------------- small servers


def echo(peer: socket.socket) -> None:
    while data := peer.recv(65536):
        peer.sendall(data)


def discard(peer: socket.socket) -> None:
    buffer = bytearray(BLOCK)
    while peer.recv_into(buffer):
        pass


def generate(peer: socket.socket) -> None:
    block = b"y" * BLOCK
    while True:
        peer.sendall(block)


def some(peer: socket.socket) -> None:
    """100,000 bytes, then the end; what comes is read until its end."""
    peer.sendall(b"s" * 100_000)
    peer.shutdown(socket.SHUT_WR)
    discard(peer)


def count(peer: socket.socket) -> None:
    """Tells how much came, after its end."""
    got = 0
    while data := peer.recv(65536):
        got += len(data)
    peer.sendall(b"%d\n" % got)


def reset(peer: socket.socket) -> None:
    """Reads a little, and breaks off."""
    peer.recv(1)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_RESET)


def mute(peer: socket.socket) -> None:
    """Never reads: its buffers are filled."""
    _hold.wait()


def deaf(peer: socket.socket) -> None:
    """Says that it is through, and never reads."""
    peer.shutdown(socket.SHUT_WR)
    _hold.wait()


def urgent(peer: socket.socket) -> None:
    peer.sendall(b"ab")
    peer.send(b"!", socket.MSG_OOB)
    peer.sendall(b"cd")
    peer.shutdown(socket.SHUT_WR)
    discard(peer)


def ended(peer: socket.socket) -> None:
    """Closed both ways at once, without a reset."""


_hold = threading.Event()
SMALL: dict[int, Callable[[socket.socket], None]] = {
    **{7: echo, 7007: echo, 9: discard, 19: generate, 13: some, 26: count, 25: reset, 27: mute},
    **{28: urgent, 29: ended, 30: deaf},
}


def served(peer: socket.socket, what: Callable[[socket.socket], None]) -> None:
    try:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        what(peer)
    except OSError:
        pass
    peer.close()


def listen(port: int, what: Callable[[socket.socket], None]) -> None:
    server = socket.create_server(
        ("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=4096
    )

    def run() -> None:
        while True:
            peer, _ = server.accept()
            threading.Thread(target=served, args=(peer, what), daemon=True).start()

    threading.Thread(target=run, daemon=True).start()


def full() -> list[socket.socket]:
    """Port 81 has a queue that is full: SYNs are dropped."""
    server = socket.socket()
    server.bind((WEB, 81))
    server.listen(0)
    waiting = [socket.socket() for _ in range(2)]
    for sock in waiting:
        sock.setblocking(False)
        sock.connect_ex((WEB, 81))
    return [server, *waiting]


def udp_echo() -> None:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((WEB, 7))

    def run() -> None:
        while True:
            data, who = sock.recvfrom(65536)
            sock.sendto(data, who)

    threading.Thread(target=run, daemon=True).start()


# ---------------------------------------------------------------------------- all of it


def main() -> None:
    directory = Path(sys.argv[1])
    threading.stack_size(256 << 10)
    watched = ("in", "nowhere") if "unwatched" not in sys.argv else ()
    sniffers = [Sniffer(interface) for interface in watched]
    resolver = Resolver(RESOLVER)
    web = Web(directory)
    recorder = Recorder(RECORDER)
    kept = full()
    for port, what in SMALL.items():
        listen(port, what)
    udp_echo()

    def forget() -> None:
        for sniffer in sniffers:
            sniffer.forget()
        resolver.asked.clear()
        web.requests.clear()
        recorder.received.clear()

    answers: dict[str, Callable[[], Any]] = {
        "forget": forget,
        "seen": lambda: sorted(one for sniffer in sniffers for one in sniffer.seen()),
        "asked": lambda: list(resolver.asked),
        "requests": lambda: list(web.requests),
        "received": lambda: [bytes(data).decode("latin-1") for data in recorder.received],
    }
    print(json.dumps("up"), flush=True)
    for line in sys.stdin:
        print(json.dumps(answers[json.loads(line)[0]]()), flush=True)
    del kept


if __name__ == "__main__":
    main()

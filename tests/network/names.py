"""The test internet's resolver: what it answers is a table, and for some names it answers badly."""

from __future__ import annotations

import contextlib
import random
import re
import socket
import struct
import threading
import time

A, CNAME, AAAA = 1, 5, 28
TTL = 60

WEB_NAMES = ("web", "git", "pypi", "npm", "db", "four", "slow", "many")
V4: dict[str, list[str]] = {
    **{f"{name}.example.test": ["198.51.100.2"] for name in WEB_NAMES},
    "example.test": ["198.51.100.2"],
    "two.example.test": ["198.51.100.3", "198.51.100.4"],
    "dead6.example.test": ["198.51.100.2"],
    "three.example.test": ["198.51.100.3"],
    "a.wild.example.test": ["198.51.100.3"],
    "b.a.wild.example.test": ["198.51.100.3"],
    "cdn.provider.test": ["198.51.100.4"],
    "raw.example.test": ["198.51.100.8"],
    "grpc.example.test": ["198.51.100.6"],
    "far.example.test": ["192.0.2.130"],
    "silent.example.test": ["203.0.113.7"],
    "evil.test": ["198.51.100.5"],
    "shared.evil.test": ["198.51.100.2"],  # another name of an address that may be allowed
    "rebind.example.test": ["10.9.9.9"],
    "meta.example.test": ["169.254.169.254"],
    "host.example.test": ["198.51.100.1"],
    "private.example.test": ["172.31.0.1"],
    "local.example.test": ["127.0.0.1"],
    "mixed.example.test": ["10.9.9.9", "198.51.100.3", "169.254.169.254"],
}
V6: dict[str, list[str]] = {
    "web.example.test": ["2001:db8:1::2"],
    "six.example.test": ["2001:db8:1::2"],
    "dead6.example.test": ["2001:db8:dead::1"],
    "mapped.example.test": ["::ffff:10.9.9.9"],
    "nat64.example.test": ["64:ff9b::a09:909"],
    "loop6.example.test": ["::1"],
}
ALIASES = {
    "www.example.test": "cdn.provider.test",
    "long.example.test": "www.example.test",
    "round.example.test": "about.example.test",
    "about.example.test": "round.example.test",
    "inwards.example.test": "rebind.example.test",
}
BAD = ("silent-dns", "servfail", "wrong-id", "wrong-name", "garbage", "flip", "refused")


def encoded(name: str) -> bytes:
    return b"".join(bytes([len(x)]) + x.encode() for x in name.split(".")) + b"\0"


def record(name: str, kind: int, data: bytes, ttl: int = TTL) -> bytes:
    return encoded(name) + struct.pack("!HHIH", kind, 1, ttl, len(data)) + data


def addresses(name: str, kind: int) -> list[bytes]:
    if kind == A:
        if re.fullmatch(r"n\d+\.bulk\.example\.test", name):
            return [socket.inet_aton("198.51.100.3")]
        return [socket.inet_aton(address) for address in V4.get(name, [])]
    return [socket.inet_pton(socket.AF_INET6, text) for text in V6.get(name, [])]


class Resolver:
    def __init__(self, address: str) -> None:
        self.asked: list[str] = []
        self.flips = 0
        datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        datagrams.bind((address, 53))
        streams = socket.create_server((address, 53), backlog=128)
        threading.Thread(target=self._datagrams, args=(datagrams,), daemon=True).start()
        threading.Thread(target=self._streams, args=(streams,), daemon=True).start()

    def _datagrams(self, sock: socket.socket) -> None:
        while True:
            question, who = sock.recvfrom(65536)
            threading.Thread(target=self._reply, args=(sock, question, who), daemon=True).start()

    def _reply(self, sock: socket.socket, question: bytes, who: tuple[str, int]) -> None:
        for answer in self.answers(question):
            if len(answer) > 1232:
                answer = answer[:2] + b"\x83\x80" + b"\0\1" + b"\0" * 6 + question[12:]
            sock.sendto(answer, who)

    def _streams(self, server: socket.socket) -> None:
        while True:
            peer, _ = server.accept()
            threading.Thread(target=self._stream, args=(peer,), daemon=True).start()

    def _stream(self, peer: socket.socket) -> None:
        with peer, contextlib.suppress(OSError, struct.error):
            while True:
                (length,) = struct.unpack("!H", peer.recv(2, socket.MSG_WAITALL))
                for answer in self.answers(peer.recv(length, socket.MSG_WAITALL)):
                    peer.sendall(struct.pack("!H", len(answer)) + answer)

    def answers(self, question: bytes) -> list[bytes]:
        """Of one question; usually one."""
        at, labels = 12, []
        while question[at]:
            labels.append(question[at + 1 : at + 1 + question[at]].decode("latin-1"))
            at += 1 + question[at]
        name = ".".join(labels).lower()
        (kind,) = struct.unpack_from("!H", question, at + 1)
        self.asked.append(name)
        asked = question[12 : at + 5]
        if labels[0].lower() in BAD:
            return self._bad(labels[0].lower(), name, kind, question[:2], asked)
        if name.startswith("slow."):
            time.sleep(0.5)
        return [self._good(name, kind, question[:2], asked)]

    def _good(self, name: str, kind: int, head: bytes, asked: bytes) -> bytes:
        known = name in V4 or name in V6 or name in ALIASES or bool(addresses(name, A))
        records, turns = [], 0
        while name in ALIASES and turns < 8:
            records.append(record(name, CNAME, encoded(ALIASES[name])))
            name, turns = ALIASES[name], turns + 1
        if kind in (A, AAAA):
            records += [record(name, kind, data) for data in addresses(name, kind)]
        if name.startswith("many.") and kind == A:
            records += [record(name, A, b"\xc6\x33\x64\x03")] * 1500
        return self._message(head, 0 if known else 3, asked, records)

    @staticmethod
    def _message(head: bytes, code: int, asked: bytes, records: list[bytes]) -> bytes:
        counts = struct.pack("!HHHHH", 0x8180 | code, 1, len(records), 0, 0)
        return head + counts + asked + b"".join(records)

    def _bad(self, how: str, name: str, kind: int, head: bytes, asked: bytes) -> list[bytes]:
        forbidden = [record(name, A, socket.inet_aton("198.51.100.5"))] if kind == A else []
        good = [record(name, A, socket.inet_aton("198.51.100.2"))] if kind == A else []
        if how == "servfail":
            return [self._message(head, 2, asked, [])]
        if how == "refused":
            return [self._message(head, 5, asked, [])]
        if how == "wrong-id":  # what somebody off the path would send first
            guess = struct.pack("!H", random.randrange(65536))
            return [self._message(guess, 0, asked, forbidden), self._message(head, 0, asked, good)]
        if how == "wrong-name":  # an address of a name that nobody asked for
            other = [record("web.example.test", A, socket.inet_aton("198.51.100.5"))]
            return [self._message(head, 0, asked, other if kind == A else [])]
        if how == "garbage":
            return [head + random.randbytes(200)]
        if how == "flip":  # with a TTL of 0: one of the net, then one of ours
            self.flips += kind == A
            address = "198.51.100.2" if self.flips % 2 else "10.9.9.9"
            data = [record(name, A, socket.inet_aton(address), 0)] if kind == A else []
            return [self._message(head, 0, asked, data)]
        return []

"""Questions as bytes, over UDP and TCP."""

import json
import select
import socket
import struct
import time

GOOD = bytes.fromhex("000701000001000000000000") + b"\x04four\x07example\x04test\0\0\1\0\1"


def summary(question, reply):
    if not reply:
        return "nothing"
    number, flags, questions, answers, more, extra = struct.unpack_from("!HHHHHH", reply)
    assert reply[:2] == question[:2] and flags & 0x8000 and more == extra == 0, reply
    assert reply[12 : 12 + len(question) - 12] == question[12:], "the question is not echoed"
    return f"code {flags & 15}, {answers} answers"


def by_udp(question, resolver):
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.connect((resolver, 53))
    try:
        sock.send(question)
        sock.settimeout(0.15 if question != GOOD else 5)
        return sock.recv(65536)
    except (TimeoutError, ConnectionRefusedError):
        return b""


def by_tcp(question, resolver):
    sock = socket.create_connection((resolver, 53), 5)
    sock.settimeout(0.15 if question != GOOD else 5)
    try:
        sock.sendall(struct.pack("!H", len(question)) + question)
        head = sock.recv(2, socket.MSG_WAITALL)
        return sock.recv(struct.unpack("!H", head)[0], socket.MSG_WAITALL) if head else b""
    except (TimeoutError, ConnectionResetError):
        return b""


def settled(function, question, resolver):
    """What is answered at all is answered in time on a busy machine, too."""
    reply = function(question, resolver)
    return summary(question, reply)


def all_of(packets):
    for name, text in packets.items():
        question = bytes.fromhex(text)
        print(json.dumps([name, "udp", settled(by_udp, question, "10.0.2.3")]), flush=True)
        print(json.dumps([name, "tcp", settled(by_tcp, question, "198.51.100.5")]), flush=True)


def flood():
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.connect(("10.0.2.3", 53))
    for number in range(1000):
        try:
            sock.send(struct.pack("!H", number) + GOOD[2:])
        except OSError:
            pass
    got = 0
    while select.select([sock], [], [], 0.5)[0]:
        sock.recv(1000)
        got += 1
    print("some of a thousand" if 0 < got <= 1000 else f"{got} of a thousand")
    idle = []
    for _ in range(64):
        try:
            idle.append(socket.create_connection(("10.0.2.3", 53), 1))
        except OSError:
            break
    for one in idle:
        try:
            one.sendall(b"\xff\xff" + b"x" * 65535)
        except OSError:
            pass
    for one in idle:
        one.close()
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if by_udp(GOOD, "10.0.2.3") and by_tcp(GOOD, "10.0.2.3"):
            print("answered again")
            return
        time.sleep(0.1)
    print("not answered")

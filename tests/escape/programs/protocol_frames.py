"""Frames on the control socket that are not ours to send. The arguments: what, and the numbers of
the messages and of the version."""

import array
import json
import os
import socket
import struct
import sys
import time

what, numbers = sys.argv[1], json.loads(sys.argv[2])
control = socket.socket(fileno=1000)


def frame(name, payload=b""):
    return struct.pack("=HH", numbers[name], numbers["version"]) + payload


def text(data):
    return struct.pack("=I", len(data) + 1) + data + b"\0"


def done(how=0, code=0, name=b"", value=b"", lines=()):
    packed = struct.pack("=IIQ", how, code, 0) + text(name) + text(value)
    packed += struct.pack("=I", len(lines)) + b"".join(map(text, lines))
    return frame("K_DONE", packed + struct.pack("=I", 0))  # no handler, nothing that it returned


print("before", flush=True)
if what == "done":
    control.send(done(0, 0))
elif what == "done with noise":
    control.send(done(2, 1, b"\xff\xfe\x1b[2J", b"\xed\xa0\x80" * 1000, [b"\xff\n"] * 50))
elif what == "done twice":
    control.send(done(0, 0))
    control.send(done(1, 3))
elif what == "done of an impossible kind":
    control.send(done(77, 0))
elif what == "done with an impossible status":
    control.send(done(0, 1 << 31))
elif what == "done with a wrapping length":
    control.send(frame("K_DONE", struct.pack("=IIQI", 0, 0, 0, 0xFFFFFFFF)))
elif what == "done with too many lines":
    control.send(
        frame(
            "K_DONE", struct.pack("=IIQ", 0, 0, 0) + text(b"") * 2 + struct.pack("=I", 0xFFFFFFFF)
        )
    )
elif what == "ready again":
    control.send(frame("K_READY"))
elif what == "broken":
    control.send(frame("K_BROKEN", text(b"\x1b[2Jthe machine is on fire\nreally")))
elif what == "a request for the warden":
    control.send(frame("W_END", struct.pack("=Q", 1)))
elif what == "a request for init":
    control.send(frame("I_OPEN", struct.pack("=II", 0, 0) + text(b"/etc/shadow")))
elif what == "another version":
    control.send(struct.pack("=HH", numbers["K_DONE"], 99))
elif what == "an unknown message":
    control.send(struct.pack("=HH", 60000, numbers["version"]))
elif what == "one byte":
    control.send(b"x")
elif what == "nothing":
    control.send(b"")
elif what == "a huge frame":
    control.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    control.send(frame("K_DONE", bytes(150_000)))
elif what == "without end":
    control.setblocking(False)
    while True:
        try:
            control.send(frame("K_READY", b"x" * 1000))
        except BlockingIOError:
            time.sleep(0.001)
elif what == "half of it shut":
    control.shutdown(socket.SHUT_WR)
elif what == "all of it shut":
    control.shutdown(socket.SHUT_RDWR)
elif what == "descriptors":
    memory = os.memfd_create("x")
    os.truncate(memory, 1 << 30)
    passed = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [memory] * 200))]
    for _ in range(50):
        control.sendmsg([b"x"], passed)
elif what == "descriptors with done":
    passed = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2, 1000]))]
    control.sendmsg([done(0, 0)], passed)
elif what == "a lingering socket":
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen(1)
    out = socket.create_connection(server.getsockname())
    peer, _ = server.accept()
    out.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("=ii", 1, 30))
    assert out.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8) == bytes(8), "it would linger"
    out.setblocking(False)
    try:
        while True:
            out.send(bytes(65536))
    except BlockingIOError:
        pass
    control.sendmsg(
        [done(0, 0)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [out.fileno()]))]
    )
    out.close()
else:
    raise SystemExit(f"what is {what}?")
if what.startswith(("done", "descriptors with done")):
    time.sleep(1000)  # its word is taken, it is not waited for

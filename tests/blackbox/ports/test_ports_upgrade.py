"""WebSockets, and other protocols, to servers inside live sandboxes."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from pathlib import Path

import aiohttp
import pytest
import websockets

from harness import LiveService, eventually
from inside import PORT, Inside, raw_request, refused
from live import Client
from raw_http import Raw, request, resident_mb, server_pid
from raw_ws import CLOSE, TEXT, Socket, frame

SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: own\r\n\r\n"
OWN = ("Connection: Upgrade", "Upgrade: own")
# With the websockets of Debian, as a program of its own.
ECHO = f"""
import asyncio, websockets
async def echo(socket):
    async for message in socket:
        await socket.send(message)
async def main():
    async with websockets.serve(echo, "127.0.0.1", {PORT}, max_size=1 << 26):
        await asyncio.Future()
asyncio.run(main())
"""


def own(box: Inside, *headers: str) -> Raw:
    return raw_request(box.port, request("GET", box.at("/x"), *(headers or OWN)))


# ---------------------------------------------------------------------------- any protocol


def test_after_a_101_bytes_go_both_ways(box: Inside) -> None:
    box.serve([SWITCH + b"early", "echo"])
    with own(box) as raw:
        head = raw.head()
        assert head.status == 101 and head.header("Upgrade") == "own"
        assert head.header("Connection") == "Upgrade"
        assert raw.exactly(5) == b"early"
        data = os.urandom(3 << 20)
        threading.Thread(target=raw.sock.sendall, args=(data,)).start()
        assert raw.exactly(len(data)) == data
        raw.half_close()
        assert raw.ends() == b""
    fields = box.head()[1]
    assert ("upgrade", "own") in fields and ("connection", "Upgrade") in fields


def test_each_side_may_end_its_own_direction(box: Inside) -> None:
    box.serve([SWITCH, "hold", b"all of it"])
    with own(box) as raw:
        assert raw.head().status == 101
        raw.sock.sendall(b"x" * 100_000)
        raw.half_close()
        assert raw.ends() == b"all of it"


def test_a_server_may_say_no(box: Inside) -> None:
    box.serve(b"HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno")
    with own(box) as raw:
        assert raw.reply().body == b"no"
        raw.sock.sendall(request("GET", "/health"))
        assert raw.reply().status == 200, "the connection goes on"


@pytest.mark.parametrize(
    "answer",
    [
        SWITCH.replace(b"Upgrade: own", b"Upgrade: other"),
        SWITCH.replace(b"Upgrade: own\r\n", b""),
        SWITCH.replace(b"Connection: Upgrade", b"Connection: close"),
    ],
)
def test_a_101_to_something_else_is_refused(box: Inside, answer: bytes) -> None:
    box.serve([answer, b"x"])
    with own(box) as raw:
        refused(raw.reply(), 502, "port_bad_answer", "another protocol")


@pytest.mark.parametrize(
    "headers",
    [("Upgrade: own",), ("Connection: Upgrade",), ("Connection: Upgrade", "Upgrade: a, b")],
)
def test_who_does_not_quite_ask_stays_with_http(box: Inside, headers: tuple[str, ...]) -> None:
    box.serve(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", [SWITCH, "hold"])
    with own(box, *headers) as raw:
        assert raw.reply().body == b"hi"
    names = [name for name, _ in box.head()[1]]
    assert "upgrade" not in names
    with own(box, *headers) as raw:
        refused(raw.reply(), 502, "port_bad_answer", "nobody asked")


def test_of_a_side_that_does_not_read_little_is_kept(service: LiveService, box: Inside) -> None:
    box.serve([SWITCH, "flood", "hold"], [SWITCH, 3600])
    before = resident_mb(service)
    with own(box) as slow, own(box) as fast:
        assert slow.head().status == fast.head().status == 101
        fast.sock.settimeout(1)
        sent = 0
        with pytest.raises(TimeoutError):
            while True:
                sent += fast.sock.send(bytes(1 << 20))
        assert sent < 16 << 20
        assert resident_mb(service) - before < 8
        left = (64 << 20) - len(slow.got)
        while left > 0:
            left -= len(slow.sock.recv(min(left, 1 << 20)))


def test_the_other_side_hears_when_one_leaves(box: Inside) -> None:
    box.serve([SWITCH, "hold"], [SWITCH, "read"])
    with own(box) as raw:
        assert raw.head().status == 101
    assert eventually(lambda: box.python("len(ended)") == "1")
    with own(box) as raw:
        assert raw.head().status == 101
        raw.sock.sendall(b"bye")
        assert raw.ends() == b""


def test_it_ends_with_its_sandbox(client: Client) -> None:
    with Inside(client) as box:
        box.serve([SWITCH, "hold"])
        with own(box) as raw:
            assert raw.head().status == 101
            assert box.get()["idle_expires"] is None, "it is in use"
            assert box.delete().status == 204
            assert raw.ends() == b""


def test_it_ends_with_the_server(client: Client, service: LiveService) -> None:
    """And the next server reaches the same server inside."""
    with Inside(client) as box:
        box.serve([SWITCH, "hold"], b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
        with own(box) as raw:
            assert raw.head().status == 101
            os.kill(server_pid(service), signal.SIGKILL)
            assert raw.ends() == b""
        assert eventually(lambda: reached(box))
        assert eventually(lambda: box.python("len(ended)") == "2", 60)


def reached(box: Inside) -> bool:
    try:
        return box.ask_inside().body == b"hi"
    except OSError:
        return False


# ---------------------------------------------------------------------------- clients


def echo(box: Inside) -> None:
    reply = box.client.ask("POST", box.path + "/commands", {"cmd": "cat > echo.py", "stdin": ECHO})
    assert reply.status == 200, reply
    box.client.ask("POST", box.path + "/commands", {"cmd": "python3 echo.py", "background": True})
    assert eventually(lambda: box.ports() == [PORT])


def test_a_websocket_through_plain_frames(box: Inside) -> None:
    echo(box)
    with Socket(box.port, path=box.at("/ws")) as socket:
        socket.send(frame(TEXT, b"hello"))
        assert socket.frame().payload == b"hello"
        socket.send(frame(CLOSE, b"\x03\xe8"))
        assert socket.frame().opcode == CLOSE
        assert socket.ends() == b""


def test_the_client_of_websockets(box: Inside) -> None:
    """With its compression, which both ends agree on by themselves."""

    async def talk() -> None:
        url = f"ws://127.0.0.1:{box.port}{box.at('/ws')}"
        connect = websockets.connect  # type: ignore[attr-defined]
        async with connect(url, max_size=1 << 26) as socket:
            assert [e.name for e in socket.extensions] == ["permessage-deflate"]
            for message in ("hello", os.urandom(1 << 20), "ä" * 100_000):
                await socket.send(message)
                assert await socket.recv() == message

    echo(box)
    asyncio.run(talk())


def test_the_client_of_aiohttp(box: Inside) -> None:
    async def talk() -> None:
        async with aiohttp.ClientSession() as session:
            url = f"http://127.0.0.1:{box.port}{box.at('/ws')}"
            async with session.ws_connect(url) as socket:
                await socket.send_str("hello")
                assert (await socket.receive()).data == "hello"
                await socket.ping()
                await socket.send_bytes(bytes(100_000))
                assert (await socket.receive()).data == bytes(100_000)

    echo(box)
    asyncio.run(talk())


def test_a_request_by_aiohttp_inside(box: Inside, tmp_path: Path) -> None:
    """A server of aiohttp: keep-alive, chunks, ranges."""
    program = (
        "from aiohttp import web\n"
        "async def hello(request):\n"
        "    return web.Response(text=request.path + ' ' + await request.text())\n"
        "app = web.Application()\n"
        "app.router.add_route('*', '/{tail:.*}', hello)\n"
        f"web.run_app(app, host='127.0.0.1', port={PORT}, print=None)\n"
    )
    box.client.ask("POST", box.path + "/commands", {"cmd": "cat > app.py", "stdin": program})
    box.client.ask("POST", box.path + "/commands", {"cmd": "python3 app.py", "background": True})
    assert eventually(lambda: box.ports() == [PORT])
    reply = box.client.ask("POST", box.at("/some/path"), {"a": 1})
    assert reply.status == 200 and reply.body == b'/some/path {"a": 1}'

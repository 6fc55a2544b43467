"""Clients that leave, and clients that only close their own direction: the first end what they
asked for, at once; the second still get their answer."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

from harness import Service, eventually
from host import Process, descendants
from raw_http import HOST, Closed, Raw, Reply, ask, post, request

PATHS = ["/v1/execute", "/v1/execute/stream", "/v1/execute/batch"]
SOONER_S = 20.0  # than the timeout of 30 s that would end them in any case

# Takes a name that the test can find from outside, and stays.
STAYS = """
import ctypes, time
ctypes.CDLL(None).prctl(15, {name!r}.encode())  # PR_SET_NAME
while True:
    time.sleep(0.05)
"""


def named(service: Service, name: str) -> list[Process]:
    return [p for p in descendants(service.process.pid) if p.comm == name and p.state not in "ZX"]


def body_of(path: str, name: str) -> dict[str, object]:
    item = {"code": STAYS.format(name=name), "timeout_ms": 60000}
    return {"items": [item, item], "concurrency": 2} if path.endswith("batch") else item


def begin(service: Service, raw: Raw, path: str, name: str) -> None:
    raw.send(post(path, body_of(path, name)))
    want = 2 if path.endswith("batch") else 1
    assert eventually(lambda: len(named(service, name)) == want)


def final(raw: Raw) -> Reply:
    """The reply behind any interim ones."""
    while (reply := raw.reply()).status == 100:
        pass
    return reply


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_client_that_leaves_ends_its_program(service: Service, path: str, how: str) -> None:
    name = f"stays-{how}-{len(path)}"
    with Raw(service) as raw:
        begin(service, raw, path, name)
        if how == "reset":
            raw.reset()
    assert eventually(lambda: not named(service, name)), "the program outlived its client"


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("how", ["close", "reset"])
def test_its_connection_is_closed_though_others_are_idle(
    service: Service, path: str, how: str
) -> None:
    """The library looks by itself at the connection that was silent longest, and at no other."""
    name = f"idle-{how}-{len(path)}"
    with Raw(service) as idle:
        assert idle.send(request("GET", "/health")).reply().status == 200
        with Raw(service) as raw:
            begin(service, raw, path, name)
            if how == "reset":
                raw.reset()
        # The idle one, and that of the one who asks.
        assert eventually(lambda: connections(service) == 2, seconds=SOONER_S)


@pytest.mark.parametrize("path", PATHS)
def test_a_half_closed_client_gets_its_answer(service: Service, path: str) -> None:
    name = f"half-{len(path)}"
    with Raw(service) as raw:
        begin(service, raw, path, name)
        raw.half_close()
        if path == "/v1/execute":
            raw.until(b"HTTP/1.1 100 Continue\r\n\r\n")  # it was noticed, and asked for
        assert named(service, name)
        for program in named(service, name):
            os.kill(program.pid, signal.SIGKILL)
        reply = final(raw)
        assert reply.status == 200 and b'"status":"killed"' in reply.body
        assert raw.ends() == b""


def test_requests_in_a_row_and_then_an_end(service: Service) -> None:
    """All of them came before the client closed its direction."""
    numbers = range(5)
    with Raw(service) as raw:
        raw.send(b"".join(post("/v1/execute", {"code": f"print({n})"}) for n in numbers))
        raw.half_close()
        assert [final(raw).json["stdout"] for _ in numbers] == [f"{n}\n" for n in numbers]
        assert raw.ends() == b""


@pytest.mark.parametrize("path", PATHS)
def test_a_client_that_half_closes_and_then_leaves(service: Service, path: str) -> None:
    name = f"later-{len(path)}"
    with Raw(service) as raw:
        begin(service, raw, path, name)
        raw.half_close()
        raw.until(b"100 Continue\r\n\r\n" if path == "/v1/execute" else b"\n")
    assert eventually(lambda: not named(service, name)), "the program outlived its client"


def test_http_1_0_knows_no_interim_replies(service: Service) -> None:
    """So the end of what such a client sends is taken for its leaving."""
    name = "old"
    with Raw(service) as raw:
        data = post("/v1/execute", body_of("", name)).replace(b"HTTP/1.1", b"HTTP/1.0")
        raw.send(data)
        assert eventually(lambda: named(service, name))
        raw.half_close()
        assert raw.ends() == b""
    assert eventually(lambda: not named(service, name))


# ---------------------------------------------------------------------------- unfinished requests

FORM = b"Content-Type: multipart/form-data; boundary=BOUND\r\nContent-Length: 9000\r\n\r\n"
PART = b'--BOUND\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nxyz'
UNFINISHED = {
    "nothing": b"",
    "half a line": b"GET /hea",
    "half a head": b"GET /health HTTP/1.1\r\n" + HOST,
    "half a body": post("/v1/execute", {"code": "1"})[:-3],
    "half a form": b"POST /v1/files HTTP/1.1\r\n" + HOST + FORM + PART,
    "half a chunk": b"POST /v1/files HTTP/1.1\r\n"
    + HOST
    + b"Transfer-Encoding: chunked\r\n\r\n9\r\nab",
}


def connections(service: Service) -> int:
    text = ask(service, request("GET", "/metrics")).body.decode()
    (line,) = [line for line in text.splitlines() if line.startswith("cloche_connections ")]
    return int(float(line.split()[1]))


@pytest.fixture
def waits(start_service: Callable[..., Service]) -> Service:
    """By its own clock it would wait for half a minute."""
    return start_service("--profiles", "base", "--idle-s", "3600")


def test_an_end_in_the_middle_of_a_request_is_noticed_at_once(waits: Service) -> None:
    """Also when it comes together with the last bytes: that is a matter of luck, so often."""
    files = waits.state / "files"
    before = sorted(files.iterdir())
    for how in ("close", "half", "reset"):
        left: list[Raw] = []
        for data in list(UNFINISHED.values()) * 30:
            with Raw(waits) as raw:
                raw.send(data)
                if how == "reset":
                    raw.reset()
                elif how == "half":
                    left.append(Raw.__new__(Raw))
                    left[-1].sock, left[-1].got = raw.sock.dup(), b""
                    raw.half_close()
        assert eventually(lambda: connections(waits) == 1, seconds=SOONER_S), how
        assert eventually(lambda: sorted(files.iterdir()) == before, seconds=SOONER_S)
        for raw in left:
            with raw:
                assert b" 200 " not in raw.ends()


def test_an_answer_to_nobody_is_no_harm(service: Service) -> None:
    with Raw(service) as raw:
        raw.send(request("GET", "/health")).half_close()
        assert raw.reply().status == 200
        with pytest.raises(Closed):
            raw.head()

"""A request that is refused before its body is read: its answer arrives, whatever the client still
has to send. With the clients that people have, and with 100 MiB."""

from __future__ import annotations

import asyncio
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import aiohttp
import httpx
import pytest


from harness import Service, eventually
from raw_http import KeyedService, Raw, ask, post, request

SIZE = 100 << 20
HERE = Path(__file__).resolve().parent
Client = Callable[[str, bool], str]


def blocks() -> Iterator[bytes]:
    for _ in range(SIZE >> 20):
        yield bytes(1 << 20)


def with_node(url: str, chunked: bool) -> str:
    words = ["node", str(HERE / "early.mjs"), url, str(SIZE), str(int(chunked))]
    done = subprocess.run(words, capture_output=True, text=True)
    return done.stdout.strip() or done.stderr


def with_httpx(url: str, chunked: bool) -> str:
    content: Iterator[bytes] | bytes = blocks() if chunked else bytes(SIZE)
    reply = httpx.post(url, content=content, timeout=None)
    return f"{reply.status_code} {reply.json()['error']['code']}"


def with_aiohttp(url: str, chunked: bool) -> str:
    async def slowly() -> object:
        for block in blocks():
            yield block

    async def send() -> str:
        async with aiohttp.ClientSession() as session:
            data = slowly() if chunked else bytes(SIZE)
            async with session.post(url, data=data) as reply:
                return f"{reply.status} {(await reply.json())['error']['code']}"

    return asyncio.run(send())


def with_urllib(url: str, chunked: bool) -> str:
    data = blocks() if chunked else bytes(SIZE)
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data=data)):  # type: ignore
            return "no error"
    except urllib.error.HTTPError as error:
        with error:
            return f"{error.code} {error.read().decode().split('code')[1][3:].split(chr(34))[0]}"


CLIENTS = [with_node, with_httpx, with_aiohttp, with_urllib]


@pytest.mark.once
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunks"])
@pytest.mark.parametrize(
    "path, wanted",
    [
        ("/v1/execute", "413 body_too_large"),
        ("/nowhere", "404 no_route"),
        ("/health", "405 bad_method"),
    ],
)
def test_the_answer_arrives(
    service: Service, client: Client, chunked: bool, path: str, wanted: str
) -> None:
    assert client(service.url + path, chunked) == wanted


@pytest.mark.parametrize("client", CLIENTS)
def test_the_answer_to_somebody_without_a_key_arrives(
    keyed_service: KeyedService, client: Client
) -> None:
    assert client(keyed_service.url + "/v1/execute", False) == "401 no_key"


def test_a_client_that_never_stops_is_cut_off(service: Service) -> None:
    """After the answer so much is read, and no more."""
    head = request("POST", "/nowhere", f"Content-Length: {1 << 40}")
    sent, block = 0, bytes(1 << 20)
    with Raw(service) as raw:
        raw.send(head)
        assert raw.until(b"no_route")
        with pytest.raises(OSError):
            while sent < 1 << 30:
                raw.sock.sendall(block)
                sent += len(block)
    assert 200 << 20 < sent < 300 << 20
    assert ask(service, post("/v1/execute", {"code": "1"})).status == 200


def test_a_client_that_waits_is_closed(start_service: Callable[..., Service]) -> None:
    """One that neither sends nor closes costs a connection for a step only."""
    service = start_service("--max-connections", "20")
    held = [Raw(service).send(request("POST", "/nowhere", "Content-Length: 99")) for _ in range(10)]
    for raw in held:
        assert raw.until(b"no_route")
    assert eventually(lambda: connections(service) <= 2)
    for raw in held:
        raw.sock.close()


def connections(service: Service) -> int:
    text = ask(service, request("GET", "/metrics")).body.decode()
    return int(text.split("\ncloche_connections ")[1].split()[0])

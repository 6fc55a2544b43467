"""As in test_turns.py: what a client of another API, or a program behind it, may have the server
read, decode or write. None of it takes a long turn."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from http_client import ask
from live import Client
from runtime_session import Session
from test_turns import FEW_S, MB, Turns

# ------------------------------------------------------------------------------- Sandbox Runtime


@pytest.fixture
def session(port: int) -> Iterator[Session]:
    session = Session(port, "turns")
    yield session
    assert session.end().status == 200


# Bytes that are neither UTF-8 nor GBK; that are; and those that JSON makes six times as long.
TEXTS = {
    "no text": rb"b'\xff'",
    "GBK": "'\u4e2d'.encode('gbk')".encode(),
    "control characters": rb"b'\x01'",
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_piece_of_a_file_takes_no_long_turn(session: Session, name: str) -> None:
    session.code(f"open('a.txt', 'wb').write({TEXTS[name].decode()} * (4 << 20))")
    turns = Turns(session.port)
    reply = session.get("readfile", "a.txt", f"?buffer_size={4 * MB}")
    assert reply.status == 200
    assert turns.longest() <= FEW_S
    assert 0 < reply.json["offset"] < 4 * MB


# -------------------------------------------------------------------------------- the native API

ODD = "\x01"  # six bytes of JSON


def test_a_search_in_the_metadata_of_many_takes_no_long_turn(port: int) -> None:
    client = Client(port)
    most = {f"{i}{ODD * 20}": ODD * 180 for i in range(31)} | {"user": 'somebody "\u00e4'}
    with contextlib.ExitStack() as stack:
        boxes = [stack.enter_context(client.box(metadata=most)) for _ in range(30)]
        last = stack.enter_context(client.box(metadata=most | {"user": 'me "\u00e4'}))
        turns = Turns(port)
        found, after = [], "0"
        while after is not None:
            query = f"?metadata.user=me%20%22%C3%A4&after={after}"
            page = ask(port, "GET", f"/v1/sandboxes{query}").json
            found += [box["id"] for box in page["sandboxes"]]
            after = page["next"]
        assert found == [last.path.rsplit("/", 1)[1]] and len(boxes) == 30
        assert turns.longest() <= FEW_S
        too_long = {str(i): ODD * 1024 for i in range(32)}
        assert last.ask("PATCH", "", {"metadata": too_long}).status == 422

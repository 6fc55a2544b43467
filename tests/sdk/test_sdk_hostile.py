"""Servers that are hostile or broken, and names that are: nothing runs twice, the key goes nowhere
else, nothing goes on for ever, and what is wrong is an exception of ours."""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cloche
from cloche import _events, errors
from cloche._calls import Call
from cloche._uploads import unpack
from driven import World
from broken import Answer, Asked, Hostile, refusal

DONE: dict[str, Any] = {"status": "ok", "stdout": "", "stderr": "", "results": []}
BOX: dict[str, Any] = {"id": "sbx_1", "kernels": [], "next": None}
NDJSON = (("Content-Type", "application/x-ndjson"), ("X-Execution-Id", "exe_1"))
LONG_UP = Answer({"uptime_seconds": 1e6})


# ------------------------------------------------------------------- once, and to nobody else


def test_what_may_have_arrived_is_not_sent_without_its_key() -> None:
    """A reply is lost; meanwhile another request is told that there is no room for keys."""

    def answer(asked: Asked) -> Answer:
        if asked.path == "/v1/info":
            return LONG_UP
        code = json.loads(asked.body)["code"]
        if code == "second" and asked.key:
            return refusal("idempotency_keys_full", 429, Retry_After="60")
        if code == "first" and server.count("POST /v1/run") == 1:
            assert client.run("second").status == "ok"
            return Answer(None)
        return Answer(DONE)

    with Hostile(answer) as server, cloche.Client(server.url) as client:
        assert client.run("first").status == "ok"
        keys = [asked.key for asked in server.asked if b'"first"' in asked.body]
        assert len(keys) == 2 and keys[0] == keys[1] is not None
        assert [asked.key for asked in server.asked if b'"second"' in asked.body][1] is None


def test_keys_that_are_never_wanted(sdk: World) -> None:
    full = refusal("idempotency_keys_full", 429, Retry_After="0.0000001")
    with Hostile(lambda asked: full) as server, sdk.Client(server.url) as client:
        with pytest.raises(errors.IdempotencyKeysFull):
            client.run("1")
        assert [asked.key is None for asked in server.asked] == [False, True]


def test_a_terminal_is_not_redirected(sdk: World) -> None:
    with Hostile(lambda asked: Answer(status=400)) as other:
        moved = Answer(status=302, headers=(("Location", f"ws{other.url[4:]}/elsewhere"),))

        def answer(asked: Asked) -> Answer:
            return moved if "pty" in asked.path else Answer(BOX)

        with Hostile(answer) as server, sdk.Client(server.url, api_key="clk_secret") as client:
            with sdk.Sandbox.create(client=client) as box:
                with pytest.raises(errors.ClocheError, match="opened no WebSocket"):
                    box.commands.terminal()
        assert server.count("GET /v1/sandboxes/sbx_1/commands/pty") == 1 and other.asked == []


# ------------------------------------------------------------------------------------- names

ELSEWHERE: dict[str, Callable[[Any, Any], Any]] = {
    "delete": lambda client, box: box.files.delete("../../sbx_2"),
    "read": lambda client, box: box.files.read("../../../files/f_1"),
    "write": lambda client, box: box.files.write("a/../../../x", "text"),
    "upload": lambda client, box: box.files.upload(__file__, "../../../x"),
    "list": lambda client, box: box.files.list(".."),
    "download": lambda client, box: box.files.download("a/.."),
    "a command": lambda client, box: box.commands.get("..").kill(),
    "a kernel": lambda client, box: box.kernels.get("..").delete(),
    "an execution": lambda client, box: client.result(".."),
    "events": lambda client, box: client.follow("..").result(),
    "a stored file": lambda client, box: client.files.delete(".."),
}


@pytest.mark.parametrize("what", ELSEWHERE)
def test_no_name_leads_to_another_place(sdk: World, what: str) -> None:
    """What a program or a stranger chose may be handed on."""
    with Hostile(lambda asked: Answer(BOX)) as server, sdk.Client(server.url) as client:
        box = sdk.Sandbox.create(client=client)
        asked = len(server.asked)
        with pytest.raises(errors.BadArgument):
            ELSEWHERE[what](client, box)
        assert len(server.asked) == asked


def test_an_id_is_one_part_of_a_path(sdk: World) -> None:
    with Hostile(lambda asked: Answer(BOX | {"result": None})) as server:
        with sdk.Client(server.url) as client:
            client.files.delete("../sandboxes/sbx_2?x#y")
            client.result("%2e%2e/sandboxes/sbx_2")
            assert [asked.path for asked in server.asked] == [
                "/v1/files/..%2Fsandboxes%2Fsbx_2%3Fx%23y",
                "/v1/executions/%252e%252e%2Fsandboxes%2Fsbx_2",
            ]
    with pytest.raises(errors.BadArgument):
        Call("GET", "/v1/files/../sandboxes")


# -------------------------------------------------------------------------------- what comes


def event(seq: Any, kind: str, **data: Any) -> bytes:
    return json.dumps({"seq": seq, "event": kind, "data": data}).encode() + b"\n"


START = event(1, "start", id="exe_1")
AGAIN = {
    "the same": START + event(2, "stdout", data="x\n"),
    "older ones": event(1, "stdout", data="x\n"),
}
NO_EVENTS = {
    "no number": event(None, "stdout", data="x"),
    "a number below one": event(0, "stdout", data="x"),
    "a list for a number": event([], "stdout"),
    "no number at all": event(1e400, "stdout"),
    "a list": b"[]\n",
    "a text": b'"x"\n',
    "something deep": b"[" * 100_000 + b"\n",
    "no JSON": b"what\n",
}


@pytest.mark.parametrize("what", AGAIN)
def test_events_that_come_again_and_again(sdk: World, what: str) -> None:
    stream = Answer(AGAIN[what], headers=NDJSON)
    with Hostile(lambda asked: stream) as server:
        with sdk.Client(server.url, retry_seconds=0.5) as client:
            lines: list[str] = []
            with pytest.raises(errors.ConnectionLost):
                client.run("1", on_stdout=lines.append)
            assert lines == ["x"] and server.count("POST") == 1 and len(server.asked) < 20


@pytest.mark.parametrize("what", NO_EVENTS)
def test_what_is_no_event(sdk: World, what: str) -> None:
    stream = Answer(NO_EVENTS[what], headers=NDJSON)
    with Hostile(lambda asked: stream) as server, sdk.Client(server.url) as client:
        with pytest.raises(errors.BadReply):
            client.run("1", on_stdout=print)
        assert len(server.asked) == 1


def test_nothing_comes_behind_the_end(sdk: World) -> None:
    stream = Answer(event(1, "end", **DONE) + event(2, "stdout", data="x"), headers=NDJSON)
    with Hostile(lambda asked: stream) as server, sdk.Client(server.url) as client:
        lines: list[str] = []
        assert client.run("1", on_stdout=lines.append).status == "ok"
        assert lines == [] and len(server.asked) == 1


def test_a_line_without_end(sdk: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_events, "LINE_MAX", 1 << 20)
    stream = Answer(START + b" " * (3 << 20), headers=NDJSON)
    with Hostile(lambda asked: stream) as server, sdk.Client(server.url) as client:
        with pytest.raises(errors.BadReply):
            client.run("1", on_stdout=print)


BROKEN = {
    "a list": Answer([]),
    "a number": Answer(5),
    "null": Answer(b"null"),
    "something deep": Answer(b"[" * 200_000),
    "other members": Answer({"sandboxes": 7, "profiles": [1], "files": {"x": 1}, "id": "sbx_1"}),
    "no members": Answer({}),
    "no gzip": Answer(b"what", headers=(("Content-Encoding", "gzip"),)),
    "a refusal of no kind": Answer({"error": {"code": [1]}, "detail": [{"msg": 1, "loc": 5}]}, 400),
    "a deep refusal": Answer(b"[" * 200_000, 400),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_reply_of_another_kind(sdk: World, what: str) -> None:
    with Hostile(lambda asked: BROKEN[what]) as server:
        with sdk.Client(server.url, retry_seconds=0.1) as client:
            for ask in (
                lambda: sdk.Sandbox.list(client=client),
                lambda: client.profiles(),
                lambda: client.files.list(),
            ):
                with pytest.raises(errors.ClocheError):
                    ask()


def test_a_reply_has_a_bound(sdk: World) -> None:
    """Also one that is small until it is unpacked."""
    packed = gzip.compress(b" " * (600 << 20), 1)
    answer = Answer(packed, headers=(("Content-Encoding", "gzip"),))
    with Hostile(lambda asked: answer) as server, sdk.Client(server.url) as client:
        with pytest.raises(errors.BadReply, match="has more than"):
            client.info()


def test_a_list_whose_pages_never_end(sdk: World) -> None:
    page = Answer({"sandboxes": [BOX], "next": "same"})
    with Hostile(lambda asked: page) as server, sdk.Client(server.url) as client:
        assert len(sdk.Sandbox.list(client=client)) == 2


# ------------------------------------------------------------------------------------ files


def archive(*members: tarfile.TarInfo) -> io.BytesIO:
    kept = io.BytesIO()
    with tarfile.open(fileobj=kept, mode="w:gz") as to:
        for member in members:
            to.addfile(member, io.BytesIO(bytes(member.size)))
    kept.seek(0)
    return kept


def test_a_hole_takes_no_room(tmp_path: Path) -> None:
    """A program's file may be larger than any disk."""
    hole = tarfile.TarInfo("hole")
    hole.size = 64 << 20
    unpack(archive(hole), tmp_path)
    made = (tmp_path / "hole").stat()
    assert made.st_size == 64 << 20 and made.st_blocks * 512 < 1 << 20


def test_a_downloaded_hole_takes_no_room(sdk: World, live: Any, tmp_path: Path) -> None:
    with sdk.Sandbox.create(profile="base") as box:
        box.run("f = open('hole', 'wb'); f.truncate(64 << 20); f.seek(5); f.write(b'x'); f.close()")
        box.files.download("hole", tmp_path / "hole")
        made = (tmp_path / "hole").stat()
        assert made.st_size == 64 << 20 and made.st_blocks * 512 < 4 << 20
        assert (tmp_path / "hole").read_bytes()[:7] == b"\0\0\0\0\0x\0"


def test_an_archive_cannot_replace_the_directory(tmp_path: Path) -> None:
    for name in (".", "./", "a/.."):
        member = tarfile.TarInfo(name)
        member.size = 1
        try:
            unpack(archive(member), tmp_path)
        except errors.BadArgument:
            assert ".." in name
    assert os.listdir(tmp_path) == []

"""One-shot programs: run(), stream(), batch(), stored files."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from cloche import errors
from driven import World
from harness import LiveService


def test_a_program(sdk: World, live: LiveService) -> None:
    result = sdk.run("print('out'); 6 * 7", client=None)
    assert (result.text, result.stdout, result.status, result.ok) == ("42", "out\n", "ok", True)
    assert result.error is None and result.usage.wall_ms >= 0 and result.profile == "base"
    assert result.check() is result


def test_all_of_its_fields(client: Any, tmp_path: Path) -> None:
    (tmp_path / "c").write_bytes(b"path")
    files = {
        "a": "text",
        "b": b"\0bytes",
        "c": tmp_path / "c",
        "d": io.BytesIO(b"file"),
        "e": io.StringIO("täxt"),
    }
    code = """
import os
for name in "abcde":
    print(open(name, "rb").read())
print(input(), os.environ["A"])
"""
    result = client.run(
        code,
        stdin="in",
        env={"A": "b"},
        files=files,
        timeout=20,
        profile="base",
        limits={"memory_mb": 100},
        network="none",
    )
    assert result.check().stdout == (
        "b'text'\nb'\\x00bytes'\nb'path'\nb'file'\nb't\\xc3\\xa4xt'\nin b\n"
    )


def test_what_a_program_does_wrong_is_in_its_result(client: Any) -> None:
    result = client.run("1 / 0")
    assert (result.status, result.error.name, result.error.value) == (
        "error",
        "ZeroDivisionError",
        "division by zero",
    )
    assert "ZeroDivisionError" in str(result.error)
    with pytest.raises(errors.ExecutionFailed, match="division by zero") as raised:
        result.check()
    assert raised.value.result is result
    late = client.run("while True: pass", timeout=0.2)
    assert (late.status, late.timed_out, late.limit_hit) == ("timeout", True, "time")
    assert "limit of time" in late.failure


def test_callbacks(client: Any) -> None:
    out: list[str] = []
    err: list[str] = []
    shown: list[Any] = []
    kinds: list[str] = []
    result = client.run(
        "import sys\nprint('a', end=''); print('b\\nc', end='')\nprint('e', file=sys.stderr)\n[1]",
        on_stdout=out.append,
        on_stderr=err.append,
        on_result=shown.append,
        on_event=lambda event: kinds.append(event.type),
    )
    assert (out, err) == (["ab", "c"], ["e"])
    assert [display.text for display in shown] == ["[1]"]
    assert kinds[0] == "start" and kinds[-1] == "end" and "result" in kinds
    assert (result.stdout, result.stderr, result.text) == ("ab\nc", "e\n", "[1]")


def test_a_stream(client: Any) -> None:
    with client.stream("for i in range(3): print(i)\n'end'") as events:
        first = next(iter(events))
        assert first.type == "start" and events.id.startswith("exe_")
        result = events.result()
    assert (result.stdout, result.text, result.id) == ("0\n1\n2\n", "'end'", events.id)
    again = client.result(events.id)
    assert again.stdout == result.stdout
    seqs = [event.seq for event in client.follow(events.id, after=1)]
    assert seqs and seqs[0] == 2 and seqs == sorted(seqs)


def test_large_files_travel_by_themselves(client: Any) -> None:
    """And are gone from the store afterwards."""
    before = len(client.files.list())
    big = b"x" * (2 << 20)
    result = client.run("import os; os.path.getsize('big')", files={"big": big, "small": "s"})
    assert result.text == str(len(big))
    with client.stream("len(open('big').read())", files={"big": big}) as events:
        assert events.result().text == str(len(big))
    assert len(client.files.list()) == before


def test_a_batch(client: Any) -> None:
    items = [{"code": f"print({i})"} for i in range(9)] + [{"code": "1", "profile": "gpu"}]
    found = {item.index: item for item in client.batch(items, concurrency=3)}
    assert sorted(found) == list(range(10))
    assert [found[i].result.stdout for i in range(9)] == [f"{i}\n" for i in range(9)]
    assert isinstance(found[9].problem, errors.UnknownProfile)
    with pytest.raises(errors.UnknownProfile):
        found[9].result


def test_the_same_key_runs_once(client: Any) -> None:
    code = "import uuid; str(uuid.uuid4())"
    key = f"test-{id(client)}"
    first = client.run(code, idempotency_key=key)
    again = client.run(code, idempotency_key=key)
    assert first.text == again.text
    with pytest.raises(errors.IdempotencyKeyReused):
        client.run("1", idempotency_key=key)


def test_stored_files(client: Any) -> None:
    stored = client.files.upload(b"content", 'odd "name"')
    assert stored.size_bytes == 7
    assert client.files.read(stored.file_id) == b"content"
    assert stored.file_id in [file.file_id for file in client.files.list()]
    client.files.delete(stored.file_id)
    with pytest.raises(errors.NoFile):
        client.files.read(stored.file_id)


def test_what_the_server_is(client: Any) -> None:
    assert client.info()["name"] == "cloche"
    assert [profile.name for profile in client.profiles()] == ["base"]


# ---------------------------------------------------------------------------- talking


def test_a_program_that_asks(sdk: World, live: LiveService) -> None:
    asked: list[str] = []
    lines: list[str] = []

    def answer(prompt: str) -> Any:
        asked.append(prompt)
        return {"Who? ": "Ada", "More? ": None}[prompt]

    code = "name = input('Who? ')\nprint('hi', name)\ntry: input('More? ')\nexcept EOFError: name"
    result = sdk.run(code + "\nname", on_input=answer, on_stdout=lines.append, timeout=20)
    assert (result.check().text, result.stdout) == ("'Ada'", "hi Ada\n")
    assert (asked, lines) == (["Who? ", "More? "], ["hi Ada"])


def test_a_conversation(client: Any) -> None:
    code = "import sys\nfor line in sys.stdin: print(line.upper(), end='', flush=True)\ninput"
    with client.talk(code, files={"large": b"x" * (2 << 20)}, timeout=20, silent=True) as talk:
        assert next(iter(talk)).type == "start" and talk.id.startswith("exe_")
        talk.write("one\n")
        assert next(iter(talk)).text == "ONE\n"
        talk.write(b"two\n")
        assert next(iter(talk)).text == "TWO\n"
        talk.answer("three")
        talk.end_input()
        result = talk.result()
    assert (result.status, result.stdout, result.text) == ("ok", "ONE\nTWO\nTHREE\n", None)


def test_a_conversation_is_interrupted(client: Any) -> None:
    with client.talk("input('? ')", timeout=20) as talk:
        types = []
        for event in talk:
            types.append(event.type)
            if event.type == "input":
                talk.interrupt()
    assert types[-3:] == ["stderr", "error", "end"], types
    assert talk.result().status == "interrupted"


def test_leaving_a_conversation_ends_its_program(client: Any) -> None:
    with client.talk("input('? ')", timeout=20) as talk:
        next(iter(talk))
    with pytest.raises(errors.ClientGone):
        for _ in range(1000):
            assert client.result(talk.id) is None


def test_a_callback_that_fails_ends_it(client: Any) -> None:
    def fail(prompt: str) -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        client.run("input()", on_input=fail, timeout=20)


def test_a_conversation_that_is_refused(sdk: World, client: Any, live: LiveService) -> None:
    with pytest.raises(errors.UnknownProfile):
        client.run("1", profile="gpu", on_input=str)
    with pytest.raises(errors.BadArgument):
        client.run("1", on_input=str, idempotency_key="mine")
    with sdk.Client("http://127.0.0.1:9") as nobody, pytest.raises(errors.NoServer):
        nobody.run("1", on_input=str)


def test_a_conversation_whose_connection_is_lost(far: Any, lossy: Any) -> None:
    lossy.lose(lambda seen: b'"input"' in seen)
    with pytest.raises(errors.ConnectionLost) as lost:
        # It asks a little after it began: both would be lost together.
        far.run("sum(range(3_000_000)); input('? ')", on_input=str, timeout=20)
    assert lost.value.execution_id.startswith("exe_")

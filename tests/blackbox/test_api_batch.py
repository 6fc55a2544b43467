"""POST /v1/execute/batch: many programs in one request, each result as soon as it is there."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from harness import Service, eventually
from http_client import Stream, download, execute, get, post, upload

SLEEP = "import time\nwhile True:\n    time.sleep(1000)"


def batch(service: Service, items: list[Any], **fields: Any) -> list[dict[str, Any]]:
    body = {"items": items, **fields}
    with Stream(service.port, "POST", "/v1/execute/batch", body) as stream:
        assert stream.reply.status == 200
        assert stream.reply.header("content-type") == "application/x-ndjson"
        return list(stream.lines())


def by_index(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(lines, key=lambda line: int(line["index"]))


@pytest.mark.once
def test_two_hundred_programs_give_two_hundred_results(service: Service) -> None:
    items = [{"code": f"{i} * {i}", "timeout_ms": 60000} for i in range(200)]
    lines = by_index(batch(service, items))
    assert [line["index"] for line in lines] == list(range(200))
    assert [line["stdout"] for line in lines] == [f"{i * i}\n" for i in range(200)]
    assert {line["status"] for line in lines} == {"ok"}
    assert len({line["id"] for line in lines}) == 200


def test_no_programs_give_no_results(service: Service) -> None:
    assert batch(service, []) == []


def test_a_line_is_the_result_of_an_execution(service: Service) -> None:
    (line,) = batch(service, [{"code": "n = open('f', 'w').write('x')"}])
    alone = execute(service.port, "n = open('f', 'w').write('x')")
    assert list(line) == ["index", *alone]
    assert download(service.port, line["files"][0]["file_id"]) == b"x"
    looked_up = get(service.port, f"/v1/executions/{line['id']}").json
    assert looked_up["result"] == {k: v for k, v in line.items() if k != "index"}


def test_a_bad_item_does_not_spoil_the_rest(service: Service) -> None:
    good = {"code": "1", "timeout_ms": 60000}
    bad: list[Any] = [
        5,
        "print(1)",
        [{"code": "1"}],
        {},
        {"code": 5},
        {"code": "1", "timeout_ms": 60001},
        {"code": "1", "files": [{"path": "a", "file_id": "nope"}]},
        {"code": "1", "files": [{"path": "../a", "content": ""}]},
        {"code": "1", "profile": "nope"},
        {"code": "1", "limits": {"memory_mb": 10**9}},
        {"code": "1", "limits": {"sauce": 1}},
    ]
    items = [item for one in bad for item in (good, one)]
    lines = by_index(batch(service, items))
    assert [line["index"] for line in lines] == list(range(2 * len(bad)))
    assert all(line["stdout"] == "1\n" for line in lines[::2])
    for item, line in zip(bad, lines[1::2]):
        assert "stdout" not in line, item
        alone = post(service.port, "/v1/execute", item)
        assert alone.status in (404, 422)
        assert line["detail"] == alone.json["detail"], item
        assert line["error"]["code"] == alone.json["error"]["code"], item


def test_programs_that_fail_are_results_too(service: Service) -> None:
    items = [
        {"code": "1/0"},
        {"code": "import os; os.kill(os.getpid(), 9)"},
        {"code": SLEEP, "timeout_ms": 300},
        {"code": "print('fine')", "timeout_ms": 60000},
    ]
    lines = by_index(batch(service, items))
    assert [line["status"] for line in lines] == ["error", "killed", "timeout", "ok"]
    assert [line["exit_code"] for line in lines] == [1, 137, None, 0]


def test_items_have_all_fields_of_a_request(service: Service) -> None:
    file_id = upload(service.port, "a", b"stored")
    items: list[dict[str, Any]] = [
        {"code": "input()", "stdin": "in"},
        {"code": "import sys; sys.argv[1]", "args": ["arg"]},
        {"code": "import os; os.environ['A']", "env": {"A": "b"}},
        {"code": "open('a').read()", "files": [{"path": "a", "file_id": file_id}]},
        {"code": "open('a').read()", "files": [{"path": "a", "content": "inline"}]},
        {"code": "5", "last_line_interactive": False},
    ]
    lines = by_index(batch(service, [item | {"timeout_ms": 60000} for item in items]))
    said = [line["stdout"] for line in lines]
    assert said == ["'in'\n", "'arg'\n", "'b'\n", "'stored'\n", "'inline'\n", ""]


def test_one_at_a_time_is_in_order(service: Service) -> None:
    items = [{"code": f"{i}", "timeout_ms": 60000} for i in range(20)]
    assert [line["index"] for line in batch(service, items, concurrency=1)] == list(range(20))


def test_a_result_does_not_wait_for_slower_ones(service: Service) -> None:
    """The first program waits for as long as it may; the others are told long before that."""
    items = [{"code": SLEEP, "timeout_ms": 60000}] + [{"code": f"{i}"} for i in range(1, 10)]
    body = {"items": items, "concurrency": 2}
    with Stream(service.port, "POST", "/v1/execute/batch", body) as stream:
        lines = stream.lines()
        assert [next(lines)["index"] for _ in range(9)] == list(range(1, 10))


@pytest.mark.parametrize("value", [0, -1, 65, "2", 1.5, True])
def test_concurrency_has_bounds(service: Service, value: Any) -> None:
    reply = post(service.port, "/v1/execute/batch", {"items": [], "concurrency": value})
    assert reply.status == 422
    assert reply.json["detail"][0]["loc"] == ["body", "concurrency"]


def test_the_most_at_a_time_is_allowed(service: Service) -> None:
    lines = batch(service, [{"code": "1", "timeout_ms": 60000}] * 100, concurrency=64)
    assert {line["stdout"] for line in lines} == {"1\n"} and len(lines) == 100


def test_a_batch_takes_its_turn_where_there_is_little_room(
    start_service: Callable[..., Service],
) -> None:
    service = start_service("--max-sandboxes", "1", "--pool", "0", "--profiles", "base")
    lines = batch(service, [{"code": f"{i}", "timeout_ms": 60000} for i in range(5)])
    assert [line.get("stdout") for line in by_index(lines)] == [f"{i}\n" for i in range(5)]


def hold(service: Service) -> Stream:
    """A program that runs until its client leaves."""
    body = {"code": "print(1)\n" + SLEEP, "timeout_ms": 60000}
    stream = Stream(service.port, "POST", "/v1/execute/stream", body)
    assert next(stream.events()).type == "output"
    return stream


def test_a_batch_waits_while_the_queue_is_full(start_service: Callable[..., Service]) -> None:
    room = ("--max-sandboxes", "1", "--pool", "0", "--queue-max", "1", "--queue-ms", "60000")
    service = start_service(*room, "--profiles", "base")
    items = [{"code": f"{i}", "timeout_ms": 60000} for i in range(10)]
    with ThreadPoolExecutor(1) as threads:
        with hold(service):
            waits = threads.submit(post, service.port, "/v1/execute", items[0])
            length = 'cloche_queue_length{profile="base"} 1'
            assert eventually(lambda: length in get(service.port, "/metrics").body.decode())
            body = {"items": items, "concurrency": 64}
            stream = Stream(service.port, "POST", "/v1/execute/batch", body)
        with stream:
            lines = by_index(list(stream.lines()))
        assert [line.get("stdout") for line in lines] == [f"{i}\n" for i in range(10)]
        assert waits.result().status == 200


def test_a_batch_does_not_wait_for_ever(start_service: Callable[..., Service]) -> None:
    room = ("--max-sandboxes", "1", "--pool", "1", "--queue-max", "1", "--queue-ms", "100")
    service = start_service(*room, "--profiles", "base")
    service.settle()  # the one that is held is ready: it must not wait itself
    with hold(service):
        lines = by_index(batch(service, [{"code": "1"}] * 5))
        codes = [line["error"]["code"] for line in lines]
        assert len(codes) == 5 and set(codes) <= {"queue_full", "queue_timeout"}


def test_what_is_over_is_not_kept_until_the_end(service: Service) -> None:
    """Neither the text of an item that ran nor that of one that was refused."""
    large: dict[str, Any] = {"code": "1 #" + "x" * (1 << 20), "timeout_ms": 60000}
    items = [large, large, large, {**large, "profile": "none"}, {**large, "code": 5, "stdin": "x"}]
    items = [*items, {"code": SLEEP, "timeout_ms": 60000, "args": ["x" * 100]}]
    body = {"items": items, "concurrency": 1}
    with Stream(service.port, "POST", "/v1/execute/batch", body) as stream:
        lines = stream.lines()
        assert [next(lines)["index"] for _ in range(5)] == [0, 1, 2, 3, 4]
        assert eventually(lambda: bodies(service) < 1 << 20, seconds=20.0), bodies(service)
    assert eventually(lambda: bodies(service) == 0)


def bodies(service: Service) -> int:
    text = get(service.port, "/metrics").body.decode()
    return int(float(re.findall(r"^cloche_bodies_bytes (\S+)$", text, re.M)[0]))


@pytest.mark.parametrize(
    "body,loc",
    [
        ({}, ["body", "items"]),
        ({"items": {}}, ["body", "items"]),
        ({"items": [], "colour": "red"}, ["body", "colour"]),
    ],
)
def test_a_body_that_is_no_batch_is_refused(service: Service, body: Any, loc: list[Any]) -> None:
    reply = post(service.port, "/v1/execute/batch", body)
    assert reply.status == 422
    assert reply.json["detail"][0]["loc"] == loc


def test_too_many_items_are_refused(service: Service) -> None:
    reply = post(service.port, "/v1/execute/batch", {"items": [{}] * 10001})
    assert (reply.status, reply.json["detail"][0]["type"]) == (422, "too_long")


def test_a_client_that_goes_away_ends_its_programs(service: Service) -> None:
    """What still runs is ended and what waits is not begun; the fixture looks for what is left."""
    items = [{"code": "1"}] + [{"code": SLEEP, "timeout_ms": 60000}] * 50
    body = {"items": items, "concurrency": 4}
    with Stream(service.port, "POST", "/v1/execute/batch", body) as stream:
        assert next(stream.lines())["stdout"] == "1\n"


def test_a_client_that_goes_away_may_leave_its_programs_running(service: Service) -> None:
    before = {f["file_id"] for f in get(service.port, "/v1/files").json["files"]}
    code = "import time\ntime.sleep(2)\nn = open('late', 'w').write('x')"
    items = [{"code": "1"}, {"code": code, "timeout_ms": 60000, "on_disconnect": "continue"}]
    with Stream(service.port, "POST", "/v1/execute/batch", {"items": items}) as stream:
        assert next(stream.lines())["index"] == 0

    def late() -> list[str]:
        files = get(service.port, "/v1/files").json["files"]
        return [f["filename"] for f in files if f["file_id"] not in before]

    assert eventually(lambda: late() == ["late"])


def test_a_client_that_does_not_read_gets_everything_later(service: Service) -> None:
    """Twenty megabytes are more than what sockets and the server hold for it."""
    code = "print('x' * 500_000)"
    body = {"items": [{"code": code, "timeout_ms": 60000}] * 40, "concurrency": 4}
    with Stream(service.port, "POST", "/v1/execute/batch", body) as stream:
        execute(service.port, "1", timeout_ms=60000)  # others are served meanwhile
        lines = list(stream.lines())
    assert len(lines) == 40
    assert all(len(line["stdout"]) == 500_001 for line in lines)

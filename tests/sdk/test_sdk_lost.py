"""Connections that break in the middle, and a server that is killed: nothing runs twice, and what
goes on is followed on."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any

import pytest

from cloche import errors
from deaths import kill_server
from driven import World
from harness import LiveService, eventually
from http_client import get
from lossy import Lossy

TICKS = "import time\nfor i in range(40):\n    print(i, flush=True)\n    time.sleep(0.02)\n'end'"


def in_the_middle(seen: bytes) -> bool:
    """Some of the output has come, in however many pieces."""
    return seen.count(b"stdout") > 3


def test_a_stream_goes_on(sdk: World, far: Any, lossy: Lossy) -> None:
    with sdk.Sandbox.create(profile="base", client=far) as box:
        lines: list[str] = []
        lossy.lose(in_the_middle)
        result = box.run(TICKS, on_stdout=lines.append)
        assert lines == [str(i) for i in range(40)] and result.text == "'end'"
        assert lossy.lost == 1 and lossy.count(b"GET /v1/executions/exe_") == 1
        lossy.lose(in_the_middle)
        numbers = [event.seq for event in box.stream(TICKS)]
        assert numbers == list(range(1, len(numbers) + 1))
        assert box.run("1").execution_count == 3


def test_a_program_goes_on(far: Any, lossy: Lossy) -> None:
    lossy.lose(in_the_middle)
    lines: list[str] = []
    result = far.run(TICKS, timeout=20, on_stdout=lines.append)
    assert lines == [str(i) for i in range(40)] and result.text == "'end'"
    assert lossy.lost == 1


def test_a_command_goes_on(sdk: World, far: Any, lossy: Lossy) -> None:
    with sdk.Sandbox.create(profile="base", client=far) as box:
        lossy.lose(in_the_middle)
        done = box.commands.run("for i in $(seq 0 30); do echo $i; sleep 0.02; done")
        assert done.stdout.split() == [str(i) for i in range(31)] and lossy.lost == 1
        assert len(box.commands.list()) == 1


def test_what_has_a_key_is_sent_again_and_runs_once(sdk: World, far: Any, lossy: Lossy) -> None:
    """The reply is lost, the work is not done twice."""
    lossy.lose(lambda seen: b"HTTP/1.1 201" in seen)
    with sdk.Sandbox.create(profile="base", client=far, metadata={"once": "1"}) as box:
        assert lossy.lost == 1 and lossy.count(b"POST /v1/sandboxes ") == 2
        assert len(sdk.Sandbox.list(metadata={"once": "1"}, client=far)) == 1
        box.run("n = 0")
        for _ in range(2):
            lossy.lose(lambda seen: b"HTTP/1.1 200" in seen)
            box.run("n += 1")
        assert lossy.lost == 3 and box.run("n").text == "2"
        lossy.lose(lambda seen: b"HTTP/1.1 200" in seen)
        box.commands.run("echo x >> log")
        lossy.lose(lambda seen: b"HTTP/1.1 202" in seen)
        box.commands.start("echo x >> log").wait()
        assert lossy.lost == 5 and box.files.read("log") == b"x\nx\n"


def test_a_program_whose_reply_is_lost_runs_once(far: Any, lossy: Lossy) -> None:
    before = far.run("1").id
    lossy.requests.clear()
    lossy.lose(lambda seen: b"HTTP/1.1 200" in seen and b'"text"' in seen)
    result = far.run("import uuid; str(uuid.uuid4())")
    assert lossy.lost == 1 and lossy.count(b"POST /v1/run") == 2
    assert far.result(result.id).text == result.text and before != result.id


def test_what_has_no_key_is_not_sent_again(sdk: World, far: Any, lossy: Lossy) -> None:
    with sdk.Sandbox.create(profile="base", client=far) as box:
        lossy.requests.clear()
        lossy.lose(lambda seen: b"interrupted" in seen)
        with pytest.raises(errors.ConnectionLost, match="may have been carried out"):
            box.interrupt()
        assert lossy.count(b"POST") == 1
        lossy.lose(in_the_middle)
        with pytest.raises(errors.ConnectionLost) as raised:
            box.run(TICKS, on_disconnect="interrupt")
        assert raised.value.execution_id.startswith("exe_")


def test_no_patience(sdk: World, lossy: Lossy) -> None:
    with sdk.Client(lossy.url, retry_seconds=0) as client:
        lossy.lose(lambda seen: b"HTTP/1.1 200" in seen)
        with pytest.raises(errors.ConnectionLost, match="was lost"):
            client.info()


def test_the_server_is_killed_in_the_middle_of_a_stream(
    sdk: World, start_live: Callable[..., LiveService]
) -> None:
    service = start_live()
    with sdk.Client(service.url) as client:
        with sdk.Sandbox.create(profile="base", client=client) as box:
            box.run("kept = 5")
            lines: list[str] = []

            def take(line: str) -> None:
                lines.append(line)
                if line == "7":
                    kill_server(service)

            result = box.run(TICKS, timeout=60, on_stdout=take)
            assert result.status == "ok" and result.text == "'end'"
            numbers = [int(line) for line in lines]
            assert numbers == sorted(set(numbers)) and numbers[-1] == 39
            assert box.run("kept").text == "5"
            kill_server(service)
            client.info()  # what only asks is asked again
            assert box.run("kept").text == "5"
            command = box.commands.start("echo ready; read a; echo got $a")
            with command.stream() as events:
                while not next(iter(events)).text:
                    pass
                kill_server(service)
            assert command.info().status == "running"  # what is written has no key: see above
            command.write("it\n")
            assert command.wait().exit_code == 0


def test_a_program_is_not_run_again_by_the_next_server(
    sdk: World, start_live: Callable[..., LiveService]
) -> None:
    """It has forgotten the key, so that it could run twice."""
    service = start_live()
    killer = threading.Thread(target=kill_when_busy, args=(service,))
    with sdk.Client(service.url) as client:
        client.info()
        killer.start()
        with pytest.raises(errors.ConnectionLost, match="may have been carried out"):
            client.run("import time; time.sleep(50)", timeout=60)
        killer.join()
        assert requests_under_way(service) == 1  # this one
        assert client.run("1").text == "1"


def requests_under_way(service: LiveService) -> int:
    text = get(service.port, "/metrics").body.decode()
    found = re.search(r"^cloche_requests_active (\d+)", text, re.MULTILINE)
    assert found, text
    return int(found[1])


def kill_when_busy(service: LiveService) -> None:
    if eventually(lambda: requests_under_way(service) == 2):
        kill_server(service)

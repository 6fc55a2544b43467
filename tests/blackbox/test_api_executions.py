"""Executions that can be looked up, and streams that can be resumed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from api_execute import SLEEP, samples
from harness import Service, eventually
from http_client import JSON, Connection, Stream, execute, get

SLOW = """if True:
    import os, time
    for i in range(20):
        os.write(1, f'{i}\\n'.encode())  # print() would write twice
        time.sleep(0.05)
"""


def test_an_execution_can_be_looked_up(service: Service) -> None:
    result = execute(service.port, "print('hi')")
    found = get(service.port, f"/v1/executions/{result['id']}").json
    assert (found["id"], found["state"], found["result"]) == (result["id"], "done", result)
    assert isinstance(found["created"], float)


@pytest.mark.parametrize("execution", ["exe_" + "0" * 32, "nope", "exe_", "x" * 2000])
@pytest.mark.parametrize("after", ["", "/events"])
def test_an_unknown_execution_is_a_404(service: Service, execution: str, after: str) -> None:
    reply = get(service.port, f"/v1/executions/{execution}{after}")
    assert (reply.status, reply.json["error"]["code"]) == (404, "no_execution")


def test_a_running_execution_is_running(service: Service) -> None:
    body = {"code": "print(1, flush=True)\n" + SLEEP, "timeout_ms": 60000}
    with Stream(service.port, "POST", "/v1/execute/stream", body) as stream:
        next(stream.events())
        found = get(service.port, f"/v1/executions/{stream.reply.header('x-execution-id')}").json
        assert (found["state"], found["result"]) == ("running", None)


def test_a_stream_as_lines(service: Service) -> None:
    code = "import sys\nprint('out', flush=True)\nprint('err', file=sys.stderr)"
    headers = {**JSON, "Accept": "application/x-ndjson"}
    with Connection(service.port) as connection:
        body = json.dumps({"code": code}).encode()
        reply = connection.ask("POST", "/v1/execute/stream", body, headers)
    assert reply.header("content-type") == "application/x-ndjson"
    lines = [json.loads(line) for line in reply.body.splitlines() if line]
    said = {"stdout": "", "stderr": ""}
    for line in lines[:-1]:
        assert line["event"] == "output", line
        said[line["data"]["stream"]] += line["data"]["data"]
    assert said == {"stdout": "out\n", "stderr": "err\n"}
    assert lines[-1]["event"] == "result" and lines[-1]["data"]["exit_code"] == 0
    assert [line["seq"] for line in lines[:-1]] == sorted(line["seq"] for line in lines[:-1])


def events(service: Service, execution: str, query: str = "", **headers: str) -> list[Any]:
    path = f"/v1/executions/{execution}/events{query}"
    with Stream(service.port, "GET", path, headers=headers) as stream:
        assert stream.reply.status == 200
        assert stream.reply.header("content-type") == "text/event-stream; charset=utf-8"
        return list(stream.events())


def test_the_events_of_an_execution_are_numbered(service: Service) -> None:
    code = "import sys\nprint('out', flush=True)\nprint('err', file=sys.stderr)\n1/0"
    result = execute(service.port, code, last_line_interactive=False)
    found = events(service, result["id"])
    assert [e.id for e in found] == list(range(1, len(found) + 1))
    assert (found[0].type, found[0].data) == ("start", {"id": result["id"]})
    assert "".join(e.data["data"] for e in found if e.type == "stdout") == result["stdout"]
    assert "".join(e.data["data"] for e in found if e.type == "stderr") == result["stderr"]
    assert found[-1].type == "end"
    whole = {k: v for k, v in result.items() if k not in ("stdout", "stderr")}
    assert found[-1].data == whole


def test_events_may_begin_after_a_number(service: Service) -> None:
    result = execute(service.port, "print('a')")
    everything = events(service, result["id"])
    assert len(everything) >= 3
    for n in range(len(everything) + 2):
        assert events(service, result["id"], f"?after={n}") == everything[n:]
        assert events(service, result["id"], **{"Last-Event-ID": str(n)}) == everything[n:]
    assert events(service, result["id"], "?after=1", **{"Last-Event-ID": "2"}) == everything[1:]


@pytest.mark.parametrize("after", ["x", "-1", "1.5", "99999999999999999999999"])
def test_a_number_that_is_none_is_refused(service: Service, after: str) -> None:
    result = execute(service.port, "1")
    reply = get(service.port, f"/v1/executions/{result['id']}/events?after={after}")
    assert (reply.status, reply.json["error"]["code"]) == (422, "bad_value")


def test_events_may_come_as_lines(service: Service) -> None:
    result = execute(service.port, "import os; n = os.write(1, b'a\\n')")
    path = f"/v1/executions/{result['id']}/events"
    with Stream(service.port, "GET", path, headers={"Accept": "application/x-ndjson"}) as stream:
        assert stream.reply.header("content-type") == "application/x-ndjson"
        lines = list(stream.lines())
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    assert [line["event"] for line in lines] == ["start", "stdout", "end"]
    assert lines[1]["data"] == {"data": "a\n"}


@pytest.mark.parametrize("way", ["query", "header"])
def test_a_stream_that_was_cut_can_be_resumed(service: Service, way: str) -> None:
    body = {"code": SLOW, "timeout_ms": 60000, "on_disconnect": "continue"}
    with Stream(service.port, "POST", "/v1/execute/stream", body) as stream:
        execution = stream.reply.header("x-execution-id")
        assert execution
        assert next(stream.events()).data["data"].startswith("0\n")
    seen = []
    path = f"/v1/executions/{execution}/events"
    with Stream(service.port, "GET", path) as stream:  # and this one breaks off too
        for event in stream.events():
            seen.append(event)
            if len(seen) == 2:  # all that it says may have come at once
                break
    last = seen[-1].id
    if way == "query":
        seen += events(service, execution, f"?after={last}")
    else:
        seen += events(service, execution, **{"Last-Event-ID": str(last)})
    assert [e.id for e in seen] == list(range(1, len(seen) + 1)), "nothing twice, nothing left out"
    said = "".join(e.data["data"] for e in seen if e.type == "stdout")
    assert said == "".join(f"{i}\n" for i in range(20))
    assert (seen[-1].type, seen[-1].data["status"]) == ("end", "ok")


def test_several_may_follow_one_execution(service: Service) -> None:
    body = {"code": SLOW, "timeout_ms": 60000}
    with Stream(service.port, "POST", "/v1/execute/stream", body) as stream:
        path = f"/v1/executions/{stream.reply.header('x-execution-id')}/events"
        with Stream(service.port, "GET", path) as one, Stream(service.port, "GET", path) as two:
            assert list(one.events()) == list(two.events())
        assert list(stream.events())[-1].type == "result"


def test_a_client_that_leaves_ends_its_program(service: Service) -> None:
    body = {"code": "print(1, flush=True)\n" + SLEEP, "timeout_ms": 60000}
    with Stream(service.port, "POST", "/v1/execute/stream", body) as stream:
        execution = stream.reply.header("x-execution-id")
        next(stream.events())

    def found() -> Any:
        return get(service.port, f"/v1/executions/{execution}").json

    assert eventually(lambda: found()["state"] == "done")
    assert found()["result"]["error"]["code"] == "client_gone"


def audited(service: Service) -> list[dict[str, Any]]:
    text = (service.state / "audit.log").read_text()  # the last line may be on its way
    return [json.loads(line) for line in text.rpartition("\n")[0].splitlines()]


def test_a_client_that_leaves_is_in_the_audit_log_all_the_same(service: Service) -> None:
    body = {"code": "print(1, flush=True)\n" + SLEEP, "timeout_ms": 60000}
    with Stream(service.port, "POST", "/v1/execute/stream", body) as stream:
        execution = stream.reply.header("x-execution-id")
        next(stream.events())
    assert eventually(lambda: execution in [line["execution"] for line in audited(service)])


def test_a_client_that_does_not_wait_for_its_result_ends_its_program(service: Service) -> None:
    """The same without a stream; the fixture sees to it that nothing is left."""
    before = len(audited(service))
    with Connection(service.port) as connection:
        code = "import time\nopen('/tmp/x', 'w')\ntime.sleep(1000)"
        body = json.dumps({"code": code, "timeout_ms": 60000}).encode()
        connection.send("POST", "/v1/execute", body, JSON)
        assert eventually(lambda: active(service) >= 2), "ours, and the one that asks"
    assert eventually(lambda: len(audited(service)) == before + 1)


def test_a_slow_reader_gets_everything(service: Service) -> None:
    """Far more than the server holds for a reader; the program waits meanwhile."""
    code = "for i in range(300): print('x' * 9999)"
    body = {"code": code, "timeout_ms": 60000, "limits": {"output_bytes": 10_000_000}}
    with Stream(service.port, "POST", "/v1/execute/stream", body) as stream:
        assert execute(service.port, "1", timeout_ms=60000)["stdout"] == "1\n"
        said = sum(len(e.data["data"]) for e in stream.events() if e.type == "output")
    assert said == 3_000_000


def active(service: Service) -> float:
    return samples(service)["cloche_requests_active", ""]

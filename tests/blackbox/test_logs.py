"""The log on stderr: one line an event, as logfmt or JSON, and nobody waits for who reads it."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shlex
import signal
from collections.abc import Callable
from typing import Any

import pytest

from family import kill
from harness import Service, clean_env, eventually, failed, run_cli
from raw_http import Raw, ask, execute, request, server_pid

QUICK = ("--profiles", "base")
JSON_LOG = (*QUICK, "--log-format", "json")
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
F_SETPIPE_SZ = 1031
SAID = re.compile(r"(cloche .* listening on .*|http://.*|profile .*)")


def lines(service: Service) -> list[str]:
    """The log without what `serve` says on its stdout, which the harness has in the same pipe."""
    service.drain()
    return [line for line in service.text().splitlines() if not SAID.fullmatch(line)]


def objects(service: Service) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines(service)]


def read(line: str, form: str) -> dict[str, Any]:
    if form == "json":
        event: dict[str, Any] = json.loads(line)
        return event
    return dict(word.split("=", 1) for word in shlex.split(line.replace("\\", "\\\\")))


@pytest.mark.parametrize("form", ["logfmt", "json"])
def test_a_request_has_its_id_and_traceparent(
    start_service: Callable[..., Service], form: str
) -> None:
    service = start_service(*QUICK, "--log-format", form)
    path = "/v1/nothing%22here%20id=x"
    reply = ask(service, request("GET", path, f"traceparent: {TRACE}"))
    id_ = reply.header("x-request-id") or "none"
    assert eventually(lambda: any(id_ in line for line in lines(service)))
    (line,) = [line for line in lines(service) if id_ in line]
    event = read(line, form)
    assert list(event)[:6] == ["ts", "level", "process", "pid", "msg", "id"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", event["ts"])
    assert (event["level"], event["process"], event["msg"]) == ("info", "server", "request")
    assert (event["id"], event["traceparent"], event["method"]) == (id_, TRACE, "GET")
    assert str(event["status"]) == str(reply.status)
    if form == "json":
        assert event["status"] == reply.status and isinstance(event["ms"], float)
        assert event["pid"] == server_pid(service)


@pytest.mark.parametrize("form", ["logfmt", "json"])
def test_a_request_that_could_be_read_in_two_ways_is_logged_too(
    start_service: Callable[..., Service], form: str
) -> None:
    service = start_service(*QUICK, "--log-format", form)
    assert ask(service, request("GET", "/twice", "Host: 127.0.0.1")).status == 400
    assert eventually(lambda: any("/twice" in line for line in lines(service)))
    (line,) = [line for line in lines(service) if "/twice" in line]
    event = read(line, form)
    assert (event["msg"], event["method"], str(event["status"])) == ("request", "GET", "400")
    counted = 'cloche_requests_total{method="-",route="none",status="400"} 1'
    assert counted in ask(service, request("GET", "/metrics")).body.decode()


def test_every_process_writes_json(start_service: Callable[..., Service]) -> None:
    service = start_service(*JSON_LOG, "--log-level", "debug", "--cgroup", "none")
    os.kill(server_pid(service), signal.SIGKILL)
    for process in service.remember():
        if process.role == "cloche-nursery":  # with the first of them its sandboxes go
            kill(process)
    said = {"warden", "server", "serve"}
    assert execute(service, "1").status == 200
    assert eventually(lambda: said <= {event["process"] for event in objects(service)})
    assert any(e["msg"] == "nursery ended" and e["profile"] == "base" for e in objects(service))
    assert any(e["msg"] == "server ended" and e["level"] == "error" for e in objects(service))


def test_the_format_is_a_setting() -> None:
    done = run_cli("config", "--log-format", "json")
    assert re.search(rb'log_format +"json" +--log-format', done.stdout)
    failed(run_cli("config", "--log-format", "xml"), "xml", "logfmt json")


@pytest.mark.parametrize("word", ["json", "plain"])
def test_the_format_by_the_code_interpreters_variable(word: str) -> None:
    done = run_cli("config", env=clean_env(LOG_FORMAT=word))
    assert re.search(rf'log_format +"{word}" +LOG_FORMAT'.encode(), done.stdout), done


@pytest.mark.parametrize("form", ["logfmt", "json"])
def test_a_reader_that_stops_holds_nobody_up(
    start_service: Callable[..., Service], form: str
) -> None:
    service = start_service(*QUICK, "--log-format", form)
    fcntl.fcntl(service.output, F_SETPIPE_SZ, 4096)
    with Raw(service) as raw:  # far more lines than the pipe takes, and nobody reads it
        for _ in range(500):
            raw.send(request("GET", "/health"))
            assert raw.reply().status == 200
    assert execute(service, "print(1)").json["stdout"] == "1\n"
    lost = ask(service, request("GET", "/metrics")).body.decode()
    count = int(re.findall(r"^cloche_log_lines_lost_total (\d+)$", lost, re.MULTILINE)[0])
    assert count > 400
    lines(service)  # room again

    def told() -> bool:
        ask(service, request("GET", "/health"))
        of = [line for line in lines(service) if "log lines lost" in line]
        return sum(int(read(line, form)["n"]) for line in of) >= count

    assert eventually(told), "it says so when somebody reads again"

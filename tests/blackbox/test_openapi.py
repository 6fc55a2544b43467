"""/openapi.json as programs read it: generators of types, linters, validators. What it says is held
against every answer of every test by answers.py; this is about the document."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import answers
from answers import references
from client import ROOT
from harness import Service
from http_client import get

HERE = Path(__file__).parent
NPM = ROOT / "build" / "npm" / "node_modules"
HANG_S = 600
NEEDS_NPM = "script/setup --npm installs what this test needs"


def tool(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """A program of npm's, which finds its own modules."""
    assert NPM.exists(), NEEDS_NPM
    env = os.environ | {"REDOCLY_TELEMETRY": "off", "NODE_PATH": str(NPM), "NO_COLOR": "1"}
    done = subprocess.run(
        list(map(str, words)), capture_output=True, text=True, env=env, timeout=HANG_S, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done


@pytest.fixture(scope="module")
def spec(service_session: Service) -> dict[str, Any]:
    found: dict[str, Any] = get(service_session.port, "/openapi.json").json
    return found


@pytest.fixture(scope="module")
def document(spec: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("openapi") / "openapi.json"
    path.write_text(json.dumps(spec, indent=1))
    return path


def operations(spec: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, item in spec["paths"].items():
        for method, operation in item.items():
            yield f"{method.upper()} {path}", operation


# ---------------------------------------------------------------------------- others read it


def test_redocly_has_nothing_to_say(document: Path) -> None:
    done = tool(NPM / ".bin/redocly", "lint", "--config", HERE / "redocly.yaml", document)
    assert "warning" not in done.stdout + done.stderr, done.stderr


def test_swagger_parser_takes_it(document: Path) -> None:
    program = (
        "const made = require('@apidevtools/swagger-parser');"
        "(made.default ?? made).validate(process.argv[1])"
        ".then(() => console.log('valid'), (e) => { console.error(e); process.exit(1); });"
    )
    assert tool("node", "-e", program, document).stdout == "valid\n"


def test_types_are_made_of_it_and_none_is_unknown(document: Path, tmp_path: Path) -> None:
    types = tmp_path / "types.d.ts"
    tool(NPM / ".bin/openapi-typescript", document, "-o", types)
    tool("node", NPM / "typescript/bin/tsc", "--noEmit", "--strict", types)
    text = types.read_text()
    headers = len(re.findall(r"headers: \{\s*\[name: string\]: unknown;\s*\}", text))
    deep = len(re.findall(r"JsonInner: [^{]*\{[^}]*\} \| unknown\[\]", text))
    assert headers > 100 and deep == 1  # an array in an array in an array: whatever it holds
    assert len(re.findall(r"\bunknown\b(?!_)", text.replace('"unknown_', '"'))) == headers + deep


# ---------------------------------------------------------------------------- it is whole


def test_everything_in_it_is_referred_to(spec: dict[str, Any]) -> None:
    found = set(references(spec))
    for kind in ("schemas", "responses"):
        for name in spec["components"][kind]:
            assert f"#/components/{kind}/{name}" in found, name


def test_every_reply_and_every_error_is_described(spec: dict[str, Any]) -> None:
    for name, operation in operations(spec):
        good = [s for s in operation["responses"] if s < "400"]
        bad = [s for s in operation["responses"] if "400" <= s <= "599"]
        assert good and {"400", "403", "421", "500", "503"} <= set(bad), name
        for status in good:
            content = operation["responses"][status].get("content")
            assert content or status in ("101", "202", "204", "304"), (name, status)


def test_the_codes_of_an_endpoint_are_of_the_table(spec: dict[str, Any]) -> None:
    table = spec["x-errors"]
    for code, about in table.items():
        assert about["remediation"] and 400 <= about["status"] < 600, code
    for name, response in spec["components"]["responses"].items():
        codes = set(re.findall(r"`(\w+)`", response["description"]))
        assert codes and codes <= set(table), name
    used = {
        c for r in spec["components"]["responses"].values() for c in r["description"].split("`")
    }
    assert set(table) - used <= {"no_route", "bad_method", "bad_json", "too_many_executions"}


def test_the_page_on_errors_has_the_same_codes(spec: dict[str, Any]) -> None:
    page = (ROOT / "docs" / "errors.md").read_text().partition("## Over HTTP")[2]
    rows = re.findall(r"^\| ([\d, ]+) \| (.*?) \|", page, re.MULTILINE)
    told = {code: status for status, words in rows for code in re.findall(r"`(\w+)`", words)}
    assert set(told) == set(spec["x-errors"])
    for code, about in spec["x-errors"].items():
        assert code == "disk_full" or str(about["status"]) in told[code], code


def test_only_what_is_known_to_fail_is_a_500(spec: dict[str, Any]) -> None:
    """A word in a row's `errors` that is not in the table would be none."""
    codes = {code for code, about in spec["x-errors"].items() if about["status"] == 500}
    assert codes == {"internal", "modules_failed"}


def test_websockets_tell_their_messages(spec: dict[str, Any]) -> None:
    sockets = {name: op for name, op in operations(spec) if "101" in op["responses"]}
    assert len(sockets) == 6
    for name, operation in sockets.items():
        for who in ("client", "server"):
            reference = operation["x-websocket"][who]["$ref"]
            assert reference.rpartition("/")[2] in operation["description"], name


def test_streams_tell_their_events(spec: dict[str, Any]) -> None:
    content = spec["paths"]["/v1/sandboxes/{id}/execute"]["post"]["responses"]["200"]["content"]
    assert set(content) == {"application/json", "text/event-stream", "application/x-ndjson"}
    named = [reference.rpartition("/")[2] for reference in references(content)]
    assert named == ["CellResult", "CellEvents", "CellEvents"]
    events = spec["components"]["schemas"]["CellEvents"]["oneOf"]
    kinds = {
        spec["components"]["schemas"][one["$ref"][21:]]["properties"]["event"]["const"]
        for one in events
    }
    assert kinds == {
        *("start", "stdout", "stderr", "result", "display", "clear", "input", "error", "end"),
        "failed",
    }


def test_replies_are_closed(spec: dict[str, Any]) -> None:
    """A field that is not described fails the test that meets it."""
    schemas = spec["components"]["schemas"]
    for name in ("ProgramResult", "CellResult", "Sandbox", "Kernel", "Command", "Info", "Error"):
        assert schemas[name]["additionalProperties"] is False, name
        assert schemas[name]["required"], name


def test_handlers_read_no_query_but_through_the_table() -> None:
    """call_query knows the row; http_query does not."""
    allowed = {"api/core/call.c", "api/core/access.c", "api/core/sites.c"}
    for file in (ROOT / "src" / "api").rglob("*.c"):
        if str(file.relative_to(ROOT / "src")) not in allowed:
            assert not re.search(r"\bhttp_query\(", file.read_text()), file


# ---------------------------------------------------------------------------- the check itself


def test_an_answer_that_is_not_described_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLOCHE_ANSWERS_LOG", raising=False)
    good: dict[str, Any] = {"status": "ok", "message": None, "version": "1"}
    answers.check("GET", "/health", 200, "application/json", json.dumps(good).encode())
    changes: list[dict[str, Any]] = [{"more": 1}, {"status": 5}, {"version": None}]
    for changed in changes:
        body = json.dumps(good | changed).encode()
        with pytest.raises(AssertionError, match="not as /openapi.json has it"):
            answers.check("GET", "/health", 200, "application/json", body)
    with pytest.raises(AssertionError, match="status 418"):
        answers.check("GET", "/health", 418, "application/json", b"{}")
    with pytest.raises(AssertionError, match="type text/csv"):
        answers.check("GET", "/health", 200, "text/csv", b"a,b")
    error = {"code": "no_file", "message": "", "remediation": "", "retryable": False}
    body = json.dumps({"error": error, "detail": ""}).encode()
    answers.check("GET", "/v1/files/x?a=b", 404, "application/json", body)
    with pytest.raises(AssertionError, match="no_file"):
        answers.check("GET", "/v1/executions/x", 404, "application/json", body)


def test_an_event_that_is_not_described_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLOCHE_ANSWERS_LOG", raising=False)
    event = {"event": "stdout", "data": {"data": "x"}, "seq": 1}
    path = "/v1/executions/exe_1/events?after=1"
    for kind in ("text/event-stream", "application/x-ndjson"):
        answers.check_part("GET", path, kind, event)
        with pytest.raises(AssertionError):
            answers.check_part("GET", path, kind, event | {"event": "stdoutt"})
    answers.check_message("/v1/execute/stream", {"type": "start", "seq": 1, "id": "exe_1"})
    with pytest.raises(AssertionError):
        answers.check_message("/v1/execute/stream", {"type": "start", "seq": 1})

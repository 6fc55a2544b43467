"""Holds every answer that the tests get against /openapi.json, as it comes.

The clients (http_client.py, raw_http.py, raw_ws.py) hand their replies, events and messages to
`check…` here. A schema becomes a function once; what is not described (another status, a field
more, a code of an error that the endpoint is not said to have) is an AssertionError in the test
that met it. With CLOCHE_ANSWERS_LOG=FILE it is a line of that file instead, for who wants all of
them at once.

The specification is that of the program under test, with every dialect: `prepare` asks a server
for it once per build, and keeps it below build/.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from client import ROOT

Schema = dict[str, Any]
Check = Callable[[Any, str], None]

MOST = 8 << 20  # bytes of JSON that are parsed a second time
KINDS: dict[str, Callable[[Any], bool]] = {
    "null": lambda v: v is None,
    "boolean": lambda v: isinstance(v, bool),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
    "string": lambda v: isinstance(v, str),
    "array": lambda v: isinstance(v, list),
    "object": lambda v: isinstance(v, dict),
}
# What the words of a schema mean here; the rest says nothing about a value.
CHECKED = {
    *("$ref", "type", "const", "enum", "properties", "required", "additionalProperties", "items"),
    *("oneOf", "anyOf", "allOf"),
}
SAYS_NOTHING = {
    *("title", "description", "default", "format"),
    *("minimum", "maximum", "minItems", "maxItems", "minProperties", "maxProperties"),
}


class Mismatch(Exception):
    pass


def shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 300 else text[:300] + "…"


def references(node: Any) -> Iterator[str]:
    """All that is referred to in it."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref":
                yield value
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


# ---------------------------------------------------------------------------- schemas


class Schemas:
    """The functions that check values."""

    def __init__(self, spec: Schema) -> None:
        self.spec = spec
        self.named: dict[str, Check] = {}

    def at(self, reference: str) -> Schema:
        node: Any = self.spec
        for step in reference.removeprefix("#/").split("/"):
            node = node[step]
        assert isinstance(node, dict)
        return node

    def reference(self, name: str) -> Check:
        def check(value: Any, where: str) -> None:
            if name not in self.named:
                self.named[name] = self.make(self.at(name))
            self.named[name](value, where)

        return check

    def make(self, schema: Schema) -> Check:
        strange = set(schema) - CHECKED - SAYS_NOTHING
        assert not strange, f"the tests do not know what {strange} means in a schema"
        checks = [
            getattr(self, "_" + word.strip("$").lower())(schema) for word in self.words(schema)
        ]

        def check(value: Any, where: str) -> None:
            for one in checks:
                one(value, where)

        return checks[0] if len(checks) == 1 else check

    @staticmethod
    def words(schema: Schema) -> list[str]:
        found = [word for word in ("$ref", "type", "const", "enum") if word in schema]
        if "properties" in schema or "additionalProperties" in schema:
            found.append("properties")
        return found + [w for w in ("items", "oneOf", "anyOf", "allOf") if w in schema]

    def _ref(self, schema: Schema) -> Check:
        return self.reference(schema["$ref"])

    @staticmethod
    def _type(schema: Schema) -> Check:
        words = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        tests = [KINDS[word] for word in words]

        def check(value: Any, where: str) -> None:
            if not any(test(value) for test in tests):
                raise Mismatch(f"{where} is no {' or '.join(words)}: {shown(value)}")

        return check

    @staticmethod
    def _const(schema: Schema) -> Check:
        return Schemas._enum({"enum": [schema["const"]]})

    @staticmethod
    def _enum(schema: Schema) -> Check:
        def check(value: Any, where: str) -> None:
            if value not in schema["enum"]:
                raise Mismatch(f"{where} is none of {shown(schema['enum'])}: {shown(value)}")

        return check

    def _properties(self, schema: Schema) -> Check:
        known = {name: self.make(of) for name, of in schema.get("properties", {}).items()}
        needed = schema.get("required", [])
        more = schema.get("additionalProperties", True)
        others = self.make(more) if isinstance(more, dict) else None

        def check(value: Any, where: str) -> None:
            if not isinstance(value, dict):
                return
            for name in needed:
                if name not in value:
                    raise Mismatch(f"{where} has no {name}: {shown(value)}")
            for name, inner in value.items():
                if name in known:
                    known[name](inner, f"{where}.{name}")
                elif others:
                    others(inner, f"{where}.{name}")
                elif more is False:
                    raise Mismatch(f"{where}.{name} is not described: {shown(inner)}")

        return check

    def _items(self, schema: Schema) -> Check:
        each = self.make(schema["items"])

        def check(value: Any, where: str) -> None:
            if isinstance(value, list):
                for i, item in enumerate(value):
                    each(item, f"{where}[{i}]")

        return check

    def _choice(self, options: list[Schema], exactly: bool) -> Check:
        checks = [self.make(option) for option in options]

        def check(value: Any, where: str) -> None:
            fits, why = 0, []
            for one in checks:
                try:
                    one(value, where)
                    fits += 1
                    if not exactly:
                        return
                except Mismatch as exc:
                    why.append(str(exc))
            if fits != 1:
                raise Mismatch(f"{where} fits {fits} of {len(checks)}: {'; '.join(why)[:1500]}")

        return check

    def _oneof(self, schema: Schema) -> Check:
        return self._choice(schema["oneOf"], True)

    def _anyof(self, schema: Schema) -> Check:
        return self._choice(schema["anyOf"], False)

    def _allof(self, schema: Schema) -> Check:
        checks = [self.make(part) for part in schema["allOf"]]

        def check(value: Any, where: str) -> None:
            for one in checks:
                one(value, where)

        return check


# ---------------------------------------------------------------------------- endpoints


class Specification:
    def __init__(self, spec: Schema) -> None:
        self.spec = spec
        self.schemas = Schemas(spec)
        self.paths = sorted(map(self._path, spec["paths"]), key=lambda p: (p[0].groups, -len(p[1])))

    def _path(self, template: str) -> tuple[re.Pattern[str], str]:
        item = self.spec["paths"][template]
        last = re.search(r"\{(\w+)\}$", template)
        rest = last and any(
            parameter.get("x-rest")
            for operation in item.values()
            for parameter in operation.get("parameters", [])
            if parameter["name"] == last[1]
        )
        pattern = re.sub(r"\\{\w+\\}", "([^/]+)", re.escape(template))
        if rest:
            pattern = pattern.removesuffix("/([^/]+)") + "(?:/(.*))?"
        return re.compile(pattern, re.DOTALL), template

    @functools.lru_cache(maxsize=4096)
    def operation(self, method: str, target: str) -> Schema | None:
        path = unquote(target.partition("?")[0], errors="replace")
        for pattern, template in self.paths:
            if pattern.fullmatch(path):
                found: Schema | None = self.spec["paths"][template].get(method.lower())
                if found:
                    return found
        return None

    @functools.lru_cache(maxsize=4096)
    def _checker(self, text: str) -> Check:
        return self.schemas.make(json.loads(text))

    def check(self, schema: Schema, value: Any, where: str) -> None:
        self._checker(json.dumps(schema))(value, where)

    def response(self, operation: Schema, status: int) -> Schema:
        found: Schema | None = operation["responses"].get(str(status))
        if found is None:
            raise Mismatch(f"the status {status} is not described")
        return self.schemas.at(found["$ref"]) if "$ref" in found else found


spec: Specification | None = None


def media(content: Schema, kind: str | None) -> Schema | None:
    """The schema for a Content-Type."""
    plain = (kind or "").partition(";")[0].strip().lower()
    one = content.get(plain)
    if one is None and "*/*" in content:  # a file, whatever is in it
        return None
    if one is None:
        raise Mismatch(f"the type {plain or 'none'} is not described, but {list(content)}")
    found: Schema = one["schema"]
    return (
        found if plain == "application/json" or plain.endswith(("ndjson", "event-stream")) else None
    )


def _tell(method: str, target: str, problem: Mismatch) -> None:
    text = f"{method} {target[:200]}: {problem}"
    log = os.environ.get("CLOCHE_ANSWERS_LOG")
    if not log:
        raise AssertionError(f"not as /openapi.json has it: {text}") from None
    test = os.environ.get("PYTEST_CURRENT_TEST", "")
    with open(log, "a") as file:
        file.write(f"{text}\t{test}\n")


def check(method: str, target: str, status: int, kind: str | None, body: bytes) -> None:
    """A whole reply."""
    operation = spec.operation(method, target) if spec else None
    is_json = (kind or "").startswith("application/json")
    if not spec or not operation or status in (400, 414, 431) and not is_json:  # of the library
        return
    if "default" in operation["responses"]:  # somebody else's, maybe
        return
    # A dialect that this server does not speak; a path with or without a slash at its end.
    if status == 404 and b'"code":"no_route"' in body or status == 307:
        return
    try:
        response = spec.response(operation, status)
        if not body:
            return
        if "content" not in response:
            raise Mismatch(f"the body of a {status} is not described")
        schema = media(response["content"], kind)
        if schema and is_json and len(body) < MOST:
            spec.check(schema, json.loads(body), "it")
    except Mismatch as problem:
        _tell(method, target, problem)


def check_part(method: str, target: str, kind: str, value: Any) -> None:
    """A line or an event of a stream."""
    operation = spec.operation(method, target) if spec else None
    if not spec or not operation:
        return
    try:
        schema = media(spec.response(operation, 200).get("content", {}), kind)
        if schema:
            spec.check(schema, value, "it")
    except Mismatch as problem:
        _tell(method, target, problem)


def check_message(target: str, value: Any) -> None:
    """What came over a WebSocket."""
    operation = spec.operation("GET", target) if spec else None
    if not spec or not operation:
        return
    try:
        spec.check(operation["x-websocket"]["server"], value, "it")
    except Mismatch as problem:
        _tell("WebSocket", target, problem)


# ---------------------------------------------------------------------------- where it is from


def prepare(program: Path, ask: Callable[[], bytes]) -> None:
    """Uses the specification of that program, which `ask` gets of a server when nobody did yet."""
    global spec
    server = program.with_name("cloche-server")
    name = f"{server}:{server.stat().st_mtime_ns}".encode()
    kept = ROOT / "build" / f"openapi-{hashlib.sha256(name).hexdigest()[:16]}.json"
    kept.parent.mkdir(exist_ok=True)
    with open(kept.parent / "openapi.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            for old in sorted(kept.parent.glob("openapi-*.json"), key=os.path.getmtime)[:-3]:
                old.unlink()
            made = kept.with_suffix(".new")
            made.write_bytes(ask())
            made.rename(kept)
        spec = Specification(json.loads(kept.read_bytes()))

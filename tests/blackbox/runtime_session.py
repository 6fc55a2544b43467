"""A session of the dialect Sandbox Runtime, for its tests."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from http_client import FORM, Reply, ask, part, post

PLACE = "/workspace/se"


class Session:
    """A session by its id; nothing is made before it is used."""

    def __init__(self, port: int, name: str, **headers: str) -> None:
        self.port, self.name, self.headers = port, quote(name, safe=""), headers

    def get(self, what: str, path: str = "", query: str = "") -> Reply:
        place = f"{PLACE}/{what}/{self.name}/{quote(path)}" if path else self.at(what)
        return ask(self.port, "GET", f"{place}{query}", headers=self.headers)

    def at(self, what: str) -> str:
        return f"{PLACE}/{what}/{self.name}"

    def post(self, what: str, **fields: Any) -> Reply:
        return post(self.port, self.at(what), fields, **self.headers)

    def good(self, what: str, **fields: Any) -> Any:
        reply = self.post(what, **fields)
        assert reply.status == 200, reply.body
        return reply.json

    def run(self, command: str, *args: str) -> Any:
        return self.good("execute", command=command, args=list(args))

    def code(self, code: str, **fields: Any) -> Any:
        return self.good("execute_code", code=code, **fields)

    def upload(self, name: str, data: bytes, query: str = "") -> Reply:
        body = part(data, filename=name)
        return ask(self.port, "POST", self.at("upload") + query, body, FORM | self.headers)

    def files(self, path: str = "", query: str = "") -> dict[str, int]:
        reply = ask(self.port, "GET", f"{self.at('files')}/{quote(path)}{query}")
        assert reply.status == 200, reply.body
        return {item["filename"]: item["size"] for item in reply.json["files"]}

    def end(self) -> Reply:
        return ask(self.port, "DELETE", self.at("session"), headers=self.headers)


def names(port: int) -> set[str]:
    return set(ask(port, "GET", f"{PLACE}/workspaces").json["workspaces"])

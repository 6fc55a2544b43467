"""Servers inside live sandboxes, and pages of them in a browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TypeVar

from browser import Browser
from harness import LiveService, eventually
from inside import PORT, Inside

S = TypeVar("S", bound=LiveService)
DOMAIN = "ports.localhost"  # which Chromium itself resolves to loopback


def browsed(service: S) -> Iterator[S]:
    """Without a look for leaks: the browser keeps its connections."""
    try:
        yield service
        service.check_health()
        service.stop()
    finally:
        service.kill()


def host_of(box: Inside, port: int = PORT) -> str:
    return f"{port}-{box.id.replace('_', '')}.{DOMAIN}:{box.port}"


def origin_of(box: Inside, port: int = PORT) -> str:
    return f"http://{host_of(box, port)}"


def start(box: Inside, program: str, port: int = PORT) -> None:
    """A program of its own, until it listens."""
    reply = box.ask("POST", "/commands", {"cmd": "cat > app.py", "stdin": program})
    assert reply.status == 200, reply
    box.command("exec python3 app.py")
    assert eventually(lambda: port in box.ports()), box.get("/commands")


def answer(body: str, kind: str = "text/html", *headers: str) -> bytes:
    data = body.encode()
    lines = "".join(line + "\r\n" for line in headers)
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(data)}\r\n{lines}\r\n"
    return head.encode() + data


PAGE = answer("<!doctype html><link rel=icon href=data:><title>inside</title><p>a page</p>")


def tried(browser: Browser, body: str, *arguments: Any) -> Any:
    """What an async function with this body returns in the page, or "error: …". Its arguments are
    `a`."""
    browser.script(
        f"""
        window.said = null;
        const body = async (a) => {{ {body} }};
        body({json.dumps(arguments)})
          .then((value) => (window.said = {{ value }}))
          .catch((error) => (window.said = {{ value: `error: ${{error}}` }}));
        """
    )
    return browser.wait("window.said")["value"]


def numbers_heard(box: Inside) -> int:
    return int(box.python("len(heard)"))

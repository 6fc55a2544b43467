"""Servers inside live sandboxes that say exactly what a test wants, and what they heard."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

from harness import Service
from http_client import Reply
from live import Box, Client
from raw_http import Raw

PORT = 8001
OK = b"HTTP/1.1 200 OK\r\n"
PLAIN = OK + b"Content-Length: 5\r\n\r\nhello"

# `serve(port, answers)`: each connection gets the next of the answers (the last one for ever) when
# its request has come whole, and is closed; what it sent is in heard. A step of an answer is bytes,
# "read" (what else there is), "hold" (until the other side closes), "echo", "flood" or a time to
# sleep; after "deaf" no request is waited for.
SCRIPT = r"""
import base64, itertools, json, re, socket, threading, time
heard, ended, servers = [], [], []

def _whole(data):
    head, mark, body = data.partition(b"\r\n\r\n")
    if not mark:
        return False
    length = re.search(rb"(?i)\ncontent-length: *(\d+)", head)
    if re.search(rb"(?i)\ntransfer-encoding: *chunked", head):
        return body.endswith(b"0\r\n\r\n")
    return len(body) >= (int(length[1]) if length else 0)

def _talk(sock, number, steps):
    got = b""
    if steps and steps[0] == "deaf":
        steps = steps[1:]
    else:
        while not _whole(got):
            more = sock.recv(1 << 16)
            if not more:
                break
            got += more
    heard.append(got)
    try:
        for step in steps:
            if step == "hold":
                while sock.recv(1 << 16):
                    pass
            elif step == "read":
                heard[-1] += sock.recv(1 << 16)
            elif step == "flood":  # 64 MiB
                for _ in range(64):
                    sock.sendall(bytes(1 << 20))
            elif step == "echo":
                while more := sock.recv(1 << 16):
                    sock.sendall(more)
            elif isinstance(step, (int, float)):
                time.sleep(step)
            else:
                sock.sendall(step)
    except OSError:
        pass
    sock.close()
    ended.append(number)

def serve(port, answers, family=socket.AF_INET, host=""):
    server = socket.socket(family)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    server.bind((host, port))
    server.listen(16)
    servers.append(server)
    def accept():
        for number in itertools.count():
            try:
                sock = server.accept()[0]
            except OSError:
                return
            steps = answers[min(number, len(answers) - 1)]
            threading.Thread(target=_talk, args=(sock, number, steps), daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()
"""


class Inside(Box):
    """A live sandbox with such servers."""

    def __init__(self, client: Client, **fields: Any) -> None:
        super().__init__(client, **fields)
        assert self.run(SCRIPT)["status"] == "ok"

    def __enter__(self) -> Inside:
        return self

    def serve(self, *answers: bytes | list[Any], port: int = PORT, **more: str) -> Inside:
        """`more`: family and host, as code."""
        steps = [a if isinstance(a, list) else [a] for a in answers]
        words = "".join(f", {name}={value}" for name, value in more.items())
        self.python(f"serve({port}, {steps!r}{words})")
        return self

    def python(self, code: str) -> str:
        result = self.run(code)
        assert result["status"] == "ok", result
        return str(result["text"] or result["stdout"])

    def heard(self, number: int = -1) -> bytes:
        """A whole request, as it came."""
        text = self.python(f"base64.b64encode(heard[{number}]).decode()")
        return base64.b64decode(text.strip("'"))

    def head(self, number: int = -1) -> tuple[str, list[tuple[str, str]]]:
        """The request line and the headers, names in small letters."""
        lines = self.heard(number).partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
        fields = [line.partition(": ")[::2] for line in lines[1:]]
        return lines[0], [(name.lower(), value) for name, value in fields]

    def at(self, path: str = "/", port: int = PORT) -> str:
        return f"{self.path}/ports/{port}{path}"

    def ask_inside(
        self, path: str = "/", method: str = "GET", port: int = PORT, **headers: Any
    ) -> Reply:
        return self.ask(method, f"/ports/{port}{path}", **headers)

    def command(self, cmd: str) -> str:
        """One that goes on."""
        reply = self.ask("POST", "/commands", {"cmd": cmd, "background": True})
        assert reply.status == 202, reply
        return str(reply.json["id"])

    def ports(self) -> list[int]:
        return [one["port"] for one in self.get("/ports")["ports"]]


def raw_request(service: Service | int | Path, data: bytes) -> Raw:
    """A connection on which that was sent."""
    raw = Raw(service)
    raw.asked = None
    raw.sock.sendall(data)
    return raw


def fields_of(reply: Any, name: str) -> list[str]:
    return [value for key, value in reply.headers if key.lower() == name.lower()]


def refused(reply: Any, status: int, code: str, *words: str) -> None:
    error = json.loads(reply.body)["error"]
    assert (reply.status, error["code"]) == (status, code), reply
    for word in words:
        assert re.search(word, error["message"]), (word, error)

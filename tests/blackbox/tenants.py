"""Profiles that tenants make over HTTP, as their keys see them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness import LiveService, run_cli
from http_client import Event, Reply
from live import SSE, Client, Events
from wheels import wheel, wheels_place


class Tenants(LiveService):
    """A service with keys: alice and bob may make profiles, carol may not. Packages are alpha and
    beta, from a directory of wheels."""

    def __init__(self, directory: Path, *more: str) -> None:
        directory.chmod(0o711)
        file = directory / "keys.json"
        self.keys: dict[str, str] = {}
        for name in ("alice", "bob", "carol"):
            right = () if name == "carol" else ("--right", "profiles")
            done = run_cli("key", "add", name, "--keys", file, *right)
            assert done.returncode == 0, done.stderr
            self.keys[name] = done.stdout.decode().strip()
        self.wheels = wheels_place(directory / "wheels")
        wheel(self.wheels, "alpha")
        wheel(self.wheels, "beta", needs="alpha")
        self.trees = directory / "state-tenants"
        options = ["--keys", str(file), "--wheels", str(self.wheels), "--build-network", "none"]
        if "--profiles" not in more:
            options += ["--profiles", "base"]
        super().__init__(directory, *options, *more)

    def of(self, name: str) -> Client:
        return Client(self.port, Authorization=f"Bearer {self.keys[name]}")

    def left(self) -> list[str]:
        """What lies on the disk."""
        return sorted(path.name for path in self.trees.iterdir())


def ask_for(client: Client, name: str, *requirements: str, **more: Any) -> Reply:
    body = {"name": name, "requirements": list(requirements)} | more
    return client.ask("POST", "/v1/profiles", body)


def follow(client: Client, name: str, form: dict[str, str] = SSE) -> list[Event]:
    """All that is said while it is built."""
    path = f"/v1/profiles/{name}/events"
    with Events(client.port, "GET", path, None, client.headers | form) as events:
        return list(events)


def built(client: Client, name: str) -> dict[str, Any]:
    """As it is when it is built, or was not."""
    last = follow(client, name)[-1]
    assert last.type == "end", last
    found: dict[str, Any] = last.data
    return found


def make(client: Client, name: str, *requirements: str, **more: Any) -> dict[str, Any]:
    reply = ask_for(client, name, *requirements, **more)
    assert reply.status == 202 and reply.json["state"] in ("building", "ready"), reply
    found = built(client, name)
    assert found["state"] == "ready", found
    return found


def broken(client: Client, name: str, *requirements: str, **more: Any) -> str:
    """Why it could not be built."""
    reply = ask_for(client, name, *requirements, **more)
    assert reply.status == 202, reply
    found = built(client, name)
    assert found["state"] == "broken", found
    assert client.ask("GET", f"/v1/profiles/{name}").json["problem"] == found["problem"]
    return str(found["problem"])


def run(client: Client, name: str, code: str, **more: Any) -> dict[str, Any]:
    body = {"code": code, "profile": name, "timeout_ms": 20000} | more
    reply = client.ask("POST", "/v1/execute", body)
    assert reply.status == 200, reply
    found: dict[str, Any] = reply.json
    return found


def names(client: Client) -> list[str]:
    reply = client.ask("GET", "/v1/profiles")
    assert reply.status == 200, reply
    return sorted(profile["name"] for profile in reply.json["profiles"])


def remove(client: Client, name: str, force: bool = False) -> Reply:
    return client.ask("DELETE", f"/v1/profiles/{name}" + ("?force=true" if force else ""))


@contextlib.contextmanager
def tenants(directory: Path, *more: str) -> Iterator[Tenants]:
    service = Tenants(directory, *more)
    try:
        service.settle()
        yield service
        service.check_no_leak()
        service.stop()
    finally:
        service.kill()

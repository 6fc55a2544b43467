"""A service with live sandboxes and two tenants."""

from __future__ import annotations

from pathlib import Path

from harness import LiveService, run_cli
from live import Client


class KeyedLive(LiveService):
    """One with keys for two tenants, who may have three sandboxes each."""

    def __init__(self, directory: Path, *more: str) -> None:
        directory.chmod(0o711)
        file = directory / "keys.json"
        made = [run_cli("key", "add", name, "--keys", file) for name in ("alice", "bob")]
        self.keys = [done.stdout.decode().strip() for done in made]
        options = ("--profiles", "base", "--live-per-tenant", "3", "--live-ttl-max-seconds", "5000")
        super().__init__(directory, "--keys", str(file), *options, *more)

    def client(self, number: int) -> Client:
        return Client(self.port, Authorization=f"Bearer {self.keys[number]}")

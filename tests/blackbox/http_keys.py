"""What the tests of keys and addresses share."""

from __future__ import annotations

from pathlib import Path

from harness import Service, run_cli
from raw_http import Reply, ask, request

QUICK = ("--profiles", "base")


def key(file: Path, *words: str) -> str:
    done = run_cli("key", *words, "--keys", file)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().strip()


def bearer(secret: str) -> str:
    return f"Authorization: Bearer {secret}"


def get(service: Service, path: str, *headers: str) -> Reply:
    return ask(service, request("GET", path, *headers))


WAITS = """
import time
print("running", flush=True)
time.sleep(1.5)
print("finished")
"""

"""What the tests of `cloche sandbox` and `cloche shell` share."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from harness import Service, run_cli
from terminal import Terminal

Done = subprocess.CompletedProcess[bytes]


def sandbox(service: Service, verb: str, *words: str | os.PathLike[str], **options: object) -> Done:
    return run_cli("sandbox", verb, "--server", service.url, *words, **options)  # type: ignore


@contextmanager
def made(service: Service, *words: str) -> Iterator[str]:
    """A sandbox of this test's own."""
    done = sandbox(service, "create", *words)
    assert (done.returncode, done.stderr) == (0, b""), done
    name = done.stdout.decode().strip()
    try:
        yield name
    finally:
        sandbox(service, "delete", name)


def listed(service: Service, *words: str) -> list[str]:
    done = sandbox(service, "list", "--json", *words)
    return [one["id"] for one in json.loads(done.stdout)["sandboxes"]]


FIGURE = "import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show()"


@contextmanager
def terminal(service: Service, box: str, *words: str) -> Iterator[Terminal]:
    """Before the shell's own prompt what is typed may be lost, as at any terminal."""
    with Terminal("sandbox", "shell", "--server", service.url, box, *words) as t:
        t.expect("$ ")
        yield t

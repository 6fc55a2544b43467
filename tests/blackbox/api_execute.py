"""What the tests of executions share."""

from __future__ import annotations

import re

from harness import Service
from http_client import get

SLEEP = "import time\nwhile True:\n    time.sleep(1000)"

SAMPLE = re.compile(r'([a-z_:][a-z0-9_:]*)(?:\{((?:[a-z_]+="[^"\n]*",?)*)\})? (\S+)', re.I)


def samples(service: Service) -> dict[tuple[str, str], float]:
    """The text format of Prometheus, read strictly."""
    reply = get(service.port, "/metrics")
    assert reply.status == 200
    assert (reply.header("content-type") or "").startswith("text/plain; version=0.0.4")
    found: dict[tuple[str, str], float] = {}
    types: dict[str, str] = {}
    for line in reply.body.decode().splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in types and kind in ("counter", "gauge", "histogram")
            types[name] = kind
        elif not line.startswith("# HELP "):
            match = SAMPLE.fullmatch(line)
            assert match, line
            name, labels = match.group(1), match.group(2) or ""
            family = re.sub(r"_(bucket|sum|count)$", "", name)
            assert name in types or types.get(family) == "histogram", line
            assert (name, labels) not in found, line
            found[name, labels] = float(match.group(3))
    return found

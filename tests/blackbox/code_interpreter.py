"""What the tests of the Code Interpreter API share."""

from __future__ import annotations

import re
from typing import Any

from harness import Service
from http_client import Event, Reply, Stream

UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")

SLEEP = "import time\nwhile True:\n    time.sleep(1000)"


def run_stream(service: Service, code: str, **fields: Any) -> tuple[Reply, list[Event]]:
    with Stream(service.port, "POST", "/v1/execute/stream", {"code": code, **fields}) as stream:
        return stream.reply, list(stream.events())


def paths(result: dict[str, Any]) -> list[str]:
    return sorted(f["path"] for f in result["files"])

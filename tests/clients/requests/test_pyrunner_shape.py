"""PyRunner's API as its users call it, with requests and with httpx."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
import requests  # type: ignore[import]

KEYS = {"status", "stdout", "stderr", "execution_time", "memory_used", "error"}


@pytest.fixture(params=["requests", "httpx"])
def run(request: pytest.FixtureRequest, service: Any) -> Any:
    post: Any = requests.post if request.param == "requests" else httpx.post

    def ask(status: int = 200, **body: Any) -> Any:
        reply = post(f"{service.url}/run", json=body, timeout=60)
        assert reply.status_code == status, reply.text
        return reply.json()

    return ask


def test_what_comes_back(run: Any) -> None:
    done = run(code="import numpy as np\nnp.arange(4).sum()")
    assert set(done) == KEYS and (done["status"], done["stdout"]) == ("success", "6\n")
    assert isinstance(done["execution_time"], float) and done["error"] is None


def test_what_goes_wrong(run: Any) -> None:
    done = run(code="1 / 0")
    assert done["status"] == "error" and done["error"] == done["stderr"]
    assert "ZeroDivisionError" in done["stderr"]
    done = run(code="import os")
    assert done["error"] == "Import of 'os' is not allowed"
    done = run(code="while True: pass", timeout=1)
    assert (done["status"], done["execution_time"]) == ("timeout", 1.0)


def test_what_is_refused(run: Any) -> None:
    (fault,) = run(422, code="1", foo=1)["detail"]
    assert (fault["type"], fault["loc"]) == ("extra_forbidden", ["body", "foo"])
    (fault,) = run(422, code=" ")["detail"]
    assert fault["msg"] == "Value error, Code cannot be empty"

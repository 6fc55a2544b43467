"""Services with live sandboxes that the tests here mistreat."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deaths import QUICK
from family import check_back_at, come_to_rest, drained, write_config
from harness import LiveService
from http_client import ask


@pytest.fixture(scope="module")
def mistreated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LiveService, Any]]:
    """A service that these tests mistreat one after the other, and how it was at rest."""
    directory = tmp_path_factory.mktemp("mistreated")
    service = LiveService(directory, "--config", write_config(directory, QUICK))
    try:
        service.execute("pass", profile="base", timeout_ms=60000)
        with drained(service):
            yield service, come_to_rest(service)
            service.check_health()
            service.remember()
        service.stop()
    finally:
        service.kill()


@pytest.fixture
def service(mistreated: tuple[LiveService, Any]) -> Iterator[LiveService]:
    """At the end all that the test made is gone again."""
    service, before = mistreated
    yield service
    for box in ask(service.port, "GET", "/v1/sandboxes").json["sandboxes"]:
        assert ask(service.port, "DELETE", f"/v1/sandboxes/{box['id']}").status == 204
    check_back_at(service, before)


@pytest.fixture
def doomed(tmp_path: Path) -> Iterator[LiveService]:
    service = LiveService(tmp_path, "--config", write_config(tmp_path, QUICK))
    try:
        yield service
    finally:
        service.kill()

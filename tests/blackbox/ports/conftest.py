"""A service for each file, and for each test a live sandbox whose servers say what it wants."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness import LiveService, settled
from inside import Inside
from live import Client


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    options = ("--profiles", "base", "--ports-idle-s", "3600")
    yield from settled(LiveService(tmp_path_factory.mktemp("ports"), *options))


@pytest.fixture
def client(service: LiveService) -> Client:
    return Client(service.port)


@pytest.fixture
def box(client: Client) -> Iterator[Inside]:
    with Inside(client) as made:
        yield made

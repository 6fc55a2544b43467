"""The fixtures of the black-box tests, and around every test a neighbour that must not notice."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

BLACKBOX = Path(__file__).resolve().parent.parent / "blackbox"
sys.path.insert(0, str(BLACKBOX))

from harness import Engine, LiveService  # noqa: E402
from held import SERVER_CANARY, Held  # noqa: E402
from live import Client  # noqa: E402


def fixtures_of(directory: Path) -> Any:
    name = f"{directory.name}_fixtures"
    spec = importlib.util.spec_from_file_location(name, directory / "conftest.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_fixtures = fixtures_of(BLACKBOX)
_network = fixtures_of(BLACKBOX.parent / "network")

pytest_configure = _fixtures.pytest_configure
start_engine = _fixtures.start_engine
service_session = _fixtures.service_session
start_service = _fixtures.start_service
live_session = _fixtures.live_session
live_service = _fixtures.live_service
start_live = _fixtures.start_live
world_session = _network.world_session
on_host = _network.on_host
world = _network.world
net_session = _network.net_session
net = _network.net
start_net = _network.start_net

NEIGHBOUR = """
import sys
mine = []
for line in sys.stdin:
    mine.append(line)
    print(len(mine), *map(str.strip, mine), flush=True)
"""


@pytest.fixture(scope="session")
def engine_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    os.environ["ESCAPE_CANARY"] = SERVER_CANARY
    yield from _fixtures.engine_session.__wrapped__(tmp_path_factory)


@pytest.fixture
def engine(engine_session: Engine) -> Iterator[Engine]:
    """A program of somebody else runs through the whole test. Afterwards the engine is healthy and
    has let go of everything."""
    with Held(engine_session, NEIGHBOUR) as neighbour:
        neighbour.send("before\n")
        assert neighbour.line() == "1 before"
        yield engine_session
        engine_session.check_health()
        neighbour.send("after\n")
        assert neighbour.line() == "2 before after"
        assert neighbour.end().result["status"] == "ok"
    engine_session.check_health()
    engine_session.check_no_leak()


@pytest.fixture
def port(live_session: LiveService) -> Iterator[int]:
    """Of a service in which one sandbox of somebody else lives through the test."""
    port = live_session.port
    with Client(port).box() as neighbour:
        neighbour.run("mine = 1")
        yield port
        assert neighbour.text("mine") == "1"
    live_session.check_health()
    live_session.check_no_leak()

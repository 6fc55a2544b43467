"""The SDK against a real server, in plain code and in async code: most tests run once with each."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLACKBOX = ROOT / "tests" / "blackbox"
sys.path[:0] = [str(BLACKBOX), str(ROOT / "py" / "sdk")]

from cloche import _default  # noqa: E402
from driven import ASYNC, PLAIN, World  # noqa: E402
from harness import LiveService, warm  # noqa: E402
from lossy import Lossy  # noqa: E402

_spec = importlib.util.spec_from_file_location("blackbox_fixtures", BLACKBOX / "conftest.py")
assert _spec is not None and _spec.loader is not None
_fixtures = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_fixtures)

pytest_configure = _fixtures.pytest_configure
start_live = _fixtures.start_live
start_service = _fixtures.start_service


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    options = ("--profiles", "base", "--max-file-mb", "4")
    yield from warm(LiveService(tmp_path_factory.mktemp("sdk"), *options))


def close_default_clients() -> None:
    """They keep a connection for whoever asks again, which is no leak."""
    while _default._clients:
        _default._clients.popitem()[1].close()


@pytest.fixture
def live(shared: LiveService, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveService]:
    """The service of most tests, where a program looks for it. No sandbox may be left behind."""
    monkeypatch.setenv("CLOCHE_SERVER", shared.url)
    monkeypatch.delenv("CLOCHE_API_KEY", raising=False)
    yield shared
    with PLAIN.Client(shared.url) as client:
        left = PLAIN.Sandbox.list(client=client)
        assert left == []
    close_default_clients()
    shared.check_health()
    shared.check_no_leak()


@pytest.fixture(params=["plain", "async"])
def sdk(request: pytest.FixtureRequest, live: LiveService) -> Iterator[World]:
    """Both worlds with the interface of the plain one. Before `live` looks for leaks, the async one
    has closed its clients."""
    if request.param == "plain":
        yield PLAIN
        return
    with ASYNC as world:
        yield world


@pytest.fixture
def client(sdk: World, live: LiveService) -> Iterator[Any]:
    with sdk.Client(live.url) as client:
        yield client


@pytest.fixture
def box(sdk: World, client: Any) -> Iterator[Any]:
    with sdk.Sandbox.create(profile="base", client=client) as box:
        yield box


@pytest.fixture
def lossy(live: LiveService) -> Iterator[Lossy]:
    with Lossy(live.port) as proxy:
        yield proxy


@pytest.fixture
def far(sdk: World, lossy: Lossy) -> Iterator[Any]:
    """A client behind a line that loses connections."""
    with sdk.Client(lossy.url) as client:
        yield client

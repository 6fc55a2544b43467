"""Fixtures: an engine for the whole session, one for a single test, and the leak check that follows
every test."""

from __future__ import annotations

import signal
import tempfile
import threading
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import answers
from harness import Engine, LiveService, Service, checked, cloche_bin, starter, warm
from raw_http import KeyedService


def the_specification() -> bytes:
    """Of a server that speaks every dialect, as it does unless it is told otherwise."""
    with tempfile.TemporaryDirectory() as directory:
        service = Service(Path(directory), "--profiles", "base")
        try:
            with urllib.request.urlopen(service.url + "/openapi.json") as reply:
                return bytes(reply.read())
        finally:
            service.stop()
            if service.process.stdout:
                service.process.stdout.close()


def pytest_configure(config: pytest.Config) -> None:
    if not cloche_bin().exists():
        raise pytest.UsageError(f"no {cloche_bin()}: build first, or set CLOCHE_BIN")
    if not config.option.collectonly:
        answers.prepare(cloche_bin(), the_specification)
    # Whoever ends us (a timeout around the tests) ends our engines with us. A worker of xdist is
    # sometimes not in the main thread (execnet is slow to leave its first task), and cannot know.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *_: pytest.exit("terminated"))


@pytest.fixture(scope="session")
def engine_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    yield from warm(Engine(tmp_path_factory.mktemp("engine")))


@pytest.fixture
def engine(engine_session: Engine) -> Iterator[Engine]:
    """The session's engine. After the test it is healthy and has let go of everything."""
    yield from checked(engine_session)


@pytest.fixture
def start_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Engine]]:
    yield from starter(lambda *options: Engine(tmp_path_factory.mktemp("engine"), *options))


@pytest.fixture
def own_engine(start_engine: Callable[..., Engine]) -> Engine:
    """An engine for this test alone, which it may mistreat."""
    return start_engine()


@pytest.fixture(scope="session")
def service_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    yield from warm(Service(tmp_path_factory.mktemp("service")))


@pytest.fixture
def service(service_session: Service) -> Iterator[Service]:
    """The session's HTTP service."""
    yield from checked(service_session)


@pytest.fixture
def start_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Service]]:
    yield from starter(lambda *options: Service(tmp_path_factory.mktemp("service"), *options))


@pytest.fixture(scope="session")
def live_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    yield from warm(LiveService(tmp_path_factory.mktemp("live")))


@pytest.fixture
def live_service(live_session: LiveService) -> Iterator[LiveService]:
    """The session's service with live sandboxes."""
    yield from checked(live_session)


@pytest.fixture
def start_live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., LiveService]]:
    """One profile will do, unless the test says which it wants."""

    def make(*options: str) -> LiveService:
        if not {"--profiles", "--config"} & set(options):
            options += ("--profiles", "base")
        return LiveService(tmp_path_factory.mktemp("live"), *options)

    yield from starter(make)


@pytest.fixture(scope="session")
def keyed_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedService]:
    """A service that wants keys: .url, and .key that opens it. tests/browser takes it from here."""
    service = KeyedService(tmp_path_factory.mktemp("keyed"), "--profiles", "base")
    try:
        yield service
        service.check_health()
        service.stop()
    finally:
        service.kill()

"""Fixtures: an engine for the whole session, one for a single test, and the leak check that follows
every test."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator

import pytest

from harness import Engine, LiveService, Service, cloche_bin
from raw_http import KeyedService


def pytest_configure(config: pytest.Config) -> None:
    if not cloche_bin().exists():
        raise pytest.UsageError(f"no {cloche_bin()}: build first, or set CLOCHE_BIN")
    # Whoever ends us (a timeout around the tests) ends our engines with us.
    signal.signal(signal.SIGTERM, lambda *_: pytest.exit("terminated"))


@pytest.fixture(scope="session")
def engine_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    engine = Engine(tmp_path_factory.mktemp("engine"))
    try:
        engine.execute("pass", profile="base", timeout_ms=60000)  # what is made once is made now
        engine.settle()
        yield engine
        engine.stop()
    finally:
        engine.kill()


@pytest.fixture
def engine(engine_session: Engine) -> Iterator[Engine]:
    """The session's engine. After the test it is healthy and has let go of everything."""
    yield engine_session
    engine_session.check_health()
    engine_session.check_no_leak()


@pytest.fixture
def start_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Engine]]:
    """Starts engines with options of the test's own; each is stopped and must leave nothing."""
    engines: list[Engine] = []

    def start(*options: str) -> Engine:
        engines.append(Engine(tmp_path_factory.mktemp("engine"), *options))
        return engines[-1]

    try:
        yield start
        for engine in engines:
            engine.check_health()
            engine.stop()
    finally:
        for engine in engines:
            engine.kill()


@pytest.fixture
def own_engine(start_engine: Callable[..., Engine]) -> Engine:
    """An engine for this test alone, which it may mistreat."""
    return start_engine()


@pytest.fixture(scope="session")
def service_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    service = Service(tmp_path_factory.mktemp("service"))
    try:
        service.execute("pass", profile="base", timeout_ms=60000)
        service.settle()
        yield service
        service.stop()
    finally:
        service.kill()


@pytest.fixture
def service(service_session: Service) -> Iterator[Service]:
    """The session's HTTP service. After the test it is healthy and has let go of everything."""
    yield service_session
    service_session.check_health()
    service_session.check_no_leak()


@pytest.fixture
def start_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Service]]:
    """Starts services with options of the test's own; each is stopped and must leave nothing."""
    services: list[Service] = []

    def start(*options: str) -> Service:
        services.append(Service(tmp_path_factory.mktemp("service"), *options))
        return services[-1]

    try:
        yield start
        for service in services:
            service.check_health()
            service.stop()
    finally:
        for service in services:
            service.kill()


@pytest.fixture(scope="session")
def live_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    service = LiveService(tmp_path_factory.mktemp("live"))
    try:
        service.execute("pass", profile="base", timeout_ms=60000)
        service.settle()
        yield service
        service.stop()
    finally:
        service.kill()


@pytest.fixture
def live_service(live_session: LiveService) -> Iterator[LiveService]:
    """The session's service with live sandboxes. After the test it has let go of everything."""
    yield live_session
    live_session.check_health()
    live_session.check_no_leak()


@pytest.fixture
def start_live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., LiveService]]:
    """Starts such services with options of the test's own; each must leave nothing. One profile
    will do, unless the test says which it wants."""
    services: list[LiveService] = []

    def start(*options: str) -> LiveService:
        if not {"--profiles", "--config"} & set(options):
            options += ("--profiles", "base")
        services.append(LiveService(tmp_path_factory.mktemp("live"), *options))
        return services[-1]

    try:
        yield start
        for service in services:
            service.check_health()
            service.stop()
    finally:
        for service in services:
            service.kill()


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

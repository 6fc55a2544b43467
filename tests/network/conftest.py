"""A module's tests run on the host of the test internet. After every test no packet may have gone
where none is allowed to go."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "blackbox")]

from harness import checked, cloche_bin, settled, starter  # noqa: E402
from live_network import FORBIDDEN, NetworkService  # noqa: E402
from world import RESOLVER, World, inside  # noqa: E402


def pytest_configure(config: pytest.Config) -> None:
    if not cloche_bin().exists():
        raise pytest.UsageError(f"no {cloche_bin()}: build first, or set CLOCHE_BIN")
    # As in the black-box tests: whoever ends us ends our engines with us.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *_: pytest.exit("terminated"))


@pytest.fixture(scope="session")
def world_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    if os.geteuid() != 0 or not shutil.which("ip"):
        pytest.skip("network namespaces need root and iproute2")
    directory = tmp_path_factory.mktemp("world")
    directory.chmod(0o755)
    with World(directory) as world:
        yield world


@pytest.fixture(scope="module")
def on_host(world_session: World) -> Iterator[World]:
    """Whoever runs the module's tests is on the host meanwhile, and so is what it starts."""
    with inside(world_session.host):
        yield world_session


def strays(world: World, forbidden: set[str] = FORBIDDEN) -> set[tuple[str, str, int]]:
    """What left the host and must not."""
    return {
        one
        for one in world.seen()
        if one[1] in forbidden or (one[0] != "tcp" and one[1] != RESOLVER)
    }


@pytest.fixture
def world(on_host: World) -> Iterator[World]:
    on_host.forget()
    yield on_host
    assert not strays(on_host)
    assert "evil.test" not in on_host.asked()


@pytest.fixture(scope="module")
def net_session(
    on_host: World, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[NetworkService]:
    yield from settled(NetworkService(tmp_path_factory.mktemp("network")))


@pytest.fixture
def net(net_session: NetworkService, world: World) -> Iterator[NetworkService]:
    """The module's service. After the test it is healthy and has let go of everything."""
    yield from checked(net_session)


@pytest.fixture
def start_net(
    world: World, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., NetworkService]]:
    yield from starter(lambda *words: NetworkService(tmp_path_factory.mktemp("network"), *words))

"""The TypeScript client (js/sdk) against a real server: tests/sdk-js has the tests. They run in our
Node; script/test-sdk-js runs them in others, too."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deaths import kill_server
from harness import LiveService, Service
from raw_http import KeyedService
from sdk_js import SDK, compiled, environment, install, needed, node, run_tests, runtimes, table
from wheels import wheel, wheels_place

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    needed()
    return install(tmp_path_factory.mktemp("sdk-js"))


def passes(package: Path, name: str, runtime: str = "node", **env: str) -> None:
    done = run_tests(package, name, runtime, **env)
    assert done.returncode == 0, done.stdout[-20000:]


@pytest.mark.parametrize(
    "name", ["run", "sandbox", "files", "commands", "connection", "errors", "hostile"]
)
@pytest.mark.parametrize("runtime", runtimes())
def test_client(package: Path, live_service: LiveService, name: str, runtime: str) -> None:
    passes(package, name, runtime, CLOCHE_SERVER=live_service.url, TABLE=table())


def test_keys(package: Path, keyed_service: KeyedService) -> None:
    passes(package, "keys", CLOCHE_SERVER=keyed_service.url, CLOCHE_API_KEY=keyed_service.key)


def test_network(package: Path, start_live: Callable[..., LiveService]) -> None:
    passes(package, "network", CLOCHE_SERVER=start_live("--network", "pypi.org").url)


def test_ports(package: Path, start_live: Callable[..., LiveService]) -> None:
    passes(package, "ports", CLOCHE_SERVER=start_live("--ports-domain", "ports.localhost").url)


def test_profiles(
    package: Path, start_live: Callable[..., LiveService], tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = wheels_place(tmp_path_factory.mktemp("wheels"))
    wheel(place, "alpha")
    service = start_live("--wheels", str(place), "--build-network", "none")
    passes(package, "profiles", CLOCHE_SERVER=service.url)


def test_types_are_those_of_what_happens(package: Path, live_service: LiveService) -> None:
    """It is compiled as a user's program, with `await using`, and run."""
    done = node(package, compiled(package, "types.ts"), CLOCHE_SERVER=live_service.url)
    assert done.stdout == "6 hi\n", done.stdout


def test_types_are_made_of_the_specification(service: Service) -> None:
    needed()
    made = node(SDK, "types.mjs", service.url).stdout
    kept = (SDK / "src/openapi.ts").read_text()
    assert made == kept, "node js/sdk/types.mjs URL prints what js/sdk/src/openapi.ts must be"


@pytest.fixture
def dying(package: Path, start_live: Callable[..., LiveService]) -> Iterator[tuple]:
    """A program that prints `begun` while its cell runs, and its server."""
    service = start_live()
    program = subprocess.Popen(
        ["node", "death.mjs"],
        cwd=package,
        env=environment(CLOCHE_SERVER=service.url),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield service, program
    finally:
        program.kill()
        program.wait()


def test_a_server_that_dies_is_followed_on(
    dying: tuple[LiveService, subprocess.Popen[str]]
) -> None:
    service, program = dying
    assert program.stdout is not None
    assert program.stdout.readline() == "begun\n"
    kill_server(service)
    said, _ = program.communicate("go\n")
    assert said == "ok 'after'\ndone 42\n" and program.returncode == 0, said

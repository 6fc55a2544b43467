"""The server that the clients talk to, started as the black-box tests start theirs."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "py" / "sdk"))
sys.path.append(str(ROOT / "tests" / "blackbox"))  # last: some of its names are clients' too

from harness import LiveService, eventually  # noqa: E402
from http_client import ask, get  # noqa: E402
from raw_http import KeyedService  # noqa: E402


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    shared = tmp_path_factory.mktemp("shared")
    shared.chmod(0o777)
    found = LiveService(tmp_path_factory.mktemp("server"), "--bind-allow", f"{shared}:rw")
    found.shared = shared  # type: ignore[attr-defined]
    os.environ["CLOCHE_SERVER"] = found.url
    try:
        yield found
        found.stop()
    finally:
        found.kill()


@pytest.fixture(scope="session")
def keyed_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedService]:
    """One that wants keys: .key opens it. It has no live sandboxes."""
    found = KeyedService(tmp_path_factory.mktemp("keyed"), "--profiles", "base")
    try:
        yield found
        found.stop()
    finally:
        found.kill()


@pytest.fixture(autouse=True)
def nothing_left(service: LiveService) -> Iterator[None]:
    """Whatever a client made, it deleted; but for the sandbox that notebooks share."""
    yield

    def boxes() -> list[str]:
        return [box["id"] for box in get(service.port, "/v1/sandboxes").json["sandboxes"]]

    if not eventually(lambda: not boxes(), seconds=10.0):
        for box in boxes():
            ask(service.port, "DELETE", f"/v1/sandboxes/{box}")


@pytest.fixture
def example() -> object:
    """A file of examples/, as a module."""

    def load(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # for whoever looks its annotations up
        spec.loader.exec_module(module)
        return module

    return load

"""Zygotes and kernels for the tests of the live cell, which name this module in pytest_plugins."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest

from live_kernel import Kernel, Zygote


def zygote(factory: pytest.TempPathFactory, *modules: str) -> Iterator[Zygote]:
    home = factory.mktemp("zygote") / "home"
    home.mkdir()
    made = Zygote(home, *modules)
    yield made
    made.close()


@pytest.fixture(scope="session")
def lean_zygote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    yield from zygote(tmp_path_factory)


@pytest.fixture(scope="session")
def data_zygote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    yield from zygote(tmp_path_factory, "pandas", "matplotlib.pyplot", "sympy", "PIL.Image")


@pytest.fixture
def kernel(lean_zygote: Zygote) -> Iterator[Kernel]:
    made = Kernel(lean_zygote.chan)
    yield made
    made.close()


@pytest.fixture
def data_kernel(data_zygote: Zygote) -> Iterator[Kernel]:
    made = Kernel(data_zygote.chan)
    yield made
    made.close()


def listed(kernel: Kernel, most: int = 100) -> dict[str, Any]:
    reply = kernel.ask("variables", most=most)
    assert reply["ok"], reply
    return {row["name"]: row for row in reply["result"]["variables"]}


def png(event: dict[str, Any]) -> bytes:
    return base64.b64decode(event["data"]["image/png"], validate=True)

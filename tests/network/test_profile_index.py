"""Profiles that are built from an index, which the sandbox of the build may reach."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from made import Maker, place_of_profiles
from world import RESOLVER, World

INDEX = "http://pypi.example.test/simple"


@pytest.fixture
def maker(world: World) -> Iterator[Maker]:
    with place_of_profiles() as place:
        maker = Maker(place)
        maker.env = {
            "CLOCHE_PIP_INDEX_URL": INDEX,
            "CLOCHE_NETWORK_RESOLVERS": RESOLVER,
            "CLOCHE_BUILD_NETWORK": "pypi.example.test:80",
        }
        yield maker


def test_it_is_built_from_the_index_and_again(maker: Maker, world: World) -> None:
    maker.said("add", "web", "tinypkg", "--preload", "tinypkg")
    assert any("/simple/tinypkg" in request for request in world.requests())
    (installed,) = maker.record("web")["installed"]
    assert (installed["name"], installed["version"]) == ("tinypkg", "1.0")
    assert len(installed["sha256"]) == 64
    maker.said("sync", "web")
    assert maker.record("web")["installed"] == [installed]


def test_what_it_may_not_reach(maker: Maker, world: World) -> None:
    maker.env["CLOCHE_BUILD_NETWORK"] = "npm.example.test:80"
    done = maker.call("add", "web", "tinypkg")
    last = done.stderr.decode().rstrip("\n").split("\n")[-1]
    assert done.returncode == 125 and "pypi.example.test cannot be reached from the build" in last
    assert maker.names() == [] and not world.requests()
    assert "no wheel of gamma" in unknown(maker)


def unknown(maker: Maker) -> str:
    maker.env["CLOCHE_BUILD_NETWORK"] = "pypi.example.test:80"
    return maker.call("add", "web", "gamma").stderr.decode()

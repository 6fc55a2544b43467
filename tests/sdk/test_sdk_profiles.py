"""Profiles of a tenant's own: made, used, removed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cloche import errors
from driven import World
from harness import LiveService, settled
from wheels import wheel, wheels_place


@pytest.fixture(scope="module")
def made_here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    place = wheels_place(tmp_path_factory.mktemp("wheels"))
    wheel(place, "alpha")
    options = ("--profiles", "base", "--wheels", str(place), "--build-network", "none")
    yield from settled(LiveService(tmp_path_factory.mktemp("profiles"), *options))


@pytest.fixture
def client(sdk: World, made_here: LiveService) -> Iterator[Any]:
    with sdk.Client(made_here.url) as client:
        yield client


def test_a_profile_with_a_package(client: Any) -> None:
    lines: list[str] = []
    env, limits = {"COLOUR": "red"}, {"memory_mb": 200}
    made = client.make_profile("mine", ["alpha"], env=env, limits=limits, on_output=lines.append)
    assert (made.state, made.own, made.base, made.requirements) == (
        "ready",
        True,
        "base",
        ["alpha"],
    )
    assert made.installed[0]["name"] == "alpha" and made.limits["memory_mb"] == 200
    assert any("Successfully installed alpha-1.0" in line for line in lines)
    code = "import alpha, os; (alpha.VERSION, os.environ['COLOUR'])"
    assert client.run(code, profile="mine", timeout=20).text == "('1.0', 'red')"
    assert {"base", "mine"} <= {profile.name for profile in client.profiles()}
    with pytest.raises(errors.ProfileExists):
        client.make_profile("mine", ["alpha"])
    client.delete_profile("mine")
    with pytest.raises(errors.NoSuchProfile):
        client.profile("mine")


def test_a_package_that_is_not_there(client: Any) -> None:
    with pytest.raises(errors.BuildFailed, match="no wheel of nowhere can be had") as caught:
        client.make_profile("other", ["nowhere"])
    assert caught.value.profile.state == "broken"
    client.delete_profile("other")


def test_what_cannot_be_asked_for(client: Any) -> None:
    with pytest.raises(errors.BadArgument):
        client.make_profile("mine", "alpha")
    with pytest.raises(errors.BadValue, match="an option of pip"):
        client.make_profile("mine", ["--index-url=x"])

"""Packages from an index that the policy allows: pip in a live sandbox and for a program, npm, and
what is said when the policy does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from http_client import ask, execute
from live import Box
from live_network import NetworkService
from world import World

INDEX = "https://pypi.example.test/simple"
REGISTRY = "https://npm.example.test/"
PYPI, NPM = ["pypi.example.test:443"], ["npm.example.test:443"]


@pytest.fixture
def service(start_net: Callable[..., NetworkService]) -> NetworkService:
    return start_net("--pip-index-url", INDEX, "--npm-registry", REGISTRY)


def trusting(service: NetworkService, world: World, network: Any) -> Box:
    """A sandbox that trusts the test internet."""
    ca = "/workspace/ca.pem"
    box = service.box(network, env={"PIP_CERT": ca, "npm_config_cafile": ca})
    reply = ask(box.port, "PUT", f"{box.path}/files/ca.pem", world.ca.read_bytes())
    assert reply.status in (200, 201)
    return box


def test_pip_and_npm(service: NetworkService, world: World) -> None:
    with trusting(service, world, PYPI + NPM) as box:
        done = box.run("!pip install tinypkg", timeout_ms=60000)
        assert "Successfully installed tinypkg-1.0" in done["stdout"], done
        assert box.text("import tinypkg; tinypkg.said") == "'hello'"
        command = "!npm install --no-audit --no-fund tinynpm && ls node_modules"
        done = box.run(command, timeout_ms=60000)
        assert "tinynpm" in done["stdout"], done


def test_a_policy_that_changes(service: NetworkService, world: World) -> None:
    with trusting(service, world, NPM) as box:
        done = box.run("!pip install tinypkg", timeout_ms=60000)
        assert "pypi.example.test cannot be reached" in done["stderr"] + done["stdout"], done
        assert '["pypi.example.test"]' in done["stderr"] + done["stdout"], done
        assert any("pypi.example.test" in refused["op"] for refused in done["denied"]), done
        assert not world.requests()
        assert box.ask("PUT", "/network", PYPI).status == 200
        done = box.run("!pip install -q tinypkg", timeout_ms=60000)
        assert box.text("import tinypkg; tinypkg.said") == "'hello'"


def test_a_program(service: NetworkService, world: World) -> None:
    code = "import tinypkg; print(tinypkg.said)"
    fields: dict[str, Any] = {
        "packages": ["tinypkg"],
        "profile": "base",
        "files": [{"path": "ca.pem", "content": world.ca.read_text()}],
        "env": {"PIP_CERT": "/workspace/ca.pem"},
    }
    done = execute(service.port, code, network=NPM, **fields)
    assert done["error"]["name"] == "PackagesNotInstalled", done
    assert "pypi.example.test cannot be reached" in done["error"]["value"], done
    done = execute(service.port, code, network=PYPI, **fields)
    assert (done["status"], done["stdout"]) == ("ok", "hello\n"), done
    assert done["usage"]["network"][0]["connections"] >= 1

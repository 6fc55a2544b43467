"""The network where control groups cannot be used, and as an ordinary user: with a range of ids,
and with no id but his own."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from family import kill
from harness import Caller, settled
from host import descendants, is_alive
from live_network import (
    NAMES,
    SEMANTICS,
    NetworkService,
    attempts,
    put,
    said,
    semantics,
    until,
)
from test_semantics import DIFFERENT, GROUPS, by_row
from users import home_of
from world import OTHER, WEB, World

HERE = Path(__file__).resolve().parent
_at = HERE.parent / "blackbox" / "unprivileged" / "conftest.py"
_spec = importlib.util.spec_from_file_location("unprivileged_fixtures", _at)
assert _spec is not None and _spec.loader is not None
_users = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_users)

who_may_become_others = _users.who_may_become_others
place = _users.place
installed = _users.installed
with_range = _users.with_range
with_one_id = _users.with_one_id


@pytest.fixture(scope="module", params=["no control groups", "range", "one id"])
def service_session(
    request: pytest.FixtureRequest, on_host: World, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[NetworkService]:
    if request.param == "no control groups":
        directory = tmp_path_factory.mktemp("nocgroup")
        yield from settled(NetworkService(directory, "--cgroup", "none"))
        return
    name = {"range": "with_range", "one id": "with_one_id"}[request.param]
    caller: Caller = request.getfixturevalue(name)
    yield from settled(NetworkService(home_of(caller), caller=caller))


@pytest.fixture
def service(service_session: NetworkService, world: World) -> NetworkService:
    return service_session


def test_sockets_are_as_natively(service: NetworkService, world: World) -> None:
    names = GROUPS[0] + GROUPS[1][:6]
    native = by_row(world.run([*SEMANTICS, *names]))
    got = by_row(service.client.ask("POST", "/v1/execute", semantics(names)).json["stdout"])
    assert got == {name: DIFFERENT.get(name, native[name]) for name in names}


def test_policies_hold(service: NetworkService) -> None:
    places = [(WEB, 7), (OTHER, 7), ("169.254.169.254", 80), ("::ffff:10.9.9.9", 80)]
    with service.box([f"{WEB}:7"]) as box:
        assert list(attempts(box, places).values()) == ["connected", *["EACCES"] * 3]
        put(box, NAMES)
        names = [("four.example.test", 7), ("evil.test", 80), ("rebind.example.test", 80)]
        assert list(attempts(box, names).values())[0] == "connected"
        assert "connected" not in list(attempts(box, names).values())[1:]
        put(box, "none")
        assert set(attempts(box, places).values()) == {"ENETUNREACH"}


def test_ushers_and_gates_die(service: NetworkService) -> None:
    with service.box([f"{WEB}:7"]) as box:
        box.run(f"import socket\nsock = socket.create_connection(('{WEB}', 7), 10)")
        for role in ("cloche-gate", "cloche-usher"):
            family = descendants(service.process.pid)
            victims = [p for p in family if role in (p.comm, p.role)]
            assert victims, family
            for victim in victims:
                kill(victim)
            assert until(lambda: not [v for v in victims if is_alive(v)])
            if role == "cloche-gate":
                assert said(box, "sock.sendall(b'abc'); print(sock.recv(3))") == ["b'abc'"]
            assert until(lambda: attempts(box, [(WEB, 7)]) == {f"{WEB}:7": "connected"})
            assert attempts(box, [(OTHER, 7)]) == {f"{OTHER}:7": "EACCES"}

"""kill -9 of each of our processes, under load: nothing outlives it that should not, nothing is
left behind, whoever was not touched goes on, and the engine is back by itself."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from family import (
    PROFILES,
    QUICK,
    Family,
    Held,
    Load,
    check_back_at,
    come_to_rest,
    drained,
    how,
    init_of,
    kill,
    named,
    one,
    write_config,
)
from harness import Engine, eventually
from host import is_alive

ROUNDS = 5
LOST = ("killed", "sandbox_lost", "hung up")  # how a program may end that was touched


@pytest.fixture
def quick(start_engine: Callable[..., Engine], tmp_path: Path) -> Iterator[Engine]:
    engine = start_engine("--config", write_config(tmp_path, QUICK))
    for profile in PROFILES:
        engine.execute("pass", profile=profile, timeout_ms=60000)
    with drained(engine):
        yield engine


def answers(engine: Engine) -> None:
    """Both profiles run programs, after a wait if need be."""
    for profile in PROFILES:
        outcome = engine.execute("print(6 * 7)", profile=profile, timeout_ms=60000)
        assert outcome.stdout == b"42\n", outcome


def rounds(engine: Engine, strike: Callable[[Held, Held], None], touched: tuple[str, ...]) -> None:
    """Strikes under load. `touched` are the profiles whose running programs may die of it."""
    before = come_to_rest(engine)
    with Load(engine) as load:
        for number in range(ROUNDS):
            with Held(engine, "base") as base, Held(engine, "tiny") as tiny:
                strike(base, tiny)
                for held in (base, tiny):
                    if held.profile in touched:
                        assert held.end() in LOST
                    else:
                        held.release(f"round {number}")
            answers(engine)
    load.check(*(LOST if touched else ()))
    check_back_at(engine, before)


def test_the_server_dies(quick: Engine) -> None:
    rounds(quick, lambda *_: kill(one(lambda: Family(quick).server())), PROFILES)


def test_the_warden_dies(quick: Engine) -> None:
    def strike(*_: Held) -> None:
        warden = one(lambda: Family(quick).warden())
        below = [p for p in quick.remember() if p.pid not in (warden.pid, quick.process.pid)]
        assert len(below) > 4
        kill(warden)
        assert eventually(lambda: not any(is_alive(p) for p in below)), "it was outlived"

    rounds(quick, strike, PROFILES)


@pytest.mark.parametrize("profile", PROFILES)
def test_a_nursery_dies(quick: Engine, profile: str) -> None:
    """Programs of the other profile do not notice."""
    index = PROFILES.index(profile)
    rounds(quick, lambda *_: kill(one(lambda: Family(quick).nursery(index))), (profile,))


@pytest.mark.parametrize("profile", PROFILES)
def test_a_zygote_dies(quick: Engine, profile: str) -> None:
    """Nobody's program notices, and the exit status of those it had forked is still told."""
    index = PROFILES.index(profile)
    rounds(quick, lambda *_: kill(one(lambda: Family(quick).zygotes(index))), ())


@pytest.mark.parametrize("who", ["kernel", "init"])
def test_a_process_of_a_sandbox_dies(quick: Engine, who: str) -> None:
    """Only its own program ends, and it is said how."""
    before = come_to_rest(quick)
    with Load(quick) as load:
        for number in range(ROUNDS):
            with Held(quick, "base") as victim, Held(quick, "base") as neighbour:
                kernel = named(quick, victim.name)
                kill(kernel if who == "kernel" else init_of(quick, kernel))
                assert victim.end() in ("killed", "sandbox_lost")
                neighbour.release(f"round {number}")
    load.check()
    check_back_at(quick, before)


def test_a_killed_kernel_is_reported_as_killed(quick: Engine) -> None:
    with Held(quick, "tiny") as held:
        kill(named(quick, held.name))
        assert held.end() == "killed"
        assert held.outcome.exit_status == 137
        assert held.outcome.result["signal"] == 9


@pytest.fixture
def doomed(tmp_path: Path) -> Iterator[Engine]:
    """An engine that is not expected to be there at the end."""
    engine = Engine(tmp_path, "--config", write_config(tmp_path, QUICK))
    try:
        with drained(engine):
            yield engine
    finally:
        engine.kill()


def test_the_supervisor_dies(doomed: Engine) -> None:
    """Nobody is left to start the engine again, so all of it goes, the socket's name included."""
    with Held(doomed, "base") as held, Load(doomed, clients=2) as load:
        family = doomed.remember()
        eventually(lambda: load.ends["ok"] > 10)
        doomed.process.kill()
        assert held.end() == "hung up"
        assert eventually(lambda: not any(is_alive(p) for p in family))
    load.check("refused", *LOST)
    doomed.process.wait()
    doomed.check_gone()


def test_an_engine_starts_where_a_killed_one_is_being_taken_down(doomed: Engine) -> None:
    """As a service manager does that restarts it at once."""
    doomed.remember()
    doomed.process.kill()
    heir = Engine(doomed.socket.parent, "--profiles", "base")
    try:
        assert heir.execute("print(1)", timeout_ms=60000).stdout == b"1\n"
        assert eventually(lambda: not any(is_alive(p) for p in doomed.known))
        assert heir.execute("print(2)", timeout_ms=60000).stdout == b"2\n"
        heir.stop()
    finally:
        heir.kill()
    doomed.check_gone()


def test_supervisor_and_warden_die_together(
    doomed: Engine, start_engine: Callable[..., Engine]
) -> None:
    """Then nobody is left to clean up; the next engine on this machine does, anybody's."""
    doomed.remember()
    assert doomed.own_cgroups()
    doomed.process.send_signal(signal.SIGSTOP)  # or it would start another warden
    kill(one(lambda: Family(doomed).warden()))
    doomed.process.kill()
    assert eventually(lambda: not any(is_alive(p) for p in doomed.known)), "it was outlived"
    start_engine("--profiles", "base")
    assert eventually(lambda: not doomed.own_cgroups()), "another engine may be at it as well"
    heir = Engine(doomed.socket.parent, "--profiles", "base")  # over the stale socket
    heir.stop()
    doomed.check_gone()


# ---------------------------------------------------------------------------- requests wait


def test_a_client_that_connects_while_there_is_no_server_is_answered(quick: Engine) -> None:
    for _ in range(ROUNDS):
        server = one(lambda: Family(quick).server())
        kill(server)
        assert eventually(lambda: not is_alive(server))
        assert quick.execute("print(1)", timeout_ms=60000).stdout == b"1\n"


def test_a_client_that_connects_while_there_is_no_warden_is_answered(quick: Engine) -> None:
    for _ in range(2):
        family = [p for p in quick.remember() if p.pid != quick.process.pid]
        kill(one(lambda: Family(quick).warden()))
        assert eventually(lambda: not any(is_alive(p) for p in family))
        answers(quick)


def test_programs_submitted_while_there_is_no_zygote_are_answered(quick: Engine) -> None:
    """More of them than ready sandboxes, so that most need the next zygote."""
    for _ in range(ROUNDS):
        kill(one(lambda: Family(quick).zygotes(1)))
        clients = [quick.raw() for _ in range(8)]
        for number, client in enumerate(clients):
            client.start(f"print({number})", profile="tiny", timeout_ms=60000)
        for number, client in enumerate(clients):
            assert client.finish().stdout == b"%d\n" % number
            client.close()


def test_programs_that_wait_survive_the_death_of_the_nursery(quick: Engine) -> None:
    """They had no sandbox yet, so nothing of theirs was touched."""
    for _ in range(ROUNDS):
        before = nursery_restarts(quick)
        kill(one(lambda: Family(quick).nursery(1)))
        assert eventually(lambda: nursery_restarts(quick) > before)  # and gave up what was ready
        outcomes = []
        clients = [quick.raw() for _ in range(20)]
        for number, client in enumerate(clients):
            client.start(f"print({number})", profile="tiny", timeout_ms=60000)
        for client in clients:
            outcomes.append(client.finish())
            client.close()
        ends = [how(outcome) for outcome in outcomes]
        assert ends == ["ok"] * 20, ends


def nursery_restarts(engine: Engine) -> int:
    return int(engine.info()["restarts"]["nurseries"])

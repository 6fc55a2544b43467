"""Zygotes are replaced and restarted while programs go on; the pool of ready sandboxes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from client import Client, Outcome
from family import QUICK, Family, Held, Load, drained, how, kill, one, write_config
from harness import Engine, eventually
from host import Process

Starter = Callable[..., Engine]
TINY = 1  # the number of that profile


@pytest.fixture
def start(start_engine: Starter, tmp_path: Path) -> Iterator[Starter]:
    """An engine with quick profiles, with changes to `tiny` and settings of the test's own."""
    logs: list[Any] = []

    def go(tiny: dict[str, Any] | None = None, **settings: Any) -> Engine:
        profiles = {**QUICK, "tiny": {**QUICK["tiny"], **(tiny or {})}}
        engine = start_engine("--config", write_config(tmp_path, profiles, **settings))
        logs.append(drained(engine))
        logs[-1].__enter__()
        return engine

    yield go
    for log in logs:
        log.__exit__(None, None, None)


def tiny(engine: Engine) -> dict[str, Any]:
    found: dict[str, Any] = next(p for p in engine.info()["profiles"] if p["name"] == "tiny")
    return found


def zygote_pids(engine: Engine) -> set[int]:
    return {p.pid for p in Family(engine).zygotes(TINY)}


def check_preloaded(engine: Engine) -> None:
    """A later zygote has loaded what the first one had."""
    for _ in range(4):  # more than were ready before
        outcome = run(engine, "import sys; print('colorsys' in sys.modules)")
        assert outcome.stdout == b"True\n", outcome
    assert tiny(engine)["modules"] == "colorsys"


def run(engine: Engine, code: str, **options: Any) -> Outcome:
    return engine.execute(code, profile="tiny", timeout_ms=60000, **options)


# ---------------------------------------------------------------------------- replacement


def test_a_zygote_is_replaced_after_some_forks(start: Starter) -> None:
    """Under load: no request fails, and whoever runs meanwhile ends as it should."""
    engine = start(zygote_forks=8)
    seen = zygote_pids(engine)
    with Held(engine, "tiny") as held, Load(engine) as load:

        def replaced_often() -> bool:
            seen.update(zygote_pids(engine))
            return len(seen) >= 6

        assert eventually(replaced_often), seen
        held.release("after all those")
    load.check()
    assert eventually(lambda: len(zygote_pids(engine)) == 1), "an old one did not go"
    check_preloaded(engine)


def test_a_zygote_is_replaced_after_some_time(start: Starter) -> None:
    engine = start(zygote_age_s=1)
    seen = zygote_pids(engine)
    with Held(engine, "tiny") as held, Load(engine, clients=2) as load:

        def replaced() -> bool:
            seen.update(zygote_pids(engine))
            return len(seen) >= 4

        assert eventually(replaced, step_s=0.1), seen
        held.release("after all those")
    load.check()


def test_ready_sandboxes_survive_their_zygote(start: Starter) -> None:
    engine = start()
    assert eventually(lambda: tiny(engine)["ready"] == 2)
    before = {p.pid for p in Family(engine).kernels(TINY)}
    assert len(before) == 2
    old = zygote_pids(engine)
    kill(one(lambda: Family(engine).zygotes(TINY)))
    assert eventually(lambda: zygote_pids(engine) - old)
    assert {p.pid for p in Family(engine).kernels(TINY)} == before
    with Held(engine, "tiny") as held:  # one of them
        assert len(before & {p.pid for p in Family(engine).kernels(TINY)}) == 2
        held.release("from the old zygote")
    check_preloaded(engine)


def test_several_zygotes(start: Starter) -> None:
    """They share the work; the death of one is made good."""
    engine = start(tiny={"zygotes": 3})
    assert eventually(lambda: len(zygote_pids(engine)) == 3)
    with Load(engine) as load:
        for _ in range(3):
            old = zygote_pids(engine)
            kill(one(lambda: Family(engine).zygotes(TINY)))
            assert eventually(lambda: len(zygote_pids(engine)) == 3 and zygote_pids(engine) - old)
    load.check()


def test_several_zygotes_are_replaced_under_load(start: Starter) -> None:
    engine = start(tiny={"zygotes": 2}, zygote_forks=5)
    first = zygote_pids(engine)
    with Load(engine) as load:
        assert eventually(lambda: not first & zygote_pids(engine))
        done = load.ends["ok"]
        assert eventually(lambda: load.ends["ok"] > done + 30)
    load.check()
    assert eventually(lambda: len(zygote_pids(engine)) == 2)


def test_a_zygote_that_dies_again_and_again_makes_the_profile_broken(
    start_engine: Starter, tmp_path: Path
) -> None:
    """Said, and not tried for ever; the others work."""
    profiles = {**QUICK, "tiny": {"python": "/usr/bin/false"}}
    engine = start_engine("--config", write_config(tmp_path, profiles))
    assert tiny(engine)["state"] == "broken"
    assert how(run(engine, "print(1)")) == "profile_broken"
    before = {p.pid for p in engine.remember()}
    assert engine.execute("print(1)", profile="base").stdout == b"1\n"
    nursery = one(lambda: Family(engine).nursery(TINY))
    assert nursery.pid in before
    assert Family(engine).zygotes(TINY) == []


# ---------------------------------------------------------------------------- the pool


def test_the_pool_is_filled_and_refilled(start: Starter) -> None:
    engine = start(tiny={"pool": 5})
    for _ in range(3):
        assert eventually(lambda: tiny(engine)["ready"] == 5)
        assert eventually(lambda: len(Family(engine).kernels(TINY)) == 5)  # the last one's is gone
        outcome = run(engine, "pass")
        assert outcome.result["warm"]


def test_a_sandbox_is_never_used_twice(start: Starter) -> None:
    engine = start()
    code = """
import glob, os, time
print(len(glob.glob("/workspace/*")) + len(glob.glob("/tmp/*")) + len(glob.glob("/dev/shm/*")))
for place in "/workspace", "/tmp", "/dev/shm":
    open(place + "/marker", "w").close()
print(os.stat("/workspace").st_dev, os.stat("/workspace").st_ino, os.readlink("/proc/self/ns/pid"))
"""
    seen = set()
    for _ in range(30):
        count, identity = run(engine, code).stdout.decode().splitlines()
        assert count == "1"  # the program itself
        seen.add(identity)
    alive = {p.pid for p in Family(engine).kernels(TINY)}
    assert eventually(lambda: len(Family(engine).kernels(TINY)) == 2), alive
    assert len(seen) > 1


def test_an_empty_pool_is_no_obstacle(start: Starter) -> None:
    """Without ready sandboxes each program gets one when it comes."""
    engine = start(tiny={"pool": 0})
    for number in range(5):
        outcome = run(engine, f"print({number})")
        assert outcome.stdout == b"%d\n" % number
        assert not outcome.result["warm"]
    assert eventually(lambda: Family(engine).kernels(TINY) == [])


def test_more_than_the_most_sandboxes_wait(start: Starter) -> None:
    engine = start(max_sandboxes=4)
    with Held(engine, "tiny") as a, Held(engine, "tiny") as b, Held(engine, "tiny") as c:
        with Held(engine, "tiny") as d, engine.raw() as client:
            client.start("print('at last')", profile="tiny", timeout_ms=60000)
            assert eventually(lambda: tiny(engine)["queued"] == 1)
            assert engine.info()["sandboxes"] == 4
            d.release("make room")
            outcome = client.finish()
            assert outcome.stdout == b"at last\n"
            assert outcome.result["usage"]["queue_ms"] > 0
        for held in (a, b, c):
            held.release("done")
    # Ready sandboxes of the other profile give way, too.
    assert engine.execute("print(1)", profile="base", timeout_ms=60000).stdout == b"1\n"


def test_a_full_queue_is_an_error_at_once(start: Starter) -> None:
    engine = start(max_sandboxes=4, queue_max=2)
    holders = [Held(engine, "tiny") for _ in range(4)]
    waiting = [engine.raw() for _ in range(2)]
    for client in waiting:
        client.start("print(1)", profile="tiny", timeout_ms=60000)
    assert eventually(lambda: tiny(engine)["queued"] == 2)
    outcome = run(engine, "print(1)")
    assert outcome.error is not None and outcome.error["kind"] == "queue_full"
    assert outcome.error["retryable"]
    for held in holders:
        held.release("done")
        held.client.close()
    for client in waiting:
        assert client.finish().stdout == b"1\n"
        client.close()


def test_waiting_too_long_is_an_error(start: Starter) -> None:
    engine = start(max_sandboxes=4, queue_ms=5000)  # those who hold wait too
    holders = [Held(engine, "tiny") for _ in range(4)]
    outcome = run(engine, "print(1)")
    assert outcome.error is not None and outcome.error["kind"] == "queue_timeout"
    assert "all 4 sandboxes" in outcome.error["message"] and outcome.error["retryable"]
    assert tiny(engine)["queued"] == 0
    for held in holders:
        held.release("done")
        held.client.close()


def test_a_client_that_leaves_the_queue_is_forgotten(start: Starter) -> None:
    engine = start(max_sandboxes=4)
    holders = [Held(engine, "tiny") for _ in range(4)]
    leavers = [engine.raw() for _ in range(3)]
    for client in leavers:
        client.start("print('nobody reads this')", profile="tiny", timeout_ms=60000)
    assert eventually(lambda: tiny(engine)["queued"] == 3)
    stays = engine.raw()
    stays.start("print('stays')", profile="tiny", timeout_ms=60000)
    assert eventually(lambda: tiny(engine)["queued"] == 4)
    for client in (leavers[2], leavers[0], leavers[1]):
        client.close()
    assert eventually(lambda: tiny(engine)["queued"] == 1)
    holders[0].release("make room")
    assert stays.finish().stdout == b"stays\n"
    stays.close()
    for held in holders[1:]:
        held.release("done")
    for held in holders:
        held.client.close()


def test_many_clients_at_once_all_get_their_own_answers(start: Starter) -> None:
    engine = start()
    wrong: list[Any] = []

    def go(me: int) -> None:
        try:
            with Client(engine.socket) as client:  # one connection, one program after the other
                for turn in range(10):
                    profile = ("base", "tiny")[(me + turn) % 2]
                    client.start(f"print({me}, {turn})", profile=profile, timeout_ms=60000)
                    outcome = client.finish()
                    if outcome.stdout != b"%d %d\n" % (me, turn):
                        wrong.append(outcome)
        except Exception as exc:
            wrong.append(exc)

    threads = [threading.Thread(target=go, args=(me,)) for me in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[:3]
    assert engine.info()["executions"] >= 500


@pytest.mark.parametrize("who", ["kernel", "init"])
def test_a_ready_sandbox_that_dies_is_replaced(start: Starter, who: str) -> None:
    engine = start()
    for _ in range(5):
        assert eventually(lambda: tiny(engine)["ready"] == 2)

        def two(old: list[Process]) -> list[Process]:
            """Both, once the one that ran the last program and the old ones are gone."""
            family = Family(engine)
            now = family.kernels(TINY) if who == "kernel" else family.inits(TINY)
            pids = {p.pid for p in old}
            return now if len(now) == 2 and not any(p.pid in pids for p in now) else []

        victims = eventually(lambda: two([]))
        assert victims
        for victim in victims:
            kill(victim)
        assert eventually(lambda: two(victims))
        outcome = run(engine, "print(1)")
        assert outcome.stdout == b"1\n", outcome

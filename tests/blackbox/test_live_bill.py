"""What a live sandbox uses outside of its executions counts for the key that made it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import LiveService, eventually, run_cli
from http_client import Reply
from live import Client, error

BURN = "import time\nwhile time.process_time() < {}: pass"


class Paying(LiveService):
    """One whose keys may use a second of CPU time a minute."""

    def __init__(self, directory: Path) -> None:
        directory.chmod(0o711)
        file = directory / "keys.json"
        words = ("--keys", file, "--cpu-seconds-per-minute", "1")
        names = ("commands", "other", "behind", "ended", "once", "tasks")
        self.keys = {n: run_cli("key", "add", n, *words).stdout.decode().strip() for n in names}
        super().__init__(directory, "--profiles", "base", "--keys", str(file))

    def client(self, name: str) -> Client:
        return Client(self.port, Authorization=f"Bearer {self.keys[name]}")


@pytest.fixture(scope="module")
def paying(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Paying]:
    service = Paying(tmp_path_factory.mktemp("paying"))
    try:
        service.settle()
        if not service.own_cgroups():
            pytest.skip("no control groups here: nothing is measured")
        yield service
        service.check_no_leak()
        service.stop()
    finally:
        service.kill()


def hello(client: Client) -> Reply:
    return client.ask("POST", "/v1/execute", {"code": "print('hello')"})


def refused(client: Client) -> bool:
    """Asked with what would not run anyway, so that asking uses nothing."""
    reply = client.ask("POST", "/v1/execute", {"code": "1", "profile": "nosuch"})
    if reply.status != 429:
        error(reply, 422, "unknown_profile", "nosuch")
        return False
    error(reply, 429, "too_much_cpu", "1 CPU seconds a minute")
    return True


def test_commands_count(paying: Paying) -> None:
    client, other = paying.client("commands"), paying.client("other")
    with client.box() as box:
        done = box.do("/commands", argv=["python3", "-c", BURN.format(2.5)])
        assert done["exit_code"] == 0, done
        assert eventually(lambda: refused(client))
        assert hello(other).status == 200, "it is that key's"


def test_what_a_cell_left_running_counts(paying: Paying) -> None:
    client = paying.client("behind")
    with client.box() as box:
        left = f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', '''{BURN}'''])"
        assert box.run(left.format(2.5))["status"] == "ok"
        assert eventually(lambda: refused(client))


def test_the_end_of_a_sandbox_settles_it(paying: Paying) -> None:
    client = paying.client("ended")
    with client.box() as box:
        assert box.do("/commands", argv=["python3", "-c", BURN.format(2.5)])["exit_code"] == 0
    assert refused(client)


def test_an_execution_counts_once(paying: Paying) -> None:
    client = paying.client("once")
    with client.box() as box:
        assert box.run("import time\nt = time.process_time()")["status"] == "ok"
        assert box.run("while time.process_time() < t + 0.6: pass")["status"] == "ok"
    assert hello(client).status == 200


def test_tasks_between_cells_count(paying: Paying) -> None:
    client = paying.client("tasks")
    burn = BURN.replace("\n", "\n    ").format(2.5)
    with client.box() as box:
        code = f"import asyncio\nasync def burn():\n    {burn}\ntask = asyncio.create_task(burn())"
        assert box.run(code)["status"] == "ok"
        assert eventually(lambda: refused(client))

"""SIGHUP: profiles are read again, and what runs goes on."""

from __future__ import annotations

import json
import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import Service, eventually, run_cli
from raw_http import Closed, Raw, ask, execute, post, request


class Reloadable:
    """A service whose profiles come from a file of the test's."""

    def __init__(self, start: Callable[..., Service], directory: Path) -> None:
        self.file = directory / "config.json"
        self.site = directory / "site"
        self.site.mkdir()
        self.install("one")
        self.write(mine={"sites": [str(self.site)]})
        directory.chmod(0o755)
        self.service = start("--config", str(self.file))

    def install(self, name: str) -> None:
        (self.site / f"{name}.py").write_text(f"name = '{name}'\n")

    def write(self, **profiles: Any) -> None:
        self.file.write_text(json.dumps({"profiles": {"data": None, **profiles}}))

    def said(self, words: str) -> int:
        self.service.drain()
        return self.service.text().count(words)

    def reload(self, words: str = "profiles read") -> None:
        """Sends the signal and waits for the server's word on it."""
        before = self.said(words)
        self.service.process.send_signal(signal.SIGHUP)
        assert eventually(lambda: self.said(words) > before), self.service.text()

    def states(self) -> dict[str, str]:
        profiles = ask(self.service, request("GET", "/v1/profiles")).json["profiles"]
        return {profile["name"]: profile["state"] for profile in profiles}

    def run(self, profile: str, code: str) -> Any:
        return execute(self.service, code, profile=profile).json

    def nurseries(self) -> list[int]:
        return self.service.nurseries()


@pytest.fixture
def reloadable(start_service: Callable[..., Service]) -> Iterator[Reloadable]:
    home = Path.home()
    if str(home).startswith("/tmp"):
        pytest.skip("no home outside of /tmp, which sandboxes have one of their own of")
    with tempfile.TemporaryDirectory(prefix=".cloche-test-", dir=home) as name:
        yield Reloadable(start_service, Path(name))


def test_a_profile_is_added_and_removed(reloadable: Reloadable) -> None:
    assert reloadable.states() == {"base": "ready", "mine": "ready"}
    reloadable.write(mine={"sites": [str(reloadable.site)]}, more={"preload": ["decimal"]})
    before = reloadable.nurseries()
    reloadable.reload()
    assert reloadable.run("more", "import decimal; print(1)")["stdout"] == "1\n"
    assert set(before) < set(reloadable.nurseries()), "those that did not change go on"
    reloadable.write(more={"preload": ["decimal"]})
    reloadable.reload()
    refusal = reloadable.run("mine", "1")["error"]
    assert (
        refusal["code"] == "unknown_profile" and "there are base, more, and" in refusal["message"]
    )
    assert eventually(lambda: reloadable.states() == {"base": "ready", "more": "ready"})
    assert b"mine" not in run_cli("status", "--socket", reloadable.service.socket).stdout
    assert eventually(lambda: len(reloadable.nurseries()) == 2)
    reloadable.write(mine={"sites": [str(reloadable.site)]})
    reloadable.reload()
    assert reloadable.run("mine", "import one; print(one.name)")["stdout"] == "one\n"


def test_a_changed_profile_is_changed_and_running_programs_go_on(reloadable: Reloadable) -> None:
    go = reloadable.site / "go"
    code = "import os, time, one\nprint('up', flush=True)\n" + (
        f"while not os.path.exists({str(go)!r}): time.sleep(0.01)\nprint(one.name)"
    )
    body = {"code": code, "profile": "mine", "timeout_ms": 60000}
    old = reloadable.nurseries()
    with Raw(reloadable.service) as raw:
        raw.send(post("/v1/execute/stream", body))
        raw.until(b"up")
        other = reloadable.site.parent / "other"
        other.mkdir()
        (other / "two.py").write_text("x = 2\n")
        reloadable.write(mine={"sites": [str(other)], "preload": ["two"]})
        reloadable.reload()
        look = "import sys; print('two' in sys.modules, 'one' in sys.modules)\nimport one"
        result = reloadable.run("mine", look)
        assert result["stdout"] == "True False\n"
        assert result["error"]["name"] == "ModuleNotFoundError", "a ready sandbox of before is gone"
        assert len(set(reloadable.nurseries()) & set(old)) == 2, "the old one has a program"
        go.touch()
        raw.until(b"one")
        raw.until(b'"status":"ok"')
    assert eventually(lambda: len(reloadable.nurseries()) == 2)
    assert len(set(reloadable.nurseries()) & set(old)) == 1, "base was left alone"


def test_what_was_installed_since_is_there(reloadable: Reloadable) -> None:
    assert reloadable.run("mine", "import two")["status"] == "error"
    reloadable.install("two")
    reloadable.reload()
    assert reloadable.run("mine", "import two; print(two.name)")["stdout"] == "two\n"


def test_a_broken_profile_is_tried_again(reloadable: Reloadable) -> None:
    reloadable.write(mine={"sites": [str(reloadable.site)], "preload": ["missing"]})
    reloadable.reload()
    assert eventually(lambda: reloadable.states()["mine"] == "broken")
    assert reloadable.run("mine", "1")["error"]["code"] == "profile_broken"
    stamp = reloadable.site.stat().st_mtime_ns
    reloadable.install("missing")
    os.utime(reloadable.site, ns=(stamp, stamp))  # not by the directory's time
    reloadable.reload()
    assert eventually(lambda: reloadable.states()["mine"] == "ready")
    assert reloadable.run("mine", "import missing; print(missing.name)")["stdout"] == "missing\n"


def test_a_file_with_a_mistake_changes_nothing(reloadable: Reloadable) -> None:
    before = reloadable.nurseries()
    for text in ("{", '{"profiles": {"x": {"python": 1}}}', '{"pool": "many"}'):
        reloadable.file.write_text(text)
        reloadable.reload("profiles not read")
    assert reloadable.nurseries() == before
    assert reloadable.run("mine", "import one; print(1)")["stdout"] == "1\n"
    assert reloadable.states() == {"base": "ready", "mine": "ready"}


def test_nothing_changed_nothing_restarts(reloadable: Reloadable) -> None:
    before = reloadable.nurseries()
    reloadable.reload()
    assert reloadable.nurseries() == before


def test_other_settings_are_said_to_need_a_restart(reloadable: Reloadable) -> None:
    settings = json.loads(reloadable.file.read_text())
    reloadable.file.write_text(json.dumps({**settings, "max_sandboxes": 7}))
    reloadable.reload()
    assert reloadable.said("settings changed that are read at start only") == 1


def test_the_new_profiles_outlive_server_and_warden(reloadable: Reloadable) -> None:
    reloadable.write(more={})
    reloadable.reload()
    assert eventually(lambda: reloadable.states() == {"base": "ready", "more": "ready"})
    for role in ("cloche-server", "cloche-warden"):
        old = {p.role: p.pid for p in reloadable.service.remember()}
        os.kill(old[role], signal.SIGKILL)

        def back() -> bool:
            now = {p.role: p.pid for p in reloadable.service.remember()}
            if now.get("cloche-server") in (None, old["cloche-server"]):
                return False  # it ends with its warden, and answers until then
            try:
                return reloadable.states() == {"base": "ready", "more": "ready"}
            except (OSError, Closed):
                return False

        assert eventually(back)
        assert reloadable.run("more", "print(1)")["stdout"] == "1\n"


def test_signals_under_load_lose_no_request(reloadable: Reloadable) -> None:
    raws = [Raw(reloadable.service) for _ in range(8)]
    try:
        for turn in range(6):
            for raw in raws:
                body = {"code": "print(6 * 7)", "profile": "mine", "timeout_ms": 60000}
                raw.send(post("/v1/execute", body))
            reloadable.install(f"turn{turn}")
            reloadable.service.process.send_signal(signal.SIGHUP)
            for raw in raws:
                reply = raw.reply()
                assert reply.status == 200 and reply.json["stdout"] == "42\n", reply.body
    finally:
        for raw in raws:
            raw.sock.close()
    assert eventually(lambda: len(reloadable.nurseries()) == 2)

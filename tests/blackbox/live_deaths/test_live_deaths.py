"""kill -9 of processes other than the server: which live sandboxes end, and why, is told."""

from __future__ import annotations

from pathlib import Path

from commands import Shell, soon
from deaths import GATE, LEAN, LIVE, Running, gone, make, one_of
from family import Family, drained, init_of, kill, one
from harness import LiveService
from http_client import ask


def test_the_warden_dies(doomed: LiveService, tmp_path: Path) -> None:
    """All sandboxes go with it; whoever asks is told so, now and by the next `cloche serve`."""
    service = doomed
    with drained(service):
        shells = [make(service) for _ in range(3)]
        deleted = make(service)
        deleted.end()
        kill(one(lambda: Family(service).warden()))
        assert soon(lambda: status_of(shells[0]) == 410)  # the server that dies with it may answer
        for shell in shells:
            assert "restarted" in gone(shell)
        assert "restarted" not in gone(deleted)
        reply = ask(service.port, "GET", "/v1/sandboxes/sbx_never")
        assert reply.status == 404
    service.stop()
    heir = LiveService(tmp_path, "--config", str(tmp_path / "cloche.json"))
    try:
        for shell in (*shells, deleted):
            shell.port = heir.port
            gone(shell)
        heir.stop()
    finally:
        heir.kill()


def test_a_paused_sandbox_does_not_hold_up_the_end(doomed: LiveService) -> None:
    """What is frozen does not die of SIGKILL, and the warden waits for its children."""
    with drained(doomed):
        assert make(doomed).post("/pause", {}).status == 200
    doomed.stop()
    assert "does not end" not in doomed.text()


def status_of(shell: Shell) -> int:
    try:
        return ask(shell.port, "GET", shell.url).status
    except ConnectionError:
        return 0


def test_a_nursery_dies(service: LiveService) -> None:
    shell = make(service)
    it = Running(shell, GATE).until("begun")
    kill(one(lambda: Family(service).nursery(LIVE)))
    it.seen += it.events
    it.close()
    assert it.seen[-1].type == "failed" and it.seen[-1].data["error"]["code"] == "sandbox_gone"
    assert "killed" in gone(shell)
    assert soon(lambda: service.live() == {"base": "ready"}), service.live()
    assert make(service).run("print(1)") == "1\n"


def test_a_lean_nursery_dies(service: LiveService) -> None:
    shell = make(service)
    shell.run("x = 1")
    kill(one(lambda: Family(service).nursery(LEAN)))
    assert shell.run("print(x)") == "1\n"


def test_a_zygote_dies(service: LiveService) -> None:
    """Live sandboxes go on, and get new kernels and commands from the next one."""
    shell = make(service)
    it = Running(shell, "x = 5\n" + GATE).until("begun")
    command = shell.start("echo begun; read x; exit 3")
    shell.prints(command, "begun")
    kill(one(lambda: Family(service).zygotes(LIVE)))
    shell.put("go", b"")
    assert it.end()["status"] == "ok" and shell.run("print(x)") == "5\n"
    shell.feed(command, data="\n")
    assert shell.over(command)["exit_code"] == 3
    assert soon(lambda: shell.command("echo on")["stdout"] == "on\n")
    assert shell.post("/restart", {}).status == 200
    assert shell.run("print('x' in globals())") == "False\n"


def test_an_init_dies(service: LiveService) -> None:
    shell = make(service)
    command = shell.start(["sleep", "95173"])
    (process,) = one_of(shell, "95173")
    kill(init_of(service, process))
    assert soon(lambda: shell.ask("GET", f"/commands/{command}").status == 410)
    assert "killed" in gone(shell)

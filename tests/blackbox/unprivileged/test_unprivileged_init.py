"""Init is out of reach of the program, and neighbours of each other, whoever started the engine."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import LONG, Caller, Engine, eventually
from host import descendants
from hostile_to_init import HOSTILE, MAY_BE_DONE
from users import NOBODY, home_of


# ---------------------------------------------------------------------------- init out of reach


def init_state(pid: int) -> dict[str, Any]:
    status = Path(f"/proc/{pid}/status").read_text()
    kept = ("Uid", "SigIgn", "SigCgt", "Cpus_allowed", "TracerPid", "State", "CapEff")
    stat = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return {
        "status": [line for line in status.splitlines() if line.startswith(kept)],
        "priority": stat[15:17],
        "policy": stat[38],
        "limits": Path(f"/proc/{pid}/limits").read_text(),
    }


def inits(engine: Engine) -> dict[int, dict[str, Any]]:
    found = {}
    for process in descendants(engine.process.pid):
        if process.comm == "cloche-init":
            with contextlib.suppress(OSError):  # one that is over goes away
                found[process.pid] = init_state(process.pid)
    return found


def test_init_is_out_of_reach(engine: Engine) -> None:
    code = HOSTILE + "\nimport sys; sys.stdout.flush(); input()\n"
    with engine.popen("--stdin", "--timeout", "60", "-c", code) as cli:
        assert cli.stdin is not None and cli.stdout is not None and cli.stderr is not None
        line = cli.stdout.readline()
        assert line, cli.stderr.read()
        found = json.loads(line)

        def alike() -> bool:  # one that is made ready for the pool becomes like the others
            states = list(inits(engine).values())
            return len(states) >= 2 and all(state == states[0] for state in states)

        assert eventually(alike), inits(engine)
        cli.stdin.write(b"\n")
        cli.stdin.close()
        assert cli.wait() == 0
    assert found.pop("proc") == []
    done = {name for name, result in found.items() if result == "done"}
    assert not {name for name in done if not name.startswith(MAY_BE_DONE)}


def test_init_serves_on_after_the_attack(engine: Engine, caller: Caller) -> None:
    out = home_of(caller) / "after"
    done = engine.cli("--timeout", "60", "--out", out, "-c", HOSTILE + "\nos._exit(9)\n")
    assert done.returncode == 9, done.stderr
    assert json.loads((out / "made").read_text())["ptrace attach"] == "EPERM"
    shutil.rmtree(out)


def test_neighbours_of_one_id_do_not_see_each_other(one_id_engine: Engine) -> None:
    """One uid for both, so only namespaces keep them apart."""
    code = (
        "import os, socket, time\n"
        "open('/tmp/mark', 'w'); open('/dev/shm/mark', 'w'); open('mark', 'w')\n"
        "s = socket.socket(socket.AF_UNIX); s.bind('\\0mark'); s.listen()\n"
        "t = socket.socket(); t.bind(('127.0.0.1', 4321)); t.listen()\n"
        "print('up', flush=True); input()\n"
    )
    look = (
        "import os, socket\n"
        "print([p for p in ('/tmp/mark', '/dev/shm/mark', 'mark') if os.path.exists(p)])\n"
        "print([p for p in os.listdir('/proc') if p.isdigit()] == [str(os.getpid())])\n"
        "for s, to in ((socket.socket(socket.AF_UNIX), '\\0mark'),\n"
        "              (socket.socket(), ('127.0.0.1', 4321))):\n"
        "    try: s.connect(to); print('reached')\n"
        "    except OSError as e: print('refused')\n"
        "try: os.kill(-1, 9); print('killed')\n"
        "except (ProcessLookupError, PermissionError): print('nobody')\n"
    )
    with one_id_engine.popen("--stdin", "--timeout", "60", "-c", code) as cli:
        assert cli.stdin is not None and cli.stdout is not None
        assert cli.stdout.readline() == b"up\n"
        result = one_id_engine.run(look, **LONG)
        assert result.stdout == "[]\nTrue\nrefused\nrefused\nnobody\n"
        cli.stdin.write(b"\n")
        cli.stdin.close()
        assert cli.wait() == 0


# ---------------------------------------------------------------------------- root without a range


@pytest.fixture(scope="module")
def rangeless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """Started by root, with the ids of a user that has none: one id for all, and not root's."""
    engine = Engine(tmp_path_factory.mktemp("engine"), "--profiles", "base", "--id-user", "nobody")
    try:
        engine.execute("pass", timeout_ms=60000)
        engine.settle()
        yield engine
        engine.stop()
    finally:
        engine.kill()


def outside_uids(engine: Engine) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for process in descendants(engine.process.pid):
        status = Path(f"/proc/{process.pid}/status").read_text()
        uids = status.split("\nUid:")[1].split("\n")[0].split()
        name = "sandbox" if process.comm.startswith(("python3", "cloche-init")) else process.comm
        found.setdefault(name, set()).update(map(int, uids))
    return found


def test_root_without_a_range_uses_nobody(rangeless: Engine) -> None:
    assert "no id range" in rangeless.text()
    uids = outside_uids(rangeless)
    assert uids["sandbox"] == {NOBODY}
    assert 0 not in uids["cloche-server"]
    assert rangeless.run("import os; print(os.getuid())").stdout == "1000\n"
    rangeless.check_no_leak()


def test_init_of_nobody_is_out_of_reach(rangeless: Engine) -> None:
    found = json.loads(rangeless.run(HOSTILE, timeout=60).stdout)
    assert found.pop("proc") == []
    done = {name for name, result in found.items() if result == "done"}
    assert not {name for name in done if not name.startswith(MAY_BE_DONE)}
    rangeless.check_no_leak()


REACH = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
reached = []
for pid in map(int, sys.argv[1:]):
    for name in ("mem", "environ", "maps", "fd/0", "root/workspace", "ns/user"):
        path = f"/proc/{pid}/{name}"
        try:
            if name in ("ns/user", "fd/0"): os.readlink(path)
            elif name == "root/workspace": os.listdir(path)
            else: open(path, "rb").read(1)
            reached.append(path)
        except OSError:
            pass
    if libc.ptrace(0x4206, pid, None, None) == 0: reached.append(f"ptrace {pid}")
print(reached)
"""


def test_nobody_outside_does_not_reach_into_sandboxes(rangeless: Engine) -> None:
    """The server is nobody too where no user cloche exists, and so are other services."""
    family = descendants(rangeless.process.pid)
    inside = [str(p.pid) for p in family if p.comm.startswith(("python3", "cloche-init"))]
    assert len(inside) > 2
    words = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--"]
    done = subprocess.run(
        [*words, "/usr/bin/python3", "-c", REACH, *inside], capture_output=True, text=True, cwd="/"
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")
    rangeless.check_no_leak()

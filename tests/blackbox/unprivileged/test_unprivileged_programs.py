"""Programs and live sandboxes of an ordinary user."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from harness import LONG, Caller, Engine, LiveService
from host import descendants
from live_box import box_of
from users import home_of


# ---------------------------------------------------------------------------- live sandboxes


def test_a_directory_of_the_users_is_bound_into_live_sandboxes(
    caller: Caller,
) -> None:
    home = home_of(caller)
    places = {"shown": home / "shown", "out": home / "out", "asked": home / "asked"}
    for directory in places.values():
        directory.mkdir()
        os.chown(directory, home.stat().st_uid, home.stat().st_gid)
    places["out"].chmod(0o777)
    places["asked"].chmod(0o777)
    (places["shown"] / "in.txt").write_text("shown")
    binds = f"{places['shown']}:shown,{places['out']}:out:rw"
    (home / "live").mkdir()
    os.chown(home / "live", home.stat().st_uid, home.stat().st_gid)
    options = ("--profiles", "base", "--live-bind", binds, "--bind-allow", f"{places['asked']}:rw")
    service = LiveService(home / "live", *options, caller=caller)
    asked = [{"host": str(places["asked"]), "path": "asked", "mode": "rw"}]
    try:
        with box_of(service, binds=asked, listen=True) as box:
            box.run("open('asked/made.txt', 'w').write('it asked')")
            assert (places["asked"] / "made.txt").read_text() == "it asked"
            code = (
                "import os\nfor n in range(300):\n    try: print(os.listdir(f'/proc/1/fd/{n}'))\n"
            )
            assert box.run(code + "    except OSError: pass") == ""
        asked[0]["mode"] = "ro"
        with box_of(service, binds=asked) as box:
            code = "try: open('asked/new', 'w')\nexcept OSError as e: print(e.errno)"
            assert box.run(code) in ("30\n", "13\n")
        with box_of(service) as box:
            assert box.run("print(open('shown/in.txt').read())") == "shown\n"
            code = "try: open('shown/new', 'w')\nexcept OSError as e: print(e.errno)"
            assert box.run(code) in ("30\n", "13\n")
            box.run("open('out/made.txt', 'w').write('by a program')")
            assert box.put("out/sent.txt", b"by a client").status == 201
            assert box.read("out/sent.txt") == b"by a client"
        assert (places["out"] / "made.txt").read_text() == "by a program"
        assert (places["out"] / "sent.txt").read_text() == "by a client"
        service.stop()
    finally:
        service.kill()
        for directory in (*places.values(), home / "live"):
            shutil.rmtree(directory)


# ---------------------------------------------------------------------------- running programs


def test_nothing_of_it_is_root(engine: Engine) -> None:
    owners = set()
    for process in descendants(engine.process.pid):
        status = Path(f"/proc/{process.pid}/status").read_text()
        owners.update(status.split("\nUid:")[1].split("\n")[0].split())
    assert "0" not in owners


def test_output_and_exit_codes(engine: Engine) -> None:
    done = engine.cli("-c", "import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)")
    assert (done.returncode, done.stdout, done.stderr) == (7, b"out\n", b"err\n")
    assert engine.run("import os, signal; os.kill(os.getpid(), signal.SIGTERM)").exit_status == 143
    assert engine.run("1/0").error["name"] == "ZeroDivisionError"


def test_standard_input(engine: Engine) -> None:
    assert engine.run("print(input() + input())", stdin=b"a\nb\n").stdout == "ab\n"


def test_files_in_and_out(engine: Engine, caller: Caller) -> None:
    home = home_of(caller)
    given = home / "given.txt"
    given.write_text("given\n")
    given.chmod(0o644)
    out = home / "out"
    code = (
        "import os\n"
        "text = open('in/given.txt').read()\n"
        "os.makedirs('deep/er')\n"
        "open('deep/er/made', 'w').write(text.upper())\n"
    )
    done = engine.cli("--file", f"{given}:in/given.txt", "--out", out, "-c", code)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (out / "deep" / "er" / "made").read_text() == "GIVEN\n"
    assert not (out / "in").exists()
    shutil.rmtree(out)


def test_processes_and_threads(engine: Engine) -> None:
    code = (
        "import subprocess, threading, multiprocessing\n"
        "print(subprocess.check_output(['echo', 'shell'], text=True), end='')\n"
        "t = threading.Thread(target=print, args=('thread',)); t.start(); t.join()\n"
        "with multiprocessing.Pool(2) as p: print(p.map(abs, [-1, -2]))\n"
    )
    assert engine.run(code, **LONG).stdout == "shell\nthread\n[1, 2]\n"


def test_who_we_are_inside(engine: Engine) -> None:
    code = (
        "import os, pwd, json\n"
        "status = dict(l.rstrip('\\n').split(':\\t', 1) for l in open('/proc/self/status'))\n"
        "print(json.dumps({'ids': os.getresuid() + os.getresgid(), 'groups': os.getgroups(),\n"
        "    'name': pwd.getpwuid(os.getuid()).pw_name, 'status': status,\n"
        "    'map': open('/proc/self/uid_map').read().split()}))\n"
    )
    found = json.loads(engine.run(code).stdout)
    assert found["ids"] == [1000] * 6
    assert found["groups"] == []
    assert found["name"] == "user"
    assert (found["map"][0], found["map"][2]) == ("1000", "1")
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(found["status"][name], 16) == 0, name
    assert found["status"]["NoNewPrivs"].strip() == "1"
    assert found["status"]["Seccomp"].strip() == "2"


def test_the_root_is_read_only_and_shows_nothing_of_the_user(
    engine: Engine, caller: Caller
) -> None:
    (home_of(caller) / "secret").write_text("secret")
    code = (
        "import os, errno\n"
        f"print(os.path.exists({str(home_of(caller))!r}))\n"
        "for path in ('/usr/x', '/etc/x', '/x', '/run/cloche/x', '/proc/sys/kernel/hostname'):\n"
        "    try: open(path, 'w'); print('wrote', path)\n"
        "    except OSError as e: print(errno.errorcode[e.errno])\n"
        "print(open('/proc/self/mountinfo').read())\n"
    )
    out = engine.run(code).stdout.splitlines()
    assert out[0] == "False"
    assert set(out[1:6]) <= {"EROFS", "EACCES", "EPERM"}
    assert not any("cloche-test-" in line for line in out), out


def test_a_timeout_kills_all_of_it(engine: Engine) -> None:
    code = (
        "import os, signal, time\n"
        "for s in set(signal.valid_signals()) - {9, 19}: signal.signal(s, signal.SIG_IGN)\n"
        "for _ in range(3):\n"
        "    if os.fork() == 0: os.setsid(); time.sleep(1000)\n"
        "print('up', flush=True)\n"
        "while True: pass\n"
    )
    result = engine.run(code, timeout=3)
    assert (result.status, result.limit_hit, result.exit_status) == ("timeout", "time", 124)
    assert result.stdout == "up\n"


def test_the_pids_limit(engine: Engine) -> None:
    code = (
        "import os, time\n"
        "made = 0\n"
        "try:\n"
        "    while made < 100:\n"
        "        if os.fork() == 0:\n"
        "            time.sleep(1000)\n"
        "        made += 1\n"
        "except BlockingIOError:\n"
        "    print(made)\n"
    )
    assert engine.run(code, pids=16, **LONG).stdout == "15\n"


def test_two_sandboxes_do_not_share_the_pids_limit(engine: Engine) -> None:
    """They have one uid where there is a single id; the kernel counts by namespace too."""
    hold = (
        "import os, sys\nfor _ in range(12):\n    if os.fork() == 0: os.read(0, 1); os._exit(0)\n"
    )
    with engine.popen("--stdin", "--pids", "16", "--timeout", "60", "-c", hold + "os.read(0, 1)"):
        code = "import os\nfor _ in range(12):\n    if os.fork() == 0: os._exit(0)\nprint('made')\n"
        assert engine.run(code, pids=16, **LONG).stdout == "made\n"


def test_memory_and_cpu_limits(engine: Engine) -> None:
    over = engine.run("x = b'x' * (300 << 20)\nimport time; time.sleep(60)", memory=64, **LONG)
    assert (over.status, over.limit_hit, over.exit_code) == ("memory_exceeded", "memory", 137)
    spin = engine.run("while True: pass", cpu=1, timeout=60)
    assert (spin.status, spin.limit_hit) == ("killed", "cpu")


def test_refusals_are_told(engine: Engine) -> None:
    code = "import ctypes; print(ctypes.CDLL(None).ptrace(0, 0, 0, 0))"
    result = engine.run(code)
    assert result.stdout == "-1\n"
    assert [d["op"] for d in result.denied] == ["run under a debugger"]


def test_no_network(engine: Engine) -> None:
    code = (
        "import socket\n"
        "try: socket.create_connection(('192.0.2.1', 80), 5)\n"
        "except OSError as e: print(e.strerror)\n"
    )
    result = engine.run(code, **LONG)
    assert result.stdout == "Network is unreachable\n"
    assert [d["rule"] for d in result.denied] == ["network:none"]

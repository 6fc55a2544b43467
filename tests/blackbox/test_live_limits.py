"""Limits of a kernel's own, below those of its sandbox: what one kernel takes is not its
neighbour's, and the control group that holds it is gone with it."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from family import Family, kill, one
from harness import LiveService, eventually
from host import is_alive, processes
from http_client import post
from live import Box, Client, error

DISK_MB = 16  # files are memory, too: a control group may hold that much more
HOG = "x = bytearray(400 << 20)"
LITTLE = {"memory_mb": 64}


@pytest.fixture(scope="module")
def roomy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    options = ("--profiles", "base", "--live-disk-mb", str(DISK_MB))
    service = LiveService(tmp_path_factory.mktemp("roomy"), *options)
    try:
        service.settle()
        if not service.own_cgroups():
            pytest.skip("no control groups here")
        yield service
        service.check_no_leak()
        service.stop()
    finally:
        service.kill()


@pytest.fixture
def box(roomy: LiveService) -> Iterator[Box]:
    with Client(roomy.port).box(limits={"memory_mb": 512, "pids": 64, "cpus": 1}) as made:
        yield made


def subs(service: LiveService) -> list[str]:
    """The control groups of kernels."""
    return [
        str(path)
        for top in service.own_cgroups()
        for path in Path(top).glob("*/k*")
        if path.is_dir()
    ]


def groups(service: LiveService) -> set[int]:
    """The memory limits of all sandboxes."""
    found = set()
    for top in service.own_cgroups():
        for name in ("memory.limit_in_bytes", "memory.max"):
            texts = [path.read_text() for path in Path(top).glob(f"*/{name}")]
            found |= {int(text) for text in texts if text.strip().isdigit()}
    return found


def killed(result: dict[str, Any], memory_mb: int) -> None:
    assert result["status"] == "memory_exceeded", result
    assert result["limit_hit"] == "memory"
    assert f"{memory_mb} MB" in result["error"]["value"], result["error"]


def test_a_kernel_at_its_limit_dies_alone_and_its_result_says_so(box: Box) -> None:
    own = box.kernel(limits=LITTLE)
    box.run("kept = 1")
    box.run("kept = 2", kernel_id=own)
    killed(box.run(HOG, kernel_id=own), 64)
    assert box.text("kept") == "1"
    after = box.run("'kept' in globals()", kernel_id=own)
    assert after["text"] == "False" and after["kernel_restarted"] is True
    assert box.run(HOG + "\nlen(x)")["status"] == "ok"  # the neighbour has the sandbox's


def test_the_next_process_of_a_kernel_has_its_limits_too(box: Box) -> None:
    own = box.kernel(limits=LITTLE)
    for _ in range(2):
        killed(box.run(HOG, kernel_id=own), 64)
    box.do("/restart", kernel_id=own)
    killed(box.run(HOG, kernel_id=own), 64)


def test_what_a_kernel_starts_counts_for_it(box: Box) -> None:
    own = box.kernel(limits=LITTLE)
    code = f"import subprocess, sys\nsubprocess.call([sys.executable, '-c', '{HOG}'])"
    result = box.run(code, kernel_id=own)
    assert result["status"] == "ok" and result["text"] == "-9", result
    assert result["limit_hit"] == "memory"


def test_processes_of_one_kernel_leave_room_for_those_of_others(box: Box) -> None:
    own = box.kernel(limits={"pids": 8})
    threads = (
        "import threading\ngo = threading.Event()\nmade = 0\ntry:\n    while made < 40:\n"
        "        threading.Thread(target=go.wait, daemon=True).start()\n        made += 1\n"
        "except RuntimeError: pass\nmade"
    )
    few = box.run(threads, kernel_id=own)
    assert 0 < int(few["text"]) < 8 and few["limit_hit"] == "pids", few
    many = box.run(threads)
    assert many["text"] == "40" and many["limit_hit"] is None, many


def test_processor_time_is_held_to_the_kernels_share(box: Box) -> None:
    own = box.kernel(limits={"cpus": 0.1})
    work = "import time\nend = time.monotonic() + 1\nwhile time.monotonic() < end: pass\n"
    used = box.run(work, kernel_id=own)["usage"]["cpu_ms"]
    assert used < 500, used  # of a second; a tenth of it, and what a period lets it run over


def test_a_kernel_far_from_its_own_limit_is_not_blamed(box: Box) -> None:
    """Its neighbour holds what it would have needed: it is the larger of the two and dies."""
    neighbour = box.kernel(limits={"memory_mb": 250})
    assert box.run("x = bytearray(b'x') * (200 << 20)", kernel_id=neighbour)["status"] == "ok"
    large = box.kernel(limits={"memory_mb": 450})
    result = box.run("x = bytearray(b'x') * (430 << 20)", kernel_id=large)
    killed(result, 512)
    assert "all kernels of the sandbox together" in result["error"]["value"]
    assert box.run("len(x) >> 20", kernel_id=neighbour)["text"] == "200"
    # With the whole sandbox to itself it may blame only itself.
    assert box.ask("DELETE", f"/kernels/{neighbour}").status == 204
    result = box.run("x = bytearray(b'x') * (500 << 20)", kernel_id=large)
    killed(result, 450)
    assert "it needed more than 450 MB" in result["error"]["value"]


def test_processor_time_of_a_kernel_with_limits_is_not_its_neighbours(roomy: LiveService) -> None:
    burn = "import time\nend = time.process_time() + 0.6\nwhile time.process_time() < end: pass"
    waits = "import os, time\nwhile not os.path.exists('burnt'): time.sleep(0.01)"
    with Client(roomy.port).box(limits={"memory_mb": 512, "cpu_seconds": 1}) as box:
        own = box.kernel(limits=LITTLE)
        with box.later(waits) as runs:
            used = sum(box.run(burn, kernel_id=own)["usage"]["cpu_ms"] for _ in range(3))
            assert used >= 1800, used
            box.run("open('burnt', 'w').close()", kernel_id=own)
            ran = runs.reply().json
        assert ran["status"] == "ok" and ran["usage"]["cpu_ms"] < used, ran
        with box.later(waits.replace("burnt", "gone")) as runs:
            box.ask("DELETE", f"/kernels/{own}")
            box.run("open('gone', 'w').close()", kernel_id=box.kernel())
            ran = runs.reply().json
        assert ran["status"] == "ok" and ran["usage"]["cpu_ms"] < 1000, ran


def test_limits_and_use_are_shown(box: Box) -> None:
    own = box.kernel(limits={"memory_mb": 100, "cpus": 0.5})
    box.run("x = bytearray(30 << 20)", kernel_id=own)
    shown = box.get(f"/kernels/{own}")
    assert shown["limits"] == {"memory_mb": 100, "cpus": 0.5, "pids": 64}
    use = shown["usage"]
    assert use["memory_peak_bytes"] >= use["memory_bytes"] > 30 << 20, use
    assert use["cpu_ms"] > 0 and use["processes"] >= 1
    assert box.get("/kernels")["kernels"][0]["limits"] is None


@pytest.mark.parametrize(
    "limits, words",
    [
        ({"memory_mb": 513}, ["memory_mb", "513 MB", "512 MB"]),
        ({"pids": 65}, ["pids", "65 processes", "64"]),
        ({"cpus": 1.5}, ["cpus", "1.5 processors", "sandbox's 1 processors"]),
    ],
)
def test_no_more_than_the_sandbox_has(box: Box, limits: dict[str, Any], words: list[str]) -> None:
    reply = box.ask("POST", "/kernels", {"limits": limits})
    error(reply, 422, "limit_too_high", *words)
    assert len(box.get("/kernels")["kernels"]) == 1


@pytest.mark.parametrize(
    "limits", [{"memory_mb": 0}, {"cpus": 0}, {"disk_mb": 5}, {"memory_mb": "1"}, [], "little"]
)
def test_limits_that_are_none_are_refused(box: Box, limits: Any) -> None:
    assert box.ask("POST", "/kernels", {"limits": limits}).status == 422
    assert len(box.get("/kernels")["kernels"]) == 1


def test_a_sandbox_that_gets_less_takes_its_kernels_along(box: Box) -> None:
    own = box.kernel(limits={"memory_mb": 256, "cpus": 0.8, "pids": 40})
    reply = box.ask("PATCH", "", {"limits": {"memory_mb": 128, "cpus": 0.5, "pids": 20}})
    assert reply.status == 200, reply
    shown = box.get(f"/kernels/{own}")["limits"]
    assert shown == {"memory_mb": 128, "cpus": 0.5, "pids": 20}
    killed(box.run(HOG, kernel_id=own), 128)


def test_meminfo_says_what_the_sandbox_has_now(box: Box) -> None:
    code = "print(int(open('/proc/meminfo').read().split()[1]) >> 10)"
    assert box.run(code)["stdout"] == "512\n"
    for memory_mb in (300, 1024, 300):  # up and down: the file is one and the same
        reply = box.ask("PATCH", "", {"limits": {"memory_mb": memory_mb}})
        assert reply.status == 200, reply
        assert eventually(lambda: box.run(code)["stdout"] == f"{memory_mb}\n")
    assert box.run("import os; print(os.listdir('/dev/shm'))")["stdout"] == "[]\n"


def test_the_control_group_goes_with_its_kernel(roomy: LiveService, box: Box) -> None:
    before = set(subs(roomy))
    own = box.kernel(limits=LITTLE)
    box.run("import subprocess\np = subprocess.Popen(['sleep', '1000'])", kernel_id=own)
    made = set(subs(roomy)) - before
    assert made and len({Path(path).name for path in made}) == 1, made
    assert box.ask("DELETE", f"/kernels/{own}").status == 204
    assert eventually(lambda: not made & set(subs(roomy))), subs(roomy)


def test_what_a_kernel_leaves_behind_ends_with_it(roomy: LiveService, box: Box) -> None:
    own = box.kernel(limits=LITTLE)
    code = "import subprocess, os\nprint(subprocess.Popen(['sleep', '1000']).pid, flush=True)\n"
    pid = int(box.run(code + "os._exit(3)", kernel_id=own)["stdout"])
    alive = f"import os\nos.path.exists('/proc/{pid}')"
    assert eventually(lambda: box.text(alive) == "False")


def test_limits_outlive_the_server(roomy: LiveService, box: Box) -> None:
    own = box.kernel(limits=LITTLE)
    box.run("kept = 5", kernel_id=own)
    server = one(lambda: Family(roomy).server())
    kill(server)
    assert eventually(lambda: not is_alive(server))
    assert box.text("kept", kernel_id=own) == "5"
    shown = box.get(f"/kernels/{own}")
    assert shown["limits"]["memory_mb"] == 64 and shown["usage"]["memory_bytes"] > 0
    killed(box.run(HOG, kernel_id=own), 64)
    assert box.ask("DELETE", f"/kernels/{own}").status == 204
    assert eventually(lambda: not subs(roomy)), subs(roomy)


def test_the_disk_is_no_memory(roomy: LiveService) -> None:
    """However large it is: a program that grows is stopped soon after its limit, and one that
    writes files is not."""
    limits = {"memory_mb": 64, "disk_mb": 2048}
    hoard = "kept = []\nwhile True: kept.append(b'x' * (1 << 20))"
    with Client(roomy.port).box(limits=limits) as box:
        box.run("for n in range(8): open('large', 'ab').write(b'x' * (40 << 20))")
        assert box.text("import os; os.path.getsize('large') >> 20") == "320"
        killed(box.run(hoard), 64)
        assert box.get()["usage"]["memory_peak_bytes"] < 1200 << 20
        assert box.text("open('large', 'rb').read(1)") == "b'x'"
    result = post(roomy.port, "/v1/execute", {"code": hoard, "limits": limits, "timeout_ms": 60000})
    assert result.json["limit_hit"] == "memory", result
    assert result.json["usage"]["memory_peak_bytes"] < 1200 << 20


def test_a_limit_is_as_before_when_memory_is_given_back(roomy: LiveService) -> None:
    """While too much is held the group gets no more; then the whole disk is there again."""
    hold = "import mmap\nheld = mmap.mmap(-1, 256 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)"
    files = "open('f', 'wb').write(bytes(400 << 20)); open('f', 'wb').write(b'')"
    with Client(roomy.port).box(limits={"memory_mb": 64, "disk_mb": 500}) as box:
        wide = (64 + 500) << 20  # nobody else has that
        assert wide in groups(roomy)

        def is_held() -> bool:
            """A little at a time: whoever grows on when its limit has come is killed."""
            step = box.run("held.write(bytes(1 << 20))")
            assert step["status"] == "ok", step
            return wide not in groups(roomy)

        for _ in range(2):
            box.run(hold)
            assert eventually(is_held), groups(roomy)
            box.run("held.close()")
            assert eventually(lambda: wide in groups(roomy)), groups(roomy)
            done = box.run(files)
            assert done["status"] == "ok", done


def test_a_paused_sandbox_pauses_them_and_ends_with_them(roomy: LiveService, box: Box) -> None:
    own = box.kernel(limits=LITTLE)
    box.run("import subprocess\np = subprocess.Popen(['sleep', '1000'])", kernel_id=own)
    assert box.ask("POST", "/pause").status in (200, 204)
    assert box.delete().status == 204
    assert eventually(lambda: not subs(roomy)), subs(roomy)


def test_a_cell_has_the_cpu_time_that_its_time_allows(start_live: Any) -> None:
    """What one-shot programs have by default is for those alone."""
    service = start_live("--profiles", "base", "--cpu-seconds", "1", "--disk-mb", "8")
    info = Client(service.port).ask("GET", "/v1/info").json
    assert info["live"]["defaults"]["cpu_seconds"] is None
    with Client(service.port).box() as box:
        limits = box.get("")["limits"]
        assert limits["cpu_seconds"] is None and limits["disk_mb"] == 512
        burn = "import time\nwhile time.process_time() < 1.5: pass\n"
        burn += "open('f', 'wb').write(bytes(9 << 20))"
        assert box.run(burn, timeout_ms=60000)["status"] == "ok"
    with Client(service.port).box(limits={"cpu_seconds": 1, "disk_mb": 4096}) as box:
        result = box.run("while True: pass", timeout_ms=60000)
        assert (result["status"], result["limit_hit"]) == ("interrupted", "cpu")


def test_the_operators_limits_are_those_of_kernels_that_ask_for_none(start_live: Any) -> None:
    options = ("--live-kernel-memory-mb", "64", "--live-kernel-cpus", "0.5")
    service = start_live("--profiles", "base", "--live-disk-mb", "16", *options)
    service.remember()
    if not service.own_cgroups():
        pytest.skip("no control groups here")
    with Client(service.port).box(limits={"memory_mb": 512}) as box:
        own, other = box.kernel(), box.kernel(limits={"memory_mb": 128})
        shown = {kernel["id"]: kernel["limits"] for kernel in box.get("/kernels")["kernels"]}
        assert shown.pop(own) == {"memory_mb": 64, "cpus": 0.5, "pids": 64}
        assert shown.pop(other) == {"memory_mb": 128, "cpus": 1.0, "pids": 64}
        assert list(shown.values()) == [None]  # the default one has the sandbox's
        killed(box.run(HOG, kernel_id=own), 64)
    with Client(service.port).box(limits={"memory_mb": 48, "cpus": 0.2}) as box:
        box.kernel()
        limits = box.get("/kernels")["kernels"][1]["limits"]
        assert (limits["memory_mb"], limits["cpus"]) == (48, 0.2)


def test_without_control_groups_such_limits_are_refused(start_live: Any) -> None:
    service = start_live("--profiles", "base", "--cgroup", "none", "--minimum", "none")
    with Client(service.port).box() as box:
        error(box.ask("POST", "/kernels", {"limits": LITTLE}), 501, "cannot_limit")
        assert box.text("1", kernel_id=box.kernel(limits={})) == "1"


def running_with(word: str) -> int:
    """How many processes of the machine have it in their command line."""
    found = 0
    for process in processes():
        try:
            found += word.encode() in Path(f"/proc/{process.pid}/cmdline").read_bytes()
        except OSError:
            pass
    return found


def test_without_control_groups_pids_is_for_all_of_a_sandbox(start_live: Any) -> None:
    """The kernel counts the processes of each command apart; the newest of all have to go."""
    service = start_live("--profiles", "base", "--cgroup", "none", "--minimum", "none")
    word = secrets.token_hex(8)
    code = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "for _ in range(14):\n"
        "    try: child = os.fork()\n"
        "    except OSError: continue\n"  # those that were ended are not gone yet
        "    if child == 0: time.sleep(1000)\n"
        f"print('{word}', flush=True)\n"
        "time.sleep(1000)\n"
    )
    with Client(service.port).box(limits={"pids": 16}) as box:
        argv = {"argv": ["python3", "-c", code], "background": True}
        commands = [box.ask("POST", "/commands", argv).json["id"] for _ in range(6)]

        def made(command: str) -> bool:
            return bool(word in box.get(f"/commands/{command}")["stdout"])

        for command in commands:
            assert eventually(lambda: made(command))
        assert eventually(lambda: running_with(word) <= 16 + 6), running_with(word)
        assert running_with(word) >= 6  # the commands themselves are not too many
        assert eventually(lambda: 6 < box.get()["usage"]["processes"] <= 16 + 7)
        assert box.text("1 + 1") == "2"
        assert box.ask("PATCH", "", {"limits": {"pids": 64}}).status == 200
        box.ask("POST", "/commands", argv)
        assert eventually(lambda: running_with(word) > 16 + 7)


def test_without_control_groups_a_sandbox_is_watched_after_its_first_limit(start_live: Any) -> None:
    service = start_live("--profiles", "base", "--cgroup", "none", "--minimum", "none")
    with Client(service.port).box(limits={"memory_mb": 128}) as box:
        for _ in range(3):
            hog = box.run(HOG + "\nwhile True: pass", timeout_ms=60000)
            killed(hog, 128)


def test_without_control_groups_a_live_sandbox_has_no_cpu_time_for_life(start_live: Any) -> None:
    service = start_live("--profiles", "base", "--cgroup", "none", "--minimum", "none")
    with Client(service.port).box(limits={"cpu_seconds": 1}) as box:
        burn = "import time\nend = time.process_time() + 0.6\nwhile time.process_time() < end: pass"
        for _ in range(4):
            assert box.run(burn, timeout_ms=60000)["status"] == "ok"


def test_without_control_groups_a_kernel_says_large_things(start_live: Any) -> None:
    """Its memory file is one of the sandbox's disk there."""
    service = start_live("--profiles", "base", "--cgroup", "none", "--minimum", "none")
    with Client(service.port).box() as box:
        result = box.run("display({'text/plain': 'y' * 1_000_000}, raw=True)")
        assert result["status"] == "ok" and len(str(result["results"])) > 1_000_000

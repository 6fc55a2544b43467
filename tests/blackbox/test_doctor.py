"""`cloche doctor`: on this machine, and in environments that are crippled for real.

Whatever is taken away, it must say so, give a remedy and exit 1; never crash.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness import eventually

ROOT = Path(__file__).resolve().parents[2]
STRICT = {
    *("user_ns", "pid_ns", "mount_ns", "net_ns", "ipc_ns", "uts_ns", "cgroup_ns"),
    *("proc", "seccomp", "notify", "no_new_privs", "cores"),
}
LAYERS = STRICT | {"ids", "cgroup", "landlock", "egress"}
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--")

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture(scope="module")
def cloche() -> Iterator[str]:
    """A copy that every user and every sandbox can reach."""
    source = Path(os.environ.get("CLOCHE_BIN") or ROOT / "build" / "gcc" / "cloche")
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        yield shutil.copy(source, directory)


def run(
    command: Sequence[str],
    env: dict[str, str] | None = None,
    before: Callable[[], None] | None = None,
) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("CLOCHE_", "KUBERNETES_"))}
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        env=clean | {"HOME": "/nonexistent"} | (env or {}),
        preexec_fn=before,
        cwd="/",
        check=False,
        timeout=120,
    )


def diagnose(
    *command: str, before: Callable[[], None] | None = None
) -> tuple[int, dict[str, dict[str, Any]], dict[str, Any]]:
    """Exit status, layers by name, and the whole object."""
    done = run(command, before=before)
    assert done.returncode in (0, 1), done
    found = json.loads(done.stdout)
    layers = {layer["name"]: layer for layer in found["layers"]}
    assert set(layers) == LAYERS
    for layer in layers.values():
        good = layer["state"] == "ok"
        assert layer["state"] in ("ok", "weak", "missing")
        assert layer["how"]
        assert (layer["cost"] is None) == good and (layer["fix"] is None) == good, layer
        assert good or layer["fix"], layer
    unmet = {n for n, layer in layers.items() if layer["required"] and layer["state"] != "ok"}
    assert set(found["minimum"]["unmet"]) == unmet
    assert found["minimum"]["met"] == (not unmet) == (done.returncode == 0)
    return done.returncode, layers, found


def without_pids(text: str) -> str:
    """A control group is named after the process that asked for it."""
    return re.sub(r"cloche-\d+", "cloche-PID", text)


def missing(layers: dict[str, dict[str, Any]]) -> set[str]:
    return {name for name, layer in layers.items() if layer["state"] == "missing"}


# ---------------------------------------------------------------------------- this machine


def test_this_machine_meets_the_strict_minimum(cloche: str) -> None:
    status, layers, found = diagnose(cloche, "doctor", "--json")
    assert status == 0
    assert not missing(layers) & STRICT
    assert found["minimum"]["configured"] == "strict"
    assert set(found["minimum"]["layers"]) == STRICT
    assert found["machine"]["kernel"] == os.uname().release
    assert found["machine"]["uid"] == os.geteuid()
    assert found["machine"]["cores"] >= 1 and found["machine"]["memory_mb"] > 0
    assert [profile["name"] for profile in found["profiles"]] == ["base", "data"]
    assert found["profiles"][0]["missing_modules"] == []


def test_text_says_the_same_without_colours(cloche: str) -> None:
    done = run([cloche, "doctor"])
    assert done.returncode == 0 and done.stderr == ""
    _, layers, _ = diagnose(cloche, "doctor", "--json")
    lines = done.stdout[: done.stdout.index("\n\nprofile ")].splitlines()
    rows = {line.split()[0]: line.split()[1] for line in reversed(lines) if line.split()}
    text = without_pids(done.stdout)
    assert {name: rows[name] for name in LAYERS} == {n: v["state"] for n, v in layers.items()}
    for layer in layers.values():
        if layer["state"] != "ok":
            assert f"cost: {layer['cost']}" in text and without_pids(layer["fix"]) in text
    assert done.stdout.rstrip().endswith("the minimum (strict) is met")
    assert "\033" not in done.stdout


def test_colours_on_a_terminal(cloche: str) -> None:
    if not shutil.which("script"):
        pytest.skip("no script(1)")
    command = ["script", "-qec", f"{cloche} doctor", "/dev/null"]
    assert "\033[32mok" in run(command, {"TERM": "xterm"}).stdout
    assert "\033" not in run(command, {"TERM": "xterm", "NO_COLOR": "1"}).stdout


@as_root
def test_leaves_nothing_behind(cloche: str) -> None:
    def orphans() -> set[str]:
        """Control groups that are named after a process which is no more."""
        walk = os.walk("/sys/fs/cgroup")  # which minds nothing that goes away
        found = {f"{at}/{name}" for at, names, _ in walk for name in names if "cloche-" in name}
        return {group for group in found if not os.path.exists(f"/proc/{group.rsplit('-', 1)[1]}")}

    groups = orphans()
    mounts = Path("/proc/self/mountinfo").read_text()
    diagnose(cloche, "doctor", "--json")
    assert eventually(lambda: orphans() <= groups)  # others end engines meanwhile
    assert Path("/proc/self/mountinfo").read_text() == mounts


# ---------------------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("minimum", "layers"),
    [
        ("none", set()),
        ("strict", STRICT),
        ("user_ns, seccomp", {"user_ns", "seccomp"}),
        ("strict landlock", STRICT | {"landlock"}),
    ],
)
def test_the_minimum_can_be_chosen(cloche: str, minimum: str, layers: set[str]) -> None:
    _, _, found = diagnose(cloche, "doctor", "--json", "--minimum", minimum)
    assert set(found["minimum"]["layers"]) == layers


def test_the_minimum_comes_from_the_configuration(cloche: str, tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"minimum": "seccomp"}))
    _, _, found = diagnose(cloche, "doctor", "--json", "--config", str(file))
    assert found["minimum"]["layers"] == ["seccomp"]
    done = run([cloche, "doctor", "--json"], {"CLOCHE_MINIMUM": "proc"})
    assert json.loads(done.stdout)["minimum"]["layers"] == ["proc"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--minimum", "strict,selinux"], '"selinux"'),
        (["--minimum", ""], "empty"),
        (["--minimum"], "needs a value"),
        (["--frobnicate"], "--frobnicate"),
        (["now"], "now"),
        (["--config", "/nonexistent/c.json"], "/nonexistent/c.json"),
        (["--cgroup", "v3"], "v3"),
    ],
)
def test_a_mistake_is_one_line_and_125(cloche: str, words: list[str], says: str) -> None:
    done = run([cloche, "doctor", *words])
    assert done.returncode == 125
    assert done.stdout == "" and done.stderr.count("\n") == 1
    assert done.stderr.startswith("cloche: ") and says in done.stderr


def test_a_mistake_with_json_is_an_object(cloche: str) -> None:
    done = run([cloche, "doctor", "--json", "--minimum", "selinux"])
    assert done.returncode == 125
    assert "selinux" in json.loads(done.stdout)["error"]["message"]


def test_a_profile_that_cannot_start_is_told(cloche: str, tmp_path: Path) -> None:
    profiles = {
        "gone": {"python": "/nonexistent/python3"},
        "poor": {"preload": ["json", "no_such_module.part", "no_such_module"]},
        "bare": {"sites": ["/nonexistent/site"], "read_only": ["/usr", "/nonexistent/two words"]},
    }
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"profiles": profiles}))
    _, _, found = diagnose(cloche, "doctor", "--json", "--config", str(file))
    by_name = {profile["name"]: profile for profile in found["profiles"]}
    assert not by_name["gone"]["found"]
    assert by_name["poor"]["missing_modules"] == ["no_such_module"]
    assert by_name["poor"]["missing_paths"] == []
    assert by_name["bare"]["missing_paths"] == ["/nonexistent/site", "/nonexistent/two words"]
    text = run([cloche, "doctor", "--config", str(file)]).stdout
    assert "/nonexistent/python3 is not there" in text and "not found: no_such_module" in text
    assert "/nonexistent/site is not there\n" in text
    assert "/nonexistent/two words is not there\n" in text


def test_control_groups_switched_off_are_weak(cloche: str) -> None:
    status, layers, _ = diagnose(cloche, "doctor", "--json", "--cgroup", "none")
    assert (status, layers["cgroup"]["state"]) == (0, "weak")
    words = ("--cgroup", "none", "--minimum", "strict,cgroup")
    status, _, found = diagnose(cloche, "doctor", "--json", *words)
    assert (status, found["minimum"]["unmet"]) == (1, ["cgroup"])


# ---------------------------------------------------------------------------- other users


@as_root
def test_an_ordinary_user_meets_the_strict_minimum(cloche: str) -> None:
    status, layers, found = diagnose(*NOBODY, cloche, "doctor", "--json")
    assert status == 0
    assert found["machine"]["uid"] == 65534
    assert layers["ids"]["state"] == "weak"
    assert "usermod --add-subuids " in layers["ids"]["fix"]


@as_root
def test_advice_about_ids_is_none_that_cannot_be_followed(cloche: str) -> None:
    """usermod and newuidmap know no user without a line in /etc/passwd."""
    stranger = ("setpriv", "--reuid=3999999999", "--regid=3999999999", "--clear-groups", "--")
    _, layers, _ = diagnose(*stranger, cloche, "doctor", "--json")
    assert "/etc/passwd" in layers["ids"]["fix"] and "usermod" not in layers["ids"]["fix"]
    _, layers, _ = diagnose(cloche, "doctor", "--json", "--id-user", "no-such-user")
    assert "no user no-such-user" in layers["ids"]["fix"] and "usermod" not in layers["ids"]["fix"]


@as_root
def test_an_ordinary_user_without_ids_does_not_meet_a_minimum_with_ids(cloche: str) -> None:
    words = ("doctor", "--json", "--minimum", "strict,ids")
    status, _, found = diagnose(*NOBODY, cloche, *words)
    assert (status, found["minimum"]["unmet"]) == (1, ["ids"])


def with_id_files(text: str, command: Sequence[str]) -> list[str]:
    """The command with these lines in /etc/subuid and /etc/subgid, in a mount namespace of its own.

    They are bind mounts: the machine's files stay as they are."""
    script = """set -e
for f in /etc/subuid /etc/subgid; do [ -e $f ] || exit 77; done
mount -t tmpfs -o mode=755 none /mnt
printf '%s' "$1" > /mnt/ids
mount --bind /mnt/ids /etc/subuid
mount --bind /mnt/ids /etc/subgid
umount /mnt
shift; exec "$@"
"""
    return ["unshare", "-m", "--propagation", "private", "sh", "-c", script, "sh", text, *command]


@as_root
@pytest.mark.skipif(not shutil.which("newuidmap"), reason="no newuidmap")
def test_ids_of_an_ordinary_user_are_mapped_by_the_helper(cloche: str) -> None:
    command = with_id_files("nobody:300000:5000\n", [*NOBODY, cloche, "doctor", "--json"])
    status, layers, _ = diagnose(*command)
    assert status == 0
    assert layers["ids"]["state"] == "ok"
    assert layers["ids"]["how"].startswith("5000 ids from 300000")
    assert layers["user_ns"]["how"] == "root inside is uid 300000 outside"


@as_root
def test_root_takes_its_own_ids_or_those_of_cloche(cloche: str) -> None:
    for user in ("root", "cloche"):
        command = with_id_files(f"{user}:400000:9000\n", [cloche, "doctor", "--json"])
        _, layers, _ = diagnose(*command)
        assert layers["ids"]["how"] == "9000 ids from 400000 on"


@as_root
def test_root_without_ids_is_told_the_command(cloche: str) -> None:
    command = with_id_files("alice:100000:65536\n", [cloche, "doctor", "--json"])
    status, layers, _ = diagnose(*command)
    assert (status, layers["ids"]["state"]) == (0, "weak")
    free = "165536-231071"  # beside alice's
    assert f"usermod --add-subuids {free} --add-subgids {free} root" in layers["ids"]["fix"]
    assert layers["user_ns"]["how"] == "root inside is uid 65534 outside"


@as_root
@pytest.mark.parametrize("line", ["root:0:65536\n", "root:many:ids\n", "root:4294967295:9\n"])
def test_lines_that_make_no_sense_are_shown(cloche: str, line: str) -> None:
    status, layers, _ = diagnose(*with_id_files(line, [cloche, "doctor", "--json"]))
    assert (status, layers["ids"]["state"]) == (1, "missing")
    assert line.strip() in layers["ids"]["how"]


# ---------------------------------------------------------------------------- crippled machines


@pytest.mark.parametrize(
    ("kind", "layer"),
    [
        ("net", "net_ns"),
        ("pid", "pid_ns"),
        ("mnt", "mount_ns"),
        ("ipc", "ipc_ns"),
        ("uts", "uts_ns"),
        ("cgroup", "cgroup_ns"),
        ("user", "user_ns"),
    ],
)
def test_a_namespace_that_may_not_be_made_is_missing(cloche: str, kind: str, layer: str) -> None:
    script = f"echo 0 > /proc/sys/user/max_{kind}_namespaces && exec {cloche} doctor --json"
    status, layers, _ = diagnose("unshare", "--user", "--map-root-user", "sh", "-c", script)
    assert status == 1
    assert layers[layer]["state"] == "missing"
    assert f"user.max_{kind}_namespaces is 0" in layers[layer]["how"]
    assert f"sysctl -w user.max_{kind}_namespaces=" in layers[layer]["fix"]
    # PID 1 and its mounts are needed to try a /proc; a user namespace is where ids are mapped.
    follow = {"pid": {"proc"}, "mnt": {"proc"}, "user": {"ids"}, "net": {"egress"}}
    assert missing(layers) == {layer} | follow.get(kind, set())


@as_root
def test_a_masked_proc_is_missing(cloche: str) -> None:
    masked = next(f for f in ("/proc/kcore", "/proc/keys", "/proc/cmdline") if os.path.exists(f))
    script = f"mount --bind /dev/null {masked} && exec {cloche} doctor --json"
    command = ("unshare", "-m", "--propagation", "private", "sh", "-c", script)
    status, layers, _ = diagnose(*command)
    assert (status, missing(layers)) == (1, {"proc"})
    assert masked in layers["proc"]["how"]


@as_root
def test_a_proc_that_cannot_be_written_is_told(cloche: str) -> None:
    script = f"mount -o remount,bind,ro /proc && exec {cloche} doctor --json"
    command = ("unshare", "-m", "--propagation", "private", "sh", "-c", script)
    status, layers, _ = diagnose(*command)
    assert status == 1
    assert "user_ns" in missing(layers)
    assert "read-only" in layers["user_ns"]["how"]


@pytest.mark.skipif(not shutil.which("bwrap"), reason="no bwrap")
def test_without_proc_it_still_answers(cloche: str) -> None:
    links = [("usr/lib", "/lib"), ("usr/lib64", "/lib64"), ("usr/bin", "/bin")]
    words = [word for target, link in links for word in ("--symlink", target, link)]
    here = os.path.dirname(cloche)
    bwrap = ("bwrap", "--ro-bind", "/usr", "/usr", *words, "--ro-bind", here, here, "--dev", "/dev")
    status, layers, _ = diagnose(*bwrap, cloche, "doctor", "--json")
    assert status == 1
    assert {"user_ns", "proc"} <= missing(layers)
    assert "mount -t proc" in layers["proc"]["fix"]


NO_CORES = ("setpriv", "--bounding-set=-sys_resource", "prlimit", "--core=0:0")


@as_root
def test_a_hard_limit_of_core_dumps(cloche: str, tmp_path: Path) -> None:
    """As sudo sets it. With a pipe or a socket, a limit of 0 keeps nothing back, and 1 cannot be
    had. (What is mounted over a file of /proc is told as well.)"""
    pattern = tmp_path / "core_pattern"
    lie = 'mount --bind "$0" /proc/sys/kernel/core_pattern && exec "$@"'
    doctor = ("unshare", "-m", "sh", "-c", lie, str(pattern), *NO_CORES, cloche, "doctor", "--json")
    pattern.write_text("core.%p\n")
    _, layers, _ = diagnose(*doctor)
    assert layers["cores"]["state"] == "ok" and "limit of 0" in layers["cores"]["how"]
    for text in ("|/usr/lib/systemd/systemd-coredump %P\n", "@/run/systemd/coredump\n"):
        pattern.write_text(text)
        status, layers, _ = diagnose(*doctor)
        assert status == 1 and missing(layers) == {"proc", "cores"}
        assert "LimitCORE=1" in layers["cores"]["fix"]


@as_root
def test_a_chroot_is_told(cloche: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        script = f"mount --rbind / {directory} && exec chroot {directory} {cloche} doctor --json"
        command = ("unshare", "-m", "--propagation", "private", "sh", "-c", script)
        status, layers, _ = diagnose(*command)
    assert status == 1
    assert missing(layers) == {"user_ns", "ids"}
    assert "chroot" in layers["user_ns"]["how"]


def refuse(syscall_number: int, errnum: int) -> Callable[[], None]:
    """A system call filter like that of a container: this call gets this errno."""
    program = b"".join(
        struct.pack("=HBBI", *step)
        for step in (
            (0x20, 0, 0, 0),  # load the number of the call
            (0x15, 0, 1, syscall_number),
            (0x06, 0, 0, 0x00050000 | errnum),
            (0x06, 0, 0, 0x7FFF0000),
        )
    )
    libc = ctypes.CDLL(None, use_errno=True)
    code = ctypes.create_string_buffer(program)
    prog = struct.pack("=H6xQ", 4, ctypes.addressof(code))
    fprog = ctypes.create_string_buffer(prog)

    def load() -> None:
        assert libc.prctl(38, 1, 0, 0, 0) == 0  # no_new_privs
        assert libc.prctl(22, 2, fprog, 0, 0) == 0 or code is None  # keeps `code` alive

    return load


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of x86-64")
def test_a_filter_on_unshare_is_told(cloche: str) -> None:
    status, layers, _ = diagnose(cloche, "doctor", "--json", before=refuse(272, 1))
    assert status == 1
    assert "user_ns" in missing(layers)
    assert "system call filter" in layers["user_ns"]["how"]
    assert layers["seccomp"]["state"] == "ok"


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of x86-64")
def test_a_filter_on_seccomp_is_told(cloche: str) -> None:
    status, layers, _ = diagnose(cloche, "doctor", "--json", before=refuse(317, 1))
    assert status == 1
    assert missing(layers) == {"seccomp", "notify"}


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of x86-64")
def test_a_filter_on_landlock_is_told(cloche: str) -> None:
    status, layers, _ = diagnose(cloche, "doctor", "--json", before=refuse(444, 38))
    assert status == 0
    assert missing(layers) == {"landlock"}


# ---------------------------------------------------------------------------- the profiles


def test_profiles_are_tried(tmp_path: Path) -> None:
    """A module that is there and cannot be imported is found by nothing but an import."""
    if str(Path.home()).startswith("/tmp"):
        pytest.skip("no home outside of /tmp, and every sandbox has a /tmp of its own")
    with tempfile.TemporaryDirectory(prefix=".cloche-test-", dir=Path.home()) as name:
        os.chmod(name, 0o755)
        (Path(name) / "falls_over.py").write_text("raise RuntimeError('as ever')\n")
        check_trials(tmp_path / "config.json", name)


def check_trials(config: Path, site: str) -> None:
    profiles = {
        "good": {"preload": ["json"]},
        "bad": {"preload": ["falls_over"], "sites": [str(site)]},
    }
    config.write_text(json.dumps({"profiles": profiles}))
    program = str(ROOT / (os.environ.get("CLOCHE_BIN") or "build/gcc/cloche"))
    done = run([program, "doctor", "--json", "--config", str(config), "--profiles", "good,bad"])
    assert done.returncode == 1, done.stderr
    found = {profile["name"]: profile for profile in json.loads(done.stdout)["profiles"]}
    assert (found["good"]["works"], found["good"]["live_works"]) == (True, True), found
    assert found["bad"]["works"] is False and "as ever" in found["bad"]["problem"], found
    assert found["bad"]["missing_modules"] == [], "it is there"
    done = run([program, "doctor", "--config", str(config), "--profiles", "good,bad"])
    assert done.returncode == 1 and "programs: does not work: " in done.stdout
    assert "not every profile works" in done.stdout
    done = run([program, "doctor", "--config", str(config), "--profiles", "good"])
    assert done.returncode == 0 and "live kernels: starts, and imports all of it" in done.stdout


def test_without_the_other_programs_nothing_is_tried(cloche: str) -> None:
    _, _, found = diagnose(cloche, "doctor", "--json")
    assert "cloche-warden is not beside" in found["profiles_untried"]
    assert {profile["works"] for profile in found["profiles"]} == {None}

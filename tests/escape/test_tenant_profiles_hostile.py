"""Profiles that tenants make over HTTP, of packages and builds that mean harm: nothing of them runs
but in their tenant's sandboxes, and nothing is written but files below their own directory."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from family import Family
from harness import eventually
from host import Process
from liars import HONEST, LEFT_OUT, REFUSED, copy_of_ours, lie, python_version
from live import Client
from made import add_to_wheel
from tenants import Tenants, ask_for, broken, built, make, names, remove, run, tenants
from turns import BUCKET, LONGEST_S, Turns
from wheels import wheel

EARLY = "open('/dev/shm/early', 'a').write('EARLY %d\\n' % __import__('os').getpid())\n"


@pytest.fixture(scope="module")
def service_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenants]:
    with tenants(tmp_path_factory.mktemp("tenants")) as service:
        yield service


@pytest.fixture
def service(service_session: Tenants) -> Iterator[Tenants]:
    yield service_session
    tidy(service_session)


def tidy(service: Tenants) -> None:
    for client in (service.of("alice"), service.of("bob")):
        for name in names(client):
            if name != "base":
                assert remove(client, name, force=True).status == 204
    assert eventually(lambda: service.left() == []), service.left()


def all_zygotes(service: Tenants) -> list[Process]:
    """Of the profile and of its twin for live sandboxes."""
    found = [p for number in (0, 1) for p in Family(service).zygotes(number)]
    assert found
    return found


def files(service: Tenants) -> list[str]:
    return sorted(str(p.relative_to(service.trees)) for p in service.trees.rglob("*"))


# ---------------------------------------------------------------------------- packages


def test_what_an_interpreter_would_run_by_itself(service: Tenants) -> None:
    """Neither the zygote nor a kernel runs it, one-shot or live, nor a Python that a program
    starts."""
    alice = service.of("alice")
    early = {
        "eager.pth": "import os; " + EARLY,
        "sitecustomize.py": EARLY,
        "usercustomize.py": EARLY,
        "eager-1.0.data/purelib/sitecustomize/__init__.py": EARLY,
    }
    add_to_wheel(wheel(service.wheels, "eager"), early)
    zygotes = all_zygotes(service)
    make(alice, "mine", "eager")
    assert not [f for f in files(service) if Path(f).name in (*early, "sitecustomize")]
    look = "import os, subprocess, sys\n"
    look += "subprocess.run([sys.executable, '-c', 'pass'])\n"
    look += "print(os.path.exists('/dev/shm/early'), 'eager' in sys.modules)\n"
    assert run(alice, "mine", look)["stdout"] == "False False\n"
    with alice.box(profile="mine") as box:
        assert box.run(look)["stdout"] == "False False\n"
        assert box.do("/commands", cmd="python3 -c pass; ls /dev/shm")["stdout"] == ""
    assert all_zygotes(service) == zygotes


def test_no_zygote_sees_it(service: Tenants) -> None:
    """A module of the profile's that shadows what zygotes import is found by its own programs, and
    by nothing that was there before."""
    alice, bob = service.of("alice"), service.of("bob")
    for name in ("json", "IPython", "encodings"):
        add_to_wheel(
            wheel(service.wheels, f"shadow_{name.lower()}"), {f"{name}/__init__.py": EARLY}
        )
    make(alice, "mine", "shadow_json", "shadow_ipython", "shadow_encodings")
    look = "import os, json; print(json.__file__[:8], os.path.exists('/dev/shm/early'))"
    for client, profile in ((alice, "mine"), (bob, "base")):
        assert run(client, profile, look)["stdout"] == "/usr/lib False\n"
    with alice.box(profile="mine") as box:
        assert box.run(look)["stdout"] == "/usr/lib False\n"
    for zygote in all_zygotes(service):
        maps = Path(f"/proc/{zygote.pid}/maps").read_text()
        assert "state-tenants" not in maps
        inside = Path(f"/proc/{zygote.pid}/root/run/cloche/profile")
        assert list(inside.iterdir()) == []


def test_a_python_of_its_own(service: Tenants) -> None:
    alice = service.of("alice")
    path = wheel(service.wheels, "eager")
    add_to_wheel(path, {"eager-1.0.data/scripts/python3.99": "#!/bin/sh\necho EARLY\n"})
    make(alice, "mine", "eager")
    assert not [f for f in files(service) if Path(f).name == "python3.99"]
    with alice.box(profile="mine") as box:
        assert box.do("/commands", cmd="command -v python3")["stdout"] == "/usr/bin/python3\n"


def test_other_trees_cannot_be_reached(service: Tenants) -> None:
    """Neither by a path, nor by mountinfo, nor by what is kept aside."""
    alice, bob = service.of("alice"), service.of("bob")
    make(alice, "mine", "alpha")
    make(bob, "theirs", "beta")
    other = next(p for p in service.left() if "beta" in str(list((service.trees / p).rglob("*"))))
    code = f"""
import os
for path in ("/run/cloche/mounts", "/run/cloche/mounts/trees", "/run/cloche/profile/..",
             "/run/cloche/profile/../../{other}", "{service.trees}"):
    try:
        print(sorted(os.listdir(path)))
    except OSError as exc:
        print(exc.errno)
found = [os.path.join(top, name) for top, _, names in os.walk("/run") for name in names]
print([path for path in found if path.endswith("beta.py")])
"""
    lines = run(alice, "mine", code)["stdout"].splitlines()
    assert lines[0] == "[]" and lines[1] == "2" and lines[3] == lines[4] == "2"
    assert lines[-1] == "[]" and other not in lines[2]


# ---------------------------------------------------------------------------- builds that lie


@pytest.fixture(scope="module")
def lying() -> Iterator[Tenants]:
    """Where its server can read its build.py, whoever else runs tests."""
    with tempfile.TemporaryDirectory(prefix="cloche-test-", dir="/tmp") as name:
        place = Path(name)
        place.chmod(0o755)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("CLOCHE_BIN", str(copy_of_ours(place)))
            with tenants(place, "--build-seconds", "4", "--tenant-profiles-mb", "8") as service:
                yield service


@pytest.fixture
def liar(lying: Tenants) -> Iterator[Tenants]:
    yield lying
    tidy(lying)


def tell(service: Tenants, body: str, result: Any = None) -> Client:
    lie(service.state.parent / "bin" / "cloche", body, result)
    return service.of("alice")


def test_what_is_no_part_of_a_profile_is_left_out(liar: Tenants) -> None:
    alice = tell(liar, "\n".join(LEFT_OUT.values()))
    make(alice, "mine", "alpha")
    found = [f.partition("/files/")[2] for f in files(liar) if "/files/" in f]
    site = "lib/python%d.%d/site-packages" % python_version()[:2]
    tops = ["bin", "lib", site.rpartition("/")[0]]
    assert found == sorted([*tops, site, f"{site}/d", f"{site}/d/evil.py", f"{site}/good.py"])
    for path in liar.trees.rglob("*"):
        assert not path.is_symlink() and path.stat().st_mode & 0o7022 == 0, path
    assert run(alice, "mine", "import good; print(good.GOOD)")["stdout"] == "1\n"


@pytest.mark.parametrize("what", REFUSED)
def test_what_leads_out_makes_no_profile(liar: Tenants, what: str) -> None:
    alice = tell(liar, REFUSED[what])
    said = broken(alice, "mine", "alpha")
    assert said and len(said) < 300
    assert eventually(lambda: liar.left() == []), liar.left()
    assert not Path("/etc/evil.py").exists()


@pytest.mark.parametrize(
    "result",
    [
        [],
        {"error": "\x1b]0;owned\x07" + "x" * 5000},
        HONEST | {"python": "../../etc"},
        HONEST | {"python": "2.7"},
        HONEST | {"python": "3"},
        HONEST | {"installed": [{"name": "a\n--index-url x", "version": "1"}]},
        HONEST | {"installed": [{"name": "a", "version": "1"}] * 3000},
        {"installed": []},
    ],
)
def test_results_that_no_build_has(liar: Tenants, result: Any) -> None:
    alice = tell(liar, "", result)
    assert len(broken(alice, "mine", "alpha")) < 300
    assert eventually(lambda: liar.left() == []), liar.left()


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("while True: pass", "it was not done within 4 s (setting build_seconds)"),
        ("import time\nwhile True: time.sleep(60)", "it was not done within 4 s"),
        ("x = []\nwhile True: x.append(bytes(1 << 24))", "it needs more than 1024 MB of memory"),
        ("json.dump = lambda v, f: f.write(' ' * (2 << 20))", "cannot be read"),
        ("os._exit(7)", "its build ended with status 7"),
        ("os.kill(os.getpid(), 9)", "its build ended with status 137"),
        (
            "entry('site-packages/large', 'x' * (9 << 20))",
            "it needs more of the disk than the 8 MB that are left of 8 MB",
        ),
        (
            "[entry(f'site-packages/l{n}', 'x' * (1 << 20)) for n in range(9)]",
            "it needs more of the disk than the 8 MB",
        ),
    ],
)
def test_builds_that_take_too_much(liar: Tenants, body: str, why: str) -> None:
    alice = tell(liar, body)
    assert why in broken(alice, "mine", "alpha")
    assert eventually(lambda: liar.left() == []), liar.left()


def test_deep_directories_are_left_out(liar: Tenants) -> None:
    alice = tell(liar, "entry('site-packages/' + 'd/' * 1500 + 'x')\nentry('site-packages/a/b')")
    make(alice, "mine", "alpha")
    assert not [f for f in files(liar) if f.count("/") > 70]


def test_what_a_build_prints_is_bounded_and_plain(liar: Tenants) -> None:
    alice = tell(liar, "import sys\nfor _ in range(3000): sys.stderr.write('\\x1b[2J' * 1000)")
    assert ask_for(alice, "mine", "alpha").status == 202
    assert built(alice, "mine")["state"] == "ready"
    reply = alice.ask("GET", "/v1/profiles/mine")
    assert b"\x1b" not in reply.body and len(reply.body) < 10000


def test_removed_while_it_is_taken_apart(liar: Tenants) -> None:
    alice = tell(liar, "[entry(f'site-packages/f{n}', 'x') for n in range(1500)]")
    for _ in range(5):
        assert ask_for(alice, "mine", "alpha").status == 202
        assert eventually(lambda: liar.left() != []), "it was never begun"
        assert remove(alice, "mine", force=True).status == 204
        assert eventually(lambda: liar.left() == []), liar.left()
    assert os.listdir(liar.trees) == []


class KeyedTurns(Turns):
    def __init__(self, client: Client) -> None:
        self.client = client
        super().__init__(client.port)

    def counts(self) -> dict[float, int]:
        text = self.client.ask("GET", "/metrics").body.decode()
        return {float(bound): int(n) for bound, n in BUCKET.findall(text)}


def test_no_build_holds_up_the_loop(liar: Tenants) -> None:
    """Many files, packages that it says were installed, requirements, lines that it prints."""
    body = "[entry(f'site-packages/f{n}', 'x' * 100) for n in range(1500)]\n"
    body += "import sys\nfor _ in range(20): sys.stderr.write('line\\n' * 1000)\n"
    version = "%d.%d.%d" % python_version()
    packages = [{"name": f"n{n}", "version": "1", "sha256": "a" * 64} for n in range(1200)]
    alice = tell(liar, body, HONEST | {"python": version, "installed": packages})
    turns = KeyedTurns(alice)
    wanted = [f"package-{n}>={n}; python_version > '{'3' * 200}'" for n in range(500)]
    make(alice, "mine", *wanted)
    assert len(alice.ask("GET", "/v1/profiles/mine").json["installed"]) == 1200
    (own,) = [p for p in alice.ask("GET", "/v1/profiles").json["profiles"] if p["name"] == "mine"]
    assert "installed" not in own and len(own["requirements"]) == 500
    assert run(alice, "mine", "import f7")["status"] == "error"
    assert turns.longest() <= LONGEST_S

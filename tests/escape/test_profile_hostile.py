"""Packages that do not want to be installed only, and builds that say what no build says: nothing
of them runs outside of a sandbox, and nothing but files below the profile is written."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import clean_env, run_cli
from liars import HONEST, LEFT_OUT, REFUSED, Liar, python_version
from made import Maker, add_to_wheel, place_of_profiles
from wheels import wheel

EARLY = "import os, sys; print('EARLY', os.getuid(), file=sys.stderr, flush=True)\n"


@pytest.fixture
def place() -> Iterator[Path]:
    with place_of_profiles() as place:
        yield place


@pytest.fixture
def maker(place: Path) -> Maker:
    return Maker(place)


def run(maker: Maker, name: str, code: str) -> str:
    env = clean_env(CLOCHE_PROFILES_DIR=str(maker.profiles), XDG_RUNTIME_DIR=str(maker.place))
    done = run_cli("run", "--profile", name, "--timeout", "60", "-c", code, env=env)
    assert done.returncode == 0, done.stderr.decode()
    assert b"EARLY" not in done.stderr, done.stderr
    return done.stdout.decode()


def files(maker: Maker) -> list[str]:
    """All that there is, but what was there before."""
    found = [str(p.relative_to(maker.place)) for p in maker.place.rglob("*") if not p.is_dir()]
    return [path for path in found if not path.startswith(("wheels/", "bin/"))]


def test_what_an_interpreter_would_run_by_itself_is_left_out(maker: Maker) -> None:
    path = wheel(maker.wheels, "eager")
    early = {
        "eager.pth": EARLY,
        "sitecustomize.py": EARLY,
        "usercustomize/__init__.py": EARLY,
        "eager-1.0.data/data/pyvenv.cfg": "home = /usr/bin\nprompt = EARLY\n",
    }
    add_to_wheel(path, early)
    maker.add("web", "eager", "--preload", "eager")
    assert maker.record("web")["build"]["left_out"] == [
        "eager.pth",
        "sitecustomize.py",
        "usercustomize",
    ]
    names = {p.name for p in (maker.profiles / "web" / "env").rglob("*")}
    assert not names & {"eager.pth", "sitecustomize.py", "usercustomize"}
    assert os.readlink(maker.profiles / "web" / "env" / "bin" / "python3").startswith("/")
    assert "EARLY" not in (maker.profiles / "web" / "env" / "pyvenv.cfg").read_text()
    assert run(maker, "web", "import eager; print(eager.VERSION)") == "1.0\n"


def test_a_python_of_its_own(maker: Maker) -> None:
    path = wheel(maker.wheels, "eager")
    add_to_wheel(path, {"eager-1.0.data/scripts/python3": "#!/bin/sh\necho EARLY >&2\n"})
    assert "profile web was not made" in maker.refused("add", "web", "eager")


@pytest.mark.parametrize("member", ["../../evil.py", "/tmp/evil.py", "a/../../../evil.py"])
def test_wheels_with_paths_that_lead_out(maker: Maker, member: str) -> None:
    path = wheel(maker.wheels, "escaping")
    add_to_wheel(path, {member: "EVIL = 1\n"})
    before = set(files(maker))
    done = maker.call("add", "web", "escaping", "--find-links", maker.wheels)
    new = set(files(maker)) - before
    allowed = ("profiles/web/", "profiles/.web.lock")
    assert all(path.startswith(allowed) for path in new), new
    assert not any(Path(path).name == "evil.py" for path in new) or done.returncode == 0


def test_one_that_forks_and_one_that_fills_the_disk_while_tried(maker: Maker) -> None:
    forks = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass\n"
    wheel(maker.wheels, "forks", body=forks)
    bounds = ("--build-timeout", "20", "--build-memory", "500")
    said = maker.refused("add", "web", "forks", "--preload", "forks", *bounds)
    assert "profile web was not made" in said
    fill = "import os\nf = open('/tmp/full', 'wb')\nwhile True: f.write(bytes(1 << 20))\n"
    wheel(maker.wheels, "fills", body=fill)
    said = maker.refused("add", "web", "fills", "--preload", "fills", "--build-disk", "40")
    assert "No space left" in said or "disk" in said
    assert maker.names() == []


# ---------------------------------------------------------------------------- a build that lies


@pytest.fixture
def liar(place: Path) -> Liar:
    return Liar(place)


def test_what_is_no_part_of_a_profile_is_left_out(liar: Liar) -> None:
    before = set(files(liar))
    liar.lie("\n".join(LEFT_OUT.values()))
    liar.add("web")
    env = liar.profiles / "web" / "env"
    assert sorted(p.name for p in liar.site("web").iterdir()) == ["d", "good.py"]
    assert (liar.site("web") / "d").is_dir() and not (liar.site("web") / "d").is_symlink()
    assert sorted(p.name for p in env.iterdir()) == ["bin", "lib", "pyvenv.cfg"]
    assert sorted(p.name for p in (env / "bin").iterdir()) == ["python", "python3"]
    new = set(files(liar)) - before
    assert all(path.startswith(("profiles/web/", "profiles/.web.lock")) for path in new), new
    assert not Path("/tmp/evil.py").exists()
    code = "import good, os; print(good.GOOD, os.__file__)"
    assert run(liar, "web", code).startswith("1 /usr/lib/")


@pytest.mark.parametrize("what", REFUSED)
def test_what_leads_out_makes_no_profile(liar: Liar, what: str) -> None:
    before = set(files(liar)) | {"profiles/.web.lock"}
    liar.lie(REFUSED[what])
    assert "profile web was not made" in liar.refused("add", "web")
    assert set(files(liar)) == before and liar.names() == []
    assert not Path("/etc/evil.py").exists()


ZEROS = """
e = tarfile.TarInfo({name!r})
e.size = 100 << 20
tar.addfile(e, open("/dev/zero", "rb"))
"""


@pytest.mark.parametrize("name", ["share/zeros", "include/left_out"])
def test_more_comes_out_than_the_disk_of_the_build_had(liar: Liar, name: str) -> None:
    """A sandbox with 40 MB can pack 40 GB of zeros."""
    before = set(files(liar)) | {"profiles/.web.lock"}
    liar.lie(ZEROS.format(name=name))
    said = liar.refused("add", "web", "--build-disk", "40")
    assert "what came out of the sandbox: it has more than 40 MB; nothing" in said, said
    assert set(files(liar)) == before and liar.names() == []


@pytest.mark.parametrize(
    "result",
    [
        [],
        {"error": "\x1b]0;owned\x07" + "x" * 5000},
        HONEST | {"python": "../../etc"},
        HONEST | {"python": "2.7"},
        HONEST | {"installed": [{"name": "a\n--index-url x", "version": "1"}]},
        HONEST | {"installed": [{"name": "a", "version": "1", "sha256": "x y"}]},
        HONEST | {"installed": [{"name": "a", "version": "1", "url": "x\n-e ."}]},
        HONEST | {"installed": {"name": "a"}},
        {"installed": []},
    ],
)
def test_results_that_no_build_has(liar: Liar, result: Any) -> None:
    liar.lie("", result)
    said = liar.refused("add", "web")
    assert "profile web was not made" in said and "\x1b" not in said and len(said) < 1000


def test_many_files_beside_what_is_wanted(liar: Liar) -> None:
    liar.lie("[open(f'f{n}', 'w').close() for n in range(3000)]\nos.mkdir('result')")
    liar.call("add", "web", "--find-links", liar.wheels)
    assert liar.names() in ([], ["web"])
    for name in liar.names():
        assert sorted(os.listdir(liar.profiles / name)) == [
            "env",
            "profile.json",
            "requirements.lock",
        ]


def test_what_is_shown_of_it_is_plain_text(liar: Liar) -> None:
    told = HONEST | {
        "python": "%d.%d.%d" % python_version(),
        "requirements": ["\x1b]52;c;ZXZpbA==\x07"],
        "left_out": ["\x1b[2J"],
        "live_what": "\x1b]0;x\x07",
    }
    liar.lie("", told)
    liar.add("web")
    shown = liar.said("show", "web") + liar.said("list") + liar.said("test", "web")
    assert "\x1b" not in shown and "\x07" not in shown
    assert json.loads(liar.said("show", "web", "--json"))["name"] == "web"

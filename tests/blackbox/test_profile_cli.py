"""`cloche profile`: environments that are built in a sandbox, from a directory of wheels here. From
an index: tests/clients."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from family import write_config
from harness import PYTHON, LiveService, clean_env, cloche_bin, eventually, failed, run_cli
from http_client import ask, execute
from live import Client
from made import Maker, place_of_profiles
from test_profiles import other_pythons
from wheels import wheel

HANGS = ("--preload", "stuck")
THREAD = (
    "import threading, time\n"
    "threading.Thread(target=time.sleep, args=(1e6,), daemon=True).start()\n"
)


@pytest.fixture
def place() -> Iterator[Path]:
    with place_of_profiles() as place:
        yield place


@pytest.fixture
def maker(place: Path) -> Maker:
    return Maker(place)


def run(maker: Maker, name: str, code: str) -> str:
    """In a private engine."""
    env = clean_env(CLOCHE_PROFILES_DIR=str(maker.profiles), XDG_RUNTIME_DIR=str(maker.place))
    words = ("run", "--profile", name, "--timeout", "60", "-c", code)
    done = run_cli(*words, env=env)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


# ---------------------------------------------------------------------------- what is made


def test_a_profile_is_made_and_used(maker: Maker) -> None:
    words = ("beta", "--preload", "beta,json", "--env", "COLOUR=blue", "--open-files", "99")
    costs = maker.add("web", *words)
    assert [module["name"] for module in costs["modules"]] == ["beta", "json"]
    assert costs["costs"]["fork_ms"] > 0 and costs["costs"]["memory_mb"] > 0
    code = (
        "import os, resource, subprocess, sys\n"
        "print('beta' in sys.modules, 'alpha' in sys.modules)\n"
        "import alpha, beta\n"
        "print(beta.VERSION, os.environ['COLOUR'], resource.getrlimit(resource.RLIMIT_NOFILE)[0])\n"
        "sys.stdout.flush()\n"
        "subprocess.run(['beta'], check=True)\n"
        "subprocess.run(['python3', '-c', 'import alpha, sys; print(sys.prefix)'], check=True)\n"
    )
    prefix = maker.profiles / "web" / "env"
    assert run(maker, "web", code) == f"True False\n1.0 blue 99\nbeta 1.0\n{prefix}\n"
    record = maker.record("web")
    assert [p["name"] for p in record["installed"]] == ["alpha", "beta"]
    assert record["build"]["requirements"] == ["beta"]
    lock = (maker.profiles / "web" / "requirements.lock").read_text().splitlines()
    assert [line.split("=")[0] for line in lock] == ["alpha", "beta"]
    assert all(" --hash=sha256:" in line for line in lock)
    assert maker.names() == ["web"]


def test_nothing_of_it_can_be_changed_or_run_by_others(maker: Maker) -> None:
    maker.add("web", "beta")
    for path in (maker.profiles / "web").rglob("*"):
        if path.is_symlink():
            continue
        assert path.stat().st_uid == os.getuid() and not path.stat().st_mode & 0o7022, path
    links = {p.name: os.readlink(p) for p in (maker.profiles / "web").rglob("*") if p.is_symlink()}
    assert links == {"python3": os.path.realpath(PYTHON), "python": "python3"}
    code = "import alpha\ntry:\n    open(alpha.__file__, 'a')\nexcept OSError as e: print(e.errno)"
    assert run(maker, "web", code) in ("30\n", "13\n")


def test_it_sees_its_own_packages_alone_unless_it_is_to(maker: Maker) -> None:
    names = ("alpha", "pip")
    look = f"import importlib.util as u; print([u.find_spec(n) is not None for n in {names}])"
    maker.add("own", "alpha")
    maker.add("both", "alpha", "--system-packages")
    assert run(maker, "own", look) == "[True, False]\n"
    assert run(maker, "both", look) == "[True, True]\n"


def test_what_starts_threads_is_left_to_programs(maker: Maker) -> None:
    wheel(maker.wheels, "busy", body=THREAD)
    costs = maker.add("web", "busy", "alpha", "--preload", "busy,alpha")
    assert [module["name"] for module in costs["lazy"]] == ["busy"]
    assert maker.record("web")["profile"]["preload"] == ["alpha"]
    code = "import sys; print('alpha' in sys.modules); import busy; print(busy.VERSION)"
    assert run(maker, "web", code) == "True\n1.0\n"
    more = ("--find-links", maker.wheels, "--preload", "busy")
    assert "busy starts threads" in maker.said("add", "more", "busy", *more)


def test_from_requirements_and_a_project(maker: Maker) -> None:
    (maker.place / "r.txt").write_text("# ours\nalpha==1.0 ; python_version >= '3'  # one\n\\\n\n")
    (maker.place / "pyproject.toml").write_text("[project]\nname='x'\ndependencies=['beta>=1']\n")
    maker.add("one", "-r", maker.place / "r.txt")
    maker.add("two", "--pyproject", maker.place / "pyproject.toml")
    assert [p["name"] for p in maker.record("one")["installed"]] == ["alpha"]
    assert [p["name"] for p in maker.record("two")["installed"]] == ["alpha", "beta"]


def test_from_another_profile(maker: Maker) -> None:
    maker.add("one", "alpha", "--preload", "alpha", "--env", "A=1", "--env", "B=1", "--cpus", "0.5")
    maker.add("two", "beta", "--from", "one", "--env", "B=2", "--preload", "beta")
    two = maker.record("two")
    assert two["profile"] == {
        "preload": ["alpha", "beta"],
        "env": {"A": "1", "B": "2"},
        "limits": {"cpus": 0.5},
    }
    assert two["build"]["requirements"] == ["alpha", "beta"]
    maker.add("three", "alpha", "--from", "base")  # of the configuration: its Python, its modules
    assert "json" in maker.record("three")["profile"]["preload"]


@pytest.mark.skipif(not other_pythons(), reason="no other Python is here")
@pytest.mark.parametrize("python", other_pythons())
def test_another_python(maker: Maker, python: str) -> None:
    maker.add("other", "beta", "--python", python, "--preload", "beta")
    version = maker.record("other")["build"]["version"]
    code = "import sys, beta; print('%d.%d.%d' % sys.version_info[:3], beta.VERSION)"
    assert run(maker, "other", code) == f"{version} 1.0\n"


def test_by_version(maker: Maker) -> None:
    version = os.path.basename(os.path.realpath(PYTHON))[len("python") :]
    maker.env = {"PATH": "/nowhere:/usr/bin:/bin"}
    maker.add("web", "alpha", "--python", version)
    assert maker.record("web")["build"]["python"] == os.path.realpath(PYTHON)
    assert "no python3.99 on PATH" in maker.refused("add", "odd", "--python", "3.99")


def test_it_is_shown(maker: Maker) -> None:
    maker.add("web", "beta", "--preload", "beta", "--env", "A=1", "--memory", "300")
    shown = maker.said("show", "web")
    for words in ("alpha 1.0, beta 1.0", "A=1", "memory_mb=300", os.path.realpath(PYTHON)):
        assert words in shown
    assert maker.said("list").startswith("web ")
    (listed,) = json.loads(maker.said("list", "--json"))["profiles"]
    assert listed["name"] == "web" and listed["profile"]["preload"] == ["beta"]
    assert "fork" in maker.said("test", "web") and "fork" in maker.said("test", "base")
    env = clean_env(CLOCHE_PROFILES_DIR=str(maker.profiles))
    found = json.loads(run_cli("config", "--json", env=env).stdout)["profiles"]["web"]
    assert found["preload"] == ["beta"] and found["limits"] == {"memory_mb": 300}


def test_sync_makes_it_again_from_the_lock(maker: Maker) -> None:
    maker.add("web", "beta", "--preload", "beta")
    before = maker.record("web")
    wheel(maker.wheels, "alpha", "2.0")
    maker.site("web").joinpath("alpha.py").unlink()
    maker.said("sync", "web")
    after = maker.record("web")
    assert after["installed"] == before["installed"] and after["profile"] == before["profile"]
    assert after["build"]["requirements"] == ["beta"]
    assert run(maker, "web", "import alpha; print(alpha.VERSION)") == "1.0\n"
    assert maker.names() == ["web"], "nobody used the old one"
    # Another file under the same name is not what was locked.
    wheel(maker.wheels, "alpha", "1.0", body="print('another')")
    assert "do not match the hashes" in maker.refused("sync", "web").lower()
    assert maker.record("web") == after


# ---------------------------------------------------------------------------- what cannot be


def test_one_sentence_each(maker: Maker) -> None:
    place = maker.place
    lines: dict[str, tuple[str, list[Any]]] = {
        "unknown package": ("no wheel of gamma", ["gamma>=2"]),
        "no file": ("nowhere.txt", ["-r", place / "nowhere.txt"]),
        "directory": ("no file", ["-r", place]),
        "no project": ("no [project]", ["--pyproject", place / "empty.toml"]),
        "no toml": ("cannot be read", ["--pyproject", place / "bad.toml"]),
        "no module": ("delta cannot be imported", ["alpha", "--preload", "delta"]),
        "no name of a module": ("names of modules", ["alpha", "--preload", "a-b"]),
        "python": ("no python3.99", ["--python", "3.99"]),
        "script": ("no script", ["--python", place / "script"]),
        "no python": ("", ["--python", "/usr/bin/true"]),
        "env": ("NAME=VALUE", ["--env", "A"]),
        "pythonpath": ("sites", ["--env", "PYTHONPATH=/x"]),
        "from": ("no profile", ["--from", "nobody"]),
    }
    (place / "empty.toml").write_text("")
    (place / "bad.toml").write_text("[")
    (place / "script").write_text("#!/bin/sh\n")
    (place / "script").chmod(0o755)
    for what, (words, arguments) in lines.items():
        assert words in maker.refused("add", "web", *arguments), what
    assert maker.names() == []


@pytest.mark.parametrize(
    "line",
    [
        "--index-url http://127.0.0.1/simple",
        "-e .",
        "-r other.txt",
        "--no-binary :all:",
        "alpha --install-option=x",
        "alpha --global-option x",
        "--find-links /",
    ],
)
def test_requirements_hold_no_options_of_pip(maker: Maker, line: str) -> None:
    (maker.place / "r.txt").write_text(f"alpha\n{line}\n")
    said = maker.refused("add", "web", "-r", maker.place / "r.txt")
    assert "requirements.txt, line 2" in said and "option of pip" in said


def test_names(maker: Maker) -> None:
    maker.add("web", "alpha")
    assert "there is a profile web already" in maker.refused("add", "web", "alpha")
    assert "configuration's" in maker.refused("add", "base", "alpha")
    for name in ("auto", "A", "../x", "", "x" * 33):
        assert "1 to 32 of a-z" in maker.refused("add", name, "alpha")
    assert "there is no profile nobody" in maker.refused("show", "nobody")
    assert "there is no profile nobody" in maker.refused("remove", "nobody")
    assert "there is no profile nobody" in maker.refused("sync", "nobody")
    failed(run_cli("profile", "ad", "x"), "did you mean add")
    failed(run_cli("profile", "show"), "NAME")
    failed(run_cli("profile", "add", "x", "--profiles-dir", "/tmp/x"), "/tmp of its own")


def test_two_builds_of_one_name(maker: Maker) -> None:
    wheel_that_hangs(maker)
    with maker.start("add", "web", "stuck", *HANGS, "--find-links", maker.wheels) as first:
        assert eventually(lambda: ".web.new" in maker.names())
        assert "just now" in maker.refused("add", "web", "alpha")
        assert "just now" in maker.refused("remove", "web")
        first.terminate()
        last = first.communicate()[1].decode().rstrip("\n").split("\n")[-1]
        assert "interrupted; nothing was changed" in last
    assert maker.names() == []
    maker.add("web", "alpha")


def wheel_that_hangs(maker: Maker) -> None:
    wheel(maker.wheels, "stuck", body="import time\ntime.sleep(1e6)")


def test_a_build_that_never_ends(maker: Maker) -> None:
    wheel_that_hangs(maker)
    said = maker.refused("add", "web", "stuck", *HANGS, "--build-timeout", "5")
    assert "not done within 5 s (--build-timeout)" in said
    assert maker.names() == []


def test_a_disk_that_is_too_small(maker: Maker) -> None:
    wheel(maker.wheels, "bulky", body=f"LARGE = {'x' * (40 << 20)!r}")
    said = maker.refused("add", "web", "bulky", "--build-disk", "30")
    assert "more than 30 MB of disk (--build-disk)" in said


def test_packages_without_a_wheel(maker: Maker) -> None:
    """Nothing of a source archive is run unless the operator says so."""
    source = maker.place / "omega-1.0"
    source.mkdir()
    (source / "setup.py").write_text("from setuptools import setup\nsetup(name='omega')\n")
    (source / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: omega\nVersion: 1.0\n")
    archive = maker.wheels / "omega-1.0.tar.gz"
    subprocess.run(["tar", "-czf", archive, "-C", maker.place, "omega-1.0"], check=True)
    assert "no wheel of omega" in maker.refused("add", "web", "omega")
    said = maker.refused("add", "web", "omega", "--allow-builds")  # there is no setuptools here
    assert "no wheel of omega" not in said


# ---------------------------------------------------------------------------- with a server


@pytest.fixture
def service(start_live: Callable[..., LiveService], maker: Maker) -> LiveService:
    small = {"preload": ["json"], "pool": 1}
    config = write_config(maker.place, {"data": None, "base": small})
    service = start_live("--config", config, "--profiles-dir", str(maker.profiles))
    maker.socket = service.socket
    maker.env = {"CLOCHE_LIVE": "on", "CLOCHE_CONFIG": config}
    return service


def profiles(service: LiveService) -> dict[str, str]:
    found = ask(service.port, "GET", "/v1/profiles").json["profiles"]
    return {profile["name"]: profile["state"] for profile in found}


def test_a_server_takes_it_up_and_gives_it_up(service: LiveService, maker: Maker) -> None:
    done = maker.call("add", "web", "alpha", "--system-packages", "--find-links", maker.wheels)
    assert done.returncode == 0 and b"the server has profile web" in done.stderr
    assert profiles(service) == {"base": "ready", "web": "ready"}
    result = execute(service.port, "import alpha; print(alpha.VERSION)", profile="web")
    assert result["stdout"] == "1.0\n"
    with Client(service.port).box(profile="web") as box:
        assert box.text("import alpha; alpha.VERSION") == "'1.0'"
        assert box.run("!alpha")["stdout"] == "alpha 1.0\n"
        assert "1 sandbox of profile web" in maker.refused("remove", "web")
        maker.said("sync", "web")
        assert box.text("import importlib; importlib.reload(alpha).VERSION") == "'1.0'"
        assert len(maker.names()) == 2, "what it sees stays"
        done = maker.call("remove", "web", "--force")
        assert done.returncode == 0 and b"given up" in done.stderr
        assert box.text("importlib.reload(alpha).VERSION") == "'1.0'"
        assert profiles(service) == {"base": "ready"}
        assert "web" not in maker.names()
    again = maker.call("add", "web", "alpha", "--system-packages", "--find-links", maker.wheels)
    assert again.returncode == 0
    assert execute(service.port, "import alpha; print(1)", profile="web")["stdout"] == "1\n"
    maker.said("remove", "web")
    assert "web" not in maker.names() and profiles(service) == {"base": "ready"}


def test_a_build_that_fails_changes_nothing(service: LiveService, maker: Maker) -> None:
    maker.add("web", "alpha")
    before = maker.record("web")
    maker.wheels.joinpath("alpha-1.0-py3-none-any.whl").unlink()
    maker.refused("sync", "web")
    assert maker.record("web") == before
    assert execute(service.port, "import alpha; print(1)", profile="web")["stdout"] == "1\n"


def test_without_ipython_it_has_no_live_half(service: LiveService, maker: Maker) -> None:
    costs = maker.add("web", "alpha")
    assert costs["live"] == "no IPython, so none: no wheel of ipython can be had"
    assert execute(service.port, "import alpha; print(1)", profile="web")["stdout"] == "1\n"
    reply = ask(service.port, "GET", "/v1/profiles").json["profiles"]
    web = next(profile for profile in reply if profile["name"] == "web")
    assert eventually(lambda: web["live"] in ("broken", "starting"))


def test_the_program_is_there() -> None:
    assert (cloche_bin().parent / "cloche-profile").exists()
    assert b"cloche profile add NAME" in run_cli("profile", "--help").stdout


# ---------------------------------------------------------------------------- Debian packages


@pytest.mark.skipif(os.geteuid() != 0, reason="for root only")
def test_debian_packages_are_those_of_the_machine(maker: Maker) -> None:
    """These are there already: apt-get has nothing to do, and says so."""
    links = ("--find-links", maker.wheels)
    done = maker.call(
        "add", "web", "alpha", *links, "--apt", "python3-numpy", "--apt", "python3-pip"
    )
    assert done.returncode == 0, done.stderr.decode()
    assert "python3-numpy is already the newest version" in done.stderr.decode()
    build = maker.record("web")["build"]
    assert build["apt"] == ["python3-numpy", "python3-pip"] and build["system_packages"] is True
    assert "python3-numpy, python3-pip" in maker.said("show", "web")
    maker.said("sync", "web")
    assert maker.record("web")["build"]["apt"] == build["apt"]


@pytest.mark.parametrize(
    "name", ["-o=x", "a", "numpy-", "numpy+", "x=1", "x/testing", "./x.deb", "X", "a b", ""]
)
def test_names_that_apt_would_read_otherwise(maker: Maker, name: str) -> None:
    said = maker.refused("add", "web", "alpha", f"--apt={name}")
    assert "is no name of a Debian package" in said


@pytest.mark.skipif(os.geteuid() != 0, reason="for root only")
def test_a_debian_package_that_is_not_there(maker: Maker) -> None:
    said = maker.refused("add", "web", "alpha", "--apt", "cloche-no-such-package")
    assert "apt-get could not install the Debian packages" in said

"""Packages that sandboxes install for themselves, here from the operator's directory of wheels,
which needs no network (with one: tests/network/test_network_packages.py)."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from commands import Shell, shell_of
from family import write_config
from harness import PYTHON, LiveService, failed, run_cli
from http_client import ask, execute, post
from live import Box, Client
from made import place_of_profiles
from wheels import wheel, wheels_place

PLACE = "/tmp/.local"
NO_NETWORK = "pypi.org cannot be reached from this sandbox"


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = wheels_place(tmp_path_factory.mktemp("wheels"))
    wheel(place, "alpha")
    wheel(place, "beta", needs="alpha")
    wheel(place, "bulky", body=f"LARGE = {'x' * (40 << 20)!r}")
    return place


@pytest.fixture
def service(start_live: Callable[..., LiveService], wheels: Path) -> LiveService:
    return start_live("--wheels", str(wheels))


@pytest.fixture
def box(service: LiveService) -> Iterator[Box]:
    with Client(service.port).box() as box:
        yield box


@pytest.fixture
def bare(live_service: LiveService) -> Iterator[Shell]:
    """Neither wheels nor a network."""
    with shell_of(live_service) as shell:
        yield shell


# ---------------------------------------------------------------------------- in cells


@pytest.mark.parametrize(
    "how",
    [
        "!pip install beta",
        "%pip install beta",
        "import subprocess, sys\n"
        "subprocess.run([sys.executable, '-m', 'pip', 'install', 'beta'], check=True)",
        "import os; os.system('python3 -m pip install beta')",
    ],
)
def test_a_cell_installs_and_imports(box: Box, how: str) -> None:
    done = box.run(how, timeout_ms=60000)
    assert done["status"] == "ok" and "Successfully installed alpha-1.0 beta-1.0" in done["stdout"]
    assert "not writeable" not in done["stdout"] + done["stderr"], done
    # In the same kernel, which looked for it before; it shadows nothing and lies on the own disk.
    assert box.text("import beta, alpha; beta.__file__").startswith(f"'{PLACE}/lib/python3")
    assert box.text("!beta") is None
    assert box.run("!beta")["stdout"] == "beta 1.0\n"
    # In a kernel of its own and after a restart.
    kernel = box.kernel()
    assert box.text("import beta; beta.VERSION", kernel_id=kernel) == "'1.0'"
    box.do("/restart")
    assert box.text("import beta; beta.VERSION") == "'1.0'"


def test_it_comes_before_what_the_profile_has(box: Box) -> None:
    paths = box.text("import sys; [p for p in sys.path if p.endswith('-packages')]")
    assert paths.startswith(f"['{PLACE}/lib/python3"), paths


def test_what_is_asked_for_in_a_command(service: LiveService) -> None:
    with shell_of(service) as shell:
        assert "Successfully installed alpha-1.0" in shell.said("pip install alpha 2>&1")
        assert shell.said("alpha") == "alpha 1.0\n"
        assert shell.said("python3 -c 'import alpha; print(alpha.VERSION)'") == "1.0\n"
        assert shell.said("pip list --format freeze | grep alpha") == "alpha==1.0\n"
        shell.said("pip uninstall -q -y alpha 2>&1")
        assert shell.command("python3 -c 'import alpha'")["exit_code"] == 1
        shell.run("1")  # its kernels go on


def test_an_environment_of_ones_own_is_left_alone(service: LiveService) -> None:
    with shell_of(service) as shell:
        shell.said("python3 -m venv --system-site-packages own 2>&1", timeout_ms=60000)
        shell.said("own/bin/python -m pip install -q alpha 2>&1", timeout_ms=60000)
        found = shell.said("own/bin/python -c 'import alpha; print(alpha.__file__)'")
        assert found.startswith("/workspace/own/lib/")
        assert shell.command("python3 -c 'import alpha'")["exit_code"] == 1


def test_the_place_is_within_the_disk(service: LiveService) -> None:
    with Client(service.port).box(limits={"disk_mb": 30}) as box:
        done = box.run("!pip install bulky", timeout_ms=60000)
        assert "No space left on device" in done["stdout"] + done["stderr"], done
        assert done["limit_hit"] in ("disk", None)
        assert box.run("1 + 1")["text"] == "2"


# ---------------------------------------------------------------------------- profiles


@pytest.fixture
def place() -> Iterator[Path]:
    with place_of_profiles() as place:
        yield place


@pytest.mark.parametrize("with_pip", [True, False])
def test_a_virtual_environment_as_profile(
    start_live: Callable[..., LiveService], wheels: Path, place: Path, with_pip: bool
) -> None:
    """Its own directory is read-only, and it may have no pip."""
    venv = place / "venv"
    options = ["--system-site-packages"] + ([] if with_pip else ["--without-pip"])
    subprocess.run([PYTHON, "-m", "venv", *options, venv], check=True)
    (packages,) = venv.glob("lib/python3*/site-packages")
    (packages / "only_in_venv.py").write_text("ANSWER = 42\n")
    small = {"preload": ["json"], "pool": 1}
    config = write_config(
        place,
        {"data": None, "base": small, "venv": {"python": f"{venv}/bin/python3", **small}},
    )
    service = start_live("--config", config, "--wheels", str(wheels))
    with Client(service.port).box(profile="venv") as box:
        box.run("import sys; prefix = sys.prefix")
        assert box.text("prefix") == f"'{venv}'"
        done = box.run(
            "import subprocess, sys\n"
            "subprocess.run([sys.executable, '-m', 'pip', 'install', 'beta'], check=True)",
            timeout_ms=60000,
        )
        assert done["status"] == "ok", done
        assert box.text("import beta; beta.__file__").startswith(f"'{PLACE}/lib/python3")
        child = "subprocess.check_output([sys.executable, '-c', {!r}], text=True)"
        both = "import beta, only_in_venv, sys; print(beta.VERSION, sys.prefix)"
        assert box.text(child.format(both)) == f"'1.0 {venv}\\n'"
        assert box.run("!beta")["stdout"] == "beta 1.0\n"
        done = box.run("!pip install -q alpha && alpha", timeout_ms=60000)
        assert done["stdout"] == "alpha 1.0\n", done


# ---------------------------------------------------------------------------- programs


def one_shot(service: LiveService, code: str, **fields: Any) -> dict[str, Any]:
    return execute(service.port, code, profile="base", **fields)


def test_a_program_asks_for_packages(service: LiveService) -> None:
    code = "import beta, alpha; print(beta.VERSION, alpha.__file__)"
    done = one_shot(service, code, packages=["beta"])
    assert done["status"] == "ok", done
    assert done["stdout"].startswith(f"1.0 {PLACE}/lib/python3") and done["stderr"] == ""
    assert one_shot(service, "import alpha")["error"]["name"] == "ModuleNotFoundError"
    reply = post(
        service.port,
        "/v1/run",
        {
            "code": "import beta\nbeta.VERSION",
            "profile": "base",
            "packages": ["beta"],
            "env": {"A": "1"},
        },
    )
    assert reply.json["text"] == "'1.0'" and reply.json["error"] is None, reply


def test_a_package_that_is_not_there(service: LiveService) -> None:
    done = one_shot(service, "print('never')", packages=["alpha", "gamma>=2"])
    assert done["status"] == "error" and done["exit_code"] == 1 and done["stdout"] == ""
    assert done["error"]["name"] == "PackagesNotInstalled"
    assert "gamma>=2" in done["error"]["value"] and NO_NETWORK in done["error"]["value"]
    assert done["stderr"].startswith("PackagesNotInstalled: ") and "Traceback" not in done["stderr"]


@pytest.mark.parametrize("name", ["", "--index-url=x", "-e .", "a\nb", "x" * 301])
def test_what_is_no_requirement(service: LiveService, name: str) -> None:
    reply = post(service.port, "/v1/execute", {"code": "1", "packages": ["alpha", name]})
    assert reply.status == 422, reply
    assert reply.json["error"]["code"] == "bad_value"
    assert "packages[1]" in reply.json["error"]["message"], reply


# ---------------------------------------------------------------------------- neither of both


def put(shell: Shell, path: str, data: bytes) -> None:
    assert ask(shell.port, "PUT", f"{shell.url}/files/{path}", data).status in (200, 201)


@pytest.mark.parametrize(
    "command",
    ["pip install x", "pip3 install x", "python3 -m pip install -U x", "pip download -q x"],
)
def test_why_nothing_can_be_installed(bare: Shell, command: str) -> None:
    done = bare.command(command)
    assert done["exit_code"] == 1 and done["stdout"] == ""
    line, rest = done["stderr"].split("\n", 1)
    assert rest == "" and NO_NETWORK in line, done
    assert '["@pypi"]' in line and "operator" in line, done


def test_what_needs_no_index_goes_on(bare: Shell, wheels: Path) -> None:
    name = "alpha-1.0-py3-none-any.whl"
    put(bare, name, (wheels / name).read_bytes())
    said = bare.said("pip install ./alpha-1.0-py3-none-any.whl 2>&1")
    assert "Successfully installed alpha-1.0" in said, said
    assert "alpha" in bare.said("pip list 2>&1")
    assert bare.command("pip --version")["exit_code"] == 0


def test_other_pythons_are_not_disturbed(bare: Shell) -> None:
    """What PYTHONPATH leads to takes itself away; sitecustomize of a user's is found."""
    code = "import sys; print([p for p in sys.path if 'cloche' in p], 'pip' in sys.modules)"
    assert bare.said(["python3", "-c", code]) == "[] False\n"
    put(bare, "mine/sitecustomize.py", b"print('mine')")
    assert bare.said("PYTHONPATH=/run/cloche/tools:mine python3 -c pass") == "mine\n"
    assert bare.said("python3 -I -c 'print(1)'") == "1\n"


# ---------------------------------------------------------------------------- settings


@pytest.mark.parametrize(
    "option, value, word",
    [
        ("--pip-index-url", "pypi.org", "https://"),
        ("--pip-index-url", "https:///simple", "no URL"),
        ("--pip-index-url", "https://me:secret@pypi.org/simple", "password"),
        ("--npm-registry", "https://a b/", "character"),
        ("--wheels", "wheels", "absolute"),
        ("--wheels", "/nowhere/wheels", "no directory"),
    ],
)
def test_settings_that_cannot_be_meant(option: str, value: str, word: str) -> None:
    words = failed(run_cli("config", option, value))
    assert word in words and "secret" not in words, words


def test_the_index_that_the_operator_names(start_live: Callable[..., LiveService]) -> None:
    service = start_live(
        "--pip-index-url", "http://mirror.example/simple", "--npm-registry", "http://npm.example/"
    )
    with shell_of(service) as shell:
        line = shell.command("pip install x")["stderr"]
        assert line.startswith("pip: mirror.example cannot be reached"), line
        assert '["mirror.example"]' in line
        assert shell.said("echo $npm_config_registry $PIP_TRUSTED_HOST") == (
            "http://npm.example/ mirror.example\n"
        )

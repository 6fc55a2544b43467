"""Profiles: other interpreters, one's own modules and paths, clear words when something is missing,
and the choice that `auto` makes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from family import write_config
from harness import PYTHON, Engine, clean_env, failed, run_cli
from made import place_of_profiles

Starter = Callable[..., Engine]


@pytest.fixture
def place() -> Iterator[Path]:
    with place_of_profiles() as place:
        yield place


@pytest.fixture
def with_profiles(start_engine: Starter, tmp_path: Path) -> Callable[..., Engine]:
    """An engine with base (quick to start) and these profiles."""

    def start(**profiles: Any) -> Engine:
        small = {"preload": ["json"], "pool": 1}
        return start_engine(
            "--config", write_config(tmp_path, {"data": None, "base": small, **profiles})
        )

    return start


def states(engine: Engine) -> dict[str, tuple[str, str]]:
    return {p["name"]: (p["state"], p["what"]) for p in engine.info()["profiles"]}


def output(engine: Engine, profile: str, code: str) -> str:
    outcome = engine.execute(code, profile=profile, timeout_ms=60000, cpu_seconds=60)
    assert outcome.error is None, outcome
    assert outcome.exit_status == 0, outcome
    return outcome.stdout.decode()


# ---------------------------------------------------------------------------- interpreters


def test_a_virtual_environment(with_profiles: Callable[..., Engine], place: Path) -> None:
    venv = place / "venv"
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", venv], check=True)
    (package,) = venv.glob("lib/python3*/site-packages")
    (package / "only_in_venv.py").write_text("ANSWER = 42\n")
    engine = with_profiles(venv={"python": f"{venv}/bin/python3", "preload": ["only_in_venv"]})
    code = "import sys, only_in_venv; print(sys.prefix, sys.base_prefix, only_in_venv.ANSWER)"
    assert output(engine, "venv", code) == f"{venv} /usr 42\n"
    # A child finds the same environment, and base does not have it.
    child = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', {!r}], check=True)"
    assert output(engine, "venv", child.format("import only_in_venv")) == ""
    assert engine.execute("import only_in_venv", profile="base").exit_status == 1
    for name in ("python", "python3"):
        words = [name, "-c", "import only_in_venv"]
        child = f"import subprocess\nsubprocess.run({words}, check=True)"
        assert output(engine, "venv", child) == ""
    path = output(engine, "venv", "import os; print(os.environ['PATH'])")
    assert path.startswith(f"{venv}/bin:") and path.endswith(":/usr/local/bin:/usr/bin:/bin\n")


def test_names_of_another_interpreter(with_profiles: Callable[..., Engine], place: Path) -> None:
    """Beside the profile's, python3 and python are something else."""
    others = place / "bin"
    others.mkdir()
    (others / "mine").symlink_to(PYTHON)
    for name in ("python", "python3"):
        (others / name).write_text("#!/bin/sh\necho another\n")
        (others / name).chmod(0o755)
    engine = with_profiles(odd={"python": f"{others}/mine", "preload": []})
    code = "import subprocess\nsubprocess.run(['{}', '-c', 'print(6 * 7)'], check=True)"
    for name in ("python", "python3"):
        assert output(engine, "odd", code.format(name)) == "42\n"


def other_pythons() -> list[str]:
    """Interpreters of other versions, where this user has any."""
    found = sorted(Path.home().glob(".pyenv/versions/3.*/bin/python3"))
    wanted = [p for p in found if 7 <= int(p.parts[-3].split(".")[1]) <= 13]
    return [str(path) for path in wanted]


EVERYDAY = """
import asyncio, atexit, ctypes, gc, multiprocessing, os, signal, subprocess, sys, threading
import traceback

print("%d.%d" % sys.version_info[:2])
print(threading.current_thread() is threading.main_thread(), len(traceback.extract_stack()))
thread = threading.Thread(target=print, args=("thread",))
thread.start()
thread.join()
signal.signal(signal.SIGUSR1, lambda *_: print("signal"))
os.kill(os.getpid(), signal.SIGUSR1)
print(subprocess.check_output([sys.executable, "-c", "print('child')"]).decode().strip())


async def work():
    await asyncio.sleep(0)
    return "asyncio"


print(asyncio.run(work()))

compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
numbers = (ctypes.c_int * 3)(3, 1, 2)
ctypes.CDLL(None).qsort(numbers, 3, 4, compare(lambda a, b: a[0] - b[0]))
print(list(numbers))  # called back from C: the thread state is found

pid = os.fork()
if pid == 0:
    sys.exit(4)
print(os.waitpid(pid, 0)[1] >> 8)
process = multiprocessing.get_context("fork").Process(target=print, args=("process",))
process.start()
process.join()


def deep(n):
    return n and deep(n - 1)


deep(900)
try:
    deep(10**6)
except RecursionError:
    print("recursion")
gc.collect()
atexit.register(print, "atexit")
sys.stdout.flush()
1 / 0
"""
EVERYDAY_OUTPUT = (
    "True 1\nthread\nsignal\nchild\nasyncio\n[1, 2, 3]\n4\nprocess\nrecursion\natexit\n"
)


@pytest.mark.once
def test_every_python_that_is_here(with_profiles: Callable[..., Engine]) -> None:
    """One build of the zygote serves them all: threads, signals, callbacks, forks, errors."""
    pythons = other_pythons()
    if not pythons:
        pytest.skip("no other Python here")
    names = {"py" + path.split("/")[-3].replace(".", "-"): path for path in pythons}
    engine = with_profiles(
        **{name: {"python": path, "preload": ["json"], "pool": 1} for name, path in names.items()}
    )
    for name, path in names.items():
        version = path.split("/")[-3]
        assert states(engine)[name] == ("ready", version)
        for _ in range(3):
            outcome = engine.execute(EVERYDAY, profile=name, timeout_ms=60000, cpu_seconds=60)
            text = outcome.stdout.decode()
            assert text == ".".join(version.split(".")[:2]) + "\n" + EVERYDAY_OUTPUT, outcome
            assert outcome.exit_status == 1
            assert outcome.result["error"]["name"] == "ZeroDivisionError"
            assert b'File "/workspace/__main__.py"' in outcome.stderr
            assert b"cell" not in outcome.stderr


# ---------------------------------------------------------------------------- modules and paths


def test_site_directories_and_modules_of_ones_own(
    with_profiles: Callable[..., Engine], place: Path
) -> None:
    package = place / "site" / "mine"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("import time\nLOADED_AT = time.time_ns()\n")
    (package / "part.py").write_text("WORD = 'part'\n")
    engine = with_profiles(mine={"sites": [str(place / "site")], "preload": ["mine.part"]})
    code = "import sys; print('mine' in sys.modules, 'mine.part' in sys.modules)"
    assert output(engine, "mine", code) == "True True\n"
    code = "import mine.part; print(mine.part.WORD, mine.LOADED_AT)"
    first, second = output(engine, "mine", code), output(engine, "mine", code)
    assert first.startswith("part ") and first == second, "it was imported again"
    found = next(p for p in engine.info()["profiles"] if p["name"] == "mine")
    assert found["modules"] == "mine"
    # A program's own module of the same name is shadowed by one that is loaded; others are not.
    code = "open('fresh.py', 'w').write('X = 1'); import fresh; print(fresh.X)"
    assert output(engine, "mine", code) == "1\n"


def test_read_only_paths(with_profiles: Callable[..., Engine], place: Path) -> None:
    (place / "models").mkdir()
    (place / "models" / "weights").write_text("1 2 3")
    (place / "words.txt").write_text("a b")
    (place / "secret").write_text("not shown")
    shown = [str(place / "models"), str(place / "words.txt")]
    engine = with_profiles(paths={"read_only": shown})
    code = f"""
import os
print(open({str(place / 'models' / 'weights')!r}).read(), open({str(place / 'words.txt')!r}).read())
print(sorted(os.listdir({str(place)!r})))
for path in {shown[0] + '/new'!r}, {shown[1]!r}:
    try:
        open(path, "w")
    except OSError as exc:
        print(type(exc).__name__, exc.errno)
"""
    first, names, *refused = output(engine, "paths", code).splitlines()
    assert first == "1 2 3 a b"
    assert names == "['models', 'words.txt']"
    assert len(refused) == 2 and all(line.split()[1] in ("13", "30") for line in refused)
    assert not (place / "models" / "new").exists()
    assert (place / "words.txt").read_text() == "a b"
    # base sees none of it
    outcome = engine.execute(f"open({shown[1]!r})", profile="base")
    assert outcome.result["error"]["name"] == "FileNotFoundError"


def test_a_module_whose_thread_is_about_to_end(
    with_profiles: Callable[..., Engine], place: Path
) -> None:
    """As matplotlib's is after the building of its font cache."""
    (place / "brief.py").write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(0.2,)).start()\n"
    )
    engine = with_profiles(brief={"sites": [str(place)], "preload": ["brief"]})
    assert output(engine, "brief", "import brief; print(brief.threading.active_count())") == "1\n"


# ---------------------------------------------------------------------------- what cannot be


def broken(place: Path) -> dict[str, tuple[dict[str, Any], list[str]]]:
    """Profiles that cannot work, and words that must be said."""
    (place / "fails.py").write_text("raise ValueError('on purpose')\n")
    (place / "threads.py").write_text(
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(1e6,), daemon=True).start()\n"
    )
    (place / "exits.py").write_text("import sys\nsys.exit(3)\n")
    (place / "crashes.py").write_text("import os\nos.abort()\n")
    old = place / "old" / "bin" / "python3"
    old.parent.mkdir(parents=True)
    old.write_text(
        f"#!{PYTHON}\nimport runpy, sys\nsys.version_info = (3, 6, 15)\n"
        "runpy.run_path(sys.argv[1])\n"
    )
    old.chmod(0o755)
    garbled = place / "garbled" / "bin" / "python3"
    garbled.parent.mkdir(parents=True)
    garbled.write_bytes(b"\0no program\0")
    garbled.chmod(0o755)
    site = [str(place)]
    return {
        "no-python": ({"python": "/usr/bin/python-of-nobody"}, ["/usr/bin/python-of-nobody"]),
        "no-module": ({"preload": ["no_such_module"]}, ["no_such_module"]),
        "fails": ({"sites": site, "preload": ["fails"]}, ["fails", "ValueError", "on purpose"]),
        "exits": ({"sites": site, "preload": ["exits"]}, ["exits", "SystemExit"]),
        "threads": ({"sites": site, "preload": ["threads"]}, ["thread"]),
        "crashes": ({"sites": site, "preload": ["crashes"]}, ["interpreter", "die"]),
        "no-site": ({"sites": [f"{place}/nowhere"]}, [f"{place}/nowhere"]),
        "no-path": ({"read_only": [f"{place}/nothing"]}, [f"{place}/nothing"]),
        "not-python": ({"python": "/usr/bin/true"}, ["interpreter"]),
        "garbled": ({"python": str(garbled)}, ["cannot be started", str(garbled), "format"]),
        "old-python": ({"python": str(old)}, ["older than Python 3.7"]),
        "in-tmp": ({"read_only": ["/tmp"]}, ["/tmp", "of its own"]),
    }


def test_what_cannot_work_is_said_and_takes_nobody_else_down(
    with_profiles: Callable[..., Engine], place: Path
) -> None:
    cases = broken(place)
    engine = with_profiles(**{name: definition for name, (definition, _) in cases.items()})
    engine.drain()
    for name, (_, said) in cases.items():
        state, what = states(engine)[name]
        assert state == "broken", (name, what)
        lines = [line for line in engine.text().splitlines() if f"profile {name} broken" in line]
        assert len(lines) == 1, (name, engine.text())
        done = engine.cli("--profile", name, "-c", "print(1)")
        failed(done, name, *said)
        for word in said:
            assert word in what and word in lines[0], (name, what, lines)
        done = engine.cli("--profile", name, "--json", "-c", "print(1)")
        assert done.returncode == 125
        assert json.loads(done.stdout)["error"]["code"] == "profile_broken"
    assert output(engine, "base", "print(1)") == "1\n"
    assert output(engine, "auto", "print(2)") == "2\n"


def test_a_private_engine_says_it_too(tmp_path: Path) -> None:
    """Without an engine, `cloche run` starts its own: the same words, and no waiting."""
    config = write_config(tmp_path, {"odd": {"python": "/usr/bin/python-of-nobody"}})
    env = clean_env(XDG_RUNTIME_DIR=str(tmp_path))
    done = run_cli("run", "--config", config, "--profile", "odd", "-c", "print(1)", env=env)
    failed(done, "odd", "/usr/bin/python-of-nobody")


def test_one_that_takes_long_to_start_is_said_to(tmp_path: Path, place: Path) -> None:
    (place / "slow.py").write_text("import signal\nsignal.pause()\n")
    slow = {"sites": [str(place)], "preload": ["slow"]}
    config = write_config(tmp_path, {"slow": slow}, queue_ms=100)
    env = clean_env(XDG_RUNTIME_DIR=str(tmp_path))
    done = run_cli("run", "--config", config, "--profile", "slow", "-c", "print(1)", env=env)
    failed(done, "profile slow is still starting")


# ---------------------------------------------------------------------------- auto


def test_auto_takes_the_smallest_that_has_what_is_imported(
    with_profiles: Callable[..., Engine], place: Path
) -> None:
    for name in ("alpha", "beta"):
        (place / f"{name}.py").write_text(f"NAME = {name!r}\n")
    site = [str(place)]
    engine = with_profiles(
        one={"sites": site, "preload": ["json", "alpha"]},
        two={"sites": site, "preload": ["json", "alpha", "beta"]},
    )

    def chosen(code: str) -> str:
        outcome = engine.execute(code, timeout_ms=60000)
        assert outcome.exit_status == 0, outcome
        return str(outcome.result["profile"])

    assert chosen("print(1)") == "base"
    assert chosen("import json") == "base"
    assert chosen("import alpha; print(alpha.NAME)") == "one"
    assert chosen("from beta import NAME") == "two"
    assert chosen("import alpha\nimport beta") == "two"
    assert chosen("def f():\n    import beta\nf()") == "two"
    assert chosen("text = 'import beta'") == "base"
    # What nobody preloads is simply imported.
    assert chosen("import xmlrpc.client; print(xmlrpc.client.MAXINT)") == "base"
    # An explicit choice counts.
    assert engine.execute("import json", profile="two").result["profile"] == "two"


def test_auto_with_the_real_profiles(engine: Engine) -> None:
    names = {p["name"]: p["state"] for p in engine.info()["profiles"]}
    if names.get("data") != "ready":
        pytest.skip("the libraries of the data profile are not here")

    def chosen(code: str) -> str:
        outcome = engine.execute(code, timeout_ms=60000, cpu_seconds=60)
        assert outcome.exit_status == 0, outcome
        return str(outcome.result["profile"])

    assert chosen("import math, re") == "base"
    assert chosen("import pandas as pd; print(pd.DataFrame({'a': [1]}).sum())") == "data"
    assert chosen("import wave") == "base"

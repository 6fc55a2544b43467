"""Every example in the README and in docs/ is run, and its output is what the page says.

A console block is a session: "$ " begins a command, "> " goes on with it, the rest is what it
prints; SANDBOX, COMMAND and KERNEL stay from one command to the next. One that names the server of
the pages talks to a real one, which has live sandboxes where the block needs them; "console
with-keys" to one that wants the key in the file `secret`, "console with-network" to one that grants
a network, as do Python blocks that ask for one, "console with-wheels" to one that has some wheels,
"console with-ports" to one that has a domain for servers in sandboxes.
The Python blocks of a page are one program, and so are its TypeScript blocks; what it prints stands
in its comments that begin with "prints"."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Iterator, List, NamedTuple, Tuple

import pytest

from harness import PYTHON, Engine, LiveService, Service, cloche_bin, run_cli, settled
from jupyter import Jupyter
from sdk_js import compiled, install, needed, node
from wheels import wheel, wheels_place

ROOT = Path(__file__).resolve().parents[2]
SDK = ROOT / "py" / "sdk"
PAGES = [
    ROOT / "README.md",
    SDK / "README.md",
    ROOT / "js" / "sdk" / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
SERVER = "http://127.0.0.1:8000"
RESTORE = "[ ! -e .session ] || . ./.session"
KEPT = "SANDBOX\\|COMMAND\\|KERNEL"
SAVE = f'for name in $(compgen -v | grep -x "{KEPT}"); do declare -p $name; done > .session'


def wants_live(text: str) -> bool:
    words = ("/mcp", "/v1/sandboxes", "/v1/sessions", "$S/execute", "/api/kernel", "Sandbox.create")
    return any(word in text for word in (*words, "cloche sandbox", "cloche shell", "cloche mcp"))


class Example(NamedTuple):
    name: str
    wish: str  # "with-keys", "with-network", "with-wheels" or ""
    commands: List[Tuple[str, List[str]]]  # with the lines that each prints

    @property
    def is_live(self) -> bool:
        return any(wants_live(command) for command, _ in self.commands)

    @property
    def is_http(self) -> bool:
        return any(SERVER in command for command, _ in self.commands)

    @property
    def fixture(self) -> str:
        if self.wish:
            return self.wish.replace("with-", "").replace("keys", "keyed") + "_service"
        return "live_service" if self.is_live else "service" if self.is_http else "engine"


def sessions(page: Path) -> Iterator[Example]:
    text = page.read_text()
    for block in re.finditer(r"^```console(?: (with-\w+))?\n(.*?)^```", text, re.M | re.S):
        commands: List[Tuple[str, List[str]]] = []
        for line in block.group(2).splitlines():
            if line.startswith("$ "):
                commands.append((line[2:], []))
            elif line.startswith("> ") and not commands[-1][1]:
                commands[-1] = (f"{commands[-1][0]}\n{line[2:]}", [])
            else:
                commands[-1][1].append(line)
        number = text[: block.start()].count("\n") + 1
        yield Example(f"{page.name}:{number}", block.group(1) or "", commands)


def programs(page: Path, language: str = "python") -> Iterator[Tuple[str, List[str]]]:
    """The page with all but its blocks of the language made empty, and what it is to print."""
    lines: List[str] = []
    inside = False
    for line in page.read_text().splitlines():
        is_fence = line.startswith("```")
        lines.append(line if inside and not is_fence else "")
        inside = line == f"```{language}" if is_fence else inside
    expected = re.findall(r"(?:#|//) prints (.*)", "\n".join(lines))
    if expected:
        yield "\n".join(lines), expected


EXAMPLES = [example for page in PAGES if page.exists() for example in sessions(page)]
PROGRAMS = [(str(page.relative_to(ROOT)), *program) for page in PAGES for program in programs(page)]
TS_PROGRAMS = [
    (str(page.relative_to(ROOT)), *program) for page in PAGES for program in programs(page, "ts")
]


def matches(expected: List[str], got: List[str]) -> bool:
    """`...` stands for any text in a line, and alone on a line for any lines."""
    if not expected:
        return not got
    if expected[0] == "...":
        return any(matches(expected[1:], got[n:]) for n in range(len(got) + 1))
    pattern = ".*".join(re.escape(part) for part in expected[0].split("..."))
    return bool(got) and bool(re.fullmatch(pattern, got[0])) and matches(expected[1:], got[1:])


def wipe(engine: Engine) -> None:
    """The sandboxes that dialects make by themselves stay for the next one who asks."""
    if isinstance(engine, LiveService):
        Jupyter(engine.port).wipe()


@pytest.fixture
def keyed_service(start_service: Callable[..., Service], tmp_path: Path) -> Service:
    keys = tmp_path / "keys" / "keys.json"
    keys.parent.mkdir(mode=0o755)  # tmp_path is closed to the user as whom the server runs
    made = run_cli("key", "add", "alice", "--keys", keys)
    (tmp_path / "secret").write_bytes(made.stdout)
    return start_service("--profiles", "base", "--keys", str(keys))


@pytest.fixture(scope="module")
def network_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    """What is refused needs no network of ours to be refused."""
    grants = ("--network", "pypi.org:443,files.pythonhosted.org:443,10.1.0.0/16,@npm")
    options = ("--profiles", "base", *grants)
    yield from settled(LiveService(tmp_path_factory.mktemp("network"), *options))


@pytest.fixture(scope="module")
def wheels_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    place = wheels_place(tmp_path_factory.mktemp("wheels"))
    wheel(place, "alpha")
    options = ("--profiles", "base", "--wheels", str(place), "--build-network", "none")
    yield from settled(LiveService(tmp_path_factory.mktemp("with-wheels"), *options))


@pytest.fixture(scope="module")
def ports_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    options = ("--profiles", "base", "--ports-domain", "ports.localhost")
    yield from settled(LiveService(tmp_path_factory.mktemp("with-ports"), *options))


@pytest.mark.parametrize("example", EXAMPLES, ids=[example.name for example in EXAMPLES])
def test_example_does_what_the_page_says(
    example: Example, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    engine: Engine = request.getfixturevalue(example.fixture)
    env = {
        "PATH": f"{cloche_bin().parent}:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
        "CLOCHE_SOCKET": str(engine.socket),
    }
    if isinstance(engine, Service):
        env["CLOCHE_SERVER"] = engine.url  # where the pages leave the server's usual place out
    for command, expected in example.commands:
        if isinstance(engine, Service):
            command = command.replace(SERVER, engine.url)
        done = subprocess.run(
            ["bash", "-c", f"{RESTORE}\n{command}\n{SAVE}"],
            cwd=tmp_path,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
        assert matches(expected, done.stdout.splitlines()), f"$ {command}\n{done.stdout}"
    wipe(engine)


@pytest.mark.parametrize(
    "source, expected", [p[1:] for p in PROGRAMS], ids=[name for name, _, _ in PROGRAMS]
)
def test_python_examples_print_what_they_say(
    source: str, expected: List[str], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    kind = "live_service" if wants_live(source) else "service"
    kind = "network_service" if '"network"' in source else kind
    service: Service = request.getfixturevalue(kind)
    done = subprocess.run(
        [PYTHON, "-c", source.replace(SERVER, service.url)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(SDK), "CLOCHE_SERVER": service.url},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )
    assert matches(expected, done.stdout.splitlines()), done.stdout
    wipe(service)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    needed()
    return install(tmp_path_factory.mktemp("sdk-js"))


@pytest.mark.parametrize(
    "source, expected", [p[1:] for p in TS_PROGRAMS], ids=[name for name, _, _ in TS_PROGRAMS]
)
def test_typescript_examples_print_what_they_say(
    source: str, expected: List[str], package: Path, live_service: LiveService
) -> None:
    (package / "example.ts").write_text(source)
    done = node(package, compiled(package, "example.ts"), CLOCHE_SERVER=live_service.url)
    assert matches(expected, done.stdout.splitlines()), done.stdout


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 20 and len(PROGRAMS) >= 1 and len(TS_PROGRAMS) >= 2
    assert shutil.which("bash") and shutil.which("curl") and os.access(PYTHON, os.X_OK)


def settings(page: Path) -> Iterator[Tuple[str, str]]:
    """The flags of the page's tables of settings, each with its default if that is a number."""
    tables = re.findall(
        r"^\| setting \| default \|.*\n\|[-|]+\n((?:\|.*\n)+)", page.read_text(), re.M
    )
    for row in "".join(tables).splitlines():
        flags, given = row.split(" | ")[:2]
        names = re.findall(r"--[a-z-]+[a-z]", flags)
        defaults = [d.replace(",", "") for d in given.split(", ")]
        if len(defaults) < len(names):
            defaults = defaults[:1] * len(names)
        yield from zip(names, (d if d.isdigit() else "" for d in defaults))


def test_settings_are_those_of_help() -> None:
    text = run_cli("serve", "--help").stdout.decode()
    known = dict(re.findall(r"^  (--[a-z-]+)\s.*?(?:\(([^()]*)\))?$", text, re.M))
    told = [(page.name, flag, default) for page in PAGES for flag, default in settings(page)]
    assert len(told) > 50
    wrong = [t for t in told if t[1] not in known or (t[2] and t[2] != known[t[1]])]
    assert not wrong

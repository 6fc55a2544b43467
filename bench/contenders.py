"""Who runs in the bench, and how each is asked to run a program.

All get the same interpreter and the same /usr, and none a network. A contender that does not work
on this machine is left out with its reason.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import shutil
import subprocess
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.engine import Engine
from bench.watch import Watch, WatchError

PYTHON = "/usr/bin/python3"
READ_ONLY = ["/usr", "/etc/alternatives", "/etc/ld.so.cache"]
LINKS = ["bin", "lib", "lib64", "sbin"]  # into /usr, as on any merged system
ENV = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8"}
# crun refuses a hybrid cgroup mount; in this private mount namespace there is none.
WITHOUT_HYBRID = [
    *("unshare", "-m", "sh", "-c"),
    'umount /sys/fs/cgroup/unified 2>/dev/null; exec "$@"',
    "sh",
]


@dataclasses.dataclass(frozen=True)
class Program:
    name: str
    profile: str
    code: str
    expect: str


HELLO = Program("hello", "base", "print('hello')", "hello\n")
PANDAS = Program(
    "pandas",
    "data",
    "import numpy, pandas\n"
    "print(int(pandas.DataFrame({'a': numpy.arange(10), 'b': 2}).sum().sum()))",
    "65\n",
)
HELLO_IN_DATA = dataclasses.replace(HELLO, profile="data")


@dataclasses.dataclass(frozen=True)
class Contender:
    name: str
    how: Callable[[Program], list[str]]  # what the watch runs: "socket …" or "exec …"
    wrap: tuple[str, ...] = ()  # around the watch, so not timed
    slow: bool = False  # runs in every few rounds only


def exec_python(*prefix: str) -> Callable[[Program], list[str]]:
    return lambda program: ["exec", *prefix, PYTHON, "-c", program.code]


# ---------------------------------------------------------------------------- bubblewrap


def bwrap() -> list[str]:
    words = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    for path in READ_ONLY:
        words += ["--ro-bind", path, path]
    for name in LINKS:
        words += ["--symlink", f"usr/{name}", f"/{name}"]
    words += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/workspace"]
    words += ["--chdir", "/workspace", "--clearenv"]
    for name, value in ENV.items():
        words += ["--setenv", name, value]
    return words


# ---------------------------------------------------------------------------- OCI runtimes


def make_root(directory: Path) -> Path:
    """An empty root file system on which the host's /usr is mounted."""
    root = directory / "root"
    for name in ("usr", "etc/alternatives", "proc", "dev", "sys", "tmp", "workspace"):
        (root / name).mkdir(parents=True)
    (root / "etc/ld.so.cache").touch()
    for name in LINKS:
        (root / name).symlink_to(f"usr/{name}")
    return root


def bundle(directory: Path, root: Path, program: Program) -> Path:
    """An OCI bundle: the runtime's own default configuration with our root and program."""
    place = directory / f"bundle-{program.name}"
    if place.exists():
        return place
    place.mkdir()
    subprocess.run(["crun", "spec"], cwd=place, check=True)
    path = place / "config.json"
    config = json.loads(path.read_text())
    config["process"] |= {
        "terminal": False,
        "args": [PYTHON, "-c", program.code],
        "env": [f"{name}={value}" for name, value in ENV.items()],
        "cwd": "/workspace",
    }
    config["root"] = {"path": str(root), "readonly": True}
    config["mounts"] += [
        {"destination": path, "type": "bind", "source": path, "options": ["rbind", "ro"]}
        for path in READ_ONLY
    ] + [
        {"destination": path, "type": "tmpfs", "source": "tmpfs"} for path in ("/tmp", "/workspace")
    ]
    path.write_text(json.dumps(config))
    return place


def container_flags() -> list[str]:
    words = ["--rm", "--network", "none", "--read-only", "--tmpfs", "/tmp", "--workdir", "/tmp"]
    for path in READ_ONLY:
        words += ["-v", f"{path}:{path}:ro"]
    for name, value in ENV.items():
        words += ["-e", f"{name}={value}"]
    return words


def oci(directory: Path) -> list[Contender]:
    root = make_root(directory)

    def crun(program: Program) -> list[str]:
        where = str(bundle(directory, root, program))
        return ["exec", "crun", "--root", str(directory / "crun"), "run", "-b", where, "bench"]

    def runsc(program: Program) -> list[str]:
        where = str(bundle(directory, root, program))
        words = ["exec", "runsc", "--root", str(directory / "runsc"), "--platform=ptrace"]
        return [*words, "--network=none", "--ignore-cgroups", "run", "-bundle", where, "bench"]

    # Limits as the host has them: not every root may raise them to podman's defaults.
    podman = ["podman", "--root", str(directory / "podman"), "--runroot", str(directory / "pods")]
    podman += ["run", *container_flags(), "--ulimit", "nofile=1024:1024"]
    podman += ["--ulimit", "nproc=1024:1024", "--rootfs", str(root)]
    return [
        Contender("crun", crun, tuple(WITHOUT_HYBRID)),
        Contender("runsc (ptrace)", runsc, slow=True),
        Contender("podman", exec_python(*podman), tuple(WITHOUT_HYBRID), slow=True),
    ]


# ---------------------------------------------------------------------------- docker


def empty_image() -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for name in ("usr", "etc", "proc", "dev", "sys", "tmp"):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        for name in LINKS:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, f"usr/{name}"
            tar.addfile(entry)
    return data.getvalue()


@contextlib.contextmanager
def dockerd(directory: Path) -> Iterator[Contender]:
    """A daemon of our own: no bridge, no iptables, nothing of a system's docker touched."""
    place = directory / "docker"
    place.mkdir()
    client = ["docker", "-H", f"unix://{place}/docker.sock"]
    with (place / "log").open("wb") as log:
        daemon = subprocess.Popen(
            [
                *(
                    "dockerd",
                    "--data-root",
                    str(place / "data"),
                    "--exec-root",
                    str(place / "exec"),
                ),
                *("--pidfile", str(place / "pid"), "--host", f"unix://{place}/docker.sock"),
                *("--storage-driver", "overlay2", "--bridge", "none"),
                *("--iptables=false", "--ip6tables=false"),
            ],
            stdout=log,
            stderr=log,
        )
    try:
        deadline = time.monotonic() + 30
        while subprocess.run([*client, "version"], capture_output=True).returncode != 0:
            if daemon.poll() is not None or time.monotonic() > deadline:
                lines = (place / "log").read_text().strip().splitlines() or ["no word from it"]
                raise WatchError(f"dockerd does not start: {lines[-1]}")
            time.sleep(0.1)
        subprocess.run(
            [*client, "import", "-", "bench"], input=empty_image(), capture_output=True, check=True
        )
        yield Contender(
            "docker", exec_python(*client, "run", *container_flags(), "bench"), slow=True
        )
    finally:
        daemon.terminate()
        daemon.wait()


# ---------------------------------------------------------------------------- cloche


def cloche(build: Path, directory: Path, engine: Engine) -> list[Contender]:
    program = str(build / "cloche")
    # A socket that only a file names may be missing: then `run` starts a private engine.
    config = directory / "private.json"
    config.write_text(json.dumps({"socket": str(directory / "nowhere.sock")}))

    def run(*words: str) -> Callable[[Program], list[str]]:
        return lambda p: ["exec", program, "run", *words, "--timeout", "60", "-c", p.code]

    return [
        Contender("cloche socket", lambda p: ["socket", str(engine.socket), p.profile, p.code]),
        Contender("cloche run", run("--socket", str(engine.socket))),
        Contender("cloche private", run("--config", str(config)), slow=True),
    ]


# ---------------------------------------------------------------------------- who is here


def reason(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[-1][:160] if lines else type(error).__name__


def works(contender: Contender, watch: Watch, missing: dict[str, str]) -> bool:
    """Runs it once; why it does not work goes to `missing`."""
    how = contender.how(HELLO)
    if how[0] == "exec" and shutil.which(how[1]) is None:
        missing[contender.name] = f"{how[1]} is not installed"
        return False
    try:
        watch.run(contender.wrap, HELLO.expect, how, runs=1)
    except WatchError as error:
        missing[contender.name] = reason(error)
        return False
    return True


@contextlib.contextmanager
def gather(
    build: Path, directory: Path, engine: Engine, only: set[str]
) -> Iterator[tuple[list[Contender], dict[str, str]]]:
    """Those who work here, and for the others the reason. An empty `only` is everyone."""
    watch = Watch(build)
    missing: dict[str, str] = {}
    with contextlib.ExitStack() as stack:
        wanted = [
            Contender("python3", exec_python()),
            Contender("bwrap", exec_python(*bwrap())),
        ]
        if shutil.which("crun"):
            wanted += oci(directory)
        else:
            missing |= {name: "crun is not installed" for name in ("crun", "runsc", "podman")}
        if not only or "docker" in only:
            try:
                if shutil.which("dockerd") is None or os.geteuid() != 0:
                    raise WatchError("dockerd is not installed, or we are not root")
                wanted.append(stack.enter_context(dockerd(directory)))
            except (WatchError, subprocess.CalledProcessError) as error:
                missing["docker"] = reason(error)
        wanted += cloche(build, directory, engine)
        chosen = [c for c in wanted if not only or c.name in only | {"python3"}]
        yield [c for c in chosen if works(c, watch, missing)], missing

"""Builds the virtual environment of a profile: a program that `cloche profile` and the server, for
tenants, run in a sandbox, by the profile's interpreter (src/profile/make.c,
src/api/profiles/build.c). What packages do while they are installed, they do in there.

/workspace has build.json, what is to be built, and the files that it names. What comes out is
result.json, with the reason if nothing was built, and profile.tar.gz: of the environment what a
profile takes (src/pack/environment.c holds it to that). What pip says goes to stderr.
"""

from __future__ import annotations

import glob
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import venv
from typing import Any, Dict, List, Optional, Tuple
from urllib.parse import urlsplit

WORKSPACE = "/workspace"
ENV = "/tmp/env"
WHEELS = "/run/cloche/wheels"  # --find-links
REQUIREMENTS = "/tmp/requirements.txt"
PINNED = "/tmp/pinned.txt"
PIP_WHEELS = "/usr/share/python-wheels"  # Debian's; some interpreters come without a pip
PIP_LEAST = (22, 3)  # that can install for another interpreter
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
INDEX = "https://pypi.org/simple"
CONNECT_S = 10
IPYTHON = ["ipython", "matplotlib-inline"]
UNSAID = ("Looking in", "WARNING: Running pip", "[notice]")
# site would run them in the zygote, before anything is given up.
EARLY = ("sitecustomize", "usercustomize")


class Failed(Exception):
    """In one sentence."""


# ---- what is asked for


def _is_option(line: str) -> bool:
    return line.startswith("-")


def read_requirements(name: str) -> List[str]:
    """Of pip's file only what it requires: an option could lead it elsewhere."""
    try:
        with open(os.path.join(WORKSPACE, name), encoding="utf-8-sig") as f:
            text = f.read()
    except (OSError, UnicodeDecodeError) as exc:
        raise Failed(f"{name} cannot be read as UTF-8: {exc}") from None
    found: List[str] = []
    for number, line in enumerate(re.sub(r"\\\r?\n", " ", text).splitlines(), 1):
        line = re.sub(r"(^|\s)#.*", "", line).strip()
        if _is_option(line):
            word = re.split(r"[\s=]", line)[0]
            why = f"{word} is an option of pip; only packages can be there"
            raise Failed(f"{name}, line {number}: {why}")
        if any(_is_option(word) and not word.startswith("--hash=") for word in line.split()):
            raise Failed(f"{name}, line {number}: there is an option of pip in it")
        if line:
            found.append(line)
    return found


def read_pyproject(name: str) -> List[str]:
    try:
        import tomllib as toml
    except ImportError:  # before 3.11
        try:
            from pip._vendor import tomli as toml  # type: ignore[no-redef]
        except ImportError:
            raise Failed("pyproject.toml can be read by Python 3.11 and later") from None
    try:
        with open(os.path.join(WORKSPACE, name), "rb") as f:
            project = toml.load(f).get("project")
        found = (project or {}).get("dependencies", [])
        assert isinstance(found, list) and all(isinstance(item, str) for item in found)
    except Exception as exc:
        raise Failed(f"{name} cannot be read: {exc or type(exc).__name__}") from None
    if not project:
        raise Failed(f"{name} has no [project] table")
    return [item.replace("\n", " ") for item in found]


def gather(plan: Dict[str, Any]) -> List[str]:
    found = list(plan["packages"])
    if plan.get("requirements"):
        found += read_requirements(plan["requirements"])
    if plan.get("pyproject"):
        found += read_pyproject(plan["pyproject"])
    for item in found:
        if _is_option(item.strip()):
            raise Failed(f"{item[:60]!r} is an option of pip, no package")
    return found


# ---- pip


def find_pip() -> List[str]:
    """The words that start one which installs into ENV."""
    python = f"{ENV}/bin/python3"
    try:
        from pip import __version__ as version

        if tuple(int(part) for part in version.split(".")[:2]) >= PIP_LEAST:
            return [sys.executable, "-m", "pip", "--python", python]
    except (ImportError, ValueError):
        pass
    places = [PIP_WHEELS, os.path.join(os.path.dirname(os.__file__), "ensurepip", "_bundled")]
    for place in places:
        for wheel in glob.glob(f"{place}/pip-*.whl"):
            return [python, f"{wheel}/pip"]
    raise Failed(f"there is no pip for {sys.executable}; install one (Debian: python3-pip)")


def environment(plan: Dict[str, Any]) -> Dict[str, str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "PYTHON"))}
    env.update(HOME="/tmp", TMPDIR="/tmp", PIP_NO_INPUT="1", PIP_DISABLE_PIP_VERSION_CHECK="1")
    env.update(PIP_NO_CACHE_DIR="1", PIP_PROGRESS_BAR="off", PIP_NO_WARN_SCRIPT_LOCATION="1")
    env.update(PIP_NO_COMPILE="1", PIP_CONFIG_FILE=os.devnull)
    if os.path.isdir(WHEELS):
        env["PIP_FIND_LINKS"] = WHEELS
    if not plan["network"]:
        env["PIP_NO_INDEX"] = "1"
    elif plan.get("index"):
        env["PIP_INDEX_URL"] = plan["index"]
        if plan["index"].startswith("http:"):
            env["PIP_TRUSTED_HOST"] = plan["index"].split("/")[2]
    if os.path.exists(CERTIFICATES):
        env["PIP_CERT"] = CERTIFICATES
    if not plan["allow_builds"]:
        env["PIP_ONLY_BINARY"] = ":all:"
    return env


def check_index(plan: Dict[str, Any]) -> None:
    """pip would try for long, and then say that there is no such package."""
    url = urlsplit(plan.get("index") or INDEX)
    port = url.port or (80 if url.scheme == "http" else 443)
    try:
        socket.create_connection((str(url.hostname), port), CONNECT_S).close()
    except OSError as exc:
        why = exc.strerror or str(exc)
        raise Failed(f"{url.hostname} cannot be reached from the build ({why}); see build_network")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _why(lines: List[str]) -> str:
    """The sentence in what pip said."""
    if any("No space left on device" in line or "[Errno 28]" in line for line in lines):
        return "its disk is full"
    errors = [line[len("ERROR: ") :] for line in lines if line.startswith("ERROR: ")]
    for line in errors:
        if line.startswith("Could not find a version that satisfies the requirement"):
            missing = line.split("requirement", 1)[1].split("(from")[0].strip()
            return f"no wheel of {missing} can be had"
    lines = [line for line in lines if line.strip()]
    if errors and errors[-1].strip() == "Exception:":  # what went wrong is under the traceback
        return re.sub(r"^(\w+\.)+(?=\w+: )", "", lines[-1].strip())
    said = errors or lines or ["it did not say why"]
    return said[-1].strip()


def run_pip(
    pip: List[str], words: List[str], env: Dict[str, str], must: bool = True
) -> Optional[str]:
    """Why not, or None. What need not work says no word of error."""
    command = [*pip, "install", *words]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=env,
        encoding="utf-8",
        errors="replace",
    )
    assert process.stdout
    last: List[str] = []
    for line in process.stdout:
        last = [*last[-199:], line.rstrip("\n")]
        if not line.startswith(UNSAID if must else (*UNSAID, "ERROR: ")):
            say("  " + line.rstrip("\n"))
    return _why(last) if process.wait() else None


def write_lines(path: str, lines: List[str]) -> None:
    with open(path, "w", encoding="utf-8") as f:
        f.write("".join(line + "\n" for line in lines))


# ---- uv


def find_uv(plan: Dict[str, Any], wanted: List[str]) -> Optional[str]:
    """It knows of nothing that is installed already, and forgets hashes that were asked for."""
    if plan.get("locked") or plan["system_packages"] or any("--hash=" in line for line in wanted):
        return None
    return shutil.which("uv")


def uv_words(plan: Dict[str, Any]) -> List[str]:
    words = ["--python", f"{ENV}/bin/python3", "--quiet", "--no-config", "--no-cache"]
    words += ["--no-header", "--no-annotate", "--output-file", PINNED]
    if not plan["allow_builds"]:
        words += ["--only-binary", ":all:"]
    if os.path.isdir(WHEELS):
        words += ["--find-links", WHEELS]
    if not plan["network"]:
        words += ["--no-index"]
    elif plan.get("index"):
        words += ["--default-index", plan["index"]]
        if plan["index"].startswith("http:"):
            words += ["--allow-insecure-host", plan["index"].split("/")[2]]
    return words


def why_unsolved(said: str) -> str:
    """uv's reasons in one sentence."""
    text = " ".join(said.split())
    found = re.search(r"(?:Because|cause:) (\S+) was not found", text)
    found = found or re.search(r"there is no version of (\S+)", text)
    if found:
        return f"no wheel of {found.group(1)} can be had"
    return (text.partition("Because ")[2] or text).partition(", we can conclude")[0]


def resolve(uv: str, plan: Dict[str, Any], wanted: List[str]) -> Optional[List[str]]:
    """All that is needed, by uv, which is quick where much has to be tried. pip installs it all the
    same, and tells the hashes. None: uv cannot say."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("UV_")}
    env.update(HOME="/tmp", TMPDIR="/tmp")
    if os.path.exists(CERTIFICATES):
        env["SSL_CERT_FILE"] = CERTIFICATES
    say("resolving with uv")
    write_lines(REQUIREMENTS, wanted)
    done = subprocess.run(
        [uv, "pip", "compile", REQUIREMENTS, *uv_words(plan)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=env,
        encoding="utf-8",
        errors="replace",
    )
    if done.returncode and "No solution found" in done.stderr:
        raise Failed(why_unsolved(done.stderr))
    if done.returncode:
        say("uv cannot do it: pip does")
        return None
    with open(PINNED, encoding="utf-8") as f:
        return [line.strip() for line in f if line.strip()]


# ---- what was installed


def one_installed(item: Dict[str, Any]) -> Dict[str, str]:
    info = item["download_info"]
    archive = info.get("archive_info", {})
    digest = archive.get("hashes", {}).get("sha256") or archive.get("hash", "")
    found = {"name": item["metadata"]["name"], "version": item["metadata"]["version"]}
    if digest:
        found["sha256"] = digest.replace("sha256=", "")
    if "vcs_info" in info:
        found["url"] = "{}+{}@{}".format(
            info["vcs_info"]["vcs"], info["url"], info["vcs_info"]["commit_id"]
        )
    return found


def read_report(path: str) -> List[Dict[str, str]]:
    try:
        with open(path, encoding="utf-8") as f:
            return [one_installed(item) for item in json.load(f)["install"]]
    except FileNotFoundError:  # there was nothing to do
        return []


def install_all(plan: Dict[str, Any], wanted: List[str]) -> List[Dict[str, str]]:
    pip, env = find_pip(), environment(plan)
    say(f"installing {len(wanted)} requirement{'s' if len(wanted) != 1 else ''}")
    if not wanted:
        return []
    if plan["network"]:
        check_index(plan)
    uv = find_uv(plan, wanted)
    pinned = resolve(uv, plan, wanted) if uv else None
    write_lines(REQUIREMENTS, pinned or wanted)
    words = ["--report", "/tmp/report.json", "-r", REQUIREMENTS]
    if pinned or plan.get("locked"):
        words += ["--no-deps"]
    why = run_pip(pip, words, env)
    if why:
        raise Failed(why)
    return read_report("/tmp/report.json")


def add_ipython(plan: Dict[str, Any], installed: List[Dict[str, str]]) -> Tuple[Any, ...]:
    """For live sandboxes; it must not change what was asked for. What came with it, or why not."""
    look = [f"{ENV}/bin/python3", "-c", "import IPython, matplotlib_inline"]
    nowhere: Any = subprocess.DEVNULL
    if subprocess.call(look, stdin=nowhere, stdout=nowhere, stderr=nowhere) == 0:
        return [], None
    say("adding IPython, for live sandboxes")
    write_lines("/tmp/have.txt", [f"{p['name']}=={p['version']}" for p in installed])
    words = ["--report", "/tmp/more.json", "-c", "/tmp/have.txt", *IPYTHON]
    why = run_pip(find_pip(), words, environment(plan), must=False)
    return (read_report("/tmp/more.json"), None) if why is None else ([], why)


# ---- the tree


def site_packages() -> str:
    name = "python%d.%d" % sys.version_info[:2]
    (found,) = glob.glob(f"{ENV}/lib*/{name}/site-packages")[:1]
    return found


def mend_programs() -> None:
    """They find their Python where the profile is, wherever that is."""
    for path in glob.glob(f"{ENV}/bin/*"):
        if os.path.islink(path):
            continue
        with open(path, "rb") as f:
            data = f.read()
        first = rb"\A#!" + ENV.encode() + rb"/bin/python\S*"
        mended = re.sub(first, b"#!/usr/bin/env python3", data)
        if mended != data:
            with open(path, "wb") as f:
                f.write(mended)


def compile_all() -> None:
    """Nothing can be written there later, and the time stamps do not matter."""
    words = ["-m", "compileall", "-q", "-j", "0", "--invalidation-mode", "unchecked-hash"]
    subprocess.call(
        [f"{ENV}/bin/python3", *words, site_packages()],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def leave_out_early() -> List[str]:
    site, out = site_packages(), []
    for name in sorted(os.listdir(site)):
        if name.endswith(".pth") or name.split(".")[0] in EARLY:
            out.append(name)
            target = os.path.join(site, name)
            subprocess.check_call(["rm", "-rf", "--", target])
    return out


def pack() -> None:
    site = os.path.relpath(site_packages(), ENV)
    with tarfile.open(f"{WORKSPACE}/profile.tar.gz", "w:gz", compresslevel=1) as tar:
        tar.format = tarfile.GNU_FORMAT
        tar.add(os.path.join(ENV, site), "site-packages")
        for name in sorted(os.listdir(f"{ENV}/bin")):
            path = f"{ENV}/bin/{name}"
            early = name.startswith(("python", "activate", "Activate"))
            if os.path.isfile(path) and not os.path.islink(path) and not early:
                tar.add(path, f"bin/{name}")
        for name in ("share", "etc"):
            if os.path.isdir(f"{ENV}/{name}"):
                tar.add(f"{ENV}/{name}", name)


def build(plan: Dict[str, Any]) -> Dict[str, Any]:
    wanted = gather(plan)
    venv.create(ENV, system_site_packages=plan["system_packages"], symlinks=True, with_pip=False)
    installed = install_all(plan, wanted)
    live_what = None
    if plan["live"] and not plan.get("locked"):
        more, live_what = add_ipython(plan, installed)
        installed += more
    dropped = leave_out_early()
    mend_programs()
    say("compiling")
    compile_all()
    pack()
    return {
        "python": "%d.%d.%d" % sys.version_info[:3],
        "requirements": wanted,
        "installed": sorted(installed, key=lambda p: p["name"].lower()),
        "live_what": live_what,
        "left_out": dropped,
    }


def main() -> None:
    with open(f"{WORKSPACE}/build.json", encoding="utf-8") as f:
        plan = json.load(f)
    try:
        result = build(plan)
    except Failed as exc:
        result = {"error": str(exc)[:300]}
    except OSError as exc:
        result = {"error": "its disk is full" if exc.errno == 28 else str(exc)[:300]}
    try:
        with open(f"{WORKSPACE}/result.json", "w", encoding="utf-8") as f:
            json.dump(result, f)
    except OSError:
        sys.exit(3)  # its disk is full
    sys.exit(1 if "error" in result else 0)


if __name__ == "__main__":
    main()

"""Packages that a sandbox installs for itself: where they go, and how each Python in it finds them.

They go where pip puts what a user installs without rights, below BASE, which is the sandbox's own
and counts in its disk limit. What a profile has is read-only, and comes after them on sys.path.

BASE is at the same time a virtual environment that sees all that the profile has, for uv, and for
pip where the profile is one itself, into which pip would want to write: TOOLS/sitecustomize.py
(customize.py) leads it here.

A profile that a tenant made over HTTP is TREE, mounted into its sandboxes when they are given away.
Nothing of it is there in the zygote: each kernel puts it on sys.path (`attach_tree`), after BASE
and before all that the zygote's profile has.

In the zygote `prepare` makes the variables that tell pip, uv and npm of this. All that starts in a
live sandbox has them; a program only if it asks for packages (`install`).
"""

from __future__ import annotations

import importlib
import os
import site
import sys
from typing import Dict

BASE = "/tmp/.local"
VERSION = "%d.%d" % sys.version_info[:2]
PLACE = f"{BASE}/lib/python{VERSION}/site-packages"
TOOLS = "/run/cloche/tools"
WHEELS = "/run/cloche/wheels"  # the operator's, where there are any
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
TREE = "/run/cloche/profile"
TREE_PLACE = f"{TREE}/lib/python{VERSION}/site-packages"
LAST_LINES = 12  # of what pip said

_variables: Dict[str, str] = {}


class PackagesNotInstalled(Exception):
    """What a program asked for could not be installed."""

    __module__ = "builtins"


def is_environment() -> bool:
    return sys.prefix != sys.base_prefix


def prepare(index_url: str, npm_registry: str) -> None:
    """In the zygote. Empty: the usual one."""
    _variables.update(
        PYTHONUSERBASE=BASE,
        PYTHONPATH=TOOLS,
        PIP_BREAK_SYSTEM_PACKAGES="1",  # the system's are read-only
        PIP_DISABLE_PIP_VERSION_CHECK="1",
        PIP_NO_CACHE_DIR="1",  # everything would count twice in the disk limit
        UV_NO_CACHE="1",
        UV_PYTHON=f"{BASE}/bin/python3",
        npm_config_prefix=BASE,
        npm_config_update_notifier="false",
    )
    if is_environment():
        _variables["CLOCHE_PREFIX"] = sys.prefix
    if index_url:
        _variables.update(PIP_INDEX_URL=index_url, UV_DEFAULT_INDEX=index_url)
        if index_url.startswith("http:"):
            host = index_url.split("/")[2]
            _variables.update(PIP_TRUSTED_HOST=host, UV_INSECURE_HOST=host)
    if npm_registry:
        _variables["npm_config_registry"] = npm_registry
    if os.path.isdir(WHEELS):
        _variables.update(PIP_FIND_LINKS=WHEELS, UV_FIND_LINKS=WHEELS)
    if os.path.exists(CERTIFICATES):  # what the host trusts, its operator's own included
        for name in ("PIP_CERT", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"):
            _variables[name] = CERTIFICATES


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _make() -> None:
    os.makedirs(PLACE)
    os.mkdir(f"{BASE}/bin")
    own = os.path.realpath(sys.executable)
    for name in ("python", "python3"):
        os.symlink(own, f"{BASE}/bin/{name}")
    is_env = is_environment()
    text = f"home = {os.path.dirname(own)}\nversion = {VERSION}\n"
    text += f"include-system-site-packages = {'false' if is_env else 'true'}\n"
    _write(f"{BASE}/pyvenv.cfg", text)
    if is_env:
        places = [path for path in sys.path if path.startswith(sys.prefix + "/")]
        _write(f"{PLACE}/_profile.pth", "\n".join(places) + "\n")


def _first_library() -> int:
    """Where libraries begin on sys.path."""
    return next((n for n, path in enumerate(sys.path) if path.endswith("-packages")), len(sys.path))


def _find_them() -> None:
    """On sys.path, before all that the profile has; what says how it wants to be found is heard."""
    if PLACE in sys.path:
        return
    before, first = list(sys.path), _first_library()
    site.addsitedir(PLACE)
    added = [path for path in sys.path if path not in before]
    sys.path[:] = before[:first] + added + before[first:]


def tell() -> None:
    """Whoever starts from here on. In a zygote of live kernels, whose commands inherit it.
    The profile's own programs come first: python3 is its interpreter, no link to it in BASE."""
    path = os.environ.get("PATH", os.defpath)
    os.environ["PATH"] = f"{path}:{BASE}/bin:{TOOLS}/bin"
    for name, value in _variables.items():
        os.environ.setdefault(name, value)


def begin() -> None:
    """In each new process of a live sandbox, before it is anybody's: the place is there when it is
    looked for. A disk that is full is no reason not to start."""
    try:
        if not os.path.isdir(PLACE):
            _make()
    except OSError:
        pass


def attach_tree() -> None:
    """In a kernel whose sandbox has a tenant's profile, before anything else runs there. The .pth
    files of its packages were left out, and nothing of it is imported here."""
    if TREE_PLACE in sys.path:
        return
    sys.path.insert(_first_library(), TREE_PLACE)
    os.environ["PATH"] = f"{TREE}/bin:" + os.environ.get("PATH", os.defpath)
    os.environ.setdefault("PYTHONPATH", TOOLS)


def attach() -> None:
    """In a live kernel, before its first cell. Code of packages may run here."""
    if os.path.isdir(f"{TREE}/bin"):
        attach_tree()
    try:
        _find_them()
    except OSError:
        pass


def install(requirements: str) -> None:
    """For a program that asks for them, a line each, before it runs. What pip says goes nowhere,
    unless it fails: then its last lines are what the program's error says."""
    tell()
    begin()
    attach()
    import subprocess
    import tempfile

    command = [sys.executable, "-m", "pip", "install", "--quiet", "--"]
    command += requirements.split("\n")
    with tempfile.TemporaryFile() as said:
        status = subprocess.call(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        if status:
            said.seek(0)
            lines = said.read().decode("utf-8", "replace").strip().split("\n")
            raise PackagesNotInstalled("\n".join(lines[-LAST_LINES:]) or f"pip ended with {status}")
    importlib.invalidate_caches()

"""What every Python that starts in a live sandbox does first: as TOOLS/sitecustomize.py it is what
PYTHONPATH leads to, for any interpreter, of any version from 3.4 on.

It takes itself away again, lets the sitecustomize run that would have been found without it, and
looks whether this Python is to be pip. Then it says in one line why an index cannot be reached,
which pip itself tells in twenty, after five tries."""

import os
import sys

_OWN = "/run/cloche/tools"
_BASE = "/tmp/.local"
_TREE = "/run/cloche/profile/lib/python%d.%d/site-packages" % sys.version_info[:2]
_WHEELS = "/usr/share/python-wheels"  # Debian's; some interpreters come without a pip
_INDEX = "https://pypi.org/simple"
_CONNECT_S = 10


def _let_others() -> None:
    sys.path[:] = [path for path in sys.path if path != _OWN]
    own = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError:
        pass
    finally:
        if own is not None:
            sys.modules.setdefault("sitecustomize", own)


def _find_tree() -> None:
    """What a tenant's profile has: after what was installed here, before all else."""
    if not os.path.isdir(_TREE) or _TREE in sys.path:
        return
    first = 0
    for path in sys.path:
        if path.endswith("-packages") and not path.startswith(_BASE):
            break
        first += 1
    sys.path.insert(first, _TREE)


def _pip_words():  # type: ignore[no-untyped-def]
    """What pip is told, if this Python is to be pip; else None."""
    words = getattr(sys, "orig_argv", None)
    if words is None:  # before 3.10
        try:
            with open("/proc/self/cmdline", "rb") as f:
                words = f.read().decode("utf-8", "replace").split("\0")[:-1]
        except OSError:
            return None
    for n, word in enumerate(words[1:], 1):
        if word == "-m":
            return words[n + 2 :] if words[n + 1 : n + 2] == ["pip"] else None
        if not word.startswith("-"):
            return words[n + 1 :] if os.path.basename(word) in ("pip", "pip3") else None
    return None


def _bring_pip() -> None:
    from importlib.util import find_spec

    if find_spec("pip") is None and os.path.isdir(_WHEELS):
        sys.path += [
            os.path.join(_WHEELS, name)
            for name in os.listdir(_WHEELS)
            if name.startswith("pip-") and name.endswith(".whl")
        ]


def _why_not(url):  # type: ignore[no-untyped-def]
    """Why the index cannot be reached; None when it can."""
    import socket
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    port = parts.port or (80 if parts.scheme == "http" else 443)
    try:
        socket.create_connection((parts.hostname, port), _CONNECT_S).close()
    except OSError as exc:
        return "%s cannot be reached from this sandbox (%s)" % (parts.hostname, exc.strerror or exc)
    return None


def _look_at_index(words):  # type: ignore[no-untyped-def]
    asks = [word for word in words if not word.startswith("-")]
    if not asks or asks[0] not in ("install", "download", "wheel", "index"):
        return
    if any(word.startswith(("-i", "--index-url", "--no-index", "--proxy")) for word in words):
        return
    if os.environ.get("PIP_NO_INDEX") or any(k.lower().endswith("_proxy") for k in os.environ):
        return
    url = os.environ.get("PIP_INDEX_URL") or _INDEX
    if not url.startswith(("http://", "https://")):
        return
    why = _why_not(url)
    if why is None:
        return
    if asks[1:] and all(os.path.exists(word) for word in asks[1:]):
        os.environ["PIP_NO_INDEX"] = "1"  # files that are there
        return
    how = '"@pypi"' if url == _INDEX else '"%s"' % url.split("/")[2]
    wheels, status = os.environ.get("PIP_FIND_LINKS"), 1
    if wheels:
        os.environ["PIP_NO_INDEX"] = "1"
        status = os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-m", "pip"] + words)
        if status == 0:
            os._exit(0)
    sys.stderr.write(
        "pip: %s%s. Ask for the network [%s] when the sandbox is made or with PUT "
        "/v1/sandboxes/ID/network; the operator of the server must grant it.\n"
        % (why, ": there are only the wheels in " + wheels if wheels else "", how)
    )
    sys.stderr.flush()
    os._exit(status)


def _be_pip(words):  # type: ignore[no-untyped-def]
    profile = os.environ.get("CLOCHE_PREFIX")
    if profile and sys.prefix == profile:  # which nobody can write to
        own = _BASE + "/bin/python3"
        if os.access(own, os.X_OK):
            os.execv(own, [own, "-m", "pip"] + words)
    if sys.prefix == sys.base_prefix:
        os.environ["PIP_USER"] = "1"  # as it would find out and say each time
    _bring_pip()
    _look_at_index(words)


def _main() -> None:
    _let_others()
    _find_tree()
    if os.environ.get("CLOCHE_PREFIX") == sys.prefix:
        import site

        site.addsitedir(_BASE + "/lib/python%d.%d/site-packages" % sys.version_info[:2])
    words = _pip_words()
    if words is not None:
        _be_pip(words)


_main()

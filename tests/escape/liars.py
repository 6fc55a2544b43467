"""Builds of profiles that say what no build says: our build.py, replaced."""

from __future__ import annotations

import shutil
import subprocess
import textwrap
from pathlib import Path
from typing import Any

from harness import cloche_bin
from made import Maker

# What the sandbox hands out is whatever this makes, in place of py/profile/build.py.
LIAR = """
import io, json, tarfile, os
def entry(name, text="", type=tarfile.REGTYPE, link="", mode=0o644):
    e = tarfile.TarInfo(name)
    e.type, e.linkname, e.mode = type, link, mode
    data = text.encode()
    e.size = len(data) if type == tarfile.REGTYPE else 0
    tar.addfile(e, io.BytesIO(data))
os.chdir("/workspace")
tar = tarfile.open("profile.tar.gz", "w:gz")
entry("site-packages/good.py", "GOOD = 1")
{body}
tar.close()
with open("result.json", "w") as f:
    json.dump({result}, f)
"""
HONEST: dict[str, Any] = {"python": "3.11.2", "requirements": [], "installed": []}


def copy_of_ours(place: Path) -> Path:
    """The command line, with a Python library of its own beside it."""
    own = place / "bin"
    own.mkdir()
    for path in cloche_bin().parent.iterdir():
        if path.is_file() and path.name.startswith("cloche"):
            shutil.copy2(path, own)
    shutil.copytree(cloche_bin().parent / "py", own / "py")
    return own / "cloche"


def lie(program: Path, body: str, result: Any = None) -> None:
    """What its builds say from now on."""
    told = HONEST | {"python": "%d.%d.%d" % python_version()} if result is None else result
    text = LIAR.format(body=textwrap.dedent(body), result=repr(told))
    (program.parent / "py" / "profile" / "build.py").write_text(text)


class Liar(Maker):
    def __init__(self, place: Path) -> None:
        super().__init__(place, copy_of_ours(place))

    def lie(self, body: str, result: Any = None) -> None:
        lie(self.program, body, result)


def python_version() -> tuple[int, ...]:
    look = "import sys; print(*sys.version_info[:3])"
    said = subprocess.check_output(["/usr/bin/python3", "-c", look], text=True)
    return tuple(int(part) for part in said.split())


LEFT_OUT = {
    "link": "entry('site-packages/x', type=tarfile.SYMTYPE, link='/etc/passwd')",
    "link that is a parent": "entry('site-packages/d', type=tarfile.SYMTYPE, link='/tmp')\n"
    "entry('site-packages/d/evil.py', 'E')",
    "pth": "entry('site-packages/x.pth', 'import os')",
    "sitecustomize": "entry('site-packages/sitecustomize.py', 'E')",
    "sitecustomize, compiled": "entry('site-packages/sitecustomize.pyc', 'E')",
    "sitecustomize, a package": "entry('site-packages/sitecustomize/__init__.py', 'E')",
    "python": "entry('bin/python3', 'E', mode=0o755)",
    "python of another name": "entry('bin/python3.11', 'E', mode=0o755)",
    "landmark": "entry('bin/pybuilddir.txt', 'E')",
    "configuration": "entry('pyvenv.cfg', 'E')",
    "library": "entry('lib/python3.11/os.py', 'E')",
    "other place": "entry('../x', 'E') if 0 else entry('include/x', 'E')",
    "file in place of a directory": "entry('bin', 'E')",
}
REFUSED = {
    "dots": "entry('site-packages/../../evil.py', 'E')",
    "absolute": "entry('/etc/evil.py', 'E')",
    "hard link": "entry('site-packages/x', type=tarfile.LNKTYPE, link='/etc/passwd')",
    "device": "entry('site-packages/x', type=tarfile.CHRTYPE)",
    "pipe": "entry('site-packages/x', type=tarfile.FIFOTYPE)",
    "file that is a parent": "entry('site-packages/good.py/x', 'E')",
    "many": "[entry(f'site-packages/{n}') for n in range(50001)]",
    "no archive": "tar.close()\nopen('profile.tar.gz', 'w').write('no')\n"
    "tar = tarfile.open('other', 'w')",
    "link as archive": "tar.close()\nos.remove('profile.tar.gz')\n"
    "os.symlink('/etc/passwd', 'profile.tar.gz')\ntar = tarfile.open('other', 'w')",
}

"""The same program under plain python3: what a program inside is compared with."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from client import DEADLINE_S
from harness import PYTHON


def plain(code: str | bytes, directory: Path, **more: str) -> subprocess.CompletedProcess[bytes]:
    """The same program under the yardstick, in a fresh directory, as POST /v1/execute runs it."""
    program = directory / "__main__.py"
    program.write_bytes(code.encode() if isinstance(code, str) else code)
    env = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(directory),
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONIOENCODING": "utf-8",
        "MPLCONFIGDIR": "/tmp/matplotlib",
        **more,
    }
    return subprocess.run(
        [PYTHON, program],
        input=b"",
        capture_output=True,
        cwd=directory,
        env=env,
        timeout=DEADLINE_S,
        check=False,
        umask=0o022,
    )


def normal(data: bytes, directory: Path | None = None) -> str:
    """Output with the fresh directory's name and with addresses replaced."""
    lines = data.decode("utf-8", "backslashreplace")
    if directory is not None:
        lines = lines.replace(str(directory), "/workspace")
    return re.sub(r"0x[0-9a-f]{6,}", "0x…", lines)

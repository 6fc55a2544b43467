"""Small packages, made on the spot."""

from __future__ import annotations

import zipfile
from pathlib import Path


def wheel(
    directory: Path,
    name: str,
    version: str = "1.0",
    needs: str = "",
    body: str = "",
    more: dict[str, str] = {},
) -> Path:
    """A wheel whose module says its version, and whose program of the same name prints it."""
    info = f"{name}-{version}.dist-info"
    needed = f"Requires-Dist: {needs}\n" if needs else ""
    files = {
        **more,
        f"{name}.py": f"VERSION = {version!r}\n{body}\ndef main():\n    print({name!r}, VERSION)\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needed}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\n"
        "Tag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{name} = {name}:main\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD"))
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for member, text in files.items():
            archive.writestr(member, text)
    return path


def wheels_place(directory: Path) -> Path:
    """A directory that the users of sandboxes can read, whoever made the ones above it."""
    directory.mkdir(exist_ok=True)
    for place in (directory, *directory.parents):
        mode = place.stat().st_mode
        if mode & 0o055 != 0o055:
            place.chmod(mode | 0o055)
    return directory

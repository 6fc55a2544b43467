#!/usr/bin/python3
"""Writes the pages into one C file, for assets.h: embed.py OUTPUT.c FILE..."""

from __future__ import annotations

import sys
from pathlib import Path

PAGES = {"index.html": "/", "docs.html": "/docs"}
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


def array(name: str, data: bytes) -> str:
    if not data:
        raise ValueError(f"{name} would be empty, which C does not allow")
    rows = [", ".join(map(str, data[i : i + 20])) for i in range(0, len(data), 20)]
    return f"static const unsigned char {name}[] = {{\n    " + ",\n    ".join(rows) + "};\n"


def source(files: list[Path]) -> str:
    arrays = [array(f"asset_{i}", file.read_bytes()) for i, file in enumerate(files)]
    entries = [
        f'    {{"{PAGES.get(file.name, "/assets/" + file.name)}", "{TYPES[file.suffix]}",'
        f" asset_{i}, sizeof(asset_{i})}},\n"
        for i, file in enumerate(files)
    ]
    return (
        "/* Made by web/embed.py. */\n"
        '#include "web/assets.h"\n\n'
        + "\n".join(arrays)
        + "\nconst struct web_asset web_assets[] = {\n"
        + "".join(entries)
        + "};\nconst size_t web_assets_n = sizeof(web_assets) / sizeof(web_assets[0]);\n"
    )


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(source([Path(arg) for arg in sys.argv[2:]]), encoding="utf-8")

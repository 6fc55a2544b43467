"""PIL's Image.show() shows the picture in the cell, whatever programs for that the machine has."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any, Optional

from IPython.display import display

NAME = "PIL.ImageShow"


def _prefer(module: Any) -> None:
    class CellViewer(module.Viewer):  # type: ignore[misc]
        """As PIL's own for IPython, which stands behind all programs that are there."""

        def show(self, image: Any, **options: Any) -> int:
            display(image)
            return 1

    module.register(CellViewer, -1)  # before the others


class _Finder(MetaPathFinder):
    """Most kernels never show one, so the module is not loaded for it."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Optional[ModuleSpec]:
        found = PathFinder.find_spec(fullname, path) if fullname == NAME else None
        loader: Any = found.loader if found else None
        if loader is None:
            return None
        run = loader.exec_module

        def exec_module(module: Any) -> None:
            run(module)
            _prefer(module)

        loader.exec_module = exec_module
        return found


def attach() -> None:
    """In the zygote."""
    if NAME in sys.modules:
        _prefer(sys.modules[NAME])
    else:
        sys.meta_path.insert(0, _Finder())

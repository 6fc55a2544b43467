"""How many threads libraries for linear algebra use: one in the zygote, which must have no other
when it forks, and in a kernel as many as it has processors.

They read their environment variables when they are loaded, which was in the zygote, so they have to
be told. Threads that they start then are the kernel's own.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Callable, List

NAMES = ("openblas_set_num_threads", "omp_set_num_threads", "MKL_Set_Num_Threads")
VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")  # of what it starts
# Wheels have names of their own for the functions of the library that they bring along.
FORMS = ("{}", "{}64_", "scipy_{}", "scipy_{}64_")

_setters: List[Callable[[int], Any]] = []


def _loaded() -> List[str]:
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        found = {line.split(None, 5)[5].rstrip("\n") for line in maps if ".so" in line}
    words = ("blas", "gomp", "iomp", "mkl_rt")
    return sorted(path for path in found if any(word in os.path.basename(path) for word in words))


def prepare() -> None:
    """In the zygote, after the preloads."""
    if "numpy" not in sys.modules:
        return
    import ctypes

    for path in _loaded():
        try:
            library = ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
        except OSError:
            continue
        for name in [form.format(name) for name in NAMES for form in FORMS]:
            try:
                _setters.append(library[name])
            except AttributeError:
                continue


def use(threads: int) -> None:
    """In a kernel. An environment variable that was set for it counts more."""
    wanted = str(threads)
    for name in VARIABLES:
        if os.environ.get(name) == "1":
            os.environ[name] = wanted
    for function in _setters:
        function(threads)

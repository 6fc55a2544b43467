"""Small programs that are run ahead of time, so that the first user's is not the first of its kind.

In the zygote, the interpreter and the libraries remember what they looked up and made, and adapt
their instructions to what they meet, and all of that is written down in pages that are shared from
then on. In a kernel that nobody waits for yet, the pages that such a program writes to become its
own before a user's program has to wait for that.
"""

from __future__ import annotations

import builtins
import gc
import sys
from types import CodeType
from typing import List, Tuple

TIMES = 20  # the interpreter adapts a function after some calls

# The module that must be loaded, how often the zygote runs it, whether kernels do (little: pages
# that a kernel writes to are memory that no other has), and what.
PROGRAMS: List[Tuple[str, int, bool, str]] = [
    ("builtins", TIMES, True, "print(end='')\n"),
    (
        "pandas",
        1,
        False,
        """
import numpy as np
import pandas as pd
frame = pd.DataFrame({"n": np.arange(9), "key": list("xyzxyzxyz"), "x": [0.5] * 9})
frame["y"] = frame.n * 2 + frame.x
frame.n.mean(), frame[frame.n > 3].iloc[0]
frame.groupby("key").y.sum()
frame.sort_values("n").head()
str(frame)
""",
    ),
    (
        "pandas",
        TIMES,
        False,
        """
import numpy as np
import pandas as pd
pd.DataFrame({"n": np.arange(9), "x": 0.5}).sum()
""",
    ),
    ("pandas", 1, True, "import pandas\npandas.DataFrame({'n': [1]})\n"),
    (
        "matplotlib.pyplot",
        1,
        False,
        """
import io
import matplotlib.pyplot as plt
from matplotlib.font_manager import _get_font
close_fonts = _get_font.cache_clear  # an open file does not come along into a kernel
figure, axes = plt.subplots()
axes.plot([1, 2], [3, 4], label="a")
axes.set_title("a")
axes.legend()
figure.savefig(io.BytesIO(), format="png")
plt.close(figure)
close_fonts()
""",
    ),
]

_again: List[CodeType] = []  # what a kernel runs


def _run(code: CodeType) -> None:
    exec(code, {"__name__": "__main__", "__builtins__": builtins})


def prepare() -> None:
    """In the zygote. A library that is not as expected is left as it is."""
    for module, times, in_kernel, text in PROGRAMS:
        if module not in sys.modules:
            continue
        code = compile(text, "<rehearsal>", "exec", 0, True)
        try:
            for _ in range(times):
                _run(code)
        except Exception:
            continue
        if in_kernel:
            _again.append(code)
    _flush()


def _flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()


def rehearse() -> None:
    """In a kernel."""
    for code in _again:
        _run(code)
    compile(PROGRAMS[0][3], "<rehearsal>", "exec", 0, True)
    _flush()
    gc.collect()

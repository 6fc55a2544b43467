"""A notebook of a hundred cells whose outputs are meant to be the same everywhere: docs/dialects.md
has what differs."""

from __future__ import annotations

import json
from typing import Any

BASIC = '''
print("hello")
1 + 1
x = 5
x
x;
"text"
b"bytes"
[1, 2, {"a": (None, True)}]
{n: n * n for n in range(30)}
list(range(2000))
"a" * 5000
None
_
__
_1
In[1]
Out.get(2)
print("a", "b", sep="\\n")
print("no newline", end="")
for i in range(5): print(i)
import sys; print("to stderr", file=sys.stderr)
print("mixed"); print("streams", file=sys.stderr)
def f(n): return n if n < 2 else f(n - 1) + f(n - 2)
f(20)
lambda: 0
class A: pass
A.__name__
import math; math.pi
float("nan"), float("inf"), -0.0
10 ** 100
complex(1, 2)
"é∀🙂" * 3
"\\x1b[31mred\\x1b[0m"
print("\\x1b[32mgreen\\x1b[0m")
print("a\\rb\\x08c")
1 / 0
undefined_name
raise ValueError("with\\nlines")
raise KeyError("k")
assert False, "why"
(
def broken(:
"unterminated
int("x")
[][1]
{}["a"]
f("a")
import no_such_module
raise Exception
try: 1/0
%who_ls int
!echo from the shell
!exit 3
_exit_code
files = !printf 'a\\nb\\n'
files
len?
f?
math.p*?
get_ipython().set_next_input("next")
import os; os.environ.get("NOT_THERE")
sorted({"b", "a"})
"%d items" % 3
[x for x in range(5) if x % 2]
f"{x!r:>10}"
divmod(17, 5)
isinstance(True, int)
max([])
sum(range(10 ** 6))
print(*range(200))
"last of the simple ones"
'''.strip().split("\n")  # fmt: skip

LONG = [
    "def g(n):\n    if n == 0:\n        raise RuntimeError('deep')\n    return g(n - 1)\n\ng(3)",
    "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise TypeError('then') from e",
    "from IPython.display import display, HTML, Markdown, JSON\ndisplay(HTML('<b>b</b>'))",
    "display(Markdown('# title'), metadata={'text/markdown': {'a': 1}})\ndisplay(JSON({'a': [1]}))",
    "h = display('first', display_id='one')\nh.update('second')",
    "from IPython.display import clear_output\nprint('gone')\nclear_output()\nprint('stays')",
    "print('gone too')\nclear_output(wait=True)\nprint('instead')",
    "class R:\n    def _repr_html_(self): return '<i>html</i>'\nR()",
    "class M:\n    def _repr_mimebundle_(self, include=None, exclude=None):\n"
    "        return {'text/plain': 'p', 'application/x-own+json': {'k': [1]}}, {'m': 1}\nM()",
    "class P:\n    def _repr_png_(self): return b'\\x89PNG\\r\\n\\x1a\\n' + bytes(10)\nP()",
    "class S:\n    def _repr_latex_(self): return '$x^2$'\nS()",
    "import asyncio\nawait asyncio.sleep(0)\n'awaited'",
    "async def co(): return 7\nawait co()",
    "await asyncio.sleep(0)\n1 / 0",
    "async def worse():\n    await asyncio.sleep(0)\n    raise ValueError\nawait worse()",
    "    indented = 1\n    indented + 1",
    "%%capture caught\nprint('captured')",
    "caught.stdout",
    "%%bash\necho from bash",
    "%%writefile made.txt\nline one\nline two",
    "open('made.txt').read()",
    "import logging\nlogging.getLogger('x').error('logged')",
    "a = 1\nb = 2\na\nb",
    "if True:\n    5",
    "for n in range(3):\n    display(n)\n    print(n)",
    "for n in range(3):\n    print('out', n)\nsys.stdout.flush()\nprint('err', file=sys.stderr)",
    "sys.stdout.write('written\\n')\nsys.stdout.flush()",
    "print('x' * 100_000)",
    "'y' * 100_000",
    "def outer():\n    def inner():\n        [i for i in (1, 'a') if i + 1]\n    inner()\nouter()",
    "get_ipython().run_cell('1 + 2')\n'after'",
]

PLOTS = [
    "%matplotlib inline\nimport matplotlib.pyplot as plt\nfig = plt.figure(figsize=(2, 1))",
    "plt.figure(figsize=(2, 1)); plt.plot([1, 2, 3]); plt.show()",
]


def notebook() -> dict[str, Any]:
    sources = [*BASIC, *LONG, *PLOTS]
    cells = [
        {
            "cell_type": "code",
            "id": f"c{n}",
            "metadata": {},
            "execution_count": None,
            "outputs": [],
            "source": source,
        }
        for n, source in enumerate(sources)
    ]
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


if __name__ == "__main__":
    print(json.dumps(notebook()))

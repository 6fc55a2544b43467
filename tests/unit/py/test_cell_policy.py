"""The policy `restricted`: PyRunner's rules in its words, and the detours that are closed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Dict, Optional

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "py"))

from cell.policy import (  # noqa: E402
    ALLOWED_MODULES,
    BLOCKED_MODULES,
    IO_NAMES,
    Policy,
    PolicyError,
)


def refusal(code: str, policy: Optional[Policy] = None) -> Optional[str]:
    policy = policy or Policy()
    try:
        policy.check(code.encode())
    except PolicyError as exc:
        assert not policy.is_plain(code.encode()) or str(exc).startswith("Syntax error: ")
        return str(exc)
    return None


def run(code: str) -> Dict[str, Any]:
    space: Dict[str, Any] = {"__name__": "__main__", "__loader__": object()}
    Policy().restrict(code.encode(), space)
    exec(compile(code, "program", "exec"), space)
    return space


# ---- PyRunner's own rules


@pytest.mark.parametrize("module", sorted(BLOCKED_MODULES))
def test_blocked_modules(module: str) -> None:
    assert refusal(f"import {module}") == f"Import of '{module}' is not allowed"
    assert refusal(f"import math, {module}.x as y") == f"Import of '{module}' is not allowed"
    assert refusal(f"from {module}.x import y") == f"Import from '{module}' is not allowed"


@pytest.mark.parametrize("module", sorted(ALLOWED_MODULES - {"__future__"}))
def test_allowed_modules(module: str) -> None:
    assert (
        refusal(f"import {module}.x as y\nfrom {module} import z\nfrom {module} import *") is None
    )


@pytest.mark.parametrize("module", ["time", "typing", "requests", "_thread", "_io", "__main__"])
def test_other_modules_are_not_in_the_list(module: str) -> None:
    assert refusal(f"import {module}") == f"Import of '{module}' is not in the allowed list"
    assert (
        refusal(f"from {module} import a") == f"Import from '{module}' is not in the allowed list"
    )


def test_the_rules_for_io() -> None:
    direct = "Direct import of 'io' is not allowed. Use 'from io import specific_item' instead"
    assert refusal("import io") == direct
    assert refusal(f"from io import {', '.join(sorted(IO_NAMES))}") is None
    assert refusal("from io import StringIO, open") == "Import of 'open' from 'io' is not allowed"
    assert refusal("from io import *") == "Wildcard import from 'io' is not allowed"


@pytest.mark.parametrize(
    "name",
    "eval exec compile __import__ open file input raw_input execfile reload getattr setattr "
    "delattr".split(),
)
def test_blocked_calls(name: str) -> None:
    assert refusal(f"{name}()") == f"Call to '{name}' is not allowed"
    assert refusal(f"def {name}(): pass\n{name}()") == f"Call to '{name}' is not allowed"
    assert refusal(f"x.{name}()") is None or name == "__import__"


@pytest.mark.parametrize("name", "__globals__ __code__ __class__ __bases__ __subclasses__".split())
def test_blocked_attributes(name: str) -> None:
    why = f"Access to '{name}' attribute is not allowed"
    for code in (f"x.{name}", f"f'{{x.{name}}}'", f"x.{name} = 1", f"del x.{name}"):
        assert refusal(code) == why


@pytest.mark.parametrize(
    "code,why",
    [
        ("print('a'", "Syntax error: '(' was never closed (<unknown>, line 1)"),
        ("x = 1\n  y", "Syntax error: unexpected indent (<unknown>, line 2)"),
        ("x\0", "Syntax error: source code string cannot contain null bytes"),
    ],
)
def test_syntax_errors(code: str, why: str) -> None:
    assert refusal(code) == why


def test_the_first_one_in_the_source_is_told() -> None:
    assert refusal("import time\nimport os") == "Import of 'time' is not in the allowed list"
    assert refusal("f(eval('1'), open('x'))") == "Call to 'eval' is not allowed"
    assert refusal("if a:\n    x.__class__\nimport os") == (
        "Access to '__class__' attribute is not allowed"
    )


# ---- ways around them


@pytest.mark.parametrize(
    "code",
    [
        "x = eval",
        "list(map(exec, ['1']))",
        "f = [getattr][0]",
        "print(open)",
        "def f(g=compile): pass",
        "@eval\ndef f(): pass",
        "x = __import__",
        "__builtins__['eval']",
        "__builtins__.eval",
        "vars(math)['sys']",
        "x = vars",
        "__loader__.get_data('/etc/passwd')",
        "from . import os",
        "from .os import path",
        "import _io",
        "x.__dict__['y']",
        "type(x).__mro__",
        "type(x).mro()",
        "object.__getattribute__(x, 'y')",
        "try:\n    1/0\nexcept Exception as e:\n    e.__traceback__.tb_frame.f_back",
        "(i for i in x).gi_frame",
        "print.__self__.eval",
        "x.__reduce_ex__(2)",
        "breakpoint()",
    ],
)
def test_detours_are_refused(code: str) -> None:
    assert refusal(code)


@pytest.mark.skipif(sys.version_info < (3, 10), reason="no match statement")
def test_a_pattern_that_reads_an_attribute_is_refused() -> None:
    why = "Access to '__class__' attribute is not allowed"
    assert refusal("match x:\n    case object(__class__=c): pass") == why


def test_a_coding_cookie_does_not_hide_code() -> None:
    code = b"# coding: utf-7\n+AGk-mport os"  # "import os"
    with pytest.raises(PolicyError, match="Import of 'os'"):
        Policy().check(code)
    assert not Policy().is_plain(code)


# ---- what a look at the text is enough for


@pytest.mark.parametrize(
    "code",
    [
        "print('hello')",
        "import math\nimport numpy.linalg as la\n\tfrom json import loads, dumps\nprint(dumps)",
        "profile = openness = my_eval = 1",
        "x = '''\nimport math\n'''",
    ],
)
def test_plain_programs_need_no_tree(code: str) -> None:
    assert Policy().is_plain(code.encode())


@pytest.mark.parametrize(
    "code",
    [
        "from os \\\nimport math",
        "from os \\\r\nimport math",
        "import math; import os",
        "import math, os",
        "import math,os",
        "import math.x,os",
        "import math as m,os",
        "from math import (\nsin)",
        "from math import sin;import os",
        "from os import (\npath)",
        "'''\nimport math # '''; import os",
        "1if eval else 0",
        "\uff45val('1')",
        "import io",
        "from math import eval",
        "\x0cimport os",
        "if x: import os",
    ],
)
def test_what_may_hide_something_is_looked_at(code: str) -> None:
    assert not Policy().is_plain(code.encode())


def test_the_lists_of_an_operator_hold_for_plain_programs() -> None:
    assert Policy(["os"]).is_plain(b"import os")
    assert not Policy(deny=["math"]).is_plain(b"import math")


@pytest.mark.parametrize(
    "code",
    ["-" * 20_000 + "1", "(" * 10_000, "x" + ".a" * 20_000, "[" * 150 + "]" * 150],
    ids=["minus", "open", "dots", "lists"],
)
def test_deep_programs_do_not_break_it(code: str) -> None:
    why = refusal(code)
    assert why is None or why.startswith("Syntax error: ")


@pytest.mark.parametrize(
    "code,error",
    [
        ("def f(): return eval\nf()\neval = 1", NameError),
        ("if False: open = 1\nopen('x')[0]\n".replace("open('x')", "[open]"), NameError),
        ("globals()['__builtins__']['eval']", KeyError),
        ("globals()['__builtins__']['__import__']('os')", ImportError),
        ("globals()['__builtins__']['__import__']('io')", ImportError),
        ("globals()['__builtins__']['__import__']('x', globals(), None, (), 1)", ImportError),
        ("globals()['__loader__'].get_data('/etc/passwd')", AttributeError),
    ],
)
def test_what_no_text_shows_fails_when_it_runs(code: str, error: type) -> None:
    with pytest.raises(error):
        run(code)


# ---- what honest programs do


@pytest.mark.parametrize(
    "code",
    [
        "print(type(1), dir(1), isinstance(1, int), hasattr(1, 'real'))",
        "file = [1]\nprint(file)",
        "for input in [1, 2]: print(input)",
        "def f(open): return open\nprint(f(1))",
        "class A:\n    def __init__(self): super().__init__()\nprint(A.__name__)",
        "from __future__ import annotations\nimport math\nprint(math.pi)",
        "from io import StringIO\nprint(StringIO('a').read())",
        "from collections import namedtuple\nprint(namedtuple('P', 'x')(1))",
        "x = 1\nprint('{x}'.format(**locals()), globals()['x'])",
        "import json, random, functools\nprint(json.dumps({}), random.random())",
        "if __name__ == '__main__': print(__name__)",
    ],
)
def test_honest_programs_run(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(code)
    assert capsys.readouterr().out


# ---- the operator's lists


def test_allow_and_deny() -> None:
    policy = Policy(["os", "requests", "io"], ["json", "requests"])
    assert refusal("import os\nfrom os import path\nimport io", policy) is None
    assert refusal("import json", policy) == "Import of 'json' is not allowed"
    assert refusal("from requests import get", policy) == "Import from 'requests' is not allowed"
    assert refusal("import io", Policy(deny=["io"])) == "Import of 'io' is not allowed"

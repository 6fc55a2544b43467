"""The last expression of a program: what a look at the text says is what the tree says."""

from __future__ import annotations

import ast
import random
import sys
import traceback
from pathlib import Path
from types import CodeType
from typing import Tuple

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "py"))

from cell import lastline  # noqa: E402

PIECES = "print ( ) a b , + 'x' \"(\" ' \" # \\ = f'{a}' ''' [ ] . ; 1 x=1 @a".split() + [
    "if a: ",
    "else: b",
    "\n",
    " ",
    "    ",
    "from __future__ import annotations\n",
]


def ends_with_print(code: str) -> bool:
    body = ast.parse(code).body
    value = body[-1].value if body and isinstance(body[-1], ast.Expr) else None
    called = value.func if isinstance(value, ast.Call) else None
    return isinstance(called, ast.Name) and called.id == "print"


def run(code: str, capsys: pytest.CaptureFixture[str]) -> str:
    parts = lastline.print_last(code.encode())
    space = {"__name__": "__main__"}
    for part in parts if isinstance(parts, tuple) else (parts,):
        exec(part, space)
    return capsys.readouterr().out


@pytest.mark.parametrize(
    "line",
    [
        "print()",
        "print('hello')",
        "print(sum(x), end='')",
        "print('it' 's', f('x'))",
        'print("a (b", c)',
        "print('#', f(1))",
    ],
)
def test_a_call_of_print(line: str) -> None:
    assert lastline.is_call_of_print(line.encode()) and ends_with_print(line)


@pytest.mark.parametrize(
    "line",
    [
        "print(a)(b)",
        "print(a) + f(b)",
        "print('(') + f(')')",
        "print(a), (b)",
        "print(a); (b)",
        "print",
        "(print(a))",
        "x.print(a)",
        "pprint(a)",
        "print(a) # (b)",
    ],
)
def test_no_call_of_print(line: str) -> None:
    assert not lastline.is_call_of_print(line.encode())


@pytest.mark.filterwarnings("ignore")
def test_no_program_is_taken_for_another() -> None:
    """Programs of random pieces: what is taken apart by its text is what the tree says."""
    dice, known = random.Random(1), 0
    for _ in range(30_000):
        code = "".join(dice.choices(PIECES, k=dice.randint(0, 5))) + "\n"
        end = "".join(dice.choices(PIECES, k=dice.randint(0, 4)))
        code += dice.choice([f"print({end})", end])
        if lastline._apart(code.encode(), "eval") is None:
            continue
        known += 1
        head, _, last = code.rstrip().rpartition("\n")
        body = ast.parse(code).body
        assert isinstance(body[-1], ast.Expr), code
        assert ast.dump(ast.parse(last, mode="eval").body) == ast.dump(body[-1].value), code
        assert [ast.dump(node) for node in ast.parse(head).body] == [
            ast.dump(node) for node in body[:-1]
        ], code
        assert not lastline.is_call_of_print(last.encode()) or ends_with_print(code), code
    assert known > 1000


@pytest.mark.parametrize(
    "code,shown",
    [
        ("1 + 1", "2\n"),
        ("x = 3\nx", "3\n"),
        ("x = 3\nx  # ; y", "3\n"),
        ("x = 3; x", "3\n"),
        ("x = 3", ""),
        ("x = 3\nif x: x", ""),
        ("for x in [1]: x", ""),
        ("x = [\n1]\nx[0] == 1", "True\n"),
        ("'a'\n\n# done", "'a'\n"),
        ("f = lambda: 2\nf()", "2\n"),
        ("x = 1\n(\nx)", "1\n"),
        ("", ""),
    ],
)
def test_the_interactive_printer(code: str, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    space: dict[str, object] = {}
    for part in lastline.split(code.encode()):
        exec(part, space)
    assert capsys.readouterr().out == shown


@pytest.mark.parametrize(
    "code,value",
    [("1 + 1", 2), ("x = 3\nx", 3), ("x = 3\nx;", None), ("x = 1", None), ("f'{1}'", "1")],
)
def test_the_value_of_a_last_expression(code: str, value: object) -> None:
    space: dict[str, object] = {}
    found = [eval(part, space) for part in lastline.split_value(code.encode())]
    assert (found[1] if len(found) == 2 else None) == value


def test_a_warning_is_told_once() -> None:
    with pytest.warns(SyntaxWarning) as told:
        lastline.split(b"1 is 1\nx = (1,\n2)")
        lastline.split(b"1 is 1\nx")
    assert len(told) == 2


@pytest.mark.parametrize(
    "code,out",
    [
        ("print('a')", "a\n"),
        ("x = 1\nprint(x)\n\n", "1\n"),
        ("x = 1\nx + 1", "2\n"),
        ("x = (\n1)\nprint(\nx)", "1\n"),
        ("None", ""),
        ("from __future__ import annotations\nx: y = 1\nprint(x)", "1\n"),
        ("if 1:\n  print(1)\nprint([2][0])", "1\n2\n"),
        ("'''\nprint(1)\n'''", "\nprint(1)\n\n"),
        ("", ""),
    ],
)
def test_what_is_printed(code: str, out: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(code, capsys) == out


def test_lines_are_counted_from_the_beginning() -> None:
    parts: Tuple[CodeType, ...] = lastline.print_last(b"x = 1\n\n\nprint(y)")
    with pytest.raises(NameError) as caught:
        for part in parts:
            exec(part, {})
    assert traceback.extract_tb(caught.value.__traceback__)[-1].lineno == 4


@pytest.mark.parametrize("code", ["x = (\nprint(1)", "if x:\nprint(1)", "'\nprint(1)"])
def test_errors_of_syntax_are_those_of_the_whole(code: str) -> None:
    with pytest.raises(SyntaxError) as told:
        lastline.print_last(code.encode())
    with pytest.raises(SyntaxError) as plain:
        ast.parse(code, lastline.PATH)
    assert str(told.value) == str(plain.value)

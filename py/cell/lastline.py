"""What becomes of a last expression: the interactive printer gets it, or somebody who wants its
value, or print() as PyRunner has it.

Each function compiles a program, and returns the code to execute, or a tuple of such. A tree of
Python objects costs more than all else that a small program does: in a new kernel it has pages
copied for each kind of node. So the text is looked at first.
"""

from __future__ import annotations

import ast
import re
import sys
from types import CodeType
from typing import Any, Optional, Tuple

PATH = "/workspace/__main__.py"
FUTURE_FLAGS = 0x1FF0000  # of co_flags: what `from __future__ import` turned on

_KEYWORDS = frozenset(
    b"import from def class if for while with try raise del assert pass async else elif except "
    b"finally return break continue global".split()
)
_STRING = re.compile(rb"'[^']*'|\"[^\"]*\"")
_PRINT = re.compile(rb"print\((.*)\)")
_PAIR = re.compile(rb"\([^()]*\)")


def _is_statement(line: bytes) -> bool:
    """Whether a line is surely no expression, so that nobody needs to compile it as one."""
    words = line.split(None, 1)
    if not words or line[:1] in b" \t\f#@)]}" or words[0].rstrip(b":") in _KEYWORDS:
        return True
    at = line.find(b"=")
    before, after = line[:at], line[at + 1 : at + 2]
    return at > 0 and after != b"=" and b"(" not in before and before[-1:] not in b"!<>"


def _apart(code: bytes, mode: str) -> Optional[Tuple[CodeType, CodeType]]:
    """The code of all lines but the last, and of that, if it is an expression; else, or in doubt,
    None.

    What is before a line and compiles by itself is whole statements, and so is the line then. The
    line comes first: whoever is told None compiles again, and would repeat what the compiler warns
    of in the others.
    """
    head, _, last = code.rstrip().rpartition(b"\n")
    if _is_statement(last) or b"\\" in last or b"__future__" in code:
        return None
    line = b"\n" * (head.count(b"\n") + 1) + last if head else last
    try:
        value = compile(line, PATH, "eval", dont_inherit=True)
        if mode != "eval":
            value = compile(line, PATH, mode, dont_inherit=True)
        return compile(head, PATH, "exec", dont_inherit=True), value
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def split(code: bytes) -> Tuple[Any, ...]:
    """The statements but for a last expression, and that expression for the interactive printer."""
    parts = _apart(code, "single")
    if parts is not None:
        return parts
    tree = ast.parse(code, PATH)
    if not tree.body or not isinstance(tree.body[-1], ast.Expr):
        return (compile(tree, PATH, "exec", dont_inherit=True),)
    last = ast.Interactive([tree.body.pop()])
    head = compile(tree, PATH, "exec", dont_inherit=True)
    return head, compile(last, PATH, "single", head.co_flags & FUTURE_FLAGS, dont_inherit=True)


def _has_semicolon(code: bytes, node: ast.stmt) -> bool:
    """Whether one follows it, on its last line."""
    line: Any = getattr(node, "end_lineno", None)  # from 3.8 on
    rest = code.splitlines()[line - 1][getattr(node, "end_col_offset") :] if line else b""
    return rest.lstrip().startswith(b";")


def split_value(code: bytes) -> Tuple[Any, ...]:
    """The same with the expression for somebody who wants its value. Nobody does when a semicolon
    follows, as in a cell."""
    parts = _apart(code, "eval")
    if parts is not None:
        return parts
    tree = ast.parse(code, PATH)
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr) or b";" in code and _has_semicolon(code, last):
        return (compile(tree, PATH, "exec", dont_inherit=True),)
    value = ast.Expression(last.value)
    tree.body.pop()
    head = compile(tree, PATH, "exec", dont_inherit=True)
    return head, compile(value, PATH, "eval", head.co_flags & FUTURE_FLAGS, dont_inherit=True)


def print_last(code: bytes) -> Any:
    """The program with print() around a last expression, as PyRunner has it: unless it is None, or
    a call of print itself."""
    parts = _apart(code, "eval") if is_call_of_print(code.rstrip().rpartition(b"\n")[2]) else None
    if parts is not None:
        return parts
    tree = ast.parse(code, PATH)
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr) and not _is_print(last.value):
        name = "__auto_print_result"
        extra = ast.parse(f"{name} = 0\nif {name} is not None:\n    print({name})").body
        for node in extra:
            for inner in ast.walk(node):
                ast.copy_location(inner, last)
        setattr(extra[0], "value", last.value)
        tree.body[-1:] = extra
    return compile(tree, PATH, "exec", dont_inherit=True)


def _is_print(value: ast.expr) -> bool:
    called = value.func if isinstance(value, ast.Call) else None
    return isinstance(called, ast.Name) and called.id == "print"


def is_call_of_print(line: bytes) -> bool:
    """Whether a line that is an expression is a call of print, as far as that can be told from its
    text; if in doubt, not."""
    if not line.startswith(b"print(") or not line.endswith(b")"):
        return False
    if line.count(b"(") == line.count(b")") == 1:
        return True
    doubtful = (b"\\", b"'''", b'"""', b"\r")
    if any(text in line for text in doubtful):
        return False
    if b"{" in line and sys.version_info >= (3, 12):  # quotes inside those of an f-string
        return False
    rest = _STRING.sub(b"", line)
    found = _PRINT.fullmatch(rest)
    if found is None or b"#" in rest or b"'" in rest or b'"' in rest:
        return False
    inner, pairs = found[1], 1
    while pairs:
        inner, pairs = _PAIR.subn(b"", inner)
    return b"(" not in inner and b")" not in inner

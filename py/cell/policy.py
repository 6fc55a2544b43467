"""The policy `restricted`: what a program may import, call and reach, checked before it runs.

It keeps honest programs to what an operator wants of them, and tells in words why one is refused.
It is no boundary: that is the sandbox around it. The rules and their words are PyRunner's, but for
the ways around them that it leaves open, which are closed here where that costs honest programs
nothing. A name that a program binds itself cannot be judged by its text; so what is refused is also
missing from the builtins that the program gets, and its imports are checked again when they happen.
"""

from __future__ import annotations

import ast
import builtins
import re
from typing import Any, Callable, Dict, Iterable, Iterator, Optional, Set, Type

BLOCKED_MODULES = frozenset(
    "os subprocess sys importlib eval exec compile __import__ open file input raw_input socket "
    "urllib httplib ftplib telnetlib pickle cPickle marshal shelve".split()
)
ALLOWED_MODULES = frozenset(
    "math cmath decimal fractions random statistics itertools functools operator collections heapq "
    "bisect array datetime calendar copy pprint re string textwrap unicodedata json csv numpy "
    "sympy pandas matplotlib scipy sklearn __future__".split()
)
IO_NAMES = frozenset(
    "StringIO BytesIO TextIOWrapper BufferedReader BufferedWriter BufferedRWPair BufferedRandom "
    "IOBase RawIOBase BufferedIOBase TextIOBase DEFAULT_BUFFER_SIZE SEEK_SET SEEK_CUR SEEK_END "
    "UnsupportedOperation BlockingIOError IncrementalNewlineDecoder".split()
)
BLOCKED_CALLS = frozenset(
    "eval exec compile __import__ open file input raw_input execfile reload getattr setattr "
    "delattr".split()
)
# Beyond PyRunner's: what hands out the namespaces of others. globals() and locals() show a program
# its own, which hold nothing that it may not have.
BLOCKED_NAMES = frozenset("vars breakpoint".split())
BLOCKED_DUNDERS = frozenset("__builtins__ __loader__ __spec__".split())
BLOCKED_ATTRIBUTES = frozenset(
    "__globals__ __code__ __class__ __bases__ __subclasses__ "  # PyRunner's own
    "__dict__ __mro__ mro __base__ __builtins__ __import__ __loader__ __spec__ __self__ __func__ "
    "__closure__ __wrapped__ __getattribute__ __reduce__ __reduce_ex__ tb_frame f_globals "
    "f_builtins f_locals f_back f_code gi_frame gi_code cr_frame cr_code ag_frame ag_code".split()
)

# Programs that no rule can be about are known by their text, which is far quicker than by a tree.
# A name stands there as it is, since it is ASCII, and a number may stand right before it.
_NAMES = re.compile(rb"[A-Za-z_]\w*")
_SUSPECT = frozenset(
    name.encode() for name in BLOCKED_CALLS | BLOCKED_NAMES | BLOCKED_DUNDERS | BLOCKED_ATTRIBUTES
)
_COOKIES = (b"coding:", b"coding=")


def _imported(line: bytes) -> Optional[bytes]:
    """The module of a line that is a plain import and nothing else."""
    words = line.split()
    if words[:1] == [b"import"] and (len(words) == 2 or len(words) == 4 and words[2] == b"as"):
        rest, marks = words[1:], b"._"  # and no comma: what is behind one is imported too
    elif words[:1] == [b"from"] and words[2:3] == [b"import"] and len(words) > 3:
        rest, marks = words[1:2] + words[3:], b"._,"
    else:
        return None
    letters = b"".join(rest).translate(None, marks)
    return words[1].partition(b".")[0] if letters.isalnum() else None


class PolicyError(Exception):
    """The program is not run; the text says why."""

    __module__ = "builtins"  # people see its name, and not where it lives


Check = Callable[[Any], None]


def _children(node: ast.AST) -> Iterator[ast.AST]:
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, ast.AST):
            yield value
        elif isinstance(value, list):
            yield from (item for item in value if isinstance(item, ast.AST))


def _walk(tree: ast.AST) -> Iterator[ast.AST]:
    """Depth first, in the order of the source; a deep program is no reason to run out of stack."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(list(_children(node))))


def _bound(tree: ast.AST) -> Set[str]:
    """Every name to which the program gives a meaning of its own, anywhere."""
    names: Set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name.partition(".")[0])
        else:  # functions, classes, exception handlers, captures of patterns
            name = getattr(node, "name", None) or getattr(node, "rest", None)
            if isinstance(name, str):
                names.add(name)
    return names


class Policy:
    def __init__(self, allow: Iterable[str] = (), deny: Iterable[str] = ()) -> None:
        """The operator's own lists come before PyRunner's, and `deny` before `allow`."""
        self._blocked = (BLOCKED_MODULES - set(allow)) | set(deny)
        self._allowed = (ALLOWED_MODULES | set(allow)) - set(deny)
        self._io = "io" not in self._allowed and "io" not in self._blocked
        self._plain = {name.encode() for name in self._allowed - self._blocked - {"io"}}
        self._checks: Dict[Type[ast.AST], Check] = {
            ast.Import: self._import,
            ast.ImportFrom: self._import_from,
            ast.Call: self._call,
            ast.Attribute: lambda node: self._attribute(node.attr),
        }
        if hasattr(ast, "MatchClass"):
            self._checks[ast.MatchClass] = self._match
        self._hidden = {name for name in BLOCKED_CALLS | BLOCKED_NAMES if hasattr(builtins, name)}
        refused = self._hidden | BLOCKED_DUNDERS
        self._builtins = {k: v for k, v in vars(builtins).items() if k not in refused}
        self._builtins["__import__"] = self._guard(builtins.__import__)

    # ---- the rules

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            top = alias.name.partition(".")[0]
            if top in self._blocked:
                raise PolicyError(f"Import of '{top}' is not allowed")
            if top == "io" and self._io:
                raise PolicyError(
                    "Direct import of 'io' is not allowed. "
                    "Use 'from io import specific_item' instead"
                )
            if top not in self._allowed:
                raise PolicyError(f"Import of '{top}' is not in the allowed list")

    def _import_from(self, node: ast.ImportFrom) -> None:
        top = (node.module or "").partition(".")[0]
        if node.level:
            raise PolicyError(f"Import from '{'.' * node.level}{top}' is not in the allowed list")
        if top in self._blocked:
            raise PolicyError(f"Import from '{top}' is not allowed")
        if top == "io" and self._io:
            self._import_from_io(node)
        elif top not in self._allowed:
            raise PolicyError(f"Import from '{top}' is not in the allowed list")

    def _import_from_io(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            if alias.name == "*":
                raise PolicyError("Wildcard import from 'io' is not allowed")
            if alias.name not in IO_NAMES:
                raise PolicyError(f"Import of '{alias.name}' from 'io' is not allowed")

    def _attribute(self, name: str) -> None:
        if name in BLOCKED_ATTRIBUTES:
            raise PolicyError(f"Access to '{name}' attribute is not allowed")

    def _match(self, node: Any) -> None:
        for name in node.kwd_attrs:  # `case object(__class__=c)` reads an attribute
            self._attribute(name)

    def _call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id in BLOCKED_CALLS:
            raise PolicyError(f"Call to '{node.func.id}' is not allowed")

    def _name(self, node: ast.Name, tree: ast.AST) -> None:
        """A function that is only passed on, as in map(eval, texts).

        One of the program's own is not meant; what it does before it has that is up to restrict().
        """
        if node.id in BLOCKED_DUNDERS or node.id in self._hidden and node.id not in _bound(tree):
            raise PolicyError(f"Use of '{node.id}' is not allowed")

    # ---- their use

    def check(self, code: bytes) -> None:
        """Raises PolicyError at the first thing in the program that is not allowed."""
        try:
            tree = ast.parse(code)
        except (SyntaxError, ValueError, MemoryError, RecursionError) as exc:
            raise PolicyError(f"Syntax error: {exc}") from None
        for node in _walk(tree):
            if isinstance(node, ast.Name):
                self._name(node, tree)
                continue
            check = self._checks.get(type(node))
            if check is not None:
                check(node)

    def is_plain(self, code: bytes) -> bool:
        """Whether check() would find nothing but, perhaps, an error of syntax. If in doubt, not.

        No line that goes on in the next can hide what an import belongs to; and a line that is an
        import and nothing else has no quotes, so it is one, or all of it is in a string.
        """
        if not code.isascii() or b"\\\n" in code or b"\\\r" in code:
            return False
        if _COOKIES[0] in code or _COOKIES[1] in code:
            return False
        if not _SUSPECT.isdisjoint(_NAMES.findall(code)):
            return False
        if b"import" not in code:
            return True
        lines = [line for line in code.splitlines() if b"import" in line]
        return all(_imported(line) in self._plain for line in lines)

    def restrict(self, code: bytes, space: Dict[str, Any]) -> None:
        """Checks the program, and gives the namespace that it will run in what it may have. One
        that does not compile may have to be checked once more, for its error."""
        if not self.is_plain(code):
            self.check(code)
        space.update(__builtins__=self._builtins, __loader__=None)

    def _guard(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        """An __import__ for those who come by it in another way than by an import statement."""

        def __import__(
            name: str,
            globals: Optional[Dict[str, Any]] = None,
            locals: Optional[Dict[str, Any]] = None,
            fromlist: Any = (),
            level: int = 0,
        ) -> Any:
            top = name.partition(".")[0]
            if level or top in self._blocked or (top not in self._allowed and top != "io"):
                raise ImportError(f"Import of '{top}' is not allowed")
            if top == "io" and self._io and not set(fromlist or ("io",)) <= IO_NAMES:
                raise ImportError("Direct import of 'io' is not allowed")
            return plain(name, globals, locals, fromlist, level)

        return __import__

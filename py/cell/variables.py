"""The user's variables for people to look at: types, sizes and short texts, in bounded time.

The text of a built-in value is made here, from its first few items. Of a class that we do not know
it is the business of its __repr__, which may do anything: that gets a little time, by a timer.
"""

from __future__ import annotations

import signal
import types
from collections import deque
from itertools import islice
from time import monotonic
from typing import Any, Callable, Dict, List, Tuple

MAX_REPR = 200
ITEMS, LEVELS = 10, 3
ONE_S, ALL_S = 0.1, 1.0  # for a __repr__, for all of them
SIZED = ("numpy", "pandas", "scipy", "PIL", "polars", "torch", "xarray", "pyarrow")
CONTAINERS: Dict[type, Tuple[str, str]] = {
    list: ("[", "]"),
    tuple: ("(", ")"),
    set: ("{", "}"),
    frozenset: ("{", "}"),
    deque: ("[", "]"),
    dict: ("{", "}"),
}
SCALARS = (bool, float, complex, type(None), type(...), type(NotImplemented), range)
NAMED = {
    types.FunctionType: "function",
    types.BuiltinFunctionType: "built-in function",
    types.ModuleType: "module",
    type: "class",
}


class Late(BaseException):
    """Not an Exception: a __repr__ that catches those must end too."""


def _late(number: int, frame: Any) -> None:
    raise Late


def timer_is_taken() -> bool:
    """The process has one, which user code may use."""
    return signal.getitimer(signal.ITIMER_REAL)[0] > 0


def timed(make: Callable[[], Any], seconds: float) -> Any:
    """With the process's one timer, unless user code uses it or wants no signal."""
    if timer_is_taken():
        raise Late
    before = signal.signal(signal.SIGALRM, _late)
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds, seconds / 2)
            return make()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.signal(signal.SIGALRM, before)


def _int(value: int) -> str:
    bits = value.bit_length()
    return repr(value) if bits < 1000 else f"<int of {bits} bits>"


def _text(value: Any) -> str:
    return repr(value[:MAX_REPR]) + ("..." if len(value) > MAX_REPR else "")


class Reprs:
    """Short texts, until the time for all of them is over."""

    def __init__(self) -> None:
        self._until = monotonic() + ALL_S

    def short(self, value: Any, level: int = LEVELS) -> str:
        kind = type(value)
        if kind in SCALARS:
            return repr(value)
        if kind is int:
            return _int(value)
        if kind in (str, bytes, bytearray):
            return _text(value)
        if kind in CONTAINERS:
            return self._container(value, kind, level)
        if kind in NAMED:
            return f"<{NAMED[kind]} {value.__name__}>"
        return self._other(value, kind)

    def _container(self, value: Any, kind: type, level: int) -> str:
        left, right = CONTAINERS[kind]
        if not len(value):
            return repr(value)
        if level == 0:
            return f"{left}...{right}"
        if kind is dict:
            pairs = islice(value.items(), ITEMS)
            parts = [f"{self.short(k, 0)}: {self.short(v, level - 1)}" for k, v in pairs]
        else:
            parts = [self.short(item, level - 1) for item in islice(value, ITEMS)]
        if len(value) > ITEMS:
            parts.append("...")
        end = "," if kind is tuple and len(value) == 1 else ""
        text = f"{left}{', '.join(parts)}{end}{right}"
        return f"{kind.__name__}({text})" if kind in (frozenset, deque) else text

    def _other(self, value: Any, kind: type) -> str:
        name = type_name(value)
        shape, length = _shape(value, kind), _length(value, kind)
        if max(shape or [length or 0], default=0) > ITEMS:
            return f"<{name} {' x '.join(map(str, shape or [length]))}>"
        left = self._until - monotonic()
        try:
            if kind.__repr__ is object.__repr__ or left <= 0:
                return f"<{name}>"
            return timed(lambda: str.__str__(repr(value))[: MAX_REPR + 1], min(ONE_S, left))
        except KeyboardInterrupt:
            raise
        except BaseException as exc:
            why = "takes too long" if isinstance(exc, Late) else "fails"
            return f"<{name}, whose repr() {why}>"


def type_name(value: Any) -> str:
    try:
        kind = type(value)
        module, name = str(kind.__module__), str(kind.__qualname__)
    except Exception:
        return "object"
    return name if module in ("builtins", "__main__") else f"{module}.{name}"


def _known(kind: type) -> bool:
    return str(getattr(kind, "__module__", "")).partition(".")[0] in SIZED


def _shape(value: Any, kind: type) -> Any:
    if not _known(kind):
        return None
    try:
        return [int(n) for n in value.shape] or None
    except Exception:
        return None


def _length(value: Any, kind: type) -> Any:
    if kind in CONTAINERS or kind in (str, bytes, bytearray, range) or _known(kind):
        try:
            return len(value)
        except Exception:
            return None
    return None


def _bytes(value: Any, kind: type) -> Any:
    try:
        return int(value.nbytes) if str(kind.__module__) == "numpy" else None
    except Exception:
        return None


def _row(name: str, value: Any, reprs: Reprs) -> Dict[str, Any]:
    kind = type(value)
    row = {
        "name": name,
        "type": type_name(value),
        "len": _length(value, kind),
        "shape": _shape(value, kind),
        "nbytes": _bytes(value, kind),
    }
    try:
        text = reprs.short(value)
    except (Exception, RecursionError):
        text = f"<{row['type']} that cannot be shown>"
    row["repr"] = text if len(text) <= MAX_REPR else text[: MAX_REPR - 3] + "..."
    return row


def rows(space: Dict[Any, Any], hidden: Dict[Any, Any], most: int) -> Tuple[List[Any], int]:
    """Of the first `most` names, and how many there are."""
    names = sorted(
        name
        for name, value in list(space.items())
        if isinstance(name, str)
        and not name.startswith("_")
        and not (name in hidden and hidden[name] is value)
    )
    reprs = Reprs()
    return [_row(name, space[name], reprs) for name in names[:most] if name in space], len(names)

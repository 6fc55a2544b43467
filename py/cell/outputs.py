"""Runs a script as `python3 SCRIPT` does, and then tells some of its variables.

`outputs.py MARK NAMES SCRIPT ARGS…`: NAMES is a JSON list. Behind all that the script wrote to
stderr come MARK and a JSON object of those variables that are there, unless the script failed.
It is a program of its own in a sandbox, for the dialect Sandbox Runtime.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
import types
from typing import Any, Dict, List, Optional


def _finite(value: Any) -> Any:
    """The same without what JSON does not have: NaN and the infinities become null."""
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value


def _encode(value: Any) -> Optional[str]:
    try:
        return json.dumps(
            _finite(value),
            default=str,
            ensure_ascii=False,
            allow_nan=False,
            separators=(",", ":"),
        )
    except (TypeError, ValueError, RecursionError):
        return None


def _tell(names: List[str], space: Dict[str, Any], mark: str, fd: int) -> None:
    found = {name: _encode(space[name]) for name in dict.fromkeys(names) if name in space}
    inside = ",".join(
        f"{json.dumps(name, ensure_ascii=False)}:{text}"
        for name, text in found.items()
        if text is not None
    )
    left = memoryview(f"{mark}{{{inside}}}".encode("utf-8", "replace"))
    while left:
        left = left[os.write(fd, left) :]


def _failed(error: BaseException) -> bool:
    return not (isinstance(error, SystemExit) and error.code in (None, 0))


def main() -> None:
    mark, names, path = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
    fd = os.dup(2)
    os.set_inheritable(fd, False)
    module = types.ModuleType("__main__")
    full = os.path.abspath(path)
    module.__dict__.update(__file__=full, __builtins__=__builtins__, __cached__=None)
    sys.argv = sys.argv[3:]
    sys.path[0] = os.path.dirname(full)
    sys.modules["__main__"] = module
    try:
        with open(path, "rb") as script:
            code = compile(script.read(), full, "exec", dont_inherit=True)
        exec(code, module.__dict__)
    except BaseException as error:
        if _failed(error):
            inside = error.__traceback__.tb_next if error.__traceback__ else None
            if isinstance(error, SystemExit):
                raise
            traceback.print_exception(type(error), error, inside)
            sys.exit(1)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    _tell(names, module.__dict__, mark, fd)


if __name__ == "__main__":
    main()

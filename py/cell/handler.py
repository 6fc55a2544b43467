"""What a program with a handler() has more than another: its event, its context and its result.

It is the Python half of RUN_HANDLER, of which the C half is in zygote/program.c: C calls the
handler itself, with no frame of ours on the stack. The encoder and the scanner are made in the
zygote.
"""

from __future__ import annotations

import json.decoder
import json.encoder
import json.scanner
import os
import sys
import time
from typing import Any, Callable, Dict, Tuple

SYNTAX, NO_HANDLER, FAILED = 0, 1, 2  # enum complaint
CONTEXT_NAMES = ("context", "_context", "ctx")
MAX_DEPTH = 400  # of a result: the server takes 512 levels


def _refuse(value: Any) -> Any:
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


_quote: Any = getattr(json.encoder, "encode_basestring")
_encode: Any = getattr(json.encoder, "c_make_encoder")(
    {}, _refuse, _quote, None, ":", ",", False, False, False
)
_scan: Any = getattr(json.scanner, "c_make_scanner")(json.decoder.JSONDecoder())
_clock = time.monotonic


def _uuid() -> str:
    digits = bytearray(os.urandom(16))
    digits[6] = digits[6] & 0x0F | 0x40
    digits[8] = digits[8] & 0x3F | 0x80
    text = digits.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


class LambdaContext:
    """The second argument of a handler that takes two."""

    def __init__(self, given: Dict[str, Any]) -> None:
        self.function_name = "unknown-function"
        self.function_version = "$LATEST"
        self.request_id = _uuid()
        self.log_group_name = "/lambda-sandbox/logs"
        self.log_stream_name = _uuid()
        self.remaining_time_in_millis = 3000
        self.memory_limit_in_mb = 256
        self.invoked_function_arn = None
        self.__dict__.update(given)
        self._began = _clock()

    def get_remaining_time_in_millis(self) -> int:
        spent = int((_clock() - self._began) * 1000)
        return max(0, self.remaining_time_in_millis - spent)


def _wants_context(handler: Any) -> bool:
    """Whether it takes two: it must have a second argument, or has one that is named so."""
    while hasattr(handler, "__wrapped__"):
        handler = handler.__wrapped__
    if not hasattr(handler, "__code__"):
        handler = getattr(handler, "__call__")
    code = getattr(handler, "__code__", None)
    if code is None:
        return False
    names = code.co_varnames[hasattr(handler, "__self__") : code.co_argcount]
    required = len(names) - len(handler.__defaults__ or ())
    return required >= 2 or (len(names) >= 2 and names[1] in CONTEXT_NAMES)


def begin(space: Dict[str, Any], event: bytes, context: bytes) -> Tuple[Any, Tuple[Any, ...]]:
    """The program's handler and what to call it with; LookupError when there is none."""
    handler = space.get("handler")
    if not callable(handler):
        raise LookupError("handler")
    given = _scan(event.decode(), 0)[0]
    if not _wants_context(handler):
        return handler, (given,)
    return handler, (given, LambdaContext(_scan(context.decode(), 0)[0]))


def _finite(value: Any, depth: int = 0) -> Any:
    """The same without what JSON does not have: NaN and the infinities become null."""
    if isinstance(value, float):
        return value if value - value == 0 else None
    if depth < MAX_DEPTH and isinstance(value, dict):
        return {key: _finite(item, depth + 1) for key, item in value.items()}
    if depth < MAX_DEPTH and isinstance(value, (list, tuple)):
        return [_finite(item, depth + 1) for item in value]
    return value


def end(result: Any) -> bytes:
    """What it returned, as JSON."""
    parts = None
    try:
        parts = _encode(result, 0)
    except ValueError as error:
        if not str(error).startswith("Out of range float"):
            raise
    if parts is None:
        parts = _encode(_finite(result), 0)
    return "".join(parts).encode("utf-8", "replace")


def complain(what: int, error: BaseException) -> None:
    """In the words of the dialect, before the traceback if there is one."""
    if isinstance(error, SystemExit):
        return
    if what == NO_HANDLER:
        text = "System error: 代码中未找到 handler 函数定义"
    elif what == SYNTAX:
        text = f"System error: 代码语法错误: {error}"
    else:
        text = f"Handler 执行异常: {error}"
    print(text, file=sys.stderr)


PARTS: Dict[str, Callable[..., Any]] = {
    "handler_begin": begin,
    "handler_end": end,
    "handler_complain": complain,
}

"""Values by MIME type as JSON, for the server: what cells and programs show.

The encoder is a C object that is made in the zygote, so that user code, which may replace whatever
it can reach by name, changes nothing of it.
"""

from __future__ import annotations

import json.encoder
from binascii import b2a_base64
from typing import Any, Dict, List, Optional

MAX_DATA = 16 << 20  # bytes of one event
MAX_NOTE = 64 << 10  # characters that are left of a text when all of it is too much
MAX_DEPTH = 50  # of nested values: the reader of the server takes 64
MAX_VALUES = 200_000  # in lists and dicts of one bundle: the reader takes 500,000 in all
MAX_INT = 1 << 63

Message = Dict[str, Any]


def _refuse(value: Any) -> Any:
    raise TypeError(f"{type(value).__name__} is not JSON")


_quote: Any = getattr(json.encoder, "encode_basestring")
_encode: Any = getattr(json.encoder, "c_make_encoder")(
    None, _refuse, _quote, None, ":", ",", False, False, False
)


def _number(value: Any) -> Any:
    if isinstance(value, bool):
        return bool(value)
    if isinstance(value, int):
        return int(value) if -MAX_INT <= value < MAX_INT else str(value)
    return float(value) if value - value == 0 else None  # there is no NaN in JSON


def plain(value: Any, depth: int = 0, room: Optional[List[int]] = None) -> Any:
    """The value as something that every reader of JSON takes; TypeError where that cannot be."""
    if isinstance(value, str):
        text = str.__str__(value)
        return text.replace("\0", "\\x00") if "\0" in text else text
    if value is None:
        return None
    if isinstance(value, (int, float)):
        return _number(value)
    if isinstance(value, (bytes, bytearray)):
        return b2a_base64(value, newline=False).decode("ascii")
    if depth == MAX_DEPTH:
        raise TypeError("nested too deeply")
    if isinstance(value, (dict, list, tuple)):
        room = room or [MAX_VALUES]
        room[0] -= len(value) + 1
        if room[0] <= 0:
            raise TypeError("too many values")
    if isinstance(value, dict):
        return {plain(str(key)): plain(item, depth + 1, room) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, depth + 1, room) for item in value]
    return _refuse(value)


def bundle(data: Dict[Any, Any]) -> Message:
    """Values by mime type, without those that are not JSON; what is binary is base64."""
    kept: Message = {}
    room = [MAX_VALUES]
    for mime, value in data.items():
        try:
            name, value = str(mime), plain(value, 0, room)
        except Exception:
            continue
        if isinstance(value, str) and name.startswith("image/") and name != "image/svg+xml":
            value = value.rstrip("\n")
        kept[name] = value
    return kept


def text_of(message: Message) -> bytes:
    """Raises where it cannot be encoded."""
    return "".join(_encode(message, 0)).encode("utf-8", "replace")  # lone surrogates: "?"


def _reduced(message: Message, size: int) -> Message:
    """The same with a note instead of what is too much."""
    data = message.get("data") or {}
    text = data.get("text/plain")
    note = f"[{', '.join(data)}: {size} bytes, of which {MAX_DATA} can be shown; write to a file]"
    if isinstance(text, str):
        note = f"{text[:MAX_NOTE]}\n{note}"
    return {**message, "data": {"text/plain": note}, "metadata": {}, "cut": True}


def event_text(message: Message) -> bytes:
    """The same, of an event that may be too much to be shown."""
    text = text_of(message)
    return text if len(text) <= MAX_DATA else text_of(_reduced(message, len(text)))

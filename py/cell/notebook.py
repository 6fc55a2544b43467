"""What notebooks want of a live kernel besides running cells: colours, values of expressions, the
pager's pages beside the output, whether code is complete, what was run before."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any, Dict, List, Tuple

from IPython.core.error import TryNext

from cell.bundles import Message, bundle, plain
from cell.channel import channel

SESSION = 1  # a kernel has one
MAX_ENTRIES = 10_000
COLOURS = {True: "Neutral", False: "NoColor"}


class _Now:
    coloured = False


def colour(shell: Any, wanted: bool) -> None:
    """Of tracebacks and of what `?` shows; user code may have chosen others since."""
    if wanted == _Now.coloured:
        return
    _Now.coloured = wanted
    name = COLOURS[wanted]
    if hasattr(shell.inspector, "set_theme_name"):  # from IPython 9 on
        shell.colors = name.lower()
        for part in (shell.InteractiveTB, shell.SyntaxTB, shell.inspector):
            part.set_theme_name(name.lower())
        return
    shell.colors = name
    for part in (shell.InteractiveTB, shell.SyntaxTB):
        part.set_colors(name)
    shell.inspector.set_active_scheme(name)


# ---- beside the output ----


def page(shell: Any, text: Any, start: int = 0, screen_lines: int = 0) -> None:
    """A hook for the pager."""
    if not channel.rich:
        raise TryNext
    data = text if isinstance(text, dict) else {"text/plain": text}
    data = bundle(data.get("data", data) if isinstance(text, dict) else data)
    shell.payload_manager.write_payload({"source": "page", "data": data, "start": start})


def expressions(shell: Any, wanted: Dict[str, str]) -> None:
    """The event expressions: a value or an error for each name."""
    if wanted:
        found = shell.user_expressions({str(name): str(text) for name, text in wanted.items()})
        channel.event("expressions", value=plain(found))


def payloads(shell: Any) -> None:
    """The event payload, for each."""
    found = shell.payload_manager.read_payload()
    shell.payload_manager.clear_payload()
    for item in found if channel.rich else ():
        channel.event("payload", value=plain(item))


# ---- questions ----


def is_complete(shell: Any, message: Message) -> Message:
    """{"op":"is_complete","id","code"} -> complete, incomplete with an indent, or invalid"""
    status, indent = shell.input_transformer_manager.check_complete(message["code"])
    answer: Message = {"status": status}
    if status == "incomplete":
        answer["indent"] = " " * (indent or 0)
    return answer


def _chosen(entries: List[Tuple[int, str]], message: Message) -> List[Tuple[int, str]]:
    kind, most = message.get("kind"), message.get("n")
    if kind == "range":
        if message.get("session") not in (None, 0, SESSION):
            return []
        start, stop = message.get("start") or 0, message.get("stop")
        return [pair for pair in entries if pair[0] >= start and (stop is None or pair[0] < stop)]
    if kind == "search":
        pattern = str(message.get("pattern") or "*")
        entries = [pair for pair in entries if fnmatchcase(pair[1], pattern)]
        if message.get("unique"):
            entries = sorted({text: (n, text) for n, text in entries}.values())
    return entries[-most:] if isinstance(most, int) and most > 0 else entries


def history(shell: Any, message: Message) -> Message:
    """{"op":"history","id","kind","raw","output","n","session","start","stop","pattern","unique"}

    kind is tail, range or search; -> (session, number, text) for each, of this kernel alone.
    """
    manager = shell.history_manager
    texts = manager.input_hist_raw if message.get("raw", True) else manager.input_hist_parsed
    entries = [(n, str(text)) for n, text in enumerate(texts) if n > 0]
    found = _chosen(entries, message)[-MAX_ENTRIES:]
    if message.get("output"):
        return {"history": plain([[SESSION, n, [text, None]] for n, text in found])}
    return {"history": plain([[SESSION, n, text] for n, text in found])}

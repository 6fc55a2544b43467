"""The events of an execution: read from the lines of a stream, put together to a result, and cut
into lines of text for callbacks."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple, Union

from cloche._replies import decoded
from cloche.results import Display

LAST = ("end", "failed")
LINE_MAX = 1 << 29  # bytes: some ten times what a result has
Handler = Callable[[Any], Any]  # of an async sandbox, a coroutine function too
Output = Optional[Callable[[str], Any]]


class Event(NamedTuple):
    """One event of a stream: see docs/sandboxes.md for the types and their data."""

    seq: int
    type: str
    data: Dict[str, Any]

    @property
    def text(self) -> str:
        """What stdout or stderr got."""
        return str(self.data.get("data", "")) if self.type in ("stdout", "stderr") else ""


class Lines:
    """Objects, one a line, out of the pieces of a body. An empty line is a sign of life."""

    def __init__(self) -> None:
        self._parts: List[bytes] = []
        self._size = 0  # about

    def feed(self, piece: bytes) -> List[Any]:
        *ends, rest = piece.split(b"\n")
        found = []
        self._size = 0 if ends else self._size + len(piece)
        if self._size > LINE_MAX:
            raise ValueError("a line has no end")
        for end in ends:
            line = b"".join([*self._parts, end])
            self._parts = []
            if line:
                found.append(decoded(line))
        self._parts.append(rest)
        return found


def event_of(line: Any) -> Event:
    """ValueError: it is none."""
    seq = line.get("seq") if isinstance(line, dict) else None
    if not isinstance(seq, int) or seq < 1:
        raise ValueError("an event has no number")
    data = line.get("data")
    return Event(seq, str(line.get("event", "")), data if isinstance(data, dict) else {})


class Assembly:
    """What an execution has told so far: the server's result has the rest, and the two together are
    what it would have sent without a stream."""

    def __init__(self) -> None:
        self._out: Dict[str, List[str]] = {"stdout": [], "stderr": []}
        self._shown: List[Dict[str, Any]] = []
        self._clears = False

    def add(self, event: Event) -> None:
        if event.type == "clear":
            self._clears = bool(event.data.get("wait"))
            if not self._clears:
                self._clear()
        elif event.type in self._out:
            self._settle()
            self._out[event.type].append(event.text)
        elif event.type in ("result", "display"):
            self._settle()
            self._show(event)

    def _settle(self) -> None:
        """clear_output(wait=True) comes true when there is something new."""
        if self._clears:
            self._clear()

    def _clear(self) -> None:
        self._clears = False
        self._shown = []
        for texts in self._out.values():
            texts.clear()

    def _show(self, event: Event) -> None:
        shown = {
            "data": event.data.get("data") or {},
            "metadata": event.data.get("metadata") or {},
            "is_main_result": event.type == "result",
            "display_id": event.data.get("display_id"),
        }
        if not event.data.get("update"):
            self._shown.append(shown)
            return
        for old in self._shown:  # those of earlier executions are not here
            if old["display_id"] == shown["display_id"]:
                old.update(data=shown["data"], metadata=shown["metadata"])

    def end(self, end: Mapping[str, Any]) -> Dict[str, Any]:
        """The whole result, in which the last event has the rest."""
        whole: Dict[str, Any] = {name: "".join(texts) for name, texts in self._out.items()}
        whole["results"] = [
            {name: shown[name] for name in ("data", "metadata", "is_main_result")}
            for shown in sorted(self._shown, key=lambda shown: bool(shown["is_main_result"]))
        ]
        main = [shown for shown in self._shown if shown["is_main_result"]]
        whole["text"] = main[-1]["data"].get("text/plain") if main else None
        whole.update(end)
        return whole


class Reader:
    """Gives a callback whole lines without their ends, so that `print` will do; what has no end
    comes when there is a reason to wait no longer."""

    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self._rest = ""

    def add(self, text: str) -> List[str]:
        *lines, self._rest = (self._rest + text).split("\n")
        return lines

    def take_rest(self) -> List[str]:
        rest, self._rest = self._rest, ""
        return [rest] if rest else []


Due = Tuple[Handler, Union[str, Display, Event]]


class Handlers:
    """The callbacks of a caller: which of them an event calls, and with what."""

    def __init__(
        self,
        on_stdout: Output = None,
        on_stderr: Output = None,
        on_result: Optional[Callable[[Display], Any]] = None,
        on_event: Optional[Callable[[Event], Any]] = None,
    ) -> None:
        given = {"stdout": on_stdout, "stderr": on_stderr}
        self._readers = {name: Reader(fn) for name, fn in given.items() if fn}
        self._on_result = on_result
        self._on_event = on_event

    def __bool__(self) -> bool:
        return bool(self._readers or self._on_result or self._on_event)

    def due(self, event: Event) -> List[Due]:
        calls: List[Due] = []
        reader = self._readers.get(event.type)
        if self._on_event:
            calls.append((self._on_event, event))
        if reader:
            calls += [(reader.handler, line) for line in reader.add(event.text)]
        if self._on_result and event.type in ("result", "display"):
            raw = {**event.data, "is_main_result": event.type == "result"}
            calls.append((self._on_result, Display(raw)))
        if event.type in ("input", *LAST):
            for other in self._readers.values():
                calls += [(other.handler, line) for line in other.take_rest()]
        return calls

# Made by script/sdk-generate: change ../_async/terminal.py instead.
"""A terminal in a live sandbox, over a WebSocket."""

from __future__ import annotations

import json
from types import TracebackType
from typing import Any, Mapping, Optional, Type, Union

from cloche._sync.transport import Transport
from cloche._calls import Call, segment
from cloche._errors import BadReply, refusal
from cloche._replies import decoded
from cloche._sockets import Socket
from cloche.results import CommandResult


class Terminal:
    """What one types into (`write`) and what it shows (`read`). `result` is there at its end."""

    def __init__(self, socket: Socket, command_id: str) -> None:
        self.command_id = command_id
        self.result: Optional[CommandResult] = None
        self._socket = socket

    @classmethod
    def open(
        cls, transport: Transport, sandbox: str, query: Mapping[str, Any], command_id: str = ""
    ) -> Terminal:
        # A WebSocket that is refused does not say why, but the sandbox or the command does.
        place = f"{sandbox}/commands/{segment(command_id)}" if command_id else sandbox
        transport.send(Call("GET", place))
        path = f"{place}/pty" if command_id else f"{sandbox}/commands/pty"
        target = Call("GET", path, query=query).target
        terminal = cls(Socket.open(transport.server, target), command_id)
        try:
            while not terminal.command_id:  # of a new one
                terminal._take()
        except BaseException:
            terminal.close()
            raise
        return terminal

    def read(self) -> bytes:
        """What is shown next, as it comes; nothing at the end."""
        while self.result is None:
            shown = self._take()
            if shown:
                return shown
        return b""

    def read_until(self, text: Union[str, bytes]) -> bytes:
        """All that is shown until this is, or until the end."""
        wanted = text.encode() if isinstance(text, str) else text
        seen = bytearray()
        looked = 0
        while wanted not in seen[looked:]:
            looked = max(0, len(seen) - len(wanted))
            shown = self.read()
            if not shown:
                break
            seen += shown
        return bytes(seen)

    def write(self, data: Union[str, bytes]) -> None:
        """Types."""
        self._socket.send(data.encode() if isinstance(data, str) else data)

    def resize(self, rows: int, cols: int) -> None:
        self._socket.send(json.dumps({"type": "resize", "rows": rows, "cols": cols}))

    def close(self) -> None:
        self._socket.close()

    def _take(self) -> bytes:
        message = self._socket.receive()
        if isinstance(message, bytes):
            return message
        if message is None:
            raise BadReply("the terminal's connection ended before its command did")
        try:
            told = decoded(message.encode())
        except ValueError:
            told = None
        if not isinstance(told, dict):
            raise BadReply("the terminal's connection says what is no message")
        if told.get("type") == "failed":
            raise refusal(told) or BadReply("the terminal failed without saying why")
        if told.get("type") == "start":
            self.command_id = str(told.get("id", ""))
        elif told.get("type") == "end":
            self.result = CommandResult(told)
        return b""

    def __iter__(self) -> Terminal:
        return self

    def __next__(self) -> bytes:
        shown = self.read()
        if not shown:
            raise StopIteration
        return shown

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

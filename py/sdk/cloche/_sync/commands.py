# Made by script/sdk-generate: change ../_async/commands.py instead.
"""Shell lines and programs in a live sandbox."""

from __future__ import annotations

from typing import Any, Callable, List, Mapping, Optional, Sequence, Union

from cloche._sync.events import Events
from cloche._sync.terminal import Terminal
from cloche._sync.transport import Transport, log
from cloche._calls import EVENTS, Call, command_call, segment, without_none
from cloche._codes import NoEvents, NoSuchCommand
from cloche._errors import ClocheError
from cloche._events import Event, Handlers, Output
from cloche._records import listed
from cloche.results import CommandResult


class Command:
    """A command in the background."""

    def __init__(self, transport: Transport, path: str, command_id: str) -> None:
        self.id = command_id
        self._transport = transport
        self._path = f"{path}/{segment(command_id)}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"

    def info(self) -> CommandResult:
        """How it is, with its output so far."""
        return CommandResult(self._transport.json(Call("GET", self._path)))

    def stream(self, after: int = 0) -> Events[CommandResult]:
        """Its events behind number `after`, from its beginning unless given."""
        call = Call(
            "GET",
            f"{self._path}/events",
            query={"after": after},
            headers={"Accept": EVENTS},
            streams=True,
        )
        return Events(self._transport, call, f"{self._path}/events", CommandResult)

    def wait(
        self,
        *,
        on_stdout: Output = None,
        on_stderr: Output = None,
        on_event: Optional[Callable[[Event], Any]] = None,
    ) -> CommandResult:
        """How it ended, when it has."""
        handlers = Handlers(on_stdout, on_stderr, None, on_event)
        try:
            with self.stream() as events:
                events.handle(handlers)
        except NoEvents:
            pass  # it is over for long
        return self.info()

    def write(self, data: str, eof: bool = False) -> None:
        """What it reads next; `eof` says that this was all."""
        self._transport.json(Call("POST", f"{self._path}/stdin", {"data": data, "eof": eof}))

    def signal(self, signal: Union[int, str] = "SIGINT") -> None:
        """To its process group; SIGKILL to all that came from it."""
        self._transport.json(Call("POST", f"{self._path}/signal", {"signal": signal}))

    def kill(self) -> None:
        self.signal("SIGKILL")

    def delete(self) -> None:
        """Kills and forgets it."""
        self._transport.send(Call("DELETE", self._path))


class Commands:
    """The commands of a sandbox."""

    def __init__(self, transport: Transport, path: str) -> None:
        self._transport = transport
        self._sandbox = path
        self._path = f"{path}/commands"

    def run(
        self,
        cmd: Union[str, Sequence[str]],
        *,
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        stdin: Optional[str] = None,
        timeout: Optional[float] = None,
        output_bytes: Optional[int] = None,
        on_stdout: Output = None,
        on_stderr: Output = None,
        on_event: Optional[Callable[[Event], Any]] = None,
    ) -> CommandResult:
        """Runs a line for the shell or, given as a list, a program, and waits for its end."""
        events = self.stream(
            cmd, cwd=cwd, env=env, stdin=stdin, timeout=timeout, output_bytes=output_bytes
        )
        try:
            return events.handle(Handlers(on_stdout, on_stderr, None, on_event))
        except BaseException as error:
            if not isinstance(error, ClocheError) and events.id and not events.is_over:
                self._give_up(events.id)
            events.close()
            raise

    def stream(
        self,
        cmd: Union[str, Sequence[str]],
        *,
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        stdin: Optional[str] = None,
        timeout: Optional[float] = None,
        output_bytes: Optional[int] = None,
    ) -> Events[CommandResult]:
        """The same, with its events as they come."""
        call = command_call(
            self._sandbox,
            cmd,
            timeout=timeout,
            cwd=cwd,
            env=env,
            stdin=stdin,
            output_bytes=output_bytes,
        )
        return Events(self._transport, call, f"{self._path}/{{id}}/events", CommandResult)

    def start(
        self,
        cmd: Union[str, Sequence[str]],
        *,
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        stdin: Optional[str] = None,
        timeout: Optional[float] = None,
        output_bytes: Optional[int] = None,
    ) -> Command:
        """In the background: its stdin stays open, and it has no time limit unless given one."""
        call = command_call(
            self._sandbox,
            cmd,
            background=True,
            timeout=timeout,
            cwd=cwd,
            env=env,
            stdin=stdin,
            output_bytes=output_bytes,
        )
        return self.get((self._transport.json(call))["id"])

    def get(self, command_id: str) -> Command:
        return Command(self._transport, self._path, command_id)

    def list(self) -> List[CommandResult]:
        """Those that run and the last that have ended, without their output."""
        found = self._transport.json(Call("GET", self._path))
        return [CommandResult(command) for command in listed(found["commands"])]

    def terminal(
        self,
        cmd: Optional[str] = None,
        *,
        cwd: Optional[str] = None,
        rows: int = 24,
        cols: int = 80,
        stays: bool = False,
    ) -> Terminal:
        """A terminal with a shell, or with that command. Closing it hangs up unless it `stays`:
        then `attach()` sits down at it again. Needs the package websockets."""
        ending = "continue" if stays else "hangup"
        query = without_none(cmd=cmd, cwd=cwd, rows=rows, cols=cols, on_disconnect=ending)
        return Terminal.open(self._transport, self._sandbox, query)

    def attach(
        self, command_id: str, *, rows: int = 24, cols: int = 80, stays: bool = True
    ) -> Terminal:
        """Sits down at a terminal that stayed; whoever sat there stands up."""
        query = {"rows": rows, "cols": cols, "on_disconnect": "continue" if stays else "hangup"}
        return Terminal.open(self._transport, self._sandbox, query, command_id)

    def _give_up(self, command_id: str) -> None:
        try:
            self.get(command_id).delete()
        except NoSuchCommand:
            pass
        except ClocheError as error:
            log.warning("the command %s could not be ended: %s", command_id, error)

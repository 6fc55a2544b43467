"""What comes back: results of executions and commands, and what there is in a sandbox."""

from __future__ import annotations

import base64
import json
import sys
from typing import Any, Dict, Iterator, List, Mapping, Optional

from cloche._errors import ExecutionFailed
from cloche._records import Field, Many, One, Record

__all__ = [
    "BatchItem",
    "CommandResult",
    "Completions",
    "Denial",
    "Display",
    "Entry",
    "Error",
    "Inspection",
    "KernelInfo",
    "MadeFile",
    "PortInfo",
    "PortLink",
    "PortReply",
    "Profile",
    "Result",
    "SandboxInfo",
    "StoredFile",
    "Usage",
    "Variable",
    "Variables",
]

NO_TEXT: Optional[str] = None
NO_INT: Optional[int] = None
NO_FLOAT: Optional[float] = None
SHAPE: Optional[List[int]] = None


class Error(Record):
    """An exception that the code raised."""

    name = Field("")
    value = Field("")
    traceback: Field[List[str]] = Field([])

    def __str__(self) -> str:
        return "".join(line.rstrip("\n") + "\n" for line in self.traceback) or (
            f"{self.name}: {self.value}\n"
        )


class Usage(Record):
    """What an execution cost."""

    wall_ms = Field(0)
    queue_ms = Field(0)
    cpu_ms = Field(0)
    memory_peak_bytes = Field(0)
    output_bytes = Field(0)
    network: Field[List[Dict[str, Any]]] = Field([])


class Denial(Record):
    """Something that the sandbox refused to the code."""

    op = Field("")
    detail = Field("")
    rule = Field("")


class MadeFile(Record):
    """A file that the code made or changed."""

    path = Field("")
    kind = Field("")
    file_id = Field(NO_TEXT)
    size_bytes = Field(0)


class StoredFile(Record):
    """A file in the server's store."""

    file_id = Field("")
    filename = Field("")
    size_bytes = Field(0)
    upload_time = Field(NO_FLOAT)


class Display(Record):
    """A value or a picture, in every form that the kernel gave it (`data`, by MIME type)."""

    data: Field[Dict[str, Any]] = Field({})
    metadata: Field[Dict[str, Any]] = Field({})
    is_main_result = Field(False)  #: the value of the last expression

    def _text(self, mime: str) -> Optional[str]:
        value = self.data.get(mime)
        return "".join(value) if isinstance(value, list) else value

    def _bytes(self, mime: str) -> Optional[bytes]:
        value = self._text(mime)
        return None if value is None else base64.b64decode(value)

    @property
    def text(self) -> Optional[str]:
        return self._text("text/plain")

    @property
    def html(self) -> Optional[str]:
        return self._text("text/html")

    @property
    def markdown(self) -> Optional[str]:
        return self._text("text/markdown")

    @property
    def latex(self) -> Optional[str]:
        return self._text("text/latex")

    @property
    def svg(self) -> Optional[str]:
        return self._text("image/svg+xml")

    @property
    def json(self) -> Any:
        return self.data.get("application/json")

    @property
    def png(self) -> Optional[bytes]:
        return self._bytes("image/png")

    @property
    def jpeg(self) -> Optional[bytes]:
        return self._bytes("image/jpeg")

    @property
    def pdf(self) -> Optional[bytes]:
        return self._bytes("application/pdf")

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        return self.data, self.metadata


class Result(Record):
    """What an execution gave. A notebook that shows it shows what the code showed."""

    id = Field("")
    status = Field("")  #: ok, error, timeout, memory_exceeded, killed or interrupted
    text = Field(NO_TEXT)  #: the value of the last expression
    stdout = Field("")
    stderr = Field("")
    results = Many(Display)
    error = One(Error)
    exit_code = Field(NO_INT)
    signal = Field(NO_INT)
    timed_out = Field(False)
    duration_ms = Field(0)
    execution_count = Field(NO_INT)
    kernel_id = Field(NO_TEXT)
    kernel_restarted = Field(False)  #: its variables were lost before this execution
    stdout_truncated = Field(False)
    stderr_truncated = Field(False)
    results_truncated = Field(False)
    files = Many(MadeFile)
    limit_hit = Field(NO_TEXT)
    warnings: Field[List[str]] = Field([])
    denied = Many(Denial)
    usage = One(Usage)
    profile = Field("")
    warm = Field(False)

    @property
    def ok(self) -> bool:
        return self.status == "ok"

    @property
    def failure(self) -> str:
        """In a sentence, why it is not ok."""
        why = f": {self.error.name}: {self.error.value}" if self.error else ""
        limit = f", at its limit of {self.limit_hit}" if self.limit_hit else ""
        return f"the code ended with status {self.status}{limit}{why}"

    def check(self) -> Result:
        """Itself, if it is ok; else raises ExecutionFailed."""
        if not self.ok:
            raise ExecutionFailed(self)
        return self

    def _ipython_display_(self) -> None:
        from IPython.display import display  # only a notebook calls this

        sys.stdout.write(self.stdout)
        sys.stderr.write(self.stderr)
        for shown in self.results:
            display(shown.data, metadata=shown.metadata, raw=True)
        if self.error:
            printed = str(self.error) in self.stderr  # by a program, which is no cell
            sys.stderr.write("" if printed else str(self.error))
        elif not self.ok:
            sys.stderr.write(self.failure + "\n")


class BatchItem(Record):
    """One line of a batch: a result, or why there is none."""

    index = Field(0)

    @property
    def problem(self) -> Optional[Exception]:
        """Why the server did not take it, as the exception that `run()` would have raised."""
        from cloche._errors import refusal

        return refusal(self.raw) if "status" not in self.raw else None

    @property
    def result(self) -> Result:
        """Raises what is the problem, if there is no result."""
        if self.problem:
            raise self.problem
        return Result(self.raw)


class CommandResult(Record):
    """A command: what it printed so far and, when it is over, how it ended."""

    id = Field("")
    status = Field("")  #: running, exited, …
    cmd = Field("")
    cwd = Field("")
    terminal = Field(False)
    created = Field(0.0)
    stdout = Field("")
    stderr = Field("")
    exit_code = Field(NO_INT)
    signal = Field(NO_INT)
    timed_out = Field(False)
    duration_ms = Field(0)
    stdout_truncated = Field(False)
    stderr_truncated = Field(False)
    denied = Many(Denial)
    problem = Field(NO_TEXT)  #: why it could not be started, or that memory ran out
    warnings: Field[List[str]] = Field([])

    @property
    def ok(self) -> bool:
        return self.exit_code == 0

    @property
    def failure(self) -> str:
        ended = "its time was up" if self.timed_out else f"exit status {self.exit_code}"
        last = self.stderr.strip().rpartition("\n")[2]
        return f"{self.cmd!r} failed: {self.problem or ended}" + (f" ({last})" if last else "")

    def check(self) -> CommandResult:
        """Itself, if its exit status is 0; else raises ExecutionFailed."""
        if not self.ok:
            raise ExecutionFailed(self)
        return self


class SandboxInfo(Record):
    """A live sandbox, as it was when it was looked at."""

    id = Field("")
    name = Field(NO_TEXT)
    state = Field("")  #: running or paused
    profile = Field("")
    metadata: Field[Dict[str, str]] = Field({})
    created = Field(0.0)  #: seconds since 1970, as all times
    expires = Field(0.0)
    ttl_seconds = Field(0)
    idle_seconds = Field(0)
    idle_expires = Field(NO_FLOAT)
    limits: Field[Dict[str, Any]] = Field({})
    usage: Field[Dict[str, Any]] = Field({})
    network: Field[Any] = Field("none")
    binds: Field[List[Dict[str, str]]] = Field([])
    port = Field(NO_INT)  #: of its own, on the server's loopback
    executions = Field(0)


class KernelInfo(Record):
    """A kernel, as it was when it was looked at."""

    id = Field("")
    state = Field("")  #: starting, idle or busy
    execution_count = Field(0)
    execution_id = Field(NO_TEXT)  #: what runs in it
    queued = Field(0)
    restarts = Field(0)
    cwd = Field("")
    is_default = Field(False)
    limits: Field[Dict[str, Any]] = Field({})
    usage: Field[Dict[str, Any]] = Field({})


class Variable(Record):
    """A variable of a kernel."""

    name = Field("")
    type = Field("")
    len = Field(NO_INT)
    shape = Field(SHAPE)
    nbytes = Field(NO_INT)
    repr = Field("")


class Variables(Record):
    """The variables of a kernel."""

    variables = Many(Variable)
    total = Field(0)
    truncated = Field(False)

    def __iter__(self) -> Iterator[Variable]:
        return iter(self.variables)

    def __len__(self) -> int:
        return len(self.raw.get("variables") or ())

    def __getitem__(self, name: str) -> Variable:
        for variable in self:
            if variable.name == name:
                return variable
        raise KeyError(name)


class Completions(Record):
    """What could stand from `start` to `end` in the code."""

    matches: Field[List[str]] = Field([])
    types: Field[List[str]] = Field([])
    start = Field(0)
    end = Field(0)


class Inspection(Record):
    """What a name is."""

    found = Field(False)
    data: Field[Dict[str, Any]] = Field({})

    @property
    def text(self) -> str:
        return str(self.data.get("text/plain", ""))


class PortInfo(Record):
    """A port on which something listens in a sandbox."""

    port = Field(0)
    path = Field("")  #: on the server of cloche
    url = Field(NO_TEXT)  #: of its own, where the operator has a domain for that


class PortLink(Record):
    """What opens a server inside to a browser."""

    url = Field("")
    expires = Field(0)  #: seconds since 1970


class PortReply:
    """What a server inside answered. `headers` are found in any case of letters."""

    def __init__(self, status: int, headers: Mapping[str, str], content: bytes) -> None:
        self.status = status
        self.headers = headers
        self.content = content

    def __repr__(self) -> str:
        return f"PortReply(status={self.status}, {len(self.content)} bytes)"

    @property
    def text(self) -> str:
        return self.content.decode(errors="replace")

    def json(self) -> Any:
        return json.loads(self.content)


class Entry(Record):
    """A file or directory of a sandbox."""

    name = Field("")
    path = Field("")  #: from the workspace
    type = Field("")  #: file, directory, symlink or other
    size_bytes = Field(0)
    mode = Field("")
    modified = Field(0.0)
    target = Field(NO_TEXT)  #: of a symlink

    @property
    def is_dir(self) -> bool:
        return self.type == "directory"


class Profile(Record):
    """An interpreter with what it preloads."""

    name = Field("")
    state = Field("")
    version = Field(NO_TEXT)
    problem = Field(NO_TEXT)
    modules: Field[List[str]] = Field([])
    ready_sandboxes = Field(0)
    env: Field[Dict[str, str]] = Field({})
    limits: Field[Dict[str, Any]] = Field({})  #: of a program that asks for nothing
    live_limits: Field[Dict[str, Any]] = Field({})  #: the same of a live sandbox
    own = Field(False)  #: this tenant's, made with make_profile(); only such a one has the rest
    requirements: Field[List[str]] = Field([])
    installed: Field[List[Dict[str, str]]] = Field([])  #: name, version and sha256 of each package
    bytes = Field(0)  #: of the disk
    users = Field(0)  #: sandboxes that have it

    @property
    def base(self) -> Optional[str]:
        """The operator's profile that it is made from."""
        value = self.raw.get("from")
        return None if value is None else str(value)

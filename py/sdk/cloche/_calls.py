"""Requests, before they are sent: the same for async and plain code."""

from __future__ import annotations

import dataclasses
import json
import uuid
from pathlib import PurePath
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union
from urllib.parse import quote, unquote

from cloche._errors import BadArgument
from cloche._uploads import Form, Source, Upload, inputs_of

SILENCE_S = 60.0  # a stream gives a sign of life every 10 s
INSIDE_S = 150.0  # the server gives an answer of a server inside less
QUEUE_S = 90.0  # what a request may wait for its turn, with time to spare
EVENTS = "application/x-ndjson"
REPLY_MAX = 1 << 29  # bytes: some ten times what a result has
URL_BYTES = "/?:@!$&'()*+,;=%-._~[]"  # of a path with its query, besides letters and digits
PathLike = Union[str, "PurePath"]
Network = Union[None, str, List[Any], Mapping[str, Any]]


@dataclasses.dataclass
class Call:
    """One request."""

    method: str
    path: str
    body: Any = None  # JSON
    upload: Optional[Upload] = None
    query: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    headers: Dict[str, str] = dataclasses.field(default_factory=dict)
    key: str = ""  # an Idempotency-Key: a POST with one may be sent again
    streams: bool = False
    reply_max: int = REPLY_MAX  # bytes of a reply that does not stream
    silence_s: float = SILENCE_S
    inside: bool = False  # for a server in a sandbox: what it says is no refusal of ours
    # Files that are uploaded before, and deleted when the reply is there.
    inputs: List[Tuple[str, Upload]] = dataclasses.field(default_factory=list)
    stored: List[str] = dataclasses.field(default_factory=list)

    def __post_init__(self) -> None:
        """SECURITY: dots would lead to another place of the API, one that the caller did not mean:
        a path in it may come from a stranger."""
        names = self.path.partition("?")[0].split("/")
        if not {".", ".."}.isdisjoint(map(unquote, names)):
            raise BadArgument(f"{self.path!r} has a name in it that names nothing: '.' or '..'")

    @property
    def is_post(self) -> bool:
        return self.method == "POST"

    @property
    def may_repeat(self) -> bool:
        if self.inside:
            return self.method in ("GET", "HEAD", "OPTIONS")
        return not self.is_post or bool(self.key)

    @property
    def target(self) -> str:
        if not self.query:
            return self.path
        words = (f"{quote(k, safe='')}={quote(_word(v), safe='')}" for k, v in self.query.items())
        return f"{self.path}?{'&'.join(words)}"

    def content(self) -> Optional[bytes]:
        if self.body is None:
            return None
        try:
            return json.dumps(self.body, ensure_ascii=False, separators=(",", ":")).encode()
        except (TypeError, ValueError) as error:  # UnicodeEncodeError is one
            raise BadArgument(f"the request cannot be written as JSON: {error}") from None

    def all_headers(self) -> Dict[str, str]:
        headers = dict(self.headers)
        if self.body is not None:
            headers["Content-Type"] = "application/json"
        if self.streams and not self.inside and "Accept" not in headers:
            headers["Accept"] = EVENTS
        if self.key:
            headers["Idempotency-Key"] = self.key
        return headers


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def new_key() -> str:
    return str(uuid.uuid4())


def without_none(**fields: Any) -> Dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def milliseconds(seconds: Optional[float]) -> Optional[int]:
    if seconds is None:
        return None
    if not 0 < seconds < float("inf"):
        raise BadArgument(f"timeout is a number of seconds above 0, not {seconds!r}")
    return max(1, round(seconds * 1000))


def policy_of(network: Network) -> Any:
    return dict(network) if isinstance(network, Mapping) else network


def run_call(
    code: str,
    *,
    timeout: Optional[float] = None,
    files: Optional[Mapping[str, Source]] = None,
    network: Network = None,
    idempotency_key: Optional[str] = None,
    **fields: Any,
) -> Call:
    """POST /v1/run."""
    inputs = inputs_of(files)
    return Call(
        "POST",
        "/v1/run",
        without_none(
            code=code,
            timeout_ms=milliseconds(timeout),
            files=inputs.inline or None,
            network=policy_of(network),
            **fields,
        ),
        key=new_key() if idempotency_key is None else idempotency_key,
        silence_s=(timeout or SILENCE_S) + QUEUE_S,
        inputs=inputs.large,
    )


def make_profile_call(
    name: str,
    requirements: Sequence[str],
    base: Optional[str],
    env: Optional[Mapping[str, str]],
    limits: Optional[Mapping[str, float]],
) -> Call:
    if isinstance(requirements, str):
        raise BadArgument("requirements is a list of packages: make_profile(name, [...])")
    given = {"from": base, "env": env, "limits": limits}
    body = {"name": name, "requirements": list(requirements)}
    body.update({k: v for k, v in given.items() if v is not None})  # type: ignore[misc]
    return Call("POST", "/v1/profiles", body, key=new_key())


def talk_call(code: str, **fields: Any) -> Call:
    """The same as the first message to GET /v1/run."""
    call = run_call(code, idempotency_key="", **fields)
    return dataclasses.replace(call, method="GET", body={**call.body, "allow_stdin": True})


def batch_call(items: List[Mapping[str, Any]], concurrency: Optional[int]) -> Call:
    """POST /v1/run/batch. Each item is what `run()` takes, as a dictionary."""
    bodies = []
    for item in items:
        one = run_call(**item)
        if one.inputs:
            raise BadArgument("a batch takes no files that are larger than 1 MiB, or 16 together")
        bodies.append(one.body)
    return Call(
        "POST",
        "/v1/run/batch",
        without_none(items=bodies, concurrency=concurrency),
        key=new_key(),
        streams=True,
    )


def cell_call(
    path: str,
    code: str,
    *,
    timeout: Optional[float] = None,
    on_disconnect: str = "continue",
    idempotency_key: Optional[str] = None,
    **fields: Any,
) -> Call:
    """POST /v1/sandboxes/{id}/execute. What goes on without us may be asked for again: with
    `on_disconnect="interrupt"` there is no key, since work with a key always goes on."""
    goes_on = on_disconnect == "continue"
    return Call(
        "POST",
        f"{path}/execute",
        without_none(
            code=code,
            timeout_ms=milliseconds(timeout),
            on_disconnect=on_disconnect,
            **fields,
        ),
        key=idempotency_key if idempotency_key is not None else new_key() if goes_on else "",
        streams=True,
    )


def command_call(
    path: str,
    cmd: Union[str, Sequence[str]],
    *,
    timeout: Optional[float] = None,
    background: bool = False,
    **fields: Any,
) -> Call:
    """POST /v1/sandboxes/{id}/commands: a string is a line for the shell, a list a program."""
    what: Dict[str, Any] = {"cmd": cmd} if isinstance(cmd, str) else {"argv": list(cmd)}
    ending: Dict[str, Any] = {"background": True}
    if not background:
        ending = {"on_disconnect": "continue"}
    return Call(
        "POST",
        f"{path}/commands",
        {
            **what,
            **without_none(timeout_ms=milliseconds(timeout), **fields),
            **ending,
        },
        key=new_key(),
        streams=not background,
    )


def store_call(upload: Upload, filename: str) -> Call:
    """POST /v1/files."""
    form = Form(upload, filename)
    return Call(
        "POST", "/v1/files", upload=form, headers={"Content-Type": form.type}, key=new_key()
    )


def inside_path(box: str, port: int, path: str) -> str:
    """A path of a server inside, perhaps with a query, as one of ours."""
    if not 1 <= port <= 65535:
        raise BadArgument(f"port is {port!r}; it must be from 1 to 65535")
    return f"{box}/ports/{port}/{quote(path[path.startswith('/') :], safe=URL_BYTES)}"


def sent(data: Optional[Source], json_data: Any) -> Optional[Source]:
    if json_data is None:
        return data
    if data is not None:
        raise BadArgument("data and json exclude each other")
    return Call("", "", json_data).content()


def segment(name: str) -> str:
    """An id or a name as one part of a URL's path."""
    if not name:
        raise BadArgument("an empty text names nothing on the server")
    return quote(name, safe="")


def place_of(path: PathLike) -> str:
    """A path in the workspace as a URL has it."""
    text = str(path)
    for start in ("/workspace/", "./"):
        if text.startswith(start):
            text = text[len(start) :]
    if text in ("/workspace", "."):
        text = ""
    if text.startswith("/"):
        raise BadArgument(f"{text!r} is not below /workspace: give a path relative to it")
    return quote(text, safe="/")

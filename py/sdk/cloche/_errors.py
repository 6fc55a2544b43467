"""What every exception of this package is made of. `cloche.errors` has them all."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Dict, Mapping, Optional, Type, Union

if TYPE_CHECKING:
    from cloche.results import CommandResult, Profile, Result

__all__ = [
    "APIError",
    "BadArgument",
    "BadReply",
    "BuildFailed",
    "ClocheError",
    "ConnectionLost",
    "ExecutionFailed",
    "NoServer",
    "OlderServer",
]


class ClocheError(Exception):
    """Something is wrong with a request or the service. What is wrong with the code that ran is in
    its result."""


class BadArgument(ClocheError, ValueError):
    """An argument or a setting that cannot be used; nothing was sent."""


class NoServer(ClocheError, ConnectionError):
    """Nobody answers at the server's URL."""


class ConnectionLost(ClocheError, ConnectionError):
    """The connection ended before the reply did, and asking again could run something twice."""

    def __init__(self, message: str, execution_id: str = "") -> None:
        super().__init__(message)
        self.execution_id = execution_id  #: of what may still run, where that is known


class BadReply(ClocheError):
    """What answered is no cloche server."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class OlderServer(ClocheError):
    """The server is too old for what was asked of it."""

    def __init__(self, message: str, version: str) -> None:
        super().__init__(message)
        self.version = version  #: of the server, or an empty string


class ExecutionFailed(ClocheError):
    """What `check()` of a result raises: the code or the command did not end well."""

    def __init__(self, result: Union[Result, CommandResult]) -> None:
        super().__init__(result.failure)
        self.result = result


class BuildFailed(ClocheError):
    """A profile could not be built: `profile.problem` says why."""

    def __init__(self, message: str, profile: Profile) -> None:
        super().__init__(message)
        self.profile = profile


class APIError(ClocheError):
    """A refusal of the server. Each code has a class of its own; an unknown code has this one."""

    code = ""  #: stable, see docs/errors.md

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        code: str = "",
        remediation: str = "",
        retryable: bool = False,
        detail: Any = None,
        request_id: str = "",
        retry_after: Optional[float] = None,
    ) -> None:
        super().__init__(message)
        self.message = message  #: what happened
        self.status = status  #: of HTTP; 0 in a stream
        self.code = code or self.code
        self.remediation = remediation  #: what to do
        self.retryable = retryable
        self.detail = detail
        self.request_id = request_id  #: which is in the server's log
        self.retry_after = retry_after  #: seconds

    def __str__(self) -> str:
        words = self.message + (f"; {self.remediation}" if self.remediation else "")
        facts = [self.code or f"status {self.status}"]
        if self.request_id:
            facts.append(f"request {self.request_id}")
        return f"{words} ({', '.join(facts)})"

    def __reduce__(self) -> Any:  # copied and sent to other processes, as exceptions are
        return _remade, (type(self), self.message, dict(self.__dict__))


def _remade(kind: Type[APIError], message: str, state: Dict[str, Any]) -> APIError:
    error = kind(message)
    error.__dict__.update(state)
    return error


# What to do about it in a program, where that is not what the server says.
REMEDIES = {
    "no_key": "put the key into CLOCHE_API_KEY, or give it as api_key=",
    "bad_key": "check CLOCHE_API_KEY, or what is given as api_key=",
    "unknown_profile": "Client.profiles() lists them; auto picks one",
    "limit_too_high": "ask for less; Client.info() tells the maxima",
    "bad_fields": "see the documentation of the field",
    "file_too_large": "send a smaller file, write it into a live sandbox instead, or have the"
    " operator raise --max-file-mb",
    "disk_full": "send less, or give the sandbox more disk (limits={'disk_mb': ...})",
    "no_such_path": "files.list() shows what there is",
    "no_such_sandbox": "Sandbox.list() shows those there",
    "sandbox_paused": "resume() it first",
}


def refusal(
    body: Any,
    *,
    status: int = 0,
    request_id: str = "",
    retry_after: Optional[float] = None,
) -> Optional[APIError]:
    """The exception for an error of ours, or None when it is none."""
    from cloche._codes import CODES

    error = body.get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict):
        return None
    code = str(error.get("code") or "")
    kind: Type[APIError] = CODES.get(code, APIError)
    return kind(
        _message(error, body.get("detail")),
        status=status,
        code=code,
        remediation=REMEDIES.get(code) or str(error.get("remediation") or ""),
        retryable=error.get("retryable") is True,
        detail=body.get("detail"),
        request_id=request_id,
        retry_after=retry_after,
    )


def refusal_of(
    status: int, headers: Mapping[str, str], content: bytes, where: str
) -> Any:  # APIError or BadReply
    """The exception for a reply that is no success."""
    request_id = headers.get("x-request-id", "")
    retry_after = _seconds(headers.get("retry-after"))
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        body = None
    found = refusal(body, status=status, request_id=request_id, retry_after=retry_after)
    if found is not None:
        return found
    if request_id and not content:  # the reply to a HEAD
        return APIError("the server said no", status=status, request_id=request_id)
    if request_id and isinstance(body, dict) and "detail" in body:  # of a dialect
        detail = body["detail"]
        return APIError(str(detail), status=status, detail=detail, request_id=request_id)
    return BadReply(
        f"the answer of {where} has status {status} and is none of cloche's; check the URL, and"
        " what stands between",
        status,
    )


def _seconds(text: Optional[str]) -> Optional[float]:
    try:
        return max(0.0, float(text or ""))
    except ValueError:
        return None


def _message(error: Dict[str, Any], detail: Any) -> str:
    """Of wrong fields, which one it is."""
    message = str(error.get("message") or "the server did not say why")
    first = detail[0] if isinstance(detail, list) and detail else None
    if isinstance(first, dict) and first.get("msg"):
        parts = first.get("loc")
        place = ".".join(map(str, parts)) if isinstance(parts, list) else ""
        message = f"the server refused the request: {place}: {first['msg']}"
    return message

"""What a server sends, which may be broken or hostile: it is read with bounds, and what is missing
in it is an exception of ours."""

from __future__ import annotations

import json
from typing import Any, Dict

import httpx

from cloche._calls import Call
from cloche._errors import BadReply

# Of a body that has been read they are true no more.
UNDONE = ("content-encoding", "transfer-encoding", "content-length")


class Reply(Dict[str, Any]):
    """A JSON object; a member that is not there is no KeyError."""

    def __missing__(self, name: str) -> Any:
        raise BadReply(f"the server's reply has no {name!r}; check what stands between")


def decoded(text: bytes) -> Any:
    """JSON; a ValueError, however deep it is."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is too deep") from None


def is_answer(call: Call, response: httpx.Response) -> bool:
    """What was asked for, and no refusal. SECURITY: a server inside may say what looks like one of
    ours, but the server of cloche alone can leave out its mark."""
    return response.is_success or (call.inside and "x-cloche-port" in response.headers)


def whole(response: httpx.Response, content: bytes) -> httpx.Response:
    """The same reply with its body."""
    headers = [pair for pair in response.headers.multi_items() if pair[0] not in UNDONE]
    return httpx.Response(
        response.status_code,
        headers=headers,
        content=content,
        request=response.request,
    )

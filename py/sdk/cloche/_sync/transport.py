# Made by script/sdk-generate: change ../_async/transport.py instead.
"""Requests to one server: sent, logged, sent again where that is safe, refused with the exception
of their code."""

from __future__ import annotations

import logging
import time
from typing import Any, Dict, List

import httpx

from cloche._both import pieces_of, sleep
from cloche._calls import Call, segment, store_call
from cloche._errors import (
    APIError,
    BadArgument,
    BadReply,
    ClocheError,
    ConnectionLost,
    NoServer,
    OlderServer,
    refusal_of,
)
from cloche._replies import Reply, decoded, is_answer, whole
from cloche._records import listed
from cloche._retry import Tries, passes
from cloche._settings import CONNECT_S, CONNECTIONS, IDLE_CONNECTIONS, KEEP_S, Server
from cloche._uploads import Upload

log = logging.getLogger("cloche")
NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
OUR_FAULT = (httpx.LocalProtocolError, httpx.UnsupportedProtocol)
KEYS_REST_S = 60.0


class Transport:
    """Connections to a server, which are kept."""

    def __init__(self, server: Server, retry_seconds: float) -> None:
        self.server = server
        self._retry_s = retry_seconds
        self._has_met = False  # somebody answered before
        self._keyless_until = 0.0
        limits = httpx.Limits(
            max_connections=CONNECTIONS,
            max_keepalive_connections=IDLE_CONNECTIONS,
            keepalive_expiry=KEEP_S,
        )
        options = server.options()
        if server.socket:
            options["transport"] = httpx.HTTPTransport(uds=server.socket, limits=limits)
        self._http = httpx.Client(headers=server.headers, limits=limits, **options)

    def close(self) -> None:
        self._http.close()

    def tries(self) -> Tries:
        return Tries(self._retry_s)

    # ---- requests

    def json(self, call: Call) -> Any:
        """The reply, which is a JSON object; an empty one if there is nothing in it."""
        found = self.value(call)
        if not isinstance(found, dict):
            raise self._no_cloche()
        return Reply(found)

    def value(self, call: Call) -> Any:
        """The reply, which is JSON of any kind."""
        response = self.send(call)
        try:
            return decoded(response.content) if response.content else {}
        except ValueError:
            raise self._no_cloche(response.status_code) from None

    def whole(self, call: Call, member: str) -> List[Any]:
        """All of a list, which may come in pages."""
        found: List[Any] = []
        while True:
            page = self.json(call)
            found += listed(page[member])
            if page.get("next") in (None, call.query.get("after")):
                return found
            call.query = {**call.query, "after": page["next"]}

    def send(self, call: Call) -> httpx.Response:
        """The reply, once it is a good one. Of a call that streams, its body is yet to be read."""
        self.store_inputs(call)
        tries = self.tries()
        began = time.monotonic()
        may_be_done = False  # an attempt may have arrived
        while True:
            if not may_be_done:
                self._mind_keys(call)
            try:
                response = self._send_once(call)
                self._has_met = True
                if is_answer(call, response):
                    return response
                pause = self._pause_after_refusal(call, tries, response, may_be_done)
            except httpx.TransportError as error:
                pause = self._pause_after_loss(call, tries, error, began)
                may_be_done = may_be_done or not isinstance(error, NOT_SENT)
            except httpx.DecodingError as error:
                raise BadReply(f"what {self.server.shown} sent cannot be read: {error}") from error
            sleep(pause)

    def _send_once(self, call: Call) -> httpx.Response:
        began = time.monotonic()
        headers = call.all_headers()
        content: Any = call.content()
        if call.upload:
            headers["Content-Length"] = str(call.upload.size)
            content = pieces_of(call.upload)
        request = self._http.build_request(
            call.method,
            self.server.base + call.target,
            content=content,
            headers=headers,
            timeout=httpx.Timeout(call.silence_s, connect=CONNECT_S, pool=None),
        )
        response = self._http.send(request, stream=True)
        if not call.streams or not is_answer(call, response):
            response = self._whole(call, response)
        if log.isEnabledFor(logging.DEBUG):
            took_ms = (time.monotonic() - began) * 1e3
            number = response.headers.get("x-request-id", "none")
            words = (call.method, call.path, response.status_code, took_ms, number)
            log.debug("%s %s: %d after %.0f ms, request %s", *words)
        return response

    def _whole(self, call: Call, response: httpx.Response) -> httpx.Response:
        """With all of its body, which has a bound."""
        if call.method == "HEAD":
            response.read()
            return response
        pieces = []
        size = 0
        try:
            for piece in response.iter_bytes():
                pieces.append(piece)
                size += len(piece)
                if size > call.reply_max:
                    raise BadReply(
                        f"the reply to {call.method} {call.path} has more than {call.reply_max}"
                        " bytes; read large files in pieces, or download() them",
                        response.status_code,
                    )
        finally:
            response.close()
        return whole(response, b"".join(pieces))

    # ---- refusals

    def _pause_after_refusal(
        self, call: Call, tries: Tries, response: httpx.Response, may_be_done: bool
    ) -> float:
        """How long to wait before it is sent again; raises what it comes to otherwise."""
        error = refusal_of(
            response.status_code, response.headers, response.content, self.server.shown
        )
        is_full = isinstance(error, APIError) and error.code == "idempotency_keys_full"
        if is_full and call.key and call.is_post and not may_be_done:
            self._keyless_until = time.monotonic() + (error.retry_after or KEYS_REST_S)
            log.warning("%s; going on without keys for a while", error)
            call.key = ""
            return 0.0
        if isinstance(error, APIError) and error.code in ("no_route", "bad_method"):
            raise self._older(call) from error
        if not call.may_repeat or not passes(error, call.is_post):
            raise error
        pause = tries.next_pause(error.retry_after if isinstance(error, APIError) else None)
        if pause is None:
            raise error
        log.info("%s %s: %s; again in %.1f s", call.method, call.path, error, pause)
        return pause

    def _mind_keys(self, call: Call) -> None:
        """While the server has no room for keys, requests go without one, and once only: not those
        that may have arrived with one."""
        if call.key and call.is_post and time.monotonic() < self._keyless_until:
            call.key = ""

    def _older(self, call: Call) -> ClocheError:
        version = self._version()
        if not version:
            return self._no_cloche()
        return OlderServer(
            f"the server at {self.server.shown} is cloche {version}, which has no {call.method}"
            f" {call.path}; update the server, or use an older version of this package",
            version,
        )

    def _version(self) -> str:
        try:
            info = decoded((self._send_once(Call("GET", "/v1/info"))).content)
        except (httpx.RequestError, ClocheError, ValueError):
            return ""
        return str(info.get("version", "")) if isinstance(info, dict) else ""

    def _no_cloche(self, status: int = 0) -> BadReply:
        return BadReply(
            f"what answers at {self.server.shown} is no cloche server; check the URL", status
        )

    # ---- connections that are lost

    def _pause_after_loss(
        self, call: Call, tries: Tries, error: httpx.TransportError, began: float
    ) -> float:
        if isinstance(error, OUR_FAULT):
            raise BadArgument(f"the request cannot be sent: {error}") from error
        if isinstance(error, NOT_SENT):
            # One that was there before is back within a second or two.
            pause = tries.next_pause() if self._has_met else None
            if pause is None:
                raise self.nobody(error) from error
        else:
            pause = tries.next_pause() if call.may_repeat else None
            if pause is None or (call.is_post and self._is_new(began)):
                raise self.lost(call, error) from error
        log.info("%s %s: %r; again in %.1f s", call.method, call.path, error, pause)
        return pause

    def _is_new(self, began: float) -> bool:
        """Whether the server was started after that moment: then it does not know our key, and
        what an earlier one started for it may still run."""
        elapsed = time.monotonic() - began
        try:
            info = self.json(Call("GET", "/v1/info"))
            return not float(info["uptime_seconds"]) > elapsed
        except (ClocheError, KeyError, TypeError, ValueError):
            return True

    def nobody(self, error: httpx.TransportError) -> NoServer:
        return NoServer(
            f"no server answers at {self.server.shown} ({error or type(error).__name__}); start one"
            " with `cloche serve`, or name another in CLOCHE_SERVER or as base_url="
        )

    def lost(self, call: Call, error: Exception, execution_id: str = "") -> ConnectionLost:
        why = str(error) or type(error).__name__
        if isinstance(error, httpx.TimeoutException):
            why = f"no sign of life for {call.silence_s:.0f} s"
        if call.inside:
            what = "before the answer was whole; the server inside may have got the request"
        elif call.upload:
            what = f"while {call.upload.size} bytes were sent; it may be more than disk_mb of the"
            what += " sandbox or --max-file-mb of the server: info() says, then send it again"
        elif call.is_post:
            what = "before the reply was there; it may have been carried out, so look before you"
            what += " ask again"
        else:
            what = "before the reply was there; ask again"
        return ConnectionLost(
            f"the connection to {self.server.shown} was lost ({why}) in {call.method} {call.path},"
            f" {what}",
            execution_id,
        )

    # ---- files that go with a request

    def store_inputs(self, call: Call) -> None:
        """Those that are too large to be in the request."""
        if not call.inputs:
            return
        entries = []
        for path, upload in call.inputs:
            stored = self.store(upload, "input")
            entries.append({"path": path, "file_id": stored["file_id"]})
            call.stored.append(stored["file_id"])
            upload.close()
        call.inputs = []
        call.body["files"] = call.body.get("files", []) + entries

    def store(self, upload: Upload, filename: str) -> Dict[str, Any]:
        """POST /v1/files."""
        stored: Dict[str, Any] = self.json(store_call(upload, filename))
        return stored

    def unstore(self, call: Call) -> None:
        """What a request needed is no longer needed; else it would stay for an hour."""
        while call.stored:
            try:
                self.send(Call("DELETE", f"/v1/files/{segment(call.stored.pop())}"))
            except ClocheError as error:
                log.info("a stored file was not deleted: %s", error)

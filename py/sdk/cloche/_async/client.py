"""A client of one server."""

from __future__ import annotations

from types import TracebackType
from typing import (
    Any,
    AsyncIterator,
    Callable,
    Dict,
    Iterable,
    List,
    Mapping,
    Optional,
    Sequence,
    Type,
)

import httpx

from cloche._async.events import AsyncEvents
from cloche._async.stored import AsyncStored
from cloche._async.talk import AsyncTalk
from cloche._async.transport import AsyncTransport
from cloche._calls import (
    Call,
    Network,
    batch_call,
    make_profile_call,
    run_call,
    segment,
    talk_call,
)
from cloche._errors import BadArgument, BadReply, BuildFailed, refusal
from cloche._events import Event, Handlers, Lines, Output
from cloche._settings import Server
from cloche._uploads import Source
from cloche.results import BatchItem, Display, Profile, Result


class AsyncClient:
    """A server: CLOCHE_SERVER and CLOCHE_API_KEY, unless given. `retry_seconds` bounds for how long
    a request is sent again that the server has no room for, or whose connection broke."""

    def __init__(
        self,
        base_url: Optional[str] = None,
        api_key: Optional[str] = None,
        *,
        retry_seconds: float = 30.0,
    ) -> None:
        self.transport = AsyncTransport(Server(base_url, api_key), retry_seconds)
        self.files = AsyncStored(self.transport)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.transport.server.shown}>"

    # ---- programs

    async def run(
        self,
        code: str,
        *,
        timeout: Optional[float] = None,
        stdin: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        files: Optional[Mapping[str, Source]] = None,
        profile: Optional[str] = None,
        policy: Optional[str] = None,
        limits: Optional[Mapping[str, float]] = None,
        network: Network = None,
        packages: Optional[Sequence[str]] = None,
        silent: Optional[bool] = None,
        on_stdout: Output = None,
        on_stderr: Output = None,
        on_result: Optional[Callable[[Display], Any]] = None,
        on_event: Optional[Callable[[Event], Any]] = None,
        on_input: Optional[Callable[[str], Any]] = None,
        idempotency_key: Optional[str] = None,
        **more: Any,
    ) -> Result:
        """Runs a program in a fresh sandbox. `on_stdout` and `on_stderr` get each line as it is
        printed, `on_result` what is shown, `on_event` all events. `on_input` gets the prompt of an
        input() and returns the answer (None: the end of the input); that takes a WebSocket, whose
        loss ends the program. `more` are fields that a newer server knows."""
        fields: Dict[str, Any] = dict(
            timeout=timeout,
            stdin=stdin,
            env=env,
            files=files,
            profile=profile,
            policy=policy,
            limits=limits,
            network=network,
            packages=packages,
            silent=silent,
            **more,
        )
        handlers = Handlers(on_stdout, on_stderr, on_result, on_event)
        if on_input:
            if idempotency_key:
                raise BadArgument("on_input and idempotency_key: a conversation is not repeated")
            async with self.talk(code, **fields) as talk:
                return await talk.converse(handlers, on_input)
        call = run_call(code, idempotency_key=idempotency_key, **fields)
        if handlers:
            async with self._followed(call) as events:
                return await events.handle(handlers)
        try:
            return Result(await self.transport.json(call))
        finally:
            if call.stored:
                await self.transport.unstore(call)

    def stream(
        self,
        code: str,
        *,
        timeout: Optional[float] = None,
        stdin: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        files: Optional[Mapping[str, Source]] = None,
        profile: Optional[str] = None,
        policy: Optional[str] = None,
        limits: Optional[Mapping[str, float]] = None,
        network: Network = None,
        packages: Optional[Sequence[str]] = None,
        silent: Optional[bool] = None,
        idempotency_key: Optional[str] = None,
        **more: Any,
    ) -> AsyncEvents[Result]:
        """The same, with its events as they come."""
        return self._followed(
            run_call(
                code,
                timeout=timeout,
                stdin=stdin,
                env=env,
                files=files,
                profile=profile,
                policy=policy,
                limits=limits,
                network=network,
                packages=packages,
                silent=silent,
                idempotency_key=idempotency_key,
                **more,
            )
        )

    def talk(
        self,
        code: str,
        *,
        timeout: Optional[float] = None,
        stdin: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        files: Optional[Mapping[str, Source]] = None,
        profile: Optional[str] = None,
        policy: Optional[str] = None,
        limits: Optional[Mapping[str, float]] = None,
        network: Network = None,
        packages: Optional[Sequence[str]] = None,
        silent: Optional[bool] = None,
        **more: Any,
    ) -> AsyncTalk:
        """The same with a stdin that stays open: a program to write to, and to answer."""
        return AsyncTalk(
            self.transport,
            talk_call(
                code,
                timeout=timeout,
                stdin=stdin,
                env=env,
                files=files,
                profile=profile,
                policy=policy,
                limits=limits,
                network=network,
                packages=packages,
                silent=silent,
                **more,
            ),
        )

    def _followed(self, call: Call) -> AsyncEvents[Result]:
        call.streams = True
        return AsyncEvents(self.transport, call, "/v1/executions/{id}/events", Result)

    async def batch(
        self, items: Iterable[Mapping[str, Any]], concurrency: Optional[int] = None
    ) -> AsyncIterator[BatchItem]:
        """Runs many programs, each given as the arguments of `run()`, and gives what comes of each
        as soon as it is there, with its index."""
        call = batch_call(list(items), concurrency)
        response = await self.transport.send(call)
        lines = Lines()
        try:
            async for piece in response.aiter_bytes():
                for line in lines.feed(piece):
                    yield BatchItem(line)
        except httpx.TransportError as error:
            raise self.transport.lost(call, error) from error
        except ValueError:
            raise BadReply(
                "a batch has a line that is no JSON; check what stands between"
            ) from None
        finally:
            await response.aclose()

    async def result(self, execution_id: str) -> Optional[Result]:
        """Of an execution that ended within the last minutes; None while it runs. Raises why there
        is none."""
        found = await self.transport.json(Call("GET", f"/v1/executions/{segment(execution_id)}"))
        result = found.get("result")
        error = refusal(result) if result and "status" not in result else None
        if error:
            raise error
        return Result(result) if result else None

    def follow(self, execution_id: str, after: int = 0) -> AsyncEvents[Result]:
        """The events of an execution behind number `after`, to its end."""
        place = "/v1/executions/{id}/events"
        path = place.format(id=segment(execution_id))
        call = Call("GET", path, query={"after": after}, streams=True)
        return AsyncEvents(self.transport, call, place, Result)

    # ---- the server

    async def info(self) -> Dict[str, Any]:
        """What the server is, grants and bounds: see docs/http.md."""
        info: Dict[str, Any] = await self.transport.json(Call("GET", "/v1/info"))
        return info

    async def profiles(self) -> List[Profile]:
        found = await self.transport.whole(Call("GET", "/v1/profiles"), "profiles")
        return [Profile(profile) for profile in found]

    async def profile(self, name: str) -> Profile:
        """One of the operator's, or of this tenant's own."""
        return Profile(await self.transport.json(Call("GET", f"/v1/profiles/{segment(name)}")))

    async def make_profile(
        self,
        name: str,
        requirements: Sequence[str],
        *,
        base: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        limits: Optional[Mapping[str, float]] = None,
        on_output: Output = None,
    ) -> Profile:
        """Makes a profile with these packages for this tenant, as "polars" or "rich>=13", and waits
        until it is built; `on_output` gets the lines that the build prints. `base` is the
        operator's profile that it is made from. Raises BuildFailed when a package cannot be had."""
        await self.transport.json(make_profile_call(name, requirements, base, env, limits))
        path = f"/v1/profiles/{segment(name)}/events"
        call = Call("GET", path, streams=True)
        events = AsyncEvents(self.transport, call, path, Profile)
        await events.handle(Handlers(on_stdout=on_output, on_stderr=on_output))
        made = await self.profile(name)
        if made.state != "ready":
            raise BuildFailed(f"profile {name} was not built: {made.problem}", made)
        return made

    async def delete_profile(self, name: str, force: bool = False) -> None:
        """One of this tenant's own. `force`: also while sandboxes have it, which go on, or while it
        is being built."""
        query = {"force": True} if force else {}
        await self.transport.send(Call("DELETE", f"/v1/profiles/{segment(name)}", query=query))

    async def aclose(self) -> None:
        await self.transport.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        await self.aclose()

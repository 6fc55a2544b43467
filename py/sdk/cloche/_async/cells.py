"""Running code in a kernel of a live sandbox, and asking it: what a sandbox does with its default
kernel and `AsyncKernel` with any other."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional

from cloche._async.events import AsyncEvents
from cloche._async.transport import AsyncTransport, log
from cloche._both import async_call
from cloche._calls import Call, cell_call, without_none
from cloche._codes import NotWaiting
from cloche._errors import ClocheError
from cloche._events import Event, Handlers, Output
from cloche.results import (
    Completions,
    Display,
    Inspection,
    KernelInfo,
    Result,
    Variables,
)


class AsyncCells:
    """What runs code in one kernel."""

    def __init__(self, transport: AsyncTransport, path: str, kernel_id: Optional[str]) -> None:
        self._transport = transport
        self._path = path
        self._kernel_id = kernel_id

    async def run(
        self,
        code: str,
        *,
        timeout: Optional[float] = None,
        stdin: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        silent: Optional[bool] = None,
        store_history: Optional[bool] = None,
        formats: Optional[List[str]] = None,
        cpu_seconds: Optional[int] = None,
        output_bytes: Optional[int] = None,
        on_stdout: Output = None,
        on_stderr: Output = None,
        on_result: Optional[Callable[[Display], Any]] = None,
        on_event: Optional[Callable[[Event], Any]] = None,
        on_input: Optional[Callable[[str], Any]] = None,
        on_disconnect: str = "continue",
        idempotency_key: Optional[str] = None,
    ) -> Result:
        """Runs a cell. `on_stdout` and `on_stderr` get each line as it is printed, `on_result` what
        is shown, `on_input` the prompt of an input() and returns the answer (None: the end of the
        input), `on_event` all events. Whoever leaves by Ctrl-C or is cancelled takes the cell
        along: it gets a KeyboardInterrupt and the kernel keeps its state."""
        events = self._cell(
            code,
            allow_stdin=on_input is not None,
            timeout=timeout,
            stdin=stdin,
            env=env,
            silent=silent,
            store_history=store_history,
            formats=formats,
            cpu_seconds=cpu_seconds,
            output_bytes=output_bytes,
            on_disconnect=on_disconnect,
            idempotency_key=idempotency_key,
        )

        async def answer(event: Event) -> None:
            assert on_input is not None
            await self._reply(await async_call(on_input, str(event.data.get("prompt", ""))))

        handlers = Handlers(on_stdout, on_stderr, on_result, on_event)
        try:
            return await events.handle(handlers, answer if on_input else None)
        except BaseException as error:
            if not isinstance(error, ClocheError) and not events.is_over:
                await self._give_up(events.id)
            await events.aclose()
            raise

    def stream(
        self,
        code: str,
        *,
        timeout: Optional[float] = None,
        stdin: Optional[str] = None,
        allow_stdin: Optional[bool] = None,
        env: Optional[Mapping[str, str]] = None,
        silent: Optional[bool] = None,
        store_history: Optional[bool] = None,
        formats: Optional[List[str]] = None,
        cpu_seconds: Optional[int] = None,
        output_bytes: Optional[int] = None,
        on_disconnect: str = "continue",
        idempotency_key: Optional[str] = None,
    ) -> AsyncEvents[Result]:
        """Runs a cell, and gives its events as they come. An `input` event waits for `answer()`."""
        return self._cell(
            code,
            allow_stdin=allow_stdin,
            timeout=timeout,
            stdin=stdin,
            env=env,
            silent=silent,
            store_history=store_history,
            formats=formats,
            cpu_seconds=cpu_seconds,
            output_bytes=output_bytes,
            on_disconnect=on_disconnect,
            idempotency_key=idempotency_key,
        )

    def _cell(self, code: str, **fields: Any) -> AsyncEvents[Result]:
        call = cell_call(self._path, code, kernel_id=self._kernel_id, **fields)
        return AsyncEvents(self._transport, call, "/v1/executions/{id}/events", Result)

    async def answer(self, value: str) -> None:
        """What an input() that waits returns."""
        await self._ask("POST", "/stdin", value=value)

    async def end_input(self) -> None:
        """An input() that waits raises EOFError."""
        await self._ask("POST", "/stdin", eof=True)

    async def _reply(self, answer: Any) -> None:
        try:
            if answer is None:
                await self.end_input()
            else:
                await self.answer(str(answer))
        except NotWaiting:  # its time was up meanwhile, or somebody else was faster
            log.info("an answer came when nothing waited for it any more")

    async def _give_up(self, execution_id: str) -> None:
        """Interrupts the execution, wherever it runs, and nothing else."""
        try:
            kernels = await self._transport.json(Call("GET", f"{self._path}/kernels"))
            for kernel in kernels["kernels"]:
                if execution_id and kernel.get("execution_id") == execution_id:
                    body = {"kernel_id": kernel["id"]}
                    await self._transport.json(Call("POST", f"{self._path}/interrupt", body))
        except ClocheError as error:
            log.warning("the execution %s could not be interrupted: %s", execution_id, error)

    # ---- the kernel

    async def interrupt(self) -> bool:
        """KeyboardInterrupt in what runs; whether anything did."""
        return bool((await self._ask("POST", "/interrupt"))["interrupted"])

    async def restart(self) -> KernelInfo:
        """A fresh process for the kernel: its variables are lost, files stay."""
        return KernelInfo(await self._ask("POST", "/restart"))

    async def variables(self, limit: Optional[int] = None) -> Variables:
        query = without_none(limit=limit, kernel_id=self._kernel_id)
        return Variables(
            await self._transport.json(Call("GET", f"{self._path}/variables", query=query))
        )

    async def complete(self, code: str, cursor: Optional[int] = None) -> Completions:
        """What could stand at the cursor, which counts characters; None is the end."""
        return Completions(await self._ask("POST", "/complete", code=code, cursor=cursor))

    async def inspect(self, code: str, cursor: Optional[int] = None, detail: int = 0) -> Inspection:
        """What the name at the cursor is; with detail 1, its source too."""
        return Inspection(
            await self._ask("POST", "/inspect", code=code, cursor=cursor, detail=detail)
        )

    async def _ask(self, method: str, path: str, **fields: Any) -> Dict[str, Any]:
        body = without_none(kernel_id=self._kernel_id, **fields)
        reply: Dict[str, Any] = await self._transport.json(Call(method, self._path + path, body))
        return reply

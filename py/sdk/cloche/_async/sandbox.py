"""A live sandbox."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, List, Mapping, Optional, Sequence, Type

from cloche._async.cells import AsyncCells
from cloche._async.commands import AsyncCommands
from cloche._async.files import AsyncFiles
from cloche._async.kernels import AsyncKernels
from cloche._async.ports import AsyncPorts
from cloche._async.transport import AsyncTransport, log
from cloche._calls import Call, Network, new_key, policy_of, segment, without_none
from cloche._codes import NoSuchSandbox, SandboxGone
from cloche._default import async_default_client
from cloche._errors import ClocheError
from cloche._uploads import Inputs, Source, inputs_of
from cloche.results import SandboxInfo

if TYPE_CHECKING:
    from cloche._async.client import AsyncClient


class AsyncSandbox(AsyncCells):
    """A sandbox that stays: what is done in it is there in the next call. It runs code in its
    default kernel; further ones are in `kernels`. At the end of a `with` block it is deleted."""

    def __init__(self, transport: AsyncTransport, info: SandboxInfo) -> None:
        path = f"/v1/sandboxes/{segment(info.id)}"
        super().__init__(transport, path, None)
        self.id = info.id
        self.kernels = AsyncKernels(transport, path)
        self.commands = AsyncCommands(transport, path)
        self.files = AsyncFiles(transport, path)
        self.ports = AsyncPorts(transport, path)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"

    # ---- making and finding

    @classmethod
    async def create(
        cls,
        *,
        profile: Optional[str] = None,
        files: Optional[Mapping[str, Source]] = None,
        env: Optional[Mapping[str, str]] = None,
        limits: Optional[Mapping[str, float]] = None,
        network: Network = None,
        ttl: Optional[float] = None,
        idle: Optional[float] = None,
        metadata: Optional[Mapping[str, str]] = None,
        name: Optional[str] = None,
        listen: bool = False,
        binds: Optional[Sequence[Mapping[str, str]]] = None,
        idempotency_key: Optional[str] = None,
        client: Optional[AsyncClient] = None,
    ) -> AsyncSandbox:
        """Makes one. `files` are put into its workspace: text, bytes, open files, or pathlib.Paths
        of this machine, by the path that they get. `ttl` and `idle` are seconds. With `listen` it
        has a port of its own, which is in its info(). `binds` are directories of the server's
        machine: `{"host": ..., "path": ..., "mode": "ro"}`."""
        transport = (client or async_default_client()).transport
        inputs = inputs_of(files)
        body = without_none(
            profile=profile,
            files=inputs.inline or None,
            env=env,
            limits=limits,
            network=policy_of(network),
            ttl_seconds=None if ttl is None else round(ttl),
            idle_seconds=None if idle is None else round(idle),
            metadata=metadata,
            name=name,
            listen=listen or None,
            binds=binds,
        )
        key = new_key() if idempotency_key is None else idempotency_key
        made = await transport.json(Call("POST", "/v1/sandboxes", body, key=key))
        box = cls(transport, SandboxInfo(made))
        await box._put_large(inputs)
        return box

    async def _put_large(self, inputs: Inputs) -> None:
        try:
            for path, upload in inputs.large:
                await self.files._put(path, upload)
                upload.close()
        except BaseException:
            await self._delete_quietly()
            raise

    @classmethod
    async def connect(cls, sandbox: str, *, client: Optional[AsyncClient] = None) -> AsyncSandbox:
        """The one with this id or name."""
        transport = (client or async_default_client()).transport
        if sandbox.startswith("sbx_"):
            found = await transport.json(Call("GET", f"/v1/sandboxes/{segment(sandbox)}"))
            return cls(transport, SandboxInfo(found))
        for info in await cls.list(client=client):
            if info.name == sandbox:
                return cls(transport, info)
        raise NoSuchSandbox(
            f"there is no sandbox with the name {sandbox!r}",
            status=404,
            remediation="Sandbox.list() shows those there",
        )

    @classmethod
    async def list(
        cls,
        *,
        metadata: Optional[Mapping[str, str]] = None,
        client: Optional[AsyncClient] = None,
    ) -> List[SandboxInfo]:
        """All of them, or those with this metadata; the oldest first."""
        transport = (client or async_default_client()).transport
        query = {f"metadata.{name}": value for name, value in (metadata or {}).items()}
        query["limit"] = "1000"
        found = await transport.whole(Call("GET", "/v1/sandboxes", query=query), "sandboxes")
        return [SandboxInfo(info) for info in found]

    # ---- its life

    async def info(self) -> SandboxInfo:
        return await self._changed("GET")

    async def update(
        self,
        *,
        ttl: Optional[float] = None,
        idle: Optional[float] = None,
        metadata: Optional[Mapping[str, str]] = None,
        name: Optional[str] = None,
        limits: Optional[Mapping[str, float]] = None,
        network: Network = None,
    ) -> SandboxInfo:
        """Changes what is given; `ttl` is how many seconds it lives from now on."""
        return await self._changed(
            "PATCH",
            body=without_none(
                ttl_seconds=None if ttl is None else round(ttl),
                idle_seconds=None if idle is None else round(idle),
                metadata=metadata,
                name=name,
                limits=limits,
                network=policy_of(network),
            ),
        )

    async def network(self) -> Any:
        """What it may reach: a policy, as `create()` and `set_network()` take it."""
        return await self._transport.value(Call("GET", f"{self._path}/network"))

    async def set_network(self, network: Network) -> Any:
        """Another policy, in force when this returns; "none" closes everything."""
        policy = "none" if network is None else policy_of(network)
        return await self._transport.value(Call("PUT", f"{self._path}/network", policy))

    async def pause(self) -> SandboxInfo:
        """All its processes stand still."""
        return await self._changed("POST", "/pause")

    async def resume(self) -> SandboxInfo:
        return await self._changed("POST", "/resume")

    async def delete(self) -> None:
        """Ends it. One that is gone already is no error."""
        try:
            await self._transport.send(Call("DELETE", self._path))
        except (SandboxGone, NoSuchSandbox) as error:
            log.debug("%s", error)

    async def _delete_quietly(self) -> None:
        try:
            await self.delete()
        except ClocheError as error:
            log.warning("the sandbox %s was not deleted: %s", self.id, error)

    async def _changed(self, method: str, path: str = "", **options: Any) -> SandboxInfo:
        return SandboxInfo(await self._transport.json(Call(method, self._path + path, **options)))

    async def __aenter__(self) -> AsyncSandbox:
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if error is None:
            await self.delete()
        else:
            await self._delete_quietly()  # what went wrong first matters more

# Made by script/sdk-generate: change ../_async/sandbox.py instead.
"""A live sandbox."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, List, Mapping, Optional, Sequence, Type

from cloche._sync.cells import Cells
from cloche._sync.commands import Commands
from cloche._sync.files import Files
from cloche._sync.kernels import Kernels
from cloche._sync.ports import Ports
from cloche._sync.transport import Transport, log
from cloche._calls import Call, Network, new_key, policy_of, segment, without_none
from cloche._codes import NoSuchSandbox, SandboxGone
from cloche._default import default_client
from cloche._errors import ClocheError
from cloche._uploads import Inputs, Source, inputs_of
from cloche.results import SandboxInfo

if TYPE_CHECKING:
    from cloche._sync.client import Client


class Sandbox(Cells):
    """A sandbox that stays: what is done in it is there in the next call. It runs code in its
    default kernel; further ones are in `kernels`. At the end of a `with` block it is deleted."""

    def __init__(self, transport: Transport, info: SandboxInfo) -> None:
        path = f"/v1/sandboxes/{segment(info.id)}"
        super().__init__(transport, path, None)
        self.id = info.id
        self.kernels = Kernels(transport, path)
        self.commands = Commands(transport, path)
        self.files = Files(transport, path)
        self.ports = Ports(transport, path)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"

    # ---- making and finding

    @classmethod
    def create(
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
        client: Optional[Client] = None,
    ) -> Sandbox:
        """Makes one. `files` are put into its workspace: text, bytes, open files, or pathlib.Paths
        of this machine, by the path that they get. `ttl` and `idle` are seconds. With `listen` it
        has a port of its own, which is in its info(). `binds` are directories of the server's
        machine: `{"host": ..., "path": ..., "mode": "ro"}`."""
        transport = (client or default_client()).transport
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
        made = transport.json(Call("POST", "/v1/sandboxes", body, key=key))
        box = cls(transport, SandboxInfo(made))
        box._put_large(inputs)
        return box

    def _put_large(self, inputs: Inputs) -> None:
        try:
            for path, upload in inputs.large:
                self.files._put(path, upload)
                upload.close()
        except BaseException:
            self._delete_quietly()
            raise

    @classmethod
    def connect(cls, sandbox: str, *, client: Optional[Client] = None) -> Sandbox:
        """The one with this id or name."""
        transport = (client or default_client()).transport
        if sandbox.startswith("sbx_"):
            found = transport.json(Call("GET", f"/v1/sandboxes/{segment(sandbox)}"))
            return cls(transport, SandboxInfo(found))
        for info in cls.list(client=client):
            if info.name == sandbox:
                return cls(transport, info)
        raise NoSuchSandbox(
            f"there is no sandbox with the name {sandbox!r}",
            status=404,
            remediation="Sandbox.list() shows those there",
        )

    @classmethod
    def list(
        cls,
        *,
        metadata: Optional[Mapping[str, str]] = None,
        client: Optional[Client] = None,
    ) -> List[SandboxInfo]:
        """All of them, or those with this metadata; the oldest first."""
        transport = (client or default_client()).transport
        query = {f"metadata.{name}": value for name, value in (metadata or {}).items()}
        query["limit"] = "1000"
        found = transport.whole(Call("GET", "/v1/sandboxes", query=query), "sandboxes")
        return [SandboxInfo(info) for info in found]

    # ---- its life

    def info(self) -> SandboxInfo:
        return self._changed("GET")

    def update(
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
        return self._changed(
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

    def network(self) -> Any:
        """What it may reach: a policy, as `create()` and `set_network()` take it."""
        return self._transport.value(Call("GET", f"{self._path}/network"))

    def set_network(self, network: Network) -> Any:
        """Another policy, in force when this returns; "none" closes everything."""
        policy = "none" if network is None else policy_of(network)
        return self._transport.value(Call("PUT", f"{self._path}/network", policy))

    def pause(self) -> SandboxInfo:
        """All its processes stand still."""
        return self._changed("POST", "/pause")

    def resume(self) -> SandboxInfo:
        return self._changed("POST", "/resume")

    def delete(self) -> None:
        """Ends it. One that is gone already is no error."""
        try:
            self._transport.send(Call("DELETE", self._path))
        except (SandboxGone, NoSuchSandbox) as error:
            log.debug("%s", error)

    def _delete_quietly(self) -> None:
        try:
            self.delete()
        except ClocheError as error:
            log.warning("the sandbox %s was not deleted: %s", self.id, error)

    def _changed(self, method: str, path: str = "", **options: Any) -> SandboxInfo:
        return SandboxInfo(self._transport.json(Call(method, self._path + path, **options)))

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if error is None:
            self.delete()
        else:
            self._delete_quietly()  # what went wrong first matters more

"""Containers: each is a live sandbox of a cloche server, with a port of its own."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import TracebackType
from typing import Any, Dict, List, Mapping, Optional, Type

from cloche._async.client import AsyncClient
from cloche._async.sandbox import AsyncSandbox
from cloche._errors import ClocheError

DEFAULT_TAG = "ghcr.io/gradion-ai/ipybox"
MADE_BY = {"by": "ipybox"}  # cloche sandbox delete --all --metadata by=ipybox


class ExecutionContainer:
    """A sandbox from run() to kill(). Behind `executor_port` and `resource_port`, which are the
    same, are its kernels and files.

    `tag` is the name of a profile of the server; ipybox's own image means the one with the most in
    it. `binds` are directories of the server's machine, `{HOST: PATH}` with paths below /app, which
    the operator has to allow (--bind-allow HOST:rw). `network` is what it may reach before
    init_firewall(): as much as the server grants unless given."""

    def __init__(
        self,
        tag: str = DEFAULT_TAG,
        binds: Optional[Dict[str, str]] = None,
        env: Optional[Dict[str, str]] = None,
        executor_port: Optional[int] = None,
        resource_port: Optional[int] = None,
        port_allocation_timeout: float = 10,
        show_pull_progress: bool = True,
        *,
        server: Optional[str] = None,
        api_key: Optional[str] = None,
        limits: Optional[Mapping[str, float]] = None,
        network: Any = None,
    ) -> None:
        if executor_port is not None or resource_port is not None:
            raise ValueError("the server chooses the port; read executor_port after run()")
        del port_allocation_timeout, show_pull_progress  # there is no image, and the port is there
        self.tag = tag
        self.binds = binds or {}
        self.env = env or {}
        self.limits = limits
        self.network = network
        self.sandbox: Optional[AsyncSandbox] = None  #: the same, as the rest of this package has it
        self._server = server
        self._key = api_key
        self._client: Optional[AsyncClient] = None
        self._port: Optional[int] = None

    async def __aenter__(self) -> ExecutionContainer:
        await self.run()
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        await self.kill()

    @property
    def executor_port(self) -> int:
        """On 127.0.0.1 of the server's machine."""
        if self._port is None:
            raise RuntimeError("Container not running")
        return self._port

    @property
    def resource_port(self) -> int:
        return self.executor_port

    async def run(self) -> None:
        """Makes the sandbox. It lives until kill(), or for as long as the server lets any."""
        self._client = AsyncClient(self._server, self._key)
        try:
            self._port = await self._make(self._client)
        except BaseException:
            await self.kill()
            raise

    async def _make(self, client: AsyncClient) -> Optional[int]:
        info = await client.info()
        life_s = info["live"]["max_ttl_seconds"]
        granted = info["network"]["key"] or info["network"]["granted"]
        binds = await asyncio.get_running_loop().run_in_executor(None, self._prepared)
        self.sandbox = await AsyncSandbox.create(
            profile=_profile_of(self.tag),
            env=self.env,
            limits=self.limits,
            network=granted if self.network is None else self.network,
            ttl=life_s,
            idle=life_s,
            metadata=MADE_BY,
            listen=True,
            binds=binds,
            client=client,
        )
        return (await self.sandbox.info()).port

    def _prepared(self) -> List[Dict[str, str]]:
        """As `binds` of the server. Directories that are not there are made."""
        found = []
        for host, path in self.binds.items():
            place = Path(host).resolve()
            place.mkdir(parents=True, exist_ok=True)
            found.append({"host": str(place), "path": path, "mode": "rw"})
        return found

    async def kill(self) -> None:
        """Ends the sandbox; one that is gone already is no mistake."""
        sandbox, self.sandbox, self._port = self.sandbox, None, None
        client, self._client = self._client, None
        try:
            if sandbox is not None:
                await sandbox.delete()
        finally:
            if client is not None:
                await client.aclose()

    async def init_firewall(self, allowed_domains: Optional[List[str]] = None) -> None:
        """From now on names, addresses and ranges of this list can be reached and nothing else; the
        last call counts. The server's operator grants them, or it is a RuntimeError."""
        if self.sandbox is None:
            raise RuntimeError("Container not running")
        policy = {"allow": list(allowed_domains or []), "refuse": "unreachable"}
        try:
            await self.sandbox.set_network(policy)
        except ClocheError as error:
            raise RuntimeError(f"Failed to initialize firewall: {error}") from error


def _profile_of(tag: str) -> str:
    """An image of ipybox, of whatever version, has what is usual in it."""
    return "auto" if tag.partition(":")[0] == DEFAULT_TAG else tag

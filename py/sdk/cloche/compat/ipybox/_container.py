"""Containers: each is a live sandbox of a cloche server, with a port of its own."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from types import TracebackType
from typing import Any, Dict, List, Optional, Type, Union

import httpx

from cloche.compat.ipybox._http import http_client, key_headers

DEFAULT_TAG = "ghcr.io/gradion-ai/ipybox"
DEFAULT_SERVER = "http://127.0.0.1:8000"
MADE_BY = {"by": "ipybox"}  # cloche sandbox delete --all --metadata by=ipybox

Policy = Union[str, List[Any], Dict[str, Any]]


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
        limits: Optional[Dict[str, Any]] = None,
        network: Optional[Policy] = None,
    ) -> None:
        if executor_port is not None or resource_port is not None:
            raise ValueError("the server chooses the port; read executor_port after run()")
        del port_allocation_timeout, show_pull_progress  # there is no image, and the port is there
        self.tag = tag
        self.binds = binds or {}
        self.env = env or {}
        self.limits = limits
        self.network = network
        self.sandbox_id: Optional[str] = None  #: as the server's own API calls it
        self._port: Optional[int] = None
        self._url = server or os.environ.get("CLOCHE_SERVER") or DEFAULT_SERVER
        self._headers = key_headers(api_key)
        self._http: Optional[httpx.AsyncClient] = None

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
        self._http = _client_of(self._url, self._headers)
        try:
            await self._make()
        except BaseException:
            await self.kill()
            raise

    async def _make(self) -> None:
        info = await self._ask("GET", "/v1/info")
        ttl_s = info["live"]["max_ttl_seconds"]
        body: Dict[str, Any] = {
            "profile": _profile_of(self.tag),
            "listen": True,
            "env": self.env,
            "network": info["network"]["granted"] if self.network is None else self.network,
            "ttl_seconds": ttl_s,
            "idle_seconds": ttl_s,
            "metadata": MADE_BY,
        }
        if self.limits:
            body["limits"] = self.limits
        if self.binds:
            body["binds"] = await asyncio.get_running_loop().run_in_executor(None, self._prepared)
        made = await self._ask("POST", "/v1/sandboxes", body)
        self.sandbox_id, self._port = made["id"], made["port"]

    async def kill(self) -> None:
        """Ends the sandbox; one that is gone already is no mistake."""
        ident, self.sandbox_id, self._port = self.sandbox_id, None, None
        http, self._http = self._http, None
        if http is None:
            return
        try:
            reply = await http.delete(f"/v1/sandboxes/{ident}") if ident else None
            if reply is not None and reply.status_code not in (204, 404, 410):
                raise RuntimeError(_why(reply))
        finally:
            await http.aclose()

    async def init_firewall(self, allowed_domains: Optional[List[str]] = None) -> None:
        """From now on names, addresses and ranges of this list can be reached and nothing else; the
        last call counts. The server's operator grants them, or it is a RuntimeError."""
        if self.sandbox_id is None:
            raise RuntimeError("Container not running")
        policy = {"allow": list(allowed_domains or []), "refuse": "unreachable"}
        try:
            await self._ask("PUT", f"/v1/sandboxes/{self.sandbox_id}/network", policy)
        except (RuntimeError, httpx.HTTPError) as error:
            raise RuntimeError(f"Failed to initialize firewall: {error}") from error

    def _prepared(self) -> List[Dict[str, str]]:
        """As `binds` of the server. Directories that are not there are made."""
        found = []
        for host, path in self.binds.items():
            place = Path(host).resolve()
            place.mkdir(parents=True, exist_ok=True)
            found.append({"host": str(place), "path": path, "mode": "rw"})
        return found

    async def _ask(self, method: str, path: str, body: Any = None) -> Any:
        assert self._http is not None
        reply = await self._http.request(method, path, json=body)
        if not reply.is_success:
            raise RuntimeError(_why(reply))
        return reply.json()


def _client_of(url: str, headers: Dict[str, str]) -> httpx.AsyncClient:
    if not url.startswith("unix:"):
        return http_client(url, headers)
    transport = httpx.AsyncHTTPTransport(uds=url[len("unix:") :])
    return http_client("http://localhost", headers, transport=transport)


def _why(reply: httpx.Response) -> str:
    """As the command line says it: what is wrong, and what to do."""
    try:
        error = reply.json()["error"]
        return f"{error['message']}; {error['remediation']}"
    except (ValueError, KeyError, TypeError):
        return f"{reply.url} answered with status {reply.status_code}"


def _profile_of(tag: str) -> str:
    """An image of ipybox, of whatever version, has what is usual in it."""
    return "auto" if tag.partition(":")[0] == DEFAULT_TAG else tag

"""The client of Sandbox Runtime (`sandbox_runtime.sdk`, v0.1), over a cloche server that speaks its
dialect. Its bugs are not kept: a session finds the same server in every process, `recursive` is
sent, and code with backslashes is left as it is."""

from __future__ import annotations

import abc
import asyncio
import enum
import socket
import time
import zlib
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Type, Union
from urllib.parse import quote

from cloche._async.transport import AsyncTransport
from cloche._calls import Call, segment
from cloche._errors import APIError, ClocheError
from cloche._settings import Server
from cloche._uploads import Form, upload_of

__all__ = [
    "K8sServiceDiscovery",
    "Sandbox",
    "SandboxError",
    "ServerSelectorType",
    "ServiceDiscovery",
    "SharedEnvSandbox",
    "StaticServiceDiscovery",
]

PREFIX = "/workspace/se"
PORT = 9101
TOTAL_S = 300.0
CHECK_S = 10.0
CHECK_AGAIN_S = 60.0


class SandboxError(Exception):
    """Whatever goes wrong."""

    def __init__(
        self,
        message: str,
        original_error: Optional[BaseException] = None,
        context: Optional[Dict[str, Any]] = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.original_error = original_error
        self.context = context or {}

    def to_dict(self) -> Dict[str, Any]:
        return {
            "type": type(self).__name__,
            "message": self.message,
            "original_error": None if self.original_error is None else str(self.original_error),
            "context": self.context,
        }


class ServerSelectorType(str, enum.Enum):
    """How servers are found."""

    STATIC = "static"
    K8S = "k8s"


class ServiceDiscovery(abc.ABC):
    """Finds servers."""

    @abc.abstractmethod
    async def get_servers(self) -> List[str]:
        """Their URLs."""


class StaticServiceDiscovery(ServiceDiscovery):
    """The servers that are given."""

    def __init__(self, servers: Optional[List[str]] = None, **_: Any) -> None:
        self.servers = [_url(server) for server in servers or []]

    async def get_servers(self) -> List[str]:
        return list(self.servers)


class K8sServiceDiscovery(ServiceDiscovery):
    """Those behind a headless service, whose name has the address of each."""

    def __init__(
        self,
        service_name: str = "sandbox-runtime-headless",
        namespace: str = "default",
        port: int = PORT,
        cluster_domain: str = "svc.cluster.local",
        **_: Any,
    ) -> None:
        is_whole = "." in service_name or service_name == "localhost"
        self.name = service_name if is_whole else f"{service_name}.{namespace}.{cluster_domain}"
        self.port = port

    async def get_servers(self) -> List[str]:
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(self.name, self.port, type=socket.SOCK_STREAM)
        except OSError:
            return []
        hosts = sorted({str(address[4][0]) for address in found})
        return [f"http://{f'[{host}]' if ':' in host else host}:{self.port}" for host in hosts]


DISCOVERIES: Dict[ServerSelectorType, Type[ServiceDiscovery]] = {
    ServerSelectorType.STATIC: StaticServiceDiscovery,
    ServerSelectorType.K8S: K8sServiceDiscovery,
}


class Sandbox(abc.ABC):
    """What a sandbox can do."""

    @abc.abstractmethod
    async def create_session(self, size: str = "50M") -> Any:
        ...

    @abc.abstractmethod
    async def delete_session(self) -> bool:
        ...

    @abc.abstractmethod
    async def execute(self, command: str, *args: str) -> Any:
        ...

    @abc.abstractmethod
    async def close(self) -> None:
        ...


class SharedEnvSandbox(Sandbox):
    """A session, by its id. The server makes it when it is used first."""

    def __init__(
        self,
        session_id: str,
        server_selector_type: Union[str, ServerSelectorType] = ServerSelectorType.STATIC,
        server_selector_params: Optional[Mapping[str, Any]] = None,
        api_key: Optional[str] = None,
        **kwargs: Any,
    ) -> None:
        params = {**(server_selector_params or {}), **kwargs}
        self.session_id = session_id
        try:
            kind = ServerSelectorType(server_selector_type)
        except ValueError as error:
            raise SandboxError(f"there is no server selector {server_selector_type!r}") from error
        self._discovery = DISCOVERIES[kind](**params)
        self._key = api_key
        self._transports: Dict[str, AsyncTransport] = {}
        self._healthy: List[str] = []
        self._check_at = 0.0

    # ---- the session

    async def create_session(self, size: str = "50M") -> Any:
        return await self._ask("POST", "session", body={"size": size})

    async def delete_session(self) -> bool:
        await self._ask("DELETE", "session")
        return True

    async def get_status(self) -> Any:
        return await self._ask("GET", "status")

    async def close(self) -> None:
        for transport in self._transports.values():
            await transport.aclose()
        self._transports.clear()

    async def __aenter__(self) -> SharedEnvSandbox:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # ---- what runs in it

    async def execute(self, command: str, *args: str) -> Any:
        return await self._ask("POST", "execute", body={"command": command, "args": list(args)})

    async def execute_code(
        self,
        code: str,
        filename: Optional[str] = None,
        args: Optional[List[str]] = None,
        script_type: str = "python",
        output_params: Optional[List[str]] = None,
    ) -> Any:
        body: Dict[str, Any] = {"code": _sound(code, script_type), "script_type": script_type}
        optional = {"filename": filename, "args": args, "output_params": output_params}
        body.update({name: value for name, value in optional.items() if value is not None})
        return await self._ask("POST", "execute_code", body=body)

    # ---- its files

    async def upload_file(self, path: str, target: Optional[str] = None) -> Any:
        upload = upload_of(Path(path))
        form = Form(upload, Path(path).name)
        try:
            return await self._ask(
                "POST",
                "upload",
                upload=form,
                headers={"Content-Type": form.type},
                query={} if target is None else {"filename": target},
            )
        finally:
            upload.close()

    async def download_file(self, name: str, target: str) -> bool:
        content = await self._content("GET", f"download/{self._id()}/{quote(name)}")
        Path(target).write_bytes(content)
        return True

    async def create_file(self, content: str, filename: str, mode: int = 0o644) -> Any:
        body = {"content": content, "filename": filename, "mode": mode}
        return await self._ask("POST", "create", body=body)

    async def list_files(self, directory: str = "", recursive: bool = False) -> List[Any]:
        place = f"files/{self._id()}/{quote(directory)}"
        found = await self._request("GET", place, query={"recursive": recursive})
        files: List[Any] = found["files"]
        return files

    async def read_file(self, name: str, offset: int = 0, buffer_size: int = 4096) -> Any:
        place = f"readfile/{self._id()}/{quote(name)}"
        return await self._request(
            "GET", place, query={"offset": offset, "buffer_size": buffer_size}
        )

    async def download_from_efast(
        self,
        file_params: List[Dict[str, Any]],
        efast_url: Optional[str] = None,
        save_path: Optional[str] = None,
        token: Optional[str] = None,
        timeout: Optional[int] = None,
    ) -> Any:
        given = {
            "efast_url": efast_url,
            "save_path": save_path,
            "token": token,
            "timeout": timeout,
        }
        body = {name: value for name, value in given.items() if value is not None}
        return await self._ask(
            "POST", "download_from_efast", body={"file_params": file_params, **body}
        )

    # ---- servers

    async def _transport(self) -> AsyncTransport:
        """That of the session's server: the same in every process, as long as the same ones are
        healthy."""
        if time.monotonic() >= self._check_at or not self._healthy:
            servers = await self._discovery.get_servers()
            healthy = await asyncio.gather(*map(self._is_healthy, servers))
            self._healthy = [server for server, good in zip(servers, healthy) if good]
            self._check_at = time.monotonic() + CHECK_AGAIN_S
            if not self._healthy:
                raise SandboxError("no server is healthy", context={"servers": servers})
        place = zlib.crc32(self.session_id.encode()) % len(self._healthy)
        return self._to(self._healthy[place])

    def _to(self, server: str) -> AsyncTransport:
        if server not in self._transports:
            self._transports[server] = AsyncTransport(Server(server, self._key), TOTAL_S)
        return self._transports[server]

    async def _is_healthy(self, server: str) -> bool:
        try:
            call = Call("GET", f"{PREFIX}/healthy", silence_s=CHECK_S)
            await self._to(server).send(call)
        except ClocheError:
            return False
        return True

    # ---- requests

    def _id(self) -> str:
        return segment(self.session_id)

    async def _ask(self, method: str, what: str, **options: Any) -> Any:
        return await self._request(method, f"{what}/{self._id()}", **options)

    async def _request(self, method: str, place: str, **options: Any) -> Any:
        call = Call(method, f"{PREFIX}/{place}", silence_s=TOTAL_S, **options)
        try:
            reply = await (await self._transport()).json(call)
        except (ClocheError, OSError) as error:
            raise _failure(place, error) from error
        is_wrapped = isinstance(reply, dict) and "result" in reply  # its older server's replies
        return reply["result"] if is_wrapped else reply

    async def _content(self, method: str, place: str) -> bytes:
        call = Call(method, f"{PREFIX}/{place}", silence_s=TOTAL_S)
        try:
            return (await (await self._transport()).send(call)).content
        except ClocheError as error:
            raise _failure(place, error) from error


def _failure(place: str, error: BaseException) -> SandboxError:
    context: Dict[str, Any] = {"operation": place.partition("/")[0]}
    if isinstance(error, APIError):
        context.update(status=error.status, detail=error.detail)
    return SandboxError(str(error), error, context)


def _sound(code: str, script_type: str) -> str:
    """Some send code whose line ends are written as backslash and n. Only what is no Python as it
    stands, and is some without its escapes, is taken for that."""
    if script_type != "python" or "\\" not in code or _compiles(code):
        return code
    plain = code.encode("latin-1", "backslashreplace").decode("unicode_escape", "replace")
    return plain if _compiles(plain) else code


def _compiles(code: str) -> bool:
    try:
        compile(code, "<code>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


def _url(server: str) -> str:
    return server if "://" in server or server.startswith("unix:") else f"http://{server}"

"""The resource server of a container: its files, directories and modules."""

from __future__ import annotations

import asyncio
import io
import tarfile
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, AsyncIterator, Dict, List, Optional, Type
from urllib.parse import quote

from cloche._uploads import IN_MEMORY, end_pieces, unpack, write_piece
from cloche.compat.ipybox._errors import ConnectionError, check
from cloche.compat.ipybox._http import http_client, server_at

PIECE = 1 << 20


class ResourceClient:
    """Files of a container, by paths below its /app, and the sources of its modules."""

    def __init__(
        self,
        port: int,
        host: str = "localhost",
        connect_retries: int = 10,
        connect_retry_interval: float = 1.0,
        *,
        api_key: Optional[str] = None,
    ) -> None:
        self.port = port
        self.host = host
        self._retries = connect_retries
        self._retry_s = connect_retry_interval
        self._http = http_client(server_at(host, port, api_key))

    async def __aenter__(self) -> ResourceClient:
        await self.connect()
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        await self.disconnect()

    async def connect(self) -> None:
        """Waits until the server answers."""
        why: Optional[Exception] = None
        for turn in range(self._retries):
            if turn:
                await asyncio.sleep(self._retry_s)
            try:
                await check(await self._http.get("/status/"))
                return
            except Exception as error:
                why = error
        raise ConnectionError("Failed to connect to resource server") from why

    async def disconnect(self) -> None:
        await self._http.aclose()

    # ---- modules ----

    async def get_module_sources(self, module_names: List[str]) -> Dict[str, str]:
        """The source of each module, by its name; "" where there is none."""
        found: Dict[str, str] = await self._ask("GET", "/modules", params={"q": module_names})
        return found

    async def generate_mcp_sources(
        self, relpath: str, server_name: str, server_params: Dict[str, Any]
    ) -> List[str]:
        """Writes a Python function for each tool of an MCP server; their names."""
        path = f"/mcp/{_below(relpath)}/{quote(server_name)}"
        names: List[str] = await self._ask("PUT", path, json=server_params)
        return names

    async def get_mcp_sources(self, relpath: str, server_name: str) -> Dict[str, str]:
        """The sources of those functions, by the tools' names."""
        path = f"/mcp/{_below(relpath)}"
        found: Dict[str, str] = await self._ask("GET", path, params={"server_name": server_name})
        return found

    async def _ask(self, method: str, path: str, **more: Any) -> Any:
        return (await check(await self._http.request(method, path, **more))).json()

    # ---- files ----

    async def upload_file(self, relpath: str, local_path: Path) -> None:
        if not Path(local_path).is_file():
            raise FileNotFoundError(f"Local file not found: {local_path}")
        with open(local_path, "rb") as file:
            await check(await self._http.post(f"/files/{_below(relpath)}", content=_pieces(file)))

    async def download_file(self, relpath: str, local_path: Path) -> None:
        async with self._http.stream("GET", f"/files/{_below(relpath)}") as reply:
            await check(reply)
            Path(local_path).parent.mkdir(parents=True, exist_ok=True)
            with open(local_path, "wb") as file:
                async for piece in reply.aiter_bytes():
                    write_piece(file, piece)
                end_pieces(file)

    async def delete_file(self, relpath: str) -> None:
        await check(await self._http.delete(f"/files/{_below(relpath)}"))

    # ---- directories ----

    async def upload_directory(self, relpath: str, local_path: Path) -> None:
        """The regular files in it go into the directory of that name, which may be there."""
        top = Path(local_path)
        if not top.is_dir():
            raise FileNotFoundError(f"Local directory not found: {local_path}")
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as tar:
            for item in sorted(top.rglob("*")):
                if item.is_file():
                    tar.add(item, arcname=str(item.relative_to(top)))
        await check(
            await self._http.post(f"/directories/{_below(relpath)}", content=packed.getvalue())
        )

    async def download_directory(self, relpath: str, local_path: Path) -> None:
        """Links are left out, so that nothing leads elsewhere."""
        top = Path(local_path)
        with tempfile.SpooledTemporaryFile(max_size=IN_MEMORY) as kept:
            async with self._http.stream("GET", f"/directories/{_below(relpath)}") as reply:
                await check(reply)
                async for piece in reply.aiter_bytes():
                    kept.write(piece)
            kept.seek(0)
            top.mkdir(parents=True, exist_ok=True)
            unpack(kept, top)


def _below(relpath: str) -> str:
    """As a part of a URL: nothing may lead to another place of the API."""
    if ".." in relpath.split("/"):
        raise ValueError(f"{relpath!r} leads out of the directory")
    return quote(relpath)


async def _pieces(file: Any) -> AsyncIterator[bytes]:
    while True:
        piece = file.read(PIECE)
        if not piece:
            return
        yield piece

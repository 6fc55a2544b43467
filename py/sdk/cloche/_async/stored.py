"""Files that the server keeps for a time, for programs to use by their id."""

from __future__ import annotations

from typing import List

from cloche._async.transport import AsyncTransport
from cloche._both import async_aside
from cloche._calls import Call, segment
from cloche._records import listed
from cloche._uploads import Source, upload_of
from cloche.results import StoredFile


class AsyncStored:
    """The server's file store."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def upload(self, data: Source, filename: str = "file") -> StoredFile:
        """Text, bytes, an open file, or a pathlib.Path of this machine."""
        upload = await async_aside(upload_of, data)
        try:
            return StoredFile(await self._transport.store(upload, filename))
        finally:
            upload.close()

    async def read(self, file_id: str) -> bytes:
        return (await self._transport.send(Call("GET", f"/v1/files/{segment(file_id)}"))).content

    async def list(self) -> List[StoredFile]:
        """The newest first."""
        found = await self._transport.json(Call("GET", "/v1/files"))
        return [StoredFile(file) for file in listed(found["files"])]

    async def delete(self, file_id: str) -> None:
        await self._transport.send(Call("DELETE", f"/v1/files/{segment(file_id)}"))

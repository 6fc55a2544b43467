# Made by script/sdk-generate: change ../_async/stored.py instead.
"""Files that the server keeps for a time, for programs to use by their id."""

from __future__ import annotations

from typing import List

from cloche._sync.transport import Transport
from cloche._both import aside
from cloche._calls import Call, segment
from cloche._records import listed
from cloche._uploads import Source, upload_of
from cloche.results import StoredFile


class Stored:
    """The server's file store."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def upload(self, data: Source, filename: str = "file") -> StoredFile:
        """Text, bytes, an open file, or a pathlib.Path of this machine."""
        upload = aside(upload_of, data)
        try:
            return StoredFile(self._transport.store(upload, filename))
        finally:
            upload.close()

    def read(self, file_id: str) -> bytes:
        return (self._transport.send(Call("GET", f"/v1/files/{segment(file_id)}"))).content

    def list(self) -> List[StoredFile]:
        """The newest first."""
        found = self._transport.json(Call("GET", "/v1/files"))
        return [StoredFile(file) for file in listed(found["files"])]

    def delete(self, file_id: str) -> None:
        self._transport.send(Call("DELETE", f"/v1/files/{segment(file_id)}"))

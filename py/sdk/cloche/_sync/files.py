# Made by script/sdk-generate: change ../_async/files.py instead.
"""The files of a live sandbox."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import IO, Any, Iterator, List, Optional, Union

import httpx

from cloche._sync.transport import Transport, log
from cloche._both import aside, sleep
from cloche._calls import Call, PathLike, place_of
from cloche._errors import APIError, BadArgument, ConnectionLost
from cloche._fileobj import Opens
from cloche._progress import Wish, progress_for
from cloche._retry import Tries
from cloche._uploads import (
    IN_MEMORY,
    Progress,
    Source,
    Upload,
    end_pieces,
    packed,
    unpack,
    upload_of,
    write_piece,
)
from cloche.results import Entry

PAGE = 10_000
READ_MAX = 1 << 31  # bytes: more are read in pieces, or downloaded
Local = Union[str, "os.PathLike[str]"]


class Files(Opens):
    """The files of a sandbox. Paths are below /workspace, with or without that in front."""

    def __init__(self, transport: Transport, path: str) -> None:
        self._transport = transport
        self._path = path

    # ---- contents

    def read(self, path: PathLike, offset: int = 0, size: Optional[int] = None) -> bytes:
        """A file's bytes, all of them or a part."""
        if size == 0:
            return b""
        last = "" if size is None else str(offset + size - 1)
        headers = {"Range": f"bytes={offset}-{last}"} if offset or last else {}
        call = self._call("GET", path, headers=headers, reply_max=READ_MAX)
        try:
            return (self._transport.send(call)).content
        except APIError as error:
            if error.status == 416:  # there is nothing behind the end
                return b""
            raise

    def read_text(self, path: PathLike, encoding: str = "utf-8") -> str:
        return (self.read(path)).decode(encoding)

    def write(self, path: PathLike, data: Source, mode: Optional[int] = None) -> int:
        """Writes a file, as a whole or not at all, and the directories above it. `data` is text,
        bytes, an open file, or a pathlib.Path of this machine. Returns how many bytes it has."""
        upload = aside(upload_of, data)
        try:
            return self._put(path, upload, mode)
        finally:
            upload.close()

    def _put(self, path: PathLike, upload: Upload, mode: Optional[int] = None) -> int:
        query = {} if mode is None else {"mode": f"{mode:04o}"}
        call = self._call("PUT", path, upload=upload, query=query)
        return int((self._transport.json(call))["size_bytes"])

    def pieces(self, path: PathLike, progress: Optional[Progress] = None) -> Iterator[bytes]:
        """A file's bytes, as they come. Goes on where it was when the connection is lost."""
        for piece in self._pieces(self._call("GET", path, streams=True), progress):
            yield piece

    def _pieces(self, call: Call, progress: Optional[Progress]) -> Iterator[bytes]:
        done, etag = 0, ""
        tries: Optional[Tries] = None
        call.headers["Accept"] = "*/*"
        while True:
            if done:
                call.headers.update({"Range": f"bytes={done}-", "If-Range": etag})
            response = self._transport.send(call)
            try:
                if done and response.status_code != 206:
                    raise ConnectionLost(f"{call.path} changed while it was read; read it again")
                etag = response.headers.get("etag", "")
                total = done + int(response.headers.get("content-length", 0))
                for piece in response.iter_bytes():
                    tries = None
                    done += len(piece)
                    if progress:
                        progress(done, max(done, total))
                    yield piece
                return
            except httpx.TransportError as error:
                tries = tries or self._transport.tries()
                pause = tries.next_pause()
                if not etag or pause is None:
                    raise self._transport.lost(call, error) from error
                log.info("%s: lost after %d bytes (%r); going on", call.path, done, error)
            finally:
                response.close()
            sleep(pause)

    # ---- between here and there

    def upload(self, local: Local, path: Optional[PathLike] = None, progress: Wish = True) -> None:
        """Copies a file or a directory of this machine, under its own name unless `path` says
        another. `progress` is called with the bytes done and all of them; True shows a bar for what
        takes long, if stderr is a terminal."""
        source = Path(local)
        to = source.name if path is None else path
        is_directory = aside(source.is_dir)
        upload = aside(packed if is_directory else upload_of, source)
        upload.progress = progress_for(progress, source.name)
        try:
            if is_directory:
                call = Call("PUT", f"{self._path}/archive/{place_of(to)}", upload=upload)
                self._transport.send(call)
            else:
                self._put(to, upload)
        finally:
            upload.close()

    def download(
        self, path: PathLike, local: Optional[Local] = None, progress: Wish = True
    ) -> Path:
        """Copies a file or a directory to this machine, under its own name unless `local` says
        another. A file is there as a whole or not at all; links in a directory are left out."""
        name = place_of(path).rpartition("/")[2] and Path(str(path)).name
        if not name and local is None:
            raise BadArgument("name a place for the copy of the workspace")
        to = Path(name if local is None else local)
        shown = progress_for(progress, to.name)
        if self.is_dir(path):
            self._download_directory(path, to, shown)
            return to
        with tempfile.NamedTemporaryFile(dir=to.absolute().parent, delete=False) as file:
            try:
                self._fill(file, self._call("GET", path, streams=True), shown)
                file.close()
                os.replace(file.name, to)
            except BaseException:
                os.unlink(file.name)
                raise
        return to

    def _download_directory(self, path: PathLike, to: Path, progress: Optional[Progress]) -> None:
        with tempfile.SpooledTemporaryFile(max_size=IN_MEMORY) as kept:
            call = Call("GET", f"{self._path}/archive/{place_of(path)}", streams=True)
            self._fill(kept, call, progress)
            kept.seek(0)
            to.mkdir(parents=True, exist_ok=True)
            aside(unpack, kept, to)

    def _fill(self, file: IO[bytes], call: Call, progress: Optional[Progress]) -> None:
        for piece in self._pieces(call, progress):
            aside(write_piece, file, piece)
        aside(end_pieces, file)

    # ---- directories

    def list(self, path: PathLike = "", recursive: bool = False) -> List[Entry]:
        """What is in a directory, by name; with `recursive`, all that is below it."""
        call = self._call("GET", path, query={"recursive": recursive, "limit": PAGE})
        return [Entry(entry) for entry in self._transport.whole(call, "entries")]

    def exists(self, path: PathLike) -> bool:
        return self._head(path) is not None

    def is_dir(self, path: PathLike) -> bool:
        head = self._head(path)
        if head is None:
            raise FileNotFoundError(f"the sandbox has no {path}")
        return "etag" not in head.headers  # a list of entries has none

    def _head(self, path: PathLike) -> Optional[httpx.Response]:
        try:
            return self._transport.send(self._call("HEAD", path))
        except APIError as error:
            if error.status == 404:
                return None
            raise

    def mkdir(self, path: PathLike, mode: Optional[int] = None) -> None:
        """A directory, and those above it."""
        self._operate(path, op="mkdir", **({} if mode is None else {"mode": f"{mode:04o}"}))

    def move(self, path: PathLike, to: PathLike) -> None:
        """To another path of the workspace, where nothing is yet."""
        self._operate(path, op="move", to=str(to))

    def chmod(self, path: PathLike, mode: int) -> None:
        self._operate(path, op="chmod", mode=f"{mode:04o}")

    def delete(self, path: PathLike, recursive: bool = False) -> None:
        """A file or an empty directory; with `recursive`, any directory."""
        query = {"recursive": True} if recursive else {}
        self._transport.send(self._call("DELETE", path, query=query))

    def _operate(self, path: PathLike, **body: str) -> None:
        self._transport.send(self._call("POST", path, body=body))

    def _call(self, method: str, path: PathLike, **options: Any) -> Call:
        return Call(method, f"{self._path}/files/{place_of(path)}", **options)

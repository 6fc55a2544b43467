"""A file of a sandbox as a file object, for plain code: pandas, zipfile and their like read it in
place, a part at a time."""

from __future__ import annotations

import io
import tempfile
from typing import IO, TYPE_CHECKING, Any, Optional, cast

from cloche._calls import PathLike
from cloche._uploads import IN_MEMORY

if TYPE_CHECKING:
    from cloche._sync.files import Files

READ_AHEAD = 1 << 18


class AsyncOpens:
    """Async code has no file objects: it reads pieces, or reads with an offset."""


class Opens:
    """What plain code has besides."""

    def open(self, path: PathLike, mode: str = "r", encoding: str = "utf-8") -> IO[Any]:
        """As the builtin. Reading fetches what is asked for; what is written is kept here and goes
        to the sandbox, as a whole, when the file is closed. Modes are r, rb, w and wb."""
        files = cast("Files", self)
        if mode not in ("r", "rt", "rb", "w", "wt", "wb"):
            raise ValueError(f"mode {mode!r}: a file of a sandbox is opened with r, rb, w or wb")
        raw: Any = (
            Written(files, path)
            if "w" in mode
            else io.BufferedReader(Remote(files, path), READ_AHEAD)
        )
        return cast(IO[Any], raw if "b" in mode else io.TextIOWrapper(raw, encoding=encoding))


class Remote(io.RawIOBase):
    """Reads by ranges."""

    def __init__(self, files: Files, path: PathLike) -> None:
        head = files._head(path)
        if head is None:
            raise FileNotFoundError(f"the sandbox has no {path}")
        self.name = str(path)
        self._files = files
        self._path = path
        self._size = int(head.headers.get("content-length", 0))
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise ValueError("negative seek position")
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        if self._at >= self._size or not len(view):
            return 0
        piece = self._files.read(self._path, self._at, len(view))
        view[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)


class Written(io.BufferedIOBase):
    """Keeps what is written until it is closed."""

    def __init__(self, files: Files, path: PathLike) -> None:
        self.name = str(path)
        self._files = files
        self._path = path
        self._kept: Optional[Any] = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if self._kept is None:
            raise ValueError("write to closed file")
        self._kept.write(data)
        return len(data)

    def close(self) -> None:
        kept, self._kept = self._kept, None
        if kept is None:
            return
        try:
            with kept:
                kept.seek(0)
                self._files.write(self._path, kept)
        finally:
            super().close()

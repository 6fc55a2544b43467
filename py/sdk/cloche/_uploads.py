"""What is sent as bytes: text, bytes, files of this machine, directories as archives."""

from __future__ import annotations

import base64
import io
import os
import tarfile
import tempfile
import uuid
import zlib
from typing import (
    IO,
    Any,
    Callable,
    Dict,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Tuple,
    Union,
)

from cloche._errors import BadArgument, BadReply

PIECE = 1 << 18
IN_MEMORY = 1 << 23  # of what has to be kept because it cannot be read twice
INLINE_ONE = 1 << 20  # a larger file travels by itself
INLINE_ALL = 1 << 24  # and so do those beyond this many bytes together

# Text and bytes are the content itself; a path names a file of this machine.
Source = Union[str, bytes, bytearray, memoryview, "os.PathLike[str]", IO[bytes], IO[str]]
Progress = Callable[[int, int], Any]


class Upload:
    """Bytes of known number, which can be read as often as it takes."""

    def __init__(self, file: IO[bytes], owned: bool) -> None:
        self._file = file
        self._owned = owned
        self._start = file.tell()
        self.size = file.seek(0, os.SEEK_END) - self._start
        self.progress: Optional[Progress] = None
        file.seek(self._start)

    def pieces(self) -> Iterator[bytes]:
        self._file.seek(self._start)
        done = 0
        while done < self.size:
            piece = self._file.read(min(PIECE, self.size - done))
            if not piece:
                raise BadArgument("the file became shorter while it was sent")
            yield piece
            done += len(piece)
            if self.progress:
                self.progress(done, self.size)

    def whole(self) -> bytes:
        return b"".join(self.pieces())

    def close(self) -> None:
        if self._owned:
            self._file.close()


class Form(Upload):
    """An upload as a form with one file in it."""

    def __init__(self, upload: Upload, filename: str) -> None:
        boundary = uuid.uuid4().hex
        name = filename.replace("\\", "%5C").replace('"', "%22")
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
        self._upload = upload
        self._head = (head + "Content-Type: application/octet-stream\r\n\r\n").encode()
        self._tail = f"\r\n--{boundary}--\r\n".encode()
        self.size = len(self._head) + upload.size + len(self._tail)
        self.type = f"multipart/form-data; boundary={boundary}"

    def pieces(self) -> Iterator[bytes]:
        yield self._head
        yield from self._upload.pieces()
        yield self._tail

    def close(self) -> None:
        self._upload.close()


def upload_of(source: Source) -> Upload:
    if isinstance(source, str):
        return Upload(io.BytesIO(source.encode()), True)
    if isinstance(source, (bytes, bytearray, memoryview)):
        return Upload(io.BytesIO(source), True)
    if isinstance(source, os.PathLike):
        return Upload(open(source, "rb"), True)
    if not hasattr(source, "read"):
        raise BadArgument(
            f"a file's content is text, bytes, a path or an open file, not {type(source).__name__}"
        )
    return _upload_of_file(source)


def _upload_of_file(file: Any) -> Upload:
    """Text, and what cannot be rewound, is read to its end first."""
    try:
        start = file.tell()
        is_binary = isinstance(file.read(0), bytes)
        if is_binary and file.seekable():
            file.seek(start)
            return Upload(file, False)
    except (AttributeError, OSError, TypeError):
        pass
    kept = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)
    while True:
        piece = file.read(PIECE)
        if not piece:
            break
        kept.write(piece.encode() if isinstance(piece, str) else piece)
    kept.seek(0)
    return Upload(kept, True)


def packed(directory: "os.PathLike[str]") -> Upload:
    """A directory as tar.gz. Of what is in it only files, directories and links are packed."""
    kept = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)
    with tarfile.open(fileobj=kept, mode="w:gz", compresslevel=6) as archive:
        for name in sorted(os.listdir(directory)):
            archive.add(os.path.join(directory, name), arcname=name, filter=_plain)
    kept.seek(0)
    return Upload(kept, True)


def _plain(member: tarfile.TarInfo) -> Optional[tarfile.TarInfo]:
    if not (member.isfile() or member.isdir() or member.issym()):
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def unpack(archive: IO[bytes], directory: "os.PathLike[str]") -> None:
    """SECURITY: the archive is a stranger's. Only files and directories come out of it, under names
    that stay below the directory, and links are left out, so that nothing leads elsewhere."""
    try:
        with tarfile.open(fileobj=archive, mode="r:gz") as members:
            for member in members:
                _unpack_member(members, member, directory)
    except (tarfile.TarError, EOFError, zlib.error, RecursionError) as error:
        raise BadReply(f"the archive cannot be read: {error}") from error


def _leads_elsewhere(name: str, parts: List[str]) -> bool:
    """On Windows, a colon names a drive or a stream of a file."""
    is_odd = "\\" in name or (os.name == "nt" and ":" in name)
    return is_odd or ".." in parts or name.startswith("/")


def _unpack_member(
    members: tarfile.TarFile, member: tarfile.TarInfo, directory: "os.PathLike[str]"
) -> None:
    parts = [part for part in member.name.split("/") if part not in ("", ".")]
    if _leads_elsewhere(member.name, parts):
        raise BadArgument(f"the archive has an entry {member.name!r}, which is refused")
    place = os.path.join(directory, *parts)
    if member.isdir():
        os.makedirs(place, exist_ok=True)
    elif member.isfile() and parts:
        _unpack_file(members, member, place)


def write_piece(file: IO[bytes], piece: bytes) -> None:
    """SECURITY: a program's file may be a hole that is larger than any disk. What is nothing but
    zeros takes no room; `end_pieces` comes at the end."""
    if piece[:1] == b"\0" and not piece.strip(b"\0"):
        file.seek(len(piece), os.SEEK_CUR)
    else:
        file.write(piece)


def end_pieces(file: IO[bytes]) -> None:
    file.truncate(file.tell())


def _unpack_file(members: tarfile.TarFile, member: tarfile.TarInfo, place: str) -> None:
    os.makedirs(os.path.dirname(place), exist_ok=True)
    content = members.extractfile(member)
    assert content is not None  # it is a file
    with open(place, "wb") as file:
        while True:
            piece = content.read(PIECE)
            if not piece:
                break
            write_piece(file, piece)
        end_pieces(file)
    os.chmod(place, member.mode & 0o755 | 0o600)


# ---- files in a request


class Inputs(NamedTuple):
    """Files for a request: those that go with it, and those that travel by themselves."""

    inline: List[Dict[str, Any]]
    large: List[Tuple[str, Upload]]


def inputs_of(files: Optional[Mapping[str, Source]]) -> Inputs:
    inputs = Inputs([], [])
    total = 0
    for path, source in (files or {}).items():
        upload = upload_of(source)
        if upload.size > INLINE_ONE or total + upload.size > INLINE_ALL:
            inputs.large.append((path, upload))
            continue
        total += upload.size
        inputs.inline.append(_inline(path, upload.whole()))
        upload.close()
    return inputs


def _inline(path: str, content: bytes) -> Dict[str, Any]:
    return {"path": path, "content": base64.b64encode(content).decode(), "encoding": "base64"}

"""What the tests of files of live sandboxes share."""

from __future__ import annotations

import io
import tarfile

from live_box import Box

GROWTH_MB = 16.0


def code_of(reply: object) -> tuple[int, str]:
    return reply.status, reply.json["error"]["code"]  # type: ignore[attr-defined]


def tar_of(files: dict[str, bytes], mode: str = "w:gz") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as tar:  # type: ignore[call-overload]
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return out.getvalue()


def members(data: bytes) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as tar:
        return {member.name: member for member in tar.getmembers()}


def disk(box: Box) -> int:
    return int(box.info()["usage"]["disk_bytes"])

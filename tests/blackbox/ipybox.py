"""What the tests of the dialect ipybox share: its default sandbox, by hand."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from harness import LiveService, settled
from http_client import Reply, ask, get
from live import Client


def serving(directory: Path) -> Iterator[LiveService]:
    """A service whose default sandbox is at these tests' disposal."""
    service = LiveService(directory, "--profiles", "base", "--live-disk-mb", "64")
    yield from settled(service, end_all)


def end_all(service: LiveService) -> None:
    for found in get(service.port, "/v1/sandboxes").json["sandboxes"]:
        assert ask(service.port, "DELETE", f"/v1/sandboxes/{found['id']}").status == 204


def default_of(service: LiveService) -> str:
    """The id of the default sandbox, which is there."""
    get(service.port, "/files/none")
    boxes = get(service.port, "/v1/sandboxes").json["sandboxes"]
    assert len(boxes) == 1, boxes
    return str(boxes[0]["id"])


def put(service: LiveService, path: str, data: bytes, **headers: str) -> Reply:
    return ask(service.port, "POST", f"/files/{quote(path)}", data, headers)


def run(service: LiveService, code: str) -> str:
    """Code in the default sandbox's default kernel."""
    reply = Client(service.port).ask(
        "POST", f"/v1/sandboxes/{default_of(service)}/execute", {"code": code}
    )
    assert reply.status == 200 and reply.json["status"] == "ok", reply
    return str(reply.json["stdout"])


def detail(reply: Reply, status: int, text: str) -> None:
    """An error as ipybox tells it, with ours beside it."""
    assert reply.status == status, reply
    assert reply.json["detail"] == text, reply.json
    assert reply.json["error"]["code"] and reply.json["error"]["remediation"], reply.json


def unpack(data: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as tar:
        assert all(member.isreg() for member in tar.getmembers())
        found = {member.name: tar.extractfile(member) for member in tar.getmembers()}
        return {name: file.read() for name, file in found.items() if file}

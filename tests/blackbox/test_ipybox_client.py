"""The dialect ipybox by a client like its own."""

from __future__ import annotations

import asyncio
import io
import os
import tarfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from harness import LiveService
from ipybox import put, serving, unpack

aiohttp = pytest.importorskip("aiohttp")
T = TypeVar("T")


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    yield from serving(tmp_path_factory.mktemp("ipybox"))


# ---------------------------------------------------------------------------- a client like its own


class ResourceClient:
    """The calls of ipybox's ResourceClient."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    async def __aenter__(self) -> ResourceClient:
        self.session = aiohttp.ClientSession()
        async with self.session.get(f"{self.url}/status") as reply:
            reply.raise_for_status()
            assert await reply.json() == {"status": "ok"}
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.session.close()

    async def get_module_sources(self, names: list[str]) -> Any:
        query = [("q", name) for name in names]
        async with self.session.get(f"{self.url}/modules", params=query) as reply:
            reply.raise_for_status()
            return await reply.json()

    async def upload_file(self, relpath: str, local: Path) -> None:
        async with self.session.post(f"{self.url}/files/{relpath}", data=local.open("rb")) as reply:
            reply.raise_for_status()

    async def download_file(self, relpath: str, local: Path) -> None:
        async with self.session.get(f"{self.url}/files/{relpath}") as reply:
            reply.raise_for_status()
            local.parent.mkdir(parents=True, exist_ok=True)
            with local.open("wb") as out:
                async for chunk in reply.content.iter_chunked(8192):
                    out.write(chunk)

    async def delete_file(self, relpath: str) -> None:
        async with self.session.delete(f"{self.url}/files/{relpath}") as reply:
            reply.raise_for_status()

    async def upload_directory(self, relpath: str, local: Path) -> None:
        with io.BytesIO() as out:
            with tarfile.open(fileobj=out, mode="w:gz") as tar:
                for path in local.rglob("*"):
                    tar.add(path, arcname=path.relative_to(local), recursive=False)
            data = out.getvalue()
        headers = {"Content-Type": "application/gzip"}
        url = f"{self.url}/directories/{relpath}"
        async with self.session.post(url, data=data, headers=headers) as reply:
            reply.raise_for_status()

    async def download_directory(self, relpath: str, local: Path) -> None:
        async with self.session.get(f"{self.url}/directories/{relpath}") as reply:
            reply.raise_for_status()
            for name, data in unpack(await reply.read()).items():
                (local / name).parent.mkdir(parents=True, exist_ok=True)
                (local / name).write_bytes(data)


def with_client(service: LiveService, use: Callable[[ResourceClient], Awaitable[T]]) -> T:
    async def go() -> T:
        async with ResourceClient(service.port) as client:
            return await use(client)

    return asyncio.run(go())


def test_files_go_in_and_out_by_its_client(box: LiveService, tmp_path: Path) -> None:
    source, target = tmp_path / "a.bin", tmp_path / "out" / "b.bin"
    source.write_bytes(os.urandom(1 << 20))

    async def use(client: ResourceClient) -> None:
        await client.upload_file("some/dir/a.bin", source)
        await client.download_file("some/dir/a.bin", target)
        await client.delete_file("some/dir/a.bin")
        with pytest.raises(aiohttp.ClientResponseError) as gone:
            await client.download_file("some/dir/a.bin", target)
        assert gone.value.status == 404
        with pytest.raises(aiohttp.ClientResponseError) as twice:
            await client.delete_file("some/dir/a.bin")
        assert twice.value.status == 404

    with_client(box, use)
    assert target.read_bytes() == source.read_bytes()


def test_directories_go_in_and_out_by_its_client(box: LiveService, tmp_path: Path) -> None:
    files = {"a.txt": b"a", "sub/b.txt": b"b" * 100_000, "sub/deep/c": b""}
    for name, data in files.items():
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_bytes(data)

    async def use(client: ResourceClient) -> None:
        await client.upload_directory("tree", tmp_path / "in")
        await client.download_directory("tree", tmp_path / "out")
        with pytest.raises(aiohttp.ClientResponseError) as none:
            await client.download_directory("no-tree", tmp_path / "out")
        assert none.value.status == 404

    with_client(box, use)
    found = {str(p.relative_to(tmp_path / "out")): p for p in (tmp_path / "out").rglob("*")}
    assert {n: p.read_bytes() for n, p in found.items() if p.is_file()} == files


def test_modules_are_told_to_its_client(box: LiveService) -> None:
    put(box, "mine/__init__.py", b"WHO = 'package'\n")
    put(box, "mine/inner.py", b"def f():\n    return 1\n")

    async def use(client: ResourceClient) -> Any:
        with pytest.raises(aiohttp.ClientResponseError) as none:
            await client.get_module_sources(["mine", "no.such"])
        assert none.value.status == 404
        return await client.get_module_sources(["mine", "mine.inner", "json.decoder"])

    found = with_client(box, use)
    assert list(found) == ["mine", "mine.inner", "json.decoder"]
    assert found["mine"] == "WHO = 'package'\n" and "def f" in found["mine.inner"]
    assert "class JSONDecoder" in found["json.decoder"]

"""The kernels of a live sandbox."""

from __future__ import annotations

from typing import List, Mapping, Optional

from cloche._async.cells import AsyncCells
from cloche._async.transport import AsyncTransport
from cloche._calls import Call, segment, without_none
from cloche._records import listed
from cloche.results import KernelInfo


class AsyncKernel(AsyncCells):
    """An interpreter of its own: kernels of a sandbox share files and nothing else."""

    def __init__(self, transport: AsyncTransport, path: str, kernel_id: str) -> None:
        super().__init__(transport, path, kernel_id)
        self.id = kernel_id

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"

    async def info(self) -> KernelInfo:
        return KernelInfo(
            await self._transport.json(Call("GET", f"{self._path}/kernels/{segment(self.id)}"))
        )

    async def delete(self) -> None:
        await self._transport.send(Call("DELETE", f"{self._path}/kernels/{segment(self.id)}"))


class AsyncKernels:
    """The kernels of a sandbox. The default one is the sandbox's own `run()`."""

    def __init__(self, transport: AsyncTransport, path: str) -> None:
        self._transport = transport
        self._path = path

    async def create(
        self,
        *,
        env: Optional[Mapping[str, str]] = None,
        cwd: Optional[str] = None,
        limits: Optional[Mapping[str, float]] = None,
    ) -> AsyncKernel:
        """One more; `limits` (memory_mb, cpus, pids) are its own, below those of the sandbox."""
        body = without_none(env=env, cwd=cwd, limits=limits)
        made = await self._transport.json(Call("POST", f"{self._path}/kernels", body))
        return self.get(made["id"])

    def get(self, kernel_id: str) -> AsyncKernel:
        return AsyncKernel(self._transport, self._path, kernel_id)

    async def list(self) -> List[KernelInfo]:
        found = await self._transport.json(Call("GET", f"{self._path}/kernels"))
        return [KernelInfo(kernel) for kernel in listed(found["kernels"])]

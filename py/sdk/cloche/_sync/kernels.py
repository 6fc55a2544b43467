# Made by script/sdk-generate: change ../_async/kernels.py instead.
"""The kernels of a live sandbox."""

from __future__ import annotations

from typing import List, Mapping, Optional

from cloche._sync.cells import Cells
from cloche._sync.transport import Transport
from cloche._calls import Call, segment, without_none
from cloche._records import listed
from cloche.results import KernelInfo


class Kernel(Cells):
    """An interpreter of its own: kernels of a sandbox share files and nothing else."""

    def __init__(self, transport: Transport, path: str, kernel_id: str) -> None:
        super().__init__(transport, path, kernel_id)
        self.id = kernel_id

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"

    def info(self) -> KernelInfo:
        return KernelInfo(
            self._transport.json(Call("GET", f"{self._path}/kernels/{segment(self.id)}"))
        )

    def delete(self) -> None:
        self._transport.send(Call("DELETE", f"{self._path}/kernels/{segment(self.id)}"))


class Kernels:
    """The kernels of a sandbox. The default one is the sandbox's own `run()`."""

    def __init__(self, transport: Transport, path: str) -> None:
        self._transport = transport
        self._path = path

    def create(
        self,
        *,
        env: Optional[Mapping[str, str]] = None,
        cwd: Optional[str] = None,
        limits: Optional[Mapping[str, float]] = None,
    ) -> Kernel:
        """One more; `limits` (memory_mb, cpus, pids) are its own, below those of the sandbox."""
        body = without_none(env=env, cwd=cwd, limits=limits)
        made = self._transport.json(Call("POST", f"{self._path}/kernels", body))
        return self.get(made["id"])

    def get(self, kernel_id: str) -> Kernel:
        return Kernel(self._transport, self._path, kernel_id)

    def list(self) -> List[KernelInfo]:
        found = self._transport.json(Call("GET", f"{self._path}/kernels"))
        return [KernelInfo(kernel) for kernel in listed(found["kernels"])]

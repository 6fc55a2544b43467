"""How long the turns of the server's loop take: what the tests named test_turns measure, and the
bounds that they hold it to."""

from __future__ import annotations

import contextlib
import io
import re
import resource
import tarfile
from collections.abc import Iterator

from harness import cloche_bin
from http_client import ask

MB = 1 << 20
IS_ASAN = "asan" in str(cloche_bin())
LONGEST_S = 0.25 if IS_ASAN else 0.025  # a bound of cloche_loop_turn_cpu_seconds
FEW_S = 0.1 if IS_ASAN else 0.01
BUCKET = re.compile(r'^cloche_loop_turn_cpu_seconds_bucket\{le="([^"]+)"\} (\d+)$', re.MULTILINE)


class Turns:
    """The server's turns, counted by how long they took."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.before = self.counts()

    def counts(self) -> dict[float, int]:
        text = ask(self.port, "GET", "/metrics").body.decode()
        return {float(bound): int(n) for bound, n in BUCKET.findall(text)}

    def many(self) -> int:
        return max(self.counts().values()) - max(self.before.values())

    def longest(self) -> float:
        """The bound of the bucket that the longest turn since the beginning is in."""
        after = self.counts()
        new = {bound: n - self.before[bound] for bound, n in after.items()}
        return min(bound for bound, n in new.items() if n == max(new.values()))


@contextlib.contextmanager
def many_descriptors() -> Iterator[None]:
    """For a client that is a thousand."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def tar_of(size: int) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=1) as tar:
        info = tarfile.TarInfo("f")
        info.size = size
        tar.addfile(info, io.BytesIO(bytes(size)))
    return out.getvalue()

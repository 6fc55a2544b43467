"""A large disk is no memory, whatever the memory is made of: what the kernel keeps for a program
counts, and files that a client uploaded hide nothing. Files that are files do not count."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness import LiveService
from http_client import ask
from live import Box, Client

MB = 1 << 20
LIMITS = {"memory_mb": 64, "disk_mb": 1024, "open_files": 1024, "pids": 64}

SOCKETS = """
import socket
held, n = [], 0
while n < 700 << 20:
    pair = socket.socketpair()
    held.append(pair)
    for end in pair:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        end.setblocking(False)
        try:
            while True: n += end.send(bytes(65536))
        except BlockingIOError: pass
"""
PAGE_TABLES = """
import ctypes
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
at = libc.mmap(None, 1 << 44, 1, 0x4022, -1, 0)
for i in range(180000): ctypes.string_at(at + (i << 21), 1)
"""
SHARED = """
import mmap
held = []
for i in range(700):
    held.append(mmap.mmap(-1, 1 << 20, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS))
    held[-1].write(b"x" * (1 << 20))
"""
HOARDS = {"sockets": SOCKETS, "page tables": PAGE_TABLES, "shared memory": SHARED}
UNPACK = """
import os, shutil
for i in range(3): shutil.copyfile("archive", f"part{i}")
os.unlink("archive")
"""
REPLACE = """
import os, shutil
shutil.copyfile("archive", "other")
os.replace("other", "archive")
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    options = ("--profiles", "base", "--live-disk-mb", "1024", "--max-open-files", "4096")
    made = LiveService(tmp_path_factory.mktemp("memory"), *options)
    try:
        made.settle()
        if not made.own_cgroups():
            pytest.skip("no control groups here")
        yield made
        made.check_no_leak()
        made.stop()
    finally:
        made.kill()


@pytest.fixture
def box(service: LiveService) -> Iterator[Box]:
    with Client(service.port).box(limits=LIMITS) as made:
        yield made


def put(box: Box, name: str, mb: int) -> None:
    reply = ask(box.port, "PUT", f"{box.path}/files/{name}", b"x" * (mb * MB))
    assert reply.status in (200, 201), reply


def peak_mb(box: Box, code: str) -> int:
    box.run(code, timeout_ms=60000)
    return int(box.get()["usage"]["memory_peak_bytes"]) // MB


@pytest.mark.parametrize("code", HOARDS.values(), ids=HOARDS)
def test_what_is_no_file_counts(box: Box, code: str) -> None:
    assert peak_mb(box, code) < 400


def test_uploaded_files_hide_no_shared_memory(box: Box) -> None:
    put(box, "a", 400)
    put(box, "b", 400)
    assert peak_mb(box, SHARED) < 400


@pytest.mark.parametrize("code", [UNPACK, REPLACE], ids=["unpacked", "replaced"])
def test_files_made_of_uploaded_ones_are_files(box: Box, code: str) -> None:
    for _ in range(2):
        put(box, "archive", 200)
        assert box.run(code)["status"] == "ok"
        for _ in range(4):
            put(box, "small", 40)
        again = box.run("for i in range(20): x = b'x' * (20 << 20)")
        assert again["status"] == "ok", again["error"]

"""A test internet: two network namespaces without names, which are gone with the process that made
them, however it ends.

`host` is the machine on which cloche runs: the address 198.51.100.1, a second interface with
private addresses, and a default route to everything else. `internet` has all the servers
(internet.py) and sees every packet that leaves the host: `World.seen()` are the destinations that
somebody tried to reach, whether there is a server or not. A thread steps into a namespace with
`inside()`; sockets and processes that it makes meanwhile belong there.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PYTHON = "/usr/bin/python3"
FETCHED = HERE.parents[1] / "build" / "network"  # by script/test-network
CLONE_NEWNET = 0x40000000

HOST, HOST6 = "198.51.100.1", "2001:db8:1::1"
HOST_PRIVATE, HOST_PRIVATE6 = "172.31.0.1", "fd00:31::1"
WEB, WEB6 = "198.51.100.2", "2001:db8:1::2"
GRPC = "198.51.100.6"  # where there is one: grpc_server.py
OTHER = "198.51.100.5"  # answers as well; what no policy of ours names
RECORDER = "198.51.100.8"  # tells what bytes came: World.received()
RESOLVER = "198.51.100.53"
SILENT = "203.0.113.7"  # takes packets and never answers
UNREACHABLE = "203.0.113.200"  # a router says that there is no such host
NOBODY = "198.51.100.77"  # on the same wire, and nobody has it
METADATA = "169.254.169.254"
FAR_HOST, FAR = "192.0.2.129", "192.0.2.130"  # the ends of services.long_wire()
# Where nobody may come without having it allowed by its number; all of them have servers.
CLOSED = (METADATA, "10.9.9.9", "192.168.77.7", "172.16.5.5", "100.64.0.9", "198.18.0.9")
CLOSED6 = ("fd00:77::7", "64:ff9b::a09:909", "2002:a09:909::1")

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int) -> None:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def _own() -> int:
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


@contextlib.contextmanager
def inside(namespace: int) -> Iterator[None]:
    before = _own()
    try:
        _checked(_libc.setns(namespace, CLONE_NEWNET))
        yield
    finally:
        _checked(_libc.setns(before, CLONE_NEWNET))
        os.close(before)


def made() -> int:
    before = _own()
    try:
        _checked(_libc.unshare(CLONE_NEWNET))
        return _own()
    finally:
        _checked(_libc.setns(before, CLONE_NEWNET))
        os.close(before)


def batch(namespace: int, *lines: str, family: str = "-4") -> None:
    with inside(namespace):
        subprocess.run(["ip", family, "-batch", "-"], input="\n".join(lines).encode(), check=True)


def _sysctl(namespace: int, name: str, value: str) -> None:
    with inside(namespace):
        Path("/proc/sys/net", name).write_text(value)


class World:
    """The two namespaces, and the servers of one of them. To see what leaves the host takes time of
    those that make it leave: `watched`."""

    def __init__(self, directory: Path, watched: bool = True) -> None:
        self.directory = directory
        self.ca = directory / "ca.pem"
        self.host = made()
        self.internet = made()
        self._wire()
        certificates(directory)
        with inside(self.internet):
            self.servers = subprocess.Popen(
                [PYTHON, HERE / "internet.py", directory, *(() if watched else ("unwatched",))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert self.ask() == "up"

    def _wire(self) -> None:
        """From the host to the internet: `out`, and `private`, where nobody is."""
        with inside(self.host):
            for ours, theirs in (("out", "in"), ("private", "nowhere")):
                far = f"/proc/{os.getpid()}/fd/{self.internet}"
                words = f"ip link add {ours} type veth peer name {theirs} netns {far}"
                subprocess.run(words.split(), check=True)
        up = ("link set lo up",)
        batch(
            self.host,
            *(*up, "link set out up", "link set private up"),
            *(f"addr add {HOST}/24 dev out", f"addr add {HOST_PRIVATE}/24 dev private"),
            f"route add default via {WEB}",
        )
        batch(
            self.host,
            *(
                f"addr add {HOST6}/64 dev out nodad",
                f"addr add {HOST_PRIVATE6}/64 dev private nodad",
            ),
            f"route add default via {WEB6}",
            family="-6",
        )
        here = (WEB, "198.51.100.3", "198.51.100.4", OTHER, GRPC, RECORDER, RESOLVER)
        batch(
            self.internet,
            *(*up, "link set in up", "link set nowhere up"),
            *(f"addr add {address}/24 dev in" for address in here),
            *(f"addr add {address}/32 dev in" for address in CLOSED),
            *("route add blackhole 203.0.113.0/25", "route add unreachable 203.0.113.128/25"),
        )
        batch(
            self.internet,
            f"addr add {WEB6}/64 dev in nodad",
            *(f"addr add {address}/128 dev in nodad" for address in CLOSED6),
            *("route add blackhole 2001:db8:dead::/64", "route add unreachable 2001:db8:beef::/64"),
            family="-6",
        )
        _sysctl(self.internet, "ipv4/ip_forward", "1")
        _sysctl(self.internet, "ipv6/conf/all/forwarding", "1")
        _sysctl(self.internet, "ipv4/icmp_ratelimit", "0")
        _sysctl(self.internet, "ipv6/icmp/ratelimit", "0")
        _sysctl(self.host, "ipv4/neigh/out/retrans_time_ms", "100")  # NOBODY is not there: sooner

    # -- what the servers know

    def ask(self, *words: str) -> Any:
        """One request of internet.py, and its answer; none: its first word."""
        assert self.servers.stdin is not None and self.servers.stdout is not None
        if words:
            self.servers.stdin.write(json.dumps(words) + "\n")
            self.servers.stdin.flush()
        line = self.servers.stdout.readline()
        assert line, f"internet.py ended: {self.servers.poll()}"
        return json.loads(line)

    def forget(self) -> None:
        """Nothing was seen yet."""
        self.ask("forget")

    def seen(self) -> set[tuple[str, str, int]]:
        """("tcp", address, port) of each SYN, ("udp", …) of each datagram and ("icmp", address, 0)
        that left the host since forget(), but for questions to the resolver."""
        return {(kind, address, port) for kind, address, port in self.ask("seen")}

    def asked(self) -> list[str]:
        """The names that the resolver was asked for."""
        return list(self.ask("asked"))

    def received(self) -> list[str]:
        """What came at the RECORDER, a text for each connection."""
        return list(self.ask("received"))

    def requests(self) -> list[str]:
        """ "METHOD host path" of the requests that came to the web servers."""
        return list(self.ask("requests"))

    def close(self) -> None:
        assert self.servers.stdin is not None
        self.servers.stdin.close()
        self.servers.wait(timeout=60)
        os.close(self.host)
        os.close(self.internet)

    def __enter__(self) -> World:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- the host

    def run(self, words: Sequence[str | os.PathLike[str]], **more: Any) -> str:
        """What a program prints that runs on the host, natively."""
        with inside(self.host):
            return subprocess.run(
                words, check=True, stdout=subprocess.PIPE, text=True, timeout=300, **more
            ).stdout


NAMES = ["*.example.test", "*.wild.example.test", "example.test", "cdn.provider.test", "evil.test"]


def certificates(directory: Path) -> None:
    """An authority and a certificate of its for all our names."""

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=directory, check=True, capture_output=True)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "3650")
    openssl("req", "-x509", *key, "-subj", "/CN=test", "-keyout", "ca.key", "-out", "ca.pem")
    names = ",".join(f"DNS:{name}" for name in NAMES) + f",IP:{WEB}"
    (directory / "names").write_text(f"subjectAltName={names}\n")
    openssl("req", "-new", *key[:5], "-subj", "/CN=web", "-keyout", "web.key", "-out", "web.csr")
    signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "3650")
    openssl("x509", "-req", "-in", "web.csr", *signed, "-extfile", "names", "-out", "web.pem")


def main() -> None:
    """world.py COMMAND…: runs it on the host, for trying things out."""
    import tempfile

    with tempfile.TemporaryDirectory() as name, World(Path(name)) as world:
        Path(name).chmod(0o755)
        with inside(world.host):
            status = subprocess.run(sys.argv[1:] or ["bash"], env=dict(os.environ, WORLD=name))
        print(json.dumps(sorted(world.seen())), file=sys.stderr)
        sys.exit(status.returncode)


if __name__ == "__main__":
    main()

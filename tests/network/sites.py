"""The test internet's web: pages, an index of pip's, a registry of npm's, a repository of
git's, and a recorder that only tells what bytes came."""

from __future__ import annotations

import base64
import gzip
import hashlib
import http.server
import io
import json
import os
import re
import socket
import ssl
import subprocess
import tarfile
import threading
import zipfile
from pathlib import Path

from world import FETCHED

PORTS = (80, 8080)
BLOCK = b"x" * (1 << 20)
WHEEL = "tinypkg-1.0-py3-none-any.whl"
WHEELS = FETCHED / "wheels"


def wheel() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        about = "tinypkg-1.0.dist-info"
        file.writestr("tinypkg.py", "said = 'hello'\n")
        file.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: tinypkg\nVersion: 1.0\n")
        file.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr(f"{about}/RECORD", "")
    return out.getvalue()


def distribution(wheel: str) -> str:
    """As an index calls it."""
    return re.sub(r"[-_.]+", "-", wheel.split("-")[0]).lower()


def tarball() -> bytes:
    out = io.BytesIO()
    data = json.dumps({"name": "tinynpm", "version": "1.0.0", "main": "index.js"}).encode()
    with tarfile.open(fileobj=out, mode="w") as file:
        for name, content in (("package.json", data), ("index.js", b"module.exports = 1\n")):
            info = tarfile.TarInfo(f"package/{name}")
            info.size = len(content)
            file.addfile(info, io.BytesIO(content))
    return gzip.compress(out.getvalue(), mtime=0)


def repository(directory: Path) -> None:
    """repo.git, with one commit; who may read may write."""
    if not Path("/usr/lib/git-core/git-http-backend").exists():
        return
    env = {"PATH": os.environ["PATH"], "HOME": str(directory), "GIT_CONFIG_NOSYSTEM": "1"}
    who = ("-c", "user.name=t", "-c", "user.email=t@example.test")
    script = (
        "git init -q --bare repo.git && git -C repo.git config http.receivepack true && "
        "git init -q work && cd work && echo hello > file && git add file && "
        f"git {' '.join(who)} commit -q -m first && git push -q ../repo.git HEAD:refs/heads/master"
    )
    subprocess.run(["bash", "-c", script], cwd=directory, env=env, check=True)


class Site(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    web: Web

    def log_message(self, *_: object) -> None:
        pass

    def note(self) -> None:
        self.web.requests.append(f"{self.command} {self.headers.get('Host', '')} {self.path}")

    def out(self, body: bytes, kind: str = "text/plain", code: int = 200) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self) -> None:
        self.note()
        path = self.path.split("?")[0]
        if path.startswith("/git/"):
            self.git(b"")
        elif path.startswith("/big/"):
            self.big(int(path[5:]))
        elif path.startswith("/simple/"):
            self.index(path[8:].strip("/"))
        elif path.startswith("/wheels/"):
            wheel = path[8:]
            data = self.web.wheel if wheel == WHEEL else (WHEELS / Path(wheel).name).read_bytes()
            self.out(data, "application/octet-stream")
        elif path == "/tinynpm":
            self.out(self.npm(), "application/json")
        elif path == "/tarballs/tinynpm-1.0.0.tgz":
            self.out(self.web.tarball, "application/octet-stream")
        else:
            ours = self.connection.getsockname()[0].removeprefix("::ffff:")
            self.out(f"hello from {ours}\n".encode())

    do_HEAD = do_GET

    def do_POST(self) -> None:
        self.note()
        if (self.headers.get("Transfer-Encoding") or "").lower() == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        if self.path.startswith("/git/"):
            self.git(body)
        else:
            self.out(b"got %d\n" % len(body))

    def big(self, megabytes: int) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(megabytes << 20))
        self.end_headers()
        for _ in range(megabytes):
            self.wfile.write(BLOCK)

    def index(self, package: str) -> None:
        names = [WHEEL, *(path.name for path in WHEELS.glob("*.whl"))]
        found = [name for name in names if distribution(name) == package]
        links = "".join(f'<a href="/wheels/{name}">{name}</a>' for name in found)
        self.out(links.encode(), "text/html", 200 if found else 404)

    def npm(self) -> bytes:
        is_tls = isinstance(self.connection, ssl.SSLSocket)
        base = f"{'https' if is_tls else 'http'}://{self.headers.get('Host', '')}"
        digest = base64.b64encode(hashlib.sha512(self.web.tarball).digest()).decode()
        dist = {"tarball": f"{base}/tarballs/tinynpm-1.0.0.tgz", "integrity": f"sha512-{digest}"}
        version = {"name": "tinynpm", "version": "1.0.0", "dist": dist}
        whole = {
            "name": "tinynpm",
            "dist-tags": {"latest": "1.0.0"},
            "versions": {"1.0.0": version},
        }
        return json.dumps(whole).encode()

    def git(self, body: bytes) -> None:
        path, _, query = self.path[4:].partition("?")
        env = {
            **{"PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": str(self.web.directory)},
            **{"GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path, "QUERY_STRING": query},
            **{"REQUEST_METHOD": self.command, "CONTENT_LENGTH": str(len(body))},
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        words = ["git", "-c", "safe.directory=*", "http-backend"]
        done = subprocess.run(words, input=body, env=env, capture_output=True)
        head, _, rest = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        code = int(fields.get("Status", "200").split()[0])
        self.out(rest, fields.get("Content-Type", "text/plain"), code)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_port = True  # the recorder has some of these ports on its address
    request_queue_size = 4096
    address_family = socket.AF_INET6

    def server_bind(self) -> None:
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()

    def handle_error(self, *_: object) -> None:
        pass  # clients leave as they like


class Web:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.requests: list[str] = []
        self.wheel, self.tarball = wheel(), tarball()
        repository(directory)
        site = type("Site", (Site,), {"web": self})
        for port in PORTS:
            self.start(Server(("::", port), site))
        secure = Server(("::", 443), site)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(directory / "web.pem", directory / "web.key")
        secure.socket = context.wrap_socket(
            secure.socket, server_side=True, do_handshake_on_connect=False
        )
        self.start(secure)

    @staticmethod
    def start(server: Server) -> None:
        threading.Thread(target=server.serve_forever, daemon=True).start()


class Recorder:
    """On an address of its own, on the ports of the web. Answers nothing and remembers all."""

    def __init__(self, address: str) -> None:
        self.received: list[bytearray] = []
        for port in (80, 443):
            server = socket.socket()
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            server.bind((address, port))
            server.listen(128)
            threading.Thread(target=self._listen, args=(server,), daemon=True).start()

    def _listen(self, server: socket.socket) -> None:
        while True:
            peer, _ = server.accept()
            data = bytearray()
            self.received.append(data)
            threading.Thread(target=self._read, args=(peer, data), daemon=True).start()

    @staticmethod
    def _read(peer: socket.socket, data: bytearray) -> None:
        try:
            while got := peer.recv(65536):
                data += got
        except OSError:
            pass
        peer.close()

"""Real clients, a command each, as a user would write it: run in a sandbox that may reach
*.example.test by its names. `{ca}` is the authority of the test internet's certificates."""

from __future__ import annotations

import dataclasses

PYTHON = "/usr/bin/python3 -W ignore -c"


@dataclasses.dataclass(frozen=True)
class Client:
    command: str
    needs: tuple[str, ...] = ()  # programs, files, "python:MODULE", or "fetched:WHAT"
    builds: str = ""  # what makes it of a file of clients/: `{out}` and `{source}`
    source: str = ""
    heavy: bool = True  # only for script/test-network
    uses: str = ""  # of SERVICES in services.py


def curl(words: str) -> Client:
    return Client(f"curl -fsS {words}", ("curl",), heavy=False)


def python(module: str, code: str, heavy: bool = True, uses: str = "") -> Client:
    needs = (f"python:{module}",) if module else ()
    return Client(f"{PYTHON} '{code}'", needs, heavy=heavy, uses=uses)


GRPC = """
import grpc
def ask(channel):
    data = bytes(100_000)
    assert channel.unary_unary("/test.Echo/One")(data, timeout=20) == data
    many = channel.stream_stream("/test.Echo/Many")(iter([data] * 100), timeout=20)
    assert sum(map(len, many)) == 10_000_000
"""


def netty(needs: str, jars: str) -> Client:
    return Client(
        "tar -xf client && jre/bin/java -cp 'jars/*:.' Netty web.example.test 80",
        ("javac", "jlink", needs),
        f"{jars} && javac -cp 'jars/*' -d . {{source}} && jlink "
        "--add-modules java.base,java.logging,java.naming,jdk.unsupported --output jre "
        "&& tar -chf {out} jre jars Netty*.class",
        "Netty.java",
    )


CLIENTS: dict[str, Client] = {
    "curl": curl("http://web.example.test/"),
    "curl, https": curl("--cacert {ca} https://web.example.test/"),
    "curl, 50 MB": curl("-o /dev/null http://web.example.test/big/50"),
    "curl, fast open": curl("--tcp-fastopen http://web.example.test/"),
    "curl, IPv6": curl("-6 http://six.example.test/"),
    "curl, IPv6 that is dead": curl("http://dead6.example.test/"),
    "curl, an alias": curl("http://www.example.test/"),
    "curl, ports of its own": curl("--local-port 40000-40100 http://web.example.test/"),
    "curl, many requests": curl("'http://web.example.test/[1-40]'"),
    "curl, 20 at once": curl(
        "--parallel --parallel-immediate --parallel-max 20 -o '#1' 'http://web.example.test/[1-40]'"
    ),
    "curl, a body": curl("--data-binary @/usr/bin/env -H Expect: http://web.example.test/"),
    "curl, 100-continue": curl(
        "--data-binary @/usr/bin/env -H 'Expect: 100-continue' " "http://web.example.test/"
    ),
    "wget": Client("wget -q -O - http://web.example.test/", ("wget",), heavy=False),
    "git": Client(
        "GIT_SSL_CAINFO={ca} git clone -q https://git.example.test/git/repo.git got && "
        "cat got/file",
        ("git",),
        heavy=False,
    ),
    "git, 100 MB": Client(
        "git clone -q http://git.example.test/git/large.git got && test $(ls got | wc -l) = 100",
        ("git",),
        uses="large repository",
    ),
    "git, push": Client(
        "git clone -q http://git.example.test/git/repo.git got && cd got && "
        "git -c user.email=a@b -c user.name=t commit -q --allow-empty -m x && "
        "git push -q origin HEAD:refs/heads/t$$",
        ("git",),
    ),
    "pip": Client(
        "/usr/bin/python3 -m pip -q install --isolated --no-cache-dir --cert {ca} "
        "--index-url https://pypi.example.test/simple --target t tinypkg && ls t",
        ("python:pip",),
    ),
    "pip, many wheels": Client(
        "/usr/bin/python3 -m pip -q install --isolated --no-cache-dir --cert {ca} "
        "--disable-pip-version-check --index-url https://pypi.example.test/simple --target t "
        f"aiohttp cryptography flask numpy requests && PYTHONPATH=t {PYTHON} "
        "'import aiohttp, cryptography.fernet, flask, numpy, requests; print(numpy.__file__)'",
        ("python:pip", "fetched:wheels"),
    ),
    "npm": Client(
        "npm install --cafile {ca} --registry https://npm.example.test/ --no-audit "
        "--no-fund --no-update-notifier --fetch-retries=0 --cache c tinynpm && ls node_modules",
        ("npm",),
    ),
    "node, fetch": Client(
        "NODE_EXTRA_CA_CERTS={ca} node -e \"fetch('https://web.example.test/').then(r=>r.text())"
        '.then(console.log).catch(e=>{{console.error(e.cause);process.exit(1)}})"',
        ("node",),
    ),
    "node, IPv6 that is dead": Client(
        "node -e \"fetch('http://dead6.example.test/').then(r=>r.text())"
        '.then(console.log).catch(e=>{{console.error(e.cause);process.exit(1)}})"',
        ("node",),
    ),
    "node, c-ares": Client(
        "node -e \"require('dns').resolve4('two.example.test',"
        '(e,a)=>{{if(e)throw e;console.log(a)}})"',
        ("node",),
    ),
    "node, 50 at once": Client(
        "node -e \"Promise.all(Array.from({{length:50}},()=>fetch('http://web.example.test/')"
        '.then(r=>r.text()))).then(x=>console.log(x.length))"',
        ("node",),
    ),
    "openssl": Client(
        "openssl s_client -connect web.example.test:443 -servername web.example.test "
        "-CAfile {ca} -verify_return_error -brief </dev/null",
        ("openssl",),
    ),
    "bash": Client(
        "exec 3<>/dev/tcp/web.example.test/8080 && "
        "printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3 && grep -q hello <&3",
        heavy=False,
    ),
    "static glibc": Client(
        "./client web.example.test 80", ("gcc",), "gcc -static -o {out} {source}", "get.c"
    ),
    "static musl": Client(
        "./client web.example.test 80", ("musl-gcc",), "musl-gcc -static -o {out} {source}", "get.c"
    ),
    "static Go": Client(
        "./client http://web.example.test/",
        ("go",),
        "CGO_ENABLED=0 HOME=/tmp go build -o {out} {source}",
        "get.go",
    ),
    "C++ asio": Client(
        "./client web.example.test 80",
        ("g++", "/usr/include/boost/asio.hpp"),
        "g++ -O0 -pthread -o {out} {source}",
        "asio.cpp",
    ),
    "libevent": Client(
        "./client web.example.test 80",
        ("gcc", "/usr/include/event2/event.h"),
        "gcc -o {out} {source} -levent",
        "libevent.c",
    ),
    "libevent, registered before it connects": Client(
        "./client web.example.test 80",
        ("gcc", "/usr/include/event2/event.h"),
        "gcc -o {out} {source} -levent",
        "registered.c",
    ),
    "nginx": Client(
        '/usr/sbin/nginx -e stderr -p $PWD/ -c $PWD/client & trap "kill $!" EXIT; '
        "ask() {{ curl -fsS --retry 20 --retry-delay 1 --retry-connrefused "
        '"http://127.0.0.1:8081/$1"; }}; '
        "ask && ask 'kept/[1-20]' && ask asked/ && ask big/20 | wc -c | grep -x 20971520 && "
        "curl -s -o /dev/null -w %{{http_code}} http://127.0.0.1:8081/refused/ | grep -x 502",
        ("nginx", "curl"),
        "cp {source} {out}",
        "nginx.conf",
    ),
    # Debian's has parts of itself in /etc, which sandboxes do not have.
    "Java": Client(
        "tar -xf client && jre/bin/java Get http://web.example.test/",
        ("javac", "jlink"),
        "javac -d . {source} && jlink --add-modules java.net.http --output jre "
        "&& tar -chf {out} jre Get.class",
        "Get.java",
    ),
    "netty": netty("fetched:netty", "cp -r {fetched}/netty jars"),
    "netty, of Debian": netty(
        "/usr/share/java/netty-all.jar",
        "mkdir jars && cp -L /usr/share/java/netty-*.jar jars && rm jars/netty-*-4.*",
    ),
    "psql": Client(
        "psql -h db.example.test -U postgres -Atc 'select 1'",
        ("psql", "postgres-server"),
        uses="databases",
    ),
    "redis-cli": Client(
        "redis-cli -h db.example.test ping", ("redis-cli", "redis-server"), uses="databases"
    ),
    "dig": Client("dig +short two.example.test | grep 198", ("dig",)),
    "dig, tcp": Client("dig +tcp +short two.example.test | grep 198", ("dig",)),
    "dig, another server": Client("dig @192.0.2.1 +short two.example.test | grep 198", ("dig",)),
    "urllib": python(
        "", 'import urllib.request as u; print(u.urlopen("http://web.example.test/").read())', False
    ),
    "asyncio": python(
        "",
        """
import asyncio
async def one():
    reader, writer = await asyncio.open_connection("web.example.test", 8080)
    writer.write(b"GET / HTTP/1.0\\r\\n\\r\\n")
    return await reader.read()
async def main():
    assert all(await asyncio.gather(*(one() for _ in range(50))))
asyncio.run(main())
""",
        False,
    ),
    "asyncio, 100 that are 50 ms away": python(
        "",
        """
import asyncio, socket, time
async def main():
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo("far.example.test", 7, type=socket.SOCK_STREAM)
    begin = time.monotonic()
    pairs = await asyncio.gather(*(asyncio.open_connection(*found[0][4]) for _ in range(100)))
    took = time.monotonic() - begin
    print(took)
    for _, writer in pairs:
        writer.write(b"x")
    assert [await reader.read(1) for reader, _ in pairs] == [b"x"] * 100
    assert 0.05 <= took < 0.5
asyncio.run(main())
""",
        uses="long wire",
    ),
    "asyncio, IPv6 that is dead": python(
        "",
        """
import asyncio
async def main():
    await asyncio.open_connection("dead6.example.test", 80, happy_eyeballs_delay=0.25)
asyncio.run(main())
""",
        False,
    ),
    "a server beside it": python(
        "",
        """
import http.server, threading, urllib.request as u
server = http.server.HTTPServer(("0.0.0.0", 8080), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(u.urlopen("http://localhost:8080/").status, u.urlopen("http://web.example.test:8080/").read())
""",
        False,
    ),
    "requests": python(
        "requests",
        'import requests; print(requests.get("https://web.example.test/", verify="{ca}").text)',
    ),
    "requests, 20 threads": python(
        "requests",
        """
import requests, concurrent.futures as f
session = requests.Session()
with f.ThreadPoolExecutor(20) as pool:
    print(len(list(pool.map(lambda i: session.get("http://web.example.test/").text, range(100)))))
""",
    ),
    "httpx": python(
        "httpx",
        'import httpx; print(httpx.get("https://web.example.test/", verify="{ca}").text)',
        False,
    ),
    "httpx, async": python(
        "httpx",
        """
import asyncio, httpx
async def main():
    async with httpx.AsyncClient(verify="{ca}") as client:
        await asyncio.gather(*(client.get("https://web.example.test/") for _ in range(30)))
asyncio.run(main())
""",
    ),
    "aiohttp": python(
        "aiohttp",
        """
import asyncio, aiohttp
async def main():
    async with aiohttp.ClientSession() as session:
        async def one():
            async with session.get("http://web.example.test/") as reply:
                return await reply.text()
        print(len(await asyncio.gather(*(one() for _ in range(50)))))
asyncio.run(main())
""",
        False,
    ),
    "uvloop": python(
        "uvloop",
        """
import asyncio, uvloop
uvloop.install()
async def main():
    reader, writer = await asyncio.open_connection("web.example.test", 8080)
    writer.write(b"GET / HTTP/1.0\\r\\n\\r\\n")
    assert await reader.read()
asyncio.run(main())
""",
    ),
    "gevent": python(
        "gevent",
        """
from gevent import monkey
monkey.patch_all()
import gevent, urllib.request as u
jobs = [gevent.spawn(lambda: u.urlopen("http://web.example.test/").read()) for _ in range(20)]
gevent.joinall(jobs, raise_error=True)
""",
    ),
    "tornado": python(
        "tornado",
        """
import tornado.httpclient, tornado.ioloop
fetch = tornado.httpclient.AsyncHTTPClient().fetch
print(tornado.ioloop.IOLoop.current().run_sync(lambda: fetch("http://web.example.test/")).code)
""",
    ),
    "twisted": python(
        "twisted",
        """
import sys
from twisted.internet import reactor
from twisted.web.client import Agent, readBody
asked = Agent(reactor).request(b"GET", b"http://web.example.test/").addCallback(readBody)
bad = []
asked.addErrback(bad.append).addBoth(lambda _: reactor.stop())
reactor.run()
sys.exit(str(bad) if bad else 0)
""",
    ),
    "trio": python(
        "trio",
        """
import trio
async def main():
    stream = await trio.open_tcp_stream("dead6.example.test", 80)
    await stream.send_all(b"GET / HTTP/1.0\\r\\nHost: dead6.example.test\\r\\n\\r\\n")
    assert await stream.receive_some(10)
trio.run(main)
""",
    ),
    "pycares": python(
        "pycares",
        """
import pycares, select
channel, found = pycares.Channel(), []
channel.query("two.example.test", pycares.QUERY_TYPE_A, lambda *one: found.append(one))
while not found:
    reads, writes = channel.getsock()
    select.select(reads, writes, [], 1)
    for fd in reads:
        channel.process_fd(fd, pycares.ARES_SOCKET_BAD)
assert found[0][1] is None, found
""",
    ),
    "dnspython": python(
        "dns",
        """
import dns.resolver as r
print(len(r.resolve("two.example.test", "A")), len(r.resolve("two.example.test", "A", tcp=True)))
""",
    ),
    "pycurl": python(
        "pycurl",
        """
import io, pycurl
curl = pycurl.Curl()
curl.setopt(curl.URL, "http://web.example.test/")
curl.setopt(curl.WRITEDATA, io.BytesIO())
curl.perform()
""",
    ),
    "gRPC": python(
        "grpc",
        f"""{GRPC}
with grpc.insecure_channel("grpc.example.test:50051") as channel:
    ask(channel)
""",
        uses="gRPC",
    ),
    "gRPC, TLS": python(
        "grpc",
        f"""{GRPC}
trust = grpc.ssl_channel_credentials(open("{{ca}}", "rb").read())
with grpc.secure_channel("grpc.example.test:443", trust) as channel:
    ask(channel)
""",
        uses="gRPC",
    ),
    "gRPC, 20 channels at once": python(
        "grpc",
        """
import asyncio, grpc
async def one():
    alone = [("grpc.use_local_subchannel_pool", 1)]
    async with grpc.aio.insecure_channel("grpc.example.test:50051", alone) as channel:
        return await channel.unary_unary("/test.Echo/One")(b"x", timeout=20)
async def main():
    assert await asyncio.gather(*(one() for _ in range(20))) == [b"x"] * 20
asyncio.run(main())
""",
        uses="gRPC",
    ),
    "psycopg2": Client(
        f"{PYTHON} 'import psycopg2; "
        'c = psycopg2.connect(host="db.example.test", user="postgres").cursor(); '
        'c.execute("select 1"); print(c.fetchone())\'',
        ("python:psycopg2", "postgres-server"),
        uses="databases",
    ),
    "redis, Python": Client(
        f"{PYTHON} 'import redis; print(redis.Redis(\"db.example.test\").ping())'",
        ("python:redis", "redis-server"),
        uses="databases",
    ),
}

# These must fail, and at once.
REFUSED = {
    "a name": "curl -fsS -m 20 http://evil.test/",
    "an address": "curl -fsS -m 20 http://198.51.100.5/",
    "metadata by its name": "curl -fsS -m 20 http://meta.example.test/",
    "a private network by a name": "curl -fsS -m 20 http://rebind.example.test/",
    "an allowed address by another name": "curl -fsS -m 20 --resolve evil.test:80:198.51.100.2 "
    "http://evil.test/",
}

"""Hosts of their own for servers in sandboxes, and the links that let browsers in."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from commands import audited
from harness import LiveService, eventually, run_cli, settled
from inside import OK, PLAIN, PORT, Inside, fields_of, raw_request, refused
from keyed_live import KeyedLive
from live import Client, error
from raw_http import Raw, Reply, request, server_pid

DOMAIN = "ports.localhost"


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedLive]:
    yield from settled(KeyedLive(tmp_path_factory.mktemp("links"), "--ports-domain", DOMAIN))


@pytest.fixture(scope="module")
def open_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    options = ("--profiles", "base", "--ports-domain", f"https://{DOMAIN}")
    yield from settled(LiveService(tmp_path_factory.mktemp("links"), *options))


@pytest.fixture
def box(keyed: KeyedLive) -> Iterator[Inside]:
    with Inside(keyed.client(0)) as made:
        yield made


def host_of(box: Inside, port: int = PORT) -> str:
    return f"{port}-{box.id.replace('_', '')}.{DOMAIN}"


def at(
    box: Inside, path: str, *headers: str, method: str = "GET", host: str | None = None
) -> Reply:
    """A request to the host of its own."""
    line = f"Host: {host or host_of(box)}\r\n".encode()
    with raw_request(box.port, request(method, path, *headers, host=line)) as raw:
        return raw.reply(method == "HEAD")


def link_to(box: Inside, port: int = PORT, **fields: Any) -> str:
    """What comes behind the host."""
    made = box.do("/links", port=port, **fields)
    url = urlsplit(made["url"])
    assert url.netloc == f"{host_of(box, port)}:{box.port}" and url.scheme == "http"
    return f"{url.path}?{url.query}"


def cookie_of(reply: Reply) -> str:
    (cookie,) = fields_of(reply, "Set-Cookie")
    return "Cookie: " + cookie.partition(";")[0]


# ---------------------------------------------------------------------------- links


def test_a_link_lets_a_browser_in(box: Inside, keyed: KeyedLive) -> None:
    box.serve(PLAIN)
    assert at(box, "/").code == "no_key"
    opened = at(box, link_to(box))
    assert opened.status == 303 and box.python("len(heard)") == "0"
    assert fields_of(opened, "Location") == [f"http://{host_of(box)}/"]
    (cookie,) = fields_of(opened, "Set-Cookie")
    assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= set(cookie.split("; "))
    assert "Domain" not in cookie and re.search(r"Max-Age=3(600|599|598)\b", cookie)
    reply = at(box, "/page?a=b", cookie_of(opened) + "; own=1")
    assert reply.body == b"hello" and not fields_of(reply, "Content-Security-Policy")
    line, fields = box.head()
    assert line == "GET /page?a=b HTTP/1.1"
    assert ("cookie", "own=1") in fields and b"cloche_link" not in box.heard()
    assert ("host", host_of(box)) in fields and ("x-forwarded-proto", "http") in fields


def test_a_link_leads_to_where_it_was_opened(box: Inside) -> None:
    query = link_to(box).partition("?")[2]
    for path, there in [("/a?x=1&", "/a?x=1"), ("//evil.example/?", "//evil.example/")]:
        opened = at(box, path + query)
        assert fields_of(opened, "Location") == [f"http://{host_of(box)}{there}"]


def test_a_link_stays_outside(box: Inside, keyed: KeyedLive) -> None:
    """Where it opens nothing, too."""
    box.serve(PLAIN)
    link = link_to(box)
    key = f"X-API-Key: {keyed.keys[0]}"
    cookie = cookie_of(at(box, link)).replace("Cookie: ", "Cookie: a=b;\t")
    assert at(box, link + "&a=1", key, method="POST").status == 200
    assert box.head()[0] == "POST /?a=1 HTTP/1.1"
    assert at(box, "/?b", cookie).status == 200
    assert ("cookie", "a=b") in box.head()[1]
    assert box.ask_inside(link, "POST").status == 200
    assert b"cloche_link" not in box.heard()


def test_a_link_is_for_one_server_of_one_sandbox(box: Inside, keyed: KeyedLive) -> None:
    box.serve(PLAIN).serve(PLAIN, port=9000)
    link = link_to(box)
    cookie = cookie_of(at(box, link))
    with Inside(keyed.client(0)) as other:
        other.serve(PLAIN)
        for where in (host_of(box, 9000), host_of(other)):
            assert at(box, link, host=where).code == "bad_link"
            assert at(box, "/", cookie, host=where).code == "no_key"
        assert other.python("len(heard)") == "0"
    assert at(box, "/", cookie).status == 200


@pytest.mark.parametrize("change", ["mac", "time", "key", "cut", "more", "zeros", "empty"])
def test_a_link_that_was_changed_is_none(box: Inside, change: str) -> None:
    link = link_to(box)
    path, _, token = link.partition("=")
    expires, key, mac = token.split(".")
    changed = {
        "mac": f"{expires}.{key}.{mac[:-2]}{'A' if mac[-2] != 'A' else 'B'}{mac[-1]}",
        "time": f"{int(expires) + 1}.{key}.{mac}",
        "key": f"{expires}.-.{mac}",
        "cut": token[:-1],
        "more": token + "A",
        "zeros": f"0{token}",
        "empty": "",
    }[change]
    assert at(box, f"{path}={changed}").code == "bad_link"
    assert at(box, "/", f"Cookie: cloche_link={changed}").code == "no_key"


def test_a_link_is_over_when_its_time_is(box: Inside) -> None:
    box.serve(PLAIN)
    link = link_to(box, ttl_seconds=1)
    opened = at(box, link)
    assert opened.status == 303
    assert eventually(lambda: at(box, "/", cookie_of(opened)).status == 401)
    assert at(box, link).code == "bad_link"


def test_what_a_link_has_opened_ends_with_it(box: Inside) -> None:
    switch = b"HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: own\r\n\r\n"
    box.serve([OK + b"\r\nsome", "hold"], [switch, "echo"], ["hold"])
    cookie = cookie_of(at(box, link_to(box, ttl_seconds=6)))
    host = f"Host: {host_of(box)}\r\n".encode()

    def ask(*lines: str) -> Raw:
        return raw_request(box.port, request("GET", "/", cookie, *lines, host=host))

    with ask() as answer:
        assert answer.head().status == 200
        with ask("Connection: Upgrade", "Upgrade: own") as tunnel:
            assert tunnel.head().status == 101
            with ask() as waits:
                assert waits.reply().code == "bad_link"
            assert tunnel.ends() == b""
        assert not answer.ends().endswith(b"0\r\n\r\n")


def test_a_link_ends_with_its_sandbox(keyed: KeyedLive) -> None:
    with Inside(keyed.client(0)) as box:
        cookie = cookie_of(at(box, link_to(box)))
    assert at(box, "/", cookie).status == 410


def test_a_link_ends_with_the_key_that_made_it(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    service = KeyedLive(tmp_path_factory.mktemp("links"), "--ports-domain", DOMAIN)
    try:
        file = service.state.parent / "keys.json"
        with Inside(service.client(0)) as box:
            box.serve(PLAIN)
            cookie = cookie_of(at(box, link_to(box)))
            assert at(box, "/", cookie).status == 200
            done = run_cli("key", "add", "third", "--tenant", "alice", "--keys", file)
            more = done.stdout.decode().strip()
            assert run_cli("key", "revoke", "alice", "--keys", file).returncode == 0
            os.kill(service.process.pid, signal.SIGHUP)
            assert eventually(lambda: at(box, "/", cookie).status == 401)
            box.client.headers["Authorization"] = f"Bearer {more}"
            assert at(box, "/", f"Authorization: Bearer {more}").status == 200
    finally:
        service.stop()


def test_links_hold_when_the_server_is_killed(box: Inside, keyed: KeyedLive) -> None:
    box.serve(PLAIN)
    cookie = cookie_of(at(box, link_to(box)))
    os.kill(server_pid(keyed), signal.SIGKILL)

    def again() -> bool:
        try:
            return at(box, "/", cookie).status == 200
        except OSError:
            return False

    assert eventually(again)
    assert (keyed.state / "links.key").stat().st_mode & 0o777 == 0o600


def test_a_link_is_in_the_audit_log(box: Inside, keyed: KeyedLive) -> None:
    link_to(box)
    text = (keyed.state / "audit.log").read_text()
    assert f'"sandbox":"{box.id}"' in text and f'"link_port":{PORT}' in text
    assert "cloche_link" not in text and audited is not None


def test_requests_for_links_are_checked(box: Inside, keyed: KeyedLive) -> None:
    for fields in ({}, {"port": 0}, {"port": 65536}, {"port": 1, "ttl_seconds": 0},
                   {"port": 1, "ttl_seconds": 10**6}, {"port": 1, "x": 1}):  # fmt: skip
        assert box.ask("POST", "/links", fields).status == 422
    reply = keyed.client(1).ask("POST", box.path + "/links", {"port": 1})
    error(reply, 404, "no_such_sandbox")


def test_without_a_domain_there_are_no_links(tmp_path_factory: pytest.TempPathFactory) -> None:
    service = LiveService(tmp_path_factory.mktemp("links"), "--profiles", "base")
    try:
        with Inside(Client(service.port)) as box:
            error(box.ask("POST", "/links", {"port": 1}), 501, "no_ports_domain")
            box.serve(PLAIN)
            assert box.get("/ports")["ports"][0]["url"] is None
            assert at(box, "/v1/sandboxes").status == 200, "a loopback name like any other"
    finally:
        service.stop()


# ---------------------------------------------------------------------------- hosts


def test_keys_open_it_too_and_stay_outside(box: Inside, keyed: KeyedLive) -> None:
    box.serve(PLAIN)
    for header in (f"Authorization: Bearer {keyed.keys[0]}", f"X-API-Key: {keyed.keys[0]}"):
        assert at(box, "/", header).status == 200
        assert keyed.keys[0].encode() not in box.heard()
    both = (f"X-API-Key: {keyed.keys[0]}", "Authorization: Bearer inside")
    assert at(box, "/", *both).status == 200
    assert ("authorization", "Bearer inside") in box.head()[1]
    assert at(box, "/", f"X-API-Key: {keyed.keys[1]}").code == "no_such_sandbox"
    assert at(box, "/", "X-API-Key: clk_nobody").code == "bad_key"


def test_nothing_of_ours_is_at_such_a_host(box: Inside, keyed: KeyedLive) -> None:
    box.serve(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\ntheirs")
    key = f"X-API-Key: {keyed.keys[0]}"
    for path in ("/", "/health", "/v1/sandboxes", "/docs", "/v1/info", "/api/kernels"):
        assert at(box, path, key).body == b"theirs"
    assert at(box, "/v1/sandboxes/" + box.id, key, method="DELETE").body == b"theirs"


@pytest.mark.parametrize(
    "host",
    ["ports.localhost", "x.ports.localhost", "8001-sbx.ports.localhost", "0-{id}.ports.localhost",
     "8001-{id}0.ports.localhost", "8001-{id}.evilports.localhost", "8001-{id}.ports.localhost.x",
     "a.8001-{id}.ports.localhost", "8001-{id}.ports.localhost:x", "65536-{id}.ports.localhost"],
)  # fmt: skip
def test_other_names_lead_to_no_sandbox(box: Inside, keyed: KeyedLive, host: str) -> None:
    box.serve(PLAIN)
    where = host.replace("{id}", box.id.replace("_", ""))
    reply = at(box, "/", f"X-API-Key: {keyed.keys[0]}", host=where)
    assert reply.body != b"hello" and box.python("len(heard)") == "0"


def test_answers_keep_what_is_for_their_origin(box: Inside, keyed: KeyedLive) -> None:
    box.serve(
        OK + b"Set-Cookie: a=b; Path=/\r\nSet-Cookie: c=d; Domain=ports.localhost\r\n"
        b"Set-Cookie: e=f;domain=localhost\r\nSet-Cookie: cloche_link=x\r\n"
        b"Set-Cookie: __Host-cloche_link=x\r\nAccess-Control-Allow-Origin: *\r\n"
        b"Clear-Site-Data: *\r\nStrict-Transport-Security: max-age=1\r\nAlt-Svc: h2\r\n"
        b"Content-Security-Policy: default-src x\r\nWWW-Authenticate: Basic\r\n"
        b"X-Cloche-Port: 1\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n"
    )
    reply = at(box, "/", f"X-API-Key: {keyed.keys[0]}")
    assert fields_of(reply, "Set-Cookie") == ["a=b; Path=/"]
    assert fields_of(reply, "Location") == ["/x"]
    assert fields_of(reply, "Content-Security-Policy") == ["default-src x"]
    for name in ("Access-Control-Allow-Origin", "WWW-Authenticate"):
        assert fields_of(reply, name)
    for name in ("Clear-Site-Data", "Strict-Transport-Security", "Alt-Svc", "X-Cloche-Port"):
        assert not fields_of(reply, name)


FOREIGN = [
    ("Origin: http://8001-sbx00000000000000000000000000000000.ports.localhost",),
    ("Origin: null",),
    ("Origin: http://localhost",),
    ("Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: script"),
    ("Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"),
    ("Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: websocket", "Sec-Fetch-Dest: websocket"),
]
OWN = [
    ("Origin: http://HOST",),
    ("Sec-Fetch-Site: same-origin", "Sec-Fetch-Mode: cors", "Sec-Fetch-Dest: empty"),
    ("Sec-Fetch-Site: none", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"),
    ("Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"),
]


@pytest.mark.parametrize("keys", [True, False], ids=["cookie", "without keys"])
def test_only_its_own_pages_use_what_a_browser_has(
    keyed: KeyedLive, open_service: LiveService, keys: bool
) -> None:
    client = keyed.client(0) if keys else Client(open_service.port)
    with Inside(client) as box:
        box.serve(PLAIN)
        more = (cookie_of(at(box, link_to(box))),) if keys else ()
        for headers in FOREIGN:
            reply = at(box, "/", *headers, *more)
            assert reply.code == "bad_origin", headers
        for method in ("POST", "OPTIONS"):
            navigates = [h for h in OWN[-1]] + ["Origin: https://evil.example"]
            assert at(box, "/", *navigates, *more, method=method).code == "bad_origin"
        assert box.python("len(heard)") == "0"
        for headers in OWN:
            scheme = "http" if keys else "https"
            said = [h.replace("http://HOST", f"{scheme}://{host_of(box)}") for h in headers]
            assert at(box, "/", *said, *more).status == 200, headers


def test_behind_a_proxy_that_speaks_tls(open_service: LiveService) -> None:
    with Inside(Client(open_service.port)) as box:
        box.serve(PLAIN)
        made = box.do("/links", port=PORT)
        assert made["url"].startswith(f"https://{host_of(box)}/?cloche_link=")
        assert box.get("/ports")["ports"][0]["url"] == f"https://{host_of(box)}/"
        opened = at(box, "/" + made["url"].partition("/?")[2].join(["?", ""]))
        (cookie,) = fields_of(opened, "Set-Cookie")
        assert cookie.startswith("__Host-cloche_link=") and "Secure" in cookie.split("; ")
        assert at(box, "/", cookie_of(opened)).status == 200
        assert ("x-forwarded-proto", "https") in box.head()[1]
        assert b"cloche_link" not in box.heard()
        assert at(box, "/", f"Origin: https://{host_of(box)}").status == 200
        assert at(box, "/", f"Origin: http://{host_of(box)}").code == "bad_origin"
        refused(box.ask_inside(port=9000), 502, "port_closed")


@pytest.mark.parametrize("word", ["ftp://x", "x,y", ".x", "x.", "x/y", "x:y", "a b", "https://"])
def test_a_domain_that_cannot_be_one(tmp_path_factory: pytest.TempPathFactory, word: str) -> None:
    directory = tmp_path_factory.mktemp("links")
    options = ("--http", "on", "--port", "0", "--state-dir", directory / "state")
    done = run_cli("serve", *options, "--socket", directory / "socket", "--ports-domain", word)
    assert done.returncode and b"ports_domain" in done.stderr

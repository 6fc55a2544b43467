"""Pages of servers inside sandboxes that mean harm, in a browser whose user has more than they: the
API without keys, and links to other servers. What they try is refused by the browser, or by the
server before anybody inside hears of it."""

from __future__ import annotations

import contextlib
import http.server
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from browser import Browser
from harness import LiveService
from http_client import ask
from inside import PORT, Inside
from keyed_live import KeyedLive
from live import Client
from ports_pages import DOMAIN, PAGE, answer, browsed, numbers_heard, origin_of, tried

WORKER = answer("addEventListener('fetch', () => {})", "text/javascript")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    """Whoever comes from this machine may do everything: so may the user's browser."""
    options = ("--profiles", "base", "--ports-domain", DOMAIN)
    yield from browsed(LiveService(tmp_path_factory.mktemp("ports"), *options))


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedLive]:
    yield from browsed(KeyedLive(tmp_path_factory.mktemp("ports"), "--ports-domain", DOMAIN))


@pytest.fixture
def box(service: LiveService) -> Iterator[Inside]:
    with Inside(Client(service.port)) as made:
        made.serve(PAGE)
        yield made


@pytest.fixture
def victim(service: LiveService) -> Iterator[Inside]:
    with Inside(Client(service.port)) as made:
        made.serve(PAGE)
        yield made


@pytest.fixture(params=["its own host", "no host"])
def page(request: pytest.FixtureRequest, chromium: Browser, box: Inside) -> Iterator[Browser]:
    """The hostile page: on its own host, or on ours, sandboxed."""
    own = request.param == "its own host"
    chromium.go(f"{origin_of(box)}/" if own else f"http://127.0.0.1:{box.port}{box.at('/')}")
    assert chromium.script("return document.title") == "inside"
    yield chromium
    chromium.go("about:blank")
    chromium.complaints()
    chromium.failures()


def sandboxes(box: Inside) -> list[str]:
    return [one["id"] for one in box.client.ask("GET", "/v1/sandboxes").json["sandboxes"]]


# ---------------------------------------------------------------------------- the API

# What a page can send without being asked; `a` is [the API's URL, the path of a sandbox].
TELLING = {
    "fetch": "return (await fetch(a[0] + '/v1/sandboxes')).text()",
    "with credentials": """
        return (await fetch(a[0] + '/v1/sandboxes', {credentials: 'include'})).text()""",
    "opaque": "return (await fetch(a[0] + '/v1/sandboxes', {mode: 'no-cors'})).text()",
    "as its own": "return (await fetch(a[0] + a[1] + '/files/')).text()",
    "a window": """
        const opened = window.open(a[0] + '/v1/sandboxes');
        try { return opened.document.body.textContent; } finally { opened.close(); }""",
    "a frame": """
        const frame = document.createElement('iframe');
        frame.src = a[0] + '/v1/sandboxes';
        const loaded = new Promise((done) => (frame.onload = frame.onerror = done));
        document.body.append(frame);
        await loaded;
        return frame.contentDocument ? frame.contentDocument.body.textContent : 'closed';""",
    "a script": """
        const script = document.createElement('script');
        script.src = a[0] + '/v1/sandboxes';
        const over = new Promise((done) => {
            script.onload = () => done('loaded');
            script.onerror = () => done('error');
        });
        document.body.append(script);
        return await over;""",
}
DOING = {
    "make": "await fetch(a[0] + '/v1/sandboxes', {method: 'POST', mode: 'no-cors', body: '{}'})",
    "beacon": "navigator.sendBeacon(a[0] + '/v1/sandboxes', '{}')",
    "delete": "await fetch(a[0] + a[1], {method: 'DELETE', mode: 'cors'})",
    "pause": "await fetch(a[0] + a[1] + '/pause', {method: 'POST', mode: 'no-cors', body: ''})",
    "run": """await fetch(a[0] + a[1] + '/execute', {method: 'POST', mode: 'no-cors',
        headers: {'Content-Type': 'text/plain'}, body: '{"code": "harm = 1"}'})""",
    "form": """
        const form = document.createElement('form');
        Object.assign(form, {method: 'POST', action: a[0] + a[1] + '/execute'});
        form.enctype = 'text/plain';
        const frame = document.createElement('iframe');
        frame.name = form.target = 'there';
        const field = document.createElement('input');
        Object.assign(field, {name: '{"code": "harm = 1", "x', value: '": 1}'});
        form.append(field);
        document.body.append(frame, form);
        const loaded = new Promise((done) => (frame.onload = done));
        form.submit();
        await loaded;""",
    "socket": """
        const socket = new WebSocket(a[0].replace('http', 'ws') + a[1] + '/execute');
        await new Promise((done) => {
            socket.onopen = () => socket.send('{"code": "harm = 1"}');
            socket.onclose = socket.onerror = done;
        });""",
    "worker": """
        const code = `fetch('${a[0] + a[1]}/pause', {method: 'POST', mode: 'no-cors'})
            .catch(() => 0).then(() => postMessage(0))`;
        const worker = new Worker(URL.createObjectURL(new Blob([code])));
        await new Promise((done) => (worker.onmessage = worker.onerror = done));""",
}


@pytest.mark.parametrize("what", TELLING)
def test_a_page_learns_nothing_of_the_api(page: Browser, victim: Inside, what: str) -> None:
    said = tried(page, TELLING[what], f"http://127.0.0.1:{victim.port}", victim.path)
    assert "sbx_" not in str(said) and said in ("", "closed", "error") or said.startswith("error:")


@pytest.mark.parametrize("what", DOING)
def test_a_page_does_nothing_through_the_api(page: Browser, victim: Inside, what: str) -> None:
    before = sandboxes(victim)
    tried(page, DOING[what], f"http://127.0.0.1:{victim.port}", victim.path)
    after = sandboxes(victim)
    assert after == before
    assert victim.get()["state"] == "running"
    assert victim.python("'harm' in globals()") == "False"


def test_what_the_api_keeps_in_a_browser_is_its_own(chromium: Browser, box: Inside) -> None:
    """The playground's key is in the storage of its origin, which a page below it has not."""
    api = f"http://127.0.0.1:{box.port}"
    chromium.go(api + "/health")
    chromium.script("localStorage.setItem('key', 'clk_x'); document.cookie = 'own=1'")
    chromium.go(api + box.at("/"))
    for what in ("localStorage.key", "sessionStorage.length", "document.cookie", "caches.keys()"):
        assert str(tried(chromium, f"return await {what}")).startswith("error: "), what
    assert b"own=1" not in box.heard()
    chromium.go(origin_of(box))
    assert tried(chromium, "return [localStorage.key ?? null, document.cookie].join()") is not None
    assert chromium.script("return localStorage.getItem('key')") is None
    assert "own" not in chromium.script("return document.cookie")


# ---------------------------------------------------------------------------- other servers

OTHERS = {
    "fetch": "return (await fetch(a[0], {credentials: 'include'})).text()",
    "opaque": "return (await fetch(a[0], {mode: 'no-cors', credentials: 'include'})).type",
    "post": "return (await fetch(a[0], {method: 'POST', mode: 'no-cors', body: 'x'})).type",
    "image": """
        const image = new Image();
        const over = new Promise((done) => (image.onload = image.onerror = () => done('over')));
        image.src = a[0];
        return await over;""",
    "socket": """
        const socket = new WebSocket(a[0].replace('http', 'ws'));
        return await new Promise((done) => {
            socket.onopen = () => done('open');
            socket.onerror = () => done('error');
        });""",
    "frame": """
        const frame = document.createElement('iframe');
        const loaded = new Promise((done) => (frame.onload = done));
        frame.src = a[0];
        document.body.append(frame);
        await loaded;
        return frame.contentDocument ? frame.contentDocument.title : 'closed';""",
    "form": """
        const form = document.createElement('form');
        Object.assign(form, {method: 'POST', action: a[0]});
        const frame = document.createElement('iframe');
        frame.name = form.target = `to ${a[0]}`;
        document.body.append(frame, form);
        const loaded = new Promise((done) => (frame.onload = done));
        form.submit();
        await loaded;
        return 'over';""",
}


@pytest.mark.parametrize("what", OTHERS)
def test_a_page_does_not_use_another_sandboxes_server(
    page: Browser, victim: Inside, what: str
) -> None:
    said = tried(page, OTHERS[what], origin_of(victim) + "/")
    assert numbers_heard(victim) == 0, said
    assert said in ("over", "closed", "opaque", "error") or said.startswith("error:")


@pytest.mark.parametrize("what", OTHERS)
def test_nor_one_that_a_link_opened(chromium: Browser, keyed: KeyedLive, what: str) -> None:
    """The browser has the cookies of both, which are of one site to it; and of two ports."""
    with Inside(keyed.client(0)) as box, Inside(keyed.client(0)) as victim:
        box.serve(PAGE).serve(PAGE, port=9000)
        victim.serve(PAGE)
        for opened, port in ((victim, PORT), (box, 9000), (box, PORT)):
            chromium.go(opened.do("/links", port=port)["url"])
            assert chromium.script("return document.title") == "inside"
        heard = numbers_heard(victim), numbers_heard(box)
        for there in (origin_of(victim), origin_of(box, 9000)):
            said = tried(chromium, OTHERS[what], there + "/")
            assert said in ("over", "closed", "opaque", "error") or said.startswith("error:")
        assert (numbers_heard(victim), numbers_heard(box)) == heard
        chromium.go("about:blank")
        chromium.complaints()
        chromium.failures()


def test_a_page_cannot_give_another_its_cookie(chromium: Browser, keyed: KeyedLive) -> None:
    """For the domain it can set cookies, though none that proves anything, nor in place of ours."""
    with Inside(keyed.client(0)) as box, Inside(keyed.client(0)) as victim:
        box.serve(PAGE)
        victim.serve(PAGE)
        chromium.go(victim.do("/links", port=PORT)["url"])
        chromium.go(box.do("/links", port=PORT)["url"])
        token = box.do("/links", port=PORT)["url"].partition("=")[2]
        for value in ("x", token):
            cookie = f"cloche_link={value}; domain={DOMAIN}; path=/"
            chromium.script("document.cookie = arguments[0]", cookie)
        chromium.go(origin_of(victim))
        assert chromium.script("return document.title") == "inside"
        assert b"cloche_link" not in victim.heard()
        chromium.script(
            "document.cookie = arguments[0]", f"cloche_link=; domain={DOMAIN}; max-age=0; path=/"
        )


# ---------------------------------------------------------------------------- the host


class Host(http.server.BaseHTTPRequestHandler):
    """A server of the machine that the browser runs on, for its own pages."""

    asked: list[dict[str, str]] = []

    def do_GET(self) -> None:
        self.asked.append(dict(self.headers))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"secret")

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def host() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Host) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


def test_a_page_learns_nothing_of_the_hosts_loopback(page: Browser, box: Inside, host: str) -> None:
    """A browser may ask there, as for any page; neither the answer nor a link is told."""
    box.python("servers[0].shutdown(2); servers[0].close()")
    box.serve(f"HTTP/1.1 302 F\r\nLocation: {host}\r\nContent-Length: 0\r\n\r\n".encode())
    here = "location.href.replace(/\\?.*/, '')"
    for where in (f"'{host}'", here):
        for mode in ("cors", "no-cors"):
            said = tried(page, f"return (await fetch({where}, {{mode: '{mode}'}})).text()")
            assert said == "" or said.startswith("error:"), (where, mode)
    for headers in Host.asked:
        assert "cloche" not in str(headers) and "Cookie" not in headers


# ---------------------------------------------------------------------------- what stays

REGISTER = """
    const made = await navigator.serviceWorker.register(a[0], a[1] ? {scope: a[1]} : {});
    return made.scope;"""


def test_a_service_worker_is_of_its_own_host_alone(
    chromium: Browser, box: Inside, victim: Inside
) -> None:
    box.python("servers[0].shutdown(2); servers[0].close()")
    box.serve(PAGE, WORKER, PAGE)
    chromium.go(origin_of(box) + "/app/")
    assert tried(chromium, REGISTER, "/app/sw.js", None) == origin_of(box) + "/app/"
    for scope in (origin_of(victim) + "/", f"http://127.0.0.1:{box.port}/"):
        assert tried(chromium, REGISTER, "/app/sw.js", scope).startswith("error: SecurityError")
    tried(
        chromium, "for (const w of await navigator.serviceWorker.getRegistrations()) w.unregister()"
    )


def test_without_a_host_there_are_no_service_workers(chromium: Browser, box: Inside) -> None:
    """Not even with the header that widens their scope."""
    box.python("servers[0].shutdown(2); servers[0].close()")
    worker = answer("addEventListener('fetch', () => {})", "text/javascript",
                    "Service-Worker-Allowed: /")  # fmt: skip
    box.serve(PAGE, worker)
    api = f"http://127.0.0.1:{box.port}"
    chromium.go(api + box.at("/"))
    assert tried(chromium, REGISTER, "sw.js", "/").startswith("error:")
    # And a page of ours that is made to register it would not widen its scope.
    chromium.go(api + "/health")
    assert tried(chromium, REGISTER, box.at("/sw.js"), "/").startswith("error: SecurityError")
    chromium.complaints()


@contextlib.contextmanager
def framing(url: str) -> Iterator[str]:
    """A site of somebody else, with that in a frame."""

    class Site(Host):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(f"<!doctype html><iframe src='{url}'></iframe>".encode())

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_address[1]}/"
        server.shutdown()


def test_a_page_of_another_site_cannot_frame_it(chromium: Browser, box: Inside) -> None:
    with framing(origin_of(box) + "/") as site:
        chromium.go(site)
        assert chromium.wait("document.readyState === 'complete'")
    assert numbers_heard(box) == 0
    chromium.go("about:blank")
    assert ask(box.port, "GET", "/health").status == 200

"""Usual servers inside a sandbox as people see them: in a browser that a signed link lets in."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from browser import ENTER, Browser, BrowserError
from harness import LiveService, eventually
from inside import PORT, Inside
from keyed_live import KeyedLive
from live import Client
from ports_pages import DOMAIN, browsed, origin_of, start, tried

FILES = f"""
import functools, http.server, pathlib
site = pathlib.Path("site")
site.mkdir()
(site / "a.json").write_text('{{"n": 42}}')
(site / "style.css").write_text("p {{ color: rgb(1, 2, 3) }}")
(site / "index.html").write_text('''<!doctype html><link rel=icon href=data:><p>a page
<link rel=stylesheet href=/style.css>
<script>fetch("/a.json").then((r) => r.json()).then((v) => (document.title = v.n))</script>''')
handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory="site")
http.server.ThreadingHTTPServer(("127.0.0.1", {PORT}), handler).serve_forever()
"""
FLASK = f"""
from flask import Flask, redirect, request, session, url_for
app = Flask("app")
app.secret_key = "inside"
@app.get("/")
def index():
    who = session.get("who", "nobody")
    return f'''<!doctype html><link rel=icon href=data:><p>hello {{who}}</p>
<form method=post action={{url_for("login")}}><input name=who><button>go</button></form>'''
@app.post("/login")
def login():
    session["who"] = request.form["who"]
    return redirect(url_for("index", _external=True))
app.run("127.0.0.1", {PORT})
"""
ECHO = f"""
import asyncio, http, websockets
PAGE = b'''<!doctype html><link rel=icon href=data:><script>
const socket = new WebSocket(location.origin.replace("http", "ws") + "/echo");
socket.onopen = () => socket.send("hello ".repeat(20000));
socket.onmessage = (event) => {{ document.title = event.data.length; socket.close(); }};
</script>'''
async def page(path, headers):
    return None if path == "/echo" else (http.HTTPStatus.OK, [("Content-Type", "text/html")], PAGE)
async def echo(socket):
    async for message in socket:
        await socket.send(message)
async def main():
    async with websockets.serve(echo, "127.0.0.1", {PORT}, process_request=page):
        await asyncio.Future()
asyncio.run(main())
"""
FIGURE = f"""
import matplotlib
matplotlib.use("webagg")
matplotlib.rcParams.update(
    {{"webagg.port": {PORT}, "webagg.address": "127.0.0.1", "webagg.open_in_browser": False}}
)
import matplotlib.pyplot as plt
plt.plot([1, 4, 9])
plt.gcf().canvas.mpl_connect("key_press_event", lambda event: plt.title(event.key) and plt.draw())
plt.show()
"""
# Whether a figure has been drawn: pixels of the line's blue.
DRAWN = """[...document.querySelectorAll("canvas")].some((canvas) => {
  if (!canvas.width || !canvas.height) return false;
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  for (let i = 0; i < data.length; i += 4)
    if (data[i] === 31 && data[i + 1] === 119 && data[i + 2] === 180) return true;
  return false;
})"""


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedLive]:
    yield from browsed(KeyedLive(tmp_path_factory.mktemp("ports"), "--ports-domain", DOMAIN))


@pytest.fixture
def box(keyed: KeyedLive) -> Iterator[Inside]:
    with Inside(keyed.client(0)) as made:
        yield made


def open_link(browser: Browser, box: Inside, path: str = "/") -> None:
    url: str = box.do("/links", port=PORT)["url"]
    browser.go(url.replace("/?", path + "?"))


def says(browser: Browser, text: str) -> bool:
    """In the midst of a navigation there is nothing to be asked, and no script outlives one."""
    try:
        return browser.text("p") == text
    except BrowserError:
        return False


def test_http_server(browser: Browser, box: Inside) -> None:
    start(box, FILES)
    open_link(browser, box)
    assert browser.wait("document.title === '42'") is True
    style = "getComputedStyle(document.querySelector('p')).color"
    assert browser.wait(f"{style} === 'rgb(1, 2, 3)'")
    assert browser.script("return location.href") == origin_of(box) + "/"
    assert browser.script("return document.cookie") == "", "ours is not for scripts"
    browser.go(origin_of(box) + "/")  # the cookie opens it from now on
    assert browser.wait("document.title === '42'") is True


def test_flask(browser: Browser, box: Inside) -> None:
    start(box, FLASK)
    open_link(browser, box)
    assert browser.text("p") == "hello nobody"
    browser.keys("input", "Ada" + ENTER)
    assert eventually(lambda: says(browser, "hello Ada"))
    assert browser.script("return location.href") == origin_of(box) + "/"


def test_a_websocket_echo(browser: Browser, box: Inside) -> None:
    start(box, ECHO)
    open_link(browser, box)
    assert browser.wait("document.title === '120000'") is True


def test_a_figure_of_webagg(browser: Browser, box: Inside) -> None:
    """Over a WebSocket of tornado, which checks its origin."""
    start(box, FIGURE)
    open_link(browser, box, "/1")
    assert browser.wait(DRAWN) is True


def test_a_browser_without_a_link_is_not_let_in(chromium: Browser, box: Inside) -> None:
    start(box, FILES)
    chromium.go(origin_of(box) + "/")
    assert "no_key" in chromium.text("body")
    chromium.go(origin_of(box) + "/?cloche_link=1.-.x")
    assert "bad_link" in chromium.text("body")
    assert chromium.failures() and not chromium.complaints()


# ---------------------------------------------------------------------------- without a domain


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    yield from browsed(LiveService(tmp_path_factory.mktemp("ports"), "--profiles", "base"))


def test_a_page_without_a_host_of_its_own(chromium: Browser, plain: LiveService) -> None:
    """It is shown, its style too, and scripts run, but in an origin that is nobody's."""
    with Inside(Client(plain.port)) as box:
        start(box, FILES.replace("href=/style.css", "href=style.css"))
        chromium.go(f"{plain.url}{box.at('/')}")
        style = "getComputedStyle(document.querySelector('p')).color"
        assert chromium.wait(f"{style} === 'rgb(1, 2, 3)'")
        assert chromium.script("return self.origin") == "null"
        assert tried(chromium, "return (await fetch('a.json')).status").startswith("error")
        assert tried(chromium, "return document.cookie").startswith("error")
        assert tried(chromium, "return localStorage.length").startswith("error")
        chromium.complaints()
        chromium.failures()

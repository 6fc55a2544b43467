"""The TypeScript client in a browser, on a page of another site that the server lets in."""

from __future__ import annotations

import functools
import http.server
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from browser import Browser
from harness import LiveService
from sdk_js import install, needed


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A web server with a page and the package."""
    needed()
    directory = install(tmp_path_factory.mktemp("site"))
    (directory / "index.html").write_text("<!doctype html><link rel=icon href=data:><p>a page")
    handler = functools.partial(Quiet, directory=str(directory))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture
def browser(tmp_path: Path, site: str) -> Iterator[Browser]:
    browser = Browser(tmp_path)
    try:
        browser.go(site)
        yield browser
    finally:
        browser.close()


def done(browser: Browser, service_url: str, body: str) -> Any:
    """What an async function with this body returns; `cloche` and `client` are there."""
    browser.script(
        f"""
        window.said = null;
        import("/node_modules/cloche/dist/index.js").then(async (cloche) => {{
          const client = new cloche.Client({{ baseUrl: {json.dumps(service_url)} }});
          const body = async () => {{ {body} }};
          return {{ value: await body() }};
        }}).catch((error) => ({{ error: String(error) }})).then((said) => (window.said = said));
        """
    )
    said = browser.wait("window.said")
    assert "error" not in said, said
    return said["value"]


@pytest.fixture
def service(start_live: Callable[..., LiveService], site: str) -> LiveService:
    return start_live("--cors-origin", site)


def test_a_sandbox_from_a_page(browser: Browser, service: LiveService) -> None:
    body = """
        const files = { a: new Uint8Array(2e6) };
        const box = await client.sandboxes.create({ profile: "base", files });
        const lines = [];
        const code = "print('hi')\\nname = input('? ')\\nlen(open('a').read()), name";
        const onStdout = (line) => lines.push(line);
        const result = await box.run(code, { onStdout, onInput: () => "Ada" });
        await box.files.write("b", new Blob(["of a page"]).stream());
        const text = await box.files.readText("b");
        const shell = await box.commands.terminal({ cmd: "read a; echo got $a" });
        shell.write("typed\\n");
        const end = await shell.wait();
        const gone = new AbortController();
        const stopped = await box.run("print('on', flush=True)\\nwhile True: pass",
          { signal: gone.signal, onStdout: () => gone.abort() }).catch((error) => error.name);
        const error = await client.result("exe_none")
          .catch((e) => [e.code, typeof e.requestId]);
        await box.close();
        return [lines, result.text, text, end.exitCode, stopped, error];
    """
    lines, value, text, exit_code, stopped, error = done(browser, service.url, body)
    assert lines == ["hi"] and value == "(2000000, 'Ada')"
    assert (text, exit_code, stopped) == ("of a page", 0, "AbortError")
    assert error == ["no_execution", "string"]


def test_a_page_that_is_not_let_in(
    browser: Browser, start_live: Callable[..., LiveService]
) -> None:
    body = "return await client.info().catch((error) => [error.code, error.message]);"
    code, message = done(browser, start_live().url, body)
    assert code == "no_server" and "--cors-origin" in message


def test_a_terminal_of_a_page_cannot_have_a_key(browser: Browser, service: LiveService) -> None:
    body = """
        const keyed = new cloche.Client({ baseUrl: client.baseUrl, apiKey: "clk_x" });
        const box = await client.sandboxes.create({ profile: "base" });
        const same = await keyed.sandboxes.connect(box.id);
        const said = await same.commands.terminal().catch((error) => error.message);
        await box.close();
        return said;
    """
    assert "cannot send an API key" in done(browser, service.url, body)

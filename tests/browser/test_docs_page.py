"""The page at /docs, in a real browser against a real service."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import Any, Protocol

import pytest

from browser import Browser

LANGUAGES = ["curl", "Python", "TypeScript"]


class Service(Protocol):
    """What the fixtures give: a service that listens, and the key it wants (if any)."""

    url: str
    key: str


def open_docs(browser: Browser, url: str) -> Browser:
    browser.go(url + "/docs")
    browser.script("localStorage.clear(); sessionStorage.clear();")
    browser.go("about:blank")
    browser.go(url + "/docs")
    browser.wait("document.querySelector('#api article')")
    return browser


@pytest.fixture
def docs(browser: Browser, service: Service) -> Browser:
    return open_docs(browser, service.url)


def test_docs_list_execute_with_its_fields(browser: Browser, service: Service) -> None:
    browser.go(service.url + "/docs")
    browser.wait("document.getElementById('post-v1-execute')")
    shown = browser.text("#post-v1-execute")
    assert "/v1/execute" in shown
    for field in ["code", "timeout_ms", "stdin", "last_line_interactive", "files"]:
        assert field in shown
    assert "required" in shown and "2000" in shown
    assert f"curl -X POST {service.url}/v1/execute" in shown


def test_docs_links_lead_somewhere(browser: Browser, service: Service) -> None:
    browser.go(service.url + "/docs")
    browser.wait("document.querySelector('#api article')")
    dead = browser.script(
        """
        return [...document.querySelectorAll('a[href^="#"]')].map((a) => a.hash.slice(1))
            .filter((id) => !document.getElementById(id));
        """
    )
    assert dead == []


# ---------------------------------------------------------------------------- the search


def search(docs: Browser, words: str) -> list[str]:
    """What is left of the endpoints and schemas."""
    docs.script(
        "const s = document.getElementById('search'); s.value = arguments[0];"
        "s.dispatchEvent(new Event('input'));",
        words,
    )
    found: list[str] = docs.script(
        "return [...document.querySelectorAll('#api article:not([hidden])')].map((a) => a.id);"
    )
    return found


def contents(docs: Browser) -> list[str]:
    found: list[str] = docs.script(
        "return [...document.querySelectorAll('#contents li:not([hidden]) a')]"
        ".filter((a) => a.offsetParent).map((a) => a.hash.slice(1));"
    )
    return found


def test_the_search_hides_what_does_not_fit(docs: Browser) -> None:
    everything = search(docs, "")
    assert len(everything) > 150 and contents(docs) == everything
    assert search(docs, "no such thing anywhere") == []
    assert docs.text("#found") == f"0 of {len(everything)}"
    assert not docs.script(
        "return [...document.querySelectorAll('#api h2')].some((h) => h.offsetParent);"
    )
    assert search(docs, "") == everything and docs.text("#found") == ""


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("/v1/files/{file_id}", "get-v1-files-file-id"),  # a path
        ("idle_seconds", "post-v1-sandboxes"),  # a field
        ("name_taken", "post-v1-sandboxes"),  # an error
        ("DELETE kernel", "delete-v1-sandboxes-id-kernels-kernel-id"),  # words in any order
        ("on_disconnect", "schema-ExecuteRequest"),
    ],
)
def test_the_search_finds_paths_fields_and_errors(docs: Browser, words: str, wanted: str) -> None:
    found = search(docs, words)
    assert wanted in found and len(found) < 60
    assert contents(docs) == found


def test_a_slash_begins_a_search_and_a_link_ends_it(docs: Browser) -> None:
    docs.keys("body", "/")
    docs.keys("#search", "batch")
    assert docs.script("return document.activeElement.id") == "search"
    docs.wait("document.getElementById('get-v1-info').hidden")
    docs.script("location.hash = '#get-v1-info'")
    docs.wait("!document.getElementById('get-v1-info').hidden")
    assert docs.script("return document.getElementById('search').value") == ""


# ---------------------------------------------------------------------------- examples


def example(docs: Browser, endpoint: str, language: str) -> str:
    docs.script(
        "[...document.querySelectorAll(`#${arguments[0]} .languages button`)]"
        ".find((b) => b.textContent === arguments[1]).click();",
        endpoint,
        language,
    )
    return docs.text(f"#{endpoint} pre[data-language={language}]")


def test_every_endpoint_has_an_example_in_each_language(docs: Browser, service: Service) -> None:
    found: list[dict[str, str]] = docs.script(
        "return [...document.querySelectorAll('#api article:has(.languages)')].map((a) =>"
        " Object.fromEntries([...a.querySelectorAll('[data-language]')]"
        "  .map((p) => [p.dataset.language, p.textContent])));"
    )
    assert len(found) > 70
    for examples in found:
        assert set(examples) == set(LANGUAGES)
        for text in examples.values():
            assert "undefined" not in text and not re.search(r"/\{\w+\}", text), text
        compile(examples["Python"], "example", "exec")
    assert sum(service.url in examples["curl"] for examples in found) == len(found) - 6


def run(words: list[str], url: str) -> str:
    env = {**os.environ, "CLOCHE_API_KEY": "any", "no_proxy": "*"}
    done = subprocess.run(words, capture_output=True, text=True, env=env, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_examples_run(docs: Browser, service: Service) -> None:
    shell = example(docs, "post-v1-execute", "curl")
    assert (
        json.loads(run(["bash", "-c", shell.replace("curl", "curl -s", 1)], service.url))["stdout"]
        == "42\n"
    )
    python = example(docs, "post-v1-execute", "Python")
    assert "'stdout': '42\\n'" in run([sys.executable, "-c", python], service.url)
    stream = example(docs, "post-v1-execute-stream", "Python")
    assert "event: output" in run([sys.executable, "-c", stream], service.url)
    module = "const key = 'any';\n" + example(docs, "post-v1-execute", "TypeScript")
    assert "42" in run(["node", "--input-type=module", "-e", module], service.url)


def test_the_language_is_chosen_once(docs: Browser) -> None:
    example(docs, "post-v1-execute", "Python")
    shown = "#get-v1-info pre[data-language=Python]"
    assert docs.visible(shown)
    docs.go("about:blank")


# ---------------------------------------------------------------------------- replies and errors


def unfold(docs: Browser, endpoint: str, kind: str) -> str:
    docs.script(f"document.querySelector('#{endpoint} .{kind} > summary').click()")
    docs.wait(f"document.querySelector('#{endpoint} .{kind}').childElementCount > 1")
    return docs.text(f"#{endpoint} .{kind}")


def test_errors_say_what_to_do(docs: Browser) -> None:
    said = unfold(docs, "post-v1-execute", "errors")
    for word in ("queue_full", "503", "try again later", "unknown_profile", "no_key"):
        assert word in said, said
    assert "no_such_kernel" not in said


def test_a_websocket_names_its_messages(docs: Browser) -> None:
    said = docs.text("#get-v1-sandboxes-id-ws")
    assert "SandboxMessage" in said and "SandboxEvent" in said
    assert "Try it" not in said


# ---------------------------------------------------------------------------- try it


def send(docs: Browser, endpoint: str, **values: Any) -> str:
    """Fills the form, sends it, and waits for the end; its status line."""
    form = f"#{endpoint} form.try"
    if not docs.script(f"return document.querySelector('{form}')"):
        unfold(docs, endpoint, "trial")
    docs.script(
        "for (const [name, value] of Object.entries(arguments[1]))"
        " [...document.querySelectorAll(`${arguments[0]} .field`)]"
        "  .find((f) => f.querySelector('label').textContent === name)"
        "  .querySelector('input, textarea').value = value;",
        form,
        values,
    )
    docs.script(f"document.querySelector('{form} button[type=submit]').click()")
    docs.wait(
        f"!document.querySelector('{form} button[type=submit]').hasAttribute('aria-disabled')"
    )
    return docs.text(f"{form} .try-status")


def body(docs: Browser, endpoint: str) -> str:
    return str(docs.script(f"return document.querySelector('#{endpoint} .try-body').textContent"))


def test_try_it_sends_the_request_and_shows_what_came(docs: Browser) -> None:
    code = json.dumps({"code": "print(6 * 7); print('<b>bold</b>')"})
    assert send(docs, "post-v1-execute", body=code).startswith("200 OK after ")
    assert json.loads(body(docs, "post-v1-execute"))["stdout"] == "42\n<b>bold</b>\n"
    headers = docs.script(
        "return document.querySelector('#post-v1-execute .try-headers').textContent"
    )
    assert "content-type: application/json" in headers and "x-request-id: req_" in headers


def test_try_it_shows_a_refusal(docs: Browser) -> None:
    assert send(docs, "post-v1-execute", body='{"code": 5}').startswith("422 ")
    assert json.loads(body(docs, "post-v1-execute"))["error"]["code"] == "bad_fields"
    assert send(docs, "get-v1-executions-id", id="a/b c").startswith("404 ")
    assert docs.failures()


def test_try_it_fills_the_path_and_the_query(docs: Browser) -> None:
    assert send(docs, "get-v1-files", limit="1").startswith("200 ")
    assert json.loads(body(docs, "get-v1-files"))["next"] is None
    assert send(docs, "get-v1-files", limit="0").startswith("422 ")
    assert docs.failures()


def test_try_it_shows_a_stream_as_it_comes(docs: Browser) -> None:
    endpoint = "post-v1-execute-stream"
    unfold(docs, endpoint, "trial")
    code = {"code": "print('early', flush=True)\nwhile True: pass", "timeout_ms": 50000}
    docs.script(
        f"const f = document.querySelector('#{endpoint} form.try');"
        "f.querySelector('textarea').value = arguments[0];"
        "f.querySelector('button[type=submit]').click();",
        json.dumps(code),
    )
    docs.wait(f"document.querySelector('#{endpoint} .try-body')?.textContent.includes('early')")
    docs.script(f"document.querySelector('#{endpoint} form.try button[type=button]').click()")
    docs.wait(f"document.querySelector('#{endpoint} .try-result').textContent.includes('Stopped.')")


def test_try_it_uses_the_key_that_was_entered(
    browser: Browser, keyed_service: Service | None
) -> None:
    assert keyed_service
    docs = open_docs(browser, keyed_service.url)
    assert send(docs, "get-v1-files").startswith("401 ")
    docs.click("#use-key")
    docs.keys("#key", keyed_service.key)
    docs.click("#key-form button")
    assert send(docs, "get-v1-files").startswith("200 ")
    assert docs.failures()


def test_it_fits_a_phone(docs: Browser) -> None:
    docs.resize(500, 800)
    try:
        unfold(docs, "post-v1-execute", "trial")
        assert docs.script("return document.documentElement.scrollWidth <= innerWidth")
    finally:
        docs.resize(1000, 900)

"""The page at /, in a real browser against a real service."""

from __future__ import annotations

import json
import time
import urllib.request
from typing import Any, Protocol

import pytest

from browser import CONTROL, ENTER, ESCAPE, TAB, Browser


class Service(Protocol):
    """What the fixtures give: a service that listens, and the key it wants (if any)."""

    url: str
    key: str


def open_page(browser: Browser, url: str) -> None:
    """The playground as a new visitor sees it."""
    browser.go(url)
    browser.script("localStorage.clear(); sessionStorage.clear();")
    browser.go(url)
    browser.wait("document.querySelectorAll('#examples button').length > 0")


@pytest.fixture
def page(browser: Browser, service: Service) -> Browser:
    open_page(browser, service.url)
    browser.wait("document.getElementById('version').textContent")  # it has heard from the service
    return browser


def write(page: Browser, code: str) -> None:
    page.script(
        "const e = document.getElementById('code'); e.value = arguments[0];"
        " e.dispatchEvent(new Event('input'));",
        code,
    )


def example(page: Browser, name: str) -> None:
    page.script(
        "[...document.querySelectorAll('#examples button')]"
        ".find((b) => b.textContent === arguments[0]).click();",
        name,
    )


def status(page: Browser, kind: str) -> str:
    """The status line, once it is of that kind."""
    page.wait(f"document.getElementById('status').dataset.kind === {json.dumps(kind)}")
    return page.text("#status")


def streams(page: Browser) -> dict[str, str]:
    found: dict[str, str] = page.script(
        """
        const all = (kind) =>
            [...document.querySelectorAll('#output .' + kind)].map((e) => e.textContent).join('');
        return {stdout: all('stdout'), stderr: all('stderr')};
        """
    )
    return found


def test_run_shows_output_status_exit_code_and_time(page: Browser) -> None:
    write(page, "import sys\nprint('to stdout')\nprint('to stderr', file=sys.stderr)")
    page.click("#run")
    line = status(page, "ok")
    assert streams(page) == {"stdout": "to stdout\n", "stderr": "to stderr\n"}
    assert "exit code 0" in line and ("ms" in line or " s" in line)


def test_output_appears_while_the_program_runs(page: Browser) -> None:
    write(page, "import time\nprint('early', flush=True)\ntime.sleep(600)")
    page.click("#run")
    page.wait("document.getElementById('output').textContent === 'early\\n'")
    assert page.script("return document.getElementById('status').dataset.kind") == "running"
    page.click("#stop")
    status(page, "stopped")


def test_error_shows_the_traceback(page: Browser) -> None:
    example(page, "Error")
    page.click("#run")
    line = status(page, "error")
    assert "exit code 1" in line
    assert streams(page)["stdout"] == "3.0\n"
    assert "Traceback" in streams(page)["stderr"]
    assert "ZeroDivisionError: division by zero" in streams(page)["stderr"]


def test_each_line_of_stderr_has_one_bar_before_it(page: Browser) -> None:
    write(
        page, "import sys\nfor line in 'one', 'two\\nthree', '': print(line, file=sys.stderr)\n1/0"
    )
    page.click("#run")
    status(page, "error")
    boxes = page.script(
        "return [...document.querySelectorAll('#output .stderr')]"
        ".flatMap((e) => [...e.getClientRects()]).map((r) => [r.left, r.top]);"
    )
    assert len({left for left, _ in boxes}) == 1
    assert len({top for _, top in boxes}) == len(boxes) >= 7


def test_plot_appears_with_a_link_to_its_file(page: Browser) -> None:
    example(page, "Plot")
    page.click("#run")
    page.wait("document.querySelector('#files img')?.naturalWidth > 100")
    assert "waves.png" in page.text("#files a")
    link = page.script("return document.querySelector('#files a').href")
    with urllib.request.urlopen(link) as reply:
        assert reply.read(8) == b"\x89PNG\r\n\x1a\n"


def test_figures_that_are_shown_appear(page: Browser) -> None:
    code = "import matplotlib.pyplot as plt\n" + "plt.plot([1, 4, 9])\nplt.show()\n" * 2
    write(page, code + "print(plt.get_fignums())")
    page.click("#run")
    status(page, "ok")
    page.wait("document.querySelectorAll('#files img').length === 2")
    page.wait("document.querySelector('#files img')?.naturalWidth > 100")
    assert "figure-1.png" in page.text("#files") and "figure-2.png" in page.text("#files")
    assert streams(page)["stdout"] == "[]\n"


def test_colours_and_lines_that_are_written_over(page: Browser) -> None:
    write(
        page,
        "import sys\n"
        "print('\\x1b[31mred\\x1b[0m plain \\x1b[1;4;38;5;196mloud\\x1b[m', flush=True)\n"
        "for n in range(0, 101, 50): print(f'\\r{n} %', end='', flush=True)\n"
        "print('\\rdone\\x1b[K\\nab\\bc\\x1b]0;title\\x07\\x1b[2J!')\n",
    )
    page.click("#run")
    line = status(page, "ok")
    assert " ms" in line or " s" in line
    assert streams(page)["stdout"] == "red plain loud\ndone\nac!\n"
    look = (
        "const s = getComputedStyle(document.querySelector(arguments[0]));"
        " return [s.color, s.fontWeight]"
    )
    red = page.script(look, "#output .ansi-1")
    plain = page.script(look, "#output .stdout:not([class*=ansi])")
    assert red[0] != plain[0]
    assert page.script(look, "#output .bold") == ["rgb(255, 0, 0)", "700"]
    assert page.script("return document.title") == "cloche"


def test_a_sequence_may_come_in_pieces(page: Browser) -> None:
    write(
        page,
        "import sys, time\n"
        "for piece in ('a\\x1b', '[3', '2mgreen', '\\x1b[0m', 'b', '\\r', 'X\\n'):\n"
        "    sys.stdout.write(piece); sys.stdout.flush(); time.sleep(0.05)\n",
    )
    page.click("#run")
    status(page, "ok")
    assert streams(page)["stdout"] == "Xgreenb\n"
    assert page.script("return document.querySelector('#output .ansi-2').textContent") == "green"


def test_nothing_is_missing(page: Browser, service: Service) -> None:
    """No 404 in the console, of either page."""
    page.go(service.url + "/docs")
    page.wait("document.getElementById('post-v1-execute')")
    icon = page.script("return document.querySelector('link[rel=icon]').href")
    with urllib.request.urlopen(icon) as reply:
        assert reply.headers["Content-Type"] == "image/svg+xml"
    assert page.failures() == []


def test_output_and_file_names_are_never_markup(page: Browser) -> None:
    evil = "<img src=x onerror=document.title='owned'>"
    write(page, f"print({evil!r})\nopen({evil!r}, 'w').close()")
    page.click("#run")
    status(page, "ok")
    assert streams(page)["stdout"] == evil + "\n"
    assert page.script("return document.querySelectorAll('#output img, #files img').length") == 0
    assert page.script("return document.title") == "cloche"


def test_script_in_an_svg_file_does_not_run(page: Browser) -> None:
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9">'
        "<script>window.top.document.title = 'owned'</script></svg>"
    )
    write(page, f"open('a.svg', 'w').write({svg!r})")
    page.click("#run")
    page.wait("document.querySelector('#files img')?.naturalWidth === 9")
    assert page.script("return document.title") == "cloche"


def ended(service: Service) -> int:
    """How many executions the service has seen the end of."""
    with urllib.request.urlopen(service.url + "/metrics") as reply:
        lines = reply.read().decode().splitlines()
    return sum(
        int(line.split()[-1]) for line in lines if line.startswith("cloche_executions_total{")
    )


def test_stop_ends_a_running_program(page: Browser, service: Service) -> None:
    page.script("document.getElementById('seconds').value = '60'")
    write(page, "import time\nprint('on', flush=True)\ntime.sleep(600)")
    before = ended(service)
    page.click("#run")
    page.wait("document.getElementById('output').textContent === 'on\\n'")
    assert ended(service) == before
    page.click("#stop")
    status(page, "stopped")
    deadline = time.monotonic() + 30  # well before its own time limit
    while ended(service) == before:
        assert time.monotonic() < deadline, "the program goes on after Stop"
        time.sleep(0.05)


def test_another_program_can_run_after_stop(page: Browser) -> None:
    write(page, "import time\ntime.sleep(600)")
    page.click("#run")
    page.click("#stop")
    status(page, "stopped")
    write(page, "print('next')")
    page.click("#run")
    status(page, "ok")
    assert streams(page)["stdout"] == "next\n"


def test_time_limit_of_the_page_is_obeyed(page: Browser) -> None:
    page.script("document.getElementById('seconds').value = '0.5'")
    write(page, "import time\ntime.sleep(600)")
    page.click("#run")
    line = status(page, "timeout")
    assert "Time limit" in line and "stopped: it ran longer than 0.5 s (timeout_ms)" in line


def test_a_limit_that_was_hit_is_said_in_words(page: Browser) -> None:
    write(page, "print('x' * 3000000)\nopen('f', 'wb').write(b'x' * 100000000)")
    page.click("#run")
    line = status(page, "error")
    assert "stdout was cut: there was more than 1 MB of it (output_bytes)" in line
    assert "its disk became full: 64 MB are allowed" in line


def test_refusal_is_shown_in_the_words_of_the_service(page: Browser) -> None:
    page.script("document.getElementById('seconds').value = '80000'")
    write(page, "pass")
    page.click("#run")
    assert "exceeds maximum" in status(page, "refused")


def test_keys_edit_and_run(page: Browser) -> None:
    write(page, "")
    page.keys("#code", f"if True:{ENTER}print('by key'){CONTROL}{ENTER}")
    status(page, "ok")
    value = "document.getElementById('code').value"
    assert page.script(f"return {value}") == "if True:\n    print('by key')"
    page.keys("#code", f"{ENTER}{TAB}x")
    assert page.script(f"return {value}").endswith("\n        x")
    page.keys("#code", f"{ESCAPE}{TAB}")
    assert page.script("return document.activeElement.id") == "run"


def test_code_outlives_a_reload(page: Browser, service: Service) -> None:
    write(page, "print('kept')")
    page.go(service.url)
    page.wait("document.getElementById('code').value === \"print('kept')\"")


def test_profiles_are_those_of_the_service(page: Browser, service: Service) -> None:
    with urllib.request.urlopen(service.url + "/v1/profiles") as reply:
        known: list[dict[str, Any]] = json.load(reply)["profiles"]
    offered = page.script(
        "return [...document.getElementById('profile').options].map(o => o.value)"
    )
    assert offered == ["auto"] + [item["name"] for item in known]


def test_key_is_asked_for_on_401_and_then_used(browser: Browser, keyed_service: Service) -> None:
    open_page(browser, keyed_service.url)
    browser.wait("!document.getElementById('key-form').hidden")
    assert browser.visible("#key")
    browser.keys("#key", keyed_service.key + ENTER)
    browser.wait("document.getElementById('version').textContent")
    assert not browser.visible("#key")
    write(browser, "open('a.txt', 'w').write('a')\nprint('with a key')")
    browser.click("#run")
    status(browser, "ok")
    assert streams(browser)["stdout"] == "with a key\n"


def test_no_key_is_asked_for_where_none_is_needed(page: Browser) -> None:
    assert not page.visible("#key")


def test_page_fits_a_phone(page: Browser) -> None:
    page.resize(500, 800)  # a headless window cannot be narrower; the layout changes above that
    try:
        assert page.script("return document.documentElement.scrollWidth <= innerWidth")
    finally:
        page.resize(1000, 900)

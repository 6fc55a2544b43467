"""A real Chromium, driven through chromedriver's WebDriver protocol with nothing but urllib."""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the protocol's name for a reference to an element
DEADLINE_S = 60  # only a hang takes that long
CONTROL, TAB, ENTER, ESCAPE = "\ue009", "\ue004", "\ue007", "\ue00c"

# Looks until the expression is true, in the page: the driver asks once and is told when.
WAIT = """
const done = arguments[arguments.length - 1];
const look = () => {
  const value = (() => { return (%s); })();
  if (value) done(value); else setTimeout(look, 20);
};
look();
"""


class BrowserError(Exception):
    """What the driver answered instead of doing it."""


class Browser:
    def __init__(self, directory: Path) -> None:
        # A session of its own, so that the browser's many processes can be ended as one group.
        self.driver = subprocess.Popen(
            ["chromedriver", "--port=0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        self.session = ""
        self.log: list[Any] = []
        try:
            self.base = f"http://127.0.0.1:{self._port()}"
            self._open(directory)
        except BaseException:
            self.close()
            raise

    def _port(self) -> int:
        assert self.driver.stdout
        for line in self.driver.stdout:
            if found := re.search(r"started successfully on port (\d+)", line):
                return int(found[1])
        raise BrowserError("chromedriver did not start")

    def _open(self, directory: Path) -> None:
        arguments = ["--headless=new", "--window-size=1000,900", f"--user-data-dir={directory}"]
        # /dev/shm is small in containers, and Chromium refuses to be root in its own sandbox.
        arguments += ["--disable-dev-shm-usage", "--disable-gpu"]
        if os.getuid() == 0:
            arguments.append("--no-sandbox")
        wanted = {
            "browserName": "chrome",
            "goog:chromeOptions": {"args": arguments},
            "goog:loggingPrefs": {"browser": "ALL"},
            "timeouts": {"script": DEADLINE_S * 1000, "pageLoad": DEADLINE_S * 1000},
        }
        made = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self.session = f"/session/{made['sessionId']}"

    def close(self) -> None:
        try:
            if self.session:
                self._ask("DELETE", self.session)
        finally:
            os.killpg(self.driver.pid, signal.SIGKILL)
            self.driver.wait()

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.base + path, data, {"Content-Type": "application/json"}, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=2 * DEADLINE_S) as reply:
                return json.load(reply)["value"]
        except urllib.error.HTTPError as error:
            raise BrowserError(json.load(error)["value"]["message"]) from None

    def go(self, url: str) -> None:
        self._ask("POST", self.session + "/url", {"url": url})

    def script(self, code: str, *arguments: object) -> Any:
        return self._ask(
            "POST", self.session + "/execute/sync", {"script": code, "args": list(arguments)}
        )

    def wait(self, expression: str) -> Any:
        """What a JavaScript expression gives, once it is true."""
        try:
            return self._ask(
                "POST", self.session + "/execute/async", {"script": WAIT % expression, "args": []}
            )
        except BrowserError as error:
            raise BrowserError(f"never true: {expression}\n{error}\n{self.text('body')}") from None

    def _find(self, selector: str) -> str:
        found = self._ask(
            "POST", self.session + "/element", {"using": "css selector", "value": selector}
        )
        return f"{self.session}/element/{found[ELEMENT]}"

    def click(self, selector: str) -> None:
        self._ask("POST", self._find(selector) + "/click", {})

    def keys(self, selector: str, keys: str) -> None:
        """Presses keys, as on a keyboard, in an element."""
        self._ask("POST", self._find(selector) + "/value", {"text": keys})

    def text(self, selector: str) -> str:
        return str(self._ask("GET", self._find(selector) + "/text"))

    def visible(self, selector: str) -> bool:
        return bool(self._ask("GET", self._find(selector) + "/displayed"))

    def _log(self, network: bool) -> list[str]:
        self.log += self._ask("POST", self.session + "/se/log", {"type": "browser"})
        found = [
            entry["message"]
            for entry in self.log
            if entry["level"] == "SEVERE" and (entry["source"] == "network") == network
        ]
        self.log = [entry for entry in self.log if (entry["source"] == "network") != network]
        return found

    def complaints(self) -> list[str]:
        """Errors of scripts and of the content security policy, but not the replies that failed."""
        return self._log(False)

    def failures(self) -> list[str]:
        """The replies that failed, of all that was asked for since it was last asked."""
        return self._log(True)

    def resize(self, width: int, height: int) -> None:
        self._ask("POST", self.session + "/window/rect", {"width": width, "height": height})

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self._ask("GET", self.session + "/screenshot")))

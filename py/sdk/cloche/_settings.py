"""Where the server is and who we are to it, as the command line has them."""

from __future__ import annotations

import os
import re
from typing import Any, Dict, Optional
from urllib.parse import urlsplit

from cloche._errors import BadArgument
from cloche._version import __version__

DEFAULT_SERVER = "http://127.0.0.1:8000"
LOCAL = re.compile(r"localhost|::1|127\..*", re.IGNORECASE)
CONNECT_S = 15.0
KEEP_S = 15.0  # an idle connection; the server keeps it longer, so that it never closes one we use
CONNECTIONS = 1000
IDLE_CONNECTIONS = 100


class Server:
    """`shown` is the URL as the user wrote it, `base` what stands in front of a path."""

    def __init__(self, url: Optional[str], key: Optional[str]) -> None:
        self.shown = url or os.environ.get("CLOCHE_SERVER") or DEFAULT_SERVER
        self.socket = _socket_in(self.shown)
        self.base = "http://localhost" if self.socket else _checked(self.shown)
        self.is_local = bool(self.socket or LOCAL.fullmatch(urlsplit(self.base).hostname or ""))
        self.headers = {"User-Agent": f"cloche-python/{__version__}"}
        # An empty key is none, as with the command line.
        secret = os.environ.get("CLOCHE_API_KEY", "") if key is None else key
        self.secret = secret
        if secret:
            self.headers["Authorization"] = "Bearer " + _sound(secret, key is not None)

    @property
    def websocket_base(self) -> str:
        return "ws" + self.base[len("http") :]

    def options(self) -> Dict[str, Any]:
        """How httpx is to connect. Proxies are not for our own machine; where neither TLS nor a
        proxy can come into it, no certificates are loaded."""
        return {
            "trust_env": not self.is_local,
            "verify": not (self.is_local and self.base.startswith("http://")),
        }


def _socket_in(url: str) -> Optional[str]:
    if not url.lower().startswith("unix:"):
        return None
    path = url[len("unix:") :]
    path = path[2:] if path.startswith("//") else path
    if not path:
        raise _bad_url(url, "it names no path")
    return path


def _checked(url: str) -> str:
    if not re.match(r"https?://", url, re.IGNORECASE):
        raise _bad_url(url, "the scheme is missing or another one")
    if "@" in url.split("/", 3)[2]:
        raise _bad_url(url, "a name and password have no place in it (see api_key)")
    if re.search(r"[?#\s]", url):
        raise _bad_url(url, "it has more than a path behind the host")
    try:
        parts = urlsplit(url)
        parts.port
    except ValueError as error:
        raise _bad_url(url, str(error)) from None
    if not parts.hostname:
        raise _bad_url(url, "it has no host")
    return url.rstrip("/")


def _bad_url(url: str, why: str) -> BadArgument:
    return BadArgument(
        f"the server's URL is {url!r}: {why};"
        " it must be http://HOST:PORT, https://HOST or unix:PATH"
    )


def _sound(key: str, given: bool) -> str:
    """The key, if it can be one. SECURITY: the message does not show it."""
    if re.fullmatch(r"[!-~]{1,511}", key):
        return key
    name = "api_key" if given else "CLOCHE_API_KEY"
    raise BadArgument(f"{name} holds no key: it is too long, or has blanks or other characters")

"""The fixtures of the black-box tests: a real service to open the pages of."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

BLACKBOX = Path(__file__).resolve().parent.parent / "blackbox"
sys.path.insert(0, str(BLACKBOX))

from browser import Browser  # noqa: E402
from harness import Service  # noqa: E402

_spec = importlib.util.spec_from_file_location("blackbox_fixtures", BLACKBOX / "conftest.py")
assert _spec is not None and _spec.loader is not None
_fixtures = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_fixtures)

service_session = _fixtures.service_session
start_service = _fixtures.start_service
start_live = _fixtures.start_live
keyed_service = getattr(_fixtures, "keyed_service", None)


@pytest.fixture
def service(service_session: Service) -> Service:
    """Without a look for leaks after every test: the browser keeps its connections."""
    return service_session


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    browser = Browser(tmp_path_factory.mktemp("chromium"))
    try:
        yield browser
    finally:
        browser.close()


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    """The module's browser, which must have had nothing to complain of."""
    yield chromium
    assert chromium.complaints() == []

"""One browser and four worlds for all tests of this folder; they end with its last test."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from tests.dashboard.browser.chromium import BrowserMissing
from tests.dashboard.browser.screenshots import Shop, shop_world
from tests.dashboard.browser.tabs import SharedBrowser, Tab
from tests.dashboard.browser.worlds import Served, large_world, small_world, troubled_world
from tests.dashboard.page_packages import is_required

_FOLDER: Final = Path(__file__).parent


@dataclass(slots=True)
class _Shared:
    """What the tests of the folder share, each part started when it is first asked for."""

    ends: ExitStack = field(default_factory=ExitStack)
    browser: SharedBrowser | None = None
    small: Served | None = None
    large: Served | None = None
    troubled: Served | None = None
    shop: Shop | None = None

    def close(self) -> None:
        self.browser = self.small = self.large = self.troubled = self.shop = None
        self.ends.close()


_SHARED: Final = _Shared()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Ends what is shared after the last test of the folder: other tests need the event loop of this thread."""
    if _FOLDER in item.path.parents and (nextitem is None or _FOLDER not in nextitem.path.parents):
        _SHARED.close()


@pytest.fixture
def browser() -> SharedBrowser:
    """The one Chromium of this folder."""
    if _SHARED.browser is None:
        try:
            _SHARED.browser = SharedBrowser()
        except BrowserMissing as missing:
            if is_required(os.environ):
                raise
            pytest.skip(str(missing))
        _SHARED.ends.callback(_SHARED.browser.close)
    return _SHARED.browser


@pytest.fixture
def small(browser: SharedBrowser, tmp_path_factory: pytest.TempPathFactory) -> Served:
    """The small world, served by the real process."""
    if _SHARED.small is None:
        _SHARED.small = _SHARED.ends.enter_context(small_world(tmp_path_factory.mktemp("small")))
    return _SHARED.small


@pytest.fixture
def large(browser: SharedBrowser, tmp_path_factory: pytest.TempPathFactory) -> Served:
    """10,000 resources, served by the real process."""
    if _SHARED.large is None:
        _SHARED.large = _SHARED.ends.enter_context(large_world(tmp_path_factory.mktemp("large")))
    return _SHARED.large


@pytest.fixture
def troubled(browser: SharedBrowser, tmp_path_factory: pytest.TempPathFactory) -> Served:
    """A contest, a changed spec and a cycle, served by the real process."""
    if _SHARED.troubled is None:
        _SHARED.troubled = _SHARED.ends.enter_context(troubled_world(tmp_path_factory.mktemp("troubled")))
    return _SHARED.troubled


@pytest.fixture
def shop(browser: SharedBrowser, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """The fleet of the pictures, served by the real processes."""
    if _SHARED.shop is None:
        _SHARED.shop = _SHARED.ends.enter_context(shop_world(tmp_path_factory.mktemp("shop")))
    return _SHARED.shop


@pytest.fixture
def tab(browser: SharedBrowser, small: Served) -> Iterator[Tab]:
    """A page of the small world. At the end of the test its console is empty, and no other host was asked."""
    with browser.tab(small) as tab:
        yield tab
        assert tab.troubles == []
        assert {url for url in tab.requested if not url.startswith((tab.address, "blob:"))} == set()

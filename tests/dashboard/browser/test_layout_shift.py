"""Nothing moves by itself while a view is loaded, on a desktop and on a phone."""

import pytest
from playwright.sync_api import expect

from tests.dashboard.browser.tabs import DESKTOP, PHONE, SharedBrowser, Tab
from tests.dashboard.browser.test_accessibility import PLACES
from tests.dashboard.browser.worlds import Served

# What a page that does not move may have at most is 0.1 by the usual measure. Ours is to have next to none.
MOST = 0.01
_WATCH = """
  window.shifts = []
  new PerformanceObserver(list => {
    for (const one of list.getEntries())
      if (!one.hadRecentInput) window.shifts.push({
        value: one.value, what: one.sources.map(source => (source.node?.className ?? source.node?.nodeName ?? "") + "")
      })
  }).observe({type: "layout-shift", buffered: true})
"""


def shifts(tab: Tab) -> tuple[float, list[object]]:
    found = tab.value("() => window.shifts")
    return sum(one["value"] for one in found), found


def opened(tab: Tab, place: str, selector: str) -> None:
    """Loads the page at a view, as a link from elsewhere does."""
    tab.page.goto("about:blank")
    tab.go(place)
    expect(tab.page.locator(selector).first).to_be_visible()
    expect(tab.page.locator(".skeleton")).to_have_count(0)
    # Two frames: shifts are told after the frame that has them.
    tab.value("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_no_view_moves_while_it_is_loaded(browser: SharedBrowser, small: Served, size: tuple[int, int]) -> None:
    with browser.tab(small, size) as tab:
        tab.page.add_init_script(_WATCH)
        for place, selector in PLACES.items():
            opened(tab, place, selector)
            moved, what = shifts(tab)

            assert moved <= MOST, (place, what)


def test_the_list_of_10_000_does_not_move_while_it_is_loaded(browser: SharedBrowser, large: Served) -> None:
    with browser.tab(large) as tab:
        tab.page.add_init_script(_WATCH)
        for place, selector in (("/", ".list-row"), ("/upgrade", ".verdict")):
            opened(tab, place, selector)
            moved, what = shifts(tab)

            assert moved <= MOST, (place, what)

"""axe-core finds nothing, in both themes and on a phone, and everything can be done with the keyboard."""

from functools import cache
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.dashboard.browser.tabs import DESKTOP, PHONE, SharedBrowser, Tab
from tests.dashboard.browser.worlds import Served
from tests.dashboard.page_packages import page_packages

ORDERS = "/resource/SQLDatabase.sql.cnrm.cloud.google.com/default/orders"
PLACES = {
    "/": ".list-row",
    "/graph": ".graph-canvas[data-nodes]",
    ORDERS: ".conditions",
    "/resource/StorageBucket.storage.cnrm.cloud.google.com/default/watched/fields": ".fields .differs",
    f"{ORDERS}/timeline": ".entry",
    f"{ORDERS}/raw": "pre",
    "/plan": ".view.plan h1",
    "/?q=nothing-is-called-so&sort=-name": ".empty-title",
    "/resource/StorageBucket.storage.cnrm.cloud.google.com/default/nothing": ".empty-title",
}


@cache
def axe() -> str:
    return (page_packages() / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


def violations(tab: Tab) -> list[dict[str, Any]]:
    """What axe-core finds, each with the elements that have it."""
    tab.value(axe())
    found = tab.value("() => axe.run(document, {resultTypes: ['violations']})")["violations"]
    return [{"rule": one["id"], "elements": [node["html"][:200] for node in one["nodes"]]} for one in found]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_axe_finds_no_violation(browser: SharedBrowser, small: Served, theme: str, size: tuple[int, int]) -> None:
    # The policy of the page would keep the test's own script out; the page itself is the same.
    with browser.tab(small, size, color_scheme=theme, bypass_csp=True, reduced_motion="reduce") as tab:
        for place, selector in PLACES.items():
            tab.go(place)
            expect(tab.page.locator(selector).first).to_be_visible()

            assert (place, violations(tab)) == (place, [])
        tab.page.keyboard.press("?")
        expect(tab.page.get_by_role("dialog")).to_be_visible()
        assert violations(tab) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_axe_finds_no_violation_in_reports(
    browser: SharedBrowser, large: Served, theme: str, size: tuple[int, int]
) -> None:
    with browser.tab(large, size, color_scheme=theme, bypass_csp=True, reduced_motion="reduce") as tab:
        tab.go("/upgrade")
        expect(tab.page.locator(".verdict")).to_be_visible()

        assert violations(tab) == []


def test_axe_finds_no_violation_at_the_sign_in(browser: SharedBrowser, tab: Tab) -> None:
    with browser.stranger(tab.address, bypass_csp=True) as stranger:
        expect(stranger.page.get_by_label("Token")).to_be_visible()

        assert violations(stranger) == []
        assert stranger.troubles == []


def test_a_resource_is_found_and_opened_with_the_keyboard_alone(tab: Tab) -> None:
    expect(tab.page.locator(".list-row")).to_have_count(10)
    press = tab.page.keyboard.press
    press("Tab")
    expect(tab.page.locator(".skip-link")).to_be_focused()
    press("/")
    tab.page.keyboard.type("kind:sqldatabase")
    expect(tab.page.locator(".list-row")).to_have_count(3)
    press("ArrowDown")
    press("ArrowDown")
    expect(tab.page.locator(".list-row[data-index='1']")).to_be_focused()
    press("Enter")
    expect(tab.page.get_by_role("heading", level=1)).to_have_text("orders")
    tab.page.get_by_role("tab", name="Summary").focus()
    press("ArrowRight")
    expect(tab.page.get_by_role("tab", name="Fields")).to_be_focused()

    assert tab.value("() => location.hash").endswith("/default/orders/fields")


def test_the_graph_is_walked_with_the_keyboard_alone(tab: Tab) -> None:
    tab.go("/graph?focus=SQLDatabase.sql.cnrm.cloud.google.com%2Fdefault%2Forders&depth=1")
    canvas = tab.page.locator(".graph-canvas[data-nodes='2']")
    canvas.focus()
    tab.page.keyboard.press("ArrowLeft")
    expect(tab.page.locator(".graph-panel h2").first).to_have_text("main")
    tab.page.keyboard.press("Enter")

    expect(tab.page.get_by_role("heading", level=1)).to_have_text("main")


def test_keys_lead_to_views_and_change_the_theme(tab: Tab) -> None:
    press = tab.page.keyboard.press
    expect(tab.page.locator(".list-row").first).to_be_visible()
    press("g")
    press("g")
    expect(tab.page.locator(".view.graph")).to_be_visible()
    press("g")
    press("o")
    expect(tab.page.locator(".view.overview")).to_be_visible()
    press("t")
    expect(tab.page.locator("html[data-theme='dark']")).to_have_count(1)
    tab.page.reload()

    expect(tab.page.locator("html[data-theme='dark']")).to_have_count(1)

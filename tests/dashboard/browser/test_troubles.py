"""What goes wrong, on the real process: a contest, a cycle, a changed spec, and a plan that takes too long."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from setpoint.localcloud.faults import AddLatency
from setpoint.localcloud.server import LocalCloud
from tests.dashboard.browser.tabs import SharedBrowser, Tab
from tests.dashboard.browser.worlds import Served

BUCKETS = "/resource/StorageBucket.storage.cnrm.cloud.google.com/default"


@pytest.fixture
def tab(browser: SharedBrowser, troubled: Served) -> Iterator[Tab]:
    with browser.tab(troubled) as tab:
        yield tab
        assert tab.troubles == []


def test_a_contest_shows_the_value_of_each_side_and_comes_first(tab: Tab) -> None:
    expect(tab.page.locator(".attention")).to_contain_text("spec.storageClass was reverted")
    tab.go(f"{BUCKETS}/contested")
    contest = tab.page.get_by_role("region", name="Contested fields").locator("tbody tr")
    expect(contest).to_have_count(1)

    assert contest.locator("td").all_inner_texts()[:3] == ["STANDARD", "ARCHIVE, COLDLINE", "4"]
    # It is true, and no good news.
    expect(tab.page.locator(".condition-status", has_text="Contested True")).to_have_class(re.compile("status-unknown"))
    expect(tab.page.locator(".condition-status", has_text="Ready True")).to_have_class(re.compile("status-true"))


def test_a_resource_says_when_its_next_step_is_due_even_before_it_had_one(tab: Tab) -> None:
    for name in ("contested", "ring-a"):
        tab.go(f"{BUCKETS}/{name}")
        expect(tab.page.locator(".pairs div", has_text="Next").locator("time")).to_have_text(re.compile("^in "))


def test_a_changed_spec_is_told_in_the_timeline(tab: Tab) -> None:
    tab.go(f"{BUCKETS}/changed/timeline")
    expect(tab.page.locator(".entry-specChanged")).to_have_count(1)

    assert tab.page.locator(".entry-step .entry-text").all_inner_texts()[0] == "update of 1 field"


def test_a_cycle_is_named_and_its_edges_are_marked(tab: Tab) -> None:
    tab.go("/graph")
    expect(tab.page.locator(".notice")).to_contain_text("ring-a")
    tab.page.locator("[data-search]").fill("ring-a")
    tab.page.keyboard.press("Enter")

    expect(tab.page.locator(".edge-facts .tag", has_text="cycle")).to_have_count(2)


def test_a_plan_that_is_being_made_is_cancelled(tab: Tab, troubled: Served) -> None:
    tab.go("/plan")
    # Longer than any test takes.
    troubled.workspace.in_cloud(lambda cloud: cloud.inject(AddLatency(seconds=3600.0, method="GET")))
    try:
        tab.page.get_by_role("button", name="Make a plan").click()
        expect(tab.page.locator(".progress")).to_be_visible()
        tab.page.get_by_role("button", name="Cancel the plan").click()

        expect(tab.page.locator(".notice")).to_have_text("The plan was cancelled.")
        expect(tab.page.locator(".progress, .failure")).to_have_count(0)
        expect(tab.page.get_by_role("button", name="Make a plan")).to_be_enabled()
    finally:
        troubled.workspace.in_cloud(answered_again)


def answered_again(cloud: LocalCloud) -> None:
    """Requests that wait, too."""
    cloud.faults.clear()
    cloud.advance(3600)

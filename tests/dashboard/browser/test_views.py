"""Each view, on the real process."""

import json
import re
from pathlib import Path

from playwright.sync_api import expect

from tests.dashboard.browser.tabs import SharedBrowser, Tab
from tests.dashboard.browser.worlds import HOSTILE, Served

LOGS = "/resource/StorageBucket.storage.cnrm.cloud.google.com/default/logs"
ORDERS = "/resource/SQLDatabase.sql.cnrm.cloud.google.com/default/orders"
STRAY = "/resource/SQLDatabase.sql.cnrm.cloud.google.com/default/stray"
WATCHED = "/resource/StorageBucket.storage.cnrm.cloud.google.com/default/watched"


def shown_names(tab: Tab) -> list[str]:
    return tab.page.locator(".list-row .cell-name").all_inner_texts()


def test_the_overview_counts_states_and_kinds_and_puts_trouble_first(tab: Tab) -> None:
    expect(tab.page.locator(".list-row")).to_have_count(10)

    assert tab.text(".strip-total").split() == ["10", "resources"]
    assert "SQLDatabase\n3" in tab.text(".facets")
    assert "stray" in tab.text(".attention")
    assert "orders" not in tab.text(".attention")
    assert "Requests" in tab.text(".process-column")


def test_the_search_finds_by_name_kind_state_label_and_field(tab: Tab) -> None:
    search = tab.page.locator("[data-search]")
    found = {}
    for text in (
        "order",
        "kind:sqli",
        "state:blocked",
        "label:tier=gold",
        "state:ready -kind:storage",
        "field:NEARLINE",
    ):
        search.fill(text)
        tab.page.wait_for_function("text => new URLSearchParams(location.hash.slice(3)).get('q') === text", arg=text)
        expect(tab.page.locator(".list-row")).not_to_have_count(10)
        tab.page.wait_for_function("() => document.querySelectorAll('.list-row').length > 0")
        found[text] = shown_names(tab)

    assert found == {
        "order": ["orders"],
        "kind:sqli": ["main", "refused"],
        "state:blocked": ["stray"],
        "label:tier=gold": ["main"],
        "state:ready -kind:storage": ["invoices", "orders", "main"],
        "field:NEARLINE": ["photos"],
    }


def test_the_graph_leads_from_what_is_blocked_to_its_cause(tab: Tab) -> None:
    tab.go("/graph")
    expect(tab.page.locator(".graph-canvas[data-nodes='11']")).to_be_visible()
    tab.wait_for_text("1 resource is blocked by", ".graph-panel")
    tab.page.get_by_role("button", name="SQLInstance default/missing").click()

    assert "does not exist" in tab.text(".graph-panel")
    assert "stray" in tab.text(".graph-panel")


def test_the_graph_collapses_by_kind_and_focuses_on_one(tab: Tab) -> None:
    tab.go("/graph?by=kind")
    expect(tab.page.locator(".graph-canvas[data-nodes='3']")).to_be_visible()
    tab.go("/graph?focus=SQLDatabase.sql.cnrm.cloud.google.com%2Fdefault%2Forders&depth=1")

    expect(tab.page.locator(".graph-canvas[data-nodes='2']")).to_be_visible()
    assert "main" in tab.text(".graph-panel")


def test_a_resource_shows_conditions_cookie_needs_and_the_last_step(tab: Tab) -> None:
    tab.go(ORDERS)
    tab.wait_for_text("Ready True")
    summary = tab.text()

    assert re.search(r"Needs\s*1\s*Ready\s*SQLInstance default/main", summary)
    assert "Last step" in summary
    tab.go(STRAY)
    tab.wait_for_text("SQLInstance default/missing is not found")


def test_the_fields_of_a_resource_say_who_owns_them(tab: Tab) -> None:
    tab.go(f"{WATCHED}/fields")
    row = tab.page.locator("tr", has_text="labels.team")
    expect(row).to_have_class("differs")
    kept = tab.page.locator("tr", has_text="spec.location").locator("td").all_inner_texts()

    assert kept[:4] == ["EU", "EU", "EU", "spec"]
    assert "web" in row.inner_text()


def test_the_timeline_has_the_steps_of_a_resource(tab: Tab) -> None:
    tab.go(f"{LOGS}/timeline")
    entry = tab.page.locator(".entry", has_text="create")

    expect(entry.first).to_be_visible()
    assert "spec.versioning" in tab.text()


def test_the_raw_objects_are_there(tab: Tab) -> None:
    tab.go(f"{LOGS}/raw")

    expect(tab.page.locator("pre").first).to_contain_text("kind: StorageBucket")
    expect(tab.page.locator("pre[aria-label='Live object']")).to_contain_text("storageClass: STANDARD")


def test_the_plan_is_made_and_shown(tab: Tab) -> None:
    tab.go("/plan")
    tab.page.get_by_role("button", name=re.compile("Make a plan|Plan again")).click()
    expect(tab.page.locator(".plan-counts")).to_be_visible()
    tab.wait_for_text("stray")

    assert "logs" not in tab.text(".planned")


def test_the_upgrade_report_is_shown(browser: SharedBrowser, large: Served) -> None:
    with browser.tab(large) as tab:
        tab.go("/upgrade")
        tab.wait_for_text("0.1.0 → 0.2.0")

        assert "spec.charset" in tab.text()
        assert tab.text(".verdict").startswith("new writes")
        assert tab.troubles == []


def test_a_view_is_saved_as_one_file_without_scripts(tab: Tab, browser: SharedBrowser, tmp_path: Path) -> None:
    tab.go("/")
    expect(tab.page.locator(".list-row")).to_have_count(10)
    with tab.page.expect_download() as download:
        tab.page.get_by_role("button", name="Export").click()
    download.value.save_as(tmp_path / "view.html")
    text = (tmp_path / "view.html").read_text(encoding="utf-8")

    assert "<script" not in text.replace(HOSTILE, "")
    assert "default-src 'none'" in text
    with browser.file(tmp_path / "view.html") as file:
        assert len(file.page.locator("table tbody tr").all()) >= 10
        assert "orders" in file.text("table.table")
        # A file is read at another time.
        times = file.page.locator("time").all_inner_texts()
        assert [one for one in times if not re.fullmatch(r"[\d-]{10} [\d:]{8} UTC", one)] == []
        # What failed, what is blocked, and what differs and is only observed.
        assert len(times) == file.page.locator(".attention-row:visible").count() == 3
        assert file.page.locator("button, .button, .search, kbd").count() == 0
        assert file.value("() => window.hacked") is None
        assert file.troubles == []


def test_a_graph_is_saved_as_a_drawing(tab: Tab, tmp_path: Path) -> None:
    tab.go("/graph")
    expect(tab.page.locator(".graph-canvas[data-nodes='11']")).to_be_visible()
    with tab.page.expect_download() as download:
        tab.page.get_by_role("button", name="Export").click()
    download.value.save_as(tmp_path / "graph.html")

    assert (tmp_path / "graph.html").read_text(encoding="utf-8").count("<rect") == 22


def test_without_a_session_the_page_asks_for_a_token(browser: SharedBrowser, tab: Tab) -> None:
    with browser.stranger(tab.address) as stranger:
        stranger.page.get_by_label("Token").fill("guessed")
        stranger.page.get_by_role("button", name="Sign in").click()
        alert = stranger.page.get_by_role("alert")
        expect(alert).not_to_be_empty()

        assert "orders" not in stranger.page.content()


def test_the_order_of_the_list_is_in_the_address(tab: Tab) -> None:
    expect(tab.page.locator(".list-row")).to_have_count(10)
    tab.page.get_by_role("button", name="Name", exact=True).click()
    expect(tab.page.locator(".list-row .cell-name").first).to_have_text("frozen")
    tab.page.get_by_role("button", name="Name", exact=True).click()
    expect(tab.page.locator(".list-row .cell-name").first).to_have_text("watched")
    tab.page.reload()

    expect(tab.page.locator(".list-row .cell-name").first).to_have_text("watched")
    expect(tab.page.get_by_role("columnheader", name="Name", exact=True)).to_have_attribute("aria-sort", "descending")


def test_a_label_leads_to_what_has_it_and_the_way_back_leads_to_the_resource(tab: Tab) -> None:
    tab.go(LOGS)
    tab.page.get_by_role("link", name="app=shop").click()
    expect(tab.page.locator(".list-row")).to_have_count(5)
    tab.page.go_back()

    expect(tab.page.get_by_role("heading", level=1)).to_have_text("logs")


def test_the_name_of_a_resource_is_copied(browser: SharedBrowser, small: Served) -> None:
    with browser.tab(small, permissions=["clipboard-read", "clipboard-write"]) as tab:
        tab.go(LOGS)
        tab.page.get_by_role("button", name="Copy the name").click()
        expect(tab.page.locator(".toast")).to_contain_text("Copied: the name")

        assert tab.value("() => navigator.clipboard.readText()") == "logs"


HOSTILE_BUCKET = "/resource/StorageBucket.storage.cnrm.cloud.google.com/default/hostile"
REFUSED = "/resource/SQLInstance.sql.cnrm.cloud.google.com/default/refused"
# Each view, and what is there when it has loaded a text of a hostile author or service.
HOSTILE_VIEWS = {
    "/": ".attention-row",
    "/?q=hostile": ".list-row",
    "/graph": ".graph-canvas[data-nodes]",
    REFUSED: ".events p >> text=window.hacked",
    f"{REFUSED}/timeline": ".entry-text >> text=window.hacked",
    HOSTILE_BUCKET: ".conditions",
    f"{HOSTILE_BUCKET}/fields": ".fields code >> text=window.hacked",
    f"{HOSTILE_BUCKET}/timeline": ".changes code >> text=window.hacked",
    f"{HOSTILE_BUCKET}/raw": "pre >> text=window.hacked",
    "/plan": ".planned",
}


def test_hostile_text_is_text_in_every_view_and_in_what_is_saved_of_it(
    tab: Tab, browser: SharedBrowser, tmp_path: Path
) -> None:
    tab.go("/plan")
    tab.page.get_by_role("button", name=re.compile("Make a plan|Plan again")).click()
    expect(tab.page.locator(".plan-counts")).to_be_visible()
    saved: list[Path] = []
    for place, shown in HOSTILE_VIEWS.items():
        tab.go(place)
        expect(tab.page.locator(shown).first).to_be_visible()
        assert tab.value("() => document.querySelectorAll('main img, main script').length") == 0, place
        saved.append(tmp_path / f"{len(saved)}.html")
        saved[-1].write_text(tab.exported(), encoding="utf-8")

    assert tab.value("() => window.hacked") is None
    for path in saved:
        with browser.file(path) as file:
            assert file.value("() => document.querySelectorAll('img, script, iframe, a, button').length") == 0
            assert file.value("() => window.hacked") is None
            assert file.troubles == []


def test_hostile_text_is_text_everywhere(tab: Tab) -> None:
    for place in (
        "/",
        "/graph",
        "/resource/StorageBucket.storage.cnrm.cloud.google.com/default/hostile/raw",
        f"{WATCHED}/timeline",
    ):
        tab.go(place)
        expect(tab.page.locator("main .view")).to_be_visible()
    tab.go("/resource/StorageBucket.storage.cnrm.cloud.google.com/default/hostile/raw")
    expect(tab.page.locator("pre").first).to_contain_text(json.dumps(HOSTILE)[1:20])
    tab.go("/resource/SQLInstance.sql.cnrm.cloud.google.com/default/refused")
    tab.wait_for_text("<script>window.hacked")

    assert tab.value("() => window.hacked") is None
    assert tab.value("() => document.querySelectorAll('main img, main script').length") == 0

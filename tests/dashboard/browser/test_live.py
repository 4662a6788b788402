"""What changes is shown while it happens, and what a user may do is done by the real process."""

import re
from collections.abc import Callable

from playwright.sync_api import expect

from setpoint.localcloud.faults import AddLatency
from tests.cli.workspace import bucket
from tests.dashboard.browser.tabs import SharedBrowser, Tab
from tests.dashboard.browser.test_troubles import answered_again
from tests.dashboard.browser.worlds import Served

BUCKETS = "/resource/StorageBucket.storage.cnrm.cloud.google.com/default"


def drift(small: Served, name: str, body: dict[str, object]) -> None:
    """Another writer changes a bucket, and a step finds it."""
    changed = small.workspace.in_cloud(lambda cloud: cloud.call("PATCH", f"/storage/v1/b/{name}", body))
    assert changed.status == 200
    small.workspace.run("reconcile", f"StorageBucket/{name}")


def test_a_drift_is_seen_without_a_reload(tab: Tab, small: Served) -> None:
    tab.go(f"{BUCKETS}/photos/timeline")
    expect(tab.page.locator(".entry").first).to_be_visible()
    tab.value("() => { window.isSamePage = true }")
    drift(small, "photos", {"storageClass": "COLDLINE"})

    expect(tab.page.locator(".changes", has_text="COLDLINE").first).to_be_visible()
    expect(tab.page.locator(".heatmap")).to_contain_text("storageClass")
    assert tab.value("() => window.isSamePage")


# Asks the running process for a step, and notes when the list shows a drift of the bucket.
_STEP_AND_WATCH = """async name => {
  const drifted = () => [...document.querySelectorAll('.list-row.is-drifted .cell-name')].map(one => one.textContent)
  const isShown = () => drifted().includes(name)
  if (isShown()) throw new Error('it has drifted before')
  const start = performance.now()
  window.shown = new Promise(resolve =>
    new MutationObserver(() => isShown() && resolve(performance.now() - start))
      .observe(document.querySelector('.list-body'), {subtree: true, childList: true, attributes: true}))
  const path = `api/v1/resources/StorageBucket.storage.cnrm.cloud.google.com/default/${name}/actions/reconcile`
  const headers = {'X-Setpoint': '1', 'Content-Type': 'application/json'}
  return (await fetch(path, {method: 'POST', headers, body: '{}'})).status
}"""


_STEP_UNTIL_RESCHEDULED = """async before => {
  const path = 'api/v1/resources/SQLDatabase.sql.cnrm.cloud.google.com/default/invoices/actions/reconcile'
  const headers = {'X-Setpoint': '1', 'Content-Type': 'application/json'}
  const shown = () => [...document.querySelectorAll('.pairs time')].at(-1).dateTime
  while (shown() === before) {
    await fetch(path, {method: 'POST', headers, body: '{}'})
    await new Promise(resolve => setTimeout(resolve, 500))
  }
}"""
# In the order of the list: what has no time comes last.
_NEXT_STEPS = """async () => {
  const rows = (await (await fetch('api/v1/resources')).json()).resources
  const times = Object.fromEntries(rows.map(one => [one.name, one.nextStep ?? '~']))
  return [...document.querySelectorAll('.list-row .cell-name')].map(one => times[one.textContent])
}"""


def test_a_drift_that_the_process_finds_is_told_by_the_stream_alone(
    tab: Tab, small: Served, record_property: Callable[[str, object], None]
) -> None:
    expect(tab.page.locator(".list-row")).to_have_count(10)
    expect(tab.page.locator(".stream-live")).to_be_visible()
    small.workspace.in_cloud(
        lambda cloud: cloud.call("PATCH", "/storage/v1/b/logs", {"versioning": {"enabled": False}})
    )
    asked = len(tab.requested)
    status = tab.value(_STEP_AND_WATCH, "logs")
    record_property("milliseconds from the request of a step to the drift on the page", tab.value("() => window.shown"))

    assert status == 202
    # The page asked for nothing: what it shows came as an event.
    assert [url.rpartition("/")[2] for url in tab.requested[asked:]] == ["reconcile"]
    tab.page.locator(".strip-count", has_text=re.compile("Ready")).wait_for()


def test_the_next_step_is_told_by_the_stream_alone_while_the_resource_stays_as_it_is(tab: Tab) -> None:
    row = tab.page.locator(".list-row", has_text="invoices")
    expect(row.locator(".cell-next")).to_have_text(re.compile("^in "))
    tab.go("/resource/SQLDatabase.sql.cnrm.cloud.google.com/default/invoices")
    due = tab.page.locator(".pairs div", has_text="Next").locator("time")
    before = str(due.get_attribute("datetime"))
    asked = len(tab.requested)
    # The interval is always the same: a step a second later sets the next one a second later.
    tab.value(_STEP_UNTIL_RESCHEDULED, before)

    assert str(due.get_attribute("datetime")) > before
    assert {url.rpartition("/")[2] for url in tab.requested[asked:]} == {"reconcile"}
    tab.go("/?sort=nextStep")
    times = tab.value(_NEXT_STEPS)
    assert times == sorted(times)


def test_a_page_beside_the_process_has_the_next_steps_of_the_process(browser: SharedBrowser, small: Served) -> None:
    beside = Served(small.workspace.piped("dashboard", "--listen", "127.0.0.1:0", "--no-open"), small.workspace)
    with browser.tab(beside) as tab:
        next_step = tab.page.locator(".list-row", has_text="invoices").locator(".cell-next")

        expect(next_step).to_have_text(re.compile("^(in .*|due)$"))


def test_a_new_resource_appears_in_the_list_and_in_the_counts(tab: Tab, small: Served) -> None:
    expect(tab.page.locator(".list-row")).to_have_count(10)
    small.workspace.write(bucket("late"), file="late.yaml")
    small.workspace.run("apply", "-f", "late.yaml")

    expect(tab.page.locator(".list-row", has_text="late")).to_be_visible()
    expect(tab.page.locator(".strip-total .number")).to_have_text("11")
    small.workspace.run("delete", "StorageBucket/late", "--yes")
    expect(tab.page.locator(".list-row")).to_have_count(10)


def test_a_resource_is_paused_and_resumed_after_a_confirmation(tab: Tab) -> None:
    tab.go(f"{BUCKETS}/logs")
    tab.page.get_by_role("button", name="Pause").click()
    dialog = tab.page.get_by_role("dialog")
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_have_count(0)
    tab.page.get_by_role("button", name="Pause").click()
    dialog.get_by_role("button", name="Pause").click()

    expect(tab.page.locator(".resource-state")).to_contain_text("Paused")
    tab.page.get_by_role("button", name="Resume").click()
    dialog.get_by_role("button", name="Resume").click()
    expect(tab.page.locator(".resource-state")).to_contain_text("Ready")


def test_a_step_that_the_service_does_not_answer_is_asked_for_without_waiting(tab: Tab, small: Served) -> None:
    tab.go(f"{BUCKETS}/logs")
    small.workspace.in_cloud(lambda cloud: cloud.inject(AddLatency(seconds=3600.0, method="GET")))
    try:
        tab.page.get_by_role("button", name="Reconcile").click()
        tab.page.get_by_role("dialog").get_by_role("button", name="Reconcile").click()

        expect(tab.page.locator(".toast")).to_contain_text("A step was asked for")
        expect(tab.page.get_by_role("dialog")).to_have_count(0)
    finally:
        small.workspace.in_cloud(answered_again)


def test_a_lost_connection_is_told_and_taken_up_again(browser: SharedBrowser, small: Served) -> None:
    with browser.tab(small) as tab:
        tab.page.route("**/api/v1/stream*", lambda route: route.abort())
        tab.page.reload()
        expect(tab.page.locator(".stream-reconnecting")).to_be_visible()
        tab.page.unroute("**/api/v1/stream*")

        expect(tab.page.locator(".stream-live")).to_be_visible()
        expect(tab.page.locator(".list-row")).to_have_count(10)

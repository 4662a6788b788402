"""Takes the pictures of docs/images anew (`make dashboard-images`): a fleet on a local cloud, in both themes."""

import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import expect

from setpoint.core.values.json_types import JsonObject
from setpoint.localcloud.faults import FailOperation
from setpoint.localcloud.server import LocalCloud
from tests.cli.workspace import Workspace, user_environment
from tests.dashboard.browser.tabs import PHONE, SharedBrowser, Tab
from tests.dashboard.browser.worlds import Served, manifest, upgrade_report

IMAGES: Final = Path(__file__).parents[3] / "docs" / "images"
_SIZE: Final = (1280, 760)
_TEAMS: Final = ("checkout", "payments", "search")
_MEDIA: Final = "StorageBucket.storage.cnrm.cloud.google.com/checkout/media"
_ORDERS: Final = "SQLDatabase.sql.cnrm.cloud.google.com/checkout/orders"
# The view, its address, and what is there when it is complete.
_VIEWS: Final = {
    "overview": ("/", ".list-row"),
    "graph": ("/graph", ".graph-canvas[data-nodes]"),
    "resource": (f"/resource/{_ORDERS}", ".conditions"),
    "fields": (f"/resource/{_MEDIA}/fields", ".fields .differs"),
    "timeline": (f"/resource/{_MEDIA}/timeline", ".heatmap"),
    "plan": ("/plan", ".planned"),
}


def main() -> None:
    """Takes all pictures."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, _shop(Path(folder)) as (running, recorded):
        browser = SharedBrowser()
        try:
            for theme in ("light", "dark"):
                _take(browser, running, theme, _VIEWS)
                _take(browser, recorded, theme, {"upgrade": ("/upgrade", ".verdict")})
                with browser.tab(running, PHONE, color_scheme=theme, device_scale_factor=1) as tab:
                    _save(tab, "phone", theme, ("/", ".list-row"))
        finally:
            browser.close()


def _take(browser: SharedBrowser, served: Served, theme: str, views: dict[str, tuple[str, str]]) -> None:
    with browser.tab(served, _SIZE, color_scheme=theme) as tab:
        for name, view in views.items():
            _save(tab, name, theme, view)


def _save(tab: Tab, name: str, theme: str, view: tuple[str, str]) -> None:
    place, selector = view
    tab.go(place)
    if name == "plan":
        expect(tab.page.locator(".view.plan h1")).to_be_visible()
        tab.page.locator(".view-actions .primary").click()
        expect(tab.page.locator(".plan-counts")).to_be_visible()
        expect(tab.page.locator(".progress")).to_have_count(0)
    expect(tab.page.locator(selector).first).to_be_visible()
    if name == "graph":
        tab.page.locator("[data-search]").fill("stray")
        tab.page.keyboard.press("Enter")
        tab.page.get_by_role("button", name="Fit").click()
    expect(tab.page.locator(".skeleton")).to_have_count(0)
    path = IMAGES / f"dashboard-{name}-{theme}.png"
    tab.page.screenshot(path=path, animations="disabled")
    sys.stdout.write(f"{path.name}: {path.stat().st_size // 1024} KB\n")


# --- The shop ---------------------------------------------------------------------------------------------------------


@contextmanager
def _shop(folder: Path) -> Iterator[tuple[Served, Served]]:
    """The process with its controllers, and one that serves the report of an upgrade."""
    with Workspace(folder, user_environment()) as workspace:
        workspace.in_cloud(_prepare)
        workspace.write(*(f"{json.dumps(one)}\n" for one in _manifests()))
        for _ in range(3):
            workspace.run("apply", "-f", "manifest.yaml", "--timeout", "2s")
            workspace.in_cloud(lambda cloud: cloud.advance(3600))
        report = folder / "upgrade.json"
        report.write_text(json.dumps(upgrade_report()), encoding="utf-8")
        running = workspace.daemon("--dashboard", "127.0.0.1:0", "--allow-actions")
        for body in _edits():
            _edit(workspace, body)
            workspace.run("reconcile", "StorageBucket/media", "-n", "checkout")
        _edit(workspace, {"labels": {"team": "checkout", "owner": "by-hand"}, "versioning": {"enabled": False}})
        options = ("--listen", "127.0.0.1:0", "--no-open", "--upgrade-report", str(report))
        yield Served(running, workspace), Served(workspace.piped("dashboard", *options), workspace)


def _edits() -> Sequence[dict[str, Any]]:
    """What another writer does to a bucket, one after the other."""
    return [
        {"storageClass": "NEARLINE"},
        {"versioning": {"enabled": False}},
        {"storageClass": "COLDLINE", "versioning": {"enabled": False}},
        {"labels": {"team": "unknown"}},
    ]


def _edit(workspace: Workspace, body: dict[str, Any]) -> None:
    workspace.in_cloud(lambda cloud: cloud.call("PATCH", "/storage/v1/b/media", body))


def _prepare(cloud: LocalCloud) -> None:
    cloud.clock.release()
    message = "The quota of the region for this tier is exceeded."
    cloud.inject(FailOperation(code="QUOTA_EXCEEDED", message=message, target="search-index", times=1000))
    body: dict[str, Any] = {"name": "archive", "location": "EU", "versioning": {"enabled": True}}
    assert cloud.call("POST", "/storage/v1/b?project=some-project", body).status == 200


def _manifests() -> list[JsonObject]:
    return [*_of_teams(), *_special()]


def _of_teams() -> Iterator[JsonObject]:
    for team in _TEAMS:
        place = {"namespace": team, "labels": {"team": team}}
        yield _instance(f"{team}-main", **place)
        for name in ("orders", "invoices", "sessions"):
            yield _database(name, f"{team}-main", **place)
        for name in ("exports", "backups", "reports"):
            yield manifest("StorageBucket", f"{team}-{name}", {"location": "EU"}, **place)


def _special() -> Iterator[JsonObject]:
    shop = {"namespace": "checkout", "labels": {"team": "checkout"}}
    watched = {"annotations": {"setpoint.dev/management": "observe"}, "namespace": "payments"}
    paused = {"annotations": {"setpoint.dev/management": "paused"}, "namespace": "search"}
    media = {"location": "EU", "storageClass": "STANDARD", "versioning": {"enabled": True}}
    yield manifest("StorageBucket", "media", media, **shop)
    yield manifest("StorageBucket", "archive", {"location": "EU"}, **watched)
    yield manifest("StorageBucket", "frozen", {"location": "EU"}, **paused)
    yield _instance("search-index", namespace="search")
    yield _database("documents", "search-index", namespace="search")
    yield _database("stray", "missing", namespace="payments")


def _instance(name: str, **metadata: Any) -> JsonObject:
    spec = {"databaseVersion": "MYSQL_8_0", "region": "europe-west1", "settings": {"tier": "db-n1-standard-1"}}
    return manifest("SQLInstance", name, spec, **metadata)


def _database(name: str, instance: str, **metadata: Any) -> JsonObject:
    return manifest("SQLDatabase", name, {"charset": "UTF8", "instanceRef": {"name": instance}}, **metadata)


if __name__ == "__main__":
    main()

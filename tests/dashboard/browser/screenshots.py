"""The pictures of each view, in both themes, of a fleet on a local cloud."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
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


THEMES: Final = ("light", "dark")
_REPORT: Final = {"upgrade": ("/upgrade", ".verdict")}
# What is served to a phone is a page like any other, of another size.
_PHONE: Final = {"phone": ("/", ".list-row")}
SIZES: Final = {**dict.fromkeys((*_VIEWS, *_REPORT), _SIZE), **dict.fromkeys(_PHONE, PHONE)}


def file_name(view: str, theme: str) -> str:
    """The name of the picture of a view in a theme."""
    return f"dashboard-{view}-{theme}.png"


@dataclass(frozen=True, slots=True)
class Shop:
    """The process with its controllers, and one that serves the report of an upgrade."""

    running: Served
    recorded: Served


def take_pictures(browser: SharedBrowser, shop: Shop, theme: str, folder: Path) -> None:
    """Takes the picture of each view in that theme."""
    for served, size, views in (
        (shop.running, _SIZE, _VIEWS),
        (shop.recorded, _SIZE, _REPORT),
        (shop.running, PHONE, _PHONE),
    ):
        # As on a phone, scroll bars take no room: pictures have none.
        with browser.tab(served, size, color_scheme=theme, device_scale_factor=1, is_mobile=True) as tab:
            for name, view in views.items():
                _save(tab, name, view, folder / file_name(name, theme))
            assert tab.troubles == []


def _save(tab: Tab, name: str, view: tuple[str, str], path: Path) -> None:
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
    tab.page.screenshot(path=path, animations="disabled")


# --- The shop ---------------------------------------------------------------------------------------------------------


@contextmanager
def shop_world(folder: Path) -> Iterator[Shop]:
    """A fleet on a local cloud, with something of everything that needs attention."""
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
        yield Shop(Served(running, workspace), Served(workspace.piped("dashboard", *options), workspace))


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

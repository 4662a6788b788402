"""What the page shows in the tests: a small world with a resource in each state, and a store with 10,000 resources."""

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from setpoint.core.values.json_types import JsonObject
from setpoint.engine.ports import Store, SystemClock
from setpoint.localcloud.faults import FailOperation
from setpoint.localcloud.server import LocalCloud
from setpoint.stores.sqlite.store import open_sqlite
from tests.cli.programs import Program
from tests.cli.workspace import Workspace, user_environment

# It is text wherever it is shown, and nothing else.
HOSTILE: Final = "<img src=x onerror=\"window.hacked='yes'\"><script>window.hacked='yes'</script>"
LARGE: Final = 10_000
# In a namespace of their own: the graph of it has so many nodes.
LINKED: Final = 2_000
_URL: Final = re.compile(r"http://127\.0\.0\.1:\d+/#token=[\w-]+")
_PROJECT: Final = {"cnrm.cloud.google.com/project-id": "some-project"}
_SQL: Final = "sql.cnrm.cloud.google.com"
_STORAGE: Final = "storage.cnrm.cloud.google.com"


@dataclass(frozen=True, slots=True)
class Served:
    """A process that serves the page, and the address that signs in."""

    program: Program
    workspace: Workspace

    @property
    def url(self) -> str:
        """The newest address with a token: each works once."""
        self.program.until(lambda: _URL.search(self.program.text))
        return str(_URL.findall(self.program.text)[-1])


def manifest(kind: str, name: str, spec: Mapping[str, Any], **metadata: Any) -> JsonObject:
    """A manifest of one of Google's kinds; annotations are added to that of the project."""
    annotations = {**_PROJECT, **metadata.pop("annotations", {})}
    group = _STORAGE if kind == "StorageBucket" else _SQL
    return {
        "apiVersion": f"{group}/v1beta1",
        "kind": kind,
        "metadata": {"name": name, "annotations": annotations, **metadata},
        "spec": dict(spec),
    }


def _bucket(name: str, *, management: str = "", **spec: Any) -> JsonObject:
    annotations = {"setpoint.dev/management": management} if management else {}
    return manifest("StorageBucket", name, {"location": "EU", **spec}, annotations=annotations, labels={"app": "shop"})


def small_manifests() -> list[JsonObject]:
    """Some that are ready, one that is blocked, one that is observed, one that is paused, one that is refused."""
    instance = {"databaseVersion": "MYSQL_8_0", "region": "europe-west1", "settings": {"tier": "db-n1-standard-1"}}
    note = {"example.com/note": HOSTILE}
    hostile = {"location": "EU", "website": {"mainPageSuffix": HOSTILE}}
    return [
        manifest("SQLInstance", "main", instance, labels={"app": "shop", "tier": "gold"}),
        manifest("SQLDatabase", "orders", {"charset": "UTF8", "instanceRef": {"name": "main"}}),
        manifest("SQLDatabase", "invoices", {"charset": "UTF8", "instanceRef": {"name": "main"}}),
        manifest("SQLDatabase", "stray", {"charset": "UTF8", "instanceRef": {"name": "missing"}}),
        _bucket("logs", versioning={"enabled": True}),
        _bucket("photos", storageClass="NEARLINE"),
        _bucket("watched", management="observe"),
        _bucket("frozen", management="paused"),
        manifest("StorageBucket", "hostile", hostile, annotations=note),
        manifest("SQLInstance", "refused", instance),
    ]


@contextmanager
def small_world(folder: Path) -> Iterator[Served]:
    """The real process with its controllers on a local cloud, every resource settled or blocked."""
    with Workspace(folder, user_environment()) as workspace:
        workspace.in_cloud(_prepare)
        workspace.write(*(f"{json.dumps(one)}\n" for one in small_manifests()))
        workspace.run("apply", "-f", "manifest.yaml", "--timeout", "1s")
        workspace.in_cloud(lambda cloud: cloud.advance(3600))
        workspace.run("apply", "-f", "manifest.yaml", "--timeout", "1s")
        yield Served(workspace.daemon("--dashboard", "127.0.0.1:0", "--allow-actions"), workspace)


def _prepare(cloud: LocalCloud) -> None:
    """Operations end at once; one of them fails with a hostile message; there is a bucket that is only observed."""
    cloud.clock.release()
    cloud.inject(FailOperation(message=HOSTILE, target="refused", times=1000))
    body: dict[str, Any] = {
        "name": "watched",
        "location": "EU",
        "labels": {"team": "web"},
        "versioning": {"enabled": True},
    }
    assert cloud.call("POST", "/storage/v1/b?project=some-project", body).status == 200


@contextmanager
def troubled_world(folder: Path) -> Iterator[Served]:
    """The real process: a contested bucket, one whose spec has changed, and three that need each other."""
    (folder / ".setpoint").mkdir()
    ring = [_after("ring-a", "ring-b"), _after("ring-b", "ring-c"), _after("ring-c", "ring-a")]
    # A command refuses to declare these.
    _apply(folder, *ring)
    with Workspace(folder, user_environment()) as workspace:
        workspace.in_cloud(lambda cloud: cloud.clock.release())
        served = Served(workspace.daemon("--dashboard", "127.0.0.1:0"), workspace)
        for versioning in (False, True):
            manifests = [_bucket("contested"), _bucket("changed", versioning={"enabled": versioning})]
            workspace.write(*(f"{json.dumps(one)}\n" for one in manifests))
            workspace.run("apply", "-f", "manifest.yaml")
        for storage_class in ("COLDLINE", "ARCHIVE", "COLDLINE", "ARCHIVE"):
            body = {"storageClass": storage_class}
            workspace.in_cloud(partial(LocalCloud.call, method="PATCH", target="/storage/v1/b/contested", body=body))
            workspace.run("reconcile", "StorageBucket/contested")
        yield served


def _after(name: str, needed: str) -> JsonObject:
    annotations = {"setpoint.dev/depends-on": f"StorageBucket/default/{needed}"}
    return manifest("StorageBucket", name, {"location": "EU"}, annotations=annotations)


def upgrade_report() -> JsonObject:
    """A report as `setpoint verify-upgrade -o json` prints it."""
    database: JsonObject = {"group": _SQL, "kind": "SQLDatabase", "namespace": "linked", "name": "database-1"}
    difference: JsonObject = {"fields": ["spec.charset"], "baseline": "in sync", "candidate": "writes"}
    return {
        "baseline": "0.1.0",
        "candidate": "0.2.0",
        "verdict": "new writes",
        "summary": {"same": 9_999, "new writes": 1},
        "oneTime": 2,
        "resources": [{**database, "verdict": "new writes", **difference}],
        "blocked": [],
        "missed": [],
    }


# --- 10,000 resources -------------------------------------------------------------------------------------------------


@contextmanager
def large_world(folder: Path) -> Iterator[Served]:
    """A store with 10,000 resources, and the process that serves it; no controllers run."""
    (folder / ".setpoint").mkdir()
    _in_a_loop(_fill(folder / ".setpoint" / "state.db"))
    report = folder / "upgrade.json"
    report.write_text(json.dumps(upgrade_report()), encoding="utf-8")
    with Workspace(folder, user_environment()) as workspace:
        options = ("--listen", "127.0.0.1:0", "--no-open", "--upgrade-report", str(report))
        yield Served(workspace.piped("dashboard", *options), workspace)


def _in_a_loop(work: Coroutine[None, None, None]) -> None:
    # The driver of the browser has a running event loop in the thread of the tests.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, work).result()


def _apply(folder: Path, *manifests: JsonObject) -> None:
    """Puts manifests into the store of a folder, as it stands in a cluster: unchecked."""

    async def apply() -> None:
        async with _opened(folder / ".setpoint" / "state.db") as store:
            for one in manifests:
                await store.apply(one)

    _in_a_loop(apply())


@asynccontextmanager
async def _opened(path: Path) -> AsyncIterator[Store]:
    store = await open_sqlite(path, SystemClock(), lambda: str(uuid4()))
    try:
        yield store
    finally:
        await store.close()


async def _fill(path: Path) -> None:
    async with _opened(path) as store:
        manifests = [*map(_linked, range(LINKED)), *map(_unlinked, range(LARGE - LINKED))]
        made = await asyncio.gather(*map(store.apply, manifests))
        await asyncio.gather(
            *(store.update_status(one, _status(number)) for number, one in enumerate(made) if number % 10)
        )


def _linked(number: int) -> JsonObject:
    """Ten databases to each instance, which wait for earlier ones: 2,000 nodes, 2,800 edges, all of them connected."""
    place: dict[str, Any] = {"namespace": "linked", "labels": {"team": f"team-{number % 7}"}}
    if number % 10 == 0:
        needed = f"SQLInstance/linked/instance-{number // 20 * 10}"
        place["annotations"] = {"setpoint.dev/depends-on": needed} if number else {}
        return manifest("SQLInstance", f"instance-{number}", {"databaseVersion": "MYSQL_8_0"}, **place)
    if number > 10 and number % 2:
        place["annotations"] = {"setpoint.dev/depends-on": f"SQLDatabase/linked/database-{number // 20 * 10 + 1}"}
    spec = {"charset": "UTF8", "instanceRef": {"name": f"instance-{number - number % 10}"}}
    return manifest("SQLDatabase", f"database-{number}", spec, **place)


def _unlinked(number: int) -> JsonObject:
    place = {"namespace": f"team-{number % 7}", "labels": {"app": f"app-{number % 50}"}}
    return manifest("StorageBucket", f"bucket-{number:05}", {"location": "EU"}, **place)


def _status(number: int) -> JsonObject:
    is_failed = number % 500 == 1
    condition: JsonObject = {
        "type": "Ready",
        "status": "False" if is_failed else "True",
        "reason": "UpdateFailed" if is_failed else "UpToDate",
        "message": "PATCH was refused: 403" if is_failed else "The resource is up to date",
        "lastTransitionTime": "2026-03-01T11:00:00Z",
    }
    return {"observedGeneration": 1, "conditions": [condition]}


if __name__ == "__main__":
    # For measurements by hand: a folder, and the page until Ctrl-C.
    with large_world(Path(sys.argv[1])) as served:
        sys.stdout.write(f"{served.url}\n")
        sys.stdout.flush()
        served.program.end()

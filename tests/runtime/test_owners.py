"""A manager with owners: which steps a change of a child or a source triggers, and that an owner settles."""

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path as File
from typing import Any

import pytest

from setpoint.core.values.json_types import MISSING
from setpoint.core.values.paths import Path, remove_at, set_at
from setpoint.engine.context import EngineContext
from setpoint.engine.ports import Store
from setpoint.engine.references import is_ready
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.runtime.index import index_entry
from setpoint.runtime.informer import ResourceEvent
from setpoint.runtime.manager import Manager
from setpoint.runtime.predicates import affects_owners
from setpoint.stores.memory import MemoryStore
from setpoint.stores.sqlite.store import open_sqlite
from simulation.virtual_time import VirtualClock, run, threaded
from tests.engine.owners.gallery import GalleryOwner
from tests.engine.owners.owner_fixtures import secret, website
from tests.engine.owners.website import WebsiteOwner
from tests.runtime.manager_harness import RecordingMetrics, running_manager

WEBSITE = ResourceRef("web.test", "Website", "web", "shop")
GALLERY = ResourceRef("web.test", "Gallery", "web", "shop")
PAGE, INDEX = (ResourceRef("", "ConfigMap", "web", name) for name in ("shop-page", "shop-index"))
TLS, SOURCE = (ResourceRef("", "Secret", "web", name) for name in ("shop-tls", "cert"))
# Longer than the event of a child takes, and shorter than any resync.
A_MOMENT = 5.0


@dataclass(slots=True)
class StepKinds(RecordingMetrics):
    """The kinds of all steps."""

    kinds: list[str] = field(default_factory=list)

    def step_finished(self, kind: str, outcome: str, decision: str, seconds: float) -> None:
        self.kinds.append(kind)


@dataclass(slots=True)
class ManagerHarness:
    """A manager of owners, and the store that other writers change."""

    store: Store
    clock: VirtualClock
    steps: StepKinds
    manager: Manager

    async def edit(self, ref: ResourceRef, path: Path, value: Any) -> None:
        """Another writer sets a field, or removes it for MISSING."""
        live = await self.get(ref)
        made: Any = remove_at(live.document, path) if value is MISSING else set_at(live.document, path, value)
        await self.store.replace(live, made)

    async def get(self, ref: ResourceRef) -> Resource:
        found = await self.store.get(ref)
        assert found is not None, ref
        return found

    async def until_settled(self) -> None:
        """Waits until the owner is ready, and a moment more."""
        while not ((found := await self.store.get(WEBSITE)) and is_ready(found)):
            assert self.clock.monotonic() < 3600, "the owner was not ready in time"
            await self.clock.sleep(0.1)
        await self.clock.sleep(A_MOMENT)

    async def kinds_triggered_by(self, deed: Awaitable[Any]) -> list[str]:
        """The kinds of the steps that follow from `deed` within a moment."""
        self.steps.kinds.clear()
        await deed
        await self.clock.sleep(A_MOMENT)
        return sorted(set(self.steps.kinds))


@asynccontextmanager
async def running(file: File | None = None) -> AsyncIterator[ManagerHarness]:
    """A process with websites and galleries, in virtual time."""
    clock, steps, numbers = VirtualClock(), StepKinds(), itertools.count(1)
    store: Store
    if file is None:
        store = MemoryStore(clock, lambda: f"uid-{next(numbers)}")
    else:
        store = threaded(await open_sqlite(file, clock, lambda: f"uid-{next(numbers)}"))
    owners = (WebsiteOwner(), GalleryOwner())
    engine = EngineContext(store, clock, {}, metrics=steps, owners={(one.group, one.name): one for one in owners})
    harness = ManagerHarness(store, clock, steps, Manager(engine, steps, 25.0, workers=10))
    async with running_manager(harness.manager):
        yield harness
    await store.close()


def play(scenario: Callable[[ManagerHarness], Awaitable[None]], file: File | None = None) -> None:
    """Plays `scenario` once the owner and its children are settled."""

    async def main() -> None:
        async with running(file) as harness:
            await harness.store.apply(secret("cert", key="b25l"))
            await harness.store.apply(website(certificate="cert", pictures=[{"name": "p", "file": "1"}]))
            await harness.until_settled()
            await scenario(harness)

    run(main())


# --- Owner and children -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_on_sqlite", [False, True])
def test_an_owner_and_its_children_settle_and_nothing_more_is_written(is_on_sqlite: bool, tmp_path: File) -> None:
    async def scenario(harness: ManagerHarness) -> None:
        assert (await harness.get(INDEX)).document["data"] == {"pictures": "p"}
        revision, notes = (await harness.store.list()).revision, await harness.store.events()

        await harness.clock.sleep(24 * 3600)

        assert (await harness.store.list()).revision == revision
        assert await harness.store.events() == notes

    play(scenario, tmp_path / "state.db" if is_on_sqlite else None)


def test_an_edit_of_the_owner_reaches_grandchildren() -> None:
    async def scenario(harness: ManagerHarness) -> None:
        await harness.store.apply(website(certificate="cert", pictures=[{"name": "q", "file": "1"}]))
        await harness.until_settled()

        assert (await harness.get(INDEX)).document["data"] == {"pictures": "q"}

    play(scenario)


def test_the_children_are_deleted_with_their_owner() -> None:
    async def scenario(harness: ManagerHarness) -> None:
        await harness.store.delete(WEBSITE)
        await harness.clock.sleep(A_MOMENT)

        assert [one.ref for one in (await harness.store.list()).resources] == [SOURCE]
        assert set(harness.manager.index) == {SOURCE}

    play(scenario)


def test_a_process_that_starts_with_a_settled_owner_writes_nothing(tmp_path: File) -> None:
    async def nothing(harness: ManagerHarness) -> None:
        revisions.append((await harness.store.list()).revision)

    async def again() -> None:
        async with running(tmp_path / "state.db") as harness:
            await harness.clock.sleep(3600)
            await nothing(harness)
            assert (await harness.kinds_triggered_by(harness.store.delete(PAGE))) == ["Website"]

    revisions: list[str] = []
    play(nothing, tmp_path / "state.db")
    run(again())

    assert revisions[0] == revisions[1]


# --- Changes that trigger steps ---------------------------------------------------------------------------------------

CAPTIONS, OWNERS, LABELS = (
    Path(("spec", "captions")),
    Path(("metadata", "ownerReferences")),
    Path(("metadata", "labels")),
)
CHILDREN = pytest.mark.parametrize("ref", [PAGE, GALLERY, TLS, INDEX], ids=str)


def owner_of(ref: ResourceRef) -> str:
    return "Gallery" if ref == INDEX else "Website"


@CHILDREN
def test_a_deleted_child_is_created_again(ref: ResourceRef) -> None:
    async def scenario(harness: ManagerHarness) -> None:
        before = await harness.get(ref)

        triggered = await harness.kinds_triggered_by(harness.store.delete(ref))

        assert owner_of(ref) in triggered
        assert (await harness.get(ref)).uid != before.uid

    play(scenario)


@CHILDREN
def test_a_removed_label_of_a_child_is_restored(ref: ResourceRef) -> None:
    async def scenario(harness: ManagerHarness) -> None:
        triggered = await harness.kinds_triggered_by(harness.edit(ref, LABELS, {"mine": "1"}))

        assert owner_of(ref) in triggered
        assert (await harness.get(ref)).labels["site"] == "shop"

    play(scenario)


@CHILDREN
def test_a_removed_owner_reference_is_restored(ref: ResourceRef) -> None:
    async def scenario(harness: ManagerHarness) -> None:
        triggered = await harness.kinds_triggered_by(harness.edit(ref, OWNERS, MISSING))

        assert owner_of(ref) in triggered
        assert (await harness.get(ref)).controller is not None

    play(scenario)


@pytest.mark.parametrize(
    ("ref", "path"),
    [
        (PAGE, Path(("data", "title"))),
        (GALLERY, Path(("spec", "heading"))),
        (TLS, Path(("data", "key"))),
        (INDEX, Path(("data", "pictures"))),
    ],
    ids=str,
)
def test_drift_of_the_contents_of_a_child_is_corrected(ref: ResourceRef, path: Path) -> None:
    async def scenario(harness: ManagerHarness) -> None:
        before = await harness.get(ref)

        triggered = await harness.kinds_triggered_by(harness.edit(ref, path, "bWluZQ=="))

        assert owner_of(ref) in triggered
        for name in ("spec", "data"):
            assert (await harness.get(ref)).document.get(name) == before.document.get(name)

    play(scenario)


def test_an_edit_of_a_child_is_in_the_status_of_its_owner_and_reconciles_the_child() -> None:
    async def scenario(harness: ManagerHarness) -> None:
        triggered = await harness.kinds_triggered_by(
            harness.edit(GALLERY, Path(("spec", "pictures")), [{"name": "mine", "file": "1"}])
        )

        assert triggered == ["Gallery", "Website"]
        assert (await harness.get(INDEX)).document["data"] == {"pictures": "mine"}
        conditions: Any = (await harness.get(WEBSITE)).status["conditions"]
        (edited,) = [one for one in conditions if one["type"] == "Edited"]
        assert edited["status"] == "True"

    play(scenario)


def test_a_rotated_source_reaches_its_copies() -> None:
    async def scenario(harness: ManagerHarness) -> None:
        assert await harness.kinds_triggered_by(harness.store.apply(secret("cert", key="dHdv"))) == ["Website"]

        assert (await harness.get(TLS)).document["data"] == {"key": "dHdv"}

    play(scenario)


def test_an_absent_source_is_in_the_status_until_it_is_back() -> None:
    async def reason(harness: ManagerHarness) -> str:
        conditions: Any = (await harness.get(WEBSITE)).status["conditions"]
        return str(next(one["reason"] for one in conditions if one["type"] == "Ready"))

    async def scenario(harness: ManagerHarness) -> None:
        assert "Website" in await harness.kinds_triggered_by(harness.store.delete(SOURCE))
        assert await reason(harness) == "DependencyNotFound"

        await harness.kinds_triggered_by(harness.store.apply(secret("cert", key="dHdv")))

        assert await reason(harness) == "UpToDate"
        assert (await harness.get(TLS)).document["data"] == {"key": "dHdv"}

    play(scenario)


# --- Changes that do not ----------------------------------------------------------------------------------------------


def unrelated(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "web"}, "data": {"a": "b"}}


def test_an_unrelated_object_triggers_nothing_and_is_not_indexed() -> None:
    async def scenario(harness: ManagerHarness) -> None:
        before = set(harness.manager.index)
        ref = ResourceRef("", "ConfigMap", "web", "unrelated")

        assert await harness.kinds_triggered_by(harness.store.apply(unrelated("unrelated"))) == []
        assert await harness.kinds_triggered_by(harness.edit(ref, Path(("data", "a")), "c")) == []
        assert set(harness.manager.index) == before
        assert await harness.kinds_triggered_by(harness.store.delete(ref)) == []

    play(scenario)


def test_a_child_of_an_owner_without_a_controller_triggers_nothing() -> None:
    async def scenario(harness: ManagerHarness) -> None:
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r", "controller": True}
        document = unrelated("pod")
        document["metadata"]["ownerReferences"] = [owner]

        assert await harness.kinds_triggered_by(harness.store.create(document)) == []

        assert ResourceRef("", "ConfigMap", "web", "pod") not in harness.manager.index

    play(scenario)


def test_the_stored_state_of_a_child_does_not_trigger_its_owner() -> None:
    async def scenario(harness: ManagerHarness) -> None:
        gallery = await harness.get(GALLERY)
        status: Any = {**gallery.status, "setpoint": {"step": {"at": "now"}}, "lastModifiedCookie": "x/y"}

        # The child itself restores it.
        assert await harness.kinds_triggered_by(harness.store.update_status(gallery, status)) == ["Gallery"]

    play(scenario)


def test_the_conditions_of_a_child_trigger_its_owner() -> None:
    async def scenario(harness: ManagerHarness) -> None:
        gallery = await harness.get(GALLERY)

        assert "Website" in await harness.kinds_triggered_by(harness.store.update_status(gallery, {}))

    play(scenario)


@pytest.mark.parametrize("owner_changed", [True, False])
def test_a_change_of_the_owner_reference_alone_triggers_the_owners(owner_changed: bool) -> None:
    entry = index_entry(Resource(unrelated("child")), {})
    event = ResourceEvent(PAGE, entry, entry, owners=frozenset({WEBSITE}), owner_changed=owner_changed)

    assert affects_owners(event) is owner_changed

"""A process with owners: who is called when a child or a source changes, and how a family comes to rest."""

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
from tests.engine.owners.gallery import GalleryOwner
from tests.engine.owners.owner_fixtures import secret, website
from tests.engine.owners.website import WebsiteOwner
from tests.runtime.rig import Tally, at_work
from tests.runtime.virtual_time import VirtualClock, outside, run

WEBSITE = ResourceRef("web.test", "Website", "web", "shop")
GALLERY = ResourceRef("web.test", "Gallery", "web", "shop")
PAGE, INDEX = (ResourceRef("", "ConfigMap", "web", name) for name in ("shop-page", "shop-index"))
TLS, SOURCE = (ResourceRef("", "Secret", "web", name) for name in ("shop-tls", "cert"))
# Longer than a child's news takes, and shorter than any look that is due anyhow.
A_MOMENT = 5.0


@dataclass(slots=True)
class Steps(Tally):
    """The kinds of all steps."""

    kinds: list[str] = field(default_factory=list)

    def step_finished(self, kind: str, outcome: str, decision: str, seconds: float) -> None:
        self.kinds.append(kind)


@dataclass(slots=True)
class Rig:
    """The process, and the store that it shares with people."""

    store: Store
    clock: VirtualClock
    steps: Steps
    manager: Manager

    async def edit(self, ref: ResourceRef, path: Path, value: Any) -> None:
        """Somebody sets a field, or removes it for MISSING."""
        live = await self.get(ref)
        made: Any = remove_at(live.document, path) if value is MISSING else set_at(live.document, path, value)
        await self.store.replace(live, made)

    async def get(self, ref: ResourceRef) -> Resource:
        found = await self.store.get(ref)
        assert found is not None, ref
        return found

    async def rest(self) -> None:
        """Waits until the family is ready, and a moment more."""
        while not ((found := await self.store.get(WEBSITE)) and is_ready(found)):
            assert self.clock.monotonic() < 3600, "it never came to rest"
            await self.clock.sleep(0.1)
        await self.clock.sleep(A_MOMENT)

    async def called(self, deed: Awaitable[Any]) -> list[str]:
        """The kinds of the steps that follow from `deed` in a moment."""
        self.steps.kinds.clear()
        await deed
        await self.clock.sleep(A_MOMENT)
        return sorted(set(self.steps.kinds))


@asynccontextmanager
async def running(file: File | None = None) -> AsyncIterator[Rig]:
    """A process with websites and galleries, in virtual time."""
    clock, steps, numbers = VirtualClock(), Steps(), itertools.count(1)
    store: Store
    if file is None:
        store = MemoryStore(clock, lambda: f"uid-{next(numbers)}")
    else:
        store = outside(await open_sqlite(file, clock, lambda: f"uid-{next(numbers)}"))
    owners = (WebsiteOwner(), GalleryOwner())
    engine = EngineContext(store, clock, {}, metrics=steps, owners={(one.group, one.name): one for one in owners})
    rig = Rig(store, clock, steps, Manager(engine, steps, 25.0, workers=10))
    async with at_work(rig.manager):
        yield rig
    await store.close()


def play(scenario: Callable[[Rig], Awaitable[None]], file: File | None = None) -> None:
    """Plays `scenario` once the family is at rest."""

    async def main() -> None:
        async with running(file) as rig:
            await rig.store.apply(secret("cert", key="b25l"))
            await rig.store.apply(website(certificate="cert", pictures=[{"name": "p", "file": "1"}]))
            await rig.rest()
            await scenario(rig)

    run(main())


# --- The whole family -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_on_sqlite", [False, True])
def test_a_family_comes_to_rest_and_then_nothing_is_written(is_on_sqlite: bool, tmp_path: File) -> None:
    async def scenario(rig: Rig) -> None:
        assert (await rig.get(INDEX)).document["data"] == {"pictures": "p"}
        revision, notes = (await rig.store.list()).revision, await rig.store.events()

        await rig.clock.sleep(24 * 3600)

        assert (await rig.store.list()).revision == revision
        assert await rig.store.events() == notes

    play(scenario, tmp_path / "state.db" if is_on_sqlite else None)


def test_an_edit_of_the_author_reaches_the_children_of_children() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.store.apply(website(certificate="cert", pictures=[{"name": "q", "file": "1"}]))
        await rig.rest()

        assert (await rig.get(INDEX)).document["data"] == {"pictures": "q"}

    play(scenario)


def test_a_family_goes_with_its_head() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.store.delete(WEBSITE)
        await rig.clock.sleep(A_MOMENT)

        assert [one.ref for one in (await rig.store.list()).resources] == [SOURCE]
        assert set(rig.manager.index) == {SOURCE}

    play(scenario)


def test_a_process_that_begins_with_a_family_at_rest_writes_nothing(tmp_path: File) -> None:
    async def nothing(rig: Rig) -> None:
        revisions.append((await rig.store.list()).revision)

    async def again() -> None:
        async with running(tmp_path / "state.db") as rig:
            await rig.clock.sleep(3600)
            await nothing(rig)
            assert (await rig.called(rig.store.delete(PAGE))) == ["Website"]

    revisions: list[str] = []
    play(nothing, tmp_path / "state.db")
    run(again())

    assert revisions[0] == revisions[1]


# --- Who is called ----------------------------------------------------------------------------------------------------

CAPTIONS, OWNERS, LABELS = (
    Path(("spec", "captions")),
    Path(("metadata", "ownerReferences")),
    Path(("metadata", "labels")),
)
CHILDREN = pytest.mark.parametrize("ref", [PAGE, GALLERY, TLS, INDEX], ids=str)


def owner_of(ref: ResourceRef) -> str:
    return "Gallery" if ref == INDEX else "Website"


@CHILDREN
def test_a_child_that_is_deleted_is_made_again(ref: ResourceRef) -> None:
    async def scenario(rig: Rig) -> None:
        before = await rig.get(ref)

        called = await rig.called(rig.store.delete(ref))

        assert owner_of(ref) in called
        assert (await rig.get(ref)).uid != before.uid

    play(scenario)


@CHILDREN
def test_a_label_that_is_taken_off_is_put_back(ref: ResourceRef) -> None:
    async def scenario(rig: Rig) -> None:
        called = await rig.called(rig.edit(ref, LABELS, {"mine": "1"}))

        assert owner_of(ref) in called
        assert (await rig.get(ref)).labels["site"] == "shop"

    play(scenario)


@CHILDREN
def test_a_reference_that_is_taken_off_is_put_back(ref: ResourceRef) -> None:
    async def scenario(rig: Rig) -> None:
        called = await rig.called(rig.edit(ref, OWNERS, MISSING))

        assert owner_of(ref) in called
        assert (await rig.get(ref)).controller is not None

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
def test_contents_that_somebody_changes_are_put_back(ref: ResourceRef, path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        before = await rig.get(ref)

        called = await rig.called(rig.edit(ref, path, "bWluZQ=="))

        assert owner_of(ref) in called
        for name in ("spec", "data"):
            assert (await rig.get(ref)).document.get(name) == before.document.get(name)

    play(scenario)


def test_a_person_who_edits_a_child_has_it_told_by_the_owner_and_followed_by_the_childs_own_step() -> None:
    async def scenario(rig: Rig) -> None:
        called = await rig.called(rig.edit(GALLERY, Path(("spec", "pictures")), [{"name": "mine", "file": "1"}]))

        assert called == ["Gallery", "Website"]
        assert (await rig.get(INDEX)).document["data"] == {"pictures": "mine"}
        conditions: Any = (await rig.get(WEBSITE)).status["conditions"]
        (edited,) = [one for one in conditions if one["type"] == "Edited"]
        assert edited["status"] == "True"

    play(scenario)


def test_a_source_that_is_rotated_reaches_its_copies() -> None:
    async def scenario(rig: Rig) -> None:
        assert await rig.called(rig.store.apply(secret("cert", key="dHdv"))) == ["Website"]

        assert (await rig.get(TLS)).document["data"] == {"key": "dHdv"}

    play(scenario)


def test_a_source_that_goes_and_comes_is_told_and_heals() -> None:
    async def reason(rig: Rig) -> str:
        conditions: Any = (await rig.get(WEBSITE)).status["conditions"]
        return str(next(one["reason"] for one in conditions if one["type"] == "Ready"))

    async def scenario(rig: Rig) -> None:
        assert "Website" in await rig.called(rig.store.delete(SOURCE))
        assert await reason(rig) == "DependencyNotFound"

        await rig.called(rig.store.apply(secret("cert", key="dHdv")))

        assert await reason(rig) == "UpToDate"
        assert (await rig.get(TLS)).document["data"] == {"key": "dHdv"}

    play(scenario)


# --- Who is not -------------------------------------------------------------------------------------------------------


def stranger(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "web"}, "data": {"a": "b"}}


def test_what_is_nobodys_business_calls_nobody_and_is_not_kept_in_mind() -> None:
    async def scenario(rig: Rig) -> None:
        before = set(rig.manager.index)
        ref = ResourceRef("", "ConfigMap", "web", "stranger")

        assert await rig.called(rig.store.apply(stranger("stranger"))) == []
        assert await rig.called(rig.edit(ref, Path(("data", "a")), "c")) == []
        assert set(rig.manager.index) == before
        assert await rig.called(rig.store.delete(ref)) == []

    play(scenario)


def test_a_child_of_an_owner_that_nobody_looks_after_is_nobodys_business() -> None:
    async def scenario(rig: Rig) -> None:
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r", "controller": True}
        document = stranger("pod")
        document["metadata"]["ownerReferences"] = [owner]

        assert await rig.called(rig.store.create(document)) == []

        assert ResourceRef("", "ConfigMap", "web", "pod") not in rig.manager.index

    play(scenario)


def test_what_a_child_remembers_does_not_concern_its_owner() -> None:
    async def scenario(rig: Rig) -> None:
        gallery = await rig.get(GALLERY)
        status: Any = {**gallery.status, "setpoint": {"step": {"at": "now"}}, "lastModifiedCookie": "x/y"}

        assert await rig.called(rig.store.update_status(gallery, status)) == []

    play(scenario)


def test_how_a_child_stands_does() -> None:
    async def scenario(rig: Rig) -> None:
        gallery = await rig.get(GALLERY)

        assert "Website" in await rig.called(rig.store.update_status(gallery, {}))

    play(scenario)


@pytest.mark.parametrize("owner_changed", [True, False])
def test_a_child_that_changes_hands_concerns_its_owners_though_nothing_else_is_new(owner_changed: bool) -> None:
    head = index_entry(Resource(stranger("child")), {})
    news = ResourceEvent(PAGE, head, head, owners=frozenset({WEBSITE}), owner_changed=owner_changed)

    assert affects_owners(news) is owner_changed

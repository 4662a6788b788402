"""An engine with one owner and its children, driven one step at a time; other writers edit the children."""

import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path as File
from typing import Any

from setpoint.core.plan import Plan
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import MISSING
from setpoint.core.values.paths import Path, remove_at, set_at
from setpoint.engine.context import EngineContext
from setpoint.engine.owner import Owner
from setpoint.engine.ports import Store
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.step.outcomes import Settled, StepOutcome
from setpoint.engine.step.reconcile import preview, step
from setpoint.stores.memory import MemoryStore
from setpoint.testing.clock import VirtualClock
from setpoint.testing.interruptions import Interruption, Killed, die
from setpoint.testing.owners.owner_fixture import ChildField, OwnerFixture


class CollectingStore:
    """A store that says that it collects garbage, as a cluster does; nothing does so here."""

    def __init__(self, behind: Store) -> None:
        self._behind = behind

    @property
    def collects(self) -> bool:
        """Children go with their owner."""
        return True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._behind, name)


@dataclass(slots=True)
class OwnerHarness:
    """One owner, its children, and the store that they are in. Its clock moves by a second with every step."""

    fixture: OwnerFixture
    store: Store
    clock: VirtualClock
    # Where the store is kept; None when it lives in memory and is not lost with the process.
    file: File | None = None
    owners: tuple[Owner, ...] = ()

    @property
    def engine(self) -> EngineContext:
        """The engine of a process that starts now."""
        every = (self.fixture.owner, *self.owners)
        return EngineContext(self.store, self.clock, {}, owners={(one.group, one.name): one for one in every})

    @property
    def ref(self) -> ResourceRef:
        """The resource."""
        return Resource(self.fixture.manifest).ref

    # --- The author --------------------------------------------------------------------------------------------------

    async def begin(self, **annotations: str) -> None:
        """Everything is handed in, and no step was taken."""
        for one in self.fixture.given:
            await self.store.apply(one)
        await self.apply(annotations=annotations)

    async def settle(self) -> Settled:
        """Everything is handed in, and made."""
        await self.begin()
        return await self.settled()

    async def apply(self, spec: Mapping[str, Any] | None = None, **metadata: Any) -> Resource:
        """The manifest, with this of its spec and metadata."""
        full_spec = {**self.fixture.manifest["spec"], **(spec or {})}
        return await self.store.apply(
            {**self.fixture.manifest, "metadata": {**self.fixture.manifest["metadata"], **metadata}, "spec": full_spec}
        )

    # --- The author and other writers --------------------------------------------------------------------------------

    async def edit(self, key: str, path: Path, value: Any) -> None:
        """Another writer sets a field of a child, or removes it for MISSING."""
        live = await self.child(key)
        made: Any = remove_at(live.document, path) if value is MISSING else set_at(live.document, path, value)
        await self.store.replace(live, made)

    async def drift(self) -> None:
        """Another writer changes a managed field."""
        await self.edit(*_parts(self.fixture.managed))

    async def write(self) -> None:
        """Another writer changes a field that it may edit."""
        await self.edit(*_parts(self.fixture.editable))

    async def change(self) -> None:
        """The author wants something else."""
        await self.apply(self.fixture.changed)

    async def rotate(self) -> None:
        """The source says something else."""
        await self.store.apply(self.fixture.rotated)

    async def remove(self, key: str) -> None:
        """Another writer deletes a child."""
        await self.store.delete(self.at(key))

    async def remove_source(self) -> None:
        """Another writer deletes the source."""
        await self.store.delete(Resource(self.fixture.source).ref)

    async def plant(self, key: str, **metadata: Any) -> Resource:
        """Another writer puts a copy of a child in its place, with this of its metadata."""
        document: Any = (await self.child(key)).document
        await self.remove(key)
        kept = {
            name: document["metadata"][name] for name in ("name", "namespace", "labels") if name in document["metadata"]
        }
        body = {name: value for name, value in document.items() if name != "status"}
        return await self.store.create({**body, "metadata": {**kept, **metadata}})

    async def set_child_status(self, key: str, status: Mapping[str, Any]) -> None:
        """A child has another status."""
        await self.store.update_status(await self.child(key), dict(status))

    # --- The engine --------------------------------------------------------------------------------------------------

    async def step(self, *, requested: bool = False) -> StepOutcome:
        """One step."""
        self.clock.seconds += 1
        return await step(self.ref, self.engine, requested=requested)

    async def settled(self) -> Settled:
        """One step, after which nothing is left to do."""
        outcome = await self.step()
        assert isinstance(outcome, Settled), outcome
        return outcome

    async def killed_after(self, awaits: int) -> bool:
        """One step that is killed after so many awaits, if it has as many."""
        dying = replace(self, store=Interruption(awaits, die).wrap(self.store))
        try:
            await dying.step()
        except Killed:
            return True
        return False

    async def restart(self) -> None:
        """The process starts anew: what the store keeps is all there is."""
        if self.file is not None:
            await self.store.close()
            self.store = await _open_store(self.file, self.clock)

    async def preview(self) -> Plan:
        """The plan of the next step."""
        return await preview(self.ref, self.engine)

    # --- What can be seen --------------------------------------------------------------------------------------------

    def at(self, key: str) -> ResourceRef:
        """Where a child is."""
        kind, _, name = key.partition("/")
        group = next((one.group for one in self.fixture.owner.makes if one.kind == kind), "")
        return ResourceRef(group, kind, self.ref.namespace, name)

    async def child(self, key: str) -> Resource:
        """The child, which is there."""
        found = await self.store.get(self.at(key))
        assert found is not None, key
        return found

    async def resource(self) -> Resource:
        """The owner."""
        found = await self.store.get(self.ref)
        assert found is not None
        return found

    async def children(self) -> dict[str, Resource]:
        """Everything that is its own, by key."""
        uid = (await self.resource()).uid
        every = (await self.store.list()).resources
        return {f"{one.ref.kind}/{one.ref.name}": one for one in every if _controller_uid(one) == uid}

    async def contents(self) -> dict[str, Any]:
        """Everything but the owner: revision by ref, so that any write shows."""
        return {str(one.ref): one.revision for one in (await self.store.list()).resources if one.ref != self.ref}

    async def revision(self) -> str:
        """Moves with every write to the store."""
        return (await self.store.list()).revision

    async def conditions(self) -> dict[str, dict[str, Any]]:
        """The conditions of the owner by type."""
        conditions: Any = (await self.resource()).status["conditions"]
        return {one["type"]: one for one in conditions}

    async def reasons(self) -> list[str]:
        """The reasons of all notes about the owner."""
        return [one.reason for one in await self.store.events(self.ref)]


def _controller_uid(resource: Resource) -> Any:
    metadata: Any = resource.document["metadata"]
    return next((one["uid"] for one in metadata.get("ownerReferences", ()) if one.get("controller")), None)


def _parts(place: ChildField) -> tuple[str, Path, Any]:
    return place.key, place.path, place.value


@asynccontextmanager
async def owner_harness(fixture: OwnerFixture, file: File | None = None, *owners: Owner) -> AsyncIterator[OwnerHarness]:
    """A new world; its store is in `file`, or in memory."""
    clock = VirtualClock()
    harness = OwnerHarness(fixture, await _open_store(file, clock), clock, file, owners)
    try:
        yield harness
    finally:
        await harness.store.close()


async def _open_store(file: File | None, clock: VirtualClock) -> Store:
    if file is None:
        return MemoryStore(clock, _new_uid)
    from setpoint.stores.sqlite.store import open_sqlite

    return await open_sqlite(file, clock, _new_uid)


def _new_uid() -> str:
    return str(uuid.uuid4())

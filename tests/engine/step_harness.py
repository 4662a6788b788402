"""An engine with one resource, driven one step at a time."""

import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from setpoint.engine.context import EngineContext
from setpoint.engine.idle_cache import IdleCache
from setpoint.engine.kind import AnyKind
from setpoint.engine.management import CookieLocation
from setpoint.engine.ports import Store
from setpoint.engine.resource import Resource, ResourceRef, Revision
from setpoint.engine.step.outcomes import Settled, StepOutcome, Stopped
from setpoint.engine.step.reconcile import step
from setpoint.errors import OperationRunning
from setpoint.stores.memory import MemoryStore
from setpoint.stores.sqlite.store import open_sqlite
from tests.engine.clock import FakeClock
from tests.engine.kind_fixture import KindFixture, Spec

# No claim needs more steps than this for one change.
ENOUGH = 8


@dataclass(slots=True)
class StoreRevisions:
    """The revision of every resource of a store: the informer index of a test."""

    store: Store
    revisions: dict[ResourceRef, Revision] = field(default_factory=dict)

    async def refresh(self) -> None:
        """Reads the current revisions."""
        self.revisions = {one.ref: one.revision for one in (await self.store.list()).resources}

    def revision(self, ref: ResourceRef) -> Revision | None:
        return self.revisions.get(ref)


@dataclass(slots=True)
class StepHarness:
    """One resource of the kind of `fixture`. The clock advances by a second with every step."""

    fixture: KindFixture
    store: Store
    clock: FakeClock
    # The file of the store; None for a store in memory, which survives `restart`.
    path: Path | None = None
    cookies: CookieLocation = CookieLocation.STATUS
    # Used instead of the kind of the fixture.
    kind: AnyKind | None = None
    # The index of a long-running process; None for a single command.
    revisions: "StoreRevisions | None" = None
    idle_cache: IdleCache | None = None

    @property
    def engine(self) -> EngineContext:
        """The engine of one process."""
        kind = self.kind or self.fixture.kind
        return EngineContext(
            self.store, self.clock, {(kind.group, kind.name): kind}, self.cookies, idle_cache=self.idle_cache
        )

    @property
    def ref(self) -> ResourceRef:
        """The resource."""
        return self.fixture.ref

    @property
    def writes(self) -> list[str]:
        """The verbs of all writes to the service so far."""
        return self.fixture.writes

    def run_continuously(self) -> None:
        """From now on the process has an idle cache, as a controller has."""
        self.revisions = StoreRevisions(self.store)
        self.idle_cache = IdleCache(self.revisions)

    # --- The author --------------------------------------------------------------------------------------------------

    async def apply(self, spec: Spec | None = None, **metadata: Any) -> Resource:
        """Applies the manifest with this spec, or the minimal one."""
        declared = self.fixture.spec(self.fixture.field.first) if spec is None else spec
        return await self.store.apply(self.fixture.manifest(declared, **metadata))

    async def change(self) -> None:
        """The author wants another value in the specified field."""
        await self.apply(self.fixture.spec(self.fixture.field.then))

    async def settle(self, spec: Spec | None = None, **metadata: Any) -> Resource:
        """Applies, and steps until nothing is left to do."""
        await self.apply(spec, **metadata)
        outcome = await self.go_on()
        assert isinstance(outcome, Settled), outcome
        return await self.resource()

    async def delete(self) -> None:
        """Requests the deletion."""
        await self.store.delete(self.fixture.ref)

    async def secret(self, data: Mapping[str, str]) -> None:
        """Applies the Secret `s`."""
        metadata = {"name": "s", "namespace": self.fixture.ref.namespace}
        await self.store.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": dict(data)})

    # --- The engine --------------------------------------------------------------------------------------------------

    async def step(self, *, requested: bool = False) -> StepOutcome:
        """One step."""
        self.clock.seconds += 1
        if self.revisions is not None:
            await self.revisions.refresh()
        return await step(self.fixture.ref, self.engine, requested=requested)

    async def go_on(self, *, requested: bool = False) -> StepOutcome:
        """Takes steps until no operation is running."""
        outcome = await self.step(requested=requested)
        for _ in range(ENOUGH):
            if not (isinstance(outcome, Stopped) and isinstance(outcome.error, OperationRunning)):
                return outcome
            self.fixture.finish()
            outcome = await self.step()
        raise AssertionError(f"still waiting after {ENOUGH} steps: {outcome}")

    async def restart(self) -> None:
        """Restarts the process: only the store and the service keep their state."""
        await self.fixture.restart()
        if self.path is not None:
            await self.store.close()
            self.store = await open_sqlite(self.path, self.clock, _new_uid)
        if self.revisions is not None:
            self.run_continuously()

    # --- What can be seen --------------------------------------------------------------------------------------------

    async def resource(self, ref: ResourceRef | None = None) -> Resource:
        """The resource as the store has it."""
        found = await self.store.get(ref or self.fixture.ref)
        assert found is not None
        return found

    async def is_gone(self) -> bool:
        """Whether the store has no such resource any more."""
        return await self.store.get(self.fixture.ref) is None

    async def conditions(self) -> dict[str, dict[str, Any]]:
        """The conditions by type."""
        conditions: Any = (await self.resource()).status["conditions"]
        return {one["type"]: one for one in conditions}

    async def condition(self) -> dict[str, Any]:
        """The Ready condition, if it is the only one."""
        conditions = await self.conditions()
        assert list(conditions) == ["Ready"]
        return conditions["Ready"]

    async def ready(self) -> tuple[str, str, str]:
        """Status, reason and message of the one condition."""
        condition = await self.condition()
        return condition["status"], condition["reason"], condition["message"]


@asynccontextmanager
async def harness_for(fixture: KindFixture, path: Path | None = None) -> AsyncIterator[StepHarness]:
    """A new engine for the kind of `fixture`; its store is in the file `path`, or in memory."""
    clock = FakeClock(passing=fixture.finish)
    store: Store = MemoryStore(clock, _new_uid) if path is None else await open_sqlite(path, clock, _new_uid)
    harness = StepHarness(fixture, store, clock, path)
    try:
        yield harness
    finally:
        await harness.store.close()


def _new_uid() -> str:
    return str(uuid.uuid4())

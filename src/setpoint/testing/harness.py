"""An engine in memory, driven one step at a time: `EngineHarness` for tests of any resources, and `ContractHarness` for
one resource of the kind of a fixture.
"""

import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import field
from pathlib import Path
from typing import Any, Final

from setpoint.core.plan import Plan
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, Missing
from setpoint.engine.context import EngineContext
from setpoint.engine.drivers.observe_together import plan_together
from setpoint.engine.idle_cache import IdleCache
from setpoint.engine.kind import AnyKind
from setpoint.engine.management import CookieLocation
from setpoint.engine.owner import Owner
from setpoint.engine.ports import EventRecord, Store
from setpoint.engine.resource import Resource, ResourceRef, Revision
from setpoint.engine.step.outcomes import Settled, StepOutcome, Stopped
from setpoint.engine.step.reconcile import preview, step
from setpoint.errors import OperationRunning
from setpoint.kind.base_kind import BaseKind
from setpoint.kind.kind_context import KindContext, KindServices
from setpoint.stores.memory import MemoryStore
from setpoint.stores.sqlite.store import open_sqlite
from setpoint.testing.awaiting import resolved
from setpoint.testing.clock import VirtualClock
from setpoint.testing.faults import EVERY_VERB, FOR_EVER, CallFault
from setpoint.testing.kind_fixture import KindFixture
from setpoint.testing.kind_parts import Spec, UnspecifiedField

# No claim needs more steps than this for one change.
_ENOUGH_STEPS: Final = 8


@dataclass(slots=True)
class EngineHarness:
    """An engine with these types, a store and a clock of its own. The clock advances by a second with every step.

    `async with engine_harness(WidgetKind, environment={…}) as harness:` opens one with a store in memory.
    """

    # The kinds, and the owners.
    types: Sequence[AnyKind | Owner]
    store: Store
    clock: VirtualClock
    cookies: CookieLocation = CookieLocation.STATUS
    idle_cache: IdleCache | None = None

    @property
    def engine(self) -> EngineContext:
        """The engine of one process."""
        owners = dict[GroupKind, Owner]()
        kinds = dict[GroupKind, AnyKind]()
        for one in self.types:
            # Only owners have `makes`: to ask for all members of the protocol takes long, and each step does.
            if hasattr(one, "makes") and isinstance(one, Owner):
                owners[one.group, one.name] = one
            else:
                kinds[one.group, one.name] = one
        return EngineContext(self.store, self.clock, kinds, self.cookies, idle_cache=self.idle_cache, owners=owners)

    # --- The author --------------------------------------------------------------------------------------------------

    async def apply(self, manifest: Mapping[str, Any]) -> Resource:
        """Applies a manifest, as `setpoint apply --no-wait` does; no step is taken."""
        return await self.store.apply(manifest)

    async def settle(self, manifest: Mapping[str, Any]) -> Resource:
        """Applies, and steps until nothing is left to do; fails if that is not how it ends."""
        resource = await self.apply(manifest)
        outcome = await self.go_on(resource.ref)
        assert isinstance(outcome, Settled), outcome
        return await self.resource(resource.ref)

    async def delete(self, ref: ResourceRef) -> None:
        """Requests the deletion; the next step carries it out."""
        await self.store.delete(ref)

    async def secret(self, name: str, data: Mapping[str, str], namespace: str = "default") -> None:
        """Applies a Secret."""
        metadata = {"name": name, "namespace": namespace}
        await self.store.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": dict(data)})

    # --- The engine --------------------------------------------------------------------------------------------------

    async def step(self, ref: ResourceRef, *, requested: bool = False) -> StepOutcome:
        """One step. `requested`: as by `setpoint reconcile`."""
        self.clock.seconds += 1
        return await step(ref, self.engine, requested=requested)

    async def go_on(self, ref: ResourceRef, *, requested: bool = False) -> StepOutcome:
        """Takes steps until no operation is running; `clock.passing` is called between them."""
        outcome = await self.step(ref, requested=requested)
        for _ in range(_ENOUGH_STEPS):
            if not is_running(outcome):
                return outcome
            await resolved(self.clock.passing())
            outcome = await self.step(ref)
        raise AssertionError(f"still waiting after {_ENOUGH_STEPS} steps: {outcome}")

    async def plan(self, ref: ResourceRef) -> Plan:
        """What the next step would write, as `setpoint plan` shows it."""
        return await preview(ref, self.engine)

    async def plans(self, refs: Sequence[ResourceRef]) -> Mapping[ResourceRef, Plan]:
        """The same for several, as one `setpoint plan` shows them: what can be observed together is."""
        engine = await plan_together(refs, self.engine)
        return {ref: await preview(ref, engine) for ref in refs}

    # --- What can be seen --------------------------------------------------------------------------------------------

    async def resource(self, ref: ResourceRef) -> Resource:
        """The resource as the store has it."""
        found = await self.store.get(ref)
        assert found is not None, f"{ref} is not in the store"
        return found

    async def is_gone(self, ref: ResourceRef) -> bool:
        """Whether the store has no such resource any more."""
        return await self.store.get(ref) is None

    async def conditions(self, ref: ResourceRef) -> dict[str, dict[str, Any]]:
        """The conditions by type."""
        conditions: Any = (await self.resource(ref)).status["conditions"]
        return {one["type"]: one for one in conditions}

    async def ready(self, ref: ResourceRef) -> tuple[str, str, str]:
        """Status, reason and message of the condition Ready."""
        condition = (await self.conditions(ref))["Ready"]
        return condition["status"], condition["reason"], condition["message"]

    async def events(self, ref: ResourceRef) -> Sequence[EventRecord]:
        """The events of the resource."""
        return await self.store.events(ref)


@asynccontextmanager
async def engine_harness(
    *types: AnyKind | Owner | type[BaseKind[Any, Any]], environment: Mapping[str, str] | None = None
) -> AsyncIterator[EngineHarness]:
    """An engine with these kinds and owners, and a store in memory.

    A class is a kind that is made with a KindContext, whose variables are `environment`.
    """
    clock = VirtualClock()
    store = MemoryStore(clock, _new_uid)
    services = KindServices(read_secret=store.get)
    async with KindContext(environment or {}, clock, services) as context:
        made = [one(context) if isinstance(one, type) else one for one in types]
        try:
            yield EngineHarness(made, store, clock)
        finally:
            await store.close()


def is_running(outcome: StepOutcome) -> bool:
    """Whether the step ended with an operation of the service that is under way."""
    return isinstance(outcome, Stopped) and isinstance(outcome.error, OperationRunning)


@dataclass(slots=True)
class StoreRevisions:
    """The revision of every resource of a store: the informer index of a test."""

    store: Store
    revisions: dict[ResourceRef, Revision] = field(default_factory=dict)

    async def refresh(self) -> None:
        """Reads the current revisions."""
        self.revisions = {one.ref: one.revision for one in (await self.store.list()).resources}

    def revision(self, ref: ResourceRef) -> Revision | None:
        """The revision of the resource."""
        return self.revisions.get(ref)


@dataclass(slots=True)
class ContractHarness:
    """One resource of the kind of `fixture`. The clock advances by a second with every step."""

    fixture: KindFixture
    store: Store
    clock: VirtualClock
    # The file of the store; None for a store in memory, which survives `restart`.
    path: Path | None = None
    cookies: CookieLocation = CookieLocation.STATUS
    # Used instead of the kind of the fixture.
    kind: AnyKind | None = None
    # The index of a long-running process; None for a single command.
    revisions: "StoreRevisions | None" = None
    idle_cache: IdleCache | None = None

    @property
    def base(self) -> EngineHarness:
        """The harness for any resource."""
        kind = self.fixture.counted(self.kind or self.fixture.kind)
        return EngineHarness([kind], self.store, self.clock, self.cookies, self.idle_cache)

    @property
    def engine(self) -> EngineContext:
        """The engine of one process."""
        return self.base.engine

    @property
    def ref(self) -> ResourceRef:
        """The resource."""
        return self.fixture.ref

    @property
    def calls(self) -> list[str]:
        """The verbs of all calls of the service so far."""
        return self.fixture.calls

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
        await self.store.delete(self.ref)

    async def secret(self, data: Mapping[str, str]) -> None:
        """Applies the Secret `s`."""
        await self.base.secret("s", data, self.ref.namespace)

    # --- The engine --------------------------------------------------------------------------------------------------

    async def step(self, *, requested: bool = False) -> StepOutcome:
        """One step."""
        if self.revisions is not None:
            await self.revisions.refresh()
        return await self.base.step(self.ref, requested=requested)

    async def go_on(self, *, requested: bool = False) -> StepOutcome:
        """Takes steps until no operation is running."""
        outcome = await self.step(requested=requested)
        for _ in range(_ENOUGH_STEPS):
            if not is_running(outcome):
                return outcome
            await self.finish()
            outcome = await self.step()
        raise AssertionError(f"still waiting after {_ENOUGH_STEPS} steps: {outcome}")

    async def restart(self) -> None:
        """Restarts the process: only the store and the service keep their state."""
        await self.fixture.restart()
        if self.path is not None:
            await self.store.close()
            self.store = self.fixture.store = await open_sqlite(self.path, self.clock, _new_uid)
        if self.revisions is not None:
            self.run_continuously()

    # --- What can be seen --------------------------------------------------------------------------------------------

    async def resource(self, ref: ResourceRef | None = None) -> Resource:
        """The resource as the store has it."""
        return await self.base.resource(ref or self.ref)

    async def is_gone(self) -> bool:
        """Whether the store has no such resource any more."""
        return await self.base.is_gone(self.ref)

    async def conditions(self) -> dict[str, dict[str, Any]]:
        """The conditions by type."""
        return await self.base.conditions(self.ref)

    async def condition(self) -> dict[str, Any]:
        """The Ready condition, if it is the only one."""
        conditions = await self.conditions()
        assert list(conditions) == ["Ready"]
        return conditions["Ready"]

    async def ready(self) -> tuple[str, str, str]:
        """Status, reason and message of the one condition."""
        condition = await self.condition()
        return condition["status"], condition["reason"], condition["message"]

    # --- The service -------------------------------------------------------------------------------------------------

    async def objects(self) -> list[str]:
        """The names of all objects of the kind."""
        return await resolved(self.fixture.objects())

    async def read(self, member: str) -> Json | Missing:
        """A member of the object."""
        return await resolved(self.fixture.read(member))

    async def value(self) -> Json | Missing:
        """What the object has in the specified field."""
        return await self.read(self.fixture.field.member)

    async def create_outside(self, value: Json) -> None:
        """Another writer makes the object."""
        await resolved(self.fixture.create_outside(value))

    async def delete_outside(self) -> None:
        """Another writer takes the object away."""
        await resolved(self.fixture.delete_outside())

    async def edit(self, member: str, value: Json) -> None:
        """Another writer changes a member of the object."""
        await resolved(self.fixture.drift(member, value))

    async def drift(self) -> None:
        """Another writer changes the specified field."""
        await self.edit(self.fixture.field.member, self.fixture.field.drifted)

    async def set_unspecified(self, other: UnspecifiedField) -> None:
        """Another writer sets an unspecified field."""
        await self.edit(other.member, other.theirs)

    async def fail_next_calls(self, fault: CallFault, verbs: Sequence[str] = EVERY_VERB, times: int = FOR_EVER) -> None:
        """The next calls with these verbs go wrong."""
        await resolved(self.fixture.fail_next_calls(fault, verbs, times))

    async def recover(self) -> None:
        """Ends all faults."""
        await resolved(self.fixture.recover())

    async def rewrite(self, member: str, value: Json) -> None:
        """From now on the service has it its own way after every write."""
        await resolved(self.fixture.rewrite(member, value))

    async def finish(self) -> None:
        """Whatever the service was at work on is over."""
        await resolved(self.fixture.finish())

    async def make_slow(self) -> None:
        """From now on writes return operations."""
        await resolved(self.fixture.make_slow())

    async def fail_operation(self, message: str) -> None:
        """The next operation ends with this error."""
        await resolved(self.fixture.fail_operation(message))

    async def holds_secret(self, text: str) -> bool:
        """Whether the service was given this secret, and none after it."""
        return await resolved(self.fixture.holds_secret(text))


@asynccontextmanager
async def contract_harness(fixture: KindFixture, path: Path | None = None) -> AsyncIterator[ContractHarness]:
    """A new world of `fixture`, and an engine for its kind; the store is in the file `path`, or in memory."""
    clock = VirtualClock(passing=fixture.finish)
    store: Store = MemoryStore(clock, _new_uid) if path is None else await open_sqlite(path, clock, _new_uid)
    harness = ContractHarness(fixture, store, clock, path)
    fixture.store = store
    try:
        async with fixture.opened():
            yield harness
    finally:
        await harness.store.close()


def _new_uid() -> str:
    return str(uuid.uuid4())

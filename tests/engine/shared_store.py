"""An engine over a shared store with two tenants, a and b, and what was read from it on whose behalf."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from setpoint.core.values.json_types import Json, JsonObject
from setpoint.engine.context import EngineContext
from setpoint.engine.idle_cache import IdleCache
from setpoint.engine.ports import ResourceQuery
from setpoint.engine.references import DEPENDS_ON
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.step.outcomes import StepOutcome
from setpoint.engine.step.reconcile import step
from setpoint.engine.tenancy.reference_grants import REFERENCE_GRANT, GrantedReferences
from setpoint.engine.tenancy.tenants import Tenancy, Tenant
from setpoint.stores.memory import MemoryStore
from setpoint.testing.harness import StoreRevisions
from simulation.virtual_time import VirtualClock
from tests.engine.things import GROUP, Service, ThingKind, thing

A: Final = "a"
B: Final = "b"
THING: Final = (GROUP, "Thing")


def thing_in(namespace: str, name: str) -> ResourceRef:
    """The thing of that name there."""
    return ResourceRef(GROUP, "Thing", namespace, name)


def grant(
    name: str = "grant", namespace: str = B, sources: Sequence[Json] | None = None, to: Sequence[Json] | None = None
) -> JsonObject:
    """A grant in `namespace`; by default things of `a` may refer to all things there."""
    group, kind = THING
    spec: Json = {
        "from": list(sources or [{"group": group, "kind": kind, "namespace": A}]),
        "to": list(to or [{"group": group, "kind": kind}]),
    }
    metadata: Json = {"name": name, "namespace": namespace}
    return {"apiVersion": "setpoint.dev/v1alpha1", "kind": REFERENCE_GRANT[1], "metadata": metadata, "spec": spec}


class RecordingStore(MemoryStore):
    """A store in memory that records which resources were read."""

    def __init__(self) -> None:
        numbers = itertools.count(1)
        super().__init__(VirtualClock(), lambda: f"uid-{next(numbers)}")
        self.reads: list[ResourceRef] = []

    async def get(self, ref: ResourceRef) -> Resource | None:
        """See Store."""
        self.reads.append(ref)
        return await super().get(ref)


def tenancy_of(store: MemoryStore) -> Tenancy:
    """The tenancy of a store in memory, with the grants that are in it."""

    async def tenant_of(namespace: str) -> Tenant:
        return Tenant(namespace)

    async def grants_in(namespace: str) -> Sequence[Resource]:
        group, kind = REFERENCE_GRANT
        return (await store.list(ResourceQuery(group, kind, namespace))).resources

    return Tenancy(tenant_of, GrantedReferences(grants_in))


@dataclass(slots=True)
class SharedStoreHarness:
    """Things of two tenants. Steps use an idle cache, as those of a controller do."""

    store: RecordingStore = field(default_factory=RecordingStore)
    service: Service = field(default_factory=lambda: Service(VirtualClock()))
    engine: EngineContext = field(init=False)
    _revisions: StoreRevisions = field(init=False)

    def __post_init__(self) -> None:
        self._revisions = StoreRevisions(self.store)
        kinds = {THING: ThingKind(self.service)}
        tenancy = tenancy_of(self.store)
        cache = IdleCache(self._revisions)
        self.engine = EngineContext(self.store, VirtualClock(), kinds, idle_cache=cache, tenancy=tenancy)

    async def apply(
        self, namespace: str, name: str, wanted: Mapping[str, Any] | None = None, depends_on: str = "", **spec: Any
    ) -> ResourceRef:
        """An author of that namespace applies a thing; its object is called the same in the service."""
        annotations = {DEPENDS_ON: depends_on} if depends_on else {}
        manifest: Any = thing(name, {"size": 1} if wanted is None else wanted, annotations, **spec)
        manifest["metadata"]["namespace"] = namespace
        return (await self.store.apply(manifest)).ref

    async def step(self, ref: ResourceRef) -> StepOutcome:
        """A step; `store.reads` has what it read."""
        await self._revisions.refresh()
        self.store.reads.clear()
        return await step(ref, self.engine)

    @property
    def foreign_reads(self) -> list[ResourceRef]:
        """What was read from the namespace of b."""
        return [ref for ref in self.store.reads if ref.namespace == B]

    async def shown(self, ref: ResourceRef) -> str:
        """Everything that the tenant of a resource sees of it."""
        found = await self.store.get(ref)
        assert found is not None
        return f"{found.document} {await self.store.events(ref)}"

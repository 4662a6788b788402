"""Previews of several resources in the order of their references, and of what waits for those that would be created."""

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Final

from setpoint.core.plan import Action, Plan
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.paths import Path, set_at
from setpoint.core.values.shortening import KNOWN_LATER
from setpoint.engine.context import EngineContext
from setpoint.engine.dependency_graph import dependencies_among
from setpoint.engine.drivers.at_once import for_each, levels
from setpoint.engine.idle_cache import FoundObject
from setpoint.engine.intent import resolve_intent
from setpoint.engine.kind import Absent, Location, dependency_target
from setpoint.engine.references import may_have_dependencies
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.step.outcomes import AdoptedObject
from setpoint.engine.step.preview import as_adopted
from setpoint.engine.step.reconcile import preview_step
from setpoint.engine.step.store_decorators import OverlayStore
from setpoint.errors import Blocked, DependencyNotReady, OutputMissing, SetpointError

# So many values of others that are not known yet are named in the plan of one resource.
_MOST_UNKNOWN: Final = 20


@dataclass(frozen=True, slots=True)
class OrderedPreviews:
    """The plan of each resource, or the error that prevents it.

    `then` has the plans of resources that wait, for what follows once what they refer to is there, where it is known.
    """

    plans: Mapping[ResourceRef, Plan | SetpointError]
    then: Mapping[ResourceRef, Plan]


async def preview_in_order(refs: Sequence[ResourceRef], engine: EngineContext) -> OrderedPreviews:
    """The plan of each, in an order where dependencies come first; those that do not depend on each other at once.

    A resource that would adopt its object counts as adopted for those after it. One that would create it does not: what
    the service will report is not known, and a step would wait. What would follow is planned beside that.
    """
    found: dict[ResourceRef, Plan | SetpointError] = {}
    adopted: dict[ResourceRef, Resource] = {}
    after = replace(engine, store=OverlayStore(engine.store, adopted))
    future = _Future(engine, adopted)

    async def plan(ref: ResourceRef) -> None:
        try:
            planned = await preview_step(ref, after)
        except SetpointError as error:
            found[ref] = error
            if isinstance(error, DependencyNotReady | Blocked):
                await future.add_waiting(ref)
            return
        found[ref] = planned.plan
        resource = await engine.store.get(ref) if planned.adopts is not None else None
        if planned.adopts is not None and resource is not None:
            adopted[ref] = as_adopted(resource, planned.adopts)
        elif _is_creation(planned.plan):
            await future.add_created(ref)

    for level in await _levels(refs, engine):
        await for_each(level, plan)
    return OrderedPreviews({ref: found[ref] for ref in refs}, future.plans)


async def _levels(refs: Sequence[ResourceRef], engine: EngineContext) -> Sequence[Sequence[ResourceRef]]:
    """The resources in groups, one after the other: those that a resource refers to, and that are before it, first."""
    resources = [one for one in await engine.store.get_many(refs) if one is not None]
    dependencies = dependencies_among((one for one in resources if may_have_dependencies(one)), engine)
    owners = {one.ref: [one.controller] for one in resources if one.controller is not None}
    return levels(refs, lambda ref: (*map(dependency_target, dependencies.get(ref, ())), *owners.get(ref, ())))


def _is_creation(plan: Plan) -> bool:
    return bool(plan.writes) and plan.writes[0].action is Action.CREATE and not plan.withheld


@dataclass(slots=True)
class _Future:
    """The resources as they are once those that would create their objects have: at their locations, without outputs.

    Whatever stands in the way of a plan there is no error: the resource waits, and it is not known what follows.
    """

    engine: EngineContext
    adopted: dict[ResourceRef, Resource]
    created: dict[ResourceRef, Resource] = field(default_factory=dict)
    locations: set[str] = field(default_factory=set)
    plans: dict[ResourceRef, Plan] = field(default_factory=dict)

    async def add_created(self, ref: ResourceRef) -> None:
        """One that would create its object."""
        resource = await self.engine.store.get(ref)
        if resource is None or ref.group_kind not in self.engine.kinds:
            return
        try:
            engine = await self._after().for_namespace(ref.namespace)
            location = (await resolve_intent(resource, engine)).location
        except SetpointError:
            return
        self._add(resource, location)

    def _add(self, resource: Resource, location: Location) -> None:
        self.created[resource.ref] = as_adopted(resource, AdoptedObject(location, {}))
        self.locations.add(location)

    async def add_waiting(self, ref: ResourceRef) -> None:
        """One that waits: its plan, if what it waits for is only created first."""
        resource = await self.engine.store.get(ref)
        if resource is None or not self.created or ref.group_kind not in self.engine.kinds:
            return
        for _ in range(_MOST_UNKNOWN):
            try:
                await self._plan(resource)
            except OutputMissing as error:
                if not self._name_unknown(error):
                    return
            except SetpointError:
                return
            else:
                return

    async def _plan(self, resource: Resource) -> None:
        engine = await self._after().for_namespace(resource.ref.namespace)
        location = (await resolve_intent(resource, engine)).location
        if KNOWN_LATER in location:
            return
        if self._is_inside(location):
            # What it is in is not there, and no service need be asked.
            found = FoundObject(location, Absent())
            engine = replace(engine, observations={**engine.observations, resource.ref: found})
        plan = (await preview_step(resource.ref, engine)).plan
        self.plans[resource.ref] = plan
        if _is_creation(plan):
            self._add(resource, location)

    def _after(self) -> EngineContext:
        return replace(self.engine, store=OverlayStore(self.engine.store, ChainMap(self.created, self.adopted)))

    def _is_inside(self, location: Location) -> bool:
        steps = location.split("/")
        return any("/".join(steps[:count]) in self.locations for count in range(1, len(steps)))

    def _name_unknown(self, error: OutputMissing) -> bool:
        """Whether the output that is missing is one of those that will be known: then it is called that."""
        ref = None if error.ref is None else ResourceRef(*error.ref)
        resource = None if ref is None else self.created.get(ref)
        if ref is None or resource is None:
            return False
        document = set_at(resource.document, Path.parse(error.path), KNOWN_LATER)
        assert isinstance(document, dict)
        self.created[ref] = Resource(document)
        return True

"""Observes many objects with few requests, before a plan or an apply of many resources.

A kind that can observe many at once is asked for all of them. A list of any other kind only ever proves that an object
is as it was when its resource settled; what it shows otherwise, or leaves out, is observed by itself.
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Final

from setpoint.core.unstructured import GroupKind
from setpoint.core.values.canonical import digest
from setpoint.engine.capabilities import ListScope, SupportsBulkObserve, SupportsList, keeps_cookie
from setpoint.engine.context import EngineContext
from setpoint.engine.idle_cache import FoundObject, ListedObject, ListedObjects, state_digest
from setpoint.engine.intent import resolve_ignoring_readiness
from setpoint.engine.kind import Location, Present
from setpoint.engine.management import Management, management_of
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.state import StoredState, outputs_in
from setpoint.errors import SetpointError

# Fewer are observed one by one.
FEW: Final = 10
# A list with more objects of others than this, for each of ours, is not read to its end.
_MOST_OTHERS: Final = 5
_PAGE: Final = 1000


async def plan_together(refs: Sequence[ResourceRef], engine: EngineContext) -> EngineContext:
    """The engine for the previews of these resources, which need not observe what was observed together."""
    return replace(engine, observations=await observe_together(refs, engine))


async def step_together(refs: Sequence[ResourceRef], engine: EngineContext) -> EngineContext:
    """The engine for one step of each: a step goes by what was observed together only if it is what it was before."""
    listed = ListedObjects()
    # Of a resource without a cookie it is not known what it was before.
    stateful = [ref for ref in refs if ref.group_kind in engine.kinds and keeps_cookie(engine.kinds[ref.group_kind])]
    for ref, found in (await observe_together(stateful, engine)).items():
        if isinstance(found.observation, Present):
            listed.show(ref, ListedObject(found.location, _state_of(found.observation)))
    return replace(engine, listed_objects=listed)


async def observe_together(refs: Sequence[ResourceRef], engine: EngineContext) -> Mapping[ResourceRef, FoundObject]:
    """What was found of those resources of which there are many of a kind; nothing of any others.

    No error is raised: what cannot be observed here is observed by itself, and fails there.
    """
    found: dict[ResourceRef, FoundObject] = {}
    for (kind_name, namespace), group in _many(refs, engine).items():
        bound = await _bound(kind_name, namespace, engine)
        resources = [one for one in await engine.store.get_many(group) if one is not None and _is_observed(one)]
        if isinstance(bound, SupportsBulkObserve):
            found |= await _observed(bound, resources, engine)
        elif isinstance(bound, SupportsList):
            found |= await _listed(bound, resources)
    return found


def _many(refs: Iterable[ResourceRef], engine: EngineContext) -> Mapping[tuple[GroupKind, str], Sequence[ResourceRef]]:
    """The resources of each kind of which there are many: by namespace, where each has a tenant of its own."""
    groups: dict[tuple[GroupKind, str], list[ResourceRef]] = defaultdict(list)
    for ref in refs:
        if ref.group_kind in engine.kinds:
            groups[ref.group_kind, "" if engine.tenancy is None else ref.namespace].append(ref)
    return {key: group for key, group in groups.items() if len(group) >= FEW}


async def _bound(kind: GroupKind, namespace: str, engine: EngineContext) -> object:
    try:
        return (await engine.for_namespace(namespace)).kinds[kind]
    except SetpointError:
        return None


def _is_observed(resource: Resource) -> bool:
    try:
        return not resource.is_deleting and management_of(resource.annotations) is not Management.PAUSED
    except SetpointError:
        return False


# --- Kinds that observe many at once ----------------------------------------------------------------------------------


async def _observed(
    kind: SupportsBulkObserve, resources: Sequence[Resource], engine: EngineContext
) -> Mapping[ResourceRef, FoundObject]:
    located = {one.ref: location for one in resources if (location := await _location(one, engine)) is not None}
    try:
        found = await kind.observe_many(list(dict.fromkeys(located.values()))) if len(located) >= FEW else {}
    except SetpointError:
        return {}
    return {ref: FoundObject(location, found[location]) for ref, location in located.items() if location in found}


async def _location(resource: Resource, engine: EngineContext) -> Location | None:
    """Where the object is, or is going to be; None where that cannot be told yet.

    Located anew, also where it is on record: a kind may connect by what the spec says.
    """
    try:
        return (await resolve_ignoring_readiness(resource, engine)).location
    except SetpointError:
        return None


# --- Kinds that can be listed -----------------------------------------------------------------------------------------


async def _listed(kind: SupportsList, resources: Sequence[Resource]) -> Mapping[ResourceRef, FoundObject]:
    scopes: dict[ListScope, dict[Location, Resource]] = defaultdict(dict)
    for one in resources:
        stored = StoredState.of(one)
        scope = None if stored.location is None or stored.cookie is None else kind.list_scope_of(stored.location)
        if scope is not None and stored.location is not None:
            scopes[scope][stored.location] = one
    found: dict[ResourceRef, FoundObject] = {}
    for scope, members in scopes.items():
        if len(members) < FEW:
            continue
        try:
            async for location, shown in _items(kind, scope, members):
                found[members[location].ref] = FoundObject(location, shown)
        except SetpointError:
            continue
    return found


async def _items(
    kind: SupportsList, scope: ListScope, members: Mapping[Location, Resource]
) -> AsyncIterator[tuple[Location, Present[Any]]]:
    """The members that the list shows as they were when their resources settled."""
    seen, most = 0, _PAGE + _MOST_OTHERS * len(members)
    async with aclosing(kind.pages(scope)) as pages:
        async for page in pages:
            for item in page:
                location = kind.location_of(item, scope)
                shown = kind.read_item(item, location) if location in members else None
                if shown is not None and _state_of(shown) == _settled_state(members[location]):
                    yield location, shown
            seen += len(page)
            if seen > most:
                return


def _state_of(shown: Present[Any]) -> bytes:
    return state_digest(digest(shown.live), shown.outputs)


def _settled_state(resource: Resource) -> bytes | None:
    cookie = StoredState.of(resource).cookie
    return None if cookie is None else state_digest(cookie.live, outputs_in(resource.status))

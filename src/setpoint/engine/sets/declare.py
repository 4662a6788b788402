"""Declares sets in a store: one commit, and an event for each resource that it changed."""

import asyncio
from collections.abc import Sequence
from typing import Final

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.engine.ports import Clock, EventRecord, Store
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.sets.resource_set import (
    SetDeclaration,
    SetStore,
    file_of,
    revision_of,
    set_of,
    short_revision,
    source_of,
)
from setpoint.errors import UserError

DECLARED: Final = "Declared"
PRUNED: Final = "Pruned"
NO_SETS: Final = (
    "sets are kept in a store of setpoint's own, in a file: in a cluster use `kubectl apply --prune --applyset`, "
    "Argo CD or Flux, which know the cluster's own rights"
)


@dataclass(frozen=True, slots=True)
class DeclaredMembers:
    """The resources of a declaration, and which of them it changed."""

    resources: Sequence[Resource]
    changed: frozenset[ResourceRef]


def set_store_of(store: Store) -> SetStore:
    """The store, for sets; UserError for one that keeps none."""
    if not isinstance(store, SetStore):
        raise UserError(NO_SETS)
    return store


async def declare(declaration: SetDeclaration, store: Store, clock: Clock) -> DeclaredMembers:
    """Commits the declaration: all of it, or nothing."""
    before = {one.ref: _version(one) for one in (await store.list()).resources if set_of(one.annotations)}
    resources = await set_store_of(store).declare(declaration)
    changed = [one for one in resources if before.get(one.ref) != _version(one)]
    # In one transaction: the store commits what is queued together.
    await asyncio.gather(*(store.record_event(_declared(one, clock.now())) for one in changed))
    return DeclaredMembers(resources, frozenset(one.ref for one in changed))


async def prune(resource: Resource, revision: str, store: Store, clock: Clock) -> None:
    """Deletes a resource that left its set, or marks it for deletion, with an event; unless it is declared again."""
    set_name = set_of(resource.annotations)
    await set_store_of(store).prune(resource.ref, set_name)
    message = _left(set_name, revision)
    await store.record_event(EventRecord(resource.ref, resource.uid, "Normal", PRUNED, message, clock.now()))


async def prune_reason(resource: Resource, store: Store) -> str:
    """Why a resource that left its set is deleted."""
    name = set_of(resource.annotations)
    known = await store.sets() if isinstance(store, SetStore) else ()
    return f"pruned: {_left(name, next((one.revision for one in known if one.name == name), ''))}"


def _left(set_name: str, revision: str) -> str:
    return f"it left the set {set_name}" + (f" at {short_revision(revision)}" if revision else "")


def _version(resource: Resource) -> tuple[str, int, str]:
    """What a declaration changes: steps write to the status meanwhile."""
    return resource.uid, resource.generation, source_of(resource.annotations)


def _declared(resource: Resource, now: str) -> EventRecord:
    source = source_of(resource.annotations)
    file = f", in {file_of(source)}" if file_of(source) else ""
    message = f"declared by the set {set_of(resource.annotations)} at {short_revision(revision_of(source))}{file}"
    return EventRecord(resource.ref, resource.uid, "Normal", DECLARED, message, now)

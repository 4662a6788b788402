"""Exports resources from a store, with all that another store needs to continue with them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from setpoint.core.redaction import LAST_APPLIED
from setpoint.core.schema.annotations import SET, SOURCE
from setpoint.core.values.json_types import Json
from setpoint.engine.context import FINALIZER, EngineContext
from setpoint.engine.intent import resolve_ignoring_readiness
from setpoint.engine.kind import ResourceType, SecretKeyReference
from setpoint.engine.management import MANAGEMENT, Management
from setpoint.engine.owners.children import related_objects
from setpoint.engine.ports import Store
from setpoint.engine.references import resolve_available
from setpoint.engine.resource import Resource
from setpoint.engine.state import without_step_secrets
from setpoint.engine.step.store_decorators import OverlayStore
from setpoint.engine.transfer.export_format import (
    MANAGEMENT_BEFORE,
    ExportedObject,
    ExportedResource,
    ObjectFacts,
    ResourceFacts,
)
from setpoint.errors import NotReady, UserError


async def gather_export(
    resources: Sequence[Resource], engine: EngineContext
) -> tuple[tuple[ExportedObject, ...], tuple[ExportedResource, ...]]:
    """The unreconciled objects that the resources need, and the resources, each with its facts in this store.

    The former are the Secrets that a spec refers to, and the related objects of owners.
    """
    objects = await _objects_of(resources, engine)
    # The facts are about exactly the states that are exported, even if the store changes meanwhile.
    overlaid = replace(engine, store=OverlayStore(engine.store, {one.ref: one for one in (*resources, *objects)}))
    exported = [ExportedResource(_portable(one), await _facts(one, overlaid)) for one in resources]
    related = [ExportedObject(_portable(one), ObjectFacts(f"{one.uid}/{one.revision}")) for one in objects]
    return tuple(related), tuple(exported)


async def pause_for_export(resource: Resource, store: Store) -> None:
    """Pauses `resource` and records its management of before."""
    if not is_paused_by_export(resource):
        before = resource.annotations.get(MANAGEMENT, "")
        await store.annotate(resource, {MANAGEMENT: Management.PAUSED.value, MANAGEMENT_BEFORE: before})


async def resume_after_export(resource: Resource, store: Store) -> None:
    """Undoes `pause_for_export`; a resource that its author paused stays paused."""
    if is_paused_by_export(resource):
        before = resource.annotations[MANAGEMENT_BEFORE] or None
        await store.annotate(resource, {MANAGEMENT: before, MANAGEMENT_BEFORE: None})


def is_paused_by_export(resource: Resource) -> bool:
    """Whether an export has paused `resource`."""
    annotations = resource.annotations
    return annotations.get(MANAGEMENT) == Management.PAUSED and MANAGEMENT_BEFORE in annotations


def secret_keys(resource: Resource, kind: ResourceType) -> tuple[SecretKeyReference, ...]:
    """The keys of Secrets that the spec names; none for a spec that is invalid."""
    try:
        return tuple(
            dependency for dependency in kind.dependencies(resource) if isinstance(dependency, SecretKeyReference)
        )
    except UserError:
        return ()


async def _objects_of(resources: Sequence[Resource], engine: EngineContext) -> list[Resource]:
    refs = {dependency.secret for one in resources for dependency in secret_keys(one, engine.resource_type_of(one))}
    found = [await engine.store.get(ref) for ref in sorted(refs)]
    related = [other for one in resources for other in await related_objects(one, engine)]
    by_ref = {one.ref: one for one in (*found, *related) if one is not None}
    return [by_ref[ref] for ref in sorted(by_ref)]


async def _facts(resource: Resource, engine: EngineContext) -> ResourceFacts:
    is_observed = resource.status.get("observedGeneration") == resource.generation
    if resource.ref.group_kind in engine.owners:
        # The intent of an owner covers its uid, which is another one in every store.
        return ResourceFacts(None, {}, is_observed, resource.is_deleting)
    try:
        intent = await resolve_ignoring_readiness(resource, engine)
    except (NotReady, UserError):
        keys = secret_keys(resource, engine.kind_of(resource))
        secrets = await resolve_available(keys, resource.ref, engine)
        return ResourceFacts(None, dict(secrets.versions), is_observed, resource.is_deleting)
    return ResourceFacts(intent.digest, dict(intent.resolved.versions), is_observed, resource.is_deleting)


def _portable(resource: Resource) -> Resource:
    """The resource without what only this store understands: versions, uids, owner references; nor past secrets."""
    members: dict[str, Json] = {
        "name": resource.ref.name,
        "namespace": resource.ref.namespace,
        "labels": dict(resource.labels),
        "annotations": _annotations(resource),
        "finalizers": [FINALIZER] if FINALIZER in resource.finalizers else [],
    }
    metadata = {name: value for name, value in members.items() if value}
    return Resource(without_step_secrets({**resource.document, "metadata": metadata}))


_OF_THIS_STORE: Final = (LAST_APPLIED, MANAGEMENT_BEFORE, SET, SOURCE)


def _annotations(resource: Resource) -> dict[str, Json]:
    """The annotations as the author left them: without the pause of an export, and without the set of this store."""
    left_behind = (*_OF_THIS_STORE, *((MANAGEMENT,) if is_paused_by_export(resource) else ()))
    found: dict[str, Json] = {name: text for name, text in resource.annotations.items() if name not in left_behind}
    before = resource.annotations.get(MANAGEMENT_BEFORE)
    return {**found, MANAGEMENT: before} if before and is_paused_by_export(resource) else found

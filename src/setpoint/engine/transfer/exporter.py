"""Exports resources from a store, with all that another store needs to go on with them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from setpoint.core.values.json_types import Json
from setpoint.engine.context import FINALIZER, MANAGEMENT, EngineContext, Management
from setpoint.engine.intent import resolve_ignoring_readiness
from setpoint.engine.kind import ResourceType, SecretKeyReference
from setpoint.engine.owners.children import related_objects
from setpoint.engine.ports import Store
from setpoint.engine.references import resolve_available
from setpoint.engine.resource import Resource
from setpoint.engine.step.preview import OverlayStore
from setpoint.engine.transfer.export_format import (
    MANAGEMENT_BEFORE,
    ExportedObject,
    ExportedResource,
    ObjectFacts,
    ResourceFacts,
)
from setpoint.errors import NotReady, UserError

# kubectl's copy of a manifest: of the cluster where it was applied, and for a Secret its values.
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


async def gather_export(
    resources: Sequence[Resource], engine: EngineContext
) -> tuple[tuple[ExportedObject, ...], tuple[ExportedResource, ...]]:
    """The plain objects that the resources need, and the resources, each as it is here with what it came to.

    The former are the Secrets that a spec refers to, and the relatives of owners.
    """
    objects = await _objects_of(resources, engine)
    # Whatever happens meanwhile: the facts are about the very states that go along.
    seen = replace(engine, store=OverlayStore(engine.store, {one.ref: one for one in (*resources, *objects)}))
    taken = [ExportedResource(_portable(one), await _facts(one, seen)) for one in resources]
    named = [ExportedObject(_portable(one), ObjectFacts(f"{one.uid}/{one.revision}")) for one in objects]
    return tuple(named), tuple(taken)


async def pause_for_export(resource: Resource, store: Store) -> None:
    """From here on nothing is read or written for `resource`; what it said of its management is on record."""
    if not is_paused_by_export(resource):
        before = resource.annotations.get(MANAGEMENT, "")
        await store.annotate(resource, {MANAGEMENT: Management.PAUSED.value, MANAGEMENT_BEFORE: before})


async def resume_after_export(resource: Resource, store: Store) -> None:
    """What an export paused is managed as it was before; what its author paused stays so."""
    if is_paused_by_export(resource):
        before = resource.annotations[MANAGEMENT_BEFORE] or None
        await store.annotate(resource, {MANAGEMENT: before, MANAGEMENT_BEFORE: None})


def is_paused_by_export(resource: Resource) -> bool:
    """Whether an export has paused `resource`."""
    annotations = resource.annotations
    return annotations.get(MANAGEMENT) == Management.PAUSED and MANAGEMENT_BEFORE in annotations


def secret_keys(resource: Resource, kind: ResourceType) -> tuple[SecretKeyReference, ...]:
    """The keys of Secrets that the spec names; none in one that cannot be read."""
    try:
        return tuple(
            dependency for dependency in kind.dependencies(resource) if isinstance(dependency, SecretKeyReference)
        )
    except UserError:
        return ()


async def _objects_of(resources: Sequence[Resource], engine: EngineContext) -> list[Resource]:
    refs = {dependency.secret for one in resources for dependency in secret_keys(one, engine.resource_type_of(one))}
    found = [await engine.store.get(ref) for ref in sorted(refs)]
    relatives = [relative for one in resources for relative in await related_objects(one, engine)]
    by_ref = {one.ref: one for one in (*found, *relatives) if one is not None}
    return [by_ref[ref] for ref in sorted(by_ref)]


async def _facts(resource: Resource, engine: EngineContext) -> ResourceFacts:
    is_observed = resource.status.get("observedGeneration") == resource.generation
    if (resource.ref.group, resource.ref.kind) in engine.owners:
        # What its children are made of names the owner by its uid, which is another elsewhere.
        return ResourceFacts(None, {}, is_observed, resource.is_deleting)
    try:
        intent = await resolve_ignoring_readiness(resource, engine)
    except (NotReady, UserError):
        keys = secret_keys(resource, engine.kind_of(resource))
        secrets = await resolve_available(keys, engine.store)
        return ResourceFacts(None, dict(secrets.versions), is_observed, resource.is_deleting)
    return ResourceFacts(intent.digest, dict(intent.resolved.versions), is_observed, resource.is_deleting)


def _portable(resource: Resource) -> Resource:
    """What goes along: neither what only this store means something by, nor an owner, who is another elsewhere."""
    members: dict[str, Json] = {
        "name": resource.ref.name,
        "namespace": resource.ref.namespace,
        "labels": dict(resource.labels),
        "annotations": _annotations(resource),
        "finalizers": [FINALIZER] if FINALIZER in resource.finalizers else [],
    }
    metadata = {name: value for name, value in members.items() if value}
    return Resource({**resource.document, "metadata": metadata})


def _annotations(resource: Resource) -> dict[str, Json]:
    """As the author left them: that an export paused it is nobody's word on how a resource is managed."""
    left_behind = (_LAST_APPLIED, MANAGEMENT_BEFORE, *((MANAGEMENT,) if is_paused_by_export(resource) else ()))
    found: dict[str, Json] = {name: text for name, text in resource.annotations.items() if name not in left_behind}
    before = resource.annotations.get(MANAGEMENT_BEFORE)
    return {**found, MANAGEMENT: before} if before and is_paused_by_export(resource) else found

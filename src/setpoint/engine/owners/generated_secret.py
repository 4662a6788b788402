"""The Secret of a resource with a value that is generated once: it is on record before any service gets the value.

A step that is killed after any await finds the Secret, and sends the value that is there: no value is lost, and none is
generated twice. A Secret of the same name that is not the resource's is never written, nor used.
"""

import base64
import binascii
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from setpoint.core.owner_references import Ownership, controller_of, owner_reference, ownership, with_owner_reference
from setpoint.core.plan import Action
from setpoint.core.schema import annotations as known_annotations
from setpoint.core.values.canonical import same
from setpoint.core.values.deferred_dataclass import dataclass, replace
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.engine.capabilities import GeneratedSecret, IssuedSecret, SupportsGeneratedSecret
from setpoint.engine.context import FINALIZER, EngineContext, KindStepContext
from setpoint.engine.ports import ResourceQuery
from setpoint.engine.resource import SECRET, Resource, ResourceRef
from setpoint.engine.step.outcomes import FailedStep, PlannedStep, StepOutcome, StepPlan
from setpoint.engine.step.reports import ReportedWrite, StepSubject
from setpoint.engine.step.store_decorators import OverlayStore
from setpoint.errors import DependencyInvalid, DependencyNotReady

# Stays where an owner reference cannot: in an export, and when the resource goes and its object is kept.
GENERATED_FOR: Final = known_annotations.GENERATED_FOR
_EVENT: Final = "SecretGenerated"


@dataclass(frozen=True, slots=True)
class SecretWrite:
    """A Secret that is to be written before the object of its resource: as it was, and as it is to be."""

    before: Resource | None
    after: JsonObject
    ref: ResourceRef
    # Whether its value is generated now: otherwise only other entries, or its owner, are put back.
    is_new_value: bool
    # Whether the service issues what is to be in it.
    is_issued: bool = False

    @property
    def because(self) -> str:
        """What is about to happen, for a plan."""
        verb = "created" if self.before is None else "updated"
        value = "with a value that is generated" if self.is_new_value else "with the value that it has"
        return f"{self.ref} is {verb} first, {'for what the service issues' if self.is_issued else value}"


async def pending_secret(resource: Resource, engine: EngineContext) -> SecretWrite | None:
    """The Secret of the resource that has to be written; None when it is as it should be, or there is none.

    DependencyInvalid for a Secret of that name that is not the resource's.
    """
    wanted = _wanted_secret(resource, engine.kinds.get(resource.ref.group_kind))
    if wanted is None or resource.is_deleting:
        return None
    ref = ResourceRef(*SECRET, resource.ref.namespace, wanted.name)
    live = await engine.store.get(ref)
    if isinstance(wanted, IssuedSecret):
        return _pending_issued(live, resource, ref)
    if live is None:
        return SecretWrite(None, _new_secret(wanted, resource, ref), ref, is_new_value=True)
    require_ours(live, resource)
    value = _text(live, wanted.key)
    after = _completed(live, wanted, resource, value or wanted.generate())
    is_same = same(after, live.document)
    return None if is_same else SecretWrite(live, after, ref, is_new_value=not value)


def _pending_issued(live: Resource | None, resource: Resource, ref: ResourceRef) -> SecretWrite | None:
    """The Secret for what the service issues: it is there, and can be written, before the object is created."""
    if live is None:
        return SecretWrite(None, secret_of(resource, ref, {}), ref, is_new_value=False, is_issued=True)
    require_ours(live, resource)
    after = with_owner_reference(live.document, resource.document)
    is_same = same(after, live.document)
    return None if is_same else SecretWrite(live, after, ref, is_new_value=False, is_issued=True)


def _wanted_secret(resource: Resource, kind: object) -> GeneratedSecret | IssuedSecret | None:
    return kind.generated_secret(resource) if isinstance(kind, SupportsGeneratedSecret) else None


async def with_pending_secret(resource: Resource, engine: EngineContext) -> EngineContext:
    """The engine as if the Secret of the resource were written, to plan with: then its store refuses writes."""
    pending = await pending_secret(resource, engine)
    if pending is None:
        return engine
    # Without the revision that the value may have been sent with: the Secret is about to have another.
    metadata = {"name": pending.ref.name, "namespace": pending.ref.namespace}
    draft = Resource({**pending.after, "metadata": metadata})
    return replace(engine, store=OverlayStore(engine.store, {pending.ref: draft}))


async def secret_first(
    planned: StepPlan, context: KindStepContext, plan_again: Callable[[KindStepContext], Awaitable[StepPlan]]
) -> StepPlan:
    """The step that writes the Secret of its resource first, and then plans again; `planned` where none is to be."""
    pending = await pending_secret(context.resource, context.engine)
    if pending is None or isinstance(planned, FailedStep):
        return planned

    async def execute() -> StepOutcome:
        return await (await plan_again(await _write(context, pending))).execute()

    return PlannedStep(replace(planned.plan, because=pending.because), execute)


async def _write(context: KindStepContext, pending: SecretWrite) -> KindStepContext:
    """The context once the Secret is written; WriteConflict when another writer was faster.

    Where no garbage is collected, the finalizer that the Secret is deleted by is on record before it.
    """
    held, store = context.resource.finalizers, context.engine.store
    if FINALIZER not in held:
        context = await replace(context, finalizers=(*held, FINALIZER)).save_state()
    action = Action.CREATE if pending.before is None else Action.UPDATE
    with context.engine.reporter.writing([ReportedWrite(StepSubject.of(context), action, str(pending.ref), _EVENT)]):
        if pending.before is None:
            await store.create(pending.after)
        else:
            await store.replace(pending.before, pending.after)
    if pending.is_new_value:
        await store.record_event(context.event(_EVENT, f"a value was generated, and is kept in {pending.ref}"))
    return context


# --- When the resource goes -------------------------------------------------------------------------------------------


async def release_secrets(context: KindStepContext, *, is_kept: bool) -> None:
    """Deletes the Secrets that were generated for a resource that goes; those of an object that `is_kept` stay.

    In a store that collects garbage nothing has to be deleted, and what stays must lose its owner first.
    """
    store = context.engine.store
    if store.collects and not is_kept:
        return
    for secret in await _own_secrets(context):
        if is_kept:
            await store.replace(secret, _without_owner(secret, context.resource))
        else:
            await store.delete(secret.ref)


async def _own_secrets(context: KindStepContext) -> list[Resource]:
    """All of them where they can be listed; elsewhere the one that the spec names: a tenant may not list Secrets."""
    resource, store = context.resource, context.engine.store
    if store.collects:
        wanted = _wanted_secret(resource, context.kind)
        named = None if wanted is None else await store.get(ResourceRef(*SECRET, resource.ref.namespace, wanted.name))
        found = [] if named is None else [named]
    else:
        found = list((await store.list(ResourceQuery(*SECRET, resource.ref.namespace))).resources)
    return [one for one in found if ownership(one.document, resource.document) is Ownership.OURS]


def _without_owner(secret: Resource, owner: Resource) -> JsonObject:
    metadata = _members(secret.document.get("metadata"))
    references = metadata.get("ownerReferences")
    listed = references if isinstance(references, list) else []
    others = [one for one in listed if not (isinstance(one, Mapping) and one.get("uid") == owner.uid)]
    return {**secret.document, "metadata": {**metadata, "ownerReferences": others}}


# --- What is in it ----------------------------------------------------------------------------------------------------


def _new_secret(wanted: GeneratedSecret, resource: Resource, ref: ResourceRef) -> JsonObject:
    value = wanted.generate()
    return secret_of(resource, ref, _encoded({**wanted.entries(value), wanted.key: value}))


def secret_of(resource: Resource, ref: ResourceRef, data: Mapping[str, Json]) -> JsonObject:
    """A new Secret of the resource, with these entries in base64."""
    metadata: JsonObject = {
        "name": ref.name,
        "namespace": ref.namespace,
        "annotations": {GENERATED_FOR: _subject(resource)},
        "ownerReferences": [owner_reference(resource.document)],
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "type": "Opaque",
        "data": dict(data),
    }


def _completed(live: Resource, wanted: GeneratedSecret, resource: Resource, value: str) -> JsonObject:
    """The live Secret with its value, the entries that follow from it, and its owner; what else is in it stays."""
    data = {**_members(live.document.get("data")), **_encoded({**wanted.entries(value), wanted.key: value})}
    found = with_owner_reference(live.document, resource.document)
    return {**found, "data": data}


def _encoded(entries: Mapping[str, str]) -> dict[str, Json]:
    return {key: base64.b64encode(text.encode()).decode() for key, text in entries.items()}


def _text(secret: Resource, key: str) -> str:
    """The value of the key; empty when it is missing, or no text: then it cannot be used."""
    encoded = _members(secret.document.get("data")).get(key)
    try:
        return base64.b64decode(encoded, validate=True).decode() if isinstance(encoded, str) else ""
    except (binascii.Error, UnicodeDecodeError):
        return ""


def require_ours(live: Resource, resource: Resource) -> None:
    """DependencyInvalid for a Secret that is not the resource's."""
    if not is_ours(live, resource):
        owner = controller_of(live.document)
        whose = "is not a generated one of it" if owner is None else f"belongs to {owner}"
        raise DependencyInvalid(f"{live.ref} exists, and {whose}: name another Secret, or delete it")
    if live.is_deleting:
        raise DependencyNotReady(f"{live.ref} is being deleted: it is generated anew once it is gone")


def is_ours(live: Resource, resource: Resource) -> bool:
    """Whether a Secret is the resource's: it owns it, or it was handed over to it."""
    found = ownership(live.document, resource.document)
    is_handed_over = live.annotations.get(GENERATED_FOR) == _subject(resource)
    return found is not Ownership.OTHER_OWNER and (found is not Ownership.UNOWNED or is_handed_over)


def _subject(resource: Resource) -> str:
    return f"{resource.ref.kind}.{resource.ref.group}/{resource.ref.name}"


def _members(value: Json) -> dict[str, Json]:
    return dict(value) if isinstance(value, Mapping) else {}

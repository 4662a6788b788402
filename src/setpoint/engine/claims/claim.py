"""A step's claim of its live object: it is refused where another resource has claimed the object first.

Two processes may claim one object at the same time. Each announces its claim in an annotation, in one write with the
finalizer, waits until it has seen every claim of before, and writes for it only when there is no other: whichever
announcement is later on record is seen by the other process, so that at most one of them is confirmed. The status
confirms it before the write, or with its result where the object itself shows which resource created it. Only by a
confirmed claim is anything deleted: an author could write the annotation. A claim that does not count is withdrawn.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from setpoint.core.owner_references import Ownership, controller_of, ownership
from setpoint.core.schema.annotations import CLAIM
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.deferred_dataclass import replace
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.core.values.paths import Path, get_at
from setpoint.engine import conditions
from setpoint.engine.claims.object_claims import (
    CLUSTER_OBJECTS,
    Claim,
    ClaimKey,
    announced_location,
    announcement,
    claim_keys_of,
    location_text,
    supports_claim_keys,
    uid_name,
)
from setpoint.engine.context import EngineContext, KindStepContext, StepContext
from setpoint.engine.intent import resolve_intent
from setpoint.engine.kind import Intent, LiveObservation, Location, Present
from setpoint.engine.management import Management
from setpoint.engine.ports import ResourceUpdate
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.state import StoredState, location_in
from setpoint.errors import ManagementConflict, OperationRunning, SetpointError

_NO_OUTPUTS: Final[JsonObject] = {}


async def check_new_claim(context: KindStepContext, intent: Intent) -> KindStepContext:
    """The context once a pending claim of an earlier step is confirmed, and no other resource has the object.

    Nothing is asked of a service. ManagementConflict when another resource has it.
    """
    location = context.state.location
    if context.state.is_claim_pending and location is not None:
        context = await confirm_claim(context, context.resource, location)
    if is_new_claim(context, intent):
        await require_claim(context, intent.location, is_told=False)
    return context


async def check_claim(context: KindStepContext, intent: Intent, observed: LiveObservation, *, writes: bool) -> None:
    """ManagementConflict when the step would claim an object, or write to one, that another resource has.

    With an index that costs nothing, and is done for a step without a write as well.
    """
    if writes or is_new_claim(context, intent) or context.engine.claims.index is not None:
        await require_claim(context, intent.location, observed)


async def require_claim(
    context: KindStepContext, location: Location, observed: LiveObservation | None = None, *, is_told: bool = True
) -> None:
    """ManagementConflict for an object that another resource has; OperationRunning while that is undecided.

    Only what has been `observed` shows whether the object can be reached by another location, or belongs to an owner.
    The errors name the other resource. Without `is_told`, that of another tenant is left to a call with what has been
    observed: by then the object's service has decided whether this tenant may see the object.
    """
    claim_keys = _claim_keys(context, location, observed)
    for key in claim_keys:
        others = await _others(context, key)
        # Mostly there is no other claim to compare it with.
        own = _own_claim(context, key) if others else None
        for other in others:
            assert own is not None
            is_foreign = context.engine.is_foreign(other.ref, context.resource.ref)
            is_untold = not is_told and other.location != location
            if is_foreign and (is_untold or await _is_forged(context, other, key)):
                continue
            if other < own:
                context.engine.claims.refuse(context.resource.ref, key)
                raise _conflict(location, other.ref, releases=not own.is_unrecorded)
            if own.is_pending and other.is_pending:
                raise _undecided(context, location, other.ref)
    holder = context.engine.claims.under_way(context.resource.ref, claim_keys)
    if holder is not None and (is_told or not context.engine.is_foreign(holder, context.resource.ref)):
        raise _undecided(context, location, holder)
    owner = await _owner_of(observed, context.engine)
    if owner is not None:
        raise _conflict(location, owner, releases=False)


async def require_unclaimed_children(context: StepContext, live: Iterable[Resource]) -> None:
    """ManagementConflict for an object in the cluster that would become a child, and that another resource has."""
    engine, owner = context.engine, context.resource
    if not engine.store.collects:
        # Children are in the store alone: no kind reaches them.
        return
    among = [name for name, kind in engine.kinds.items() if supports_claim_keys(kind)]
    for child in live:
        if ownership(child.document, owner.document) is not Ownership.UNOWNED:
            continue
        key = ClaimKey(CLUSTER_OBJECTS, uid_name(child.uid))
        others = await _others(context, key, among)
        if others:
            raise _conflict(str(child.ref), min(others).ref, releases=False)


def is_new_claim(context: KindStepContext, intent: Intent) -> bool:
    """Whether the step has to put its object on record; one that only observes does not claim it."""
    return context.state.location != intent.location and context.management is Management.FULL


async def confirm_claim(
    context: KindStepContext, before: Resource, location: Location, observed: LiveObservation | None = None
) -> KindStepContext:
    """The context once this process has seen every claim of before; `before` is the resource without the claim.

    ManagementConflict when another claim counts, OperationRunning while another pending one has to be released.
    """
    is_pending, claims = context.state.is_claim_pending, context.engine.claims
    known = (location_in(before.status), announced_location(before))
    if not is_pending and location_in(context.resource.status) in known:
        return context
    if claims.index is not None:
        await claims.index.caught_up(context.resource.ref, context.resource.revision)
    if not is_pending:
        return context
    await require_claim(context, location, observed)
    # On record before the first write: with a claim that a killed process left pending, nothing has been written.
    confirmed = replace(context, state=replace(context.state, is_claim_pending=False))
    return await confirmed.set_ready(conditions.CLAIMED)


async def announce_claim(context: KindStepContext, intent: Intent, observed: LiveObservation) -> KindStepContext:
    """The context once a claim that is pending was announced, and no other claim counts: the next commit confirms it.

    ManagementConflict and OperationRunning as for `confirm_claim`. With an announcement that a killed process left,
    nothing has been written, or the object shows it: then `record_creation` has confirmed the claim.
    """
    if not context.state.is_claim_pending:
        return context
    resource, engine = context.resource, context.engine
    if context.finalizers is not None or announced_location(resource) != intent.location:
        announced = {CLAIM: announcement(resource, intent.location)}
        update = ResourceUpdate(finalizers=context.finalizers, annotations=announced)
        after = await engine.store.update(resource, update)
        assert after is not None, "a finalizer is only added here"
        engine.leave_status(after)
        context = replace(context, resource=after, finalizers=None)
    if engine.claims.index is not None:
        await engine.claims.index.caught_up(context.resource.ref, context.resource.revision)
    await require_claim(context, intent.location, observed)
    return replace(context, state=replace(context.state, is_claim_pending=False))


async def catch_up(context: KindStepContext) -> None:
    """Returns when every other step of this process can see the claim of this one."""
    index, ref = context.engine.claims.index, context.resource.ref
    found = None if index is None else await context.engine.store.get(ref)
    if index is not None and found is not None:
        await index.caught_up(ref, found.revision)


async def is_claim_kept(context: KindStepContext, location: Location) -> bool:
    """Whether the claim on record counts: an object that another resource has is not deleted."""
    resource, claims = context.resource, context.engine.claims
    is_pending = context.state.is_claim_pending
    if is_pending and claims.index is not None:
        await claims.index.caught_up(resource.ref, resource.revision)
    for key in claim_keys_of(context.kind, location, resource.status):
        own, others = _own_claim(context, key), await _others(context, key)
        if any(other < own or is_pending for other in others):
            return False
    return True


async def is_claimed_by_another(context: KindStepContext, observed: Present[Any]) -> bool:
    """Whether another resource has an object that a search has found."""
    assert observed.location is not None
    return any([await _others(context, key) for key in _claim_keys(context, observed.location, observed)])


async def has_confirmed_claim(context: KindStepContext, location: Location, observed: LiveObservation) -> bool:
    """Whether another resource has this object, and not only announced that it claims it."""
    others = [await _others(context, key) for key in _claim_keys(context, location, observed)]
    return any(not other.is_pending for found in others for other in found)


def release_claim(state: StoredState) -> StoredState:
    """The state of a resource whose claim does not count: it stands for no object."""
    return replace(
        state,
        location=None,
        is_claim_pending=False,
        cookie=None,
        body=None,
        attempt=None,
        operation=None,
        creating=None,
        is_location_lost=False,
    )


def claim_keys_of_step(context: KindStepContext, location: Location, observed: LiveObservation) -> list[ClaimKey]:
    """Every claim key by which another step of this process could claim the same object."""
    return list(_claim_keys(context, location, observed))


def _claim_keys(context: KindStepContext, location: Location, observed: LiveObservation | None) -> Sequence[ClaimKey]:
    kind, outputs = context.kind, observed.outputs if isinstance(observed, Present) else _NO_OUTPUTS
    claimed = claim_keys_of(kind, location, outputs)
    seen = kind.seen_claim_keys(location, outputs) if supports_claim_keys(kind) else ()
    return tuple(dict.fromkeys((*claimed, *seen)))


def _own_claim(context: KindStepContext, key: ClaimKey) -> Claim:
    """The claim of the step's resource: pending as its state says, which may have been confirmed meanwhile."""
    found = Claim.of(context.resource, context.kind, key)
    is_announced = not found.is_unrecorded and found.location != location_in(context.resource.status)
    is_pending = is_announced or (context.state.is_claim_pending and not found.is_unrecorded)
    return found._replace(is_pending=is_pending)


async def _others(context: StepContext, key: ClaimKey, among: Collection[GroupKind] = ()) -> list[Claim]:
    ref, engine = context.resource.ref, context.engine
    return await engine.claims.others(
        ref,
        key,
        store=engine.store,
        kinds=engine.kinds,
        among=among or (ref.group_kind,),
        # The user of a command may see no other namespace of a cluster.
        namespace=None if engine.tenancy is None else ref.namespace,
    )


async def _is_forged(context: KindStepContext, other: Claim, key: ClaimKey) -> bool:
    """Whether another tenant's resource announces to claim an object that it does not declare.

    Its author may have written the annotation, to keep this tenant from the object.
    """
    if not other.is_pending:
        return False
    engine = await context.engine.for_namespace(other.ref.namespace)
    resource, kind = await engine.store.get(other.ref), engine.kinds.get(other.ref.group_kind)
    if resource is None or kind is None or announced_location(resource) != other.location:
        return False
    try:
        intent = await resolve_intent(resource, engine)
    except SetpointError:
        return True
    return key not in claim_keys_of(kind, intent.location, _NO_OUTPUTS)


async def _owner_of(observed: LiveObservation | None, engine: EngineContext) -> ResourceRef | None:
    """The owner in this store that generates the object, if one does."""
    whole = observed.whole if isinstance(observed, Present) else None
    found = controller_of(whole) if isinstance(whole, Mapping) else None
    if found is None or (found.group, found.kind) not in engine.owners:
        return None
    owner = await engine.store.get(ResourceRef(*found))
    return None if owner is None or owner.uid not in _owner_uids(whole) else owner.ref


def _owner_uids(whole: Json) -> list[Json]:
    references = get_at(whole, Path(("metadata", "ownerReferences")))
    return [one.get("uid") for one in references if isinstance(one, Mapping)] if isinstance(references, list) else []


def _conflict(what: str, other: ResourceRef, *, releases: bool) -> ManagementConflict:
    return ManagementConflict(
        f"{what} is managed by {other} already, and one object has one resource: delete one of the "
        "two, or let this one name another object",
        releases_claim=releases,
    )


def _undecided(context: KindStepContext, location: Location, other: ResourceRef) -> OperationRunning:
    # Nothing was sent: other operations need not wait until that is decided.
    context.leave_scope()
    return OperationRunning(f"{location_text(location)} is being claimed by {other}, too", after=1)

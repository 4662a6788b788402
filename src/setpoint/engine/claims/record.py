"""What is on record of a resource that has an object, and that another writer may take off: finalizers and location.

Without its finalizer, the deletion of a resource leaves the object behind; without the location in its status, it is
not known which object that is. A step puts both back. It also records the location of an object that a killed process
created, where the object shows that it did.
"""

from collections.abc import Mapping

from setpoint.core.values.deferred_dataclass import replace
from setpoint.engine.capabilities import SupportsCreationMark
from setpoint.engine.claims.claim import has_confirmed_claim
from setpoint.engine.claims.object_claims import announced_location
from setpoint.engine.context import FINALIZER, EngineContext, KindStepContext, StepContext
from setpoint.engine.kind import Present, observe_decoded
from setpoint.engine.management import Management, management_of
from setpoint.engine.owner import Owner
from setpoint.engine.owners.children import LAST_GENERATED
from setpoint.engine.owners.reconcile import finalizers_of
from setpoint.engine.ports import ResourceUpdate
from setpoint.engine.resource import Resource
from setpoint.engine.state import StoredState, is_record_lost, location_in
from setpoint.errors import SetpointError


def missing_finalizers(resource: Resource, owner: Owner | None, *, collects: bool) -> tuple[str, ...]:
    """The finalizers that a resource of a kind, or of `owner`, has to have and has not.

    None before it has an object, while it is being deleted, and where deletion would leave the object alone anyway.
    """
    wanted = (FINALIZER,) if owner is None else finalizers_of(owner, collects=collects)
    missing = tuple(one for one in wanted if one not in resource.finalizers)
    if not missing or resource.is_deleting or not _is_managed(resource):
        return ()
    has_object = location_in(resource.status) is not None if owner is None else _has_children(resource)
    return missing if has_object else ()


def _is_managed(resource: Resource) -> bool:
    try:
        return management_of(resource.annotations) is Management.FULL
    except SetpointError:
        # The step reports the unknown word; until it is corrected, nothing may be left behind.
        return True


def _has_children(resource: Resource) -> bool:
    return isinstance(resource.status.get(LAST_GENERATED), Mapping)


async def restore_finalizers(context: StepContext) -> StepContext:
    """The context with all of its finalizers: before anything else, whatever the rest of the step comes to."""
    resource, engine = context.resource, context.engine
    missing = missing_finalizers(resource, engine.owners.get(resource.ref.group_kind), collects=engine.store.collects)
    if not missing:
        return context
    names = ", ".join(missing)
    what = f"{names} was taken off by another writer, and is back: without it, a deletion would leave the object behind"
    update = ResourceUpdate(
        finalizers=(*resource.finalizers, *missing), events=[context.event("FinalizerRestored", what, is_warning=True)]
    )
    after = await engine.store.update(resource, update)
    assert after is not None, "a finalizer is only added here"
    engine.leave_status(after)
    return replace(context, resource=after)


def recorded_state(resource: Resource, engine: EngineContext) -> StoredState:
    """The state of a resource; the location that this process last saw, where another writer has wiped the record.

    Otherwise a resource that names another object by now would be given a second one. Where no location is known, the
    finalizer says that there may be an object.
    """
    state, index = StoredState.of(resource), engine.claims.index
    if not is_record_lost(resource.status):
        return state
    known = state.location if index is None else index.location(resource.ref)
    if known is None:
        return replace(state, is_location_lost=FINALIZER in resource.finalizers)
    if known == state.location:
        return state
    # What else is there says nothing about that object; and another process may have seen no claim of it meanwhile.
    return StoredState(location=known, handled=state.handled, is_claim_pending=engine.claims.is_shared)


async def record_creation(context: StepContext) -> StepContext:
    """The context with the location that a killed process announced, if it created the object there: that is on record.

    The announcement alone counts for nothing: its author could have written it. The object itself has to show it.
    """
    location = announced_location(context.resource) if context.state.location is None else None
    if location is None or not isinstance(context, KindStepContext) or context.management is not Management.FULL:
        return context
    kind = context.kind
    if not isinstance(kind, SupportsCreationMark):
        return context
    observed = await observe_decoded(location, kind)
    if not isinstance(observed, Present) or not kind.is_created_for(context.resource, observed):
        return context
    if await has_confirmed_claim(context, location, observed):
        return context
    state = replace(context.state, location=location, creating={}, is_location_lost=False)
    return await replace(context, state=state).save_state()


def may_have_hidden_record(context: StepContext) -> bool:
    """Whether the cluster may have a record of the resource that an outdated definition hides."""
    definitions, resource = context.engine.definitions, context.resource
    is_dropped = definitions is not None and definitions.is_record_dropped(resource.ref)
    return bool(resource.finalizers) and not is_dropped

"""Deletes the live object of a resource that is being deleted, or that is to be replaced.

Deletion goes by the location on record: by then the references may be gone.
"""

from enum import StrEnum
from typing import Any, Final, NoReturn

from setpoint.core.decide import Decision
from setpoint.core.plan import Action, Plan, PlannedWrite, plan_delete
from setpoint.core.schema.annotations import annotation_value
from setpoint.core.values.deferred_dataclass import replace
from setpoint.engine import conditions
from setpoint.engine.capabilities import (
    SupportsAliases,
    SupportsDeletionPreparation,
    SupportsGeneratedSecret,
    SupportsReplace,
    SupportsRetirement,
)
from setpoint.engine.claims.claim import is_claim_kept
from setpoint.engine.claims.object_claims import location_text
from setpoint.engine.claims.own_location import candidates_of
from setpoint.engine.claims.record import recorded_state
from setpoint.engine.context import (
    DELETION_DEFENDER,
    DELETION_POLICY,
    FINALIZER,
    EngineContext,
    KindStepContext,
    step_context,
)
from setpoint.engine.intent import resolve_intent
from setpoint.engine.kind import (
    Absent,
    AnyKind,
    Intent,
    LiveObservation,
    Location,
    Present,
    RemoteOperation,
    observe_decoded,
)
from setpoint.engine.management import Management, management_of
from setpoint.engine.ports import EventRecord
from setpoint.engine.resource import Resource
from setpoint.engine.state import StoredState
from setpoint.engine.step.execute import stop_for_operation
from setpoint.engine.step.finish import deletion_reason, end_deletion, plan_paused, step_record
from setpoint.engine.step.outcomes import Gone, PlannedStep, StepOutcome
from setpoint.engine.step.reports import ReportedWrite, StepSubject
from setpoint.errors import DeletionHeld, LocationChanged, NotReady, OperationRunning, RecordLost, UserError

# Why an object is deleted, in reports.
_DELETION: Final = "deletion"
_RECORD_LOST: Final = "its status was wiped, and with it the record of its object"
_SAY_ABANDON: Final = f"To leave the object alone, annotate it with {DELETION_POLICY}: abandon"
_LEFT_EVENT: Final = "ObjectLeft"
_LEFT: Final = (
    "the answer to a creation was lost, and whether it created one of these is not known: {}. They are left alone: "
    "delete those that no program uses"
)
_NEVER_MADE: Final = "nothing was made for it yet: there is nothing to delete"


async def plan_deletion(context: KindStepContext) -> PlannedStep:
    """The step that deletes the object, or abandons it, and then removes the finalizer."""
    location = context.state.location
    if FINALIZER not in context.resource.finalizers:
        return PlannedStep(_nothing_to_delete(_NEVER_MADE), _already_gone)
    if context.management is Management.PAUSED:
        return plan_paused(context)
    context.require_known_annotations()
    why = await deletion_reason(context)
    if location is None and not context.state.is_location_lost:
        return _plan_release(context, _NEVER_MADE, why)
    if is_abandoned(context.resource, context.kind):
        kept = f"the resource goes, and {location_text(location or 'its object')} stays as it is"
        return _plan_release(context, kept, why, is_kept=True)
    _require_deletable(context.resource)
    if location is None:
        return await _plan_unrecorded_deletion(context, why)
    return await _plan_recorded_deletion(context, location, why)


def _plan_release(context: KindStepContext, because: str, why: str, *, is_kept: bool = False) -> PlannedStep:
    """The step that deletes no object, and removes the finalizer."""
    plan = _nothing_to_delete(because, why)
    return PlannedStep(plan, lambda: _remove_finalizer(context, plan, is_kept=is_kept))


async def _plan_recorded_deletion(context: KindStepContext, location: Location, why: str) -> PlannedStep:
    if not await is_claim_kept(context, location):
        return _plan_release(
            context, f"{location_text(location)} is managed by another resource, and stays as it is", why
        )
    if isinstance(context.kind, SupportsDeletionPreparation):
        context.kind.prepare_deletion(context.resource, location)
    if StoredState.of(context.resource).operation is None:
        # Before anything is asked: an object that is still there would have to wait all the same.
        context.enter_scope(location, deleting=True)
    else:
        # An operation that was under way is over, most likely that of the deletion.
        context.leave_scope()
    found = await observe_decoded(location, context.kind)
    candidates = await candidates_of(context, found)
    observed = candidates.proven or found
    if isinstance(observed, Absent):
        left = _LEFT.format(candidates.named) if candidates.unproven else ""
        gone = _nothing_to_delete(left or f"{location_text(location)} is gone already", why)
        return PlannedStep(gone, lambda: _record_deleted(context, gone, left))
    plan = replace(plan_delete(Decision.INTENT_CHANGED), because=why)
    return PlannedStep(plan, lambda: _delete(context, location, observed, plan))


async def _plan_unrecorded_deletion(context: KindStepContext, why: str) -> PlannedStep:
    """The deletion of a resource whose status another writer has wiped: its finalizer says that it may have an object.

    RecordLost where there is one by the name that it would have, unless the author has said that it is to go.
    """
    try:
        location = (await resolve_intent(context.resource, context.engine)).location
    except (UserError, NotReady) as error:
        raise RecordLost(
            f"{_RECORD_LOST}, and it cannot be told which object that is: {error}. {_SAY_ABANDON}"
        ) from error
    if annotation_value(context.resource.annotations, DELETION_POLICY) == "delete":
        return await _plan_recorded_deletion(context, location, why)
    if isinstance(await observe_decoded(location, context.kind), Absent):
        return _plan_release(context, f"{location_text(location)} is gone already", why)
    raise RecordLost(
        f"{_RECORD_LOST}: whether {location_text(location)} is that object is not known. To delete it, annotate the "
        f"resource with {DELETION_POLICY}: delete. {_SAY_ABANDON}"
    )


def may_resume_deletion(context: KindStepContext) -> bool:
    """Whether the step of a resource that is being deleted polls an operation that is still on record."""
    if FINALIZER not in context.resource.finalizers or context.state.location is None:
        return False
    context.require_known_annotations()
    return not is_abandoned(context.resource, context.kind) and not is_deletion_held(context.resource)


async def _delete(context: KindStepContext, location: Location, observed: Present[Any], plan: Plan) -> StepOutcome:
    answer = await _send_delete(context, location, observed, plan.because or _DELETION)
    if isinstance(answer, RemoteOperation):
        state = replace(context.state, operation=answer, step=step_record(context, plan))
        await stop_for_operation(answer, replace(context, state=state, sent=Action.DELETE))
    context.leave_scope()
    stays = isinstance(context.kind, SupportsRetirement) and context.kind.stays_when_deleted()
    if answer is None and not stays and isinstance(await observe_decoded(location, context.kind), Present):
        raise OperationRunning(f"{location_text(location)} was deleted and can still be seen", after=1)
    return await _record_deleted(context, plan)


async def _send_delete(
    context: KindStepContext, location: Location, observed: Present[Any], why: str
) -> RemoteOperation | Absent | None:
    context.enter_scope(location, deleting=True)
    report = ReportedWrite(StepSubject.of(context), Action.DELETE, str(location), why)
    with context.engine.reporter.writing([report]):
        return await context.kind.delete(location, observed, context.resource)


async def _record_deleted(context: KindStepContext, plan: Plan, left: str = "") -> StepOutcome:
    """Removes the finalizer. A status is written only where finalizers of other controllers keep the resource."""
    if left:
        await context.engine.store.record_event(context.event(_LEFT_EVENT, left, is_warning=True))
    await _release_secrets(context, is_kept=False)
    if context.resource.finalizers != (FINALIZER,):
        return await _end(await context.set_ready(conditions.DELETED), plan)
    return await _end(context, plan, context.event(conditions.DELETED.reason, conditions.DELETED.message))


def _nothing_to_delete(because: str, why: str = "") -> Plan:
    return Plan(Decision.INTENT_CHANGED, because=f"{why}; {because}" if why else because)


async def _already_gone() -> StepOutcome:
    return Gone()


class ObjectFate(StrEnum):
    """What becomes of the live object when its resource is deleted."""

    DELETED = "deleted"
    ABANDONED = "abandoned"
    # Another resource has it.
    MANAGED_BY_ANOTHER = "managed by another resource"
    NEVER_MADE = "never made"
    # Another writer has wiped the record of it.
    UNKNOWN = "unknown"


async def object_fate(resource: Resource, engine: EngineContext) -> ObjectFate:
    """What becomes of the object of a resource of a kind, as far as it is on record: no service is asked."""
    context = step_context(resource, engine, recorded_state(resource, engine))
    assert isinstance(context, KindStepContext)
    location = context.state.location
    if FINALIZER not in resource.finalizers or (location is None and not context.state.is_location_lost):
        return ObjectFate.NEVER_MADE
    if is_abandoned(resource, context.kind):
        return ObjectFate.ABANDONED
    if location is None:
        return ObjectFate.UNKNOWN
    is_kept = await is_claim_kept(context, location)
    return ObjectFate.DELETED if is_kept else ObjectFate.MANAGED_BY_ANOTHER


def is_abandoned(resource: Resource, kind: AnyKind) -> bool:
    """Whether the object is kept: by its deletion policy, or because it is only observed.

    ManifestInvalid for an unknown word: it is never taken for a wish to delete.
    """
    by_annotation = annotation_value(resource.annotations, DELETION_POLICY) == "abandon"
    is_observed = management_of(resource.annotations) is Management.OBSERVE
    return by_annotation or kind.abandons(resource) or is_observed


def is_deletion_held(resource: Resource) -> bool:
    """Whether the deletion may be a side effect: its CustomResourceDefinition is deleted, as in an uninstall."""
    return resource.is_deleting and DELETION_DEFENDER in resource.finalizers


def _require_deletable(resource: Resource) -> None:
    if is_deletion_held(resource):
        raise DeletionHeld(
            f"the finalizer {DELETION_DEFENDER} says that nothing may be deleted yet. Config Connector takes it off, "
            "unless its kind is being deleted altogether; where Config Connector is gone, `setpoint migrate --from "
            "config-connector --finish` takes it off. To let go of the resource and leave the object alone, annotate "
            f"it with {DELETION_POLICY}: abandon"
        )


async def _remove_finalizer(context: KindStepContext, plan: Plan, *, is_kept: bool) -> StepOutcome:
    await _release_secrets(context, is_kept=is_kept)
    return await _end(context, plan)


async def _end(context: KindStepContext, plan: Plan, *events: EventRecord) -> StepOutcome:
    rest = tuple(one for one in context.resource.finalizers if one != FINALIZER)
    return await end_deletion(context, rest, plan, events)


async def _release_secrets(context: KindStepContext, *, is_kept: bool) -> None:
    """What becomes of the Secret that was generated for the resource; few kinds have one."""
    if isinstance(context.kind, SupportsGeneratedSecret):
        from setpoint.engine.owners.generated_secret import release_secrets

        await release_secrets(context, is_kept=is_kept)


async def must_replace(context: KindStepContext, intent: Intent) -> bool:
    """Whether the object at the location on record has to be replaced. LocationChanged when it must not be."""
    before = context.state.location
    if before is None or before == intent.location:
        return False
    kind = context.kind
    if isinstance(kind, SupportsAliases) and await kind.is_same_object(context.resource, intent.location):
        return False
    found = await observe_decoded(before, kind)
    if isinstance(found, Absent) and not found.candidates:
        return False
    if (
        isinstance(kind, SupportsReplace)
        and kind.may_replace(context.resource)
        and context.management is Management.FULL
    ):
        # An abandoned object is kept when its resource moves on, too; and so is one of another resource.
        is_ours = _was_written(context.state) and not is_abandoned(context.resource, kind)
        return is_ours and await is_claim_kept(context, before)
    raise LocationChanged(
        f"{context.resource.ref} stands for {location_text(before)} and cannot move to "
        f"{location_text(intent.location)}: put the old name or reference back, or delete the resource and apply it "
        "again"
    )


def _was_written(state: StoredState) -> bool:
    """Whether anything was sent to the object on record: otherwise it was never adopted."""
    is_under_way = state.creating is not None or state.operation is not None
    return state.cookie is not None or state.attempt is not None or is_under_way


async def delete_replaced(context: KindStepContext) -> NoReturn:
    """Deletes the old object, and ends the step: the next one creates the new object."""
    before = context.state.location
    assert before is not None
    await delete_to_replace(context, before, await observe_decoded(before, context.kind))


async def delete_to_replace(context: KindStepContext, location: Location, observed: LiveObservation) -> NoReturn:
    """Deletes an object that another one is to take the place of, and ends the step."""
    if isinstance(observed, Present):
        answer = await _send_delete(context, location, observed, Action.REPLACE.value)
        if isinstance(answer, RemoteOperation):
            context = replace(context, state=replace(context.state, operation=answer))
            await stop_for_operation(answer, context)
    raise OperationRunning(f"{location_text(location)} gives way", after=0, begun=Action.REPLACE.value)


def as_replacement(plan: Plan) -> Plan:
    """The plan of a replacement, which is written even where nothing else is left to do."""
    writes = plan.writes or (PlannedWrite(Action.REPLACE, "replace"),)
    return replace(plan, writes=tuple(replace(write, action=Action.REPLACE, name="replace") for write in writes))

"""The step of an owner: its children are created, merged with other writers' edits, and corrected; or deleted.

Like every step it may be killed after any await and run again. What is about to be generated is on record before a
child is written: a generated value is never taken for another writer's edit. Deletion removes first what has to go
first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from setpoint.core.conditions import ConditionReason
from setpoint.core.decide import Cookie, Decision
from setpoint.core.merge.child_plan import ChildPlan
from setpoint.core.merge.children import last_generated_status
from setpoint.core.merge.threeway import last_generated_to_data
from setpoint.core.owner_references import Ownership, ownership
from setpoint.core.plan import Action, Plan, PlannedWrite
from setpoint.core.values.canonical import same
from setpoint.core.values.json_types import Json, JsonObject, Missing
from setpoint.engine import conditions
from setpoint.engine.claims.claim import require_unclaimed_children
from setpoint.engine.conditions import ReadyCondition, join_names
from setpoint.engine.context import StepContext
from setpoint.engine.management import Management, management_of
from setpoint.engine.owner import Owner
from setpoint.engine.owners.children import (
    LAST_GENERATED,
    OwnerObservation,
    OwnerPlan,
    child_ref,
    input_versions,
    observe_children,
    owner_plan,
)
from setpoint.engine.owners.status import owner_events, owner_outputs
from setpoint.engine.ports import ChildWrite, ResourceQuery
from setpoint.engine.references import is_ready
from setpoint.engine.requeue import NOT_READY_SECONDS
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.state import StoredState
from setpoint.engine.step.change_cause import ChangeCause, flips_after, report_drift, write_cause
from setpoint.engine.step.finish import (
    as_observed_plan,
    begun_action,
    deletion_reason,
    end_deletion,
    plan_paused,
    step_record,
)
from setpoint.engine.step.hold import seconds_until_retry, withheld_condition
from setpoint.engine.step.outcomes import FailedStep, Gone, PlannedStep, Settled, StepOutcome, StepPlan, Stopped
from setpoint.engine.step.reports import ReportedWrite, StepSubject
from setpoint.errors import ChildRefused, OperationRunning, WriteConflict


async def plan_owner_step(context: StepContext, owner: Owner) -> StepPlan:
    """The step of an owner that is not being deleted, stopped before it writes: the list of verbs."""
    if context.management is Management.PAUSED:
        return plan_paused(context)
    context.require_known_annotations()
    observation = await observe_children(context.resource, owner, context.engine)
    await require_unclaimed_children(context, observation.live.values())
    context = context.with_current_oscillations(observation.intent, _mark(observation))
    planned = owner_plan(context, observation)
    if context.management is Management.OBSERVE:
        return _plan_observed_owner(context, planned)
    error = planned.children.error
    if planned.plan.writes and observation.live and (busy := await _busy_owner(context, observation)) is not None:
        return PlannedStep(planned.plan, lambda: _stop_for(busy))
    if error is None:
        return PlannedStep(planned.plan, lambda: _execute_owner_plan(context, owner, planned))
    if not planned.plan.writes:
        return FailedStep(error, lambda: _execute_owner_plan(context, owner, planned))
    begun = replace(planned, plan=replace(planned.plan, because=f"after this it stops: {error}"))
    return PlannedStep(begun.plan, lambda: _execute_owner_plan(context, owner, begun))


async def _busy_owner(context: StepContext, observation: OwnerObservation) -> OperationRunning | None:
    """The error while the owner of this owner writes its children; None when there is no such owner, or it is done.

    What this one is generated from changes with each of those writes: its own children follow once, after the last. The
    watches of several kinds are not in order with each other, so nothing is taken from a cache here. WriteConflict when
    the observation is older.
    """
    store, ref = context.engine.store, context.resource.controller
    if ref is None or ref.group_kind not in context.engine.owners:
        return None
    inputs = tuple(observation.inputs)
    # The owner first: once it is done, all that it has written is there to be read.
    await store.refresh((ref, *inputs))
    found, *now = await store.get_many((ref, *inputs))
    if found is None or management_of(found.annotations) is not Management.FULL:
        return None
    if StoredState.of(found).generating is not None:
        return OperationRunning(f"{ref} is writing what this is generated from", after=1)
    if input_versions(inputs, now) != observation.inputs:
        raise WriteConflict(f"{context.resource.ref}: what it is generated from has changed since it was read")
    return None


async def _stop_for(busy: OperationRunning) -> StepOutcome:
    return Stopped(busy)


async def _execute_owner_plan(context: StepContext, owner: Owner, planned: OwnerPlan) -> StepOutcome:
    report_drift(planned.plan, planned.observation.intent, context)
    flips = await flips_after(planned.plan, planned.observation.intent, context)
    context = await _record_before_write(_with_finalizers(context, owner), planned)
    written = await _write_children(context, owner, planned)
    return await _settle(replace(context, state=replace(context.state, flips=flips)), owner, planned, written)


# --- Before anything is written ---------------------------------------------------------------------------------------


def _with_finalizers(context: StepContext, owner: Owner) -> StepContext:
    """With every finalizer that has to be on record before a child is created."""
    held = context.resource.finalizers
    missing = [one for one in finalizers_of(owner, collects=context.engine.store.collects) if one not in held]
    return replace(context, finalizers=(*held, *missing)) if missing else context


async def _record_before_write(context: StepContext, planned: OwnerPlan) -> StepContext:
    """The context with all that a later step has to know if this one is killed in the middle, in one commit."""
    before = context.state
    generating = _generating(context, planned)
    oscillations = before.oscillations
    cause = write_cause(planned.plan.decision, planned.observation.intent, context)
    if planned.plan.writes and cause is ChangeCause.DRIFT:
        oscillations = oscillations.begin(
            planned.observation.intent, planned.plan.changes, _mark(planned.observation), context.engine.clock.now()
        )
    is_claimed = context.finalizers is None or not planned.to_write
    if is_claimed and generating == before.generating and oscillations is before.oscillations:
        return context
    # What a killed step wrote is the last generated state by now; that of a child that is created again is dropped.
    new = {one.child.key for one in planned.to_write if one.child.key not in planned.observation.live}
    last = {key: memory for key, memory in _last_generated(context).items() if key not in new}
    known = {**last, **{key: last_generated_to_data(one) for key, one in planned.children.known.items()}}
    context = replace(context, state=replace(before, generating=generating, oscillations=oscillations))
    return await context.save_state({LAST_GENERATED: known} if known else {})


def _generating(context: StepContext, planned: OwnerPlan) -> JsonObject | None:
    """The generated state that is about to be written and is new, as digests by child."""
    new, last, live = (
        last_generated_status([one.child for one in planned.to_write]),
        _last_generated(context),
        planned.observation.live,
    )
    assert isinstance(new, dict)
    found = {key: memory for key, memory in new.items() if key not in live or not same(memory, last.get(key))}
    return {**_unsettled(context, planned), **found} or None


def _unsettled(context: StepContext, planned: OwnerPlan) -> JsonObject:
    """What an earlier step was about to write of children that this one does not plan because of an error."""
    if planned.children.error is None:
        return {}
    seen = {one.child.key for one in planned.children.plans}
    return {key: memory for key, memory in (context.state.generating or {}).items() if key not in seen}


def _last_generated(context: StepContext) -> Mapping[str, Json]:
    found = context.resource.status.get(LAST_GENERATED)
    return found if isinstance(found, Mapping) else {}


def _mark(observation: OwnerObservation) -> str:
    seen = observation.live_digest
    return "" if isinstance(seen, Missing) else seen


# --- Writing, and after -----------------------------------------------------------------------------------------------


async def _write_children(context: StepContext, owner: Owner, planned: OwnerPlan) -> Mapping[str, Resource]:
    """The children that differ after their writes, by key; a refusal is an event as well as raised."""
    differing = planned.to_write
    if not differing:
        return {}
    writes = [_child_write(one, owner, planned.observation.live.get(one.child.key)) for one in differing]
    try:
        with context.engine.reporter.writing(_reports(context, planned)):
            written = await context.engine.store.write_children(writes)
    except ChildRefused as error:
        refused = differing[error.index]
        verb = "Create" if refused.child.key not in planned.observation.live else "Update"
        reason = f"{child_ref(refused.child).kind}{verb}Failed"
        await context.engine.store.record_event(context.event(reason, str(error), is_warning=True))
        raise
    return {one.child.key: resource for one, resource in zip(differing, written, strict=True)}


def _reports(context: StepContext, planned: OwnerPlan) -> list[ReportedWrite]:
    """A report for each child that is about to be written."""
    subject, decision = StepSubject.of(context), planned.plan.decision.value
    writes = [one.write for one in planned.to_write if one.write is not None]
    return [ReportedWrite(subject, write.action, write.name, decision, write.changes) for write in writes]


def _child_write(child_plan: ChildPlan, owner: Owner, live: Resource | None) -> ChildWrite:
    child = child_plan.child
    if live is not None:
        return ChildWrite(child_plan.document, live)
    return ChildWrite(owner.completed(child) if child.filled_on_create else child.object)


async def _settle(context: StepContext, owner: Owner, planned: OwnerPlan, made: Mapping[str, Resource]) -> StepOutcome:
    """Writes status, state and events in one commit; with an error, the reason why the rest was not done."""
    before, error = context.resource, planned.children.error
    observation = replace(planned.observation, live={**planned.observation.live, **made})
    sent = begun_action(planned.plan) if made else ""
    context = replace(context, state=_state_after(context, planned, observation), sent=sent)
    due_children = _reconciled_children(context, planned)
    if error is not None:
        outputs = owner_outputs(context, planned, None)
        failed = conditions.failure(error, deleting=False)
        await context.set_ready(failed, outputs, owner_events(context, planned, outputs))
        return Stopped(error, due_children)
    status = owner.status_of(before, observation.live)
    ready = withheld_condition(planned.plan) if planned.withheld else status.ready
    outputs = owner_outputs(context, planned, status.outputs)
    events = [*owner_events(context, planned, outputs)]
    if ready.status != "True" and is_ready(before):
        events.append(context.event(ConditionReason.NOT_READY, status.lost, is_warning=True))
    context = await context.set_ready(ready, outputs, events)
    return Settled(planned.plan, ready, _requeue_after(context, planned, ready), due_children)


def _requeue_after(context: StepContext, planned: OwnerPlan, ready: ReadyCondition) -> float | None:
    """The seconds until the next step: a withheld field may be written, or a child may be ready by then."""
    if planned.withheld:
        return seconds_until_retry(planned.plan, context.engine.clock.now())
    return None if ready.status == "True" else NOT_READY_SECONDS


def _state_after(context: StepContext, planned: OwnerPlan, observation: OwnerObservation) -> StoredState:
    """The state after the step: a cookie only where nothing is left to do."""
    before, live = context.state, observation.live_digest
    at = before.cookie
    if planned.children.error is not None:
        at = None
    elif not planned.withheld and not isinstance(live, Missing):
        at = Cookie(observation.intent, live)
    oscillations = (
        before.oscillations.done(context.engine.clock.now()) if before.oscillations.fields else before.oscillations
    )
    # Kept with the cookie; one that matches stays as it is.
    is_kept = at == before.cookie
    return replace(
        before,
        cookie=at,
        step=step_record(context, planned.plan, at),
        oscillations=oscillations,
        generating=_unsettled(context, planned) or None,
        applied=before.applied if is_kept else observation.applied,
    )


def _reconciled_children(context: StepContext, planned: OwnerPlan) -> tuple[ResourceRef, ...]:
    """The children that are reconciled here."""
    refs = (child_ref(child) for child in planned.observation.generated.children)
    return tuple(ref for ref in refs if ref.group_kind in context.engine.resource_types)


def _plan_observed_owner(context: StepContext, planned: OwnerPlan) -> PlannedStep:
    """Drift of the children is reported, and nothing is written."""
    if planned.children.error is not None:
        raise planned.children.error
    plan = as_observed_plan(planned.plan)

    async def execute() -> StepOutcome:
        report_drift(plan, planned.observation.intent, context)
        paths = tuple(str(change.path) for change in plan.withheld)
        ready = conditions.observed(paths, is_there=bool(planned.observation.live))
        await context.set_ready(ready)
        return Settled(plan, ready)

    return PlannedStep(plan, execute)


# The finalizer of an owner in a store that does not collect garbage.
CHILDREN_FINALIZER: Final = "setpoint.dev/children"


def finalizers_of(owner: Owner, *, collects: bool) -> tuple[str, ...]:
    """The finalizers of a resource of this owner, which hold it until its children are deleted.

    `collects`: whether the store collects garbage.
    """
    own = (owner.finalizer,) if owner.finalizer else ()
    return own if collects else (*own, CHILDREN_FINALIZER)


async def plan_owner_deletion(context: StepContext, owner: Owner) -> PlannedStep:
    """The step that deletes the children that have to go first, and then releases the resource."""
    resource, ours = context.resource, finalizers_of(owner, collects=context.engine.store.collects)
    if not set(ours) & set(resource.finalizers):
        return PlannedStep(_release_plan(()), _already_gone)
    if context.management is Management.PAUSED:
        return plan_paused(context)
    context.require_known_annotations()
    # A resource that is only observed keeps its children.
    going = () if context.management is Management.OBSERVE else await _children_to_delete(context, owner)
    plan = _release_plan(going, await deletion_reason(context))
    return PlannedStep(plan, lambda: _delete_children_and_release(context, owner, going, plan))


def _release_plan(going: Sequence[Resource], why: str = "") -> Plan:
    writes = tuple(PlannedWrite(Action.DELETE, f"{child.ref.kind}/{child.ref.name}") for child in going)
    reasons = (why, "" if writes else "nothing has to go before it")
    return Plan(Decision.INTENT_CHANGED, writes, because="; ".join(filter(None, reasons)))


async def _delete_children_and_release(
    context: StepContext, owner: Owner, going: Sequence[Resource], plan: Plan
) -> StepOutcome:
    """Deletes the children that have to go first, and removes the finalizers once they are gone."""
    store = context.engine.store
    first = [child for child in going if not child.is_deleting]
    reports = [ReportedWrite(StepSubject.of(context), Action.DELETE, str(one.ref), "deletion") for one in first]
    with context.engine.reporter.writing(reports):
        for child in first:
            await store.delete(child.ref)
    seen = await _children_to_delete(context, owner) if going else ()
    left = [child for child in seen if not (store.collects and child.is_deleting)]
    if left:
        names = join_names(str(child.ref) for child in left)
        due_children = tuple(child.ref for child in left if child.ref.group_kind in context.engine.resource_types)
        return Stopped(OperationRunning(f"{names} has to go first, and is still there", after=1), due_children)
    ours = finalizers_of(owner, collects=store.collects)
    rest = tuple(one for one in context.resource.finalizers if one not in ours)
    return await end_deletion(context, rest, plan)


async def _already_gone() -> StepOutcome:
    return Gone()


async def _children_to_delete(context: StepContext, owner: Owner) -> Sequence[Resource]:
    """The children that have to be deleted first: without garbage collection, all of them."""
    resource, store = context.resource, context.engine.store
    if store.collects:
        found = list(await store.get_many(list(owner.deleted_first(resource))))
    else:
        found = list((await store.list(ResourceQuery(namespace=resource.ref.namespace))).resources)
    return [one for one in found if one is not None and ownership(one.document, resource.document) is Ownership.OURS]

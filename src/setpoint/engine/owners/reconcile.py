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
from setpoint.engine.conditions import ReadyCondition, join_names
from setpoint.engine.context import (
    FailedStep,
    Gone,
    Management,
    PlannedStep,
    Settled,
    StepContext,
    StepOutcome,
    StepPlan,
    Stopped,
)
from setpoint.engine.owner import Owner
from setpoint.engine.owners.children import (
    LAST_GENERATED,
    OwnerObservation,
    OwnerPlan,
    child_ref,
    observe_children,
    owner_plan,
)
from setpoint.engine.owners.status import owner_events, owner_outputs
from setpoint.engine.ports import ChildWrite, ResourceQuery, Store
from setpoint.engine.references import is_ready
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.state import StoredState
from setpoint.engine.step.finish import as_observed_plan, plan_paused, step_record
from setpoint.errors import ChildRefused, OperationRunning

# How soon an owner that is not ready is looked at again, whatever its children tell.
NOT_READY_SECONDS: Final = 10.0


async def plan_owner_step(context: StepContext, owner: Owner) -> StepPlan:
    """The step of an owner that is to be there, stopped before it writes: the list of verbs."""
    if context.management is Management.PAUSED:
        return plan_paused(context)
    family = await observe_children(context.resource, owner, context.engine.store)
    context = context.with_current_oscillations(family.intent, _mark(family))
    work = owner_plan(context, family)
    if context.management is Management.OBSERVE:
        return _plan_observed_owner(context, work)
    trouble = work.reviews.trouble
    if trouble is None:
        return PlannedStep(work.plan, lambda: _execute_owner_plan(context, owner, work))
    if not work.plan.writes:
        return FailedStep(trouble, lambda: _execute_owner_plan(context, owner, work))
    begun = replace(work, plan=replace(work.plan, because=f"after this it stops: {trouble}"))
    return PlannedStep(begun.plan, lambda: _execute_owner_plan(context, owner, begun))


async def _execute_owner_plan(context: StepContext, owner: Owner, work: OwnerPlan) -> StepOutcome:
    context = await _record_before_write(_with_finalizers(context, owner), work)
    return await _settle(context, owner, work, await _write_children(context, owner, work))


# --- Before anything is written ---------------------------------------------------------------------------------------


def _with_finalizers(context: StepContext, owner: Owner) -> StepContext:
    """With every finalizer that has to be on record before there is a child."""
    held = context.resource.finalizers
    missing = [one for one in finalizers_of(owner, context.engine.store) if one not in held]
    return replace(context, finalizers=(*held, *missing)) if missing else context


async def _record_before_write(context: StepContext, work: OwnerPlan) -> StepContext:
    """The context with all that a later step has to know if this one is killed in the middle, in one commit."""
    before = context.state
    generating = _generating(context, work)
    contests = before.contests
    if _is_drift_correction(context, work.plan):
        contests = contests.begin(work.family.intent, work.plan.changes, _mark(work.family), context.engine.clock.now())
    is_claimed = context.finalizers is None or not work.to_write
    if is_claimed and generating == before.generating and contests is before.contests:
        return context
    # What an earlier step wrote, and could not say so, is known by now. Of what is made anew, the old says nothing.
    new = {one.child.key for one in work.to_write if one.child.key not in work.family.live}
    last = {key: memory for key, memory in _last(context).items() if key not in new}
    known = {**last, **{key: last_generated_to_data(one) for key, one in work.reviews.known.items()}}
    context = replace(context, state=replace(before, generating=generating, contests=contests))
    return await context.save_state({LAST_GENERATED: known} if known else {})


def _generating(context: StepContext, work: OwnerPlan) -> JsonObject | None:
    """What is about to be generated and was not before, or is made anew, as digests by child."""
    new, last, live = last_generated_status([one.child for one in work.to_write]), _last(context), work.family.live
    assert isinstance(new, dict)
    found = {key: memory for key, memory in new.items() if key not in live or not same(memory, last.get(key))}
    return {**_unsettled(context, work), **found} or None


def _unsettled(context: StepContext, work: OwnerPlan) -> JsonObject:
    """What an earlier step was about to write of children that this one, in trouble, does not look at."""
    if work.reviews.trouble is None:
        return {}
    seen = {one.child.key for one in work.reviews.each}
    return {key: memory for key, memory in (context.state.generating or {}).items() if key not in seen}


def _is_drift_correction(context: StepContext, plan: Plan) -> bool:
    """Whether what differs is somebody else's doing: a step ended for this very intent, and something moved since."""
    is_drift = plan.decision is Decision.DRIFTED or bool(context.state.contests.fields)
    return is_drift and bool(plan.writes)


def _last(context: StepContext) -> Mapping[str, Json]:
    found = context.resource.status.get(LAST_GENERATED)
    return found if isinstance(found, Mapping) else {}


def _mark(family: OwnerObservation) -> str:
    seen = family.live_digest
    return "" if isinstance(seen, Missing) else seen


# --- Writing, and after -----------------------------------------------------------------------------------------------


async def _write_children(context: StepContext, owner: Owner, work: OwnerPlan) -> Mapping[str, Resource]:
    """The children that differ after their writes, by key; a refusal is an event as well as raised."""
    planned = work.to_write
    if not planned:
        return {}
    writes = [_child_write(one, owner, work.family.live.get(one.child.key)) for one in planned]
    try:
        written = await context.engine.store.write_children(writes)
    except ChildRefused as error:
        refused = planned[error.index]
        verb = "Create" if refused.child.key not in work.family.live else "Update"
        reason = f"{child_ref(refused.child).kind}{verb}Failed"
        await context.engine.store.note(context.event(reason, str(error), is_warning=True))
        raise
    return {one.child.key: resource for one, resource in zip(planned, written, strict=True)}


def _child_write(planned: ChildPlan, owner: Owner, live: Resource | None) -> ChildWrite:
    child = planned.child
    if live is not None:
        return ChildWrite(planned.document, live)
    return ChildWrite(owner.completed(child) if child.filled_on_create else child.object)


async def _settle(context: StepContext, owner: Owner, work: OwnerPlan, made: Mapping[str, Resource]) -> StepOutcome:
    """On record what was done and how it stands; with trouble, why the rest could not be done."""
    before, trouble = context.resource, work.reviews.trouble
    family = replace(work.family, live={**work.family.live, **made})
    context = replace(context, state=_remembered(context, work, family))
    others = _reconciled_children(context, work)
    if trouble is not None:
        outputs = owner_outputs(context, work, None)
        failed = conditions.failure(trouble, deleting=False)
        await context.set_ready(failed, outputs, owner_events(context, work, outputs))
        return Stopped(trouble, others)
    stands = owner.standing(before, family.live)
    ready = conditions.contested(work.plan.because) if work.withheld else stands.ready
    outputs = owner_outputs(context, work, stands.outputs)
    events = [*owner_events(context, work, outputs)]
    if ready.status != "True" and is_ready(before):
        events.append(context.event(ConditionReason.NOT_READY, stands.lost, is_warning=True))
    context = await context.set_ready(ready, outputs, events)
    return Settled(work.plan, ready, _requeue_after(context, work, ready), others)


def _requeue_after(context: StepContext, work: OwnerPlan, ready: ReadyCondition) -> float | None:
    """The seconds until there is something to do: a child to put back, or one that may be ready by then."""
    if work.withheld:
        return context.state.contests.next_in(work.plan.withheld, context.engine.clock.now())
    return None if ready.status == "True" else NOT_READY_SECONDS


def _remembered(context: StepContext, work: OwnerPlan, family: OwnerObservation) -> StoredState:
    """The memory after the step: a cookie only where nothing is left to do."""
    before, live = context.state, family.live_digest
    at = before.cookie
    if work.reviews.trouble is not None:
        at = None
    elif not work.withheld and not isinstance(live, Missing):
        at = Cookie(family.intent, live)
    contests = before.contests.done(context.engine.clock.now()) if before.contests.fields else before.contests
    left = _unsettled(context, work) or None
    return replace(before, cookie=at, step=step_record(context, work.plan, at), contests=contests, generating=left)


def _reconciled_children(context: StepContext, work: OwnerPlan) -> tuple[ResourceRef, ...]:
    """The children that have steps of their own."""
    refs = (child_ref(child) for child in work.family.generated.children)
    return tuple(ref for ref in refs if (ref.group, ref.kind) in context.engine.resource_types)


def _plan_observed_owner(context: StepContext, work: OwnerPlan) -> PlannedStep:
    """Drift of the children is reported, and nothing is written."""
    if work.reviews.trouble is not None:
        raise work.reviews.trouble
    plan = as_observed_plan(work.plan)

    async def execute() -> StepOutcome:
        paths = tuple(str(change.path) for change in plan.withheld)
        ready = conditions.observed(paths, is_there=bool(work.family.live))
        await context.set_ready(ready)
        return Settled(plan, ready)

    return PlannedStep(plan, execute)


# Held where nobody else removes the children of what is gone.
CHILDREN_FINALIZER: Final = "setpoint.dev/children"


def finalizers_of(owner: Owner, store: Store) -> tuple[str, ...]:
    """What holds a resource of this owner until its children are dealt with."""
    own = (owner.finalizer,) if owner.finalizer else ()
    return own if store.collects else (*own, CHILDREN_FINALIZER)


async def plan_owner_deletion(context: StepContext, owner: Owner) -> PlannedStep:
    """The step that deletes the children that have to go first, and then releases the resource."""
    resource, ours = context.resource, finalizers_of(owner, context.engine.store)
    if not set(ours) & set(resource.finalizers):
        return PlannedStep(_release_plan(()), _already_gone)
    if context.management is Management.PAUSED:
        return plan_paused(context)
    # Where nothing is ever written, the children stay.
    going = () if context.management is Management.OBSERVE else await _children_to_delete(context, owner)
    return PlannedStep(_release_plan(going), lambda: _delete_children_and_release(context, owner, going))


def _release_plan(going: Sequence[Resource]) -> Plan:
    writes = tuple(PlannedWrite(Action.DELETE, f"{child.ref.kind}/{child.ref.name}") for child in going)
    because = "" if writes else "nothing has to go before it"
    return Plan(Decision.INTENT_CHANGED, writes, because=because)


async def _delete_children_and_release(context: StepContext, owner: Owner, going: Sequence[Resource]) -> StepOutcome:
    """Deletes what has to go first, and lets the resource go once that is done. What is gone already is done."""
    store = context.engine.store
    for child in going:
        if not child.is_deleting:
            await store.delete(child.ref)
    seen = await _children_to_delete(context, owner) if going else ()
    left = [child for child in seen if not (store.collects and child.is_deleting)]
    if left:
        names = join_names(str(child.ref) for child in left)
        others = tuple(
            child.ref for child in left if (child.ref.group, child.ref.kind) in context.engine.resource_types
        )
        return Stopped(OperationRunning(f"{names} has to go first, and is still there", after=1), others)
    ours = finalizers_of(owner, store)
    rest = tuple(one for one in context.resource.finalizers if one not in ours)
    await store.set_finalizers(context.resource, rest)
    return Gone()


async def _already_gone() -> StepOutcome:
    return Gone()


async def _children_to_delete(context: StepContext, owner: Owner) -> Sequence[Resource]:
    """The children that have to go first: where nobody else removes them, all that are its own."""
    resource, store = context.resource, context.engine.store
    if store.collects:
        found = list(await store.get_many(list(owner.deleted_first(resource))))
    else:
        found = list((await store.list(ResourceQuery(namespace=resource.ref.namespace))).resources)
    return [one for one in found if one is not None and ownership(one.document, resource.document) is Ownership.OURS]

"""Executes a plan, write by write: the only place that changes a live object that is to exist.

A creation and a long-running operation are on record before the step goes on, so that a later step finishes them.
"""

from dataclasses import dataclass, replace
from typing import NoReturn, assert_never

from setpoint.core.decide import Decision
from setpoint.core.plan import Action, Plan, PlannedWrite
from setpoint.engine import conditions
from setpoint.engine.context import KindStepContext, Management
from setpoint.engine.kind import (
    Absent,
    Intent,
    LiveObservation,
    Present,
    Reconciliation,
    RemoteOperation,
    observe_decoded,
)
from setpoint.engine.references import is_ready
from setpoint.engine.state import StoredState, WriteAttempt, location_in
from setpoint.engine.step.finish import plan_event, records_creation, step_record
from setpoint.engine.step.plan import EffectivePlan, desired_tree, effective_plan, live_mark, with_dry_run
from setpoint.errors import OperationRunning, RemoteConflict, RemoteRefused


async def execute_plan(
    planned: EffectivePlan, intent: Intent, look: LiveObservation, context: KindStepContext
) -> tuple[KindStepContext, LiveObservation, EffectivePlan]:
    """One write, a look at what it did, and what is left is planned again; until there is nothing left to send now."""
    first = planned.plan
    while planned.plan.writes:
        write = planned.plan.writes[0]
        is_new = context.state.creating is None
        context = await _record_before_send(planned, intent, look, context)
        operation = await _sent(planned, look, context, is_new=is_new)
        context = replace(context, state=_after_sending(context.state, write, intent, operation))
        if operation is not None:
            record = step_record(context, first)
            await stop_for_operation(operation, replace(context, state=replace(context.state, step=record)), first)
        look = await observe_decoded(intent.location, context.kind)
        if isinstance(look, Absent):
            raise _not_visible_yet(write, intent)
        follow_up = follow_up_of(context, intent, look)
        if follow_up is not None:
            context = await send_follow_up(follow_up, intent, look, context)
        context = await with_dry_run(first.decision, intent, look, context)
        planned = effective_plan(first.decision, intent, look, context)
    return context, look, planned


def _not_visible_yet(write: PlannedWrite, intent: Intent) -> OperationRunning:
    if write.action is Action.REPLACE:
        # The next step makes it anew.
        return OperationRunning(f"{intent.location} gives way", after=0, begun=write.action.value)
    return OperationRunning(f"{intent.location} was written and cannot be seen yet", after=1)


async def _record_before_send(
    planned: EffectivePlan, intent: Intent, look: LiveObservation, context: KindStepContext
) -> KindStepContext:
    """The context with all that a later step has to know if this one is killed after the write, in one commit.

    That is the claim (finalizer and location), a creation with the versions of its secrets, and every revert of drift.
    """
    plan, state = planned.plan, context.state
    is_creation, is_revert = (
        plan.writes[0].action is Action.CREATE,
        _is_drift_correction(plan.decision, intent, context),
    )
    if is_revert:
        now = context.engine.clock.now()
        state = replace(state, contests=state.contests.begin(intent.digest, plan.changes, live_mark(look), now))
    if is_creation:
        state = replace(state, creating=planned.followed.resolved.versions)
    context = replace(context, state=state)
    if location_in(context.resource.status) != intent.location:
        return await context.set_ready(conditions.CLAIMED)
    must_save = is_creation or is_revert or context.finalizers is not None
    return await context.save_state() if must_save else context


def _is_drift_correction(decision: Decision, intent: Intent, context: KindStepContext) -> bool:
    """Whether what differs is somebody else's doing: a step ended for this very intent, and something moved since."""
    if decision is not Decision.FIRST_LOOK:
        return decision is Decision.DRIFTED
    attempt = context.state.attempt
    unconverged_at = None if attempt is None else attempt.unconverged_at
    was_stuck = unconverged_at is not None and unconverged_at.intent == intent.digest
    is_stateless = context.kind.reconciliation is Reconciliation.STATELESS
    return bool(context.state.contests.fields) or was_stuck or (is_stateless and is_ready(context.resource))


async def _sent(
    planned: EffectivePlan, look: LiveObservation, context: KindStepContext, *, is_new: bool
) -> RemoteOperation | None:
    """What the service goes on with after the first write of the plan."""
    write = planned.plan.writes[0]
    try:
        return await _send(write, planned.followed, look, context)
    except RemoteConflict:
        # The object exists. Unless the answer to an earlier request was lost, another writer has created it.
        if write.action is Action.CREATE and is_new:
            await _forget_creation(context)
        raise


async def _send(
    write: PlannedWrite, intent: Intent, look: LiveObservation, context: KindStepContext
) -> RemoteOperation | None:
    wanted = desired_tree(intent, look, context)
    match write.action:
        case Action.CREATE:
            return await context.kind.create(intent, wanted)
        case Action.UPDATE | Action.REPLACE:
            assert isinstance(look, Present)
            return await context.kind.update(intent, wanted, write, look)
        case Action.DELETE:
            assert isinstance(look, Present)
            return await context.kind.delete(intent.location, look, context.resource)
        case _:
            assert_never(write.action)


def _after_sending(
    before: StoredState, write: PlannedWrite, intent: Intent, operation: RemoteOperation | None
) -> StoredState:
    attempt = before.attempt
    if attempt is None or attempt.intent != intent.digest or attempt.unconverged_at is not None:
        attempt = WriteAttempt(intent.digest)
    # A create says everything at once: what differs after it has not been sent as a change of its own.
    sent = () if write.action is Action.CREATE else tuple(str(change.path) for change in write.changes)
    attempt = replace(attempt, sent=(*attempt.sent, *sent))
    versions = intent.resolved.versions
    # Those of later writes are still to be sent.
    told = versions if write.action is Action.CREATE else {path: versions[path] for path in sent if path in versions}
    return replace(before, attempt=attempt, operation=operation, secrets={**before.secrets, **told})


async def _forget_creation(context: KindStepContext) -> None:
    """Off the record: another writer had created the object."""
    await replace(context, state=replace(context.state, creating=None)).save_state()


@dataclass(frozen=True, slots=True)
class InterruptedCreation:
    """What an earlier step left unfinished of a creation; mostly nothing."""

    # The memory now, and once that is done.
    before: StoredState
    state: StoredState
    follow_up: "FollowUp | None" = None
    # Whether the object is there because that step made it, and was cut short before it could say so.
    is_creation: bool = False

    @staticmethod
    def of(context: KindStepContext, intent: Intent, look: LiveObservation) -> "InterruptedCreation":
        """What is left to finish, seen from this look at the object."""
        memory, follow_up = context.state, follow_up_of(context, intent, look)
        is_made = memory.creating is not None and memory.location == intent.location and not isinstance(look, Absent)
        after = memory if follow_up is None else follow_up.state
        return InterruptedCreation(memory, after, follow_up, is_made and not records_creation(memory.step))

    def shown(self, plan: Plan) -> Plan:
        """What a step did that ends a creation, for people: whatever it sends, the object is new."""
        if not self.is_creation:
            return plan
        return replace(plan, writes=(PlannedWrite(Action.CREATE, "create", plan.changes),))

    async def finish(self, intent: Intent, look: LiveObservation, context: KindStepContext) -> KindStepContext:
        """The scene once the creation is finished."""
        if self.follow_up is None:
            return context
        # Until the follow-up is done, the creation stays on record.
        unfinished = replace(context, state=self.before)
        done = await send_follow_up(self.follow_up, intent, look, unfinished)
        return replace(done, state=context.state)


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A write that has to follow a creation, and the memory once it is done."""

    write: PlannedWrite
    state: StoredState


def follow_up_of(context: KindStepContext, intent: Intent, look: LiveObservation) -> FollowUp | None:
    """What has to follow the creation that was begun; None where none was, or nothing has to."""
    memory = context.state
    creating = memory.creating if memory.location == intent.location else None
    if creating is None or isinstance(look, Absent) or context.management is not Management.FULL:
        return None
    name = context.kind.sending(intent).follow_up
    if name is None:
        return None
    after = replace(memory, creating=None, secrets={**memory.secrets, **creating})
    return FollowUp(PlannedWrite(Action.CREATE, name), after)


async def send_follow_up(
    follow_up: FollowUp, intent: Intent, look: LiveObservation, context: KindStepContext
) -> KindStepContext:
    """The scene once the follow-up is done and on record."""
    assert isinstance(look, Present)
    operation = await context.kind.update(intent, desired_tree(intent, look, context), follow_up.write, look)
    if operation is not None:
        await stop_for_operation(operation, replace(context, state=replace(context.state, operation=operation)))
    return await replace(context, state=follow_up.state).save_state()


async def poll_operation(context: KindStepContext) -> KindStepContext:
    """The scene once the operation on record is done; one that failed is forgotten, and its fields are sent again."""
    operation = context.state.operation
    if operation is None:
        return context
    try:
        done = await context.kind.poll(operation)
    except RemoteRefused as error:
        contests = context.state.contests.aborted()
        forgetting = replace(context.state, operation=None, attempt=None, contests=contests)
        told_so = conditions.failure(error, deleting=context.resource.is_deleting)
        await replace(context, state=forgetting).set_ready(told_so)
        raise
    if not done:
        raise OperationRunning(f"operation {operation.name} is running")
    return replace(context, state=replace(context.state, operation=None))


async def stop_for_operation(
    operation: RemoteOperation, context: KindStepContext, plan: Plan | None = None
) -> NoReturn:
    """Ends the step with the operation on record: the next one asks how it went."""
    begun = plan.writes[0].action.value if plan is not None and plan.writes else ""
    running = OperationRunning(f"operation {operation.name} is running", begun=begun)
    events = () if plan is None else (context.event(*plan_event(plan)),)
    await context.set_ready(conditions.failure(running, deleting=context.resource.is_deleting), events=events)
    raise running

"""Executes a plan, write by write: the only place that changes a live object that is to exist.

A creation and a long-running operation are on record before the step continues, so that a later step finishes them.
"""

from typing import Any, NoReturn, TypeAlias, assert_never

from setpoint.core.decide import Decision, DecisionReason
from setpoint.core.diff import redacted_change
from setpoint.core.plan import Action, Plan, PlannedWrite
from setpoint.core.redaction import REDACTED
from setpoint.core.values.deferred_dataclass import dataclass, replace
from setpoint.core.write_attempt import WriteAttempt
from setpoint.engine import conditions
from setpoint.engine.capabilities import SupportsCreationMark, SupportsServiceIds, SupportsWriteRecord
from setpoint.engine.claims.claim import confirm_claim, release_claim
from setpoint.engine.claims.object_claims import announced_location, location_text
from setpoint.engine.claims.own_location import at_own_location
from setpoint.engine.context import KindStepContext
from setpoint.engine.kind import (
    Absent,
    Intent,
    LiveObservation,
    Present,
    RemoteOperation,
    Written,
    observe_decoded,
)
from setpoint.engine.management import Management
from setpoint.engine.state import StoredState, location_in
from setpoint.engine.step.change_cause import ChangeCause, flips_after, write_cause
from setpoint.engine.step.finish import begun_action, operation_events, plan_events, records_action, step_record
from setpoint.engine.step.plan import (
    EffectivePlan,
    desired_tree,
    effective_plan,
    live_mark,
    redacted_writes,
    with_dry_run,
)
from setpoint.engine.step.reports import ReportedWrite, StepSubject
from setpoint.errors import OperationRunning, RemoteConflict, RemoteRefused

_Answer: TypeAlias = RemoteOperation | Written[Any] | None


@dataclass(frozen=True, slots=True)
class ExecutedPlan:
    """What became of a plan: the context and the object after it, the plan as it was carried out, and what is left."""

    context: KindStepContext
    observed: LiveObservation
    plan: Plan
    left: EffectivePlan


async def execute_plan(
    planned: EffectivePlan, intent: Intent, observed: LiveObservation, context: KindStepContext
) -> ExecutedPlan:
    """Sends one write, observes its effect and plans the rest again, until there is nothing left to send now."""
    first = planned.plan
    while planned.plan.writes:
        write = planned.plan.writes[0]
        is_new = context.state.creating is None
        before = context.resource
        # Before anything is recorded: what waits for its turn has not begun.
        context.enter_scope(intent.location)
        context = await _record_before_send(planned, intent, observed, context)
        context = await confirm_claim(context, before, intent.location, observed)
        flips = await flips_after(planned.plan, intent.digest, context)
        answer = await _send_first(planned, observed, context, is_new=is_new)
        await _keep_issued(answer, context)
        operation = answer if isinstance(answer, RemoteOperation) else None
        state = _after_sending(context.state, planned.plan, intent, operation)
        context = replace(context, state=replace(state, flips=flips), sent=context.sent or write.action)
        if operation is not None:
            await _stop_with_record(operation, context, _sent_of(first, planned.plan.writes[1:]))
        first = _with_answer(first, answer, intent, observed, context)
        found = at_own_location(context, intent, await _observe_after(answer, write, intent, context))
        context, intent, observed = found.context, found.intent, found.observed
        follow_up = follow_up_of(context, intent, observed)
        if follow_up is not None:
            context = await send_follow_up(follow_up, intent, observed, context)
        if isinstance(answer, Written) and answer.is_complete and planned.followed is intent:
            context = replace(context, dry_run_writes=())
        else:
            context = await with_dry_run(first.decision, intent, observed, context)
        planned = effective_plan(first.decision, intent, observed, context, with_kept=False)
    return ExecutedPlan(context, observed, first, planned)


def _sent_of(plan: Plan, pending: tuple[PlannedWrite, ...]) -> Plan:
    """The plan with what of it was sent: a later step sends and records the rest. A creation is recorded as a whole."""
    left = {change.path for write in pending for change in write.changes}
    if not left or plan.writes[0].action is Action.CREATE:
        return plan
    return replace(
        plan, writes=tuple(one for one in plan.writes if not one.changes or not {c.path for c in one.changes} <= left)
    )


async def _stop_with_record(operation: RemoteOperation, context: KindStepContext, sent: Plan) -> NoReturn:
    """Ends the step with the operation and what was sent on record."""
    record = step_record(context, sent, operation=operation)
    await stop_for_operation(operation, replace(context, state=replace(context.state, step=record)), sent)


def _with_answer(
    plan: Plan, answer: _Answer, intent: Intent, before: LiveObservation, context: KindStepContext
) -> Plan:
    """The plan with what its foreseen write has changed; a write that changed nothing is none."""
    if not isinstance(answer, Written) or answer.changes is None or not plan.writes[0].is_foreseen:
        return plan
    foreseen = {change.path.steps for change in plan.writes[0].changes}
    write = replace(plan.writes[0], changes=answer.changes, is_foreseen=False)
    writes: tuple[PlannedWrite, ...] = (write,) if write.changes or write.action is Action.CREATE else ()
    if not foreseen.issuperset([change.path.steps for change in answer.changes]):
        return replace(plan, writes=redacted_writes(writes, intent, before, context.engine.secret_fields))
    # Which of these fields are secret is known already.
    secret = {one.path.steps for one in plan.writes[0].changes if REDACTED in (one.before, one.after)}
    if not secret:
        return replace(plan, writes=writes)
    shown = tuple(redacted_change(one) if one.path.steps in secret else one for one in answer.changes)
    return replace(plan, writes=tuple(replace(one, changes=shown) for one in writes))


async def _observe_after(
    answer: _Answer, write: PlannedWrite, intent: Intent, context: KindStepContext
) -> LiveObservation:
    """The object after the write: from the answer to it, where that has it."""
    if isinstance(answer, Written) and not answer.issued:
        return answer.after
    at = answer.after.location if isinstance(answer, Written) else None
    observed = await observe_decoded(at or intent.location, context.kind)
    if isinstance(observed, Present):
        return observed if at is None else replace(observed, location=at)
    if isinstance(answer, Written):
        return answer.after
    raise _not_visible_yet(write, intent)


async def _keep_issued(answer: _Answer, context: KindStepContext) -> None:
    """Keeps what the service tells once: before anything else is done, because a killed process has lost it."""
    if isinstance(answer, Written) and answer.issued:
        from setpoint.engine.owners.issued_secret import keep_issued

        await keep_issued(context, answer.issued)


def _not_visible_yet(write: PlannedWrite, intent: Intent) -> OperationRunning:
    if write.action is Action.REPLACE:
        # The next step creates it again.
        return OperationRunning(f"{location_text(intent.location)} gives way", after=0, begun=write.action.value)
    return OperationRunning(f"{location_text(intent.location)} was written and cannot be seen yet", after=1)


async def _record_before_send(
    planned: EffectivePlan, intent: Intent, observed: LiveObservation, context: KindStepContext
) -> KindStepContext:
    """The context with all that a later step has to know if this one is killed after the write, in one commit.

    That is the claim (finalizer and location), a creation with the versions of its secrets, and every revert of drift.
    Of an object that shows by itself that it was created, the announced claim is enough.
    """
    plan, state = planned.plan, context.state
    is_creation = plan.writes[0].action is Action.CREATE
    is_revert = write_cause(plan.decision, intent.digest, context) is ChangeCause.DRIFT
    if is_revert:
        now = context.engine.clock.now()
        state = replace(
            state, oscillations=state.oscillations.begin(intent.digest, plan.changes, live_mark(observed), now)
        )
    if is_creation:
        state = replace(state, creating=planned.followed.resolved.versions)
    context = replace(context, state=state)
    if is_creation and _will_show_creation(planned, intent, context):
        return context
    if location_in(context.resource.status) != intent.location:
        context = await context.set_ready(conditions.CLAIMED)
    elif is_creation or is_revert or context.finalizers is not None:
        context = await context.save_state()
    if isinstance(context.kind, SupportsWriteRecord):
        context = await context.save_state(context.kind.outputs_before_write(intent.location))
    return context


def _will_show_creation(planned: EffectivePlan, intent: Intent, context: KindStepContext) -> bool:
    """Whether the next process finds the new object by the announced claim: see `record_creation`.

    Of a creation that is not foreseen, or sends secrets, more has to be on record.
    """
    return (
        isinstance(context.kind, SupportsCreationMark)
        and planned.plan.writes[0].is_foreseen
        and announced_location(context.resource) == intent.location
        and context.finalizers is None
        and location_in(context.resource.status) is None
        and not planned.followed.resolved.versions
    )


async def _send_first(
    planned: EffectivePlan, observed: LiveObservation, context: KindStepContext, *, is_new: bool
) -> _Answer:
    """The answer to the first write of the plan: the object, or the long-running operation that begins, if any."""
    write = planned.plan.writes[0]
    try:
        with context.engine.reporter.writing([_report_of(planned, context)]):
            return await _send(write, planned.followed, observed, context)
    except RemoteConflict:
        # The object exists. Unless the answer to an earlier request was lost, another writer has created it.
        if write.action is Action.CREATE and is_new:
            await _forget_creation(context)
        raise
    except (RemoteRefused, OperationRunning):
        if write.action is Action.CREATE and _is_released(planned, context, is_new=is_new):
            await replace(context, state=release_claim(context.state)).save_state()
        raise


def _is_released(planned: EffectivePlan, context: KindStepContext, *, is_new: bool) -> bool:
    """Whether a creation that was refused leaves nothing on record.

    Where a dry run is refused, nothing is yet: no object is claimed, and none was deleted. The search for an object
    whose id the service makes could find one of another author by now, once there is none of ours to be found.
    """
    if isinstance(context.kind, SupportsServiceIds):
        return is_new
    return planned.plan.writes[0].is_foreseen and planned.plan.reason is not DecisionReason.DELETED


def _report_of(planned: EffectivePlan, context: KindStepContext) -> ReportedWrite:
    write, decision = planned.plan.writes[0], planned.plan.decision.value
    subject = StepSubject.of(context)
    return ReportedWrite(subject, write.action, str(planned.followed.location), decision, write.changes)


async def _send(write: PlannedWrite, intent: Intent, observed: LiveObservation, context: KindStepContext) -> _Answer:
    wanted = desired_tree(intent, observed, context)
    match write.action:
        case Action.CREATE:
            return await context.kind.create(intent, wanted)
        case Action.UPDATE | Action.REPLACE:
            assert isinstance(observed, Present)
            return await context.kind.update(intent, wanted, write, observed)
        case Action.DELETE:
            assert isinstance(observed, Present)
            answer = await context.kind.delete(intent.location, observed, context.resource)
            return None if isinstance(answer, Absent) else answer
        case _:
            assert_never(write.action)


def _after_sending(before: StoredState, plan: Plan, intent: Intent, operation: RemoteOperation | None) -> StoredState:
    attempt, write = before.attempt, plan.writes[0]
    if attempt is None or attempt.intent != intent.digest or attempt.unconverged_at is not None:
        attempt = WriteAttempt(intent.digest)
    # A creation sends everything at once: what differs after it has not been sent as a change of its own.
    sent = () if write.action is Action.CREATE else tuple(str(change.path) for change in write.changes)
    attempt = attempt.with_sent(write.name, sent)
    if plan.decision in (Decision.INTENT_CHANGED, Decision.REVISED):
        attempt = attempt.with_pending(tuple(str(change.path) for one in plan.writes[1:] for change in one.changes))
    versions = intent.resolved.versions
    # The secrets of later writes are still to be sent.
    sent_versions = (
        versions if write.action is Action.CREATE else {path: versions[path] for path in sent if path in versions}
    )
    return replace(before, attempt=attempt, operation=operation, secrets={**before.secrets, **sent_versions})


async def _forget_creation(context: KindStepContext) -> None:
    """Removes the creation from the record: another writer had created the object."""
    await replace(context, state=replace(context.state, creating=None)).save_state()


@dataclass(frozen=True, slots=True)
class InterruptedCreation:
    """What an earlier step left unfinished of a creation; mostly nothing."""

    # The state now, and once that is done.
    before: StoredState
    state: StoredState
    follow_up: "FollowUp | None" = None
    # Whether that step created the object, and was killed before it could report it.
    is_creation: bool = False

    @staticmethod
    def of(context: KindStepContext, intent: Intent, observed: LiveObservation) -> "InterruptedCreation":
        """What is left to finish, given this observation of the object."""
        state, follow_up = context.state, follow_up_of(context, intent, observed)
        is_made = state.creating is not None and state.location == intent.location and not isinstance(observed, Absent)
        after = state if follow_up is None else follow_up.state
        return InterruptedCreation(state, after, follow_up, is_made and not records_action(state.step, Action.CREATE))

    @property
    def is_under_way(self) -> bool:
        """Whether an earlier step began to create an object."""
        return self.before.creating is not None

    def shown(self, plan: Plan) -> Plan:
        """The plan as it is reported: for a creation that is finished now, whatever is sent, the object is created."""
        if not self.is_creation:
            return plan
        return replace(plan, writes=(PlannedWrite(Action.CREATE, "create", plan.changes),))

    async def finish(self, intent: Intent, observed: LiveObservation, context: KindStepContext) -> KindStepContext:
        """The context once the creation is finished."""
        if self.follow_up is None:
            return context
        # Until the follow-up is done, the creation stays on record.
        unfinished = replace(context, state=self.before)
        done = await send_follow_up(self.follow_up, intent, observed, unfinished)
        return replace(done, state=context.state)


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A write that has to follow a creation, and the state once it is done."""

    write: PlannedWrite
    state: StoredState


def follow_up_of(context: KindStepContext, intent: Intent, observed: LiveObservation) -> FollowUp | None:
    """The write that has to follow the creation that was begun; None when there is none."""
    state = context.state
    creating = state.creating if state.location == intent.location else None
    if creating is None or isinstance(observed, Absent) or context.management is not Management.FULL:
        return None
    name = context.kind.sending(intent).follow_up
    if name is None:
        return None
    after = replace(state, creating=None, secrets={**state.secrets, **creating})
    return FollowUp(PlannedWrite(Action.CREATE, name), after)


async def send_follow_up(
    follow_up: FollowUp, intent: Intent, observed: LiveObservation, context: KindStepContext
) -> KindStepContext:
    """The context once the follow-up is done and on record."""
    assert isinstance(observed, Present)
    context.enter_scope(intent.location)
    report = ReportedWrite(StepSubject.of(context), Action.CREATE, str(intent.location), follow_up.write.name)
    with context.engine.reporter.writing([report]):
        answer = await context.kind.update(intent, desired_tree(intent, observed, context), follow_up.write, observed)
    context = replace(context, sent=context.sent or follow_up.write.action)
    if isinstance(answer, RemoteOperation):
        await stop_for_operation(answer, replace(context, state=replace(context.state, operation=answer)))
    return await replace(context, state=follow_up.state).save_state()


async def poll_operation(context: KindStepContext) -> KindStepContext:
    """The context once the operation on record is done; after one that failed, its fields are sent again."""
    operation = context.state.operation
    if operation is None:
        return context
    if context.state.location is not None:
        context.engine.operations.resume(context.resource.ref, context.kind, context.state.location)
    try:
        done = await context.kind.poll(operation)
    except RemoteRefused as error:
        oscillations = context.state.oscillations.aborted()
        state = replace(context.state, operation=None, attempt=None, oscillations=oscillations)
        failed = conditions.failure(error, deleting=context.resource.is_deleting)
        await replace(context, state=state).set_ready(failed)
        raise
    if not done:
        raise OperationRunning(f"operation {operation.name} is running")
    ended = operation_events(context, operation)
    return replace(context, state=replace(context.state, operation=None), ended=ended)


async def stop_for_operation(
    operation: RemoteOperation, context: KindStepContext, plan: Plan | None = None
) -> NoReturn:
    """Ends the step with the operation on record: the next step polls it."""
    begun = "" if plan is None else begun_action(plan)
    running = OperationRunning(f"operation {operation.name} is running", begun=begun)
    events = () if plan is None else plan_events(context, plan, is_begun=True)
    await context.set_ready(conditions.failure(running, deleting=context.resource.is_deleting), events=events)
    raise running

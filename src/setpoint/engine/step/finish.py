"""How a step ends: settled, paused or observed only; its record, which `setpoint explain` shows, and its event."""

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Final

from setpoint.core.decide import Cookie, Decision, DecisionReason
from setpoint.core.diff import FieldChange
from setpoint.core.plan import Action, Hold, Plan
from setpoint.core.schema.policy import Rule
from setpoint.core.step_record import (
    OPERATION,
    bounded_record,
    operation_text,
    paths_digest,
    withheld_paths,
    written_paths,
)
from setpoint.core.values.canonical import digest
from setpoint.core.values.deferred_dataclass import dataclass, replace
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.core.write_attempt import WriteAttempt
from setpoint.engine import conditions
from setpoint.engine.claims.object_claims import location_text
from setpoint.engine.conditions import ReadyCondition, join_names, retained_message
from setpoint.engine.contention.oscillation import NO_OSCILLATIONS, Oscillations
from setpoint.engine.context import KindStepContext, StepContext
from setpoint.engine.intent import applied_intent
from setpoint.engine.kind import Absent, Intent, LiveObservation, Present, Reconciliation, RemoteOperation
from setpoint.engine.management import MANAGEMENT, Management
from setpoint.engine.ports import EventRecord, ResourceUpdate
from setpoint.engine.sets.resource_set import is_leaving, source_of
from setpoint.engine.state import AppliedIntent, StoredState, outputs_in
from setpoint.engine.step.change_cause import report_drift, unspecified_digests
from setpoint.engine.step.hold import seconds_until_retry, withheld_condition
from setpoint.engine.step.observe import body_digest_to_keep, cache_as_idle
from setpoint.engine.step.outcomes import AdoptedObject, Gone, PlannedStep, Settled, StepOutcome, Stopped
from setpoint.engine.step.plan import EffectivePlan, residual
from setpoint.engine.step.reports import end_of_history
from setpoint.engine.step.wait import wait_result
from setpoint.errors import SetpointError, StillWaiting


@dataclass(frozen=True, slots=True)
class _Residual:
    """What still differs: specified fields, unspecified ones with their digests, and whether some are withheld.

    `insisted` are the unspecified fields that were sent, and of which the service keeps a value of its own.
    """

    specified: tuple[str, ...]
    unspecified: Mapping[str, str]
    has_withheld: bool
    insisted: tuple[FieldChange, ...] = ()


async def settle(
    context: KindStepContext, observed: LiveObservation, plan: Plan, planned: EffectivePlan
) -> StepOutcome:
    """Records that nothing is left to do now. `plan` is what the step began with, `planned` what it ended with."""
    assert isinstance(observed, Present)
    context.leave_scope()
    # What is withheld in the end is still to be written.
    plan = _with_holds_of(planned.plan, plan)
    intent, left = planned.followed, _residual(context, observed, planned)
    if left.insisted and _has_updated(context, plan):
        plan = replace(plan, retained=(*plan.retained, *left.insisted))
    at = Cookie(intent.digest, digest(observed.live))
    wait = wait_result(context, intent, observed)
    ready = _ready(left, plan)
    error = wait.error if wait is not None and ready is conditions.UP_TO_DATE else None
    if wait is not None and error is not None:
        ready = wait.ready
    found = _after(context, left, at, _applied(context, plan, intent))
    state = replace(
        found,
        body=body_digest_to_keep(context, found, observed),
        operation=None,
        secrets=intent.resolved.versions,
        step=step_record(context, plan, at),
        oscillations=_done(context),
        creating=None,
        wait=None if wait is None else wait.state,
        read_failed=False,
    )
    shown = observed.outputs if wait is None else {**observed.outputs, **wait.outputs}
    events = (*plan_events(context, plan), *_retained_events(context, plan))
    context = await replace(context, state=state).set_ready(ready, shown, events)
    if ready is conditions.UP_TO_DATE and _is_stateful(context):
        cache_as_idle(context, intent, observed.body, _until(context))
    if error is not None:
        return Stopped(_with_begun_action(error, plan))
    return Settled(plan, ready, seconds_until_retry(plan, context.engine.clock.now()))


def adopted_object(
    context: KindStepContext, intent: Intent, observed: LiveObservation, plan: Plan
) -> AdoptedObject | None:
    """The object that a step with this plan adopts; None where its resource is not ready after it, or may not be."""
    if not plan.is_adoption or plan.withheld or isinstance(observed, Absent):
        return None
    wait = wait_result(context, intent, observed)
    if wait is None:
        return AdoptedObject(intent.location, observed.outputs)
    # What is waited for may be otherwise after a write.
    is_over = wait.error is None and not plan.writes
    return AdoptedObject(intent.location, {**observed.outputs, **wait.outputs}) if is_over else None


def _with_holds_of(last: Plan, plan: Plan) -> Plan:
    return replace(plan, withheld=last.withheld, because=last.because, held=last.held, retry_at=last.retry_at)


def _with_begun_action(error: SetpointError, plan: Plan) -> SetpointError:
    if isinstance(error, StillWaiting) and begun_action(plan):
        return StillWaiting(str(error), error.left, begun_action(plan))
    return error


def begun_action(plan: Plan) -> str:
    """What a step with this plan begins: an adoption, or the action of its first write; empty for neither."""
    if plan.is_adoption:
        return ADOPT
    return plan.writes[0].action.value if plan.writes else ""


def _residual(context: KindStepContext, observed: LiveObservation, planned: EffectivePlan) -> _Residual:
    """On the fast path, nothing differs but the known server defaults."""
    if planned.plan.is_fast_path:
        return _Residual((), context.state.server_defaults, has_withheld=False)
    specified, unspecified = residual(planned.followed, observed, context, planned.differing)
    # Of a resource that did not converge, nothing more is to be written.
    has_withheld = bool(planned.plan.withheld) and planned.plan.held is not Hold.NOT_CONVERGED
    sent = () if context.state.attempt is None else context.state.attempt.sent
    return _Residual(
        tuple(str(one.path) for one in specified),
        unspecified_digests(unspecified),
        has_withheld,
        tuple(replace(one, after=one.before, rule=Rule.SERVER_DEFAULT) for one in unspecified if str(one.path) in sent),
    )


def _has_updated(context: KindStepContext, plan: Plan) -> bool:
    """Whether this step sent a change of an object that existed, or waited for the operation of one that did."""
    if plan.writes:
        return plan.writes[0].action is not Action.CREATE
    return StoredState.of(context.resource).operation is not None and not records_action(
        context.state.step, Action.CREATE
    )


def _applied(context: KindStepContext, plan: Plan, intent: Intent) -> AppliedIntent | None:
    """What is kept of the intent; where nothing has changed, a state of an earlier version stays without it."""
    known, resource = context.state.applied, context.resource
    is_idle = plan.reason is DecisionReason.COMPARED and not plan.writes
    is_observed = resource.status.get("observedGeneration") == resource.generation
    if plan.is_fast_path or (known is None and is_idle and is_observed):
        return known
    return applied_intent(intent, context.kind)


def _ready(left: _Residual, plan: Plan) -> ReadyCondition:
    if left.specified:
        return conditions.not_converged(left.specified)
    return withheld_condition(plan) if left.has_withheld else conditions.UP_TO_DATE


def _after(context: KindStepContext, left: _Residual, at: Cookie, applied: AppliedIntent | None) -> StoredState:
    """The state after the step: a cookie only where nothing differs but server defaults."""
    before = context.state
    if left.specified:
        attempt = replace(before.attempt or WriteAttempt(at.intent), intent=at.intent)
        # With fields that are withheld, the attempt is not over yet. What one that is over has sent is not asked again.
        attempt = attempt if left.has_withheld else WriteAttempt(at.intent, unconverged_at=at)
        return replace(before, attempt=attempt, cookie=None, applied=applied)
    if left.has_withheld:
        # The cookie stays: the intent is the same, and it matches once the fields are written.
        return replace(before, attempt=None, server_defaults=left.unspecified, applied=_with_cookie(before, applied))
    cookie = at if _is_stateful(context) else None
    return replace(before, attempt=None, cookie=cookie, server_defaults=left.unspecified, applied=applied)


def _with_cookie(before: StoredState, applied: AppliedIntent | None) -> AppliedIntent | None:
    """What is kept of the intent while the cookie stays: the revision is that of the cookie."""
    return applied if before.applied is None or applied is None else replace(before.applied, named=applied.named)


def _done(context: KindStepContext) -> Oscillations:
    oscillations = context.state.oscillations
    return oscillations.done(context.engine.clock.now()) if oscillations.fields else oscillations


def _is_stateful(context: KindStepContext) -> bool:
    return context.kind.reconciliation is Reconciliation.STATEFUL


def _until(context: KindStepContext) -> float:
    """The monotonic time at which an oscillation or a contest expires."""
    oscillations, flips, clock = context.state.oscillations, context.state.flips, context.engine.clock
    expires_in = oscillations.expires_in(clock.now()) if oscillations.fields else None
    if flips.is_contested:
        expires_in = min(flips.expires_in(clock.now()), inf if expires_in is None else expires_in)
    return inf if expires_in is None else clock.monotonic() + expires_in


# What a step that adopts an object has begun, beside the actions of writes.
ADOPT: Final = "adopt"
# The events of a creation: while its operation runs, and once the object is there.
_CREATION_WORDS: Final = {"Creating": "creation begun", "Created": "created"}
OBSERVE_ONLY: Final = f"nothing is written: {MANAGEMENT} is {Management.OBSERVE}"


def plan_paused(context: StepContext) -> PlannedStep:
    """The step of a paused resource: nothing is read, and only the condition is written."""
    plan = Plan(Decision.IN_SYNC, because=conditions.PAUSED.message, held=Hold.PAUSED)

    async def execute() -> StepOutcome:
        # A field that is not reverted any more does not oscillate any more.
        state = replace(context.state, oscillations=NO_OSCILLATIONS)
        await replace(context, state=state).set_ready(conditions.PAUSED)
        return Settled(plan, conditions.PAUSED)

    return PlannedStep(plan, execute)


def plan_observed(context: KindStepContext, intent: Intent, observed: LiveObservation, plan: Plan) -> PlannedStep:
    """The step of an observed resource: drift is reported in the condition, and nothing is written to the service."""
    held = as_observed_plan(plan)
    return PlannedStep(held, lambda: _report_drift(context, intent, observed, held))


def as_observed_plan(plan: Plan) -> Plan:
    """The plan of a resource that is only observed."""
    return plan.hold(Hold.OBSERVED, OBSERVE_ONLY)


async def _report_drift(context: KindStepContext, intent: Intent, observed: LiveObservation, plan: Plan) -> StepOutcome:
    is_there = isinstance(observed, Present)
    report_drift(plan, intent.digest, context, is_there=is_there)
    ready = conditions.observed(tuple(str(change.path) for change in plan.withheld), is_there=is_there)
    wait = wait_result(context, intent, observed)
    if wait is None:
        await context.set_ready(ready)
        return Settled(plan, ready)
    error = wait.error if ready.status == "True" else None
    if error is not None:
        ready = wait.ready
    context = replace(context, state=replace(context.state, wait=wait.state, read_failed=False))
    await context.set_ready(ready, {**outputs_in(context.resource.status), **wait.outputs})
    return Settled(plan, ready) if error is None else Stopped(error)


def step_record(
    context: StepContext, plan: Plan, at: Cookie | None = None, operation: RemoteOperation | None = None
) -> JsonObject | None:
    """The record of this step, and of the operation that it began; an idle step, or one that still waits, keeps the
    last record."""
    last, before = context.state.step, context.state.cookie
    if last is not None and not plan.writes and (_is_idle(context, plan) or _waits_on(last, plan)):
        return bounded_record({**last, **plan.retained_data()}) if plan.retained else last
    digests: dict[str, Json] = {"before": _text(before), "after": _text(at)}
    now, source = context.engine.clock.now(), source_of(context.resource.annotations)
    by_set: dict[str, Json] = {"source": source} if source else {}
    begun: dict[str, Json] = {} if operation is None else {OPERATION: operation_text(operation.name)}
    return bounded_record(
        {"at": now, "trigger": context.trigger, **by_set, "cookie": digests, **plan.to_data(), **begun}
    )


def _is_idle(context: StepContext, plan: Plan) -> bool:
    if plan.held is Hold.NOT_CONVERGED:
        # The Ready condition has it.
        return True
    is_end_of_another = context.state.attempt is not None
    # An owner may have to wait before it can create anything.
    is_unchanged = plan.decision in (Decision.IN_SYNC, Decision.FIRST_LOOK, Decision.CREATE)
    is_news = plan.is_adoption or plan.retained
    return (is_end_of_another or (is_unchanged and not is_news)) and not plan.withheld


def _waits_on(last: JsonObject, plan: Plan) -> bool:
    """Whether the same fields are withheld as in the last record, whatever another writer has made of them since."""
    paths = [str(change.path) for change in plan.withheld]
    return bool(paths) and withheld_paths(last) == paths_digest(paths)


def _text(cookie: Cookie | None) -> str | None:
    return None if cookie is None else str(cookie)


def records_action(step: JsonObject | None, action: Action) -> bool:
    """Whether a record is of a step that began with this action, such as a creation."""
    match step:
        case {"writes": [{"action": found}, *_]}:
            return bool(found == action)
        case _:
            return False


async def deletion_reason(context: StepContext) -> str:
    """Why a resource goes that left its set, with the commit; empty for one that was deleted by itself."""
    if not is_leaving(context.resource.annotations):
        return ""
    # Few stores have sets.
    from setpoint.engine.sets.declare import prune_reason

    return await prune_reason(context.resource, context.engine.store)


async def end_deletion(
    context: StepContext, finalizers: tuple[str, ...], plan: Plan, events: Sequence[EventRecord] = ()
) -> StepOutcome:
    """Removes all finalizers but these, with the end of the history: who asked for it, and what was deleted."""
    last = context.state.step
    # The step that found the object gone is none of its own, where an earlier one began the deletion.
    step = last if not plan.writes and records_action(last, Action.DELETE) else step_record(context, plan)
    history = end_of_history(context.resource, step, context.engine.reporter)
    update = ResourceUpdate(finalizers=finalizers, events=events, history=history)
    await context.engine.store.update(context.resource, update)
    return Gone()


def plan_events(context: StepContext, plan: Plan, *, is_begun: bool = False) -> Iterator[EventRecord]:
    """The events of a step: that it adopted its object, and what it wrote, the fields without their values.

    `is_begun`: it is written once an operation has ended, which may fail.
    """
    if plan.is_adoption:
        yield context.event("Adopted", f"adopted {location_text(context.state.location or '')}: it was there before")
    if not plan.writes:
        return
    fields, decision = join_names([change.path for change in plan.changes]), plan.decision.value
    if plan.writes[0].action is Action.CREATE:
        is_again = plan.reason is DecisionReason.DELETED
        yield _creation(context, "Creating" if is_begun else "Created", fields, is_again=is_again)
    elif is_begun:
        is_routine = plan.decision is Decision.INTENT_CHANGED
        yield context.event("Updating", f"{decision}: began to set {fields}", is_routine=is_routine)
    else:
        yield _updated(context, decision, fields)


def operation_events(context: StepContext, operation: RemoteOperation) -> tuple[EventRecord, ...]:
    """What an operation that has ended well has written, by the record of the step that began it.

    None for one that no record names: it followed a creation, or deleted an object.
    """
    record = context.state.step or {}
    if record.get(OPERATION) != operation_text(operation.name):
        return ()
    fields = join_names(written_paths(record))
    if records_action(record, Action.CREATE):
        return (_creation(context, "Created", fields, is_again=record.get("reason") == DecisionReason.DELETED),)
    match record.get("writes"):
        case [{"action": Action.UPDATE}, *_]:
            return (_updated(context, str(record.get("decision")), fields),)
        case _:
            return ()


def _creation(context: StepContext, reason: str, fields: str, *, is_again: bool) -> EventRecord:
    word = f"{_CREATION_WORDS[reason]} again, it was deleted," if is_again else _CREATION_WORDS[reason]
    # A creation that a killed step began has no fields left to name.
    return context.event(reason, f"{word} with {fields}" if fields else word.rstrip(","))


def _updated(context: StepContext, decision: str, fields: str) -> EventRecord:
    return context.event("Updated", f"{decision}: set {fields}", is_routine=decision == Decision.INTENT_CHANGED)


def _retained_events(context: StepContext, plan: Plan) -> Iterator[EventRecord]:
    if plan.retained:
        yield context.event("Kept", retained_message(plan.retained))

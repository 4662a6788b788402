"""How a step ends: settled, paused or observed only; its record, which `setpoint explain` shows, and its event."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Final

from setpoint.core.decide import Cookie, Decision
from setpoint.core.plan import Action, Hold, Plan
from setpoint.core.values.canonical import digest
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.engine import conditions
from setpoint.engine.conditions import ReadyCondition, join_names
from setpoint.engine.context import (
    MANAGEMENT,
    KindStepContext,
    Management,
    PlannedStep,
    Settled,
    StepContext,
    StepOutcome,
    Stopped,
)
from setpoint.engine.kind import Intent, LiveObservation, Present, Reconciliation
from setpoint.engine.oscillation import NO_OSCILLATIONS, Oscillations
from setpoint.engine.state import StoredState, WriteAttempt, outputs_in
from setpoint.engine.step.observe import body_digest_to_keep, cache_as_idle
from setpoint.engine.step.plan import EffectivePlan, residual
from setpoint.engine.step.wait import wait_result
from setpoint.errors import SetpointError, StillWaiting


@dataclass(frozen=True, slots=True)
class _Residual:
    """What still differs: fields that the author specified, fields that nobody did, and whether some have to wait."""

    said: tuple[str, ...]
    unsaid: Mapping[str, str]
    waits: bool


async def settle(context: KindStepContext, look: LiveObservation, plan: Plan, planned: EffectivePlan) -> StepOutcome:
    """On record that nothing is left to do now. `plan` is what the step began with, `planned` what it ended with."""
    assert isinstance(look, Present)
    # What was withheld in the end is what is still to be put back.
    plan = replace(plan, withheld=planned.plan.withheld, because=planned.plan.because, held=planned.plan.held)
    intent, left = planned.followed, _residual(context, look, planned)
    at = Cookie(intent.digest, digest(look.live))
    wait = wait_result(context, intent, look)
    ready = _ready(left, plan)
    trouble = wait.trouble if wait is not None and ready is conditions.UP_TO_DATE else None
    if wait is not None and trouble is not None:
        ready = wait.ready
    found = _after(context, left, at)
    state = replace(
        found,
        body=body_digest_to_keep(context, found, look),
        operation=None,
        secrets=intent.resolved.versions,
        step=step_record(context, plan, at),
        contests=_done(context),
        creating=None,
        wait=None if wait is None else wait.memory,
    )
    shown = look.outputs if wait is None else {**look.outputs, **wait.shown}
    events = (context.event(*plan_event(plan)),) if plan.writes else ()
    context = await replace(context, state=state).set_ready(ready, shown, events)
    if ready is conditions.UP_TO_DATE and _is_stateful(context):
        cache_as_idle(context, intent, look.body, _until(context))
    if trouble is not None:
        return Stopped(_with_begun_action(trouble, plan))
    return Settled(plan, ready, _again(context, plan))


def _with_begun_action(trouble: SetpointError, plan: Plan) -> SetpointError:
    if isinstance(trouble, StillWaiting) and plan.writes:
        return StillWaiting(str(trouble), trouble.left, plan.writes[0].action.value)
    return trouble


def _residual(context: KindStepContext, look: LiveObservation, planned: EffectivePlan) -> _Residual:
    """On the fast path nothing can differ but what was accepted before."""
    if planned.plan.decision is Decision.IN_SYNC:
        return _Residual((), context.state.server_defaults, waits=False)
    return _Residual(*residual(planned.followed, look, context), waits=bool(planned.plan.withheld))


def _ready(left: _Residual, plan: Plan) -> ReadyCondition:
    if left.said:
        return conditions.not_converged(left.said)
    return conditions.contested(plan.because) if left.waits else conditions.UP_TO_DATE


def _after(context: KindStepContext, left: _Residual, at: Cookie) -> StoredState:
    """The memory of what was found: a cookie only where nothing differs that somebody minds."""
    before = context.state
    if left.said:
        attempt = replace(before.attempt or WriteAttempt(at.intent), intent=at.intent)
        # With something left to send, the attempt is not over yet.
        return replace(before, attempt=attempt if left.waits else replace(attempt, unconverged_at=at), cookie=None)
    if left.waits:
        # The cookie of before stays: it says that the author has not moved, and matches once the field is as it was.
        return replace(before, attempt=None, server_defaults=left.unsaid)
    return replace(before, attempt=None, cookie=at if _is_stateful(context) else None, server_defaults=left.unsaid)


def _done(context: KindStepContext) -> Oscillations:
    contests = context.state.contests
    return contests.done(context.engine.clock.now()) if contests.fields else contests


def _is_stateful(context: KindStepContext) -> bool:
    return context.kind.reconciliation is Reconciliation.STATEFUL


def _until(context: KindStepContext) -> float:
    """When there is something to forget."""
    contests, clock = context.state.contests, context.engine.clock
    expires_in = contests.expires_in(clock.now()) if contests.fields else None
    return inf if expires_in is None else clock.monotonic() + expires_in


def _again(context: KindStepContext, plan: Plan) -> float | None:
    """The seconds until the first of what is withheld may be put back."""
    if not plan.withheld:
        return None
    return context.state.contests.next_in(plan.withheld, context.engine.clock.now())


OBSERVE_ONLY: Final = f"nothing is written: {MANAGEMENT} is {Management.OBSERVE}"


def plan_paused(context: StepContext) -> PlannedStep:
    """The step of a paused resource: nothing is read, and only the condition is written."""
    plan = Plan(Decision.IN_SYNC, because=conditions.PAUSED.message, held=Hold.PAUSED)

    async def execute() -> StepOutcome:
        # A field that is not put back any more is not contested any more.
        forgetting = replace(context.state, contests=NO_OSCILLATIONS)
        await replace(context, state=forgetting).set_ready(conditions.PAUSED)
        return Settled(plan, conditions.PAUSED)

    return PlannedStep(plan, execute)


def plan_observed(context: KindStepContext, intent: Intent, look: LiveObservation, plan: Plan) -> PlannedStep:
    """The step of an observed resource: drift is reported in the condition, and nothing is written to the service."""
    held = as_observed_plan(plan)
    return PlannedStep(held, lambda: _report_drift(context, intent, look, held))


def as_observed_plan(plan: Plan) -> Plan:
    """The plan of a resource that is only observed."""
    return plan.hold(Hold.OBSERVED, OBSERVE_ONLY)


async def _report_drift(context: KindStepContext, intent: Intent, look: LiveObservation, plan: Plan) -> StepOutcome:
    ready = conditions.observed(tuple(str(change.path) for change in plan.withheld), is_there=isinstance(look, Present))
    wait = wait_result(context, intent, look)
    if wait is None:
        await context.set_ready(ready)
        return Settled(plan, ready)
    trouble = wait.trouble if ready.status == "True" else None
    if trouble is not None:
        ready = wait.ready
    context = replace(context, state=replace(context.state, wait=wait.memory))
    await context.set_ready(ready, {**outputs_in(context.resource.status), **wait.shown})
    return Settled(plan, ready) if trouble is None else Stopped(trouble)


def step_record(context: StepContext, plan: Plan, at: Cookie | None = None) -> JsonObject | None:
    """The last step that did or found something; an idle one, or one that waits on, changes nothing."""
    last, before = context.state.step, context.state.cookie
    if last is not None and not plan.writes and (_is_idle(context, plan) or _waits_on(last, plan)):
        return last
    digests: dict[str, Json] = {"before": _text(before), "after": _text(at)}
    return {"at": context.engine.clock.now(), "trigger": context.trigger, "cookie": digests, **plan.to_data()}


def _is_idle(context: StepContext, plan: Plan) -> bool:
    is_end_of_another = context.state.attempt is not None
    # An owner may have to wait before it can make anything.
    is_look = is_end_of_another or plan.decision in (Decision.IN_SYNC, Decision.FIRST_LOOK, Decision.CREATE)
    return is_look and not plan.withheld


def _waits_on(last: JsonObject, plan: Plan) -> bool:
    """Whether the same is withheld for the same reason, whatever others have made of it since."""
    return bool(plan.withheld) and last.get("because") == plan.because


def _text(cookie: Cookie | None) -> str | None:
    return None if cookie is None else str(cookie)


def records_creation(step: JsonObject | None) -> bool:
    """Whether a record is of a step that made an object."""
    match step:
        case {"writes": [{"action": Action.CREATE}, *_]}:
            return True
        case _:
            return False


def plan_event(plan: Plan) -> tuple[str, str]:
    """What a step did: the reason and the fields, values left out."""
    fields = join_names(str(change.path) for change in plan.changes)
    created = plan.writes[0].action is Action.CREATE
    if created:
        # One that an earlier step began, and could not tell of, has no fields left to name.
        return "Created", f"created with {fields}" if fields else "created"
    return "Updated", f"{plan.decision.value}: set {fields}"

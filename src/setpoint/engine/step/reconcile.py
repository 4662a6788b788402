"""One step for one resource. START HERE.

A step observes, decides, plans, and executes what is left to do. It may be killed after any await and run again:
what it is about to do is on record before it does it, and every verb is idempotent.
"""

import logging
from dataclasses import replace
from math import inf
from typing import Final, assert_never

from setpoint.core.decide import Decision, decide
from setpoint.core.plan import Plan
from setpoint.engine import conditions
from setpoint.engine.capabilities import SupportsWait
from setpoint.engine.context import (
    FINALIZER,
    EngineContext,
    FailedStep,
    Gone,
    KindStepContext,
    Management,
    PlannedStep,
    Settled,
    StepContext,
    StepOutcome,
    StepPlan,
    Stopped,
    step_context,
)
from setpoint.engine.intent import resolve_intent
from setpoint.engine.kind import Intent, LiveObservation, Reconciliation, Unchanged
from setpoint.engine.owners.reconcile import plan_owner_deletion, plan_owner_step
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.state import RECONCILE_REQUESTED, StoredState
from setpoint.engine.step.delete import may_resume_deletion, must_replace, plan_deletion, plan_replacement
from setpoint.engine.step.execute import InterruptedCreation, execute_plan, poll_operation
from setpoint.engine.step.finish import plan_observed, plan_paused, settle
from setpoint.engine.step.observe import cache_as_idle, is_listed_unchanged, observe_unless_unchanged
from setpoint.engine.step.plan import EffectivePlan, effective_plan, live_digest, live_mark, with_dry_run
from setpoint.engine.step.wait import report_read_failure
from setpoint.errors import (
    Bug,
    ManifestInvalid,
    RemoteError,
    RemoteUnavailable,
    Retry,
    SetpointError,
    StoreError,
    UserError,
)

_log: Final = logging.getLogger(__name__)


async def step(
    ref: ResourceRef, engine: EngineContext, *, trigger: str = "a look", asked: bool = False, anew: bool = False
) -> StepOutcome:
    """One step for `ref`. `asked`: the author wants another try at what the service, or somebody else, does not follow.

    `trigger` is for people: what made somebody take this step. `anew`: a wait that ran out has all of its time again.
    """
    started = engine.clock.monotonic()
    try:
        outcome = await _step(ref, engine, trigger, asked=asked, anew=anew)
    except StoreError as error:
        outcome = Stopped(error)
    except Exception as error:  # noqa: BLE001 - ours to mend, and no reason to drop what else is going on
        _log.exception("step broke", extra={"ref": str(ref)})
        # Without its text, which may hold what nobody should see.
        outcome = Stopped(Bug(f"{type(error).__name__} in the step of {ref}: a bug of ours; the log has its traceback"))
    decision = outcome.plan.decision.value if isinstance(outcome, Settled) else ""
    seconds = engine.clock.monotonic() - started
    engine.metrics.step_finished(ref.kind, _word(outcome), decision, seconds)
    return outcome


def _word(outcome: StepOutcome) -> str:
    return outcome.error.retry.name.lower() if isinstance(outcome, Stopped) else type(outcome).__name__.lower()


async def _step(ref: ResourceRef, engine: EngineContext, trigger: str, *, asked: bool, anew: bool) -> StepOutcome:
    undisturbed = None if asked else await _idle_outcome(ref, engine)
    if undisturbed is not None:
        return undisturbed
    if engine.idle_cache is not None:
        # From here on something may be written: what was remembered before then must not be gone by after.
        engine.idle_cache.drop(ref)
    resource = await engine.store.get(ref)
    if resource is None:
        return Gone()
    try:
        context = _begin_step(resource, engine, trigger, asked=asked, anew=anew)
    except UserError as error:
        return Stopped(error)
    try:
        context = await _resume(context)
        return await (await plan_step(context)).execute()
    except StoreError:
        raise
    except SetpointError as error:
        return await _stop(context, error)


def _begin_step(resource: Resource, engine: EngineContext, trigger: str, *, asked: bool, anew: bool) -> StepContext:
    """The step of `resource` as it begins; ManifestInvalid for a kind that is not known here."""
    state = StoredState.of(resource)
    request = resource.annotations.get(RECONCILE_REQUESTED)
    asked = asked or state.handled != request
    if asked:
        # What the service insists on is compared again, and a cookie that covers it would stand in the way.
        cookie = None if state.server_defaults else state.cookie
        state = replace(state, attempt=None, server_defaults={}, cookie=cookie, handled=request)
    return step_context(resource, engine, state, trigger=trigger, asked=asked, anew=anew or asked)


async def _resume(context: StepContext) -> StepContext:
    """The moment once an operation that an earlier step began is done; what nothing is done for now asks nothing."""
    if not isinstance(context, KindStepContext) or context.management is Management.PAUSED:
        return context
    if context.resource.is_deleting and not may_resume_deletion(context):
        return context
    return await poll_operation(context)


async def _idle_outcome(ref: ResourceRef, engine: EngineContext) -> StepOutcome | None:
    """The outcome when everything that a step goes by is what it was when the last one found nothing left to do."""
    rest = engine.idle_cache.of(ref) if engine.idle_cache is not None else None
    if rest is None or engine.clock.monotonic() >= rest.until:
        return None
    kind = engine.kinds[ref.group, ref.kind]
    try:
        found = await kind.observe(rest.location, rest.body)
    except SetpointError as error:
        if isinstance(error, RemoteUnavailable) and not isinstance(kind, SupportsWait):
            return Stopped(error)
        # The step that follows looks again, and puts on record whatever this was.
        return None
    return Settled(Plan(Decision.IN_SYNC), conditions.UP_TO_DATE) if isinstance(found, Unchanged) else None


async def preview(ref: ResourceRef, engine: EngineContext, *, trust_cookie: bool = True) -> Plan:
    """The plan of the next step, stopped before it writes. What would stop the step is raised.

    Without trust in cookies, everything is compared.
    """
    resource = await engine.store.get(ref)
    if resource is None:
        raise ManifestInvalid(f"{ref} is not declared: apply it first, or name its file with -f")
    state = StoredState.of(resource)
    state = state if trust_cookie else replace(state, cookie=None, body=None)
    # What a listing showed is for the step alone.
    found = await plan_step(step_context(resource, replace(engine, listed_objects=None), state))
    match found:
        case PlannedStep():
            return found.plan
        case FailedStep():
            raise found.error
        case _:
            assert_never(found)


async def plan_step(context: StepContext) -> StepPlan:
    """The step as far as it goes without writing: kinds and owners, kept or deleted."""
    resource = context.resource
    if isinstance(context, KindStepContext):
        return await (plan_deletion(context) if resource.is_deleting else _plan_object(context))
    owner = context.engine.owners[resource.ref.group, resource.ref.kind]
    return await (plan_owner_deletion(context, owner) if resource.is_deleting else plan_owner_step(context, owner))


async def _plan_object(context: KindStepContext) -> StepPlan:
    """The step of a resource that is to be there, stopped before it writes: the list of verbs."""
    if context.management is Management.PAUSED:
        return plan_paused(context)
    intent = await resolve_intent(context.resource, context.engine)
    _require_valid(context, intent)
    is_replaced = await must_replace(context, intent)
    try:
        look = Unchanged() if is_listed_unchanged(intent, context) else await observe_unless_unchanged(intent, context)
    except RemoteError as error:
        return _plan_read_failure(context, error)
    if isinstance(look, Unchanged):
        return _plan_idle(context, intent)
    begun = InterruptedCreation.of(context, intent, look)
    context = replace(context, state=begun.state).with_current_oscillations(intent.digest, live_mark(look))
    decision = _decide(intent, look, context)
    context = await with_dry_run(decision, intent, look, context)
    planned = effective_plan(decision, intent, look, context)
    if is_replaced:
        return plan_replacement(context, planned.plan)
    if context.management is Management.OBSERVE:
        return plan_observed(context, intent, look, planned.plan)
    return PlannedStep(begun.shown(planned.plan), lambda: _execute(context, intent, look, planned, begun))


async def _execute(
    context: KindStepContext, intent: Intent, look: LiveObservation, planned: EffectivePlan, begun: InterruptedCreation
) -> StepOutcome:
    """The only verbs that write for a resource that is to be there."""
    context = await begun.finish(intent, look, context)
    context = _claim(context, intent)
    context, look, left = await execute_plan(planned, intent, look, context)
    return await settle(context, look, begun.shown(planned.plan), left)


def _plan_idle(context: KindStepContext, intent: Intent) -> PlannedStep:
    plan = Plan(Decision.IN_SYNC)

    async def execute() -> StepOutcome:
        cache_as_idle(context, intent, context.state.body, inf)
        return Settled(plan, conditions.UP_TO_DATE)

    return PlannedStep(plan, execute)


def _plan_read_failure(context: KindStepContext, error: RemoteError) -> FailedStep:
    async def execute() -> StepOutcome:
        await report_read_failure(context, error)
        raise error

    return FailedStep(error, execute)


def _decide(intent: Intent, look: LiveObservation, context: KindStepContext) -> Decision:
    stateful = context.kind.reconciliation is Reconciliation.STATEFUL
    return decide(context.state.cookie if stateful else None, intent.digest, live_digest(look))


def _require_valid(context: KindStepContext, intent: Intent) -> None:
    """ManifestInvalid for a spec that cannot mean anything; one that was carried out before means something."""
    cookie = context.state.cookie
    if cookie is None or cookie.intent != intent.digest:
        _ = intent.declared


def _claim(context: KindStepContext, intent: Intent) -> KindStepContext:
    """With the finalizer and the location that have to be on record before the first write to the service."""
    finalizers = context.resource.finalizers
    if FINALIZER not in finalizers:
        context = replace(context, finalizers=(*finalizers, FINALIZER))
    if context.state.location == intent.location:
        return context
    # What was begun elsewhere came to nothing, and what was settled there says nothing of this object.
    here = replace(context.state, location=intent.location, creating=None, cookie=None, attempt=None)
    return replace(context, state=here)


async def _stop(context: StepContext, error: SetpointError) -> StepOutcome:
    """The step ends with `error` in the status, unless nothing is wrong with the resource: then another look is due."""
    if isinstance(error, RemoteUnavailable) or error.retry is Retry.STEP_AGAIN:
        return Stopped(error)
    # Read again, for the step may have written since.
    resource = await context.engine.store.get(context.resource.ref)
    if resource is not None:
        state = replace(StoredState.of(resource), handled=context.state.handled)
        now = replace(context, resource=resource, state=state)
        await now.set_ready(conditions.failure(error, deleting=resource.is_deleting))
    return Stopped(error)

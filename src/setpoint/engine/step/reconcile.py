"""One step for one resource. START HERE.

A step observes, decides, plans, and executes what is left to do. It may be killed after any await and run again:
what it is about to do is on record before it does it, and every verb is idempotent.
"""

import logging
from contextlib import suppress
from math import inf
from typing import Final, assert_never

from setpoint.core.plan import Plan
from setpoint.core.secret_fields import secret_texts, without_texts
from setpoint.core.values.deferred_dataclass import replace
from setpoint.core.values.messages import Message, message_of
from setpoint.engine import conditions
from setpoint.engine.capabilities import SupportsGeneratedSecret, SupportsProjects
from setpoint.engine.claims.claim import (
    announce_claim,
    catch_up,
    check_claim,
    check_new_claim,
    claim_keys_of_step,
    is_new_claim,
    release_claim,
)
from setpoint.engine.claims.own_location import chosen_candidate, located
from setpoint.engine.claims.record import (
    may_have_hidden_record,
    record_creation,
    recorded_state,
    restore_finalizers,
)
from setpoint.engine.contention.operation_queue import OperationQueues
from setpoint.engine.context import (
    FINALIZER,
    UNSPECIFIED_TRIGGER,
    EngineContext,
    KindStepContext,
    StepContext,
    step_context,
)
from setpoint.engine.intent import resolve_intent
from setpoint.engine.kind import Intent, LiveObservation, Present, SecretKeyReference, Unchanged, observe_decoded
from setpoint.engine.management import Management
from setpoint.engine.owners.reconcile import plan_owner_deletion, plan_owner_step
from setpoint.engine.references import dependencies_of, resolve_available
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.state import reconcile_request
from setpoint.engine.step.change_cause import report_drift
from setpoint.engine.step.delete import (
    as_replacement,
    delete_replaced,
    may_resume_deletion,
    must_replace,
    plan_deletion,
)
from setpoint.engine.step.execute import InterruptedCreation, execute_plan, poll_operation
from setpoint.engine.step.finish import adopted_object, plan_observed, plan_paused, settle
from setpoint.engine.step.observe import (
    IDLE,
    cache_as_idle,
    end_step,
    idle_step,
    is_listed_unchanged,
    observe_unless_unchanged,
)
from setpoint.engine.step.outcomes import FailedStep, Gone, PlannedStep, StepOutcome, StepPlan, Stopped, traced
from setpoint.engine.step.plan import EffectivePlan, plan_observation
from setpoint.engine.step.reconcile_request import request_trigger
from setpoint.engine.step.wait import report_read_failure
from setpoint.errors import (
    Bug,
    DefinitionOutdated,
    ManagementConflict,
    ManifestInvalid,
    OperationQueued,
    RemoteError,
    RemoteUnavailable,
    Retry,
    SetpointError,
    StoreError,
    UserError,
)

_log: Final = logging.getLogger(__name__)


@traced
async def step(
    ref: ResourceRef,
    engine: EngineContext,
    *,
    trigger: str = UNSPECIFIED_TRIGGER,
    requested: bool = False,
    restart_wait: bool = False,
) -> StepOutcome:
    """One step for `ref`. `trigger` is for the step record: what caused this step.

    `requested`: a reconcile was requested, and earlier attempts and backoff do not count. `restart_wait`: a wait that
    timed out has all of its timeout again.
    """
    idle = None if requested else await idle_step(ref, engine, trigger=trigger)
    if idle is not None:
        return idle
    started = engine.clock.monotonic()
    try:
        outcome = await _step(ref, engine, trigger, requested=requested, restart_wait=restart_wait)
    except StoreError as error:
        outcome = Stopped(error)
    except Exception as error:  # noqa: BLE001 - a bug, and no reason to stop the process
        _log.exception("step broke", extra={"ref": str(ref)})
        # Without its text, which may contain a secret.
        outcome = Stopped(Bug(f"{type(error).__name__} in the step of {ref}: a bug of ours; the log has its traceback"))
    end_step(ref, outcome, started, engine, trigger=trigger)
    return outcome


async def _step(
    ref: ResourceRef, engine: EngineContext, trigger: str, *, requested: bool, restart_wait: bool
) -> StepOutcome:
    try:
        engine = await engine.for_namespace(ref.namespace)
    except SetpointError as error:
        return await _stop_unbound(ref, engine, error)
    if engine.idle_cache is not None:
        # From here on the step may write: an entry from before must not be used after that.
        engine.idle_cache.drop(ref)
    resource = await engine.store.get(ref)
    if resource is None:
        return Gone()
    try:
        context = _begin_step(resource, engine, trigger, requested=requested, restart_wait=restart_wait)
    except UserError as error:
        return Stopped(error)
    try:
        engine.require_definition(ref.group_kind)
        context = await _resume(await record_creation(await restore_finalizers(context)))
        return await (await plan_step(context)).execute()
    except StoreError:
        raise
    except SetpointError as error:
        await _redact_error(error, context)
        return await _stop(context, error)


async def _stop_unbound(ref: ResourceRef, engine: EngineContext, error: SetpointError) -> StepOutcome:
    """Ends a step for which no tenant is known: no service is asked, and the status says why."""
    resource = None if isinstance(error, StoreError) else await engine.store.get(ref)
    if resource is None or ref.group_kind not in engine.resource_types:
        return Stopped(error)
    context = _begin_step(resource, engine, UNSPECIFIED_TRIGGER, requested=False, restart_wait=False)
    return await _stop(context, error)


def _begin_step(
    resource: Resource, engine: EngineContext, trigger: str, *, requested: bool, restart_wait: bool
) -> StepContext:
    """The context of the step as it begins; ManifestInvalid for an unknown kind."""
    status_edited = engine.is_status_edited(resource)
    engine.leave_status(resource)
    state = recorded_state(resource, engine)
    request = reconcile_request(resource.annotations)
    if request is not None and state.handled != request and not requested:
        trigger = request_trigger(request, is_in_cluster=engine.store.collects)
    requested = requested or state.handled != request
    if requested:
        # Server defaults are compared again, which a cookie that covers them would prevent.
        cookie = None if state.server_defaults else state.cookie
        state = replace(state, attempt=None, server_defaults={}, cookie=cookie, handled=request)
    context = step_context(
        resource, engine, state, trigger=trigger, requested=requested, restart_wait=restart_wait or requested
    )
    return replace(context, status_edited=status_edited) if status_edited else context


async def _resume(context: StepContext) -> StepContext:
    """The context once an operation of an earlier step is done; a paused or kept object is not polled."""
    if not isinstance(context, KindStepContext) or context.management is Management.PAUSED:
        return context
    if context.resource.is_deleting and not may_resume_deletion(context):
        return context
    return await poll_operation(context)


async def preview(ref: ResourceRef, engine: EngineContext, *, trust_cookie: bool = True) -> Plan:
    """The plan of the next step, stopped before it writes. An error that would stop the step is raised.

    Without `trust_cookie`, everything is compared.
    """
    return (await preview_step(ref, engine, trust_cookie=trust_cookie)).plan


async def preview_step(ref: ResourceRef, engine: EngineContext, *, trust_cookie: bool = True) -> PlannedStep:
    """The next step, stopped before it writes, which must not be executed; errors as above."""
    engine = await engine.for_namespace(ref.namespace)
    resource = await engine.store.get(ref)
    if resource is None:
        raise ManifestInvalid(f"{ref} is not declared: apply it first, or name its file with -f")
    state = recorded_state(resource, engine)
    state = state if trust_cookie else replace(state, cookie=None, body=None)
    # What lists and watches showed is for the step alone, and so are turns.
    engine = replace(engine, listed_objects=None, operations=OperationQueues(), idle_cache=None)
    context = step_context(resource, engine, state)
    try:
        found = await plan_step(context)
    except RemoteError as error:
        await _redact_error(error, context)
        raise
    match found:
        case PlannedStep():
            return found
        case FailedStep():
            await _redact_error(found.error, context)
            raise found.error
        case _:
            assert_never(found)


async def plan_step(context: StepContext) -> StepPlan:
    """The step up to its first write: for kinds and owners, reconciled or deleted."""
    resource = context.resource
    if isinstance(context, KindStepContext):
        return await (plan_deletion(context) if resource.is_deleting else _plan_object(context))
    owner = context.engine.owners[resource.ref.group_kind]
    return await (plan_owner_deletion(context, owner) if resource.is_deleting else plan_owner_step(context, owner))


async def _plan_object(context: KindStepContext) -> StepPlan:
    """The step of a resource that is not being deleted, stopped before it writes: the list of verbs."""
    if context.management is Management.PAUSED:
        return plan_paused(context)
    context.require_known_annotations()
    intent = await resolve_intent(context.resource, context.engine)
    found = await _plan_intent(context, intent)
    if context.management is Management.FULL and isinstance(context.kind, SupportsGeneratedSecret):
        from setpoint.engine.owners.generated_secret import secret_first

        found = await secret_first(found, context, _plan_object)
    if isinstance(found, FailedStep) or not isinstance(context.kind, SupportsProjects):
        return found
    return replace(found, plan=replace(found.plan, project=context.kind.project_of(intent.resource, intent.resolved)))


async def _plan_intent(context: KindStepContext, intent: Intent) -> StepPlan:
    _require_valid(context, intent)
    context = await check_new_claim(context, intent)
    context.require_turn(intent.location, is_new=is_new_claim(context, intent))
    if await must_replace(context, intent):
        return await _plan_replacement(context, intent)
    try:
        observed = (
            Unchanged() if is_listed_unchanged(intent, context) else await observe_unless_unchanged(intent, context)
        )
    except RemoteError as error:
        return _plan_read_failure(context, error)
    if isinstance(observed, Unchanged):
        return _plan_idle(context, intent)
    found = await located(context, intent, await chosen_candidate(context, observed))
    context, intent, observed = found.context, found.intent, found.observed
    if isinstance(context.kind, SupportsGeneratedSecret):
        from setpoint.engine.owners.issued_secret import plan_reissue

        reissue = await plan_reissue(context, intent, observed)
        if reissue is not None:
            return reissue
    begun = InterruptedCreation.of(context, intent, observed)
    context, planned = await plan_observation(
        replace(context, state=begun.state), intent, observed, is_created=begun.is_under_way
    )
    if context.management is Management.OBSERVE:
        return plan_observed(context, intent, observed, planned.plan)
    writes = bool(planned.plan.writes) or begun.follow_up is not None
    await check_claim(context, intent, observed, writes=writes)
    adopts = adopted_object(context, intent, observed, planned.plan)
    return PlannedStep(begun.shown(planned.plan), lambda: _execute(context, intent, observed, planned, begun), adopts)


async def _plan_replacement(context: KindStepContext, intent: Intent) -> StepPlan:
    """The step that deletes the object on record; the plan is for the new one.

    The step does not depend on that plan: the service may refuse the new object as long as the old one exists.
    """
    try:
        observed = await observe_decoded(intent.location, context.kind)
        _, planned = await plan_observation(context, intent, observed)
    except SetpointError as error:
        return FailedStep(error, lambda: delete_replaced(context))
    return PlannedStep(as_replacement(planned.plan), lambda: delete_replaced(context))


async def _execute(
    context: KindStepContext,
    intent: Intent,
    observed: LiveObservation,
    planned: EffectivePlan,
    begun: InterruptedCreation,
) -> StepOutcome:
    """The verbs that write for a resource that is not being deleted."""
    report_drift(planned.plan, intent.digest, context, is_there=isinstance(observed, Present))
    is_new, claims = is_new_claim(context, intent), context.engine.claims
    claim_keys = claim_keys_of_step(context, intent.location, observed) if is_new else ()
    with claims.claiming(context.resource.ref, claim_keys):
        context = await begun.finish(intent, observed, context)
        context = await announce_claim(_claim(context, intent), intent, observed)
        executed = await execute_plan(planned, intent, observed, context)
        context = executed.context
        outcome = await settle(context, executed.observed, begun.shown(executed.plan), executed.left)
        if is_new:
            await catch_up(context)
    return outcome


def _plan_idle(context: KindStepContext, intent: Intent) -> PlannedStep:
    async def execute() -> StepOutcome:
        cache_as_idle(await context.move_cookie(), intent, context.state.body, inf)
        return IDLE

    return PlannedStep(IDLE.plan, execute)


def _plan_read_failure(context: KindStepContext, error: RemoteError) -> FailedStep:
    async def execute() -> StepOutcome:
        await report_read_failure(context, error)
        raise error

    return FailedStep(error, execute)


def _require_valid(context: KindStepContext, intent: Intent) -> None:
    """ManifestInvalid for an invalid spec; one that was settled before is valid."""
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
    # The state of an object at another location says nothing about this one.
    state = replace(context.state, location=intent.location, creating=None, cookie=None, attempt=None, applied=None)
    # Another process may claim the object at the same time.
    is_pending = context.engine.claims.is_shared
    return replace(context, state=replace(state, is_location_lost=False, is_claim_pending=is_pending))


async def _redact_error(error: SetpointError, context: StepContext) -> None:
    """Redacts the secret values that a service repeats in its error: the status, events and logs will have the text."""
    if not isinstance(error, RemoteError):
        return
    texts = await _secret_texts(context)
    if without_texts(str(error), texts) != str(error):
        parts = (str(without_texts(part, texts)) if type(part) is str else part for part in message_of(error).parts)
        error.args = (Message(*parts), *error.args[1:])


async def _secret_texts(context: StepContext) -> frozenset[str]:
    """The secret values of the spec, and of the Secrets that it refers to."""
    resource, engine = context.resource, context.engine
    texts = engine.secret_fields.texts(resource.document)
    with suppress(SetpointError):
        keys = [one for one in dependencies_of(resource, engine.resource_types) if isinstance(one, SecretKeyReference)]
        texts |= secret_texts((await resolve_available(keys, resource.ref, engine)).secrets)
    return texts


async def _stop(context: StepContext, error: SetpointError) -> StepOutcome:
    """Ends the step with `error` in the status, unless the error is not about the resource: then it is only retried."""
    if isinstance(error, RemoteUnavailable | OperationQueued) or error.retry is Retry.STEP_AGAIN:
        return Stopped(error)
    # Read again: the step may have written since.
    resource = await context.engine.store.get(context.resource.ref)
    if resource is not None and isinstance(error, DefinitionOutdated) and may_have_hidden_record(context):
        # The cluster may still have a record of before this step, and hides it: any write would drop it for good.
        reason = conditions.failure(error, deleting=False).reason
        await context.engine.store.record_event(context.event(reason, str(error), is_warning=True))
    elif resource is not None:
        state = replace(recorded_state(resource, context.engine), handled=context.state.handled)
        is_released = isinstance(error, ManagementConflict) and error.releases_claim
        state = release_claim(state) if is_released else state
        now = replace(context, resource=resource, state=state, withdraws_claim=is_released, ended=())
        await now.set_ready(conditions.failure(error, deleting=resource.is_deleting))
    return Stopped(error)

"""Observes the live object, and skips decoding and planning when it is byte for byte what the cookie was made from."""

from typing import Any, Final

from setpoint.core.decide import Decision
from setpoint.core.plan import Plan
from setpoint.core.secret_paths import holds_secret
from setpoint.core.values.canonical import same
from setpoint.engine import conditions
from setpoint.engine.capabilities import SupportsWait, SupportsWatchedObjects
from setpoint.engine.context import UNSPECIFIED_TRIGGER, EngineContext, KindStepContext
from setpoint.engine.idle_cache import IdleEntry, ListedObject, state_digest
from setpoint.engine.kind import AnyKind, Intent, LiveObservation, Location, Present, Reconciliation, Unchanged
from setpoint.engine.management import Management
from setpoint.engine.metrics import BUGS, TERMINAL_ERRORS, StepMetrics
from setpoint.engine.references import OUTPUT, awaited_object, is_ready
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.state import StoredState, outputs_in
from setpoint.engine.step.outcomes import Settled, StepOutcome, Stopped
from setpoint.engine.step.reports import StepSubject, is_refusal
from setpoint.errors import RemoteUnavailable, Retry, SetpointError, forget_frames

# The outcome of a step that found nothing to do.
IDLE: Final = Settled(Plan(Decision.IN_SYNC), conditions.UP_TO_DATE)
_COUNTED_ERRORS: Final = {Retry.ON_EDIT: TERMINAL_ERRORS, Retry.BUG: BUGS}


async def observe_unless_unchanged(intent: Intent, context: KindStepContext) -> LiveObservation | Unchanged:
    """The live object; Unchanged when nothing changed since the step that made the cookie."""
    known = context.state.body if _is_settled(intent, context) else None
    found = context.engine.observations.get(context.resource.ref)
    if found is not None and found.location == intent.location and not context.requested:
        is_known = known is not None and isinstance(found.observation, Present) and found.observation.body == known
        return Unchanged() if is_known else found.observation
    # A reconcile that was requested asks the service itself.
    if context.requested:
        return await context.kind.observe(intent.location, known)
    return await observe_in_step(intent.location, known, context.kind, context.engine)


async def observe_in_step(
    location: Location, known: str | None, kind: AnyKind, engine: EngineContext
) -> LiveObservation | Unchanged:
    """The live object, as a watch of this process shows it or as the service answers; Unchanged if it is the known."""
    # A single command follows no watch: nothing would lead to another step.
    if engine.idle_cache is not None and isinstance(kind, SupportsWatchedObjects):
        return await kind.observe_watched(location, known)
    return await kind.observe(location, known)


async def _idle_outcome(ref: ResourceRef, entry: IdleEntry, engine: EngineContext) -> StepOutcome | None:
    """The outcome of a step that finds the live object as the entry has it, or gets no answer; None for any other step.

    The fast lane of resources at rest: one request, one digest, one comparison; nothing is read, decoded or written.
    """
    kind = engine.kinds[ref.group_kind]
    try:
        if isinstance(kind, SupportsWatchedObjects):
            found = await kind.observe_watched(entry.location, entry.body)
        else:
            found = await kind.observe(entry.location, entry.body)
    except SetpointError as error:
        if isinstance(error, RemoteUnavailable) and not isinstance(kind, SupportsWait):
            return Stopped(error)
        # The full step that follows observes again, and reports the error.
        return None
    return IDLE if isinstance(found, Unchanged) else None


async def idle_step(
    ref: ResourceRef, engine: EngineContext, *, trigger: str = UNSPECIFIED_TRIGGER
) -> StepOutcome | None:
    """The outcome of the step of an idle resource whose live object has not changed, or could not be observed.

    None when a full step is needed. Nothing is written: no lease has to be held for this.
    """
    idle_cache, started = engine.idle_cache, engine.clock.monotonic()
    entry = None if idle_cache is None else idle_cache.of(ref)
    if idle_cache is None or entry is None or started >= entry.until:
        return None
    try:
        bound = engine if engine.tenancy is None else await engine.for_namespace(ref.namespace)
        outcome = await _idle_outcome(ref, entry, bound)
    except Exception:  # noqa: BLE001 - the step that follows meets the same, and reports it
        outcome = None
    if outcome is None:
        # The step that follows may write: an entry from before must not be used after that.
        idle_cache.drop(ref)
    else:
        end_step(ref, outcome, started, engine, trigger=trigger)
    return outcome


def end_step(ref: ResourceRef, outcome: StepOutcome, started: float, engine: EngineContext, *, trigger: str) -> None:
    """Counts and reports how a step that began at `started` has ended."""
    engine.operations.step_ended(ref, outcome.error if isinstance(outcome, Stopped) else None)
    _measure(ref, outcome, engine.clock.monotonic() - started, engine.metrics)
    if isinstance(outcome, Stopped):
        if is_refusal(outcome.error):
            engine.reporter.refused(StepSubject(ref, trigger), outcome.error)
        # A long-running process keeps the last error of a resource.
        forget_frames(outcome.error)


def _measure(ref: ResourceRef, outcome: StepOutcome, seconds: float, metrics: StepMetrics) -> None:
    if isinstance(outcome, Stopped):
        retry = outcome.error.retry
        metrics.step_finished(ref.kind, retry.name.lower(), "", seconds)
        if retry in _COUNTED_ERRORS:
            metrics.count(_COUNTED_ERRORS[retry], ref.kind)
    else:
        label, decision = ("settled", outcome.plan.decision) if isinstance(outcome, Settled) else ("gone", "")
        metrics.step_finished(ref.kind, label, decision, seconds)


def is_listed_unchanged(intent: Intent, context: KindStepContext) -> bool:
    """Whether a list showed the live object, and nothing has changed since the step that made the cookie."""
    listed_objects, cookie = context.engine.listed_objects, context.state.cookie
    listed = None if listed_objects is None else listed_objects.take(context.resource.ref)
    if listed is None or cookie is None or not _is_settled(intent, context):
        return False
    return listed == ListedObject(intent.location, state_digest(cookie.live, outputs_in(context.resource.status)))


def _is_settled(intent: Intent, context: KindStepContext) -> bool:
    """Whether nothing is left to write or to report if the live object has not changed."""
    stored, cookie = context.state, context.state.cookie
    return (
        cookie is not None
        and cookie.intent == intent.digest
        and stored.location == intent.location
        and stored.attempt is None
        and stored.creating is None
        and not stored.oscillations.fields
        and not stored.flips.is_contested
        and not context.requested
        and not context.status_edited
        and context.kind.reconciliation is Reconciliation.STATEFUL
        and context.management is Management.FULL
        and is_ready(context.resource)
        and context.is_warning_reported
        and _is_output_settled(context.resource)
    )


def _is_output_settled(resource: Resource) -> bool:
    """Whether the output is settled: a read that failed leaves it unknown, though nothing has changed."""
    match resource.status.get(OUTPUT, {"state": "null"}):
        case {"state": "null"}:
            return True
        case {"state": "known"}:
            # A version before this one may have made a secret value an output: a full step takes it back.
            return not holds_secret(awaited_object(resource))
        case _:
            return False


def body_digest_to_keep(context: KindStepContext, after: StoredState, observed: Present[Any]) -> str | None:
    """The digest of the body to store. New bytes with the same digests and outputs are not worth a write."""
    if after.cookie is None:
        return None
    # The output of a wait comes from more than the observation.
    outputs = {name: value for name, value in outputs_in(context.resource.status).items() if name != OUTPUT}
    is_same = after.cookie == context.state.cookie and same(observed.outputs, outputs)
    return context.state.body if is_same else observed.body


def cache_as_idle(context: KindStepContext, intent: Intent, body: str | None, until: float) -> None:
    """Keeps the inputs of this step in the idle cache, so that the next step need not read them."""
    idle_cache, resource, stored = context.engine.idle_cache, context.resource, context.state
    if idle_cache is None or body is None or stored.cookie is None or stored.location != intent.location:
        return
    dependencies = tuple(intent.resolved.seen.items())
    state = state_digest(stored.cookie.live, outputs_in(resource.status))
    idle_cache.keep(resource.ref, IdleEntry(resource.revision, dependencies, stored.location, body, state, until))

"""The plan of one step: what differs, less what was tried already, and less oscillating fields that have to wait."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from setpoint.core.decide import Cookie, Decision
from setpoint.core.diff import FieldChange
from setpoint.core.overlay import Declared, overlay
from setpoint.core.plan import Action, Hold, Plan, PlannedWrite, plan_fields
from setpoint.core.schema.policy import Rule
from setpoint.core.schema.shape import atomic_ancestor
from setpoint.core.values.canonical import digest
from setpoint.core.values.json_types import MISSING, JsonObject, Missing
from setpoint.core.values.paths import Path
from setpoint.engine import conditions
from setpoint.engine.capabilities import SupportsDryRun
from setpoint.engine.context import KindStepContext
from setpoint.engine.kind import Absent, Intent, LiveObservation
from setpoint.engine.oscillation import Oscillation
from setpoint.engine.state import StoredState


def live_digest(observed: LiveObservation) -> str | Missing:
    """The digest of the fields of the live object that the kind models; MISSING when it does not exist."""
    return MISSING if isinstance(observed, Absent) else digest(observed.live)


def desired_tree(intent: Intent, observed: LiveObservation, context: KindStepContext) -> JsonObject:
    """The effective desired state; for a kind with dry runs, the desired state as declared."""
    if isinstance(context.kind, SupportsDryRun):
        return intent.declared.tree
    return overlay(*_sides(intent, observed, context))


@dataclass(frozen=True, slots=True)
class EffectivePlan:
    """A plan, and the intent that it follows: fields that are withheld count as unmanaged meanwhile."""

    plan: Plan
    followed: Intent


def effective_plan(
    decision: Decision, intent: Intent, observed: LiveObservation, context: KindStepContext
) -> EffectivePlan:
    """The writes of this step; oscillating fields in backoff are withheld, unless a reconcile was requested."""
    plan = plan_writes(decision, intent, observed, context)
    waiting = () if isinstance(observed, Absent) or context.requested else _waiting(plan, context)
    if not waiting:
        return EffectivePlan(plan, intent)
    paths = {oscillation.path for oscillation in waiting}
    contested = {change.path: _unit(intent, change, context) for change in plan.changes if str(change.path) in paths}
    rest = _without(contested, plan, intent, observed, context)
    left = {change.path for change in rest.plan.changes}
    withheld = tuple(change for change in plan.changes if change.path not in left)
    because = conditions.withheld_message(_paths(withheld), _first_time(waiting))
    held = replace(rest.plan, kept=plan.kept, withheld=withheld, because=because, held=Hold.CONTESTED)
    return replace(rest, plan=held)


def _unit(intent: Intent, change: FieldChange, context: KindStepContext) -> Path:
    """The unit that is unmanaged together with the field."""
    is_typed = not isinstance(context.kind, SupportsDryRun)
    return atomic_ancestor(intent.declared.shape, change.path) if is_typed else change.path


def _waiting(plan: Plan, context: KindStepContext) -> tuple[Oscillation, ...]:
    oscillations = context.state.oscillations
    return oscillations.waiting(plan.changes, context.engine.clock.now()) if oscillations.fields else ()


def _without(
    contested: Mapping[Path, Path], whole: Plan, intent: Intent, observed: LiveObservation, context: KindStepContext
) -> EffectivePlan:
    """The rest of the plan when each contested field is unmanaged for now."""
    policy = intent.declared.policy
    unmanaged = replace(policy, unmanaged=(*policy.unmanaged, *contested.values()))
    declared = replace(intent.declared, policy=unmanaged)
    followed = replace(intent, declare=lambda: declared)
    plan = plan_writes(whole.decision, followed, observed, context)
    remaining = {change.path for change in plan.changes} & contested.keys()
    if not remaining:
        return EffectivePlan(plan, followed)
    # A field inside an atomic value cannot be unmanaged alone: then the whole value is.
    wider = {path: unit.parent if path in remaining else unit for path, unit in contested.items()}
    return _without(wider, whole, intent, observed, context)


def _first_time(waiting: Iterable[Oscillation]) -> str:
    return min(oscillation.not_before for oscillation in waiting)


def live_mark(observed: LiveObservation) -> str:
    """Distinguishes this state of the live object from another: the digest of its bytes, or of its fields."""
    return "" if isinstance(observed, Absent) else observed.body or digest(observed.live)


def plan_writes(decision: Decision, intent: Intent, observed: LiveObservation, context: KindStepContext) -> Plan:
    """The writes that are left; none when both digests match, or neither changed since the service did not converge."""
    if decision is Decision.IN_SYNC or is_not_converging(intent, observed, context.state):
        return Plan(decision)
    if context.dry_run_writes is not None:
        return _dry_run_plan(decision, intent, observed, context)
    known, versions = context.state.secrets, intent.resolved.versions
    rotated = tuple(Path.parse(name) for name, version in versions.items() if known.get(name) != version)
    sending = replace(context.kind.sending(intent), resend=rotated)
    plan = plan_fields(decision, *_sides(intent, observed, context), sending)
    return plan if isinstance(observed, Absent) else _without_attempted(plan, intent, context.state)


async def with_dry_run(
    decision: Decision, intent: Intent, observed: LiveObservation, context: KindStepContext
) -> KindStepContext:
    """The context with the writes that a dry run says are left, for a kind with dry runs that is not in sync."""
    kind = context.kind
    if not isinstance(kind, SupportsDryRun) or decision is Decision.IN_SYNC:
        return context
    return replace(context, dry_run_writes=await kind.dry_run(intent, observed, decision))


def _dry_run_plan(decision: Decision, intent: Intent, observed: LiveObservation, context: KindStepContext) -> Plan:
    plan = Plan(decision, _dry_run_writes(intent, context))
    return plan if isinstance(observed, Absent) else _without_attempted(plan, intent, context.state)


def _dry_run_writes(intent: Intent, context: KindStepContext) -> tuple[PlannedWrite, ...]:
    """The writes of the dry run without unmanaged fields."""
    unmanaged = intent.declared.policy.unmanaged

    def is_managed(change: FieldChange) -> bool:
        return not any(path.covers(change.path) for path in unmanaged)

    return _only(is_managed, context.dry_run_writes or ())


def _only(is_wanted: Callable[[FieldChange], bool], writes: Iterable[PlannedWrite]) -> tuple[PlannedWrite, ...]:
    """The writes with these changes alone; a write without changes is dropped, except a creation."""
    cut = (replace(write, changes=tuple(filter(is_wanted, write.changes))) for write in writes)
    return tuple(write for write in cut if write.changes or write.action is Action.CREATE)


def residual(
    intent: Intent, observed: LiveObservation, context: KindStepContext
) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """The fields that still differ: the specified ones; and the unspecified ones with the digest of their value."""
    if context.dry_run_writes is not None:
        return _paths(Plan(Decision.FIRST_LOOK, _dry_run_writes(intent, context)).changes), {}
    sending = replace(context.kind.sending(intent), resend=())
    changes = plan_fields(Decision.FIRST_LOOK, *_sides(intent, observed, context), sending).changes
    specified = [change for change in changes if change.rule is Rule.SPEC]
    unspecified = {str(change.path): _value_digest(change) for change in changes if change not in specified}
    return _paths(specified), unspecified


def _value_digest(change: FieldChange) -> str:
    """The digest of the live value: a server default is one value of the field, not any."""
    return digest([] if isinstance(change.before, Missing) else [change.before])[:16]


def is_not_converging(intent: Intent, observed: LiveObservation, state: StoredState) -> bool:
    """Whether everything was sent for this intent, and the live object has not changed since the service ignored it."""
    attempt, live = state.attempt, live_digest(observed)
    if attempt is None or attempt.unconverged_at is None or isinstance(live, Missing):
        return False
    return attempt.unconverged_at == Cookie(intent.digest, live)


def _sides(
    intent: Intent, observed: LiveObservation, context: KindStepContext
) -> tuple[Declared, JsonObject | Missing]:
    """The desired state and the live state as trees of the same type."""
    if isinstance(observed, Absent):
        return intent.declared, MISSING
    view = context.kind.view(observed.live)
    return context.kind.fit_to_live(intent.declared, view), view


def _without_attempted(plan: Plan, intent: Intent, state: StoredState) -> Plan:
    """The plan without fields that were sent for this intent already, and without server defaults."""
    attempt = state.attempt
    # An attempt that did not converge is over: something has changed since, or nothing would be planned.
    going_on = attempt is not None and attempt.intent == intent.digest and attempt.unconverged_at is None
    sent = attempt.sent if attempt is not None and going_on else ()

    def is_left(change: FieldChange) -> bool:
        path = str(change.path)
        is_server_default = state.server_defaults.get(path) == _value_digest(change)
        return path not in sent and (change.rule is Rule.SPEC or not is_server_default)

    return replace(plan, writes=_only(is_left, plan.writes))


def _paths(changes: Iterable[FieldChange]) -> tuple[str, ...]:
    return tuple(str(change.path) for change in changes)

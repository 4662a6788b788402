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


def live_digest(look: LiveObservation) -> str | Missing:
    """The digest of what the kind models of the live object; MISSING when it is not there."""
    return MISSING if isinstance(look, Absent) else digest(look.live)


def desired_tree(intent: Intent, look: LiveObservation, context: KindStepContext) -> JsonObject:
    """The effective desired state; where the service says what would change, what the author asks for."""
    if isinstance(context.kind, SupportsDryRun):
        return intent.declared.tree
    return overlay(*_sides(intent, look, context))


@dataclass(frozen=True, slots=True)
class EffectivePlan:
    """A plan, and the intent as far as it is followed now: what is withheld is left to others meanwhile."""

    plan: Plan
    followed: Intent


def effective_plan(
    decision: Decision, intent: Intent, look: LiveObservation, context: KindStepContext
) -> EffectivePlan:
    """What this step has to send; contested fields whose time has not come are withheld, unless somebody asked."""
    plan = plan_writes(decision, intent, look, context)
    waiting = () if isinstance(look, Absent) or context.asked else _waiting(plan, context)
    if not waiting:
        return EffectivePlan(plan, intent)
    paths = {contest.path for contest in waiting}
    contested = {change.path: _unit(intent, change, context) for change in plan.changes if str(change.path) in paths}
    rest = _without(contested, plan, intent, look, context)
    left = {change.path for change in rest.plan.changes}
    withheld = tuple(change for change in plan.changes if change.path not in left)
    because = conditions.withheld_message(_paths(withheld), _first_time(waiting))
    held = replace(rest.plan, kept=plan.kept, withheld=withheld, because=because, held=Hold.CONTESTED)
    return replace(rest, plan=held)


def _unit(intent: Intent, change: FieldChange, context: KindStepContext) -> Path:
    """What has to be left alone for the field to be."""
    is_typed = not isinstance(context.kind, SupportsDryRun)
    return atomic_ancestor(intent.declared.shape, change.path) if is_typed else change.path


def _waiting(plan: Plan, context: KindStepContext) -> tuple[Oscillation, ...]:
    contests = context.state.contests
    return contests.waiting(plan.changes, context.engine.clock.now()) if contests.fields else ()


def _without(
    contested: Mapping[Path, Path], whole: Plan, intent: Intent, look: LiveObservation, context: KindStepContext
) -> EffectivePlan:
    """The rest of the plan when each contested field is unmanaged for now; by its value, where that cannot be."""
    policy = intent.declared.policy
    unmanaged = replace(policy, unmanaged=(*policy.unmanaged, *contested.values()))
    declared = replace(intent.declared, policy=unmanaged)
    followed = replace(intent, declare=lambda: declared)
    plan = plan_writes(whole.decision, followed, look, context)
    still = {change.path for change in plan.changes} & contested.keys()
    if not still:
        return EffectivePlan(plan, followed)
    # Inside a value that is one unit, a field cannot be left alone: then the unit is.
    wider = {path: place.parent if path in still else place for path, place in contested.items()}
    return _without(wider, whole, intent, look, context)


def _first_time(waiting: Iterable[Oscillation]) -> str:
    return min(contest.not_before for contest in waiting)


def live_mark(look: LiveObservation) -> str:
    """What tells this state of the live object from the one before, as well as can be."""
    return "" if isinstance(look, Absent) else look.body or digest(look.live)


def plan_writes(decision: Decision, intent: Intent, look: LiveObservation, context: KindStepContext) -> Plan:
    """What this step has to send; nothing when both digests match, or none moved since the service did not follow."""
    if decision is Decision.IN_SYNC or is_not_converging(intent, look, context.state):
        return Plan(decision)
    if context.dry_run_writes is not None:
        return _dry_run_plan(decision, intent, look, context)
    known, versions = context.state.secrets, intent.resolved.versions
    rotated = tuple(Path.parse(name) for name, version in versions.items() if known.get(name) != version)
    sending = replace(context.kind.sending(intent), resend=rotated)
    plan = plan_fields(decision, *_sides(intent, look, context), sending)
    return plan if isinstance(look, Absent) else _without_attempted(plan, intent, context.state)


async def with_dry_run(
    decision: Decision, intent: Intent, look: LiveObservation, context: KindStepContext
) -> KindStepContext:
    """The scene with what the service says is left to write, where it can say so and anything may be."""
    kind = context.kind
    if not isinstance(kind, SupportsDryRun) or decision is Decision.IN_SYNC:
        return context
    return replace(context, dry_run_writes=await kind.dry_run(intent, look, decision))


def _dry_run_plan(decision: Decision, intent: Intent, look: LiveObservation, context: KindStepContext) -> Plan:
    plan = Plan(decision, _dry_run_writes(intent, context))
    return plan if isinstance(look, Absent) else _without_attempted(plan, intent, context.state)


def _dry_run_writes(intent: Intent, context: KindStepContext) -> tuple[PlannedWrite, ...]:
    """What is left to write, without what is nobody's business by the intent."""
    others = intent.declared.policy.unmanaged

    def is_ours(change: FieldChange) -> bool:
        return not any(path.covers(change.path) for path in others)

    return _only(is_ours, context.dry_run_writes or ())


def _only(is_wanted: Callable[[FieldChange], bool], writes: Iterable[PlannedWrite]) -> tuple[PlannedWrite, ...]:
    """The writes with these changes alone; one that has none left is not sent. Making an object always is."""
    cut = (replace(write, changes=tuple(filter(is_wanted, write.changes))) for write in writes)
    return tuple(write for write in cut if write.changes or write.action is Action.CREATE)


def residual(
    intent: Intent, look: LiveObservation, context: KindStepContext
) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """The fields that still differ: those the author specified; and those nobody did, each with its value's digest."""
    if context.dry_run_writes is not None:
        return _paths(Plan(Decision.FIRST_LOOK, _dry_run_writes(intent, context)).changes), {}
    sending = replace(context.kind.sending(intent), resend=())
    changes = plan_fields(Decision.FIRST_LOOK, *_sides(intent, look, context), sending).changes
    said = [change for change in changes if change.rule is Rule.SPEC]
    return _paths(said), {str(change.path): _value_of(change) for change in changes if change not in said}


def _value_of(change: FieldChange) -> str:
    """What stands for the live value: what the service insists on is one value, not the field."""
    return digest([] if isinstance(change.before, Missing) else [change.before])[:16]


def is_not_converging(intent: Intent, look: LiveObservation, state: StoredState) -> bool:
    """Whether everything was sent for this intent, and the live object is what it was when that was of no use."""
    attempt, live = state.attempt, live_digest(look)
    if attempt is None or attempt.unconverged_at is None or isinstance(live, Missing):
        return False
    return attempt.unconverged_at == Cookie(intent.digest, live)


def _sides(intent: Intent, look: LiveObservation, context: KindStepContext) -> tuple[Declared, JsonObject | Missing]:
    """What is asked for and what is there, in the same terms."""
    if isinstance(look, Absent):
        return intent.declared, MISSING
    view = context.kind.view(look.live)
    return context.kind.fit_to_live(intent.declared, view), view


def _without_attempted(plan: Plan, intent: Intent, state: StoredState) -> Plan:
    """The plan without fields that were sent for this very intent, and those on which the service insists."""
    attempt = state.attempt
    # One that got stuck is over: something has moved since, or this plan would not have been asked for.
    going_on = attempt is not None and attempt.intent == intent.digest and attempt.unconverged_at is None
    sent = attempt.sent if attempt is not None and going_on else ()

    def is_left(change: FieldChange) -> bool:
        path = str(change.path)
        insists = state.server_defaults.get(path) == _value_of(change)
        return path not in sent and (change.rule is Rule.SPEC or not insists)

    return replace(plan, writes=_only(is_left, plan.writes))


def _paths(changes: Iterable[FieldChange]) -> tuple[str, ...]:
    return tuple(str(change.path) for change in changes)

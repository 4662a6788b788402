"""The plan of one step: what differs, less what was tried already, and less the fields that are held."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from setpoint.core.decide import Cookie, Decision, DecisionReason, decide
from setpoint.core.diff import FieldChange, is_immutable, redacted_change
from setpoint.core.filled_fields import path_mark
from setpoint.core.plan import Action, Hold, Plan, PlannedWrite, PlanOptions, plan_effective, retained_fields
from setpoint.core.schema.policy import Rule
from setpoint.core.schema.shape import atomic_ancestor
from setpoint.core.secret_fields import SecretFields
from setpoint.core.values.canonical import digest
from setpoint.core.values.deferred_dataclass import dataclass, replace
from setpoint.core.values.json_types import MISSING, JsonObject, Missing
from setpoint.core.values.paths import Path, get_at
from setpoint.core.write_attempt import WriteAttempt
from setpoint.engine.capabilities import (
    SupportsAliases,
    SupportsCreationCheck,
    SupportsDryRun,
    SupportsForesight,
    SupportsUpdateCheck,
)
from setpoint.engine.context import KindStepContext
from setpoint.engine.intent import is_only_revised
from setpoint.engine.kind import Absent, Intent, LiveObservation, Present, Reconciliation
from setpoint.engine.management import Management
from setpoint.engine.state import StoredState, known_server_defaults
from setpoint.engine.step.change_cause import ChangeCause, change_cause, unspecified_digests
from setpoint.engine.step.hold import held_fields, withhold

# Why nothing is planned for a resource that did not converge.
NOT_TAKEN: Final = (
    "sent before, the service did not take it: nothing is sent again until the spec or the live object changes; "
    "`setpoint reconcile` sends it again"
)
# Where the spec of a kind with dry runs has its object.
_MANIFEST: Final = Path(("spec", "manifest"))


def live_digest(observed: LiveObservation) -> str | Missing:
    """The digest of the fields of the live object that the kind models; MISSING when it does not exist."""
    return MISSING if isinstance(observed, Absent) else digest(observed.live)


def desired_tree(intent: Intent, observed: LiveObservation, context: KindStepContext) -> JsonObject:
    """The effective desired state; for a kind with dry runs, the desired state as declared."""
    if isinstance(context.kind, SupportsDryRun):
        return intent.declared.tree
    return intent.effective.over(observed, context.kind).tree


async def plan_observation(
    context: KindStepContext, intent: Intent, observed: LiveObservation, *, is_created: bool = False
) -> tuple[KindStepContext, "EffectivePlan"]:
    """The plan for this observation, and the context with what it is made from.

    `is_created`: an earlier step began to create the object, so that it is not adopted.
    """
    context = context.with_current_oscillations(intent.digest, live_mark(observed))
    decision = _decide(intent, observed, context)
    context = await with_dry_run(decision, intent, observed, context)
    planned = effective_plan(decision, intent, observed, context)
    if planned.plan.is_fast_path:
        return context, planned
    writes = planned.plan.writes if context.management is Management.FULL else ()
    if writes and isinstance(observed, Present) and isinstance(context.kind, SupportsUpdateCheck):
        context.kind.check_update(intent, writes, observed)
    plan = _continued(planned.plan, intent, context)
    plan = _with_reason(plan, intent, observed, context, is_created=is_created)
    return context, replace(planned, plan=replace(plan, retained=_retained(plan, intent, observed, context)))


def _decide(intent: Intent, observed: LiveObservation, context: KindStepContext) -> Decision:
    state, kind = context.state, context.kind
    cookie = state.cookie if kind.reconciliation is Reconciliation.STATEFUL else None
    live = live_digest(observed)
    if cookie is None or cookie.intent == intent.digest or isinstance(observed, Absent):
        return decide(cookie, intent.digest, live)
    is_revised = is_only_revised(intent, kind, cookie, state.applied)
    # The same bytes are the same object: only the new revision reads it otherwise.
    is_same_body = is_revised and state.body is not None and observed.body == state.body
    return decide(cookie, intent.digest, cookie.live if is_same_body else live, is_revised=is_revised)


def _continued(plan: Plan, intent: Intent, context: KindStepContext) -> Plan:
    """The plan, which may be the rest of an update that an earlier step began: its own writes are no drift."""
    attempt = context.state.attempt
    if attempt is None:
        return plan
    differing = (str(change.path) for change in (*plan.changes, *plan.withheld))
    return replace(plan, decision=attempt.continued(plan.decision, intent.digest, differing))


def _with_reason(
    plan: Plan, intent: Intent, observed: LiveObservation, context: KindStepContext, *, is_created: bool
) -> Plan:
    """The plan with what its decision does not say; that of a kind without cookies is what the comparison found."""
    state = context.state
    if isinstance(observed, Absent):
        was_there = state.location == intent.location and state.creating is None
        return replace(plan, reason=DecisionReason.DELETED if was_there else None)
    if plan.decision is not Decision.FIRST_LOOK or is_created:
        return plan
    if context.management is Management.FULL and _is_new_object(intent, context):
        return replace(plan, reason=DecisionReason.ADOPTED)
    if context.kind.reconciliation is Reconciliation.STATEFUL:
        return plan
    found = Decision.DIFFERS if plan.writes or plan.withheld else Decision.IN_SYNC
    return replace(plan, decision=found, reason=DecisionReason.COMPARED)


def _is_new_object(intent: Intent, context: KindStepContext) -> bool:
    """Whether no step for the object has come to an end; a claim may be that of a step that was killed."""
    state = context.state
    if state.location is None or state.location == intent.location:
        return state.step is None or state.location is None
    return not isinstance(context.kind, SupportsAliases)


def _retained(
    plan: Plan, intent: Intent, observed: LiveObservation, context: KindStepContext
) -> tuple[FieldChange, ...]:
    """The fields that the author took out of the spec, and that stay; of an adopted object, the protected ones."""
    if isinstance(observed, Absent) or context.management is not Management.FULL:
        return ()
    applied = context.state.applied if context.state.location == intent.location else None
    is_new = plan.is_adoption or plan.decision in (Decision.INTENT_CHANGED, Decision.BOTH)
    if isinstance(context.kind, SupportsDryRun) or not (is_new if applied is None else applied.named):
        return ()
    effective = intent.effective.over(observed, context.kind)
    assert not isinstance(effective.live, Missing)
    found = retained_fields(effective.declared, effective.live)
    if applied is None:
        return tuple(one for one in found if one.rule is Rule.PROTECTED)
    return tuple(one for one in found if path_mark(one.path) in applied.named)


@dataclass(frozen=True, slots=True)
class EffectivePlan:
    """A plan, and the intent that it follows: fields that are withheld count as unmanaged meanwhile."""

    plan: Plan
    followed: Intent
    # Every field that differs, whether it is written or not; None where that was not compared.
    differing: tuple[FieldChange, ...] | None = None


def effective_plan(
    decision: Decision,
    intent: Intent,
    observed: LiveObservation,
    context: KindStepContext,
    *,
    with_kept: bool = True,
) -> EffectivePlan:
    """The writes of this step, without the fields that are held (see `step.hold`).

    Without `with_kept`, the fields that keep their live value are not listed: the first plan of a step has them.
    """
    planned = plan_writes(decision, intent, observed, context, with_kept=with_kept)
    plan = planned.plan
    held = () if isinstance(observed, Absent) else held_fields(plan, intent.digest, context)
    if not held:
        return planned
    paths = {one.path for one in held}
    units = {change.path: _unit(intent, change, context) for change in plan.changes if str(change.path) in paths}
    rest = _without(units, plan, intent, observed, context)
    left = {change.path for change in rest.plan.changes}
    withheld = tuple(change for change in plan.changes if change.path not in left)
    return replace(rest, plan=withhold(replace(rest.plan, kept=plan.kept), withheld, held))


def _unit(intent: Intent, change: FieldChange, context: KindStepContext) -> Path:
    """The unit that is unmanaged together with the field."""
    is_typed = not isinstance(context.kind, SupportsDryRun)
    return atomic_ancestor(intent.declared.shape, change.path) if is_typed else change.path


def _without(
    units: Mapping[Path, Path], whole: Plan, intent: Intent, observed: LiveObservation, context: KindStepContext
) -> EffectivePlan:
    """The rest of the plan when the unit of each held field is unmanaged for now."""
    policy = intent.declared.policy
    unmanaged = replace(policy, unmanaged=(*policy.unmanaged, *units.values()))
    declared = replace(intent.declared, policy=unmanaged)
    followed = replace(intent, declare=lambda: declared)
    planned = plan_writes(whole.decision, followed, observed, context, with_kept=False)
    remaining = {change.path for change in planned.plan.changes} & units.keys()
    if not remaining:
        return planned
    # A field inside an atomic value cannot be unmanaged alone: then the whole value is.
    wider = {path: unit.parent if path in remaining else unit for path, unit in units.items()}
    return _without(wider, whole, intent, observed, context)


def live_mark(observed: LiveObservation) -> str:
    """Distinguishes this state of the live object from another: the digest of its bytes, or of its fields."""
    return "" if isinstance(observed, Absent) else observed.body or digest(observed.live)


def plan_writes(
    decision: Decision,
    intent: Intent,
    observed: LiveObservation,
    context: KindStepContext,
    *,
    with_kept: bool = True,
) -> EffectivePlan:
    """The writes that are left; none when both digests match, or neither changed since the service did not converge."""
    if decision is Decision.IN_SYNC:
        return EffectivePlan(Plan(decision), intent)
    if is_not_converging(intent, observed, context.state):
        left, _ = residual(intent, observed, context)
        return EffectivePlan(Plan(decision, withheld=left, because=NOT_TAKEN, held=Hold.NOT_CONVERGED), intent)
    if context.dry_run_writes is not None:
        return EffectivePlan(_dry_run_plan(decision, intent, observed, context), intent)
    rotated = tuple(_rotated(intent, context.state.secrets))
    sending = context.kind.sending(intent)
    asked = sending.resend if decision in (Decision.INTENT_CHANGED, Decision.BOTH) else ()
    sending = replace(sending, resend=(*asked, *rotated))
    plan = _plan_effective(decision, intent, observed, context, options=sending, with_kept=with_kept)
    if isinstance(observed, Absent):
        return EffectivePlan(plan, intent)
    # What is to be sent again does not differ.
    return EffectivePlan(_without_attempted(plan, intent, context), intent, None if sending.resend else plan.changes)


def _rotated(intent: Intent, known: Mapping[str, str]) -> Iterator[Path]:
    """The secrets that are sent again: those of another version than the one on record, or of none on record.

    Of one that is fixed when the object is created, the latter was sent then.
    """
    whole = intent.declared.shape.as_field
    for name, version in intent.resolved.versions.items():
        path = Path.parse(name)
        if known.get(name) != version and (name in known or not is_immutable(whole, path)):
            yield path


async def with_dry_run(
    decision: Decision, intent: Intent, observed: LiveObservation, context: KindStepContext
) -> KindStepContext:
    """The context with the writes that a dry run says are left, for a kind with dry runs that is not in sync."""
    kind = context.kind
    if not isinstance(kind, SupportsDryRun) or decision is Decision.IN_SYNC:
        return context
    foreseen = None
    if isinstance(kind, SupportsForesight) and _may_foresee(decision, context):
        foreseen = await kind.foresee(intent, observed)
    writes = await kind.dry_run(intent, observed, decision) if foreseen is None else (foreseen,)
    return replace(context, dry_run_writes=redacted_writes(writes, intent, observed, context.engine.secret_fields))


def _may_foresee(decision: Decision, context: KindStepContext) -> bool:
    """Whether nothing but the write depends on its changes: a plan shows them, and a hold may withhold some of them."""
    state = context.state
    return (
        # A step of a controller: a preview has no idle cache.
        context.engine.idle_cache is not None
        and decision in (Decision.CREATE, Decision.INTENT_CHANGED)
        and context.management is Management.FULL
        and not context.requested
        and state.attempt is None
        and state.creating is None
        and not state.oscillations.fields
        and not state.flips.is_contested
    )


def redacted_writes(
    writes: Iterable[PlannedWrite], intent: Intent, observed: LiveObservation, secrets: SecretFields
) -> tuple[PlannedWrite, ...]:
    """The writes without secret values: those of the object in the manifest, and of the live one."""
    wanted = get_at(intent.declared.tree, _MANIFEST)
    objects = (wanted, None if isinstance(observed, Absent) else observed.whole)
    cuts = [(one, secrets.redacted(one)) for one in objects if isinstance(one, Mapping)]
    # Without a secret value it is the same object.
    pairs = [(whole, cut) for whole, cut in cuts if whole is not cut]
    if not pairs:
        return tuple(writes)

    def shown(change: FieldChange) -> FieldChange:
        is_secret = any(get_at(whole, change.path) is not get_at(cut, change.path) for whole, cut in pairs)
        return redacted_change(change) if is_secret else change

    return tuple(replace(write, changes=tuple(map(shown, write.changes))) for write in writes)


def _dry_run_plan(decision: Decision, intent: Intent, observed: LiveObservation, context: KindStepContext) -> Plan:
    plan = Plan(decision, _dry_run_writes(intent, context))
    return plan if isinstance(observed, Absent) else _without_attempted(plan, intent, context)


def _dry_run_writes(intent: Intent, context: KindStepContext) -> tuple[PlannedWrite, ...]:
    """The writes of the dry run without unmanaged fields."""
    unmanaged = {path.steps for path in intent.declared.policy.unmanaged}

    def is_managed(change: FieldChange) -> bool:
        steps = change.path.steps
        return not (unmanaged and any(steps[:length] in unmanaged for length in range(len(steps) + 1)))

    return _only(is_managed, context.dry_run_writes or ())


def _only(is_wanted: Callable[[FieldChange], bool], writes: Iterable[PlannedWrite]) -> tuple[PlannedWrite, ...]:
    """The writes with these changes alone; a write without changes is dropped, except a creation."""
    cut = (_with_changes(write, tuple(filter(is_wanted, write.changes))) for write in writes)
    return tuple(write for write in cut if write.changes or write.action is Action.CREATE)


def _with_changes(write: PlannedWrite, changes: tuple[FieldChange, ...]) -> PlannedWrite:
    """The write with some of its changes; the same write with all of them, as mostly."""
    return write if len(changes) == len(write.changes) else replace(write, changes=changes)


def residual(
    intent: Intent,
    observed: LiveObservation,
    context: KindStepContext,
    differing: tuple[FieldChange, ...] | None = None,
) -> tuple[tuple[FieldChange, ...], tuple[FieldChange, ...]]:
    """The fields that still differ: those that are specified, and those that are not.

    `differing`: all of them, if the plan for this observation compared them.
    """
    if context.dry_run_writes is not None:
        return Plan(Decision.FIRST_LOOK, _dry_run_writes(intent, context)).changes, ()
    changes = differing
    if changes is None:
        sending = replace(context.kind.sending(intent), resend=())
        again = _plan_effective(Decision.FIRST_LOOK, intent, observed, context, options=sending, with_kept=False)
        changes = again.changes
    specified = tuple(change for change in changes if change.rule is Rule.SPEC)
    return specified, tuple(change for change in changes if change.rule is not Rule.SPEC)


def is_not_converging(intent: Intent, observed: LiveObservation, state: StoredState) -> bool:
    """Whether everything was sent for this intent, and the live object has not changed since the service ignored it."""
    attempt = state.attempt
    if attempt is None or attempt.unconverged_at is None or isinstance(observed, Absent):
        return False
    return attempt.unconverged_at == Cookie(intent.digest, digest(observed.live))


def _plan_effective(
    decision: Decision,
    intent: Intent,
    observed: LiveObservation,
    context: KindStepContext,
    *,
    options: PlanOptions,
    with_kept: bool,
) -> Plan:
    kind, found = context.kind, intent.effective.over(observed, context.kind)
    if isinstance(found.live, Missing) and isinstance(kind, SupportsCreationCheck):
        kind.check_creation(intent, found.tree)
    return plan_effective(decision, found.declared, found.live, wanted=found.tree, options=options, with_kept=with_kept)


def _without_attempted(plan: Plan, intent: Intent, context: KindStepContext) -> Plan:
    """The plan without fields that were sent for this intent already, and without server defaults."""
    attempt = context.state.attempt
    # An attempt that did not converge is over: something has changed since, or nothing would be planned.
    is_under_way = attempt is not None and attempt.intent == intent.digest and attempt.unconverged_at is None
    under_way = attempt if attempt is not None and is_under_way else WriteAttempt(intent.digest)
    unspecified = unspecified_digests(plan.changes)
    known = context.state.server_defaults
    defaults = known_server_defaults(known, unspecified)
    if defaults is not known:
        context = replace(context, state=replace(context.state, server_defaults=defaults))

    def is_left(change: FieldChange) -> bool:
        cause = change_cause(change, plan.decision, intent.digest, context)
        return str(change.path) not in under_way.sent and cause is not ChangeCause.SERVER_DEFAULT

    def is_oscillating(change: FieldChange) -> bool:
        # It may have been withheld when the write was sent; how often it is sent is decided elsewhere.
        return context.state.oscillations.at(change.path) is not None

    left = _only(is_left, plan.writes)
    whole = under_way.sent_writes
    return replace(
        plan,
        writes=tuple(
            one for write in left for one in (_only(is_oscillating, (write,)) if write.name in whole else (write,))
        ),
    )

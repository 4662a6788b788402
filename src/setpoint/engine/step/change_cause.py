"""Why a field of the live object differs: the author changed the intent, another writer the object, or it is a default.

Read by the plan, which leaves out server defaults and may withhold the rest, and before a write is sent, which
records reverts of drift.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

from setpoint.core.decide import Decision, DecisionReason
from setpoint.core.diff import FieldChange
from setpoint.core.plan import Action, Plan
from setpoint.core.schema.policy import Rule
from setpoint.core.values.canonical import digest
from setpoint.core.values.json_types import Missing
from setpoint.core.values.paths import Path
from setpoint.engine.contention.intent_flips import IntentFlips
from setpoint.engine.context import KindStepContext, StepContext
from setpoint.engine.kind import Reconciliation
from setpoint.engine.ports import field_manager_of
from setpoint.engine.references import is_ready
from setpoint.engine.state import StoredState
from setpoint.engine.step.reports import StepSubject

_SPEC: Final = Path(("spec",))


class ChangeCause(StrEnum):
    """Why a field of the live object differs from the desired state."""

    # The intent is new to this object, or it is not known which of the two changed.
    AUTHOR = "author"
    # A step settled for this intent, and another writer changed the object since.
    DRIFT = "drift"
    # The spec leaves the field out, and the service keeps a value of its own.
    SERVER_DEFAULT = "server default"


def change_cause(change: FieldChange, decision: Decision, intent: str, context: StepContext) -> ChangeCause:
    """The cause of one change of a plan with this decision and the digest of this intent."""
    if _is_server_default(change, context.state):
        return ChangeCause.SERVER_DEFAULT
    return write_cause(decision, intent, context)


def write_cause(decision: Decision, intent: str, context: StepContext) -> ChangeCause:
    """The cause of the writes of a plan, from which server defaults are left out: AUTHOR or DRIFT."""
    if isinstance(context, KindStepContext):
        is_drift = _is_drift(decision, intent, context)
    else:
        # Children that another writer deleted, all of them, are drift as well.
        is_drift = decision is Decision.DRIFTED or bool(context.state.oscillations.fields)
    return ChangeCause.DRIFT if is_drift else ChangeCause.AUTHOR


def report_drift(plan: Plan, intent: str, context: StepContext, *, is_there: bool = True) -> None:
    """Reports the fields of the live object that another writer changed, or that it deleted the object."""
    is_deleted = plan.reason is DecisionReason.DELETED
    changes = (*plan.changes, *plan.withheld)
    # With both changed, it is not known which fields are the author's, but for those of an update under way.
    is_drift = plan.decision is Decision.BOTH or write_cause(plan.decision, intent, context) is ChangeCause.DRIFT
    drifted = [change for change in changes if is_there and is_drift and not _is_server_default(change, context.state)]
    attempt = context.state.attempt if plan.decision is Decision.BOTH else None
    fields = [
        name for name in (str(change.path) for change in drifted) if not (attempt and attempt.explains(name, intent))
    ]
    context.engine.reporter.drift(StepSubject.of(context), fields, is_deleted=is_deleted)


async def flips_after(plan: Plan, intent: str, context: StepContext) -> IntentFlips:
    """The intents that were applied, once this plan is carried out; of one that returns, by which field manager."""
    state, now = context.state, context.engine.clock.now()
    changes = tuple(change for write in plan.writes if write.action is Action.UPDATE for change in write.changes)
    if not changes or write_cause(plan.decision, intent, context) is not ChangeCause.AUTHOR:
        return state.flips
    flips, manager = state.flips.still_active(now), ""
    if not flips.sides and state.cookie is not None:
        flips = flips.applied(state.cookie.intent, (), now)
    if flips.is_return(intent):
        # The fields of children are none of their owner's spec: any field of it, then.
        path = changes[0].path if isinstance(context, KindStepContext) else _SPEC
        manager = await field_manager_of(context.engine.store, context.resource, path)
    return flips.applied(intent, changes, now, manager=manager)


def _is_drift(decision: Decision, intent: str, context: KindStepContext) -> bool:
    if decision not in (Decision.FIRST_LOOK, Decision.DIFFERS):
        return decision is Decision.DRIFTED
    # Without a cookie: the last step for this intent left something else on record.
    attempt = context.state.attempt
    unconverged_at = None if attempt is None else attempt.unconverged_at
    was_stuck = unconverged_at is not None and unconverged_at.intent == intent
    is_stateless = context.kind.reconciliation is Reconciliation.STATELESS
    if context.state.flips.is_contested and context.state.flips.is_return(intent):
        # It was withheld as the author's.
        return False
    if context.state.oscillations.fields or was_stuck or _was_withheld(context.state, intent):
        return True
    return is_stateless and is_ready(context.resource)


def _was_withheld(state: StoredState, intent: str) -> bool:
    """Whether the step on record settled for this intent, and withheld a correction of drift."""
    match state.step:
        case {"withheld": [_, *_], "cookie": {"after": str(after)}}:
            return after.startswith(f"{intent}/")
        case _:
            return False


def unspecified_digests(changes: Iterable[FieldChange]) -> Mapping[str, str]:
    """The changes of fields that the spec leaves out, by path: each with the digest of its live value."""
    return {str(change.path): _value_digest(change) for change in changes if change.rule is not Rule.SPEC}


def _value_digest(change: FieldChange) -> str:
    """The digest of the live value: a server default is one value of the field, not any."""
    return digest([] if isinstance(change.before, Missing) else [change.before])[:16]


def _is_server_default(change: FieldChange, state: StoredState) -> bool:
    return change.rule is not Rule.SPEC and state.server_defaults.get(str(change.path)) == _value_digest(change)

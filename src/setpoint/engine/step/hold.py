"""Fields that differ and are not written now: why, and when to try again.

A new reason to withhold corrections of drift, such as a maintenance window, is a member of `Hold` and a rule in
`HOLD_RULES`: plan, condition, record and the time of the next step follow from it, for kinds and owners. A withheld
field counts as drift until the author changes the intent. Where author and another writer have both changed the
object since the last step, everything counts as the author's. An object that is missing is created at once.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

from setpoint.core.diff import FieldChange
from setpoint.core.plan import Hold, Plan
from setpoint.core.values.deferred_dataclass import dataclass, replace
from setpoint.engine import conditions
from setpoint.engine.conditions import ReadyCondition
from setpoint.engine.context import StepContext


@dataclass(frozen=True, slots=True)
class HeldField:
    """A field that is not written now: why, and the time (RFC 3339, UTC) from which it may be; empty if unknown."""

    path: str
    reason: Hold
    until: str = ""


@dataclass(frozen=True, slots=True)
class HoldRule:
    """A reason to withhold fields: which fields of a plan, the text for the operator, and the Ready condition.

    `find` gets the plan, the digest of its intent, and the step; `change_cause` says whether a change corrects drift.
    `message` gets the paths and the first time at which one of them may be written, if any is known.
    """

    reason: Hold
    find: Callable[[Plan, str, StepContext], Iterable[HeldField]]
    message: Callable[[Sequence[str], str], str]
    ready: Callable[[str], ReadyCondition]


def _in_backoff(plan: Plan, _intent: str, context: StepContext) -> Iterator[HeldField]:
    """Oscillating fields that may not be reverted yet."""
    for path, oscillation in context.state.oscillations.waiting(plan.changes, context.engine.clock.now()):
        yield HeldField(path, Hold.OSCILLATING, oscillation.not_before)


def _in_contest(plan: Plan, intent: str, context: StepContext) -> Iterator[HeldField]:
    """All fields of an intent that returns too soon."""
    until = context.state.flips.held_until(intent, context.engine.clock.now())
    for change in plan.changes if until else ():
        yield HeldField(str(change.path), Hold.CONTESTED, until)


# The reason of the first rule that holds a field is that of the plan.
HOLD_RULES: Final = (
    HoldRule(Hold.OSCILLATING, _in_backoff, conditions.oscillating_message, conditions.oscillating),
    HoldRule(Hold.CONTESTED, _in_contest, conditions.contested_message, conditions.oscillating),
)


def held_fields(plan: Plan, intent: str, context: StepContext) -> tuple[HeldField, ...]:
    """The fields of the plan that are not written now; none when a reconcile was requested."""
    if context.requested or not plan.writes:
        return ()
    return tuple(held for rule in HOLD_RULES for held in rule.find(plan, intent, context))


def withhold(plan: Plan, withheld: tuple[FieldChange, ...], held: Sequence[HeldField]) -> Plan:
    """The plan with these changes withheld: those of the held fields, and of fields that are written with them."""
    retry_at = _first_time(held)
    because = "; ".join(_messages([str(change.path) for change in withheld], held))
    return replace(plan, withheld=withheld, because=because, held=held[0].reason, retry_at=retry_at)


def _messages(paths: Sequence[str], held: Sequence[HeldField]) -> Iterator[str]:
    """The text of each reason; a field that is only written with a held one counts for the first reason."""
    reasons = {one.path: one.reason for one in reversed(held)}
    for rule in HOLD_RULES:
        mine = [path for path in paths if reasons.get(path, held[0].reason) is rule.reason]
        if mine:
            yield rule.message(mine, _first_time([one for one in held if one.reason is rule.reason]))


def _first_time(held: Iterable[HeldField]) -> str:
    return min((one.until for one in held if one.until), default="")


def withheld_condition(plan: Plan) -> ReadyCondition:
    """The Ready condition of a resource with withheld fields."""
    return next(rule for rule in HOLD_RULES if rule.reason is plan.held).ready(plan.because)


def seconds_until_retry(plan: Plan, now: str) -> float | None:
    """The seconds until the first withheld field may be written; None when none is withheld, or that is unknown."""
    if not plan.retry_at:
        return None
    return max(0.0, (datetime.fromisoformat(plan.retry_at) - datetime.fromisoformat(now)).total_seconds())

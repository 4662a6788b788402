"""Plans as people read them: field, before → after, why."""

from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from setpoint.cli.columns import Columns
from setpoint.core.canonical import canonical
from setpoint.core.decide import Decision
from setpoint.core.diff import FieldChange
from setpoint.core.plan import Action, Plan
from setpoint.core.policy import Rule
from setpoint.core.values import Json, Missing

_LONG_VALUE: Final = 60
_SIGNS = {Action.CREATE: "+", Action.UPDATE: "~", Action.REPLACE: "±", Action.DELETE: "-"}
_COLOURS = {Action.CREATE: "green", Action.UPDATE: "yellow", Action.REPLACE: "magenta", Action.DELETE: "red"}
_WHY = {
    Decision.CREATE: "not there yet",
    Decision.INTENT_CHANGED: "you changed your mind",
    Decision.DRIFTED: "the live object changed",
    Decision.BOTH: "both sides changed",
    Decision.FIRST_LOOK: "no cookie to go by",
    Decision.IN_SYNC: "nothing changed: fast path",
}
_RULES = {
    Rule.SPEC: "the spec says so",
    Rule.DEFAULT: "back to its default",
    Rule.PRUNED: "not in the spec",
    Rule.PROTECTED: "kept (protected)",
    Rule.FIXED: "kept (immutable)",
    Rule.CHOSEN: "kept (chosen by the service)",
    Rule.UNMANAGED: "kept (unmanaged)",
    Rule.LISTED: "kept (default-to-gcp-fields)",
    Rule.IGNORED: "kept (ignore-unspecified-fields)",
}


def plan_view(plan: Plan) -> RenderableType:
    """A plan at a glance: why, each write with its fields, and what was kept."""
    rows = [
        (_row(change, _SIGNS[write.action]), _COLOURS[write.action])
        for write in plan.writes
        for change in write.changes
    ]
    rows += [(_row(change, "!"), "yellow") for change in plan.withheld]
    rows += [(_row(change, "="), "dim") for change in plan.kept]
    fields = [Columns(gap=2, limit=_LONG_VALUE).lines(rows)] if rows else []
    rest = [] if plan.writes else [Text("Nothing to write.", style="green")]
    why = plan.because or f"{plan.decision.value}: {_WHY[plan.decision]}"
    return Group(Text(why, style="bold"), *fields, *rest)


def value_text(value: Json | Missing) -> str:
    """A value on one line, as JSON; `unset` where there is none."""
    return "unset" if isinstance(value, Missing) else canonical(value).decode()


def _row(change: FieldChange, sign: str) -> tuple[str, ...]:
    before, after = value_text(change.before), value_text(change.after)
    moved = before if before == after else f"{before} → {after}"
    return (sign, str(change.path), moved, _RULES.get(change.rule, change.rule.value))

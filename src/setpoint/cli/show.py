"""Plans as people read them: field, before → after, why."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.text import Text

from setpoint.cli.columns import Columns
from setpoint.cli.states import DONE_WORDS
from setpoint.core.canonical import canonical
from setpoint.core.decide import Decision
from setpoint.core.diff import FieldChange
from setpoint.core.paths import Path
from setpoint.core.plan import Action, Plan, Write
from setpoint.core.policy import Rule
from setpoint.core.values import MISSING, Json, Missing

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
    Rule.GENERATED: "as generated",
    Rule.MANAGED: "put back: the owner manages it",
    Rule.RETIRED: "removed: no longer generated, and nobody edited it",
    Rule.EDITED: "kept (a person's edit)",
    Rule.CONFLICTING: "kept (a person's edit; what is generated has changed, too)",
}
_REMOVED: Final = {
    Rule.EDITED: "kept away (a person removed it)",
    Rule.CONFLICTING: "kept away (a person removed it; what is generated has changed, too)",
}
_ADOPTED: Final = "adopted: it was nobody's"
_OWNERS: Final = Path(("metadata", "ownerReferences"))

_Row = tuple[tuple[str, ...], str]


def plan_view(plan: Plan) -> RenderableType:
    """A plan at a glance: why, each write with its fields, and what was kept; an owner's child by child."""
    fields = [plan_rows(plan)] if plan.writes or plan.withheld or plan.kept else []
    rest = [] if plan.writes else [Text("Nothing to write.", style="green")]
    why = plan.because or f"{plan.decision.value}: {_WHY[plan.decision]}"
    return Group(Text(why, style="bold"), *fields, *rest)


def value_text(value: Json | Missing) -> str:
    """A value on one line, as JSON; `unset` where there is none."""
    return "unset" if isinstance(value, Missing) else canonical(value).decode()


def is_of_owner(plan: Plan) -> bool:
    """Whether the plan is about the children of an owner, each as `ConfigMap/name`."""
    paths = (change.path for change in (*plan.withheld, *plan.kept))
    return any("/" in write.name for write in plan.writes) or any(map(_child_of, paths))


def plan_of(step: Mapping[str, Any]) -> Plan:
    """The plan that is on record of a step."""
    writes = (Write(Action(one["action"]), one["name"], tuple(map(_change, one["changes"]))) for one in step["writes"])
    kept, withheld = (tuple(map(_change, step.get(name, ()))) for name in ("kept", "withheld"))
    return Plan(Decision(step["decision"]), tuple(writes), kept, withheld, step.get("because", ""))


def _change(data: Mapping[str, Any]) -> FieldChange:
    before, after = (data.get(side, MISSING) for side in ("before", "after"))
    return FieldChange(Path.parse(data["path"]), before, after, Rule(data["rule"]))


def plan_rows(plan: Plan) -> Text:
    """Each write with its fields, and what was kept; of an owner child by child."""
    rows = _rows_of_children(plan) if is_of_owner(plan) else _rows(plan)
    return Columns(gap=2, limit=_LONG_VALUE).lines(rows)


def _rows(plan: Plan) -> Iterator[_Row]:
    for write in plan.writes:
        for change in write.changes:
            yield _row(change, _SIGNS[write.action]), _COLOURS[write.action]
    yield from ((_row(change, "!"), "yellow") for change in plan.withheld)
    yield from ((_row(change, "="), "dim") for change in plan.kept)


def _row(change: FieldChange, sign: str) -> tuple[str, ...]:
    before, after = value_text(change.before), value_text(change.after)
    moved = before if before == after else f"{before} → {after}"
    return (sign, str(change.path), moved, _why(change))


def _why(change: FieldChange) -> str:
    if isinstance(change.after, Missing) and change.rule in _REMOVED:
        return _REMOVED[change.rule]
    return _RULES.get(change.rule, change.rule.value)


# --- Plans of owners --------------------------------------------------------------------------------------------------


def _rows_of_children(plan: Plan) -> Iterator[_Row]:
    """A line for each child, and below it the fields that change, wait or are kept; a new one in one line."""
    writes = {write.name: write for write in plan.writes}
    others = (_child_of(change.path) for change in (*plan.withheld, *plan.kept))
    for name in dict.fromkeys((*writes, *others)):
        yield from _rows_of_child(name, writes.get(name), plan)


def _rows_of_child(name: str, write: Write | None, plan: Plan) -> Iterator[_Row]:
    if write is not None and write.action is not Action.UPDATE:
        yield (_SIGNS[write.action], name, DONE_WORDS[write.action]), _COLOURS[write.action]
        return
    yield ("=" if write is None else "~", name), "dim" if write is None else "yellow"
    changes = () if write is None else write.changes
    for sign, colour, some in (("~", "yellow", changes), ("!", "yellow", plan.withheld), ("=", "dim", plan.kept)):
        for change in some:
            if _child_of(change.path) == name:
                yield ("", *_told_below(change, sign)), colour


def _child_of(path: Path) -> str:
    """The child that a change is about; "" in any other plan."""
    head = path.steps[0] if path.steps else ""
    return head if isinstance(head, str) and "/" in head else ""


def _told_below(change: FieldChange, sign: str) -> tuple[str, ...]:
    """The change below the name of its child."""
    inside = Path(change.path.steps[1:])
    _, path, moved, why = _row(replace(change, path=inside), sign)
    # Who owns it by now is told in words: nobody reads a reference.
    return (f"{sign} {path}", "", _ADOPTED) if inside == _OWNERS else (f"{sign} {path}", moved, why)

"""Plans as text: field, before → after, rule; and the report of a preview of all resources."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.text import Text

from setpoint.cli.views.table import TextTable, fold_similar, one_line
from setpoint.clients.write_guard import BlockedWrite
from setpoint.core.decide import Decision, DecisionReason
from setpoint.core.diff import FieldChange
from setpoint.core.plan import Action, Plan, PlannedWrite, ProjectSource, ResolvedProject
from setpoint.core.schema.policy import Rule
from setpoint.core.step_record import SHORTENED
from setpoint.core.values.canonical import canonical
from setpoint.core.values.json_types import MISSING, Json, Missing
from setpoint.core.values.paths import Path
from setpoint.core.values.shortening import KNOWN_LATER, UNSET_TEXT
from setpoint.engine.conditions import retained_message
from setpoint.engine.management import MANAGED_LABELS
from setpoint.engine.step.preview import PreviewFinding, PreviewResult
from setpoint.library.outcome import ACTION_WORDS
from setpoint.replay.preview_report import PreviewReport

_MAX_ALIGNED_CELL: Final = 60
_SIGNS = {Action.CREATE: "+", Action.UPDATE: "~", Action.REPLACE: "±", Action.DELETE: "-"}
_COLOURS = {Action.CREATE: "green", Action.UPDATE: "yellow", Action.REPLACE: "magenta", Action.DELETE: "red"}
_DECISION_WORDS = {
    Decision.CREATE: "not there yet",
    Decision.INTENT_CHANGED: "what is declared changed",
    Decision.DRIFTED: "the live object changed",
    Decision.BOTH: "both sides changed",
    Decision.REVISED: "the kind's revision changed, what is declared did not",
    Decision.REVISED_AND_CHANGED: "the kind's revision changed, and the live object reads differently",
    Decision.FIRST_LOOK: "no cookie to go by",
    Decision.DIFFERS: "the live object is not as declared",
    Decision.IN_SYNC: "nothing changed: fast path",
}
REASON_WORDS: Final = {
    DecisionReason.DELETED: "it was deleted",
    DecisionReason.ADOPTED: "it was there before, and is adopted",
    DecisionReason.COMPARED: "compared in full",
}
_RULE_WORDS = {
    Rule.SPEC: "the spec says so",
    Rule.DEFAULT: "back to its default",
    Rule.PRUNED: "not in the spec",
    Rule.PROTECTED: "kept (protected)",
    Rule.FIXED: "kept (immutable)",
    Rule.CHOSEN: "kept (chosen by the service)",
    Rule.SERVER_DEFAULT: "kept (server default)",
    Rule.UNMANAGED: "kept (unmanaged)",
    Rule.LISTED: "kept (default-to-gcp-fields)",
    Rule.IGNORED: "kept (ignore-unspecified-fields)",
    Rule.GENERATED: "as generated",
    Rule.MANAGED: "reverted: the owner manages it",
    Rule.RETIRED: "removed: no longer generated, and not edited",
    Rule.EDITED: "kept (a person's edit)",
    Rule.CONFLICTING: "kept (a person's edit; what is generated has changed, too)",
}
_REMOVED_WORDS: Final = {
    Rule.EDITED: "kept away (a person removed it)",
    Rule.CONFLICTING: "kept away (a person removed it; what is generated has changed, too)",
}
_PROJECT_WORDS: Final[Mapping[ProjectSource, str]] = {
    ProjectSource.ANNOTATION: "by the annotation cnrm.cloud.google.com/project-id",
    ProjectSource.NAMESPACE_ANNOTATION: "by the annotation cnrm.cloud.google.com/project-id of the Namespace",
    ProjectSource.NAMESPACE: "by the name of the namespace",
    ProjectSource.ENVIRONMENT: "by the environment variable GOOGLE_CLOUD_PROJECT",
    ProjectSource.REFERENCE: "that of the instance",
    ProjectSource.RECORD: "as on record",
}
# The spec names none of these.
_MANAGED_PATHS: Final = tuple(Path(("metadata", "labels", name)) for name in MANAGED_LABELS)
_LABEL_WORDS: Final = "the label of managed objects"
_ADOPTED: Final = "adopted: it had no owner"
_OWNER_REFERENCES: Final = Path(("metadata", "ownerReferences"))

_Row = tuple[tuple[str, ...], str]


def plan_view(plan: Plan, *, is_later: bool = False) -> RenderableType:
    """A plan: the decision, each write with its fields, and kept fields; an owner's plan child by child.

    One that `is_later` follows what is waited for.
    """
    # A deletion has no fields.
    fields = [rows] if (rows := plan_rows(plan)) else []
    told = [Text(retained_message(plan.retained), style="yellow")] if plan.retained else []
    rest = [] if plan.writes else [Text("Nothing to write.", style="green")]
    words = _DECISION_WORDS[plan.decision] if plan.reason is None else REASON_WORDS[plan.reason]
    why = f"{'then ' if is_later else ''}{plan.because or f'{plan.decision.value}: {words}'}"
    where = [] if plan.project is None else [Text(project_text(plan.project))]
    return Group(Text(why, style="bold"), *where, *fields, *told, *rest)


def project_text(found: ResolvedProject) -> str:
    """The project of an object, and where it is named."""
    return f"project {found.project}, {_PROJECT_WORDS[found.source]}"


class _ShortenedValue(str):
    """A value as the record of a step has it: JSON, of which only the beginning is left."""

    __slots__ = ()


def value_text(value: Json | Missing) -> str:
    """A value on one line, as JSON; `unset` where there is none; of a record, as much as it has kept."""
    if isinstance(value, _ShortenedValue):
        return str(value)
    if value == KNOWN_LATER:
        return KNOWN_LATER
    return UNSET_TEXT if isinstance(value, Missing) else canonical(value).decode()


def recorded_value(change: Mapping[str, Any], side: str) -> Json | Missing:
    """One side of a change in the record of a step; it may have been shortened."""
    value: Json | Missing = change.get(side, MISSING)
    return _ShortenedValue(value) if side in change.get(SHORTENED, ()) else value


def is_owner_plan(plan: Plan) -> bool:
    """Whether the plan is about the children of an owner, each as `ConfigMap/name`."""
    paths = (change.path for change in (*plan.withheld, *plan.kept))
    return any("/" in write.name for write in plan.writes) or any(map(_child_of, paths))


def plan_from_record(step: Mapping[str, Any]) -> Plan:
    """The plan in the record of a step."""
    writes = (
        PlannedWrite(Action(one["action"]), one["name"], tuple(map(_change_from_record, one["changes"])))
        for one in step["writes"]
    )
    kept, withheld = (tuple(map(_change_from_record, step.get(name, ()))) for name in ("kept", "withheld"))
    return Plan(Decision(step["decision"]), tuple(writes), kept, withheld, step.get("because", ""))


def _change_from_record(data: Mapping[str, Any]) -> FieldChange:
    before, after = (recorded_value(data, side) for side in ("before", "after"))
    return FieldChange(Path.parse(data["path"]), before, after, Rule(data["rule"]))


def plan_rows(plan: Plan) -> Text:
    """Each write with its fields, and kept fields; an owner's plan child by child."""
    rows = _rows_of_children(plan) if is_owner_plan(plan) else _rows(plan)
    return TextTable(gap=2, limit=_MAX_ALIGNED_CELL).lines(rows)


def _rows(plan: Plan) -> Iterator[_Row]:
    for write in plan.writes:
        for change in write.changes:
            yield _row(change, _SIGNS[write.action]), _COLOURS[write.action]
    yield from ((_row(change, "!"), "yellow") for change in plan.withheld)
    yield from ((_row(change, "="), "dim") for change in plan.kept)


def _row(change: FieldChange, sign: str) -> tuple[str, ...]:
    before, after = value_text(change.before), value_text(change.after)
    moved = before if before == after else f"{before} → {after}"
    return (sign, str(change.path), moved, _rule_text(change))


def _rule_text(change: FieldChange) -> str:
    if isinstance(change.after, Missing) and change.rule in _REMOVED_WORDS:
        return _REMOVED_WORDS[change.rule]
    if isinstance(change.before, Missing) and change.rule is Rule.DEFAULT:
        return "the default"
    if change.rule is Rule.SPEC and change.path in _MANAGED_PATHS:
        return _LABEL_WORDS
    return _RULE_WORDS.get(change.rule, change.rule.value)


# --- Plans of owners --------------------------------------------------------------------------------------------------


def _rows_of_children(plan: Plan) -> Iterator[_Row]:
    """A line for each child, and below it the fields that change, are withheld or kept; one line for a new child."""
    writes = {write.name: write for write in plan.writes}
    others = (_child_of(change.path) for change in (*plan.withheld, *plan.kept))
    for name in dict.fromkeys((*writes, *others)):
        yield from _rows_of_child(name, writes.get(name), plan)


def _rows_of_child(name: str, write: PlannedWrite | None, plan: Plan) -> Iterator[_Row]:
    if write is not None and write.action is not Action.UPDATE:
        yield (_SIGNS[write.action], name, ACTION_WORDS[write.action]), _COLOURS[write.action]
        return
    yield ("=" if write is None else "~", name), "dim" if write is None else "yellow"
    changes = () if write is None else write.changes
    for sign, colour, some in (("~", "yellow", changes), ("!", "yellow", plan.withheld), ("=", "dim", plan.kept)):
        for change in some:
            if _child_of(change.path) == name:
                yield ("", *_row_below_child(change, sign)), colour


def _child_of(path: Path) -> str:
    """The child that a change belongs to; "" when the plan is not an owner's."""
    head = path.steps[0] if path.steps else ""
    return head if isinstance(head, str) and "/" in head else ""


def _row_below_child(change: FieldChange, sign: str) -> tuple[str, ...]:
    """The row of a change below the name of its child."""
    inside = Path(change.path.steps[1:])
    _, path, moved, why = _row(replace(change, path=inside), sign)
    # A change of the owner reference is shown in words.
    return (f"{sign} {path}", "", _ADOPTED) if inside == _OWNER_REFERENCES else (f"{sign} {path}", moved, why)


_FINDING_STYLES: Final[Mapping[PreviewFinding, str]] = {
    PreviewFinding.IN_SYNC: "green",
    PreviewFinding.ONE_TIME: "cyan",
    PreviewFinding.HELD: "dim",
    PreviewFinding.WAITING: "yellow",
    PreviewFinding.WRITES: "yellow",
    PreviewFinding.UNSETTLED: "red",
    PreviewFinding.MASKED: "red",
    PreviewFinding.FAILED: "red",
}
_FINDING_WORDS: Final[Mapping[PreviewFinding, str]] = {
    PreviewFinding.ONE_TIME: "the cookie does not match; nothing to write, and in sync after one step",
    PreviewFinding.UNSETTLED: "nothing to write, and no cookie ever matches: the object reads differently each time",
    PreviewFinding.MASKED: "the cookie says in sync, and a full comparison does not",
}


def preview_report_view(found: PreviewReport, *, quiet: bool = False) -> RenderableType:
    """The whole report. Resources in sync are only counted, and of many similar ones only some are listed.

    With `quiet`, only failures are listed.
    """
    counted = [one for one in PreviewFinding if _FINDING_STYLES[one] != "red"] if quiet else [PreviewFinding.IN_SYNC]
    loud = [one for one in found.found if one.finding not in counted]
    parts = list(
        fold_similar(loud, _preview_lines, lambda one: (one.ref.kind, one.finding, one.fields, _finding_text(one)))
    )
    parts += [Text(_blocked_line(one), style="red") for one in found.blocked]
    parts += [Text(f"not recorded: {one}", style="red") for one in found.missed]
    return Group(*parts, preview_report_summary(found) if found.found else Text("Nothing is declared here."))


def preview_report_summary(found: PreviewReport) -> RenderableType:
    """The number of resources by kind and finding."""
    findings = [one for one in PreviewFinding if found.with_findings(one)]
    rows: list[tuple[tuple[str, ...], str]] = [
        ((kind, *(str(counts.get(one, 0)) for one in findings)), "") for kind, counts in sorted(found.counts.items())
    ]
    return TextTable("KIND", *(one.value.upper() for one in findings)).lines(rows)


def _preview_lines(one: PreviewResult) -> Iterator[RenderableType]:
    plan, style = one.shown, _FINDING_STYLES[one.finding]
    yield Text(f"{one.ref} {one.finding.value}: {_finding_text(one)}", style=style)
    if plan is not None and (plan.writes or plan.withheld):
        yield plan_rows(plan)


def _finding_text(one: PreviewResult) -> str:
    if one.plan is None:
        return one_line(one.trouble)
    why = _FINDING_WORDS.get(one.finding, "") or one.plan.because or one.plan.decision.value
    return f"{why}; without a cookie: {one_line(one.trouble)}" if one.trouble else why


def _blocked_line(one: BlockedWrite) -> str:
    caller = f", tried for {one.caller}" if one.caller else ""
    fields = f": {', '.join(one.fields)}" if one.fields else ""
    return one_line(f"blocked: {one}{caller}{fields}")

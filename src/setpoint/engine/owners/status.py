"""The status and events of an owner after a step: which edits were kept, what was reverted, what was created."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from setpoint.core.conditions import (
    Condition,
    ConditionReason,
    ConditionType,
    conditions_from_data,
    conditions_to_data,
    find_condition,
    remove_condition,
    set_condition,
)
from setpoint.core.decide import Decision
from setpoint.core.merge.children import last_generated_status
from setpoint.core.merge.merge_report import (
    Resolution,
    conflicting_fields,
    edits_condition,
    persistent_resolutions,
    report_summary,
)
from setpoint.core.plan import Action, PlannedWrite
from setpoint.core.unstructured import display_name
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.engine.conditions import condition_of, join_names
from setpoint.engine.context import StepContext
from setpoint.engine.owners.children import CONFLICTS, LAST_GENERATED, OwnerPlan
from setpoint.engine.ports import EventRecord
from setpoint.engine.resource import Resource
from setpoint.engine.state import outputs_in

_ENGINE_REASONS: Final = frozenset(ConditionReason) - {ConditionReason.NOT_READY}
# So many conflicts, with names of at most so many bytes, are recorded in a status.
_MAX_CONFLICTS: Final = 50
_MAX_CONFLICT_BYTES: Final = 300


def is_waiting_for_children(resource: Resource) -> bool:
    """Whether the last step of an owner left nothing to do, and it is not ready: the reason is about its children."""
    ready = condition_of(resource, ConditionType.READY)
    return ready is not None and ready.status == "False" and ready.reason not in _ENGINE_REASONS


def owner_outputs(context: StepContext, planned: OwnerPlan, shown: JsonObject | None) -> JsonObject:
    """The outputs of the status after a step; `shown` is the owner's own part, or None when that is unknown."""
    status = context.resource.status
    own = outputs_in(status) if shown is None else shown
    memory, conflicts = status.get(LAST_GENERATED), status.get(CONFLICTS)
    conditions = conditions_from_data(status.get("conditions"))
    if planned.plan.decision is not Decision.IN_SYNC or planned.children.plans:
        memory = _last_generated_after(context, planned)
        holding = persistent_resolutions(
            [one for child_plan in planned.children.plans for one in child_plan.resolutions],
            _recorded_conflicts(context),
        )
        conflicts = _bounded_conflicts([*_unobserved_conflicts(context, planned), *conflicting_fields(holding)])
        if planned.children.error is None or find_condition(conditions, ConditionType.EDITED) is None:
            conditions = set_condition(conditions, edits_condition(holding), context.engine.clock.now())
    incomplete = planned.observation.generated.warnings
    warnings = (*incomplete, *context.warnings)
    if warnings:
        reason = ConditionReason.INCOMPLETE if incomplete else ConditionReason.ANNOTATION_IGNORED
        warned = Condition(ConditionType.WARNED, "True", reason, "; ".join(warnings))
        conditions = set_condition(conditions, warned, context.engine.clock.now())
    else:
        conditions = remove_condition(conditions, ConditionType.WARNED)
    kept = {name: value for name, value in ((LAST_GENERATED, memory), (CONFLICTS, conflicts)) if value}
    bare = {name: value for name, value in own.items() if name not in (LAST_GENERATED, CONFLICTS)}
    return {**bare, **kept, "conditions": conditions_to_data(conditions)}


def _last_generated_after(context: StepContext, planned: OwnerPlan) -> Json:
    """The last generated state after the step; of children that were not written, what is recorded stays."""
    found = context.resource.status.get(LAST_GENERATED)
    before = found if isinstance(found, Mapping) else {}
    done = [one.child for one in planned.children.plans if one.child.key not in planned.withheld]
    now = last_generated_status(done)
    assert isinstance(now, dict)
    is_whole = planned.children.error is None
    kept = {key: memory for key, memory in before.items() if not is_whole or key in planned.withheld}
    return {**kept, **now}


def _bounded_conflicts(found: Sequence[str]) -> Sequence[str]:
    """The conflicts that are recorded; any other is reported by the step that finds it, and by no later one."""
    return [one for one in found if len(one.encode("utf-8", "surrogatepass")) <= _MAX_CONFLICT_BYTES][:_MAX_CONFLICTS]


def _recorded_conflicts(context: StepContext) -> list[str]:
    """The fields in conflict before this step."""
    recorded = context.resource.status.get(CONFLICTS)
    return [one for one in recorded if isinstance(one, str)] if isinstance(recorded, list | tuple) else []


def _unobserved_conflicts(context: StepContext, planned: OwnerPlan) -> list[str]:
    """Those of them in children that were not planned because of an error: they stay recorded."""
    seen = tuple(f"{display_name(one.child.object)} " for one in planned.children.plans)
    return (
        []
        if planned.children.error is None
        else [one for one in _recorded_conflicts(context) if not one.startswith(seen)]
    )


def owner_events(context: StepContext, planned: OwnerPlan, outputs: JsonObject) -> Iterator[EventRecord]:
    """The events of a step: what it wrote, and which edits it found; `context` is from before the status changes."""
    before = context.resource
    written = [one.write for one in planned.to_write if one.write is not None]
    for reason, message in _write_events(written, planned.plan.decision):
        yield context.event(reason, message)
    # Only a step that was completed sets this condition: what a killed one created was never reported.
    has_ended = condition_of(before, ConditionType.EDITED) is not None and LAST_GENERATED in before.status
    for one in planned.to_write:
        if one.child.filled_on_create and has_ended and one.child.key not in planned.observation.live:
            what = f"{one.child.key} was gone and is made anew, with {one.child.filled_on_create}"
            yield context.event("MadeAnew", f"{what}: tell the users of the old one", is_warning=True)
    findings = [finding for one in planned.to_write for finding in one.resolutions]
    for resolution, reason in ((Resolution.REVERTED, "Reverted"), (Resolution.RETIRED, "Retired")):
        mine = [one for one in findings if one.resolution is resolution]
        if mine:
            text = f"{report_summary(mine)}: {mine[0].why}"
            yield context.event(reason, text, is_warning=resolution is Resolution.REVERTED)
    yield from _condition_events(context, outputs)


def _condition_events(context: StepContext, outputs: JsonObject) -> Iterator[EventRecord]:
    after = conditions_from_data(outputs.get("conditions"))
    for type_ in (ConditionType.EDITED, ConditionType.WARNED):
        was, now = condition_of(context.resource, type_), find_condition(after, type_)
        if now is not None and now != was and (was is not None or now.status == "True"):
            is_warning = type_ is ConditionType.WARNED or now.reason == ConditionReason.CONFLICTING
            yield context.event(now.reason, now.message, is_warning=is_warning)


def _write_events(writes: Sequence[PlannedWrite], decision: Decision) -> Iterable[tuple[str, str]]:
    by_kind: dict[tuple[str, Action], list[PlannedWrite]] = defaultdict(list)
    for write in writes:
        by_kind[write.name.partition("/")[0], write.action].append(write)
    for (kind, action), mine in by_kind.items():
        if action is Action.CREATE:
            yield f"{kind}Created", f"created {join_names(write.name for write in mine)}"
        else:
            fields = join_names(str(change.path) for write in mine for change in write.changes)
            yield f"{kind}Updated", f"{decision.value}: set {fields}"

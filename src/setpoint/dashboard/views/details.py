"""One resource with everything that is on record about it, without secret values."""

from collections.abc import Mapping, Sequence
from typing import Final, cast

from msgspec import UNSET

from setpoint.core.conditions import Condition
from setpoint.core.redaction import redact_record, redact_untyped
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import MISSING, Json, JsonObject, Missing
from setpoint.core.values.paths import Path, get_at
from setpoint.core.wait.outputs import Known, Null, Unknown
from setpoint.dashboard.access.viewer import Sees
from setpoint.dashboard.api.models import Row
from setpoint.dashboard.api.resource_models import (
    ConditionModel,
    Contest,
    Digests,
    EventModel,
    FieldChangeModel,
    LastStep,
    NextStep,
    OutputModel,
    ResourceDetails,
    WriteModel,
)
from setpoint.dashboard.views.fleet import FleetRows
from setpoint.dashboard.views.graph import children_of, dependants_of, needed_by
from setpoint.dashboard.views.rows import id_of, objects_in, text_in
from setpoint.engine.claims.object_claims import location_text
from setpoint.engine.ports import EventRecord
from setpoint.engine.references import OUTPUT
from setpoint.engine.resource import ResourceRef
from setpoint.engine.state import StoredState, outputs_in
from setpoint.errors import UserError
from setpoint.library.declared import DeclaredResource
from setpoint.library.inspection.records import ResourceDescription, StepExplanation

_MAX_EVENTS: Final = 50
_UNTRACKED: Final = OutputModel(path="output", state="null", value=None, reason="not tracked: it waits for no field")


@dataclass(frozen=True, slots=True)
class Relations:
    """The resources beside one: its owner, its children, what it depends on, and what depends on it."""

    owner: ResourceRef | None
    children: tuple[ResourceRef, ...]
    depends_on: tuple[ResourceRef, ...]
    dependants: tuple[ResourceRef, ...]

    @property
    def refs(self) -> tuple[ResourceRef, ...]:
        """All of them."""
        owner = () if self.owner is None else (self.owner,)
        return (*owner, *self.children, *self.depends_on, *self.dependants)

    def seen_by(self, sees: Sees) -> "Relations":
        """Those that may be seen."""
        children, depends_on, dependants = (
            tuple(filter(sees, one)) for one in (self.children, self.depends_on, self.dependants)
        )
        return Relations(self.owner if self.owner and sees(self.owner) else None, children, depends_on, dependants)


def relations_of(ref: ResourceRef, rows: FleetRows) -> Relations:
    """The resources beside one."""
    row = rows.get(ref)
    owner = None if row is None else row.owner
    return Relations(owner, children_of(ref, rows), needed_by(ref, rows), dependants_of(ref, rows))


def details_of(
    described: ResourceDescription,
    explained: StepExplanation,
    relations: Relations,
    row: Row,
    *,
    next_at: str | None = None,
) -> ResourceDetails:
    """The details of a resource whose document is redacted. `next_at`: when its next step is due, if that is known."""
    resource = described.resource
    state = StoredState.of(resource.resource)
    document = resource.document
    cookie = None if state.cookie is None else Digests(intent=state.cookie.intent, live=state.cookie.live)
    return ResourceDetails(
        row=row,
        manifest={name: value for name, value in document.items() if name != "status"},
        status=dict(resource.status),
        live=None,
        conditions=tuple(map(_condition, resource.conditions)),
        events=tuple(map(event_model, described.events[-_MAX_EVENTS:])),
        outputs=tuple(_outputs(resource)),
        cookie=cookie,
        digests=None,
        is_fast=None,
        location=resource.location,
        location_text=None if resource.location is None else location_text(resource.location),
        owner=None if relations.owner is None else id_of(relations.owner),
        children=_ids(relations.children),
        depends_on=_ids(relations.depends_on),
        dependants=_ids(relations.dependants),
        last_step=last_step(explained),
        next_step=NextStep(time=next_at, why=explained.next_step),
        contests=tuple(_contests(state, explained.step or {}, document)),
    )


def last_step(explained: StepExplanation) -> LastStep | None:
    """The record of the last step, without values of fields with a secret-sounding name."""
    if explained.step is None:
        return None
    record = redact_record(explained.step, whole=False)
    assert isinstance(record, Mapping)
    return LastStep(
        time=text_in(record, "at"),
        trigger=text_in(record, "trigger"),
        decision=text_in(record, "decision"),
        moved=explained.moved,
        writes=tuple(map(write_model, objects_in(record.get("writes")))),
        kept=change_models(record.get("kept")),
        withheld=change_models(record.get("withheld")),
        note=text_in(record, "because") or text_in(record, "reason"),
    )


def write_model(write: JsonObject) -> WriteModel:
    """A write in the record of a step."""
    more = write.get("more")
    return WriteModel(
        action=text_in(write, "action"),
        name=text_in(write, "name"),
        fields=change_models(write.get("changes")),
        more=more if isinstance(more, int) else 0,
    )


def change_models(changes: Json) -> tuple[FieldChangeModel, ...]:
    """The changes in the record of a step."""
    return tuple(
        FieldChangeModel(
            path=text_in(change, "path"),
            why=text_in(change, "rule"),
            **{side: change[side] for side in ("before", "after") if side in change},
        )
        for change in objects_in(changes)
    )


def event_model(event: EventRecord) -> EventModel:
    """An event of a resource."""
    return EventModel(
        at=event.at, severity=event.severity, reason=event.reason, message=event.message, count=event.count
    )


def _condition(condition: Condition) -> ConditionModel:
    generation = condition.observed_generation
    return ConditionModel(
        type=condition.type,
        status=condition.status,
        reason=condition.reason,
        message=condition.message,
        last_transition_time=condition.last_transition_time,
        observed_generation=None if isinstance(generation, Missing) else generation,
    )


def _outputs(resource: DeclaredResource) -> Sequence[OutputModel]:
    """The output of a wait, and the values of the status that other kinds offer."""
    match resource.outputs:
        case Known(value):
            return [OutputModel(path="output", state="known", value=redact_untyped(value), reason="")]
        case Unknown(reason):
            return [OutputModel(path="output", state="unknown", value=None, reason=reason)]
        case Null():
            offered = outputs_in(resource.status)
            untracked = [_UNTRACKED] if OUTPUT in offered else []
            return untracked + [
                OutputModel(path=f"status.{name}", state="known", value=redact_untyped(value), reason="")
                for name, value in offered.items()
                if name != OUTPUT
            ]


def _contests(state: StoredState, step: JsonObject, document: JsonObject) -> list[Contest]:
    """The fields that other writers keep changing; our value is that of the last write, or of the spec."""
    changes = [change for write in objects_in(step.get("writes")) for change in objects_in(write.get("changes"))]
    changes += objects_in(step.get("withheld"))
    written = {text_in(change, "path"): change.get("after", MISSING) for change in changes}
    found: list[Contest] = []
    for one in state.oscillations.fields:
        own = written[one.path] if one.path in written else _declared_at(document, one.path)
        sides = [*([] if isinstance(own, Missing) else [own]), list(one.foreign_values)]
        hidden = cast("Mapping[str, Json]", redact_untyped({one.path: sides}))[one.path]
        *ours, theirs = hidden if isinstance(hidden, list) else [hidden] * len(sides)
        found.append(
            Contest(path=one.path, ours=ours[0] if ours else UNSET, theirs=theirs, count=one.count, since=one.since)
        )
    return found


def _declared_at(document: JsonObject, path: str) -> Json | Missing:
    """The value that a redacted document has at a path; MISSING when it has none, or the path is none of it."""
    try:
        return get_at(document, Path.parse(path))
    except (UserError, ValueError):
        return MISSING


def _ids(refs: Sequence[ResourceRef]) -> tuple[str, ...]:
    return tuple(map(id_of, refs))

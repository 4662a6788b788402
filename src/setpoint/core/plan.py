"""The plan: the ordered writes of a step, the fields that each changes and why, and the fields left unchanged."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from setpoint.core.decide import Decision
from setpoint.core.diff import FieldChange, diff
from setpoint.core.overlay import Declared, keeping_rule_at, overlay, rule_at, without_policy
from setpoint.core.schema.shape import Field
from setpoint.core.values.canonical import canonical
from setpoint.core.values.json_types import MISSING, Json, JsonObject, Missing
from setpoint.core.values.paths import Path
from setpoint.errors import ImmutableFieldChanged


class Action(StrEnum):
    """What a write does to the object."""

    CREATE = "create"
    UPDATE = "update"
    REPLACE = "replace"
    DELETE = "delete"


class Hold(StrEnum):
    """Why a plan writes less than what differs."""

    PAUSED = "paused"
    OBSERVED = "observed"
    # A field that another writer keeps changing back waits for its backoff.
    CONTESTED = "contested"


@dataclass(frozen=True, slots=True)
class PlannedWrite:
    """One call that changes the world. `name` tells it from the plan's other writes."""

    action: Action
    name: str
    changes: tuple[FieldChange, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """The writes in the order they are sent, and the fields a bare prune would have changed but a rule kept.

    `withheld` differs and is not written, or nothing is looked at: `because` says why.
    """

    decision: Decision
    writes: tuple[PlannedWrite, ...] = ()
    kept: tuple[FieldChange, ...] = ()
    withheld: tuple[FieldChange, ...] = ()
    because: str = ""
    # The same for code: `because` is the text that people read.
    held: Hold | None = None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to send."""
        return not self.writes

    @property
    def changes(self) -> tuple[FieldChange, ...]:
        """Every field change, in the order of the writes."""
        return tuple(change for write in self.writes for change in write.changes)

    def to_data(self) -> dict[str, Json]:
        """The plan as plain JSON: stable member names, absent values left out, marks spelled out."""
        data: dict[str, Json] = {
            "decision": self.decision.value,
            "writes": [_write_data(write) for write in self.writes],
            "kept": [_change_data(change) for change in self.kept],
        }
        if self.because:
            data |= {"withheld": [_change_data(change) for change in self.withheld], "because": self.because}
        return data

    def hold(self, held: Hold, because: str) -> "Plan":
        """The same with nothing written."""
        return replace(self, writes=(), withheld=self.changes, because=because, held=held)


@dataclass(frozen=True, slots=True)
class WriteStage:
    """A write of its own, sent before the rest, for the fields at or below `paths`."""

    name: str
    paths: tuple[Path, ...]


class ImmutableChange(StrEnum):
    """What becomes of a change to an immutable field."""

    REFUSED = "refused"
    REPLACED = "replaced"


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """How a kind sends changes: its stages in order, the fields to send again, and immutable changes.

    `follow_up` is the write that has to follow a creation before the object is anybody's, sent until it is done.
    """

    stages: tuple[WriteStage, ...] = ()
    resend: tuple[Path, ...] = ()
    fixed: ImmutableChange = ImmutableChange.REFUSED
    follow_up: str | None = None


DEFAULT_PLAN_OPTIONS: Final = PlanOptions()


def plan_fields(
    decision: Decision, declared: Declared, live: JsonObject | Missing, sending: PlanOptions = DEFAULT_PLAN_OPTIONS
) -> Plan:
    """The plan that takes `live` to the effective desired state; ImmutableFieldChanged where no write can."""
    wanted = overlay(declared, live)
    place = Field(declared.shape)
    changes = _with_rules(declared, diff(live, wanted, place, resend=sending.resend))
    if isinstance(live, Missing):
        born = tuple(replace(change, before=MISSING, immutable=False) for change in changes)
        return Plan(decision, (PlannedWrite(Action.CREATE, "create", born),))
    kept = diff(overlay(without_policy(declared), live), wanted, place)
    return Plan(decision, _writes(changes, sending), tuple(_as_kept(declared, change) for change in kept))


def plan_delete(decision: Decision) -> Plan:
    """The plan of one deletion."""
    return Plan(decision, (PlannedWrite(Action.DELETE, "delete"),))


def staged_writes(changes: Iterable[FieldChange], stages: Sequence[WriteStage]) -> tuple[PlannedWrite, ...]:
    """The changes as writes: each stage that has any, in order, then everything else as one update."""
    rest = list(changes)
    writes: list[PlannedWrite] = []
    for stage in stages:
        mine = [change for change in rest if any(path.covers(change.path) for path in stage.paths)]
        rest = [change for change in rest if change not in mine]
        writes.append(PlannedWrite(Action.UPDATE, stage.name, tuple(mine)))
    writes.append(PlannedWrite(Action.UPDATE, "update", tuple(rest)))
    return tuple(write for write in writes if write.changes)


def _writes(changes: tuple[FieldChange, ...], sending: PlanOptions) -> tuple[PlannedWrite, ...]:
    fixed = [change for change in changes if change.immutable]
    if not fixed:
        return staged_writes(changes, sending.stages)
    if sending.fixed is ImmutableChange.REPLACED:
        return (PlannedWrite(Action.REPLACE, "replace", changes),)
    told = "; ".join(f"{one.path} cannot change from {_shown(one.before)} to {_shown(one.after)}" for one in fixed)
    raise ImmutableFieldChanged(
        f"{told}: fixed when the object is created. Put the old value back, or delete the resource and apply it again",
        tuple(str(one.path) for one in fixed),
    )


def _with_rules(declared: Declared, changes: Iterable[FieldChange]) -> tuple[FieldChange, ...]:
    return tuple(replace(change, rule=rule_at(declared, change.path)) for change in changes)


def _as_kept(declared: Declared, change: FieldChange) -> FieldChange:
    """A kept field stays as it is: before and after are the live value."""
    return replace(change, before=change.after, rule=keeping_rule_at(declared, change.path), immutable=False)


def _shown(value: Json | Missing) -> str:
    return "nothing" if isinstance(value, Missing) else canonical(value).decode()


# --- Plain data ------------------------------------------------------------------------------------------------------


def _write_data(write: PlannedWrite) -> Json:
    changes = [_change_data(change) for change in write.changes]
    return {"action": write.action.value, "name": write.name, "changes": changes}


def _change_data(change: FieldChange) -> Json:
    data: dict[str, Json] = {"path": str(change.path), "rule": change.rule.value}
    for name, side in (("before", change.before), ("after", change.after)):
        if not isinstance(side, Missing):
            data[name] = side
    if change.immutable:
        data["immutable"] = True
    return data

"""The plan: the ordered writes of a step, the fields that each changes and why, and the fields left unchanged."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from enum import StrEnum
from functools import lru_cache
from typing import Final

import msgspec

from setpoint.core.decide import Decision, DecisionReason
from setpoint.core.diff import FieldChange, created_fields, diff
from setpoint.core.overlay import Declared, keeping_rule_at, overlay, rule_at, without_policy
from setpoint.core.schema.policy import PRUNE, Rule
from setpoint.core.schema.shape import ObjectShape
from setpoint.core.values.canonical import canonical
from setpoint.core.values.deferred_dataclass import dataclass, replace
from setpoint.core.values.json_types import MISSING, Json, JsonObject, Missing
from setpoint.core.values.paths import Path, get_at
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
    # Another writer keeps changing a field back: the write waits for its backoff.
    OSCILLATING = "oscillating"
    # Writers of the spec disagree: the return of an intent waits for its backoff.
    CONTESTED = "contested"
    # It was sent, and the service did not take it: it waits for a change, or a request.
    NOT_CONVERGED = "not converged"


class ProjectSource(StrEnum):
    """Where the Google project of an object is named."""

    ANNOTATION = "annotation"
    NAMESPACE_ANNOTATION = "namespace-annotation"
    NAMESPACE = "namespace"
    ENVIRONMENT = "environment"
    # The instance that the object is in says so.
    REFERENCE = "reference"
    # Where the object was when the resource last settled.
    RECORD = "record"


@dataclass(frozen=True, slots=True)
class ResolvedProject:
    """The Google project of an object, and where it is named."""

    project: str
    source: ProjectSource


@dataclass(frozen=True, slots=True)
class PlannedWrite:
    """One request that writes. `name` identifies it within its plan.

    `is_foreseen`: its changes were found by a comparison alone, and the answer of the service shows what they were.
    """

    action: Action
    name: str
    changes: tuple[FieldChange, ...] = ()
    is_foreseen: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """The writes in their order, and `kept`: fields that keep their live value under a rule instead of being pruned.

    `retained` are those of which the author is to be told: fields that were taken out of the spec and stay.
    `withheld` are changes that are not written; `held` is the reason, `because` its text for the operator, and
    `retry_at` the time (RFC 3339) from which the first of them may be written, if that is known. `project` is that of
    the object, in the plan of a preview.
    """

    decision: Decision
    writes: tuple[PlannedWrite, ...] = ()
    kept: tuple[FieldChange, ...] = ()
    withheld: tuple[FieldChange, ...] = ()
    because: str = ""
    held: Hold | None = None
    retry_at: str = ""
    reason: DecisionReason | None = None
    retained: tuple[FieldChange, ...] = ()
    # Not compared: two plans are the same that write the same.
    project: ResolvedProject | None = field(default=None, compare=False)

    @property
    def is_fast_path(self) -> bool:
        """Whether both digests matched, so that nothing was compared."""
        return self.decision is Decision.IN_SYNC and self.reason is None

    @property
    def is_adoption(self) -> bool:
        """Whether the object existed before the first step of its resource."""
        return self.reason is DecisionReason.ADOPTED

    @property
    def is_empty(self) -> bool:
        """Whether the plan writes nothing."""
        return not self.writes

    @property
    def changes(self) -> tuple[FieldChange, ...]:
        """The field changes of all writes, in order."""
        if len(self.writes) == 1:
            # As it mostly is.
            return self.writes[0].changes
        return tuple(change for write in self.writes for change in write.changes)

    def to_data(self) -> dict[str, Json]:
        """The plan as JSON with stable member names; absent values are left out."""
        data: dict[str, Json] = {
            "decision": self.decision.value,
            "writes": [_write_data(write) for write in self.writes],
            "kept": [_change_data(change) for change in self.kept],
        }
        if self.project is not None:
            data["project"] = {"id": self.project.project, "source": self.project.source.value}
        if self.because:
            data |= {"withheld": [_change_data(change) for change in self.withheld], "because": self.because}
        if self.reason is not None:
            data["reason"] = self.reason.value
        return {**data, **self.retained_data()}

    def retained_data(self) -> dict[str, Json]:
        """The member `retained` of the plan as JSON; empty when there is none."""
        return {"retained": [_change_data(change) for change in self.retained]} if self.retained else {}

    def hold(self, held: Hold, because: str) -> "Plan":
        """The plan without its writes: their changes are withheld, without a time."""
        changes = (*self.changes, *self.withheld)
        return replace(self, writes=(), withheld=changes, because=because, held=held, retry_at="")


@dataclass(frozen=True, slots=True)
class WriteStage:
    """A separate write, sent before the others, for the fields at or below `paths`."""

    name: str
    paths: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """How a kind plans its writes: the stages in order, and the fields to send although they cannot be compared.

    A kind lists in `resend` the fields marked ASKED that are compared, and sent, when the intent has changed.
    `follow_up` names the write that completes a creation, and is retried until it succeeds. `after_creation` are fields
    that a creation cannot send: they follow in the stages.
    """

    stages: tuple[WriteStage, ...] = ()
    resend: tuple[Path, ...] = ()
    follow_up: str | None = None
    after_creation: tuple[Path, ...] = ()


DEFAULT_PLAN_OPTIONS: Final = PlanOptions()
# The rules of the marks that keep the live value of a field that the spec leaves out.
_MARKED_RULES: Final = (Rule.PROTECTED, Rule.FIXED, Rule.CHOSEN)
# In the order of the members, which is that of the changes.
_packed: Final = msgspec.msgpack.Encoder().encode
_unpacked: Final = msgspec.msgpack.Decoder().decode
_KEPT_ANSWERS: Final = 512
_LONGEST_KEPT: Final = 4_096  # bytes


def plan_fields(
    decision: Decision, declared: Declared, live: JsonObject | Missing, options: PlanOptions = DEFAULT_PLAN_OPTIONS
) -> Plan:
    """The plan that takes `live` to the overlay of `declared`; ImmutableFieldChanged if no write can."""
    return plan_effective(decision, declared, live, wanted=overlay(declared, live), options=options)


def plan_effective(
    decision: Decision,
    declared: Declared,
    live: JsonObject | Missing,
    *,
    wanted: JsonObject,
    options: PlanOptions,
    with_kept: bool = True,
) -> Plan:
    """The plan that takes `live` to `wanted`, the effective desired state; ImmutableFieldChanged if no write can.

    `declared` is fitted to the live object. A creation lists every field of `wanted`: it is sent as a whole. Without
    `with_kept`, the fields that are kept are not listed.
    """
    whole = declared.shape.as_field
    if isinstance(live, Missing):
        return Plan(decision, _creation(_with_creation_rules(declared, created_fields(wanted, whole)), options))
    changes = _with_rules(declared, diff(live, wanted, whole, resend=options.resend))
    kept = diff(overlay(without_policy(declared), live), wanted, whole) if with_kept else ()
    return Plan(decision, _writes(changes, options), tuple(_as_kept(declared, change) for change in kept))


def retained_fields(declared: Declared, live: JsonObject) -> tuple[FieldChange, ...]:
    """The fields that the spec leaves out, and that a mark keeps: protected, immutable, or chosen by the service."""
    present = _present_fields(live, declared.shape)
    ruled = [(one, rule_at(declared, one.path)) for one in present if get_at(declared.tree, one.path) is MISSING]
    return tuple(FieldChange(one.path, one.after, one.after, rule) for one, rule in ruled if rule in _MARKED_RULES)


def retainable_paths(declared: Declared) -> tuple[Path, ...]:
    """The fields in the spec that would be retained if the spec left them out."""
    specified = _present_fields(declared.tree, declared.shape)
    return tuple(one.path for one in specified if _rule_of_absent(declared.shape, one.path) in _MARKED_RULES)


@lru_cache(maxsize=_KEPT_ANSWERS)
def _rule_of_absent(shape: ObjectShape, path: Path) -> Rule:
    return rule_at(Declared({}, shape), path)


def _present_fields(tree: JsonObject, shape: ObjectShape) -> tuple[FieldChange, ...]:
    """The fields in the parts of `tree` with fields that a mark keeps, as changes of an empty object.

    Those parts are the same in most objects of a kind: equal ones are compared once.
    """
    keepable = _keepable(tree, shape)
    try:
        packed = _packed(keepable)
    except (TypeError, ValueError, OverflowError, RecursionError):  # such as a number beyond 64 bits
        packed = b""
    if 0 < len(packed) <= _LONGEST_KEPT:
        return _present_in(shape, packed)
    return diff({}, keepable, shape.as_field)


@lru_cache(maxsize=_KEPT_ANSWERS)
def _present_in(shape: ObjectShape, packed: bytes) -> tuple[FieldChange, ...]:
    return diff({}, _unpacked(packed), shape.as_field)


def _keepable(tree: JsonObject, shape: ObjectShape) -> JsonObject:
    """The parts of `tree` with fields that a mark keeps: mostly few."""
    found: dict[str, Json] = {}
    for name, value in tree.items():
        below = shape.fields.get(name)
        if below is None or below.keeps_none:
            continue
        if isinstance(value, dict) and isinstance(below.shape, ObjectShape) and not below.is_kept:
            value = _keepable(value, below.shape)
        found[name] = value
    return found


def plan_delete(decision: Decision) -> Plan:
    """The plan of one deletion."""
    return Plan(decision, (PlannedWrite(Action.DELETE, "delete"),))


def staged_writes(changes: Iterable[FieldChange], stages: Sequence[WriteStage]) -> tuple[PlannedWrite, ...]:
    """The changes as writes: one for each stage that has changes, in order, then one update with the rest."""
    rest = list(changes)
    if not rest:
        return ()
    writes: list[PlannedWrite] = []
    for stage in stages:
        own = [change for change in rest if any(path.covers(change.path) for path in stage.paths)]
        rest = [change for change in rest if change not in own]
        writes.append(PlannedWrite(Action.UPDATE, stage.name, tuple(own)))
    writes.append(PlannedWrite(Action.UPDATE, "update", tuple(rest)))
    return tuple(write for write in writes if write.changes)


def _creation(changes: Iterable[FieldChange], options: PlanOptions) -> tuple[PlannedWrite, ...]:
    """The creation, and the writes that follow it."""
    created: list[FieldChange] = []
    later: list[FieldChange] = []
    for change in changes:
        is_later = any(path.covers(change.path) for path in options.after_creation)
        (later if is_later else created).append(change)
    return (PlannedWrite(Action.CREATE, "create", tuple(created)), *staged_writes(later, options.stages))


def _writes(changes: tuple[FieldChange, ...], options: PlanOptions) -> tuple[PlannedWrite, ...]:
    immutable = [change for change in changes if change.immutable]
    if not immutable:
        return staged_writes(changes, options.stages)
    why = "; ".join(f"{one.path} cannot change from {_shown(one.before)} to {_shown(one.after)}" for one in immutable)
    raise ImmutableFieldChanged(
        f"{why}: fixed when the object is created. Put the old value back, or delete the resource and apply it again",
        tuple(str(one.path) for one in immutable),
    )


def _with_rules(declared: Declared, changes: Iterable[FieldChange]) -> tuple[FieldChange, ...]:
    return tuple(replace(change, rule=rule_at(declared, change.path)) for change in changes)


def _with_creation_rules(declared: Declared, changes: Iterable[FieldChange]) -> Iterator[FieldChange]:
    """The changes of a creation: the author's own fields, and defaults. No annotation keeps a value then."""
    by_spec = replace(declared, policy=PRUNE)
    for change in changes:
        is_declared = rule_at(by_spec, change.path) is Rule.SPEC
        yield replace(change, rule=Rule.SPEC if is_declared else Rule.DEFAULT)


def _as_kept(declared: Declared, change: FieldChange) -> FieldChange:
    """A kept field: before and after are both the live value."""
    return replace(change, before=change.after, rule=keeping_rule_at(declared, change.path), immutable=False)


def _shown(value: Json | Missing) -> str:
    return "nothing" if isinstance(value, Missing) else canonical(value).decode()


# --- JSON form -------------------------------------------------------------------------------------------------------


def _write_data(write: PlannedWrite) -> Json:
    changes = [_change_data(change) for change in write.changes]
    return {"action": write.action.value, "name": write.name, "changes": changes}


def _change_data(change: FieldChange) -> Json:
    # `value` itself is a call of a property.
    data: dict[str, Json] = {"path": str(change.path), "rule": change.rule._value_}
    if change.before is not MISSING:
        data["before"] = change.before
    if change.after is not MISSING:
        data["after"] = change.after
    if change.immutable:
        data["immutable"] = True
    return data

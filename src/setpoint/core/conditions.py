"""Kubernetes conditions: one per type, with a transition time that moves only when the status changes."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Literal, TypeAlias

from setpoint.core.values.deferred_dataclass import dataclass, replace
from setpoint.core.values.json_types import MISSING, Json, Missing
from setpoint.core.values.shortening import shorten

ConditionStatus: TypeAlias = Literal["True", "False", "Unknown"]


class ConditionType(StrEnum):
    """The conditions that the engine sets."""

    READY = "Ready"
    # Another writer keeps changing fields that the engine keeps reverting.
    CONTESTED = "Contested"
    # Another writer changed fields that an owner generates.
    EDITED = "Edited"
    # Something needs a person, though it stops nothing: what the children of an owner lack, annotations without effect.
    WARNED = "Warned"


class ConditionReason(StrEnum):
    """The reasons of the engine's conditions: Config Connector's where it has one, else ours.

    An owner may give reasons of its own for its Ready condition.
    """

    # --- Ready
    UP_TO_DATE = "UpToDate"
    UPDATING = "Updating"
    UPDATE_FAILED = "UpdateFailed"
    DELETING = "Deleting"
    DELETED = "Deleted"
    DELETE_FAILED = "DeleteFailed"
    DELETION_TIMED_OUT = "DeletionTimedOut"
    DEPENDENCY_NOT_FOUND = "DependencyNotFound"
    DEPENDENCY_NOT_READY = "DependencyNotReady"
    DEPENDENCY_INVALID = "DependencyInvalid"
    BLOCKED = "Blocked"
    REFERENCE_NOT_GRANTED = "ReferenceNotGranted"
    IMMUTABLE_FIELD_CHANGED = "ImmutableFieldChanged"
    NOT_CONVERGED = "NotConverged"
    CONTESTED = "Contested"
    OBSERVED = "Observed"
    PAUSED = "Paused"
    WAITING = "Waiting"
    WAIT_TIMED_OUT = "WaitTimedOut"
    WAIT_FAILED = "WaitFailed"
    SERVICE_ACCOUNT_NOT_FOUND = "ServiceAccountNotFound"
    PROJECT_REFUSED = "ProjectRefused"
    MANAGEMENT_CONFLICT = "ManagementConflict"
    TENANT_INVALID = "TenantInvalid"
    DEFINITION_OUTDATED = "DefinitionOutdated"
    # The children of an owner are as generated, and not ready yet.
    NOT_READY = "NotReady"
    # --- Contested
    OSCILLATION = "Oscillation"
    ALTERNATING_INTENTS = "AlternatingIntents"
    # --- Edited
    AS_GENERATED = "AsGenerated"
    EDITS_KEPT = "EditsKept"
    CONFLICTING = "Conflicting"
    # --- Warned
    INCOMPLETE = "Incomplete"
    ANNOTATION_IGNORED = "AnnotationIgnored"


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of a resource. `set_condition` sets the transition time."""

    type: str
    status: ConditionStatus
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""
    observed_generation: int | Missing = MISSING


Conditions: TypeAlias = tuple[Condition, ...]


def find_condition(conditions: Iterable[Condition], type_: str) -> Condition | None:
    """The condition of that type; None when there is none."""
    for condition in conditions:
        if condition.type == type_:
            return condition
    return None


def set_condition(conditions: Conditions, new: Condition, now: str) -> Conditions:
    """`conditions` with `new` replacing the one of its type, or appended; the same tuple when nothing changed.

    The transition time in `new` is ignored: it is `now` when the status changes, else it stays.
    """
    old = find_condition(conditions, new.type)
    if old is None:
        return (*conditions, replace(new, last_transition_time=now))
    transitioned = old.status != new.status
    new = replace(new, last_transition_time=now if transitioned else old.last_transition_time or now)
    if new == old:
        return conditions
    return tuple(new if condition is old else condition for condition in conditions)


def remove_condition(conditions: Conditions, type_: str) -> Conditions:
    """`conditions` without that type; the same tuple when there is none."""
    if find_condition(conditions, type_) is None:
        return conditions
    return tuple(condition for condition in conditions if condition.type != type_)


def conditions_to_data(conditions: Conditions) -> list[Json]:
    """The conditions as JSON, in Kubernetes' member names; a long message is shortened."""
    return [_entry(condition) for condition in conditions]


def conditions_from_data(data: object) -> Conditions:
    """The conditions in `data`: malformed entries are dropped, and the first of each type counts."""
    found: dict[str, Condition] = {}
    for entry in data if isinstance(data, (list, tuple)) else ():
        condition = _read(entry)
        if condition is not None:
            found.setdefault(condition.type, condition)
    return tuple(found.values())


def condition_in(data: object, type_: str) -> Condition | None:
    """The condition of that type in `data`, as `conditions_from_data` reads it; no other one is read."""
    for entry in data if isinstance(data, (list, tuple)) else ():
        # The first check is for speed: nearly all are of that type.
        is_object = type(entry) is dict or isinstance(entry, Mapping)
        if is_object and entry.get("type") == type_ and (condition := _read(entry)) is not None:
            return condition
    return None


def _entry(condition: Condition) -> Json:
    entry: dict[str, Json] = {
        # Plain text: a member of an enum has no canonical JSON form.
        "type": str(condition.type),
        "status": condition.status,
        "reason": str(condition.reason),
        "message": shorten(condition.message),
        "lastTransitionTime": condition.last_transition_time,
    }
    if condition.observed_generation is not MISSING:
        entry["observedGeneration"] = condition.observed_generation
    return entry


def _read(entry: object) -> Condition | None:
    if type(entry) is not dict and not isinstance(entry, Mapping):
        return None
    type_ = entry.get("type")
    if not isinstance(type_, str):
        return None
    match entry.get("status"):
        case "True" | "False" | "Unknown" as status:
            texts = (_text(entry.get("reason")), _text(entry.get("message")), _text(entry.get("lastTransitionTime")))
            generation = entry.get("observedGeneration")
            return Condition(type_, status, *texts, generation if type(generation) is int else MISSING)
        case _:
            return None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""

"""The row of a resource in the list: its identity, its state in one word, and when its steps were taken."""

from collections.abc import Mapping
from typing import Final

from setpoint.core.conditions import Condition, ConditionReason, ConditionType, condition_in
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.dashboard.api.models import Row, State
from setpoint.engine.conditions import BLOCKED_REASONS, is_failure_reason
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.state import ENGINE_STATE, StoredState
from setpoint.library.inspection.looks import Drift, drift_on_record, last_look_on_record

# Longer messages are shortened in the list; the page of the resource has all of it.
_MAX_MESSAGE: Final = 300
_STATES: Final[Mapping[str, State]] = {
    ConditionReason.CONTESTED: "contested",
    ConditionReason.NOT_CONVERGED: "notConverged",
    ConditionReason.OBSERVED: "observed",
    ConditionReason.PAUSED: "paused",
    ConditionReason.DEPENDENCY_INVALID: "blocked",
    ConditionReason.UPDATING: "progressing",
    ConditionReason.DELETING: "deleting",
    **dict.fromkeys(BLOCKED_REASONS, "blocked"),
}
_UNSEEN: Final = "NotObserved"


def id_of(ref: ResourceRef) -> str:
    """The id of a resource: KIND.GROUP/NAMESPACE/NAME, without the point for Kubernetes' core group."""
    kind = f"{ref.kind}.{ref.group}" if ref.group else ref.kind
    return f"{kind}/{ref.namespace}/{ref.name}"


def ref_of(id_: str) -> ResourceRef | None:
    """The resource that an id names; None for a text that is no id."""
    parts = id_.split("/")
    if len(parts) != 3 or not parts[0] or not parts[2]:
        return None
    kind, _, group = parts[0].partition(".")
    return ResourceRef(group, kind, parts[1], parts[2]) if kind else None


def sort_key(ref: ResourceRef) -> tuple[str, str, str, str]:
    """The order of the list: by kind, namespace and name."""
    return ref.kind, ref.namespace, ref.name, ref.group


def row_of(resource: Resource) -> Row:
    """The row of a resource. It has nothing of a spec or an annotation, nor of what a status repeats of them.

    The messages of conditions are without secret values: they are stored like that.
    """
    ref, status = resource.ref, resource.status
    ready, contested = (
        condition_in(status.get("conditions"), one) for one in (ConditionType.READY, ConditionType.CONTESTED)
    )
    observed = status.get("observedGeneration")
    state = state_of(resource, ready, is_contested=contested is not None and contested.status == "True")
    step = step_in(status)
    drift = drift_on_record(resource, step)
    # The condition that the state is from.
    told = contested if state == "contested" else ready
    return Row(
        id=id_of(ref),
        kind=ref.kind,
        group=ref.group,
        namespace=ref.namespace,
        name=ref.name,
        labels=dict(resource.labels),
        state=state,
        reason=told.reason if told is not None else _UNSEEN,
        message=_shortened(told.message) if told is not None and state != "ready" else "",
        drifted=drift is not Drift.NONE,
        drift=drift.value,
        since=told.last_transition_time or None if told is not None else None,
        last_step=last_look_on_record(resource, step) or None,
        generation=resource.generation,
        observed_generation=observed if isinstance(observed, int) and not isinstance(observed, bool) else None,
        next_step=_recorded_next_step(resource, step),
    )


def state_of(resource: Resource, ready: Condition | None, *, is_contested: bool = False) -> State:
    """The state of a resource in one word, by its Ready condition."""
    if resource.is_deleting and not (ready is not None and is_failure_reason(ready.reason)):
        return "deleting"
    if ready is None or resource.status.get("observedGeneration") != resource.generation:
        return "unknown"
    if is_contested:
        return "contested"
    if (state := _STATES.get(ready.reason)) is not None:
        return state
    if ready.status == "True":
        return "ready"
    # An owner may have reasons of its own.
    return "failed" if is_failure_reason(ready.reason) else "waiting"


def step_in(status: JsonObject) -> JsonObject:
    """The record of the last step; empty before there is one."""
    ours = status.get(ENGINE_STATE)
    step = ours.get("step") if isinstance(ours, Mapping) else None
    return step if isinstance(step, Mapping) else {}


def text_in(data: JsonObject, name: str) -> str:
    """The text of that name; empty when there is none."""
    found = data.get(name)
    return found if isinstance(found, str) else ""


def objects_in(data: Json) -> list[JsonObject]:
    """The objects of a list; what is none is left out."""
    return [one for one in data if isinstance(one, Mapping)] if isinstance(data, list | tuple) else []


def _recorded_next_step(resource: Resource, step: JsonObject) -> str | None:
    """When what the last step withheld may be written: no other time of a next step is on record."""
    if not step.get("withheld"):
        return None
    stored = StoredState.of(resource)
    times = [one.not_before for one in stored.oscillations.reported]
    if stored.flips.is_contested:
        times.append(stored.flips.not_before)
    return min(times, default=None)


def _shortened(message: str) -> str:
    return message if len(message) <= _MAX_MESSAGE else f"{message[: _MAX_MESSAGE - 1]}…"

"""The problem of a resource, by its conditions: what its operator wants to be told of, once."""

from enum import StrEnum
from typing import Final

from setpoint.core.conditions import Condition, ConditionReason, ConditionType
from setpoint.engine.conditions import condition_of, is_failure_reason
from setpoint.engine.resource import Resource


class Problem(StrEnum):
    """What is wrong with a resource."""

    # It is ready.
    NONE = "none"
    # It is on its way, blocked, paused, or new: an earlier problem is neither over nor worse.
    UNDECIDED = "undecided"
    # A step failed, or was refused.
    FAILED = "failed"
    # Another writer keeps changing what the engine writes.
    CONTESTED = "contested"
    # The service accepted a write and did not keep it.
    NOT_CONVERGED = "notConverged"
    # The live object of a resource that is only observed differs, or is gone.
    DRIFT = "drift"


# Those that are told of.
PROBLEMS: Final = (Problem.FAILED, Problem.CONTESTED, Problem.NOT_CONVERGED, Problem.DRIFT)
_BY_REASON: Final = {
    ConditionReason.NOT_CONVERGED.value: Problem.NOT_CONVERGED,
    ConditionReason.CONTESTED.value: Problem.CONTESTED,
    ConditionReason.OBSERVED.value: Problem.DRIFT,
}


def problem_of(resource: Resource) -> Problem:
    """The problem of a resource, by the conditions in its status."""
    return _judged(resource)[0]


def condition_with(resource: Resource) -> Condition | None:
    """The condition that says what the problem is; None before the first step."""
    return _judged(resource)[1]


def _judged(resource: Resource) -> tuple[Problem, Condition | None]:
    contested = condition_of(resource, ConditionType.CONTESTED)
    if contested is not None and contested.status == "True":
        return Problem.CONTESTED, contested
    ready = condition_of(resource, ConditionType.READY)
    if ready is None:
        return Problem.UNDECIDED, None
    if ready.status == "True":
        return Problem.NONE, ready
    if (found := _BY_REASON.get(ready.reason)) is not None:
        return found, ready
    return Problem.FAILED if is_failure_reason(ready.reason) else Problem.UNDECIDED, ready

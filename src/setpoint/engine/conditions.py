"""The conditions in a status: Ready, with Config Connector's reasons and ours, and Contested."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from setpoint.core.conditions import (
    Condition,
    ConditionStatus,
    conditions_from_data,
    conditions_to_data,
    find_condition,
    remove_condition,
    set_condition,
)
from setpoint.core.schema.policy import UNMANAGED
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.oscillation import Oscillation
from setpoint.engine.resource import Resource
from setpoint.errors import (
    Blocked,
    DeletionHeld,
    DependencyInvalid,
    DependencyNotFound,
    DependencyNotReady,
    ImmutableFieldChanged,
    NotReady,
    SetpointError,
    StillWaiting,
    WaitFailed,
    WaitTimedOut,
)

_REASONS: Final[dict[type[SetpointError], str]] = {
    DependencyNotFound: "DependencyNotFound",
    DependencyInvalid: "DependencyInvalid",
    DependencyNotReady: "DependencyNotReady",
    Blocked: "Blocked",
    ImmutableFieldChanged: "ImmutableFieldChanged",
    WaitTimedOut: "WaitTimedOut",
    WaitFailed: "WaitFailed",
}
CONTESTED: Final = "Contested"
DELETION_TIMED_OUT: Final = "DeletionTimedOut"
_MOST_NAMES: Final = 5
# `KbsConfig/name.spec…`: such a path begins with the key of a child.
_OF_A_CHILD: Final = re.compile(r"[A-Z]\w*/")


@dataclass(frozen=True, slots=True)
class ReadyCondition:
    """How it stands with a resource."""

    status: ConditionStatus
    reason: str
    message: str

    @property
    def condition(self) -> Condition:
        """The same as a condition, without a time."""
        return Condition("Ready", self.status, self.reason, self.message)

    @property
    def is_failure(self) -> bool:
        """Whether somebody should look at it."""
        return self.reason.endswith("Failed") or self.reason in (
            "NotConverged",
            CONTESTED,
            "ImmutableFieldChanged",
            "DependencyInvalid",
            "WaitTimedOut",
            DELETION_TIMED_OUT,
        )


UP_TO_DATE: Final = ReadyCondition("True", "UpToDate", "The resource is up to date")
DELETING: Final = ReadyCondition("False", "Deleting", "Deletion in progress")
DELETED: Final = ReadyCondition("False", "Deleted", "Successfully deleted")
PAUSED: Final = ReadyCondition("Unknown", "Paused", "Nothing is read or written: setpoint.dev/management is paused")


def updating(what: str) -> ReadyCondition:
    """A write is under way."""
    return ReadyCondition("False", "Updating", f"Update in progress: {what}")


def failure(error: SetpointError, *, deleting: bool) -> ReadyCondition:
    """How it stands after `error`."""
    if deleting and isinstance(error, WaitTimedOut):
        return ReadyCondition("False", DELETION_TIMED_OUT, str(error))
    if deleting and isinstance(error, StillWaiting | DeletionHeld):
        return replace(DELETING, message=f"{DELETING.message}: {error}")
    for kind, reason in _REASONS.items():
        if isinstance(error, kind):
            return ReadyCondition("False", reason, str(error))
    if isinstance(error, NotReady):
        return DELETING if deleting else updating(str(error))
    verb, reason = ("Delete", "DeleteFailed") if deleting else ("Update", "UpdateFailed")
    return ReadyCondition("False", reason, f"{verb} call failed: {error}")


def not_converged(paths: tuple[str, ...]) -> ReadyCondition:
    """The service took the write and the fields still differ."""
    fields = ", ".join(paths)
    return ReadyCondition(
        "False",
        "NotConverged",
        f"The service accepted the update but did not keep {fields}. Nothing more is written until the spec or the "
        "live object changes, or you ask with `setpoint reconcile`",
    )


def observed(paths: tuple[str, ...], *, is_there: bool) -> ReadyCondition:
    """Management is observe: the difference is told and left alone."""
    if not is_there:
        return ReadyCondition("False", "Observed", "The live object is not there; nothing is written")
    if not paths:
        return ReadyCondition("True", "Observed", "The live object is as declared; nothing is written")
    return ReadyCondition("False", "Observed", f"The live object differs in {', '.join(paths)}; nothing is written")


def contested(because: str) -> ReadyCondition:
    """Contested fields differ, and are not put back yet."""
    return ReadyCondition("False", CONTESTED, because)


def withheld_message(paths: Sequence[str], until: str) -> str:
    """Why these fields are not put back now."""
    return (
        f"{join_names(paths)}: changed after each put-back, and not put back again before {until}. The condition "
        "Contested says how often and to what. `setpoint reconcile` puts it back now"
    )


def with_conditions(
    status: JsonObject, generation: int, ready: ReadyCondition, contests: Sequence[Oscillation], now: str
) -> JsonObject:
    """`status` with Ready for the generation that was looked at; and Contested, if any of these are to be told of."""
    conditions = set_condition(conditions_from_data(status.get("conditions")), ready.condition, now)
    if contests:
        conditions = set_condition(
            conditions, Condition(CONTESTED, "True", "Oscillation", _oscillation_message(contests)), now
        )
    else:
        conditions = remove_condition(conditions, CONTESTED)
    return {**status, "conditions": conditions_to_data(conditions), "observedGeneration": generation}


def condition_of(resource: Resource, type_: str) -> Condition | None:
    """What the status of `resource` says about `type_`."""
    return find_condition(conditions_from_data(resource.status.get("conditions")), type_)


def join_names(names: Iterable[str]) -> str:
    """The first few names, and how many more there are."""
    first, more = (every := list(names))[:_MOST_NAMES], len(every) - _MOST_NAMES
    return ", ".join(first) + (f" and {more} more" if more > 0 else "")


def _oscillation_message(reported: Sequence[Oscillation]) -> str:
    shown = "; ".join(_one_oscillation(contest) for contest in reported[:_MOST_NAMES])
    more = f"; and {len(reported) - _MOST_NAMES} more" if reported[_MOST_NAMES:] else ""
    paths = join_names(contest.path for contest in reported)
    leave = f"; or leave it to them: put {paths} into the annotation {UNMANAGED}"
    # What an owner manages of a child cannot be left to others.
    advice = "" if any(_OF_A_CHILD.match(contest.path) for contest in reported) else leave
    return (
        f"{shown}{more}. Find out who does; or change the spec{advice}. "
        "It is put back less and less often now, once an hour in the end"
    )


def _one_oscillation(contest: Oscillation) -> str:
    newest, *older = contest.theirs
    again = "unsets it" if newest == "unset" else f"sets it to {newest}"
    before = f" (before that: {', '.join(older)})" if older else ""
    return (
        f"{contest.path} was put back {contest.count} times since {contest.since}, "
        f"and somebody else {again}{before} again and again"
    )

"""What people read in a status: one Ready condition with Config Connector's reasons, and ours."""

from dataclasses import dataclass
from typing import Final

from setpoint.core.conditions import Condition, ConditionStatus, from_data, set_condition, to_data
from setpoint.engine.resource import Resource, Tree
from setpoint.errors import (
    Blocked,
    DependencyInvalid,
    DependencyNotFound,
    DependencyNotReady,
    ImmutableFieldChanged,
    NotReady,
    SetpointError,
)

_DEPENDENCIES: Final[dict[type[SetpointError], str]] = {
    DependencyNotFound: "DependencyNotFound",
    DependencyInvalid: "DependencyInvalid",
    DependencyNotReady: "DependencyNotReady",
    Blocked: "Blocked",
    ImmutableFieldChanged: "ImmutableFieldChanged",
}


@dataclass(frozen=True, slots=True)
class Ready:
    """How it stands with a resource."""

    status: ConditionStatus
    reason: str
    message: str

    @property
    def is_failure(self) -> bool:
        """Whether somebody should look at it."""
        return self.reason.endswith("Failed") or self.reason in (
            "NotConverged",
            "ImmutableFieldChanged",
            "DependencyInvalid",
        )


UP_TO_DATE: Final = Ready("True", "UpToDate", "The resource is up to date")
DELETING: Final = Ready("False", "Deleting", "Deletion in progress")
PAUSED: Final = Ready("Unknown", "Paused", "Nothing is read or written: setpoint.dev/management is paused")


def updating(what: str) -> Ready:
    """A write is under way."""
    return Ready("False", "Updating", f"Update in progress: {what}")


def failure(error: SetpointError, *, deleting: bool) -> Ready:
    """How it stands after `error`."""
    for kind, reason in _DEPENDENCIES.items():
        if isinstance(error, kind):
            return Ready("False", reason, str(error))
    if isinstance(error, NotReady):
        return DELETING if deleting else updating(str(error))
    verb, reason = ("Delete", "DeleteFailed") if deleting else ("Update", "UpdateFailed")
    return Ready("False", reason, f"{verb} call failed: {error}")


def not_converged(paths: tuple[str, ...]) -> Ready:
    """The service took the write and the fields still differ."""
    fields = ", ".join(paths)
    return Ready(
        "False",
        "NotConverged",
        f"The service accepted the update but did not keep {fields}. Nothing more is written until the spec or the "
        "live object changes, or you ask with `setpoint reconcile`",
    )


def observed(paths: tuple[str, ...], *, is_there: bool) -> Ready:
    """Management is observe: the difference is told and left alone."""
    if not is_there:
        return Ready("False", "Observed", "The live object is not there; nothing is written")
    if not paths:
        return Ready("True", "Observed", "The live object is as declared; nothing is written")
    return Ready("False", "Observed", f"The live object differs in {', '.join(paths)}; nothing is written")


def with_ready(status: Tree, resource: Resource, ready: Ready, now: str) -> Tree:
    """`status` with this Ready condition for the generation that was looked at."""
    new = Condition("Ready", ready.status, ready.reason, ready.message)
    conditions = set_condition(from_data(status.get("conditions")), new, now)
    return {**status, "conditions": to_data(conditions), "observedGeneration": resource.generation}

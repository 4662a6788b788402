"""The conditions in a status: Ready, with Config Connector's reasons and ours, and Contested.

A message is made here, from data, and nothing reads it back: what code goes by are the reason and the details.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from setpoint.core.conditions import (
    Condition,
    ConditionReason,
    ConditionStatus,
    ConditionType,
    condition_in,
    conditions_from_data,
    conditions_to_data,
    find_condition,
    remove_condition,
    set_condition,
)
from setpoint.core.diff import FieldChange
from setpoint.core.schema.policy import UNMANAGED, Rule
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.core.values.paths import Path
from setpoint.core.values.shortening import UNSET_TEXT, shorten
from setpoint.engine.contention.intent_flips import NO_FLIPS, IntentFlips
from setpoint.engine.contention.oscillation import Oscillation
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.state import ENGINE_STATE, READY_DETAILS
from setpoint.errors import (
    Blocked,
    BlockingLink,
    DefinitionOutdated,
    DeletionHeld,
    DependencyInvalid,
    DependencyNotFound,
    DependencyNotReady,
    ImmutableFieldChanged,
    ManagementConflict,
    NotReady,
    ProjectRefused,
    ReferenceNotGranted,
    RemoteRefused,
    ServiceAccountNotFound,
    SetpointError,
    StillWaiting,
    TenantInvalid,
    UserError,
    WaitFailed,
    WaitTimedOut,
)

# Shown in the place of a reason before the first step. Users search for it: it stays as it is.
NO_STEP_YET: Final = "NotLookedAt"
# Errors with a reason of their own; a subclass comes before its base.
REASONS: Final[Mapping[type[SetpointError], ConditionReason]] = {
    DependencyNotFound: ConditionReason.DEPENDENCY_NOT_FOUND,
    DependencyInvalid: ConditionReason.DEPENDENCY_INVALID,
    DependencyNotReady: ConditionReason.DEPENDENCY_NOT_READY,
    ReferenceNotGranted: ConditionReason.REFERENCE_NOT_GRANTED,
    Blocked: ConditionReason.BLOCKED,
    ImmutableFieldChanged: ConditionReason.IMMUTABLE_FIELD_CHANGED,
    WaitTimedOut: ConditionReason.WAIT_TIMED_OUT,
    WaitFailed: ConditionReason.WAIT_FAILED,
    ServiceAccountNotFound: ConditionReason.SERVICE_ACCOUNT_NOT_FOUND,
    ProjectRefused: ConditionReason.PROJECT_REFUSED,
    ManagementConflict: ConditionReason.MANAGEMENT_CONFLICT,
    TenantInvalid: ConditionReason.TENANT_INVALID,
    DefinitionOutdated: ConditionReason.DEFINITION_OUTDATED,
}
# The operator has to act.
_FAILURE_REASONS: Final = frozenset(
    {
        ConditionReason.UPDATE_FAILED,
        ConditionReason.DELETE_FAILED,
        ConditionReason.DELETION_TIMED_OUT,
        ConditionReason.DEPENDENCY_INVALID,
        ConditionReason.IMMUTABLE_FIELD_CHANGED,
        ConditionReason.NOT_CONVERGED,
        ConditionReason.CONTESTED,
        ConditionReason.WAIT_TIMED_OUT,
        ConditionReason.WAIT_FAILED,
        ConditionReason.SERVICE_ACCOUNT_NOT_FOUND,
        ConditionReason.PROJECT_REFUSED,
        ConditionReason.MANAGEMENT_CONFLICT,
        ConditionReason.TENANT_INVALID,
        ConditionReason.DEFINITION_OUTDATED,
    }
)
# The next steps continue once a dependency exists and is ready.
BLOCKED_REASONS: Final = frozenset(
    {
        ConditionReason.BLOCKED,
        ConditionReason.REFERENCE_NOT_GRANTED,
        ConditionReason.DEPENDENCY_NOT_READY,
        ConditionReason.DEPENDENCY_NOT_FOUND,
    }
)
# Nothing is left to do, though the resource is not ready.
SETTLED_REASONS: Final = frozenset({ConditionReason.NOT_CONVERGED, ConditionReason.CONTESTED, ConditionReason.OBSERVED})
# What the step of a resource that is being deleted reports; any other reason is of an earlier step.
DELETION_REASONS: Final = frozenset(
    {
        ConditionReason.DELETING,
        ConditionReason.DELETE_FAILED,
        ConditionReason.DELETION_TIMED_OUT,
        ConditionReason.PAUSED,
    }
)
# The author allows no writes.
UNMANAGED_REASONS: Final = frozenset({ConditionReason.OBSERVED, ConditionReason.PAUSED})
_MAX_NAMES: Final = 5
_MAX_NAME_BYTES: Final = 300
_MAX_LINK_BYTES: Final = 512
# The fields that a condition names are those to look at: more than an event names.
_MAX_FIELDS: Final = 20
# The path of a field of a child begins with the child's key: `KbsConfig/name.spec…`.
_CHILD_PATH: Final = re.compile(r"[A-Z]\w*/")


@dataclass(frozen=True, slots=True)
class ReadyDetails:
    """What of a Ready condition code goes by, besides the reason; kept in `status.setpoint.ready`."""

    # The message of the error, where the condition's message puts it into a sentence.
    error: str = ""
    # What a blocked resource waits for, and what that waits for in turn; the nearest comes first.
    blocked_on: tuple[BlockingLink, ...] = ()
    # The resource is claimed, and nothing was observed or written yet.
    is_claim: bool = False

    @staticmethod
    def of(resource: Resource) -> "ReadyDetails":
        """The details in a status; what cannot be read, or was written by a version without details, is left out."""
        state = resource.status.get(ENGINE_STATE)
        data = state.get(READY_DETAILS) if isinstance(state, Mapping) else None
        if not isinstance(data, Mapping):
            return NO_DETAILS
        links = data.get("blockedOn")
        found = map(_link_from_data, links if isinstance(links, list | tuple) else ())
        error = data.get("error")
        return ReadyDetails(
            error if isinstance(error, str) else "",
            tuple(link for link in found if link is not None),
            is_claim=data.get("claim") is True,
        )

    def to_data(self) -> JsonObject:
        """The details as a status keeps them; empty when there are none."""
        data: dict[str, Json] = {}
        if self.error:
            data["error"] = shorten(self.error)
        if self.blocked_on:
            data["blockedOn"] = [_link_to_data(link) for link in self.blocked_on]
        if self.is_claim:
            data["claim"] = True
        return data


NO_DETAILS: Final = ReadyDetails()


@dataclass(frozen=True, slots=True)
class ReadyCondition:
    """The Ready condition of a resource, without a time."""

    status: ConditionStatus
    # A ConditionReason, or one of an owner's own.
    reason: str
    message: str
    details: ReadyDetails = NO_DETAILS

    @property
    def condition(self) -> Condition:
        """The condition without its details."""
        return Condition(ConditionType.READY, self.status, self.reason, self.message)

    @property
    def is_failure(self) -> bool:
        """Whether the operator has to act."""
        return is_failure_reason(self.reason)


def is_failure_reason(reason: str) -> bool:
    """Whether a Ready condition with this reason reports a failure; an owner's own reason does if it ends so."""
    return reason in _FAILURE_REASONS or reason.endswith("Failed")


UP_TO_DATE: Final = ReadyCondition("True", ConditionReason.UP_TO_DATE, "The resource is up to date")
DELETING: Final = ReadyCondition("False", ConditionReason.DELETING, "Deletion in progress")
DELETED: Final = ReadyCondition("False", ConditionReason.DELETED, "Successfully deleted")
PAUSED: Final = ReadyCondition(
    "Unknown", ConditionReason.PAUSED, "Nothing is read or written: setpoint.dev/management is paused"
)
CLAIMED: Final = ReadyCondition(
    "False", ConditionReason.UPDATING, "Update in progress: first look", ReadyDetails(is_claim=True)
)


def updating(error: str) -> ReadyCondition:
    """A write is under way, and `error` says what the next step waits for."""
    return ReadyCondition("False", ConditionReason.UPDATING, f"Update in progress: {error}", ReadyDetails(error))


def failure(error: SetpointError, *, deleting: bool) -> ReadyCondition:
    """The Ready condition after a step that stopped with `error`."""
    text = str(error)
    if deleting and isinstance(error, WaitTimedOut):
        return ReadyCondition("False", ConditionReason.DELETION_TIMED_OUT, text)
    if deleting and isinstance(error, StillWaiting | DeletionHeld):
        return ReadyCondition("False", ConditionReason.DELETING, f"{DELETING.message}: {text}", ReadyDetails(text))
    # A refused deletion has the reason of deletions: any other would be taken for that of an earlier step.
    is_refused_deletion = deleting and isinstance(error, UserError | RemoteRefused)
    reason = next((reason for kind, reason in REASONS.items() if isinstance(error, kind)), None)
    if reason is not None and not is_refused_deletion:
        links = error.links if isinstance(error, DependencyNotReady | Blocked) else ()
        return ReadyCondition("False", reason, text, ReadyDetails(blocked_on=links))
    if isinstance(error, NotReady):
        return DELETING if deleting else updating(text)
    if deleting:
        return ReadyCondition("False", ConditionReason.DELETE_FAILED, f"Delete call failed: {text}", ReadyDetails(text))
    return ReadyCondition("False", ConditionReason.UPDATE_FAILED, f"Update call failed: {text}", ReadyDetails(text))


def not_converged(paths: tuple[str, ...]) -> ReadyCondition:
    """The service accepted the write, and these fields still differ."""
    return ReadyCondition(
        "False",
        ConditionReason.NOT_CONVERGED,
        f"The service accepted the update but did not keep {join_names(paths, _MAX_FIELDS)}. Nothing more is written "
        "until the spec or the live object changes, or you ask with `setpoint reconcile`",
    )


def observed(paths: tuple[str, ...], *, is_there: bool) -> ReadyCondition:
    """Management is observe: differences are reported and not corrected."""
    reason = ConditionReason.OBSERVED
    if not is_there:
        return ReadyCondition("False", reason, "The live object is not there; nothing is written")
    if not paths:
        return ReadyCondition("True", reason, "The live object is as declared; nothing is written")
    return ReadyCondition(
        "False", reason, f"The live object differs in {join_names(paths, _MAX_FIELDS)}; nothing is written"
    )


def oscillating(because: str) -> ReadyCondition:
    """Oscillating fields differ, and are not reverted before their backoff is over."""
    return ReadyCondition("False", ConditionReason.CONTESTED, because)


def oscillating_message(paths: Sequence[str], until: str) -> str:
    """Why these oscillating fields are not reverted now."""
    return (
        f"{join_names(paths)}: changed after each revert, and not reverted again before {until}. The condition "
        "Contested says how often and to what. `setpoint reconcile` reverts it now"
    )


def contested_message(paths: Sequence[str], until: str) -> str:
    """Why the return of a contested intent is not applied now."""
    return (
        f"{join_names(paths)}: the spec is changed back again and again, and is not applied again before {until}. The "
        "condition Contested says by which writers. `setpoint reconcile` applies it now"
    )


# Why a field that the spec leaves out keeps its live value, and what would change that.
_RETAINING: Final[Mapping[Rule, str]] = {
    Rule.PROTECTED: "protected: only an explicit value, or null, gives it up",
    Rule.FIXED: "immutable: only a new object has another, so delete the resource and apply it again",
    Rule.CHOSEN: "chosen by the service: name another value to change it",
    Rule.SERVER_DEFAULT: "server default: the service did not take its removal; name a value, or try again with "
    "`setpoint reconcile`",
}


def retained_message(retained: Sequence[FieldChange]) -> str:
    """Which fields stay although the spec leaves them out, why, and what would remove them."""
    found = ((why, [str(one.path) for one in retained if one.rule is rule]) for rule, why in _RETAINING.items())
    return "kept, though the spec leaves it out: " + "; ".join(
        f"{join_names(paths)} ({why})" for why, paths in found if paths
    )


def with_conditions(
    status: JsonObject,
    generation: int,
    ready: ReadyCondition,
    oscillations: Sequence[Oscillation],
    now: str,
    *,
    flips: IntentFlips = NO_FLIPS,
) -> JsonObject:
    """`status` with Ready, its details, the generation that was observed, and Contested if fields or intents are."""
    conditions = set_condition(conditions_from_data(status.get("conditions")), ready.condition, now)
    if oscillations:
        message = _oscillation_message(oscillations)
        reported = Condition(ConditionType.CONTESTED, "True", ConditionReason.OSCILLATION, message)
        conditions = set_condition(conditions, reported, now)
    elif flips.is_contested:
        reason = ConditionReason.ALTERNATING_INTENTS
        conditions = set_condition(conditions, Condition(ConditionType.CONTESTED, "True", reason, flips.message()), now)
    else:
        conditions = remove_condition(conditions, ConditionType.CONTESTED)
    detailed = _with_details(status, ready.details)
    return {**detailed, "conditions": conditions_to_data(conditions), "observedGeneration": generation}


def with_warnings(status: JsonObject, warnings: Sequence[str], now: str) -> JsonObject:
    """`status` with the condition Warned about annotations that have no effect; without it where there are none."""
    if not (warnings or warning_in(status)):
        return status
    conditions = conditions_from_data(status.get("conditions"))
    if warnings:
        text = "; ".join(warnings)
        warned = Condition(ConditionType.WARNED, "True", ConditionReason.ANNOTATION_IGNORED, text)
        conditions = set_condition(conditions, warned, now)
    else:
        conditions = remove_condition(conditions, ConditionType.WARNED)
    return {**status, "conditions": conditions_to_data(conditions)}


def warning_in(status: JsonObject) -> str:
    """The message of the condition Warned; empty without one."""
    warned = condition_in(status.get("conditions"), ConditionType.WARNED)
    return "" if warned is None else warned.message


def _with_details(status: JsonObject, details: ReadyDetails) -> JsonObject:
    state = status.get(ENGINE_STATE)
    kept = {name: value for name, value in state.items() if name != READY_DETAILS} if isinstance(state, Mapping) else {}
    data = details.to_data()
    merged = {**kept, READY_DETAILS: data} if data else kept
    without = {name: value for name, value in status.items() if name != ENGINE_STATE}
    return {**without, ENGINE_STATE: merged} if merged else without


def condition_of(resource: Resource, type_: str) -> Condition | None:
    """The condition of that type in the status of `resource`."""
    return find_condition(resource.conditions, type_)


def join_names(names: Iterable[str | Path], limit: int = _MAX_NAMES) -> str:
    """The first few names, or paths, and how many more there are; a long one is shortened."""
    first, more = (every := list(names))[:limit], len(every) - limit
    shown = ", ".join([shorten(str(name), _MAX_NAME_BYTES) for name in first])
    return shown + (f" and {more:,} more" if more > 0 else "")


def _link_to_data(link: BlockingLink) -> Json:
    why = shorten(link.why, _MAX_LINK_BYTES)
    return {"why": why} if link.ref is None else {**ResourceRef(*link.ref)._asdict(), "why": why}


def _link_from_data(data: Json) -> BlockingLink | None:
    match data:
        case {"group": str(group), "kind": str(kind), "namespace": str(namespace), "name": str(name), "why": str(why)}:
            return BlockingLink(ResourceRef(group, kind, namespace, name), why)
        case {"why": str(why)}:
            return BlockingLink(None, why)
        case _:
            return None


def _oscillation_message(reported: Sequence[Oscillation]) -> str:
    shown = "; ".join(_one_oscillation(oscillation) for oscillation in reported[:_MAX_NAMES])
    more = f"; and {len(reported) - _MAX_NAMES} more" if reported[_MAX_NAMES:] else ""
    paths = join_names(oscillation.path for oscillation in reported)
    leave = f"; or leave it to them: put {paths} into the annotation {UNMANAGED}"
    # A field of a child that its owner manages cannot be left unmanaged, nor can the whole object.
    advice = "" if any(_CHILD_PATH.match(one.path) or not one.path for one in reported) else leave
    return (
        f"{shown}{more}. Find out who does; or change the spec{advice}. "
        "It is reverted less and less often now, once an hour in the end"
    )


def _one_oscillation(oscillation: Oscillation) -> str:
    if oscillation.is_subtree:
        fields = f"several fields of {oscillation.path}" if oscillation.path else "several fields"
        return (
            f"{fields} were reverted {oscillation.count} times since {oscillation.since}, "
            "and another writer changes them again and again"
        )
    newest, *older = oscillation.foreign_values
    again = "unsets it" if newest == UNSET_TEXT else f"sets it to {newest}"
    before = f" (before that: {', '.join(older)})" if older else ""
    return (
        f"{oscillation.path} was reverted {oscillation.count} times since {oscillation.since}, "
        f"and another writer {again}{before} again and again"
    )

"""What `apply`, `plan`, `reconcile` and `delete` did or would do, as data: the document of `-o json`, and its summary.

The types are the schema: `docs/command-output.schema.json` is made from them.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from setpoint.core.plan import Plan
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.engine.conditions import UNMANAGED_REASONS, failure
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.finish import begun_action
from setpoint.engine.step.outcomes import Gone, Settled, StepOutcome, Stopped
from setpoint.errors import Blocked, NotReady, RemoteUnavailable, Retry, SetpointError
from setpoint.library.outcome import BEGUN_WORDS, ExitCode, OutcomeSummary


class ResultOutcome(StrEnum):
    """What a command did with a resource, or what a plan would do; in the order of a summary."""

    CREATED = "created"
    UPDATED = "updated"
    REPLACED = "replaced"
    DELETED = "deleted"
    # It was there before the first step of its resource.
    ADOPTED = "adopted"
    # Deleted, and the live object stays.
    ABANDONED = "abandoned"
    CREATE = "create"
    UPDATE = "update"
    REPLACE = "replace"
    DELETE = "delete"
    # The plan has changes that are not written now.
    WITHHELD = "withheld"
    UNCHANGED = "unchanged"
    NOT_FOUND = "notFound"
    WAITING = "waiting"
    BLOCKED = "blocked"
    FAILED = "failed"


# What a step began, once it is done.
_DONE: Final[Mapping[str, ResultOutcome]] = {begun: ResultOutcome(word) for begun, word in BEGUN_WORDS.items()}
_WORDS: Final[Mapping[ResultOutcome, str]] = {ResultOutcome.NOT_FOUND: "not found"}
_UNSTEPPED: Final = "no step was taken in time"


class _Data(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A part of the document."""


class ChangeData(_Data, frozen=True):
    """A field that was written, or that a plan would write. `before` or `after` is missing where the field is unset."""

    path: str
    rule: Annotated[str, Meta(description="Why: the rule that decided it.")]
    before: Any | UnsetType = UNSET
    after: Any | UnsetType = UNSET
    immutable: bool | UnsetType = UNSET
    shortened: Annotated[list[str], Meta(description="The sides of which only the beginning is left.")] | UnsetType = (
        UNSET
    )


class ResultData(_Data, frozen=True):
    """What became of one resource."""

    group: str
    kind: str
    namespace: str
    name: str
    outcome: ResultOutcome
    reason: Annotated[str, Meta(description="That of the Ready condition; empty where no status has it.")] = ""
    message: str = ""
    changes: list[ChangeData] = []
    location: Annotated[str, Meta(description="The live object.")] | UnsetType = UNSET
    plan: Annotated[dict[str, Any], Meta(description="Of `plan`: decision, writes, kept fields.")] | UnsetType = UNSET
    then: (
        Annotated[dict[str, Any], Meta(description="Of `plan`: what follows, once what it waits for is there.")]
        | UnsetType
    ) = UNSET


class DependantData(_Data, frozen=True):
    """A resource that stays, and refers to one that is deleted."""

    group: str
    kind: str
    namespace: str
    name: str
    refers_to: Annotated[dict[str, str], Meta(description="group, kind, namespace and name of what is deleted.")]
    field: Annotated[str, Meta(description="The field or path by which it refers; empty for depends-on.")]


class CommandDocument(_Data, frozen=True):
    """The output of `apply`, `plan`, `reconcile` or `delete` with `-o json`, or `-o yaml`."""

    command: str
    results: list[ResultData]
    summary: Annotated[dict[str, int], Meta(description="How many results have each outcome.")]
    exit_code: int
    warnings: list[str] = []
    dry_run: bool | UnsetType = UNSET
    dependants: list[DependantData] | UnsetType = UNSET
    error: Annotated[str, Meta(description="Why the command ended early.")] | UnsetType = UNSET

    def to_data(self) -> Json:
        """The document as JSON."""
        data: Json = msgspec.to_builtins(self)
        return data


def schema() -> Json:
    """The JSON Schema of the document."""
    found: Json = msgspec.json.schema(CommandDocument)
    return found


def counts_of(outcomes: Iterable[ResultOutcome]) -> dict[str, int]:
    """How many there are of each outcome, in the order of a summary."""
    found = list(outcomes)
    return {one.value: found.count(one) for one in ResultOutcome if one in found}


def summary_line(counts: Mapping[str, int]) -> str:
    """A summary: `created 3, updated 1, unchanged 106, failed 1`."""
    texts = (f"{_WORDS.get(ResultOutcome(name), name)} {count}" for name, count in counts.items())
    return ", ".join(texts) or "no resources"


# --- Results of steps -------------------------------------------------------------------------------------------------


def result_of(
    ref: ResourceRef,
    summary: OutcomeSummary,
    outcome: StepOutcome | None,
    *,
    begun: str | None = None,
    deleting: bool = False,
) -> ResultData:
    """The result of a resource by its last step; `begun` is what an earlier one began an operation for."""
    return ResultData(
        **ref._asdict(),
        outcome=_outcome_of(summary, outcome, begun),
        reason=_reason_of(outcome, deleting=deleting),
        message=_UNSTEPPED if outcome is None else summary.detail,
    )


def _outcome_of(summary: OutcomeSummary, outcome: StepOutcome | None, begun: str | None) -> ResultOutcome:
    match outcome:
        case Stopped(error=Blocked()):
            return ResultOutcome.BLOCKED
        case _ if summary.code is ExitCode.FAILED:
            return ResultOutcome.FAILED
        case _ if summary.code is ExitCode.WAITING:
            return ResultOutcome.WAITING
        # Of an unmanaged resource the writes are those of an earlier step.
        case Settled(plan=plan, ready=ready) if begun_action(plan) and ready.reason not in UNMANAGED_REASONS:
            return _DONE[begun_action(plan)]
        case Gone():
            return ResultOutcome.DELETED
        case _:
            return ResultOutcome.UNCHANGED if begun is None else _DONE[begun]


def _reason_of(outcome: StepOutcome | None, *, deleting: bool) -> str:
    """The reason in the Ready condition; "" for an error that is in no status."""
    match outcome:
        case Settled(ready=ready):
            return str(ready.reason)
        case Stopped(error) if not _is_unrecorded(error):
            return str(failure(error, deleting=deleting).reason)
        case _:
            return ""


def _is_unrecorded(error: SetpointError) -> bool:
    return isinstance(error, RemoteUnavailable) or error.retry in (Retry.STEP_AGAIN, Retry.STOP, Retry.BUG)


def with_record(result: ResultData, step: JsonObject | None, before: JsonObject | None) -> ResultData:
    """The result with the fields that were written since `before`, by the record of the last step."""
    if step is None or step == before:
        return result
    return msgspec.structs.replace(result, changes=_written_fields(step))


def _written_fields(step: JsonObject) -> list[ChangeData]:
    writes: Any = step.get("writes", ())
    try:
        return [msgspec.convert(change, ChangeData) for write in writes for change in write.get("changes", ())]
    except (AttributeError, TypeError, msgspec.ValidationError):
        # Another writer changed the status: it is no record of ours.
        return []


# --- Results of plans -------------------------------------------------------------------------------------------------


def plan_result(ref: ResourceRef, plan: Plan | SetpointError, code: ExitCode, then: Plan | None = None) -> ResultData:
    """The result of a preview, whose exit code is `code`; of one that waits, with the plan of what follows."""
    if isinstance(plan, SetpointError):
        reason = "" if _is_unrecorded(plan) else str(failure(plan, deleting=False).reason)
        after = UNSET if then is None else then.to_data()
        return ResultData(**ref._asdict(), outcome=_planned_error(plan), reason=reason, message=str(plan), then=after)
    data = plan.to_data()
    if plan.writes:
        outcome = ResultOutcome(plan.writes[0].action.value)
    else:
        outcome = ResultOutcome.UNCHANGED if code is ExitCode.DONE else ResultOutcome.WITHHELD
    changes = _written_fields(data)
    return ResultData(**ref._asdict(), outcome=outcome, message=plan.because, changes=changes, plan=data)


def _planned_error(error: SetpointError) -> ResultOutcome:
    match error:
        case Blocked():
            return ResultOutcome.BLOCKED
        case NotReady():
            return ResultOutcome.WAITING
        case _:
            return ResultOutcome.FAILED

"""Reports of a step to the operator: each write, drift and refusal, with the paths of the fields."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from setpoint.core.diff import FieldChange
from setpoint.core.plan import Action
from setpoint.core.redaction import holds_secret_object, redact_record
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.durations import rfc3339
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.sets.resource_set import source_of
from setpoint.errors import RemoteRefused, Retry, SetpointError

if TYPE_CHECKING:
    from setpoint.engine.context import StepContext


@dataclass(frozen=True, slots=True)
class StepSubject:
    """Which resource a step is for, and who asked for the step: its trigger."""

    ref: ResourceRef
    trigger: str
    # That of the spec, once it is read.
    generation: int | None = None
    # Where its set declared it: revision and file; empty outside of sets.
    source: str = ""

    @staticmethod
    def of(context: "StepContext") -> "StepSubject":
        """The subject of the step in this context."""
        resource = context.resource
        return StepSubject(resource.ref, context.trigger, resource.generation, source_of(resource.annotations))


@dataclass(frozen=True, slots=True)
class ReportedWrite:
    """A write that is about to be sent: what it does to which object, why, and the fields that it sets.

    `target` is the location of the live object, or the child of an owner.
    """

    subject: StepSubject
    action: Action
    target: str
    decision: str
    changes: tuple[FieldChange, ...] = ()


class StepReporter(Protocol):
    """Takes the reports of steps: a log, an audit log, or both."""

    def writing(self, writes: Sequence[ReportedWrite]) -> AbstractContextManager[None]:
        """Around the requests of these writes: an exception is their failure, the end of the block their success."""
        ...

    def drift(self, subject: StepSubject, fields: Sequence[str], *, is_deleted: bool = False) -> None:
        """Another writer changed these fields of the live object, or deleted it; without either, there is no drift."""
        ...

    def refused(self, subject: StepSubject, error: SetpointError) -> None:
        """The step was refused: by the service, or because the author has to change something."""
        ...

    def take_history(self, ref: ResourceRef) -> "Sequence[HistoryEntry]":
        """What is to be stored of these reports with the next status of a resource, since the last call."""
        ...


class NoReports:
    """Steps that are not reported: those of a single command, which shows them itself."""

    def writing(self, writes: Sequence[ReportedWrite]) -> AbstractContextManager[None]:  # as in the protocol
        """See StepReporter."""
        return nullcontext()

    def drift(self, subject: StepSubject, fields: Sequence[str], *, is_deleted: bool = False) -> None:
        """See StepReporter."""

    def refused(self, subject: StepSubject, error: SetpointError) -> None:
        """See StepReporter."""

    def take_history(self, ref: ResourceRef) -> "Sequence[HistoryEntry]":  # as in the protocol
        """See StepReporter."""
        return ()


def is_refusal(error: SetpointError) -> bool:
    """Whether a step that ended with `error` was refused, and did not only have to wait."""
    return error.retry is Retry.ON_EDIT or isinstance(error, RemoteRefused)


# --- History ----------------------------------------------------------------------------------------------------------
# Entries are written with the status of a step, in its transaction where the store has one: a history costs no commit.
# They hold no secret values: plans have none, and fields with a secret-sounding name are redacted besides.

# Where the record of the last step is in a status.
_STATE, _STEP = "setpoint", "step"


class HistoryType(StrEnum):
    """What an entry is about."""

    # A step that came as far as a plan: what it decided, the fields that it wrote, kept and withheld.
    STEP = "step"
    # The requests of a write of this process, and how the service answered.
    WRITE = "write"
    # Another writer changed fields of the live object, or deleted it.
    DRIFT = "drift"
    REFUSED = "refused"
    # An Event of the cluster. No store keeps it as an entry: it stands for a history in another process' memory.
    EVENT = "event"


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One entry: when, what, and its data as JSON. `number` grows with each entry of a store; 0 before it is stored."""

    type: HistoryType
    at: str
    data: JsonObject
    number: int = 0


class HistorySource(Protocol):
    """What was reported of a resource, and is not stored yet."""

    def take_history(self, ref: ResourceRef) -> "Sequence[HistoryEntry]":
        """What was reported since the last call, the oldest first."""
        ...


def history_of_commit(resource: Resource, status: JsonObject, source: HistorySource) -> tuple[HistoryEntry, ...]:
    """The entries that are stored with the next status of a resource: its new step, and what was reported before."""
    reported = tuple(source.take_history(resource.ref))
    before, after = _step(resource.status), _step(status)
    if after is None or after == before:
        return reported
    return (*reported, _step_entry(after, resource))


def end_of_history(resource: Resource, step: JsonObject | None, source: HistorySource) -> tuple[HistoryEntry, ...]:
    """The entries that are stored as a resource goes, with the record of its last step: no status has it any more."""
    return history_of_commit(resource, {} if step is None else {_STATE: {_STEP: step}}, source)


def step_on_record(resource: Resource) -> HistoryEntry | None:
    """The last step of a resource, as its status has it; None before the first one."""
    step = _step(resource.status)
    return None if step is None else _step_entry(step, resource)


def _step_entry(step: JsonObject, resource: Resource) -> HistoryEntry:
    record = redact_record(step, whole=_holds_secret_object(resource))
    assert isinstance(record, Mapping)
    at = record.get("at")
    return HistoryEntry(HistoryType.STEP, at if isinstance(at, str) else "", record)


def _holds_secret_object(resource: Resource) -> bool:
    """Whether there is a Secret anywhere in the resource: without the word, the author's part need not be searched."""
    if not resource.shows("Secret"):
        return False
    document = resource.document
    if not resource.mentions("Secret"):
        document = {name: document[name] for name in ("metadata", "status") if name in document}
    return holds_secret_object(document)


def _step(status: JsonObject) -> Mapping[str, Json] | None:
    ours = status.get(_STATE)
    step = ours.get(_STEP) if isinstance(ours, Mapping) else None
    return step if isinstance(step, Mapping) else None


# Commits of the same second share the answer.
@lru_cache(maxsize=8)
def oldest_kept(now: str, days: int) -> str:
    """The time before which nothing is kept."""
    return rfc3339(int((datetime.fromisoformat(now) - timedelta(days=days)).timestamp()))

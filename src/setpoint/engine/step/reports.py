"""Reports of a step to the operator: each write, drift and refusal, with the paths of the fields."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Protocol

from setpoint.core.diff import FieldChange
from setpoint.core.plan import Action
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.engine.resource import ResourceRef
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


class NoReports:
    """Steps that are not reported: those of a single command, which shows them itself."""

    def writing(self, writes: Sequence[ReportedWrite]) -> AbstractContextManager[None]:  # as in the protocol
        """See StepReporter."""
        return nullcontext()

    def drift(self, subject: StepSubject, fields: Sequence[str], *, is_deleted: bool = False) -> None:
        """See StepReporter."""

    def refused(self, subject: StepSubject, error: SetpointError) -> None:
        """See StepReporter."""


def is_refusal(error: SetpointError) -> bool:
    """Whether a step that ended with `error` was refused, and did not only have to wait."""
    return error.retry is Retry.ON_EDIT or isinstance(error, RemoteRefused)

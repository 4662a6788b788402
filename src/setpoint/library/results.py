"""The results of a command: what was done with each resource, or what a plan would do. The document of `-o json`."""

from collections.abc import Iterator, Mapping
from typing import Final, Self

import msgspec
from msgspec import UNSET

from setpoint.core.conditions import Condition
from setpoint.core.plan import Plan
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json
from setpoint.core.wait.outputs import Null, OutputState
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.step.outcomes import Stopped
from setpoint.errors import ManifestInvalid, ResourcesFailed, SetpointError
from setpoint.library.command_document import ChangeData, CommandDocument, ResultData, ResultOutcome, summary_line
from setpoint.library.command_record import CommandRecord
from setpoint.library.declared import DeclaredResource, SessionValue
from setpoint.library.outcome import ExitCode

_NOT_TRACKED: Final = Null()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ResourceResult(SessionValue):
    """What a command did with one resource, or what a plan would do.

    `changes` are the fields that were written, or would be. `plan` is what a plan found: its writes with the fields and
    the rule of each, what is kept, and what is held back and why. `error` is why the resource is not done.
    """

    ref: ResourceRef
    outcome: ResultOutcome
    reason: str = ""
    message: str = ""
    changes: tuple[ChangeData, ...] = ()
    location: str | None = None
    plan: Plan | None = None
    # In a plan, of one that waits: what follows once what it waits for is there, if that is known.
    then: Plan | None = None
    conditions: tuple[Condition, ...] = ()
    outputs: OutputState = _NOT_TRACKED
    error: SetpointError | None = None
    # What it means for the exit code of the command.
    exit_code: ExitCode = ExitCode.DONE
    # As a member of the document for programs.
    source: ResultData

    @property
    def is_failed(self) -> bool:
        """Whether the author or the operator has to act."""
        return self.exit_code is ExitCode.FAILED

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do, and to wait for."""
        return self.exit_code is ExitCode.DONE

    def to_data(self) -> Json:
        """The result as a member of the document for programs."""
        data: Json = msgspec.to_builtins(self.source)
        return data

    def __repr__(self) -> str:
        return f"<{self.ref} {self.outcome.value}" + (f": {_cut(self.message)}>" if self.message else ">")

    def _repr_html_(self) -> str:
        from setpoint.library.inspection.notebook_html import results_html

        return results_html((self,), "")


@dataclass(frozen=True, slots=True, eq=False)
class CommandResult(SessionValue):
    """The results of `plan`, `apply`, `reconcile`, `delete` or `wait`, one for each resource.

    `to_json()` is what the command prints with `-o json`.
    """

    results: tuple[ResourceResult, ...]
    document: CommandDocument

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of the command: 0 done, 1 failed, 2 a plan has changes, 3 still waiting or blocked."""
        return ExitCode(self.document.exit_code)

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do: all is settled, or gone; of a plan, it would write nothing."""
        return self.exit_code is ExitCode.DONE

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the author or the operator should know."""
        return tuple(self.document.warnings)

    @property
    def summary(self) -> Mapping[str, int]:
        """How many results have each outcome."""
        return dict(self.document.summary)

    @property
    def failures(self) -> tuple[ResourceResult, ...]:
        """The results of resources that failed, or were to be deleted and are not declared."""
        return tuple(one for one in self.results if one.is_failed)

    def raise_for_failures(self) -> Self:
        """Itself; ResourcesFailed when a resource failed. What waits, or is blocked, is no failure."""
        if self.failures:
            lines = (f"{one.ref}: {one.message or one.outcome.value}" for one in self.failures)
            raise ResourcesFailed("\n".join(lines), tuple(str(one.ref) for one in self.failures))
        return self

    def __iter__(self) -> Iterator[ResourceResult]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, which: int | str | ResourceRef) -> ResourceResult:
        """The result of a resource: by its position, its ref, or KIND/NAME. KeyError when there is none."""
        if isinstance(which, int):
            return self.results[which]
        for one in self.results:
            if which in (one.ref, f"{one.ref.kind}/{one.ref.name}"):
                return one
        raise KeyError(which)

    def to_data(self) -> Json:
        """The document of the command."""
        return self.document.to_data()

    def __repr__(self) -> str:
        return f"<{self.document.command}: {summary_line(self.document.summary)}>"

    def _repr_html_(self) -> str:
        from setpoint.library.inspection.notebook_html import results_html

        return results_html(self.results, f"{self.document.command}: {summary_line(self.document.summary)}")


def _cut(text: str, most: int = 80) -> str:
    line = text.partition("\n")[0]
    return line if len(line) <= most else f"{line[: most - 1]}…"


def results_of(record: CommandRecord, redacted: Mapping[ResourceRef, DeclaredResource]) -> CommandResult:
    """The results of a command at its end; `redacted` are its resources without secret values."""
    results = tuple(_result_of(ref, record, redacted.get(ref, _UNDECLARED)) for ref in record.results)
    return CommandResult(results, record.document())


_UNDECLARED: Final = DeclaredResource(Resource({}))


def _result_of(ref: ResourceRef, record: CommandRecord, declared: DeclaredResource) -> ResourceResult:
    result, planned, outcome = record.results[ref], record.plans.get(ref), record.outcomes.get(ref)
    error = planned if isinstance(planned, SetpointError) else None
    if result.outcome is ResultOutcome.NOT_FOUND:
        error = ManifestInvalid(f"{ref}: {result.message}")
    elif isinstance(outcome, Stopped):
        error = outcome.error
    is_declared = declared is not _UNDECLARED
    return ResourceResult(
        ref=ref,
        outcome=result.outcome,
        reason=result.reason,
        message=result.message,
        changes=tuple(result.changes),
        location=declared.location if result.location is UNSET else result.location,
        plan=planned if isinstance(planned, Plan) else None,
        then=record.then.get(ref),
        conditions=declared.conditions if is_declared else (),
        outputs=declared.outputs if is_declared else _NOT_TRACKED,
        error=error,
        exit_code=record.codes[ref],
        source=result,
    )

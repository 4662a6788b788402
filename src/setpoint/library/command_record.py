"""What a command did so far: the state of each resource, results, warnings; and its document at the end.

A `CommandObserver` is told of it while the command runs.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from msgspec import UNSET, structs

from setpoint.core.plan import Plan
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.context import EngineContext
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.state import StoredState
from setpoint.engine.step.outcomes import Gone, Settled, StepOutcome, Stopped
from setpoint.errors import OperationRunning, SetpointError, WriteConflict
from setpoint.library.command_document import (
    CommandDocument,
    DependantData,
    ResultData,
    ResultOutcome,
    counts_of,
    result_of,
    with_record,
)
from setpoint.library.outcome import BEGUN_WORDS, ExitCode, OutcomeSummary, summarize_outcome, worst_exit_code

if TYPE_CHECKING:
    from setpoint.engine.step.preview import PreviewResult
    from setpoint.library.deletion import Deletion

NOT_STEPPED: Final = OutcomeSummary("reconciling", "", "dim", ExitCode.WAITING)
_WRITTEN: Final = (ResultOutcome.CREATED, ResultOutcome.UPDATED, ResultOutcome.REPLACED, ResultOutcome.ADOPTED)


class ReportedCommand(StrEnum):
    """A command that has results."""

    APPLY = "apply"
    PLAN = "plan"
    RECONCILE = "reconcile"
    DELETE = "delete"
    WAIT = "wait"


class CommandObserver:
    """Is told what a command does while it runs; a subclass overrides what it wants to know.

    Its methods are called between the steps, and should return at once.
    """

    # Whether results name the fields that were written; without them, fewer records are read.
    needs_fields = True

    def begun(self, record: "CommandRecord") -> None:
        """The command begins; `record` is updated until it ends."""

    def warned(self, text: str) -> None:
        """Something in the manifests has no effect."""

    def announced(self, deletion: "Deletion") -> None:
        """What is going to be deleted, before it is."""

    def running(self) -> AbstractContextManager[object]:
        """Is entered while steps are taken."""
        return nullcontext()

    def expected(self, refs: Iterable[ResourceRef]) -> None:
        """These resources are going to be reconciled."""

    def changed(self, ref: ResourceRef, state: OutcomeSummary) -> None:
        """What became of a resource so far."""

    def previewed(self, found: "PreviewResult") -> None:
        """The plan of a resource, while all of a store are planned."""


@dataclass(slots=True)
class CommandRecord:
    """The record of one command, while it runs and at its end."""

    command: ReportedCommand
    observer: CommandObserver
    states: dict[ResourceRef, OutcomeSummary] = field(default_factory=dict)
    outcomes: dict[ResourceRef, StepOutcome] = field(default_factory=dict)
    # How resources are shown once they are gone, where that says more than `deleted`.
    gone: Mapping[ResourceRef, OutcomeSummary] = field(default_factory=dict)
    # Of a deletion: what stays and refers to it, the live objects, and the resources whose object stays.
    dependants: list[DependantData] | None = None
    locations: Mapping[ResourceRef, str] = field(default_factory=dict)
    abandoned: Collection[ResourceRef] = ()
    dry_run: bool = False
    results: dict[ResourceRef, ResultData] = field(default_factory=dict)
    # What a preview found.
    plans: Mapping[ResourceRef, Plan | SetpointError] = field(default_factory=dict)
    # Of those that wait: what follows, where it is known.
    then: Mapping[ResourceRef, Plan] = field(default_factory=dict)
    # The resources as they are at the end, where fields are needed.
    resources: dict[ResourceRef, Resource] = field(default_factory=dict)
    # About manifests, and about what happened later.
    input_warnings: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    # What each result means for the exit code, and what warnings do.
    codes: dict[ResourceRef, ExitCode] = field(default_factory=dict)
    _warning_codes: list[ExitCode] = field(default_factory=list)
    _begun: dict[ResourceRef, str] = field(default_factory=dict)
    # The records of earlier steps; a deletion writes no field.
    _before: Mapping[ResourceRef, JsonObject | None] | None = None

    # --- While it runs ----------------------------------------------------------------------------------------------

    def warn(self, text: str, code: ExitCode = ExitCode.DONE) -> None:
        """Adds a warning, for the end; `code` is the exit code that it means."""
        self.warnings.append(text)
        self._warning_codes.append(code)

    def warn_at_once(self, text: str) -> None:
        """Adds a warning about the input."""
        self.input_warnings.append(text)
        self.observer.warned(text)

    def expect(self, refs: Iterable[ResourceRef]) -> None:
        """Adds resources that are going to be reconciled."""
        expected = list(refs)
        self.states = dict(sorted({**dict.fromkeys(expected, NOT_STEPPED), **self.states}.items()))
        self.observer.expected(expected)

    def add_outcome(self, ref: ResourceRef, outcome: StepOutcome) -> None:
        """Adds the outcome of a step."""
        self.outcomes[ref] = outcome
        self._set_state(ref, self._summary_of(ref, outcome))

    def add(self, ref: ResourceRef, result: ResultData, code: ExitCode) -> None:
        """Adds a result that is not that of a step; `code` is the exit code that it means."""
        self.results[ref] = result
        self.codes[ref] = code

    def show(self, ref: ResourceRef, outcome: ResultOutcome, state: OutcomeSummary) -> None:
        """Adds a result that is not that of a step, and shows it among those of steps."""
        self._set_state(ref, state)
        self.add(ref, ResultData(**ref._asdict(), outcome=outcome, message=state.detail), state.code)

    def _set_state(self, ref: ResourceRef, state: OutcomeSummary) -> None:
        self.states[ref] = state
        self.observer.changed(ref, state)

    def _summary_of(self, ref: ResourceRef, outcome: StepOutcome) -> OutcomeSummary:
        """The summary of an outcome. The end of an operation counts as the action that it was started for."""
        error = outcome.error if isinstance(outcome, Stopped) else None
        if isinstance(error, OperationRunning | WriteConflict) and error.begun:
            self._begun[ref] = error.begun
        if isinstance(outcome, Gone) and ref in self.gone:
            return self.gone[ref]
        state = summarize_outcome(outcome)
        is_done = isinstance(outcome, Settled) and not outcome.plan.writes and state.code is ExitCode.DONE
        return replace(state, word=BEGUN_WORDS[self._begun[ref]]) if is_done and ref in self._begun else state

    # --- Its beginning and its end ----------------------------------------------------------------------------------

    async def begin(self, refs: Iterable[ResourceRef], engine: EngineContext) -> None:
        """To be called before the first write: what is written since then is told field by field, where needed."""
        if self.observer.needs_fields:
            from setpoint.engine.drivers.follower import step_records

            self._before = await step_records(refs, engine.store)

    async def end(self, engine: EngineContext) -> None:
        """To be called after the last step, with the store open: takes the results of all steps."""
        deleting = self.command is ReportedCommand.DELETE
        for ref, state in self.states.items():
            if ref not in self.results:
                begun, outcome = self._begun.get(ref), self.outcomes.get(ref)
                result = result_of(ref, state, outcome, begun=begun, deleting=deleting)
                if isinstance(outcome, Gone) and ref in self.abandoned:
                    result = structs.replace(result, outcome=ResultOutcome.ABANDONED)
                self.add(ref, result, state.code)
        self.results = dict(sorted(self.results.items()))
        if self.observer.needs_fields:
            await self._add_records(list(self.results), engine)

    async def _add_records(self, refs: Sequence[ResourceRef], engine: EngineContext) -> None:
        for ref, resource in zip(refs, await engine.store.get_many(refs), strict=True):
            state = StoredState() if resource is None else StoredState.of(resource)
            if resource is not None:
                self.resources[ref] = resource
            location = self.locations.get(ref) or state.location
            result = self.results[ref]
            # Owners and children join the steps later: of these, only what was written now has a record of now.
            if self._before is not None and (ref in self._before or result.outcome in _WRITTEN):
                result = with_record(result, state.step, self._before.get(ref))
            self.results[ref] = structs.replace(result, location=UNSET if location is None else location)

    @property
    def exit_code(self) -> ExitCode:
        """The exit code that all results and warnings together mean."""
        return worst_exit_code((*self.codes.values(), *self._warning_codes))

    def document(self, error: SetpointError | None = None) -> CommandDocument:
        """The document for programs; `error` is why the command ended early."""
        results = list(self.results.values())
        return CommandDocument(
            command=self.command.value,
            results=results,
            summary=counts_of(one.outcome for one in results),
            exit_code=int(self.exit_code if error is None else ExitCode.FAILED),
            warnings=[*self.input_warnings, *self.warnings],
            dry_run=self.dry_run or UNSET,
            dependants=UNSET if self.dependants is None else self.dependants,
            error=UNSET if error is None else str(error),
        )

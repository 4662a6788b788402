"""What a command says: lines while it runs, the unfinished and a summary at its end; or one document for programs."""

from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import field
from enum import StrEnum
from typing import Final

from msgspec import UNSET
from msgspec.structs import replace
from rich.text import Text

from setpoint.cli.request import CommandRequest, print_document
from setpoint.cli.views.command_document import (
    CommandDocument,
    DependantData,
    ResultData,
    ResultOutcome,
    counts_of,
    result_of,
    summary_line,
    with_record,
)
from setpoint.cli.views.outcome import ExitCode, OutcomeSummary, worst_exit_code
from setpoint.cli.views.progress import ResourceProgress
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.context import EngineContext
from setpoint.engine.drivers.follower import step_records
from setpoint.engine.resource import ResourceRef
from setpoint.engine.state import StoredState
from setpoint.engine.step.outcomes import Gone
from setpoint.errors import SetpointError

_WRITTEN: Final = (ResultOutcome.CREATED, ResultOutcome.UPDATED, ResultOutcome.REPLACED, ResultOutcome.ADOPTED)


class ReportedCommand(StrEnum):
    """A command whose output ends with a summary."""

    APPLY = "apply"
    PLAN = "plan"
    RECONCILE = "reconcile"
    DELETE = "delete"


@dataclass(slots=True)
class CommandReport:
    """The report of one command. `progress` shows steps; results are added beside them."""

    request: CommandRequest
    command: ReportedCommand
    progress: ResourceProgress
    dependants: list[DependantData] | None = None
    # Of `delete`: the live objects, and the resources whose object stays.
    locations: Mapping[ResourceRef, str] = field(default_factory=dict)
    abandoned: Collection[ResourceRef] = ()
    _results: dict[ResourceRef, ResultData] = field(default_factory=dict)
    _codes: list[ExitCode] = field(default_factory=list)
    _warnings: list[str] = field(default_factory=list)
    # The records of earlier steps; a deletion writes no field.
    _before: Mapping[ResourceRef, JsonObject | None] | None = None

    @property
    def is_data(self) -> bool:
        """Whether the output is a document for programs."""
        return self.request.output in ("json", "yaml")

    @property
    def prints_lines(self) -> bool:
        """Whether every resource has a line, done or not."""
        return not (self.is_data or self.request.quiet)

    def print_line(self, text: str, style: str = "") -> None:
        """Prints a line, in the output for people."""
        if not self.is_data:
            self.request.console.print(Text(text, style=style), soft_wrap=True)

    def warn(self, text: str, code: ExitCode = ExitCode.DONE) -> None:
        """Adds a warning, for the end of the output; `code` is the exit code that it means."""
        self._warnings.append(text)
        self._codes.append(code)

    def warn_at_once(self, text: str) -> None:
        """Prints a warning about the input on standard error; a document for programs has it, too."""
        self.request.settings.warn(text)
        if self.is_data:
            self._warnings.append(text)

    def add(self, ref: ResourceRef, result: ResultData, code: ExitCode) -> None:
        """Adds a result that is not that of a step; `code` is the exit code that it means."""
        self._results[ref] = result
        self._codes.append(code)

    def show(self, ref: ResourceRef, outcome: ResultOutcome, state: OutcomeSummary) -> None:
        """Adds a result that is not that of a step, and shows it among those of steps."""
        self.progress.set_state(ref, state)
        self.add(ref, ResultData(**ref._asdict(), outcome=outcome, message=state.detail), state.code)

    async def begin(self, refs: Iterable[ResourceRef], engine: EngineContext) -> None:
        """To be called before the first write: for programs, what is written since then is told field by field."""
        if self.is_data:
            self._before = await step_records(refs, engine.store)

    async def end(self, engine: EngineContext) -> None:
        """To be called after the last step, with the store open: takes the results of all steps."""
        deleting = self.command is ReportedCommand.DELETE
        for ref, state in self.progress.states.items():
            if ref not in self._results:
                begun, outcome = self.progress.begun_action(ref), self.progress.outcomes.get(ref)
                result = result_of(ref, state, outcome, begun=begun, deleting=deleting)
                if isinstance(outcome, Gone) and ref in self.abandoned:
                    result = replace(result, outcome=ResultOutcome.ABANDONED)
                self.add(ref, result, state.code)
        self._results = dict(sorted(self._results.items()))
        if self.is_data:
            await self._add_records(list(self._results), engine)

    async def _add_records(self, refs: Sequence[ResourceRef], engine: EngineContext) -> None:
        for ref, resource in zip(refs, await engine.store.get_many(refs), strict=True):
            state = StoredState() if resource is None else StoredState.of(resource)
            location = self.locations.get(ref) or state.location
            result = self._results[ref]
            # Owners and children join the steps later: of these, only what was written now has a record of now.
            if self._before is not None and (ref in self._before or result.outcome in _WRITTEN):
                result = with_record(result, state.step, self._before.get(ref))
            self._results[ref] = replace(result, location=UNSET if location is None else location)

    def finish(self, *, dry_run: bool = False) -> ExitCode:
        """Prints the end of the output, or the whole document; returns the exit code."""
        code = worst_exit_code(self._codes)
        if self.is_data:
            print_document(self._document(code, dry_run=dry_run).to_data(), self.request)
            return code
        for text in self._warnings:
            self.print_line(text, "yellow")
        self.progress.print_unfinished()
        counts = counts_of(one.outcome for one in self._results.values())
        self.print_line(summary_line(counts) + (" (dry run)" if dry_run else ""), "bold")
        return code

    def print_failure(self, error: SetpointError) -> None:
        """For programs, the document of a command that ended early."""
        if self.is_data:
            document = replace(self._document(ExitCode.FAILED, dry_run=self.request.dry_run), error=str(error))
            print_document(document.to_data(), self.request)

    def _document(self, code: ExitCode, *, dry_run: bool) -> CommandDocument:
        results = list(self._results.values())
        return CommandDocument(
            command=self.command.value,
            results=results,
            summary=counts_of(one.outcome for one in results),
            exit_code=int(code),
            warnings=self._warnings,
            dry_run=dry_run or UNSET,
            dependants=UNSET if self.dependants is None else self.dependants,
        )


@asynccontextmanager
async def reporting(request: CommandRequest, command: ReportedCommand) -> AsyncIterator[CommandReport]:
    """The report of a command; for programs, also one that ends with an error prints its document."""
    is_shown = not request.quiet and request.output not in ("json", "yaml")
    report = CommandReport(request, command, ResourceProgress(request.console, is_shown))
    try:
        yield report
    except SetpointError as error:
        report.print_failure(error)
        raise

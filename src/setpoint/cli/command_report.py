"""What a command says: lines while it runs, the unfinished and a summary at its end; or one document for programs."""

from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractContextManager, asynccontextmanager
from typing import TYPE_CHECKING

from rich.text import Text

from setpoint.cli.request import CommandRequest, print_document
from setpoint.cli.views.progress import ResourceProgress
from setpoint.engine.dependency_graph import EdgeType, GraphEdge
from setpoint.engine.resource import ResourceRef
from setpoint.errors import SetpointError
from setpoint.library.command_document import counts_of, summary_line
from setpoint.library.command_record import CommandObserver, CommandRecord, ReportedCommand
from setpoint.library.outcome import ExitCode, OutcomeSummary

if TYPE_CHECKING:
    from setpoint.library.command_document import CommandDocument
    from setpoint.library.deletion import Deletion


class CommandReport(CommandObserver):
    """The report of one command: shows its record on the console, as it grows."""

    def __init__(self, request: CommandRequest, command: ReportedCommand) -> None:
        self.request = request
        self.progress = ResourceProgress(request.console, self.prints_lines)
        self.needs_fields = self.is_data
        # Of `delete`: whether what depends on the resources is still to be printed.
        self.prints_dependants = True
        self.record = CommandRecord(command, self)

    @property
    def is_data(self) -> bool:
        """Whether the output is a document for programs."""
        return self.request.output in ("json", "yaml", "markdown")

    @property
    def prints_lines(self) -> bool:
        """Whether every resource has a line, done or not."""
        return not (self.is_data or self.request.quiet)

    def print_line(self, text: str, style: str = "") -> None:
        """Prints a line, in the output for people."""
        if not self.is_data:
            self.request.console.print(Text(text, style=style), soft_wrap=True)

    # --- While it runs ----------------------------------------------------------------------------------------------

    def begun(self, record: CommandRecord) -> None:
        """See CommandObserver."""
        self.record = record

    def warned(self, text: str) -> None:
        """See CommandObserver."""
        self.request.settings.warn(text)

    def announced(self, deletion: "Deletion") -> None:
        """See CommandObserver."""
        if self.prints_lines and self.prints_dependants:
            for edge in deletion.dependants:
                self.print_line(dependant_line(edge), "yellow")

    def running(self) -> AbstractContextManager[object]:
        """See CommandObserver."""
        return self.progress

    def expected(self, refs: Iterable[ResourceRef]) -> None:
        """See CommandObserver."""
        self.progress.expect(refs)

    def changed(self, ref: ResourceRef, state: OutcomeSummary) -> None:
        """See CommandObserver."""
        self.progress.set_state(ref, state)

    # --- At its end -------------------------------------------------------------------------------------------------

    def finish(self) -> ExitCode:
        """Prints the end of the output, or the whole document; returns the exit code."""
        record = self.record
        if self.is_data:
            self._print_document(record.document())
            return record.exit_code
        for text in record.warnings:
            self.print_line(text, "yellow")
        self.progress.print_unfinished()
        counts = counts_of(one.outcome for one in record.results.values())
        self.print_line(summary_line(counts) + (" (dry run)" if record.dry_run else ""), "bold")
        return record.exit_code

    def print_failure(self, error: SetpointError) -> None:
        """For programs, the document of a command that ended early."""
        if self.is_data:
            self.record.dry_run = self.request.dry_run
            self._print_document(self.record.document(error))

    def _print_document(self, document: "CommandDocument") -> None:
        if self.request.output != "markdown":
            print_document(document.to_data(), self.request)
            return
        from setpoint.cli.views.markdown import plan_markdown

        data = document.to_data()
        assert isinstance(data, dict)
        self.request.console.out(plan_markdown(data), end="")


def dependant_line(edge: GraphEdge) -> str:
    """That a resource stays, and refers to one that is deleted."""
    if edge.type is EdgeType.ORDER:
        return f"{edge.dependant} depends on {edge.needed}, and stays"
    return f"{edge.dependant} refers to {edge.needed} by {edge.label}, and stays"


@asynccontextmanager
async def reporting(request: CommandRequest, command: ReportedCommand) -> AsyncIterator[CommandReport]:
    """The report of a command; for programs, also one that ends with an error prints its document."""
    report = CommandReport(request, command)
    try:
        yield report
    except SetpointError as error:
        report.print_failure(error)
        raise

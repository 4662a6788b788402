"""`setpoint delete`: the question on a terminal, and the deletion."""

import asyncio
import sys

from rich.text import Text

from setpoint.cli.command_report import CommandReport, dependant_line, reporting
from setpoint.cli.request import CommandRequest, open_session, selected, selects
from setpoint.cli.views.terminal import SafeConsole, error_console
from setpoint.errors import UserError
from setpoint.library.command_record import ReportedCommand
from setpoint.library.deletion import Deletion
from setpoint.library.outcome import ExitCode
from setpoint.library.session import Session
from setpoint.library.targets import Selection


async def delete(request: CommandRequest) -> ExitCode:
    """Requests deletion, then reconciles until all are gone: dependants before what they need."""
    async with reporting(request, ReportedCommand.DELETE) as report:
        async with open_session(request) as session:
            selection = await selected(request, session)
            if selection.is_empty and selects(request):
                # --ignore-not-found: an empty selection would be an error of its own.
                return report.finish()
            _require_yes(request)
            is_asking = not (request.yes or request.dry_run) and _is_on_terminal()
            if is_asking:
                await _require_confirmed(selection, session, report)
            # What depends on it was printed with the question.
            report.prints_dependants = not is_asking
            await session.delete(
                selection,
                dry_run=request.dry_run,
                ignore_not_found=request.ignore_not_found,
                wait=request.wait,
                timeout=request.seconds,
                observer=report,
            )
        return report.finish()


def _require_yes(request: CommandRequest) -> None:
    """UserError for a deletion by kind, labels or fields that no author has confirmed, and that cannot be asked."""
    if selects(request) and not (request.yes or request.dry_run or _is_on_terminal()):
        raise UserError(
            "a deletion by kind, labels or fields has to be confirmed: --dry-run shows what it deletes, --yes does it"
        )


def _is_on_terminal() -> bool:
    return all(one is not None and one.isatty() for one in (sys.stdin, sys.stdout))


async def _require_confirmed(selection: Selection, session: Session, report: CommandReport) -> None:
    """Asks on the terminal; UserError when the answer is not yes. The store is not held meanwhile."""
    console = error_console() if report.is_data else report.request.console
    deletion = await session.preview_deletion(selection)
    if not deletion.found:
        return
    _print_deletion(deletion, console)
    count = len(deletion.found)
    if not await _is_confirmed(f"Delete {count} resource{'s' * (count != 1)}? [y/N] ", console):
        raise UserError("nothing was deleted: the answer was not yes; --yes deletes without a question")


def _print_deletion(deletion: Deletion, console: SafeConsole) -> None:
    for edge in deletion.dependants:
        console.print(Text(dependant_line(edge), style="yellow"), soft_wrap=True)
    for ref in deletion.order:
        fate = deletion.fate_of(ref)
        text = f"{ref} will be {fate.outcome}" + (f": {fate.detail}" if fate.detail else "")
        console.print(Text(text), soft_wrap=True)


async def _is_confirmed(question: str, console: SafeConsole) -> bool:
    console.print(Text(question, style="bold"), end="")
    loop, typed = asyncio.get_running_loop(), asyncio.Event()
    # Not by a thread, which would keep the process after Ctrl-C: a terminal is readable once a line is typed.
    loop.add_reader(sys.stdin, typed.set)
    try:
        await typed.wait()
    finally:
        loop.remove_reader(sys.stdin)
    return sys.stdin.readline().strip().lower() in ("y", "yes")

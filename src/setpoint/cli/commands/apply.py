"""`setpoint apply`, `reconcile` and `plan`: what they print of the results of a session.

START HERE: `apply`.
"""

from setpoint.cli.command_report import CommandReport, reporting
from setpoint.cli.request import CommandRequest, open_session, selected, selection_of
from setpoint.cli.views.table import one_line
from setpoint.core.plan import Plan
from setpoint.errors import Blocked, ManifestInvalid, NotReady, SetpointError
from setpoint.library.command_record import ReportedCommand
from setpoint.library.outcome import ExitCode


async def apply(request: CommandRequest) -> ExitCode:
    """Declares the manifests, then reconciles until every resource is settled, blocked or failed."""
    async with reporting(request, ReportedCommand.APPLY) as report:
        if not request.files:
            raise ManifestInvalid("nothing to apply: name a file or folder with -f, or - for standard input")
        async with open_session(request) as session:
            await session.apply(
                selection_of(request),
                wait=request.wait,
                timeout=request.seconds,
                scope=request.scope,
                observer=report,
            )
        return report.finish()


async def reconcile(request: CommandRequest) -> ExitCode:
    """Reconciles resources that are declared already."""
    async with reporting(request, ReportedCommand.RECONCILE) as report:
        async with open_session(request) as session:
            what = await selected(request, session)
            await session.reconcile(what, wait=request.wait, timeout=request.seconds, observer=report)
        return report.finish()


async def plan(request: CommandRequest) -> ExitCode:
    """Shows each plan, in the order in which they would be executed; last those that cannot be made."""
    async with reporting(request, ReportedCommand.PLAN) as report:
        async with open_session(request) as session:
            await session.plan(await selected(request, session), scope=request.scope, observer=report)
        _show_plans(report)
        return report.finish()


def _show_plans(report: CommandReport) -> None:
    """Shows the plans in their order, then what waits, with what follows, and failures last."""
    from setpoint.cli.views.plan import plan_view

    for ref, one in sorted(report.record.plans.items(), key=lambda item: _error_rank(item[1])):
        if isinstance(one, SetpointError):
            word, style = _error_word(one)
            report.print_line(str(ref), "bold cyan")
            report.print_line(f"{word}: {one_line(str(one))}", style)
            then = report.record.then.get(ref)
            if then is not None and report.prints_lines:
                report.request.console.print(plan_view(then, is_later=True), soft_wrap=True)
        elif report.prints_lines:
            report.print_line(str(ref), "bold cyan")
            report.request.console.print(plan_view(one), soft_wrap=True)


def _error_rank(one: Plan | SetpointError) -> int:
    return (0 if isinstance(one, Plan) else 1) if isinstance(one, Plan | NotReady) else 2


def _error_word(error: SetpointError) -> tuple[str, str]:
    """Why there is no plan, in one word, and its colour."""
    match error:
        case Blocked():
            return "blocked", "magenta"
        case NotReady():
            return "waiting", "yellow"
        case _:
            return "failed", "red"

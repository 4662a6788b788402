"""`setpoint apply`, `reconcile` and `plan`: declare resources, and reconcile them or show what that would do.

START HERE: `apply`.
"""

from collections.abc import Mapping, Sequence

from setpoint.app import open_engine_read_only, overlay_drafts
from setpoint.cli.annotation_warnings import warn_about_manifests, warn_about_resources
from setpoint.cli.command_report import CommandReport, ReportedCommand, reporting
from setpoint.cli.executors import executor_for
from setpoint.cli.manifest_checks import dry_run_manifests, in_order
from setpoint.cli.manifests import LoadedManifest
from setpoint.cli.request import CommandRequest, declared_refs, read_request_files
from setpoint.cli.views.command_document import ResultOutcome, plan_result
from setpoint.cli.views.outcome import ExitCode, OutcomeSummary
from setpoint.cli.views.plan import plan_view
from setpoint.cli.views.table import one_line
from setpoint.clients.write_guard import BlockedWrites
from setpoint.core.plan import Hold, Plan
from setpoint.engine.context import EngineContext
from setpoint.engine.drivers.observe_together import plan_together
from setpoint.engine.owners.children import is_unreconciled, owners_of_children
from setpoint.engine.resource import ResourceRef, Revision
from setpoint.engine.step.reconcile import preview
from setpoint.engine.step.reconcile_request import CommandTrigger
from setpoint.errors import Blocked, ManifestInvalid, NotReady, SetpointError


async def apply(request: CommandRequest) -> ExitCode:
    """Declares the manifests, then reconciles until every resource is settled, blocked or failed."""
    async with reporting(request, ReportedCommand.APPLY) as report:
        read = read_request_files(_require_files(request))
        async with executor_for(request) as executor:
            engine = executor.engine
            checked = await dry_run_manifests(read, engine)
            manifests, refs = checked.manifests, in_order(checked.manifests, engine)
            warn_about_manifests(manifests, engine, report.warn_at_once)
            deleting = await _being_deleted(refs, engine)
            await report.begin(refs, engine)
            unreconciled = await _revisions([one.ref for one in manifests if is_unreconciled(one.ref, engine)], engine)
            await executor.apply(manifests)
            with report.progress:
                await _show_stored(unreconciled, engine, report)
                await executor.settle(refs, CommandTrigger.APPLY, report, request.seconds)
            await _report_deleted(deleting, engine, report)
            await report.end(engine)
        return report.finish()


def _require_files(request: CommandRequest) -> CommandRequest:
    if not request.files:
        raise ManifestInvalid("nothing to apply: name a file or folder with -f, or - for standard input")
    return request


async def _being_deleted(refs: Sequence[ResourceRef], engine: EngineContext) -> list[ResourceRef]:
    """The resources whose deletion was requested before."""
    found = await engine.store.get_many(refs)
    return [one.ref for one in found if one is not None and one.is_deleting]


async def _report_deleted(deleting: Sequence[ResourceRef], engine: EngineContext, report: CommandReport) -> None:
    """Adds which applied resources were being deleted, and are gone now; they count as waiting."""
    for ref in deleting:
        if await engine.store.get(ref) is None:
            text = f"{ref} was being deleted, and is gone now: apply it again to make it anew"
            report.warn(text, ExitCode.WAITING)


async def _revisions(refs: Sequence[ResourceRef], engine: EngineContext) -> Mapping[ResourceRef, Revision | None]:
    """The revision of each; None for one that is not there."""
    found = await engine.store.get_many(refs) if refs else ()
    return {ref: None if one is None else one.revision for ref, one in zip(refs, found, strict=True)}


async def _show_stored(
    before: Mapping[ResourceRef, Revision | None], engine: EngineContext, report: CommandReport
) -> None:
    """Shows what became of objects that are not reconciled, such as Secrets: writing them is all."""
    for ref, after in (await _revisions(list(before), engine)).items():
        if before[ref] is None:
            outcome = ResultOutcome.CREATED
        else:
            outcome = ResultOutcome.UNCHANGED if after == before[ref] else ResultOutcome.UPDATED
        report.show(ref, outcome, OutcomeSummary(outcome.value, "", "green", ExitCode.DONE))


async def reconcile(request: CommandRequest) -> ExitCode:
    """Reconciles resources that are declared already."""
    async with reporting(request, ReportedCommand.RECONCILE) as report:
        async with executor_for(request) as executor:
            refs = await declared_refs(request, executor.engine)
            await report.begin(refs, executor.engine)
            with report.progress:
                await executor.settle(refs, CommandTrigger.RECONCILE, report, request.seconds)
            await report.end(executor.engine)
        return report.finish()


async def plan(request: CommandRequest) -> ExitCode:
    """Shows each plan, in the order in which they would be executed; last those that cannot be made."""
    async with reporting(request, ReportedCommand.PLAN) as report:
        async with open_engine_read_only(request.settings, BlockedWrites()) as engine:
            if request.files:
                checked = await dry_run_manifests(read_request_files(request), engine)
                refs = in_order(checked.manifests, engine)
                warn_about_manifests(checked.manifests, engine, report.warn_at_once)
                engine = await overlay_drafts(engine, checked.drafts)
                refs = await _with_owners(checked.manifests, refs, engine)
            else:
                refs = await declared_refs(request, engine)
                warn_about_resources(await engine.store.get_many(refs), engine, report.warn_at_once)
            engine = await plan_together(refs, engine)
            previews = {ref: await _preview_plan(ref, engine) for ref in refs}
        for ref, one in previews.items():
            report.add(ref, plan_result(ref, one, _plan_code(one)), _plan_code(one))
        _show_plans(previews, report)
        return report.finish()


async def _with_owners(
    manifests: Sequence[LoadedManifest], refs: list[ResourceRef], engine: EngineContext
) -> list[ResourceRef]:
    """The resources, after the owners of those that are children: an owner is reconciled before its children."""
    owners = owners_of_children(await engine.store.get_many([manifest.ref for manifest in manifests]), engine)
    return list(dict.fromkeys((*owners, *refs)))


async def _preview_plan(ref: ResourceRef, engine: EngineContext) -> Plan | SetpointError:
    try:
        return await preview(ref, engine)
    except SetpointError as error:
        return error


def _plan_code(one: Plan | SetpointError) -> ExitCode:
    if isinstance(one, Plan):
        writes_nothing = one.is_empty and (not one.withheld or one.held is Hold.OBSERVED)
        return ExitCode.DONE if writes_nothing else ExitCode.CHANGES
    # A resource that waits for a dependency will be written once that is ready.
    return ExitCode.CHANGES if isinstance(one, NotReady) else ExitCode.FAILED


def _show_plans(previews: dict[ResourceRef, Plan | SetpointError], report: CommandReport) -> None:
    """Shows the plans in their order, then what waits, and failures last."""
    for ref, one in sorted(previews.items(), key=lambda item: _error_rank(item[1])):
        if isinstance(one, SetpointError):
            word, style = _error_word(one)
            report.print_line(str(ref), "bold cyan")
            report.print_line(f"{word}: {one_line(str(one))}", style)
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

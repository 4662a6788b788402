"""`setpoint delete`: what goes and what stays, what depends on it, the question on a terminal, and the deletion."""

import asyncio
import sys
from collections.abc import Collection, Mapping, Sequence, Set
from typing import Final

from rich.text import Text

from setpoint.app import StoreAccess, open_engine
from setpoint.cli.command_report import CommandReport, ReportedCommand, reporting
from setpoint.cli.executors import Executor, executor_for
from setpoint.cli.request import CommandRequest, named_refs
from setpoint.cli.views.command_document import DependantData, ResultOutcome
from setpoint.cli.views.outcome import ExitCode, OutcomeSummary
from setpoint.cli.views.terminal import SafeConsole, error_console
from setpoint.core.schema.annotations import check_annotations
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.engine.capabilities import SupportsDeletionProtection
from setpoint.engine.conditions import join_names
from setpoint.engine.context import EngineContext
from setpoint.engine.dependency_graph import EdgeType, GraphEdge, deletion_order, dependants_of, dependencies_among
from setpoint.engine.management import Management, management_of
from setpoint.engine.ports import EVERYTHING
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.state import location_in
from setpoint.engine.step.delete import ObjectFate, is_abandoned, object_fate
from setpoint.engine.step.outcomes import Gone
from setpoint.engine.step.reconcile_request import CommandTrigger
from setpoint.errors import ManifestInvalid, UserError

_NOT_DECLARED: Final = "it is not declared here: `setpoint get -A` lists what is"
_PAUSED: Final = "it is paused: marked for deletion, and deleted once it is reconciled again"


@dataclass(frozen=True, slots=True)
class _Fate:
    """What becomes of a resource and of its live object."""

    outcome: ResultOutcome
    detail: str

    @property
    def gone(self) -> OutcomeSummary:
        """How the resource is shown once it is gone."""
        return OutcomeSummary(self.outcome.value, self.detail, "green", ExitCode.DONE)


@dataclass(frozen=True, slots=True)
class _Deletion:
    """What is to be deleted, what was never declared, and what depends on it and stays."""

    found: Mapping[ResourceRef, Resource]
    missing: Sequence[ResourceRef]
    # Each with its dependants that are deleted, too, and go first.
    order: Mapping[ResourceRef, Set[ResourceRef]]
    dependants: Sequence[GraphEdge]
    fates: Mapping[ResourceRef, _Fate]


async def delete(request: CommandRequest) -> ExitCode:
    """Requests deletion, then reconciles until all are gone: dependants before what they need."""
    async with reporting(request, ReportedCommand.DELETE) as report:
        if request.dry_run:
            return await _dry_run(request, report)
        is_asking = not request.yes and all(one is not None and one.isatty() for one in (sys.stdin, sys.stdout))
        if is_asking:
            await _require_confirmed(request, report)
        async with executor_for(request) as executor:
            deletion = await _read_deletion(request, executor.engine)
            _announce(deletion, report, report.prints_lines and not is_asking)
            with report.progress:
                await _delete_in_order(deletion, executor, report)
                _show_missing(deletion.missing, report)
            await report.end(executor.engine)
        return report.finish()


# --- What it would do -------------------------------------------------------------------------------------------------


async def _read_deletion(request: CommandRequest, engine: EngineContext) -> _Deletion:
    """Reads what is named, and what depends on it; UserError for a protected resource, before anything is deleted."""
    refs = list(dict.fromkeys(named_refs(request, engine)))
    if not refs:
        raise ManifestInvalid("nothing to delete: name KIND/NAME, or a file with -f")
    read = await engine.store.get_many(refs)
    found = {ref: one for ref, one in zip(refs, read, strict=True) if one is not None}
    for resource in found.values():
        _require_known_annotations(resource, engine)
        _require_unprotected(resource, engine)
    everything = (await engine.store.list(EVERYTHING)).resources if found else ()
    return _Deletion(
        found,
        [ref for ref in refs if ref not in found],
        deletion_order(dependencies_among(found.values(), engine)),
        dependants_of(found, everything, engine),
        {ref: await _fate_of(resource, everything, engine) for ref, resource in found.items()},
    )


def _require_known_annotations(resource: Resource, engine: EngineContext) -> None:
    """UserError for a resource with a refused annotation: it may say that the object stays."""
    if resource.is_deleting or resource.ref.group_kind not in engine.resource_types:
        return
    try:
        check_annotations(resource.annotations, engine.annotation_target(resource.ref))
    except ManifestInvalid as error:
        raise UserError(f"{resource.ref}: {error}; nothing was deleted") from error


def _require_unprotected(resource: Resource, engine: EngineContext) -> None:
    """UserError for a protected resource: once it is marked for deletion, its spec cannot be changed any more."""
    kind = engine.kinds.get(resource.ref.group_kind)
    if resource.is_deleting or kind is None or is_abandoned(resource, kind):
        return
    if isinstance(kind, SupportsDeletionProtection) and kind.is_protected(resource):
        raise UserError(
            f"{resource.ref} is protected by spec.deleteProtection: set that to false and apply it first; "
            "nothing was deleted"
        )


async def _fate_of(resource: Resource, everything: Collection[Resource], engine: EngineContext) -> _Fate:
    if resource.ref.group_kind in engine.owners:
        children = sorted(one.ref for one in everything if one.controller == resource.ref)
        return _Fate(ResultOutcome.DELETED, f"with {join_names(map(str, children))}" if children else "")
    if resource.ref.group_kind not in engine.kinds:
        return _Fate(ResultOutcome.DELETED, "")
    location = location_in(resource.status)
    match await object_fate(resource, engine):
        case ObjectFate.DELETED:
            return _Fate(ResultOutcome.DELETED, str(location))
        case ObjectFate.ABANDONED:
            return _Fate(ResultOutcome.ABANDONED, f"the object {location} stays" if location else "its object stays")
        case ObjectFate.MANAGED_BY_ANOTHER:
            return _Fate(ResultOutcome.ABANDONED, f"the object {location} stays: another resource manages it")
        case ObjectFate.NEVER_MADE:
            return _Fate(ResultOutcome.DELETED, "no object was made")
        case ObjectFate.UNKNOWN:
            return _Fate(ResultOutcome.DELETED, "its status was wiped, and with it the record of its object")


def _announce(deletion: _Deletion, report: CommandReport, is_printed: bool) -> None:  # noqa: FBT001  # of one caller
    """Tells the report what becomes of each resource, and names the dependants that stay."""
    report.progress.gone = {ref: fate.gone for ref, fate in deletion.fates.items()}
    report.abandoned = {ref for ref, fate in deletion.fates.items() if fate.outcome is ResultOutcome.ABANDONED}
    found = {ref: location_in(resource.status) for ref, resource in deletion.found.items()}
    report.locations = {ref: location for ref, location in found.items() if location is not None}
    report.dependants = list(map(_dependant_data, deletion.dependants))
    if is_printed:
        for edge in deletion.dependants:
            report.print_line(_dependant_line(edge), "yellow")


def _dependant_data(edge: GraphEdge) -> DependantData:
    return DependantData(**edge.dependant._asdict(), refers_to=edge.needed._asdict(), field=edge.label)


def _dependant_line(edge: GraphEdge) -> str:
    if edge.type is EdgeType.ORDER:
        return f"{edge.dependant} depends on {edge.needed}, and stays"
    return f"{edge.dependant} refers to {edge.needed} by {edge.label}, and stays"


async def _dry_run(request: CommandRequest, report: CommandReport) -> ExitCode:
    """Says what would be deleted, and deletes nothing."""
    async with open_engine(request.settings, StoreAccess.READ) as engine:
        deletion = await _read_deletion(request, engine)
        _announce(deletion, report, report.prints_lines)
        for ref in deletion.order:
            fate = _shown_fate(deletion, ref)
            report.show(ref, fate.outcome, OutcomeSummary(f"would be {fate.outcome}", fate.detail, "", ExitCode.DONE))
        _show_missing(deletion.missing, report)
        await report.end(engine)
    return report.finish(dry_run=True)


def _shown_fate(deletion: _Deletion, ref: ResourceRef) -> _Fate:
    is_paused = management_of(deletion.found[ref].annotations) is Management.PAUSED
    return _Fate(ResultOutcome.UNCHANGED, _PAUSED) if is_paused else deletion.fates[ref]


# --- The question -----------------------------------------------------------------------------------------------------


async def _require_confirmed(request: CommandRequest, report: CommandReport) -> None:
    """Asks on the terminal; UserError when the answer is not yes. The store is not held meanwhile."""
    console = error_console() if report.is_data else request.console
    async with open_engine(request.settings, StoreAccess.READ) as engine:
        deletion = await _read_deletion(request, engine)
    if not deletion.found:
        return
    for edge in deletion.dependants:
        console.print(Text(_dependant_line(edge), style="yellow"), soft_wrap=True)
    for ref in deletion.order:
        fate = _shown_fate(deletion, ref)
        text = f"{ref} will be {fate.outcome}" + (f": {fate.detail}" if fate.detail else "")
        console.print(Text(text), soft_wrap=True)
    count = len(deletion.found)
    if not await _is_confirmed(f"Delete {count} resource{'s' * (count != 1)}? [y/N] ", console):
        raise UserError("nothing was deleted: the answer was not yes; --yes deletes without a question")


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


# --- The deletion -----------------------------------------------------------------------------------------------------


async def _delete_in_order(deletion: _Deletion, executor: Executor, report: CommandReport) -> None:
    """Deletes each once its dependants among them are gone; without `--wait`, all are only marked in that order."""
    request, clock = report.request, executor.engine.clock
    left = dict(deletion.order)
    report.progress.expect(left)
    if not request.wait:
        await executor.delete(list(left))
        await executor.settle(list(left), CommandTrigger.DELETE, report, request.seconds)
        return
    end, gone = clock.monotonic() + request.seconds, set[ResourceRef]()
    while ready := [ref for ref, first in left.items() if first <= gone]:
        await executor.delete(ready)
        await executor.settle(ready, CommandTrigger.DELETE, report, max(0.0, end - clock.monotonic()))
        gone |= {ref for ref in ready if isinstance(report.progress.outcomes.get(ref), Gone)}
        left = {ref: first for ref, first in left.items() if ref not in ready}
    for ref, first in left.items():
        text = f"not deleted: {min(first - gone)} depends on it, and is still there"
        report.show(ref, ResultOutcome.BLOCKED, OutcomeSummary("blocked", text, "magenta", ExitCode.WAITING))


def _show_missing(missing: Sequence[ResourceRef], report: CommandReport) -> None:
    """Shows what was never declared: an error, unless `--ignore-not-found` is given."""
    is_error = not report.request.ignore_not_found
    for ref in missing:
        code, style = (ExitCode.FAILED, "red") if is_error else (ExitCode.DONE, "dim")
        report.show(ref, ResultOutcome.NOT_FOUND, OutcomeSummary("not found", _NOT_DECLARED, style, code))

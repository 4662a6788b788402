"""Deletions: what goes and what stays, what depends on it, and the deletion in its order."""

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import replace
from typing import Final

from setpoint.core.schema.annotations import check_annotations
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.engine.capabilities import SupportsDeletionProtection
from setpoint.engine.conditions import join_names
from setpoint.engine.context import EngineContext
from setpoint.engine.dependency_graph import GraphEdge, deletion_order, dependants_of, dependencies_among
from setpoint.engine.management import Management, management_of
from setpoint.engine.ports import EVERYTHING
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.state import location_in
from setpoint.engine.step.delete import ObjectFate, is_abandoned, object_fate
from setpoint.engine.step.outcomes import Gone
from setpoint.errors import ManifestInvalid, UserError
from setpoint.library.command_document import DependantData, ResultOutcome
from setpoint.library.command_record import CommandRecord
from setpoint.library.executors import Executor, SettleGoal
from setpoint.library.outcome import ExitCode, OutcomeSummary
from setpoint.library.targets import Selection, named_refs

_NOT_DECLARED: Final = "it is not declared here: `setpoint get -A` lists what is"
_PAUSED: Final = "it is paused: marked for deletion, and deleted once it is reconciled again"


@dataclass(frozen=True, slots=True)
class ResourceFate:
    """What becomes of a resource and of its live object."""

    outcome: ResultOutcome
    detail: str

    @property
    def gone(self) -> OutcomeSummary:
        """How the resource is shown once it is gone."""
        return OutcomeSummary(self.outcome.value, self.detail, "green", ExitCode.DONE)


@dataclass(frozen=True, slots=True)
class Deletion:
    """What is to be deleted, what was never declared, and what depends on it and stays."""

    found: Mapping[ResourceRef, Resource]
    missing: Sequence[ResourceRef]
    # Each with its dependants that are deleted, too, and go first.
    order: Mapping[ResourceRef, Set[ResourceRef]]
    dependants: Sequence[GraphEdge]
    fates: Mapping[ResourceRef, ResourceFate]

    def fate_of(self, ref: ResourceRef) -> ResourceFate:
        """What would become of a resource now: one that is paused is only marked."""
        is_paused = management_of(self.found[ref].annotations) is Management.PAUSED
        return ResourceFate(ResultOutcome.UNCHANGED, _PAUSED) if is_paused else self.fates[ref]


# --- What it would do -------------------------------------------------------------------------------------------------


async def read_deletion(selection: Selection, engine: EngineContext) -> Deletion:
    """Reads what is named, and what depends on it; UserError for a protected resource, before anything is deleted."""
    refs = list(dict.fromkeys(named_refs(selection, engine)))
    if not refs:
        raise ManifestInvalid("nothing to delete: name KIND/NAME, or a file with -f")
    read = await engine.store.get_many(refs)
    found = {ref: one for ref, one in zip(refs, read, strict=True) if one is not None}
    for resource in found.values():
        if problem := deletion_problem(resource, engine):
            raise UserError(f"{problem}; nothing was deleted")
    everything = (await engine.store.list(EVERYTHING)).resources if found else ()
    return Deletion(
        found,
        [ref for ref in refs if ref not in found],
        deletion_order(dependencies_among(found.values(), engine)),
        dependants_of(found, everything, engine),
        {ref: await _fate_of(resource, everything, engine) for ref, resource in found.items()},
    )


def deletion_problem(resource: Resource, engine: EngineContext) -> str:
    """Why a resource must not be deleted; empty for one that may be.

    A refused annotation may say that the object stays. Once a protected resource is marked for deletion, its spec
    cannot be changed any more.
    """
    if resource.is_deleting or resource.ref.group_kind not in engine.resource_types:
        return ""
    try:
        check_annotations(resource.annotations, engine.annotation_target(resource.ref))
    except ManifestInvalid as error:
        return f"{resource.ref}: {error}"
    kind = engine.kinds.get(resource.ref.group_kind)
    if kind is None or is_abandoned(resource, kind):
        return ""
    if isinstance(kind, SupportsDeletionProtection) and kind.is_protected(resource):
        return f"{resource.ref} is protected by spec.deleteProtection: set that to false and apply it first"
    return ""


async def _fate_of(resource: Resource, everything: Collection[Resource], engine: EngineContext) -> ResourceFate:
    if resource.ref.group_kind in engine.owners:
        children = sorted(one.ref for one in everything if one.controller == resource.ref)
        return ResourceFate(ResultOutcome.DELETED, f"with {join_names(map(str, children))}" if children else "")
    if resource.ref.group_kind not in engine.kinds:
        return ResourceFate(ResultOutcome.DELETED, "")
    location = location_in(resource.status)
    match await object_fate(resource, engine):
        case ObjectFate.DELETED:
            return ResourceFate(ResultOutcome.DELETED, str(location))
        case ObjectFate.ABANDONED:
            return ResourceFate(
                ResultOutcome.ABANDONED, f"the object {location} stays" if location else "its object stays"
            )
        case ObjectFate.MANAGED_BY_ANOTHER:
            return ResourceFate(ResultOutcome.ABANDONED, f"the object {location} stays: another resource manages it")
        case ObjectFate.NEVER_MADE:
            return ResourceFate(ResultOutcome.DELETED, "no object was made")
        case ObjectFate.UNKNOWN:
            return ResourceFate(ResultOutcome.DELETED, "its status was wiped, and with it the record of its object")


def announce(deletion: Deletion, record: CommandRecord) -> None:
    """Tells the record what becomes of each resource, and which dependants stay."""
    record.gone = {ref: fate.gone for ref, fate in deletion.fates.items()}
    record.abandoned = {ref for ref, fate in deletion.fates.items() if fate.outcome is ResultOutcome.ABANDONED}
    found = {ref: location_in(resource.status) for ref, resource in deletion.found.items()}
    record.locations = {ref: location for ref, location in found.items() if location is not None}
    record.dependants = list(map(_dependant_data, deletion.dependants))
    record.observer.announced(deletion)


def _dependant_data(edge: GraphEdge) -> DependantData:
    return DependantData(**edge.dependant._asdict(), refers_to=edge.needed._asdict(), field=edge.label)


async def dry_run_deletion(
    selection: Selection, engine: EngineContext, record: CommandRecord, *, ignore_not_found: bool
) -> None:
    """Records what would be deleted, and deletes nothing."""
    deletion = await read_deletion(selection, engine)
    record.dry_run = True
    announce(deletion, record)
    for ref in deletion.order:
        fate = deletion.fate_of(ref)
        record.show(ref, fate.outcome, OutcomeSummary(f"would be {fate.outcome}", fate.detail, "", ExitCode.DONE))
    _show_missing(deletion.missing, record, ignore_not_found=ignore_not_found)
    await record.end(engine)


# --- The deletion -----------------------------------------------------------------------------------------------------


async def delete_resources(
    selection: Selection, executor: Executor, goal: SettleGoal, record: CommandRecord, *, ignore_not_found: bool
) -> None:
    """Requests deletion, then reconciles until all are gone: dependants before what they need."""
    deletion = await read_deletion(selection, executor.engine)
    announce(deletion, record)
    with record.observer.running():
        await delete_in_order(deletion, executor, goal, record)
        _show_missing(deletion.missing, record, ignore_not_found=ignore_not_found)
    await record.end(executor.engine)


async def delete_in_order(deletion: Deletion, executor: Executor, goal: SettleGoal, record: CommandRecord) -> None:
    """Deletes each once its dependants among them are gone; without a wait, all are only marked in that order."""
    clock, left = executor.engine.clock, dict(deletion.order)
    record.expect(left)
    if not goal.wait:
        await executor.delete(list(left))
        await executor.settle(list(left), goal, record)
        return
    end, gone = clock.monotonic() + goal.seconds, set[ResourceRef]()
    while ready := [ref for ref, first in left.items() if first <= gone]:
        await executor.delete(ready)
        await executor.settle(ready, replace(goal, seconds=max(0.0, end - clock.monotonic())), record)
        gone |= {ref for ref in ready if isinstance(record.outcomes.get(ref), Gone)}
        left = {ref: first for ref, first in left.items() if ref not in ready}
    for ref, first in left.items():
        text = f"not deleted: {min(first - gone)} depends on it, and is still there"
        record.show(ref, ResultOutcome.BLOCKED, OutcomeSummary("blocked", text, "magenta", ExitCode.WAITING))


def _show_missing(missing: Sequence[ResourceRef], record: CommandRecord, *, ignore_not_found: bool) -> None:
    """Shows what was never declared: an error, unless that is to be ignored."""
    for ref in missing:
        code, style = (ExitCode.DONE, "dim") if ignore_not_found else (ExitCode.FAILED, "red")
        record.show(ref, ResultOutcome.NOT_FOUND, OutcomeSummary("not found", _NOT_DECLARED, style, code))

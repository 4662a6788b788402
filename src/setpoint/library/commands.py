"""The commands: declare resources, and reconcile them or plan that. The record of each is the result.

START HERE: `apply_manifests`. Which process takes the steps is the executor's matter; deletions are in `deletion`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from setpoint.app import overlay_drafts
from setpoint.core.plan import Hold, Plan
from setpoint.engine.context import EngineContext
from setpoint.engine.drivers.observe_together import plan_together
from setpoint.engine.owners.children import is_unreconciled, owners_of_children
from setpoint.engine.resource import ResourceRef, Revision
from setpoint.engine.step.reconcile_request import CommandTrigger
from setpoint.errors import NotReady, SetpointError
from setpoint.library.command_document import ResultOutcome, plan_result
from setpoint.library.command_record import CommandRecord
from setpoint.library.manifests.checks import (
    dry_run_manifests,
    in_order,
    warn_about_manifests,
    warn_about_resources,
)
from setpoint.library.manifests.reading import LoadedManifest, ReadManifests
from setpoint.library.outcome import ExitCode, OutcomeSummary
from setpoint.library.targets import Selection, declared_refs

# A plan needs none.
if TYPE_CHECKING:
    from setpoint.engine.sets.resource_set import SetDeclaration
    from setpoint.library.executors import Executor, SettleGoal
    from setpoint.library.sets.scope import PlannedScope, SetScope


async def apply_set(
    planned: "PlannedScope", executor: "Executor", goal: "SettleGoal", record: CommandRecord, *, prunes: bool
) -> None:
    """Declares the manifests of a scope, reconciles them, and deletes what left it at last."""
    from setpoint.library.deletion import announce, delete_in_order
    from setpoint.library.sets.scope import read_prune

    engine = executor.engine
    end = engine.clock.monotonic() + goal.seconds
    deletion = await read_prune(planned, engine) if prunes else None
    declaration = await planned.declaration(engine)
    await _declare_and_settle(planned.checked.manifests, executor, goal, record, declaration)
    if deletion is not None:
        announce(deletion, record)
        left = replace(goal, trigger=CommandTrigger.PRUNE, seconds=max(0.0, end - engine.clock.monotonic()))
        with record.observer.running():
            await delete_in_order(deletion, executor, left, record)
    await record.end(engine)


async def apply_manifests(read: ReadManifests, executor: "Executor", goal: "SettleGoal", record: CommandRecord) -> None:
    """Declares the manifests, then reconciles until every resource is settled, blocked or failed."""
    checked = await dry_run_manifests(read, executor.engine)
    await _declare_and_settle(checked.manifests, executor, goal, record)
    await record.end(executor.engine)


async def _declare_and_settle(
    manifests: Sequence[LoadedManifest],
    executor: "Executor",
    goal: "SettleGoal",
    record: CommandRecord,
    declaration: "SetDeclaration | None" = None,
) -> None:
    engine = executor.engine
    refs = in_order(manifests, engine)
    warn_about_manifests(manifests, engine, record.warn_at_once)
    deleting = await _being_deleted(refs, engine)
    await record.begin(refs, engine)
    unreconciled = await _revisions([one.ref for one in manifests if is_unreconciled(one.ref, engine)], engine)
    await (executor.apply(manifests) if declaration is None else executor.declare(declaration))
    with record.observer.running():
        await _show_stored(unreconciled, engine, record)
        await executor.settle(refs, goal, record)
    await _report_deleted(deleting, engine, record)


async def _being_deleted(refs: Sequence[ResourceRef], engine: EngineContext) -> list[ResourceRef]:
    """The resources whose deletion was requested before."""
    found = await engine.store.get_many(refs)
    return [one.ref for one in found if one is not None and one.is_deleting]


async def _report_deleted(deleting: Sequence[ResourceRef], engine: EngineContext, record: CommandRecord) -> None:
    """Adds which applied resources were being deleted, and are gone now; they count as waiting."""
    for ref in deleting:
        if await engine.store.get(ref) is None:
            text = f"{ref} was being deleted, and is gone now: apply it again to make it anew"
            record.warn(text, ExitCode.WAITING)


async def _revisions(refs: Sequence[ResourceRef], engine: EngineContext) -> Mapping[ResourceRef, Revision | None]:
    """The revision of each; None for one that is not there."""
    found = await engine.store.get_many(refs) if refs else ()
    return {ref: None if one is None else one.revision for ref, one in zip(refs, found, strict=True)}


async def _show_stored(
    before: Mapping[ResourceRef, Revision | None], engine: EngineContext, record: CommandRecord
) -> None:
    """Shows what became of objects that are not reconciled, such as Secrets: writing them is all."""
    for ref, after in (await _revisions(list(before), engine)).items():
        if before[ref] is None:
            outcome = ResultOutcome.CREATED
        else:
            outcome = ResultOutcome.UNCHANGED if after == before[ref] else ResultOutcome.UPDATED
        record.show(ref, outcome, OutcomeSummary(outcome.value, "", "green", ExitCode.DONE))


async def reconcile_resources(
    selection: Selection, executor: "Executor", goal: "SettleGoal", record: CommandRecord
) -> None:
    """Reconciles resources that are declared already, or waits for them: the goal says for which command."""
    refs = await declared_refs(selection, executor.engine)
    await record.begin(refs, executor.engine)
    with record.observer.running():
        await executor.settle(refs, goal, record)
    await record.end(executor.engine)


# --- Plans ------------------------------------------------------------------------------------------------------------


async def plan_resources(
    selection: Selection, engine: EngineContext, record: CommandRecord, scope: "SetScope | None" = None
) -> None:
    """Plans each resource, in the order in which they would be executed; at last what would be pruned."""
    if selection.read is not None and scope is not None:
        from setpoint.library.sets.scope import add_prunes, plan_scope, read_prune

        planned = await plan_scope(selection.read, scope, engine)
        planned.warn(scope, record)
        await _plan_resources(replace(selection, read=scope.selected(selection.read)), engine, record)
        deletion = await read_prune(planned, engine) if scope.prune else None
        if deletion is not None:
            add_prunes(deletion, record)
    else:
        await _plan_resources(selection, engine, record)


async def _plan_resources(selection: Selection, engine: EngineContext, record: CommandRecord) -> None:
    from setpoint.engine.drivers.preview_in_order import preview_in_order

    if selection.read is not None:
        checked = await dry_run_manifests(selection.read, engine)
        refs = in_order(checked.manifests, engine)
        warn_about_manifests(checked.manifests, engine, record.warn_at_once)
        engine = await overlay_drafts(engine, checked.drafts)
        refs = await _with_owners(checked.manifests, refs, engine)
    else:
        refs = await declared_refs(selection, engine)
        warn_about_resources(await engine.store.get_many(refs), engine, record.warn_at_once)
    engine = await plan_together(refs, engine)
    found = await preview_in_order(refs, engine)
    record.plans, record.then = found.plans, found.then
    for ref, one in record.plans.items():
        record.add(ref, plan_result(ref, one, _plan_code(one), found.then.get(ref)), _plan_code(one))
    if record.observer.needs_fields:
        resources = await engine.store.get_many(refs)
        record.resources = {one.ref: one for one in resources if one is not None}


async def _with_owners(
    manifests: Sequence[LoadedManifest], refs: list[ResourceRef], engine: EngineContext
) -> list[ResourceRef]:
    """The resources, after the owners of those that are children: an owner is reconciled before its children."""
    owners = owners_of_children(await engine.store.get_many([manifest.ref for manifest in manifests]), engine)
    return list(dict.fromkeys((*owners, *refs)))


def _plan_code(one: Plan | SetpointError) -> ExitCode:
    if isinstance(one, Plan):
        writes_nothing = one.is_empty and (not one.withheld or one.held is Hold.OBSERVED)
        return ExitCode.DONE if writes_nothing else ExitCode.CHANGES
    # A resource that waits for a dependency will be written once that is ready.
    return ExitCode.CHANGES if isinstance(one, NotReady) else ExitCode.FAILED

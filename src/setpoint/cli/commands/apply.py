"""`setpoint apply`, `reconcile`, `delete` and `plan`: declare resources, and reconcile them or show what that would do.

START HERE: `apply`.
"""

from collections.abc import Sequence

from rich.text import Text

from setpoint.app import open_engine_read_only, overlay_drafts
from setpoint.cli.annotation_warnings import warn_about_manifests, warn_about_resources
from setpoint.cli.executors import executor_for
from setpoint.cli.manifest_checks import dry_run_manifests, in_order
from setpoint.cli.manifests import LoadedManifest, read_manifests
from setpoint.cli.request import (
    CommandRequest,
    declared_refs,
    named_refs,
    print_documents,
)
from setpoint.cli.views.outcome import ExitCode, worst_exit_code
from setpoint.cli.views.plan import plan_view
from setpoint.cli.views.table import one_line
from setpoint.clients.write_guard import BlockedWrites
from setpoint.core.plan import Hold, Plan
from setpoint.core.schema.annotations import check_annotations
from setpoint.core.values.json_types import Json
from setpoint.engine.capabilities import SupportsDeletionProtection
from setpoint.engine.context import EngineContext
from setpoint.engine.owners.children import owners_of_children
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.step.delete import is_abandoned
from setpoint.engine.step.reconcile import preview
from setpoint.engine.step.reconcile_request import CommandTrigger
from setpoint.errors import Blocked, ManifestInvalid, NotReady, SetpointError, UserError


async def apply(request: CommandRequest) -> ExitCode:
    """Declares the manifests, then reconciles until every resource is settled, blocked or failed."""
    read = read_manifests(_require_files(request.files))
    async with executor_for(request) as executor:
        checked = await dry_run_manifests(read, executor.engine)
        refs = in_order(checked.manifests, executor.engine)
        warn_about_manifests(checked.manifests, executor.engine, request.settings.warn)
        deleting = await _being_deleted(refs, executor.engine)
        await executor.apply(checked.manifests)
        code = await executor.settle(refs, CommandTrigger.APPLY)
        return worst_exit_code((code, await _report_deleted(deleting, executor.engine, request)))


def _require_files(files: Sequence[str]) -> Sequence[str]:
    if not files:
        raise ManifestInvalid("nothing to apply: name a file or folder with -f, or - for standard input")
    return files


async def _being_deleted(refs: Sequence[ResourceRef], engine: EngineContext) -> list[ResourceRef]:
    """The resources whose deletion was requested before."""
    found = await engine.store.get_many(refs)
    return [one.ref for one in found if one is not None and one.is_deleting]


async def _report_deleted(deleting: Sequence[ResourceRef], engine: EngineContext, request: CommandRequest) -> ExitCode:
    """Prints which applied resources were being deleted, and are gone now; they count as waiting."""
    gone = [ref for ref in deleting if await engine.store.get(ref) is None]
    for ref in gone:
        text = f"{ref} was being deleted, and is gone now: apply it again to make it anew"
        request.console.print(Text(text, style="yellow"), soft_wrap=True)
    return ExitCode.WAITING if gone else ExitCode.DONE


async def reconcile(request: CommandRequest) -> ExitCode:
    """Reconciles resources that are declared already."""
    async with executor_for(request) as executor:
        return await executor.settle(await declared_refs(request, executor.engine), CommandTrigger.RECONCILE)


async def delete(request: CommandRequest) -> ExitCode:
    """Requests deletion, then reconciles until all are gone."""
    async with executor_for(request) as executor:
        refs = named_refs(request, executor.engine)
        if not refs:
            raise ManifestInvalid("nothing to delete: name KIND/NAME, or a file with -f")
        await _require_known_annotations(refs, executor.engine)
        await _require_unprotected(refs, executor.engine)
        await executor.delete(refs)
        return await executor.settle(refs, CommandTrigger.DELETE)


async def _require_known_annotations(refs: Sequence[ResourceRef], engine: EngineContext) -> None:
    """UserError for a resource with a refused annotation: it may say that the object stays."""
    for resource in await engine.store.get_many(refs):
        if resource is None or resource.is_deleting or resource.ref.group_kind not in engine.resource_types:
            continue
        try:
            check_annotations(resource.annotations, engine.annotation_target(resource.ref))
        except ManifestInvalid as error:
            raise UserError(f"{resource.ref}: {error}; nothing was deleted") from error


async def _require_unprotected(refs: Sequence[ResourceRef], engine: EngineContext) -> None:
    """UserError for a protected resource: once it is marked for deletion, its spec cannot be changed any more."""
    for ref in refs:
        resource = await engine.store.get(ref)
        if resource is not None and not resource.is_deleting and _is_protected(resource, engine):
            raise UserError(
                f"{ref} is protected by spec.deleteProtection: set that to false and apply it first; "
                "nothing was deleted"
            )


def _is_protected(resource: Resource, engine: EngineContext) -> bool:
    kind = engine.kinds.get((resource.ref.group, resource.ref.kind))
    if kind is None or is_abandoned(resource, kind):
        return False
    return isinstance(kind, SupportsDeletionProtection) and kind.is_protected(resource)


async def plan(request: CommandRequest) -> ExitCode:
    """Shows each plan, in the order in which they would be executed."""
    async with open_engine_read_only(request.settings, BlockedWrites()) as engine:
        if request.files:
            checked = await dry_run_manifests(read_manifests(request.files), engine)
            refs = in_order(checked.manifests, engine)
            warn_about_manifests(checked.manifests, engine, request.settings.warn)
            engine = await overlay_drafts(engine, checked.drafts)
            refs = await _with_owners(checked.manifests, refs, engine)
        else:
            refs = await declared_refs(request, engine)
            warn_about_resources(await engine.store.get_many(refs), engine, request.settings.warn)
        previews = {ref: await _preview_plan(ref, engine) for ref in refs}
    _show_plans(previews, request)
    return worst_exit_code(_plan_code(one) for one in previews.values())


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


def _show_plans(previews: dict[ResourceRef, Plan | SetpointError], request: CommandRequest) -> None:
    if request.output in ("json", "yaml"):
        print_documents([_plan_data(ref, one) for ref, one in previews.items()], request)
        return
    for ref, one in previews.items():
        request.console.print(Text(str(ref), style="bold cyan"))
        if isinstance(one, Plan):
            request.console.print(plan_view(one), soft_wrap=True)
        else:
            word, style = _error_word(one)
            request.console.print(Text(f"{word}: {one_line(str(one))}", style=style), soft_wrap=True)


def _error_word(error: SetpointError) -> tuple[str, str]:
    """Why there is no plan, in one word, and its colour."""
    match error:
        case Blocked():
            return "blocked", "magenta"
        case NotReady():
            return "waiting", "yellow"
        case _:
            return "failed", "red"


def _plan_data(ref: ResourceRef, one: Plan | SetpointError) -> Json:
    name: dict[str, Json] = {"kind": ref.kind, "namespace": ref.namespace, "name": ref.name}
    return {**name, "plan": one.to_data()} if isinstance(one, Plan) else {**name, "error": str(one)}

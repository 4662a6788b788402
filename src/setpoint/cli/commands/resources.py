"""The commands on resources: apply, reconcile, delete, plan, get, describe, explain, events, crds.

START HERE for `apply`.
"""

import datetime
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import orjson
from rich.console import RenderableType
from rich.text import Text

from setpoint.app import StoreAccess, definitions, open_engine, open_engine_read_only, overlay_manifests
from setpoint.cli.controller_presence import is_resynced
from setpoint.cli.executors import CommandTrigger, executor_for
from setpoint.cli.manifests import LoadedManifest, load_manifests
from setpoint.cli.request import (
    Command,
    CommandRequest,
    find_kind,
    matches_targets,
    parse_target,
    ref_of_target,
    require_targets_found,
    run_command,
)
from setpoint.cli.views import resources as view
from setpoint.cli.views.outcome import ExitCode, worst_exit_code
from setpoint.cli.views.plan import plan_view
from setpoint.cli.views.resources import has_output
from setpoint.cli.views.table import one_line
from setpoint.clients.write_guard import BlockedWrites
from setpoint.core.plan import Hold, Plan
from setpoint.core.values.json_types import Json
from setpoint.engine.capabilities import SupportsDeletionProtection
from setpoint.engine.context import EngineContext
from setpoint.engine.dependency_graph import reconcile_order
from setpoint.engine.intent import check_manifest
from setpoint.engine.kind import Dependency
from setpoint.engine.owners.children import is_unreconciled, owners_of_children
from setpoint.engine.ports import EventRecord, ResourceChange, ResourceChangeType, ResourceQuery
from setpoint.engine.references import dependencies_of
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.step.delete import is_abandoned
from setpoint.engine.step.reconcile import preview
from setpoint.errors import Blocked, ManifestInvalid, NotReady, SetpointError, UserError


async def apply(request: CommandRequest) -> ExitCode:
    """Declares, then takes steps until everything is settled, blocked or failed."""
    manifests = load_manifests(_require_files(request.files))
    async with executor_for(request) as hands:
        refs = check_manifests(manifests, hands.engine)
        await _dry_run_apply(manifests, hands.engine)
        going = await _being_deleted(refs, hands.engine)
        await hands.apply(manifests)
        code = await hands.settle(refs, CommandTrigger.APPLY)
        return worst_exit_code((code, await _report_deleted(going, hands.engine, request)))


async def reconcile(request: CommandRequest) -> ExitCode:
    """Steps for resources that are declared already."""
    async with executor_for(request) as hands:
        return await hands.settle(await _selected_refs(request, hands.engine), CommandTrigger.RECONCILE)


async def delete(request: CommandRequest) -> ExitCode:
    """Asks for deletion, then takes steps until all are gone."""
    async with executor_for(request) as hands:
        refs = await _selected_refs(request, hands.engine, missing_is_fine=True)
        await _require_unprotected(refs, hands.engine)
        await hands.delete(refs)
        return await hands.settle(refs, CommandTrigger.DELETE)


async def plan(request: CommandRequest) -> ExitCode:
    """Each plan in the order it would be carried out."""
    async with open_engine_read_only(request.settings, BlockedWrites()) as engine:
        if request.files:
            manifests = load_manifests(request.files)
            refs = check_manifests(manifests, engine)
            engine = await overlay_manifests(engine, [manifest.tree for manifest in manifests])
            refs = await _with_owners(manifests, refs, engine)
        else:
            refs = await _selected_refs(request, engine)
        previews = {ref: await _preview_plan(ref, engine) for ref in refs}
    _show_plans(previews, request)
    return worst_exit_code(_plan_code(one) for one in previews.values())


async def get(request: CommandRequest) -> ExitCode:
    """Resources as they are on record."""
    async with open_engine(request.settings, StoreAccess.READ) as engine:
        wanted = [parse_target(target, engine) for target in request.targets]
        query = ResourceQuery(namespace=request.namespace)
        listing = await engine.store.list(query)
        resources = [one for one in listing.resources if matches_targets(one, wanted)]
        resources += await _unlisted_objects(request, resources, engine)
        wide, outputs = request.output == "wide", any(map(has_output, resources))
        table = view.ResourceTable(engine.resource_types, wide=wide, outputs=outputs)
        if not request.watch:
            require_targets_found(wanted, resources)
        _show_resources(resources, table, request)
        if request.watch:
            async for event in engine.store.watch(listing.revision, query):
                if matches_targets(event.resource, wanted):
                    _show_resources([_resource_after(event)], table, request)
    return ExitCode.DONE


async def _unlisted_objects(
    request: CommandRequest, listed: Sequence[Resource], engine: EngineContext
) -> list[Resource]:
    """Plain objects that are asked for by name: a cluster has too many of them to list."""
    refs = [ref_of_target(target, request.namespace, engine) for target in request.targets if target.partition("/")[2]]
    there = {one.ref for one in listed}
    found = [await engine.store.get(ref) for ref in refs if ref not in there and is_unreconciled(ref, engine)]
    return [one for one in found if one is not None]


async def describe(request: CommandRequest) -> ExitCode:
    """Everything on record about the named resources."""

    async def show(resource: Resource, engine: EngineContext) -> _DataAndView:
        notes = await engine.store.notes(resource.ref)
        data = {**view.redacted_document(resource), "notes": [view.event_data(note) for note in notes]}
        return data, view.description_of(resource, notes, _now())

    return await _show_each(request, show)


async def explain(request: CommandRequest) -> ExitCode:
    """The record of the last step of the named resources."""

    looks_again = await is_resynced(request)

    async def show(resource: Resource, _world: EngineContext) -> _DataAndView:
        return view.explanation_data(resource), view.explanation_of(resource, looks_again=looks_again)

    return await _show_each(request, show)


async def events(request: CommandRequest) -> ExitCode:
    """The notes on record; with `--watch` those that come, too."""
    async with open_engine(request.settings, StoreAccess.READ) as engine:
        wanted = {ref_of_target(target, request.namespace, engine) for target in request.targets}
        table, shown = view.EventTable(), set[EventRecord]()
        listing = await engine.store.list(ResourceQuery(namespace=request.namespace))

        async def show() -> None:
            notes = [
                one for one in await engine.store.notes() if one not in shown and (not wanted or one.ref in wanted)
            ]
            shown.update(notes)
            data: list[Json] = [view.event_data(note) for note in notes]
            if request.output in ("json", "yaml"):
                _print_data(data, request) if request.watch else _print_document(data, request)
            elif notes or not request.watch:
                request.console.print(table.lines(notes), soft_wrap=True)

        await show()
        if request.watch:
            async for _ in engine.store.watch(listing.revision):
                await show()
    return ExitCode.DONE


async def crds(request: CommandRequest) -> ExitCode:
    """The definitions of the named kinds, or of all, for kubectl."""
    known = definitions()
    documents = [known[find_kind(word, known)] for word in request.targets] or list(known.values())
    if request.output == "yaml":
        request.console.out("---\n".join(view.as_yaml(document) for document in documents), end="")
    elif len(request.targets) == 1:
        _print_document(documents[0], request)
    else:
        _print_document({"apiVersion": "v1", "kind": "List", "items": documents}, request)
    return ExitCode.DONE


# A resource for programs, and for people.
_DataAndView = tuple[Json, RenderableType]


async def _show_each(
    request: CommandRequest, show: Callable[[Resource, EngineContext], Awaitable[_DataAndView]]
) -> ExitCode:
    """Shows each resource, and with `--watch` again whenever it changes."""
    async with open_engine(request.settings, StoreAccess.READ) as engine:
        query = ResourceQuery(namespace=request.namespace)
        listing = await engine.store.list(query)
        listed = {one.ref: one for one in listing.resources}
        refs = await _selected_refs(request, engine)
        _print_shown([await show(listed.get(ref) or await _get_declared(ref, engine), engine) for ref in refs], request)
        if request.watch:
            async for event in engine.store.watch(listing.revision, query):
                if event.resource.ref in refs:
                    data, drawn = await show(_resource_after(event), engine)
                    is_gone = event.change is ResourceChangeType.DELETED
                    farewell = Text(f"{event.resource.ref} deleted", style="dim")
                    _print_shown([(data, farewell if is_gone else drawn)], request)
    return ExitCode.DONE


COMMANDS: Final[dict[str, Command]] = {
    command.__name__: command for command in (apply, reconcile, delete, plan, get, describe, explain, events, crds)
}


def run_named(name: str, options: dict[str, Any]) -> int:
    """The exit code of the command `name`."""
    return run_command(COMMANDS[name], options)


# --- Which resources --------------------------------------------------------------------------------------------------


def _require_files(files: Sequence[str]) -> Sequence[str]:
    if not files:
        raise ManifestInvalid("nothing to apply: name a file or folder with -f, or - for standard input")
    return files


def check_manifests(manifests: Sequence[LoadedManifest], engine: EngineContext) -> list[ResourceRef]:
    """The resources that a kind handles, each after those it needs; a mistake names its file and line."""
    dependencies: dict[ResourceRef, Sequence[Dependency]] = {}
    for manifest in manifests:
        if is_unreconciled(manifest.ref, engine):
            continue
        resource = manifest.resource
        try:
            kind = engine.resource_type_of(resource)
            check_manifest(resource, kind)
            dependencies[manifest.ref] = dependencies_of(resource, engine.resource_types)
        except SetpointError as error:
            raise ManifestInvalid(f"{manifest.place_of(str(error))}: {error}") from error
    return list(reconcile_order(dependencies))


async def _with_owners(
    manifests: Sequence[LoadedManifest], refs: list[ResourceRef], engine: EngineContext
) -> list[ResourceRef]:
    """With the owners of those that are somebody's children, who are looked at first."""
    owners = await owners_of_children([manifest.ref for manifest in manifests], engine)
    return list(dict.fromkeys((*owners, *refs)))


async def _dry_run_apply(manifests: Sequence[LoadedManifest], engine: EngineContext) -> None:
    """Applies everything to a store that is thrown away: all is taken, or nothing is."""
    for manifest in manifests:
        try:
            await overlay_manifests(engine, [manifest.tree])
        except SetpointError as error:
            raise ManifestInvalid(f"{manifest.place_of(str(error))}: {error}") from error


async def _selected_refs(
    request: CommandRequest, engine: EngineContext, *, missing_is_fine: bool = False
) -> list[ResourceRef]:
    named = [manifest.ref for manifest in load_manifests(request.files)] if request.files else []
    named += [ref_of_target(target, request.namespace, engine) for target in request.targets]
    if not named and not missing_is_fine:
        listing = await engine.store.list(ResourceQuery(namespace=request.namespace))
        named = [one.ref for one in listing.resources if (one.ref.group, one.ref.kind) in engine.resource_types]
    elif not named:
        raise ManifestInvalid("nothing to delete: name KIND/NAME, or a file with -f")
    if not missing_is_fine:
        for ref in named:
            await _get_declared(ref, engine)
    return named


async def _require_unprotected(refs: Sequence[ResourceRef], engine: EngineContext) -> None:
    """UserError for what must not be deleted: once it is marked for that, its spec cannot be changed any more."""
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


async def _get_declared(ref: ResourceRef, engine: EngineContext) -> Resource:
    found = await engine.store.get(ref)
    if found is None:
        raise ManifestInvalid(f"{ref} is not declared here: `setpoint get -A` lists what is")
    return found


# --- Steps and what they came to --------------------------------------------------------------------------------------


async def _being_deleted(refs: Sequence[ResourceRef], engine: EngineContext) -> list[ResourceRef]:
    """Those that somebody has asked to delete."""
    found = [await engine.store.get(ref) for ref in refs]
    return [one.ref for one in found if one is not None and one.is_deleting]


async def _report_deleted(going: Sequence[ResourceRef], engine: EngineContext, request: CommandRequest) -> ExitCode:
    """What they should know who applied something that was being deleted."""
    gone = [ref for ref in going if await engine.store.get(ref) is None]
    for ref in gone:
        told = f"{ref} was being deleted, and is gone now: apply it again to make it anew"
        request.console.print(Text(told, style="yellow"), soft_wrap=True)
    return ExitCode.WAITING if gone else ExitCode.DONE


async def _preview_plan(ref: ResourceRef, engine: EngineContext) -> Plan | SetpointError:
    try:
        return await preview(ref, engine)
    except SetpointError as error:
        return error


def _plan_code(one: Plan | SetpointError) -> ExitCode:
    if isinstance(one, Plan):
        writes_nothing = one.is_empty and (not one.withheld or one.held is Hold.OBSERVED)
        return ExitCode.DONE if writes_nothing else ExitCode.CHANGES
    # What waits for something that is not there yet will be written once it is.
    return ExitCode.CHANGES if isinstance(one, NotReady) else ExitCode.FAILED


def _show_plans(previews: dict[ResourceRef, Plan | SetpointError], request: CommandRequest) -> None:
    if request.output in ("json", "yaml"):
        _print_data([_plan_data(ref, one) for ref, one in previews.items()], request)
        return
    for ref, one in previews.items():
        request.console.print(Text(str(ref), style="bold cyan"))
        if isinstance(one, Plan):
            request.console.print(plan_view(one), soft_wrap=True)
        else:
            word, style = _error_word(one)
            request.console.print(Text(f"{word}: {one_line(str(one))}", style=style))


def _error_word(error: SetpointError) -> tuple[str, str]:
    """In one word, and its colour."""
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


def _show_resources(resources: Sequence[Resource], table: view.ResourceTable, request: CommandRequest) -> None:
    if request.output in ("json", "yaml"):
        _print_data([dict(view.redacted_document(resource)) for resource in resources], request)
    else:
        request.console.print(table.lines(resources, _now()), soft_wrap=True)


def _resource_after(event: ResourceChange) -> Resource:
    """The resource as a change leaves it."""
    return view.as_deleted(event.resource, _now()) if event.change is ResourceChangeType.DELETED else event.resource


def _print_shown(shown: Sequence[_DataAndView], request: CommandRequest) -> None:
    if request.output in ("json", "yaml"):
        _print_data([data for data, _ in shown], request)
        return
    for _, drawn in shown:
        request.console.print(drawn)
        if request.watch or len(shown) > 1:
            request.console.print()


def _print_data(data: list[Json], request: CommandRequest) -> None:
    """A list, or the one that was asked for by name; while watching a document for each, in JSON on a line each."""
    names = [target.partition("/")[2] for target in request.targets]
    if request.watch:
        for one in data:
            request.console.out(orjson.dumps(one).decode() if request.output == "json" else f"---\n{view.as_yaml(one)}")
    elif len(data) == len(names) == 1 and names[0]:
        _print_document(data[0], request)
    else:
        _print_document(data, request)


def _print_document(document: Json, request: CommandRequest) -> None:
    if request.output == "json":
        request.console.out(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
    else:
        request.console.out(view.as_yaml(document))


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)

"""What each command does. START HERE for `apply`."""

import datetime
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import orjson
from rich.console import RenderableType
from rich.text import Text

from setpoint.app import Access, definitions, draft, open_guarded, open_world
from setpoint.cli import resources_view as view
from setpoint.cli.columns import one_line
from setpoint.cli.handover import APPLY, DELETE, RECONCILE, hands_for
from setpoint.cli.looked_after import is_looked_at_again
from setpoint.cli.manifests import Manifest, load
from setpoint.cli.outputs_view import has_output
from setpoint.cli.requests import Command, Request, carry_out, one_of, target_ref
from setpoint.cli.selection import is_wanted, require_found, wanted_by
from setpoint.cli.show import plan_view
from setpoint.cli.states import Exit, worst
from setpoint.clients.read_only import Blocks
from setpoint.core.plan import Hold, Plan
from setpoint.core.values import Json
from setpoint.engine.abilities import Protectable
from setpoint.engine.graph import in_order
from setpoint.engine.intent import check_manifest
from setpoint.engine.kind import Need
from setpoint.engine.needs import needs_of
from setpoint.engine.plain import is_plain
from setpoint.engine.ports import Change, Event, Note, Query
from setpoint.engine.reconcile import preview
from setpoint.engine.relatives import owners_of
from setpoint.engine.removal import is_abandoned
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.scene import World
from setpoint.errors import Blocked, ManifestInvalid, NotReady, SetpointError, UserError


async def apply(request: Request) -> Exit:
    """Declares, then takes steps until everything is settled, blocked or failed."""
    manifests = load(_required(request.files))
    async with hands_for(request) as hands:
        refs = checked(manifests, hands.world)
        await _rehearse(manifests, hands.world)
        going = await _going(refs, hands.world)
        await hands.apply(manifests)
        code = await hands.settle(refs, APPLY)
        return worst((code, await _tell_of_the_gone(going, hands.world, request)))


async def reconcile(request: Request) -> Exit:
    """Steps for resources that are declared already."""
    async with hands_for(request) as hands:
        return await hands.settle(await _refs(request, hands.world), RECONCILE)


async def delete(request: Request) -> Exit:
    """Asks for deletion, then takes steps until all are gone."""
    async with hands_for(request) as hands:
        refs = await _refs(request, hands.world, missing_is_fine=True)
        await _require_unprotected(refs, hands.world)
        await hands.delete(refs)
        return await hands.settle(refs, DELETE)


async def plan(request: Request) -> Exit:
    """Each plan in the order it would be carried out."""
    async with open_guarded(request.settings, Blocks()) as world:
        if request.files:
            manifests = load(request.files)
            refs = checked(manifests, world)
            world = await draft(world, [manifest.tree for manifest in manifests])
            refs = await _with_owners(manifests, refs, world)
        else:
            refs = await _refs(request, world)
        previews = {ref: await _previewed(ref, world) for ref in refs}
    _show_plans(previews, request)
    return worst(_plan_code(one) for one in previews.values())


async def get(request: Request) -> Exit:
    """Resources as they are on record."""
    async with open_world(request.settings, Access.READ) as world:
        wanted = [wanted_by(target, world) for target in request.targets]
        query = Query(namespace=request.namespace)
        listing = await world.store.list(query)
        resources = [one for one in listing.resources if is_wanted(one, wanted)]
        resources += await _not_listed(request, resources, world)
        wide, outputs = request.output == "wide", any(map(has_output, resources))
        table = view.ResourceTable(world.sorts, wide=wide, outputs=outputs)
        if not request.watch:
            require_found(wanted, resources)
        _show(resources, table, request)
        if request.watch:
            async for event in world.store.watch(listing.revision, query):
                if is_wanted(event.resource, wanted):
                    _show([_after(event)], table, request)
    return Exit.DONE


async def _not_listed(request: Request, listed: Sequence[Resource], world: World) -> list[Resource]:
    """Plain objects that are asked for by name: a cluster has too many of them to list."""
    refs = [target_ref(target, request.namespace, world) for target in request.targets if target.partition("/")[2]]
    there = {one.ref for one in listed}
    found = [await world.store.get(ref) for ref in refs if ref not in there and is_plain(ref, world)]
    return [one for one in found if one is not None]


async def describe(request: Request) -> Exit:
    """Everything on record about the named resources."""

    async def show(resource: Resource, world: World) -> Shown:
        notes = await world.store.notes(resource.ref)
        data = {**view.shown_tree(resource), "notes": [view.note_data(note) for note in notes]}
        return data, view.description_of(resource, notes, _now())

    return await _each(request, show)


async def explain(request: Request) -> Exit:
    """The record of the last step of the named resources."""

    looks_again = await is_looked_at_again(request)

    async def show(resource: Resource, _world: World) -> Shown:
        return view.explanation_data(resource), view.explanation_of(resource, looks_again=looks_again)

    return await _each(request, show)


async def events(request: Request) -> Exit:
    """The notes on record; with `--watch` those that come, too."""
    async with open_world(request.settings, Access.READ) as world:
        wanted = {target_ref(target, request.namespace, world) for target in request.targets}
        table, shown = view.NotesTable(), set[Note]()
        listing = await world.store.list(Query(namespace=request.namespace))

        async def show() -> None:
            notes = [one for one in await world.store.notes() if one not in shown and (not wanted or one.ref in wanted)]
            shown.update(notes)
            data: list[Json] = [view.note_data(note) for note in notes]
            if request.output in ("json", "yaml"):
                _print_data(data, request) if request.watch else _print_document(data, request)
            elif notes or not request.watch:
                request.console.print(table.lines(notes), soft_wrap=True)

        await show()
        if request.watch:
            async for _ in world.store.watch(listing.revision):
                await show()
    return Exit.DONE


async def crds(request: Request) -> Exit:
    """The definitions of the named kinds, or of all, for kubectl."""
    known = definitions()
    documents = [known[one_of(word, known)] for word in request.targets] or list(known.values())
    if request.output == "yaml":
        request.console.out("---\n".join(view.as_yaml(document) for document in documents), end="")
    elif len(request.targets) == 1:
        _print_document(documents[0], request)
    else:
        _print_document({"apiVersion": "v1", "kind": "List", "items": documents}, request)
    return Exit.DONE


# A resource for programs, and for people.
Shown = tuple[Json, RenderableType]


async def _each(request: Request, show: Callable[[Resource, World], Awaitable[Shown]]) -> Exit:
    """Shows each resource, and with `--watch` again whenever it changes."""
    async with open_world(request.settings, Access.READ) as world:
        query = Query(namespace=request.namespace)
        listing = await world.store.list(query)
        listed = {one.ref: one for one in listing.resources}
        refs = await _refs(request, world)
        _print_shown([await show(listed.get(ref) or await _declared(ref, world), world) for ref in refs], request)
        if request.watch:
            async for event in world.store.watch(listing.revision, query):
                if event.resource.ref in refs:
                    data, drawn = await show(_after(event), world)
                    is_gone = event.change is Change.DELETED
                    farewell = Text(f"{event.resource.ref} deleted", style="dim")
                    _print_shown([(data, farewell if is_gone else drawn)], request)
    return Exit.DONE


COMMANDS: Final[dict[str, Command]] = {
    command.__name__: command for command in (apply, reconcile, delete, plan, get, describe, explain, events, crds)
}


def run(name: str, options: dict[str, Any]) -> int:
    """The exit code of the command `name`."""
    return carry_out(COMMANDS[name], options)


# --- Which resources --------------------------------------------------------------------------------------------------


def _required(files: Sequence[str]) -> Sequence[str]:
    if not files:
        raise ManifestInvalid("nothing to apply: name a file or folder with -f, or - for standard input")
    return files


def checked(manifests: Sequence[Manifest], world: World) -> list[ResourceRef]:
    """The resources that a kind handles, each after those it needs; a mistake names its file and line."""
    needs: dict[ResourceRef, Sequence[Need]] = {}
    for manifest in manifests:
        if is_plain(manifest.ref, world):
            continue
        resource = manifest.resource
        try:
            kind = world.sort_of(resource)
            check_manifest(resource, kind)
            needs[manifest.ref] = needs_of(resource, world.sorts)
        except SetpointError as error:
            raise ManifestInvalid(f"{manifest.place_of(str(error))}: {error}") from error
    return list(in_order(needs))


async def _with_owners(manifests: Sequence[Manifest], refs: list[ResourceRef], world: World) -> list[ResourceRef]:
    """With the owners of those that are somebody's children, who are looked at first."""
    owners = await owners_of([manifest.ref for manifest in manifests], world)
    return list(dict.fromkeys((*owners, *refs)))


async def _rehearse(manifests: Sequence[Manifest], world: World) -> None:
    """Applies everything to a store that is thrown away: all is taken, or nothing is."""
    for manifest in manifests:
        try:
            await draft(world, [manifest.tree])
        except SetpointError as error:
            raise ManifestInvalid(f"{manifest.place_of(str(error))}: {error}") from error


async def _refs(request: Request, world: World, *, missing_is_fine: bool = False) -> list[ResourceRef]:
    named = [manifest.ref for manifest in load(request.files)] if request.files else []
    named += [target_ref(target, request.namespace, world) for target in request.targets]
    if not named and not missing_is_fine:
        listing = await world.store.list(Query(namespace=request.namespace))
        named = [one.ref for one in listing.resources if (one.ref.group, one.ref.kind) in world.sorts]
    elif not named:
        raise ManifestInvalid("nothing to delete: name KIND/NAME, or a file with -f")
    if not missing_is_fine:
        for ref in named:
            await _declared(ref, world)
    return named


async def _require_unprotected(refs: Sequence[ResourceRef], world: World) -> None:
    """UserError for what must not be deleted: once it is marked for that, its spec cannot be changed any more."""
    for ref in refs:
        resource = await world.store.get(ref)
        if resource is not None and not resource.is_deleting and _is_protected(resource, world):
            raise UserError(
                f"{ref} is protected by spec.deleteProtection: set that to false and apply it first; "
                "nothing was deleted"
            )


def _is_protected(resource: Resource, world: World) -> bool:
    kind = world.kinds.get((resource.ref.group, resource.ref.kind))
    if kind is None or is_abandoned(resource, kind):
        return False
    return isinstance(kind, Protectable) and kind.is_protected(resource)


async def _declared(ref: ResourceRef, world: World) -> Resource:
    found = await world.store.get(ref)
    if found is None:
        raise ManifestInvalid(f"{ref} is not declared here: `setpoint get -A` lists what is")
    return found


# --- Steps and what they came to --------------------------------------------------------------------------------------


async def _going(refs: Sequence[ResourceRef], world: World) -> list[ResourceRef]:
    """Those that somebody has asked to delete."""
    found = [await world.store.get(ref) for ref in refs]
    return [one.ref for one in found if one is not None and one.is_deleting]


async def _tell_of_the_gone(going: Sequence[ResourceRef], world: World, request: Request) -> Exit:
    """What they should know who applied something that was being deleted."""
    gone = [ref for ref in going if await world.store.get(ref) is None]
    for ref in gone:
        told = f"{ref} was being deleted, and is gone now: apply it again to make it anew"
        request.console.print(Text(told, style="yellow"), soft_wrap=True)
    return Exit.WAITING if gone else Exit.DONE


async def _previewed(ref: ResourceRef, world: World) -> Plan | SetpointError:
    try:
        return await preview(ref, world)
    except SetpointError as error:
        return error


def _plan_code(one: Plan | SetpointError) -> Exit:
    if isinstance(one, Plan):
        is_left_alone = one.is_empty and (not one.withheld or one.held is Hold.OBSERVED)
        return Exit.DONE if is_left_alone else Exit.CHANGES
    # What waits for something that is not there yet will be written once it is.
    return Exit.CHANGES if isinstance(one, NotReady) else Exit.FAILED


def _show_plans(previews: dict[ResourceRef, Plan | SetpointError], request: Request) -> None:
    if request.output in ("json", "yaml"):
        _print_data([_plan_data(ref, one) for ref, one in previews.items()], request)
        return
    for ref, one in previews.items():
        request.console.print(Text(str(ref), style="bold cyan"))
        if isinstance(one, Plan):
            request.console.print(plan_view(one), soft_wrap=True)
        else:
            word, style = _why_there_is_none(one)
            request.console.print(Text(f"{word}: {one_line(str(one))}", style=style))


def _why_there_is_none(error: SetpointError) -> tuple[str, str]:
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


def _show(resources: Sequence[Resource], table: view.ResourceTable, request: Request) -> None:
    if request.output in ("json", "yaml"):
        _print_data([dict(view.shown_tree(resource)) for resource in resources], request)
    else:
        request.console.print(table.lines(resources, _now()), soft_wrap=True)


def _after(event: Event) -> Resource:
    """The resource as a change leaves it."""
    return view.gone(event.resource, _now()) if event.change is Change.DELETED else event.resource


def _print_shown(shown: Sequence[Shown], request: Request) -> None:
    if request.output in ("json", "yaml"):
        _print_data([data for data, _ in shown], request)
        return
    for _, drawn in shown:
        request.console.print(drawn)
        if request.watch or len(shown) > 1:
            request.console.print()


def _print_data(data: list[Json], request: Request) -> None:
    """A list, or the one that was asked for by name; while watching a document for each, in JSON on a line each."""
    names = [target.partition("/")[2] for target in request.targets]
    if request.watch:
        for one in data:
            request.console.out(orjson.dumps(one).decode() if request.output == "json" else f"---\n{view.as_yaml(one)}")
    elif len(data) == len(names) == 1 and names[0]:
        _print_document(data[0], request)
    else:
        _print_document(data, request)


def _print_document(document: Json, request: Request) -> None:
    if request.output == "json":
        request.console.out(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
    else:
        request.console.out(view.as_yaml(document))


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)

"""What each command does. START HERE for `apply`."""

import datetime
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import orjson
from rich.text import Text

from setpoint.app import Access, draft, open_world
from setpoint.cli import resources_view as view
from setpoint.cli.manifests import Manifest, load
from setpoint.cli.progress import Progress
from setpoint.cli.requests import Command, Request, carry_out, kind_named, target_ref
from setpoint.cli.show import plan_view
from setpoint.cli.states import Exit, state_of, worst
from setpoint.core.plan import Plan
from setpoint.core.values import Json
from setpoint.engine.graph import in_order
from setpoint.engine.intent import check_manifest
from setpoint.engine.kind import Reference
from setpoint.engine.ports import Query
from setpoint.engine.reconcile import preview, step
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.run import Run
from setpoint.engine.scene import Stopped, World
from setpoint.errors import ManifestInvalid, SetpointError


async def apply(request: Request) -> Exit:
    """Declares, then takes steps until everything is settled, blocked or failed."""
    manifests = load(_required(request.files))
    async with open_world(request.settings, Access.WRITE) as world:
        refs = checked(manifests, world)
        await _rehearse(manifests, world)
        going = await _going(refs, world)
        for manifest in manifests:
            await world.store.apply(manifest.tree)
        code = await _settle(refs, world, request, "setpoint apply")
        return worst((code, await _tell_of_the_gone(going, world, request)))


async def reconcile(request: Request) -> Exit:
    """Steps for resources that are declared already."""
    async with open_world(request.settings, Access.WRITE) as world:
        return await _settle(await _refs(request, world), world, request, "setpoint reconcile")


async def delete(request: Request) -> Exit:
    """Asks for deletion, then takes steps until all are gone."""
    async with open_world(request.settings, Access.WRITE) as world:
        refs = await _refs(request, world, missing_is_fine=True)
        for ref in refs:
            await world.store.delete(ref)
        return await _settle(refs, world, request, "setpoint delete")


async def plan(request: Request) -> Exit:
    """Each plan in the order it would be carried out."""
    async with open_world(request.settings, Access.READ) as world:
        if request.files:
            manifests = load(request.files)
            refs = checked(manifests, world)
            world = await draft(world, [manifest.tree for manifest in manifests])
        else:
            refs = await _refs(request, world)
        previews = {ref: await _previewed(ref, world) for ref in refs}
    _show_plans(previews, request)
    return worst(_plan_code(one) for one in previews.values())


async def get(request: Request) -> Exit:
    """Resources as they are on record."""
    async with open_world(request.settings, Access.READ) as world:
        wanted = [_wanted(target, world) for target in request.targets]
        listing = await world.store.list(Query(namespace=request.namespace))
        resources = [one for one in listing.resources if _is_wanted(one, wanted)]
        _show(resources, request)
        if request.watch:
            async for event in world.store.watch(listing.revision, Query(namespace=request.namespace)):
                if _is_wanted(event.resource, wanted):
                    _show([event.resource], request)
    is_found = bool(resources) or not any(name for _, name in wanted)
    return Exit.DONE if is_found else Exit.FAILED


async def describe(request: Request) -> Exit:
    """Everything on record about the named resources."""

    async def show(resource: Resource, world: World) -> None:
        notes = await world.store.notes(resource.ref)
        if request.output in ("json", "yaml"):
            _print_data([{**view.shown_tree(resource), "notes": [view.note_data(note) for note in notes]}], request)
        else:
            request.console.print(view.description_of(resource, notes, _now()))

    return await _each(request, show)


async def explain(request: Request) -> Exit:
    """The record of the last step of the named resources."""

    async def show(resource: Resource, _world: World) -> None:
        if request.output in ("json", "yaml"):
            _print_data([view.explanation_data(resource)], request)
        else:
            request.console.print(view.explanation_of(resource))

    return await _each(request, show)


async def events(request: Request) -> Exit:
    """The notes on record."""
    async with open_world(request.settings, Access.READ) as world:
        wanted = {target_ref(target, request.namespace, world) for target in request.targets}
        notes = [note for note in await world.store.notes() if not wanted or note.ref in wanted]
    if request.output in ("json", "yaml"):
        _print_data([view.note_data(note) for note in notes], request)
    else:
        request.console.print(view.notes_table(notes))
    return Exit.DONE


async def _each(request: Request, show: Callable[[Resource, World], Awaitable[None]]) -> Exit:
    """Shows each resource, and with `--watch` again whenever it changes."""
    async with open_world(request.settings, Access.READ) as world:
        refs = await _refs(request, world)
        listing = await world.store.list(Query(namespace=request.namespace))
        for ref in refs:
            await show(await _declared(ref, world), world)
        if request.watch:
            async for event in world.store.watch(listing.revision, Query(namespace=request.namespace)):
                if event.resource.ref in refs:
                    await show(event.resource, world)
    return Exit.DONE


COMMANDS: Final[dict[str, Command]] = {
    command.__name__: command for command in (apply, reconcile, delete, plan, get, describe, explain, events)
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
    needs: dict[ResourceRef, list[ResourceRef]] = {}
    for manifest in manifests:
        if (manifest.ref.group, manifest.ref.kind) == ("", "Secret"):
            continue
        resource = manifest.resource
        try:
            kind = world.kind_of(resource)
            check_manifest(resource, kind)
            needs[manifest.ref] = [need.target for need in kind.needs(resource) if isinstance(need, Reference)]
        except SetpointError as error:
            raise ManifestInvalid(f"{manifest.place_of(str(error))}: {error}") from error
    return list(in_order(needs))


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
        named = [one.ref for one in listing.resources if (one.ref.group, one.ref.kind) in world.kinds]
    elif not named:
        raise ManifestInvalid("nothing to delete: name KIND/NAME, or a file with -f")
    if not missing_is_fine:
        for ref in named:
            await _declared(ref, world)
    return named


async def _declared(ref: ResourceRef, world: World) -> Resource:
    found = await world.store.get(ref)
    if found is None:
        raise ManifestInvalid(f"{ref} is not declared here: `setpoint get -A` lists what is")
    return found


def _wanted(target: str, world: World) -> tuple[tuple[str, str], str]:
    """The kind and the name that KIND or KIND/NAME means; no name for all of them."""
    kind, _, name = target.partition("/")
    return kind_named(kind, world), name


def _is_wanted(resource: Resource, wanted: Sequence[tuple[tuple[str, str], str]]) -> bool:
    kind = (resource.ref.group, resource.ref.kind)
    return not wanted or any(kind == one and name in ("", resource.ref.name) for one, name in wanted)


# --- Steps and what they came to --------------------------------------------------------------------------------------


async def _settle(refs: Sequence[ResourceRef], world: World, request: Request, trigger: str) -> Exit:
    asked = trigger == "setpoint reconcile"
    with Progress(request.console, refs) as progress:
        if not request.wait:
            for ref in refs:
                progress.hear(ref, await step(ref, world, trigger=trigger, asked=asked))
        else:
            await Run(world, progress.hear, trigger, asked).until_done(refs, request.seconds)
    return worst(state.code for state in progress.states.values())


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
        return Exit.DONE if one.is_empty else Exit.CHANGES
    code = state_of(Stopped(one)).code
    # What waits for something that is not there yet will be written once it is.
    return Exit.CHANGES if code is Exit.WAITING else Exit.FAILED


def _show_plans(previews: dict[ResourceRef, Plan | SetpointError], request: Request) -> None:
    if request.output in ("json", "yaml"):
        _print_data([_plan_data(ref, one) for ref, one in previews.items()], request)
        return
    for ref, one in previews.items():
        request.console.print(Text(str(ref), style="bold cyan"))
        if isinstance(one, Plan):
            request.console.print(plan_view(one))
        else:
            state = state_of(Stopped(one))
            request.console.print(Text(f"{state.word}: {one}", style=state.style))


def _plan_data(ref: ResourceRef, one: Plan | SetpointError) -> Json:
    name: dict[str, Json] = {"kind": ref.kind, "namespace": ref.namespace, "name": ref.name}
    return {**name, "plan": one.to_data()} if isinstance(one, Plan) else {**name, "error": str(one)}


def _show(resources: Sequence[Resource], request: Request) -> None:
    if request.output in ("json", "yaml"):
        _print_data([dict(view.shown_tree(resource)) for resource in resources], request)
    else:
        request.console.print(view.table_of(resources, _now(), wide=request.output == "wide"))


def _print_data(data: list[Json], request: Request) -> None:
    shown = data[0] if len(data) == 1 and len(request.targets) == 1 else data
    if request.output == "json":
        request.console.print(orjson.dumps(shown, option=orjson.OPT_INDENT_2).decode(), soft_wrap=True, markup=False)
    else:
        request.console.print(view.as_yaml(shown), soft_wrap=True, markup=False)


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)

"""`setpoint export` and `setpoint import`: moving resources from one store to another, and nothing is written twice."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from setpoint import __version__
from setpoint.app import Access, file_of, is_shared, open_world, rehearse
from setpoint.cli.export_files import lines_of, load_export
from setpoint.cli.looked_after import is_looked_after
from setpoint.cli.private_files import write_privately
from setpoint.cli.requests import Request, carry_out
from setpoint.cli.selection import is_wanted, require_found, wanted_by
from setpoint.cli.states import Exit
from setpoint.engine.exporting import exported, is_paused, pause
from setpoint.engine.exports import Export, Header
from setpoint.engine.importing import Arrival, checked
from setpoint.engine.ports import Query
from setpoint.engine.resource import SECRET, Resource, ResourceRef, Tree
from setpoint.engine.scene import World
from setpoint.errors import StoreError, UserError

_STDOUT: Final = "-"
_STILL_RUNS: Final = "somebody looks after this store: this is a copy of one moment. To move, end that, and use --pause"
_NOT_PAUSED: Final = (
    "Where they came from they are not paused: two would look after the same objects. Let nobody look after that store "
    "any more, and put it away; `setpoint delete` there would delete the objects"
)
_OWNERS_SECRETS: Final = (
    "the Secrets of owners stay behind, and keys that were made for one are made anew elsewhere: --with-secrets takes "
    "them along"
)
_PAUSED: Final = "Where they came from they are paused: nothing is done for them from there"


@dataclass(frozen=True, slots=True)
class Orders:
    """What an export is to be."""

    with_secrets: bool
    pause: bool
    to: str

    @staticmethod
    def of(options: dict[str, Any]) -> "Orders":
        """The orders that the options of a command line make."""
        if options["with_secrets"] and options["to"] is None:
            raise UserError(
                "--with-secrets writes passwords in clear text: name a file with --to, which only you can read then, "
                "or write --to - to pipe it on"
            )
        return Orders(options["with_secrets"], options["pause"], options["to"] or _STDOUT)


def export_resources(options: dict[str, Any]) -> int:
    """The exit code of `setpoint export`."""
    return carry_out(lambda request: _export(request, Orders.of(options)), options)


def import_resources(options: dict[str, Any]) -> int:
    """The exit code of `setpoint import`."""
    return carry_out(lambda request: _import(request, overwrite=options["overwrite"]), options)


# --- Export -----------------------------------------------------------------------------------------------------------


async def _export(request: Request, orders: Orders) -> Exit:
    async with open_world(request.settings, _access(request, orders)) as world:
        resources = await _chosen(request, world)
        await _heed_others(request, world, orders)
        if orders.pause:
            for resource in resources:
                await pause(resource, world.store)
        export = await _export_of(resources, world, request, orders)
    text = lines_of(export, request.output)
    if orders.to == _STDOUT:
        request.console.file.writelines(text)
    else:
        write_privately(Path(orders.to), (line.encode() for line in text))
        _tell(f"{_counted(export)} in {orders.to}, which only you can read")
    return Exit.DONE


def _access(request: Request, orders: Orders) -> Access:
    file = file_of(request.settings)
    # Whoever only wants to look makes no new store.
    return Access.WRITE if orders.pause and (file is None or file.exists()) else Access.READ


async def _chosen(request: Request, world: World) -> list[Resource]:
    wanted = [wanted_by(target, world) for target in request.targets]
    if any(kind == SECRET for kind, _ in wanted):
        raise UserError("a Secret goes along with the resources that refer to it: name those, and --with-secrets")
    others = [kind for kind, _ in wanted if kind not in world.sorts]
    if others:
        raise UserError(f"{others[0][1]}: it goes along with the resource that makes or reads it: name that one")
    listing = await world.store.list(Query(namespace=request.namespace))
    known = [one for one in listing.resources if (one.ref.group, one.ref.kind) in world.sorts]
    found = _with_children([one for one in known if is_wanted(one, wanted)], known)
    require_found(wanted, found)
    if not found:
        where = "anywhere" if request.namespace is None else f"in {request.namespace}"
        raise UserError(f"there is nothing to export {where}: -n names another, and -A means all")
    return found


def _with_children(found: Sequence[Resource], known: Sequence[Resource]) -> list[Resource]:
    """Those that were found, and whatever among the known is a child of one of them, or of such a child."""
    refs = {one.ref for one in found}
    while more := {one.ref for one in known if one.controller in refs} - refs:
        refs |= more
    return [one for one in known if one.ref in refs]


async def _heed_others(request: Request, world: World, orders: Orders) -> None:
    """Says that somebody is at work on what is copied; UserError when that has to end first."""
    try:
        is_watched = await is_looked_after(request, world)
    except StoreError as error:
        if orders.pause:
            raise
        _tell(f"whether somebody looks after this store cannot be told: {error}")
        return
    if is_watched and orders.pause:
        raise UserError("somebody looks after this store, and would go on: end that first, then export with --pause")
    if is_watched:
        _tell(_STILL_RUNS)


async def _export_of(resources: Sequence[Resource], world: World, request: Request, orders: Orders) -> Export:
    objects, taken = await exported(resources, world)
    sort = "kubernetes" if is_shared(request.settings) else request.settings.store.partition(":")[0]
    paused = orders.pause or all(map(is_paused, resources))
    header = Header(__version__, world.clock.now(), sort, orders.with_secrets, paused)
    for one in resources:
        if _tree(one.document.get("metadata")).get("ownerReferences") and not _goes_along(one.controller, resources):
            _tell(f"{one.ref}: its owner stays behind, so that it has none elsewhere")
    if not orders.with_secrets and any(one.is_secret for one in objects) and _has_owners(resources, world):
        _tell(_OWNERS_SECRETS)
    return Export((header,), tuple(one for one in objects if orders.with_secrets or not one.is_secret), taken)


def _goes_along(owner: ResourceRef | None, resources: Sequence[Resource]) -> bool:
    return any(one.ref == owner for one in resources)


def _has_owners(resources: Sequence[Resource], world: World) -> bool:
    return any((one.ref.group, one.ref.kind) in world.owners for one in resources)


def _tree(value: object) -> Tree:
    return value if isinstance(value, dict) else {}


def _counted(export: Export) -> str:
    resources, secrets = len(export.resources), sum(one.is_secret for one in export.objects)
    plain = len(export.objects) - secrets
    beside = f", {plain} object{'s' * (plain != 1)} beside them" if plain else ""
    more = f", and {secrets} Secret{'s' * (secrets != 1)}" if export.headers[0].secrets else ", without their Secrets"
    return f"{resources} resource{'s' * (resources != 1)}{beside}{more}"


def _tell(text: str) -> None:
    """On standard error: the export itself may be on standard output."""
    Console(stderr=True, highlight=False).print(Text(text, style="yellow"), soft_wrap=True)


# --- Import -----------------------------------------------------------------------------------------------------------


async def _import(request: Request, *, overwrite: bool) -> Exit:
    if not request.files:
        raise UserError("nothing to import: name an export with -f, or - for standard input")
    export = load_export(request.files)
    async with open_world(request.settings, Access.WRITE) as world:
        if await is_looked_after(request, world):
            raise UserError(
                "somebody looks after this store, and would take steps before all is here: end that first, "
                "a Deployment with `kubectl scale --replicas=0`, then import"
            )
        work = await checked(export, world, lambda tree: rehearse(tree, world), overwrite=overwrite)
        for arrival in await work.bring_in():
            request.console.print(Text(_line(arrival)), soft_wrap=True)
    request.console.print(
        Text(f"{_PAUSED if export.is_paused else _NOT_PAUSED}. `setpoint plan` shows what is left to do here"),
        soft_wrap=True,
    )
    return Exit.DONE


def _line(arrival: Arrival) -> str:
    word = "moved" if arrival.is_new else "unchanged"
    return "; ".join([f"{arrival.ref} {word}", *arrival.remarks])

"""`setpoint graph`: who needs whom, and how it stands with each."""

from collections.abc import Sequence
from typing import Any, Final

from rich.text import Text

from setpoint.app import Access, draft, open_world
from setpoint.cli.graph_view import FORMS, forest_of
from setpoint.cli.manifests import load
from setpoint.cli.requests import Request, carry_out
from setpoint.cli.selection import is_wanted, require_found, wanted_by
from setpoint.cli.states import Exit
from setpoint.engine.dependencies import graph_of
from setpoint.engine.ports import Query
from setpoint.engine.resource import Resource
from setpoint.engine.scene import World

_WIDEST: Final = 100_000


def draw_graph(options: dict[str, Any]) -> int:
    """The exit code of `setpoint graph`."""
    return carry_out(_graph, options)


async def _graph(request: Request) -> Exit:
    """Exit 1 for a cycle, which is named."""
    async with open_world(request.settings, Access.READ) as world:
        if request.files:
            manifests = load(request.files)
            world = await draft(world, [manifest.tree for manifest in manifests])
            found = [await world.store.get(manifest.ref) for manifest in manifests]
            resources: Sequence[Resource] = [one for one in found if one is not None]
        else:
            resources = await _declared(request, world)
        graph = await graph_of(resources, world)
    if request.output in FORMS:
        request.console.file.write(FORMS[request.output](graph))
    else:
        # A pipe gets every line whole.
        width = None if request.console.is_terminal else _WIDEST
        for tree in forest_of(graph):
            request.console.print(tree, width=width, crop=False)
    if graph.cycle:
        request.console.stderr = True
        request.console.print(Text(f"error: {graph.cycle}", style="red"), soft_wrap=True)
    return Exit.FAILED if graph.cycle else Exit.DONE


async def _declared(request: Request, world: World) -> Sequence[Resource]:
    wanted = [wanted_by(target, world) for target in request.targets]
    listing = await world.store.list(Query(namespace=request.namespace))
    found = [one for one in listing.resources if is_wanted(one, wanted)]
    require_found(wanted, found)
    return found

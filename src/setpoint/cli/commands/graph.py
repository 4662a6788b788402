"""`setpoint graph`: the dependency graph as a tree, for Graphviz, for Mermaid and as JSON."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from rich.text import Text
from rich.tree import Tree

from setpoint.cli.request import CommandRequest, open_session, run_command, selection_of
from setpoint.cli.views.table import one_line
from setpoint.engine.dependency_graph import EdgeType, GraphEdge, GraphNode, NodeState
from setpoint.engine.resource import ResourceRef
from setpoint.errors import UserError
from setpoint.library.inspection.graph import ResourceGraph
from setpoint.library.inspection.graph_parts import fitted, surroundings
from setpoint.library.outcome import ExitCode
from setpoint.library.targets import Selection, is_target, ref_of_target

if TYPE_CHECKING:
    from setpoint.library.session import Session

_PIPE_COLUMNS: Final = 100_000


def draw_graph(options: dict[str, Any]) -> int:
    """The exit code of `setpoint graph`."""
    depth, most = options["depth"], options["most"]
    return run_command(lambda request: _graph(request, depth, most), {**options, "takes_kinds": True})


async def _graph(request: CommandRequest, depth: int | None = None, most: int = 0) -> ExitCode:
    """Draws the graph; FAILED for a cycle, which is named."""
    async with open_session(request) as session:
        graph = await (session.graph(selection_of(request)) if depth is None else _around(request, session, depth))
    if request.output != "json":
        graph = fitted(graph, most)
    if request.output in FORMATS:
        request.console.write(FORMATS[request.output](graph))
    else:
        # In a pipe no line is cut.
        width = None if request.console.is_terminal else _PIPE_COLUMNS
        for tree in dependency_trees(graph):
            request.console.print(tree, width=width, crop=False)
    if graph.cycle:
        request.console.stderr = True
        request.console.print(Text(f"error: {graph.cycle}", style="red"), soft_wrap=True)
    return ExitCode.FAILED if graph.cycle else ExitCode.DONE


async def _around(request: CommandRequest, session: "Session", depth: int) -> ResourceGraph:
    """What is some steps around the named resources, whatever their kinds and namespaces."""
    if request.files or not request.targets or not all(map(is_target, request.targets)):
        raise UserError("--depth is about the surroundings of a resource: name it by KIND/NAME")
    named = await session.graph(Selection(None, request.targets, request.namespace))
    async with session.reading() as engine:
        refs = [ref_of_target(one, request.namespace, engine) for one in request.targets]
    known = {node.ref for node in named.nodes}
    refs = [ref for ref in refs if ref in known]
    return surroundings(await session.graph(all_namespaces=True), refs, depth)


FORMATS: Final[Mapping[str, Callable[[ResourceGraph], str]]] = {
    "dot": ResourceGraph.to_dot,
    "mermaid": ResourceGraph.to_mermaid,
    "json": lambda graph: f"{graph.to_json()}\n",
}
_COLOURS: Final[Mapping[NodeState, str]] = {
    NodeState.READY: "green",
    NodeState.WAITING: "yellow",
    NodeState.TIMED_OUT: "yellow",
    NodeState.BLOCKED: "magenta",
    NodeState.FAILED: "red",
    NodeState.DELETING: "dim",
    NodeState.PAUSED: "dim",
    NodeState.UNSEEN: "dim",
    NodeState.MISSING: "red",
    NodeState.THERE: "green",
    NodeState.NOT_GRANTED: "magenta",
}
# The relation of a resource to the one above it, where no field names it.
_LINK_WORDS: Final[Mapping[EdgeType, str]] = {EdgeType.ORDER: "after it", EdgeType.MAKES: "made by it"}


# --- As text -------------------------------------------------------------------------------------------------------


def dependency_trees(graph: ResourceGraph) -> Sequence[Tree]:
    """Trees: each resource below a dependency; one with several dependencies below the last of them."""
    nodes = {node.ref: node for node in graph.nodes}
    above = {ref: _last_dependency(ref, graph) for ref in nodes}
    trees: dict[ResourceRef, Tree] = {}
    roots: list[Tree] = []
    for ref, node in nodes.items():
        needed = above[ref]
        line = _node_line(node, graph, needed)
        # In a cycle the dependency may not have been drawn yet.
        if needed is None or needed not in trees:
            trees[ref] = Tree(line, guide_style="dim")
            roots.append(trees[ref])
        else:
            trees[ref] = trees[needed].add(line)
    return roots


def _last_dependency(ref: ResourceRef, graph: ResourceGraph) -> ResourceRef | None:
    """The dependency that is reconciled last: all other dependencies are done by then."""
    needed = {link.needed for link in graph.edges if link.dependant == ref}
    return next((node.ref for node in reversed(graph.nodes) if node.ref in needed), None)


def _node_line(node: GraphNode, graph: ResourceGraph, above: ResourceRef | None) -> Text:
    line = Text(f"{node.ref} ")
    line.append(node.state.value, _COLOURS[node.state])
    if node.message:
        line.append(f": {one_line(node.message)}", "dim")
    links = [link for link in graph.edges if link.dependant == node.ref]
    own = [_link_text(link) for link in links if link.needed == above]
    others = [
        f"{link.needed}{f' ({how})' if (how := _link_text(link)) else ''}" for link in links if link.needed != above
    ]
    if any(own):
        line.append(f"  ← {', '.join(filter(None, own))}", "cyan")
    if others:
        line.append(f"  also needs {', '.join(others)}", "cyan")
    return line


def _link_text(link: GraphEdge) -> str:
    return _LINK_WORDS.get(link.type, link.label)

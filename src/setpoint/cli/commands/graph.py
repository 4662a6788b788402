"""`setpoint graph`: the dependency graph as a tree, for Graphviz, for Mermaid and as JSON."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import orjson
from rich.text import Text
from rich.tree import Tree

from setpoint.app import StoreAccess, open_engine, overlay_drafts
from setpoint.cli.request import CommandRequest, read_request_files, run_command
from setpoint.cli.views.table import one_line
from setpoint.core.values.json_types import Json
from setpoint.engine.context import EngineContext
from setpoint.engine.dependency_graph import (
    DependencyGraph,
    EdgeType,
    GraphEdge,
    GraphNode,
    NodeState,
    dependency_graph,
)
from setpoint.engine.ports import ResourceQuery
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.library.manifests.checks import dry_run_manifests
from setpoint.library.outcome import ExitCode
from setpoint.library.targets import matches_targets, parse_target, require_targets_found

_PIPE_COLUMNS: Final = 100_000


def draw_graph(options: dict[str, Any]) -> int:
    """The exit code of `setpoint graph`."""
    return run_command(_graph, {**options, "takes_kinds": True})


async def _graph(request: CommandRequest) -> ExitCode:
    """Draws the graph; FAILED for a cycle, which is named."""
    async with open_engine(request.settings, StoreAccess.READ) as engine:
        if request.files:
            checked = await dry_run_manifests(read_request_files(request), engine)
            engine = await overlay_drafts(engine, checked.drafts)
            found = [await engine.store.get(manifest.ref) for manifest in checked.manifests]
            resources: Sequence[Resource] = [one for one in found if one is not None]
        else:
            resources = await _selected(request, engine)
        graph = await dependency_graph(resources, engine)
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


async def _selected(request: CommandRequest, engine: EngineContext) -> Sequence[Resource]:
    wanted = [parse_target(target, engine) for target in request.targets]
    listing = await engine.store.list(ResourceQuery(namespace=request.namespace))
    found = [one for one in listing.resources if matches_targets(one, wanted)]
    require_targets_found(wanted, found)
    return found


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
_FILLS: Final[Mapping[NodeState, str]] = {
    NodeState.READY: "#d3f9d8",
    NodeState.WAITING: "#fff3bf",
    NodeState.TIMED_OUT: "#ffe8cc",
    NodeState.BLOCKED: "#e5dbff",
    NodeState.FAILED: "#ffe3e3",
    NodeState.DELETING: "#e9ecef",
    NodeState.PAUSED: "#e9ecef",
    NodeState.UNSEEN: "#ffffff",
    NodeState.MISSING: "#ffe3e3",
    NodeState.THERE: "#d3f9d8",
    NodeState.NOT_GRANTED: "#e5dbff",
}


# --- As text -------------------------------------------------------------------------------------------------------


def dependency_trees(graph: DependencyGraph) -> Sequence[Tree]:
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


def _last_dependency(ref: ResourceRef, graph: DependencyGraph) -> ResourceRef | None:
    """The dependency that is reconciled last: all other dependencies are done by then."""
    needed = {link.needed for link in graph.edges if link.dependant == ref}
    return next((node.ref for node in reversed(graph.nodes) if node.ref in needed), None)


def _node_line(node: GraphNode, graph: DependencyGraph, above: ResourceRef | None) -> Text:
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


# --- As data -----------------------------------------------------------------------------------------------------


def as_dot(graph: DependencyGraph) -> str:
    """For Graphviz: `setpoint graph -o dot | dot -Tsvg`."""
    lines = [
        "digraph setpoint {",
        "  rankdir=LR;",
        '  node [shape=box, style="rounded,filled", fontname="sans-serif"];',
    ]
    for node in graph.nodes:
        label = f"{node.ref}\n{node.state.value}"
        lines.append(f'  {_quoted(str(node.ref))} [label={_quoted(label)}, fillcolor="{_FILLS[node.state]}"];')
    for link in graph.edges:
        style = ", style=dashed" if link.type in (EdgeType.ORDER, EdgeType.NAME) else ""
        ends = f"{_quoted(str(link.needed))} -> {_quoted(str(link.dependant))}"
        lines.append(f"  {ends} [label={_quoted(link.label)}{style}];")
    return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def as_mermaid(graph: DependencyGraph) -> str:
    """For Mermaid, which code forges render."""
    names = {node.ref: f"n{number}" for number, node in enumerate(graph.nodes)}
    lines = ["flowchart LR"]
    for node in graph.nodes:
        label = f"{_entities(str(node.ref))}<br/>{node.state.value}"
        lines.append(f'  {names[node.ref]}["{label}"]:::{_css_class(node.state)}')
    for link in graph.edges:
        arrow = "-.->" if link.type in (EdgeType.ORDER, EdgeType.NAME) else "-->"
        label = f'|"{_entities(link.label)}"|' if link.label else ""
        lines.append(f"  {names[link.needed]} {arrow}{label} {names[link.dependant]}")
    used = sorted({node.state for node in graph.nodes})
    lines += [f"  classDef {_css_class(state)} fill:{_FILLS[state]},stroke:#868e96,color:#212529" for state in used]
    return "\n".join([*lines, ""])


def _css_class(state: NodeState) -> str:
    return state.value.replace(" ", "-")


def _entities(text: str) -> str:
    """Text with entities for quotes and brackets: Mermaid interprets them even inside quotes."""
    return "".join(char if char.isalnum() or char in " ./-_:=," else f"#{ord(char)};" for char in text)


def as_json(graph: DependencyGraph) -> str:
    """As JSON, with stable member names."""
    nodes: list[Json] = [
        {**node.ref._asdict(), "state": node.state.value, **({"message": node.message} if node.message else {})}
        for node in graph.nodes
    ]
    links: list[Json] = [
        {
            "needed": link.needed._asdict(),
            "dependant": link.dependant._asdict(),
            "sort": link.type.value,
            **({"label": link.label} if link.label else {}),
        }
        for link in graph.edges
    ]
    data: dict[str, Json] = {"nodes": nodes, "links": links, **({"cycle": graph.cycle} if graph.cycle else {})}
    return orjson.dumps(data, option=orjson.OPT_INDENT_2).decode() + "\n"


FORMATS: Final[Mapping[str, Callable[[DependencyGraph], str]]] = {"dot": as_dot, "mermaid": as_mermaid, "json": as_json}

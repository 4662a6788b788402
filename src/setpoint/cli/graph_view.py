"""The graph of dependencies as text, for Graphviz, for Mermaid and for programs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import orjson
from rich.text import Text
from rich.tree import Tree

from setpoint.cli.columns import one_line
from setpoint.core.values import Json
from setpoint.engine.dependencies import Graph, Link, Node, Sort, State
from setpoint.engine.resource import ResourceRef

_COLOURS: Final[Mapping[State, str]] = {
    State.READY: "green",
    State.WAITING: "yellow",
    State.TIMED_OUT: "yellow",
    State.BLOCKED: "magenta",
    State.FAILED: "red",
    State.DELETING: "dim",
    State.PAUSED: "dim",
    State.UNSEEN: "dim",
    State.MISSING: "red",
    State.THERE: "green",
}
# How a dependant is with what it stands below, where no field says so.
_IN_WORDS: Final[Mapping[Sort, str]] = {Sort.ORDER: "after it", Sort.MAKES: "made by it"}
_FILLS: Final[Mapping[State, str]] = {
    State.READY: "#d3f9d8",
    State.WAITING: "#fff3bf",
    State.TIMED_OUT: "#ffe8cc",
    State.BLOCKED: "#e5dbff",
    State.FAILED: "#ffe3e3",
    State.DELETING: "#e9ecef",
    State.PAUSED: "#e9ecef",
    State.UNSEEN: "#ffffff",
    State.MISSING: "#ffe3e3",
    State.THERE: "#d3f9d8",
}


# --- For people -------------------------------------------------------------------------------------------------------


def forest_of(graph: Graph) -> Sequence[Tree]:
    """Trees, each resource below one that it needs; one that needs several stands below the last of them."""
    nodes = {node.ref: node for node in graph.nodes}
    above = {ref: _last_needed(ref, graph) for ref in nodes}
    trees: dict[ResourceRef, Tree] = {}
    roots: list[Tree] = []
    for ref, node in nodes.items():
        needed = above[ref]
        line = _line(node, graph, needed)
        # In a cycle nobody comes first.
        if needed is None or needed not in trees:
            trees[ref] = Tree(line, guide_style="dim")
            roots.append(trees[ref])
        else:
            trees[ref] = trees[needed].add(line)
    return roots


def _last_needed(ref: ResourceRef, graph: Graph) -> ResourceRef | None:
    """Of those that it needs, the one that comes last: all others are done by then."""
    needed = {link.needed for link in graph.links if link.dependant == ref}
    return next((node.ref for node in reversed(graph.nodes) if node.ref in needed), None)


def _line(node: Node, graph: Graph, above: ResourceRef | None) -> Text:
    line = Text(f"{node.ref} ")
    line.append(node.state.value, _COLOURS[node.state])
    if node.message:
        line.append(f": {one_line(node.message)}", "dim")
    links = [link for link in graph.links if link.dependant == node.ref]
    own = [_how(link) for link in links if link.needed == above]
    others = [f"{link.needed}{f' ({how})' if (how := _how(link)) else ''}" for link in links if link.needed != above]
    if any(own):
        line.append(f"  ← {', '.join(filter(None, own))}", "cyan")
    if others:
        line.append(f"  also needs {', '.join(others)}", "cyan")
    return line


def _how(link: Link) -> str:
    return _IN_WORDS.get(link.sort, link.label)


# --- For programs -----------------------------------------------------------------------------------------------------


def as_dot(graph: Graph) -> str:
    """For Graphviz: `setpoint graph -o dot | dot -Tsvg`."""
    lines = [
        "digraph setpoint {",
        "  rankdir=LR;",
        '  node [shape=box, style="rounded,filled", fontname="sans-serif"];',
    ]
    for node in graph.nodes:
        label = f"{node.ref}\n{node.state.value}"
        lines.append(f'  {_quoted(str(node.ref))} [label={_quoted(label)}, fillcolor="{_FILLS[node.state]}"];')
    for link in graph.links:
        style = ", style=dashed" if link.sort in (Sort.ORDER, Sort.NAME) else ""
        ends = f"{_quoted(str(link.needed))} -> {_quoted(str(link.dependant))}"
        lines.append(f"  {ends} [label={_quoted(link.label)}{style}];")
    return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def as_mermaid(graph: Graph) -> str:
    """For Mermaid, as code forges draw it."""
    names = {node.ref: f"n{number}" for number, node in enumerate(graph.nodes)}
    lines = ["flowchart LR"]
    for node in graph.nodes:
        label = f"{_entities(str(node.ref))}<br/>{node.state.value}"
        lines.append(f'  {names[node.ref]}["{label}"]:::{_class(node.state)}')
    for link in graph.links:
        arrow = "-.->" if link.sort in (Sort.ORDER, Sort.NAME) else "-->"
        label = f'|"{_entities(link.label)}"|' if link.label else ""
        lines.append(f"  {names[link.needed]} {arrow}{label} {names[link.dependant]}")
    used = sorted({node.state for node in graph.nodes})
    lines += [f"  classDef {_class(state)} fill:{_FILLS[state]},stroke:#868e96,color:#212529" for state in used]
    return "\n".join([*lines, ""])


def _class(state: State) -> str:
    return state.value.replace(" ", "-")


def _entities(text: str) -> str:
    """Mermaid reads quotes and brackets even inside quotes."""
    return "".join(char if char.isalnum() or char in " ./-_:=," else f"#{ord(char)};" for char in text)


def as_json(graph: Graph) -> str:
    """Stable member names."""
    nodes: list[Json] = [
        {**node.ref._asdict(), "state": node.state.value, **({"message": node.message} if node.message else {})}
        for node in graph.nodes
    ]
    links: list[Json] = [
        {
            "needed": link.needed._asdict(),
            "dependant": link.dependant._asdict(),
            "sort": link.sort.value,
            **({"label": link.label} if link.label else {}),
        }
        for link in graph.links
    ]
    data: dict[str, Json] = {"nodes": nodes, "links": links, **({"cycle": graph.cycle} if graph.cycle else {})}
    return orjson.dumps(data, option=orjson.OPT_INDENT_2).decode() + "\n"


FORMS: Final[Mapping[str, Callable[[Graph], str]]] = {"dot": as_dot, "mermaid": as_mermaid, "json": as_json}

"""The dependency graph of resources as a value: for programs, for Graphviz, for Mermaid and for notebooks."""

from collections.abc import Mapping
from typing import Final

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json
from setpoint.engine.dependency_graph import DependencyGraph, EdgeType, GraphEdge, GraphNode, NodeState
from setpoint.engine.resource import ResourceRef
from setpoint.library.declared import SessionValue


@dataclass(frozen=True, slots=True, eq=False)
class ResourceGraph(SessionValue):
    """Resources with their states (`nodes`), and what depends on what (`edges`), or is made by it.

    A node comes after those that it depends on; where there is no such order, `cycle` says why.
    """

    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    cycle: str = ""

    @staticmethod
    def of(graph: DependencyGraph) -> "ResourceGraph":
        """The graph that the engine found."""
        return ResourceGraph(graph.nodes, graph.edges, graph.cycle)

    def needed_by(self, ref: ResourceRef) -> tuple[GraphEdge, ...]:
        """What a resource depends on itself."""
        return tuple(one for one in self.edges if one.dependant == ref)

    def dependants_of(self, ref: ResourceRef) -> tuple[GraphEdge, ...]:
        """What depends on a resource itself."""
        return tuple(one for one in self.edges if one.needed == ref)

    def to_data(self) -> Json:
        """Nodes and links, with stable member names."""
        nodes: list[Json] = [
            {**node.ref._asdict(), "state": node.state.value, **({"message": node.message} if node.message else {})}
            for node in self.nodes
        ]
        links: list[Json] = [
            {
                "needed": link.needed._asdict(),
                "dependant": link.dependant._asdict(),
                "sort": link.type.value,
                **({"label": link.label} if link.label else {}),
            }
            for link in self.edges
        ]
        return {"nodes": nodes, "links": links, **({"cycle": self.cycle} if self.cycle else {})}

    def to_dot(self) -> str:
        """For Graphviz: `setpoint graph -o dot | dot -Tsvg`."""
        return _dot(self)

    def to_mermaid(self) -> str:
        """For Mermaid, which code forges render."""
        return _mermaid(self)

    def __repr__(self) -> str:
        return f"<graph of {len(self.nodes)} resource{'s' * (len(self.nodes) != 1)}>"

    def _repr_html_(self) -> str:
        from setpoint.library.inspection.notebook_html import graph_html

        return graph_html(self)


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


def _dot(graph: ResourceGraph) -> str:
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


def _mermaid(graph: ResourceGraph) -> str:
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

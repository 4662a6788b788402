"""Parts of a dependency graph that fit a page: the surroundings of a resource, and a fleet by kind and namespace."""

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Final

from setpoint.engine.dependency_graph import GraphEdge, GraphNode, NodeState
from setpoint.engine.resource import ResourceRef
from setpoint.library.inspection.graph import ResourceGraph

# The state of a group is that of its member that needs a look first.
_URGENCY: Final = (
    NodeState.FAILED,
    NodeState.MISSING,
    NodeState.NOT_GRANTED,
    NodeState.BLOCKED,
    NodeState.TIMED_OUT,
    NodeState.WAITING,
    NodeState.DELETING,
    NodeState.PAUSED,
    NodeState.UNSEEN,
    NodeState.THERE,
    NodeState.READY,
)


def surroundings(graph: ResourceGraph, origins: Collection[ResourceRef], depth: int) -> ResourceGraph:
    """What is at most `depth` steps from the origins: what they need, and what depends on them."""
    kept, border = set(origins), set(origins)
    for _ in range(depth):
        ends = {end for edge in graph.edges for end in _other_ends(edge, border)}
        border = ends - kept
        kept |= border
    return _part(graph, kept)


def _other_ends(edge: GraphEdge, border: Collection[ResourceRef]) -> Iterable[ResourceRef]:
    if edge.needed in border:
        yield edge.dependant
    if edge.dependant in border:
        yield edge.needed


def _part(graph: ResourceGraph, kept: Collection[ResourceRef]) -> ResourceGraph:
    nodes = tuple(one for one in graph.nodes if one.ref in kept)
    return ResourceGraph(nodes, tuple(one for one in graph.edges if one.needed in kept and one.dependant in kept))


def fitted(graph: ResourceGraph, most: int) -> ResourceGraph:
    """The graph; one with more nodes than `most`, unless that is 0, by kind and namespace."""
    return graph if not most or len(graph.nodes) <= most else by_kind(graph)


def by_kind(graph: ResourceGraph) -> ResourceGraph:
    """One node for all resources of a kind in a namespace, with how many they are and how many are in which state.

    Its name says how many. Edges between two groups are one; those within a group are left out.
    """
    members: dict[ResourceRef, list[GraphNode]] = {}
    for node in graph.nodes:
        members.setdefault(node.ref._replace(name=""), []).append(node)
    names = {group: group._replace(name=_counted(len(nodes))) for group, nodes in members.items()}
    nodes = tuple(_group_node(names[group], found) for group, found in members.items())
    edges = dict.fromkeys(
        GraphEdge(needed, dependant, one.type, one.label)
        for one in graph.edges
        if (needed := names[one.needed._replace(name="")]) != (dependant := names[one.dependant._replace(name="")])
    )
    return ResourceGraph(nodes, tuple(edges), graph.cycle)


def _counted(number: int) -> str:
    return f"({number})"


def _group_node(ref: ResourceRef, nodes: Iterable[GraphNode]) -> GraphNode:
    counts = Counter(node.state for node in nodes)
    worst = next(state for state in _URGENCY if counts[state])
    words = [f"{counts[state]} {state.value}" for state in _URGENCY if counts[state]]
    return GraphNode(ref, worst, ", ".join(words) if len(words) > 1 else "")

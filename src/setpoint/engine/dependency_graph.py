"""The dependency graph: the order in which resources are reconciled, cycles by name, and the graph that people see."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import assert_never

from setpoint.core.conditions import Condition, ConditionReason, ConditionType
from setpoint.engine.conditions import BLOCKED_REASONS, FAILURE_REASONS, condition_of
from setpoint.engine.context import EngineContext
from setpoint.engine.kind import Dependency, Reference, SecretKeyReference, ValueReference, dependency_target
from setpoint.engine.ports import Store
from setpoint.engine.references import DEPENDS_ON, OWNER_REFERENCES, dependencies_of, owner_dependency
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.errors import DependencyCycle, UserError


def reconcile_order(dependencies: Mapping[ResourceRef, Sequence[Dependency]]) -> tuple[ResourceRef, ...]:
    """The resources, each after those that have to be ready for it, and after what else it names where that can be.

    What is needed and not among them is left out.
    """
    waiting = {ref: _targets(dependencies[ref], dependencies, must_be_ready=True) for ref in sorted(dependencies)}
    naming = {ref: _targets(dependencies[ref], dependencies, must_be_ready=False) - waiting[ref] for ref in waiting}
    while True:
        try:
            return tuple(TopologicalSorter({ref: sorted(waiting[ref] | naming[ref]) for ref in waiting}).static_order())
        except CycleError as error:
            _break_cycle(error.args[1], naming)


def predecessors(dependencies: Mapping[ResourceRef, Sequence[Dependency]]) -> Mapping[ResourceRef, set[ResourceRef]]:
    """Those among them that have to be ready for each; for none, where some wait for each other."""
    waiting = {ref: _targets(dependencies[ref], dependencies, must_be_ready=True) for ref in dependencies}
    try:
        TopologicalSorter(waiting).prepare()
    except CycleError:
        return {}
    return waiting


def _targets(
    dependencies: Sequence[Dependency], known: Mapping[ResourceRef, object], *, must_be_ready: bool
) -> set[ResourceRef]:
    named = (
        dependency
        for dependency in dependencies
        if not isinstance(dependency, SecretKeyReference) and dependency.must_be_ready is must_be_ready
    )
    return {target for dependency in named if (target := dependency_target(dependency)) in known}


def _break_cycle(cycle: Sequence[ResourceRef], naming: Mapping[ResourceRef, set[ResourceRef]]) -> None:
    """Takes a name out of the cycle that nobody has to wait for; DependencyCycle when everybody in it has to."""
    # The sorter walks from the needed one to the one that needs it.
    for needed, ref in pairwise(cycle):
        if needed in naming[ref]:
            naming[ref].discard(needed)
            return
    # People read it the other way.
    way = " needs ".join(str(ref) for ref in reversed(cycle))
    raise DependencyCycle(f"{way}: no order can satisfy this; take one of these references out")


class NodeState(StrEnum):
    """How it stands with a resource."""

    READY = "ready"
    WAITING = "waiting"
    TIMED_OUT = "timed out"
    BLOCKED = "blocked"
    FAILED = "failed"
    DELETING = "deleting"
    PAUSED = "paused"
    UNSEEN = "not looked at"
    MISSING = "missing"
    # Somebody else's to look after: it is there, and that is all.
    THERE = "there"


class EdgeType(StrEnum):
    """What a need is about."""

    VALUE = "value"
    READY = "ready"
    ORDER = "order"
    SECRET = "secret"
    # It is named, and nobody waits for it.
    NAME = "name"
    # It made the other.
    MAKES = "makes"


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A resource, and what its status says; nothing more where it is as it should be."""

    ref: ResourceRef
    state: NodeState
    message: str = ""


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """`dependant` needs `needed`, or is its child; `label` is the path of a value, or the field that names it."""

    needed: ResourceRef
    dependant: ResourceRef
    sort: EdgeType
    label: str = ""


@dataclass(frozen=True, slots=True)
class DependencyGraph:
    """Nodes, each after those it needs where there is such an order; otherwise `cycle` names who is in its way."""

    nodes: tuple[GraphNode, ...]
    links: tuple[GraphEdge, ...]
    cycle: str = ""


async def dependency_graph(resources: Iterable[Resource], engine: EngineContext) -> DependencyGraph:
    """The graph of these resources, of what they need, and of who among them made whom."""
    known = {one.ref: one for one in resources if (one.ref.group, one.ref.kind) in engine.resource_types}
    dependencies = {ref: (*_dependencies(one, engine), *owner_dependency(one, known)) for ref, one in known.items()}
    links = tuple(
        dict.fromkeys(_edge(ref, dependency) for ref in sorted(dependencies) for dependency in dependencies[ref])
    )
    others = sorted({link.needed for link in links} - known.keys())
    order, cycle = _ordered(dependencies)
    nodes = [await _external_node(ref, engine.store) for ref in others] + [_node(known[ref]) for ref in order]
    return DependencyGraph(tuple(nodes), links, cycle)


def _dependencies(resource: Resource, engine: EngineContext) -> Sequence[Dependency]:
    try:
        return dependencies_of(resource, engine.resource_types)
    except UserError:
        # Its status says what is wrong with it.
        return ()


def _ordered(dependencies: Mapping[ResourceRef, Sequence[Dependency]]) -> tuple[Sequence[ResourceRef], str]:
    try:
        return reconcile_order(dependencies), ""
    except DependencyCycle as error:
        return sorted(dependencies), str(error)


def _edge(ref: ResourceRef, dependency: Dependency) -> GraphEdge:
    return GraphEdge(dependency_target(dependency), ref, *_edge_type(dependency))


def _edge_type(dependency: Dependency) -> tuple[EdgeType, str]:
    """What the need is about, and how it is called."""
    match dependency:
        case ValueReference(path=path):
            return EdgeType.VALUE, str(path)
        case SecretKeyReference(key=key):
            return EdgeType.SECRET, key
        case Reference(field=field) if field == OWNER_REFERENCES:
            return EdgeType.MAKES, "makes"
        case Reference(field=field) if field.startswith(DEPENDS_ON):
            return EdgeType.ORDER, ""
        case Reference(field=field, must_be_ready=must_be_ready):
            return (EdgeType.READY if must_be_ready else EdgeType.NAME), field
        case _:
            assert_never(dependency)


async def _external_node(ref: ResourceRef, store: Store) -> GraphNode:
    """What is needed and not among those that were asked for."""
    found = await store.get(ref)
    if found is None:
        return GraphNode(ref, NodeState.MISSING)
    return GraphNode(ref, NodeState.THERE) if condition_of(found, ConditionType.READY) is None else _node(found)


def _node(resource: Resource) -> GraphNode:
    ready = condition_of(resource, ConditionType.READY)
    is_current = resource.status.get("observedGeneration") == resource.generation
    if resource.is_deleting:
        return GraphNode(resource.ref, NodeState.DELETING, "" if ready is None else ready.message)
    if ready is None or not is_current:
        return GraphNode(resource.ref, NodeState.UNSEEN)
    if ready.status == "True":
        return GraphNode(resource.ref, NodeState.READY)
    return GraphNode(resource.ref, _state(ready), ready.message)


def _state(ready: Condition) -> NodeState:
    match ready.reason:
        case ConditionReason.DEPENDENCY_INVALID:
            return NodeState.BLOCKED
        case reason if reason in BLOCKED_REASONS:
            return NodeState.BLOCKED
        case ConditionReason.WAIT_TIMED_OUT:
            return NodeState.TIMED_OUT
        case ConditionReason.PAUSED:
            return NodeState.PAUSED
        case reason:
            return NodeState.FAILED if reason in FAILURE_REASONS else NodeState.WAITING

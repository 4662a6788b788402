"""The dependency graph: the order in which resources are reconciled, cycles by name, and the graph that people see."""

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import assert_never

from setpoint.core.conditions import Condition, ConditionReason, ConditionType
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.engine.conditions import BLOCKED_REASONS, condition_of, is_failure_reason
from setpoint.engine.context import EngineContext
from setpoint.engine.kind import Dependency, Reference, SecretKeyReference, ValueReference, dependency_target
from setpoint.engine.references import (
    DEPENDS_ON,
    OWNER_REFERENCES,
    dependencies_of,
    may_have_dependencies,
    owner_dependency,
)
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.errors import DependencyCycle, ReferenceNotGranted, UserError


def reconcile_order(dependencies: Mapping[ResourceRef, Sequence[Dependency]]) -> tuple[ResourceRef, ...]:
    """The resources in topological order: each after those that have to be ready for it.

    References that need not be ready order the resources as well, unless they close a cycle. A dependency that is not
    among the resources is left out.
    """
    waiting = {ref: _targets(dependencies[ref], dependencies, must_be_ready=True) for ref in sorted(dependencies)}
    naming = {ref: _targets(dependencies[ref], dependencies, must_be_ready=False) - waiting[ref] for ref in waiting}
    while True:
        try:
            return tuple(TopologicalSorter({ref: sorted(waiting[ref] | naming[ref]) for ref in waiting}).static_order())
        except CycleError as error:
            _break_cycle(error.args[1], naming)


def predecessors(dependencies: Mapping[ResourceRef, Sequence[Dependency]]) -> Mapping[ResourceRef, set[ResourceRef]]:
    """The resources among them that have to be ready for each; empty when there is a cycle."""
    waiting = {ref: _targets(dependencies[ref], dependencies, must_be_ready=True) for ref in dependencies}
    try:
        TopologicalSorter(waiting).prepare()
    except CycleError:
        return {}
    return waiting


def deletion_order(dependencies: Mapping[ResourceRef, Sequence[Dependency]]) -> Mapping[ResourceRef, Set[ResourceRef]]:
    """The resources in the order of their deletion, each with its dependants among them, which are deleted first.

    Where they have to be ready for each other, there is no order.
    """
    order, cycle = _ordered(dependencies)
    position = {ref: number for number, ref in enumerate(order)}
    first: dict[ResourceRef, set[ResourceRef]] = {ref: set() for ref in sorted(dependencies)}
    for ref in () if cycle else order:
        for dependency in dependencies[ref]:
            needed = dependency_target(dependency)
            # A reference that was left out of the order to break a cycle is left out here, too.
            if needed in position and (isinstance(dependency, SecretKeyReference) or position[needed] < position[ref]):
                first[needed].add(ref)
    return {ref: first[ref] for ref in TopologicalSorter(first).static_order()}


def dependencies_among(
    resources: Iterable[Resource], engine: EngineContext
) -> Mapping[ResourceRef, Sequence[Dependency]]:
    """The dependencies of each; none for one that is not reconciled, or whose references are invalid."""
    types = engine.resource_types
    return {one.ref: _dependencies(one, engine) if one.ref.group_kind in types else () for one in resources}


def dependants_of(
    needed: Collection[ResourceRef], resources: Iterable[Resource], engine: EngineContext
) -> tuple["GraphEdge", ...]:
    """The references by which other resources, which are not being deleted, depend on `needed`."""
    others = {
        one.ref: one
        for one in resources
        if one.ref not in needed
        and one.ref.group_kind in engine.resource_types
        and not one.is_deleting
        and may_have_dependencies(one)
    }
    edges = (_edge(ref, dependency) for ref in sorted(others) for dependency in _dependencies(others[ref], engine))
    return tuple(dict.fromkeys(edge for edge in edges if edge.needed in needed))


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
    """Drops a reference of the cycle that need not be ready; DependencyCycle when there is none."""
    # The sorter lists a dependency before its dependant.
    for needed, ref in pairwise(cycle):
        if needed in naming[ref]:
            naming[ref].discard(needed)
            return
    chain = " needs ".join(str(ref) for ref in reversed(cycle))
    raise DependencyCycle(f"{chain}: no order can satisfy this; take one of these references out")


class NodeState(StrEnum):
    """The state of a resource in the graph."""

    READY = "ready"
    WAITING = "waiting"
    TIMED_OUT = "timed out"
    BLOCKED = "blocked"
    FAILED = "failed"
    DELETING = "deleting"
    PAUSED = "paused"
    UNSEEN = "not looked at"
    MISSING = "missing"
    # It exists, and setpoint does not reconcile it.
    THERE = "there"
    # It is of another namespace, which does not grant the reference: nothing is known of it.
    NOT_GRANTED = "not granted"


class EdgeType(StrEnum):
    """What a dependency is about."""

    VALUE = "value"
    READY = "ready"
    ORDER = "order"
    SECRET = "secret"
    # It is named, and need not be ready.
    NAME = "name"
    # The owner of a child.
    MAKES = "makes"


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A resource, its state, and the message of its Ready condition unless it is ready."""

    ref: ResourceRef
    state: NodeState
    message: str = ""


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """`dependant` depends on `needed`, or is its child; `label` is the path of a value, or the field that names it."""

    needed: ResourceRef
    dependant: ResourceRef
    type: EdgeType
    label: str = ""


@dataclass(frozen=True, slots=True)
class DependencyGraph:
    """Nodes, each after its dependencies if there is such an order; otherwise `cycle` names the cycle."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    cycle: str = ""


async def dependency_graph(resources: Iterable[Resource], engine: EngineContext) -> DependencyGraph:
    """The graph of these resources, their dependencies, and their owners."""
    known = {one.ref: one for one in resources if one.ref.group_kind in engine.resource_types}
    dependencies = {ref: (*_dependencies(one, engine), *owner_dependency(one, known)) for ref, one in known.items()}
    edges = tuple(
        dict.fromkeys(_edge(ref, dependency) for ref in sorted(dependencies) for dependency in dependencies[ref])
    )
    external = sorted({edge.needed for edge in edges} - known.keys())
    order, cycle = _ordered(dependencies)
    nodes = [await _external_node(ref, edges, engine) for ref in external] + [_node(known[ref]) for ref in order]
    return DependencyGraph(tuple(nodes), edges, cycle)


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
    """What the dependency is about, and its label."""
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


async def _external_node(ref: ResourceRef, edges: Sequence[GraphEdge], engine: EngineContext) -> GraphNode:
    """The node of a dependency that is not among the requested resources; of another tenant's, only its state."""
    dependants = [edge.dependant for edge in edges if edge.needed == ref]
    if not any([await _is_granted(ref, dependant, engine) for dependant in dependants]):
        return GraphNode(ref, NodeState.NOT_GRANTED)
    found = await engine.store.get(ref)
    if found is None:
        return GraphNode(ref, NodeState.MISSING)
    if condition_of(found, ConditionType.READY) is None:
        return GraphNode(ref, NodeState.THERE)
    is_foreign = all(engine.is_foreign(ref, dependant) for dependant in dependants)
    return GraphNode(ref, _node(found).state) if is_foreign else _node(found)


async def _is_granted(ref: ResourceRef, dependant: ResourceRef, engine: EngineContext) -> bool:
    try:
        await engine.require_granted(dependant, [("", ref)])
    except ReferenceNotGranted:
        return False
    return True


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


def state_of(resource: Resource) -> NodeState:
    """The state of a resource by itself."""
    return _node(resource).state


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
            return NodeState.FAILED if is_failure_reason(reason) else NodeState.WAITING

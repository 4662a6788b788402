"""Who needs whom, for people: every resource with its state, and every need with its sort."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from setpoint.engine.graph import in_order
from setpoint.engine.kind import Need, Reference, SecretKey, Value, target_of
from setpoint.engine.needs import DEPENDS_ON, OWNED, after_its_owner, needs_of
from setpoint.engine.ports import Store
from setpoint.engine.report import Ready, condition_of
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.scene import World
from setpoint.errors import DependencyCycle, UserError


class State(StrEnum):
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


class Sort(StrEnum):
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
class Node:
    """A resource, and what its status says; nothing more where it is as it should be."""

    ref: ResourceRef
    state: State
    message: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """`dependant` needs `needed`, or is its child; `label` is the path of a value, or the field that names it."""

    needed: ResourceRef
    dependant: ResourceRef
    sort: Sort
    label: str = ""


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes, each after those it needs where there is such an order; otherwise `cycle` names who is in its way."""

    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    cycle: str = ""


async def graph_of(resources: Iterable[Resource], world: World) -> Graph:
    """The graph of these resources, of what they need, and of who among them made whom."""
    known = {one.ref: one for one in resources if (one.ref.group, one.ref.kind) in world.sorts}
    needs = {ref: (*_needs(one, world), *after_its_owner(one, known)) for ref, one in known.items()}
    links = tuple(dict.fromkeys(_link(ref, need) for ref in sorted(needs) for need in needs[ref]))
    others = sorted({link.needed for link in links} - known.keys())
    order, cycle = _ordered(needs)
    nodes = [await _other(ref, world.store) for ref in others] + [_node(known[ref]) for ref in order]
    return Graph(tuple(nodes), links, cycle)


def _needs(resource: Resource, world: World) -> Sequence[Need]:
    try:
        return needs_of(resource, world.sorts)
    except UserError:
        # Its status says what is wrong with it.
        return ()


def _ordered(needs: Mapping[ResourceRef, Sequence[Need]]) -> tuple[Sequence[ResourceRef], str]:
    try:
        return in_order(needs), ""
    except DependencyCycle as error:
        return sorted(needs), str(error)


def _link(ref: ResourceRef, need: Need) -> Link:
    return Link(target_of(need), ref, *_sort(need))


def _sort(need: Need) -> tuple[Sort, str]:
    """What the need is about, and how it is called."""
    match need:
        case Value(path=path):
            return Sort.VALUE, str(path)
        case SecretKey(key=key):
            return Sort.SECRET, key
        case Reference(field=field) if field == OWNED:
            return Sort.MAKES, "makes"
        case Reference(field=field) if field.startswith(DEPENDS_ON):
            return Sort.ORDER, ""
        case Reference(field=field, must_be_ready=must_be_ready):
            return (Sort.READY if must_be_ready else Sort.NAME), field
        case _:
            assert_never(need)


async def _other(ref: ResourceRef, store: Store) -> Node:
    """What is needed and not among those that were asked for."""
    found = await store.get(ref)
    if found is None:
        return Node(ref, State.MISSING)
    return Node(ref, State.THERE) if condition_of(found, "Ready") is None else _node(found)


def _node(resource: Resource) -> Node:
    ready = condition_of(resource, "Ready")
    is_current = resource.status.get("observedGeneration") == resource.generation
    if resource.is_deleting:
        return Node(resource.ref, State.DELETING, "" if ready is None else ready.message)
    if ready is None or not is_current:
        return Node(resource.ref, State.UNSEEN)
    if ready.status == "True":
        return Node(resource.ref, State.READY)
    return Node(resource.ref, _state(Ready(ready.status, ready.reason, ready.message)), ready.message)


def _state(ready: Ready) -> State:
    match ready.reason:
        case "Blocked" | "DependencyNotFound" | "DependencyNotReady" | "DependencyInvalid":
            return State.BLOCKED
        case "WaitTimedOut":
            return State.TIMED_OUT
        case "Paused":
            return State.PAUSED
        case _:
            return State.FAILED if ready.is_failure else State.WAITING

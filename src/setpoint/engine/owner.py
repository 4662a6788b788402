"""An owner: a type of resource that stands for several child objects, which other writers may edit as well.

An author writes the type of the spec, what the children are, and how the owner's status follows from them. The
three-way merge with edits, its memory, plans, conditions, events, adoption and deletion come with the engine.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from setpoint.core.merge.children import Child
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.conditions import ReadyCondition
from setpoint.engine.kind import ResourceType
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.errors import SetpointError


class ObjectKind(NamedTuple):
    """A kind of object as an API server has it, whoever looks after it."""

    group: str
    version: str
    kind: str
    plural: str
    is_namespaced: bool = True


@dataclass(frozen=True, slots=True)
class GeneratedChildren:
    """What there should be, in the order in which it is made.

    `trouble` keeps the rest from being made: it is raised once these are as they should be. `warnings` are for people.
    """

    children: tuple[Child, ...]
    trouble: SetpointError | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OwnerStatus:
    """How it stands with an owner whose children are as they should be, and what its status shows.

    `lost` is what people are warned with when it was ready before, and is not any more.
    """

    ready: ReadyCondition
    outputs: JsonObject
    lost: str = "it is no longer ready"


@runtime_checkable
class Owner(ResourceType, Protocol):
    """What an author writes."""

    # The kinds of its children, and those of the objects that it reads besides: what has to be allowed, and watched.
    makes: Sequence[ObjectKind]
    reads: Sequence[ObjectKind]
    # Held while there is something to do before the owner may go; empty where nothing is.
    finalizer: str
    # What a status has to show before anything is known.
    least: JsonObject

    def sources(self, resource: Resource) -> Sequence[ResourceRef]:
        """The objects of others that the children are made of; whenever one changes, the owner is looked at."""
        ...

    def generate(self, resource: Resource, found: Mapping[ResourceRef, Resource]) -> GeneratedChildren:
        """What there should be; `found` has those of the sources that are there."""
        ...

    def completed(self, child: Child) -> JsonObject:
        """The object of a child that is made now, with what it lacks, such as keys that have to be random."""
        ...

    def standing(self, resource: Resource, children: Mapping[str, Resource]) -> OwnerStatus:
        """How it stands; `children` are the live ones by their keys. An old status says nothing about a new spec."""
        ...

    def deleted_first(self, resource: Resource) -> Sequence[ResourceRef]:
        """The children that are deleted before `finalizer` is taken off."""
        ...

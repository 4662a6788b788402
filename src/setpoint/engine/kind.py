"""A kind: a sort of resource, and the code that handles it.

An author writes the type of the spec, the type of the live object, where the object is, how the live object reads in
the spec's terms, and four verbs. Cookies, policies, plans, conditions, retries and deletion come with the engine.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, Final, Generic, NewType, Protocol, TypeAlias, TypeVar

import msgspec

from setpoint.core.overlay import Declared
from setpoint.core.paths import Path
from setpoint.core.plan import Sending, Write
from setpoint.core.values import Json
from setpoint.engine.resource import Resource, ResourceRef, Revision, Tree

L = TypeVar("L", bound=msgspec.Struct)
# The object's name in its service: stored before it is created, and all that deletion needs.
Location = NewType("Location", str)


class Reconciliation(StrEnum):
    """Whether a kind keeps a cookie, or compares every time because its defaults are exact."""

    STATEFUL = "stateful"
    STATELESS = "stateless"


@dataclass(frozen=True, slots=True)
class Absent:
    """The service says that there is no such object: a 404, and nothing else."""


@dataclass(frozen=True, slots=True)
class Present(Generic[L]):
    """The object, decoded; the digest of the bytes it came in, when they are known."""

    live: L
    body: str | None = None
    # What a write has to name so that it meets this state and no other: a metageneration, a settings version.
    version: str | None = None
    # What the status shows of it, times and certificates too: compared, never part of the cookie.
    outputs: Tree = field(default_factory=dict)
    # All that the service shows, for those who wait for something in it.
    whole: Json = None


@dataclass(frozen=True, slots=True)
class Unmoved:
    """The service answered with the very bytes that the caller knows."""


@dataclass(frozen=True, slots=True)
class Operation:
    """Work that the service goes on with after it answered. Its name is put on record, so that a restart finds it."""

    name: str


@dataclass(frozen=True, slots=True)
class Reference:
    """A field that names another resource. `target` is read for its value once it is ready.

    `is_used`: something of it is; otherwise it only comes first.
    """

    field: str
    target: ResourceRef
    must_be_ready: bool = True
    is_used: bool = True


@dataclass(frozen=True, slots=True)
class SecretKey:
    """A field whose value is in a Secret."""

    field: str
    secret: ResourceRef
    key: str


@dataclass(frozen=True, slots=True)
class Value:
    """A place in the spec for a value that another resource offers, at `path` in it.

    A target of ANY_GROUP is of the one kind that is called so. `is_awaited`: it offers only what it waits for.
    """

    field: str
    target: ResourceRef
    path: Path
    is_awaited: bool = False
    must_be_ready: bool = True


Need: TypeAlias = Reference | SecretKey | Value
# Stands for the group of a kind that is named without one.
ANY_GROUP: Final = "*"


def target_of(need: Need) -> ResourceRef:
    """What has to be there."""
    return need.secret if isinstance(need, SecretKey) else need.target


@dataclass(frozen=True, slots=True)
class Resolved:
    """What a resource's references came to: the resources by field, the secrets' values by field, and their traces."""

    resources: Mapping[str, Resource] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    # uid, revision and key of each secret: what of it enters the intent digest, and tells whether it was rotated.
    versions: Mapping[str, str] = field(default_factory=dict)
    # What other resources offer, by field.
    values: Mapping[str, Json] = field(default_factory=dict)
    # The state of each of them, Secrets included.
    seen: Mapping[ResourceRef, Revision] = field(default_factory=dict)


@dataclass(frozen=True)
class Intent:
    """The spec and everything else that changes its meaning, resolved; and its digest."""

    resource: Resource
    location: Location
    # What the author asks for, made when somebody compares: on the fast path nobody does.
    declare: Callable[[], Declared]
    resolved: Resolved
    digest: str

    @cached_property
    def declared(self) -> Declared:
        """What the author asks for."""
        return self.declare()


@dataclass(frozen=True, slots=True)
class Definition:
    """How a kind looks in a cluster, apart from what its types say."""

    # What one of them is, in a sentence.
    description: str = ""
    # What the status shows of the live object; without it, a status may show anything.
    outputs: type[msgspec.Struct] | None = None
    short_names: Sequence[str] = ()
    categories: Sequence[str] = ()
    # For names that do not just take an s.
    plural: str = ""
    # The members of the status that are always written, also when there is nothing to show yet.
    required: Sequence[str] = ()


class Sort(Protocol):
    """What every sort of resource says of itself, whatever becomes of its resources."""

    group: str
    version: str
    name: str
    # Raised by the author when the mapping changes: every cookie of before then means a close look.
    revision: int
    # What else of the manifest changes its meaning, besides spec, labels and the field policies.
    annotations: Sequence[str]
    # The type of the tree with `spec` in it, and `metadata` where there are labels.
    tree_type: type[msgspec.Struct]
    definition: Definition

    def check(self, resource: Resource) -> None:
        """ManifestInvalid for a spec that no world could satisfy: an unknown field, a wrong type, a contradiction."""
        ...

    def needs(self, resource: Resource) -> Sequence[Need]:
        """The references and secrets in the spec. The names of their fields end with `Ref`, or are `$ref`."""
        ...


class Kind(Sort, Protocol[L]):
    """What an author writes for a sort of resource that stands for one object. The tree is what is compared."""

    reconciliation: Reconciliation
    live_type: type[L]

    def locate(self, resource: Resource, resolved: Resolved) -> Location:
        """Where the object is."""
        ...

    def declare(self, resource: Resource, resolved: Resolved) -> Tree:
        """What the author asks for, as a tree of `tree_type`."""
        ...

    def view(self, live: L) -> Tree:
        """The live object as a tree of `tree_type`."""
        ...

    def fitted(self, declared: Declared, live: Tree) -> Declared:
        """What the author asks for of this very object: with what the service decides, or fixes, given the rest."""
        ...

    def abandons(self, resource: Resource) -> bool:
        """Whether the spec itself says that the object stays when the resource goes."""
        ...

    def sending(self, intent: Intent) -> Sending:
        """How changes are sent."""
        ...

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[L] | Unmoved:
        """A look at the object. Any failure but a 404 raises. `known`: the digest of bytes that need no decoding."""
        ...

    async def create(self, intent: Intent, wanted: Tree) -> Operation | None:
        """Makes the object as `wanted`."""
        ...

    async def update(self, intent: Intent, wanted: Tree, write: Write, before: Present[L]) -> Operation | None:
        """Sends one write of the plan."""
        ...

    async def delete(self, location: Location, before: Present[L], resource: Resource) -> Operation | None:
        """Removes the object."""
        ...

    async def poll(self, operation: Operation) -> bool:
        """Whether the operation is done; RemoteRefused when it ended in an error."""
        ...


# The engine does not look into a kind's live type: it hands back what it was given.
AnyKind: TypeAlias = Kind[Any]
Look: TypeAlias = Absent | Present[Any]


async def look_at(location: Location, kind: AnyKind) -> Look:
    """A look that decodes what it finds."""
    found = await kind.observe(location)
    assert not isinstance(found, Unmoved)
    return found

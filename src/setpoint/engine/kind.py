"""A kind: a type of resource that stands for one live object, and the code that handles it.

An author writes the type of the spec, the type of the live object, its location, how the live object reads in the
spec's terms, and four verbs. Cookies, field policies, plans, conditions, retries and deletion come with the engine.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, Final, Generic, NewType, Protocol, TypeAlias, TypeVar

import msgspec

from setpoint.core.overlay import Declared
from setpoint.core.plan import PlannedWrite, PlanOptions
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.core.values.paths import Path
from setpoint.engine.resource import Resource, ResourceRef, Revision

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
    outputs: JsonObject = field(default_factory=dict)
    # All that the service shows, for those who wait for something in it.
    whole: Json = None


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The service answered with the very bytes that the caller knows."""


@dataclass(frozen=True, slots=True)
class RemoteOperation:
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
    is_value_used: bool = True


@dataclass(frozen=True, slots=True)
class SecretKeyReference:
    """A field whose value is in a Secret."""

    field: str
    secret: ResourceRef
    key: str


@dataclass(frozen=True, slots=True)
class ValueReference:
    """A place in the spec for a value that another resource offers, at `path` in it.

    A target of ANY_GROUP is of the one kind that is called so. `is_awaited`: it offers only what it waits for.
    """

    field: str
    target: ResourceRef
    path: Path
    is_awaited: bool = False
    must_be_ready: bool = True


Dependency: TypeAlias = Reference | SecretKeyReference | ValueReference
# Stands for the group of a kind that is named without one.
ANY_GROUP: Final = "*"


def dependency_target(dependency: Dependency) -> ResourceRef:
    """What has to be there."""
    return dependency.secret if isinstance(dependency, SecretKeyReference) else dependency.target


@dataclass(frozen=True, slots=True)
class ResolvedReferences:
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
    resolved: ResolvedReferences
    digest: str

    @cached_property
    def declared(self) -> Declared:
        """What the author asks for."""
        return self.declare()


@dataclass(frozen=True, slots=True)
class CrdDetails:
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


class ResourceType(Protocol):
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
    definition: CrdDetails

    def check(self, resource: Resource) -> None:
        """ManifestInvalid for a spec that no world could satisfy: an unknown field, a wrong type, a contradiction."""
        ...

    def dependencies(self, resource: Resource) -> Sequence[Dependency]:
        """The references and secrets in the spec. The names of their fields end with `Ref`, or are `$ref`."""
        ...


class Kind(ResourceType, Protocol[L]):
    """What an author writes for a sort of resource that stands for one object. The tree is what is compared."""

    reconciliation: Reconciliation
    live_type: type[L]

    def locate(self, resource: Resource, resolved: ResolvedReferences) -> Location:
        """Where the object is."""
        ...

    def declare(self, resource: Resource, resolved: ResolvedReferences) -> JsonObject:
        """What the author asks for, as a tree of `tree_type`."""
        ...

    def view(self, live: L) -> JsonObject:
        """The live object as a tree of `tree_type`."""
        ...

    def fit_to_live(self, declared: Declared, live: JsonObject) -> Declared:
        """What the author asks for of this very object: with what the service decides, or fixes, given the rest."""
        ...

    def abandons(self, resource: Resource) -> bool:
        """Whether the spec itself says that the object stays when the resource goes."""
        ...

    def sending(self, intent: Intent) -> PlanOptions:
        """How changes are sent."""
        ...

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[L] | Unchanged:
        """A look at the object. Any failure but a 404 raises. `known`: the digest of bytes that need no decoding."""
        ...

    async def create(self, intent: Intent, wanted: JsonObject) -> RemoteOperation | None:
        """Makes the object as `wanted`."""
        ...

    async def update(
        self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[L]
    ) -> RemoteOperation | None:
        """Sends one write of the plan."""
        ...

    async def delete(self, location: Location, before: Present[L], resource: Resource) -> RemoteOperation | None:
        """Removes the object."""
        ...

    async def poll(self, operation: RemoteOperation) -> bool:
        """Whether the operation is done; RemoteRefused when it ended in an error."""
        ...


# The engine does not look into a kind's live type: it hands back what it was given.
AnyKind: TypeAlias = Kind[Any]
LiveObservation: TypeAlias = Absent | Present[Any]


async def observe_decoded(location: Location, kind: AnyKind) -> LiveObservation:
    """A look that decodes what it finds."""
    found = await kind.observe(location)
    assert not isinstance(found, Unchanged)
    return found

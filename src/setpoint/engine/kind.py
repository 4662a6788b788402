"""A kind: a type of resource that stands for one live object, and the code that handles it.

An author writes the type of the spec, the type of the live object, its location, how the live object reads in the
spec's terms, and four verbs. Cookies, field policies, plans, conditions, retries and deletion come with the engine.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from functools import partial
from typing import Any, Final, Generic, NewType, Protocol, TypeAlias, TypeVar

import msgspec

from setpoint.core.diff import FieldChange
from setpoint.core.overlay import Declared, EffectiveState, struct_of, tree_overlay_of
from setpoint.core.plan import PlannedWrite, PlanOptions
from setpoint.core.schema.policy import FieldPolicy
from setpoint.core.schema.shape import ObjectShape, shape_of
from setpoint.core.secret_fields import SecretFields
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.cached_property import cached_property
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.deferred_mapping import DeferredMapping
from setpoint.core.values.json_types import MISSING, Json, JsonObject, Missing
from setpoint.core.values.messages import Message, MessageTerm
from setpoint.core.values.paths import Path, nearest
from setpoint.engine.resource import Resource, ResourceRef, Revision
from setpoint.errors import ManifestInvalid, UserError

L = TypeVar("L", bound=msgspec.Struct)
T = TypeVar("T", bound=msgspec.Struct)
# The object's name in its service: stored before it is created, and all that deletion needs.
Location = NewType("Location", str)


class Reconciliation(StrEnum):
    """Whether a kind keeps a cookie, or compares every time because its defaults are exact."""

    STATEFUL = "stateful"
    STATELESS = "stateless"


@dataclass(frozen=True, slots=True)
class Absent:
    """The object does not exist: a 404, and nothing else. `location`: the search for one whose id the service makes."""

    location: Location | None = None
    # What a search has found: the object is one of these, unless each of them is another resource's.
    candidates: "tuple[Present[Any], ...]" = ()


@dataclass(frozen=True, slots=True)
class Present(Generic[L]):
    """The object, decoded; the digest of the bytes it came in, when they are known."""

    live: L
    body: str | None = None
    # The version that a write names as its precondition (optimistic concurrency): a metageneration, a settings version.
    version: str | None = None
    # What the status shows of the object, times and certificates too: compared, never part of the cookie.
    outputs: JsonObject = field(default_factory=dict)
    # The whole object as the service reports it, for waits.
    whole: Json = None
    # Where the object is, if it was found or created by another location.
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The service answered with exactly the bytes that the caller knows the digest of."""


@dataclass(frozen=True, slots=True)
class RemoteOperation:
    """A long-running operation of the service. Its name is put on record, so that a later step can poll it."""

    name: str


DeletionAnswer: TypeAlias = RemoteOperation | Absent | None


@dataclass(frozen=True, slots=True)
class Written(Generic[L]):
    """The object as the service answered a write: it need not be observed after it.

    `is_complete`: it has everything that was sent, so that a dry run would find nothing left to send. `changes`: what a
    write that was foreseen has changed. `issued`: what a creation was answered with, and will never be told again; it
    is kept in the Secret of the resource before anything else is done.
    """

    after: Present[L]
    is_complete: bool = False
    changes: tuple[FieldChange, ...] | None = None
    issued: Mapping[str, bytes] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Reference:
    """A field that names another resource, which is read once it is ready.

    `is_value_used`: the kind reads a value of it; otherwise the reference only orders the two.
    """

    field: str
    target: ResourceRef
    must_be_ready: bool = True
    is_value_used: bool = True


@dataclass(frozen=True, slots=True)
class SecretKeyReference:
    """A field whose value is in a Secret.

    `is_optional`: the value is read where there is one, and is no part of the intent.
    """

    field: str
    secret: ResourceRef
    key: str
    is_optional: bool = False


@dataclass(frozen=True, slots=True)
class ValueReference:
    """A field of the spec that takes the value at `path` of another resource.

    A target of ANY_GROUP is of the one kind of that name. `is_awaited`: the value is taken from the output of its wait.
    """

    field: str
    target: ResourceRef
    path: Path
    is_awaited: bool = False
    must_be_ready: bool = True


# What a resource depends on.
Dependency: TypeAlias = Reference | SecretKeyReference | ValueReference
# The group of a kind that is named without one.
ANY_GROUP: Final = "*"


def dependency_target(dependency: Dependency) -> ResourceRef:
    """The resource that the dependency names."""
    return dependency.secret if isinstance(dependency, SecretKeyReference) else dependency.target


@dataclass(frozen=True, slots=True)
class ResolvedReferences:
    """What the dependencies of a resource resolved to: resources and the values of secrets, by field."""

    resources: Mapping[str, Resource] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    # uid, revision and key of each secret: part of the intent digest, so that a rotation is noticed.
    versions: Mapping[str, str] = field(default_factory=dict)
    # The values of other resources, by field.
    values: Mapping[str, Json] = field(default_factory=dict)
    # The revision of each resource and Secret that was read.
    seen: Mapping[ResourceRef, Revision] = field(default_factory=dict)


@dataclass(frozen=True)
class Intent:
    """The spec and everything else that changes its meaning, resolved; and its digest."""

    resource: Resource
    location: Location
    # Makes the desired state; not called on the fast path, where nothing is compared.
    declare: Callable[[], Declared]
    resolved: ResolvedReferences
    digest: str

    @cached_property
    def declared(self) -> Declared:
        """The desired state, as the author declared it."""
        return self.declare()

    @cached_property
    def effective(self) -> "EffectiveStates":
        """The effective desired states of this intent."""
        return EffectiveStates(self.declared)


class EffectiveStates:
    """The effective desired states of one intent, each made once: a step plans, sends and settles by the same one."""

    def __init__(self, declared: Declared) -> None:
        self._declared = declared
        self._spec: msgspec.Struct | None = None
        # With each observation, because an id is unique only as long as its object exists.
        self._made: dict[int, tuple[LiveObservation, EffectiveState[msgspec.Struct]]] = {}

    def over(self, observed: "LiveObservation", kind: "AnyKind") -> EffectiveState[msgspec.Struct]:
        """The effective desired state over this very observation, by the kind's own function."""
        found = self._made.get(id(observed))
        if found is None:
            found = self._made[id(observed)] = (observed, self._make(observed, kind))
        return found[1]

    def _make(self, observed: "LiveObservation", kind: "AnyKind") -> EffectiveState[msgspec.Struct]:
        live = MISSING if isinstance(observed, Absent) else kind.view(observed.live)
        if by_trees := tree_overlay_of(kind):
            return by_trees(self._declared, live)
        typed = live if isinstance(live, Missing) else struct_of(live, kind.tree_type)
        self._spec = self._spec or struct_of(self._declared.tree, kind.tree_type)
        found: EffectiveState[msgspec.Struct] = kind.effective(self._spec, typed, self._declared.policy)
        return found


@dataclass(frozen=True, slots=True)
class CrdDetails:
    """What the CustomResourceDefinition of a kind says, apart from what its types say."""

    # What a resource of the kind is, in a sentence.
    description: str = ""
    # The type of the outputs in the status; without it, any output is allowed.
    outputs: type[msgspec.Struct] | None = None
    short_names: Sequence[str] = ()
    categories: Sequence[str] = ()
    # For names with a plural that is not the name and an s.
    plural: str = ""
    # The members of the status that are always written, even before there is a value.
    required: Sequence[str] = ()
    # Whether it has a status: a type without one is declared, and never reconciled.
    has_status: bool = True
    # Whether lists without a bound have rules, whose cost a cluster limits; and whether the kind is not proven yet.
    rules_in_lists: bool = True
    is_preview: bool = False


class DescribedType(Protocol):
    """What a CustomResourceDefinition is generated from."""

    @property
    def group(self) -> str:
        """The API group."""
        ...

    @property
    def version(self) -> str:
        """The version of the API group."""
        ...

    @property
    def name(self) -> str:
        """The name of the kind."""
        ...

    @property
    def tree_type(self) -> type[msgspec.Struct]:
        """The type with the member `spec`."""
        ...

    @property
    def definition(self) -> CrdDetails:
        """What its types do not say."""
        ...


# More names than these are not listed in a message.
_MAX_NAMES: Final = 12


def unknown_kind(
    word: str, known: Iterable[GroupKind], where: str | MessageTerm = "", *, advice: str = ""
) -> ManifestInvalid:
    """The error for a kind that is none of `known`: without `advice`, with the name that may be meant, or all names.

    `where` is the field, option or resource that names the kind.
    """
    names = sorted(name for _, name in known)
    near = nearest(word, names)
    listed = f"there is {', '.join(names)}" if len(names) <= _MAX_NAMES else "`setpoint kinds` lists those that are"
    hint = f"did you mean {near[0]}?" if near else listed
    prefix = (where, ": ") if where else ()
    return ManifestInvalid(Message(*prefix, f"no kind {word!r} is known here; {advice or hint}"))


class ResourceType(Protocol):
    """What kinds and owners have in common: how a type of resource is named, typed, checked and referenced."""

    group: str
    version: str
    name: str
    # Raised by the kind's author when the mapping changes: cookies of an earlier revision do not match any more.
    revision: int
    # The annotations that change the meaning of a manifest, besides the field policies.
    annotations: Sequence[str]
    # The type of the tree that is compared: `spec`, and `metadata` where labels are mapped.
    tree_type: type[msgspec.Struct]
    definition: CrdDetails

    def check(self, resource: Resource) -> None:
        """ManifestInvalid for a spec that no object can satisfy: an unknown field, a wrong type, a contradiction."""
        ...

    def dependencies(self, resource: Resource) -> Sequence[Dependency]:
        """The references and secrets in the spec. The names of their fields end with `Ref`, or are `$ref`."""
        ...


class Kind(ResourceType, Protocol[L, T]):
    """What the author of a kind writes: a type of resource that stands for one live object."""

    reconciliation: Reconciliation
    live_type: type[L]

    def locate(self, resource: Resource, resolved: ResolvedReferences) -> Location:
        """The location of the object."""
        ...

    def declare(self, resource: Resource, resolved: ResolvedReferences) -> JsonObject:
        """The desired state, as a tree of `tree_type`."""
        ...

    def view(self, live: L) -> JsonObject:
        """The live object as a tree of `tree_type`."""
        ...

    def effective(self, spec: T, live: T | Missing, policy: FieldPolicy) -> EffectiveState[T]:
        """The effective desired state: what the object should be after this step. MISSING: it does not exist yet.

        Both are structs of `tree_type`; `effective_state` is enough for a kind without rules of its own. What it says
        of an object that does not exist yet is sent with its creation, and nothing else is.
        """
        ...

    def abandons(self, resource: Resource) -> bool:
        """Whether the spec itself says that the object is kept when the resource is deleted."""
        ...

    def sending(self, intent: Intent) -> PlanOptions:
        """How changes are sent."""
        ...

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[L] | Unchanged:
        """Reads the live object. Any failure but a 404 raises. `known`: the digest of a body that is not decoded."""
        ...

    async def create(self, intent: Intent, wanted: JsonObject) -> RemoteOperation | Written[L] | None:
        """Creates the object as `wanted`. None: the object has to be observed to know what became of it."""
        ...

    async def update(
        self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[L]
    ) -> RemoteOperation | Written[L] | None:
        """Sends one write of the plan. None as for `create`."""
        ...

    async def delete(self, location: Location, before: Present[L], resource: Resource) -> DeletionAnswer:
        """Deletes the object. Absent: the answer says that it is gone. None: it has to be observed."""
        ...

    async def poll(self, operation: RemoteOperation) -> bool:
        """Whether the operation is done; RemoteRefused when it ended in an error."""
        ...


def secret_fields_of(types: Mapping[GroupKind, ResourceType]) -> SecretFields:
    """What is secret in resources of these types, by the marks of their specs. A type is read once it is needed."""
    return SecretFields(DeferredMapping({name: partial(_shape, types, name) for name in types}))


def _shape(types: Mapping[GroupKind, ResourceType], name: GroupKind) -> ObjectShape:
    return shape_of(types[name].tree_type)


# The engine does not read a kind's own types: it hands back what it was given.
AnyKind: TypeAlias = Kind[Any, Any]
LiveObservation: TypeAlias = Absent | Present[Any]


def match_location(pattern: re.Pattern[str], location: str) -> re.Match[str]:
    """The parts of a location; UserError for a text that is none of the kind's: a status may hold anything."""
    found = pattern.fullmatch(location)
    if found is None:
        raise UserError(
            f"the location on record, {location!r}, is none that this kind has: correct status.setpoint.location, or "
            "remove it to leave the object as it is"
        )
    return found


async def observe_decoded(location: Location, kind: AnyKind) -> LiveObservation:
    """Observes the object without a known digest: the result is always decoded."""
    found = await kind.observe(location)
    assert not isinstance(found, Unchanged)
    return found

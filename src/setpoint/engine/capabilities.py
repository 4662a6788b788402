"""Optional capabilities of a kind, as protocols: dry run, wait, replace, watch, list, a Secret of its own."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Final, NamedTuple, NewType, Protocol, runtime_checkable

from setpoint.core.decide import Decision
from setpoint.core.plan import PlannedWrite, ResolvedProject
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.core.values.paths import Path
from setpoint.core.wait.wait_for import WaitFor
from setpoint.engine.kind import (
    Absent,
    AnyKind,
    DescribedType,
    Intent,
    LiveObservation,
    Location,
    Present,
    Reconciliation,
    ResolvedReferences,
    Unchanged,
)
from setpoint.engine.resource import Resource
from setpoint.errors import PlaceNotNamed


class CapabilityMeta(type(Protocol)):  # type: ignore[misc] # the metaclass of protocols has no public name
    """Asks the class of a kind, once: to look at the instance takes 20 µs each time.

    A class that makes up its members is asked by the instance: it may stand for any kind.
    """

    def __instancecheck__(cls, instance: object) -> bool:
        found = type(instance)
        answer = _answers.get((cls, found))
        if answer is None:
            if hasattr(found, "__getattr__"):
                return bool(super().__instancecheck__(instance))
            answer = _answers[cls, found] = issubclass(found, cls)
        return answer


# By capability and class of a kind: asked ten times in a step.
_answers: Final[dict[tuple[type, type], bool]] = {}


# One stream of changes: of all objects of a kind in one cluster, for example.
WatchTopic = NewType("WatchTopic", str)


@runtime_checkable
class SupportsDryRun(Protocol, metaclass=CapabilityMeta):
    """A kind whose service can dry-run a write. Then its answer is the diff, and the engine compares nothing itself."""

    async def dry_run(self, intent: Intent, observed: LiveObservation, decision: Decision) -> tuple[PlannedWrite, ...]:
        """The writes that are left to send, each with the fields that it would change; none when nothing would change.

        An error that the service would refuse them with is raised. A field at or below an `unmanaged` path of the
        intent's policy is left out.
        """
        ...


@runtime_checkable
class SupportsForesight(Protocol, metaclass=CapabilityMeta):
    """A kind with dry runs that can mostly do without one, because each write names the version that it changes."""

    async def foresee(self, intent: Intent, observed: LiveObservation) -> PlannedWrite | None:
        """The write that is left, foreseen without a request; None where only a dry run can tell.

        For an object that no other writer has changed since the last step settled, or that does not exist.
        """
        ...


@runtime_checkable
class SupportsWriteRecord(Protocol, metaclass=CapabilityMeta):
    """A kind whose object is known only by what was written, such as some entries of a list that others write to.

    What a write is about to add is on record in the status before it is sent, so that it is known to be the resource's
    own even if the process is killed then, and the author changes the spec.
    """

    def outputs_before_write(self, location: Location) -> JsonObject:
        """The outputs that the status has to show before anything is written to the object at `location`."""
        ...


@runtime_checkable
class SupportsCreationMark(Protocol, metaclass=CapabilityMeta):
    """A kind whose live objects show by themselves which resource created them.

    A killed process needs no record of the location then: an announced claim leads the next one to the object.
    """

    def is_created_for(self, resource: Resource, observed: Present[Any]) -> bool:
        """Whether a step for this very resource created the object; nothing that its author can write says so."""
        ...


@runtime_checkable
class SupportsProjects(Protocol, metaclass=CapabilityMeta):
    """A kind whose objects are in Google projects, which a resource names in one of several ways."""

    def project_of(self, resource: Resource, resolved: ResolvedReferences) -> ResolvedProject:
        """The project of the object, and where it is named."""
        ...


@runtime_checkable
class SupportsCreationCheck(Protocol, metaclass=CapabilityMeta):
    """A kind that knows which objects its service refuses to create, though the spec alone is valid."""

    def check_creation(self, intent: Intent, wanted: JsonObject) -> None:
        """ManifestInvalid for a creation that the service would refuse."""
        ...


@runtime_checkable
class SupportsUpdateCheck(Protocol, metaclass=CapabilityMeta):
    """A kind that knows which changes its service refuses as the object is now: a plan says so, as the step does."""

    def check_update(self, intent: Intent, writes: Sequence[PlannedWrite], observed: Present[Any]) -> None:
        """A UserError, such as ImmutableFieldChanged, for writes of which the service would refuse one."""
        ...


@runtime_checkable
class SupportsWriteGuard(Protocol):
    """A kind all of whose writes go through setpoint's clients, so that the write guard stops every one of them."""

    writes_through_clients: bool


@runtime_checkable
class SupportsWait(Protocol, metaclass=CapabilityMeta):
    """A kind whose resources can wait for a state of their objects. A wait is judged by `Present.whole`."""

    def wait_for(self, resource: Resource) -> WaitFor | None:
        """The wait that the author declared; None for none."""
        ...


@runtime_checkable
class SupportsReplace(Protocol, metaclass=CapabilityMeta):
    """A kind whose spec can allow that an object is deleted and created anew."""

    def may_replace(self, resource: Resource) -> bool:
        """Whether the spec allows it."""
        ...


@runtime_checkable
class SupportsDeletionProtection(Protocol, metaclass=CapabilityMeta):
    """A kind whose spec can forbid that an object is deleted."""

    def is_protected(self, resource: Resource) -> bool:
        """Whether the spec forbids it, and deleting the resource would delete its object."""
        ...


@runtime_checkable
class SupportsDeletionPreparation(Protocol, metaclass=CapabilityMeta):
    """A kind that needs more than the location to reach an object, such as the Secret with the login of its server.

    Whatever is reconciled is located first; a deletion goes by the location on record, and resolves no reference.
    """

    def prepare_deletion(self, resource: Resource, location: Location) -> None:
        """The object of `resource`, at `location`, is observed and deleted next."""
        ...


@runtime_checkable
class SupportsRetirement(Protocol, metaclass=CapabilityMeta):
    """A kind with objects that cannot be deleted: a deletion makes them unusable, and they can still be seen."""

    def stays_when_deleted(self) -> bool:
        """Whether the objects of this kind are such."""
        ...


@dataclass(frozen=True, slots=True)
class GeneratedSecret:
    """A Secret that belongs to a resource: one of its keys has a value that is generated once, such as a password.

    It is in the namespace of the resource, which is its controller. A value that another writer sets stays; one that is
    deleted, or empty, is generated anew.
    """

    name: str
    # The key whose value is generated, and what generates it: a text that is hard to guess.
    key: str
    generate: Callable[[], str]
    # The other entries, given that value. They are put back when another writer changes them.
    entries: Callable[[str], Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class IssuedSecret:
    """A Secret that belongs to a resource, for what the service tells once: in its answer to the creation.

    It is created, empty, before the object is. An object whose entries are not in it can be used by no program: it is
    deleted, and another one is created.
    """

    name: str
    # Whether these entries are those of the object at a location.
    is_of: Callable[[Mapping[str, bytes], Location], bool]


@runtime_checkable
class SupportsGeneratedSecret(Protocol, metaclass=CapabilityMeta):
    """A kind that can have a value generated for an object: the engine keeps it in a Secret before the kind sends it.

    The kind names the key of that Secret among its dependencies, as a SecretKeyReference, and gets the value as that of
    any other Secret. The Secret is written before the kind is asked to write anything; in a preview it is not written.
    Of a value that the service generates, `create` returns it as `Written.issued`, and its dependency is optional.
    """

    def generated_secret(self, resource: Resource) -> GeneratedSecret | IssuedSecret | None:
        """The Secret that the spec asks for; None for none."""
        ...


@runtime_checkable
class SupportsAliases(Protocol, metaclass=CapabilityMeta):
    """A kind whose objects can have several locations at once: two API versions, or two names of a service."""

    async def is_same_object(self, resource: Resource, location: Location) -> bool:
        """Whether the object at `location` is the one that the status of `resource` is about: then it has not moved."""
        ...


@runtime_checkable
class SupportsServiceIds(Protocol, metaclass=CapabilityMeta):
    """A kind whose service makes the ids of its objects: where an object is, is known once it is created.

    Until then its location names a search, by what marks the object. `locate` returns the location on record as long as
    it fits; an observation by a search that finds the object has the location of its own.
    """

    def creation_location(self, resource: Resource, resolved: ResolvedReferences) -> Location:
        """The search for an object that is still to be created. UserError where the author names one by its id."""
        ...


@runtime_checkable
class SupportsWatch(Protocol, metaclass=CapabilityMeta):
    """A kind whose service can be watched."""

    def watch_topic(self, location: Location) -> WatchTopic:
        """The topic of the changes of that object."""
        ...

    def changes(self, topic: WatchTopic) -> AsyncGenerator[Location | None, None]:
        """The location of each change, without an end; None when any object may have changed, as at the beginning.

        After an error it resumes by itself, and yields None: changes may have been missed.
        """
        ...


@runtime_checkable
class SupportsWatchedObjects(Protocol, metaclass=CapabilityMeta):
    """A kind that knows from its watches how objects are now, mostly without a request."""

    async def observe_watched(self, location: Location, known: str | None = None) -> Absent | Present[Any] | Unchanged:
        """As `observe`. It may be outdated by as much as a watch lags: a write has the version as its precondition.

        For steps of a process that reconciles the object: no change is yielded for what was observed here.
        """
        ...


@runtime_checkable
class SupportsFormerRevisions(Protocol, metaclass=CapabilityMeta):
    """A kind that still has the implementations of its earlier revisions, for `setpoint plan --as`."""

    def former(self) -> Sequence[AnyKind]:
        """The implementations of earlier revisions."""
        ...


# A set of objects that a service lists with one call, such as all buckets of a project.
ListScope = NewType("ListScope", str)


@runtime_checkable
class SupportsList(Protocol, metaclass=CapabilityMeta):
    """A kind whose objects can be listed, with everything that an observation shows.

    A list only ever proves that an object has not changed. An object that it omits, shows differently or shows too late
    costs one observation, and nothing else.
    """

    def list_scope_of(self, location: Location) -> ListScope | None:
        """The scope that lists the object; None for a location that is none of this kind."""
        ...

    def pages(self, list_scope: ListScope) -> AsyncGenerator[Sequence[bytes], None]:
        """All objects of the scope, page by page; each item as the bytes that came. Any failure raises."""
        ...

    def location_of(self, item: bytes, list_scope: ListScope) -> Location:
        """The location of the object that an item shows."""
        ...

    def read_item(self, item: bytes, location: Location) -> Present[Any] | None:
        """The object as `observe` would return it; None when the item may not show all of it."""
        ...


class KnownObject(NamedTuple):
    """A live object that others may be in."""

    kind: GroupKind
    location: Location


@dataclass(frozen=True, slots=True)
class ImportPlace:
    """Where live objects are looked for: in a project, in these regions and zones, and in objects that are known.

    A location that is `-` is each that the service has.
    """

    project: str
    locations: Sequence[str] = ()
    # What other objects may be in: instances, networks.
    known: Sequence[KnownObject] = ()
    # What is in no project: `organizations/1`, `folders/2`.
    parent: str = ""

    @property
    def in_project(self) -> str:
        """The project; PlaceNotNamed where there is none."""
        if not self.project:
            raise PlaceNotNamed("in which project? Name it by --project, or in GOOGLE_CLOUD_PROJECT")
        return self.project


@dataclass(frozen=True, slots=True)
class LiveIdentity:
    """What a manifest says of which object it is about: fields of its spec and annotations."""

    # Its name in the service; empty where fields of the spec name it.
    own_id: str
    spec: JsonObject
    annotations: Mapping[str, str] = field(default_factory=dict)
    # Labels that the kind itself sends.
    managed_labels: Sequence[str] = ()
    # Fields that the service moves by itself: left out, though a spec may have them.
    moving: Sequence[Path] = ()
    # What documentation says of fields that are left out, where it is not known to be what the service does.
    documented: Mapping[Path, Json] = field(default_factory=dict)
    # Whether the spec has to have the id, though it may be the name of the resource: the service makes the ids.
    needs_id: bool = False
    # What the resource is to be called, where it has no id.
    name: str = ""


@runtime_checkable
class SupportsImport(Protocol, metaclass=CapabilityMeta):
    """A kind whose live objects can be found, and be declared as they are."""

    def parent_kinds(self) -> Sequence[GroupKind]:
        """The kinds whose objects its own are in: those are looked for first."""
        ...

    def import_scopes(self, place: ImportPlace) -> Sequence[ListScope]:
        """The lists that have the objects of a place; none where the service cannot list them."""
        ...

    def live_objects(self, list_scope: ListScope) -> AsyncGenerator[tuple[Location, Present[Any]], None]:
        """The objects of a list, each with its location. Any failure raises."""
        ...

    def identity_at(self, location: Location) -> LiveIdentity:
        """What a manifest has to say so that `locate` returns this location."""
        ...


@runtime_checkable
class SupportsBulkObserve(Protocol, metaclass=CapabilityMeta):
    """A kind that can observe many objects with few requests: a plan of many resources asks for all of them at once."""

    async def observe_many(self, locations: Sequence[Location]) -> Mapping[Location, LiveObservation]:
        """What `observe` would return for each, as of now. One that is left out is observed by itself."""
        ...


def keeps_cookie(described: DescribedType) -> bool:
    """Whether a resource of the type keeps a cookie: one of an owner does, one of a kind if it is stateful."""
    return getattr(described, "reconciliation", Reconciliation.STATEFUL) is Reconciliation.STATEFUL

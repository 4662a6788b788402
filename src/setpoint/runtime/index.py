"""The index: a small summary of every resource, with dependants, owners and claims, kept up to date by the informer."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias, TypeVar

import msgspec

from setpoint.core.conditions import ConditionType
from setpoint.core.schema.annotations import CLAIM
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.canonical import canonical
from setpoint.engine.claims.object_claims import ClaimKey, recorded_claim_keys
from setpoint.engine.claims.record import missing_finalizers
from setpoint.engine.conditions import condition_of
from setpoint.engine.kind import Dependency, Location, SecretKeyReference, dependency_target
from setpoint.engine.owner import Owner
from setpoint.engine.references import ResourceTypes, dependencies_of, is_ready, may_have_dependencies
from setpoint.engine.requeue import DEFAULT_RESYNC_SECONDS, resync_seconds
from setpoint.engine.resource import SECRET, Resource, ResourceRef, Revision
from setpoint.engine.state import COOKIE_ANNOTATION, is_record_lost, location_in, outputs_in
from setpoint.engine.step.delete import is_deletion_held
from setpoint.engine.tenancy.reference_grants import REFERENCE_GRANT
from setpoint.engine.tenancy.tenants import NAMESPACE
from setpoint.errors import SetpointError, StoreError
from setpoint.runtime.notify.problems import Problem, problem_of

# How long a step waits for the watch to show its own write.
CATCH_UP_SECONDS: Final = 10.0
# What the engine writes: no edit of an author.
_ENGINE_ANNOTATIONS: Final = frozenset({COOKIE_ANNOTATION, CLAIM})


class IndexEntry(msgspec.Struct, frozen=True, gc=False):
    """The summary of one resource. The hashes are valid in this process only."""

    revision: Revision
    uid: str
    generation: int
    # Of the author's metadata: labels, annotations, deletion.
    metadata_hash: int
    # Of what dependants read: readiness and outputs; for a child also the condition that its owner repeats.
    dependant_hash: int
    is_ready: bool
    is_deleting: bool
    # Whether a finalizer holds it.
    is_held: bool
    # Whether it has an object, and a finalizer of ours was taken off.
    lacks_finalizer: bool
    # Of the whole status.
    status_hash: int
    # The mean time between two resyncs; 0 for none.
    resync_seconds: float
    dependencies: tuple[ResourceRef, ...]
    # Those of them that have to be there and ready first.
    awaited: tuple[ResourceRef, ...]
    # Whether another writer changed the status while no process ran: only of one without resyncs, which would find it.
    is_status_edited: bool
    # The location of its object, once it is recorded.
    location: Location | None
    # The claim keys by which it claims that object.
    claim_keys: tuple[ClaimKey, ...] = ()
    # What its conditions say is wrong; undecided for what has no controller.
    problem: Problem = Problem.UNDECIDED


OwnersByKind: TypeAlias = Mapping[GroupKind, Owner]
_NO_OWNERS: Final[OwnersByKind] = MappingProxyType({})


def index_entry(
    resource: Resource,
    kinds: ResourceTypes,
    owners: OwnersByKind = _NO_OWNERS,
    *,
    collects: bool = False,
    before: IndexEntry | None = None,
) -> IndexEntry:
    """The summary of `resource`. Kinds without a controller, such as Secrets, are indexed for their dependants.

    `collects`: whether the store collects garbage. `before`: the summary of an earlier state, if there is one.
    """
    annotations = {key: text for key, text in resource.annotations.items() if key not in _ENGINE_ANNOTATIONS}
    key, resync = resource.ref.group_kind, _resync_seconds(annotations)
    kind = kinds.get(key)
    is_deleting, status, ready = resource.is_deleting, resource.status, is_ready(resource)
    metadata_hash = hash((frozenset(annotations.items()), frozenset(resource.labels.items()), is_deleting))
    if before is not None and key not in owners and _is_unedited(resource, before, metadata_hash):
        dependencies, awaited = before.dependencies, before.awaited
    else:
        dependencies, awaited = ((), ()) if kind is None else _dependencies(resource, kinds, owners)
    return IndexEntry(
        revision=resource.revision,
        uid=resource.uid,
        generation=resource.generation,
        metadata_hash=metadata_hash,
        dependant_hash=_dependant_hash(resource, is_ready=ready) if kind is not None else hash(resource.revision),
        is_ready=ready,
        is_deleting=is_deleting,
        is_held=is_deleting and is_deletion_held(resource),
        lacks_finalizer=kind is not None and bool(missing_finalizers(resource, owners.get(key), collects=collects)),
        status_hash=resource.status_hash if kind is not None else 0,
        resync_seconds=resync,
        dependencies=dependencies,
        awaited=awaited,
        is_status_edited=resync == 0 and kind is not None and is_record_lost(status),
        location=location_in(status),
        claim_keys=recorded_claim_keys(resource, kind),
        problem=Problem.UNDECIDED if kind is None else problem_of(resource),
    )


def _is_unedited(resource: Resource, before: IndexEntry, metadata_hash: int) -> bool:
    """Whether the author's part is that of `before`: most events are of a status that the engine wrote."""
    is_same = resource.generation == before.generation > 0 and resource.uid == before.uid
    return is_same and metadata_hash == before.metadata_hash


def _dependant_hash(resource: Resource, *, is_ready: bool) -> int:
    outputs = outputs_in(resource.status)
    ready = _ready_hash(resource) if resource.controller is not None else 0
    return hash((is_ready, resource.generation, canonical(outputs) if outputs else b"", ready))


def _ready_hash(resource: Resource) -> int:
    """Of the Ready condition of a child: its owner repeats it."""
    ready = condition_of(resource, ConditionType.READY)
    return 0 if ready is None else hash((resource.status.get("observedGeneration"), ready.reason, ready.message))


def _resync_seconds(annotations: Mapping[str, str]) -> float:
    try:
        return resync_seconds(annotations)
    except SetpointError:
        # The step reports what is wrong.
        return DEFAULT_RESYNC_SECONDS


def _dependencies(
    resource: Resource, kinds: ResourceTypes, owners: OwnersByKind
) -> tuple[tuple[ResourceRef, ...], tuple[ResourceRef, ...]]:
    """What the resource depends on, and what of that it waits for."""
    owner = owners.get((resource.ref.group, resource.ref.kind))
    if owner is None and not may_have_dependencies(resource):
        return (), ()
    try:
        found = dependencies_of(resource, kinds)
        sources = () if owner is None else owner.sources(resource)
    except SetpointError:
        # The step reports what is wrong; until that is fixed, it depends on nothing.
        return (), ()
    every = tuple(dict.fromkeys((*map(dependency_target, found), *sources)))
    awaited = tuple(dict.fromkeys(dependency_target(one) for one in found if _is_awaited(one)))
    # One tuple where they are the same, as they mostly are.
    return every, every if awaited == every else awaited


def _is_awaited(dependency: Dependency) -> bool:
    return isinstance(dependency, SecretKeyReference) or dependency.must_be_ready


def _with_kept_claim(resource: Resource, before: IndexEntry | None, after: IndexEntry) -> IndexEntry:
    """With the claim of before, where another writer has wiped the record of it: the next step restores that."""
    if before is None or before.location in (None, after.location) or before.uid != after.uid:
        return after
    if not is_record_lost(resource.status):
        return after
    return msgspec.structs.replace(after, location=before.location, claim_keys=before.claim_keys)


class ResourceIndex:
    """The summaries of all resources, with their dependants and owners."""

    def __init__(self, kinds: ResourceTypes, owners: OwnersByKind = _NO_OWNERS, *, collects: bool = False) -> None:
        self._kinds = kinds
        self._owners = owners
        self._collects = collects
        self._entries: dict[ResourceRef, IndexEntry] = {}
        # The summary of a resource, if it is there: asked several times for each step, hence no method of ours.
        self.get: Callable[[ResourceRef], IndexEntry | None] = self._entries.get
        self._dependants: dict[ResourceRef, set[ResourceRef]] = {}
        # By namespace: the references into it from other namespaces, each by its dependant and its target.
        self._references_into: dict[str, set[tuple[ResourceRef, ResourceRef]]] = {}
        self._owners_of: dict[ResourceRef, ResourceRef] = {}
        # Mostly one for each key.
        self._claimants: dict[ClaimKey, tuple[ResourceRef, ...]] = {}
        # Waiting for a revision of a resource.
        self._waiting: dict[ResourceRef, list[asyncio.Future[None]]] = {}
        # How many resources of each kind with a controller are ready, and how many are not.
        self._counts = {(*key, ready): 0 for key in kinds for ready in (True, False)}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[ResourceRef]:
        return iter(self._entries)

    def is_blocked(self, entry: IndexEntry) -> bool:
        """Whether a resource that it waits for, and that is reconciled here, is not there or not ready."""
        awaited = (self._entries.get(ref) for ref in entry.awaited if ref.group_kind in self._kinds)
        return any(one is None or not one.is_ready for one in awaited)

    @property
    def counts(self) -> Mapping[tuple[str, str, bool], int]:
        """How many resources there are, by API group, kind, and whether they are ready."""
        return self._counts

    def revision(self, ref: ResourceRef) -> Revision | None:
        """See RevisionIndex."""
        entry = self._entries.get(ref)
        return None if entry is None else entry.revision

    def put(self, resource: Resource) -> tuple[IndexEntry | None, IndexEntry]:
        """The summaries before and after this state of `resource`."""
        ref = resource.ref
        before = self._entries.get(ref)
        after = _with_kept_claim(
            resource,
            before,
            index_entry(resource, self._kinds, self._owners, collects=self._collects, before=before),
        )
        self._set_owner(resource)
        if not self._is_kept(ref):
            return self._entries.pop(ref, None), after
        self._entries[ref] = after
        self._claim(ref, before, after)
        self._count(ref, before, -1)
        self._count(ref, after, 1)
        self._link(ref, before.dependencies if before else (), after.dependencies)
        return before, after

    def drop(self, ref: ResourceRef) -> IndexEntry | None:
        """Removes `ref`; its last summary."""
        before = self._entries.pop(ref, None)
        self._owners_of.pop(ref, None)
        if before is not None:
            self._claim(ref, before, None)
            self._count(ref, before, -1)
            self._link(ref, before.dependencies, ())
        return before

    # --- Claims of live objects: see ClaimIndex -----------------------------------------------------------------------

    def claimants(self, key: ClaimKey) -> Collection[ResourceRef]:
        """See ClaimIndex."""
        return self._claimants.get(key, ())

    def location(self, ref: ResourceRef) -> Location | None:
        """See ClaimIndex."""
        entry = self._entries.get(ref)
        return None if entry is None else entry.location

    async def caught_up(self, ref: ResourceRef, revision: Revision) -> None:
        """See ClaimIndex."""
        if self._has(ref, revision):
            return
        try:
            async with asyncio.timeout(CATCH_UP_SECONDS):
                while not self._has(ref, revision):
                    changed = asyncio.get_running_loop().create_future()
                    self._waiting.setdefault(ref, []).append(changed)
                    await changed
        except TimeoutError:
            raise StoreError(
                f"{ref}: the watch of the store is behind: nothing is written before it shows what was written last"
            ) from None

    def _has(self, ref: ResourceRef, revision: Revision) -> bool:
        """Whether the index has that revision or a later one: of one resource, revisions are numbers that grow."""
        entry = self._entries.get(ref)
        return entry is not None and int(entry.revision) >= int(revision)

    def _claim(self, ref: ResourceRef, before: IndexEntry | None, after: IndexEntry | None) -> None:
        old = () if before is None else before.claim_keys
        new = () if after is None else after.claim_keys
        if old != new:
            for key in old:
                left = tuple(one for one in self._claimants.get(key, ()) if one != ref)
                if left:
                    self._claimants[key] = left
                else:
                    self._claimants.pop(key, None)
            for key in new:
                self._claimants[key] = (*self._claimants.get(key, ()), ref)
        for changed in self._waiting.pop(ref, ()):
            if not changed.done():
                changed.set_result(None)

    def owner_of(self, ref: ResourceRef) -> ResourceRef | None:
        """The owner of `ref`, when it is of a kind that is reconciled here."""
        return self._owners_of.get(ref)

    def _set_owner(self, resource: Resource) -> None:
        owner = resource.controller if self._owners else None
        if owner is not None and (owner.group, owner.kind) in self._owners:
            self._owners_of[resource.ref] = owner
        else:
            self._owners_of.pop(resource.ref, None)

    def _is_kept(self, ref: ResourceRef) -> bool:
        """Whether it is reconciled, referenced or owned here: most objects of a cluster are not."""
        is_ours = ref.group_kind in self._kinds or ref.group_kind in (SECRET, REFERENCE_GRANT, NAMESPACE)
        return is_ours or not self._owners or ref in self._owners_of or ref in self._dependants

    @property
    def referenced(self) -> Iterable[ResourceRef]:
        """Every resource with dependants, whether it is there or not."""
        return tuple(self._dependants)

    def dependants_of(self, ref: ResourceRef) -> Iterable[ResourceRef]:
        """The resources that reference `ref`, whether it is there or not."""
        return tuple(self._dependants.get(ref, ()))

    def dependants_into(self, namespace: str) -> Iterable[ResourceRef]:
        """The resources of other namespaces that reference something in `namespace`."""
        return tuple(dict.fromkeys(ref for ref, _ in self._references_into.get(namespace, ())))

    def _count(self, ref: ResourceRef, entry: IndexEntry | None, by: int) -> None:
        key = (ref.group, ref.kind, entry is not None and entry.is_ready)
        if entry is not None and key in self._counts:
            self._counts[key] += by

    def _link(self, ref: ResourceRef, old: tuple[ResourceRef, ...], new: tuple[ResourceRef, ...]) -> None:
        for dependency in old:
            if dependency not in new:
                _discard(self._dependants, dependency, ref)
                _discard(self._references_into, dependency.namespace, (ref, dependency))
        for dependency in new:
            if dependency not in old:
                self._dependants.setdefault(dependency, set()).add(ref)
                if dependency.namespace != ref.namespace:
                    self._references_into.setdefault(dependency.namespace, set()).add((ref, dependency))


K = TypeVar("K")
V = TypeVar("V")


def _discard(sets: dict[K, set[V]], key: K, member: V) -> None:
    """Removes a member, and its set with the last one."""
    found = sets.get(key, set())
    found.discard(member)
    if not found:
        sets.pop(key, None)

"""The index: a small summary of every resource, with its dependants and owners, kept up to date by the informer."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

import msgspec

from setpoint.core.conditions import ConditionType
from setpoint.core.values.canonical import canonical
from setpoint.engine.conditions import condition_of
from setpoint.engine.kind import Location, dependency_target
from setpoint.engine.owner import Owner
from setpoint.engine.references import ResourceTypes, dependencies_of, is_ready, may_have_dependencies
from setpoint.engine.requeue import DEFAULT_RESYNC_SECONDS, resync_seconds
from setpoint.engine.resource import SECRET, Resource, ResourceRef, Revision
from setpoint.engine.state import COOKIE_ANNOTATION, location_in, outputs_in
from setpoint.engine.step.delete import is_deletion_held
from setpoint.errors import SetpointError


class IndexEntry(msgspec.Struct, frozen=True, gc=False):
    """One resource. The two hashes mean nothing outside this process."""

    revision: Revision
    uid: str
    generation: int
    # Of everything else that its author says: labels, annotations, that it is to go.
    said: int
    # Of everything that others go by: whether it is ready, and its outputs.
    shown: int
    is_ready: bool
    is_deleting: bool
    # Whether it may not go yet.
    is_held: bool
    # The mean time between two looks.
    mean: float
    dependencies: tuple[ResourceRef, ...]
    # Where its object is, once that is on record.
    location: Location | None


OwnersByKind: TypeAlias = Mapping[tuple[str, str], Owner]
_NO_OWNERS: Final[OwnersByKind] = MappingProxyType({})


def index_entry(resource: Resource, kinds: ResourceTypes, owners: OwnersByKind = _NO_OWNERS) -> IndexEntry:
    """The head of `resource`; none of the kinds handles Secrets and the like, which others need all the same."""
    is_handled = (resource.ref.group, resource.ref.kind) in kinds
    annotations = {key: text for key, text in resource.annotations.items() if key != COOKIE_ANNOTATION}
    ready = is_ready(resource)
    return IndexEntry(
        revision=resource.revision,
        uid=resource.uid,
        generation=resource.generation,
        said=hash((frozenset(annotations.items()), frozenset(resource.labels.items()), resource.is_deleting)),
        shown=_dependant_hash(resource, is_ready=ready) if is_handled else hash(resource.revision),
        is_ready=ready,
        is_deleting=resource.is_deleting,
        is_held=is_deletion_held(resource),
        mean=_resync_seconds(annotations),
        dependencies=_needs(resource, kinds, owners) if is_handled else (),
        location=location_in(resource.status),
    )


def _dependant_hash(resource: Resource, *, is_ready: bool) -> int:
    outputs = outputs_in(resource.status)
    told = _ready_hash(resource) if resource.controller is not None else 0
    return hash((is_ready, resource.generation, canonical(outputs) if outputs else b"", told))


def _ready_hash(resource: Resource) -> int:
    """How it stands with a child, in words: its owner repeats them."""
    ready = condition_of(resource, ConditionType.READY)
    return 0 if ready is None else hash((resource.status.get("observedGeneration"), ready.reason, ready.message))


def _resync_seconds(annotations: Mapping[str, str]) -> float:
    try:
        return resync_seconds(annotations)
    except SetpointError:
        # The step says what is wrong with it.
        return DEFAULT_RESYNC_SECONDS


def _needs(resource: Resource, kinds: ResourceTypes, owners: OwnersByKind) -> tuple[ResourceRef, ...]:
    owner = owners.get((resource.ref.group, resource.ref.kind))
    if owner is None and not may_have_dependencies(resource):
        return ()
    try:
        dependencies = map(dependency_target, dependencies_of(resource, kinds))
        return tuple(dict.fromkeys((*dependencies, *(() if owner is None else owner.sources(resource)))))
    except SetpointError:
        # The step says what is wrong with it; until that is mended, it waits for nobody.
        return ()


class ResourceIndex:
    """The heads of all resources, and who waits for whom."""

    def __init__(self, kinds: ResourceTypes, owners: OwnersByKind = _NO_OWNERS) -> None:
        self._kinds = kinds
        self._owners = owners
        self._heads: dict[ResourceRef, IndexEntry] = {}
        self._needed_by: dict[ResourceRef, set[ResourceRef]] = {}
        self._owned_by: dict[ResourceRef, ResourceRef] = {}
        # How many there are of each kind that is handled, ready and not.
        self._numbers = {(*key, ready): 0 for key in kinds for ready in (True, False)}

    def __len__(self) -> int:
        return len(self._heads)

    def __iter__(self) -> Iterator[ResourceRef]:
        return iter(self._heads)

    def get(self, ref: ResourceRef) -> IndexEntry | None:
        """The head of `ref`, if it is there."""
        return self._heads.get(ref)

    @property
    def numbers(self) -> Mapping[tuple[str, str, bool], int]:
        """How many resources there are, by API group, kind, and whether they are ready."""
        return self._numbers

    def revision(self, ref: ResourceRef) -> Revision | None:
        """See engine.rest.Heads."""
        head = self._heads.get(ref)
        return None if head is None else head.revision

    def put(self, resource: Resource) -> tuple[IndexEntry | None, IndexEntry]:
        """The heads before and after `resource` was heard of."""
        ref = resource.ref
        before, after = self._heads.get(ref), index_entry(resource, self._kinds, self._owners)
        self._own(resource)
        if not self._is_kept(ref):
            return self._heads.pop(ref, None), after
        self._heads[ref] = after
        self._count(ref, before, -1)
        self._count(ref, after, 1)
        self._link(ref, before.dependencies if before else (), after.dependencies)
        return before, after

    def drop(self, ref: ResourceRef) -> IndexEntry | None:
        """The head of what is no more."""
        before = self._heads.pop(ref, None)
        self._owned_by.pop(ref, None)
        if before is not None:
            self._count(ref, before, -1)
            self._link(ref, before.dependencies, ())
        return before

    def owner_of(self, ref: ResourceRef) -> ResourceRef | None:
        """Whose child it is, when that is one of those that are looked after here."""
        return self._owned_by.get(ref)

    def _own(self, resource: Resource) -> None:
        owner = resource.controller if self._owners else None
        if owner is not None and (owner.group, owner.kind) in self._owners:
            self._owned_by[resource.ref] = owner
        else:
            self._owned_by.pop(resource.ref, None)

    def _is_kept(self, ref: ResourceRef) -> bool:
        """Whether it may be anybody's business: a cluster has many objects that are not."""
        is_ours = (ref.group, ref.kind) in self._kinds or (ref.group, ref.kind) == SECRET
        return is_ours or not self._owners or ref in self._owned_by or ref in self._needed_by

    @property
    def needed(self) -> Iterable[ResourceRef]:
        """All that anybody needs, whether it is there or not."""
        return tuple(self._needed_by)

    def dependants_of(self, ref: ResourceRef) -> Iterable[ResourceRef]:
        """Those that need `ref`, whether it is there or not."""
        return tuple(self._needed_by.get(ref, ()))

    def _count(self, ref: ResourceRef, head: IndexEntry | None, by: int) -> None:
        key = (ref.group, ref.kind, head is not None and head.is_ready)
        if head is not None and key in self._numbers:
            self._numbers[key] += by

    def _link(self, ref: ResourceRef, old: tuple[ResourceRef, ...], new: tuple[ResourceRef, ...]) -> None:
        for dependency in old:
            if dependency not in new:
                behind = self._needed_by[dependency]
                behind.discard(ref)
                if not behind:
                    del self._needed_by[dependency]
        for dependency in new:
            if dependency not in old:
                self._needed_by.setdefault(dependency, set()).add(ref)

"""What a process knows of every resource without reading it: enough to tell what a change means, and for whom."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

import msgspec

from setpoint.core.canonical import canonical
from setpoint.engine.cadence import MEAN_SECONDS, mean_seconds
from setpoint.engine.kind import Location, target_of
from setpoint.engine.needs import Kinds, may_need, needs_of
from setpoint.engine.owner import Owner
from setpoint.engine.references import is_ready
from setpoint.engine.remembered import COOKIE_ANNOTATION, location_in, outputs_in
from setpoint.engine.removal import is_held
from setpoint.engine.report import condition_of
from setpoint.engine.resource import SECRET, Resource, ResourceRef, Revision
from setpoint.errors import SetpointError


class Head(msgspec.Struct, frozen=True, gc=False):
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
    needs: tuple[ResourceRef, ...]
    # Where its object is, once that is on record.
    location: Location | None


Owners: TypeAlias = Mapping[tuple[str, str], Owner]
_NO_OWNERS: Final[Owners] = MappingProxyType({})


def head_of(resource: Resource, kinds: Kinds, owners: Owners = _NO_OWNERS) -> Head:
    """The head of `resource`; none of the kinds handles Secrets and the like, which others need all the same."""
    is_handled = (resource.ref.group, resource.ref.kind) in kinds
    annotations = {key: text for key, text in resource.annotations.items() if key != COOKIE_ANNOTATION}
    ready = is_ready(resource)
    return Head(
        revision=resource.revision,
        uid=resource.uid,
        generation=resource.generation,
        said=hash((frozenset(annotations.items()), frozenset(resource.labels.items()), resource.is_deleting)),
        shown=_shown(resource, is_ready=ready) if is_handled else hash(resource.revision),
        is_ready=ready,
        is_deleting=resource.is_deleting,
        is_held=is_held(resource),
        mean=_mean(annotations),
        needs=_needs(resource, kinds, owners) if is_handled else (),
        location=location_in(resource.status),
    )


def _shown(resource: Resource, *, is_ready: bool) -> int:
    outputs = outputs_in(resource.status)
    told = _told(resource) if resource.controller is not None else 0
    return hash((is_ready, resource.generation, canonical(outputs) if outputs else b"", told))


def _told(resource: Resource) -> int:
    """How it stands with a child, in words: its owner repeats them."""
    ready = condition_of(resource, "Ready")
    return 0 if ready is None else hash((resource.status.get("observedGeneration"), ready.reason, ready.message))


def _mean(annotations: Mapping[str, str]) -> float:
    try:
        return mean_seconds(annotations)
    except SetpointError:
        # The step says what is wrong with it.
        return MEAN_SECONDS


def _needs(resource: Resource, kinds: Kinds, owners: Owners) -> tuple[ResourceRef, ...]:
    owner = owners.get((resource.ref.group, resource.ref.kind))
    if owner is None and not may_need(resource):
        return ()
    try:
        needs = map(target_of, needs_of(resource, kinds))
        return tuple(dict.fromkeys((*needs, *(() if owner is None else owner.sources(resource)))))
    except SetpointError:
        # The step says what is wrong with it; until that is mended, it waits for nobody.
        return ()


class Heads:
    """The heads of all resources, and who waits for whom."""

    def __init__(self, kinds: Kinds, owners: Owners = _NO_OWNERS) -> None:
        self._kinds = kinds
        self._owners = owners
        self._heads: dict[ResourceRef, Head] = {}
        self._needed_by: dict[ResourceRef, set[ResourceRef]] = {}
        self._owned_by: dict[ResourceRef, ResourceRef] = {}
        # How many there are of each kind that is handled, ready and not.
        self._numbers = {(*key, ready): 0 for key in kinds for ready in (True, False)}

    def __len__(self) -> int:
        return len(self._heads)

    def __iter__(self) -> Iterator[ResourceRef]:
        return iter(self._heads)

    def get(self, ref: ResourceRef) -> Head | None:
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

    def put(self, resource: Resource) -> tuple[Head | None, Head]:
        """The heads before and after `resource` was heard of."""
        ref = resource.ref
        before, after = self._heads.get(ref), head_of(resource, self._kinds, self._owners)
        self._own(resource)
        if not self._is_kept(ref):
            return self._heads.pop(ref, None), after
        self._heads[ref] = after
        self._count(ref, before, -1)
        self._count(ref, after, 1)
        self._link(ref, before.needs if before else (), after.needs)
        return before, after

    def drop(self, ref: ResourceRef) -> Head | None:
        """The head of what is no more."""
        before = self._heads.pop(ref, None)
        self._owned_by.pop(ref, None)
        if before is not None:
            self._count(ref, before, -1)
            self._link(ref, before.needs, ())
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

    def waiting_for(self, ref: ResourceRef) -> Iterable[ResourceRef]:
        """Those that need `ref`, whether it is there or not."""
        return tuple(self._needed_by.get(ref, ()))

    def _count(self, ref: ResourceRef, head: Head | None, by: int) -> None:
        key = (ref.group, ref.kind, head is not None and head.is_ready)
        if head is not None and key in self._numbers:
            self._numbers[key] += by

    def _link(self, ref: ResourceRef, old: tuple[ResourceRef, ...], new: tuple[ResourceRef, ...]) -> None:
        for need in old:
            if need not in new:
                behind = self._needed_by[need]
                behind.discard(ref)
                if not behind:
                    del self._needed_by[need]
        for need in new:
            if need not in old:
                self._needed_by.setdefault(need, set()).add(ref)

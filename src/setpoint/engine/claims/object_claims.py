"""Claims of live objects: one object has one resource of a store, which is the first that put it on record.

A resource claims its object by its location in the status. In a long-running process an index has all claims; a single
command reads them once, before its first write. Where other processes claim objects of the same store, a claim is
announced first, in an annotation, and is pending until its process has seen every claim of before: see
`engine.claims.claim`.
"""

import asyncio
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from functools import cache
from sys import intern
from typing import Final, NamedTuple, Protocol, TypeGuard, runtime_checkable
from urllib.parse import unquote

from setpoint.core.schema.annotations import CLAIM
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.kind import Location, ResourceType
from setpoint.engine.ports import ResourceQuery, Store
from setpoint.engine.resource import Resource, ResourceRef, Revision
from setpoint.engine.state import is_claim_pending_in, is_record_lost, location_in

# The cluster that stores the resources; and the prefix of the same one as a ServiceAccount, `own:NAMESPACE/ACCOUNT`.
OWN: Final = "own"
ACCOUNT_PREFIX: Final = f"{OWN}:"
_OBJECT: Final = re.compile(r"(\S+ \S+ \S+) @ (\S+)")


class ClaimKey(NamedTuple):
    """A name of a live object that does not depend on how a resource reaches it. `scope` tells names of kinds apart."""

    scope: str
    name: str


# The scope of objects in clusters: kinds and owners of a store in a cluster may reach the same ones.
CLUSTER_OBJECTS: Final = "cluster"


def uid_name(uid: str) -> str:
    """The name of a cluster object by its uid."""
    return f"uid {uid}"


@runtime_checkable
class SupportsClaimKeys(Protocol):
    """A kind that can reach one object by several locations."""

    def claim_keys(self, location: Location, outputs: JsonObject) -> tuple[ClaimKey, ...]:
        """The claim keys by which a resource with this location and these outputs claims its object."""
        ...

    def seen_claim_keys(self, location: Location, outputs: JsonObject) -> tuple[ClaimKey, ...]:
        """Claim keys of an object as its service shows it: another resource may have claimed it by one of them.

        The service may belong to a tenant: nothing is claimed by what it shows.
        """
        ...


def supports_claim_keys(kind: object) -> TypeGuard[SupportsClaimKeys]:
    """Whether the kind has claim keys of its own. Asked for every resource: a check of the protocol takes long."""
    return _has_claim_keys(type(kind))  # type: ignore[arg-type] # it takes the hash of the class for its instances


@cache
def _has_claim_keys(kind: type) -> bool:
    return issubclass(kind, SupportsClaimKeys)


def claim_keys_of(kind: ResourceType, location: Location, outputs: JsonObject) -> tuple[ClaimKey, ...]:
    """The claim keys by which a resource of `kind` claims the object at `location`."""
    if supports_claim_keys(kind):
        return kind.claim_keys(location, outputs)
    return (ClaimKey(f"{kind.group}/{kind.name}", location),)


def announcement(resource: Resource, location: Location) -> str:
    """The text of the annotation that announces the claim of the object at `location`."""
    return f"{resource.uid} {location}"


def announced_location(resource: Resource) -> Location | None:
    """The location that a step announced to claim, if it did so for this very resource: a copy of it claims nothing."""
    uid, _, location = resource.annotations.get(CLAIM, "").partition(" ")
    return Location(intern(location)) if location and uid == resource.uid else None


def recorded_claim_keys(resource: Resource, kind: ResourceType | None) -> tuple[ClaimKey, ...]:
    """The claim keys that `resource` has on record, announced ones included; none before its first claim."""
    if kind is None:
        return ()
    confirmed, announced = location_in(resource.status), announced_location(resource)
    keys = () if confirmed is None else claim_keys_of(kind, confirmed, resource.status)
    if announced is None or announced == confirmed:
        return keys
    return tuple(dict.fromkeys((*keys, *claim_keys_of(kind, announced, {}))))


class Claim(NamedTuple):
    """The claim of one resource on an object. The least of several is the one that counts.

    One on record comes before one that is not, a confirmed one before one that is pending, then the older resource.
    """

    is_unrecorded: bool
    is_pending: bool
    created: str
    ref: ResourceRef
    # By which it reaches the object, if that is on record.
    location: Location | None

    @staticmethod
    def of(resource: Resource, kind: ResourceType | None, key: ClaimKey, *, is_indexed: bool = False) -> "Claim":
        """The claim of `resource` on the object with that key, whether it is on record or not.

        `is_indexed`: an index has it. That counts where another writer has wiped the record itself.
        """
        is_lost = is_indexed and is_record_lost(resource.status)
        is_recorded = is_lost or key in recorded_claim_keys(resource, kind)
        created, location = resource.created, location_in(resource.status)
        is_confirmed = (
            kind is not None and location is not None and key in claim_keys_of(kind, location, resource.status)
        )
        if is_recorded and not is_confirmed and not is_lost:
            return Claim(False, True, created, resource.ref, announced_location(resource))
        return Claim(not is_recorded, is_claim_pending_in(resource.status), created, resource.ref, location)


class ClaimIndex(Protocol):
    """The index of a long-running process, which a watch keeps up to date."""

    def claimants(self, key: ClaimKey) -> Collection[ResourceRef]:
        """The resources that have this key on record."""
        ...

    def location(self, ref: ResourceRef) -> Location | None:
        """The location of the object of `ref`: the last one on record, where another writer has wiped the record."""
        ...

    async def caught_up(self, ref: ResourceRef, revision: Revision) -> None:
        """Returns when the index has `ref` at this revision, and so every earlier change of its kind.

        StoreError when that takes too long.
        """
        ...


@dataclass(slots=True)
class ObjectClaims:
    """The claims of a store, as one process knows them.

    `is_shared`: other processes claim objects of the same store at the same time.
    """

    index: ClaimIndex | None = None
    is_shared: bool = False
    # Objects that steps of this process are about to claim.
    _under_way: dict[ClaimKey, ResourceRef] = field(default_factory=dict)
    # What a single command has read, by kind and namespace; entries may be outdated.
    _read: dict[ClaimKey, set[ResourceRef]] = field(default_factory=dict)
    _read_queries: set[tuple[GroupKind, str | None]] = field(default_factory=set)
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock)
    # Resources that were refused an object, and get it when it is released.
    _refused: dict[ClaimKey, set[ResourceRef]] = field(default_factory=dict)

    async def others(
        self,
        ref: ResourceRef,
        key: ClaimKey,
        *,
        store: Store,
        kinds: Mapping[GroupKind, ResourceType],
        among: Collection[GroupKind],
        namespace: str | None,
    ) -> list[Claim]:
        """The claims of other resources than `ref` on an object.

        A single command looks `among` the resources of these kinds, in `namespace` or everywhere.
        """
        if self.index is None:
            for kind in among:
                await self._read_claims(kind, kinds.get(kind), store, namespace)
            found: Iterable[ResourceRef] = self._read.get(key, ())
        else:
            found = self.index.claimants(key)
        resources = [await store.get(one) for one in sorted(found) if one != ref]
        claims = (
            Claim.of(one, kinds.get(one.ref.group_kind), key, is_indexed=self._is_indexed(one.ref))
            for one in resources
            if one is not None
        )
        return [one for one in claims if not one.is_unrecorded]

    def _is_indexed(self, ref: ResourceRef) -> bool:
        """Whether a confirmed claim of `ref` was seen: one that was only announced is no record that could be lost."""
        return self.index is not None and self.index.location(ref) is not None

    def under_way(self, ref: ResourceRef, claim_keys: Iterable[ClaimKey]) -> ResourceRef | None:
        """Another resource whose step is about to claim the object, if there is one."""
        holders = (self._under_way.get(one) for one in claim_keys)
        return next((one for one in holders if one is not None and one != ref), None)

    @contextmanager
    def claiming(self, ref: ResourceRef, claim_keys: Collection[ClaimKey]) -> Iterator[None]:
        """While a step of `ref` claims an object, no other step of this process does."""
        self._under_way.update(dict.fromkeys(claim_keys, ref))
        for one in claim_keys if self.index is None else ():
            self._read.setdefault(one, set()).add(ref)
        try:
            yield
        finally:
            for one in claim_keys:
                if self._under_way.get(one) == ref:
                    del self._under_way[one]

    def refuse(self, ref: ResourceRef, key: ClaimKey) -> None:
        """`ref` was refused the object, and is to be reconciled when it is released."""
        if self.index is not None:
            self._refused.setdefault(key, set()).add(ref)

    def released(self, claim_keys: Iterable[ClaimKey]) -> Collection[ResourceRef]:
        """The resources that were refused objects that have no claim any more."""
        return {ref for one in claim_keys for ref in self._refused.pop(one, ())} if self._refused else ()

    async def _read_claims(
        self, group_kind: GroupKind, kind: ResourceType | None, store: Store, namespace: str | None
    ) -> None:
        if (group_kind, namespace) in self._read_queries:
            return
        # Steps that begin together wait for the first of them, and do not all read the same.
        async with self._reading:
            if (group_kind, namespace) in self._read_queries:
                return
            query = ResourceQuery(*group_kind, namespace)
            async for page in store.pages(query):
                for resource in page.resources:
                    for one in recorded_claim_keys(resource, kind):
                        self._read.setdefault(one, set()).add(resource.ref)
            self._read_queries.add((group_kind, namespace))


# --- Locations as texts to read: stored ones stay as they are, since they are compared --------------------------------


def location_text(location: str) -> str:
    """The location as a person reads it: of an object in a cluster unquoted, and with the own cluster in words.

    `v1 ConfigMap shop/web @ own:shop%2Fsetpoint` is `v1 ConfigMap shop/web @ this cluster, as shop/setpoint`.
    """
    found = _OBJECT.fullmatch(location)
    if found is None:
        return location
    named, cluster = map(_unquoted, found.groups())
    if cluster == OWN:
        cluster = "this cluster"
    elif cluster.startswith(ACCOUNT_PREFIX):
        cluster = f"this cluster, as {cluster.removeprefix(ACCOUNT_PREFIX)}"
    return f"{named} @ {cluster}"


def _unquoted(text: str) -> str:
    """The text without its quotes, unless these keep something from the terminal or the line."""
    plain = unquote(text)
    return plain if plain.isprintable() else text

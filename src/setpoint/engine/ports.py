"""What the engine needs from outside, as protocols: store and clock. One contract suite covers each implementation."""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Final, Protocol, runtime_checkable

from setpoint.core.unstructured import GroupKind
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.durations import rfc3339
from setpoint.core.values.json_types import JsonObject
from setpoint.core.values.paths import Path
from setpoint.engine.resource import Resource, ResourceRef, Revision
from setpoint.engine.step.reports import HistoryEntry
from setpoint.errors import StoreError


@dataclass(frozen=True, slots=True)
class ResourceQuery:
    """A filter of resources: all that match every part that is given."""

    group: str | None = None
    kind: str | None = None
    namespace: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


EVERYTHING: Final = ResourceQuery()


@dataclass(frozen=True, slots=True)
class ResourceList:
    """Resources at one revision; a watch from it misses nothing and repeats nothing."""

    resources: tuple[Resource, ...]
    revision: Revision


class ResourceChangeType(StrEnum):
    """What happened to a resource."""

    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class ResourceChange:
    """A watch event: the change, the resource after it (before it, when deleted), and the revision to resume from.

    To a watch with labels, a resource that begins to match is added, and one that stops matching is deleted.
    """

    change: ResourceChangeType
    resource: Resource
    revision: Revision


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to act under `name` until `expires`, in seconds since 1970 by the clock's `now`: that of the caller.

    `fence` is the fencing token: it grows with each new holder, and never shrinks. A released lease has no holder.
    """

    name: str
    holder: str
    fence: int
    expires: float

    def is_held(self, now: str) -> bool:
        """Whether no other holder can acquire it at the time `now`."""
        return bool(self.holder) and datetime.fromisoformat(now).timestamp() < self.expires


@dataclass(frozen=True, slots=True)
class EventRecord:
    """An event of a resource, as `setpoint events` shows it."""

    ref: ResourceRef
    uid: str
    severity: str
    reason: str
    message: str
    at: str
    count: int = 1
    # Whether it tells of an edit that was carried out, which the status says at once: a store may record it later.
    is_routine: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class ChildWrite:
    """The write of one child of an owner: a new object, or a new document over the revision that was `seen`."""

    document: JsonObject
    seen: Resource | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceUpdate:
    """The parts of a resource that the engine writes: those to change; events and history to record with them.

    A part that is None stays as it is; an annotation that is None is removed.
    """

    status: JsonObject | None = None
    finalizers: tuple[str, ...] | None = None
    annotations: Mapping[str, str | None] | None = None
    events: Sequence[EventRecord] = ()
    history: Sequence[HistoryEntry] = ()


class Store(Protocol):
    """Where resources are kept. A write that was acknowledged survives kill -9.

    Every failure of the store is a StoreError; a mistake of an author is a UserError. A caller that is cancelled during
    a write does not learn the outcome: the write happened wholly, or not at all. No two calls share a document.
    """

    @property
    def collects(self) -> bool:
        """Whether the store collects garbage: a child is deleted once its owner is gone."""
        ...

    async def get(self, ref: ResourceRef) -> Resource | None:
        """The resource as it is now, or None; never a state older than one this process has written."""
        ...

    async def get_many(self, refs: Sequence[ResourceRef]) -> tuple[Resource | None, ...]:
        """Each of them as `get` returns it, in the same order; one read where the store has transactions."""
        ...

    async def refresh(self, refs: Sequence[ResourceRef]) -> None:
        """Reads these again where reads come from a cache: `get` returns nothing older than this call."""
        ...

    async def list(self, query: ResourceQuery = EVERYTHING) -> ResourceList:
        """All resources that match, sorted by ref."""
        ...

    def pages(self, query: ResourceQuery = EVERYTHING, size: int = 500) -> AsyncIterator[ResourceList]:
        """The same in pages of at most `size`: never all of it is in memory.

        Each page has the revision at which the first was read. A later page may show newer states; a watch from that
        revision misses nothing, and may repeat changes that a page had shown.
        """
        ...

    def watch(self, since: Revision, query: ResourceQuery = EVERYTHING) -> AsyncIterator[ResourceChange]:
        """Every change after `since`, in order, without an end. RevisionExpired when they are no longer kept.

        The first item raises it, or a later one for a watch that is too slow. After `close`, the next item is a
        StoreError.
        """
        ...

    async def apply(self, manifest: JsonObject) -> Resource:
        """The resource after the author's part (labels, annotations, everything but metadata and status) became this.

        Creates a resource that does not exist. Keeps status, finalizers, uid, the engine's annotations, and its owner
        references unless the manifest has some. A manifest without a change writes nothing, not even the revision; a
        new spec raises the generation. ManifestInvalid for a manifest that cannot be stored. NotReady while the
        resource is being deleted, unless only annotations or labels change: they may say how it is deleted.
        """
        ...

    async def create(self, document: JsonObject) -> Resource:
        """A new object of any kind, as its owner generates it: with its owner references, without a status.

        WriteConflict when one of that name exists; ManifestInvalid for an object that cannot be stored.
        """
        ...

    async def replace(self, seen: Resource, document: JsonObject) -> Resource:
        """The object that was `seen`, of any kind, with contents, labels, annotations and owner references of this one.

        Keeps status, finalizers and uid. WriteConflict as for `update`, ManifestInvalid as for `create`. A document
        without a change writes nothing, not even the revision.
        """
        ...

    async def write_children(self, writes: Sequence[ChildWrite]) -> tuple[Resource, ...]:
        """The children after these writes, in order: each is a `create`, or a `replace` of what was seen.

        One transaction where the store has transactions: all of them, or none. Elsewhere one after the other, up to
        the first that fails.
        """
        ...

    async def update(self, resource: Resource, update: ResourceUpdate) -> Resource | None:
        """The resource with the parts of `update` changed, and its events recorded.

        None when it was being deleted and its last finalizer is gone. Optimistic concurrency: WriteConflict when it
        has changed since `resource` was read. A part that says nothing new changes nothing, not even the revision.
        One commit and one revision where the store has transactions. Elsewhere metadata first, then the status; the
        events follow behind: what was written before a failure stays.

        An annotation belongs to its last writer: the engine's stay when an `apply` does not name them. StoreError for a
        new finalizer on a resource that is being deleted.
        """
        ...

    async def update_status(self, resource: Resource, status: JsonObject) -> Resource:
        """See `update`."""
        ...

    async def set_finalizers(self, resource: Resource, finalizers: tuple[str, ...]) -> Resource | None:
        """See `update`."""
        ...

    async def annotate(self, resource: Resource, annotations: Mapping[str, str | None]) -> Resource:
        """See `update`."""
        ...

    async def delete(self, ref: ResourceRef) -> Resource | None:
        """Marks a resource with finalizers for deletion, once; removes one without. Any kind. None when it is gone."""
        ...

    async def record_event(self, event: EventRecord) -> None:
        """Records an event; the same again (uid, reason, message) counts up and becomes the newest.

        Where a store has no transactions, events are written behind the work: none delays or fails a step, and one may
        be lost. `events` shows what was recorded before, and `close` writes it.

        Events outlive their resource; the oldest are dropped when there are too many.
        """
        ...

    async def events(self, ref: ResourceRef | None = None) -> tuple[EventRecord, ...]:
        """The recorded events, oldest first."""
        ...

    async def acquire(self, name: str, holder: str, seconds: float) -> Lease | None:
        """The lease, new or renewed; None while another holder has it."""
        ...

    async def release(self, lease: Lease) -> None:
        """Releases the lease, if it is still held by the same holder with the same fencing token."""
        ...

    async def leases(self, prefix: str) -> tuple[Lease, ...]:
        """Every lease whose name has this prefix, sorted by name: expired and released ones, too."""
        ...

    async def close(self) -> None:
        """Finishes pending writes and releases all resources of the process; idempotent."""
        ...


class DerivedStoreOperations(ABC):
    """The operations of a Store that follow from `get` and `update`: the same for every store."""

    __slots__ = ()

    @abstractmethod
    async def get(self, ref: ResourceRef) -> Resource | None:
        """See Store."""

    async def get_many(self, refs: Sequence[ResourceRef]) -> tuple[Resource | None, ...]:
        """See Store."""
        return tuple([await self.get(ref) for ref in refs])

    async def refresh(self, refs: Sequence[ResourceRef]) -> None:  # noqa: B027  # nothing to do without a cache
        """See Store."""

    @abstractmethod
    async def update(self, resource: Resource, update: ResourceUpdate) -> Resource | None:
        """See Store."""

    async def update_status(self, resource: Resource, status: JsonObject) -> Resource:
        """See Store."""
        return _still_there(await self.update(resource, ResourceUpdate(status=status)))

    async def set_finalizers(self, resource: Resource, finalizers: tuple[str, ...]) -> Resource | None:
        """See Store."""
        return await self.update(resource, ResourceUpdate(finalizers=finalizers))

    async def annotate(self, resource: Resource, annotations: Mapping[str, str | None]) -> Resource:
        """See Store."""
        return _still_there(await self.update(resource, ResourceUpdate(annotations=annotations)))


def _still_there(after: Resource | None) -> Resource:
    assert after is not None, "only an update of finalizers can remove a resource"
    return after


@runtime_checkable
class DryRunStore(Protocol):
    """A store that can dry-run an apply."""

    async def dry_run(self, manifest: JsonObject) -> Resource:
        """What `apply` would return or raise; nothing is written."""
        ...


@runtime_checkable
class FieldManagerStore(Protocol):
    """A store that knows which writer set a field of a resource."""

    async def field_manager(self, resource: Resource, path: Path) -> str:
        """The field manager that set the field at `path` last; empty where that is not known."""
        ...


async def field_manager_of(store: Store, resource: Resource, path: Path) -> str:
    """The field manager that set the field last; empty in a store that does not know."""
    return await store.field_manager(resource, path) if isinstance(store, FieldManagerStore) else ""


@runtime_checkable
class PartlyServedStore(Protocol):
    """A store that may lack kinds: a cluster serves a kind only once its CRD is installed."""

    @property
    def unserved(self) -> frozenset[GroupKind]:
        """The kinds that the last list or watch found no CRD of."""
        ...


def unserved_kinds(store: Store) -> frozenset[GroupKind]:
    """The kinds that the store lacks, as far as it has been read."""
    return store.unserved if isinstance(store, PartlyServedStore) else frozenset()


class DefinitionSource(Protocol):
    """The definitions of the kinds of a store, as a cluster serves them."""

    @property
    def outdated(self) -> Mapping[GroupKind, tuple[str, ...]]:
        """The kinds whose definition lacks fields of the status that the engine relies on, with these fields."""

    def is_record_dropped(self, ref: ResourceRef) -> bool:
        """Whether an outdated definition has dropped the record of a resource in a write: none is left to be lost."""

    def changes(self) -> AsyncIterator[frozenset[GroupKind]]:
        """The kinds whose definition has become outdated, or current, without an end."""


@runtime_checkable
class DefinedStore(Protocol):
    """A store whose kinds have definitions of their own, which may be of another version than this process."""

    definitions: DefinitionSource


def outdated_definition(kind: GroupKind, fields: Iterable[str]) -> str:
    """What is wrong with the definition of a kind that lacks these fields of the status, and the command that helps."""
    names = ", ".join(f"status.{name}" for name in fields)
    return (
        f"the CustomResourceDefinition of {kind[1]} is older than this process: the cluster drops {names}, where what "
        "was done is on record. Nothing is created or changed until it is updated: "
        f"`setpoint crds {kind[1]} | kubectl apply --server-side --force-conflicts -f -` does that"
    )


def not_served(kinds: Iterable[GroupKind]) -> StoreError:
    """The error about kinds that a cluster lacks, with the command that installs them."""
    names = sorted(kind for _, kind in kinds)
    return StoreError(
        f"the cluster does not serve {', '.join(names)}, for want of a CustomResourceDefinition: "
        f"`setpoint crds {' '.join(names)} | kubectl apply --server-side -f -` installs it"
    )


class Clock(Protocol):
    """The time; tests replace it."""

    def now(self) -> str:
        """The time as RFC 3339 text in UTC, to the second."""

    def monotonic(self) -> float:
        """Seconds that never run backwards."""

    async def sleep(self, seconds: float) -> None:
        """Returns after that long."""


# It continues while the machine sleeps, as leases do. Not every system has one.
_SINCE_BOOT: Final[int | None] = getattr(time, "CLOCK_BOOTTIME", None)


class SystemClock:
    """The time of this machine."""

    def now(self) -> str:
        """See Clock."""
        return rfc3339(int(time.time()))

    # See Clock. A function of C: a work queue reads the time three times for each key.
    monotonic = staticmethod(time.monotonic if _SINCE_BOOT is None else partial(time.clock_gettime, _SINCE_BOOT))

    async def sleep(self, seconds: float) -> None:
        """See Clock."""
        await asyncio.sleep(seconds)

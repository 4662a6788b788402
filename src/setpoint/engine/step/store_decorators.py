"""Decorators of stores: reads pass through, and every write passes one guard. The overlay store is for previews."""

from abc import abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from setpoint.core.unstructured import display_name
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.core.values.paths import Path
from setpoint.engine.ports import (
    EVERYTHING,
    ChildWrite,
    DerivedStoreOperations,
    EventRecord,
    Lease,
    ResourceChange,
    ResourceList,
    ResourceQuery,
    ResourceUpdate,
    Store,
    field_manager_of,
)
from setpoint.engine.resource import Resource, ResourceRef, Revision
from setpoint.errors import StoreError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StoreWrite:
    """A write to a store: its verb, the name of the resource or lease that it is about, and its content."""

    verb: str
    target: str
    body: Json = None


class GuardedWrites(DerivedStoreOperations):
    """The writes of a store, each through `guard`."""

    __slots__ = ()

    @abstractmethod
    async def guard(self, write: StoreWrite, send: Callable[[Store], Awaitable[T]]) -> T:
        """The result of `send` on the store behind; an error for a write that must not be sent."""

    async def apply(self, manifest: JsonObject) -> Resource:
        """See Store."""
        write = StoreWrite("apply", display_name(manifest), manifest)
        return await self.guard(write, lambda behind: behind.apply(manifest))

    async def create(self, document: JsonObject) -> Resource:
        """See Store."""
        write = StoreWrite("create", display_name(document), document)
        return await self.guard(write, lambda behind: behind.create(document))

    async def replace(self, seen: Resource, document: JsonObject) -> Resource:
        """See Store."""
        write = StoreWrite("replace", str(seen.ref), document)
        return await self.guard(write, lambda behind: behind.replace(seen, document))

    async def write_children(self, writes: Sequence[ChildWrite]) -> tuple[Resource, ...]:
        """See Store."""
        documents = [one.document for one in writes]
        write = StoreWrite("write_children", ", ".join(map(display_name, documents)), documents)
        return await self.guard(write, lambda behind: behind.write_children(writes))

    async def update(self, resource: Resource, update: ResourceUpdate) -> Resource | None:
        """See Store."""
        write = StoreWrite("update", str(resource.ref), _update_body(update))
        return await self.guard(write, lambda behind: behind.update(resource, update))

    async def delete(self, ref: ResourceRef) -> Resource | None:
        """See Store."""
        return await self.guard(StoreWrite("delete", str(ref)), lambda behind: behind.delete(ref))

    async def record_event(self, event: EventRecord) -> None:
        """See Store."""
        write = StoreWrite("record_event", str(event.ref), {"reason": event.reason, "message": event.message})
        await self.guard(write, lambda behind: behind.record_event(event))

    async def acquire(self, name: str, holder: str, seconds: float) -> Lease | None:
        """See Store."""
        return await self.guard(StoreWrite("acquire", name), lambda behind: behind.acquire(name, holder, seconds))

    async def release(self, lease: Lease) -> None:
        """See Store."""
        await self.guard(StoreWrite("release", lease.name), lambda behind: behind.release(lease))

    async def close(self) -> None:
        """The store behind stays open."""


def _update_body(update: ResourceUpdate) -> Json:
    metadata: dict[str, Json] = {} if update.finalizers is None else {"finalizers": list(update.finalizers)}
    if update.annotations is not None:
        metadata["annotations"] = dict(update.annotations)
    body: dict[str, Json] = {"metadata": metadata} if metadata else {}
    return body if update.status is None else {**body, "status": update.status}


class StoreDecorator(GuardedWrites):
    """A store over the store `behind` it: reads pass through, writes go through the guard."""

    __slots__ = ()

    behind: Store

    @property
    def collects(self) -> bool:
        """See Store."""
        return self.behind.collects

    async def get(self, ref: ResourceRef) -> Resource | None:
        """See Store."""
        return await self.behind.get(ref)

    async def refresh(self, refs: Sequence[ResourceRef]) -> None:
        """See Store."""
        await self.behind.refresh(refs)

    async def list(self, query: ResourceQuery = EVERYTHING) -> ResourceList:
        """See Store."""
        return await self.behind.list(query)

    def pages(self, query: ResourceQuery = EVERYTHING, size: int = 500) -> AsyncIterator[ResourceList]:
        """See Store."""
        return self.behind.pages(query, size)

    def watch(self, since: Revision, query: ResourceQuery = EVERYTHING) -> AsyncIterator[ResourceChange]:
        """See Store."""
        return self.behind.watch(since, query)

    async def events(self, ref: ResourceRef | None = None) -> tuple[EventRecord, ...]:
        """See Store."""
        return await self.behind.events(ref)

    async def leases(self, prefix: str) -> tuple[Lease, ...]:
        """See Store."""
        return await self.behind.leases(prefix)

    async def field_manager(self, resource: Resource, path: Path) -> str:
        """See FieldManagerStore."""
        return await field_manager_of(self.behind, resource, path)


@dataclass(frozen=True, slots=True)
class OverlayStore(StoreDecorator):
    """A store with some resources replaced: reads them first, then the store behind. Writes are refused."""

    behind: Store
    resources: Mapping[ResourceRef, Resource]

    async def get(self, ref: ResourceRef) -> Resource | None:
        """The replaced resource, or that of the store."""
        return self.resources.get(ref) or await self.behind.get(ref)

    async def guard(self, write: StoreWrite, send: Callable[[Store], Awaitable[T]]) -> T:
        """Refused."""
        raise StoreError(f"{write.verb}: a plan writes nothing, and this was about to")

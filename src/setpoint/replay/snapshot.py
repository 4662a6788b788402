"""The store, the environment variables and the clock at one point in time, for recording and for replay: read-only."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import field
from typing import Final

from setpoint.clients.write_guard import BlockedWrites
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.engine.ports import (
    EVERYTHING,
    EventRecord,
    Lease,
    ResourceChange,
    ResourceList,
    ResourceQuery,
    Store,
)
from setpoint.engine.resource import Resource, ResourceRef, Revision
from setpoint.engine.step.store_decorators import GuardedWrites, StoreWrite, T
from setpoint.errors import NotRecorded, StoreError

STORE_CHANNEL: Final = "store"


@dataclass(slots=True)
class StoreSnapshot(GuardedWrites):
    """The content of a store at one moment. An unlisted resource is read from `source` once, or is NotRecorded.

    `absent` are resources that were read and did not exist. `is_whole`: the list of the store is complete.
    """

    resources: dict[ResourceRef, Resource]
    revision: Revision
    blocked_writes: BlockedWrites
    collects: bool = False
    is_whole: bool = True
    absent: set[ResourceRef] = field(default_factory=set)
    # Resources that were read by name and not listed.
    unlisted: set[ResourceRef] = field(default_factory=set)
    source: Store | None = None

    async def get(self, ref: ResourceRef) -> Resource | None:
        """The resource at that moment."""
        found = self.resources.get(ref)
        if found is not None or ref in self.absent or self.is_whole:
            return found
        if self.source is None:
            raise NotRecorded(f"{ref} was not asked for when this world was recorded: record it again")
        found = await self.source.get(ref)
        if found is None:
            self.absent.add(ref)
        else:
            self.resources[ref] = found
            self.unlisted.add(ref)
        return found

    async def list(self, query: ResourceQuery = EVERYTHING) -> ResourceList:
        """The resources that the store listed at that moment."""
        found = (
            one for ref, one in sorted(self.resources.items()) if ref not in self.unlisted and _matches(one, query)
        )
        return ResourceList(tuple(found), self.revision)

    async def pages(self, query: ResourceQuery = EVERYTHING, size: int = 500) -> AsyncIterator[ResourceList]:
        """The list in pages."""
        whole = (await self.list(query)).resources
        for start in range(0, max(1, len(whole)), size):
            yield ResourceList(whole[start : start + size], self.revision)

    def watch(self, since: Revision, query: ResourceQuery = EVERYTHING) -> AsyncIterator[ResourceChange]:
        """StoreError: a snapshot does not change."""
        raise StoreError("a moment that is past does not change: there is nothing to watch")

    async def events(self, ref: ResourceRef | None = None) -> tuple[EventRecord, ...]:
        """None: events have no effect on a plan."""
        return ()

    async def leases(self, prefix: str) -> tuple[Lease, ...]:
        """None: no process runs on a snapshot."""
        return ()

    async def guard(self, write: StoreWrite, send: Callable[[Store], Awaitable[T]]) -> T:
        """Blocked."""
        raise self.blocked_writes.stop(STORE_CHANNEL, write.verb, write.target, write.body)


async def take_snapshot(store: Store, blocked_writes: BlockedWrites, *, is_whole: bool) -> StoreSnapshot:
    """The store as it is now; unlisted resources are read on demand."""
    listing = await store.list(EVERYTHING)
    resources = {one.ref: one for one in listing.resources}
    return StoreSnapshot(resources, listing.revision, blocked_writes, store.collects, is_whole, source=store)


def _matches(resource: Resource, query: ResourceQuery) -> bool:
    ref = resource.ref
    return (
        query.group in (None, ref.group)
        and query.kind in (None, ref.kind)
        and query.namespace in (None, ref.namespace)
        and all(resource.labels.get(key) == text for key, text in query.labels.items())
    )


@dataclass(frozen=True, slots=True)
class RecordingEnvironment(Mapping[str, str]):
    """An environment that records which variables are read, and their values."""

    source: Mapping[str, str] = field(repr=False)
    asked: dict[str, str | None]

    def __getitem__(self, name: str) -> str:
        self.asked[name] = self.source.get(name)
        return self.source[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.source)

    def __len__(self) -> int:
        return len(self.source)


@dataclass(frozen=True, slots=True)
class ReplayEnvironment(Mapping[str, str]):
    """The recorded environment; NotRecorded for a variable that was not read when it was recorded."""

    known: Mapping[str, str | None]

    def __getitem__(self, name: str) -> str:
        if name not in self.known:
            raise NotRecorded(f"the variable {name} was not asked for when this world was recorded: record it again")
        found = self.known[name]
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return (name for name, text in self.known.items() if text is not None)

    def __len__(self) -> int:
        return sum(text is not None for text in self.known.values())


@dataclass(frozen=True, slots=True)
class FixedClock:
    """A clock whose time is always `at`; the monotonic clock still runs."""

    at: str

    def now(self) -> str:
        """See Clock."""
        return self.at

    def monotonic(self) -> float:
        """See Clock."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """See Clock."""
        await asyncio.sleep(seconds)

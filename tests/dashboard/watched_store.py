"""A real store behind one that counts how often it is read as a whole, and can be made unreadable."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from setpoint.engine.context import EngineContext
from setpoint.engine.ports import EVERYTHING, Lease, ResourceChange, ResourceList, ResourceQuery, Store
from setpoint.engine.resource import Revision
from setpoint.engine.step.store_decorators import StoreDecorator, StoreWrite
from setpoint.errors import StoreError

T = TypeVar("T")


def _readable() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event


@dataclass(slots=True)
class WatchedStore(StoreDecorator):
    """Counts lists of everything. These, watches and leases are refused while it cannot be read; the rest is not."""

    behind: Store
    can_be_read: asyncio.Event = field(default_factory=_readable)
    listed: int = 0

    async def guard(self, _write: StoreWrite, send: Callable[[Store], Awaitable[T]]) -> T:
        return await send(self.behind)

    async def pages(self, query: ResourceQuery = EVERYTHING, size: int = 500) -> AsyncIterator[ResourceList]:
        self.listed += 1
        self._require_readable()
        async for page in self.behind.pages(query, size):
            yield page

    async def watch(self, since: Revision, query: ResourceQuery = EVERYTHING) -> AsyncIterator[ResourceChange]:
        self._require_readable()
        async for change in self.behind.watch(since, query):
            self._require_readable()
            yield change

    async def leases(self, prefix: str) -> tuple[Lease, ...]:
        self._require_readable()
        return await self.behind.leases(prefix)

    def _require_readable(self) -> None:
        if not self.can_be_read.is_set():
            raise StoreError("the cluster does not answer")


def watched(engine: EngineContext) -> tuple[EngineContext, WatchedStore]:
    """An engine on the same store, which is watched."""
    store = WatchedStore(engine.store)
    return replace(engine, store=store), store

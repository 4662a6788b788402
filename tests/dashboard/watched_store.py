"""A real store behind one that counts how often it is read as a whole, and can be made unreadable."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from setpoint.engine.context import EngineContext
from setpoint.engine.ports import EVERYTHING, ResourceList, ResourceQuery, Store
from setpoint.engine.step.store_decorators import StoreDecorator, StoreWrite
from setpoint.errors import StoreError

T = TypeVar("T")


def _readable() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event


@dataclass(slots=True)
class WatchedStore(StoreDecorator):
    """Everything passes through; lists of everything are counted, and refused while it cannot be read."""

    behind: Store
    can_be_read: asyncio.Event = field(default_factory=_readable)
    listed: int = 0

    async def guard(self, _write: StoreWrite, send: Callable[[Store], Awaitable[T]]) -> T:
        return await send(self.behind)

    async def pages(self, query: ResourceQuery = EVERYTHING, size: int = 500) -> AsyncIterator[ResourceList]:
        self.listed += 1
        if not self.can_be_read.is_set():
            raise StoreError("the cluster does not answer")
        async for page in self.behind.pages(query, size):
            yield page


def watched(engine: EngineContext) -> tuple[EngineContext, WatchedStore]:
    """An engine on the same store, which is watched."""
    store = WatchedStore(engine.store)
    return replace(engine, store=store), store

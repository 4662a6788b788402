"""The informer: lists a store, then watches it; keeps the index up to date and passes on every change once."""

import asyncio
import gc
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

from setpoint.engine.ports import EVERYTHING, Clock, ResourceChange, ResourceChangeType, ResourceQuery, Store
from setpoint.engine.requeue import error_backoff
from setpoint.engine.resource import Resource, ResourceRef, Revision
from setpoint.errors import RevisionExpired, StoreError
from setpoint.runtime.index import IndexEntry, ResourceIndex

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ResourceEvent:
    """A resource that changed. Without `before` it is new; without `after` it is no more."""

    ref: ResourceRef
    before: IndexEntry | None
    after: IndexEntry | None
    # Found by the list with which the process began.
    is_first: bool = False
    # Whose child it was, and is.
    owners: frozenset[ResourceRef] = frozenset()
    # Whether it is another's now, or nobody's any more.
    changed_hands: bool = False


ResourceEventHandler: TypeAlias = Callable[[ResourceEvent], None]


class Informer:
    """Keeps `heads` up to date with `store` while it runs; `listener` hears of every change once.

    A watch that breaks off is taken up where it ended; when the store does not know that place any more, everything
    is listed again, and what came, changed or went in between is told as if it had been watched.
    """

    def __init__(self, store: Store, heads: ResourceIndex, clock: Clock, listener: ResourceEventHandler) -> None:
        self._store = store
        self._heads = heads
        self._clock = clock
        self._listener = listener
        # Set once everything that was there has been heard of.
        self.synced = asyncio.Event()

    async def run(self, query: ResourceQuery = EVERYTHING) -> None:
        """Goes on until it is cancelled."""
        backoff, since = error_backoff(), None
        while True:
            try:
                since = await self._list(query) if since is None else since
                async for event in self._store.watch(since, query):
                    since, backoff = event.revision, error_backoff()
                    self._hear(event)
            except StoreError as error:
                if isinstance(error, RevisionExpired):
                    since = None
                delay = backoff.next()
                _log.warning("watch broke off", extra={"why": str(error), "seconds": round(delay, 3)})
                await self._clock.sleep(delay)

    async def _list(self, query: ResourceQuery) -> Revision:
        # What is read is let go at once: looking for cycles in it would cost more than the reading.
        gc.disable()
        try:
            return await self._list_all(query)
        finally:
            gc.enable()

    async def _list_all(self, query: ResourceQuery) -> Revision:
        # Of what is needed nothing may be on record here, and those that need it should hear all the same.
        gone = {*self._heads, *self._heads.needed}
        since = Revision("")
        async for page in self._store.pages(query):
            since = page.revision
            for resource in page.resources:
                gone.discard(resource.ref)
                self._put(resource, is_first=not self.synced.is_set())
            await asyncio.sleep(0)
        for ref in sorted(gone):
            self._drop(ref)
        self.synced.set()
        return since

    def _hear(self, event: ResourceChange) -> None:
        if event.change is ResourceChangeType.DELETED:
            self._drop(event.resource.ref)
        else:
            self._put(event.resource)

    def _put(self, resource: Resource, *, is_first: bool = False) -> None:
        ref, was = resource.ref, self._heads.owner_of(resource.ref)
        before, after = self._heads.put(resource)
        if before is None or before.revision != after.revision:
            owner = self._heads.owner_of(ref)
            self._listener(
                ResourceEvent(ref, before, after, is_first, _present((was, owner)), changed_hands=was != owner)
            )

    def _drop(self, ref: ResourceRef) -> None:
        owners = _present((self._heads.owner_of(ref),))
        before = self._heads.drop(ref)
        if before is not None or self._heads.dependants_of(ref):
            self._listener(ResourceEvent(ref, before, None, owners=owners))


def _present(owners: Iterable[ResourceRef | None]) -> frozenset[ResourceRef]:
    return frozenset(one for one in owners if one is not None)

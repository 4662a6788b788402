"""The informer: lists a store, then watches it; keeps the index up to date and passes on every change once."""

import asyncio
import gc
import logging
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.engine.ports import EVERYTHING, Clock, ResourceChange, ResourceChangeType, ResourceQuery, Store
from setpoint.engine.requeue import error_backoff
from setpoint.engine.resource import Resource, ResourceRef, Revision
from setpoint.errors import RevisionExpired, SetpointError, StoreError
from setpoint.runtime.index import IndexEntry, ResourceIndex

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ResourceEvent:
    """A change of a resource. Without `before` it is new; without `after` it is gone."""

    ref: ResourceRef
    before: IndexEntry | None
    after: IndexEntry | None
    # From the initial list.
    is_initial: bool = False
    # The owners before and after the change.
    owners: frozenset[ResourceRef] = frozenset()
    # Whether it has another owner now, or none any more.
    owner_changed: bool = False


ResourceEventHandler: TypeAlias = Callable[[ResourceEvent], None]


class Informer:
    """Keeps `index` up to date with `store` while it runs; `handler` is called once for every change.

    A watch that breaks is resumed at its last revision. When that revision has expired, everything is relisted, and
    the differences are passed on as if they had been watched.
    """

    def __init__(self, store: Store, index: ResourceIndex, clock: Clock, handler: ResourceEventHandler) -> None:
        self._store = store
        self._index = index
        self._clock = clock
        self._handler = handler
        # Set once the initial list is in the index.
        self.synced = asyncio.Event()

    async def run(self, query: ResourceQuery = EVERYTHING) -> None:
        """Runs until it is cancelled."""
        backoff, since = error_backoff(), None
        while True:
            try:
                since = await self._list(query) if since is None else since
                async for event in self._store.watch(since, query):
                    since = event.revision
                    backoff.reset()
                    self._handle_change(event)
            except StoreError as error:
                if isinstance(error, RevisionExpired):
                    since = None
                delay = backoff.next()
                _log.warning("watch broke off", extra={"why": str(error), "seconds": round(delay, 3)})
                await self._clock.sleep(delay)

    async def _list(self, query: ResourceQuery) -> Revision:
        # The pages are dropped at once: garbage collection would cost more than reading them.
        gc.disable()
        try:
            return await self._list_all(query)
        finally:
            gc.enable()

    async def _list_all(self, query: ResourceQuery) -> Revision:
        # A referenced resource may never have been in the index, and its dependants get the event all the same.
        gone = {*self._index, *self._index.referenced}
        since = Revision("")
        async for page in self._store.pages(query):
            since = page.revision
            for resource in page.resources:
                gone.discard(resource.ref)
                self._put(resource, is_initial=not self.synced.is_set())
            await asyncio.sleep(0)
        for ref in sorted(gone):
            self._drop(ref)
        self.synced.set()
        return since

    def _handle_change(self, event: ResourceChange) -> None:
        if event.change is ResourceChangeType.DELETED:
            self._drop(event.resource.ref)
        else:
            self._put(event.resource)

    def _put(self, resource: Resource, *, is_initial: bool = False) -> None:
        ref, was = resource.ref, self._index.owner_of(resource.ref)
        try:
            before, after = self._index.put(resource)
        except SetpointError as error:
            # One resource that cannot be summed up must not stop all others.
            _log.warning("resource left out", extra={"ref": str(ref), "why": str(error)})
            self._drop(ref)
            return
        if before is None or before.revision != after.revision:
            owner = self._index.owner_of(ref)
            self._handler(
                ResourceEvent(ref, before, after, is_initial, _present((was, owner)), owner_changed=was != owner)
            )

    def _drop(self, ref: ResourceRef) -> None:
        owners = _present((self._index.owner_of(ref),))
        before = self._index.drop(ref)
        if before is not None or self._index.dependants_of(ref):
            self._handler(ResourceEvent(ref, before, None, owners=owners))


def _present(owners: Iterable[ResourceRef | None]) -> frozenset[ResourceRef]:
    return frozenset([one for one in owners if one is not None])

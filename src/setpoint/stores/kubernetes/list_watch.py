"""List and watch over several kinds: paged lists, and one stream of events that ends when any of its watches fails."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from itertools import count
from typing import Final, NamedTuple

import msgspec
from msgspec import Raw

from setpoint.clients.kubernetes.client import KubernetesClient, ObjectPage
from setpoint.clients.kubernetes.requests import PageRequest, Representation
from setpoint.clients.kubernetes.watch import WatchEvent, WatchEventType, watch
from setpoint.core.unstructured import GroupKind
from setpoint.engine.ports import EVERYTHING, Clock, ResourceChange, ResourceList, ResourceQuery, not_served
from setpoint.engine.ports import ResourceChangeType as StoreChange
from setpoint.engine.resource import Resource, ResourceRef, Revision
from setpoint.errors import KindNotServed, RemoteExpired, StoreError
from setpoint.stores.kubernetes.bookmarks import to_revision
from setpoint.stores.kubernetes.cache import ObjectCache, OwnWrites
from setpoint.stores.kubernetes.errors import store_errors
from setpoint.stores.kubernetes.objects import ClusterResource, ObjectState, decode_object
from setpoint.stores.kubernetes.served_kinds import ClusterScope, ServedKind, UnservedKinds, selection_for

_SLICE_SIZE: Final = 16
# The position of a kind without a CRD: a watch from there shows all objects, once there is one.
_UNSERVED: Final = "0"
_UNSERVED_PAGE: Final = ObjectPage((), _UNSERVED, "", is_first=True)
# How often a watch asks whether a missing CRD is there.
_UNSERVED_SECONDS: Final = 5.0


class MultiKindLister:
    """Lists several kinds, and puts the objects into `cache` if there is one."""

    def __init__(
        self,
        client: KubernetesClient,
        cluster_scope: ClusterScope,
        cache: ObjectCache | None,
        unserved: UnservedKinds,
    ) -> None:
        self._client = client
        self._scope = cluster_scope
        self._cache = cache
        self._unserved = unserved

    async def whole(self, query: ResourceQuery) -> ResourceList:
        """Everything in one list, sorted."""
        found: list[Resource] = []
        revision = None
        async with aclosing(self.pages(query, 500)) as pages:
            async for page in pages:
                found += page.resources
                revision = page.revision
        assert revision is not None
        return ResourceList(tuple(sorted(found, key=lambda one: one.ref)), revision)

    async def pages(self, query: ResourceQuery, size: int) -> AsyncGenerator[ResourceList, None]:
        """Page by page, kind by kind. The first page of each kind is read before any is returned, for the bookmark."""
        kinds = self._scope.kinds_for(query)
        # From before the list: changes that a later page shows are repeated by a watch from here.
        firsts = await self._first_pages(kinds, query, size)
        revision = to_revision({kind.name: page.resource_version for kind, page in zip(kinds, firsts, strict=True)})
        if self._cache is not None and query == EVERYTHING:
            self._cache.restart(kind.name for kind in kinds)
        if not kinds:
            yield ResourceList((), revision)
        for kind in kinds:
            page, cache = firsts.pop(0), self._cache_for(kind)
            while True:
                for some in _slices(page):
                    yield ResourceList(tuple(_resource(item, kind, cache) for item in some), revision)
                if not page.token:
                    break
                page = await self._next_page(kind, query, page.next_page)

    async def _first_pages(self, kinds: Sequence[ServedKind], query: ResourceQuery, size: int) -> list[ObjectPage]:
        """The first page of each: an empty one where the cluster lacks the CRD.

        StoreError where it lacks all; a process that watches goes on, and waits for them.
        """
        found = await asyncio.gather(*(self._first_page(kind, query, size) for kind in kinds))
        if self._cache is None and kinds and all(one is _UNSERVED_PAGE for one in found):
            raise not_served(kind.name for kind in kinds)
        return found

    async def _first_page(self, kind: ServedKind, query: ResourceQuery, size: int) -> ObjectPage:
        try:
            found = await self._page(kind, query, PageRequest(size))
        except KindNotServed:
            if not kind.is_optional:
                raise
            self._unserved.add(kind)
            return _UNSERVED_PAGE
        self._unserved.remove(kind)
        return found

    async def _next_page(self, kind: ServedKind, query: ResourceQuery, paging: PageRequest) -> ObjectPage:
        """The next page; all of the kind on one page when the continue token has expired."""
        try:
            return await self._page(kind, query, paging)
        except RemoteExpired:
            return await self._page(kind, query, PageRequest(0))

    async def _page(self, kind: ServedKind, query: ResourceQuery, paging: PageRequest) -> ObjectPage:
        endpoint = kind.all_in(self._scope.place(query))
        return await self._client.list(endpoint, selection_for(query, kind.form), paging)

    def _cache_for(self, kind: ServedKind) -> ObjectCache | None:
        return self._cache if kind.name in self._scope.cached else None


def _resource(item: Raw, kind: ServedKind, cache: ObjectCache | None) -> Resource:
    kept = decode_object(item, kind.api_version, kind.kind)
    if cache is not None:
        cache.put(kept)
    return ClusterResource(kept)


def _slices(page: ObjectPage) -> Iterator[Sequence[Raw]]:
    """At least one slice. The memory of a slice is freed before the next is decoded."""
    return (page.items[start : start + _SLICE_SIZE] for start in range(0, max(1, len(page.items)), _SLICE_SIZE))


# How many events are buffered: beyond that the API server has to wait.
_MAX_BUFFERED: Final = 1_000
_EVENTS_BEFORE_YIELD: Final = 32
CLOSED: Final = "the store is closed: open it again"
_CHANGES: Final = {
    WatchEventType.ADDED: StoreChange.ADDED,
    WatchEventType.MODIFIED: StoreChange.MODIFIED,
    WatchEventType.DELETED: StoreChange.DELETED,
}


class KindEvent(NamedTuple):
    """One event of one kind; without an object it is a bookmark."""

    kind: GroupKind
    at: str
    change: StoreChange | None = None
    resource: ClusterResource | None = None


class MultiKindWatch:
    """One watch over several kinds: a task for each. A kind without a CRD is watched once it has one."""

    def __init__(
        self,
        client: KubernetesClient,
        cluster_scope: ClusterScope,
        query: ResourceQuery,
        unserved: UnservedKinds,
        clock: Clock,
        written: OwnWrites,
    ) -> None:
        self._client = client
        self._written = written
        self._scope = cluster_scope
        self._query = query
        self._unserved = unserved
        self._clock = clock
        self._events: asyncio.Queue[KindEvent | BaseException] = asyncio.Queue(_MAX_BUFFERED)
        self._is_closed = False
        self._tasks: tuple[asyncio.Task[None], ...] = ()

    async def close(self) -> None:
        """Ends the watches; the next read of `events` raises StoreError."""
        self._is_closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._events.empty():
            # A waiting reader is woken as well.
            self._events.put_nowait(StoreError(CLOSED))

    async def events(
        self, positions: Mapping[GroupKind, str]
    ) -> AsyncGenerator[tuple[ResourceChange, ObjectState], None]:
        """Every change after these positions, without an end, each with the state of its object."""
        at = dict(positions)
        self._tasks = tuple(
            asyncio.create_task(self._follow(kind, at[kind.name])) for kind in self._scope.kinds_for(self._query)
        )
        try:
            for number in count(1):
                event = await self._next()
                at[event.kind] = event.at
                if event.resource is not None and event.change is not None:
                    yield ResourceChange(event.change, event.resource, to_revision(at)), event.resource.kept
                if number % _EVENTS_BEFORE_YIELD == 0:
                    # While events are buffered, reading never awaits: without this, other tasks would starve.
                    await asyncio.sleep(0)
        finally:
            await self.close()

    async def _next(self) -> KindEvent:
        found = await self._events.get()
        if self._is_closed:
            raise StoreError(CLOSED)
        if isinstance(found, BaseException):
            raise found
        return found

    async def _follow(self, kind: ServedKind, since: str) -> None:
        try:
            with store_errors():
                while True:
                    if since == _UNSERVED and kind.is_optional:
                        await self._until_served(kind)
                    await self._follow_served(kind, since)
                    since = _UNSERVED
        except Exception as error:  # noqa: BLE001 - raised in the reader
            await self._events.put(error)

    async def _follow_served(self, kind: ServedKind, since: str) -> None:
        """Returns when the CRD of an optional kind is gone."""
        endpoint = kind.all_in(self._scope.place(self._query))
        events = watch(self._client, endpoint, since, selection_for(self._query, kind.form))
        try:
            async with aclosing(events):
                async for event in events:
                    await self._events.put(_kind_event(event, kind, self._written))
        except KindNotServed:
            if not kind.is_optional:
                raise

    async def _until_served(self, kind: ServedKind) -> None:
        endpoint = kind.all_in(self._scope.place(self._query))
        while True:
            try:
                await self._client.list(endpoint, selection_for(self._query, kind.form), PageRequest(1))
            except KindNotServed:
                self._unserved.add(kind)
            else:
                self._unserved.remove(kind)
                return
            await self._clock.sleep(_UNSERVED_SECONDS)


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str


class _Bookmark(msgspec.Struct):
    metadata: _Metadata


class _Identity(_Metadata):
    name: str
    uid: str
    namespace: str = ""


class _Identified(msgspec.Struct):
    metadata: _Identity


_bookmarks: Final = msgspec.json.Decoder(_Bookmark)
_identities: Final = msgspec.json.Decoder(_Identified)


def _kind_event(event: WatchEvent, kind: ServedKind, written: OwnWrites) -> KindEvent:
    change = _CHANGES.get(event.type)
    if change is None:
        return KindEvent(kind.name, _bookmarks.decode(event.object).metadata.resource_version)
    if change is StoreChange.DELETED or kind.form is not Representation.WHOLE:
        resource = ClusterResource(decode_object(event.object, kind.api_version, kind.kind))
    else:
        resource = decode_written(event.object, kind, written)
    return KindEvent(kind.name, resource.revision, change, resource)


def decode_written(raw: bytes | Raw, kind: ServedKind, written: OwnWrites) -> ClusterResource:
    """The object in the answer to a write, or in an event; decoded unless the other of the two has shown this state."""
    try:
        found = _identities.decode(raw).metadata
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ClusterResource(decode_object(raw, kind.api_version, kind.kind))
    ref = ResourceRef(kind.group, kind.kind, found.namespace, found.name)
    known = written.take(ref, found.uid, Revision(found.resource_version)) if written.expects(ref) else None
    if known is None:
        known = ClusterResource(decode_object(raw, kind.api_version, kind.kind))
        written.shown(known)
    return known

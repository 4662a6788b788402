"""Watches of several kinds as one: whatever happens first is told first, and one that fails ends them all."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from itertools import count
from typing import Final, NamedTuple

import msgspec

from setpoint.clients.kube_watch import Change, WatchEvent, watch
from setpoint.clients.kubernetes import KubernetesClient
from setpoint.engine.ports import Change as StoreChange
from setpoint.engine.ports import Event, Query
from setpoint.errors import StoreError
from setpoint.stores.kubernetes.objects import ClusterResource, Kept, kept_from
from setpoint.stores.kubernetes.positions import KindName, to_revision
from setpoint.stores.kubernetes.refusals import store_errors
from setpoint.stores.kubernetes.served import ServedKind, Territory, selection_for

# How many events may wait to be heard: beyond that the cluster has to wait.
_AHEAD: Final = 1_000
_IN_A_ROW: Final = 32
CLOSED: Final = "the store is closed: open it again"
_CHANGES: Final = {
    Change.ADDED: StoreChange.ADDED,
    Change.MODIFIED: StoreChange.MODIFIED,
    Change.DELETED: StoreChange.DELETED,
}


class Told(NamedTuple):
    """One change of one kind; without an object it says only how far that kind has been told."""

    kind: KindName
    at: str
    change: StoreChange | None = None
    kept: Kept | None = None


class Following:
    """The watches behind one watcher."""

    def __init__(self, client: KubernetesClient, territory: Territory, query: Query) -> None:
        self._client = client
        self._territory = territory
        self._query = query
        self._news: asyncio.Queue[Told | BaseException] = asyncio.Queue(_AHEAD)
        self._is_closed = False
        self._tasks: tuple[asyncio.Task[None], ...] = ()

    async def close(self) -> None:
        """Ends the watches; the next step of whoever follows is a StoreError."""
        self._is_closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._news.empty():
            # Whoever waits is to hear of it as well.
            self._news.put_nowait(StoreError(CLOSED))

    async def events(self, positions: Mapping[KindName, str]) -> AsyncGenerator[tuple[Event, Kept], None]:
        """Every change after these positions, without an end, with the bytes that it came in."""
        at = dict(positions)
        self._tasks = tuple(
            asyncio.create_task(self._follow(kind, at[kind.name])) for kind in self._territory.asked_for(self._query)
        )
        try:
            for number in count(1):
                told = await self._next()
                at[told.kind] = told.at
                if told.kept is not None and told.change is not None:
                    yield Event(told.change, ClusterResource(told.kept), to_revision(at)), told.kept
                if number % _IN_A_ROW == 0:
                    # While there is news nobody has to wait for it: others would never have their turn.
                    await asyncio.sleep(0)
        finally:
            await self.close()

    async def _next(self) -> Told:
        found = await self._news.get()
        if self._is_closed:
            raise StoreError(CLOSED)
        if isinstance(found, BaseException):
            raise found
        return found

    async def _follow(self, kind: ServedKind, since: str) -> None:
        endpoint = kind.all_in(self._territory.place(self._query))
        try:
            with store_errors():
                events = watch(self._client, endpoint, since, selection_for(self._query, kind.form))
                async with aclosing(events):
                    async for event in events:
                        await self._news.put(_told(event, kind))
        except Exception as error:  # noqa: BLE001 - whoever follows has to hear of it
            await self._news.put(error)


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str


class _Bookmark(msgspec.Struct):
    metadata: _Metadata


_bookmarks: Final = msgspec.json.Decoder(_Bookmark)


def _told(event: WatchEvent, kind: ServedKind) -> Told:
    change = _CHANGES.get(event.change)
    if change is None:
        return Told(kind.name, _bookmarks.decode(event.object).metadata.resource_version)
    kept = kept_from(event.object, kind.api_version, kind.kind)
    return Told(kind.name, kept.revision, change, kept)

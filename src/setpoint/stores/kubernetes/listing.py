"""Lists of several kinds, each as of one moment, in pieces or whole."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from typing import Final

from msgspec import Raw

from setpoint.clients.kube_endpoints import Paging
from setpoint.clients.kube_pages import Page
from setpoint.clients.kubernetes import KubernetesClient
from setpoint.engine.ports import EVERYTHING, Listing, Query
from setpoint.engine.resource import Resource
from setpoint.errors import RemoteExpired
from setpoint.stores.kubernetes.cache import Cache
from setpoint.stores.kubernetes.objects import ClusterResource, kept_from
from setpoint.stores.kubernetes.positions import to_revision
from setpoint.stores.kubernetes.served import ServedKind, Territory, selection_for

_AT_ONCE: Final = 16


class Lister:
    """Lists for a store, which keeps what it shows in `cache` if it has one."""

    def __init__(self, client: KubernetesClient, territory: Territory, cache: Cache | None) -> None:
        self._client = client
        self._territory = territory
        self._cache = cache

    async def whole(self, query: Query) -> Listing:
        """All at once, sorted."""
        found: list[Resource] = []
        revision = None
        async with aclosing(self.pages(query, 500)) as pages:
            async for page in pages:
                found += page.resources
                revision = page.revision
        assert revision is not None
        return Listing(tuple(sorted(found, key=lambda one: one.ref)), revision)

    async def pages(self, query: Query, size: int) -> AsyncGenerator[Listing, None]:
        """Kind by kind. The first piece of each is read before any is shown: only then is it known where all stand."""
        kinds = self._territory.asked_for(query)
        # As they are when this began: what a later piece shows anew is told again by a watch from here.
        firsts = list(await asyncio.gather(*(self._page(kind, query, Paging(size)) for kind in kinds)))
        revision = to_revision({kind.name: page.resource_version for kind, page in zip(kinds, firsts, strict=True)})
        if self._cache is not None and query == EVERYTHING:
            self._cache.restart(kind.name for kind in kinds)
        if not kinds:
            yield Listing((), revision)
        for kind in kinds:
            page, cache = firsts.pop(0), self._cache_for(kind)
            while True:
                for some in _in_parts(page):
                    yield Listing(tuple(_resource(item, kind, cache) for item in some), revision)
                if not page.token:
                    break
                page = await self._next_page(kind, query, Paging(size, page.token))

    async def _next_page(self, kind: ServedKind, query: Query, paging: Paging) -> Page:
        """When the page before was too long ago: all of the kind, on one page."""
        try:
            return await self._page(kind, query, paging)
        except RemoteExpired:
            return await self._page(kind, query, Paging(0))

    async def _page(self, kind: ServedKind, query: Query, paging: Paging) -> Page:
        endpoint = kind.all_in(self._territory.place(query))
        return await self._client.list(endpoint, selection_for(query, kind.form), paging)

    def _cache_for(self, kind: ServedKind) -> Cache | None:
        return self._cache if kind.name in self._territory.cached else None


def _resource(item: Raw, kind: ServedKind, cache: Cache | None) -> Resource:
    kept = kept_from(item, kind.api_version, kind.kind)
    if cache is not None:
        cache.put(kept)
    return ClusterResource(kept)


def _in_parts(page: Page) -> Iterator[Sequence[Raw]]:
    """One at least. What a part was decoded into is let go before the next is, and its place used again."""
    return (page.items[start : start + _AT_ONCE] for start in range(0, max(1, len(page.items)), _AT_ONCE))

"""Changes are heard, whatever becomes of the API server."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from setpoint.engine.kind import Location, ResolvedReferences
from tests.cluster.objects.object_harness import Site, config_map, environment
from tests.cluster.server import Cluster

PATIENCE = 240.0


async def heard_until(site: Site, wanted: Location, do: list[object]) -> list[Location | None]:
    """All that is heard until `wanted`; after the first of it, `do` is done."""
    kind, found = site.kind, []
    async with asyncio.timeout(PATIENCE), aclosing(kind.changes(kind.watch_topic(wanted))) as changes:
        async for where in changes:
            found.append(where)
            while do:
                work = do.pop(0)
                assert callable(work)
                await asyncio.to_thread(work)
            if where == wanted:
                break
    return found


def location(site: Site, name: str = "one") -> Location:
    resource = site.run(site.store.get(site.ref(name)))
    assert resource is not None
    return site.kind.locate(resource, ResolvedReferences())


def test_a_change_is_heard_with_its_place(site: Site) -> None:
    site.settle(config_map(a="1"))
    place = location(site)

    def change() -> None:
        site.access.call("POST", site.path("configmaps"), config_map("other"))
        site.edit(site.path("configmaps", "map"), {"data": {"a": "2"}})

    found = site.run(heard_until(site, place, [change]))

    assert found == [None, Location(place.replace("/map ", "/other ")), place]


def test_hears_on_after_the_api_server_was_gone(own_api_server: Cluster) -> None:
    access = own_api_server.access
    site = Site(access, access.new_namespace(), environment(access.kubeconfig))
    site.settle(config_map(a="1"))
    place = location(site)

    async def hears_on() -> None:
        kind = site.kind
        async with asyncio.timeout(PATIENCE), aclosing(kind.changes(kind.watch_topic(place))) as changes:
            assert await anext(changes) is None
            await asyncio.to_thread(site.edit, site.path("configmaps", "map"), {"data": {"a": "before"}})
            assert await anext(changes) == place
            await asyncio.to_thread(own_api_server.restart_api_server)
            # What is too long ago for a new server is told by None; from there on all is heard.
            heard = asyncio.ensure_future(_until(changes, place))
            count = 0
            while not heard.done():
                count += 1
                await asyncio.to_thread(site.edit, site.path("configmaps", "map"), {"data": {"a": str(count)}})
                await asyncio.wait((heard,), timeout=0.2)
            await heard

    site.run(hears_on())
    site.close()


async def _until(changes: AsyncGenerator[Location | None, None], wanted: Location) -> None:
    async for where in changes:
        if where == wanted:
            return


def test_a_kind_that_comes_later_is_heard(site: Site) -> None:
    site.settle(config_map(a="1"))
    place = Location(location(site).replace("v1 ConfigMap", "example.com/v1 Gizmo"))

    async def none_comes() -> bool:
        kind = site.kind
        async with aclosing(kind.changes(kind.watch_topic(place))) as changes:
            try:
                async with asyncio.timeout(0.5):
                    await anext(changes)
            except TimeoutError:
                return True
        return False

    assert site.run(none_comes())

"""Changes are received, whatever becomes of the API server."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from setpoint.engine.kind import Location, ResolvedReferences
from tests.cluster.objects.object_harness import ObjectHarness, config_map, environment
from tests.cluster.server import Cluster

TIMEOUT = 240.0


async def events_until(harness: ObjectHarness, wanted: Location, do: list[object]) -> list[Location | None]:
    """All that is received until `wanted`; after the first of it, `do` is done."""
    kind, found = harness.kind, []
    async with asyncio.timeout(TIMEOUT), aclosing(kind.changes(kind.watch_topic(wanted))) as changes:
        async for where in changes:
            found.append(where)
            while do:
                work = do.pop(0)
                assert callable(work)
                await asyncio.to_thread(work)
            if where == wanted:
                break
    return found


def location(harness: ObjectHarness, name: str = "one") -> Location:
    resource = harness.run(harness.store.get(harness.ref(name)))
    assert resource is not None
    return harness.kind.locate(resource, ResolvedReferences())


def test_a_change_is_heard_with_its_place(harness: ObjectHarness) -> None:
    harness.settle(config_map(a="1"))
    location_of_map = location(harness)

    def change() -> None:
        harness.access.call("POST", harness.path("configmaps"), config_map("other"))
        harness.edit(harness.path("configmaps", "map"), {"data": {"a": "2"}})

    found = harness.run(events_until(harness, location_of_map, [change]))

    assert found == [None, Location(location_of_map.replace("/map ", "/other ")), location_of_map]


def test_hears_on_after_the_api_server_was_gone(own_api_server: Cluster) -> None:
    access = own_api_server.access
    harness = ObjectHarness(access, access.new_namespace(), environment(access.kubeconfig))
    harness.settle(config_map(a="1"))
    location_of_map = location(harness)

    async def watch_across_restart() -> None:
        kind = harness.kind
        async with asyncio.timeout(TIMEOUT), aclosing(kind.changes(kind.watch_topic(location_of_map))) as changes:
            assert await anext(changes) is None
            await asyncio.to_thread(harness.edit, harness.path("configmaps", "map"), {"data": {"a": "before"}})
            assert await anext(changes) == location_of_map
            await asyncio.to_thread(own_api_server.restart_api_server)
            # What is too long ago for a new server is told by None; from there on all is received.
            received = asyncio.ensure_future(_until(changes, location_of_map))
            count = 0
            while not received.done():
                count += 1
                await asyncio.to_thread(harness.edit, harness.path("configmaps", "map"), {"data": {"a": str(count)}})
                await asyncio.wait((received,), timeout=0.2)
            await received

    harness.run(watch_across_restart())
    harness.close()


async def _until(changes: AsyncGenerator[Location | None, None], wanted: Location) -> None:
    async for where in changes:
        if where == wanted:
            return


def test_a_kind_that_comes_later_is_heard(harness: ObjectHarness) -> None:
    harness.settle(config_map(a="1"))
    location_of_map = Location(location(harness).replace("v1 ConfigMap", "example.com/v1 Gizmo"))

    async def is_silent() -> bool:
        kind = harness.kind
        async with aclosing(kind.changes(kind.watch_topic(location_of_map))) as changes:
            try:
                async with asyncio.timeout(0.5):
                    await anext(changes)
            except TimeoutError:
                return True
        return False

    assert harness.run(is_silent())

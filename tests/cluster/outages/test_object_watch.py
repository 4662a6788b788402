"""A remote watch of objects during an outage of the API server."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from setpoint.engine.kind import Location
from tests.cluster.objects.object_harness import ObjectHarness, config_map, environment
from tests.cluster.server import Cluster

TIMEOUT = 240.0


def test_changes_are_received_after_the_api_server_was_restarted(outage_server: Cluster) -> None:
    access = outage_server.access
    harness = ObjectHarness(access, access.new_namespace(), environment(access.kubeconfig))
    harness.settle(config_map(a="1"))
    path, location = harness.path("configmaps", "map"), harness.location()

    async def watch_across_restart() -> None:
        kind = harness.kind
        async with asyncio.timeout(TIMEOUT), aclosing(kind.changes(kind.watch_topic(location))) as changes:
            assert await anext(changes) is None
            await asyncio.to_thread(harness.edit, path, {"data": {"a": "before"}})
            assert await anext(changes) == location
            await asyncio.to_thread(outage_server.restart_api_server)
            # Until the watch is resumed or started anew, edits may be missed: None says so.
            received = asyncio.ensure_future(_until(changes, location))
            count = 0
            while not received.done():
                count += 1
                await asyncio.to_thread(harness.edit, path, {"data": {"a": str(count)}})
                await asyncio.wait((received,), timeout=0.2)
            await received

    harness.run(watch_across_restart())
    harness.close()


async def _until(changes: AsyncGenerator[Location | None, None], wanted: Location) -> None:
    async for location in changes:
        if location == wanted:
            return

"""Remote watches of objects: changes are received with their locations."""

import asyncio
import secrets
from contextlib import aclosing

from setpoint.engine.kind import Location
from tests.clients.api_server_client import definition
from tests.cluster.objects.object_harness import ObjectHarness, config_map

TIMEOUT = 240.0
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def test_a_change_is_received_with_its_location(harness: ObjectHarness) -> None:
    harness.settle(config_map(a="1"))
    location = harness.location()

    def change() -> None:
        harness.access.call("POST", harness.path("configmaps"), config_map("other"))
        harness.edit(harness.path("configmaps", "map"), {"data": {"a": "2"}})

    async def received() -> list[Location | None]:
        kind = harness.kind
        async with asyncio.timeout(TIMEOUT), aclosing(kind.changes(kind.watch_topic(location))) as changes:
            first = await anext(changes)
            await asyncio.to_thread(change)
            return [first, await anext(changes), await anext(changes)]

    # None: what changed before the watch is not known.
    assert harness.run(received()) == [None, Location(location.replace("/map ", "/other ")), location]


def test_a_kind_that_is_defined_later_is_watched(harness: ObjectHarness) -> None:
    group = f"g{secrets.token_hex(4)}.example.com"
    harness.settle(config_map(a="1"))
    location = Location(harness.location().replace("v1 ConfigMap", f"{group}/v1 Gizmo"))
    requests = harness.requests()

    async def first_event() -> Location | None:
        kind = harness.kind
        async with asyncio.timeout(TIMEOUT), aclosing(kind.changes(kind.watch_topic(location))) as changes:
            first = asyncio.ensure_future(anext(changes))
            while harness.requests() == requests:
                await asyncio.sleep(0.01)
            assert not first.done()
            await asyncio.to_thread(harness.access.call, "POST", DEFINITIONS, definition(group, "gizmos", "Gizmo"))
            return await first

    assert harness.run(first_event()) is None
    harness.access.call("DELETE", f"{DEFINITIONS}/gizmos.{group}")

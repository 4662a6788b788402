"""What does not depend on each other is asked for at once, and shown in its order."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import setpoint
from setpoint.library.inspection.live_import import ImportQuery
from setpoint.localcloud.cloud import CloudRequest
from setpoint.localcloud.faults import AddLatency
from setpoint.localcloud.server import LocalCloud
from tests.library.fleets import FLEET_PROJECT, fleet
from tests.library.worlds import DEADLINE, World, bucket, until

T = TypeVar("T")


class CountedCloud(LocalCloud):
    """A local cloud that counts the requests that have arrived."""

    arrived = 0

    def latency(self, request: CloudRequest) -> float:
        self.arrived += 1
        return super().latency(request)


@asynccontextmanager
async def _counted_cloud() -> AsyncIterator[CountedCloud]:
    async with asyncio.timeout(DEADLINE), CountedCloud() as cloud:
        yield cloud


def _open(cloud: CountedCloud) -> setpoint.Session:
    """A session on a new store in memory."""
    world = World(cloud)
    return world.open(environment={**world.environment, "SETPOINT_GOOGLE_ENDPOINT": cloud.url})


async def _while_none_is_answered(cloud: CountedCloud, call: Callable[[], Awaitable[T]], requests: int) -> T:
    """What a call returns, which sends so many requests before the first of them is answered."""
    cloud.clock.hold()
    cloud.inject(AddLatency(3600.0))
    cloud.arrived = 0
    task = asyncio.ensure_future(call())
    await until(lambda: cloud.arrived == requests)
    cloud.faults.clear()
    cloud.advance(3600.0)
    cloud.clock.release()
    return await task


def test_a_plan_asks_for_many_objects_at_once() -> None:
    asyncio.run(_plan())


async def _plan() -> None:
    # Fewer than are listed together.
    buckets = [bucket(f"logs-{number}") for number in range(8)]
    async with _counted_cloud() as cloud, _open(cloud) as session:
        planned = await _while_none_is_answered(cloud, lambda: session.plan(*buckets), len(buckets))

    names = [one["metadata"]["name"] for one in buckets]
    assert [(one.ref.name, one.outcome.value) for one in planned] == [(name, "create") for name in names]


def test_an_import_asks_for_many_lists_at_once() -> None:
    asyncio.run(_import())


async def _import() -> None:
    kinds = ("PubSubTopic", "StorageBucket", "SQLDatabase", "ComputeNetwork")
    async with _counted_cloud() as cloud:
        async with _open(cloud) as session:
            await session.apply([one for one in fleet(1) if one["kind"] in (*kinds, "SQLInstance")])
        async with _open(cloud) as session:
            query = ImportQuery(FLEET_PROJECT, kinds)
            # The databases are in the instances: those are listed first, and in the place of them.
            found = await _while_none_is_answered(cloud, lambda: session.import_live(query), len(kinds))

    assert [one.ref.kind for one in found.manifests] == [
        "ComputeNetwork",
        "PubSubTopic",
        "SQLDatabase",
        "SQLDatabase",
        "StorageBucket",
    ]

"""Several replicas over a store without a common clock, as in a cluster.

For a process a lease has expired when it saw no change of it for the duration of the lease: later than by the times in
the lease, and much later for a process that joined in between.
"""

from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from setpoint.engine.ports import Clock, Lease, Store
from setpoint.stores.lease_rules import unix_seconds
from tests.runtime.fleet import LEASE, MARGIN, Fleet, play
from tests.runtime.simulated_network import NetworkLink

pytestmark = pytest.mark.slow

NAMES = [f"g{number}" for number in range(12)]
# How long a process takes to start.
START_SECONDS = 3.0


@dataclass(slots=True)
class ObservedLeaseStore:
    """A store with such leases over the store `behind` it."""

    behind: Store
    clock: Clock
    observed: dict[str, tuple[Lease, float]] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.behind, name)

    async def leases(self, prefix: str) -> tuple[Lease, ...]:
        return tuple(self._observe(lease) for lease in await self.behind.leases(prefix))

    async def acquire(self, name: str, holder: str, seconds: float) -> Lease | None:
        for lease in await self.leases(name):
            if lease.name == name and lease.holder not in ("", holder) and lease.expires > unix_seconds(self.clock):
                return None
        return await self.behind.acquire(name, holder, seconds)

    def _observe(self, lease: Lease) -> Lease:
        now = self.clock.monotonic()
        before, at = self.observed.get(lease.name, (lease, now))
        at = at if before == lease else now
        self.observed[lease.name] = (lease, at)
        return replace(lease, expires=unix_seconds(self.clock) + at + LEASE - now) if lease.holder else lease


class ClusterFleet(Fleet):
    """Replicas with such a store."""

    def store_for(self, link: NetworkLink) -> Store:
        return cast(Store, ObservedLeaseStore(super().store_for(link), self.clock))


async def _settle_all(fleet: Fleet) -> None:
    for name in NAMES:
        await fleet.edit(name)
    await fleet.settled(*NAMES)


async def _until_each_had_a_holder(fleet: Fleet) -> float:
    """The seconds until each shard had a holder; by then some may be on their way to the replica that was started."""
    left = set(range(fleet.shards))

    async def is_none_left() -> bool:
        live = {one.name for one in fleet.live}
        left.difference_update([shard for shard in left if live & set(fleet.holders(shard))])
        return not left

    return await fleet.until(is_none_left)


@pytest.mark.parametrize("number", [2, 3])
@pytest.mark.parametrize("seed", range(6))
def test_a_restarted_replica_does_not_delay_the_takeover(number: int, seed: int) -> None:
    async def scenario(fleet: Fleet) -> None:
        names = [f"process-{one}" for one in range(number + 10)]
        for name in names[:number]:
            fleet.start(name)
        await _settle_all(fleet)
        for name in names[number:]:
            for one in NAMES[::3]:
                await fleet.edit(one)
            await fleet.clock.sleep(fleet.random.uniform(LEASE, LEASE + 10))
            fleet.kill(fleet.holder_of(NAMES[0]))
            await fleet.clock.sleep(START_SECONDS)
            fleet.start(name)
            assert await _until_each_had_a_holder(fleet) < LEASE + MARGIN - START_SECONDS
            await fleet.until_every_shard_is_held()
        await fleet.settled(*NAMES)

        assert fleet.has_executed_every_edit_once

    play(scenario, ClusterFleet, seed=seed)


def test_a_replica_that_joined_during_a_takeover_gets_its_share_afterwards() -> None:
    async def scenario(fleet: Fleet) -> None:
        fleet.start("one")
        fleet.start("two")
        await _settle_all(fleet)
        await fleet.clock.sleep(LEASE)
        fleet.kill("two")
        fleet.start("three")
        await fleet.until_every_shard_is_held()
        await fleet.clock.sleep(LEASE)

        assert {name for shard in range(16) for name in fleet.holders(shard)} >= {"one", "three"}
        assert all(len(set(fleet.holders(shard)) - {"two"}) == 1 for shard in range(16))

    play(scenario, ClusterFleet, shards=16)

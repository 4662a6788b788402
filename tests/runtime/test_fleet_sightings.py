"""Many processes over a store in which nobody trusts another's clock, as a cluster is.

A lease has run out for whoever saw no change of it for as long as it lasts: later than it does by its own times, and a
good deal later for those who came in between.
"""

from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from setpoint.engine.ports import Clock, Lease, Store
from setpoint.stores.leases import unix_seconds
from tests.runtime.fleet import A_LITTLE, LEASE, Fleet, play
from tests.runtime.wire import Wire

pytestmark = pytest.mark.slow

NAMES = [f"g{number}" for number in range(12)]
# What a process takes to begin.
BEGINNING = 3.0


@dataclass(slots=True)
class SightedStore:
    """A store with leases of that sort; all else is as it is behind it."""

    behind: Store
    clock: Clock
    listed_objects: dict[str, tuple[Lease, float]] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.behind, name)

    async def leases(self, prefix: str) -> tuple[Lease, ...]:
        return tuple(self._see(lease) for lease in await self.behind.leases(prefix))

    async def acquire(self, name: str, holder: str, seconds: float) -> Lease | None:
        for lease in await self.leases(name):
            if lease.name == name and lease.holder not in ("", holder) and lease.expires > unix_seconds(self.clock):
                return None
        return await self.behind.acquire(name, holder, seconds)

    def _see(self, lease: Lease) -> Lease:
        now = self.clock.monotonic()
        before, at = self.listed_objects.get(lease.name, (lease, now))
        at = at if before == lease else now
        self.listed_objects[lease.name] = (lease, at)
        return replace(lease, expires=unix_seconds(self.clock) + at + LEASE - now) if lease.holder else lease


class ClusterFleet(Fleet):
    """Processes that see leases like that."""

    def store_for(self, wire: Wire) -> Store:
        return cast(Store, SightedStore(super().store_for(wire), self.clock))


async def _settle_all(fleet: Fleet) -> None:
    for name in NAMES:
        await fleet.edit(name)
    await fleet.settled(*NAMES)


async def _each_had_a_holder(fleet: Fleet) -> float:
    """The seconds until the last shard had a holder; by then others may be on their way to whoever was started."""
    left = set(range(fleet.shards))

    async def is_none_left() -> bool:
        live = {one.name for one in fleet.live}
        left.difference_update([shard for shard in left if live & set(fleet.holders(shard))])
        return not left

    return await fleet.until(is_none_left)


@pytest.mark.parametrize("number", [2, 3])
@pytest.mark.parametrize("seed", range(6))
def test_whoever_is_killed_and_started_again_is_not_waited_for(number: int, seed: int) -> None:
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
            await fleet.clock.sleep(BEGINNING)
            fleet.start(name)
            assert await _each_had_a_holder(fleet) < LEASE + A_LITTLE - BEGINNING
            await fleet.shared_out()
        await fleet.settled(*NAMES)

        assert fleet.is_done_once

    play(scenario, ClusterFleet, seed=seed)


def test_whoever_came_meanwhile_gets_its_share_afterwards() -> None:
    async def scenario(fleet: Fleet) -> None:
        fleet.start("one")
        fleet.start("two")
        await _settle_all(fleet)
        await fleet.clock.sleep(LEASE)
        fleet.kill("two")
        fleet.start("three")
        await fleet.shared_out()
        await fleet.clock.sleep(LEASE)

        assert {name for shard in range(16) for name in fleet.holders(shard)} >= {"one", "three"}
        assert all(len(set(fleet.holders(shard)) - {"two"}) == 1 for shard in range(16))

    play(scenario, ClusterFleet, shards=16)

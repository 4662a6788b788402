"""The processes of a cluster, on a page that is served beside them: by the leases that its user may list."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from setpoint.dashboard.process import LeasesInCluster
from setpoint.engine.ports import Store
from setpoint.stores.memory import MemoryStore
from tests.dashboard.watched_store import WatchedStore
from tests.engine.clock import FakeClock

# More than what was read is shown for.
LATER = 6.0


def shown(scenario: Callable[[Store, LeasesInCluster, FakeClock], Coroutine[Any, Any, None]]) -> None:
    clock = FakeClock()
    store = WatchedStore(MemoryStore(clock, lambda: "uid"))
    asyncio.run(scenario(store, LeasesInCluster(store, clock), clock))


def test_processes_are_those_that_hold_leases_with_the_shards_of_each() -> None:
    async def scenario(store: Store, leases: LeasesInCluster, _clock: FakeClock) -> None:
        for name, holder in (
            ("setpoint-member-first", "first"),
            ("setpoint-member-second", "second"),
            ("setpoint-shard-0", "first"),
            ("setpoint-shard-10", "first"),
            ("setpoint-shard-2", "first"),
            ("setpoint-other", "third"),
        ):
            await store.acquire(name, holder, 15.0)
        found = await leases.processes(None)

        assert [(one.identity, one.shards, one.is_this, one.state) for one in found] == [
            ("first", (0, 2, 10), False, None),
            ("second", (), False, None),
        ]

    shown(scenario)


def test_a_process_that_renewed_no_lease_is_gone() -> None:
    async def scenario(store: Store, leases: LeasesInCluster, clock: FakeClock) -> None:
        await store.acquire("setpoint-member-first", "first", 15.0)
        await store.acquire("setpoint-member-second", "second", 3600.0)
        assert len(await leases.processes(None)) == 2
        await clock.sleep(LATER * 10)

        assert [one.identity for one in await leases.processes(None)] == ["second"]

    shown(scenario)


def test_leases_are_not_read_for_every_request() -> None:
    async def scenario(store: Store, leases: LeasesInCluster, clock: FakeClock) -> None:
        assert await leases.processes(None) == []
        await store.acquire("setpoint-member-first", "first", 15.0)
        before = await leases.processes(None)
        await clock.sleep(LATER)

        assert before == []
        assert len(await leases.processes(None)) == 1

    shown(scenario)


def test_a_user_who_may_not_list_leases_sees_no_process() -> None:
    async def scenario(store: Store, leases: LeasesInCluster, _clock: FakeClock) -> None:
        await store.acquire("setpoint-member-first", "first", 15.0)
        assert isinstance(store, WatchedStore)
        store.can_be_read.clear()

        assert await leases.processes(None) == ()
        assert leases.state() is None

    shown(scenario)

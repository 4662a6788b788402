"""Held leases: how long they are valid, and which writes they permit."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import cycle

import pytest

from setpoint.clients.fencing import FencedWrite, fenced_by, seconds_allowed
from setpoint.engine.ports import Lease
from setpoint.errors import LeaseLost, StoreError
from setpoint.runtime.sharding.leases import HeldLease, LeaseManager, lease_purpose
from setpoint.stores.memory import MemoryStore
from simulation.virtual_time import VirtualClock, run

NAME = "setpoint-shard-3"
WRITE = FencedWrite("PUT", "/b/logs")


@dataclass
class LeaseHarness:
    """Two processes and a store that may fail the first one. `asked` has the times of its requests for a lease."""

    clock: VirtualClock = field(default_factory=VirtualClock)
    failing: Callable[[float], Awaitable[None]] | None = None
    asked: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = _FailingStore(self)
        self.leases = LeaseManager(self.store, self.clock, jitter=lambda: 0.0)
        self.other_leases = LeaseManager(SharedLeaseStore(self.store), self.clock, jitter=lambda: 0.0)

    async def acquired(self) -> HeldLease:
        """Acquires the lease for this process."""
        held_lease = await self.leases.acquire(NAME, "me")
        assert held_lease is not None
        return held_lease


class _FailingStore(MemoryStore):
    def __init__(self, harness: LeaseHarness) -> None:
        super().__init__(harness.clock, lambda: "uid")
        self._harness = harness

    async def acquire(self, name: str, holder: str, seconds: float) -> Lease | None:
        now = self._harness.clock.monotonic()
        self._harness.asked.append(now)
        if self._harness.failing is not None:
            await self._harness.failing(now)
        return await super().acquire(name, holder, seconds)


class SharedLeaseStore(MemoryStore):
    """The same leases, for a process without failures."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(VirtualClock(), lambda: "uid")
        self._leases = store._leases


def play(scenario: Callable[[LeaseHarness], Awaitable[None]]) -> None:
    async def main() -> None:
        await scenario(LeaseHarness())

    run(main())


async def refuse(_now: float) -> None:
    raise StoreError("no")


def test_a_lease_is_renewed_before_its_deadline() -> None:
    async def scenario(harness: LeaseHarness) -> None:
        held_lease = await harness.acquired()
        renewing = asyncio.create_task(harness.leases.renew_until_expired(held_lease))
        await harness.clock.sleep(3600)

        assert not held_lease.is_expired
        assert await harness.other_leases.acquire(NAME, "other") is None
        assert harness.asked[:4] == [0, 5, 10, 15]
        renewing.cancel()

    play(scenario)


def test_renewals_of_processes_that_started_together_spread_out() -> None:
    async def scenario(harness: LeaseHarness) -> None:
        jitters = cycle([0.0, 0.5, 1.0])
        leases = LeaseManager(harness.store, harness.clock, jitter=lambda: next(jitters))
        renewing = asyncio.create_task(leases.renew_until_expired(await harness.acquired()))
        await harness.clock.sleep(20)

        assert harness.asked == [0, 5, 9.5, 13.5, 18.5]
        renewing.cancel()

    play(scenario)


def test_a_failed_renewal_is_retried_until_the_deadline() -> None:
    async def scenario(harness: LeaseHarness) -> None:
        held_lease = await harness.acquired()
        harness.failing = refuse
        await harness.leases.renew_until_expired(held_lease)

        assert (held_lease.is_expired, harness.clock.monotonic()) == (True, 10.0)
        assert harness.asked == [0, 5, 6, 7, 8, 9]
        assert harness.leases.failures == {"shard": 5}

    play(scenario)


def test_a_store_that_does_not_answer_in_time_has_failed() -> None:
    async def scenario(harness: LeaseHarness) -> None:
        async def hang(_now: float) -> None:
            await harness.clock.sleep(10**6)

        held_lease = await harness.acquired()
        harness.failing = hang
        await harness.leases.renew_until_expired(held_lease)
        ended = harness.clock.monotonic()
        with pytest.raises(StoreError, match="the store did not answer within 3 s, and its leases run out"):
            await harness.leases.acquire(NAME, "me")

        assert (harness.asked[:3], ended) == ([0, 5, 9], 10.0)

    play(scenario)


def test_the_time_of_a_lease_and_of_a_renewal_counts_from_the_request() -> None:
    async def scenario(harness: LeaseHarness) -> None:
        async def take_two_seconds(_now: float) -> None:
            await harness.clock.sleep(2)

        harness.failing = take_two_seconds
        held_lease = await harness.acquired()
        at_first = held_lease.seconds_left
        renewing = asyncio.create_task(harness.leases.renew_until_expired(held_lease))
        await harness.clock.sleep(7.5)

        # Asked for at 0, and again at 7.
        assert (at_first, held_lease.seconds_left) == (8.0, 7.5)
        renewing.cancel()

    play(scenario)


def test_a_lease_that_another_process_acquired_has_expired() -> None:
    async def scenario(harness: LeaseHarness) -> None:
        held_lease = await harness.acquired()
        await harness.store.release(held_lease.lease)
        assert await harness.other_leases.acquire(NAME, "other") is not None
        await harness.leases.renew_until_expired(held_lease)

        assert (held_lease.is_expired, harness.clock.monotonic()) == (True, 5.0)

    play(scenario)


def test_a_lease_that_another_process_held_in_between_has_expired() -> None:
    async def scenario(harness: LeaseHarness) -> None:
        held_lease = await harness.acquired()
        await harness.store.release(held_lease.lease)
        theirs = await harness.other_leases.acquire(NAME, "other")
        assert theirs is not None
        await harness.other_leases.release(theirs)
        await harness.leases.renew_until_expired(held_lease)

        assert held_lease.is_expired

    play(scenario)


def test_an_expired_lease_is_not_renewed_by_a_late_answer() -> None:
    async def scenario(harness: LeaseHarness) -> None:
        held_lease = await harness.acquired()
        await harness.clock.sleep(10)
        held_lease.renew(held_lease.lease, harness.clock.monotonic())

        assert held_lease.is_expired
        with pytest.raises(LeaseLost):
            held_lease.check(WRITE)

    play(scenario)


def test_a_write_may_start_for_ten_seconds_and_ends_before_another_process_can_acquire_the_lease() -> None:
    async def scenario(harness: LeaseHarness) -> None:
        await harness.clock.sleep(0.9)
        held_lease = await harness.acquired()
        allowed = []
        for _ in range(4):
            with fenced_by(held_lease):
                allowed.append((harness.clock.monotonic(), seconds_allowed(WRITE)))
            await harness.clock.sleep(3)
        message = "^PUT /b/logs: not sent, for the lease setpoint-shard-3 is not ours any more; its next holder goes on"
        with fenced_by(held_lease), pytest.raises(LeaseLost, match=message):
            seconds_allowed(WRITE)
        while await harness.other_leases.acquire(NAME, "other") is None:
            await harness.clock.sleep(0.05)

        assert allowed == [(0.9, 14), (3.9, 11), (6.9, 8), (9.9, 5)]
        assert harness.clock.monotonic() >= 0.9 + 14

    play(scenario)


def test_a_released_lease_can_be_acquired_at_once() -> None:
    async def scenario(harness: LeaseHarness) -> None:
        held_lease = await harness.acquired()
        was_given_back = await harness.leases.release(held_lease)

        assert was_given_back
        assert held_lease.is_expired
        assert await harness.other_leases.acquire(NAME, "other") is not None

    play(scenario)


def test_a_release_waits_for_a_running_renewal() -> None:
    async def scenario(harness: LeaseHarness) -> None:
        async def take_two_seconds(_now: float) -> None:
            await harness.clock.sleep(2)

        held_lease = await harness.acquired()
        harness.failing = take_two_seconds
        renewing = asyncio.create_task(harness.leases.renew_until_expired(held_lease))
        await harness.clock.sleep(6)
        await harness.leases.release(held_lease)
        await renewing

        assert harness.clock.monotonic() == 7.0
        assert [(one.holder, one.fence) for one in await harness.store.leases("setpoint-")] == [("", 1)]

    play(scenario)


def test_a_lease_that_cannot_be_released_has_expired_here() -> None:
    async def scenario(harness: LeaseHarness) -> None:
        held_lease = await harness.acquired()
        await harness.store.close()

        assert await harness.leases.release(held_lease) is False
        assert held_lease.is_expired

    play(scenario)


def test_acquiring_a_lease_is_not_fenced() -> None:
    async def scenario(harness: LeaseHarness) -> None:
        over = await harness.acquired()
        over.expire()

        async def as_if_sent(_now: float) -> None:
            seconds_allowed(WRITE)

        harness.failing = as_if_sent
        with fenced_by(over):
            assert await harness.leases.acquire(NAME, "me") is not None

    play(scenario)


def test_the_purpose_of_a_lease_comes_from_its_name() -> None:
    assert [lease_purpose(f"setpoint-{name}") for name in ("shard-12", "member-0", "layout")] == [
        "shard",
        "member",
        "layout",
    ]

"""Leases while they are ours: how long that is, and what may be written meanwhile."""

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
from tests.runtime.virtual_time import VirtualClock, run

NAME = "setpoint-shard-3"
WRITE = FencedWrite("PUT", "/b/logs")


@dataclass
class Trying:
    """Two processes and a store that may fail them. `asked` has the times at which a lease was asked for."""

    clock: VirtualClock = field(default_factory=VirtualClock)
    failing: Callable[[float], Awaitable[None]] | None = None
    asked: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = _Failing(self)
        self.mine = LeaseManager(self.store, self.clock, jitter=lambda: 0.0)
        self.yours = LeaseManager(MemoryStoreView(self.store), self.clock, jitter=lambda: 0.0)

    async def taken(self) -> HeldLease:
        """The lease is ours."""
        held_lease = await self.mine.acquire(NAME, "me")
        assert held_lease is not None
        return held_lease


class _Failing(MemoryStore):
    def __init__(self, trying: Trying) -> None:
        super().__init__(trying.clock, lambda: "uid")
        self._trying = trying

    async def acquire(self, name: str, holder: str, seconds: float) -> Lease | None:
        now = self._trying.clock.monotonic()
        self._trying.asked.append(now)
        if self._trying.failing is not None:
            await self._trying.failing(now)
        return await super().acquire(name, holder, seconds)


class MemoryStoreView(MemoryStore):
    """The same leases, for somebody whom nothing fails."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(VirtualClock(), lambda: "uid")
        self._leases = store._leases


def play(scenario: Callable[[Trying], Awaitable[None]]) -> None:
    async def main() -> None:
        await scenario(Trying())

    run(main())


async def refuse(_now: float) -> None:
    raise StoreError("no")


def test_a_lease_is_renewed_in_time_for_ever() -> None:
    async def scenario(trying: Trying) -> None:
        held_lease = await trying.taken()
        keeping = asyncio.create_task(trying.mine.renew_until_expired(held_lease))
        await trying.clock.sleep(3600)

        assert not held_lease.is_expired
        assert await trying.yours.acquire(NAME, "you") is None
        assert trying.asked[:4] == [0, 5, 10, 15]
        keeping.cancel()

    play(scenario)


def test_processes_that_began_together_do_not_go_on_together() -> None:
    async def scenario(trying: Trying) -> None:
        jitters = cycle([0.0, 0.5, 1.0])
        leases = LeaseManager(trying.store, trying.clock, jitter=lambda: next(jitters))
        keeping = asyncio.create_task(leases.renew_until_expired(await trying.taken()))
        await trying.clock.sleep(20)

        assert trying.asked == [0, 5, 9.5, 13.5, 18.5]
        keeping.cancel()

    play(scenario)


def test_a_failed_renewal_is_tried_again_until_it_is_too_late() -> None:
    async def scenario(trying: Trying) -> None:
        held_lease = await trying.taken()
        trying.failing = refuse
        await trying.mine.renew_until_expired(held_lease)

        assert (held_lease.is_expired, trying.clock.monotonic()) == (True, 10.0)
        assert trying.asked == [0, 5, 6, 7, 8, 9]
        assert trying.mine.failures == {"shard": 5}

    play(scenario)


def test_a_store_that_does_not_answer_has_failed() -> None:
    async def scenario(trying: Trying) -> None:
        async def hang(_now: float) -> None:
            await trying.clock.sleep(10**6)

        held_lease = await trying.taken()
        trying.failing = hang
        await trying.mine.renew_until_expired(held_lease)
        ended = trying.clock.monotonic()
        with pytest.raises(StoreError, match="the store did not answer within 3 s, and its leases run out"):
            await trying.mine.acquire(NAME, "me")

        assert (trying.asked[:3], ended) == ([0, 5, 9], 10.0)

    play(scenario)


def test_a_lease_counts_from_when_it_was_asked_for_and_so_does_a_renewal() -> None:
    async def scenario(trying: Trying) -> None:
        async def take_two_seconds(_now: float) -> None:
            await trying.clock.sleep(2)

        trying.failing = take_two_seconds
        held_lease = await trying.taken()
        at_first = held_lease.seconds_left
        keeping = asyncio.create_task(trying.mine.renew_until_expired(held_lease))
        await trying.clock.sleep(7.5)

        # Asked for at 0, and again at 7.
        assert (at_first, held_lease.seconds_left) == (8.0, 7.5)
        keeping.cancel()

    play(scenario)


def test_what_another_took_meanwhile_is_over() -> None:
    async def scenario(trying: Trying) -> None:
        held_lease = await trying.taken()
        await trying.store.release(held_lease.lease)
        assert await trying.yours.acquire(NAME, "you") is not None
        await trying.mine.renew_until_expired(held_lease)

        assert (held_lease.is_expired, trying.clock.monotonic()) == (True, 5.0)

    play(scenario)


def test_what_another_had_in_between_is_over_though_we_have_it_again() -> None:
    async def scenario(trying: Trying) -> None:
        held_lease = await trying.taken()
        await trying.store.release(held_lease.lease)
        theirs = await trying.yours.acquire(NAME, "you")
        assert theirs is not None
        await trying.yours.release(theirs)
        await trying.mine.renew_until_expired(held_lease)

        assert held_lease.is_expired

    play(scenario)


def test_what_is_over_stays_over_whatever_a_late_answer_says() -> None:
    async def scenario(trying: Trying) -> None:
        held_lease = await trying.taken()
        await trying.clock.sleep(10)
        held_lease.renew(held_lease.lease, trying.clock.monotonic())

        assert held_lease.is_expired
        with pytest.raises(LeaseLost):
            held_lease.check(WRITE)

    play(scenario)


def test_a_write_may_be_begun_for_ten_seconds_and_is_over_before_another_can_have_the_lease() -> None:
    async def scenario(trying: Trying) -> None:
        await trying.clock.sleep(0.9)
        held_lease = await trying.taken()
        allowed = []
        for _ in range(4):
            with fenced_by(held_lease):
                allowed.append((trying.clock.monotonic(), seconds_allowed(WRITE)))
            await trying.clock.sleep(3)
        message = "^PUT /b/logs: not sent, for the lease setpoint-shard-3 is not ours any more; its next holder goes on"
        with fenced_by(held_lease), pytest.raises(LeaseLost, match=message):
            seconds_allowed(WRITE)
        while await trying.yours.acquire(NAME, "you") is None:
            await trying.clock.sleep(0.05)

        assert allowed == [(0.9, 14), (3.9, 11), (6.9, 8), (9.9, 5)]
        assert trying.clock.monotonic() >= 0.9 + 14

    play(scenario)


def test_a_lease_that_was_given_back_is_another_s_at_once() -> None:
    async def scenario(trying: Trying) -> None:
        held_lease = await trying.taken()
        was_given_back = await trying.mine.release(held_lease)

        assert was_given_back
        assert held_lease.is_expired
        assert await trying.yours.acquire(NAME, "you") is not None

    play(scenario)


def test_a_lease_is_given_back_after_a_renewal_that_is_under_way() -> None:
    async def scenario(trying: Trying) -> None:
        async def take_two_seconds(_now: float) -> None:
            await trying.clock.sleep(2)

        held_lease = await trying.taken()
        trying.failing = take_two_seconds
        keeping = asyncio.create_task(trying.mine.renew_until_expired(held_lease))
        await trying.clock.sleep(6)
        await trying.mine.release(held_lease)
        await keeping

        assert trying.clock.monotonic() == 7.0
        assert [(one.holder, one.fence) for one in await trying.store.leases("setpoint-")] == [("", 1)]

    play(scenario)


def test_a_lease_that_cannot_be_given_back_is_over_and_runs_out() -> None:
    async def scenario(trying: Trying) -> None:
        held_lease = await trying.taken()
        await trying.store.close()

        assert await trying.mine.release(held_lease) is False
        assert held_lease.is_expired

    play(scenario)


def test_leases_are_asked_for_whatever_holds_for_the_writes_of_a_step() -> None:
    async def scenario(trying: Trying) -> None:
        over = await trying.taken()
        over.expire()

        async def as_if_sent(_now: float) -> None:
            seconds_allowed(WRITE)

        trying.failing = as_if_sent
        with fenced_by(over):
            assert await trying.mine.acquire(NAME, "me") is not None

    play(scenario)


def test_says_what_a_lease_is_for() -> None:
    assert [lease_purpose(f"setpoint-{name}") for name in ("shard-12", "member-0", "layout")] == [
        "shard",
        "member",
        "layout",
    ]

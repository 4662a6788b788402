"""Leases held by this process: acquired, renewed before the deadline and released; each is a permit for writes."""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeVar

from setpoint.clients.fencing import FencedWrite, unfenced
from setpoint.engine.ports import Clock, Lease, Store
from setpoint.errors import LeaseLost, StoreError

T = TypeVar("T")

_log: Final = logging.getLogger(__name__)

# Every lease of ours begins like this, so that others in the same place are not taken for one.
LEASE_PREFIX: Final = "setpoint-"
# How long a lease outlives its last renewal: so long nobody takes over from a process that was killed. Were it much
# shorter, a store that is slow for a moment would cost us everything that we hold.
LEASE_SECONDS: Final = 15.0
# Three tries fit into a lease. The jitter takes off up to a fifth, so that processes that began together spread out.
RENEW_SECONDS: Final = 5.0
RENEW_JITTER: Final = 0.2
# Without a renewal for so long, no write is begun any more. What is left of the lease is for the writes that are under
# way, and for clocks that do not run alike.
RENEW_DEADLINE_SECONDS: Final = 10.0
# Stores count whole seconds, so a lease may end that much early.
ROUNDING_SECONDS: Final = 1.0
# A store that takes longer has failed: then there is time for another try before it is too late.
STORE_TIMEOUT_SECONDS: Final = 3.0
RETRY_SECONDS: Final = 1.0


class HeldLease:
    """A lease while it is ours. It is a Permit for writes under that lease.

    Renewals make it longer. Once it is over it stays over, whatever a late answer says: whoever has the lease after
    that has it anew. Time is counted from before the lease was asked for, by the clock that never runs backwards: a
    process that did not run for a while finds out by looking at the clock, before anything else tells it.
    """

    def __init__(self, lease: Lease, asked: float, clock: Clock) -> None:
        self.lease = lease
        # One question at a time: a renewal that arrives after the lease was given back would take it again.
        self.asking = asyncio.Lock()
        self._asked = asked
        self._clock = clock
        self._is_over = False

    @property
    def is_over(self) -> bool:
        """Whether nothing may be begun under it any more."""
        if not self._is_over and self._clock.monotonic() >= self._asked + RENEW_DEADLINE_SECONDS:
            self._is_over = True
        return self._is_over

    @property
    def seconds_left(self) -> float:
        """How long it goes on without a renewal."""
        return 0.0 if self.is_over else self._asked + RENEW_DEADLINE_SECONDS - self._clock.monotonic()

    def renew(self, lease: Lease, asked: float) -> None:
        """`lease` was asked for then, and granted. One under another fence was somebody else's in between."""
        if lease.fence != self.lease.fence:
            self.end()
        elif not self.is_over:
            self.lease, self._asked = lease, asked

    def end(self) -> None:
        """Nothing is begun any more."""
        self._is_over = True

    def check(self, write: FencedWrite) -> float:
        """See Fence. What is under way has to be over before another may have the lease."""
        if self.is_over:
            name = self.lease.name
            raise LeaseLost(f"{write}: not sent, for the lease {name} is not ours any more; its next holder goes on")
        return self._asked + LEASE_SECONDS - ROUNDING_SECONDS - self._clock.monotonic()


class LeaseManager:
    """The leases of a store, for one process. A store that does not answer in time has failed."""

    def __init__(self, store: Store, clock: Clock, jitter: Callable[[], float] = random.random) -> None:
        # Set once the store has answered, with whatever.
        self.answered = asyncio.Event()
        # How many renewals came to nothing, by what the lease is for: its name without the number.
        self.failures: Counter[str] = Counter()
        self.clock = clock
        self.jitter = jitter
        self._store = store

    async def record(self) -> Mapping[str, Lease]:
        """Every lease on record, by its name."""
        return {lease.name: lease for lease in await self._answer(self._store.leases(LEASE_PREFIX))}

    async def ask(self, name: str, holder: str) -> HeldLease | None:
        """The lease, if nobody else has it. StoreError when there is no telling."""
        asked = self.clock.monotonic()
        lease = await self._answer(self._store.acquire(name, holder, LEASE_SECONDS))
        return None if lease is None else HeldLease(lease, asked, self.clock)

    async def keep(self, held_lease: HeldLease) -> None:
        """Renews it, and tries again when that fails, until it is over."""
        pause, is_failing = self._pause(), False
        while (left := held_lease.seconds_left) > 0:
            await self.clock.sleep(min(pause, left))
            if held_lease.is_over:
                return
            try:
                await self._renew(held_lease)
            except StoreError as error:
                self.failures[lease_purpose(held_lease.lease.name)] += 1
                if not is_failing:
                    _log.warning("lease not renewed", extra={"lease": held_lease.lease.name, "why": str(error)})
                pause, is_failing = RETRY_SECONDS, True
            else:
                pause, is_failing = self._pause(), False

    async def give_back(self, held_lease: HeldLease) -> bool:
        """Whether the store says that it is anybody's now; it is not ours in any case, and ends by itself."""
        held_lease.end()
        try:
            async with held_lease.asking:
                await self._answer(self._store.release(held_lease.lease))
        except StoreError as error:
            _log.warning("lease not given back", extra={"lease": held_lease.lease.name, "why": str(error)})
            return False
        return True

    async def _renew(self, held_lease: HeldLease) -> None:
        """It is longer now, or over."""
        asked, held = self.clock.monotonic(), held_lease.lease
        async with held_lease.asking:
            asking = self._store.acquire(held.name, held.holder, LEASE_SECONDS)
            lease = await self._answer(asking, min(STORE_TIMEOUT_SECONDS, held_lease.seconds_left))
        if lease is None:
            held_lease.end()
        else:
            held_lease.renew(lease, asked)

    def _pause(self) -> float:
        return RENEW_SECONDS * (1 - RENEW_JITTER * self.jitter())

    async def _answer(self, asking: Awaitable[T], seconds: float = STORE_TIMEOUT_SECONDS) -> T:
        try:
            # Whatever is going on around it: a lease that may not be written could never be had, or given back.
            with unfenced():
                async with asyncio.timeout(seconds):
                    answer = await asking
        except TimeoutError as error:
            raise StoreError(f"the store did not answer within {seconds:.3g} s, and its leases run out") from error
        self.answered.set()
        return answer


# What our leases are for.
LEASE_PURPOSES: Final = ("layout", "member", "shard")


def lease_purpose(name: str) -> str:
    """What the lease is for: its name without the number."""
    return name.removeprefix(LEASE_PREFIX).partition("-")[0]

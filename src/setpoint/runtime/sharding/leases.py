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

# The names of setpoint's leases begin like this, to distinguish them from other leases in the same namespace.
LEASE_PREFIX: Final = "setpoint-"
# How long a lease lasts after its last renewal, and so how long the shards of a killed process are without a holder.
# Much shorter, and a store that is slow for a moment would cost a replica all its shards.
LEASE_SECONDS: Final = 15.0
# Three attempts fit into a lease. Jitter takes off up to a fifth, so that processes that started together spread out.
RENEW_SECONDS: Final = 5.0
RENEW_JITTER: Final = 0.2
# Without a renewal for so long, no write is started. The rest of the lease is for the writes that are on their way,
# and for clocks that differ.
RENEW_DEADLINE_SECONDS: Final = 10.0
# Stores count whole seconds, so a lease may expire that much early.
ROUNDING_SECONDS: Final = 1.0
# A store that takes longer has failed; this leaves time for another attempt before the deadline.
STORE_TIMEOUT_SECONDS: Final = 3.0
RETRY_SECONDS: Final = 1.0


class HeldLease:
    """A lease that this process holds. It is a permit for writes under that lease.

    Renewals extend it. Once expired it stays expired, whatever a late answer says: the next lease is a new one. Time
    is counted from before the request, by the monotonic clock, so a process that was suspended notices by itself
    before it writes.
    """

    def __init__(self, lease: Lease, asked: float, clock: Clock) -> None:
        self.lease = lease
        # One request at a time: a renewal that arrives after the release would acquire the lease again.
        self.request_lock = asyncio.Lock()
        self._asked = asked
        self._clock = clock
        self._is_expired = False

    @property
    def is_expired(self) -> bool:
        """Whether no write may be started under it any more."""
        if not self._is_expired and self._clock.monotonic() >= self._asked + RENEW_DEADLINE_SECONDS:
            self._is_expired = True
        return self._is_expired

    @property
    def seconds_left(self) -> float:
        """How long it is valid without a renewal."""
        return 0.0 if self.is_expired else self._asked + RENEW_DEADLINE_SECONDS - self._clock.monotonic()

    def renew(self, lease: Lease, asked: float) -> None:
        """`lease` was requested at that time, and granted. Under another fence, another holder had it in between."""
        if lease.fence != self.lease.fence:
            self.expire()
        elif not self.is_expired:
            self.lease, self._asked = lease, asked

    def expire(self) -> None:
        """No write is started any more."""
        self._is_expired = True

    def check(self, write: FencedWrite) -> float:
        """See Fence: the seconds until another holder may acquire the lease; the write has to end before."""
        if self.is_expired:
            name = self.lease.name
            raise LeaseLost(f"{write}: not sent, for the lease {name} is not ours any more; its next holder goes on")
        return self._asked + LEASE_SECONDS - ROUNDING_SECONDS - self._clock.monotonic()


class LeaseManager:
    """Acquires, renews and releases leases for one process. A store that does not answer in time has failed."""

    def __init__(self, store: Store, clock: Clock, jitter: Callable[[], float] = random.random) -> None:
        # Set by the first answer of the store.
        self.store_answered = asyncio.Event()
        # Failed renewals, by the purpose of the lease.
        self.failures: Counter[str] = Counter()
        self.clock = clock
        self.jitter = jitter
        self._store = store

    async def leases_by_name(self) -> Mapping[str, Lease]:
        """Every lease of setpoint, by name."""
        return {lease.name: lease for lease in await self._answer(self._store.leases(LEASE_PREFIX))}

    async def acquire(self, name: str, holder: str) -> HeldLease | None:
        """The lease, unless another process holds it. StoreError when the store does not say."""
        asked = self.clock.monotonic()
        lease = await self._answer(self._store.acquire(name, holder, LEASE_SECONDS))
        return None if lease is None else HeldLease(lease, asked, self.clock)

    async def renew_until_expired(self, held_lease: HeldLease) -> None:
        """Renews the lease, and retries when that fails; returns when it has expired."""
        pause, is_failing = self._pause(), False
        while (left := held_lease.seconds_left) > 0:
            await self.clock.sleep(min(pause, left))
            if held_lease.is_expired:
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

    async def release(self, held_lease: HeldLease) -> bool:
        """Whether the store confirmed the release. The lease is not used any more in either case."""
        held_lease.expire()
        try:
            async with held_lease.request_lock:
                await self._answer(self._store.release(held_lease.lease))
        except StoreError as error:
            _log.warning("lease not released", extra={"lease": held_lease.lease.name, "why": str(error)})
            return False
        return True

    async def _renew(self, held_lease: HeldLease) -> None:
        """Afterwards it is extended, or expired."""
        asked, held = self.clock.monotonic(), held_lease.lease
        async with held_lease.request_lock:
            asking = self._store.acquire(held.name, held.holder, LEASE_SECONDS)
            lease = await self._answer(asking, min(STORE_TIMEOUT_SECONDS, held_lease.seconds_left))
        if lease is None:
            held_lease.expire()
        else:
            held_lease.renew(lease, asked)

    def _pause(self) -> float:
        return RENEW_SECONDS * (1 - RENEW_JITTER * self.jitter())

    async def _answer(self, asking: Awaitable[T], seconds: float = STORE_TIMEOUT_SECONDS) -> T:
        try:
            # Not fenced: permits come from leases, so none can be required to acquire or release one.
            with unfenced():
                async with asyncio.timeout(seconds):
                    answer = await asking
        except TimeoutError as error:
            raise StoreError(f"the store did not answer within {seconds:.3g} s, and its leases run out") from error
        self.store_answered.set()
        return answer


# The purposes of leases.
LEASE_PURPOSES: Final = ("layout", "member", "shard")


def lease_purpose(name: str) -> str:
    """The purpose of a lease: its name without the number."""
    return name.removeprefix(LEASE_PREFIX).partition("-")[0]

"""One of several replicas over one store: which shards it holds, and for how long.

Every resource belongs to a shard, and every shard to one member at a time: the holder of its lease. All members
compute the same assignment (see assignment), and each one applies its own part of it:

* A shard that it should hold and that is free, it acquires: at once when the lease was released, after LEASE_SECONDS
  when the holder was killed. In that case members that joined since are left out, for they cannot tell yet that the
  lease has expired; the new holder hands them their share.
* A shard that it holds and should not, it hands over: it starts no step there, finishes those that run, releases it.
* A shard whose lease it cannot renew in time is lost: its steps are cancelled, and their writes are refused.

The number of shards is a lease too, shared by all replicas that agree on it: a process that was started with another
number waits until the last of the other replicas is gone.
"""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from math import inf
from typing import Any, Final, Protocol

from setpoint.engine.ports import Clock, Lease, Store
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.outcomes import StepOutcome, Stopped
from setpoint.errors import LeaseLost, StoreError
from setpoint.runtime.sharding.assignment import LAYOUT, member_lease_for, members_in, shard_of, shard_winner
from setpoint.runtime.sharding.fencing import HeldShard, StepCall
from setpoint.runtime.sharding.leases import (
    LEASE_PREFIX,
    LEASE_SECONDS,
    ROUNDING_SECONDS,
    STORE_TIMEOUT_SECONDS,
    HeldLease,
    LeaseManager,
)

_log: Final = logging.getLogger(__name__)

_SHARD_PREFIX: Final = f"{LEASE_PREFIX}shard-"
_LAYOUT_LEASE: Final = f"{LEASE_PREFIX}layout"
# How often the leases are read, with one request to the store. A released shard may be without a holder that long, and
# a renewal may go unseen that long, after which the lease lasts. Jitter adds up to a fifth.
POLL_SECONDS: Final = 1.0
POLL_JITTER: Final = 0.2
# A lease is read again right after it has expired.
_AFTER_EXPIRY: Final = 0.05


class ShardCallbacks(Protocol):
    """Called when this process acquires or loses shards."""

    def shards_gained(self, shards: Collection[int]) -> None:
        """All resources of these shards are to be reconciled."""
        ...

    def shards_lost(self, shards: Collection[int]) -> None:
        """No step may be started in these shards. The replica itself takes care of the running ones."""
        ...


class ControllerReplica:
    """This process among the replicas. `identity` must be unique: no two processes may ever have the same."""

    def __init__(
        self, store: Store, clock: Clock, identity: str, shards: int, jitter: Callable[[], float] = random.random
    ) -> None:
        self.identity = identity
        self.shard_count = shards
        self.leases = LeaseManager(store, clock, jitter)
        # How often the holder of each shard changed, as far as this process has seen.
        self.holder_changes: Counter[int] = Counter()
        self._clock = clock
        self._layout: HeldLease | None = None
        self._membership: HeldLease | None = None
        self._held: dict[int, HeldShard] = {}
        self._hand_overs: set[asyncio.Task[None]] = set()
        # When a shard that was held here may be acquired again. Not while something that was sent may still arrive: a
        # write of a cancelled step, or the release, which would then apply to the new lease.
        self._not_before: dict[int, float] = {}
        self._polling = asyncio.Lock()
        self._fences: dict[int, int] = {}
        # Since when each member is known.
        self._known: dict[str, float] = {}
        # When the first lease of another replica expires, unless it is renewed.
        self._next_expiry = inf
        self._is_leaving = False
        self._store_answers = True
        self._is_standing_by = False
        # Set by `run`.
        self._tasks: asyncio.TaskGroup | None = None
        self._callbacks: ShardCallbacks | None = None
        self._grace = 0.0

    # --- Held shards --------------------------------------------------------------------------------------------------

    @property
    def held_shards(self) -> frozenset[int]:
        """The shards in which steps may be started."""
        return frozenset(shard for shard, held in self._held.items() if held.is_open)

    def shard_of(self, ref: ResourceRef) -> int:
        """The shard that `ref` belongs to."""
        return shard_of(ref, self.shard_count)

    def holds(self, ref: ResourceRef) -> bool:
        """Whether a step of `ref` may be started."""
        held = self._held.get(self.shard_of(ref))
        return held is not None and held.is_open

    async def run_step(self, ref: ResourceRef, step: StepCall) -> StepOutcome:
        """The outcome of the step of `ref`; Stopped by LeaseLost when its shard is not held, or was lost meanwhile."""
        shard = self.shard_of(ref)
        held = self._held.get(shard)
        if held is None or not held.is_open:
            return Stopped(
                LeaseLost(f"{ref} belongs to shard {shard}, which is not held here: its holder reconciles it")
            )
        return await held.run_step(step)

    # --- Taking part --------------------------------------------------------------------------------------------------

    async def run(self, callbacks: ShardCallbacks, grace: float) -> None:
        """Takes part until it is cancelled. Steps in a shard that is handed over have `grace` seconds to finish."""
        self._callbacks, self._grace = callbacks, grace
        async with asyncio.TaskGroup() as self._tasks:
            while True:
                async with self._polling:
                    if not self._is_leaving:
                        await self._poll()
                await self._clock.sleep(self._poll_interval())

    async def leave(self) -> None:
        """Hands over every shard, as far as possible within the grace period. `run` has to go on meanwhile.

        From the first moment on the other members do not count this one, and acquire each shard as soon as it is free.
        """
        self._is_leaving = True
        self._begin_hand_over(self._held.values())
        await asyncio.gather(self._release_membership(), *self._hand_overs)
        # What a poll still acquires by now is released as well.
        with suppress(TimeoutError):
            async with asyncio.timeout(STORE_TIMEOUT_SECONDS), self._polling:
                pass

    async def _release_membership(self) -> None:
        if self._membership is not None and not self._membership.is_expired:
            await self.leases.release(self._membership)

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        assert self._tasks is not None, "`run` has to go on"
        return self._tasks.create_task(work)

    def _poll_interval(self) -> float:
        """The seconds until the next poll: sooner than usual when a lease of another replica expires before."""
        usual = POLL_SECONDS * (1 + POLL_JITTER * self.leases.jitter())
        left = self._next_expiry - self._clock.monotonic()
        return min(usual, left + _AFTER_EXPIRY) if left > 0 else usual

    async def _poll(self) -> None:
        """Reads all leases once, and acts on them."""
        try:
            if await self._has_layout():
                leases = await self.leases.leases_by_name()
                self._count_holder_changes(leases)
                self._next_expiry = self._first_expiry(leases)
                await self._rebalance(leases)
        except StoreError as error:
            if self._store_answers:
                _log.warning("leases cannot be read", extra={"why": str(error)})
            self._store_answers = False
        else:
            self._store_answers = True

    async def _has_layout(self) -> bool:
        """Whether the replicas that hold shards now have the same number of shards as this one."""
        if self._layout is None or self._layout.is_expired:
            self._layout = await self.leases.acquire(_LAYOUT_LEASE, f"{self.shard_count}-shards-{LAYOUT}")
            if self._layout is None:
                self._stand_by()
                return False
            self._is_standing_by = False
            self._start(self._keep_layout(self._layout))
        return True

    def _stand_by(self) -> None:
        if not self._is_standing_by:
            _log.warning("other replicas have another number of shards", extra={"ours": self.shard_count})
        self._is_standing_by = True
        if self._membership is not None:
            self._membership.expire()

    async def _rebalance(self, leases: Mapping[str, Lease]) -> None:
        """Hands over the shards of other members, and acquires its own that are free."""
        now = self._clock.now()
        if not await self._is_member(leases, now):
            return
        self._update_known(members_in(leases, now) | {self.identity})
        wanted = [
            shard
            for shard in range(self.shard_count)
            if shard_winner(shard, self._candidates(leases.get(f"{_SHARD_PREFIX}{shard}"), now)) == self.identity
        ]
        self._begin_hand_over(held for shard, held in self._held.items() if shard not in wanted)
        await self._acquire([shard for shard in wanted if self._is_free(shard, leases, now)])

    async def _is_member(self, leases: Mapping[str, Lease], now: str) -> bool:
        """Whether this process has a membership lease, which it acquires if need be."""
        if self._membership is not None and not self._membership.is_expired:
            return True
        membership = await self.leases.acquire(member_lease_for(self.identity, leases, now), self.identity)
        self._membership = membership
        if membership is None:
            return False
        if self._is_leaving:
            await self.leases.release(membership)
            return False
        self._start(self.leases.renew_until_expired(membership))
        return True

    def _update_known(self, members: Collection[str]) -> None:
        now = self._clock.monotonic()
        self._known = {member: self._known.get(member, now) for member in members}

    def _candidates(self, lease: Lease | None, now: str) -> Collection[str]:
        """The members that may hold a shard: all of them, unless its lease expired without a release."""
        if lease is None or lease.holder in ("", self.identity) or lease.is_held(now):
            return self._known
        # A member that was there at the last renewal has been known for the whole duration of the lease, but for
        # rounding. There is at least this one.
        since = self._clock.monotonic() - LEASE_SECONDS + ROUNDING_SECONDS
        return {member for member, at in self._known.items() if at <= since and member != lease.holder} or self._known

    def _is_free(self, shard: int, leases: Mapping[str, Lease], now: str) -> bool:
        lease = leases.get(f"{_SHARD_PREFIX}{shard}")
        is_held_elsewhere = lease is not None and lease.holder != self.identity and lease.is_held(now)
        may_acquire = self._clock.monotonic() >= self._not_before.get(shard, 0.0)
        return not is_held_elsewhere and shard not in self._held and may_acquire

    # --- Acquiring, renewing, losing ----------------------------------------------------------------------------------

    async def _acquire(self, shards: list[int]) -> None:
        """Tries to acquire all of them, and reports those it got together."""
        found = await asyncio.gather(*map(self._try_acquire, shards))
        layout = self._layout
        gained: list[int] = []
        for shard, lease in zip(shards, found, strict=True):
            if lease is None or lease.is_expired or layout is None or layout.is_expired:
                continue
            if self._is_leaving:
                await self._release(shard, lease)
                continue
            held = self._held[shard] = HeldShard(shard, lease, layout)
            self._start(self._keep(held))
            gained.append(shard)
            _log.info("shard acquired", extra={"shard": shard, "fence": lease.lease.fence})
        if gained:
            self._report_gained(gained)

    async def _try_acquire(self, shard: int) -> HeldLease | None:
        try:
            return await self.leases.acquire(f"{_SHARD_PREFIX}{shard}", self.identity)
        except StoreError as error:
            _log.warning("shard not acquired", extra={"shard": shard, "why": str(error)})
            return None

    async def _keep(self, held: HeldShard) -> None:
        await self.leases.renew_until_expired(held.lease)
        # When the store does not answer, all of them expire at about the same time.
        self._lose(one for one in self._held.values() if one is held or one.lease.is_expired)

    async def _keep_layout(self, layout: HeldLease) -> None:
        await self.leases.renew_until_expired(layout)
        self._lose(self._held.values())

    def _lose(self, shards: Iterable[HeldShard]) -> None:
        """These shards, which are held, are lost: reported together, as each report takes a look at every resource."""
        lost = tuple(shards)
        for held in lost:
            del self._held[held.shard]
            self._cancel_steps(held)
        self._report_lost([held.shard for held in lost])
        for held in lost:
            _log.warning("shard lost", extra={"shard": held.shard})

    def _cancel_steps(self, held: HeldShard) -> None:
        if held.cancel_steps():
            self._not_before[held.shard] = self._clock.monotonic() + LEASE_SECONDS

    def _report_gained(self, shards: Collection[int]) -> None:
        if self._callbacks is not None:
            self._callbacks.shards_gained(shards)

    def _report_lost(self, shards: Collection[int]) -> None:
        if shards and self._callbacks is not None:
            self._callbacks.shards_lost(shards)

    # --- Handing over -------------------------------------------------------------------------------------------------

    def _begin_hand_over(self, shards: Iterable[HeldShard]) -> None:
        closing = [held for held in shards if not held.is_closing]
        for held in closing:
            held.close()
        self._report_lost([held.shard for held in closing])
        for held in closing:
            task = self._start(self._hand_over(held))
            self._hand_overs.add(task)
            task.add_done_callback(self._hand_overs.discard)

    async def _hand_over(self, held: HeldShard) -> None:
        is_idle = await held.is_idle_within(self._grace)
        if self._held.get(held.shard) is not held:
            return
        del self._held[held.shard]
        if is_idle:
            await self._release(held.shard, held.lease)
        else:
            # Writes of the steps may still be on their way, so the lease has to expire by itself.
            self._cancel_steps(held)
            _log.warning("steps were cut short", extra={"shard": held.shard})

    async def _release(self, shard: int, lease: HeldLease) -> None:
        self._not_before[shard] = self._clock.monotonic() + LEASE_SECONDS
        if await self.leases.release(lease):
            del self._not_before[shard]
            _log.info("shard released", extra={"shard": shard})

    def _first_expiry(self, leases: Mapping[str, Lease]) -> float:
        """When the first shard of another replica becomes free, by the monotonic clock."""
        shards = (leases.get(f"{_SHARD_PREFIX}{shard}") for shard in range(self.shard_count))
        expiries = (lease.expires for lease in shards if lease is not None and lease.holder not in ("", self.identity))
        wall = datetime.fromisoformat(self._clock.now()).timestamp()
        return self._clock.monotonic() + min((at - wall for at in expiries if at > wall), default=inf)

    def _count_holder_changes(self, leases: Mapping[str, Lease]) -> None:
        for shard in range(self.shard_count):
            lease = leases.get(f"{_SHARD_PREFIX}{shard}")
            if lease is not None:
                self.holder_changes[shard] += lease.fence - self._fences.get(shard, lease.fence)
                self._fences[shard] = lease.fence

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
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from math import inf
from typing import Final, Protocol

from setpoint.engine.context import StepOutcome, Stopped
from setpoint.engine.ports import Clock, Lease, Store
from setpoint.engine.resource import ResourceRef
from setpoint.errors import LeaseLost, SetpointError, StoreError
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
# How often it looks at who is there and what is free: one question to the store. So long something that was given back
# may wait for its next holder, and so long a renewal may go unseen, after which the lease lasts. Jitter adds a fifth.
POLL_SECONDS: Final = 1.0
POLL_JITTER: Final = 0.2
# A lease is looked at right after it has run out.
_AFTER_EXPIRY: Final = 0.05


class ShardCallbacks(Protocol):
    """Whoever takes steps for the resources of the shards that are ours."""

    def gained(self, shards: Collection[int]) -> None:
        """Everything in these shards is to be looked at."""
        ...

    def lost(self, shard: int) -> None:
        """Nothing in this shard is to be begun any more. Steps in work are not the keeper's concern."""
        ...


class ControllerReplica:
    """This process among others. `identity` is its alone: no two processes may ever have the same."""

    def __init__(
        self, store: Store, clock: Clock, identity: str, number: int, jitter: Callable[[], float] = random.random
    ) -> None:
        self.identity = identity
        self.number = number
        self.leases = LeaseManager(store, clock, jitter)
        # How often the holder of each shard changed, as far as was seen.
        self.changes: Counter[int] = Counter()
        self._clock = clock
        self._layout: HeldLease | None = None
        self._seat: HeldLease | None = None
        self._held: dict[int, HeldShard] = {}
        self._hand_overs: set[asyncio.Task[None]] = set()
        # When a shard that was ours may be asked for again. Not while something that we sent may still arrive: a write
        # of a step that was cut short, or the giving back, which would take it from under our hands.
        self._not_before: dict[int, float] = {}
        self._looking = asyncio.Lock()
        self._fences: dict[int, int] = {}
        # Since when each member is known.
        self._known: dict[str, float] = {}
        # When the first of the others' leases runs out, if nobody renews it.
        self._next_end = inf
        self._is_leaving = False
        self._is_in_touch = True
        self._is_aside = False

    # --- What is ours ---------------------------------------------------------------------------------------------

    @property
    def held(self) -> frozenset[int]:
        """The shards in which steps may be begun."""
        return frozenset(shard for shard, holding in self._held.items() if holding.is_open)

    def shard_of(self, ref: ResourceRef) -> int:
        """The shard that `ref` belongs to."""
        return shard_of(ref, self.number)

    def holds(self, ref: ResourceRef) -> bool:
        """Whether a step may be begun for `ref`."""
        holding = self._held.get(self.shard_of(ref))
        return holding is not None and holding.is_open

    async def take(self, ref: ResourceRef, step: StepCall) -> StepOutcome:
        """What the step for `ref` comes to; LeaseLost when its shard is not ours, or not ours any more."""
        shard = self.shard_of(ref)
        holding = self._held.get(shard)
        if holding is None or not holding.is_open:
            return Stopped(LeaseLost(f"{ref} belongs to shard {shard}, which is not held here: its holder looks at it"))
        return await holding.take(step)

    # --- Taking part ----------------------------------------------------------------------------------------------

    async def run(self, keeper: ShardCallbacks, grace: float) -> None:
        """Takes part until it is cancelled. Steps in a shard that is handed over have `grace` seconds to finish."""
        async with asyncio.TaskGroup() as group:
            part = _Part(group, keeper, grace)
            while True:
                async with self._looking:
                    if not self._is_leaving:
                        await self._look_around(part)
                await self._clock.sleep(self._pause())

    async def leave(self, keeper: ShardCallbacks, grace: float) -> None:
        """Hands over everything, as far as that can be done within `grace` seconds. `run` has to go on meanwhile.

        From the first moment on the others do not count on us any more, and have each shard as soon as it is free.
        """
        self._is_leaving = True
        async with asyncio.TaskGroup() as group:
            if self._seat is not None and not self._seat.is_over:
                group.create_task(self.leases.give_back(self._seat))
            for holding in self._held.values():
                self._begin_hand_over(holding, _Part(group, keeper, grace))
        await asyncio.gather(*self._hand_overs)
        # What a look still gets by now is given back as well.
        with suppress(TimeoutError):
            async with asyncio.timeout(STORE_TIMEOUT_SECONDS), self._looking:
                pass

    def _pause(self) -> float:
        """The seconds until the next look: sooner than usual when a lease of another has run out by then."""
        usual, left = POLL_SECONDS * (1 + POLL_JITTER * self.leases.jitter()), self._next_end - self._clock.monotonic()
        return min(usual, left + _AFTER_EXPIRY) if left > 0 else usual

    async def _look_around(self, part: "_Part") -> None:
        """One look at who is there and what is free, and what follows from it."""
        try:
            if await self._has_layout(part):
                record = await self.leases.record()
                self._count_changes(record)
                self._next_end = self._first_end(record)
                await self._share(record, part)
        except StoreError as error:
            if self._is_in_touch:
                _log.warning("leases cannot be seen", extra={"why": str(error)})
            self._is_in_touch = False
        else:
            self._is_in_touch = True

    async def _has_layout(self, part: "_Part") -> bool:
        """Whether those who hold shards now have as many of them as we do."""
        if self._layout is None or self._layout.is_over:
            self._layout = await self.leases.ask(_LAYOUT_LEASE, f"{self.number}-shards-{LAYOUT}")
            if self._layout is None:
                self._stand_aside()
                return False
            self._is_aside = False
            part.group.create_task(self._keep_layout(self._layout, part))
        return True

    def _stand_aside(self) -> None:
        if not self._is_aside:
            _log.warning("others have another number of shards", extra={"ours": self.number})
        self._is_aside = True
        if self._seat is not None:
            self._seat.end()

    async def _share(self, record: Mapping[str, Lease], part: "_Part") -> None:
        """Hands over what is another's to hold, and takes what is ours to hold and free."""
        now = self._clock.now()
        if self._seat is None or self._seat.is_over:
            seat = self._seat = await self.leases.ask(member_lease_for(self.identity, record, now), self.identity)
            if seat is None or self._is_leaving:
                if seat is not None:
                    await self.leases.give_back(seat)
                return
            part.group.create_task(self.leases.keep(seat))
        members = members_in(record, now) | {self.identity}
        self._know(members)
        wanted = [
            shard
            for shard in range(self.number)
            if shard_winner(shard, self._candidates(record.get(f"{_SHARD_PREFIX}{shard}"), now)) == self.identity
        ]
        for shard, holding in self._held.items():
            if shard not in wanted:
                self._begin_hand_over(holding, part)
        await self._take_over([shard for shard in wanted if self._is_free(shard, record, now)], part)

    def _know(self, members: Collection[str]) -> None:
        now = self._clock.monotonic()
        self._known = {member: self._known.get(member, now) for member in members}

    def _candidates(self, lease: Lease | None, now: str) -> Collection[str]:
        """Those who may have a shard: all members, unless its lease ran out and was not given back."""
        if lease is None or lease.holder in ("", self.identity) or lease.is_held(now):
            return self._known
        # Everybody who was there when the lease was renewed last has been known for as long as it lasts, but for
        # rounding; at least ourselves.
        since = self._clock.monotonic() - LEASE_SECONDS + ROUNDING_SECONDS
        return {member for member, at in self._known.items() if at <= since and member != lease.holder} or self._known

    def _is_free(self, shard: int, record: Mapping[str, Lease], now: str) -> bool:
        lease = record.get(f"{_SHARD_PREFIX}{shard}")
        is_anothers = lease is not None and lease.holder != self.identity and lease.is_held(now)
        may_ask = self._clock.monotonic() >= self._not_before.get(shard, 0.0)
        return not is_anothers and shard not in self._held and may_ask

    # --- Taking, keeping, losing ----------------------------------------------------------------------------------

    async def _take_over(self, shards: list[int], part: "_Part") -> None:
        """Asks for all of them; those that we get are ours from the same moment on."""
        found = await asyncio.gather(*map(self._ask_for, shards))
        layout = self._layout
        gained: list[int] = []
        for shard, held_lease in zip(shards, found, strict=True):
            if held_lease is None or held_lease.is_over or layout is None or layout.is_over:
                continue
            if self._is_leaving:
                await self._give_back(shard, held_lease)
                continue
            holding = self._held[shard] = HeldShard(shard, held_lease, layout)
            part.group.create_task(self._keep(holding, part))
            gained.append(shard)
            _log.info("shard acquired", extra={"shard": shard, "fence": held_lease.lease.fence})
        if gained:
            part.keeper.gained(gained)

    async def _ask_for(self, shard: int) -> HeldLease | None:
        try:
            return await self.leases.ask(f"{_SHARD_PREFIX}{shard}", self.identity)
        except StoreError as error:
            _log.warning("shard not acquired", extra={"shard": shard, "why": str(error)})
            return None

    async def _keep(self, holding: HeldShard, part: "_Part") -> None:
        await self.leases.keep(holding.held_lease)
        self._lose(holding, part)

    async def _keep_layout(self, layout: HeldLease, part: "_Part") -> None:
        await self.leases.keep(layout)
        for holding in tuple(self._held.values()):
            self._lose(holding, part)

    def _lose(self, holding: HeldShard, part: "_Part") -> None:
        if self._held.get(holding.shard) is not holding:
            return
        del self._held[holding.shard]
        self._cut(holding)
        part.keeper.lost(holding.shard)
        _log.warning("shard lost", extra={"shard": holding.shard})

    def _cut(self, holding: HeldShard) -> None:
        if holding.cut():
            self._not_before[holding.shard] = self._clock.monotonic() + LEASE_SECONDS

    # --- Handing over ---------------------------------------------------------------------------------------------

    def _begin_hand_over(self, holding: HeldShard, part: "_Part") -> None:
        if holding.is_closing:
            return
        holding.close()
        part.keeper.lost(holding.shard)
        task = part.group.create_task(self._hand_over(holding, part))
        self._hand_overs.add(task)
        task.add_done_callback(self._hand_overs.discard)

    async def _hand_over(self, holding: HeldShard, part: "_Part") -> None:
        is_idle = await holding.is_idle_within(part.grace)
        if self._held.get(holding.shard) is not holding:
            return
        del self._held[holding.shard]
        if is_idle:
            await self._give_back(holding.shard, holding.held_lease)
        else:
            # What they sent may still be under way, so the lease has to run out by itself.
            self._cut(holding)
            _log.warning("steps were cut short", extra={"shard": holding.shard})

    async def _give_back(self, shard: int, held_lease: HeldLease) -> None:
        self._not_before[shard] = self._clock.monotonic() + LEASE_SECONDS
        if await self.leases.give_back(held_lease):
            del self._not_before[shard]
            _log.info("shard released", extra={"shard": shard})

    def _first_end(self, record: Mapping[str, Lease]) -> float:
        """When the first of the others' shards becomes free, by the clock that never runs backwards."""
        shards = (record.get(f"{_SHARD_PREFIX}{shard}") for shard in range(self.number))
        others = (lease.expires for lease in shards if lease is not None and lease.holder not in ("", self.identity))
        wall = datetime.fromisoformat(self._clock.now()).timestamp()
        return self._clock.monotonic() + min((at - wall for at in others if at > wall), default=inf)

    def _count_changes(self, record: Mapping[str, Lease]) -> None:
        for shard in range(self.number):
            lease = record.get(f"{_SHARD_PREFIX}{shard}")
            if lease is not None:
                self.changes[shard] += lease.fence - self._fences.get(shard, lease.fence)
                self._fences[shard] = lease.fence


@dataclass(frozen=True, slots=True)
class _Part:
    """What a replica does its part with."""

    group: asyncio.TaskGroup
    keeper: ShardCallbacks
    grace: float


@dataclass(frozen=True, slots=True)
class ReconcileScope:
    """Without a replica, everything; `stop` ends the process."""

    stop: Callable[[SetpointError], None]
    replica: ControllerReplica | None = None

    def covers(self, ref: ResourceRef) -> bool:
        """Whether `ref` is to be looked at here."""
        return self.replica is None or self.replica.holds(ref)

    def take(self, ref: ResourceRef, step: StepCall) -> Awaitable[StepOutcome]:
        """What the step for `ref` comes to; LeaseLost when it is not to be taken here, or not any more."""
        return step() if self.replica is None else self.replica.take(ref, step)

    def end(self, error: SetpointError) -> None:
        """A step may not go on because of `error`. After a lost lease only its shard ends, until it is ours again."""
        if self.replica is None or not isinstance(error, LeaseLost):
            self.stop(error)

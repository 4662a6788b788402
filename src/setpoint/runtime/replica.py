"""One of many processes over one store: which shards are its to look after, and for how long.

Every resource belongs to a shard, and every shard to one member at a time: whoever holds its lease. All members come to
the same answer to who should hold what (see shards), and each sees to its own part of it:

* What it should hold and nobody does, it takes: at once when it was given back, after LEASE_SECONDS when its holder was
  killed. In that case those who came since then are left out, for they cannot tell yet that the lease has run out; they
  are handed their share by whoever took it.
* What it holds and should not, it hands over: it begins no step there, finishes those in work, and gives it back.
* What it cannot renew in time it has lost: the steps there are cut short, and whatever they try to write is refused.

How resources are mapped to shards is a lease too, held in common by all that agree on it: a process that was started
with another number of shards waits until the last of the others is gone.
"""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from math import inf
from typing import Final, Protocol

from setpoint.engine.ports import Clock, Lease, Store
from setpoint.engine.resource import ResourceRef
from setpoint.engine.scene import Outcome, Stopped
from setpoint.errors import LeaseLost, StoreError
from setpoint.runtime.holding import Holding, Step
from setpoint.runtime.leases import ANSWER_SECONDS, EARLY_SECONDS, LEASE_SECONDS, PREFIX, Leases, Tenure
from setpoint.runtime.members import members_in, seat_for
from setpoint.runtime.shards import LAYOUT, shard_of, winner

_log: Final = logging.getLogger(__name__)

_SHARD: Final = f"{PREFIX}shard-"
_LAYOUT: Final = f"{PREFIX}layout"
# How often it looks at who is there and what is free: one question to the store. So long something that was given back
# may wait for its next holder, and so long a renewal may go unseen, after which the lease lasts. Jitter adds a fifth.
LOOK_SECONDS: Final = 1.0
LOOK_JITTER: Final = 0.2
# A lease is looked at right after it has run out.
_AFTER: Final = 0.05


class Keeper(Protocol):
    """Whoever takes steps for the resources of the shards that are ours."""

    def gained(self, shards: Collection[int]) -> None:
        """Everything in these shards is to be looked at."""
        ...

    def lost(self, shard: int) -> None:
        """Nothing in this shard is to be begun any more. Steps in work are not the keeper's concern."""
        ...


class Replica:
    """This process among others. `identity` is its alone: no two processes may ever have the same."""

    def __init__(
        self, store: Store, clock: Clock, identity: str, number: int, jitter: Callable[[], float] = random.random
    ) -> None:
        self.identity = identity
        self.number = number
        self.leases = Leases(store, clock, jitter)
        # How often the holder of each shard changed, as far as was seen.
        self.changes: Counter[int] = Counter()
        self._clock = clock
        self._layout: Tenure | None = None
        self._seat: Tenure | None = None
        self._held: dict[int, Holding] = {}
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

    async def take(self, ref: ResourceRef, step: Step) -> Outcome:
        """What the step for `ref` comes to; LeaseLost when its shard is not ours, or not ours any more."""
        shard = self.shard_of(ref)
        holding = self._held.get(shard)
        if holding is None or not holding.is_open:
            return Stopped(LeaseLost(f"{ref} belongs to shard {shard}, which is not held here: its holder looks at it"))
        return await holding.take(step)

    # --- Taking part ----------------------------------------------------------------------------------------------

    async def run(self, keeper: Keeper, grace: float) -> None:
        """Takes part until it is cancelled. Steps in a shard that is handed over have `grace` seconds to finish."""
        async with asyncio.TaskGroup() as group:
            part = _Part(group, keeper, grace)
            while True:
                async with self._looking:
                    if not self._is_leaving:
                        await self._look_around(part)
                await self._clock.sleep(self._pause())

    async def leave(self, keeper: Keeper, grace: float) -> None:
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
            async with asyncio.timeout(ANSWER_SECONDS), self._looking:
                pass

    def _pause(self) -> float:
        """The seconds until the next look: sooner than usual when a lease of another has run out by then."""
        usual, left = LOOK_SECONDS * (1 + LOOK_JITTER * self.leases.jitter()), self._next_end - self._clock.monotonic()
        return min(usual, left + _AFTER) if left > 0 else usual

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
            self._layout = await self.leases.ask(_LAYOUT, f"{self.number}-shards-{LAYOUT}")
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
            seat = self._seat = await self.leases.ask(seat_for(self.identity, record, now), self.identity)
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
            if winner(shard, self._candidates(record.get(f"{_SHARD}{shard}"), now)) == self.identity
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
        since = self._clock.monotonic() - LEASE_SECONDS + EARLY_SECONDS
        return {member for member, at in self._known.items() if at <= since and member != lease.holder} or self._known

    def _is_free(self, shard: int, record: Mapping[str, Lease], now: str) -> bool:
        lease = record.get(f"{_SHARD}{shard}")
        is_anothers = lease is not None and lease.holder != self.identity and lease.is_held(now)
        may_ask = self._clock.monotonic() >= self._not_before.get(shard, 0.0)
        return not is_anothers and shard not in self._held and may_ask

    # --- Taking, keeping, losing ----------------------------------------------------------------------------------

    async def _take_over(self, shards: list[int], part: "_Part") -> None:
        """Asks for all of them; those that we get are ours from the same moment on."""
        found = await asyncio.gather(*map(self._ask_for, shards))
        layout = self._layout
        gained: list[int] = []
        for shard, tenure in zip(shards, found, strict=True):
            if tenure is None or tenure.is_over or layout is None or layout.is_over:
                continue
            if self._is_leaving:
                await self._give_back(shard, tenure)
                continue
            holding = self._held[shard] = Holding(shard, tenure, layout)
            part.group.create_task(self._keep(holding, part))
            gained.append(shard)
            _log.info("shard acquired", extra={"shard": shard, "fence": tenure.lease.fence})
        if gained:
            part.keeper.gained(gained)

    async def _ask_for(self, shard: int) -> Tenure | None:
        try:
            return await self.leases.ask(f"{_SHARD}{shard}", self.identity)
        except StoreError as error:
            _log.warning("shard not acquired", extra={"shard": shard, "why": str(error)})
            return None

    async def _keep(self, holding: Holding, part: "_Part") -> None:
        await self.leases.keep(holding.tenure)
        self._lose(holding, part)

    async def _keep_layout(self, layout: Tenure, part: "_Part") -> None:
        await self.leases.keep(layout)
        for holding in tuple(self._held.values()):
            self._lose(holding, part)

    def _lose(self, holding: Holding, part: "_Part") -> None:
        if self._held.get(holding.shard) is not holding:
            return
        del self._held[holding.shard]
        self._cut(holding)
        part.keeper.lost(holding.shard)
        _log.warning("shard lost", extra={"shard": holding.shard})

    def _cut(self, holding: Holding) -> None:
        if holding.cut():
            self._not_before[holding.shard] = self._clock.monotonic() + LEASE_SECONDS

    # --- Handing over ---------------------------------------------------------------------------------------------

    def _begin_hand_over(self, holding: Holding, part: "_Part") -> None:
        if holding.is_closing:
            return
        holding.close()
        part.keeper.lost(holding.shard)
        task = part.group.create_task(self._hand_over(holding, part))
        self._hand_overs.add(task)
        task.add_done_callback(self._hand_overs.discard)

    async def _hand_over(self, holding: Holding, part: "_Part") -> None:
        is_idle = await holding.is_idle_within(part.grace)
        if self._held.get(holding.shard) is not holding:
            return
        del self._held[holding.shard]
        if is_idle:
            await self._give_back(holding.shard, holding.tenure)
        else:
            # What they sent may still be under way, so the lease has to run out by itself.
            self._cut(holding)
            _log.warning("steps were cut short", extra={"shard": holding.shard})

    async def _give_back(self, shard: int, tenure: Tenure) -> None:
        self._not_before[shard] = self._clock.monotonic() + LEASE_SECONDS
        if await self.leases.give_back(tenure):
            del self._not_before[shard]
            _log.info("shard released", extra={"shard": shard})

    def _first_end(self, record: Mapping[str, Lease]) -> float:
        """When the first of the others' shards becomes free, by the clock that never runs backwards."""
        shards = (record.get(f"{_SHARD}{shard}") for shard in range(self.number))
        others = (lease.expires for lease in shards if lease is not None and lease.holder not in ("", self.identity))
        wall = datetime.fromisoformat(self._clock.now()).timestamp()
        return self._clock.monotonic() + min((at - wall for at in others if at > wall), default=inf)

    def _count_changes(self, record: Mapping[str, Lease]) -> None:
        for shard in range(self.number):
            lease = record.get(f"{_SHARD}{shard}")
            if lease is not None:
                self.changes[shard] += lease.fence - self._fences.get(shard, lease.fence)
                self._fences[shard] = lease.fence


@dataclass(frozen=True, slots=True)
class _Part:
    """What a replica does its part with."""

    group: asyncio.TaskGroup
    keeper: Keeper
    grace: float
